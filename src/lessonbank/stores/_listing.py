"""What a list of lessons, runs or recalls is filtered by: the same in every store."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, TypeVar

from lessonbank.contracts.ports import LessonFilter, RecallFilter, RunFilter, SavedRecall
from lessonbank.contracts.records import (
    NOT_JUDGED,
    Experience,
    Json,
    Lesson,
    LessonState,
    Recall,
    Run,
    RunStatus,
    Settle,
    Submission,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.records.attempts import attempts_of
from lessonbank.errors import NotFound, UsageError
from lessonbank.guard.identity import is_separate_writer
from lessonbank.guard.wording import wording_of
from lessonbank.text.bm25 import words

from ._entries import entry_of
from ._records import encodable, loaded, microseconds
from ._texts import checked

T = TypeVar("T")

STATES: tuple[LessonState, ...] = ("probation", "active", "quarantined", "retired")


def says_outcome(entry: bytes | None, /) -> bool:
    """Whether a journal entry as it is stored, or none, says how the task of a recall ended: `unknown` says nothing."""
    # A quote inside a text of JSON has a backslash before it, so this can be nothing but the field.
    return entry is not None and b'"outcome":"unknown"' not in checked(entry)


def state_of(lesson: Lesson, /) -> LessonState:
    """The state a lesson is listed under."""
    return "retired" if lesson.retired else lesson.state


def wanted_states(state: LessonState | None, *, retired: bool) -> tuple[LessonState, ...]:
    """The states that a list shows. Raises UsageError for one that there is not."""
    if state is None:
        return STATES if retired else STATES[:-1]
    if state not in STATES:
        raise UsageError(f"there is no state {state!r}: name one of {', '.join(STATES)}")
    return (state,)


def check_limit(limit: int, /) -> None:
    """Refuse a list of nothing. Raises UsageError."""
    if limit < 1:
        raise UsageError(f"limit is a number of records, 1 or more; got {limit!r}")


@dataclass(slots=True)
class Where:
    """A condition as it grows, with the values of its placeholders."""

    parts: list[str] = field(default_factory=list[str])
    values: list[Any] = field(default_factory=list[Any])

    def add(self, part: str, *values: object) -> None:
        """Ask for this too."""
        self.parts.append(part)
        self.values.extend(values)

    def __str__(self) -> str:
        return " AND ".join(self.parts)


def no_such(kind: str, after: str, /) -> NotFound:
    """The error for a page that follows a record which is not there."""
    return NotFound(f"no {kind} {after!r} in this scope: start the list again")


def tags(metadata: Mapping[str, Json], /) -> frozenset[bytes]:
    """One digest for each key with its value: they can be looked up, and tell nobody what they stand for.

    A value nested so deeply that Python cannot say it as JSON has none, and is not found.
    """
    digests = set[bytes]()
    for key, value in metadata.items():
        try:
            text = json.dumps([key, value], sort_keys=True)
        except RecursionError:
            continue
        digests.add(blake2b(encodable(text).encode(), digest_size=16).digest())
    return frozenset(digests)


def tags_of(record: Trajectory | Recall | Experience, /) -> frozenset[bytes]:
    """What a record is found by: its metadata, and the fields that lists ask for."""
    digests = tags(record.metadata) if record.metadata else frozenset[bytes]()
    match record:
        case Trajectory(unfinished=True):
            return digests | {UNFINISHED_TAG}
        case Experience(recall_id=str(recall_id)):
            return digests | {recall_tag(recall_id)}
        case _:
            return digests


def recall_tag(recall_id: str, /) -> bytes:
    """What the experiences of a recall are found by. No metadata have it."""
    # Metadata are digested as a list, which begins with a bracket.
    return blake2b(encodable(f"recall_id {recall_id}").encode(), digest_size=16).digest()


UNFINISHED_TAG: Final = blake2b(b"unfinished ", digest_size=16).digest()


def asked_words(text: str | None, /) -> frozenset[str]:
    """The words that a record has to hold; none where any will do."""
    return frozenset(words(text)) if text else frozenset()


def holds(texts: Iterable[str], asked: frozenset[str], /) -> bool:
    """Whether every word stands in one of the texts."""
    missing = set(asked)
    for text in texts:
        if not missing:
            break
        missing.difference_update(words(text))
    return not missing


def may_hold(record: bytes, asked: frozenset[str], /) -> bool:
    """Whether a record can hold every word, judged by its JSON as one text. A no is certain.

    It takes a small part of the time in which the record is read, and most records that are looked through lack a word.
    """
    text = record.decode()
    lowercase = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return all(word in lowercase for word in asked)


def tags_wanted(wanted: RunFilter | LessonFilter | RecallFilter, /) -> frozenset[bytes]:
    """What a record has to be found by."""
    asked = tags(wanted.metadata) if wanted.metadata else frozenset[bytes]()
    recall = wanted.recall if isinstance(wanted, LessonFilter) else None
    return asked if recall is None else asked | {recall_tag(recall)}


def first_fitting(
    wanted: RunFilter | LessonFilter | RecallFilter, records: Iterator[T], texts: Callable[[T], Iterable[str]], /
) -> list[T]:
    """The first records that hold every word that is asked for, as many as the filter wants."""
    words = asked_words(wanted.text)
    fitting = (record for record in records if holds(texts(record), words)) if words else records
    return list(islice(fitting, wanted.limit))


def run_texts(run: Trajectory, /) -> Iterator[str]:
    """What a run is searched in."""
    yield from (run.task, run.answer or "", run.error or "")
    for step in run.steps:
        yield from (step.thought, step.action.text)
        for call in step.action.calls:
            given = call.arguments
            text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            yield f"{call.name} {text}"
        yield from (seen.text for seen in step.observations)


def saved_recall(record: bytes, settled_by: bytes | None, /) -> SavedRecall:
    """A stored record, and the stored journal entry that settled it, if that is asked for."""
    recall, held = loaded(Recall, checked(record)), settled_by and entry_of(checked(settled_by))
    return SavedRecall(recall, held.settlement if isinstance(held, Settle) else None)


def saved_recalls(wanted: RecallFilter, rows: Iterable[tuple[bytes, bytes | None]], /) -> list[SavedRecall]:
    """The recalls that fit; a row is what `saved_recall` takes."""
    fitting = (row for row in rows if wanted.settled is None or says_outcome(row[1]) == wanted.settled)
    recalls = (saved_recall(record, entry if wanted.settlements else None) for record, entry in fitting)
    return first_fitting(wanted, recalls, lambda recall: (recall.recall.task, recall.recall.text))


def listed(lesson: Lesson, /) -> tuple[str, int, str, str, str]:
    """What a lesson is found by: state, time, kind, writer, wording."""
    fields = state_of(lesson), microseconds(lesson.created_at), lesson.kind, lesson.provenance.writer
    return *fields, wording_of(lesson)


def runs_of(pairs: Iterable[tuple[Sequence[Any], Trajectory]], held: Iterable[Experience] = (), /) -> list[Run]:
    """Kept runs as they are listed, each with how it stands in the queue: whether it waits and was given up, tries, and
    the last problem. `held`: the experiences that they belong to, oldest first."""
    holders = {id: experience for experience in held for id, *_ in attempts_of(experience)}
    return [_run_of(run, holders.get(run.id), *standing) for standing, run in pairs]


def _run_of(
    run: Trajectory, holder: Experience | None, waits: bool, failed: bool, tries: int, problem: str | None
) -> Run:
    tried = holder.attempts if holder else ()
    verdict = next((attempt.verdict for attempt in tried if attempt.trajectory_id == run.id), None)
    return Run(
        trajectory=run,
        verdict=verdict or Verdict(outcome="unknown", reason=NOT_JUDGED),
        status=_status(run, pending=bool(waits), failed=bool(failed)),
        tries=tries,
        problem=problem,
        recall_id=holder.recall_id if holder else None,
        metadata=run.metadata,
    )


def in_order(wanted: RunFilter | RecallFilter, order: Sequence[str], /) -> str:
    """SQL that orders rows by these columns, as it is wanted."""
    return " ORDER BY " + ", ".join(f"{column}{'' if wanted.oldest_first else ' DESC'}" for column in order)


def _status(run: Trajectory, *, pending: bool, failed: bool) -> RunStatus:
    if not pending:
        return "learned"
    if run.unfinished:
        return "unfinished"
    return "failed" if failed else "pending"


def noted_again(previous: Trajectory, run: Trajectory, /) -> Trajectory | None:
    """A kept run with what is said of it now; what is not said again stays. `None` where nothing is new.

    An unfinished run waits from now on, as others do.
    """
    if run.submission is None:
        return None
    fields = {"submission": _noted(previous.submission or Submission(), run.submission), "unfinished": False}
    noted = previous.model_copy(update=fields)
    return None if noted == previous else noted


def _noted(before: Submission, later: Submission) -> Submission:
    """What is noted of a run once `later` is said of it."""
    if before.says_outcome and before.identity not in ("", later.identity) and not _may_say_otherwise(later):
        return before
    names = ("recall_id",) if later.verdict else ("verdict", "outcome", "reward", "recall_id")
    unsaid = {name: getattr(before, name) for name in names if getattr(later, name) is None}
    return later.model_copy(update=unsaid)


def _may_say_otherwise(later: Submission) -> bool:
    """Whether this changes the outcome that somebody else told: the process and a person's correction may."""
    if later.verdict is None:
        return False
    return later.verdict.source == "human" or not is_separate_writer(later.identity)
