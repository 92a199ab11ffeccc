"""Looks back over topics of a scope, within one budget, and keeps what is general."""

from __future__ import annotations

from typing import Final

from lessonbank._base.plural import counted
from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Reflected, Replace, Usage
from lessonbank.errors import Conflict
from lessonbank.guard.quote import quoted, redacting_with
from lessonbank.learning.reflection import LEAST_RUNS, materials, reflected

from .handle import Handle

_MOST: Final = 8_000
"""Tokens that one topic is shown in, at most."""
_LEAST: Final = 2_000
"""Tokens below which no topic is begun."""


async def reflect(
    of: Handle,
    model: LanguageModel,
    asked: str | None,
    /,
    *,
    runs: int = 40,
    budget: int = 20_000,
    dry_run: bool = False,
) -> Reflected:
    """`bank.reflect`: each topic until the budget is spent. Raises NotFound, ModelError."""
    found = await materials(of.store, scope=of.scope, runs=runs, asked=asked)
    done = list[Reflected]()
    for about in found:
        if (share := min(budget, _MOST)) < _LEAST:
            break
        budget -= share
        with redacting_with(of.parts.intake.redactor):
            told = await reflected(about, model=model, intake=of.parts.intake, budget=share)
        done.append(told if dry_run or not told.changes else await _apply_changes(of, told))
    notes = [note for one in done for note in one.notes]
    if left := len(found) - len(done):
        notes.append(f"{counted(left, 'topic was', 'topics were')} left out: the budget is spent")
    if not found:
        notes.append(f"no topic has {LEAST_RUNS} runs with both outcomes and two lessons yet")
    return Reflected(
        lessons=tuple(lesson for one in done for lesson in one.lessons),
        topics=tuple(about.name for about in found[: len(done)]),
        changes=tuple(change for one in done for change in one.changes),
        usage=sum((one.usage for one in done), Usage()),
        notes=tuple(notes),
    )


async def _apply_changes(of: Handle, told: Reflected) -> Reflected:
    """Keep the changes; with a note where the bank changed meanwhile, or has these words already."""
    vectors, notes = await of.index([change.experience for change in told.changes if isinstance(change, Replace)])
    try:
        await of.apply(*told.changes, vectors=vectors)
    except Conflict as error:
        notes = (f"nothing of it was kept: {quoted(error)}",)
    return told.model_copy(update={"notes": (*told.notes, *notes)})
