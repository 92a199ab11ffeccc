"""Reads logs of Inspect (inspect_ai 0.3): `.eval` archives and `.json`. Every sample and epoch is a run."""

from __future__ import annotations

from collections.abc import Iterator

from lessonbank.contracts.records import Json, Verdict
from lessonbank.errors import FormatError

from ._files import Source
from ._reading import (
    Data,
    Run,
    at,
    entries,
    listing,
    mapping,
    number,
    spent_on,
    truth,
    words,
)

_SCORES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters: correct, incorrect, partly correct, no answer."""
_ATTACHED = "attachment://"


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return "task" in mapping(row.get("eval")) and isinstance(row.get("samples"), list)


def _split(value: Json) -> Iterator[Json]:
    if not _matches(value, ""):
        yield {}
    for sample in listing(mapping(value).get("samples")):
        yield {"eval": mapping(value).get("eval"), "sample": sample}


def _build(entry: Json, source: Source, line: int) -> Run:
    sample = mapping(at(entry, "sample"))
    if not sample:
        raise FormatError("not a sample of an Inspect log")
    attached = mapping(sample.get("attachments"))
    given = _resolved(sample.get("input"), attached)
    name, epoch = words(sample.get("id")), words(sample.get("epoch"))
    spent = [mapping(used) for used in mapping(sample.get("model_usage")).values()]
    return Run(
        messages=[_message(mapping(message), attached) for message in listing(sample.get("messages"))],
        source=f"inspect/{words(at(entry, 'eval', 'task'))}",
        run_id=f"{words(at(entry, 'eval', 'run_id'))}/{name}/{epoch}",
        task_id=name,
        task=given if isinstance(given, str) else None,
        model=words(at(entry, "eval", "model")) or None,
        verdict=_verdict(mapping(sample.get("scores")), source.success_at),
        error=_stopped(sample) or None,
        answer=words(at(sample, "output", "completion")) or None,
        usage=spent_on(spent, "input_tokens", "output_tokens"),
    )


def _message(row: Data, attached: Data) -> Json:
    message: Data = {"role": row.get("role"), "content": _resolved(row.get("content"), attached)}
    calls: list[Json] = [
        {"id": at(call, "id"), "name": at(call, "function"), "arguments": _resolved(at(call, "arguments"), attached)}
        for call in listing(row.get("tool_calls"))
    ]
    if calls:
        message["tool_calls"] = calls
    if row.get("role") == "tool":
        message |= {"tool_call_id": row.get("tool_call_id"), "name": row.get("function")}
        if problem := mapping(row.get("error")):
            message |= {"content": message["content"] or problem.get("message"), "is_error": True}
    return message


def _resolved(value: Json, attached: Data) -> Json:
    """What is attached in place of its name: long texts stand once in a sample."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, list):
        return [_resolved(child, attached) for child in value]
    return {name: _resolved(child, attached) for name, child in value.items()} if isinstance(value, dict) else value


def _verdict(scores: Data, success_at: float) -> Verdict | None:
    """What the scorers say, if they agree. One that asks a model is a judge, and no truth."""
    rewards = [_points(mapping(score).get("value")) for score in scores.values()]
    if not rewards or None in rewards or len({(points or 0.0) >= success_at for points in rewards}) > 1:
        return None
    verdict = truth(None, rewards[0], reason=f"scored by {', '.join(scores)}"[:300], success_at=success_at)
    if verdict and any(name.startswith("model_graded") for name in scores):
        return verdict.model_copy(update={"source": "judge"})
    return verdict


def _points(value: Json) -> float | None:
    if isinstance(value, bool):
        return float(value)
    return _SCORES.get(value) if isinstance(value, str) else number(value)


def _stopped(sample: Data) -> str:
    limit = words(at(sample, "limit", "type"))
    return words(at(sample, "error", "message")) or (f"limit reached: {limit}" if limit else "")


FORMAT = entries("inspect", "Inspect logs: `.eval` archives and `.json`", _matches, _build, split=_split)
