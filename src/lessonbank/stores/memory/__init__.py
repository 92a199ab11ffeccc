"""A store in dictionaries: the reference every other store is compared with, and the fastest one to start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from anyio import to_thread

from lessonbank.errors import NotFound, StoreUnavailable, UsageError
from lessonbank.evidence.review_snapshot import key as told_key
from lessonbank.protocols import Imported
from lessonbank.stores._changes import check_settlement, check_target, lone_rollback, planned
from lessonbank.stores._erasure import SALT, Erasing, check_erasures, scope_tombstone
from lessonbank.stores._listing import Asked, wanted_states
from lessonbank.stores._matrix import PARTS
from lessonbank.stores._records import checked_scope, dumped, encodable, microseconds
from lessonbank.stores._vectors import check_dimensions, placeable, unit
from lessonbank.text.bm25 import scores, words
from lessonbank.types import (
    Change,
    Counts,
    Edit,
    Erased,
    Erasure,
    Experience,
    Forgotten,
    JournalEntry,
    Json,
    Kind,
    Lesson,
    LessonState,
    Match,
    Outcome,
    Recall,
    Run,
    RunStatus,
    Settle,
    Settlement,
    Trajectory,
)
from lessonbank.types.ids import new_id
from lessonbank.types.runs import is_brief

from . import _listing
from ._importing import Import
from ._scope import Scope, journaled

if TYPE_CHECKING:
    from pathlib import Path

    from lessonbank.protocols import Vectors
    from lessonbank.stores._vectors import Rows


_FEW, _BRIEF = 3, 16_384
"""So few runs of so few characters are cleaned before a thread would have begun."""


class MemoryStore:
    """Keeps everything in this process and nothing on disk. For one event loop; see `Store` for what it promises."""

    def __init__(self) -> None:
        self._scopes: dict[str, Scope] = {}
        self._settings: dict[str, str] = {}
        self._closed = False

    async def keep(self, trajectories: Sequence[Trajectory], /, *, scope: str) -> Sequence[str]:
        """See `Store.keep`."""
        self._read(scope)
        brief = len(trajectories) < _FEW and all(is_brief(run, most=_BRIEF) for run in trajectories)
        clean = _clean(trajectories) if brief else await to_thread.run_sync(_clean, trajectories)
        return [run.id for run in clean if self._write(scope).keep(run)]

    async def learned(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Collection[str]:
        """See `Store.learned`."""
        return self._read(scope).learned(trajectory_ids)

    async def holding(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Experience | None:
        """See `Store.holding`."""
        return self._read(scope).holding([encodable(id) for id in trajectory_ids])

    async def pending(self, *, scope: str, limit: int | None = None, after: str | None = None) -> Sequence[Trajectory]:
        """See `Store.pending`."""
        here = self._read(scope)
        runs = _listing.following(list(here.trajectories.values()), after, kind="run")
        return list(islice(filter(here.is_pending, runs), None if limit is None else max(limit, 0)))

    async def get_run(self, id: str, /, *, scope: str) -> Run:
        """See `Store.get_run`."""
        return _listing.run(self._read(scope), await self.trajectory(id, scope=scope))

    async def list_runs(
        self,
        *,
        scope: str,
        outcome: Outcome | None = None,
        status: RunStatus | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        before: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Run]:
        """See `Store.list_runs`."""
        asked = Asked(scope, text=text, metadata=metadata, before=before, limit=limit, after=after)
        return _listing.runs(self._read(scope), asked, outcome=outcome, status=status)

    async def trajectory(self, id: str, /, *, scope: str) -> Trajectory:
        """See `Store.trajectory`."""
        found = self._read(scope).trajectories.get(encodable(id))
        if found is None:
            raise NotFound(f"no trajectory {id!r} in this scope")
        return found

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
        unlearned: Collection[str] = (),
        unchanged: Sequence[Experience] = (),
    ) -> Sequence[JournalEntry]:
        """See `Store.apply`."""
        here = self._read(scope)
        if not (changes or vectors or settlement):
            return []
        changes = [dumped(change)[0] for change in changes]
        check_settlement(settlement, scope=scope)
        if rollback := lone_rollback(changes, vectors, settlement):
            check_target(rollback, sequence=len(here.journal))
            here.roll_back(rollback.to, scope=scope)
            return journaled(self._write(scope).journal, changes, scope=scope, writer=encodable(writer))
        draft = planned(changes, here, scope=scope, unlearned=unlearned, unchanged=unchanged)
        rows = self._rows(here, vectors or {}, space, known=draft.holds)
        if settlement is not None:
            settlement = dumped(settlement)[0]
            _found_recall(here, settlement.recall_id)
        here = self._write(scope)
        for experience in draft.written.values():
            here.write(experience)
        if any(isinstance(change, Edit) for change in changes):
            self._settings.pop(told_key(scope), None)
        if rows is not None:
            here.place(*rows, encodable(space or ""))
        entries: list[Change | Settle] = list(changes)
        if settlement is not None:
            here.settlements[settlement.recall_id] = settlement
            entries.append(Settle(settlement=settlement))
        return journaled(here.journal, entries, scope=scope, writer=encodable(writer))

    async def import_records(
        self,
        portions: Callable[[], Iterable[Imported]],
        /,
        *,
        scope: str,
        writer: str,
        approved_by: str | None = None,
    ) -> int:
        """See `Store.import_records`."""
        self._read(scope)
        clean = await to_thread.run_sync(lambda: [_clean_portion(portion) for portion in portions()])
        here = self._read(scope)
        plan = Import(here, scope=scope, writer=encodable(writer), approved_by=approved_by)
        for portion in clean:
            plan.add(portion)
        if plan.count or plan.entries:
            self._scopes[scope] = here
            plan.write()
        return plan.count

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """See `Store.get`."""
        found = self._read(scope).experiences.get(encodable(id))
        if found is None:
            raise NotFound(f"no experience {id!r} in this scope")
        return found

    async def owner(self, lesson_id: str, /, *, scope: str) -> Experience:
        """See `Store.owner`."""
        here = self._read(scope)
        id = here.owner(encodable(lesson_id))
        if id is None:
            raise NotFound(f"no lesson {lesson_id!r} in this scope")
        return here.experiences[id]

    async def list_lessons(
        self,
        *,
        scope: str,
        state: LessonState | None = None,
        kind: Kind | None = None,
        writer: str | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        retired: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Lesson]:
        """See `Store.list_lessons`."""
        asked = Asked(scope, text=text, metadata=metadata, limit=limit, after=after)
        states = wanted_states(state, retired=retired)
        return _listing.lessons(self._read(scope), asked, states=states, kind=kind, writer=writer)

    async def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """See `Store.scan`."""
        for experience in self._read(scope).oldest_first():
            yield experience

    async def nearest(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, exclude: Collection[str] = ()
    ) -> Sequence[Match]:
        """See `Store.nearest`."""
        here = self._read(scope)
        query = unit(vector, what="the query")
        matrix = here.spaces.get(encodable(space))
        if matrix is None:
            return []
        check_dimensions(query, space=space, dimensions=matrix.dimensions)
        return here.nearest(query, encodable(space), limit=limit, exclude=[encodable(id) for id in exclude])

    async def search(self, query: str, /, *, scope: str, limit: int, exclude: Collection[str] = ()) -> Sequence[Match]:
        """See `Store.search`."""
        here = self._read(scope)
        asked = words(query)
        postings = {word: here.postings.get(word, {}) for word in asked}
        lengths = {id: here.lengths[id] for holders in postings.values() for id in holders}
        found = scores(asked, postings, lengths, documents=len(here.lengths), total=here.total)
        left_out = set(map(encodable, exclude))
        ranked = sorted(
            (id for id in found if id not in left_out and here.experiences[id].active_lessons),
            key=lambda id: (found[id], *here.age(here.experiences[id])),
            reverse=True,
        )
        return [Match(experience=here.experiences[id], score=found[id]) for id in ranked[: max(limit, 0)]]

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        """See `Store.unindexed`."""
        here = self._read(scope)
        there = here.vectors.get(encodable(space), {})
        if lessons:
            placed = (lesson for e in here.oldest_first() for lesson in e.lessons[: PARTS - 1])
            every = ((lesson.id, lesson.text) for lesson in placed if not lesson.hidden)
        else:
            every = ((e.id, e.task) for e in here.oldest_first())
        return [(id, text) for id, text in every if id not in there][: max(limit, 0)]

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str) -> None:
        """See `Store.index`."""
        here = self._read(scope)
        rows = self._rows(here, vectors, space, known=here.holds)
        if rows is not None:
            here.place(*rows, encodable(space))

    async def drop_index(self, *, scope: str, space: str) -> None:
        """See `Store.drop_index`."""
        here = self._read(scope)
        here.spaces.pop(encodable(space), None)
        here.vectors.pop(encodable(space), None)

    async def record(self, recall: Recall, /, *, returned: bool = False) -> bool:
        """See `Store.record`. Every receipt is kept at once, so that none that comes back was not."""
        self._read(recall.scope)
        if returned:
            return False
        clean, _ = dumped(recall.model_copy(update={"lessons": ()}))
        self._write(recall.scope).recalls.setdefault(clean.id, clean)
        return True

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """See `Store.recall`."""
        return _found_recall(self._read(scope), encodable(id))

    async def list_recalls(
        self,
        *,
        scope: str,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        lesson: str | None = None,
        settled: bool | None = None,
        before: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Recall]:
        """See `Store.list_recalls`."""
        asked = Asked(scope, text=text, metadata=metadata, before=before, limit=limit, after=after)
        return _listing.recalls(self._read(scope), asked, lesson=lesson, settled=settled)

    async def receipts(self, *, scope: str, settled: bool | None = None) -> AsyncIterator[Recall]:
        """See `Store.receipts`."""
        here = self._read(scope)
        for recall in sorted(here.recalls.values(), key=lambda recall: microseconds(recall.created_at)):
            if settled is None or settled == (recall.id in here.settlements):
                yield recall

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """See `Store.settlement`."""
        return self._read(scope).settlements.get(encodable(recall_id))

    async def journal(
        self, *, scope: str, since: int = 0, kinds: Collection[str] | None = None
    ) -> AsyncIterator[JournalEntry]:
        """See `Store.journal`."""
        for entry in self._read(scope).journal[max(since, 0) :]:
            if kinds is None or entry.entry.kind in kinds:
                yield entry

    async def counts(self, *, scope: str) -> Counts:
        """See `Store.counts`."""
        return self._read(scope).counts()

    async def scopes(self) -> Sequence[str]:
        """See `Store.scopes`."""
        self._check_open()
        return sorted(self._scopes)

    async def setting(self, key: str, /) -> str | None:
        """See `Store.setting`."""
        self._check_open()
        return self._settings.get(encodable(key))

    async def set_setting(self, key: str, value: str, /) -> None:
        """See `Store.set_setting`."""
        self._check_open()
        self._settings[encodable(key)] = encodable(value)

    async def purge(self, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
        """See `Store.purge`. What was in memory is overwritten when Python gets to it."""
        here = self._read(scope)
        if what == "scope":
            by = len(here.journal) + 1
            tombstone = scope_tombstone(scope, reason, here.counts(), entries=len(here.journal))
            erased = [entry.model_copy(update={"entry": Erased(by=by)}) for entry in here.journal]
            here = self._scopes[scope] = Scope(journal=erased)
        else:
            tombstone = here.erase(Erasing(what, encodable(id)), encodable(reason))
        self._settings.pop(told_key(scope), None)
        return journaled(here.journal, [tombstone], scope=scope, writer=encodable(writer))[0]

    async def purge_many(
        self, these: Sequence[tuple[Erasure, str]], /, *, scope: str, writer: str, reason: str
    ) -> Sequence[JournalEntry]:
        """See `Store.purge_many`."""
        here, known = self._read(scope), check_erasures(these)
        for what, id in known:
            here.check_known(Erasing(what, encodable(id)))
        return [await self.purge(what, id, scope=scope, writer=writer, reason=reason) for what, id in known]

    async def forget(self, *, scope: str, before: datetime, writer: str) -> Forgotten:
        """See `Store.forget`."""
        here = self._read(scope)
        told = here.forget(before, salt=self._settings.setdefault(SALT, new_id()))
        if told.runs or told.recalls:
            journaled(here.journal, [told], scope=scope, writer=encodable(writer))
        return told

    async def rebuild(self) -> None:
        """See `Store.rebuild`."""
        self._check_open()
        for here in self._scopes.values():
            here.rebuild()

    async def verify(self) -> Sequence[str]:
        """See `Store.verify`. What lies in memory cannot be damaged from outside."""
        self._check_open()
        return []

    async def backup(self, path: Path, /) -> None:
        """See `Store.backup`. There is no file to copy."""
        self._check_open()
        raise UsageError("this bank is in memory, so there is no file to copy: export its scopes instead")

    async def close(self) -> None:
        """See `Store.close`. What it held is gone."""
        self._closed = True
        self._scopes = {}

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("this store is closed: open it again")

    def _read(self, scope: str) -> Scope:
        self._check_open()
        return self._scopes.get(checked_scope(scope)) or Scope()

    def _write(self, scope: str) -> Scope:
        self._check_open()
        return self._scopes.setdefault(scope, Scope())

    def _rows(
        self, here: Scope, vectors: Mapping[str, Vectors], space: str | None, *, known: Callable[[str], bool]
    ) -> tuple[list[str], Rows] | None:
        if not vectors:
            return None
        matrix = here.spaces.get(encodable(space or ""))
        return placeable(vectors, space=space, dimensions=matrix.dimensions if matrix else None, known=known)


def _clean(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    return [dumped(trajectory)[0] for trajectory in trajectories]


def _clean_portion(portion: Imported) -> Imported:
    return Imported(
        runs=_clean(portion.runs),
        recalls=[dumped(recall.model_copy(update={"lessons": ()}))[0] for recall in portion.recalls],
        experiences=[dumped(experience)[0] for experience in portion.experiences],
        settlements=[dumped(settlement)[0] for settlement in portion.settlements],
        trusted=portion.trusted,
    )


def _found_recall(here: Scope, id: str) -> Recall:
    found = here.recalls.get(id)
    if found is None:
        raise NotFound(f"no recall {id!r} in this scope")
    return found
