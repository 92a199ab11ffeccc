"""Names, places and whatever else presidio recognises, taken out behind the built-in redactor."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lessonbank.errors import MissingExtra

from ._detect import DETECTORS
from ._redactor import Redacting, Redaction
from ._spans import Detector, Page, Span

PERSONAL = ("PERSON", "LOCATION", "NRP", "US_DRIVER_LICENSE", "US_PASSPORT", "UK_NHS", "MEDICAL_LICENSE")
"""What the built-in detectors leave to it. Dates, addresses of pages and numbers of any kind would go with the rest."""


class Analyzer(Protocol):
    """What is used of `presidio_analyzer.AnalyzerEngine`."""

    def analyze(self, *, text: str, language: str, entities: list[str], score_threshold: float) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class PresidioRedacting:
    """The built-in redactor and presidio's recognisers together; `connect(redact=PresidioRedacting())`.

    Loading its language model takes seconds, and reading takes much longer than the built-in redactor alone.

    Args:
        analyzer: an `AnalyzerEngine` of your own; by default presidio's, which needs the spaCy model `en_core_web_lg`
            and fetches it where it is missing.
        language: of the texts.
        entities: which of presidio's entities go.
        least: the score from which one is believed.

    Raises:
        MissingExtra: presidio is not installed, and no analyzer was given.
    """

    analyzer: Analyzer | None = None
    language: str = "en"
    entities: Sequence[str] = PERSONAL
    least: float = 0.6
    _detectors: Sequence[Detector] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        analyzer = self.analyzer or _engine()
        object.__setattr__(self, "_detectors", (*DETECTORS, _Recognised(analyzer, self)))

    def __call__(self, text: str, /) -> str:
        """`text` without secrets and personal data."""
        return self.for_run()(text)

    def for_run(self) -> Redaction:
        """A redactor that remembers its numbers."""
        return Redacting(self._detectors).for_run()


@dataclass(frozen=True, slots=True)
class _Recognised:
    analyzer: Analyzer
    asked: PresidioRedacting

    def __call__(self, page: Page, /) -> list[Span]:
        found = self.analyzer.analyze(
            text=page.text,
            language=self.asked.language,
            entities=list(self.asked.entities),
            score_threshold=self.asked.least,
        )
        return [_span(page.text, one) for one in found]


def _span(text: str, found: Any) -> Span:
    kind = str(found.entity_type).lower().replace("_", " ")[:24].strip()
    return Span(found.start, found.end, kind, text[found.start : found.end], typed=False)


def _engine() -> Analyzer:
    try:
        library: Any = importlib.import_module("presidio_analyzer")
    except ImportError as missing:
        raise MissingExtra("the redactor of presidio", extra="presidio") from missing
    return library.AnalyzerEngine()
