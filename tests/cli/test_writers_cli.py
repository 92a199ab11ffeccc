"""`writers` gives keys; `lessons` and `doctor` name what a person is asked to retire."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Experience, Lesson, Step, Trajectory
from lessonbank.contracts.records import GroupDraw
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.contracts.withholding import Members
from lessonbank.evidence import Assignment
from lessonbank.evidence.groups import BY
from lessonbank.evidence.review_snapshot import ReviewSnapshot

pytestmark = pytest.mark.full
RUN = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


def test_a_key_is_printed_once_and_can_be_ended(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        made = lessonbank_cli("writers", "add", "u-17", "--bank", "bank.db", cwd=tmp_path)
        bank.scoped(writer="u-17", key=made.stdout.strip()).learn(RUN, outcome="failure")
        listed = lessonbank_cli("writers", "list", "--bank", "bank.db", "--json", cwd=tmp_path)
        assert json.loads(listed.stdout) == ["u-17"]
        assert lessonbank_cli("writers", "remove", "u-17", "--bank", "bank.db", cwd=tmp_path).returncode == 0
        again = lessonbank_cli("writers", "remove", "u-17", "--bank", "bank.db", cwd=tmp_path)
        assert (again.returncode, "no writer 'u-17' has a key" in again.stderr) == (2, True)


class WritersOut:
    """A policy of the caller's own: one writer of two is withheld, nothing else."""

    usual = 0.5

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        writers = sorted({group for groups in lessons.values() for group in groups if group.startswith(BY)})
        draws = tuple(GroupDraw(group=writer, withheld=True, probability=0.5) for writer in writers[:1])
        return Assignment(probability=dict.fromkeys(lessons, 0.0), usual=0.5, groups=draws)


def test_a_writer_whose_lessons_are_withheld_and_measured_is_named(tmp_path: Path) -> None:
    where, evidence = ("--bank", "bank.db", "--scope", "t"), lessonbank.Evidence(WritersOut())
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical", evidence=evidence) as bank:
        for name in ("ana", "eve"):
            lesson = Lesson(title=f"Ask {name}", content=f"Ask {name} where the valve is.")
            handle = bank.scoped(writer=name, key=bank.admin.add_writer(name))
            handle.consolidate(Experience(scope="t", task="open the valve", lessons=(lesson,)))
        for number in range(25):
            run = Trajectory(id=f"run-{number}", task="open the valve")
            bank.learn(run, recall=bank.retrieve("open the valve"), reward=1.0)
        recall = bank.retrieve("open the valve")
        (gone,) = recall.withheld
    name = f"written by {gone.title.removeprefix('Ask ')}"
    assert f"as a group: {name}" in lessonbank_cli("recalls", "show", recall.id, *where, cwd=tmp_path).stdout
    assert name in lessonbank_cli("explain", recall.id, *where, cwd=tmp_path).stdout
    assert name in lessonbank_cli("lift", *where, cwd=tmp_path).stdout


def test_what_is_proposed_for_retirement_is_named(tmp_path: Path) -> None:
    where = ("--bank", "bank.db", "--scope", "t")
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        lesson = bank.learn(RUN, outcome="failure").lessons[0]
        bank.lessons.approve(lesson.id, by="Ana")
        assert json.loads(lessonbank_cli("lessons", "proposals", *where, "--json", cwd=tmp_path).stdout) == []
        why = "success -30.0 points [-45, -12], shown 90 times"
        anyio.run(bank.aio.store.put_setting, REVIEW.of("t"), ReviewSnapshot(proposed={lesson.id: (1000, why)}).text())
    assert why in lessonbank_cli("lessons", "proposals", *where, cwd=tmp_path).stdout
    assert "active, retirement proposed" in lessonbank_cli("lessons", "list", *where, cwd=tmp_path).stdout
    assert why in lessonbank_cli("doctor", "--bank", "bank.db", cwd=tmp_path).stdout
    (told,) = json.loads(lessonbank_cli("doctor", "--bank", "bank.db", "--json", cwd=tmp_path).stdout)["proposals"]["t"]
    assert (told["lesson"]["id"], told["reason"]) == (lesson.id, why)
    reason = ("--by", "Ana", "--reason", "the evidence")
    assert lessonbank_cli("lessons", "retire", lesson.id, *where, *reason, cwd=tmp_path).returncode == 0
    assert json.loads(lessonbank_cli("lessons", "proposals", *where, "--json", cwd=tmp_path).stdout) == []
