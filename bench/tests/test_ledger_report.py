"""The report on what the ledger claims: every row is there, and each check misses where an estimator is broken."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lessonbank_bench.measure.ledger import reaching
from lessonbank_bench.measure.ledger.sampling import Sampling


def part(name: str) -> ModuleType:
    """A module of the report."""
    return import_module(f"lessonbank_bench.measure.ledger.{name}")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Any:
    """As few replications as there can be, of a population that is made in a moment."""
    monkeypatch.setattr(part("covering"), "_POPULATION", 100)
    return Few(0.0002)


class Few(Sampling):
    """A sample of no more seeds than its share gives, or four."""

    def seeds(self, wanted: int, /, *, least: int = 2) -> range:
        return super().seeds(wanted, least=min(least, 4))


# --- it runs ---------------------------------------------------------------------------------------------------------

ROWS = {
    "coverage": ("truth is told", "10 % checked", "nothing checked", "more where memory was shown", "swing", "limit"),
    "peeking": ("memory as a whole within its sequence", "a lesson within its sequence"),
    "ranking": ("Spearman", "harmful lessons flagged", "null lessons flagged", "likely", "taken back"),
    "flips": ("naive loop", "counts and prunes", "10% of labels checked"),
    "bank": ("signs", "not so"),
    "trial": ("a trial of +20 points, luck shared", "a trial of nothing"),
    "cost": ("retrieval, in memory", "settlement, in a file", "million recalls", "per recall"),
}


@pytest.mark.full
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.release if name == "cost" else ()) for name in ROWS]
)
def test_each_part_gives_its_rows_on_a_tiny_sample(name: str, few: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part("covering"), "_EPISODES", 300)
    monkeypatch.setattr(part("driving"), "agreement", partial(part("driving").agreement, tasks=40))
    rows = part("__main__").measured(name, few)
    for words in ROWS[name]:
        assert any(words in row.claim for row in rows), words
    assert all(row.on and row.bound for row in rows)
    assert all("seed" in row.on for row in rows)


def test_every_part_is_tried() -> None:
    assert part("__main__").PARTS.keys() == {*ROWS, *reaching.PARTS}


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    ranking = part("ranking")
    first, again, other = (ranking.ranked(300, seeds) for seeds in (range(3), range(3), range(3, 6)))
    assert first == again
    assert first.value != other.value


def test_a_row_says_whether_it_holds() -> None:
    table = part("table")
    row = table.averaged("a", [0.9, 1.0], on="2 runs, seeds 0–1", least=93.0, most=97.0, beside=(("others", 50.0),))
    low, told, nothing = replace(row, value=92.9), replace(row, least=None, most=None), replace(row, value=float("nan"))
    assert [r.holds for r in (row, low, told, nothing)] == [True, False, True, False]
    lines = "\n".join(table.as_lines([row, low, told]))
    assert lines.count("**misses**") == 1
    assert "| a | 95.0 ± 5.00 % | 93–97 % | holds | others 50.0 % |" in lines
    assert table.as_data([row])[0]["beside"] == {"others": 50.0}


def test_rows_are_read_again_and_written_into_a_page(tmp_path: Path) -> None:
    table, (page, kept) = part("table"), (tmp_path / "page.md", tmp_path / "rows.json")
    row = table.counted("a", [True] * 9, on="9 runs, seeds 0–8", least=5.0, beside=(("b", 1.0),))
    kept.write_text(json.dumps(table.as_data([row])), encoding="utf-8")
    assert table.from_data(json.loads(kept.read_text(encoding="utf-8"))) == [row]
    page.write_text(f"# Before\n\n{table.MARK}\n\n| old |\n", encoding="utf-8")
    told = table.on_page(page.read_text(encoding="utf-8"), [row])
    assert told.startswith(f"# Before\n\n{table.MARK}\n\n* a: ")
    assert "| old |" not in told
    assert "* a: 100.0 %, aim ≥ 5 %" in told


def test_a_summary_has_a_line_for_the_rows_of_one_kind_and_counts_what_misses() -> None:
    table = part("table")
    first = table.Row(claim="a world: one thing", value=1.0, least=0.5, on="here")
    rows = [first, replace(first, claim="elsewhere: one thing", value=0.25), replace(first, least=None, claim="c: d")]
    page = table.on_page(table.MARK, rows)
    assert "* one thing (2 rows): 0.250 to 1.00 %, aim ≥ 0.5 % (**1 misses**)" in page
    assert "c: d" not in page


def test_the_published_page_is_what_the_published_rows_give() -> None:
    table, folder = part("table"), Path(__file__).parents[2] / "docs" / "research"
    page = (folder / "ledger-report.md").read_text(encoding="utf-8")
    rows = table.from_data(json.loads((folder / "ledger-rows.json").read_text(encoding="utf-8")))
    assert table.on_page(page, rows) == page


def test_rows_of_one_kind_share_a_table_and_say_their_world_once() -> None:
    table = part("table")
    first = table.Row(claim="a world: one thing", value=1.0, on="here")
    rows = [first, replace(first, claim="a world: another"), replace(first, claim="elsewhere: one thing", on="there")]
    lines = table.as_lines(rows)
    assert [line for line in lines if line.startswith("Measured")] == ["Measured on here:", "Measured on there:"]
    assert [line.split(" | ")[0] for line in lines if "1.00" in line] == [
        "| a world: one thing",
        "| … another",
        "| elsewhere: one thing",
    ]


def test_a_share_that_was_never_seen_has_an_error_all_the_same() -> None:
    row = part("table").counted("a", [False] * 100, on="100 runs", most=5.0)
    assert row.value == 0.0
    assert 0.5 < row.error < 2.0


@pytest.mark.parametrize("broken", [False, True])
def test_the_exit_code_is_1_where_something_misses(
    broken: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = part("table").Row(claim="planted", value=float(broken), most=0.0, on="1 case, seed 0")
    monkeypatch.setattr(part("ranking"), "rows", lambda sampling: [row])
    monkeypatch.setattr(sys, "argv", ["ledger.py", "--json", "--quick", "--parts", "ranking"])
    with pytest.raises(SystemExit) as ended:
        part("__main__").main()
    assert ended.value.code == int(broken)
    assert json.loads(capsys.readouterr().out)[0]["holds"] is not broken


# --- and it would notice ---------------------------------------------------------------------------------------------


def missed(rows: list[Any]) -> str:
    return "\n".join(row.claim for row in rows if not row.holds)


def halved(review: Callable[..., Any]) -> Callable[..., Any]:
    """A review whose intervals are half as wide."""

    def made(episodes: Any) -> Any:
        told = review(episodes)
        return replace(told, **narrow(told), effects=replace(told.effects, **narrow(told.effects)))

    def narrow(told: Any) -> dict[str, Any]:
        middle = (told.low + told.high) / 2
        return {"low": (told.low + middle) / 2, "high": (told.high + middle) / 2}

    return made


@pytest.mark.full
def test_intervals_of_half_the_width_miss_their_coverage(few: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    covering = part("covering")
    monkeypatch.setattr(covering, "review", halved(covering.review))
    broken = missed(covering.rows(replace(few, share=0.05), settings=covering.SETTINGS[:1]))
    assert "one look, lessons" in broken
    assert "one look, memory as a whole" in broken


@pytest.mark.full
def test_labels_taken_for_the_truth_cover_less_than_told_truth(few: Any) -> None:
    covering = part("covering")
    fooled = next(s for s in covering.SETTINGS if "fool" in s.name)
    whole = covering.rows(replace(few, share=0.06), settings=[fooled])[2]
    assert dict(whole.beside)["as if all labels were true"] < whole.value - 5


def test_a_sequence_that_ignores_the_probabilities_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    peeking = part("peeking")
    scores = peeking.scores

    def ignoring(episodes: Any, found: Any) -> Any:
        """As if every second draw had been a withholding."""
        told = scores(episodes, found)
        score = (told.shown - 0.5) * (episodes.outcome[told.row] - 0.5)
        return replace(told, score=score, scale=np.full(len(told), 0.25))

    monkeypatch.setattr(peeking, "scores", ignoring)
    assert "a lesson within its sequence" in missed([peeking.lessons_covered(range(2))])


def test_the_plain_weighted_difference_agrees_with_the_estimate() -> None:
    ranking = part("ranking")
    episodes = ranking.play(ranking.World.credit(2), 5000, withhold=0.3, control=0.0, seed=2).episodes
    ours = ranking.review(episodes.as_evidence()).effects.estimate[1:]
    assert np.nanmax(np.abs(ranking.weighted_difference(episodes) - ours)) < 0.1


def test_an_estimate_that_knows_nothing_misses_the_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking = part("ranking")
    sound = ranking.ranked(2000, range(6), least=0.75)
    monkeypatch.setattr(ranking, "expected", lambda made: -ranking.counters(made))
    assert "Spearman" in missed([ranking.ranked(2000, range(6), least=0.75)])
    assert sound.value > dict(sound.beside)["counters"] + 0.05


def test_flags_that_point_at_everything_or_at_nothing_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    ranking = part("ranking")
    for flag, claim in ((True, "null lessons flagged"), (False, "harmful lessons flagged")):
        always = np.full(30, flag)
        monkeypatch.setattr(ranking, "_ways", lambda episodes, always=always: (always, always, always))
        assert claim in missed(ranking.flagged(range(2), episodes=300))


@pytest.mark.full
def test_a_ledger_that_does_not_act_gives_up_what_a_naive_loop_does(few: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    flipping = part("flipping")
    monkeypatch.setattr(flipping, "_ledger", lambda start: None)
    rows = flipping.rows(replace(few, share=0.02))
    assert rows[0].value > 3.0
    assert all("by the ledger" in row.claim and not row.holds for row in rows if row.most is not None)


def test_a_millisecond_too_many_misses_the_overhead() -> None:
    times = np.ones((20, 2, 2))
    costing = part("costing")
    rows = [make("a", times, most=0.3, on="") for make in (costing._overhead, costing._shared)]
    assert missed(rows) == ""
    times[:, 0] += 1.0
    assert not costing._overhead("a", times, most=0.3, on="").holds
    assert not costing._shared("a", times, most=0.3, on="").holds


def test_reviews_that_take_long_miss_though_most_settlements_have_none() -> None:
    times = np.ones((100, 2, 2))
    times[::50, 0] += 30.0
    costing = part("costing")
    assert costing._overhead("a", times, most=0.5, on="").holds
    assert not costing._shared("a", times, most=0.5, on="").holds


@pytest.mark.full
def test_a_false_verdict_and_a_wrong_sign_miss(few: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driving = part("driving")
    told = driving.Verdicts(agree=0.5, decided=0.5, wrong=1)
    monkeypatch.setattr(driving, "driven", lambda seed, episodes: told)
    agrees = part("table").Row(claim="agrees", value=0.0, on="one bank")
    monkeypatch.setattr(driving, "agreement", lambda seed: agrees)
    assert len(missed(driving.rows(few)).split("\n")) == 2
