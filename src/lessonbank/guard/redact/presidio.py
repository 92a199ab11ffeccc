"""Also redacts what presidio recognises, such as names and places."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from lessonbank.errors import MissingExtra

from ._detect import DETECTORS
from ._redactor import Redaction
from ._spans import Detector, Page, Span

PERSONAL = ("PERSON", "LOCATION", "NRP", "US_DRIVER_LICENSE", "US_PASSPORT", "UK_NHS", "MEDICAL_LICENSE")
"""What the built-in detectors leave to it. Dates, addresses of pages and numbers of any kind would go with the rest."""


class Analyzer(Protocol):
    """What is used of `presidio_analyzer.AnalyzerEngine`."""

    def analyze(self, *, text: str, language: str, entities: list[str], score_threshold: float) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class PresidioRedacting:
    """The built-in redactor and presidio's recognisers together; `Safety(redact=PresidioRedacting())`.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "analyzer", self.analyzer or _engine())

    def __call__(self, text: str, /) -> str:
        """Replace secrets and personal data in `text`."""
        return self.for_run()(text)

    def for_run(self) -> Redaction:
        """A redactor for one run, which gives the same value the same placeholder everywhere."""
        return Redaction(detectors=(*DETECTORS, Detector(self._recognised)))

    def _recognised(self, page: Page, /) -> list[Span]:
        text, entities = page.text, list(self.entities)
        analyze = cast("Analyzer", self.analyzer).analyze
        results = analyze(text=text, language=self.language, entities=entities, score_threshold=self.least)
        return [
            Span(result.start, result.end, _kind(result), text[result.start : result.end], typed=False)
            for result in results
        ]


def _kind(result: Any) -> str:
    return str(result.entity_type).lower().replace("_", " ")[:24].strip()


def _engine() -> Analyzer:
    try:
        library: Any = importlib.import_module("presidio_analyzer")
    except ImportError as missing:
        raise MissingExtra("the redactor of presidio", extra="presidio") from missing
    return library.AnalyzerEngine()
