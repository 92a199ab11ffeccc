"""A store in dictionaries: the reference every other store is compared with, and the fastest one to start."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import to_thread

from lessonbank._ids import now
from lessonbank.errors import NotFound, StoreUnavailable
from lessonbank.types import Change, Counts, Experience, JournalEntry, Match, Recall, Settle, Settlement, Trajectory

from ._changes import check_settlement, open_attempts, planned
from ._lexical import scores, words
from ._records import checked_scope, dumped, encodable, microseconds
from ._vectors import Matrix, check_dimensions, placeable, unit

if TYPE_CHECKING:
    from lessonbank.protocols import Vectors


@dataclass(slots=True)
class _Scope:
    """Everything one scope holds. Dictionaries keep the order of arrival."""

    experiences: dict[str, Experience] = field(default_factory=dict[str, Experience])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    ids: dict[int, str] = field(default_factory=dict[int, str])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    postings: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    total: int = 0
    attempts: dict[str, dict[str, bool]] = field(default_factory=dict[str, dict[str, bool]])
    trajectories: dict[str, Trajectory] = field(default_factory=dict[str, Trajectory])
    spaces: dict[str, Matrix] = field(default_factory=dict[str, Matrix])
    vectors: dict[str, dict[str, Vectors]] = field(default_factory=dict[str, dict[str, "Vectors"]])
    recalls: dict[str, Recall] = field(default_factory=dict[str, Recall])
    settlements: dict[str, Settlement] = field(default_factory=dict[str, Settlement])
    journal: list[JournalEntry] = field(default_factory=list[JournalEntry])

    def knows(self, id: str, /) -> bool:
        return id in self.experiences

    def experience(self, id: str, /) -> Experience | None:
        return self.experiences.get(id)

    def owner(self, item_id: str, /) -> str | None:
        return self.owners.get(item_id)

    def waits(self, trajectory_id: str) -> bool:
        """Whether no experience has settled this trajectory."""
        return all(self.attempts.get(trajectory_id, {}).values())

    def oldest_first(self) -> list[Experience]:
        return sorted(self.experiences.values(), key=self.age)

    def age(self, experience: Experience) -> tuple[int, int]:
        return microseconds(experience.created_at), self.numbers[experience.id]

    def write(self, experience: Experience) -> None:
        earlier = self.experiences.get(experience.id)
        if earlier is not None:
            self._forget(earlier, keep_vectors=earlier.task == experience.task)
        self._number(experience.id)
        self.experiences[experience.id] = experience
        for item in experience.items:
            self.owners[item.id] = experience.id
        held = Counter(words(experience.task))
        for word, count in held.items():
            self.postings.setdefault(word, {})[experience.id] = count
        self.lengths[experience.id] = held.total()
        self.total += held.total()
        for trajectory_id, waiting in open_attempts(experience).items():
            self.attempts.setdefault(trajectory_id, {})[experience.id] = waiting
        for space in self.vectors:
            self._show(experience, space)

    def place(self, vectors: Mapping[str, Vectors], space: str) -> None:
        for id, row in vectors.items():
            self.spaces.setdefault(space, Matrix(row.size))
            self.vectors.setdefault(space, {})[id] = row
            self._show(self.experiences[id], space)

    def _number(self, id: str) -> None:
        number = self.numbers.setdefault(id, len(self.numbers))
        self.ids[number] = id

    def _forget(self, earlier: Experience, *, keep_vectors: bool) -> None:
        for item in earlier.items:
            if self.owners.get(item.id) == earlier.id:
                del self.owners[item.id]
        for word in set(words(earlier.task)):
            del self.postings[word][earlier.id]
        self.total -= self.lengths.pop(earlier.id)
        for attempt in earlier.attempts:
            self.attempts.get(attempt.trajectory_id, {}).pop(earlier.id, None)
        if keep_vectors:
            return
        for space, rows in self.vectors.items():
            rows.pop(earlier.id, None)
            self.spaces[space].drop(self.numbers[earlier.id])

    def _show(self, experience: Experience, space: str) -> None:
        row = self.vectors[space].get(experience.id)
        if row is not None:
            created, number = self.age(experience)
            self.spaces[space].put(number, row, created=created, active=bool(experience.active_items))

    def match(self, number: int, score: float) -> Match:
        return Match(experience=self.experiences[self.ids[number]], score=score)


class MemoryStore:
    """Keeps everything in this process and nothing on disk. For one event loop; see `Store` for what it promises."""

    def __init__(self) -> None:
        self._scopes: dict[str, _Scope] = {}
        self._settings: dict[str, str] = {}
        self._closed = False

    async def keep(self, trajectories: Sequence[Trajectory], /, *, scope: str) -> Sequence[str]:
        """See `Store.keep`."""
        self._read(scope)
        clean = await to_thread.run_sync(_clean, trajectories)
        kept = self._write(scope).trajectories if clean else {}
        new: list[str] = []
        for trajectory in clean:
            if trajectory.id not in kept:
                kept[trajectory.id] = trajectory
                new.append(trajectory.id)
        return new

    async def learned(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Collection[str]:
        """See `Store.learned`."""
        here = self._read(scope)
        return {id for id in trajectory_ids if not here.waits(encodable(id))}

    async def holding(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Experience | None:
        """See `Store.holding`."""
        here = self._read(scope)
        ids = {id for known in map(encodable, trajectory_ids) for id in here.attempts.get(known, {})}
        return max((here.experiences[id] for id in ids), key=here.age, default=None)

    async def pending(self, *, scope: str, limit: int | None = None) -> Sequence[Trajectory]:
        """See `Store.pending`."""
        here = self._read(scope)
        return [t for t in here.trajectories.values() if here.waits(t.id)][:limit]

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
    ) -> Sequence[JournalEntry]:
        """See `Store.apply`."""
        here = self._read(scope)
        changes = [dumped(change)[0] for change in changes]
        check_settlement(settlement, scope=scope)
        draft = planned(changes, here, scope=scope)
        rows = self._rows(here, vectors or {}, space, known=draft.knows)
        if settlement is not None:
            settlement = dumped(settlement)[0]
            _found_recall(here, settlement.recall_id)
        if not (changes or settlement or rows):
            return []
        here = self._write(scope)
        for experience in draft.written.values():
            here.write(experience)
        here.place(rows, encodable(space or ""))
        entries: list[Change | Settle] = list(changes)
        if settlement is not None:
            here.settlements[settlement.recall_id] = settlement
            entries.append(Settle(settlement=settlement))
        return _journaled(here.journal, entries, scope=scope, writer=encodable(writer))

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """See `Store.get`."""
        found = self._read(scope).experiences.get(encodable(id))
        if found is None:
            raise NotFound(f"no experience {id!r} in this scope")
        return found

    async def owner(self, item_id: str, /, *, scope: str) -> Experience:
        """See `Store.owner`."""
        here = self._read(scope)
        id = here.owner(encodable(item_id))
        if id is None:
            raise NotFound(f"no item {item_id!r} in this scope")
        return here.experiences[id]

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
        numbers = [here.numbers[id] for id in map(encodable, exclude) if id in here.numbers]
        found = matrix.sight().nearest(query, limit=limit, exclude=numbers)
        return [here.match(number, score) for number, score in found]

    async def search(self, query: str, /, *, scope: str, limit: int, exclude: Collection[str] = ()) -> Sequence[Match]:
        """See `Store.search`."""
        here = self._read(scope)
        asked = words(query)
        postings = {word: here.postings.get(word, {}) for word in asked}
        lengths = {id: here.lengths[id] for holders in postings.values() for id in holders}
        found = scores(asked, postings, lengths, documents=len(here.lengths), total=here.total)
        left_out = set(map(encodable, exclude))
        ranked = sorted(
            (id for id in found if id not in left_out and here.experiences[id].active_items),
            key=lambda id: (found[id], *here.age(here.experiences[id])),
            reverse=True,
        )
        return [Match(experience=here.experiences[id], score=found[id]) for id in ranked[: max(limit, 0)]]

    async def unindexed(self, *, scope: str, space: str, limit: int) -> Sequence[tuple[str, str]]:
        """See `Store.unindexed`."""
        here = self._read(scope)
        there = here.vectors.get(encodable(space), {})
        return [(e.id, e.task) for e in here.oldest_first() if e.id not in there][: max(limit, 0)]

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str) -> None:
        """See `Store.index`."""
        here = self._read(scope)
        rows = self._rows(here, vectors, space, known=here.knows)
        here.place(rows, encodable(space))

    async def drop_index(self, *, scope: str, space: str) -> None:
        """See `Store.drop_index`."""
        here = self._read(scope)
        here.spaces.pop(encodable(space), None)
        here.vectors.pop(encodable(space), None)

    async def record(self, recall: Recall, /) -> None:
        """See `Store.record`."""
        self._read(recall.scope)
        clean, _ = dumped(recall.model_copy(update={"items": ()}))
        self._write(recall.scope).recalls.setdefault(clean.id, clean)

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """See `Store.recall`."""
        return _found_recall(self._read(scope), encodable(id))

    async def receipts(self, *, scope: str) -> AsyncIterator[Recall]:
        """See `Store.receipts`."""
        kept = self._read(scope).recalls.values()
        for recall in sorted(kept, key=lambda recall: microseconds(recall.created_at)):
            yield recall

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """See `Store.settlement`."""
        return self._read(scope).settlements.get(encodable(recall_id))

    async def journal(self, *, scope: str, since: int = 0) -> AsyncIterator[JournalEntry]:
        """See `Store.journal`."""
        for entry in self._read(scope).journal[max(since, 0) :]:
            yield entry

    async def counts(self, *, scope: str) -> Counts:
        """See `Store.counts`."""
        here = self._read(scope)
        items = [item for experience in here.experiences.values() for item in experience.items]
        return Counts(
            experiences=len(here.experiences),
            items=len(items),
            retired=sum(item.retired for item in items),
            trajectories=len(here.trajectories),
            pending=sum(map(here.waits, here.trajectories)),
            recalls=len(here.recalls),
            settled=len(here.settlements),
        )

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

    async def verify(self) -> Sequence[str]:
        """See `Store.verify`. What lies in memory cannot be damaged from outside."""
        self._check_open()
        return []

    async def close(self) -> None:
        """See `Store.close`. What it held is gone."""
        self._closed = True
        self._scopes = {}

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("this store is closed: open it again")

    def _read(self, scope: str) -> _Scope:
        self._check_open()
        return self._scopes.get(checked_scope(scope)) or _Scope()

    def _write(self, scope: str) -> _Scope:
        self._check_open()
        return self._scopes.setdefault(scope, _Scope())

    def _rows(
        self, here: _Scope, vectors: Mapping[str, Vectors], space: str | None, *, known: Callable[[str], bool]
    ) -> dict[str, Vectors]:
        matrix = here.spaces.get(encodable(space or ""))
        return placeable(vectors, space=space, dimensions=matrix.dimensions if matrix else None, known=known)


def _clean(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    return [dumped(trajectory)[0] for trajectory in trajectories]


def _found_recall(here: _Scope, id: str) -> Recall:
    found = here.recalls.get(id)
    if found is None:
        raise NotFound(f"no recall {id!r} in this scope")
    return found


def _journaled(
    journal: list[JournalEntry], entries: Sequence[Change | Settle], *, scope: str, writer: str
) -> list[JournalEntry]:
    at = now()
    first = len(journal) + 1
    new = [
        JournalEntry(sequence=sequence, at=at, scope=scope, writer=writer, entry=entry)
        for sequence, entry in enumerate(entries, first)
    ]
    journal.extend(new)
    return new
