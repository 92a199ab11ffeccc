"""`lessonbank_bench.measure.retrieval`: its labels and figures, on runs small enough to count by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank_bench.measure.retrieval import __main__ as script
from lessonbank_bench.measure.retrieval import labels

SAID = (("save", "error: log in first"), ("log in", "welcome"), ("save", "saved"))


def rows(*pairs: tuple[str, str], success: bool = True) -> list[dict[str, Any]]:
    """Runs of (task id, task): each failed once and then worked."""
    return [
        {"task_id": id, "task": task, "meta": {}, "success": success, "messages": messages(task)} for id, task in pairs
    ]


def messages(task: str) -> list[dict[str, Any]]:
    """A chat in which tools are called."""
    said: list[dict[str, Any]] = [{"role": "user", "content": task}]
    for number, (name, answer) in enumerate(SAID):
        call = {"id": f"c{number}", "type": "function", "function": {"name": name.replace(" ", "_"), "arguments": "{}"}}
        said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": call["id"], "content": answer})
    return said


def test_recall_is_of_what_the_places_could_hold_and_ndcg_discounts_by_place() -> None:
    assert script.quality([True, False, True], 2) == pytest.approx([1.0, 1.0, 1.0, 1.5 / (1 + 1 / 1.5849625)])
    assert script.quality([], 3) == [0.0] * 4
    assert script.quality([True] * 5, 9) == [1.0] * 4


def test_transfer_asks_for_other_texts_of_the_family_and_once_for_each_text() -> None:
    runs = rows(("a", "a1"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("c", "c1"))
    collection = labels.transfer("s", runs, lambda row: row["task_id"])
    assert len(collection.documents) == 4
    told = {q.text: {collection.documents[id] for id in q.relevant} for q in collection.queries}
    assert told == {"a1": {"a2"}, "a2": {"a1"}}


def test_lookup_never_counts_a_run_as_its_own_answer() -> None:
    collection = labels.lookup("s", rows(("a", "a1"), ("a", "a1"), ("b", "b1")))
    assert {q.own: q.relevant for q in collection.queries} == {"0": {"1"}, "1": {"0"}}


def test_halves_share_no_place_in_the_text() -> None:
    collection = labels.halves("s", rows(("a", "one two three four five six seven eight nine ten"), ("b", "short")))
    assert list(collection.documents.values()) == ["one two three four five"]
    assert [q.text for q in collection.queries] == ["six seven eight nine ten"]


def test_lessons_are_of_the_first_run_that_gives_any_and_texts_without_one_are_not_there() -> None:
    silent = rows(("a", "a1"), ("a", "a3"))
    for row in silent:
        row["messages"] = row["messages"][:1]
    runs = [*silent, *rows(("a", "a1"), ("a", "a2"), ("b", "b1"))]
    collection = labels.lessons("s", runs, lambda row: row["task_id"])
    assert sorted(collection.documents.values()) == ["a1", "a2", "b1"]
    assert [q.text for q in collection.queries] == ["a1", "a2"]
    assert all(collection.lessons[id] for id in collection.documents)
    assert collection.most == max(map(len, collection.lessons.values())) > 1


def test_without_recorded_runs_it_says_so_and_stops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--data", str(tmp_path)]) == 2
    assert "no recorded runs" in capsys.readouterr().err


def test_every_search_is_measured_on_every_set_and_repeats_to_the_digit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "please look at the {} and say what is wrong with it today"
    flight = {"ground_truth_actions": ["get_user_details", "cancel_reservation"]}
    patch = {"submission": "diff --git a/django/db/models.py b/django/db/models.py\n"}
    contents = {
        "browsergym_web": rows(*((f"order-{n % 2}", f"Order {n} of kind {n % 2}") for n in range(6))),
        "tau_bench_airline": [
            r | {"meta": flight} for r in rows(*((f"t{n % 3}", long.format(n % 3)) for n in range(6)))
        ],
        "swe_bench_mini_swe_agent": [
            r | {"meta": patch}
            for r in rows(*((f"django__django-{n % 3}", long.format(f"model {n % 3}")) for n in range(6)))
        ],
        "hotpotqa_react": rows(*((f"q{n % 3}", long.format(f"band {n % 3}")) for n in range(6))),
    }
    for name, content in contents.items():
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(each) + "\n" for each in content)
    answers: list[Any] = []
    for _ in range(2):
        assert script.main(["--data", str(tmp_path), "--json", "--no-desk"]) == 0
        answers.append(json.loads(capsys.readouterr().out)["queries"])
    assert answers[0] == answers[1]
    everywhere = {"lexical", "hashing", "hybrid(lexical, hashing)", "by chance"}
    told = {
        variant: {r["search"] for r in answers[0] if r["variant"] == variant} for variant in ("lessons", "transfer")
    }
    assert told == {"lessons": everywhere | {"lessons(hashing)"}, "transfer": everywhere}
    assert {r["variant"] for r in answers[0]} == {"lookup", "transfer", "halves", "lessons"}
    found = [r for r in answers[0] if r["variant"] == "lookup" and r["source"] == "mean" and r["search"] == "hashing"]
    assert found[0]["recall@1"][0] > 0.9


def test_the_game_is_played_with_every_search_and_says_what_it_took() -> None:
    played = script.desk({"hashing": "hashing"}, limits=[2], seeds=[1], tasks=4)
    assert [row["search"] for row in played] == ["lexical", "hashing", "hybrid(lexical, hashing)", "lessons(hashing)"]
    assert all(row["k"] == 2 and 0 <= row["done"][0] <= 1 and row["tokens"] > 0 for row in played)
    assert played[0]["gain"] == [0.0, 0.0, 0.0]
