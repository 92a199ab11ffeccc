"""What the report says beyond single effects: where they differ between tasks, which lessons repeat each other, and how
many labels a verdict would need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lessonbank._counting import counted
from lessonbank.guard.sanitise import one_line

from .calibration import checked
from .draws import USUAL
from .episodes import LESSON_LEVEL, Episodes, Flags, Floats
from .labels import labels_needed
from .lift import Estimate, Part, Split
from .lift_words import points
from .redundancy import Together, together
from .review import LIKELY, Review
from .sequences import Outcomes
from .splits import Difference, differences

_TOLD = "template "
_SHOWN = 3
"""Parts that a sentence names, and sets of lessons that the notes name."""
_CHECKED = 20
_RECENT = 100
"""So many draws of a unit tell with which odds it is drawn at present."""
_TRUST = 0.6
"""What a judge is taken to be worth while it was hardly checked: right eight times in ten."""


def splits(episodes: Episodes, found: Review, /) -> dict[int, Split]:
    """By unit: its effects by task template, where two of these or more can be compared."""
    scores = found.scores
    told = differences(scores, episodes.cluster[scores.row])
    return {one.unit: _split(one, episodes.clusters, found.basis) for one in told}


def _split(found: Difference, names: Sequence[str], basis: str) -> Split:
    parts = tuple(
        Part(
            name=one_line(names[part.part].removeprefix(_TOLD), limit=80) if names else str(part.part),
            success=Estimate(value=part.value, always_low=part.low, always_high=part.high, basis=basis),
            recalls=part.draws,
        )
        for part in found.parts
    )
    evidence = float(np.exp(np.clip(found.log_e, 0.0, 700.0)))
    return Split(parts=parts, evidence=evidence, differs=found.differs and basis != "judge")


def split_notes(told: Mapping[int, Split], titles: Sequence[str], /) -> list[str]:
    """One sentence for each unit whose effect is shown to differ between tasks."""
    return [
        f"the effect of {titles[unit]} differs between tasks: {_named(split)}; lessons.narrow keeps a lesson for the "
        "tasks it helps"
        for unit, split in told.items()
        if split.differs
    ]


def _named(split: Split) -> str:
    return ", ".join(f"{points(part.success)} on {part.name!r}" for part in split.parts[:_SHOWN])


def together_notes(episodes: Episodes, found: Review, titles: Sequence[str], /) -> list[str]:
    """One sentence for each set of lessons that likely say the same, or likely need each other."""
    parents = episodes.parents or ((),) * len(episodes.units)
    sets = together(episodes.draws, episodes.placed, parents, _residual(len(episodes), found.found))
    likely = [one for one in sets if one.says and found.basis != "judge"]
    return [_said(one, titles) for one in likely[:_SHOWN]]


def _residual(size: int, found: Outcomes) -> Floats:
    """By recall: the outcome less its guess, where the truth was told; nan elsewhere."""
    residual: Floats = np.full(size, np.nan)
    residual[found.rows] = np.where(found.weight == 1.0, found.change, np.nan)
    return residual


def _said(one: Together, titles: Sequence[str]) -> str:
    named = ", ".join(titles[lesson] for lesson in one.lessons)
    alone = ", ".join(f"{100 * value:+z.0f}" for value in one.alone)
    what = "likely say the same: one of them would do" if one.says == "same" else "likely help only together"
    return f"{named} {what} (together {100 * one.joint:+z.0f} points, each by itself {alone})"


def titles_of(episodes: Episodes, lessons: Mapping[str, str], groups: Mapping[str, str], /) -> tuple[str, ...]:
    """By unit: what a sentence calls it."""
    return tuple(
        "memory" if n == 0 else repr(one_line((lessons if level == LESSON_LEVEL else groups).get(id) or id, limit=60))
        for n, (id, level) in enumerate(zip(episodes.units, episodes.level, strict=True))
    )


def more_labels(episodes: Episodes, found: Review, /) -> int | None:
    """About how many more labels bring the next verdict on memory as a whole; `None`: no number of them would, or
    there is nothing to label."""
    pool = episodes.known & ~np.isnan(episodes.judged) & _opinion(episodes)
    draws = episodes.draws
    rows = np.flatnonzero((draws.unit == 0) & pool[draws.row])
    standing = found.standing[0] if found.acts else "no evidence yet"
    if len(rows) < _CHECKED or standing in ("helps", "harms"):
        return None
    said, chance = episodes.judged[draws.row[rows]], draws.chance[rows]
    guess = float(said.mean())
    v = chance * (1 - chance)
    trust = _trust(episodes)
    effect = float(((draws.shown[rows] - chance) * (said - guess)).sum() / v.sum()) / max(trust, 0.1)
    spread = max(guess * (1 - guess), 0.01)
    return labels_needed(
        pool=len(rows),
        labelled=int(episodes.true[draws.row[rows]].sum()),
        weight=float(v.sum()),
        effect=effect,
        spread=spread,
        residual=spread * (1 - trust**2),
        reach=min(float(np.maximum(chance, 1 - chance).max()) * max(guess, 1 - guess) * (1 + trust), 1.0),
        threshold=LIKELY if standing == "no evidence yet" else float(found.least[0]),
    )


def _opinion(episodes: Episodes) -> Flags:
    """The rows that rest on a judge's word, or whose truth an audit asked for."""
    return ~episodes.true | (episodes.audited if len(episodes.audited) else np.zeros(len(episodes), np.bool_))


def _trust(episodes: Episodes) -> float:
    """How far a judge's opinion follows the truth, from 0 to 1."""
    both = checked(episodes)
    if int(both.sum()) < _CHECKED:
        return _TRUST
    return float(np.clip(2 * (1 - np.abs(episodes.judged[both] - episodes.outcome[both]).mean()) - 1, 0.0, 0.99))


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
    of_each = np.split(weight, first[1:])
    speed = {
        int(unit): float(own[-_RECENT:].mean())
        for unit, own in zip(units, of_each, strict=True)
        if len(own) >= _CHECKED
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
