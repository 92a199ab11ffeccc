"""What happened, as typed values. A hook is a function of one event.

Hooks are called in order on the bank's loop, must be quick, and may keep an event but not change it. An exception in
a hook reaches the caller: a broken audit log is a failure, not a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .errors import LessonbankError
from .types import Change, Experience, Extraction, Recall, Run, Settlement, Trajectory, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """A recall was made and recorded."""

    recall: Recall


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A trajectory got a verdict."""

    trajectory: Trajectory
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Lessons were drawn from attempts."""

    attempts: Sequence[Run]
    extraction: Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionFailed:
    """No lessons could be drawn; the trajectories are kept and stay pending."""

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
    """The ledger looked at the evidence and did something by itself: `changes` are made already."""

    changes: Sequence[Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class FellBack:
    """A lesser way was taken because the better one was not to be had."""

    what: str
    why: str


Event: TypeAlias = Retrieved | Judged | Extracted | ExtractionFailed | Consolidated | Settled | Reviewed | FellBack
Hook: TypeAlias = Callable[[Event], None]


def tell(hooks: Iterable[Hook], event: Event, /, *, notes: Sequence[str] = ()) -> None:
    """Call every hook with an event, and with a `FellBack` for each note on it."""
    for hook in hooks:
        hook(event)
        for note in notes:
            hook(FellBack(what=type(event).__name__, why=note))
