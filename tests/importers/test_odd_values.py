"""Whatever stands in a field, the readers of newer forms give runs or reasons, and take linear time."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lessonbank.errors import FormatError
from lessonbank.importers import Imported, Skipped, read
from lessonbank.importers._reading import FAILED

from .test_atif import ONE
from .test_flat_spans import FORMS
from .test_frameworks_in_traces import FRAMEWORKS, observed
from .test_openhands_v1 import EVENTS, called, saw
from .test_saved_states import EVENTS as ADK_EVENTS
from .test_saved_states import STATE
from .test_streams import CLAUDE, CODEX, INIT, answered, ran, said, used
from .test_tau2_folders import simulation

ODD: tuple[Any, ...] = (None, [], {}, "x", 7, True, [[]], {"a": {}}, "[1]", '{"a": 1}', -1, 1e308)
VALUES: dict[str, Any] = {
    "atif": ONE,
    "openhands": EVENTS,
    "tau2": simulation("a"),
    "openai_agents": STATE,
    "adk": {"id": "s", "app_name": "t", "events": ADK_EVENTS},
    "claude_stream": list(CLAUDE),
    "codex_exec": list(CODEX),
    **{f"otel {name}": value for name, value in FORMS.items()},
    **{name: {"trace": {"id": "t1", "input": None}, "observations": rows} for name, rows in FRAMEWORKS.items()},
}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value that something can be put into."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *places(value[key]))]


@pytest.mark.parametrize("name", VALUES)
def test_an_odd_value_in_any_field_is_no_crash(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    path = tmp_path / "run.jsonl"
    (tmp_path / "task.txt").write_text("Make the tests pass", encoding="utf-8")
    for _ in range(100 if "LESSONBANK_SOAK" in os.environ else 20):
        value = json.loads(json.dumps(VALUES[name]))
        for inner, key in chance.choices(places(value), k=chance.randrange(1, 4)):
            inner[key] = chance.choice(ODD)
        lines = value if isinstance(value, list) and name.endswith(("stream", "exec")) else [value]
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        try:
            entries = list(read(path))
        except FormatError:
            continue
        for entry in entries:
            assert isinstance(entry, Imported) or not entry.reason.startswith(FAILED), entry


def stream(count: int) -> list[Any]:
    pairs = ((said(f"m{n}", used(f"c{n}", "ls")), answered(f"c{n}", "a.py")) for n in range(count))
    return [INIT, *(line for pair in pairs for line in pair)]


def events(count: int) -> list[Any]:
    return [
        EVENTS[1],
        *(one for n in range(count) for one in (called(f"c{n}", "ls"), saw(f"c{n}", "a.py", exit_code=0))),
    ]


def requests(count: int) -> list[Any]:
    ask = [{"role": "user", "content": "Go on"}]
    rows = [observed("GENERATION", n, ask if n == 0 else [], f"step {n}") for n in range(count)]
    return [{"trace": {"id": "t1"}, "observations": rows}]


LONG: dict[str, Callable[[int], list[Any]]] = {
    "claude_stream": stream,
    "codex_exec": lambda count: [CODEX[0], *(ran(f"i{n}", "ls", "a.py", 0) for n in range(count))],
    "openhands": events,
    "langfuse": requests,
}


@pytest.mark.full
@pytest.mark.parametrize("name", LONG)
def test_a_run_four_times_as_long_takes_about_four_times_as_long(name: str, tmp_path: Path) -> None:
    (tmp_path / "task.txt").write_text("Make the tests pass", encoding="utf-8")

    def seconds(count: int) -> float:
        path = tmp_path / "run.jsonl"
        path.write_text("\n".join(map(json.dumps, LONG[name](count))), encoding="utf-8")
        began = time.process_time()
        entries = list(read(path))
        assert not any(isinstance(entry, Skipped) for entry in entries)
        return time.process_time() - began

    seconds(10)
    assert seconds(800) < 12 * seconds(200) + 0.2


def test_other_programs_objects_with_a_history_are_no_trajectory_of_swe_agent(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Find the patient"}, {"role": "agent", "content": "GET /Patient"}]
    path = tmp_path / "task.json"
    path.write_text(json.dumps({"task_id": "t1", "history": history, "result": "[1]", "correct": True}))
    with pytest.raises(FormatError, match="in no known format"):
        list(read(path))


def test_results_of_terminal_bench_are_named_and_no_report_of_swe_bench(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": [{"task_id": "t"}], "resolved_ids": [], "pass_at_k": {}, "accuracy": 0.5}))
    with pytest.raises(FormatError, match=r"looks like a file of Terminal-Bench.*results"):
        list(read(path))


def test_the_id_of_a_run_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    talk = [{"role": "user", "content": "Fi nd — it"}, {"role": "assistant", "content": "Found.", "b": 1, "a": [None]}]
    path.write_text(json.dumps({"task": "Find it", "run_id": "7", "messages": talk}), encoding="utf-8")
    (run,) = read(path)
    assert isinstance(run, Imported)
    written = json.dumps(["neutral", "neutral", "7", "", "Find it", "", talk], sort_keys=True)
    assert run.trajectory.id == hashlib.sha256(written.encode()).hexdigest()[:32]


@pytest.mark.parametrize(("code", "failed", "succeeded"), [(0, False, True), (2, True, False), (-1, False, False)])
def test_an_exit_code_of_openhands_wins_over_words(code: int, failed: bool, succeeded: bool, tmp_path: Path) -> None:
    named = {"tool_call_id": "c1", "function_name": "execute_bash"}
    events: list[dict[str, Any]] = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Fix it"}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}, "tool_call_metadata": named},
        {"id": 2, "source": "agent", "observation": "run", "content": "Error page redesign", "cause": 1,
         "extras": {"metadata": {"exit_code": code}}, "tool_call_metadata": named},
    ]  # fmt: skip
    (tmp_path / "events.json").write_text(json.dumps(events), encoding="utf-8")
    (run,) = read(tmp_path / "events.json")
    assert isinstance(run, Imported)
    (seen,) = run.trajectory.steps[1].observations
    assert (seen.is_error, seen.is_success) == (failed, succeeded)
