"""The ports of a store: what is kept, how it is found, who learns from it, and how it stays whole over the years.

A store that a bank is built on has `Records` and `Index`; both together are `Store`. With `Queue`, worker processes
learn from its runs. With `Care`, its owner imports, checks, rebuilds and copies it. What several rooms ask besides is
in `lessonbank.contracts.store_calls`, which is written in terms of these calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from lessonbank.contracts.records import (
    Change,
    Claim,
    Counts,
    Erasure,
    Experience,
    JournalEntry,
    Lesson,
    Match,
    QueueStatus,
    Recall,
    Run,
    Settlement,
    Trajectory,
)
from lessonbank.contracts.records.queue import IN_HAND

from .filters import LessonFilter, RecallFilter, RunFilter
from .vectors import Vectors

if TYPE_CHECKING:
    from pathlib import Path

RECEIPT_SECRET: Final = "receipt_secret"
"""The setting that a bank signs its receipts with. It is never exported or shown."""

ExperienceKey: TypeAlias = Literal["id", "lesson", "run", "wording", "repeats"]
"""What experiences are looked up by."""


@dataclass(frozen=True, slots=True)
class SavedRecall:
    """A recall without its lessons, and how it was settled last."""

    recall: Recall
    settlement: Settlement | None = None
    """`None` without a settlement, or where the filter did not ask for it."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The closest matches of one moment, best first."""

    matches: Sequence[Match] = field(default_factory=list[Match])
    is_complete: bool = True
    """Whether all that may be found had a vector. `Index.unindexed` names what had none."""


@dataclass(frozen=True, slots=True)
class Health:
    """What is wrong with a store, and what it is kept in."""

    problems: Sequence[str] = field(default_factory=list[str])
    """One sentence each; empty when nothing was found."""
    storage: Mapping[str, str] = field(default_factory=dict[str, str])
    """What keeps the bank, and how it is: versions and what its owner should do, in short texts by name."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Some records of another bank for `Care.import_records`. A record comes before the records that name it."""

    runs: Sequence[Trajectory] = ()
    recalls: Sequence[Recall] = ()
    experiences: Sequence[Experience] = ()
    settlements: Sequence[Settlement] = ()
    trusted: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Experience id to the lessons that were active where they come from: id to text."""


class Records(Protocol):
    """Keeps records. They are the truth; vectors, full text and counts can be rebuilt from them.

    Every call names its scope. Nothing of another scope is ever read, written, ranked or counted. A call returns only
    after its data is on disk, where the store has one. All methods may be called from several
    tasks at once and never block the event loop. A name that is no scope raises UsageError.
    """

    async def apply(
        self,
        changes: Sequence[Change],
        /,
        *,
        scope: str,
        writer: str,
        vectors: Mapping[str, Vectors] | None = None,
        space: str | None = None,
        settlement: Settlement | None = None,
        if_unlearned: Collection[str] = (),
        if_unchanged: Sequence[Experience] = (),
        if_unsettled: bool = False,
        unique_wording: bool = False,
        runs: Sequence[Trajectory] = (),
    ) -> Sequence[JournalEntry]:
        """Do all of it or nothing, and append it to the journal.

        An `Edit` takes the vectors of the earlier words away, and what the last review of the evidence found.

        `vectors` maps ids of experiences, or of lessons, to unit vectors of `space`. `settlement` closes a recall in
        the same transaction. A `Rollback` goes alone, and moves experiences only: runs, receipts and settlements stay.
        Vectors of what it takes out are kept for its return. Lessons that a `Trust` put in quarantine, and none took
        out of it since, stay there: a `Trust` after the `Rollback`, in the same transaction, says so. What purges left
        in the place of what they erased (`Replace.heirs`) stays, where the rollback leaves its experience: a `Replace`
        says so, and the `Trust` that the purge gave. A trajectory stays pending while every attempt at it is `unknown`,
        or its experience's metadata has `"pending": true`.

        `if_unlearned` and `if_unchanged` say what the changes were decided upon: ids of trajectories that no experience
        had settled (`settled_runs` did not name them), and experiences as they were; `if_unsettled`, that the recall of
        `settlement` has none yet. Otherwise nothing is written. With `unique_wording`, nothing is written either if a
        lesson that an `Add` or a `Replace` brings, or the words of an `Edit`, have the wording (`guard.wording`) of
        another lesson of the scope, whatever the state of that one.

        `runs` are saved with it, as `save_runs` does, and nothing is written if the scope has one of them.

        No lesson comes in `active`: a `Trust` makes it so, and one `by` a person alone lets it out of quarantine.

        Raises:
            UsageError: a lesson that says of itself that it is active; a `Rollback` beside other changes.
            NotFound: a change names an id this scope does not have, or a `Rollback` an entry that is not there.
            Conflict: an `Add` of an id that exists; a `Restore` of a lesson that is not retired, or the reverse; an
                `Edit` to the words a lesson has; a `Trust` in the state a lesson has, or by anybody but a person for a
                quarantined one; a run of `if_unlearned` that was learned, or an experience of `if_unchanged` that is
                another now or gone, or a recall that has a settlement in spite of `if_unsettled`.
            SpaceMismatch: vectors of another dimension than the space has.
        """
        ...

    def journal(
        self,
        *,
        scope: str,
        since: int = 0,
        kinds: Collection[str] | None = None,
        naming: Collection[str] | None = None,
    ) -> AsyncIterator[JournalEntry]:
        """Entries of the scope with a sequence above `since`, oldest first; with `kinds` (`add`, `settle`, …) only
        these, without reading the others. With `naming`, entries that hold none of these ids may be left out: it is
        quicker than to read them."""
        ...

    async def save_runs(
        self, trajectories: Sequence[Trajectory], /, *, scope: str, wait: float = IN_HAND
    ) -> Sequence[str]:
        """Save runs before anything can go wrong with them. Returns the new ids; known runs are untouched.

        But one that waits takes what is said of it now (`submission`); what is not said again stays. No
        other writer changes how one said that it ended. An unfinished run is not unfinished any more.

        No worker claims them for `wait` seconds, for whoever saves a run mostly learns from it at once. Runs that are
        saved in one call belong together: while the first of them waits, no worker claims the others.
        """
        ...

    async def save_recall(self, recall: Recall, /, *, returned: bool = False) -> bool:
        """Save a recall in its scope, before its text leaves the process; whether the scope has it now.

        A known one stays as it is. `returned`: it was not saved then, and comes back. It is not saved either if the
        scope erased anything since it was made: it may hold what was erased.
        """
        ...

    async def runs(self, wanted: RunFilter, /, *, scope: str) -> Sequence[Run]:
        """Saved runs with their verdict and status, newest first unless the filter says `oldest_first`.

        Raises:
            UsageError: the limit is below 1.
            NotFound: there is no run `after`.
        """
        ...

    async def recalls(self, wanted: RecallFilter, /, *, scope: str) -> Sequence[SavedRecall]:
        """Saved recalls without their lessons, newest first unless the filter says `oldest_first`.

        Raises:
            UsageError: the limit is below 1.
            NotFound: there is no recall `after`.
        """
        ...

    async def lessons(self, wanted: LessonFilter, /, *, scope: str) -> Sequence[Lesson]:
        """Lessons, newest first. To list one state reads no lesson of another.

        Raises:
            UsageError: the limit is below 1, or there is no such state.
            NotFound: there is no lesson `after`.
        """
        ...

    async def experiences(self, by: ExperienceKey, values: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """The experiences that these values lead to, each once, oldest first; values that are unknown are left out.

        - `"id"`: those with these ids, their lessons (retired ones included) in order.
        - `"lesson"`: those that the lessons with these ids belong to.
        - `"run"`: those with an attempt at one of these trajectories.
        - `"wording"`: those with a lesson of one of these wordings (`guard.wording.wording_of`).
        - `"repeats"`: those that taught one of the lessons with these ids again (`records.repeats`).
        """
        ...

    def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """Every experience of the scope, oldest first, as one snapshot."""
        ...

    async def count(
        self,
        *,
        scope: str | None = None,
        names_only: bool = False,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> Mapping[str, Counts]:
        """How much `scope` holds, or every scope that holds anything: by name, sorted.

        To count all of them is for the owner of the store, never for an agent. With `names_only` and without a
        scope no record is counted, so that it takes as long as to read the names: every number is 0. With a
        scope and `since`, only its lessons that were made at that moment or later are counted, up to `limit`.
        """
        ...

    async def settings(self, prefix: str, /, *, exact: bool = False) -> Mapping[str, str]:
        """Every choice kept with the bank, such as its embedder, whose name begins with `prefix`: by name, sorted.

        With `exact`, only the choice of just this name, without a look at the others. Under `RECEIPT_SECRET` lies what
        the bank signs its receipts with: the store draws it at random when the bank is made.
        """
        ...

    async def put_setting(self, key: str, value: str | None, /) -> None:
        """Keep a choice with the bank; `None` removes it."""
        ...

    async def purge(
        self,
        what: Sequence[tuple[Erasure, str]] | datetime,
        /,
        *,
        scope: str,
        writer: str,
        reason: str,
        changes: Sequence[Change] = (),
        if_unchanged: Sequence[Experience] = (),
    ) -> Sequence[JournalEntry]:
        """Erase lessons, trajectories and recalls by kind and id, or the whole scope, or what is older than a moment.

        All of it goes or nothing, with all that was derived from it, past and present. What is derived from a
        trajectory: lessons drawn from it, alone or with others; experiences without an attempt at another trajectory;
        what was merged from these. Of a lesson: what was merged from it. A recall goes with its settlement, and nothing
        else does. Receipts that showed any of it lose their text, and saved runs in which that text stands lose it,
        too. Journal entries lose their content, and the medium its bytes. What remains are the entries returned, a
        `Purge` each; a lesson that goes with one that is named before it needs none. The scope's last change stays the
        last, so moments keep their numbers.

        `("scope", "")` goes alone; the scope may hold nothing. `changes` are made first, in the same transaction: they
        pass on what lives on in other words. `if_unchanged` is what they were decided upon, as for `apply`.

        A moment erases runs saved, and recalls made, before it. Runs go whole, those that wait among them. A recall
        without an outcome goes whole. Of one with an outcome the evidence stays: its times, candidates and
        probabilities; text, notes and metadata go, and in the place of the task is a salted digest that only tells
        which tasks were alike. Lessons, experiences (with their tasks and verdicts) and settlements stay. The one entry
        returned, `Forgotten`, says how much it was; nothing is written or returned where nothing was. `reason` is not
        kept then.

        Raises:
            UsageError: a scope beside others, or `changes` with a scope or a moment.
            NotFound: neither the scope nor its past knows an id.
            Conflict: a change does not fit, or what it was decided upon is not so any more; nothing was written.
            StoreUnavailable: it is erased, but another reader still keeps the old bytes; `rebuild` finishes it.
        """
        ...

    async def close(self) -> None:
        """Release files and threads. Calling it twice is fine; any other call afterwards raises StoreUnavailable."""
        ...


class Index(Protocol):
    """Finds the experiences of one scope that are close to a task, by vectors and by words.

    Vectors belong to a named space: of tasks, or of lessons, as its retriever chose. They are not journaled, for they
    can be computed again.
    """

    async def nearest(
        self,
        vector: Vectors,
        /,
        *,
        scope: str,
        space: str,
        limit: int,
        lessons: bool = False,
    ) -> Nearest:
        """The experiences with at least one active lesson whose task vectors are closest by cosine.

        In a space of `lessons`, the active lessons whose vectors are closest: one match each, which names the lesson.
        Filtered by scope and active lessons before ranking; equal scores newest first. The
        answer also says whether anything has no vector in the space yet, of the same moment. A limit of 0 asks only
        whether the vector fits. Raises SpaceMismatch: it has another dimension than the space.
        """
        ...

    async def search(self, query: str, /, *, scope: str, limit: int) -> Sequence[Match]:
        """Find experiences by words of their tasks: BM25 with statistics of this scope only, scaled so that the query's
        own text scores 1. Experiences without a common word are left out; equal scores newest first."""
        ...

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        """(id, task) of experiences without a vector in `space`, oldest first; with `lessons`, (id, text) of lessons
        that may be shown."""
        ...

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str, replace: bool = False) -> None:
        """Set vectors of existing experiences or lessons, by id.

        `replace`: the space of this scope loses all that it held before, also the dimension of its vectors.

        Raises:
            NotFound: the scope has no experience or lesson of an id; nothing was written.
            SpaceMismatch: vectors of another dimension than the space has; nothing was written.
        """
        ...


class Store(Records, Index, Protocol):
    """What a bank is built on."""


class Queue(Protocol):
    """Hands runs that wait to workers, for a time."""

    async def claim(
        self,
        *,
        worker: str,
        limit: int,
        seconds: float,
        scope: str | None = None,
        exclusive: bool = False,
        include_given_up: bool = False,
    ) -> Sequence[Claim]:
        """Take up to `limit` runs that wait, for `seconds`: nobody else gets them, until these are over.

        Those that may be taken longest come first, of every scope (for a worker, never for an agent) or of `scope`.
        One that is learned meanwhile (`apply` settles it) is nobody's any more. `exclusive`: no run of a scope of which
        another worker holds one, so that one process decides what comes into a scope. `include_given_up`: also runs
        that were given up, and those whose time has not come, but none that another worker holds; the oldest first.
        `worker` names one worker, not a group of them.
        """
        ...

    async def extend(self, ids: Collection[str], /, *, scope: str, worker: str, seconds: float) -> Collection[str]:
        """Keep runs that `worker` took for `seconds` from now; which of them are still its own.

        A run whose time is over stays its own until somebody else takes it. One that was learned is nobody's.
        """
        ...

    async def release(
        self, id: str, /, *, scope: str, worker: str, error: str | None = None, wait: float | None = 0.0
    ) -> bool:
        """Give a run back that `worker` took; whether it was still its own.

        It is not taken again for `wait` seconds; with `None` it is given up, together with those that were saved with
        it: only `claim(include_given_up=True)` takes it again. `error`: why the try failed; without one it does not
        count as a try.
        """
        ...

    async def queue(self, *, scope: str | None = None) -> QueueStatus:
        """How many runs wait in `scope`, or in all of them: for whoever runs workers, never for an agent."""
        ...


class Care(Protocol):
    """Keeps a store whole over the years. Its calls are for the owner, never for an agent."""

    async def import_records(
        self,
        portions: Callable[[], Iterable[Imported]],
        /,
        *,
        scope: str,
        writer: str,
        approved_by: str | None = None,
        unique_wording: bool = False,
    ) -> int:
        """Add records of another bank that this scope does not have, all of them or none; how many were new.

        `portions` gives them from the first on, each time it is called; it may be called in a thread, and twice.
        What is here already stays as it is, and no record of another bank speaks for it: a settlement of a receipt that
        was made here is passed over, and an experience loses the verdicts that it names for runs that were here. Runs,
        receipts and experiences are marked as imported. With `approved_by`, a person's name, the lessons under
        `trusted` become active where they are on probation and say the same. With `unique_wording`, a lesson whose
        wording is here is left out, and its experience names the one that is here as taught again. Other writers wait
        until all of it is written.

        Raises:
            UsageError: a record of another scope; nothing was written.
            Conflict: a lesson belongs to another experience here; nothing was written.
            NotFound: a settlement names a recall that is neither here nor among the records; nothing was written.
        """
        ...

    async def rebuild(self) -> None:
        """Rebuild everything that follows from the records: lessons, the word index, sums, pending marks.

        Vectors that belong to nothing are dropped. Missing ones need an embedder: ask `unindexed`, then call `index`.
        """
        ...

    async def verify(self, *, tables: bool = True, records: bool = True) -> Health:
        """What is wrong with what is stored, and what it is stored in.

        `records=False` reads no record: it looks whether the medium is whole and its tables fit one another, which
        takes seconds where reading takes minutes. What a record says may be wrong all the same. `tables=False` looks
        at neither: it takes a moment, and finds no problem.
        """
        ...

    async def backup(self, path: Path, /) -> None:
        """Copy the whole store as it is now to `path`, while others write: whole, checked and on disk, or not at all.

        Raises:
            UsageError: `path` is the store itself, a folder or no bank; or the store is not in a file.
            StoreUnavailable: the copy cannot be written, or the store is damaged.
        """
        ...
