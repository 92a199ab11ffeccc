"""`keys` gives keys to writers; `lessons` and `doctor` name what a person is asked to retire."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Step, Trajectory
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.evidence.review_snapshot import ReviewSnapshot

pytestmark = pytest.mark.full
RUN = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


def test_a_key_is_printed_once_and_can_be_ended(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        made = lessonbank_cli("keys", "add", "u-17", "--kind", "writer", "--bank", "bank.db", cwd=tmp_path)
        bank.scoped(writer="u-17", key=made.stdout.strip()).learn(RUN, outcome="failure")
        listed = lessonbank_cli("keys", "list", "--bank", "bank.db", "--json", cwd=tmp_path)
        assert json.loads(listed.stdout) == [{"kind": "writer", "name": "u-17"}]
        remove = ("keys", "remove", "u-17", "--kind", "writer", "--bank", "bank.db")
        assert lessonbank_cli(*remove, cwd=tmp_path).returncode == 0
        again = lessonbank_cli(*remove, cwd=tmp_path)
        assert (again.returncode, "no writer 'u-17' has a key" in again.stderr) == (2, True)


def test_what_is_proposed_for_retirement_is_named(tmp_path: Path) -> None:
    where = ("--bank", "bank.db", "--scope", "t")
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        lesson = bank.learn(RUN, outcome="failure").lessons[0]
        bank.lessons.approve(lesson.id, by="Ana")
        assert json.loads(lessonbank_cli("lessons", "list", "--proposals", *where, "--json", cwd=tmp_path).stdout) == []
        why = "success -30.0 points [-45, -12], shown 90 times"
        anyio.run(bank.aio.store.put_setting, REVIEW.of("t"), ReviewSnapshot(proposed={lesson.id: (1000, why)}).text())
    assert why in lessonbank_cli("lessons", "list", "--proposals", *where, cwd=tmp_path).stdout
    assert "active, retirement proposed" in lessonbank_cli("lessons", "list", *where, cwd=tmp_path).stdout
    assert why in lessonbank_cli("doctor", "--bank", "bank.db", cwd=tmp_path).stdout
    (told,) = json.loads(lessonbank_cli("doctor", "--bank", "bank.db", "--json", cwd=tmp_path).stdout)["proposals"]["t"]
    assert (told["lesson"]["id"], told["reason"]) == (lesson.id, why)
    reason = ("--by", "Ana", "--reason", "the evidence")
    assert lessonbank_cli("lessons", "retire", lesson.id, *where, *reason, cwd=tmp_path).returncode == 0
    assert json.loads(lessonbank_cli("lessons", "list", "--proposals", *where, "--json", cwd=tmp_path).stdout) == []
