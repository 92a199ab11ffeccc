"""Writes a run as ATIF 1.7 (Agent Trajectory Interchange Format), which Harbor, Phoenix and others read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from anyio import to_thread

from lessonbank._base.atomic_write import replacing
from lessonbank._base.checks import short_path
from lessonbank.contracts.ports import RunFilter, Store
from lessonbank.contracts.records import Json, Observation, Run, Step, ToolCall, Trajectory
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import StoreUnavailable, UsageError

VERSION: Final = "ATIF-v1.7"
OURS: Final = "lessonbank"
"""The name under which a trajectory keeps what ATIF has no field for."""
_BATCH: Final = 64
"""Runs that are read at a time."""
_NOTHING_SEEN: Final[Json] = {"results": []}


def document(run: Run, /) -> dict[str, Json]:
    """The run as one ATIF trajectory. What ATIF has no field for (task, outcome, error) stands in `extra.lessonbank`.

    `lessonbank.importers.read` makes the same steps of it again. ATIF says nothing of the names and types of media.
    """
    made, metadata = run.trajectory, run.trajectory.metadata
    agent: dict[str, Json] = {
        "name": str(metadata.get("source") or OURS),
        "version": str(metadata.get("agent_version") or "unknown"),
        "model_name": metadata.get("model"),
        "tool_definitions": [tool for tool in made.tools if isinstance(tool, dict)],
    }
    return {
        "schema_version": VERSION,
        "session_id": str(metadata.get("run_id") or made.id),
        "trajectory_id": made.id,
        "agent": _without_empty(agent),
        "steps": _number_steps(made),
        "final_metrics": _without_empty(
            {
                "total_prompt_tokens": made.usage.input_tokens,
                "total_completion_tokens": made.usage.output_tokens,
                "total_cost_usd": made.usage.cost,
            }
        ),
        "extra": {OURS: _ours(run)},
    }


def _ours(run: Run) -> dict[str, Json]:
    made, verdict = run.trajectory, run.verdict
    known = verdict.outcome != "unknown"
    fields: dict[str, Json] = {
        "task": made.task,
        "answer": made.answer,
        "error": made.error,
        "metadata": made.metadata,
        "success": verdict.outcome == "success" if known else None,
        "reward": verdict.reward if known else None,
        "told_by": verdict.source if known else None,
        "reason": verdict.reason if known else None,
    }
    return _without_empty(fields)


def _without_empty(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _number_steps(run: Trajectory) -> list[Json]:
    """Steps with ids from 1. A result stands in the step that has its call, as ATIF asks."""
    steps: list[dict[str, Json]] = []
    if run.instructions:
        steps.append({"source": "system", "message": run.instructions})
    results: dict[str, list[Json]] = {}
    for number, step in enumerate(run.steps):
        steps += _atif_steps(step, number, results)
    if all(step["source"] != "user" for step in steps):
        steps.insert(bool(run.instructions), {"source": "user", "message": run.task})
    return [
        {"step_id": number, **{name: value for name, value in step.items() if value != _NOTHING_SEEN}}
        for number, step in enumerate(steps, 1)
    ]


def _atif_steps(step: Step, number: int, results: dict[str, list[Json]], /) -> list[dict[str, Json]]:
    """A step as those of ATIF: what the agent did with what came of it, and each word of somebody else.

    `results`: what came of the calls so far, by the ids of the calls.
    """
    calls, own = step.action.calls, list[Json]()
    ids = [call.id or f"call-{number}-{place}" for place, call in enumerate(calls)]
    results.update(dict.fromkeys(ids, own))
    acts = bool(calls or step.action.text or step.thought)
    steps: list[dict[str, Json]] = []
    if acts:
        steps.append({"source": "agent", **_action_fields(step, calls, ids), "observation": {"results": own}})
    unnamed = iter(ids)
    for seen in step.observations:
        id = seen.call_id or (next(unnamed, "") if seen.source == "tool" else "")
        if id in results:
            results[id].append({"source_call_id": id, **_result(seen)})
        elif seen.source == "user":
            steps.append({"source": "user", "message": seen.text})
        elif acts and not calls:
            own.append(_result(seen))
        else:
            steps.append({"source": "system", "message": "", "observation": {"results": [_result(seen)]}})
    return steps


def _action_fields(step: Step, calls: Sequence[ToolCall], ids: Sequence[str]) -> dict[str, Json]:
    made: list[Json] = [
        {
            "tool_call_id": id,
            "function_name": call.name,
            "arguments": call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments},
        }
        for id, call in zip(ids, calls, strict=True)
    ]
    return {"message": step.action.text, **_without_empty({"reasoning_content": step.thought, "tool_calls": made})}


def _result(seen: Observation) -> dict[str, Json]:
    flag = True if seen.is_error else False if seen.is_success else None
    extra: dict[str, Json] = {
        "is_error": flag,
        "name": seen.name,
        "source": seen.source if seen.source != "tool" else None,
    }
    given: dict[str, Json] = {name: value for name, value in extra.items() if value is not None}
    return {"content": seen.text, "extra": given} if given else {"content": seen.text}


async def write_runs(store: Store, folder: Path, /, *, scope: str) -> int:
    """Write each kept run of `scope` as an ATIF trajectory to a file of its own in `folder`; how many.

    Raises:
        UsageError: `folder` is a file.
        StoreUnavailable: it cannot be made, or a file cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{short_path(folder)} is a file: name a folder for the runs")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"cannot make the folder {short_path(folder)}: {error.strerror or error}") from error
    count, after = 0, None
    while runs := await store.runs(RunFilter(limit=_BATCH, after=after), scope=scope):
        for run in runs:
            text = json.dumps(document(run), ensure_ascii=False, indent=1) + "\n"
            async with replacing(folder / f"{_file_name(run.trajectory.id)}.json", what="run") as part:
                await to_thread.run_sync(partial(part.write_text, text, encoding="utf-8"))
        count, after = count + len(runs), runs[-1].trajectory.id
    return count


def _file_name(id: str) -> str:
    """An id may be a caller's own, and hold what no name of a file may."""
    return id if id.isascii() and id.replace("-", "").replace("_", "").isalnum() and len(id) < 100 else digest(id)
