"""Whatever a file holds, reading it ends in runs and reasons, never in a crash."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from any_text import any_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear import FAR, growth_of

from lessonbank.errors import FormatError
from lessonbank.importers import FORMATS, Imported, Skipped, read
from lessonbank.importers._reading import FAILED

pytestmark = pytest.mark.full

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
NAMES = [name for name, _ in FORMATS]
KEYS = [
    "messages", "role", "content", "task", "parts", "type", "kind", "tool_calls", "function", "name", "arguments",
    "id", "input", "traj", "task_id", "info", "reward", "simulations", "tasks", "history", "trajectory", "action",
    "observation", "thought", "args", "source", "message", "sessionId", "uuid", "parentUuid", "isSidechain",
    "resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "traceId", "spanId",
    "parentSpanId", "events", "status", "code", "gen_ai.input.messages", "gen_ai.operation.name", "system",
    "success", "meta", "exit_status", "trajectory_format", "lc", "kwargs", "data", "function_call", "output",
    "object", "tool_call_metadata", "model_response", "choices", "metrics", "usage", "issue", "extras",
]  # fmt: skip
ROLES = ["user", "assistant", "tool", "system", "human", "ai", "tool_use", "tool_result", "request", "message", "chat"]

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(ROLES)
    | any_text(max_size=8)
    | st.just("\ud800")
)
values: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | any_text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)


def read_all(path: Path, format: str) -> None:
    for entry in read(path, format=format):
        assert isinstance(entry, Imported | Skipped)
        if isinstance(entry, Imported):
            entry.trajectory.model_dump_json()
        else:
            assert "\n" not in entry.reason
            assert not entry.reason.startswith(FAILED)


@pytest.mark.parametrize("format", NAMES)
@given(rows=st.lists(values, max_size=5))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=settings().max_examples // 2,  # of each format
)
def test_arbitrary_json_is_imported_or_skipped(format: str, rows: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "any.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read_all(path, format)
    try:
        read_all(path, "auto")
    except FormatError:
        return


def mangled(value: Any, draw: random.Random) -> Any:
    """A copy in which some values are of another type and some keys are gone."""
    if draw.random() < 0.04:
        return draw.choice([None, 0, -1.5, True, "", "x", [], {}, [None], {"a": 1}, "\ud800"])
    if isinstance(value, dict):
        return {key: mangled(item, draw) for key, item in value.items() if draw.random() > 0.03}
    if isinstance(value, list):
        return [mangled(item, draw) for item in value]
    return value


@pytest.mark.parametrize(
    "path", sorted(p for p in FIXTURES.rglob("*") if p.suffix in (".json", ".jsonl", ".traj")), ids=lambda p: p.name
)
def test_a_real_file_with_parts_replaced_is_imported_or_skipped(path: Path, tmp_path: Path) -> None:
    draw = random.Random(7)
    text = path.read_text(encoding="utf-8")
    for round in range(30 if "LESSONBANK_SOAK" in os.environ else 10):
        copy = tmp_path / f"{round}{''.join(path.suffixes)}"
        try:
            copy.write_text(json.dumps(mangled(json.loads(text), draw)))
        except ValueError:
            rows = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
            copy.write_text("\n".join(json.dumps(mangled(row, draw)) for row in rows))
        for format in ("auto", *draw.sample(NAMES, 4)):  # any JSON is read as each of them below
            try:
                read_all(copy, format)
            except FormatError:
                assert format == "auto"


def test_nesting_and_numbers_no_reader_survives_are_skipped(tmp_path: Path) -> None:
    lines = [
        '{"task": "t", "messages": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"task": "t", "messages": [{"role": "user", "content": ' + "[" * 150 + "]" * 150 + "}]}",
        '{"task": "t", "messages": [{"role": "user", "content": "x"}], "reward": ' + "9" * 5000 + "}",
        '{"task": "t", "messages": [{"role": "user", "content": "x"}], "reward": NaN}',
    ]
    path = tmp_path / "deep.jsonl"
    path.write_text("\n".join(lines))
    kinds = [type(entry) for entry in read(path, format="neutral")]
    assert kinds == [Skipped, Skipped, Skipped, Imported]


def test_bytes_that_are_no_text_are_imported_or_skipped(tmp_path: Path) -> None:
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"task": "t", "messages": [{"role": "user", "content": "\xff\xfe"}]}\n\x00\x01\n\xff\n'
    )
    kinds = [type(entry) for entry in read(path)]
    assert kinds == [Imported, Skipped, Skipped]


def test_a_chain_of_spans_of_any_length_is_walked_once(tmp_path: Path) -> None:
    said = {"gen_ai.input.messages": '[{"role": "user", "content": "x"}]'}

    def chain(size: int) -> Callable[[], None]:
        spans = [
            {"traceId": "T", "spanId": str(n), "parentSpanId": str(n + 1), "attributes": said if n == 0 else {}}
            for n in range(size)
        ]
        spans[-1]["parentSpanId"] = "5"  # and the chain bites its own tail
        path = tmp_path / f"chain-{size}.jsonl"
        path.write_text("\n".join(map(json.dumps, spans)))

        def check() -> None:
            assert [type(entry) for entry in read(path)] == [Imported]

        return check

    assert growth_of(chain, size=1_000) <= FAR
