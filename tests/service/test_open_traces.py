"""Traces that have begun take a bounded memory of each tenant, and what is dropped is answered and counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2

from lessonbank import AsyncReasoningBank
from lessonbank.errors import StoreUnavailable
from lessonbank.http.service.open_traces import TENANT_BYTES, TENANT_TRACES, TRACE_SPANS, OpenTraces, Span

pytestmark = pytest.mark.full

Keys = dict[str, dict[str, str]]


def spans(trace: str, count: int = 1, *, size: int = 10, last: bool = False) -> list[Span]:
    held = [Span((trace,), b"x" * size, False)] * count
    return [*held, Span((trace,), b"end", True)] if last else held


def test_a_trace_is_whole_with_the_span_that_began_it() -> None:
    open_traces = OpenTraces()
    assert open_traces.add("alpha", spans("one", 2)) == []
    assert open_traces.add("alpha", [Span(("one",), b"end", True)]) == [[b"x" * 10, b"x" * 10, b"end"]]
    assert open_traces.take_dropped("alpha") == open_traces.dropped == 0


def test_a_tenant_drops_its_own_oldest_traces_and_is_told_once() -> None:
    open_traces = OpenTraces(tenant_bytes=100)
    open_traces.add("beta", spans("hers", 3))
    for n in range(40):
        open_traces.add("alpha", spans(f"his {n}", 3))
    assert open_traces.take_dropped("alpha") == open_traces.dropped == 111
    assert open_traces.take_dropped("alpha") == 0
    assert open_traces.add("beta", spans("hers", 0, last=True)) == [[b"x" * 10] * 3 + [b"end"]]
    assert open_traces.take_dropped("beta") == 0


def test_of_a_dropped_trace_nothing_more_is_taken() -> None:
    open_traces = OpenTraces(tenant_bytes=100)
    open_traces.add("alpha", spans("old", 6))
    open_traces.add("alpha", spans("new", 6))
    assert open_traces.take_dropped("alpha") == 6
    assert open_traces.add("alpha", spans("old", 1, last=True)) == []
    assert open_traces.take_dropped("alpha") == 2


@pytest.mark.parametrize("many", [spans("one", TRACE_SPANS + 1), spans("one", 1, size=TENANT_BYTES + 1)])
def test_a_trace_that_is_too_large_is_dropped_alone(many: list[Span]) -> None:
    open_traces = OpenTraces()
    open_traces.add("alpha", spans("two"))
    assert open_traces.add("alpha", many) == []
    assert open_traces.take_dropped("alpha") == len(many)
    assert open_traces.add("alpha", spans("two", 0, last=True)) == [[b"x" * 10, b"end"]]


def test_all_tenants_together_are_bounded_and_the_largest_pays() -> None:
    open_traces = OpenTraces(tenant_bytes=100, all_bytes=200)
    for tenant, count in (("alpha", 9), ("beta", 9), ("gamma", 5)):
        open_traces.add(tenant, spans("one", count))
    assert [open_traces.take_dropped(tenant) for tenant in ("alpha", "beta", "gamma")] == [9, 0, 0]


def test_more_traces_than_a_tenant_may_have_open_cost_the_oldest() -> None:
    open_traces = OpenTraces()
    for n in range(TENANT_TRACES + 5):
        open_traces.add("alpha", spans(str(n)))
    assert open_traces.take_dropped("alpha") == 5


def test_the_spans_of_a_trace_that_was_whole_come_again_in_vain_unless_it_is_opened_again() -> None:
    open_traces, last = OpenTraces(), Span(("one",), b"end", True)
    open_traces.add("alpha", [*spans("one", 2), last])
    assert open_traces.add("alpha", [last]) == []
    open_traces.reopen("alpha", [*spans("one", 2), last])
    assert open_traces.add("alpha", [last]) == [[b"x" * 10, b"x" * 10, b"end", b"end"]]
    assert open_traces.take_dropped("alpha") == 0


def otlp(trace: str, *, root: bool = False, text: str = "") -> dict[str, Any]:
    attributes = [{"key": "gen_ai.input.messages", "value": {"stringValue": text}}]
    one = {"traceId": trace, "spanId": "b" * 16, "parentSpanId": "" if root else "c" * 16, "attributes": attributes}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}


def test_what_was_dropped_is_a_partial_success_and_in_the_metrics(http: httpx2.Client, keys: Keys) -> None:
    begun = [{"traceId": f"{n:032}", "spanId": "b" * 16, "parentSpanId": "c" * 16} for n in range(TENANT_TRACES + 1)]
    for sent in ({"resourceSpans": [{"scopeSpans": [{"spans": begun}]}]}, otlp("d" * 32)):
        told = http.post("/v1/traces", json=sent, headers=keys["agent"]).json()
        assert told["partialSuccess"]["rejectedSpans"] == "1"
    assert http.post("/v1/traces", json=otlp("b" * 32, root=True), headers=keys["other agent"]).json() == {}
    assert "lessonbank_spans_dropped_total 2\n" in http.get("/metrics").text


def test_a_trace_that_the_bank_could_not_take_is_a_whole_run_when_its_end_is_sent_again(
    http: httpx2.Client, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the database is being restarted")

    said = [json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}]) for text in ("Ship 7", "")]
    begun, ended = otlp("a" * 32, text=said[0]), otlp("a" * 32, root=True, text=said[1])
    ended["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "c" * 16
    assert http.post("/v1/traces", json=begun, headers=keys["agent"]).status_code == 200
    with monkeypatch.context() as patched:
        patched.setattr(AsyncReasoningBank, "submit", away)
        assert http.post("/v1/traces", json=ended, headers=keys["agent"]).status_code == 503
    assert http.post("/v1/traces", json=ended, headers=keys["agent"]).status_code == 200
    (run,) = http.get("/v1/runs", headers=keys["reader"]).json()
    assert run["trajectory"]["task"] == "Ship 7"


def test_a_partial_success_comes_in_protobuf_to_whom_sends_protobuf(http: httpx2.Client, keys: Keys) -> None:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )

    headers = {**keys["agent"], "Content-Type": "application/x-protobuf"}
    many = [{"traceId": f"{n:032}", "spanId": "b" * 16, "parentSpanId": "c" * 16} for n in range(TENANT_TRACES + 3)]
    sent = {"resourceSpans": [{"scopeSpans": [{"spans": many}]}]}
    body = ParseDict(json.loads(json.dumps(sent)), ExportTraceServiceRequest()).SerializeToString()
    answer = http.post("/v1/traces", content=body, headers=headers)
    assert ExportTraceServiceResponse.FromString(answer.content).partial_success.rejected_spans == 3
