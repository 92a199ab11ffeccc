"""Spans as an API of Phoenix or a table of a data frame writes them: each a flat object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, detect, read

CALL = "llm.output_messages.0.message.tool_calls.0.tool_call"
HISTORY = "llm.input_messages.{}.message"


def span(number: int, kind: str, parent: int | None, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": f"x{number}",
        "name": kind.lower(),
        "context": {"trace_id": "t1", "span_id": f"s{number}"},
        "span_kind": kind,
        "parent_id": None if parent is None else f"s{parent}",
        "start_time": f"2026-07-09T00:00:{number:02d}+00:00",
        "status_code": "OK",
        "status_message": "",
        "attributes": attributes,
        **more,
    }


ASKED = {HISTORY.format(0) + ".role": "user", HISTORY.format(0) + ".content": "Weather in Rome?"}
SPANS = [
    span(0, "AGENT", None, {"input.value": "Weather in Rome?", "output.value": "No idea."}),
    span(1, "LLM", 0, {**ASKED, "llm.model_name": "m", "llm.token_count.prompt": 9,
                       f"{CALL}.id": "c1", f"{CALL}.function.name": "weather", f"{CALL}.function.arguments": "",
                       "llm.output_messages.0.message.role": "assistant"}),
    span(2, "TOOL", 0, {"tool.name": "weather", "tool.id": "c1", "output.value": "no net"},
         status_code="ERROR", status_message="no net"),
    span(3, "LLM", 0, {**ASKED, HISTORY.format(1) + ".role": "assistant",
                       HISTORY.format(1) + ".tool_calls.0.tool_call.id": "c1",
                       HISTORY.format(1) + ".tool_calls.0.tool_call.function.name": "weather",
                       HISTORY.format(1) + ".tool_calls.0.tool_call.function.arguments": "{}",
                       HISTORY.format(2) + ".role": "tool", HISTORY.format(2) + ".tool_call_id": "c1",
                       HISTORY.format(2) + ".content": "no net",
                       "llm.output_messages.0.message.role": "assistant",
                       "llm.output_messages.0.message.content": "No idea."}),
]  # fmt: skip


def columns(row: dict[str, Any]) -> dict[str, Any]:
    inner = {f"{place}.{name}": value for place in ("attributes", "context") for name, value in row[place].items()}
    return {name: value for name, value in row.items() if name not in ("attributes", "context")} | inner


FORMS: dict[str, Any] = {
    "list": SPANS,
    "page": {"data": SPANS, "next_cursor": None},
    "trace": {"traceId": "t1", "spans": SPANS},
    "columns": [columns(one) for one in SPANS],
}


@pytest.mark.parametrize("form", [*FORMS, "lines"])
def test_flat_spans_are_the_same_run_in_each_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    text = "\n".join(map(json.dumps, SPANS)) if form == "lines" else json.dumps(FORMS[form])
    path.write_text(text, encoding="utf-8")
    assert detect(path) == "otel"
    (run,) = [one for one in read(path) if isinstance(one, Imported)]
    assert (run.trajectory.task, run.trajectory.answer) == ("Weather in Rome?", "No idea.")
    assert [[call.name for call in step.action.calls] for step in run.trajectory.steps] == [[], ["weather"], []]
    assert [(seen.text, seen.is_error) for step in run.trajectory.steps for seen in step.observations] == [
        ("Weather in Rome?", False),
        ("no net", True),
    ]
    assert run.trajectory.metadata["model"] == "m"


def test_a_request_that_is_kept_as_a_whole_is_read(tmp_path: Path) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi Bob"}],
    }
    reply = {"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}
    only = span(1, "LLM", None, {"input.value": json.dumps(body), "output.value": json.dumps(reply)})
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([only]), encoding="utf-8")
    (run,) = [one for one in read(path) if isinstance(one, Imported)]
    assert (run.trajectory.instructions, run.trajectory.task, run.trajectory.answer) == ("Be brief.", "Hi Bob", "Hi")


def test_an_agent_that_kept_only_what_it_was_asked_and_gave_is_read(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(SPANS[:1]), encoding="utf-8")
    (run,) = [one for one in read(path) if isinstance(one, Imported)]
    assert (run.trajectory.task, run.trajectory.answer) == ("Weather in Rome?", "No idea.")
