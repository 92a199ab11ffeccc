"""A loop that draws its lessons from runs a judge gets wrong three times in ten: how much success that gives up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lessonbank.evidence.review import Review as Found
from lessonbank.evidence.review import review
from lessonbank_bench.measure.simulator import Episodes, Minted, Minting, Review, Standing, mint, pruning

from .sampling import Sampling, told
from .table import Row, averaged

Floats, Flags = NDArray[np.float64], NDArray[np.bool_]
_SEEDS, _EPISODES, _EVERY, _FLIPS, _CONTROL = 5, 20_000, 200, 0.3, 0.02
_DOUBT = 1.0
"""A lesson gives up its room to a new one when its expected effect is so many of its standard deviations below zero."""
Loop = Callable[..., Minted]
Pair = tuple[Floats, Floats]
"""Lifts with perfect labels, and with flipped ones."""


def rows(sampling: Sampling, /) -> list[Row]:
    """What each loop gives up against itself with perfect labels, in points of success in the last quarter."""
    seeds, episodes = sampling.seeds(_SEEDS), sampling.size(_EPISODES)
    play = partial(mint, episodes=episodes, every=_EVERY)
    on = f"{told(seeds)}, {episodes} episodes, the last quarter counts; room for 8 lessons in each of 5 families"
    naive, bound, counting = (
        _both(seeds, loop) for loop in (play, partial(play, oracle=True), partial(play, review=pruning()))
    )
    arms = (("naive loop", _lost(naive)), ("bound: what harms is never taken in", _lost(bound)))
    made = [
        _row("30 % of labels flipped: success given up by a naive loop", naive, on=on, least=8.0),
        _row("… by one that counts and prunes", counting, on=on),
    ]
    for start, shares in ((0.1, (0.0, 0.1, 0.2)), (0.3, (0.0, 0.2))):
        loop = partial(play, review=_ledger(start), start=Standing.of(1, withhold=start, control=_CONTROL))
        clean = _lifts(seeds, loop, flips=0.0)
        for share in shares:
            pair = clean, _lifts(seeds, loop, flips=_FLIPS, audited=share)
            claim = f"… by the ledger, {share:.0%} of labels checked, {start:.0%} withheld at first"
            made.append(_row(claim, pair, on=on, most=3.0, beside=arms))
    return [*made, power(episodes)]


def power(episodes: int, /) -> Row:
    """How many recalls of a lesson would show its effect at one look, level 95 %, power 80 %: (2.8 / effect)² times the
    variance of an outcome over e (1 - e). Flipped labels move by 1 - 2 × 30 % of what outcomes do."""
    terms = Minting()
    places = terms.candidates * episodes / (terms.families * terms.room)

    def needed(moves: float, withheld: float) -> float:
        return (2.8 / (terms.size * moves)) ** 2 * 0.25 / (withheld * (1 - withheld))

    flipped = 1 - 2 * _FLIPS
    return Row(
        claim=f"… bound: recalls that show a lesson's {100 * terms.size:g} points by flipped labels, 10 % withheld",
        value=needed(flipped, 0.1),
        unit="",
        on="a power calculation; no seed",
        beside=(
            ("half withheld", needed(flipped, 0.5)),
            ("perfect labels, 10 % withheld", needed(1.0, 0.1)),
            ("recalls a lesson gets in the whole stream", places),
        ),
    )


def _row(claim: str, pair: Pair, /, *, on: str, beside: tuple[tuple[str, float], ...] = (), **bound: float) -> Row:
    clean, flipped = pair
    own = ("lift with perfect labels", float(clean.mean())), ("with flipped ones", float(flipped.mean()))
    return averaged(claim, clean - flipped, on=on, by=1.0, unit=" points", beside=(*beside, *own), **bound)


def _both(seeds: range, loop: Loop) -> Pair:
    return _lifts(seeds, loop, flips=0.0), _lifts(seeds, loop, flips=_FLIPS)


def _lost(pair: Pair) -> float:
    return float((pair[0] - pair[1]).mean())


def _lifts(seeds: range, loop: Loop, /, *, flips: float, audited: float = 0.0) -> Floats:
    """Points of success above the same tasks without memory, seed by seed."""
    return 100 * np.array([_lift(loop(seed, flips=flips, audited=audited if flips else 0.0)) for seed in seeds])


def _lift(minted: Minted) -> float:
    return minted.success() - minted.without()


def _ledger(start: float) -> Review:
    def follow(episodes: Episodes) -> Standing:
        found = review(episodes.as_evidence())
        said = np.array(found.standing[1:])
        withhold = np.select([np.isin(said, ("likely harms", "harms")), said == "helps"], [0.5, 0.05], start)
        return Standing(withhold, _CONTROL, (said == "harms") & found.acts | _doubtful(found))

    return follow


def _doubtful(found: Found) -> Flags:
    """What a bank of bounded size gives up first: what is expected to do harm."""
    return found.expected.mean[1:] < -_DOUBT * found.expected.spread[1:]
