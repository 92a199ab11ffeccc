"""An export is a backup: lossless, checked, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import ReasoningBank, Step, Trajectory
from lessonbank.errors import FormatError, StoreUnavailable
from lessonbank.types import Counts

resource = pytest.importorskip("resource", reason="file size limits are POSIX")
OPTIONS: dict[str, Any] = {"embedder": "lexical", "holdout": 0.3}


def filled(where: Any) -> ReasoningBank:
    bank = lessonbank.connect(where, scope="from", **OPTIONS)
    for n in range(4):
        looked = Step(action="look \ud83d", observation=f"error: locked by {n}")
        steps = (
            looked,
            Step(action="unlock it", observation="unlocked"),
            Step(action="look there", observation="found"),
        )
        recall = bank.retrieve(f"find thing {n}")
        bank.learn(
            Trajectory(task=f"find thing {n}", steps=steps), recall=recall, outcome=("success", "failure")[n % 2]
        )
    bank.learn(Trajectory(task="find thing 9", steps=(Step(action="x", observation="y"),)))
    bank.retire(bank.items()[0].id, reason="test")
    return bank


def contents(bank: ReasoningBank, path: Path) -> list[str]:
    bank.export(path)
    return path.read_text(encoding="utf-8").splitlines()[1:-1]


@pytest.mark.parametrize("where", [":memory:", "bank.db"])
def test_what_is_imported_exports_to_the_same_lines(tmp_path: Path, where: str) -> None:
    place = where if where == ":memory:" else tmp_path / where
    with filled(tmp_path / "source.db") as source, lessonbank.connect(place, scope="from", **OPTIONS) as copy:
        original = contents(source, tmp_path / "a.jsonl")
        copy.import_(tmp_path / "a.jsonl")
        assert contents(copy, tmp_path / "b.jsonl") == original
        assert copy.counts() == source.counts()
        assert copy.retrieve("find thing 1").items == source.retrieve("find thing 1").items


def test_a_second_import_adds_nothing(tmp_path: Path) -> None:
    with filled(":memory:") as source, lessonbank.connect(":memory:", scope="to", **OPTIONS) as copy:
        written = source.export(tmp_path / "a.jsonl")
        assert copy.import_(tmp_path / "a.jsonl") == written
        assert copy.import_(tmp_path / "a.jsonl") == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: lines[:-1],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[1].replace("find", "lose"), *lines[2:]],
        lambda lines: ["{}", *lines[1:]],
        lambda lines: [],
        lambda lines: ["not json at all"],
        lambda lines: [lines[0].replace('"version": 1', '"version": 99'), *lines[1:]],
    ],
    ids=["cut short", "line missing", "line changed", "no header", "empty", "other file", "newer version"],
)
def test_a_damaged_export_is_refused_and_nothing_is_imported(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "a.jsonl"
    with filled(":memory:") as source:
        source.export(path)
    path.write_text("".join(line + "\n" for line in damage(path.read_text("utf-8").splitlines())), encoding="utf-8")
    with lessonbank.connect(":memory:", scope="to", **OPTIONS) as copy:
        with pytest.raises(FormatError):
            copy.import_(path)
        assert copy.counts().trajectories == 0


def test_an_export_that_fails_leaves_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with filled(":memory:") as source:
        source.export(path)
        before = path.read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(StoreUnavailable, match="cannot write the export"):
                source.export(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_export_to_nowhere_is_one_clear_error(tmp_path: Path) -> None:
    with filled(":memory:") as source, pytest.raises(StoreUnavailable, match="cannot write the export"):
        source.export(tmp_path / "missing" / "a.jsonl")


def test_an_older_export_does_not_undo_a_later_settlement(tmp_path: Path) -> None:
    with lessonbank.connect(":memory:", scope="t", **OPTIONS) as bank:
        recall, run = bank.retrieve("x"), Trajectory(task="x", steps=(Step(action="look", observation="found"),))
        bank.learn(run, recall=recall, outcome="success")
        bank.export(tmp_path / "a.jsonl")
        bank.learn(run, recall=recall, outcome="failure")
        assert bank.import_(tmp_path / "a.jsonl") == 0
        bank.export(tmp_path / "b.jsonl")
    assert '"outcome": "failure"' in (tmp_path / "b.jsonl").read_text(encoding="utf-8")


def test_a_record_that_a_newer_release_wrote_is_refused_before_anything_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with filled(":memory:") as source:
        source.export(path)
    head, *lines, _ = path.read_text("utf-8").splitlines(keepends=True)
    lines[-1] = (
        lines[-1].replace('{"kind"', '{"new_field": 1, "kind"').replace('"record": {', '"record": {"mood": "sunny", ')
    )
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    end = json.dumps({"end": True, "records": len(lines), "sha256": digest}) + "\n"
    path.write_text("".join([head, *lines, end]), encoding="utf-8")
    with lessonbank.connect(":memory:", scope="to", **OPTIONS) as copy:
        with pytest.raises(FormatError, match="malformed"):
            copy.import_(path)
        assert copy.counts() == Counts()
