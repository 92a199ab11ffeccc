"""The bank as an arm: the whole public loop, nothing withheld, so that every arm shows all it has."""

from __future__ import annotations

from dataclasses import replace

import lessonbank
from lessonbank.contracts.ports import Extractor, LanguageModel
from lessonbank.contracts.records import Learned, Trajectory
from lessonbank.contracts.settings import UNSET
from lessonbank.demo import PATIENCE, KeptBank
from lessonbank.errors import UsageError
from lessonbank_bench.leave_out import LeaveOut, same_task, same_template

from ._interface import Setting, lesson_code
from .options import Options


class BankMemory(KeptBank):
    """What is retrieved is shown, and what was done is learned with the verdict alone.

    Args:
        setting: the scope, k and the model; the truth is not looked at.
        options: which parts; the standard ones by default.
        extractor: an extractor of the arm's own. What it draws is kept as it is, without the gate for lessons.
    """

    def __init__(
        self, setting: Setting, options: Options | None = None, /, *, extractor: Extractor | None = None
    ) -> None:
        chosen = options or Options()
        bank = lessonbank.connect(
            ":memory:",
            scope=setting.scope,
            embedder=chosen.space,
            profile=chosen.profile,
            retrieval=chosen.search,
            parts=lessonbank.Parts(extractor=extractor),
            learning=lessonbank.Learning(domain=chosen.domain or setting.domain, consolidation=chosen.consolidation),
            safety=lessonbank.Safety(admission=None if extractor else UNSET),
            evidence=lessonbank.Evidence(holdout=None),
            model=_model(chosen, setting.model),
        )
        if chosen.exclude:
            rule = same_task if chosen.exclude == "task" else same_template()
            parts = bank.aio.parts
            bank.aio.parts = replace(parts, retriever=LeaveOut(parts.retriever, rule, f"same {chosen.exclude}"))
        super().__init__(bank, limit=chosen.limit or setting.limit)
        self._failures = chosen.failures
        self._texts: dict[str, str] = {}
        self._extracts = extractor is not None

    def recall(self, goal: str, /) -> str:
        text = super().recall(goal)
        self._texts[goal] = text
        return text

    def text_for(self, goal: str, /) -> str:
        """What it showed for a goal, or would show now, without a trace that it was asked."""
        known = self._texts.get(goal)
        return self.bank.recalls.preview(goal, limit=self.limit).text if known is None else known

    @property
    def shown(self) -> tuple[str, ...]:
        """The codes of the lessons in the last text, in order."""
        return tuple(
            lesson_code(lesson.title, lesson.content) for lesson in (self._recall.shown if self._recall else ())
        )

    @property
    def scales(self) -> bool:
        """Whether `bank.scale` shows and learns what this memory does: nothing is done around the bank."""
        own = type(self).recall is BankMemory.recall and type(self).learn is BankMemory.learn
        return own and (self._failures or self._extracts)

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        if success is False and not self._failures:
            return None
        return super().learn(run, success=success)


def _model(options: Options, model: LanguageModel | None) -> lessonbank.Model | None:
    """Who judges and distils: with `extractive` the model judges only."""
    if model is None and options.extractor == "llm":
        raise UsageError("an arm with extractor='llm' needs a model: give the experiment one")
    if model is None:
        return None
    return lessonbank.Model({"judge": model} if options.extractor == "extractive" else model, timeout=PATIENCE)
