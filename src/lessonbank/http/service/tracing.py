"""Spans of the server for OpenTelemetry: which route, how it ended, for which role. No contents, names or scopes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from starlette.types import Scope

from lessonbank._version import VERSION

try:
    from opentelemetry import propagate, trace
except ImportError:  # without OpenTelemetry there is nobody to tell
    propagate = trace = None

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

METHODS: Final = frozenset({"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"})
_CARRIERS: Final = (b"traceparent", b"tracestate")


class Spans:
    """A span for each request. Where the program configured no tracer provider, they cost nothing and go nowhere."""

    def __init__(self, provider: TracerProvider | None = None, /) -> None:
        self._tracer = trace.get_tracer("lessonbank.server", VERSION, provider) if trace else None

    @contextmanager
    def around(self, scope: Scope, /) -> Generator[dict[str, Any]]:
        """Inside, a request is under way. Put what is known at its end into the mapping: `route`, `status`, `role`."""
        details = dict[str, Any]()
        if self._tracer is None or trace is None or propagate is None:
            yield details
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        with self._tracer.start_as_current_span(
            method,
            context=propagate.extract({key.decode(): value.decode("latin-1") for key, value in _carried(scope)}),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method},
            record_exception=False,  # its sentence may quote what was sent
            set_status_on_exception=False,
        ) as span:
            failure = ""
            try:
                yield details
                failure = details.get("failure") or (str(details["status"]) if details["status"] >= 500 else "")
            except BaseException as error:
                failure = type(error).__name__
                raise
            finally:
                span.update_name(f"{method} {details['route']}")
                known = {"http.route": details["route"], "http.response.status_code": details["status"] or None}
                known |= {"lessonbank.role": details["role"], "error.type": failure or None}
                span.set_attributes({name: value for name, value in known.items() if value})
                if failure:
                    span.set_status(trace.Status(trace.StatusCode.ERROR))


def _carried(scope: Scope) -> list[tuple[bytes, bytes]]:
    return [pair for pair in scope["headers"] if pair[0] in _CARRIERS]
