"""Puts an experience into the bank: a consolidator decides, the store applies, one of a scope at a time here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from lessonbank.contracts.ports import Consolidator, Vectors
from lessonbank.contracts.records import Change, Experience, Settlement, Usage
from lessonbank.contracts.records.usage import NO_USAGE
from lessonbank.errors import Conflict
from lessonbank.guard.quote import redacting_with
from lessonbank.learning.consolidation.retry import decide, spent
from lessonbank.learning.outcome import LearnOutcome, replacing
from lessonbank.learning.settlement import settle
from lessonbank.learning.topics import in_topics
from lessonbank.search.read_cache import cached_reads

from .scoped_bank import ScopedBank, log

_STALE_TRIES: Final = 5
"""How often a slow decision is made again because another task of this process changed the scope meanwhile."""
Committed: TypeAlias = tuple[tuple[Change, ...], Settlement | None, tuple[str, ...]]
"""What was applied, how the receipt is settled, and what a reader should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One experience on its way into the bank."""

    bank: ScopedBank
    experience: Experience
    earlier: Experience | None = None
    """The experience that one of its runs belongs to already."""
    result: LearnOutcome | None = None
    """What was learned from the runs; `None` where an experience is consolidated by hand."""
    is_new: bool = False
    """Whether nobody is thought to have settled the recall: the store refuses it where somebody has, or erased it."""
    costs: list[Usage] = field(default_factory=list[Usage])
    """What deciding took so far."""

    async def decide_and_apply(self, policy: Consolidator, /) -> Committed:
        """Decide and apply.

        What decides at once does so under the lock of the scope. What may ask a model decides without it, and anew
        where another task changed the scope meanwhile. Raises Conflict, NotFound, StoreError.
        """
        # A model is asked without the lock. What was embedded and is then not written is dropped in `_apply`.
        scope = self.experience.scope
        if self.bank.parts.decides_at_once:
            vectors, notes = await self.bank.index([self.experience])
            async with self.bank.state.locks.of(scope):
                changes, sorting = await self.decide(policy)
                return await self._apply(changes, vectors, notes=(*notes, *sorting))
        for left in reversed(range(_STALE_TRIES)):
            seen = self.bank.state.changed[scope]
            changes, sorting = await self.decide(policy)
            vectors, notes = await self.bank.index(_brought(changes))
            async with self.bank.state.locks.of(scope):
                if not left or self.bank.state.changed[scope] == seen:
                    return await self._apply(changes, vectors, notes=(*notes, *sorting))
        raise Conflict("the scope changed during every decision")  # pragma: no cover - the last try is never stale

    async def decide(self, policy: Consolidator, /) -> tuple[tuple[Change, ...], tuple[str, ...]]:
        """What the policy decides, in topics, and what a reader should know. What it took is added to `costs`."""
        with cached_reads():
            with self.bank.state.locks.deciding(self.experience.scope), redacting_with(self.bank.parts.intake.redactor):
                decision = await decide(policy, self.experience)
            cost = spent(decision)
            safe = await self.bank.parts.intake.changes(decision, given=self.experience)
            safe = replacing(self.earlier, safe) if self.earlier else safe
            changes, usage, notes = await in_topics(self.bank.parts.topics, safe)
        for note in notes:
            log.warning("%s", note)
        self.costs.extend([amount for amount in (cost, usage) if amount is not NO_USAGE])
        return changes, notes

    async def _apply(
        self, changes: tuple[Change, ...], vectors: Mapping[str, Vectors], *, notes: tuple[str, ...]
    ) -> Committed:
        new = _brought(changes) if vectors else []
        ids = {experience.id for experience in new} | {lesson.id for experience in new for lesson in experience.lessons}
        settlement, doubts = None, ()
        if self.result:  # another run under the same receipt may have been counted meanwhile
            report, learned, home = self.result.report, self.result.attempts, self.experience.id
            settlement, _, doubts = await settle(
                self.bank.store, report, home=home, learned=learned, is_first=self.is_new
            )
        _, left_out = await self.bank.apply_embedded(
            changes,
            {id: vector for id, vector in vectors.items() if id in ids},
            writer=self.bank.writer,
            settlement=settlement,
            if_unlearned=[attempt.trajectory.id for attempt in self.result.attempts] if self.result else (),
            if_unchanged=[self.earlier] if self.earlier else [],
            if_unsettled=self.is_new,
            runs=self.result.unkept if self.result else (),
            unique_wording=self.bank.options.unique_wording,
        )
        return changes, settlement, (*notes, *doubts, *left_out)


def _brought(changes: Sequence[Change]) -> list[Experience]:
    """The experiences that changes bring in."""
    return [brought for change in changes if (brought := change.brings)]
