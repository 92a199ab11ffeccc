"""Looks back over topics of a scope, within one budget, and keeps what is general."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Reflected, Replace, Usage
from lessonbank.errors import Conflict, ModelError, UsageError
from lessonbank.guard.quote import quoted, redacting_with
from lessonbank.learning.topics import LEAST_RUNS

from .scoped_bank import ScopedBank

_MOST: Final = 8_000
"""Tokens that one topic is shown in, at most."""
_LEAST: Final = 2_000
"""Tokens below which no topic is begun."""
_ERASED: Final = "a lesson was dropped: a run that shows it was erased meanwhile"
_TRIES: Final = 3
"""How often lessons are put into experiences that others change meanwhile."""


async def reflect(
    bank: ScopedBank, asked: str | None, /, *, runs: int = 40, budget: int = 20_000, dry_run: bool = False
) -> Reflected:
    """`bank.reflect`: each topic until the budget is spent. Raises NotFound, and ModelError where nothing was done."""
    if (model := bank.parts.reflector) is None:
        raise UsageError("reflect asks a model, and this bank has none: connect with model=")
    from lessonbank.learning.reflection import materials, reflected  # noqa: PLC0415 - few banks look back

    topics = await materials(bank.store, scope=bank.scope, runs=runs, asked=asked)
    done, why = list[Reflected](), "the budget is spent"
    shares = [min(budget - spent, _MOST) for spent in range(0, budget - _LEAST + 1, _MOST)]
    for about, share in zip(topics, shares, strict=False):
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
    """Keep the lessons in these experiences as they are now, because the model took its time; or say why not."""
    from lessonbank.learning.reflection import with_general  # noqa: PLC0415 - few banks look back

    why, before = "", reflection.notes
    for _ in range(_TRIES):
        now = await bank.store.experiences("id", ids, scope=bank.scope)
        runs = {ref.trajectory_id for experience in now for ref in experience.attempts}
        lessons = tuple(lesson for lesson in reflection.lessons if runs.issuperset(lesson.provenance.trajectory_ids))
        later, notes = with_general(lessons, now), before if lessons == reflection.lessons else (*before, _ERASED)
        changes = tuple(Replace(experience=each, reason="reflection over a topic") for each in later)
        try:
            if changes and not dry_run:
                vectors, unembedded = await bank.index(later)
                await bank.apply(*changes, vectors=vectors, if_unchanged=now)
                notes += unembedded
            return reflection.model_copy(update={"lessons": lessons, "changes": changes, "notes": notes})
        except Conflict as error:
            why = f"nothing of it was kept: {quoted(error)}"
    return reflection.model_copy(update={"lessons": (), "notes": (*before, why)})
