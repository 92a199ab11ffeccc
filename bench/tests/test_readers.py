"""The measurement of readers: its own count agrees with sound readers, and shows what a reader loses."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from lessonbank_bench.measure import mutated_files, own_counts, readers
from lessonbank_bench.measure.readers import Listed, Reading

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Find the lamp"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "here"},
    {"role": "assistant", "content": "Found."},
]


def file(folder: Path, name: str, text: str) -> Listed:
    place = folder / "a+b" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return Listed("a/b", "0" * 40, name, hashlib.sha256(place.read_bytes()).hexdigest(), "A program")


def test_both_counts_agree_on_a_sound_file(tmp_path: Path) -> None:
    rows = [{"task_id": n, "traj": TALK, "reward": 1.0, "info": {}} for n in range(3)]
    found = readers.read(file(tmp_path, "runs.json", json.dumps(rows)), tmp_path)
    assert (found.form, found.read.runs, found.read.calls, found.read.outcomes) == ("tau_bench", 3, 3, 3)
    assert found.differences == {}


def test_a_call_that_a_reader_loses_is_a_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    listed = file(tmp_path, "runs.json", json.dumps([{"task_id": 1, "traj": TALK, "reward": 1.0}]))
    monkeypatch.setitem(own_counts.COUNTERS, "tau_bench", lambda path: own_counts.Count(calls=2))
    found = readers.read(listed, tmp_path)
    assert found.differences == {"calls": (1, 2)}
    assert found.said == ()


def test_the_table_has_both_numbers_of_a_form() -> None:
    told = Reading(Listed("a/b", "0", "c", "d", "e"), "atif", own_counts.Count(1, 2, 3, 4, 0), own_counts.Count(1), ())
    row = readers.table([told]).split("\n")[1]
    assert row.split() == ["atif", "1", "1", "(1)", "2", "(-)", "3", "(-)", "4", "(-)", "0", "(-)", "0,", "0"]


def test_the_list_names_each_file_once_by_repository_commit_path_and_hash() -> None:
    files = readers.listed()
    assert len(files) >= 500
    assert len({(one.repository, one.path) for one in files}) == len(files)
    assert len({one.program for one in files}) >= 20
    assert all(len(one.commit) == 40 and len(one.sha256) == 64 for one in files)


def test_damaged_copies_are_read_or_refused(tmp_path: Path) -> None:
    place = tmp_path / "runs.json"
    place.write_text(json.dumps([{"task_id": 1, "traj": TALK, "reward": 1.0}]), encoding="utf-8")
    told = mutated_files.read_damaged({"tau_bench": [place]}, files=60, seed=3)["tau_bench"]
    assert told.total() == 60
    assert set(told) <= {"read", "refused", "only reasons"}


def test_damage_is_the_same_for_the_same_seed() -> None:
    first, again = (mutated_files.damaged(b'{"a": [1, 2, 3]}' * 9, random.Random(5)) for _ in range(2))
    assert first == again != b'{"a": [1, 2, 3]}' * 9
