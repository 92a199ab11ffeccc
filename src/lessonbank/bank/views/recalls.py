"""The receipts of a scope: what was found, shown and withheld for each task, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Unpack

from lessonbank._base.checks import a_flag, a_text, an_id, filters, is_instance, maybe_id
from lessonbank._base.plural import plural
from lessonbank.bank.explanation import Explanation, explained, losers
from lessonbank.bank.preview_settings import PreviewSettings
from lessonbank.bank.recall_again import shown_before
from lessonbank.bank.retrieval import Recaller
from lessonbank.bank.scoped_bank import ScopedBank
from lessonbank.contracts.ports import RecallFilter
from lessonbank.contracts.records import Json, Lesson, Recall, notes_of
from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions, takes_retrieve_options
from lessonbank.contracts.settings import Search, TrustPolicy
from lessonbank.contracts.store_calls import get_recall, list_recalls, settlement_of
from lessonbank.errors import ModelError
from lessonbank.guard.quote import quoted
from lessonbank.search import TrustFilter, Without

_NEXT = 10
"""How many lessons that were not shown an explanation names."""


@dataclass(frozen=True, slots=True)
class AsyncRecalls:
    """`bank.recalls`. Every method acts in the scope of its bank."""

    _bank: ScopedBank

    async def list(
        self,
        *,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        lesson: str | None = None,
        settled: bool | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Recall, ...]:
        """Receipts with lessons, newest first, at most `limit`. `after`: the id of the last recall of the page before.

        `text`: every word of it stands in the task or in the text that was shown. `metadata`: the recall has these keys
        and values. `lesson`: it showed the lesson of that id. `settled`: its outcome is known, or not;
        an outcome that was told as unknown is not known.
        Raises UsageError, NotFound (`after`).
        """
        recalls = await list_recalls(
            self._bank.store,
            RecallFilter(
                lesson=maybe_id(lesson, "lesson="),
                settled=None if settled is None else a_flag(settled, "settled="),
                **filters(text=text, metadata=metadata, limit=limit, after=after),
            ),
            scope=self._bank.scope,
        )
        return await self._with_lessons(recalls)

    async def search(
        self,
        text: str | None = None,
        /,
        *,
        metadata: Mapping[str, Json] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Recall, ...]:
        """Receipts that contain every word of `text` and have this metadata, newest first. Raises UsageError."""
        return await self.list(text=text, metadata=metadata, limit=limit, after=after)

    async def get(self, id: str, /) -> Recall:
        """One receipt with its lessons, as they are now. Raises NotFound."""
        return (await self._with_lessons([await self._stored(id)]))[0]

    async def _stored(self, id: str) -> Recall:
        return await get_recall(self._bank.store, an_id(id), scope=self._bank.scope)

    async def _with_lessons(self, recalls: Sequence[Recall]) -> tuple[Recall, ...]:
        """Each receipt with the lessons that its candidates name: receipts are kept without them."""
        known = await self._bank.lessons({c.lesson_id for recall in recalls for c in recall.candidates})
        return tuple(_with_known(recall, known) for recall in recalls)

    @takes_retrieve_options
    async def preview(
        self,
        task: str,
        /,
        *,
        by: Search | None = None,
        budget: int | None = None,
        floor: float | None = None,
        preface: str | None = None,
        trust: TrustPolicy | None = None,
        **options: Unpack[RetrieveKeywords],
    ) -> Recall:
        """What `retrieve` would show for a task now, for a person to look at.

        What is not given is as the bank has it. `by`, `budget`, `floor` and `preface` are those of `Retrieval`, and
        `trust` is that of `Safety`. `options`: those of `retrieve`. `retriever` of the answer says what searched.

        Nothing is withheld and no receipt is kept, so it is no evidence. Never hand its text to an agent: what an agent
        is shown comes from `retrieve`. Raises UsageError.
        """
        task, asked = a_text(task, "the task", blank=False), RetrieveOptions(**options)
        tried = PreviewSettings(by, budget, floor, preface, trust)
        return await Recaller(self._bank).preview(task, asked, tried)

    async def explain(self, recall: Recall | str, /) -> Explanation:
        """Why each lesson was found, shown or withheld, what came next, and what the evidence says of all of them.

        What came next is searched as the recall was: with `trusted`, and without what its run had been shown. Raises
        UsageError, NotFound.
        """
        receipt = await self._stored(recall.id if is_instance(recall, Recall) else recall)
        lift = await self._bank.parts.ledger.lift(scope=self._bank.scope, level=0.95)
        lifts = {lesson.lesson_id: lesson for lesson in lift.lessons}
        lessons = await self._bank.lessons({c.lesson_id for c in receipt.candidates})
        settlement = await settlement_of(self._bank.store, receipt.id, scope=self._bank.scope)
        explanation = explained(receipt, settlement, lessons, lifts)
        retriever = self._bank.parts.retriever
        if receipt.retriever.startswith((trusting := TrustFilter(retriever, "corroborated")).name):
            retriever = trusting
        if receipt.retriever not in ("", retriever.name):
            note = f"what came next is searched with {retriever.name}, and the recall was with {receipt.retriever}"
            explanation = explanation.model_copy(update={"notes": (*explanation.notes, note)})
        if shown := await shown_before(self._bank, receipt):
            retriever = Without(retriever, shown)
        try:
            near = await retriever(receipt.task, scope=self._bank.scope, limit=len(receipt.candidates) + _NEXT)
        except ModelError as error:
            note = f"what came next is not known, because the embedder failed: {quoted(error)}"
            return explanation.model_copy(update={"notes": (*explanation.notes, note)})
        return explanation.model_copy(update={"losers": losers(receipt, near.matches, lifts, most=_NEXT)})


def _with_known(recall: Recall, known: Mapping[str, Lesson]) -> Recall:
    ranked = [c.lesson_id for c in sorted(recall.candidates, key=attrgetter("rank"))]
    full_recall = recall.model_copy(update={"lessons": tuple(known[id] for id in ranked if id in known)})
    count = len(ranked) - len(full_recall.lessons)
    if not count:
        return full_recall
    note = f"{plural(count, 'lesson')} that this task found {'is' if count == 1 else 'are'} no longer in the bank"
    return full_recall.model_copy(update={"notes": (*full_recall.notes, *notes_of(note))})
