"""The simulator: what is planted is what comes up, what is told obeys the contract, seeds reproduce."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import anyio
import numpy as np
import pytest

from lessonbank.contracts.store_calls import every_recall, settlement_of
from lessonbank_bench.measure import simulator as sim
from lessonbank_bench.measure.simulator import Episodes
from lessonbank_bench.measure.simulator.__main__ import main, ranked

LARGE = 300_000 if "LESSONBANK_SOAK" in os.environ else 120_000


def columns(episodes: Episodes) -> dict[str, np.ndarray]:
    """Every column of rows and pairs."""
    told = {f.name: getattr(part, f.name) for part in (episodes, episodes.pairs) for f in fields(part)}
    return {name: column for name, column in told.items() if isinstance(column, np.ndarray)}


def busy(**more: Any) -> Any:
    """A world with everything in it at once."""
    return sim.World.draw(
        3,
        conditional=0.1,
        paired=0.2,
        scatter=sim.Scatter(templates=6, tasks=2, difficulty=0.1, effects=0.05),
        fresh=0.5,
        drift=0.1,
        judge=sim.Judging(false_success=0.2, false_failure=0.1, bare_false_success=0.05, audited=0.25),
        silence=sim.Silence(success=0.1, failure=0.3),
        **more,
    )


def test_a_seed_gives_the_same_episodes_again_and_another_seed_others() -> None:
    one, same, other = (sim.simulate(busy(), 3000, withhold=0.2, control=0.1, seed=s) for s in (1, 1, 2))
    for name, column in columns(one).items():
        np.testing.assert_array_equal(column, columns(same)[name], err_msg=name)
    assert not np.array_equal(one.pairs.lesson[:100], other.pairs.lesson[:100])


def test_the_columns_obey_the_contract() -> None:
    world, odds = busy(), np.linspace(0.05, 0.6, 30)
    told = sim.simulate(world, 5000, withhold=odds, control=0.1, seed=1)
    pairs, kinds = told.pairs, {name: column.dtype.kind for name, column in columns(told).items()}
    assert {name for name, kind in kinds.items() if kind == "b"} == {"true", "control", "withheld", "cited"}
    assert {name for name, kind in kinds.items() if kind == "i"} == {"judge", "cluster", "row", "lesson"}
    assert len(told) == 5000
    assert len(pairs) == 4 * 5000
    assert (np.diff(pairs.row) >= 0).all()
    assert len(set(zip(pairs.row.tolist(), pairs.lesson.tolist(), strict=True))) == len(pairs)
    np.testing.assert_array_equal(pairs.probability, odds[pairs.lesson])
    assert (told.control_probability == 0.1).all()
    known = told.known
    assert (np.diff(known.astype(int)) <= 0).all(), "rows without an outcome come last"
    assert not told.true[~known].any()
    assert np.isnan(told.judged[~known]).all()
    assert (told.judge[~known] == -1).all()
    assert not pairs.cited[pairs.withheld | told.control[pairs.row] | ~known[pairs.row]].any()
    assert (np.diff(told.at[known]) > 0).all()


def test_draws_come_with_the_probability_that_is_recorded() -> None:
    odds = np.linspace(0.05, 0.6, 30)
    told = sim.simulate(busy(), 60_000, withhold=odds, control=0.2, seed=5)
    times = np.bincount(told.pairs.lesson, minlength=30)
    share = np.bincount(told.pairs.lesson, weights=told.pairs.withheld, minlength=30) / times
    assert (abs(share - odds) < 4.5 * np.sqrt(odds * (1 - odds) / times)).all()
    assert told.control.mean() == pytest.approx(0.2, abs=0.008)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["plain", "everything"])
def test_the_truth_is_what_a_large_randomised_sample_shows(kind: str) -> None:
    """Outcomes alone, compared by draw, must come out at the planted answer: within 4.5 standard errors each."""
    world = sim.World.credit(2) if kind == "plain" else replace(busy(), judge=None, silence=sim.Silence())
    odds = np.linspace(0.2, 0.6, 30)
    told, answer = sim.simulate(world, LARGE, withhold=odds, control=0.3, seed=7), sim.truth(world, withhold=odds)
    pairs = told.pairs
    heard = ~told.control[pairs.row]
    lesson, gone = pairs.lesson[heard], pairs.withheld[heard]
    outcome = told.outcome[pairs.row[heard]]
    means, errors = [], []
    for arm in (gone, ~gone):
        n = np.bincount(lesson[arm], minlength=30)
        mean = np.bincount(lesson[arm], weights=outcome[arm], minlength=30) / n
        means.append(mean)
        errors.append(mean * (1 - mean) / n)
    assert (abs(means[1] - means[0] - answer.lesson) < 4.5 * np.sqrt(errors[0] + errors[1])).all()
    lift = told.outcome[~told.control].mean() - told.outcome[told.control].mean()
    assert lift == pytest.approx(answer.lift, abs=0.009)
    assert answer.error.max() < 0.002
    assert answer.lift_error < 0.002


def test_the_plain_world_has_the_planted_effects_but_for_clipping() -> None:
    world = sim.World.credit(0, lessons=60)
    answer = sim.truth(world, withhold=0.3, sample=40_000)
    np.testing.assert_allclose(answer.lesson, world.families.effect[0], atol=0.03)
    assert sorted(world.kinds).count("helpful") == sorted(world.kinds).count("harmful") == 12
    assert (answer.lesson[np.array(world.kinds) == "null"] == 0).all()


def test_drawing_and_enumerating_give_one_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = import_module("lessonbank_bench.measure.simulator.truth")

    world = busy()
    exact = sim.truth(world, withhold=0.3, sample=8000)
    monkeypatch.setattr(truth, "_EXACT", 0)
    drawn = sim.truth(world, withhold=0.3, sample=8000)
    np.testing.assert_allclose(drawn.lesson, exact.lesson, atol=0.004)
    assert drawn.lift == pytest.approx(exact.lift, abs=0.004)


@pytest.mark.full
def test_the_truth_of_a_run_weighs_each_recall_by_what_its_draw_could_tell() -> None:
    world = busy()
    run = sim.play(world, 60_000, withhold=0.3, control=0.1, seed=3)
    answer = sim.truth(world, withhold=0.3, horizon=60_000)
    np.testing.assert_allclose(sim.truth_of(world, run).lesson, answer.lesson, atol=0.012)
    odds = np.full(30, 0.3)
    odds[4] = 0.0
    assert np.isnan(sim.truth_of(world, sim.play(world, 2000, withhold=odds, control=0.0, seed=3)).lesson[4])


def test_lessons_that_work_in_one_family_harm_in_the_next_and_pairs_only_together() -> None:
    world = sim.World.draw(1, helpful=0, harmful=0, conditional=0.2, paired=0.4)
    kinds = np.array(world.kinds)
    for lesson in np.flatnonzero(kinds == "conditional"):
        assert sorted(world.families.effect[:, lesson]) == pytest.approx([-0.15, 0, 0, 0, 0.15])
        assert (world.families.weight[:, lesson] == 1).sum() == 2
    assert not world.families.effect[:, kinds != "conditional"].any()
    assert world.synergy is not None
    assert set(np.unique(world.synergy)) == {-0.15, 0.0, 0.15}
    paired = world.synergy.any(axis=0)
    assert (kinds[paired] == "paired").all()
    answer = sim.truth(world, withhold=0.3, sample=40_000)
    assert (abs(answer.lesson[paired]) > 0.005).all()
    assert (answer.lesson[kinds == "null"] == 0).all()


def test_the_judge_errs_as_planted_and_audits_are_random() -> None:
    judge = sim.Judging(false_success=0.3, false_failure=0.1, bare_false_success=0.05, audited=0.2)
    world = sim.World.credit(4, judge=judge)
    run = sim.play(world, 60_000, withhold=0.2, control=0.3, seed=1)
    told, truly = run.episodes, run.hidden.outcome
    shown = np.zeros(len(told), bool)
    shown[told.pairs.row[~told.pairs.withheld & ~told.control[told.pairs.row]]] = True
    assert told.judged[(truly == 0) & shown].mean() == pytest.approx(0.3, abs=0.015)
    assert told.judged[(truly == 0) & ~shown].mean() == pytest.approx(0.05, abs=0.015)
    assert 1 - told.judged[truly == 1].mean() == pytest.approx(0.1, abs=0.01)
    assert told.true.mean() == pytest.approx(0.2, abs=0.01)
    assert told.true[truly == 1].mean() == pytest.approx(told.true[truly == 0].mean(), abs=0.02)
    np.testing.assert_array_equal(told.outcome, np.where(told.true, truly, told.judged))
    right = told.judged == truly
    assert told.confidence[right].mean() > told.confidence[~right].mean() + 0.1
    assert told.judges == ("judge",)


def test_harmful_lessons_can_make_failed_runs_look_good() -> None:
    world = sim.World.credit(4, judge=sim.Judging(false_success=0.1, false_failure=0.1, fooled=0.4))
    run = sim.play(world, 30_000, withhold=0.2, control=0.1, seed=1)
    pairs, truly = run.episodes.pairs, run.hidden.outcome
    there = ~pairs.withheld & ~run.episodes.control[pairs.row] & (np.array(world.kinds)[pairs.lesson] == "harmful")
    bad = np.bincount(pairs.row[there], minlength=30_000)
    for times, rate in ((0, 0.1), (1, 0.5), (2, 0.9)):
        assert run.episodes.judged[(truly == 0) & (bad == times)].mean() == pytest.approx(rate, abs=0.04)


def test_without_a_judge_all_that_is_told_is_true() -> None:
    told = sim.simulate(sim.World.credit(0), 500, withhold=0.2, control=0.0, seed=1)
    assert told.true.all()
    assert told.judges == ()
    assert np.isnan(told.judged).all()
    assert (told.judge == -1).all()


def test_outcomes_go_missing_as_planted() -> None:
    world = sim.World.credit(1, silence=sim.Silence(success=0.1, failure=0.4))
    run = sim.play(world, 40_000, withhold=0.2, control=0.1, seed=1)
    told = run.episodes.known[run.hidden.row]
    assert 1 - told[run.hidden.outcome == 1].mean() == pytest.approx(0.1, abs=0.012)
    assert 1 - told[run.hidden.outcome == 0].mean() == pytest.approx(0.4, abs=0.015)


def test_the_hidden_side_has_the_same_luck_in_every_arm() -> None:
    run = sim.play(busy(), 20_000, withhold=0.0, control=0.0, seed=1)
    hidden = run.hidden
    np.testing.assert_array_equal(hidden.chance, hidden.chance_of_everything)
    np.testing.assert_array_equal(hidden.outcome, hidden.with_everything)
    better = hidden.chance > hidden.chance_of_nothing
    assert (hidden.outcome >= hidden.with_nothing)[better].all()
    assert (hidden.outcome <= hidden.with_nothing)[~better].all()
    assert hidden.with_nothing.mean() == pytest.approx(hidden.chance_of_nothing.mean(), abs=0.012)
    bare = sim.play(busy(), 500, withhold=0.3, control=1.0, seed=1).hidden
    np.testing.assert_array_equal(bare.chance, bare.chance_of_nothing)


def test_base_rates_swing_where_they_drift() -> None:
    world = sim.World.draw(0, families=1, scatter=sim.Scatter(), drift=0.2, period=1000)
    rates = sim.play(world, 1000, withhold=0.0, control=0.0, seed=1).hidden.chance_of_nothing
    assert np.ptp(rates) == pytest.approx(0.4, abs=0.01)
    assert abs(np.diff(rates)).max() < 0.002


def test_tasks_repeat_and_find_what_they_always_find_unless_their_search_is_fresh() -> None:
    scatter = sim.Scatter(templates=2, tasks=2)
    for fresh, kinds in ((0.0, 1), (1.0, 20)):
        world = sim.World.draw(0, scatter=scatter, fresh=fresh, grouping="task")
        told = sim.simulate(world, 4000, withhold=0.1, control=0.0, seed=1)
        assert len(set(told.cluster.tolist())) == 20
        found = np.sort(told.pairs.lesson.reshape(-1, 4), axis=1)
        most = max(len(np.unique(found[told.cluster == c], axis=0)) for c in set(told.cluster.tolist()))
        assert most == 1 if kinds == 1 else most >= kinds


def test_new_templates_are_another_sample_of_the_same_families() -> None:
    world = sim.World.draw(5, scatter=sim.Scatter(templates=8, tasks=1, difficulty=0.1, effects=0.2))
    many = world.renewed(1, templates=1500)
    answer = sim.truth(many, withhold=0.3, sample=60_000)
    assert abs(sim.truth(world, withhold=0.3, sample=20_000).lesson - answer.lesson).max() > 0.05
    assert answer.lesson[np.array(world.kinds) == "null"] == pytest.approx(0.0, abs=0.04)
    assert many.families is world.families
    assert not np.array_equal(world.renewed(2).tasks.base, world.tasks.base)


def test_comparators_rank_as_badly_as_is_known() -> None:
    """30 lessons, 2,000 episodes, 12 seeds: counting and comparing stay near .59, a learned value near .49."""
    scores = ranked(lessons=30, episodes=2000, seeds=12)
    assert scores["counters"]["spearman"] == pytest.approx(0.59, abs=0.06)
    assert scores["with-without"]["spearman"] == pytest.approx(0.59, abs=0.06)
    assert scores["Q(.1)"]["spearman"] == pytest.approx(0.49, abs=0.06)


def test_nobody_ranks_better_than_one_who_knows_all_the_rest() -> None:
    world = sim.World.credit(1)
    scores = ranked(lessons=30, episodes=2000, seeds=6)
    assert scores["oracle"]["spearman"] > scores["counters"]["spearman"] + 0.1
    run = sim.play(world, 30_000, withhold=0.3, control=0.1, seed=1)
    np.testing.assert_allclose(sim.oracle(world, run), world.families.effect[0], atol=0.01)


def test_a_learned_value_is_what_a_plain_loop_gives() -> None:
    told = sim.simulate(busy(), 400, withhold=0.3, control=0.2, seed=1)
    value, pairs = np.full(30, 0.5), told.pairs
    for row, lesson, withheld in zip(pairs.row, pairs.lesson, pairs.withheld, strict=True):
        if not withheld and not told.control[row] and told.known[row]:
            value[lesson] += 0.1 * (told.outcome[row] - value[lesson])
    np.testing.assert_allclose(sim.q_learning(told), value, atol=1e-12)


def test_ranks_share_ties() -> None:
    assert sim.spearman(np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 9.0])) == pytest.approx(1.0)
    assert sim.auc(np.array([0.0, 1.0, 1.0, 2.0]), np.array([False, False, True, True])) == pytest.approx(0.875)


def test_a_policy_acts_on_the_episodes_that_follow() -> None:
    world, seen = busy(), []

    def review(episodes: Episodes) -> Any:
        seen.append((len(episodes), bool(episodes.known.all())))
        retired = np.arange(30) % 2 == 0
        return sim.Standing(np.full(30, 0.4), 0.5, retired)

    run = sim.stream(world, 1000, review, every=100, start=sim.Standing.of(30, withhold=0.1, control=0.0), seed=1)
    assert len(seen) == len(run.standings) - 1 == 9
    assert [n for n, _ in seen] == sorted(n for n, _ in seen)
    assert all(known for _, known in seen)
    told, when = run.episodes, np.empty(len(run.episodes), int)
    when[run.hidden.row] = np.arange(1000)
    np.testing.assert_array_equal(when, run.when)
    late = when >= 100
    assert (told.control_probability == np.where(late, 0.5, 0.0)).all()
    np.testing.assert_array_equal(told.pairs.probability, np.where(late[told.pairs.row], 0.4, 0.1))
    assert (told.pairs.lesson[late[told.pairs.row]] % 2 == 1).all()
    assert (told.pairs.lesson[~late[told.pairs.row]] % 2 == 0).any()


def test_two_policies_with_one_seed_meet_the_same_tasks() -> None:
    world = busy()
    idle = sim.stream(world, 600, None, seed=4, every=50).hidden
    keen = sim.stream(world, 600, lambda _: sim.Standing(np.zeros(30), 0.0, np.arange(30) < 15), seed=4).hidden
    for name in ("task", "with_nothing", "with_everything", "chance_of_nothing", "chance_of_everything"):
        np.testing.assert_array_equal(getattr(idle, name), getattr(keen, name))
    assert not np.array_equal(idle.chance, keen.chance)


def test_an_episode_that_finds_nothing_has_no_recall() -> None:
    world = sim.World.credit(0)
    start = replace(sim.Standing.of(30), retired=np.arange(30) != 3)
    run = sim.stream(world, 300, None, start=start, seed=1)
    assert len(run.episodes) == 300
    assert (run.episodes.pairs.lesson == 3).all()
    gone = sim.stream(world, 300, None, start=replace(start, retired=np.ones(30, bool)), seed=1)
    assert len(gone.episodes) == len(gone.episodes.pairs) == 0
    assert (gone.hidden.row == -1).all()
    np.testing.assert_array_equal(gone.hidden.chance, gone.hidden.chance_of_nothing)


def test_lessons_of_misjudged_runs_are_mostly_harmful_and_a_naive_loop_pays_for_it() -> None:
    seeds, gained = range(4), {}
    for flips in (0.0, 0.3):
        runs = [sim.mint(s, episodes=4000, flips=flips) for s in seeds]
        gained[flips] = np.mean([m.success() - m.without() for m in runs])
        misled = np.concatenate([m.misled for m in runs])
        assert misled.mean() == pytest.approx(flips, abs=0.1)
        effects = np.concatenate([m.effect for m in runs])
        assert effects[~misled].mean() > 0.04
        assert not misled.any() or effects[misled].mean() < -0.04
    assert gained[0.0] - gained[0.3] > 0.08


def test_lessons_come_up_as_they_are_drawn_and_a_family_holds_no_more_than_it_has_room_for() -> None:
    terms, seen = sim.Minting(families=3, room=5), []

    def review(episodes: Episodes) -> Any:
        seen.append(len(episodes.lessons))
        return sim.Standing.of(len(episodes.lessons), withhold=0.3, control=0.2)

    minted = sim.mint(1, episodes=2000, terms=terms, review=review, start=sim.Standing.of(1, withhold=0.5))
    told, hidden = minted.run.episodes, minted.run.hidden
    assert seen == sorted(seen)
    assert seen[-1] == len(minted.born) == len(told.lessons) == 15
    when = minted.run.when
    assert (when[told.pairs.row] > minted.born[told.pairs.lesson]).all()
    assert set(told.pairs.probability.tolist()) <= {0.3, 0.5}
    family = {int(i): set(hidden.task[when[told.pairs.row[told.pairs.lesson == i]]].tolist()) for i in range(15)}
    assert all(len(tasks) == 1 for tasks in family.values())


def test_room_that_retiring_makes_is_taken_and_an_oracle_leaves_nothing_harmful() -> None:
    naive = sim.mint(2, episodes=3000)
    pruned = sim.mint(2, episodes=3000, review=sim.pruning())
    oracle = sim.mint(2, episodes=3000, oracle=True)
    assert len(naive.born) < len(pruned.born)
    assert pruned.retired.any()
    assert not naive.retired.any()
    np.testing.assert_array_equal(oracle.retired, oracle.effect < 0)
    assert oracle.success() > pruned.success() > naive.success()
    assert naive.without() == oracle.without()


def test_a_real_bank_is_driven_and_every_episode_leaves_its_receipt_draws_and_settlement() -> None:
    judge = sim.Judging(false_success=0.3, false_failure=0.3, audited=0.4)
    world = sim.World.credit(0, lessons=20, judge=judge, silence=sim.Silence(success=0.2, failure=0.2))
    with sim.planted_bank(world, holdout=0.3) as bank:
        driven = sim.drive(world, 60, bank, seed=1)
        store = bank.aio.store

        async def kept() -> tuple[dict[str, Any], dict[str, Any]]:
            receipts = {r.id: r async for r in every_recall(store, scope=bank.scope)}
            return receipts, {id: await settlement_of(store, id, scope=bank.scope) for id in receipts}

        receipts, settled = anyio.run(kept)
    assert tuple(receipts) == driven.recalls
    homes = world.families.weight.argmax(axis=0)
    on_topic = withheld = drawn = 0
    for n, (id, receipt) in enumerate(receipts.items()):
        assert tuple(int(c.lesson_id.rpartition("-")[2]) for c in receipt.candidates if c.shown) == driven.shown[n]
        withheld += sum(c.withheld for c in receipt.candidates)
        drawn += sum(c.probability == 0.3 for c in receipt.candidates)
        on_topic += sum(homes[i] == world.tasks.family[driven.task[n]] for i in driven.shown[n])
        settlement = settled[id]
        assert (settlement is not None) == driven.told[n]
        if settlement and driven.true[n]:
            assert settlement.source == "ground_truth"
            assert settlement.outcome == ("success" if driven.outcome[n] else "failure")
        elif settlement:
            assert settlement.source == "judge"
            assert settlement.steps > 4
    assert 0.15 < withheld / drawn < 0.45
    assert on_topic > 0.75 * sum(map(len, driven.shown))
    assert 30 < driven.told.sum() < 60
    assert 0 < driven.true.sum() < driven.told.sum()


@pytest.mark.full
def test_the_script_prints_what_it_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["simulator", "--json", "--seeds", "2", "--episodes", "300"])
    main()
    said = json.loads(capsys.readouterr().out)
    assert set(said["ranking"]) == {"counters", "with-without", "Q(.1)", "oracle"}
    assert said["episodes per second"] > 0
