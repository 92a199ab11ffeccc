"""A store in memory that folds everything from its journal: slow, without a database, and with no more than `Store`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from lessonbank.contracts.ports import (
    RECEIPT_SECRET,
    ExperienceKey,
    LessonFilter,
    Nearest,
    RecallFilter,
    RunFilter,
    SavedRecall,
    Vectors,
)
from lessonbank.contracts.records import (
    Change,
    Counts,
    Edit,
    Erased,
    Erasure,
    Experience,
    Forgotten,
    JournalEntry,
    Lesson,
    Match,
    Recall,
    Rollback,
    Run,
    Settle,
    Settlement,
    Trajectory,
)
from lessonbank.contracts.records.ids import new_id, now
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.records.repeats import shown_with
from lessonbank.contracts.records.settings import keys_of
from lessonbank.contracts.records.timeline import Entry, live, rollbacks_of, state_at
from lessonbank.contracts.store_calls import settled_in
from lessonbank.errors import Conflict, NotFound, StoreUnavailable, UsageError
from lessonbank.guard import check_scope
from lessonbank.guard.wording import wording_of
from lessonbank.stores._changes import (
    SETTLED,
    check_settlement,
    check_target,
    handed_on,
    held_again,
    held_back,
    lone_rollback,
    planned,
)
from lessonbank.stores._entries import Batch, entry_of, erased_since, may_name
from lessonbank.stores._erasure import (
    OUTLIVE,
    SALT,
    checked_erasures,
    forgotten,
    is_forgotten,
    not_gone,
    scope_tombstone,
    unknown,
    without_reason,
)
from lessonbank.stores._listing import (
    check_limit,
    first_fitting,
    no_such,
    noted_again,
    run_texts,
    runs_of,
    state_of,
    tags_of,
    tags_wanted,
    wanted_states,
)
from lessonbank.stores._mentions import runs_without, scrub_entries, scrub_recalls, take_in_all, texts_lost
from lessonbank.stores._records import dumped, encodable, microseconds
from lessonbank.stores._vectors import check_dimensions, unit
from lessonbank.testing.store_samples import ranked_by_words


@dataclass(slots=True)
class _Scope:
    """What one scope holds; the `View` that changes are planned on."""

    name: str
    entries: list[JournalEntry] = field(default_factory=list[JournalEntry])
    runs: dict[str, tuple[datetime, Trajectory]] = field(default_factory=dict[str, tuple[datetime, Trajectory]])
    recalls: dict[str, Recall] = field(default_factory=dict[str, Recall])
    spaces: dict[str, dict[str, tuple[str, Vectors]]] = field(default_factory=dict[str, dict[str, tuple[str, Vectors]]])
    """By space and id: the text that a vector is of, and the vector. Another text makes it invalid."""
    _now: tuple[Experience, ...] | None = None

    @property
    def present(self) -> tuple[Experience, ...]:
        """The experiences, oldest first."""
        if self._now is None:
            self._now = state_at(self.entries, len(self.entries), scope=self.name).experiences
        return self._now

    def copied(self) -> _Scope:
        """What a failure goes back to."""
        spaces = {name: dict(held) for name, held in self.spaces.items()}
        return _Scope(self.name, [*self.entries], dict(self.runs), dict(self.recalls), spaces)

    def add(self, entry: Entry, writer: str) -> JournalEntry:
        """Append to the journal."""
        told = JournalEntry(
            sequence=len(self.entries) + 1, at=now(), scope=self.name, writer=encodable(writer), entry=dumped(entry)[0]
        )
        self.entries.append(told)
        self._now = None
        return told

    def of_kinds(self, *kinds: str) -> dict[int, Entry]:
        """The journal entries of these kinds by sequence."""
        return {e.sequence: e.entry for e in self.entries if e.entry.kind in kinds}

    def rewrite(self, sequence: int, entry: Entry) -> None:
        """Put less in the place of an entry."""
        self.entries[sequence - 1] = self.entries[sequence - 1].model_copy(update={"entry": entry})
        self._now = None

    def knows(self, id: str, /) -> bool:
        return self.experience(id) is not None

    def experience(self, id: str, /) -> Experience | None:
        return next((e for e in self.present if e.id == encodable(id)), None)

    def find_holder(self, lesson_id: str, /) -> str | None:
        return next((e.id for e in self.present for i in e.lessons if i.id == encodable(lesson_id)), None)

    def settled_runs(self, trajectory_ids: Collection[str], /) -> Collection[str]:
        return settled_in(self.present, trajectory_ids)

    def find_wordings(self, wordings: Collection[str], /) -> Collection[tuple[str, str]]:
        held = ((wording_of(i), i.id) for e in self.present for i in e.lessons)
        return [one for one in held if one[0] in wordings]

    def settlement(self, recall_id: str) -> Settlement | None:
        """The latest one."""
        told = (e.entry.settlement for e in reversed(self.entries) if isinstance(e.entry, Settle))
        return next((one for one in told if one.recall_id == recall_id), None)

    def run(self, trajectory: Trajectory, wanted: RunFilter | None = None) -> Run:
        """A run as it is listed."""
        asked = wanted is None or wanted.verdicts
        held = [e for e in self.present if asked and any(a.trajectory_id == trajectory.id for a in e.attempts)]
        return runs_of([((not self.settled_runs([trajectory.id]), False, 0, None), trajectory)], held)[0]

    def texts(self) -> dict[str, str]:
        """What a vector may be of, by id."""
        tasks = {e.id: e.task for e in self.present}
        return tasks | {i.id: i.text for e in self.present for i in e.lessons}

    def place(self, vectors: Mapping[str, Vectors], space: str) -> None:
        """Set vectors. Raises NotFound, SpaceMismatch."""
        if not space:
            raise UsageError("these vectors come without the name of their space: pass space=")
        texts, held = self.texts(), dict(self.spaces.get(space, {}))
        for id, vector in vectors.items():
            row = unit(vector, what=f"the experience {id!r}")
            check_dimensions(row, space=space, dimensions=_dimensions(held))
            if encodable(id) not in texts:
                raise NotFound(f"no experience or lesson {id!r} in this scope to keep a vector of")
            held[encodable(id)] = texts[encodable(id)], row
        self.spaces[space] = held

    def rows(self, space: str) -> dict[str, Vectors]:
        """The vectors that are of today's texts, by id."""
        texts = self.texts()
        return {id: row for id, (text, row) in self.spaces.get(space, {}).items() if texts.get(id) == text}

    def counts(self) -> Counts:
        state = state_at(self.entries, len(self.entries), scope=self.name)
        waiting = [run for _, run in self.runs.values() if self.run(run).status == "pending"]
        settled = sum(self.settlement(id) is not None for id in self.recalls)
        more = {"trajectories": len(self.runs), "pending": len(waiting), "recalls": len(self.recalls)}
        return state.counts().model_copy(update={**more, "recalls_with_a_run": settled})


def _dimensions(held: Mapping[str, tuple[str, Vectors]]) -> int | None:
    return next((len(row) for _, row in held.values()), None)


class JournalStore:
    """Keeps everything in memory; see `Records` and `Index` for what it promises."""

    def __init__(self) -> None:
        self._scopes: dict[str, _Scope] = {}
        self._settings = {RECEIPT_SECRET: new_id()}
        self._is_closed = False

    def _look(self, scope: str) -> _Scope:
        where = check_scope(scope)
        if self._is_closed:
            raise StoreUnavailable("the bank is closed: open it again")
        return self._scopes.get(where) or _Scope(where)

    @contextmanager
    def _change(self, scope: str) -> Generator[_Scope]:
        """A scope to write to: all of it or nothing."""
        here = self._look(scope).copied()
        settings = copy(self._settings)
        try:
            yield here
        except BaseException:
            self._settings = settings
            raise
        if here.entries or here.runs or here.recalls:
            self._scopes[here.name] = here

    def _forget_settings(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._settings.pop(key, None)

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
    ) -> Sequence[JournalEntry]:
        self._look(scope)
        check_settlement(settlement, scope=scope)
        if not (changes or vectors or settlement):
            return []
        with self._change(scope) as here:
            batch = _batch(here, changes, if_unlearned, if_unchanged, unique_wording=unique_wording)
            if rollback := lone_rollback(changes, vectors, settlement):
                planned(batch, here, ())
                return _rolled_back(here, rollback, writer)
            planned(batch, here, changes)
            told = [here.add(change, writer) for change in changes]
            if any(isinstance(change, Edit) for change in changes):
                self._forget_settings(keys_of(here.name, derived=True))
            if settlement:
                if settlement.recall_id not in here.recalls:
                    raise NotFound(f"no recall {settlement.recall_id!r} in this scope")
                if if_unsettled and here.settlement(settlement.recall_id):
                    raise Conflict(SETTLED)
                told.append(here.add(Settle(settlement=settlement), writer))
            if vectors:
                here.place(vectors, space or "")
        return told

    async def journal(
        self,
        *,
        scope: str,
        since: int = 0,
        kinds: Collection[str] | None = None,
        naming: Collection[str] | None = None,
    ) -> AsyncIterator[JournalEntry]:
        for one in [*self._look(scope).entries]:
            wanted = one.sequence > since and (kinds is None or one.entry.kind in kinds)
            if wanted and may_name(one.entry.model_dump_json().encode(), naming):
                yield one

    async def save_runs(
        self, trajectories: Sequence[Trajectory], /, *, scope: str, wait: float = IN_HAND
    ) -> Sequence[str]:
        new = list[str]()
        with self._change(scope) as here:
            for run in (dumped(one)[0] for one in trajectories):
                if run.id not in here.runs:
                    here.runs[run.id] = now(), run
                    new.append(run.id)
                elif not here.settled_runs([run.id]) and (noted := noted_again(here.runs[run.id][1], run)):
                    here.runs[run.id] = here.runs[run.id][0], noted
        return new

    async def save_recall(self, recall: Recall, /, *, returned: bool = False) -> bool:
        plain = dumped(recall.model_copy(update={"lessons": ()}))[0]
        with self._change(recall.scope) as here:
            since = microseconds(plain.created_at)
            if returned and any(erased_since(e.entry, since) for e in here.entries if microseconds(e.at) >= since):
                return False
            here.recalls.setdefault(plain.id, plain)
        return True

    async def runs(self, wanted: RunFilter, /, *, scope: str) -> Sequence[Run]:
        here = self._look(scope)
        if wanted.ids is not None:
            those = [here.runs[id][1] for id in dict.fromkeys(map(encodable, wanted.ids)) if id in here.runs]
            return [here.run(run, wanted) for run in those]
        check_limit(wanted.limit)
        every = [(id, at, run) for id, (at, run) in here.runs.items()]
        page = _after(every if wanted.oldest_first else every[::-1], wanted.after, "run")
        found = (here.run(run) for _, at, run in page if _fits(run, wanted) and _is_before(at, wanted))
        fitting = (
            run
            for run in found
            if wanted.outcome in (None, run.verdict.outcome) and wanted.status in (None, run.status)
        )
        listed = first_fitting(wanted, fitting, lambda run: run_texts(run.trajectory))
        return [here.run(run.trajectory, wanted) for run in listed]

    async def recalls(self, wanted: RecallFilter, /, *, scope: str) -> Sequence[SavedRecall]:
        here = self._look(scope)

        def saved(recall: Recall) -> SavedRecall:
            return SavedRecall(recall, here.settlement(recall.id) if wanted.settlements else None)

        if wanted.ids is not None:
            return [saved(here.recalls[id]) for id in map(encodable, wanted.ids) if id in here.recalls]
        check_limit(wanted.limit)
        every = [(r.id, r.created_at, r) for r in sorted(here.recalls.values(), key=lambda r: r.created_at)]
        page = _after(every if wanted.oldest_first else every[::-1], wanted.after, "recall")
        fitting = (r for _, at, r in page if _fits(r, wanted) and _is_before(at, wanted))
        if (since := wanted.since) is not None:
            fitting = (r for r in fitting if r.created_at >= since)
        if wanted.lesson is not None:
            fitting = (r for r in fitting if any(c.shown and c.lesson_id == wanted.lesson for c in r.candidates))
        if wanted.settled is not None:
            fitting = (r for r in fitting if _is_settled(here.settlement(r.id)) == wanted.settled)
        return [saved(one) for one in first_fitting(wanted, fitting, lambda r: (r.task, r.text))]

    async def lessons(self, wanted: LessonFilter, /, *, scope: str) -> Sequence[Lesson]:
        here, states = self._look(scope), wanted_states(wanted.state, retired=wanted.retired)
        check_limit(wanted.limit)
        every = [(i.id, i.created_at, (e, i)) for e in here.present for i in e.lessons]
        every.sort(key=lambda one: one[1])
        found = (
            i
            for _, _, (e, i) in _after(every[::-1], wanted.after, "lesson")
            if state_of(i) in states
            and wanted.kind in (None, i.kind)
            and wanted.writer in (None, i.provenance.writer)
            and (wanted.topics is None or (i.topic and i.topic.id in wanted.topics))
            and _fits(e, wanted)
        )
        return first_fitting(wanted, found, lambda lesson: (lesson.text,))

    async def experiences(self, by: ExperienceKey, values: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        wanted = frozenset(map(encodable, values))
        return [e for e in self._look(scope).present if not wanted.isdisjoint(_keys(e, by))]

    async def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        for experience in self._look(scope).present:
            yield experience

    async def count(
        self,
        *,
        scope: str | None = None,
        names_only: bool = False,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> Mapping[str, Counts]:
        names = [scope] if scope else sorted(self._scopes)
        if names_only and not scope:
            return {name: Counts() for name in names}
        if scope and since:
            late = [i for e in self._look(scope).present for i in e.lessons if i.created_at >= since]
            return {scope: Counts(lessons=len(late[:limit]))}
        return {name: self._look(name).counts() for name in names}

    async def settings(self, prefix: str, /, *, exact: bool = False) -> Mapping[str, str]:
        self._look("any")
        name = encodable(prefix)
        found = sorted(self._settings.items())
        return {key: value for key, value in found if key == name or (key.startswith(name) and not exact)}

    async def put_setting(self, key: str, value: str | None, /) -> None:
        self._look("any")
        self._forget_settings([encodable(key)])
        if value is not None:
            self._settings[encodable(key)] = encodable(value)

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
        self._look(scope)
        erasures = checked_erasures(what, changes)
        if not erasures:
            return []
        with self._change(scope) as here:
            if isinstance(erasures, datetime):
                return _forgotten(here, erasures, writer, self._settings)
            if erasures == [("scope", "")]:
                self._forget_settings(keys_of(here.name))
                return [_emptied(here, writer, reason)]
            planned(_batch(here, changes, (), if_unchanged), here, changes)
            for change in changes:
                here.add(change, writer)
            self._forget_settings(keys_of(here.name, derived=True))
            return _purged(here, erasures, writer, reason)

    async def close(self) -> None:
        self._is_closed = True

    async def nearest(
        self,
        vector: Vectors,
        /,
        *,
        scope: str,
        space: str,
        limit: int,
        exclude: Collection[str] = (),
        lessons: bool = False,
    ) -> Nearest:
        query, here = unit(vector, what="the query"), self._look(scope)
        check_dimensions(query, space=space, dimensions=_dimensions(here.spaces.get(space, {})))
        rows, known = here.rows(space), {i.id: i for e in here.present for i in e.lessons}
        found = list[Match]()
        for e in reversed(here.present):
            if e.id in exclude:
                continue
            named = [(i.id, i.id) for i in reversed(e.lessons) if not i.hidden]
            named += [(e.id, None)] if (whole := shown_with(e, known)).active_lessons else []
            for id, lesson_id in named:
                if id in rows:
                    score = min(max(round(float(np.dot(rows[id], query)), 5), -1.0), 1.0)
                    found.append(Match(experience=whole, score=score, lesson_id=lesson_id))
        best = sorted(found, key=lambda match: -match.score)[:limit]
        return Nearest(best, not (limit and await self.unindexed(scope=scope, space=space, limit=1, lessons=lessons)))

    async def search(self, query: str, /, *, scope: str, limit: int, exclude: Collection[str] = ()) -> Sequence[Match]:
        found = ranked_by_words(self._look(scope).present, query)
        return [Match(experience=e, score=score) for e, score in found if e.id not in exclude][: max(limit, 0)]

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        here = self._look(scope)
        every = [(e.id, e.task) for e in here.present]
        if lessons:
            every = [(i.id, i.text) for e in here.present for i in e.lessons if not i.hidden]
        rows = here.rows(space)
        return [one for one in every if one[0] not in rows][: max(limit, 0)]

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str, replace: bool = False) -> None:
        with self._change(scope) as here:
            if replace:
                here.spaces.pop(space, None)
            if vectors:
                here.place(vectors, space)


def _batch(
    here: _Scope,
    changes: Sequence[Change],
    if_unlearned: Collection[str],
    if_unchanged: Sequence[Experience],
    *,
    unique_wording: bool = False,
) -> Batch:
    entries = [(change, ("", 0)) for change in changes]
    return Batch(here.name, "", entries, {}, None, tuple(if_unlearned), if_unchanged, unique_wording)


def _rolled_back(here: _Scope, rollback: Rollback, writer: str) -> list[JournalEntry]:
    check_target(rollback, sequence=len(here.entries))
    told = [here.add(rollback, writer)]
    held, spans = held_back(e.entry for e in here.entries), live(rollbacks_of(here.entries), len(here.entries))
    for change in handed_on(here.of_kinds, spans, here, held):
        told.append(here.add(change, writer))
    if again := held_again(here.present, held):
        told.append(here.add(again, writer))
    return told


def _purged(here: _Scope, these: Sequence[tuple[Erasure, str]], writer: str, reason: str) -> list[JournalEntry]:
    entries = {e.sequence: e.entry.model_dump_json().encode() for e in here.entries}
    recalls = {n: r.model_dump_json().encode() for n, r in enumerate(here.recalls.values())}
    before, told = dict(recalls), list[JournalEntry]()
    for erasing in not_gone(these):
        take_in_all(entries, erasing)
        runs = here.runs.pop(erasing.trajectory or "", None) is not None
        gone = [n for n, text in recalls.items() if Recall.model_validate_json(text).id == erasing.receipt]
        if not runs and not gone and not erasing.found:
            raise unknown(erasing)
        for n in gone:
            del recalls[n]
            del here.recalls[erasing.receipt or ""]
        changed = scrub_entries(entries, erasing, by=len(here.entries) + 1)
        for sequence, (_, text) in changed.items():
            here.rewrite(sequence, entry_of(text.encode()))
        left = scrub_recalls(recalls, erasing)
        here.recalls |= {recall.id: recall for recall in left.values()}
        for held in here.spaces.values():
            for id in erasing.ids & held.keys():
                del held[id]
        sums = {"trajectories": int(runs), "recalls": len(gone) + len(left), "entries": len(changed)}
        told.append(here.add(erasing.tombstone(reason, **sums), writer))
    texts = ((id, run.model_dump_json().encode()) for id, (_, run) in here.runs.items())
    if shown := texts_lost(before, recalls):
        for id, text in list(runs_without(texts, shown)):
            here.runs[id] = here.runs[id][0], Trajectory.model_validate_json(text)
    return told


def _emptied(here: _Scope, writer: str, reason: str) -> JournalEntry:
    tombstone = scope_tombstone(here.name, reason, here.counts(), entries=len(here.entries))
    erased = Erased(by=len(here.entries) + 1)
    for one in [*here.entries]:
        here.rewrite(one.sequence, without_reason(one.entry) if one.entry.kind in OUTLIVE else erased)
    for held in (here.runs, here.recalls, here.spaces):
        held.clear()
    return here.add(tombstone, writer)


def _forgotten(here: _Scope, before: datetime, writer: str, settings: dict[str, str]) -> list[JournalEntry]:
    runs = [id for id, (at, _) in here.runs.items() if at < before]
    old = [r for r in here.recalls.values() if r.created_at < before and not is_forgotten(r)]
    for id in runs:
        del here.runs[id]
    for recall in old:
        if here.settlement(recall.id) is None:
            del here.recalls[recall.id]
        else:
            here.recalls[recall.id] = forgotten(recall, settings.setdefault(SALT, new_id()))
    told = Forgotten(before=before, runs=len(runs), recalls=len(old))
    return [here.add(told, writer)] if runs or old else []


def _after(
    every: Sequence[tuple[str, datetime, Any]], after: str | None, kind: str
) -> Iterator[tuple[str, datetime, Any]]:
    """What comes after the record of that id."""
    if after is None:
        return iter(every)
    at = next((n for n, (id, *_) in enumerate(every) if id == after), None)
    if at is None:
        raise no_such(kind, after)
    return iter(every[at + 1 :])


def _fits(record: Trajectory | Recall | Experience, wanted: RunFilter | RecallFilter | LessonFilter) -> bool:
    return tags_wanted(wanted) <= tags_of(record)


def _is_before(at: datetime, wanted: RunFilter | RecallFilter) -> bool:
    return wanted.before is None or at < wanted.before


def _is_settled(settlement: Settlement | None) -> bool:
    return settlement is not None and settlement.outcome != "unknown"


def _keys(experience: Experience, by: ExperienceKey) -> Iterable[str]:
    """What an experience is looked up by."""
    match by:
        case "id":
            return (experience.id,)
        case "lesson":
            return [lesson.id for lesson in experience.lessons]
        case "run":
            return [attempt.trajectory_id for attempt in experience.attempts]
        case "wording":
            return [wording_of(lesson) for lesson in experience.lessons]
        case "repeats":
            return experience.repeats.keys()
