"""What an import makes of another bank's records: the order of things, and what is left out; a store does the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from lessonbank.contracts.records import Add, Experience, Recall, Replace, Settle, Settlement, Trajectory
from lessonbank.errors import UsageError
from lessonbank.guard.wording import said_once, wording_of

from ._changes import View, vouched
from ._texts import TextWithSum, records_with_sums

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Imported
    from lessonbank.contracts.records.timeline import Entry

T = TypeVar("T")
Table: TypeAlias = Literal["trajectories", "attempts", "recalls", "lessons"]


@dataclass(frozen=True)
class Receiver:
    """One scope in one transaction, as far as an import reads and writes it."""

    has: Callable[[Table, str], bool]
    """Whether the table had this id before the import began: a run's, a receipt's or a lesson's."""
    recall: Callable[[str], Recall]
    keep: Callable[[Sequence[Trajectory]], int]
    """Keep runs; how many were new."""
    record: Callable[[Recall], bool]
    """Keep a receipt; whether it was new."""
    is_settled: Callable[[str], bool]
    """Whether the outcome of a recall is known."""
    present: Callable[[Sequence[Experience]], View]
    """The scope as it is now; with experiences that are looked for next."""
    repeating: Callable[[Sequence[str]], Sequence[Experience]]
    """The experiences that taught one of these lessons again, oldest first."""
    apply: Callable[[Sequence[tuple[Entry, TextWithSum]], str], object]
    """Make changes, or settle recalls, as a writer."""

    def made_recall(self, id: str, /) -> bool:
        """Whether this receipt was made here, and not imported earlier."""
        return self.has("recalls", id) and not self.recall(id).imported


def import_records(
    here: Receiver,
    portions: Callable[[], Iterable[Imported]],
    scope: str,
    writer: str,
    approved_by: str | None,
    unique_wording: bool,
    /,
) -> int:
    """Add what is new; how much that was. Raises Conflict, NotFound."""
    added = 0
    once = _Once(here) if unique_wording else None
    ready = (_ready(marked(portion, scope=scope)) for portion in portions())
    for portion, adds in _ahead(ready):
        added += here.keep(portion.runs)
        added += sum(here.record(recall) for recall in portion.recalls)
        added += _add(here, adds, once, writer)
        added += _settle(here, portion.settlements, writer)
        if approved_by:
            _trust(here, portion, approved_by)
    if once:
        _apply(here, records_with_sums(once.renamed()), writer)
    return added


def marked(portion: Imported, /, *, scope: str) -> Imported:
    """`portion` with every record marked as imported, whatever the records say of themselves.

    A run loses what was said when it was submitted: an outcome, a receipt and other runs. That would be truth here.
    Lessons and settlements lose the identity of who told them: this bank does not know it.

    Raises:
        UsageError: a record of another scope.
    """
    for records in (portion.recalls, portion.experiences, portion.settlements):
        check_scopes(records, scope=scope)
    return replace(
        portion,
        runs=[run.model_copy(update={"submission": None, "recall_id": None, "imported": True}) for run in portion.runs],
        recalls=[recall.model_copy(update={"lessons": (), "imported": True}) for recall in portion.recalls],
        experiences=[_marked_experience(experience) for experience in portion.experiences],
        settlements=[settlement.model_copy(update={"identity": ""}) for settlement in portion.settlements],
    )


def check_scopes(records: Sequence[Experience | Recall | Settlement], /, *, scope: str) -> None:
    """Refuse records of another scope. Raises UsageError."""
    for record in records:
        if record.scope != scope:
            raise UsageError(
                f"this {type(record).__name__} belongs to the scope {record.scope[:80]!r} and not to {scope!r}"
            )


def _marked_experience(experience: Experience) -> Experience:
    sources = [lesson.provenance.model_copy(update={"identity": ""}) for lesson in experience.lessons]
    lessons = (i.model_copy(update={"provenance": p}) for i, p in zip(experience.lessons, sources, strict=True))
    return experience.model_copy(update={"lessons": tuple(lessons), "imported": True})


def _ready(portion: Imported) -> tuple[Imported, Sequence[tuple[Add, TextWithSum]]]:
    """Experiences as JSON ahead: to make it takes as long as to write it."""
    first = {experience.id: experience for experience in reversed(portion.experiences)}
    return portion, records_with_sums([Add(experience=e) for e in portion.experiences if first[e.id] is e])


class _Once:
    """Brings a lesson in whose wording is here already as one that was taught again."""

    def __init__(self, here: Receiver, /) -> None:
        self._here = here
        self._kept: dict[str, str] = {}
        """Id of a lesson that was left out to the id of the one that says the same here."""

    def of(self, experiences: Sequence[Experience], /) -> Sequence[Experience]:
        """`experiences` without copies of what is here, or of one another."""
        wordings = {wording_of(lesson) for experience in experiences for lesson in experience.lessons}
        held = dict(sorted(self._here.present([]).find_wordings(wordings), reverse=True))
        return [self._import_experience(experience, held) for experience in experiences]

    def _import_experience(self, experience: Experience, held: dict[str, str]) -> Experience:
        once = said_once(experience, held)
        if once is not experience:
            self._kept |= {i.id: id for i in experience.lessons if (id := held[wording_of(i)]) != i.id}
        return once

    def renamed(self) -> Sequence[Replace]:
        """What was written of experiences that taught a left out lesson again, naming the one that is here."""
        return [self._renamed(experience) for experience in self._here.repeating(list(self._kept))]

    def _renamed(self, experience: Experience) -> Replace:
        again = {self._kept.get(id, id): duplicates for id, duplicates in experience.repeats.items()}
        renamed = experience.model_copy(update={"repeats": again})
        return Replace(experience=renamed, reason="a lesson that it names is here already")


def _add(here: Receiver, adds: Sequence[tuple[Add, TextWithSum]], once: _Once | None, writer: str) -> int:
    there = here.present([add.experience for add, _ in adds])
    new = [entry for entry in adds if not there.knows(entry[0].experience.id)]
    allowed = [_without_claims(add.experience, here) for add, _ in new]
    experiences = once.of(allowed) if once else allowed
    return _apply(here, [_ready_as(e, entry) for e, entry in zip(experiences, new, strict=True)], writer)


def _without_claims(experience: Experience, here: Receiver) -> Experience:
    """`experience` without what it says of runs, receipts and lessons that were here before it came."""
    attempts = tuple(ref for ref in experience.attempts if not _had_run(here, ref.trajectory_id))
    recall_id = None if experience.recall_id and here.made_recall(experience.recall_id) else experience.recall_id
    sources = {id for ids in experience.merged.values() for id in ids}
    merged = {} if any(here.has("lessons", id) for id in sources) else experience.merged
    fields = {"attempts": attempts, "recall_id": recall_id, "merged": merged}
    changed = any(getattr(experience, name) != value for name, value in fields.items())
    return experience.model_copy(update=fields) if changed else experience


def _had_run(here: Receiver, id: str) -> bool:
    """Whether the scope kept this run before, or an experience that names it."""
    return here.has("trajectories", id) or here.has("attempts", id)


def _ready_as(experience: Experience, entry: tuple[Add, TextWithSum]) -> tuple[Add, TextWithSum]:
    return entry if experience is entry[0].experience else records_with_sums([Add(experience=experience)])[0]


def _settle(here: Receiver, settlements: Sequence[Settlement], writer: str) -> int:
    """The first settlement of a receipt counts, and one of a receipt that was made here is no business of a file."""
    first = {settlement.recall_id: settlement for settlement in reversed(settlements)}
    candidates = [settlement for id, settlement in reversed(first.items()) if not here.made_recall(id)]
    new = [Settle(settlement=settlement) for settlement in candidates if not here.is_settled(settlement.recall_id)]
    return _apply(here, records_with_sums(new), writer)


def _trust(here: Receiver, portion: Imported, by: str) -> None:
    there = here.present([])
    some = ((id, lessons) for id, lessons in portion.trusted.items() if lessons)
    pairs = ((experience, lessons) for id, lessons in some if (experience := there.experience(id)))
    _apply(here, records_with_sums([t for e, lessons in pairs if (t := vouched(e, lessons, by=by))]), by)


def _apply(here: Receiver, entries: Sequence[tuple[Entry, TextWithSum]], writer: str) -> int:
    if entries:
        here.apply(entries, writer)
    return len(entries)


def _ahead(things: Iterable[T], /) -> Iterator[T]:
    """`things`, the next one made while this one is used: reading a file and writing tables take turns otherwise."""
    rest = iter(things)
    with ThreadPoolExecutor(1, thread_name_prefix="lessonbank-import") as pool:
        coming = pool.submit(next, rest, None)
        while (thing := _result(coming)) is not None:
            coming = pool.submit(next, rest, None)
            yield thing


def _result(coming: Future[T], /) -> T:
    """What comes next. Raises UsageError: a part of the caller's own, such as a redactor, raised an error."""
    try:
        return coming.result()
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        what = f"the records to import cannot be had ({type(error).__name__}: {error!s:.100})"
        raise UsageError(f"{what}: mend what gives them; nothing was written") from error
