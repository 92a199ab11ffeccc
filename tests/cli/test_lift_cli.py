"""`lift` and `explain` on a command line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Evidence, Step, Trajectory
from lessonbank.bank.explanation import Explanation
from lessonbank.evidence import Holdout, Lift

pytestmark = pytest.mark.full

WHERE = ("--bank", "bank.db", "--scope", "t")
ROUNDS = 24


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """A bank in which memory makes all the difference, and the id of a recall without it."""
    path, without = tmp_path_factory.mktemp("made") / "bank.db", list[str]()
    with lessonbank.connect(
        path,
        scope="t",
        embedder="lexical",
        evidence=Evidence(holdout=Holdout(lessons=0.3, recalls=0.5, seed="valve 8")),
    ) as bank:
        first = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))
        bank.learn(first, outcome="failure")
        for n in range(ROUNDS):
            recall = bank.retrieve("open the valve")
            run = Trajectory(task="open the valve", steps=(Step(action=f"turn {n}", observation="open"),))
            bank.learn(run, recall=recall, outcome="failure" if recall.control else "success")
            without += [recall.id] if recall.control else []
        bank.admin.backup(path.with_name("copy.db"))
    return path.with_name("copy.db").read_bytes(), without[0]


@pytest.fixture
def folder(made: tuple[bytes, str], tmp_path: Path) -> Path:
    (tmp_path / "bank.db").write_bytes(made[0])
    return tmp_path


def test_the_answer_comes_first_and_the_lessons_after(folder: Path) -> None:
    done = lessonbank_cli("lift", *WHERE, cwd=folder)
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("Does memory help? Likely yes, keep it: success +9")
    assert rest[0].startswith("  Measuring has cost so far: 15 of 24 tasks without memory; about ")
    shares = re.search(r"with memory ([\d.]+) % of 9 tasks, without ([\d.]+) % of 15 tasks, chosen at random", rest[1])
    assert shares
    assert f"success +{float(shares[1]) - float(shares[2]):.1f} points" in first
    assert sum("open the valve" in line for line in rest) == 1
    none = lessonbank_cli("lift", *WHERE, "--lessons", 0, cwd=folder)
    assert "open the valve" not in none.stdout


def test_json_is_the_record(folder: Path) -> None:
    done = lessonbank_cli("lift", *WHERE, "--json", "--level", 0.9, cwd=folder)
    assert done.returncode == 0, done.stderr
    told = Lift.model_validate_json(done.stdout)
    assert (told.level, told.settled, told.controls) == (0.9, ROUNDS, 15)
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        assert bank.lift(level=0.9) == told
    assert json.loads(done.stdout)["lessons"][0]["kind"]


def test_a_page_is_written_and_an_earlier_one_replaced(folder: Path) -> None:
    (folder / "page.html").write_text("old", encoding="utf-8")
    done = lessonbank_cli("lift", *WHERE, "--html", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "the page is in 'page.html'" in done.stdout
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.endswith("</html>\n")
    assert not list(folder.glob("*.part")) + list(folder.glob(".*.part"))


def test_a_page_next_to_json_leaves_the_json_alone(folder: Path) -> None:
    done = lessonbank_cli("lift", *WHERE, "--html", "page.html", "--json", cwd=folder)
    assert Lift.model_validate_json(done.stdout).settled == ROUNDS
    assert "the page is in 'page.html'" in done.stderr
    assert (folder / "page.html").is_file()


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_page_is_as_private_as_its_bank(folder: Path) -> None:
    (folder / "bank.db").chmod(0o600)
    lessonbank_cli("lift", *WHERE, "--html", "page.html", cwd=folder)
    assert (folder / "page.html").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["bank.db", "."])
def test_no_page_takes_the_place_of_a_bank(folder: Path, name: str) -> None:
    before = (folder / "bank.db").read_bytes()
    done = lessonbank_cli("lift", *WHERE, "--html", name, cwd=folder)
    assert done.returncode == 2
    assert "the page" in done.stderr
    assert (folder / "bank.db").read_bytes() == before


def test_a_page_that_cannot_be_written_is_one_sentence(folder: Path) -> None:
    done = lessonbank_cli("lift", *WHERE, "--html", "missing/page.html", cwd=folder)
    assert done.returncode == 1
    assert "cannot write the page" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("level", [0.2, 1.0, "nan"])
def test_a_level_that_is_none_is_refused(folder: Path, level: object) -> None:
    done = lessonbank_cli("lift", *WHERE, "--level", level, cwd=folder)
    assert done.returncode == 2
    assert "level" in done.stderr


def test_a_mistyped_scope_is_told_which_there_are(folder: Path) -> None:
    done = lessonbank_cli("lift", "--bank", "bank.db", "--scope", "tt", "--html", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "this bank has: t" in done.stderr
    assert "Undecided, too few tasks" in done.stdout
    assert "nothing to draw" in (folder / "page.html").read_text(encoding="utf-8")


def test_a_recall_is_explained(folder: Path, made: tuple[bytes, str]) -> None:
    done = lessonbank_cli("explain", made[1], *WHERE, cwd=folder, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert f"recall {made[1]}: its task ended as a failure; memory was withheld whole" in done.stdout
    assert "task: open the valve" in done.stdout
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("1 ")]
    assert "Evidence: keep: likely helps, success +9" in row
    assert "memory was withheld whole (probability 0.5)" in row


def test_an_explanation_as_json_is_the_record(folder: Path, made: tuple[bytes, str]) -> None:
    done = lessonbank_cli("explain", made[1], *WHERE, "--json", cwd=folder)
    told = Explanation.model_validate(json.loads(done.stdout)["explanation"])
    assert (told.recall_id, told.control, told.outcome) == (made[1], True, "failure")


def test_what_was_withheld_is_not_said_to_be_unknown(folder: Path) -> None:
    done = lessonbank_cli("retrieve", "open the valve", *WHERE, "--keep", "--holdout", 0.999999999, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(no lesson is shown)")
    assert "each lesson that was found was withheld at random" in done.stderr
    assert "withheld at random (probability 1)" in " ".join(done.stdout.split())
