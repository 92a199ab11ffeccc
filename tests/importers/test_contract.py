"""The public contract of readers holds for readers of ours, for the example, and catches a reader that is not sound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples_of import load

from lessonbank import importers
from lessonbank.testing import ImporterContract

EXAMPLE: Any = load("own_reader")


class TestTheExample(EXAMPLE.TestShopLog):  # type: ignore[misc,name-defined]
    """What the example shows, run with the other tests."""


class TestNeutral(ImporterContract):
    format = "neutral"

    def write(self, folder: Path, /, *, runs: int) -> Path:
        call = {"id": "1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "W1"}'}}
        rows = [
            {
                "task": f"Cancel order W{number}",
                "success": True,
                "messages": [
                    {"role": "user", "content": f"Cancel order W{number}"},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "1", "content": "cancelled"},
                    {"role": "assistant", "content": "Done."},
                ],
            }
            for number in range(runs)
        ]
        path = folder / "runs.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return path


@pytest.mark.full
class TestAtif(ImporterContract):
    format = "atif"
    outcome = None

    def write(self, folder: Path, /, *, runs: int) -> Path:
        call = {"tool_call_id": "1", "function_name": "bash", "arguments": {"cmd": "ls"}}
        seen = {"results": [{"source_call_id": "1", "content": "a.py"}]}
        rows = [
            {
                "schema_version": "ATIF-v1.6",
                "session_id": str(number),
                "agent": {"name": "a"},
                "steps": [
                    {"source": "user", "message": "List the files"},
                    {"source": "agent", "message": "", "tool_calls": [call], "observation": seen},
                ],
            }
            for number in range(runs)
        ]
        path = folder / "trajectories.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return path


class Careless(TestNeutral):
    """Loses every result."""

    __test__ = False

    def entries(self, path: Path, /) -> Iterator[importers.Entry]:
        def build(entry: Any, source: importers.Source, line: int) -> importers.Run:
            messages = [one for one in entry["messages"] if one["role"] != "tool"]
            return importers.Run(messages, source="x", run_id=str(line), success=entry["success"])

        return importers.read(path, format=importers.entries("x", "x", lambda value, name: True, build))


def test_a_reader_that_loses_results_does_not_pass(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Careless().test_calls_have_their_results(tmp_path)


def test_an_entry_that_a_reader_did_not_expect_costs_only_itself(tmp_path: Path) -> None:
    path = EXAMPLE.TestShopLog().write(tmp_path, runs=2)
    path.write_text(path.read_text() + '\n{"log": 3}', encoding="utf-8")
    good, also_good, odd = list(importers.read(path, format=EXAMPLE.FORMAT))
    assert isinstance(good, importers.Imported)
    assert isinstance(also_good, importers.Imported)
    assert isinstance(odd, importers.Skipped)
    assert odd.reason == "the reader failed: KeyError: 'ticket'"


def test_a_format_of_ones_own_reads_the_files_of_a_folder_that_it_knows(tmp_path: Path) -> None:
    EXAMPLE.TestShopLog().write(tmp_path, runs=2)
    (tmp_path / "other.json").write_text('{"messages": [{"role": "user", "content": "Hi"}]}', encoding="utf-8")
    entries = list(importers.read(tmp_path, format=EXAMPLE.FORMAT))
    assert [type(entry).__name__ for entry in entries] == ["Imported", "Imported"]


@pytest.mark.full
class TestAider(ImporterContract):
    format = "aider"
    calls = results = 0
    outcome = None

    def write(self, folder: Path, /, *, runs: int) -> Path:
        path = folder / ".aider.chat.history.md"
        chats = (
            f"# aider chat started at 2025-06-02 11:{number // 60:02}:{number % 60:02}\n\n"
            f"#### Fix parser {number}  \n\nI did.\n\n> Applied edit to parser.py  \n"
            for number in range(runs)
        )
        path.write_text("\n".join(chats), encoding="utf-8")
        return path
