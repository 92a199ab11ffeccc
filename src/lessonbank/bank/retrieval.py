"""Makes recalls: searches, orders by evidence, draws, and words what is shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from time import perf_counter

from lessonbank.contracts.ports import Retriever
from lessonbank.contracts.records import Found, Recall, notes_of
from lessonbank.contracts.records.ids import digest, new_id
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.contracts.settings import OFF
from lessonbank.errors import UsageError
from lessonbank.evidence.groups import groups_of
from lessonbank.evidence.ledger import Ledger
from lessonbank.search import TrustFilter, Without, with_reason
from lessonbank.search.opposites import without_denied

from .preview_settings import PreviewSettings
from .scoped_bank import ScopedBank


@dataclass(frozen=True, slots=True)
class Recaller:
    """The first step of the loop, in one scope: what `retrieve`, a preview and a trial have in common."""

    bank: ScopedBank

    async def recall(
        self,
        task: str,
        asked: RetrieveOptions,
        /,
        *,
        draw: bool,
        exclude: Collection[str] = (),
        as_one: str = "",
    ) -> tuple[Recall, Found]:
        """A receipt that nobody kept yet, and what it shows. `task` is redacted.

        Without `draw` nothing is withheld, and the id follows from the words: so does the fence, and the same lessons
        give the same text. `exclude`: ids of lessons and experiences that are left out as if they were not there.
        `as_one`: the group that one draw withholds, whatever is found: there are no other draws then.
        """
        retriever = _restricted(self.bank.parts.retriever, asked, exclude)
        if asked.own and not asked.trusted:
            retriever = TrustFilter(retriever, "corroborated", own_of=await self.bank.identity())
        scope, places, measured = self.bank.scope, asked.limit or self.bank.options.limit, self.bank.parts.ledger
        ledger, id = (measured, new_id()) if draw else (Ledger(), "")
        retrieval = await retriever(task, scope=scope, limit=measured.reach(places))
        retrieval = without_denied(retrieval, seen=exclude if as_one else ())
        retrieval = await measured.order(retrieval, places=places, recall_id=id, scope=scope)
        every = [match.experience for match in retrieval.matches]
        groups = {
            lesson.id: groups_of(lesson, experience) for experience in every for lesson in experience.active_lessons
        }
        if as_one:
            groups = dict.fromkeys(groups, (as_one,))
        assigned = await ledger.assign({as_one: ()} if as_one else groups, recall_id=id, task=task, scope=scope)
        assigned = assigned.of_one(as_one) if as_one else assigned
        recall = self.bank.parts.injector.recall(
            retrieval,
            id=id or self._id_of(task, retrieval),
            task=task,
            scope=scope,
            assigned=assigned,
            groups=groups,
            retriever=retriever.name,
            space=retriever.space,
        )
        return recall.model_copy(update={"metadata": asked.metadata or {}}), retrieval

    async def fit(self, recall: Recall, asked: RetrieveOptions, /, *, since: float) -> Recall:
        """`recall` as a model fits it to its task, where that is asked for and there is anything to show.

        `since`: when the recall was asked for, on the clock of `time.perf_counter`.
        Raises UsageError: there is no model.
        """
        how, fitter = asked.fit or self.bank.options.fit, self.bank.parts.fitter
        if how == "none":
            return recall
        if fitter is None:
            raise UsageError(f"fit={how!r} needs a model, and this bank has none: pass model=…, or fit='none'")
        if not recall.text or self.bank.options.observe:
            return recall
        parts = self.bank.parts
        return await fitter(recall, how, since=since, injector=parts.injector, intake=parts.intake)

    async def preview(self, task: str, asked: RetrieveOptions, tried: PreviewSettings, /) -> Recall:
        """What would be shown with some settings, without draws and without a receipt."""
        task = await self.bank.parts.intake.task(task)
        if self.bank.options.off:
            return Recall(scope=self.bank.scope, task=task, kept=False, notes=notes_of(OFF))
        recall, retrieval = await self._with(tried).recall(task, asked, draw=False)
        recall = await with_reason(recall, retrieval, self.bank.store)
        how = asked.fit or self.bank.options.fit
        note = () if how == "none" else notes_of(f"not fitted: a preview asks no model; a recall does (fit={how!r})")
        return recall.model_copy(update={"kept": False, "notes": (*recall.notes, *note)})

    async def for_trial(self, task: str, /, *, asked: RetrieveOptions) -> tuple[Recall, Found]:
        """What a user would see for `task` if nothing were withheld. The task stays as it is: an agent is to do it."""
        begun = perf_counter()
        recall, retrieval = await self.recall(await self.bank.parts.intake.task(task), asked, draw=False)
        recall = await self.fit(recall, asked, since=begun)
        return recall.model_copy(update={"kept": False, "task": task}), retrieval

    def _with(self, tried: PreviewSettings) -> Recaller:
        """Return the recaller with the settings that a person tries. Raises UsageError: this bank cannot search so."""
        if tried.is_own:
            return self
        if self.bank.parts.previews is None:
            raise UsageError("other settings can be tried with a bank that `connect` made, not with this one")
        retriever, words = self.bank.parts.previews(tried)
        parts = replace(self.bank.parts, retriever=retriever, injector=words)
        return replace(self, bank=replace(self.bank, parts=parts))

    def _id_of(self, task: str, retrieval: Found) -> str:
        words = [lesson.text for match in retrieval.matches for lesson in match.experience.active_lessons]
        return digest("\n".join((self.bank.scope, task, *words)))[:32]


def _restricted(retriever: Retriever, asked: RetrieveOptions, exclude: Collection[str]) -> Retriever:
    """`retriever`, which leaves out what is excluded, and with `trusted` shows only lessons that are active."""
    if exclude:
        retriever = Without(retriever, frozenset(exclude))
    return TrustFilter(retriever, "corroborated") if asked.trusted else retriever
