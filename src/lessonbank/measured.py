"""The part of a bank that says what memory changed, and why a recall was what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ._concurrency import if_there
from .errors import ModelError, UsageError
from .events import Reviewed, Settled
from .evidence.explanation import Explanation, explained, losers
from .evidence.lift import Lift
from .evidence.replay import AnyAgent, Recalls, Verifier, replay
from .evidence.replay_design import Design, Replay, asked
from .guard.quote import quoted
from .holdings import Holdings
from .types import Learned, Recall, Settlement

if TYPE_CHECKING:
    from collections.abc import Callable

    from .evidence.ledger import Ledger
    from .retrieving.injection import Injector

_NEXT = 10


class Measured(Holdings):
    """A bank's holdings, and the ledger over them. Every method acts in one scope."""

    _ledger: Ledger
    _injector: Injector
    _emit: Callable[..., None]

    async def lift(self, *, scope: str | None = None, level: float = 0.95) -> Lift:
        """What memory changed, overall and lesson by lesson, with intervals. `print` it, or read its fields.

        Recalls are compared with recalls that were withheld at random (`holdout=`); nothing is credited to a lesson
        for having been there when things went well. `level`: how sure the intervals are. Raises UsageError, StoreError.
        """
        if not isinstance(cast("object", level), float) or not 0.5 <= level < 1.0:
            raise UsageError(f"level is how sure an interval is, from 0.5 to below 1, such as 0.95; got {level!r}")
        return await self._ledger.lift(scope=self._within(scope), level=level)

    async def explain(self, recall: Recall | str, /, *, scope: str | None = None) -> Explanation:
        """Why each lesson was found, shown or withheld, what came next, and what the evidence says of all of them.

        Raises NotFound for a recall that this scope does not have.
        """
        where = self._within(scope)
        if not isinstance(cast("object", recall), str | Recall):
            raise UsageError("explain takes a recall, or its id")
        receipt = await self.store.recall(recall if isinstance(recall, str) else recall.id, scope=where)
        lifts = {lesson.lesson_id: lesson for lesson in (await self._ledger.lift(scope=where, level=0.95)).lessons}
        lessons = {
            c.lesson_id: lesson
            for c in receipt.candidates
            if (lesson := await if_there(self.get(c.lesson_id, scope=where)))
        }
        told = explained(receipt, await self.store.settlement(receipt.id, scope=where), lessons, lifts)
        try:
            found = await self._retriever(receipt.task, scope=where, limit=len(receipt.candidates) + _NEXT)
        except ModelError as error:
            note = f"what came next is not known, because the embedder failed: {quoted(str(error))}"
            return told.model_copy(update={"notes": (*told.notes, note)})
        return told.model_copy(update={"losers": losers(receipt, found.matches, lifts, most=_NEXT)})

    async def replay(
        self,
        recalls: Recalls,
        agent: AnyAgent,
        /,
        *,
        outcome: Verifier,
        without: str | None = None,
        with_: str | None = None,
        placebo: str | bool = False,
        most: int = 200,
        rounds: int = 1,
        enough: float = 0.05,
        level: float = 0.95,
        seed: int = 0,
        at_once: int = 1,
        scope: str | None = None,
    ) -> Replay:
        """Do the tasks of `recalls` again with and without a lesson, in pairs, until it is clear what it changes.

        For worlds that can be reset. Nothing is written. A run must prove what it was shown: its trajectory holds the
        memory text, or has the text's SHA-256 in `metadata["memory_digest"]`; without that no effect is told.

        Args:
            recalls: receipts of this scope, or their ids.
            agent: `(task, memory)` to a trajectory or its messages, async or not; a parameter `seed` gets the same
                number in both runs of a pair. What it raises ends the replay.
            outcome: the world's check of a run: success or not, a score from 0 to 1, or an outcome.
            without: the lesson to leave out of what was shown.
            with_: the lesson to add to what was shown.
            placebo: the lesson to replace with irrelevant words of its length; `True`: everything that was shown.
            most: the most pairs; each is two runs.
            rounds: how often each task may be done by each side.
            enough: an effect too small to matter; once it is known to be smaller the replay ends. 0: never.
            level: how sure the interval is, however often one looks.
            seed: the order of tasks and sides, and the agent's luck, follow from it.
            at_once: how many pairs are run at once; a plain function then runs in as many threads.

        Raises:
            UsageError: none or several of `without`, `with_` and `placebo`, a lesson or a number that cannot be, no
                recalls or those of another scope, or nothing to compare in them.
            NotFound: a recall that this scope does not have.
        """
        return await replay(
            self.store,
            self._injector,
            recalls,
            agent,
            outcome=outcome,
            question=asked(without=without, with_=with_, placebo=placebo),
            design=Design(most=most, rounds=rounds, enough=enough, level=level, seed=seed, at_once=at_once),
            scope=self._within(scope),
        )

    async def _acted(self, learned: Learned, settlement: Settlement | None) -> Learned:
        """`learned`, and what the ledger did by itself now that one more outcome is known."""
        if settlement is None:
            return learned
        self._emit(Settled(settlement=settlement))
        acted = await self._ledger.settled(scope=settlement.scope)
        if acted.changes or acted.notes:
            self._emit(Reviewed(changes=acted.changes), notes=acted.notes)
        changes, notes = (*learned.changes, *acted.changes), (*learned.notes, *acted.notes)
        return learned.model_copy(update={"changes": changes, "notes": notes})
