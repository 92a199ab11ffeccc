"""What a bank says at each of many looks: its verdicts every ten tasks, and whether its intervals hold the truth.

Scores of earlier recalls never change, so the looks between two reviews are sums over the scores of the last one.
Scores (`scoring`), evidence and limits (`betting`) and the truth (`truth`) are the simulator's own: nothing here comes
from the estimators. At some reviews the evidence is compared with what the review itself said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .betting import COVER, both, enough, few, held, likely_from, shown_from
from .playing import BEGAN, Played
from .pure import Looked, Pure
from .scoring import Told, told_by_treatment
from .stream import Flags, Floats, Ints

_EVERY = 10
_FEW = 12
"""A treatment with fewer draws is not looked at between reviews."""
_LITTLE = 1e-9
NEVER = 1 << 40
HELP, HARM = 0, 1
_WORDS = ("helps", "likely helps", "likely harms", "harms")


@dataclass(frozen=True, slots=True)
class Treatment:
    """What was said of one treatment in one run."""

    draws: int
    likely: tuple[int, int] = (NEVER, NEVER)
    """The task after which it was first said to help likely, and to harm likely; `NEVER`."""
    firm: tuple[int, int] = (NEVER, NEVER)
    """The same for "helps" and "harms"."""
    held: bool = True
    """Whether the always-valid interval held the true average effect so far at every look."""
    value: float = float("nan")
    """The estimate at the end."""
    true: float = float("nan")
    """What it should be."""
    covers: bool = True
    """Whether the interval for one look holds that, at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run in a few numbers."""

    treatments: Mapping[str, Treatment]
    out: Mapping[int, int]
    """When each lesson was taken back."""
    lost: float
    """The share of the first 2,000 tasks that went without memory by the draw for the whole."""
    bare: float
    """The share that lost all of it by whichever draws."""
    given_up: float
    """Success given up by withholding: per task, of the same bank with everything shown."""
    lift: Floats = field(default_factory=lambda: np.empty(0))
    """By block of 500 tasks: the chance of success less that without memory."""
    differs: int = NEVER
    """The first task after which outcomes were said to go missing on one side, for any treatment."""
    differing: tuple[str, ...] = ()
    basis: str = ""
    truth: bool = True
    """Whether `held`, `true` and `covers` of the treatments are known."""
    off: float = 0.0
    """By how much the sums made here differ from what the reviews said, at most, as logarithms."""


def seen(played: Played, bank: Pure, /) -> Seen:
    """What a bank said of a stream."""
    bank.review()
    last = bank.reviews[-1]
    treatments = _treatments(bank, last)
    first = next((look.task for look in bank.reviews if look.found.differs.any()), NEVER)
    named = {look.episodes.treatments[n] for look in bank.reviews for n in np.flatnonzero(look.found.differs)}
    nothing = np.array([played.stream.chance(task, (), ()) for task in range(len(played.stream))])
    return Seen(
        treatments=treatments,
        out=played.out,
        lost=float(played.lost()[:2000].mean()),
        bare=float(played.bare()[:2000].mean()),
        given_up=float((played.if_all_shown() - played.chance).mean()),
        lift=np.array([part.mean() for part in np.split(played.chance - nothing, range(500, len(nothing), 500))]),
        differs=first,
        differing=tuple(sorted(named)),
        basis=last.found.basis,
        truth=bank.truth,
        off=_off(bank, last) if bank.truth else 0.0,
    )


def _treatments(bank: Pure, last: Looked) -> dict[str, Treatment]:
    every = told_by_treatment(last.episodes)
    task = np.round((last.episodes.at - BEGAN.timestamp()) / 60).astype(np.int64)
    truth = {(n, change.treatment): change.adds for n, told in bank.changes.items() for change in told if bank.truth}
    least, likely, near = shown_from(last.episodes), likely_from(last.episodes), _near(bank, last)
    made = dict[str, Treatment]()
    for treatment in map(int, few(every, _FEW)):
        own, name = every[treatment], last.episodes.treatments[treatment]
        when = task[own.row]
        one = _said(own, when, likely[treatment], least[treatment]) if near[treatment] else Treatment(draws=len(own))
        if bank.truth:
            adds = np.array([truth[n, name] for n in when])
            one = replace(one, **_compared(own, when, adds, bank, treatment))
        made[name] = one
    return {
        name: _with_reviews(made.get(name, Treatment(draws=0)), name, bank)
        for name in {*made, *(n for n, _ in bank.said)}
    }


def _with_reviews(one: Treatment, name: str, bank: Pure) -> Treatment:
    """What reviews said before the evidence of a treatment started again is no longer in its scores."""
    helps, likely_helps, likely_harms, harms = (bank.said.get((name, word), NEVER) for word in _WORDS)
    return replace(
        one,
        likely=(min(one.likely[HELP], likely_helps, helps), min(one.likely[HARM], likely_harms, harms)),
        firm=(min(one.firm[HELP], helps), min(one.firm[HARM], harms)),
    )


def _near(bank: Pure, last: Looked) -> Flags:
    """By treatment: whether any review found a third of the least evidence for a verdict, as a logarithm. Between
    reviews nothing is looked for in the others."""
    most = np.full(len(last.episodes.treatments), -np.inf)
    for look in bank.reviews:
        known = len(look.episodes.treatments)
        most[:known] = np.maximum(most[:known], np.maximum(look.found.log_help, look.found.log_harm))
    return most > COVER / 3


def _looks(task: Ints) -> Ints:
    """How many scores there are at each look."""
    at = np.unique(np.searchsorted(task, np.arange(_EVERY, int(task[-1]) + _EVERY + 1, _EVERY)))
    return at[at > 0]


def _said(own: Told, task: Ints, likely: float, least: float) -> Treatment:
    at = _looks(task)
    when, (helps, harms) = task[at - 1], both(own, at)
    said = enough(own, at)
    helping = said & (harms < likely)
    return Treatment(
        draws=len(own),
        likely=(_first(when, helping & (helps >= likely)), _first(when, said & (harms >= likely))),
        firm=(_first(when, helping & (helps >= least)), _first(when, said & (harms >= least))),
    )


def _compared(own: Told, task: Ints, adds: Floats, bank: Pure, treatment: int) -> dict[str, Any]:
    last = bank.reviews[-1]
    effects, begun = last.found.effects, last.found.begun[treatment]
    since = task >= _task(begun) if np.isfinite(begun) else np.ones(len(task), bool)
    true = float(np.average(adds[since], weights=own.scale[since]))
    return {
        "held": held(own, _looks(task), adds) and _printed(bank, treatment, task, adds, own.scale),
        "value": float(effects.estimate[treatment]),
        "true": true,
        "covers": bool(effects.low[treatment] <= true <= effects.high[treatment]),
    }


def _printed(bank: Pure, treatment: int, task: Ints, adds: Floats, scale: Floats) -> bool:
    """Whether the interval that each review printed holds what was true until then, since its own start."""
    for look in bank.reviews:
        if treatment >= len(look.episodes.treatments):
            continue
        low, high, begun = (float(of[treatment]) for of in (look.found.low, look.found.high, look.found.begun))
        use = (task <= look.task) & (task >= (_task(begun) if np.isfinite(begun) else 0))
        if (look.found.scores.group == treatment).sum() > len(task):
            continue  # it has started again since then
        if not use.any():
            continue
        true, value = float(np.average(adds[use], weights=scale[use])), float(look.found.effects.estimate[treatment])
        if not low - _LITTLE <= true <= high + _LITTLE:
            return False
        if not low - _LITTLE <= np.nan_to_num(value, nan=low) <= high + _LITTLE:
            raise AssertionError(f"a value {value} is printed outside of its interval, {low} to {high}")
    return True


def _task(at: float) -> int:
    return round((at - BEGAN.timestamp()) / 60)


def _first(when: Ints, said: np.ndarray) -> int:
    hits = np.flatnonzero(said)
    return int(when[hits[0]]) + 1 if len(hits) else NEVER


def _off(bank: Pure, last: Looked) -> float:
    """By how much the logarithms made here differ from those of the reviews, at most, on a few of each."""
    every, worst = told_by_treatment(last.episodes), 0.0
    for look in bank.reviews[len(bank.reviews) // 3 :: max(1, len(bank.reviews) // 3)]:
        rows = int(look.episodes.known.sum())
        for treatment in map(int, few(every, _FEW)[:3]):
            own = every[treatment]
            n = int(np.searchsorted(own.row, rows))
            if n and treatment < len(look.episodes.treatments) and look.found.basis == last.found.basis:
                helps, harms = both(own, np.array([n]))
                off = abs(helps[0] - look.found.log_help[treatment]), abs(harms[0] - look.found.log_harm[treatment])
                worst = max(worst, *map(float, off))
    return worst
