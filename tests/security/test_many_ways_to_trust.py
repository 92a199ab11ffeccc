"""Whoever writes runs, files or names can neither trust, free or read what is not theirs, nor stop the bank."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import (
    Evidence,
    Experience,
    Extraction,
    Lesson,
    LessonbankError,
    Parts,
    ReasoningBank,
    Recall,
    Run,
    Safety,
    Step,
    Trajectory,
)
from lessonbank.errors import UsageError

EVIL = "EVIL advice: press the red button twice."
TASK = "Cancel the pending order 1"


async def evil(runs: Sequence[Run]) -> Extraction:
    return Extraction(lessons=(Lesson(title="Evil", content=EVIL),))


async def nothing(runs: Sequence[Run]) -> Extraction:
    return Extraction()


def opened(
    where: str | Path = ":memory:", *, scope: str = "a", holdout: float | None = None, **more: Any
) -> ReasoningBank:
    parts = Parts(extractor=more.pop("extractor", evil))
    return lessonbank.connect(
        where, scope=scope, embedder="lexical", evidence=Evidence(holdout=holdout), parts=parts, **more
    )


@pytest.fixture
def bank() -> Iterator[ReasoningBank]:
    with opened() as bank:
        yield bank


def did(id: str, task: str = TASK) -> Trajectory:
    steps = (Step(action="log in", observation="welcome"), Step(action=task, observation="cancelled"))
    return Trajectory(id=id, task=task, steps=steps)


def is_shown(bank: ReasoningBank, words: str = "EVIL") -> bool:
    return words in bank.retrieve(TASK, limit=20).text


# Trust


@pytest.mark.parametrize("forge", ["", "wrong", "of another writer", "renewed", "removed"])
def test_only_the_present_key_of_a_writer_makes_a_second_witness(forge: str) -> None:
    with opened(safety=Safety(trust="corroborated")) as bank:
        ana, bob = bank.admin.add_writer("Ana"), bank.admin.add_writer("Bob")
        if forge == "renewed":
            bank.admin.add_writer("BOB")
        elif forge == "removed":
            bank.admin.remove_writer("Bob")
        key = {"": "", "wrong": "x" * len(bob), "of another writer": ana}.get(forge, bob)
        bank.scoped(writer="Ana", key=ana).learn(did("r1"), outcome="success")
        with pytest.raises(LessonbankError):
            bank.scoped(writer="Bob", key=key).learn(did("r2", "Cancel the pending order 2"), outcome="success")
        assert not is_shown(bank)


def _rolled_back(bank: ReasoningBank, lesson: Lesson) -> None:
    bank.history.rollback(to=1, reason="a broken tool")


def _taken_out_and_back(bank: ReasoningBank, lesson: Lesson) -> None:
    bank.history.rollback(to=0, reason="a broken tool")
    bank.history.rollback(to=1, reason="it was fine")


def _retired_and_restored(bank: ReasoningBank, lesson: Lesson) -> None:
    bank.lessons.retire(lesson.id, reason="old")
    bank.lessons.restore(lesson.id, reason="new")


def _taught_again(bank: ReasoningBank, lesson: Lesson) -> None:
    bank.learn(did("again", "Cancel the pending order 7"), outcome="success")


def _moved_by_a_file(bank: ReasoningBank, lesson: Lesson) -> None:
    bank.admin.export("bank.jsonl")
    bank.admin.purge(all=True, reason="anew")
    bank.admin.import_("bank.jsonl", approved_by="Eve")


def _consolidated_under_another_id(bank: ReasoningBank, lesson: Lesson) -> None:
    again = lesson.model_copy(update={"id": "9" * 32, "state": "active"})
    bank.consolidate(Experience(scope="a", task=TASK, lessons=(again,)))


QUARANTINE = (
    _rolled_back,
    _taken_out_and_back,
    _retired_and_restored,
    _taught_again,
    _moved_by_a_file,
    _consolidated_under_another_id,
)


@pytest.mark.parametrize("way", QUARANTINE, ids=lambda way: way.__name__)
def test_only_an_approval_lets_a_lesson_out_of_quarantine(
    way: Callable[[ReasoningBank, Lesson], None], bank: ReasoningBank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lesson = bank.learn(did("r1"), outcome="success").lessons[0]
    bank.lessons.quarantine(lesson.id, reason="harmful", by="Ana")
    with suppress(LessonbankError):
        way(bank, lesson)
    assert not is_shown(bank)
    last = bank.history.list()[-1].sequence
    assert bank.history.state(last).lessons() == bank.lessons.list()
    assert bank.admin.verify() == ()


# Files


def sealed(path: Path, records: Sequence[object], **head: object) -> Path:
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    first = {"format": "lessonbank-export", "version": 1, "scope": "a"} | head
    last = {"end": True, "records": len(records), "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(json.dumps(first).encode() + b"\n" + body + json.dumps(last).encode() + b"\n")
    return path


def exported(**lesson: object) -> dict[str, object]:
    record = Experience(scope="a", task=TASK, lessons=(Lesson(title="Evil", content=EVIL),)).model_dump(mode="json")
    record["lessons"][0] |= lesson
    return {"kind": "experience", "record": record}


@pytest.mark.parametrize("version", [-1, 0, True, 1.5, "1", 10**30, None], ids=repr)
def test_an_export_of_no_known_version_is_refused(version: object, bank: ReasoningBank, tmp_path: Path) -> None:
    with pytest.raises(LessonbankError):
        bank.admin.import_(sealed(tmp_path / "x.jsonl", [exported()], version=version))
    assert not bank.lessons.list()


WRONG: dict[str, object] = {
    "content": " ",
    "created_at": "9999-12-31T23:59:59-23:59",
    "version": 2**80,
    "provenance": {"evidence": [["deep"]]},
}


@pytest.mark.parametrize("field", WRONG)
def test_an_import_is_whole_or_refused(field: str, bank: ReasoningBank, tmp_path: Path) -> None:
    sound = exported(id="1" * 32, content="Good advice: press the green button once.")
    with suppress(LessonbankError):
        bank.admin.import_(sealed(tmp_path / "x.jsonl", [sound, exported(**{field: WRONG[field]})]))
    assert len(bank.lessons.list()) in {0, 2}
    assert bank.admin.verify() == ()


def _fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _circle(path: Path) -> Path:
    path.symlink_to(path.name)
    return path


@pytest.mark.parametrize(
    "call", ["restore from", "restore to", "salvage from", "salvage to", "backup", "import", "open"]
)
def test_a_circle_of_links_is_refused(call: str, tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db") as bank:
        bank.admin.backup(tmp_path / "backup.db")
        odd = _circle(tmp_path / "odd")
        calls: dict[str, Callable[[], object]] = {
            "restore from": lambda: lessonbank.restore(odd, tmp_path / "new.db"),
            "restore to": lambda: lessonbank.restore(tmp_path / "backup.db", odd),
            "salvage from": lambda: lessonbank.salvage(odd, tmp_path / "new.db"),
            "salvage to": lambda: lessonbank.salvage(tmp_path / "backup.db", odd),
            "backup": lambda: bank.admin.backup(odd),
            "import": lambda: bank.admin.import_(odd),
            "open": lambda: opened(odd),
        }
        with pytest.raises(LessonbankError):
            calls[call]()


def test_an_export_does_not_take_the_place_of_a_pipe(bank: ReasoningBank, tmp_path: Path) -> None:
    odd = _fifo(tmp_path / "odd")
    with pytest.raises(UsageError, match="no file"):
        bank.admin.export(odd)
    assert odd.is_fifo()


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_device_beside_a_bank_is_refused(ending: str, tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db") as bank:
        bank.admin.backup(tmp_path / "backup.db")
    (tmp_path / f"backup.db{ending}").symlink_to("/dev/zero")
    calls: tuple[Callable[[], object], ...] = (
        lambda: opened(tmp_path / "backup.db"),
        lambda: lessonbank.restore(tmp_path / "backup.db", tmp_path / "new.db"),
        lambda: lessonbank.salvage(tmp_path / "backup.db", tmp_path / "new.db"),
        lambda: lessonbank.restore(tmp_path / "bank.db", tmp_path / "backup.db"),
    )
    for call in calls:
        with pytest.raises(UsageError, match="no file"):
            call()
    assert not (tmp_path / "new.db").exists()


def test_a_pipe_is_no_bank(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        opened(_fifo(tmp_path / "odd"))


PIPES = """
import lessonbank
for call in (
    lambda: lessonbank.connect("odd", scope="a", embedder="lexical"),
    lambda: lessonbank.restore("backup.db", "odd"),
    lambda: lessonbank.restore("piped.db", "new.db"),
    lambda: lessonbank.salvage("piped.db", "new.db"),
):
    try:
        call()
    except lessonbank.LessonbankError:
        print("refused")
"""


@pytest.mark.full
def test_a_pipe_in_the_place_of_a_file_does_not_stop_the_process(tmp_path: Path) -> None:
    """Of a bank, of what a restore replaces, of the log of a backup and of that of a damaged bank."""
    with opened(tmp_path / "bank.db") as bank:
        bank.admin.backup(tmp_path / "backup.db")
        bank.admin.backup(tmp_path / "piped.db")
    _fifo(tmp_path / "odd")
    _fifo(tmp_path / "piped.db-wal")
    done = subprocess.run(
        [sys.executable, "-c", PIPES], cwd=tmp_path, timeout=60, check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.count("refused") == 4


# Receipts

FORGED: dict[str, dict[str, object]] = {
    "odds": {"control_probability": 0.5},
    "nothing considered": {"candidates": ()},
    "task": {"task": "another"},
    "text": {"text": EVIL, "text_digest": hashlib.sha256(EVIL.encode()).hexdigest()},
    "id": {"id": "0" * 32},
    "no signature": {"signature": ""},
    "odd signature": {"signature": "\u00e9"},
    "metadata": {"metadata": {"template": "x"}},
    "rate": {"holdout": 0.9},
}


@pytest.mark.full
@pytest.mark.parametrize("change", FORGED)
def test_a_changed_receipt_that_the_bank_did_not_keep_is_not_kept_later(change: str, tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db", holdout=0.2) as bank:
        bank.lessons.add(title="Good", content="Log in first.", task=TASK, by="Ana")
        other = sqlite3.connect(tmp_path / "bank.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        recall = bank.retrieve(TASK)
        other.close()
        assert not recall.kept
        with suppress(LessonbankError):
            bank.learn(did("r1"), recall=recall.model_copy(update=FORGED[change]), outcome="failure")
        assert not bank.recalls.list()
        assert bank.lift().recalls == 0


def test_a_receipt_made_by_hand_is_not_kept(bank: ReasoningBank) -> None:
    forged: tuple[dict[str, Any], ...] = ({}, {"kept": False}, {"kept": False, "signature": "0" * 64})
    for number, more in enumerate(forged):
        with suppress(LessonbankError):
            bank.learn(did(f"r{number}"), recall=Recall(scope="a", task=TASK, **more), outcome="failure")
    assert not bank.recalls.list()
    assert bank.lift().recalls == 0
