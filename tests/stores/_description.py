"""What the public API says of a whole bank, as JSON: two releases that say the same hold the same."""

from __future__ import annotations

import json
from typing import Any, cast

import lessonbank

MANY = 10_000
QUESTIONS = ("Close the order case", "Find the invoice of April", "Export a table", "Ship it")


def described(bank: lessonbank.ReasoningBank) -> dict[str, Any]:
    """What every scope of a bank holds, in plain JSON."""
    scopes = {scope: _scope(bank.scoped(scope)) for scope in sorted(bank.admin.scopes())}
    whole = {"settings": sorted(bank.settings), "writers": sorted(bank.admin.writers()), "verify": bank.admin.verify()}
    return _plain({**whole, "reviewers": sorted(bank.admin.reviewers()), "scopes": scopes})


def _scope(bank: lessonbank.ReasoningBank) -> dict[str, Any]:
    lessons = bank.lessons.list(retired=True, limit=MANY)
    return {
        "counts": bank.admin.counts(),
        "runs": bank.runs.list(limit=MANY),
        "pending": bank.runs.pending(limit=MANY),
        "queue": bank.runs.queue(),
        "unlabelled": [run.trajectory.id for run in bank.runs.unlabelled()],
        "lessons": lessons,
        "experiences": {each.id: bank.lessons.experience(each.id) for each in lessons},
        "repeats": {each.id: found for each in lessons if (found := bank.lessons.repeats(each.id))},
        "proposals": bank.lessons.proposals(),
        "topics": dict(bank.lessons.topics()),
        "recalls": bank.recalls.list(limit=MANY),
        "settled": [recall.id for recall in bank.recalls.list(settled=True, limit=MANY)],
        "history": bank.history.list(),
        "lift": bank.lift(),
        "found": {task: _found(bank, task) for task in QUESTIONS},
        "unembedded": bank.admin.unembedded(),
    }


def _found(bank: lessonbank.ReasoningBank, task: str) -> list[list[str]]:
    """The lessons that answer, by vectors and by words; their order is that of their scores. Vectors with the floor
    that they had alone, before `hashing` asked for words in common: what is compared is the index."""
    ways: dict[Any, float | None] = {"dense": 0.12, "lexical": None}
    found = {way: bank.recalls.preview(task, limit=5, by=way, floor=floor) for way, floor in ways.items()}
    return [[each.lesson_id for each in recall.candidates] for recall in found.values()]


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump_json"):
        return json.loads(value.model_dump_json())
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in cast("list[Any]", value)]
    return value
