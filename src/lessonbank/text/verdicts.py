"""Says on whose word a run ended as it did: where nobody told it and no judge was asked, no judge is named."""

from __future__ import annotations

from lessonbank.contracts.records import Verdict


def is_open(verdict: Verdict, /) -> bool:
    """Whether nobody told how the run ended and no model was asked."""
    return verdict.outcome == "unknown" and verdict.source == "judge" and not verdict.model


def who_said(verdict: Verdict, /) -> str:
    """The source of a verdict in words, such as `by ground truth` or `by judge (gpt-5)`."""
    if is_open(verdict):
        return "nobody said how it ended"
    model = f" ({verdict.model})" if verdict.model else ""
    return f"by {verdict.source.replace('_', ' ')}{model}"
