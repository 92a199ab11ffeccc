"""Tells OpenTelemetry what a bank does: spans of memory operations and model calls, and metrics. Without contents.

    telemetry = Telemetry()
    bank = lessonbank.connect("bank.db", scope="acme", model=telemetry.model("openai:gpt-5-mini"),
                              parts=Parts(hooks=[telemetry]))

Names follow the GenAI conventions of OpenTelemetry (open-telemetry/semantic-conventions-genai, commit 002c8a6, status
"development"). What they do not name begins with `lessonbank.`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lessonbank._base.checks import a_flag
from lessonbank._version import VERSION
from lessonbank.contracts.events import (
    Consolidated,
    Event,
    Extracted,
    ExtractionFailed,
    FellBack,
    Judged,
    Retrieved,
    Reviewed,
    Settled,
)
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.records import Change, Lesson, Retire, Usage
from lessonbank.errors import LessonbankError, MissingExtra
from lessonbank.wiring import bare_model

try:
    from opentelemetry.metrics import MeterProvider, get_meter
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer
except ImportError as missing:  # pragma: no cover - the test environment has it
    raise MissingExtra("telemetry", extra="otel") from missing

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lessonbank.wiring import OneModel

Attributes: TypeAlias = Mapping[str, str | int | float | bool | Sequence[str]]
_NAME: Final = "lessonbank"
_LONGEST: Final = 10_000
"""Characters of a content that stand on a span."""

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gen_ai",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
}
"""What the conventions call a provider, where our names differ."""


class Telemetry:
    """A hook for `Parts(hooks=[…])` that emits spans and metrics, and what wraps a model so that its calls do.

    Args:
        contents: whether spans hold tasks, lessons, prompts, replies and the scope. They are redacted as the bank
            redacts them, but for prompts and replies of models. Off by default: these are other people's words.
        tracer_provider: where spans go; `None`: the global provider.
        meter_provider: where metrics go; `None`: the global provider.
    """

    def __init__(
        self,
        *,
        contents: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._contents = a_flag(contents, "contents=")
        self._tracer = get_tracer(_NAME, VERSION, tracer_provider)
        meter = get_meter(_NAME, VERSION, meter_provider)
        seconds = meter.create_histogram
        self._retrieving = seconds("lessonbank.retrieve.duration", "s", "How long retrieving took.")
        self._calling = seconds("gen_ai.client.operation.duration", "s", "How long a call to a model took.")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of a call to a model.")
        count = meter.create_counter
        self._shown = count("lessonbank.lessons.shown", "{lesson}", "Lessons that were shown.")
        self._withheld = count("lessonbank.lessons.withheld", "{lesson}", "Lessons that were withheld at random.")
        self._verdicts = count("lessonbank.verdicts", "{verdict}", "Verdicts about runs.")
        self._drawn = count("lessonbank.lessons.drawn", "{lesson}", "Lessons drawn from runs.")
        self._retired = count("lessonbank.lessons.retired", "{lesson}", "Lessons that were retired.")
        self._settled = count("lessonbank.recalls.settled", "{recall}", "Recalls whose outcome became known.")
        self._cost = count("lessonbank.cost", "{USD}", "What models cost, where the price is known.")
        self._fallbacks = count("lessonbank.fallbacks", "{fallback}", "Fallbacks, and steps that failed.")

    # --- what a bank does --------------------------------------------------------------------------------------------

    def __call__(self, event: Event, /) -> None:
        """Take in one event of a bank."""
        match event:
            case Retrieved():
                self._retrieved(event)
            case Judged():
                attributes = {"outcome": event.verdict.outcome, "source": event.verdict.source}
                self._verdicts.add(1, {f"lessonbank.verdict.{name}": text for name, text in attributes.items()})
            case Extracted():
                for lesson in event.extraction.lessons:
                    self._drawn.add(1, {"lessonbank.lesson.kind": lesson.kind, "lessonbank.lesson.state": lesson.state})
            case Consolidated():
                self._consolidated(event)
            case Settled():
                self._settled.add(1, {"lessonbank.verdict.outcome": event.settlement.outcome})
            case Reviewed():
                self._retire(event.changes)
            case ExtractionFailed():
                self._fallbacks.add(1, {"lessonbank.step": "extraction", "error.type": event.error.code})
            case FellBack():
                self._fallbacks.add(1, {"lessonbank.step": event.what})

    def _retrieved(self, event: Retrieved) -> None:
        recall = event.recall
        self._retrieving.record(event.seconds)
        self._shown.add(len(recall.shown))
        self._withheld.add(len(recall.withheld))
        attributes: dict[str, Any] = {
            "gen_ai.memory.record.count": len(recall.shown),
            "lessonbank.recall.id": recall.id,
            "lessonbank.lessons.withheld": len(recall.withheld),
            "lessonbank.recall.control": recall.control,
        }
        contents = {"gen_ai.memory.query.text": recall.task, **self._records(recall.scope, recall.shown)}
        self._past_span("search_memory", event.seconds, attributes, contents)

    def _consolidated(self, event: Consolidated) -> None:
        lessons = event.experience.lessons
        self._retire(event.changes)
        attributes: dict[str, Any] = {
            "gen_ai.memory.record.count": len(lessons),
            "lessonbank.changes": [type(change).__name__ for change in event.changes],
        }
        self._past_span("upsert_memory", 0.0, attributes, self._records(event.experience.scope, lessons))

    def _retire(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, Retire):
                self._retired.add(len(change.lesson_ids))

    def _records(self, scope: str, lessons: Sequence[Lesson]) -> dict[str, str]:
        if not self._contents:
            return {}
        records = [{"id": lesson.id, "content": lesson.text} for lesson in lessons]
        return {"gen_ai.memory.store.id": scope, "gen_ai.memory.records": json.dumps(records)}

    def _past_span(self, operation: str, seconds: float, attributes: Attributes, contents: Mapping[str, str]) -> None:
        """A span of what is over already, below the span that the caller is in."""
        now = time.time_ns()
        known = {"gen_ai.operation.name": operation, **attributes, **self._shareable(contents)}
        begun = now - int(seconds * 1e9)
        self._tracer.start_span(operation, kind=SpanKind.INTERNAL, attributes=known, start_time=begun).end(now)

    def _shareable(self, contents: Mapping[str, str]) -> dict[str, str]:
        return {name: text[:_LONGEST] for name, text in contents.items()} if self._contents else {}

    # --- what its models do ------------------------------------------------------------------------------------------

    def model(self, model: OneModel, /, *, base_url: str | None = None, api_key: str | None = None) -> LanguageModel:
        """`model` for `connect(model=…)`, each call with a span and its duration, tokens and cost. A retry is a call.

        Raises UsageError, MissingExtra.
        """
        return _Traced(bare_model(model, base_url, api_key), self)

    async def call(self, model: LanguageModel, messages: Sequence[Message], /, **how: Any) -> Completion:
        """Ask `model`, inside a span."""
        named: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _provider(model.name),
            "gen_ai.request.model": model.name.rpartition(":")[2],
        }
        attributes = {**named, "gen_ai.request.temperature": how["temperature"]}
        sent = [{"role": message.role, "parts": [{"type": "text", "content": message.content}]} for message in messages]
        contents = {"gen_ai.input.messages": json.dumps(sent)} if self._contents else {}
        begun = time.perf_counter()
        with self._tracer.start_as_current_span(
            f"chat {named['gen_ai.request.model']}",
            kind=SpanKind.CLIENT,
            attributes={**attributes, **self._shareable(contents)},
            record_exception=False,  # its sentence may quote the reply
            set_status_on_exception=False,
        ) as span:
            try:
                completion = await model.generate(messages, **how)
            except BaseException as error:
                named["error.type"] = error.code if isinstance(error, LessonbankError) else type(error).__name__
                span.set_attribute("error.type", named["error.type"])
                span.set_status(Status(StatusCode.ERROR))
                raise
            finally:
                self._calling.record(time.perf_counter() - begun, named)
            self._answered(span, completion, named)
        return completion

    def _answered(self, span: Span, completion: Completion, named: Attributes) -> None:
        self._spent(span, completion.usage, named)
        if completion.model:
            span.set_attribute("gen_ai.response.model", completion.model)
        messages = [{"role": "assistant", "parts": [{"type": "text", "content": completion.text}]}]
        if self._contents:
            span.set_attributes(self._shareable({"gen_ai.output.messages": json.dumps(messages)}))

    def _spent(self, span: Span, usage: Usage, named: Attributes) -> None:
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens:
                span.set_attribute(f"gen_ai.usage.{kind}_tokens", tokens)
                self._tokens.record(tokens, {**named, "gen_ai.token.type": kind})
        if usage.cost:
            self._cost.add(usage.cost, named)


def _provider(name: str) -> str:
    provider, sign, _ = name.partition(":")
    return _PROVIDERS.get(provider, provider) if sign else "custom"


class _Traced:
    """A model whose calls are told to a `Telemetry`."""

    def __init__(self, model: LanguageModel, telemetry: Telemetry) -> None:
        self._model, self._telemetry = model, telemetry

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The wrapped model's answer."""
        return await self._telemetry.call(self._model, messages, temperature=temperature, schema=schema)
