"""The ledger over a store: reads receipts and outcomes once, reviews the evidence in time, and acts on it."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from lessonbank._base.locks import ScopeLocks
from lessonbank._base.plural import plural
from lessonbank.contracts.ports import RecallFilter, RunFilter, Store
from lessonbank.contracts.records import (
    Audit,
    Change,
    Edit,
    Forgotten,
    Found,
    JournalEntry,
    Lesson,
    Match,
    Proposal,
    Purge,
    Recall,
    Retire,
    Settle,
    Trust,
)
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.contracts.records.timeline import reworded
from lessonbank.contracts.store_calls import count_records, every_recall, get_setting, list_recalls
from lessonbank.contracts.withholding import Assignment, Members, Withholding
from lessonbank.errors import Conflict, NotFound, UsageError
from lessonbank.guard.quote import quoted

from .groups import group_label, topic_names
from .ledger import Acted, Ledger, Met
from .lift import Lift
from .policy import AdaptiveHoldout
from .review_snapshot import ReviewSnapshot, TreatmentReview
from .treatments import GROUP_LEVEL, LESSON_LEVEL

if TYPE_CHECKING:
    from .episodes import Episodes
    from .evidence_table import EvidenceTable
    from .review import Review

WRITER: Final = "ledger"
_KINDS: Final = ("settle", "audit", "forgotten", "rollback", "retire", "edit", "trust", "purge")
_REREAD: Final = 50
"""Draws after which a process that has no outcomes of its own looks at what another one found."""
_REACH: Final = 2
"""So many times as many matches are searched for as are shown: the others compete by their effect."""
_FIRST, _SHARE = 20, 0.05
"""The evidence is reviewed after so many new outcomes, and after so large a share of all."""
_UNFINISHED: Final = 1_000
"""Runs without an outcome that are counted."""
_NEVER: Final = datetime.fromtimestamp(0, UTC)
_SLACK: Final = timedelta(minutes=2)
"""A receipt may reach the bank so much later than others of its time; one that is later yet comes with its outcome."""


@dataclass(slots=True)
class _ScopeState:
    """What is known of one scope."""

    table: EvidenceTable
    sequence: int = 0
    """The last change that was read."""
    rewordings: list[JournalEntry] = field(default_factory=list[JournalEntry])
    """Edits and rollbacks."""
    groups: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """By group: when a lesson of it was last taken back for its evidence. The rest of it starts again then."""
    taken_back: set[str] = field(default_factory=set[str])
    """Lessons that the ledger retired before. Whoever shows one again knows better: that is not done a second time."""
    approved: dict[str, int] = field(default_factory=dict[str, int])
    """By lesson: the change by which a person approved it last."""
    newest: datetime = _NEVER
    """When the newest receipt was made that was read: by the clock here, where that of its process is ahead."""

    def take_in(self, receipts: Iterable[Recall], entries: Iterable[JournalEntry], /) -> None:
        """What was found out, oldest first."""
        for recall in receipts:
            self.table.receipt(recall)
        latest = max((recall.created_at for recall in receipts if not recall.imported), default=_NEVER)
        self.newest = max(self.newest, min(latest, datetime.now(UTC)))
        for entry in entries:
            match entry.entry:
                case Settle(settlement=settlement):
                    self.table.settle(settlement)
                case Audit():
                    self.table.audits.make(entry.entry)
                case Forgotten(before=before):
                    self.table.forget(before)
                case Trust(approves=True, lesson_ids=ids):
                    self.approved.update(dict.fromkeys(ids, entry.sequence))
                case Retire(lesson_ids=ids, successor=successor):
                    by_ledger = entry.writer == WRITER and not successor  # which an earlier version put in its place
                    harmful = ids if by_ledger else ()
                    self.taken_back.update(harmful)
                    self.groups.update(dict.fromkeys(self.table.groups_of(harmful), entry.at))
                case _:
                    self.rewordings.append(entry)
                    if isinstance(entry.entry, Edit):
                        self.taken_back.discard(entry.entry.lesson_id)
            self.sequence = entry.sequence


class StoredLedger(Ledger):
    """The ledger of a bank: its policy draws, its reviews follow the outcomes, its report reads everything."""

    def __init__(self, store: Store, policy: Withholding, /, *, act: bool = True, trusts: bool = True) -> None:
        self.policy, self._trusts = policy, trusts
        self._store, self._act, self._locks = store, act, ScopeLocks()
        self._states, self._snapshots = dict[str, _ScopeState](), dict[str, ReviewSnapshot]()
        self._unreviewed, self._reads = dict[str, float](), dict[str, int]()
        self._read_as: dict[str, int] = {}
        """The hash of the setting that the last review was read from: to read it again takes as long as a search."""
        self._lock = threading.Lock()

    def reach(self, places: int, /) -> int:
        return _REACH * places if isinstance(self.policy, AdaptiveHoldout) else places

    async def order(self, retrieval: Found, /, *, places: int, recall_id: str, scope: str) -> Found:
        snapshot = await self._last(scope)
        matches = retrieval.matches
        if isinstance(self.policy, AdaptiveHoldout):
            near = [(_ids(match), match.score) for match in matches]
            order = self.policy.order(near, places=places, recall_id=recall_id, scope=scope)
            matches = tuple(matches[n] for n in order)
        if snapshot.helps:
            matches = tuple(_reordered(match, snapshot.helps) for match in matches)
        return retrieval if matches == retrieval.matches else retrieval.model_copy(update={"matches": matches})

    async def assign(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        await self._last(scope)
        assigned = self.policy(lessons, recall_id=recall_id, task=task, scope=scope)
        odds = (assigned.control_probability, *assigned.probability.values(), *[d.probability for d in assigned.groups])
        if not all(0.0 <= odd <= 1.0 for odd in odds):
            raise UsageError("the policy of holdout= returned a probability outside 0 to 1: correct the policy")
        return assigned

    async def on_outcome(self, *, scope: str) -> Acted:
        try:
            async with self._locks.of(scope):
                return await self._review(scope) if await self._is_due(scope) else Acted()
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in looking at it: the run was learned
            return Acted(notes=(f"the evidence was not reviewed: {quoted(error)}",))

    async def proposals(self, *, scope: str) -> Sequence[Proposal]:
        await self._reread(scope)
        if not self._snapshots[scope].proposed:
            return ()
        async with self._locks.of(scope):
            return await self._proposals(await self._read(scope), scope)

    async def unlabelled(self, *, scope: str) -> Sequence[str]:
        async with self._locks.of(scope):
            return (await self._read(scope)).table.audits.waiting

    async def audit(self, count: int, *, scope: str, by: str, reason: str) -> None:
        async with self._locks.of(scope):
            state = await self._read(scope)
            if planned := state.table.audits.plan(count, by=by, reason=reason):
                await self._store.apply([planned], scope=scope, writer=by)

    async def lift(self, *, scope: str, level: float) -> Lift:
        from .report import report  # noqa: PLC0415 - loads numpy, as what follows from evidence does

        await self._reread(scope)
        async with self._locks.of(scope):
            state = await self._read(scope)
            proposed = {proposal.lesson.id for proposal in await self._proposals(state, scope)}
            lessons = await self._lessons([*state.table.treatments][1:], scope)  # the first is memory as a whole
            topics = topic_names(lessons.values())
            names = {id: group_label(id, topics) for id in state.table.treatments if "/" in id}
            made = partial(report, scope=scope, lessons=lessons, names=names, level=level, proposed=proposed)
            lift = await to_thread.run_sync(lambda: made(self._episodes(state)))
            table, unfinished = state.table, RunFilter(status="unfinished", limit=_UNFINISHED)
            imported = f"imported recalls: {len(table.imported)}; they and their outcomes do not count here"
            update = {
                "unlabelled": len(table.audits.waiting),
                "empty": len(table.bare),
                "unfinished": len(await self._store.runs(unfinished, scope=scope)),
                "notes": (*lift.notes, *([imported] if table.imported else ())),
            }
            return lift.model_copy(update=update)

    async def met(self, *, scope: str) -> Mapping[str, Met]:
        await self._reread(scope)
        treatments = self._snapshots[scope].treatments
        async with self._locks.of(scope):
            last = (await self._read(scope)).table.last_found()
        idle = {id for id, review in treatments.items() if review.does_nothing}
        return {id: Met(datetime.fromtimestamp(at, UTC), id in idle) for id, at in last.items()}

    async def _last(self, scope: str) -> ReviewSnapshot:
        """What the last review told, whichever process made it."""
        if scope not in self._snapshots or self._reads[scope] >= _REREAD:
            await self._reread(scope)
        self._reads[scope] += 1
        return self._snapshots[scope]

    async def _reread(self, scope: str) -> None:
        text = await get_setting(self._store, REVIEW.of(scope))
        self._reads[scope] = 0
        if self._read_as.get(scope) != hash(text):
            self._tell(scope, ReviewSnapshot.of(text), text)

    def _tell(self, scope: str, snapshot: ReviewSnapshot, text: str | None) -> None:
        self._snapshots[scope], self._read_as[scope] = snapshot, hash(text)
        if isinstance(self.policy, AdaptiveHoldout):
            self.policy.tell(scope, snapshot.treatments)

    async def _is_due(self, scope: str) -> bool:
        snapshot = await self._last(scope)
        self._unreviewed[scope] = self._unreviewed.get(scope, math.inf) + 1  # in a new process they are counted
        if self._unreviewed[scope] < max(_FIRST, _SHARE * snapshot.reviewed):
            return False
        await self._reread(scope)  # another process may have been first
        since, reviewed = self._snapshots[scope].sequence, self._snapshots[scope].reviewed
        settled = self._store.journal(scope=scope, since=since, kinds=("settle",))
        self._unreviewed[scope] = len([None async for _ in settled])
        left = await count_records(self._store, scope=scope)  # a purge may have left fewer than were reviewed
        return self._unreviewed[scope] >= max(_FIRST, _SHARE * min(reviewed, left.recalls_with_a_run))

    async def _review(self, scope: str) -> Acted:
        from .review import left_out, review  # noqa: PLC0415 - loads numpy

        state = await self._read(scope)
        self._unreviewed[scope] = 0
        episodes = await to_thread.run_sync(self._episodes, state)
        apart = left_out(episodes)
        sure = await to_thread.run_sync(partial(review, episodes, leave_out=apart))
        findings = await to_thread.run_sync(partial(review, episodes)) if apart else sure
        changes, proposed = await self._decide(state, episodes, findings, sure, scope) if self._act else ([], {})
        earlier = self._snapshots[scope].proposed
        made = [change for change in changes if await self._apply(change, scope)]
        snapshot = ReviewSnapshot(
            reviewed=int(episodes.known.sum()),
            sequence=state.sequence,
            treatments=treatment_reviews(episodes, sure),
            proposed={id: (earlier[id][0] if id in earlier else state.sequence, why) for id, why in proposed.items()},
        )
        self._tell(scope, snapshot, text := snapshot.text())
        await self._store.put_setting(REVIEW.of(scope), text)
        new = [proposal for proposal in await self._proposals(state, scope) if proposal.lesson.id not in earlier]
        return Acted(changes=made, proposals=tuple(new), notes=proposal_notes(new))

    def _episodes(self, state: _ScopeState) -> Episodes:
        with self._lock:
            return state.table.episodes(since=reworded(state.rewordings) | state.groups)

    async def _decide(
        self, state: _ScopeState, episodes: Episodes, review: Review, sure: Review, scope: str
    ) -> tuple[list[Change], dict[str, str]]:
        """What follows: what is shown to harm is taken back, groups first and each as one; what helps is trusted.

        `sure` holds without any of the keys that `left_out` counts. Only proposed (by id, with the evidence) is what a
        person approved, and where there are several keys what is not sure and what helps.
        """
        harmful = list(harmful_treatments(episodes, review))
        helpful = {id: n for n, id in enumerate(episodes.treatments) if self._trusts and review.is_shown(n, "helps")}
        known = await self._lessons({*helpful, *(id for _, ids in harmful for id in ids)}, scope)
        left = {id: lesson for id, lesson in known.items() if not lesson.hidden}
        changes, proposed = list[Change](), dict[str, str]()
        for treatment, ids in harmful:
            group = episodes.treatments[treatment] if episodes.level[treatment] == GROUP_LEVEL else ""
            is_sure = sure.is_shown(treatment, "harms")
            why = why_of(review, treatment) + ("" if is_sure else _UNSURE)
            shown = [left[id] for id in ids if id in left and id not in state.taken_back]
            proposed.update((lesson.id, why) for lesson in shown if lesson.approved or not is_sure)
            if is_sure and (back := tuple(lesson.id for lesson in shown if not lesson.approved)):
                changes.append(Retire(lesson_ids=back, group=group, reason=f"shown to harm: {why}"))
                left = {id: lesson for id, lesson in left.items() if id not in back}
        for id, treatment in helpful.items():
            if id in left and left[id].state == "probation":
                why = f"{_HELPS}: {why_of(review, treatment)}"
                if sure is not review:
                    proposed.setdefault(id, why)
                else:
                    changes.append(Trust(lesson_ids=(id,), state="active", by="ledger", reason=why))
        return changes, proposed

    async def _proposals(self, state: _ScopeState, scope: str) -> list[Proposal]:
        """What was proposed, and not answered since: the lesson is still shown, and nobody approved it."""
        proposed = self._snapshots[scope].proposed.items()
        still = {id: why for id, (since, why) in proposed if state.approved.get(id, 0) <= since}
        lessons = await self._lessons(still, scope)
        return [
            Proposal(lesson=lessons[id], reason=why, change="approve" if why.startswith(_HELPS) else "retire")
            for id, why in still.items()
            if id in lessons and not lessons[id].hidden
            if not (lessons[id].state == "active" and why.startswith(_HELPS))
        ]

    async def _lessons(self, ids: Collection[str], scope: str) -> dict[str, Lesson]:
        """The lessons of these ids that there are."""
        owners = await self._store.experiences("lesson", ids, scope=scope) if ids else ()
        return {lesson.id: lesson for owner in owners for lesson in owner.lessons if lesson.id in ids}

    async def _apply(self, change: Change, scope: str) -> bool:
        """Apply a change, and say whether it could be made: somebody else may have taken the lesson back meanwhile."""
        try:
            await self._store.apply([change], scope=scope, writer=WRITER)
        except (Conflict, NotFound):
            return False
        return True

    async def _read(self, scope: str) -> _ScopeState:
        """Everything that became known since the last time, or from the beginning.

        All of it is fetched first and taken in at once, unless another event loop was quicker: then again.
        """
        from .evidence_table import EvidenceTable  # noqa: PLC0415 - loads numpy

        while True:
            state = self._states.setdefault(scope, _ScopeState(EvidenceTable()))
            since = state.sequence
            entries = [e async for e in self._store.journal(scope=scope, since=since, kinds=_KINDS)]
            if len(state.table) and any(isinstance(e.entry, Purge) for e in entries):
                self._states[scope] = _ScopeState(EvidenceTable())  # what was erased must not be remembered here
                continue
            receipts = await self._receipts(state, entries, scope)
            with self._lock:
                if self._states.get(scope) is state and state.sequence == since:
                    state.take_in(receipts, entries)
                    return state

    async def _receipts(self, state: _ScopeState, entries: Sequence[JournalEntry], scope: str) -> list[Recall]:
        """The receipts that `state` does not have: the latest, and those that `entries` name."""
        table, latest = state.table, every_recall(self._store, scope=scope, since=state.newest - _SLACK)
        new = {recall.id: recall async for recall in latest if not table.knows(recall.id)}
        named = (e.entry.settlement.recall_id for e in entries if isinstance(e.entry, Settle))
        if ids := {id for id in named if id not in new and not table.knows(id)}:
            late = await list_recalls(self._store, RecallFilter(ids=ids), scope=scope)
            new |= {recall.id: recall for recall in sorted(late, key=lambda recall: recall.created_at)}
        return list(new.values())


_HELPS: Final = "shown to help"
"""How the reason of a proposal to make a lesson active begins."""
_UNSURE: Final = "; not without some of the keys"


def proposal_notes(proposals: Sequence[Proposal], /) -> tuple[str, ...]:
    """A sentence for each: what is proposed on the same evidence is one, be it for a whole group of lessons."""
    alike = defaultdict[tuple[str, str, bool], list[Proposal]](list)
    for proposal in proposals:
        alike[proposal.change, proposal.reason, proposal.lesson.approved].append(proposal)
    notes = list[str]()
    for (change, reason, is_approved), some in alike.items():
        what, it, again = f"{len(some)} lessons are", "them", " again" if is_approved else ""
        if len(some) == 1:
            what, it = f"the lesson {quoted(some[0].lesson.title)} is", "it"
        if change == "approve":
            notes.append(f"{what} {reason}: approve {it}, because several keys told outcomes")
        else:
            notes.append(f"{what} shown to harm ({reason}): retire {it}, or approve {it}{again}")
    return tuple(notes)


def harmful_treatments(episodes: Episodes, review: Review) -> Iterator[tuple[int, list[str]]]:
    """The groups and then the lessons that are shown to harm, each with the ids of what would go with it.

    A group goes only as the innermost that harms, and only if nothing points the other way for any of its lessons.
    """
    harms = {treatment for treatment in range(len(review.standing)) if review.is_shown(treatment, "harms")}
    members = defaultdict[int, list[int]](list)
    for lesson, parents in enumerate(episodes.parents):
        for innermost in [group for group in parents if group in harms][-1:]:
            members[innermost].append(lesson)
    for group, lessons in members.items():
        if not any("helps" in review.standing[lesson] for lesson in lessons):
            yield group, [episodes.treatments[lesson] for lesson in lessons]
    for treatment in sorted(harms):
        if episodes.level[treatment] == LESSON_LEVEL:
            yield treatment, [episodes.treatments[treatment]]


def treatment_reviews(episodes: Episodes, review: Review) -> dict[str, TreatmentReview]:
    """What a policy and other processes may go by: with several keys, only what survives without some of them; and
    nothing of a treatment that has no verdict because outcomes are missing."""
    import numpy as np  # noqa: PLC0415 - few programs review the evidence

    from .review import left_out  # noqa: PLC0415 - loads numpy

    counts, placed = ~review.differs, episodes.placed
    if left_out(episodes):
        counts &= np.maximum(review.log_help, review.log_harm) > 0.0
    mean = np.where(counts, review.expected.mean, 0.0)
    seen = np.bincount(review.scores.group, minlength=len(mean))
    met = np.bincount(placed.treatment[episodes.known[placed.row]], minlength=len(mean))
    most = np.maximum(np.abs(review.low), np.abs(review.high))
    columns = (column.tolist() for column in (seen, mean, review.expected.spread, met, most))
    rows = zip(episodes.treatments, review.standing, *columns, strict=True)
    return {
        id: TreatmentReview(recalls, standing, not review.acts, expected, spread, times, large)
        for id, standing, recalls, expected, spread, times, large in rows
        if recalls or times
    }


def why_of(review: Review, treatment: int, /) -> str:
    """The evidence, as the journal keeps it."""
    made = review.effects
    effect, low, high = (100 * float(of[treatment]) for of in (made.estimate, review.low, review.high))
    counts = f"shown {plural(int(made.shown[treatment]), 'time')}, withheld {int(made.withheld[treatment])}"
    e = math.exp(min(float(max(review.log_harm[treatment], review.log_help[treatment])), 50.0))
    strong = f"e-value {e:.3g} (a test at 5 % asks for 20)"
    return f"success {effect:+.1f} points [{low:+.0f}, {high:+.0f}], {counts}, {strong}"


def _ids(match: Match) -> list[str]:
    """The lessons that come with a match."""
    return [match.lesson_id] if match.lesson_id else [lesson.id for lesson in match.experience.active_lessons]


def _reordered(match: Match, helps: frozenset[str]) -> Match:
    lessons = sorted(match.experience.lessons, key=lambda lesson: lesson.id not in helps)
    if tuple(lessons) == match.experience.lessons:
        return match
    return match.model_copy(update={"experience": match.experience.model_copy(update={"lessons": tuple(lessons)})})
