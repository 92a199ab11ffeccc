"""Looks back over topics of a scope, within one budget, and keeps what is general."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lessonbank._base.plural import counted
from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Change, Lesson, Reflected, Replace, Usage
from lessonbank.errors import Conflict
from lessonbank.guard.quote import quoted
from lessonbank.learning.reflection import LEAST_RUNS as LEAST_RUNS
from lessonbank.learning.reflection import Material, materials, reflected
from lessonbank.search.contests import remember

from .handle import Handle

_MOST: Final = 8_000
"""Tokens that one topic is shown in, at most."""
_LEAST: Final = 2_000
"""Tokens below which no topic is begun."""


@dataclass(frozen=True, slots=True)
class Reflecting:
    """`bank.reflect`."""

    _of: Handle
    _model: LanguageModel

    async def over(self, asked: str | None, /, *, runs: int, budget: int, dry_run: bool) -> Reflected:
        """Each topic until the budget is spent. Raises NotFound, ModelError."""
        found = await materials(self._of.store, scope=self._of.scope, runs=runs, asked=asked)
        lessons, changes, notes, looked = list[Lesson](), list[Change](), list[str](), list[str]()
        usage = Usage()
        for number, one in enumerate(found):
            if budget < _LEAST:
                notes.append(
                    f"{counted(len(found) - number, 'topic was', 'topics were')} left out: the budget is spent"
                )
                break
            share = min(budget, _MOST)
            budget -= share
            told = await self._looked(one, share)
            usage, looked = usage + told.usage, [*looked, one.name]
            notes += told.notes if dry_run or not told.changes else [*told.notes, *await self._kept(told)]
            lessons += told.lessons
            changes += told.changes
        if not found:
            notes.append(f"no topic has {LEAST_RUNS} runs with both outcomes and two lessons yet")
        return Reflected(
            lessons=tuple(lessons), topics=tuple(looked), changes=tuple(changes), usage=usage, notes=tuple(notes)
        )

    async def _looked(self, about: Material, budget: int) -> Reflected:
        with self._of.intake.in_force():
            return await reflected(about, model=self._model, intake=self._of.intake, budget=budget)

    async def _kept(self, told: Reflected) -> list[str]:
        """Keep the changes; a note where the bank changed meanwhile, or has these words already."""
        written = [change.experience for change in told.changes if isinstance(change, Replace)]
        vectors, notes = await self._of.index(written)
        try:
            await self._of.apply(*told.changes, vectors=vectors)
        except Conflict as error:
            return [f"nothing of it was kept: {quoted(error)}"]
        await remember(self._of.store, told.lessons, scope=self._of.scope)
        return list(notes)
