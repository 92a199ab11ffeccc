"""Takes OpenTelemetry traces as they are exported, in pieces, and makes a run of each that is whole."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from lessonbank import importers
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.contracts.records import Json, Trajectory
from lessonbank.errors import FormatError, LessonbankError, TooLarge, importing
from lessonbank.guard.identity import acting_as
from lessonbank.text.bounded_json import check_shape, parse

from .admission import Caller
from .metrics import Metrics
from .open_traces import OpenTraces, Span
from .protobuf_size import check_fields

_PROTOBUF: Final = "application/x-protobuf"
_IDS: Final = ("traceId", "spanId", "parentSpanId")
_MOST_VALUES: Final = 100_000
"""Values of an export: 512 spans, as exporters send them at once, with nearly 50 attributes each."""
_MOST_AT_ONCE: Final = 10_000
_DEEPEST: Final = 200


class Traces:
    """What comes at `/v1/traces`."""

    def __init__(self, metrics: Metrics, /) -> None:
        self._open, self._metrics = OpenTraces(), metrics

    async def take(self, request: Request, caller: Caller, /) -> Response:
        """Keep the spans of an export, and submit the runs of traces that are whole now. Raises FormatError, TooLarge.

        The answer says how many spans of the caller's tenant were dropped since it was last told.
        """
        body, kind = await request.body(), request.headers.get("content-type", "").partition(";")[0].strip()
        tenant = caller.key.scope or caller.bank.scope
        sender = caller.key.id, caller.bank.scope
        spans = await to_thread.run_sync(_spans, body, kind, sender)
        whole = self._open.add(tenant, spans)
        try:
            while whole:
                for run in await to_thread.run_sync(_runs, whole[0]):
                    with acting_as(caller.identity):
                        if not await _submitted(caller.bank, run):
                            self._open.refused(tenant, len(whole[0]))
                del whole[0]
        except LessonbankError:
            self._open.reopen(tenant, [_span(sender, json.loads(span)) for trace in whole for span in trace])
            raise
        self._metrics.spans_dropped = self._open.dropped
        return _answer(kind, self._open.take_dropped(tenant))


async def _submitted(bank: AsyncReasoningBank, run: Trajectory) -> bool:
    """A run that a gate refuses must not stop those beside it: an exporter would send all of them again."""
    try:
        await bank.submit(run)
    except (FormatError, TooLarge):
        return False
    return True


def _answer(kind: str, dropped: int) -> Response:
    """What OTLP calls a partial success, where spans were dropped: the exporter does not send them again."""
    why = "their trace was too large, or too many were open: send a trace's spans soon, and record less of each"
    body = {"partialSuccess": {"rejectedSpans": str(dropped), "errorMessage": why}} if dropped else {}
    if kind != _PROTOBUF:
        return Response(json.dumps(body), media_type="application/json")
    with importing("a trace in protobuf", extra="otel"):
        protobuf: Any = import_module("google.protobuf.json_format")
        service: Any = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    answer = protobuf.ParseDict(body, service.ExportTraceServiceResponse())
    return Response(answer.SerializeToString(), media_type=_PROTOBUF)


def _runs(spans: list[bytes]) -> list[Trajectory]:
    """The runs of one trace, as a file of it would give them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        each = b",".join(dict.fromkeys(spans))  # an exporter may send a span twice
        path.write_bytes(b'{"resourceSpans": [{"scopeSpans": [{"spans": [%b]}]}]}' % each)
        try:
            entries = list(importers.read(path, format="otel"))
        except LessonbankError:
            return []
    return [entry.trajectory for entry in entries if isinstance(entry, importers.Imported)]


def _spans(body: bytes, kind: str, sender: tuple[str, str]) -> list[Span]:
    """The spans of an export. Raises FormatError, TooLarge."""
    spans = list(_of_export(_from_protobuf(body) if kind == _PROTOBUF else _from_json(body)))
    if len(spans) > _MOST_AT_ONCE:
        raise TooLarge(f"an export has at most {_MOST_AT_ONCE:,} spans: send smaller batches")
    return [_span(sender, span) for span in spans]


def _span(sender: tuple[str, str], span: dict[str, Any]) -> Span:
    return Span((*sender, str(span.get("traceId", ""))), json.dumps(span).encode(), not span.get("parentSpanId"))


def _from_json(body: bytes) -> Json:
    check_shape(body, values=_MOST_VALUES, depth=_DEEPEST)
    try:
        return parse(body.decode("utf-8"))
    except ValueError:
        raise FormatError("the body is no OTLP trace in JSON: send ExportTraceServiceRequest") from None


def _from_protobuf(body: bytes) -> Json:
    with importing("a trace in protobuf", extra="otel"):
        protobuf: Any = import_module("google.protobuf.json_format")
        service: Any = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    export: Any = service.ExportTraceServiceRequest
    try:
        check_fields(body, export.DESCRIPTOR, most=_MOST_VALUES)
        return protobuf.MessageToDict(export.FromString(body))
    except TooLarge:
        raise
    except Exception:  # what protobuf raises has no class that can be named without it  # noqa: BLE001
        raise FormatError("the body is no OTLP trace in protobuf: send ExportTraceServiceRequest") from None


def _of_export(export: Json) -> Iterator[dict[str, Any]]:
    for resource in _listed(export, "resourceSpans"):
        for scope in _listed(resource, "scopeSpans"):
            for span in _listed(scope, "spans"):
                if isinstance(span, dict):
                    yield {key: _hex(value) if key in _IDS else value for key, value in span.items()}


def _listed(value: Json, name: str) -> list[Json]:
    field = value.get(name) if isinstance(value, dict) else None
    return field if isinstance(field, list) else []


def _hex(id: Json) -> Json:
    """Protobuf as JSON writes ids in base64, OTLP as JSON in hexadecimal: one of both, so that ids are the same."""
    if not isinstance(id, str) or len(id) not in (12, 24):
        return id
    try:
        return base64.b64decode(id, validate=True).hex()
    except ValueError:
        return cast("Json", id)
