"""What a bank does can be seen in traces and metrics, and nobody's words are in them unless somebody asks for that."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Learning, Parts, ReasoningBank, Step, Trajectory
from lessonbank.errors import ModelUnavailable
from lessonbank.testing import ScriptedModel

sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="the SDK of OpenTelemetry is not installed")
from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

from lessonbank.telemetry import Telemetry  # noqa: E402

pytestmark = pytest.mark.full
TASK = "Open the kiln valve"
STUCK = Trajectory(
    task=TASK,
    steps=(
        Step(action="turn the valve", observation="error: the valve is stuck"),
        Step(action="oil the valve", observation="oiled"),
        Step(action="turn the valve", observation="the valve turns"),
    ),
)
PRIVATE = ("kiln", "valve", "acme/pottery", "oil")


class Seen:
    """A telemetry with what it emitted."""

    def __init__(self, *, contents: bool = False) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider(metric_readers=[self.reader])
        self.telemetry = Telemetry(contents=contents, tracer_provider=self.tracers, meter_provider=meters)

    @property
    def spans(self) -> dict[str, Any]:
        """The last span of each name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    @property
    def points(self) -> dict[str, list[Any]]:
        """The points of each metric."""
        data: Any = self.reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}

    def total(self, metric: str) -> float:
        return sum(point.value for point in self.points[metric])

    @property
    def everything(self) -> str:
        spans = [span.to_json() for span in self.exporter.get_finished_spans()]
        points = [repr([(point.attributes, point) for point in points]) for points in self.points.values()]
        return "\n".join([*spans, *points])

    def bank(self, **how: Any) -> ReasoningBank:
        parts = Parts(hooks=[self.telemetry])
        how = {"evidence": Evidence(holdout=None), "safety": "open", "embedder": "lexical", **how}
        return lessonbank.connect(":memory:", scope="acme/pottery", parts=parts, **how)


def test_retrieving_is_a_span_of_the_conventions_below_the_span_of_the_caller() -> None:
    seen = Seen()
    with seen.bank() as bank:
        bank.learn(STUCK, outcome="success")
        with seen.tracers.get_tracer("app").start_as_current_span("turn") as turn:
            recall = bank.retrieve(TASK)
    span = seen.spans["search_memory"]
    assert span.parent.span_id == turn.get_span_context().span_id
    assert span.attributes["gen_ai.operation.name"] == "search_memory"
    assert span.attributes["gen_ai.memory.record.count"] == len(recall.shown) > 0
    assert span.attributes["lessonbank.recall.id"] == recall.id
    assert 0 < span.end_time - span.start_time < 60e9
    assert seen.spans["upsert_memory"].attributes["gen_ai.memory.record.count"] == len(recall.shown)


def test_nobodys_words_and_no_scope_are_in_spans_and_metrics() -> None:
    seen = Seen()
    model = seen.telemetry.model(lambda prompt: '{"items": []}')
    with seen.bank(model=model) as bank:
        bank.learn(STUCK, outcome="success")
        bank.retrieve(TASK)
        bank.learn(STUCK.model_copy(update={"id": "r2", "error": "oil ran out"}), recall=bank.retrieve(TASK))
    assert {"search_memory", "upsert_memory"} <= seen.spans.keys()
    assert [word for word in PRIVATE if word in seen.everything.lower()] == []


def test_contents_are_told_to_those_who_ask_for_them() -> None:
    seen = Seen(contents=True)
    with seen.bank(model=seen.telemetry.model(ScriptedModel(["nothing to learn"] * 9))) as bank:
        bank.lessons.add(title="Oil first", content="Oil a valve before you turn it.", task=TASK, by="Ana")
        bank.retrieve(TASK)
        bank.learn(STUCK, outcome="success")
    told = seen.spans["search_memory"].attributes
    assert (told["gen_ai.memory.query.text"], told["gen_ai.memory.store.id"]) == (TASK, "acme/pottery")
    assert "Oil a valve" in json.loads(told["gen_ai.memory.records"])[0]["content"]
    [call] = [span for name, span in seen.spans.items() if name.startswith("chat")]
    assert "valve" in call.attributes["gen_ai.input.messages"]
    assert "nothing to learn" in call.attributes["gen_ai.output.messages"]


def test_calls_of_a_model_have_spans_with_tokens_cost_and_errors() -> None:
    seen, usage = Seen(), lessonbank.Usage(requests=1, input_tokens=70, output_tokens=5, cost=0.02)

    class Priced:
        name = "google:gemini-9"

        async def generate(self, messages: Any, /, **how: Any) -> Any:
            if len(seen.exporter.get_finished_spans()) > 0:
                raise ModelUnavailable("the kiln of the provider is cold")
            return lessonbank.contracts.ports.Completion(text='{"items": []}', usage=usage, model="gemini-9-001")

    with seen.bank(model=seen.telemetry.model(Priced())) as bank:
        bank.learn(STUCK, outcome="success")
        first = seen.spans["chat gemini-9"]
        bank.learn(STUCK.model_copy(update={"id": "r2"}), outcome="success")
    assert first.attributes["gen_ai.provider.name"] == "gcp.gen_ai"
    assert first.attributes["gen_ai.response.model"] == "gemini-9-001"
    assert (first.attributes["gen_ai.usage.input_tokens"], first.attributes["gen_ai.usage.output_tokens"]) == (70, 5)
    failed = seen.spans["chat gemini-9"]
    assert failed.attributes["error.type"] == "model_unavailable"
    assert not failed.status.is_ok
    assert "kiln" not in seen.everything
    assert seen.total("lessonbank.cost") == pytest.approx(0.02)
    assert {point.attributes["gen_ai.token.type"] for point in seen.points["gen_ai.client.token.usage"]} == {
        "input",
        "output",
    }
    assert sum(point.count for point in seen.points["gen_ai.client.operation.duration"]) > 1
    assert seen.total("lessonbank.fallbacks") > 0


def test_metrics_count_what_was_shown_withheld_judged_drawn_and_retired() -> None:
    seen = Seen()
    with seen.bank(evidence=Evidence(holdout=0.5), learning=Learning(consolidation="append")) as bank:
        for number in range(12):
            recall = bank.retrieve(TASK)
            bank.learn(STUCK.model_copy(update={"id": f"r{number}"}), recall=recall, outcome="success")
    assert sum(point.count for point in seen.points["lessonbank.retrieve.duration"]) == 12
    assert seen.total("lessonbank.lessons.shown") > 0
    assert seen.total("lessonbank.lessons.withheld") > 0
    assert seen.total("lessonbank.recalls.settled") == 12
    assert seen.total("lessonbank.lessons.drawn") > 0
    [verdicts] = seen.points["lessonbank.verdicts"]
    assert verdicts.value == 12
    assert dict(verdicts.attributes) == {
        "lessonbank.verdict.outcome": "success",
        "lessonbank.verdict.source": "ground_truth",
    }


def test_a_retirement_is_counted() -> None:
    seen = Seen()
    seen.telemetry(
        lessonbank.contracts.events.Reviewed(
            changes=(lessonbank.contracts.records.Retire(lesson_ids=("a", "b"), reason="it harms"),)
        )
    )
    assert seen.total("lessonbank.lessons.retired") == 2


def test_lessonbank_does_not_load_opentelemetry_until_telemetry_is_asked_for() -> None:
    code = "import lessonbank, sys; lessonbank.connect; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_extra_telemetry_says_what_to_install() -> None:
    code = "import sys; sys.modules['opentelemetry.metrics'] = None; import lessonbank.telemetry"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'lessonbank[otel]'" in done.stderr
