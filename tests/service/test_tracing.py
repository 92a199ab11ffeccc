"""The server's own spans say which route was asked for and how it ended, and nothing of what was sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")
pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")

import httpx2
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import lessonbank
from lessonbank import Parts
from lessonbank.http.service import tracing
from lessonbank.http.service.application import application
from lessonbank.http.service.keys import Keys
from lessonbank.telemetry import Telemetry

pytestmark = [pytest.mark.full, pytest.mark.anyio]

SECRETS = ("submarine", "secret-team", "acme", "Ana", "some-id")


@asynccontextmanager
async def served() -> AsyncGenerator[tuple[httpx2.AsyncClient, InMemorySpanExporter]]:
    """A client of an agent, and the spans that the server and its bank end."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    parts = Parts(hooks=[Telemetry(tracer_provider=provider)])
    async with await lessonbank.connect_async(":memory:", scope="default", embedder="lexical", parts=parts) as bank:
        key = await Keys(bank).add("Ana", scope="acme")
        transport = httpx2.ASGITransport(app=application(bank, tracer_provider=provider), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {key}", "Lessonbank-Scope": "acme/secret-team"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://bank", headers=headers) as client:
            yield client, exporter


def of_server(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.kind.name == "SERVER"]


async def test_each_request_is_a_span_with_its_route_status_and_role() -> None:
    async with served() as (client, exporter):
        await client.post("/v1/recalls", json={"task": "Ship the submarine"})
        await client.get("/v1/lessons/some-id")
        await client.get("/v1/lessons/some-id", headers={"Authorization": "Bearer no"})
        await client.request("BREW", "/v1/lessons/some-id")
        await client.get("/nowhere/submarine")
    spans = of_server(exporter)
    told = [(span.name, dict(span.attributes or {})) for span in spans]
    status, route = "http.response.status_code", "/v1/lessons/{id}"
    assert [name for name, _ in told] == [
        "POST /v1/recalls",
        f"GET {route}",
        f"GET {route}",
        f"_OTHER {told[3][1]['http.route']}",
        "GET none",
    ]
    assert [one[status] for _, one in told] == [200, 404, 401, 405, 404]
    assert [one.get("lessonbank.role") for _, one in told] == ["agent", "agent", None, None, None]
    assert all((span.end_time or 0) >= (span.start_time or 0) > 0 for span in spans)
    every = "".join(span.to_json() for span in exporter.get_finished_spans())
    for secret in SECRETS:
        assert secret not in every


async def test_what_the_bank_does_is_a_part_of_the_request_and_the_request_of_the_agents_trace() -> None:
    async with served() as (client, exporter):
        trace, parent = "ab" * 16, "cd" * 8
        await client.post("/v1/recalls", json={"task": "Ship"}, headers={"traceparent": f"00-{trace}-{parent}-01"})
    (server,) = of_server(exporter)
    (memory,) = [span for span in exporter.get_finished_spans() if span.kind.name != "SERVER"]
    assert server.context and server.parent and memory.parent
    assert (f"{server.context.trace_id:032x}", f"{server.parent.span_id:016x}") == (trace, parent)
    assert memory.parent.span_id == server.context.span_id


async def test_a_failure_is_marked_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as (client, exporter):

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("the submarine sank")

        monkeypatch.setattr(lessonbank.AsyncReasoningBank, "retrieve", broken)
        assert (await client.post("/v1/recalls", json={"task": "Ship"})).status_code == 500
    (span,) = of_server(exporter)
    assert (span.status.status_code.name, dict(span.attributes or {})["error.type"]) == ("ERROR", "RuntimeError")
    assert "submarine" not in span.to_json()


async def test_a_server_without_opentelemetry_answers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "trace", None)
    async with served() as (client, exporter):
        assert (await client.post("/v1/recalls", json={"task": "Ship"})).status_code == 200
    assert of_server(exporter) == []
