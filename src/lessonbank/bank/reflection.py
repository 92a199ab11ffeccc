"""Looks back over topics of a scope, within one budget, and keeps what is general."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lessonbank._base.plural import plural
from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Reflected, Usage
from lessonbank.errors import Conflict, ModelError
from lessonbank.guard.quote import quoted, redacting_with
from lessonbank.learning.reflection import LEAST_RUNS, general_changes, materials, reflected

from .scoped_bank import ScopedBank

_MOST: Final = 8_000
"""Tokens that one topic is shown in, at most."""
_LEAST: Final = 2_000
"""Tokens below which no topic is begun."""
_TRIES: Final = 3
"""How often lessons are put into experiences that others change meanwhile."""


async def reflect(
    bank: ScopedBank,
    model: LanguageModel,
    asked: str | None,
    /,
    *,
    runs: int = 40,
    budget: int = 20_000,
    dry_run: bool = False,
) -> Reflected:
    """`bank.reflect`: each topic until the budget is spent. Raises NotFound, and ModelError where nothing was done."""
    topics = await materials(bank.store, scope=bank.scope, runs=runs, asked=asked)
    done, why = list[Reflected](), "the budget is spent"
    for about in topics:
        if (share := min(budget, _MOST)) < _LEAST:
            break
        budget -= share
        with redacting_with(bank.parts.intake.redactor):
            try:
                reflection = await reflected(about, model=model, intake=bank.parts.intake, budget=share)
            except ModelError as error:
                if not done:
                    raise
                why = f"the model failed: {quoted(error, limit=200)}"
                break
        done.append(await _keep(bank, reflection, [experience.id for experience, _ in about.taught], dry_run=dry_run))
    notes = [note for reflection in done for note in reflection.notes]
    if left := len(topics) - len(done):
        notes.append(f"{plural(left, 'topic was', 'topics were')} left out: {why}")
    if not topics:
        notes.append(f"no topic has {LEAST_RUNS} runs with both outcomes and two lessons yet")
    return Reflected(
        lessons=tuple(lesson for reflection in done for lesson in reflection.lessons),
        topics=tuple(about.name for about in topics[: len(done)]),
        changes=tuple(change for reflection in done for change in reflection.changes),
        usage=sum((reflection.usage for reflection in done), Usage()),
        notes=tuple(notes),
    )


async def _keep(bank: ScopedBank, reflection: Reflected, ids: Sequence[str], /, *, dry_run: bool) -> Reflected:
    """Keep the lessons in the experiences of these ids as they are now: the model took its time.

    A note, and no lesson, where the bank does not take them.
    """
    why: str | Conflict = ""
    for _ in range(_TRIES):
        now = await bank.store.experiences("id", ids, scope=bank.scope)
        runs = {ref.trajectory_id for experience in now for ref in experience.attempts}
        lessons = tuple(lesson for lesson in reflection.lessons if runs.issuperset(lesson.provenance.trajectory_ids))
        changes = general_changes(lessons, now)
        vectors, notes = await bank.index([] if dry_run else [change.experience for change in changes])
        warnings = (
            ("a lesson was dropped: a run that shows it was erased meanwhile",) if lessons != reflection.lessons else ()
        )
        update = {"lessons": lessons, "changes": changes, "notes": (*reflection.notes, *warnings, *notes)}
        try:
            if changes and not dry_run:
                replaced = {change.experience.id for change in changes}
                await bank.apply(
                    *changes,
                    vectors=vectors,
                    if_unchanged=[experience for experience in now if experience.id in replaced],
                )
            return reflection.model_copy(update=update)
        except Conflict as error:
            why = error
    return reflection.model_copy(
        update={"lessons": (), "notes": (*reflection.notes, f"nothing of it was kept: {quoted(why)}")}
    )
