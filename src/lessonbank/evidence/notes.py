"""The sentences under a report: on what it rests, what is missing, and what it says beyond single effects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np

from lessonbank._base.plural import plural
from lessonbank.guard.quote import quoted

from ._e_process import gains_by_cell
from .confidence_sequences import Scores, bounds
from .effects import Estimate, points
from .episodes import Episodes
from .evidence_table import WINDOW
from .review import Review, left_out

_SHOWN = 3
"""Models that a sentence names."""
_KNOWN = 20
"""Draws, or outcomes, below which nothing is said of a model, or of outcomes that are all the same."""
_MANY = 0.1
"""Outcomes missing, as a share, from which on those that are known may not speak for all."""
NOT_COUNTED = "not count yet: an earlier recall has none"
_ELSEWHERE = (
    "recall was settled by a run of another task than it was made for",
    "recalls were settled by runs of another task than they were made for",
)


def notes(episodes: Episodes, review: Review, /) -> tuple[str, ...]:
    """What a reader must know besides the answer, one sentence each."""
    return (
        *_opinions(episodes, review),
        *_witnesses(episodes),
        *_missing(episodes, review),
        *_models(episodes, review),
        *_waiting(episodes),
        *_alike(episodes),
    )


def _opinions(episodes: Episodes, review: Review) -> Iterator[str]:
    judged = int((episodes.known & ~episodes.true).sum())
    if judged and review.acts:
        truth, opinions = plural(int((review.outcomes.weight > 0).sum()), "outcome"), plural(judged, "is", "are")
        yield f"verdicts rest on {truth} whose truth was told or drawn for; {opinions} only a judge's opinion"
    if len(episodes) and not (episodes.draws.treatment == 0).any():
        yield "no recall was ever withheld whole, so nothing is known of memory as a whole (holdout=…)"


def _witnesses(episodes: Episodes) -> Iterator[str]:
    """On whose word all this rests."""
    writers = np.unique(episodes.writer[episodes.known])
    if len(writers) > 1:
        yield (
            f"outcomes come from {plural(len(writers), 'key')}: a lesson is retired automatically only if it harms "
            "without the outcomes of each of them, and what helps waits for a person, as a proposal"
        )
    elif left_out(episodes):
        who = episodes.writers[int(writers[0])]
        yield f"all outcomes come from {who}, so all that follows waits for a person, as a proposal"


def _missing(episodes: Episodes, review: Review) -> Iterator[str]:
    """Where outcomes are missing alike on both sides, the others may yet not speak for them."""
    due, missing = int((~episodes.waiting).sum()), int(episodes.missing.sum())
    if due >= _KNOWN and missing >= _MANY * due and not review.differs[0]:
        yield f"{missing / due:.0%} of outcomes are missing: effects are those in tasks whose end was told"


def _models(episodes: Episodes, review: Review) -> Iterator[str]:
    """The models on which the agent ran: the numbers pool them all, so a reader must know what each of them says."""
    whole = review.scores.where(review.scores.group == 0)
    model = episodes.model[whole.row]
    often = np.flatnonzero(np.bincount(model[model >= 0]) >= _KNOWN)
    if len(often) < 2:
        return
    last = np.flatnonzero(episodes.model == (newest := int(episodes.model[episodes.model >= 0][-1])))[0]
    others = (episodes.model >= 0) & (episodes.model != newest)
    for_good = newest in often and not others[last:].any()
    each = ", ".join(
        f"{_of_model(whole.where(model == n))} with {quoted(name)} ({int((model == n).sum()):,} tasks)"
        for n, name in enumerate(episodes.models)
        if n in often[:_SHOWN]
    )
    to = f"{quoted(episodes.models[newest])} on {_day(float(episodes.at[last]))}"
    what = f"changed to the model {to}" if for_good else "runs on several models"
    yield f"the agent {what}: every number here pools all models. Memory as a whole: {each}"


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _of_model(scores: Scores) -> str:
    low, high = bounds(gains_by_cell(scores))
    value = float(np.clip(scores.score.sum() / scores.scale.sum(), low[0], high[0]))
    return points(Estimate(value=value, always_low=float(low[0]), always_high=float(high[0])))


def _waiting(episodes: Episodes) -> Iterator[str]:
    """Outcomes that are known and not counted yet, and those that were joined with the wrong recalls."""
    if count := int((episodes.waiting & ~np.isnan(episodes.outcome)).sum()):
        yield (
            f"{plural(count, 'outcome does', 'outcomes do')} {NOT_COUNTED}. Recalls count "
            f"in their order, and each is waited for until {WINDOW} later ones have an outcome"
        )
    if others := episodes.another_task:
        yield f"another task: {plural(others, *_ELSEWHERE)}; hand each run to learn with the recall that it used"


def _alike(episodes: Episodes) -> Iterator[str]:
    """Outcomes that are all the same: no effect can show, and something may be wrong with what is told."""
    outcomes = episodes.outcome[episodes.known]
    if len(outcomes) < _KNOWN or float(np.ptp(outcomes)) > 0.0:
        return
    words = {0.0: "outcomes are failures", 1.0: "outcomes are successes"}
    what = words.get(float(outcomes[0]), f"rewards are {outcomes[0]:g}")
    yield f"all {len(outcomes):,} {what}, so nothing can be compared: check what outcome= or reward= is told"
