"""Reads ATIF 1.0 to 1.8 (Agent Trajectory Interchange Format): what Harbor, Terminal-Bench 2 and others write.

The outcome is not in it: Harbor keeps it in the `result.json` of the trial, in whose folder `agent/` the file lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lessonbank.contracts.records import Json, Verdict

from ._files import Skipped, Source
from ._reading import (
    Data,
    Entry,
    Format,
    Run,
    at,
    attempt,
    issue_in,
    listing,
    mapping,
    spent_on,
    tool_call,
    tool_result,
    truth,
    words,
)

NAME = "atif"
_OURS = "lessonbank"
"""Where an export of this package keeps what ATIF has no field for."""
_ROLES = {"user": "user", "agent": "assistant", "system": "environment"}
_CONTINUED = re.compile(r"\.cont-\d+(?=\.)")
_SUMMARY = "-summarization-"
_MOST_PARTS = 100
"""Files that one run may go on in."""


def _matches(value: Json, name: str) -> bool:
    return words(at(value, "schema_version")).startswith("ATIF-") and isinstance(at(value, "steps"), list)


def _read(source: Source) -> Iterator[Entry]:
    """Each trajectory, with those of its sub-agents as runs of their own."""
    for row in source.rows():
        if isinstance(row, Skipped):
            yield row
        elif why := _no_run(mapping(row.value), source):
            yield Skipped(source.path, row.line, why, unknown=True)
        else:
            yield from _runs(mapping(row.value), source, row.line)


def _no_run(whole: Data, source: Source) -> str:
    """Why a sound trajectory is no run of its own."""
    if _SUMMARY in words(at(whole, "agent", "name")):
        return "holds a summary that the program asked for itself, and no run"
    begins = source.path.with_name(_CONTINUED.sub("", source.path.name))
    if begins != source.path and begins.is_file():
        return f"goes on from {begins.name}, and is read with it"
    return ""


def _runs(whole: Data, source: Source, line: int) -> Iterator[Entry]:
    steps = [*listing(whole.get("steps")), *_continued(whole, source)]
    yield attempt(source, line, NAME, lambda: _run(whole, steps, source, line), ends=_ends(whole, source))
    for inner in map(mapping, listing(whole.get("subagent_trajectories"))):
        own = listing(inner.get("steps"))
        yield attempt(source, line, NAME, lambda child=inner, steps=own: _run(child, steps, source, line, whole=whole))


def _continued(whole: Data, source: Source) -> list[Json]:
    """The steps of the files in which a run goes on, without those that they repeat."""
    steps: list[Json] = []
    seen = {source.path.name}
    while (name := words(whole.get("continued_trajectory_ref"))) and name == Path(name).name and name not in seen:
        if len(seen) > _MOST_PARTS:
            break
        seen.add(name)
        whole = mapping(source.beside(source.path.with_name(name)).first())
        steps += [step for step in listing(whole.get("steps")) if at(step, "is_copied_context") is not True]
    return steps


def _run(own: Data, steps: list[Json], source: Source, line: int, whole: Data | None = None) -> Run:
    agent, spent = mapping(own.get("agent")), mapping(own.get("final_metrics"))
    trial = {} if whole else _trial(source)
    session = words(own.get("session_id")) or words(own.get("trajectory_id"))
    child = words(own.get("trajectory_id")) if whole else ""
    messages, exit_codes = _messages(steps)
    ours = mapping(at(own, "extra", _OURS))
    return Run(
        messages=messages,
        source=words(agent.get("name")) or NAME,
        run_id="/".join(filter(None, (session, child))) or f"{source.name}/{line}",
        task_id=words(trial.get("task_name")),
        task=words(ours.get("task")) or _task(messages),
        tools=agent.get("tool_definitions"),
        model=words(agent.get("model_name")) or None,
        verdict=_verdict(trial, source.success_at) or _exported(ours),
        error=words(at(trial, "exception_info", "exception_type")) or words(ours.get("error")) or None,
        answer=words(ours.get("answer")) or None,
        usage=spent_on(
            [spent],
            "total_prompt_tokens",
            "total_completion_tokens",
            requests=sum(at(step, "source") == "agent" for step in steps),
            cost=spent.get("total_cost_usd"),
        ),
        exit_codes=exit_codes,
    )


def _task(messages: list[Json]) -> str | None:
    """What the user asked, out of the prompt that some agents put it in."""
    first = next((words(at(message, "content")) for message in messages if at(message, "role") == "user"), "")
    asked = issue_in(first)
    return asked if asked != first else None


def _messages(steps: list[Json]) -> tuple[list[Json], dict[str, int]]:
    messages: list[Json] = []
    exit_codes: dict[str, int] = {}
    acted = False
    for step in map(mapping, steps):
        speaker = words(step.get("source"))
        acted = acted or speaker == "agent"
        message = _message(step, "system" if speaker == "system" and not acted else _ROLES.get(speaker, "environment"))
        if message:
            messages.append(message)
        for result in _results(step):
            messages.append(result)
            if isinstance(code := at(result, "exit_code"), int):
                exit_codes[words(at(result, "tool_call_id"))] = code
    return messages, exit_codes


def _message(step: Data, role: str) -> Data | None:
    calls = [
        tool_call(at(call, "tool_call_id"), at(call, "function_name"), at(call, "arguments"))
        for call in listing(step.get("tool_calls"))
    ]
    thought = words(step.get("reasoning_content"))
    if not (step.get("message") or calls or thought):
        return None
    message: Data = {"role": role, "content": step.get("message")}
    if calls:
        message["tool_calls"] = list[Json](calls)
    if thought:
        message["reasoning_content"] = thought
    return message


def _results(step: Data) -> list[Json]:
    """What a step saw. A result that names no call is the last call's, or nobody's where there was no call."""
    calls = [words(at(call, "tool_call_id")) for call in listing(step.get("tool_calls"))]
    results = [mapping(result) for result in listing(at(step, "observation", "results"))]
    messages: list[Json] = []
    for place, result in enumerate(results):
        call_id = words(result.get("source_call_id"))
        if not call_id and calls:
            call_id = calls[place] if len(calls) == len(results) else calls[-1]
        content, extra = result.get("content"), mapping(result.get("extra"))
        if not call_id:
            messages.append({"role": words(extra.get("source")) or "environment", "content": content})
            continue
        code = extra.get("exit_code")
        failed = extra.get("is_error") is True or (isinstance(code, int) and code != 0)
        stated = isinstance(extra.get("is_error"), bool) or isinstance(code, int)
        messages.append(
            {**tool_result(call_id, "", failed=failed, stated=stated), "content": content, "exit_code": code}
        )
    return messages


def _trial(source: Source) -> Data:
    """What Harbor says of the trial that a trajectory is of."""
    folder = source.folder
    for place in (folder, folder.parent) if folder.name == "agent" else (folder,):
        file = place / "result.json"
        result = mapping(source.beside(file).first()) if file.is_file() else {}
        if {"verifier_result", "task_name"} & result.keys():
            return result
    return {}


def _verdict(trial: Data, success_at: float) -> Verdict | None:
    """The verifier's reward; several rewards, none of which is called so, say nothing together."""
    rewards = mapping(at(trial, "verifier_result", "rewards"))
    reward = rewards.get("reward") if "reward" in rewards or len(rewards) != 1 else next(iter(rewards.values()))
    return truth(None, reward, reason="Harbor verifier", success_at=success_at)


def _exported(ours: Data) -> Verdict | None:
    """The outcome that a bank exported with the run; only what is no opinion of a model."""
    verdict = truth(ours.get("success"), ours.get("reward"), reason=ours.get("reason"))
    return verdict if verdict and ours.get("told_by") == "ground_truth" else None


def _ends(whole: Data, source: Source) -> list[str]:
    rewards = mapping(at(_trial(source), "verifier_result", "rewards"))
    opinion = [f"extra.{_OURS}.success"] if at(whole, "extra", _OURS, "success") is not None else []
    return [*(f"verifier_result.rewards.{name}" for name in rewards), *opinion]


FORMAT = Format(
    NAME, "ATIF trajectories (Harbor, Terminal-Bench 2 and others); sub-agents are runs of their own", _matches, _read
)
