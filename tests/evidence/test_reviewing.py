"""What the bank says of memory, of groups and of lessons is true as often as it claims, and says on what it rests."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import SEEDS, episodes

from lessonbank.evidence._e_process import gains_by_cell
from lessonbank.evidence.confidence_sequences import log_e, outcomes, scores
from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.evidence_table import rows_that_wait
from lessonbank.evidence.report import report
from lessonbank.evidence.review import ALPHA, likely_from, review, shown_from
from lessonbank.evidence.stored_ledger import treatment_reviews

pytestmark = pytest.mark.full

SAID = ("helps", "harms", "likely helps", "likely harms")


def played(
    seed: int, *, n: int, effects: tuple[float, ...], lift: float = 0.0, held: float = 0.4, whole: float = 0.3
) -> Episodes:
    """Every lesson is found alone, one after the other, and its draw counts apart from that of the whole."""
    g = np.random.default_rng(seed)
    lesson = np.arange(n) % max(len(effects), 1)
    withheld, control = g.random(n) < held, g.random(n) < whole
    rate = 0.5 + np.where(control, 0.0, lift + np.array(effects)[lesson] * ~withheld)
    return episodes(
        (g.random(n) < rate).astype(float),
        control=control,
        control_probability=whole,
        cluster=g.integers(0, 30, n),
        lessons=lesson[:, None],
        withheld=withheld,
        probability=held,
        names=len(effects),
    )


def test_lessons_that_harm_and_help_are_told_from_those_that_do_nothing() -> None:
    told = review(played(0, n=6000, effects=(0.3, 0.0, -0.3, 0.0)))
    assert told.standing[1:] == ("helps", "no evidence yet", "harms", "no evidence yet")
    assert told.expected.mean[1:] == pytest.approx([0.3, 0.0, -0.3, 0.0], abs=0.1)
    assert told.acts


def test_there_are_two_grades_and_the_second_needs_more_the_more_lessons_there_are() -> None:
    one = played(1, n=6000, effects=(0.3, 0.0))
    at = [review(replace(one, outcome=np.where(np.arange(6000) < n, one.outcome, np.nan))) for n in range(0, 3000, 100)]
    words = [told.standing[1] for told in at]
    assert [word for n, word in enumerate(words) if word not in words[:n]] == [
        "no evidence yet",
        "likely helps",
        "helps",
    ]
    assert all(
        (told.log_help[1] >= likely_from(one)[1]) == (word != "no evidence yet")
        for told, word in zip(at, words, strict=True)
    )


def test_all_false_verdicts_together_are_bounded_though_lessons_never_stop_coming() -> None:
    many = 200_000
    one = episodes(np.empty(0), lessons=np.empty((0, 1), np.int64), names=many, groups=(0, 1, 2))
    one = replace(one, level=np.repeat([0, 1, 2], [1, 3, many]), turn=np.r_[0, np.arange(3), np.arange(many)])
    spent = 2 * np.exp(-shown_from(replace(one, treatments=("*",) * (many + 4))))
    assert spent.sum() <= ALPHA
    assert spent.sum() > 0.03
    assert (np.diff(spent[4:]) < 0).all()


@pytest.mark.release
def test_a_bank_without_effects_prints_hardly_ever_a_verdict_however_often_one_looks() -> None:
    likely, wrong, runs, names = 0, 0, 40, 10
    for seed in range(runs):
        one = played(seed, n=1500, effects=(0.0,) * names, held=0.2, whole=0.1)
        words = [
            review(replace(one, outcome=np.where(np.arange(1500) < n, one.outcome, np.nan))).standing
            for n in range(100, 1501, 100)
        ]
        likely += sum(any(told[treatment] != "no evidence yet" for told in words) for treatment in range(names + 1))
        wrong += any(word in ("helps", "harms") for told in words for word in told)
    assert wrong <= 2
    assert likely <= 0.015 * runs * names


@given(SEEDS, st.integers(1, 300), st.sampled_from([(0.4, 0.0, -0.4), (0.0,), (-0.9,)]), st.floats(0.0, 1.0))
def test_a_value_lies_in_its_interval(seed: int, n: int, effects: tuple[float, ...], told: float) -> None:
    one, g = played(seed, n=n, effects=effects), np.random.default_rng(seed + 1)
    said = np.where(g.random(n) < 0.8, one.outcome, 1 - one.outcome)
    true, drawn = g.random(n) < told, g.random(n) < 0.5
    one = replace(one, outcome=np.where(true, one.outcome, said), judged=said, true=true)
    if n % 2:
        one = replace(one, audit_odds=np.where(true & ~drawn, np.nan, 0.5), audited=drawn)
    found = review(one)
    seen = np.isfinite(found.effects.estimate)
    for low, high in ((found.low, found.high), (found.effects.low, found.effects.high)):
        assert (low[seen] <= found.effects.estimate[seen] + 1e-9).all()
        assert (high[seen] >= found.effects.estimate[seen] - 1e-9).all()


def flattered(seed: int, *, n: int, told: float, effect: float = 0.0) -> Episodes:
    """A judge that likes runs with memory, and the truth of a random share."""
    g = np.random.default_rng(seed)
    control = g.random(n) < 0.3
    truth = (g.random(n) < 0.5 + np.where(control, 0.0, effect)).astype(float)
    chance = np.where(control, np.where(truth > 0, 0.85, 0.15), np.where(truth > 0, 0.95, 0.35))
    said, true = (g.random(n) < chance).astype(float), g.random(n) < told
    outcome = np.where(true, truth, said)
    return episodes(
        outcome, control=control, control_probability=0.3, true=true, judged=said, cluster=np.arange(n) % 40
    )


class TestOpinions:
    def test_a_judge_that_likes_memory_makes_no_verdict_where_the_truth_is_told(self) -> None:
        for seed in range(5):
            found = report(flattered(seed, n=3000, told=0.3), scope="t")
            assert found.success.basis == "truth"
            assert found.standing == "no evidence yet"
            assert abs(found.success.value or 1.0) < 0.15

    def test_where_only_a_judge_spoke_everything_is_by_the_judge_and_nothing_acts(self) -> None:
        one = flattered(1, n=3000, told=0.0)
        found = report(one, scope="t")
        assert (found.standing, found.success.basis) == ("helps", "judge")
        assert "by the judge" in str(found).splitlines()[0]
        assert "Nothing is retired or trusted because of them" in str(found)
        told = review(one)
        assert (told.acts, told.is_shown(0, "helps")) == (False, False)

    def test_runs_that_broke_are_no_random_part_of_the_truth(self) -> None:
        estimates = []
        for seed in range(30):
            g = np.random.default_rng(seed)
            control, broke = g.random(3000) < 0.5, g.random(3000) < 0.3
            truth = np.where(broke, 0.0, g.random(3000) < np.where(control, 0.3, 0.7))
            true = broke | (g.random(3000) < 0.2)
            said = np.where(g.random(3000) < 0.9, truth, 1 - truth)
            one = episodes(np.where(true, truth, said), control=control, control_probability=0.5, true=true)
            one = replace(one, broke=broke, judged=np.where(broke, np.nan, said))
            estimates.append(review(one).effects.estimate[0])
        assert np.mean(estimates) == pytest.approx(0.7 * 0.4, abs=0.04)


def audited(seed: int, *, effect: float, odds: float = 0.2, n: int = 2000) -> Episodes:
    one, g = flattered(seed, n=n, told=1.0, effect=effect), np.random.default_rng(seed + 1)
    drawn = g.random(n) < odds
    outcome = np.where(drawn, one.outcome, one.judged)
    return replace(one, outcome=outcome, true=drawn, audited=drawn, audit_odds=np.full(n, odds))


class TestAudit:
    @pytest.mark.parametrize("effect", [0.0, 0.2])
    def test_labels_that_were_drawn_put_a_fooled_judge_right(self, effect: float) -> None:
        told = [review(audited(seed, effect=effect)) for seed in range(40)]
        values = np.array([one.effects.estimate[0] for one in told])
        assert abs(values.mean() - effect) < 3.5 * values.std() / math.sqrt(len(values))
        assert {one.basis for one in told} == {"truth and judge"}
        assert np.mean([one.low[0] <= effect <= one.high[0] for one in told]) >= 0.95
        assert np.mean([one.effects.low[0] <= effect <= one.effects.high[0] for one in told]) >= 0.85

    def test_opinions_beside_drawn_labels_make_the_estimate_surer(self) -> None:
        one = audited(3, effect=0.2)
        alone = replace(one, outcome=np.where(one.true, one.outcome, np.nan), audit_odds=np.full(len(one), np.nan))
        assert review(one).effects.spread[0] < 0.9 * review(alone).effects.spread[0]

    def test_an_audit_of_which_no_label_came_yet_leaves_it_to_the_judge(self) -> None:
        one = audited(4, effect=0.0)
        unlabelled = replace(one, true=np.zeros(2000, np.bool_), audited=np.zeros(2000, np.bool_))
        assert review(unlabelled).basis == "judge"

    def test_a_label_that_nobody_drew_moves_no_verdict(self) -> None:
        one = audited(5, effect=0.0)
        chosen = ~one.audited & ~one.without
        other = replace(one, true=one.true | chosen, outcome=np.where(chosen, 1.0, one.outcome))
        assert review(other).effects.estimate[0] == review(one).effects.estimate[0]


def hanging(seed: int, *, n: int = 1500, hangs: float = 0.3) -> Episodes:
    """The first of two lessons hangs a part of its runs: their outcome is never known."""
    g = np.random.default_rng(seed + 100)
    one = played(seed, n=n, effects=(0.0, 0.0), held=0.3, whole=0.1)
    shown = np.zeros(n, np.bool_)
    shown[one.placed.row[(one.placed.treatment == 1) & one.placed.shown]] = True
    outcome = np.where(shown & (g.random(n) < hangs), np.nan, one.outcome)
    return replace(one, outcome=outcome, at=np.arange(n, dtype=float))


class TestMissing:
    def test_a_lesson_that_hangs_its_runs_has_no_verdict_and_a_policy_goes_by_nothing(self) -> None:
        one = hanging(1)
        found = review(one)
        assert found.differs.tolist() == [True, True, False]
        assert found.standing[1] == "no evidence yet"
        assert treatment_reviews(one, found)["lesson 0"].expected == 0.0

    def test_where_memory_decides_what_is_reported_there_is_no_verdict_on_memory(self) -> None:
        one, g = played(2, n=3000, effects=(0.0,)), np.random.default_rng(102)
        gone = ~one.without & (one.outcome < 0.5) & (g.random(3000) < 0.5)
        one = replace(one, outcome=np.where(gone, np.nan, one.outcome), at=np.arange(3000.0))
        found = report(one, scope="t")
        assert found.standing == "no evidence yet"
        assert found.success.value is not None and found.success.value > 0.1
        assert str(found).startswith("Does memory help? No verdict: outcomes are missing for ")

    def test_a_verdict_that_holds_however_the_missing_ones_ended_is_said(self) -> None:
        one, g = played(2, n=3000, effects=(0.0,), lift=0.3), np.random.default_rng(102)
        gone = ~one.without & (one.outcome < 0.5) & (g.random(3000) < 0.5)
        found = report(replace(one, outcome=np.where(gone, np.nan, one.outcome)), scope="t")
        assert (found.standing, found.missing_differs) == ("helps", False)

    def test_outcomes_that_go_missing_by_chance_or_are_not_due_yet_withhold_nothing(self) -> None:
        one, g = played(3, n=2000, effects=(0.4,)), np.random.default_rng(103)
        fair = np.where(g.random(2000) < 0.4, np.nan, one.outcome)
        late = np.where(np.arange(2000) >= 1985, np.nan, one.outcome)
        for outcome in (fair, late):
            assert review(replace(one, outcome=outcome, at=np.arange(2000.0))).standing[1] == "helps"


class TestTime:
    def test_a_lesson_that_turns_is_found_to_harm_since_then(self) -> None:
        found = 0
        for seed in range(8):
            g, n = np.random.default_rng(seed), 4000
            withheld = g.random((n, 1)) < 0.2
            effect = np.where(np.arange(n) < 1000, 0.25, -0.25)
            outcome = (g.random(n) < 0.5 + effect * ~withheld[:, 0]).astype(float)
            at = 1e9 + np.arange(n)
            one = episodes(
                outcome, lessons=np.zeros((n, 1), np.int64), withheld=withheld, probability=0.2, names=1, at=at
            )
            told = review(one)
            found += told.standing[1] == "harms"
            assert told.begun[1] > 1e9 + 600
            assert told.effects.estimate[1] < -0.12
            assert told.expected.mean[1] < -0.08  # by the last draws alone, so it is drawn further to zero
            assert told.high[1] < 0
        assert found == 8
        assert report(one, scope="t").lessons[0].since is not None

    def test_a_lesson_that_harms_from_the_first_has_no_since(self) -> None:
        told = review(replace(played(6, n=3000, effects=(-0.3,)), at=np.arange(3000.0)))
        assert told.standing[1] == "harms"
        assert math.isnan(told.begun[1])


def test_a_group_is_estimated_as_one_and_its_lessons_lean_on_it() -> None:
    g, n, many = np.random.default_rng(7), 3000, 40
    lesson = g.integers(0, many, (n, 1))
    groups = tuple(k % 2 for k in range(many))
    gone = g.random(n) < 0.3
    outcome = (g.random(n) < 0.5 + np.where(gone, 0.0, np.where(lesson[:, 0] % 2 == 1, 0.25, -0.25))).astype(float)
    one = episodes(outcome, lessons=lesson, names=many, groups=groups, group_withheld=gone, group_probability=0.3)
    told = review(one)
    assert told.standing[many + 1 :] == ("harms", "helps")
    assert told.expected.mean[many + 1 :] == pytest.approx([-0.25, 0.25], abs=0.08)
    assert told.expected.mean[1 : many + 1] == pytest.approx(
        [told.expected.mean[many + 1 + one] for one in groups], abs=0.06
    )
    found = report(one, scope="t", names={"group/0": "Refunds"})
    assert [(i.group, i.name, i.standing, i.lessons) for i in found.groups] == [
        ("group/0", "Refunds", "harms", 20),
        ("group/1", "", "helps", 20),
    ]
    assert "20 lessons, take out: harms: Refunds" in str(found)


def test_what_a_worthless_judge_says_takes_nothing_back() -> None:
    one, g = played(5, n=3000, effects=(0.4, 0.0)), np.random.default_rng(105)
    said = np.where(g.random(3000) < 0.9, 1.0 - one.outcome, one.outcome)
    true = g.random(3000) < 0.1
    told = review(replace(one, outcome=np.where(true, one.outcome, said), judged=said, true=true))
    assert "harms" not in told.standing


@given(SEEDS)
def test_treatments_that_were_never_drawn_are_unknown(seed: int) -> None:
    one = played(seed, n=40, effects=(0.1,))
    more: dict[str, Any] = {
        "treatments": (*one.treatments, "never"),
        "level": np.r_[one.level, 2],
        "turn": np.r_[one.turn, 1],
    }
    told = review(replace(one, **more, parents=(*one.parents, ())))
    assert (told.standing[-1], told.low[-1], told.high[-1]) == ("no evidence yet", -1.0, 1.0)
    assert math.isnan(told.effects.estimate[-1])


def late(seed: int, *, n: int = 1_500, kind: float = 0.0, halved: bool = True, effect: float = 0.0) -> Episodes:
    """Outcomes of one kind come late by 200 tasks on average, with memory after half of that; looked at after `n`."""
    g = np.random.default_rng(seed)
    off = g.random(n) < 0.3
    outcome = (g.random(n) < 0.5 + effect * ~off).astype(float)
    delay = np.where(outcome == kind, g.exponential(np.where(off | (not halved), 200.0, 100.0)), 0.0)
    told = np.where(np.arange(n) + delay < n, outcome, np.nan)
    made = episodes(told, control=off, control_probability=0.3, at=60.0 * np.arange(n))
    return replace(made, waiting=rows_that_wait(~np.isnan(told), np.ones(n, np.bool_)))


class TestLateness:
    @pytest.mark.parametrize("kind", [0.0, 1.0])
    def test_outcomes_that_come_later_without_memory_make_no_evidence(self, kind: float) -> None:
        """Failures that come later without memory are missing there, so what has come looks as if memory harmed."""
        sums = np.zeros(2)
        for seed in range(20):
            one = late(seed, kind=kind)
            found = review(one)
            naive = gains_by_cell(scores(one, outcomes(replace(one, waiting=np.zeros(len(one), np.bool_)))))
            side = kind == 1.0
            plain = log_e(naive, helps=side)[0]
            seen = (found.log_help if side else found.log_harm)[0]
            sums += plain, seen
            assert found.low[0] <= 0.0 <= found.high[0]
        assert sums[0] > sums[1] + 10

    def test_an_effect_is_found_though_outcomes_come_late(self) -> None:
        words = [review(late(seed, effect=0.3)).standing[0] for seed in range(5)]
        assert words == ["helps"] * 5

    def test_a_verdict_holds_whichever_way_the_missing_outcomes_would_have_gone(self) -> None:
        g = np.random.default_rng(1)
        off = g.random(2_000) < 0.3
        outcome = (g.random(2_000) < 0.5 + 0.2 * ~off).astype(float)
        lost = g.random(2_000) < np.where(off, 0.0, 0.5) * (outcome == 0)  # failures with memory are not told
        one = episodes(np.where(lost, np.nan, outcome), control=off, control_probability=0.3)
        apart = [review(replace(one, outcome=np.where(lost, fill, outcome))) for fill in (0.0, 1.0)]
        found = review(one)
        assert found.log_help[0] <= min(each.log_help[0] for each in apart) + 1e-9
        assert found.low[0] <= min(each.low[0] for each in apart) + 1e-9
        assert found.high[0] >= max(each.high[0] for each in apart) - 1e-9

    def test_what_one_look_counted_the_next_one_counts_alike_when_the_rest_is_told(self) -> None:
        """Where all that is missing are failures, the evidence is never above that of the whole truth."""
        one = late(3, effect=0.1)
        g = np.random.default_rng(3)
        off = g.random(1_500) < 0.3
        truth = (g.random(1_500) < 0.5 + 0.1 * ~off).astype(float)
        whole = replace(one, outcome=np.where(~one.waiting, truth, np.nan))
        part, full = review(one), review(whole)
        assert part.log_help[0] <= full.log_help[0] + 1e-9
        assert part.log_harm[0] <= full.log_harm[0] + 1e-9
