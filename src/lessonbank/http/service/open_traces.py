"""Holds the spans of traces that have begun, so that no tenant fills the memory or costs another one a trace."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

TENANT_BYTES: Final = 16_000_000
"""Bytes of spans, as JSON, that one tenant may have open: a trace's messages come again in each of its calls."""
ALL_BYTES: Final = 128_000_000
TENANT_TRACES: Final = 1000
_DONE: Final = 10_000
"""Traces of which is known that their runs were made: an exporter that got no answer sends their last spans again."""
TRACE_SPANS: Final = 5000
"""Spans of a trace that are held until its first one ends, which comes last."""

Name = tuple[str, ...]
"""What tells a trace from others of its tenant."""


class Span(NamedTuple):
    """A span of a trace, as JSON."""

    trace: Name
    data: bytes
    is_last: bool
    """Whether it is the one that began the trace: it ends last."""


@dataclass(slots=True)
class _Tenant:
    traces: OrderedDict[Name, list[bytes] | None] = field(default_factory=OrderedDict[Name, "list[bytes] | None"])
    """`None`: the trace was dropped, and so is what still comes of it."""
    size: int = 0
    dropped: int = 0
    """Spans that the tenant was not told of yet."""

    def drop(self, name: Name, /) -> int:
        """Drop what is held of a trace, and all that still comes; how many spans were held."""
        held = self.traces.get(name) or []
        self.traces[name] = None
        self.size -= sum(map(len, held))
        self.dropped += len(held)
        return len(held)


class OpenTraces:
    """The traces of all tenants. They end with the process: an exporter sends a span once."""

    def __init__(self, *, tenant_bytes: int = TENANT_BYTES, all_bytes: int = ALL_BYTES) -> None:
        self._most, self._most_of_all = tenant_bytes, all_bytes
        self._tenants = defaultdict[str, _Tenant](_Tenant)
        self._done = OrderedDict[Name, None]()
        self.dropped = 0
        """Spans that were dropped since the process began."""

    def add(self, tenant: str, spans: Sequence[Span], /) -> list[list[bytes]]:
        """Keep spans; the traces that are whole now."""
        own = self._tenants[tenant]
        for span in spans:
            if span.trace not in self._done:
                self._keep(own, span)
        ended = [(span.trace, held) for span in spans if span.is_last and (held := own.traces.pop(span.trace, None))]
        whole = [held for _, held in ended]
        self._done.update((name, None) for name, _ in ended)
        while len(self._done) > _DONE:
            self._done.popitem(last=False)
        own.size -= sum(len(data) for held in whole for data in held)
        while own.traces and (own.size > self._most or len(own.traces) > TENANT_TRACES):
            self._drop_oldest(own)
        while sum(entry.size for entry in self._tenants.values()) > self._most_of_all:
            self._drop_oldest(max(self._tenants.values(), key=lambda entry: entry.size))
        return whole

    def reopen(self, tenant: str, spans: Sequence[Span], /) -> None:
        """Hold spans again whose runs the bank did not take now: their exporter sends the last of them again."""
        for span in spans:
            self._done.pop(span.trace, None)
            self._keep(self._tenants[tenant], span)

    def refused(self, tenant: str, spans: int, /) -> None:
        """Count spans of a run that the bank does not take."""
        self._tenants[tenant].dropped += spans
        self.dropped += spans

    def take_dropped(self, tenant: str, /) -> int:
        """How many spans of a tenant were dropped since it was last told."""
        own = self._tenants[tenant]
        dropped, own.dropped = own.dropped, 0
        if not own.traces:
            del self._tenants[tenant]
        return dropped

    def _keep(self, own: _Tenant, span: Span) -> None:
        held = own.traces.setdefault(span.trace, [])
        if held is not None and len(held) < TRACE_SPANS and len(span.data) <= self._most:
            held.append(span.data)
            own.size += len(span.data)
            return
        self.dropped += 1 + own.drop(span.trace)
        own.dropped += 1

    def _drop_oldest(self, own: _Tenant) -> None:
        """The oldest trace that holds anything, or the oldest of those of which nothing is held any more."""
        name = next((name for name, held in own.traces.items() if held), next(iter(own.traces)))
        self.dropped += own.drop(name)
        if len(own.traces) > TENANT_TRACES:
            own.traces.popitem(last=False)
