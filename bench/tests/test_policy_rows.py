"""The simulated banks of the policy: they play as a real bank does, and a few of them show what the table says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Parts, Run, Trajectory
from lessonbank.evidence import AdaptiveHoldout, Holdout
from lessonbank.evidence.evidence_table import EvidenceTable
from lessonbank.evidence.review import review
from lessonbank_bench.measure import null_banks
from lessonbank_bench.measure.policy import effects, from_docs, nulls, table
from lessonbank_bench.measure.policy.drive import Bank, Played, like, settlement
from lessonbank_bench.measure.policy.world import End, Told, World


def played(*worlds: World) -> list[Played]:
    """What the default makes of some banks."""
    return [Bank(lambda seed: AdaptiveHoldout(seed=seed), f"{world.seed}").play(world) for world in worlds]


async def no_lessons(_attempts: Sequence[Run], /) -> Extraction:
    return Extraction()


def test_the_simulated_bank_draws_and_reviews_as_a_real_one() -> None:
    world, simulated = effects.FirstTasks(seed=1, tasks=60), EvidenceTable()
    parts, evidence = Parts(extractor=no_lessons), Evidence(holdout=Holdout(0.3, 0.3, seed="s"), act=False)
    with lessonbank.connect(":memory:", scope="s", embedder="lexical", evidence=evidence, parts=parts) as bank:
        lessons = [lessonbank.Lesson(title=title, content=f"{title} it first.") for title in ("Weigh", "Pack")]
        bank.consolidate(lessonbank.Experience(scope="s", task="cancel order", lessons=tuple(lessons)))
        for number in range(world.tasks):
            recall = bank.retrieve(world.ask().task)
            (told,) = world.end([f"l{n}" for n, _ in enumerate(recall.shown)]).told
            simulated.receipt(recall)
            made = settlement(Told(number, told.value), "s", recall.created_at)
            simulated.settle(like(made, recall_id=recall.id))
            bank.learn(Trajectory(task=recall.task, answer="done"), recall=recall, reward=told.value)
            world.at += 1
        lift, found = bank.lift(), review(simulated.episodes())
    assert lift.success.value == pytest.approx(float(found.effects.estimate[0]))
    assert (lift.success.always_low, lift.success.always_high) == (float(found.low[0]), float(found.high[0]))
    assert lift.standing == found.standing[0]


def test_two_policies_meet_the_same_tasks_and_luck() -> None:
    never, often = (Bank(lambda _, rate=rate: Holdout(rate, rate), "s").play(nulls.Drift(3, 60)) for rate in (0.0, 0.4))
    assert (never.chance, never.asked) == (often.chance, often.asked)
    assert never.shown != often.shown


def test_what_is_told_late_is_settled_late_and_what_harms_is_not_found_any_more() -> None:
    class Late(World):
        def end(self, shown: Sequence[str]) -> End:
            return End(0.5, 0.5, (Told(self.at, float(not shown), after=30.0),))

    bank = Bank(lambda _: Holdout(0.0, 0.5), "s")
    made = bank.play(Late(1, tasks=150, effects=(-0.9,)))
    assert made.retired["l0"] >= 50
    assert made.asked[-1] is False


def test_the_first_tasks_get_a_lesson_more_often_than_the_guide_says() -> None:
    nothing = played(
        *(world(seed) for seed in range(6) for world in (short(nulls.OneTopicOne), short(nulls.OneTopicTwo)))
    )
    helps = played(*(short(effects.FirstTasks)(seed) for seed in range(12)))
    assert fmean(bank.empty(0, 60) for bank in nothing) <= 0.2
    assert fmean(bank.empty(0, 60) for bank in helps) <= 0.17


def short(world: Callable[..., World], /) -> Callable[[int], World]:
    """Its first 60 tasks."""
    return partial(world, tasks=60)


@pytest.mark.full
def test_a_lesson_that_is_less_near_and_helps_takes_the_place_of_one_that_harms() -> None:
    banks = played(*(effects.Nearer(seed, tasks=200) for seed in range(10)))
    assert sum(any("l1" in shown for shown in bank.shown[:30]) for bank in banks) >= 9
    assert fmean("l1" in shown for bank in banks for shown in bank.shown[100:]) > 0.5


@pytest.mark.full
def test_a_good_lesson_is_found_among_three_that_are_less_near_than_one_that_harms() -> None:
    banks = played(*(effects.NearerOfFour(seed, tasks=30) for seed in range(20)))
    assert sum(any("l1" in shown for shown in bank.shown) for bank in banks) >= 16  # before: about 12


@pytest.mark.full
def test_a_lesson_that_turns_is_retired_and_what_does_nothing_is_not() -> None:
    (bank,) = played(effects.Turning(2))
    assert list(bank.retired) == ["l0"]
    assert 1000 < bank.retired["l0"] < 4000


@pytest.mark.parametrize("world", table.NULLS)
def test_every_world_without_an_effect_can_be_played_and_says_nothing_false_at_first(world: type[World]) -> None:
    (bank,) = played(short(world)(0))
    assert len(bank.shown) == 60
    assert not bank.false_words
    assert bank.chance == bank.bare


def test_the_table_says_shares_with_their_intervals() -> None:
    assert table.share(0, 100) == "0% [0, 4]"
    assert table.when([10.0, 20.0, float("inf")]) == "67% [21, 94] (median 20)"
    assert table.mean([1.0, 3.0]) == "+2.00 ± 1.00"
    banks = played(short(from_docs.FirstDay)(1))
    assert table.first(banks).startswith("without any lesson: tasks 1-30 ")


def test_the_row_of_a_single_bank_has_no_error() -> None:
    world = replace(null_banks.ROWS["graded"], tasks=80)
    only = null_banks.one_bank(1, name="graded", world=world, real=False)
    assert "± nan" in null_banks.row("graded", [only])
