"""What operations watch: counts and times for Prometheus. No contents, no scopes, no names are in them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.queue import QueueStatus

from .tracing import METHODS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics of one application. Routes and methods are from lists of our own, so nobody can make more of them."""

    def __init__(self) -> None:
        self._answers = Counter[tuple[str, str, int]]()
        self._seconds = defaultdict[tuple[str, str], list[int]](lambda: [0] * (len(_SECONDS) + 1))
        self._sums = defaultdict[tuple[str, str], float](float)
        self._busy = 0
        self.spans_dropped = 0
        """Spans of OpenTelemetry traces that became no run, since the process began."""

    @contextmanager
    def busy(self) -> Generator[None]:
        """Inside, one more request is under way."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def answered(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        at = (method if method in METHODS else "other", route)
        self._answers[*at, status] += 1
        self._seconds[at][bisect_left(_SECONDS, seconds)] += 1
        self._sums[at] += seconds

    def text(self, queue: QueueStatus, /) -> str:
        """All of it, as Prometheus reads it, with the runs that wait to be learned."""
        return "\n".join((*_of_queue(queue), *self._lines(), ""))

    def _lines(self) -> Iterator[str]:
        yield "# TYPE lessonbank_requests_busy gauge"
        yield f"lessonbank_requests_busy {self._busy}"
        yield "# TYPE lessonbank_spans_dropped_total counter"
        yield f"lessonbank_spans_dropped_total {self.spans_dropped}"
        yield "# TYPE lessonbank_requests_total counter"
        for (method, route, status), count in sorted(self._answers.items()):
            yield f'lessonbank_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
        yield "# TYPE lessonbank_request_seconds histogram"
        for (method, route), counts in sorted(self._seconds.items()):
            labels = f'method="{method}",route="{route}"'
            for bound, count in zip((*_SECONDS, "+Inf"), accumulate(counts), strict=True):
                yield f'lessonbank_request_seconds_bucket{{{labels},le="{bound}"}} {count}'
            yield f"lessonbank_request_seconds_sum{{{labels}}} {self._sums[method, route]:.6f}"
            yield f"lessonbank_request_seconds_count{{{labels}}} {sum(counts)}"


def _of_queue(queue: QueueStatus) -> Iterator[str]:
    yield "# TYPE lessonbank_runs gauge"
    for name, count in (("waiting", queue.waiting), ("claimed", queue.claimed), ("failed", queue.failed)):
        yield f'lessonbank_runs{{state="{name}"}} {count}'
    yield "# TYPE lessonbank_oldest_run_seconds gauge"
    yield f"lessonbank_oldest_run_seconds {(now() - queue.oldest).total_seconds() if queue.oldest else 0.0:.0f}"
