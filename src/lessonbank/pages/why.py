"""Why an agent was told something: what a recall found, showed and withheld; and what it would show now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.responses import Response

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import argument_error
from lessonbank.contracts.records import Candidate, Lesson, Recall
from lessonbank.contracts.settings import Search, TrustPolicy
from lessonbank.errors import UsageError
from lessonbank.evidence.groups import group_label

from .absence import why_absent
from .runs import of_task, was_empty
from .tables import csv_of, every
from .visit import PAGE, Visit

_NUMBERS: Final = ("limit", "budget", "floor")
_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "by": get_args(Search),
    "trust": get_args(TrustPolicy),
}
_SETTINGS: Final = (*_NUMBERS, *_CHOICES, "preface")
"""What of a search the reader may change; the address says it, so that it can be shared."""
_TOLD: Final = ("its task scored", "found with a score", "withheld at random")
"""What a receipt says of a lesson that its row says in other words."""
_SAID: Final = 400
_SEARCHED: Final[Mapping[str, str]] = {"experience": "past tasks", "lesson": "the lessons"}
_WAYS: Final[Mapping[str, str]] = {"hybrid": "by words and by meaning", "lexical": "by words", "dense": "by meaning"}
_TRUSTED: Final = re.compile(rf"\+({'|'.join(get_args(TrustPolicy))})\b")
_FLOOR: Final = re.compile(r"\+floor\(([\d.]+)\)")
_COLUMNS: Final = ("id", "task", "time", "found", "shown", "withheld_whole", "lessons_shown")


async def page(visit: Visit) -> Response:
    """The page; in a large scope, the search for what a task would be shown comes after it."""
    return await _listing(visit, late=visit.is_large)


async def _listing(visit: Visit, *, late: bool) -> Response:
    """Recalls, newest first; and what a task of the reader's own would be shown."""
    task = visit.query("task")
    known = {"yes": True, "no": False}.get(visit.query("settled") or "")
    asked = {"text": visit.query("q"), "settled": visit.query("settled")}
    if visit.query("format") == "csv":
        listed = await every(visit.bank.recalls.list, lambda recall: recall.id, text=asked["text"], settled=known)
        return csv_of("recalls", _COLUMNS, map(_csv, listed))
    recalls = await visit.bank.recalls.list(
        text=asked["text"], settled=known, limit=PAGE + 1, after=visit.query("after")
    )
    more = recalls[PAGE - 1].id if len(recalls) > PAGE else None
    context: dict[str, object] = {"asked": asked, "found": recalls[:PAGE], "more": more, "task": task}
    if visit.is_part:
        return visit.page("_recalls.html", context)
    context |= {"given": {name: visit.query(name) for name in _SETTINGS}, "choices": _CHOICES, "most": PAGE}
    tried = None if late or task is None else await _tried(visit, task)
    context |= {"tried": tried, "late": late and task is not None}
    return visit.page("why.html", context, status=400 if tried and tried["problem"] else 200)


def _csv(recall: Recall) -> Sequence[object]:
    shown = [each.lesson_id for each in recall.candidates if each.shown]
    return (
        recall.id,
        recall.task,
        recall.created_at.isoformat(),
        len(recall.candidates),
        len(shown),
        recall.control,
        " ".join(shown),
    )


async def trying(visit: Visit) -> Response:
    """What an agent would be shown for a task: the part of the page above that searches."""
    task = visit.query("task")
    if not visit.is_part or task is None:
        return await _listing(visit, late=False)
    return visit.page("_tried.html", {"tried": await _tried(visit, task)})


async def _tried(visit: Visit, task: str) -> Mapping[str, object]:
    """What the search says with the settings of the address, or what is wrong with these."""
    try:
        recall = await visit.bank.recalls.preview(task, **_settings(visit))
    except UsageError as error:
        return {"problem": str(error)}
    return {
        "recall": recall,
        "rows": await _candidates(visit, recall),
        "problem": None,
        "searched": search_in_words(recall),
    }


def _settings(visit: Visit) -> Mapping[str, Any]:
    """The settings that the address names. Raises UsageError."""
    given = {name: value for name in _SETTINGS if (value := visit.query(name)) is not None}
    settings: dict[str, Any] = {**given, **{name: _number(name, given[name]) for name in _NUMBERS if name in given}}
    if settings.get("limit", 1) > PAGE:
        raise UsageError(f"limit is at most {PAGE} here: ask the bank itself for more")
    return settings


def _number(name: str, text: str) -> float:
    """Raises UsageError."""
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise argument_error(name, "is a number", text) from None


async def show_recall(visit: Visit) -> Response:
    """One recall: the text, and each lesson that was found."""
    recall = await visit.bank.recalls.get(visit.id)
    drawn = await visit.bank.lessons.list(recall=recall.id, retired=True, limit=PAGE)
    rows = await _candidates(visit, recall)
    names = await visit.topics([row.lesson for row in rows if row.lesson])
    context = {"recall": recall, "rows": rows, "drawn": drawn, "draws": draws_of(recall, names)}
    context |= {"searched": search_in_words(recall), "empty": was_empty(recall)}
    context["runs"] = await _runs_of(visit, recall, drawn)
    return visit.page("recall.html", context)


async def explained(visit: Visit) -> Response:
    """How its task ended, what nearly was found, and what the evidence says: this reads all outcomes."""
    receipt = await visit.bank.recalls.get(visit.id)
    explanation = await visit.bank.recalls.explain(visit.id)
    return visit.page(
        "_explained.html" if visit.is_part else "explained.html", {"told": explanation, "empty": was_empty(receipt)}
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A lesson that was found, and what became of it in a sentence."""

    candidate: Candidate
    lesson: Lesson | None
    sentence: str
    absence: str
    """Why the bank does not hold it; empty where it does."""


async def _candidates(visit: Visit, recall: Recall) -> Sequence[Row]:
    known = {lesson.id: lesson for lesson in recall.lessons}
    ranked = sorted(recall.candidates, key=lambda candidate: candidate.rank)[:PAGE]
    pairs = [(c, known.get(c.lesson_id) or await get_or_none(visit.bank.lessons.get(c.lesson_id))) for c in ranked]
    names = await visit.topics([lesson for _, lesson in pairs if lesson])
    why = await why_absent(visit, [c.lesson_id for c, lesson in pairs if lesson is None])
    return [Row(c, lesson, said_of(c, recall, names), why.get(c.lesson_id, "")) for c, lesson in pairs]


def said_of(candidate: Candidate, recall: Recall, names: Mapping[str, str], /) -> str:
    """What became of a lesson that was found, and with what odds. `names`: those of its groups."""
    rest = [part for part in candidate.why.split("; ") if part and not part.startswith(_TOLD)]
    groups = [draw for draw in recall.groups if draw.withheld and draw.group in candidate.groups]
    if not recall.kept:  # a try, which draws nothing
        sentence = "It would be shown." if candidate.shown else "It would have no place in the text."
    elif recall.is_withheld and not candidate.shown:
        sentence = f"Withheld with all of memory, to compare with (odds {_percent(recall.control_probability)})."
    elif candidate.withheld:
        sentence = f"Withheld by chance, to compare with (odds {_percent(candidate.probability)})."
    elif groups and not candidate.shown:
        name = group_label(groups[0].group, names)
        sentence = f"Withheld with its group, {name}, to compare with (odds {_percent(groups[0].probability)})."
    elif not candidate.shown:
        sentence = "It had no place in the text."
    elif candidate.probability:
        sentence = f"It was shown; the odds to withhold it, to compare with, were {_percent(candidate.probability)}."
    else:
        sentence = "It was shown; no draw of its own was made for it."
    return f"{sentence} ({'; '.join(rest)})"[:_SAID] if rest else sentence


def search_in_words(recall: Recall, /) -> str:
    """How a recall searched, as a sentence: its name, such as `experience/lexical+floor(0.07)`, is for programs."""
    kind, _, rest = recall.retriever.partition("/")
    if kind not in _SEARCHED:
        return f"Searched by {recall.retriever}." if recall.retriever else ""
    how = next((words for name, words in _WAYS.items() if name in rest), "in a way of its own")
    floors = " and ".join(dict.fromkeys(_FLOOR.findall(rest)))
    least = f" What is less alike than {floors} (1 is the same) is not found." if floors else ""
    space = f", with vectors of {recall.space}" if recall.space else ""
    trusted = "".join(f" Only lessons that are trusted enough: {name}." for name in _TRUSTED.findall(rest))
    return f"Searched {_SEARCHED[kind]} {how}{space}.{least}{trusted}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


async def _runs_of(visit: Visit, recall: Recall, drawn: Sequence[Lesson]) -> Sequence[str]:
    """Ids of the runs that were shown this: those that name the recall, or that taught what came of it."""
    same = await of_task(visit, recall.task, limit=PAGE)
    run_ids = [run.trajectory.id for run in same if run.recall_id == recall.id]
    taught = [id for lesson in drawn for id in lesson.provenance.trajectory_ids]
    return list(dict.fromkeys((*run_ids, *taught)))[:3]


def draws_of(recall: Recall, names: Mapping[str, str], /) -> Sequence[str]:
    """The draws for groups, in words."""
    draws = [(draw, "withheld" if draw.withheld else "kept") for draw in recall.groups]
    return [f"{group_label(draw.group, names)}: {what} (odds {_percent(draw.probability)})" for draw, what in draws]
