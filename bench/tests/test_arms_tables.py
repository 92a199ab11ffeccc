"""Any combination of parts is an arm: by name, by a name with settings, or by a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.errors import UsageError
from lessonbank_bench import ARMS, play
from lessonbank_bench.__main__ import CONTRASTS, PLANS, SWEEP, Plan, contrasts, main, measure
from lessonbank_bench.arms import Setting, arm_from, name_of, read_arms

TABLES: list[dict[str, Any]] = [
    {"base": "lessonbank", "retrieval": "hybrid", "consolidation": "recognise", "limit": 5},
    {"retrieval": "dense", "floor": 0.1},
    {"level": "lesson", "limit": 4, "failures": False},
    {"extractor": "extractive", "exclude": "template"},
    {"base": "reasoningbank-paper", "domain": "web", "budget": 800},
    {"base": "synapse", "retrieval": "lexical"},
    {"base": "placebo", "embedder": "hashing"},
]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_and_its_name_are_one_arm(table: dict[str, Any]) -> None:
    name = name_of(table)
    by_name, by_table = arm_from(name), arm_from(table)
    assert by_name == by_table
    assert ARMS[name] == by_table
    assert len(list(play(name, 3, tasks=5))) == 5  # type: ignore[arg-type]


def test_a_base_keeps_its_own_settings_where_the_table_is_silent() -> None:
    assert arm_from({"base": "success-only"}) == arm_from({"base": "lessonbank", "failures": False})
    assert arm_from({"base": "success-only", "failures": True}) == arm_from("lessonbank")
    assert arm_from({}) == arm_from("lessonbank")


def test_a_limit_in_the_table_stands_above_the_experiments() -> None:
    one, wide = (list(play(n, 3, tasks=20, limit=1))[-1].memory for n in ("lessonbank", "lessonbank:limit=4"))  # type: ignore[arg-type]
    assert len(wide) > len(one) > 0


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("lesonbank", "there is no arm 'lesonbank': use one of none"),
        ({"base": "lessonbank", "retreival": "hybrid"}, "an arm has no setting 'retreival': its settings are"),
        ({"base": "none", "limit": 3}, "keeps no bank and takes no settings"),
        ("oracle:limit=2", "keeps no bank and takes no settings"),
        ({"retrieval": "psychic"}, "'dense', 'lexical' or 'hybrid'"),
        ({"consolidation": "burn"}, "an arm's consolidation is one of 'append'"),
        ({"extractor": "magic"}, "an arm's extractor is one of"),
        ({"limit": 0}, "a limit of at least 1"),
        ({"limit": True}, "an arm's limit cannot be True"),
        ({"limit": "many"}, "an arm's limit cannot be 'many'"),
        ({"floor": "high"}, "an arm's floor cannot be 'high'"),
        ({"failures": 1}, "an arm's failures cannot be 1"),
        ({"diversity": 3}, "an arm has no setting 'diversity'"),
        ({"exclude": "all"}, "an arm's exclude is one of 'task', 'template'"),
        ({"base": ["x"]}, "an arm's base is the name"),
        ({"profile": ["x"]}, "an arm's profile is one of"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(choice: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        arm_from(choice)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_extractor_of_a_model_needs_one() -> None:
    with pytest.raises(UsageError, match="needs a model"):
        arm_from("lessonbank:extractor=llm")(Setting("desk/3", 1, 3))


def test_arms_are_read_from_a_file_and_played_beside_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "arms.toml"
    file.write_text('[arm.wide]\nlimit = 5\nretrieval = "hybrid"\n[arm.raw]\nbase = "synapse"\n', encoding="utf-8")
    assert read_arms(file) == {"wide": "lessonbank:limit=5,retrieval=hybrid", "raw": "synapse"}
    main(["--seeds", "3", "--tasks", "3", "--arm", "awm", "--arms", str(file), "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["arm"] for row in rows] == ["none", "awm, k=3", "wide", "raw, k=3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "cannot be read"),
        ("a = 1", "should hold tables"),
        ("[arm]", "should hold tables"),
        ("[arm]\nx = 1", "arm 'x' should be a table"),
        ("[arm.x]\ny = 1", "arm 'x': an arm has no setting 'y'"),
    ],
)
def test_a_file_that_holds_no_arms_says_so(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "arms.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        read_arms(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_arms(tmp_path / "none.toml")


def test_the_sweep_names_only_arms_that_are_and_contrasts_only_rows_it_has() -> None:
    plans = [*PLANS, *SWEEP]
    titles = [plan.title for plan in plans]
    assert len(set(titles)) == len(titles)
    assert {title for _, *pair in CONTRASTS for title in pair} <= set(titles)
    assert all(arm_from(plan.arm) for plan in plans)
    assert {plan.arm for plan in PLANS} == set(ARMS) - {"mirror"}, "which needs another arm beside it"


def test_a_contrast_of_an_arm_with_itself_is_zero() -> None:
    rows = measure([Plan("none"), Plan("a/a-none"), Plan("none", other_draws=True)], seeds=range(3), tasks=10)
    same, chance = contrasts(rows)
    assert (same.difference.low, same.difference.high) == (0.0, 0.0)
    assert chance.arm == "none, other draws"


def test_the_table_can_be_had_as_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--seeds", "3", "--tasks", "2", "--arm", "a/a-none", "--markdown"])
    shown = capsys.readouterr().out
    assert "| none |" in shown
    assert "no difference shown" in shown
    assert "synthetic world" in shown
