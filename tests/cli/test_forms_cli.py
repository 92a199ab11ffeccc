"""Commands that have several forms: each form does its part, and options of two forms together are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Experience, Lesson, Step, Trajectory

pytestmark = pytest.mark.full

WHERE = ("--bank", "bank.db", "--scope", "t")
BY = ("--by", "Ana", "--reason", "checked")
RUN = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


def fill(path: Path) -> None:
    with lessonbank.connect(path, scope="t", embedder="lexical") as bank:
        bank.learn(RUN, recall=bank.retrieve(RUN.task), outcome="failure")


@pytest.fixture
def folder(tmp_path: Path, copied: Callable[..., Path]) -> Path:
    return copied(fill, tmp_path)


def lesson_of(folder: Path) -> str:
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        return bank.lessons.list()[0].id


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("learn", *WHERE), "FILES"),
        (("learn", "bank.db", "--scope", "t"), "--bank"),
        (("learn", "bank.db", "--waiting", *WHERE), "--waiting"),
        (("learn", "--waiting", "--outcome", "success", *WHERE), "--waiting"),
        (("learn", "bank.db", "--run", "abcd", *WHERE), "--run"),
        (("learn", "--waiting", "--bank", "none.db", "--scope", "t"), "there is no bank"),
        (("learn", "--waiting", "--jobs", "4", *WHERE), "--waiting"),
        (("learn", "--waiting", "--format", "auto", *WHERE), "--waiting"),
        (("learn", "--waiting", "--follow-links", *WHERE), "--waiting"),
        (("lessons", "list", "--proposals", "--kind", "strategy", *WHERE), "--proposals"),
        (("lessons", "list", "--proposals", "--limit", "50", *WHERE), "--proposals"),
        (("lessons", "edit", "abcd", "--only", "", *WHERE, *BY), "--only"),
        (("lessons", "edit", "abcd", "--only", "valve", "--only", " ", *WHERE, *BY), "--only"),
        (("lessons", "edit", "abcd", "--only", "valve", "--title", "Turn", *WHERE, *BY), "--only"),
        (("lessons", "edit", "abcd", "--only", "valve", "--any-task", *WHERE, *BY), "--only"),
        (("lessons", "merge", "abcd", "--experience", "efgh", *WHERE, *BY), "--experience"),
        (("lessons", "merge", "abcd", "--undo", "--title", "Turn", *WHERE, *BY), "--undo"),
        (("lessons", "merge", "abcd", "--undo", *WHERE, "--by", "Ana"), "--reason"),
        (("lessons", "merge", "abcd", "--undo", "--reason", " ", *WHERE, "--by", "Ana"), "--reason"),
        (("hook", "status", "--learn", "--stop"), "--stop"),
        (("export", "a.md", "b.md", *WHERE), "--sync"),
        (("export", "a.md", "--preview", *WHERE), "--preview"),
        (("export", "a.md", "--sync", "--all", *WHERE), "--sync"),
        (("export", "a.md", "--sync", "--format", "jsonl", *WHERE), "--sync"),
        (("export", "a.jsonl", "--all", *WHERE), "--all"),
        (("export", "a", "--format", "atif", "--budget", "9", *WHERE), "--budget"),
        (("hook", "scope", "--share", "--move", "--by", "Ana"), "--move"),
        (("serve", "--try", "--bank", "bank.db"), "--try"),
        (("mcp", "--repository", *WHERE), "--repository"),
        (("proxy", "--upstream", "http://127.0.0.1:1", "--keys", "keys.json", *WHERE), "--scope"),
        (("backup", "mysql://host/x", "--bank", "bank.db"), "'mysql' is not a store of this release"),
        (("backup", "postgresql://host/x", "--bank", "http://127.0.0.1:1"), "backed up to a file, or copied where"),
        (("history", "diff", "0", "1", "--check", "", *WHERE), "the check is empty"),
        (("history", "diff", "0", "1", "--other-scope", "u", *WHERE), "--other-scope"),
        (("history", "diff", "--other-bank", "", *WHERE), "--other-bank"),
        (("history", "diff", "--other-bank", "none.db", *WHERE), "--other-bank"),
        (("keys", "add", "--bank", "bank.db"), "NAME"),
        (("keys", "add", "shop", "--scope", "t", "--replaces", "", "--bank", "bank.db"), "--replaces"),
        (("keys", "add", "shop", "--bank", "bank.db"), "--scope"),
        (("keys", "add", "shop", "--scope", "t", "--whole-bank", "--bank", "bank.db"), "--scope"),
        (("keys", "add", "shop", "--scope", "t", "--overlap", "1", "--bank", "bank.db"), "--overlap"),
        (("keys", "add", "shop", "--replaces", "abcd", "--bank", "bank.db"), "--replaces"),
        (("keys", "add", "--replaces", "abcd", "--role", "admin", "--bank", "bank.db"), "--replaces"),
        (("keys", "add", "Ana", "--kind", "reviewer", "--role", "admin", "--bank", "bank.db"), "--role"),
        (("keys", "add", "u-17", "--kind", "writer", "--days", "0", "--bank", "bank.db"), "--days"),
        (("keys", "add", "--replaces", "u-17", "--kind", "writer", "--bank", "bank.db"), "--replaces"),
    ],
)
def test_options_of_two_forms_are_refused_in_one_sentence_and_nothing_is_done(
    folder: Path, words: tuple[str, ...], named: str
) -> None:
    before = {path: path.stat().st_size for path in folder.iterdir()}
    done = lessonbank_cli(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (sentence,) = done.stderr.splitlines()
    assert sentence.endswith("[usage]")
    assert named in sentence
    assert {path: path.stat().st_size for path in folder.iterdir() if path in before} == before
    assert not list(folder.glob("*.md"))


def test_explain_finds_out_what_an_id_names(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        lesson, run, recall = bank.lessons.list()[0].id, bank.runs.list()[0].trajectory.id, bank.recalls.list()[0].id
    for id, what in ((lesson, "lesson"), (run, "run"), (recall, "recall")):
        for given in (id, id[-8:]):
            told = json.loads(lessonbank_cli("explain", given, "--json", *WHERE, cwd=folder).stdout)
            assert next(iter(told)) == what
            assert json.dumps(told[what]).count(id) >= 1


def test_explain_says_how_far_a_lesson_is_trusted_and_doubts_none_that_a_person_vouched_for(folder: Path) -> None:
    id = lesson_of(folder)
    assert "probation (unchecked)" in explained(folder, id)
    lessonbank_cli("lessons", "approve", id, *WHERE, *BY, cwd=folder)
    assert "active" in explained(folder, id)
    assert "unchecked" not in explained(folder, id)
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        talk = "Sure! Here are the three lessons that I drew from the run you gave me."
        doubted = Lesson(title="Lessons", content=talk, kind="strategy")
        bank.consolidate(Experience(scope="t", task="stop the pump", lessons=(doubted,)))
        id = next(lesson.id for lesson in bank.lessons.list() if lesson.title == "Lessons")
    assert "probation: may be no lesson" in explained(folder, id)


def explained(folder: Path, id: str) -> str:
    return lessonbank_cli("explain", id, *WHERE, cwd=folder, COLUMNS="200").stdout


def test_a_part_of_an_id_that_a_lesson_and_a_run_share_is_ambiguous(folder: Path) -> None:
    end = lesson_of(folder)[-6:]
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        bank.learn(Trajectory(id=f"run-{end}", task="close the valve"), outcome="success")
    done = lessonbank_cli("explain", end, *WHERE, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'{end}' names 2 records" in done.stderr
    assert "(lesson: " in done.stderr
    assert f"{f'run-{end}'[-8:]} (run: close the valve)" in done.stderr


def test_a_lesson_is_kept_for_some_tasks_and_for_every_task_again(folder: Path) -> None:
    lesson = lesson_of(folder)
    kept = lessonbank_cli("lessons", "edit", lesson, "--only", "big valve", "--only", "tap", *WHERE, *BY, cwd=folder)
    assert "is kept for big valve or tap" in kept.stdout
    again = lessonbank_cli("lessons", "edit", lesson, "--any-task", "--json", *WHERE, *BY, cwd=folder)
    assert json.loads(again.stdout)["only"] == []


def test_one_list_has_the_keys_of_every_kind(folder: Path) -> None:
    bank = ("--bank", "bank.db")
    lessonbank_cli("keys", "add", "shop", "--scope", "t", "--role", "reader", *bank, cwd=folder)
    lessonbank_cli("keys", "add", "u-17", "--kind", "writer", *bank, cwd=folder)
    every = json.loads(lessonbank_cli("keys", "list", "--json", *bank, cwd=folder).stdout)
    assert [(one["kind"], one["name"]) for one in every] == [("writer", "u-17"), ("server", "shop")]
    some = json.loads(lessonbank_cli("keys", "list", "--kind", "server", "--json", *bank, cwd=folder).stdout)
    assert some == [one for one in every if one["kind"] == "server"]
    table = lessonbank_cli("keys", "list", *bank, cwd=folder).stdout
    assert "2 keys" in table
    assert "not protected from an agent on this machine" in table


def test_what_a_merge_joined_comes_back_one_lesson_at_a_time(folder: Path) -> None:
    lesson = lesson_of(folder)
    done = lessonbank_cli("lessons", "merge", lesson, lesson, "--undo", *WHERE, *BY, cwd=folder)
    assert (done.returncode, "the one lesson that stands for the others" in done.stderr) == (2, True)


def test_a_week_before_the_first_session_names_what_makes_the_bank(tmp_path: Path) -> None:
    done = lessonbank_cli("week", cwd=tmp_path, HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "yet: the first session of an agent" in " ".join(done.stderr.split())
