"""The sentences under a report: on what it rests, what is missing, and what it says beyond single effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from lessonbank._base.plural import counted
from lessonbank.guard.quote import quoted

from .columns import FREE, TWICE
from .draws import USUAL
from .episodes import LESSON_LEVEL, Episodes, Floats
from .lift import ONLY_TOGETHER, SAME_JOB, Split, points
from .redundancy import Together, together
from .review import Review, left_out
from .sequences import Outcomes

_SHOWN = 3
"""Parts that a sentence names, and sets of lessons that the notes name."""
_KNOWN = 20
"""Draws of a unit with an outcome below which nothing is said of its odds."""
_RECENT = 100
"""So many draws of a unit tell with which odds it is drawn at present."""
_FEW = 0.01
_ELSEWHERE = (
    "recall was settled by a run of another task than it was made for",
    "recalls were settled by runs of another task than they were made for",
)


def notes(
    episodes: Episodes,
    found: Review,
    splits: Mapping[int, Split],
    titles: Sequence[str],
    /,
    *,
    missing: tuple[float | None, float | None],
) -> tuple[str, ...]:
    """What a reader must know, one sentence each.

    Args:
        episodes: what happened.
        found: what is known of each unit.
        splits: by unit: its effects by task template.
        titles: by unit: what a sentence calls it.
        missing: the shares without an outcome, of recalls with memory and of those without.
    """
    return (
        *_opinions(episodes, found),
        *_witnesses(episodes),
        *_missing(found, *missing),
        *_restarts(episodes, titles),
        *_scattered(episodes),
        *_doubts(episodes),
        *_differing(splits, titles),
        *_together(episodes, found, titles),
    )


def _opinions(episodes: Episodes, found: Review) -> Iterator[str]:
    judged = int((episodes.known & ~episodes.true).sum())
    if judged and not found.acts:
        yield (
            f"{counted(judged, 'outcome is', 'outcomes are')} a judge's opinion, so every number here is what the "
            "judge thinks, and nothing is retired or trusted because of it. Label some of these runs "
            "(bank.runs.audit), or tell outcomes."
        )
    elif judged:
        truth, opinions = counted(int(found.found.rows.sum()), "outcome"), counted(judged, "is", "are")
        yield f"verdicts rest on {truth} whose truth was told or drawn for; {opinions} only a judge's opinion"
    if len(episodes) and not (episodes.draws.unit == 0).any():
        yield "no recall was ever withheld whole, so nothing is known of memory as a whole (holdout=…)"


def _witnesses(episodes: Episodes) -> Iterator[str]:
    """On whose word all this rests."""
    told = np.unique(episodes.told_by[episodes.known])
    if len(told) > 1:
        yield (
            f"outcomes come from {counted(len(told), 'key')}: a lesson is retired automatically only if it harms "
            "without the outcomes of each of them, and what helps waits for a person (bank.lessons.proposals)"
        )
    elif len(told) == 1 and episodes.writers:
        waits = ", so all that follows waits for a person (bank.lessons.proposals)" if left_out(episodes) else ""
        who = episodes.writers[int(told[0])] or "unknown"
        yield f"all outcomes come from one writer ({who}): nobody contradicts it{waits}"
    if episodes.uncounted:
        yield (
            f"{counted(episodes.uncounted, 'outcome does', 'outcomes do')} not count: of one writer {FREE} a day do, "
            f"or {TWICE} times as many as the others tell in a day on average"
        )


def _missing(found: Review, with_memory: float | None, without: float | None) -> Iterator[str]:
    """Outcomes that are missing more often on one side than chance explains make a difference by themselves."""
    if found.differs[0]:
        yield (
            f"outcomes are missing for {with_memory or 0:.0%} of recalls with memory and {without or 0:.0%} without: "
            "there is no verdict on memory as a whole until you know why"
        )
    if lessons := int(found.differs[1:].sum()):
        yield (
            "outcomes are missing more often when "
            f"{counted(lessons, 'lesson or group is', 'lessons or groups are')} shown, or left out: no verdict"
        )


def _restarts(episodes: Episodes, titles: Sequence[str]) -> Iterator[str]:
    """What started again, and why: earlier outcomes are about something else."""
    restarts = list({(one.at, one.before, one.model): one for one in episodes.restarts}.values())  # of equal groups one
    for one in restarts[:_SHOWN]:
        day = f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d}"
        if one.model:
            what, why = "all evidence starts", f"the agent changed to the model {quoted(one.model)}"
        elif episodes.level[one.unit] == LESSON_LEVEL:
            what, why = f"the evidence of {titles[one.unit]} starts", "its text was changed"
        else:
            what, why = f"the evidence of {titles[one.unit]} starts", "a lesson of it was taken back"
        gone = counted(one.before, "earlier outcome does", "earlier outcomes do")
        yield f"{what} again on {day}, because {why}: {gone} not count"
    if (left := len(restarts) - _SHOWN) > 0:
        yield f"the evidence of {counted(left, 'more lesson or group', 'more lessons or groups')} started again, too"


def _scattered(episodes: Episodes) -> Iterator[str]:
    """Where lessons are many and each is found for hardly a task, no amount of tasks will tell of any of them."""
    found = np.bincount(episodes.placed.unit, minlength=len(episodes.units))
    found = found[episodes.level == LESSON_LEVEL]
    if len(episodes) >= 100 and len(found) >= 20 and float(np.median(found[found > 0])) < 10:
        yield (
            f"half of the {int((found > 0).sum())} lessons were found for fewer than ten tasks: single effects need "
            'fewer lessons, each found more often (consolidation="recognise", more general lessons)'
        )


def _doubts(episodes: Episodes) -> Iterator[str]:
    """Signs that outcomes were joined with the wrong recalls, or with some of them only."""
    if (tries := episodes.superseded) > max(2.0, _FEW * len(episodes)):
        yield (
            f"only the last try counts: {tries} recalls have no outcome, and the same task was tried again within an "
            "hour and has one. Effects look smaller than they are: hand every try to learn, also those that failed"
        )
    if others := episodes.another_task:
        yield f"another task: {counted(others, *_ELSEWHERE)}; hand each run to learn with the recall that it used"


def _differing(splits: Mapping[int, Split], titles: Sequence[str]) -> Iterator[str]:
    """Units whose effect is shown to differ between tasks; of units with the same tasks the narrowest."""
    narrowest = {tuple((part.name, part.recalls) for part in split.parts): unit for unit, split in splits.items()}
    for unit, split in splits.items():
        if split.differs and unit in narrowest.values():
            parts = ", ".join(f"{points(part.success)} on {part.name!r}" for part in split.parts[:_SHOWN])
            yield (
                f"the effect of {titles[unit]} differs between tasks: {parts}; lessons.narrow keeps a lesson for the "
                "tasks it helps"
            )


def _together(episodes: Episodes, found: Review, titles: Sequence[str]) -> Iterator[str]:
    """Sets of lessons that likely say the same, or likely need each other."""
    if found.acts:
        parents = episodes.parents or ((),) * len(episodes.units)
        sets = together(episodes.draws, episodes.placed, parents, _residual(len(episodes), found.found))
        likely = [one for one in sets if one.says]
        yield from (_said(one, titles) for one in likely[:_SHOWN])


def _residual(size: int, found: Outcomes) -> Floats:
    """By recall: the outcome less its guess, where the truth was told; nan elsewhere."""
    residual: Floats = np.full(size, np.nan)
    residual[found.rows] = np.where(found.weight == 1.0, found.change, np.nan)
    return residual


def _said(one: Together, titles: Sequence[str]) -> str:
    named = ", ".join(titles[lesson] for lesson in one.lessons)
    alone = ", ".join(f"{100 * value:+z.0f}" for value in one.alone)
    numbers = f"shown together {100 * one.joint:+z.0f} points, each added to the others {alone}"
    if one.says == "same":
        return f"{named} {SAME_JOB}: keep one of them and take out the rest, never all ({numbers})"
    return (
        f"{named} {ONLY_TOGETHER}: keep all or take out all, and do not add up their effects, each of which "
        f"is that of the whole set ({numbers})"
    )


def price_of_following(episodes: Episodes, /) -> list[str]:
    """What odds that follow the evidence cost in proof, against odds that stay as they start; for the report.

    A recall tells chance * (1 - chance) of what a fair coin could tell four times over. What is shown nearly always,
    or nearly never, is hardly measured.
    """
    draws = episodes.draws
    told = np.flatnonzero(episodes.known[draws.row])
    told = told[np.argsort(draws.unit[told], kind="stable")]
    units, first = np.unique(draws.unit[told], return_index=True)
    weight = draws.chance[told] * (1 - draws.chance[told]) / (USUAL * (1 - USUAL))
    of_each = np.split(weight, first)[1:]
    speed = {
        int(unit): float(own[-_RECENT:].mean()) for unit, own in zip(units, of_each, strict=True) if len(own) >= _KNOWN
    }
    if 0 not in speed:
        return []
    lessons = [one for unit, one in speed.items() if episodes.level[unit] == LESSON_LEVEL]
    slow = sum(one < 0.5 for one in lessons)
    return [
        "the odds follow the evidence (Bandit), and not what measures best: of late a recall tells "
        f"{speed[0]:.2g} times as much of memory as a whole as it would with {USUAL:.0%} withheld, and less than half "
        f"as much of {slow} of {counted(len(lessons), 'lesson')}"
    ]
