"""What each draw of a run told, worked out anew from its outcomes: the simulator takes nothing from the estimators.

One recall after another, in plain sums; the ledger does the same with sorted columns. Where both agree, neither is
likely to be wrong, and `looking` compares them at each review.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .stream import Flags, Floats, Ints

if TYPE_CHECKING:
    from lessonbank.evidence.episodes import Episodes

_TRUTHS = 20
"""With fewer outcomes that were told beside a judge's, all that counts is what the judge said."""
_OF_LESSON, _OF_TEMPLATE = 10.0, 4.0
"""How many outcomes the wider mean counts as."""
_GROUP = 1


@dataclass(frozen=True, slots=True)
class Told:
    """One treatment: one entry for each recall that tells something of it, in the order in which outcomes came."""

    row: Ints
    """The recall."""
    shown: Flags
    score: Floats
    """(shown - chance) (outcome - guess)."""
    scale: Floats
    """chance (1 - chance)."""
    lowest: Floats
    """What the score could have been at least, known before the draw."""
    highest: Floats
    is_group: bool

    def __len__(self) -> int:
        return len(self.row)


def told_by_treatment(episodes: Episodes, /) -> list[Told]:
    """By treatment, in the order of the episodes' treatments. Audits are not known here: no stream has any."""
    counts = _counting(episodes)
    guess = _guesses(episodes, counts)
    draws = episodes.draws
    kept = np.flatnonzero(counts[draws.row])
    by_treatment = kept[np.argsort(draws.treatment[kept], kind="stable")]
    ends = np.searchsorted(draws.treatment[by_treatment], np.arange(len(episodes.treatments) + 1))
    return [
        _told(episodes, guess, by_treatment[ends[n] : ends[n + 1]], is_group=bool(episodes.level[n] == _GROUP))
        for n in range(len(episodes.treatments))
    ]


def _told(episodes: Episodes, guess: Floats, at: Ints, *, is_group: bool) -> Told:
    row, shown, chance = episodes.draws.row[at], episodes.draws.shown[at], episodes.draws.chance[at]
    centred, guessed = shown - chance, guess[row]
    ends = np.stack([side * (end - guessed) for side in (1 - chance, -chance) for end in (0.0, 1.0)])
    return Told(
        row=row,
        shown=shown,
        score=centred * (episodes.outcome[row] - guessed),
        scale=chance * (1 - chance),
        lowest=ends.min(axis=0),
        highest=ends.max(axis=0),
        is_group=is_group,
    )


def _counting(episodes: Episodes) -> Flags:
    """The recalls whose outcome counts: those of which the truth was told, or all where hardly any was."""
    known = episodes.known
    true = known & episodes.true
    return known if true.sum() < min(_TRUTHS, known.sum()) else true


def _guesses(episodes: Episodes, counts: Flags) -> Floats:
    """By recall that counts: what its outcome might have been expected to be from those before it.

    The mean of its template so far; that leans on the mean of the lessons that were found, and that on the mean of all.
    """
    found = _found(episodes)
    guess = np.full(len(counts), np.nan)
    total, by_lesson, by_template = _Mean(), defaultdict[int, _Mean](_Mean), defaultdict[int, _Mean](_Mean)
    for row in map(int, np.flatnonzero(counts)):
        overall = (total.sum + 0.5) / (total.count + 1.0)
        lessons, template = [by_lesson[n] for n in found.get(row, ())], by_template[int(episodes.cluster[row])]
        means = [one.leaning(overall, _OF_LESSON) for one in lessons]
        guess[row] = template.leaning(sum(means) / len(means) if means else overall, _OF_TEMPLATE)
        for one in (total, template, *lessons):
            one.add(float(episodes.outcome[row]))
    return guess


def _found(episodes: Episodes) -> dict[int, list[int]]:
    found = dict[int, list[int]]()
    for row, lesson in zip(episodes.placed.row.tolist(), episodes.placed.treatment.tolist(), strict=True):
        found.setdefault(row, []).append(lesson)
    return found


@dataclass(slots=True)
class _Mean:
    sum: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        """One more."""
        self.sum += value
        self.count += 1

    def leaning(self, other: float, weight: float) -> float:
        """The mean, as if `weight` values more had been `other`."""
        return (self.sum + weight * other) / (self.count + weight)
