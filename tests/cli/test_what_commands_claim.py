"""What commands say of a record is what is known of it, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Experience, Lesson, Step, Trajectory
from lessonbank.cli._bank import topics_of
from lessonbank.contracts.records import Provenance, Topic
from lessonbank.evidence import Holdout

pytestmark = pytest.mark.full

WHERE = ("--bank", "bank.db", "--scope", "t")


def said(folder: Path, *words: object) -> str:
    done = lessonbank_cli(*words, *WHERE, cwd=folder, COLUMNS="300")
    assert done.returncode == 0, done.stderr
    return done.stdout


def bank_in(folder: Path, **more: Any) -> lessonbank.ReasoningBank:
    return lessonbank.connect(folder / "bank.db", scope="t", embedder="lexical", **more)


def test_where_nobody_said_how_a_run_ended_explain_names_no_judge(tmp_path: Path) -> None:
    with bank_in(tmp_path) as bank:
        bank.learn(Trajectory(id="r" * 8, task="open the valve", steps=(Step(action="turn"),)))
    told = said(tmp_path, "explain", "r" * 8)
    assert "unknown, nobody said how it ended" in told
    assert "judge" not in told.partition("What is known of it")[2].replace("no model to judge", "")


def test_in_a_large_scope_a_topic_is_named_without_reading_every_lesson(tmp_path: Path) -> None:
    asked = Lesson(title="Turn it", content="Left.", topic=Topic(id="0a1b2c3d", name="open valve"))
    with bank_in(tmp_path) as bank:
        bank.lessons.add(title="Lift it", content="Lift the lid.", task="open the lid", by="Ana")
        assert topics_of(bank, [asked], most=0) == {"0a1b2c3d": "open valve"}
        assert asked.topic
        assert asked.topic.id not in topics_of(bank, [asked])


def test_a_recall_that_found_nothing_is_not_called_withheld(tmp_path: Path) -> None:
    evidence = lessonbank.Evidence(holdout=Holdout(0.0, recalls=0.999))
    with bank_in(tmp_path, evidence=evidence) as bank:
        recall = bank.retrieve("open the valve")
        assert (recall.lessons, recall.control) == ((), False)
    assert "withheld" not in said(tmp_path, "recalls")


def test_a_merged_lesson_names_the_runs_and_the_method_of_those_it_was_made_from(tmp_path: Path) -> None:
    origins = (
        Provenance(method="llm", model="gpt-5", trajectory_ids=("run-a",), verdict="success", verdict_source="human"),
        Provenance(method="extractive", trajectory_ids=("run-b",), verdict="failure", verdict_source="ground_truth"),
    )
    with bank_in(tmp_path) as bank:
        for number, origin in enumerate(origins):
            lesson = Lesson(id=f"{number}" * 32, title=f"Turn it {number}", content="Left.", provenance=origin)
            bank.consolidate(Experience(scope="t", task=f"open the valve {number}", lessons=(lesson,)))
        made = bank.lessons.merge("0" * 32, "1" * 32, title="Turn it", content="Turn it left.", by="Ana")
    told = said(tmp_path, "explain", made.id)
    assert "(llm, gpt-5, runs run-a: success (human))" in told
    assert "(extractive, no model, runs run-b: failure (ground_truth))" in told
    assert "unknown" not in told


def test_after_an_edit_no_repeat_is_said_to_have_the_words_of_now(tmp_path: Path) -> None:
    run = Trajectory(task="open the valve", steps=(Step(action="turn left", observation="error: stuck"),))
    with bank_in(tmp_path) as bank:
        for number in range(2):
            bank.learn(run.model_copy(update={"id": f"run-{number}"}), outcome="failure")
        (lesson,) = (one for one in bank.lessons.list() if bank.lessons.repeats(one.id))
        assert "the same" in said(tmp_path, "explain", lesson.id)
        bank.lessons.edit(lesson.id, title="Do not turn it left", by="Ana")
    told = said(tmp_path, "explain", lesson.id)
    assert "as the lesson said then" in told
    assert "the same" not in told


def test_a_recall_whose_outcome_stays_unknown_is_no_news_of_how_a_task_ended(tmp_path: Path) -> None:
    with bank_in(tmp_path) as bank:
        bank.learn("I opened it.", task="open the valve", recall=bank.retrieve("open the valve"))
        joined = bank.admin.counts().recalls_with_a_run
    assert joined == 1
    assert "heard how a task ended" not in said(tmp_path, "history", "list")
    scopes = lessonbank_cli("doctor", "--bank", "bank.db", cwd=tmp_path, COLUMNS="300").stdout
    assert "recalls with a run" in scopes
    assert "settled" not in scopes


def test_the_topic_in_the_list_is_the_one_that_the_list_takes(tmp_path: Path) -> None:
    with bank_in(tmp_path) as bank:
        for number, name in enumerate(("refund item", "refund item", "refund television")):
            lesson = Lesson(title=f"Ask {number}", content=f"{number} times.", topic=Topic(id="a" * 8, name=name))
            bank.consolidate(Experience(scope="t", task=f"refund order {number}", lessons=(lesson,)))
        nameless = Lesson(title="Wait", content="A day.", topic=Topic(id="b" * 8))
        bank.consolidate(Experience(scope="t", task="cancel it", lessons=(nameless,)))
    listed = said(tmp_path, "lessons", "list")
    assert (listed.count("refund item"), listed.count("refund television")) == (3, 0)
    assert "3 lessons" in said(tmp_path, "lessons", "list", "--topic", "refund item")
    assert "a topic without a name (bbbbbbbb)" in listed
    assert "1 lesson" in said(tmp_path, "lessons", "list", "--topic", "a topic without a name (bbbbbbbb)")
