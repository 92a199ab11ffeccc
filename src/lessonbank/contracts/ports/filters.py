"""What a list of runs, lessons or recalls is asked for: one frozen record for each, which every store reads alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from lessonbank.contracts.records import Json, Kind, LessonState, Outcome, RunStatus


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are listed, and how many."""

    ids: Collection[str] | None = None
    """Just the runs with these ids, as far as the scope has them, in any order: of the rest of the filter only
    `verdicts` counts then."""
    outcome: Outcome | None = None
    """Of the run's verdict: that of the newest experience it belongs to, `unknown` where there is none."""
    status: RunStatus | None = None
    text: str | None = None
    """Every word of it stands in the run's task, steps, answer or error, whatever the case."""
    metadata: Mapping[str, Json] | None = None
    """The run's metadata have these keys with these values."""
    before: datetime | None = None
    """Saved earlier than that."""
    verdicts: bool = True
    """Read the experience of each, too. Else its verdict is `unknown` and it has no recall: that is much quicker."""
    oldest_first: bool = False
    limit: int = 50
    """At most so many, 1 or more."""
    after: str | None = None
    """Only what comes after the run of this id: the last one of the page before."""


@dataclass(frozen=True, slots=True)
class LessonFilter:
    """Which lessons are listed, newest first, and how many."""

    state: LessonState | None = None
    """Only lessons in this state. Without it, all but the retired ones."""
    retired: bool = False
    """Retired lessons, too."""
    kind: Kind | None = None
    writer: str | None = None
    """Who wrote the lesson, as its provenance says."""
    topics: Collection[str] | None = None
    """Ids of topics, one of which is the lesson's."""
    text: str | None = None
    """Every word of it stands in the title, description or content, whatever the case."""
    metadata: Mapping[str, Json] | None = None
    """The metadata of the lesson's experience have these keys with these values."""
    recall: str | None = None
    """The lesson's experience is of the recall of this id."""
    limit: int = 50
    """At most so many, 1 or more."""
    after: str | None = None
    """Only what comes after the lesson of this id: the last one of the page before."""


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """Which recalls are listed, and how many."""

    ids: Collection[str] | None = None
    """Just the recalls with these ids, as far as the scope has them, in any order: of the rest of the filter only
    `settlements` counts then."""
    lesson: str | None = None
    """Only recalls that showed the lesson of this id."""
    settled: bool | None = None
    """Only recalls whose outcome is known, or is not."""
    text: str | None = None
    """Every word of it stands in the task or the text that was shown, whatever the case."""
    metadata: Mapping[str, Json] | None = None
    """The recall's metadata have these keys with these values."""
    before: datetime | None = None
    """Made earlier than that."""
    since: datetime | None = None
    """Made at that moment or later."""
    settlements: bool = False
    """Read the latest settlement of each, too."""
    oldest_first: bool = False
    limit: int = 50
    """At most so many, 1 or more."""
    after: str | None = None
    """Only what comes after the recall of this id: the last one of the page before."""
