"""Parts of ids on the command line: what names one record is enough, and what names several says which."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Evidence, Step, Trajectory

pytestmark = pytest.mark.full

WHERE = ("--bank", "bank.db", "--scope", "t")
BY = ("--by", "Ana", "--reason", "checked")


def fill(path: Path) -> None:
    with lessonbank.connect(path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        for n in range(3):
            run = Trajectory(
                id=f"run-number-{n}", task=f"Ship box {n} abroad", steps=(Step(action="print", observation="error"),)
            )
            bank.learn(run, recall=bank.retrieve(f"Ship box {n} abroad"), outcome="failure")


@pytest.fixture
def folder(tmp_path: Path, copied: Callable[..., Path]) -> Path:
    return copied(fill, tmp_path)


def told(folder: Path, *words: object) -> str:
    done = lessonbank_cli(*words, *WHERE, cwd=folder, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_table_fits_80_columns_and_its_short_ids_are_accepted(folder: Path) -> None:
    tables = {
        "lessons": told(folder, "lessons", "list"),
        "runs": told(folder, "runs", "list"),
        "recalls": told(folder, "recalls"),
    }
    for table in tables.values():
        rows = table.splitlines()[2:]
        assert len([row for row in rows if not row.startswith(" ")]) == 3, table
        for row in rows:
            if not row.startswith(" "):
                assert len(row.split()[0]) == 8
                assert "box" in told(folder, "explain", row.split()[0])
    history = told(folder, "history", "list")
    assert all(len(line) <= 80 for table in [*tables.values(), history] for line in table.splitlines())


def test_the_beginning_or_the_end_of_an_id_is_enough_for_every_command_on_a_lesson(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        first, second, _ = bank.lessons.list()
        begins = first.id[:-4]
        assert not second.id.startswith(begins)
        for command, given in (
            ("retire", first.id[-8:]),
            ("retire --undo", begins),
            ("retire --quarantine", first.id[-4:]),
            ("approve", first.id),
        ):
            told(folder, "lessons", *command.split(), given, *BY)
        assert {entry.writer for entry in bank.history.list(after=6)} == {"Ana"}
        kinds = [entry.entry.kind for entry in bank.history.list(lesson=first.id)]
        assert kinds == ["add", "retire", "restore", "trust", "trust"]
        assert bank.lessons.get(first.id).state == "active"


def test_an_ambiguous_id_is_an_error_that_names_the_candidates(folder: Path) -> None:
    for command, rest, name in (("tell", ("failure", "--by", "Ana"), ""), ("explain", (), "run: ")):
        done = lessonbank_cli(command, "run-num", *rest, *WHERE, cwd=folder)
        assert done.returncode == 2
        assert "'run-num' names 3 records: give the last 8 characters of one" in done.stderr
        assert all(f"number-{n} ({name}Ship box {n} abroad)" in done.stderr for n in range(3))
    assert "run-number-1" in told(folder, "explain", "run-number-1")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("explain", "abc"), 2, "'abc' is too short for an id: give at least 4 characters"),
        (("explain", "nothing"), 1, "there is no record 'nothing' in this scope [not_found]"),
        (("explain", "f" * 32), 1, "[not_found]"),
        (("lessons", "retire", "f" * 32, *BY), 1, "[not_found]"),
    ],
)
def test_an_id_that_names_nothing_is_one_sentence(
    folder: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    done = lessonbank_cli(*words, *WHERE, cwd=folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1), done.stderr
    assert sentence in done.stderr


def test_lists_go_on_after_the_short_id_that_they_end_with(folder: Path) -> None:
    for what in (("lessons", "list"), ("runs", "list"), ("recalls",)):
        done = lessonbank_cli(*what, "--limit", 2, *WHERE, cwd=folder)
        after = done.stderr.partition("--after ")[2].split()[0]
        rest = json.loads(told(folder, *what, "--after", after, "--json"))
        assert len(rest) == 1


def test_recalls_of_a_lesson_say_who_was_shown_it(folder: Path) -> None:
    lesson = json.loads(told(folder, "lessons", "list", "--json"))[-1]["id"]
    shown = json.loads(told(folder, "recalls", "--lesson", lesson[-8:], "--json"))
    assert [recall["task"] for recall in shown] == ["Ship box 2 abroad", "Ship box 1 abroad"]
    whole = told(folder, "explain", shown[0]["id"][-8:])
    assert "<<<lessons" in whole
    assert lesson[-8:] in whole


def test_changes_of_one_experience_are_found_by_a_part_of_its_id(folder: Path) -> None:
    entries = json.loads(told(folder, "history", "list", "--json"))
    added = [change for change in entries if change["entry"]["kind"] == "add"][1]
    part = added["entry"]["experience"]["id"][-8:]
    assert part in told(folder, "history", "list")
    found = json.loads(told(folder, "history", "list", "--experience", part, "--json"))
    assert added["sequence"] in [change["sequence"] for change in found]
    assert len(found) < len(entries)


def test_a_part_of_an_id_that_a_run_and_a_recall_share_names_neither(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        recall = bank.recalls.list()[0].id
        bank.learn(Trajectory(id=f"{recall[:6]}-a-run", task="Sweep", steps=(Step(action="sweep"),)), outcome="failure")
    done = lessonbank_cli("tell", recall[:6], "success", *WHERE, cwd=folder)
    assert done.returncode == 2
    assert "give the last 8 characters of one" in done.stderr
    told(folder, "tell", recall[-12:], "success")
