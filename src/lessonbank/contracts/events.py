"""What happened, as typed values. A hook is a function of one event.

The bank calls hooks in order on its event loop, after the thing happened. A hook must be quick, and may keep an event
but not change it. An exception in a hook changes nothing: it is logged and stands in the notes of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lessonbank.errors import LessonbankError

from .records import Change, Experience, Extraction, Proposal, Recall, Run, Settlement, Trajectory, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """A recall was made and recorded."""

    recall: Recall
    seconds: float = 0.0
    """How long retrieving took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A run got a verdict."""

    trajectory: Trajectory
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Lessons were drawn from runs."""

    attempts: Sequence[Run]
    extraction: Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionFailed:
    """No lessons could be drawn. The runs are kept and stay pending."""

    attempts: Sequence[Run]
    error: LessonbankError


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """The bank changed."""

    experience: Experience
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A recall was joined with its outcome."""

    settlement: Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """The bank reviewed its evidence and acted on it. `changes` are already made."""

    changes: Sequence[Change]
    proposals: Sequence[Proposal] = ()
    """Approved lessons that the evidence now shows to harm: a person decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FellBack:
    """A fallback was used because the better way failed. `why` says what failed."""

    what: str
    why: str


Event: TypeAlias = Retrieved | Judged | Extracted | ExtractionFailed | Consolidated | Settled | Reviewed | FellBack
Hook: TypeAlias = Callable[[Event], None]
