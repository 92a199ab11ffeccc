"""Streams of tasks put through a ledger: draws, columns, looks and truths agree with the library's own."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pytest

from lessonbank.evidence import review
from lessonbank.evidence.confidence_sequences import outcomes, scores
from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.policy import AdaptiveHoldout, Holdout
from lessonbank.evidence.treatments import entries
from lessonbank_bench.measure.ledger import reaching
from lessonbank_bench.measure.ledger.sampling import Sampling
from lessonbank_bench.measure.streams import (
    HARM,
    HELP,
    NEVER,
    Played,
    Pure,
    Seen,
    Treatment,
    betting,
    making,
    play,
    seen,
)
from lessonbank_bench.measure.streams.playing import Come, receipt
from lessonbank_bench.measure.streams.scoring import told_by_treatment
from lessonbank_bench.measure.streams.truth import changes

MAKERS = {
    "nulls": making.nulls,
    "grouped": making.grouped_nulls,
    "mixed": making.mixed,
    "turning": making.turning,
    "hanging": making.hanging,
    "silent": making.silent,
    "judged": partial(making.judged, told=0.3),
    "opposite": making.opposite,
    "twins": making.twins,
    "poisoned": making.poisoned,
    "arriving": making.arriving,
    "wholly": making.wholly,
}


def columns(episodes: Episodes) -> dict[str, Any]:
    told = {
        f"{part}.{f.name}": getattr(getattr(episodes, part), f.name)
        for part in ("draws", "placed")
        for f in fields(getattr(episodes, part))
    }
    names = ("outcome", "true", "without", "at", "level", "turn", "treatments")
    return told | {name: getattr(episodes, name) for name in names} | {"parents": [*map(str, episodes.parents)]}


def rounded(played: Played) -> list[Any]:
    """The draws; sums are made in another order, so that the last digit of the odds may differ."""
    drawn = [(one.whole, *one.groups.values(), *one.lessons) if one else () for one in played.drawn]
    return [[(withheld, round(odds, 9)) for withheld, odds in draws] for draws in drawn]


@pytest.mark.parametrize("name", MAKERS)
def test_what_the_simulator_tells_straight_is_what_receipts_and_settlements_tell(name: str) -> None:
    stream = MAKERS[name](90, 3)
    banks = [Pure(stream, AdaptiveHoldout(seed="a"), receipts=receipts) for receipts in (False, True)]
    runs = [play(stream, bank) for bank in banks]
    np.testing.assert_array_equal(runs[0].outcome, runs[1].outcome)
    assert rounded(runs[0]) == rounded(runs[1])
    straight, kept = (columns(bank.rows.episodes()) for bank in banks)
    for name, column in straight.items():
        if name.endswith(".chance"):
            np.testing.assert_allclose(column, kept[name], atol=1e-9)
        else:
            np.testing.assert_array_equal(column, kept[name], err_msg=name)


def test_a_group_starts_again_when_a_lesson_of_it_is_taken_back_as_in_a_bank() -> None:
    stream = making.poisoned(240, 1)
    banks = [Pure(stream, Holdout(0.3, 0.1), receipts=receipts, acts=False) for receipts in (False, True)]
    for bank in banks:
        play(stream, bank)
        bank.rows.restart(["topic/1", "source/0"], 100)
    straight, kept = (columns(bank.rows.episodes()) for bank in banks)
    for name, column in straight.items():
        np.testing.assert_array_equal(column, kept[name], err_msg=name)


@pytest.mark.parametrize("name", ["nulls", "grouped", "arriving", "twins"])
def test_each_recall_tells_of_each_treatment_what_the_library_takes_from_its_receipt(name: str) -> None:
    stream = MAKERS[name](200, 4)
    played = play(stream, Pure(stream, Holdout(0.4, 0.3) if name == "nulls" else AdaptiveHoldout(), acts=False))
    for task, drawn in enumerate(played.drawn):
        if drawn is None:
            continue
        come = Come(stream, task, played.placed[task], drawn, played.shown[task], [])
        ours = {(one.treatment, one.shown, round(one.chance, 9)) for one in changes(stream, task, come.placed, drawn)}
        assert ours == {(one.treatment, one.shown, round(one.chance, 9)) for one in entries(receipt(come))}


def test_a_lesson_found_alone_learns_from_recalls_that_went_without_memory() -> None:
    stream = making.pool((0.2,), 300, 0)
    played = play(stream, Pure(stream, Holdout(0.2, 0.25)))
    told = [changes(stream, task, [0], drawn) for task, drawn in enumerate(played.drawn) if drawn]
    assert {one.treatment for ones in told for one in ones} == {"*", "lesson-0"}
    assert {round(one.chance, 9) for ones in told for one in ones} == {0.6}
    assert all(one.adds == pytest.approx(0.2) for ones in told for one in ones)
    assert 0.5 < np.mean([ones[0].shown for ones in told]) < 0.7


def test_two_policies_meet_the_same_tasks_and_luck() -> None:
    stream = making.mixed(400, 1)
    never, often = (play(stream, Pure(stream, Holdout(rate, rate), acts=False)) for rate in (0.0, 0.5))
    assert never.placed == often.placed
    differ = never.outcome != often.outcome
    assert (never.chance[differ] != often.chance[differ]).all()
    assert never.chance.mean() == pytest.approx(never.if_all_shown().mean())


@pytest.mark.parametrize(("effect", "side"), [(0.6, HELP), (-0.45, HARM)])
def test_a_large_effect_is_said_soon_and_its_interval_holds_it_at_every_look(effect: float, side: int) -> None:
    stream = making.pool((effect,), 400, 2, base=0.5 - effect / 2)
    bank = Pure(stream, Holdout(0.3, 0.2), acts=False)
    found = seen(play(stream, bank), bank)
    told = found.treatments["lesson-0"]
    assert told.likely[side] < told.firm[side] < 400
    assert told.likely[1 - side] == told.firm[1 - side] == NEVER
    assert told.held
    assert told.value == pytest.approx(effect, abs=0.2)
    assert told.true == pytest.approx(effect)
    assert found.off < 0.05


def test_the_looks_between_reviews_say_what_the_reviews_say() -> None:
    stream = making.mixed(700, 5)
    bank = Pure(stream, AdaptiveHoldout())
    found = seen(play(stream, bank), bank)
    for look in bank.reviews:
        for treatment, word in zip(look.episodes.treatments, look.found.standing, strict=True):
            if word == "likely harms":
                assert found.treatments[treatment].likely[HARM] <= look.task + 1
    assert found.off < 0.05


@pytest.mark.parametrize("name", MAKERS)
def test_the_simulators_own_scores_and_limits_are_those_of_the_ledger(name: str) -> None:
    stream = MAKERS[name](150, 6)
    bank = Pure(stream, AdaptiveHoldout(seed="a"))
    play(stream, bank)
    bank.review()
    episodes = bank.reviews[-1].episodes
    theirs, parts = scores(episodes, outcomes(episodes)), ("row", "shown", "score", "scale", "lowest", "highest")
    theirs = theirs.where(theirs.weight > 0)
    for treatment, own in enumerate(told_by_treatment(episodes)):
        for part in parts:
            made = getattr(theirs.where(theirs.group == treatment), part)
            np.testing.assert_allclose(getattr(own, part), made, atol=1e-12, err_msg=part)
    np.testing.assert_allclose(betting.likely_from(episodes), review.likely_from(episodes))
    np.testing.assert_allclose(betting.shown_from(episodes), review.shown_from(episodes))


def test_a_run_that_hangs_fails_and_nobody_hears_of_it() -> None:
    stream = making.hanging(1500, 0)
    bank = Pure(stream, Holdout(0.1, 0.1), acts=False)
    played = play(stream, bank)
    episodes = bank.rows.episodes()
    shown = np.array([0 in one for one in played.shown])
    assert 1 - episodes.known.mean() == pytest.approx(0.3 * shown.mean(), abs=0.04)
    assert played.outcome[shown].mean() == pytest.approx(0.35, abs=0.08)
    assert "lesson-0" in seen(played, bank).differing


def test_a_judge_who_likes_memory_says_so_and_the_truth_is_told_of_some() -> None:
    stream = making.judged(800, 0, told=0.3)
    bank = Pure(stream, Holdout(0.1, 0.3), acts=False)
    play(stream, bank)
    episodes = bank.rows.episodes()
    bare = episodes.without
    opinion = ~episodes.true
    assert episodes.outcome[~bare & opinion].mean() - episodes.outcome[bare & opinion].mean() > 0.05
    assert episodes.true.mean() == pytest.approx(0.3, abs=0.06)


def test_lessons_arrive_one_by_one_and_are_found_for_tasks_of_their_topic_only() -> None:
    stream = making.arriving(300, 0)
    assert len(stream.lessons) == 300
    assert not stream.placed(0)
    for task in range(300):
        placed = stream.placed(task)
        assert all(n < task for n in placed)
        assert {stream.lessons[n].groups[1] for n in placed} <= {f"topic/{stream.template[task]}"}
    worth = making.topic_effects(25, 0)
    assert [int((worth == size).sum()) for size in (0.2, 0.0, -0.2)] == [10, 7, 8]


# --- the rows ---------------------------------------------------------------------------------------------------------


def told(**treatments: Treatment) -> Seen:
    return Seen(treatments=treatments, out={}, lost=0.1, bare=0.1, given_up=0.01, lift=np.array([0.1] * 6))


def test_a_false_verdict_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    calm, wild = (
        Treatment(draws=300, firm=(when, NEVER), likely=(when, NEVER), value=0.0, true=0.0) for when in (NEVER, 80)
    )
    for treatment, holds in ((calm, True), (wild, False)):
        monkeypatch.setattr(
            reaching, "runs", lambda *_, treatment=treatment, **__: [told(**{"*": calm, "lesson-1": treatment})] * 4
        )
        rows = {row.claim: row.holds for row in reaching.nothing(Sampling())}
        assert all(held == holds for claim, held in rows.items() if "any false" in claim or "a lesson ever" in claim)


def test_an_interval_that_leaves_the_truth_and_a_late_verdict_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Treatment(draws=300, likely=(2999, 2999), held=False, value=0.2, true=0.0)
    one = told(**{"*": late} | {f"lesson-{n}": late for n in range(6)})
    monkeypatch.setattr(reaching, "runs", lambda *_, **__: [one] * 4)
    missed = "\n".join(row.claim for row in reaching.effects(Sampling()) if not row.holds)
    assert "by 1,000 tasks" in missed
    assert "hold the truth at every look" in missed
    assert "by 3,000" not in missed


OFTEN = "effects"
"""The part that runs often; the others run in the longest set."""


@pytest.mark.full
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=() if part == OFTEN else pytest.mark.release) for part in reaching.PARTS]
)
def test_each_part_gives_its_rows_on_one_run(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = reaching.runs
    monkeypatch.setattr(reaching, "runs", lambda make, seeds, **more: runs(make, seeds[:1], **more))
    rows = reaching.PARTS[part](Sampling(0.0001))
    assert rows
    assert all(row.on and row.claim for row in rows)
