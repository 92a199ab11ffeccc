"""The records of what changes in a bank: decisions, erasures, the journal that keeps both, what a call of learn did."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from .lessons import Experience, Lesson, TrustState
from .recalls import Settlement
from .record import Record, Text
from .runs import Verdict
from .usage import Usage

Erasure: TypeAlias = Literal["lesson", "trajectory", "recall", "scope"]


class Add(Record):
    """Keep a new experience."""

    kind: Literal["add"] = "add"
    experience: Experience


class Replace(Record):
    """Replace an experience by a new version of itself (same id)."""

    kind: Literal["replace"] = "replace"
    experience: Experience
    reason: str = ""


class Rejudge(Record):
    """Replace the verdict of a run, because its outcome was told later."""

    kind: Literal["verdict"] = "verdict"
    experience_id: str
    trajectory_id: str
    verdict: Verdict
    reason: str = ""
    before: Verdict | None = None
    """The verdict that was replaced; `None` in a journal of a version that did not keep it."""


class Retire(Record):
    """Stop showing lessons. They stay and can be restored."""

    kind: Literal["retire"] = "retire"
    lesson_ids: tuple[str, ...]
    reason: str
    group: str = ""
    """The group that was taken back as one. What comes into it later has evidence of its own."""
    successor: str = ""
    """The lesson that takes their place, because the evidence says that it helps more."""


class Restore(Record):
    """Show retired lessons again."""

    kind: Literal["restore"] = "restore"
    lesson_ids: tuple[str, ...]
    reason: str


class Merge(Record):
    """Keep one experience for several lessons. The sources are retired, not destroyed."""

    kind: Literal["merge"] = "merge"
    experience: Experience
    source_lesson_ids: tuple[str, ...]
    reason: str


class Trust(Record):
    """Change how far lessons are trusted: who or what did it, and on which evidence."""

    kind: Literal["trust"] = "trust"
    lesson_ids: tuple[str, ...]
    state: TrustState
    by: Literal["person", "corroboration", "ledger"]
    """`corroboration`: another run, independent of the first, taught the same."""
    reason: str
    evidence: tuple[str, ...] = ()
    """Ids of the runs or lessons that support it."""

    @property
    def approves(self) -> bool:
        """Whether a person vouches for the lessons with it."""
        return self.state == "active" and self.by == "person"


class Edit(Record):
    """Replace the words of a lesson by a person's, or the tasks it is kept for.

    It keeps its id and its state; its evidence starts again.
    """

    kind: Literal["edit"] = "edit"
    lesson_id: str
    title: Text
    description: str
    content: Text
    only: tuple[str, ...] = ()
    by: Text
    """The person's name."""
    reason: str = ""


class Audit(Record):
    """Ask for the truth of runs that were drawn at random from those of which only a judge spoke. Nothing else changes.

    Every recall whose outcome stood by a judge's word alone had a draw of its own, with the same odds: it is asked for
    if `uniform(seed, recall_id)` is below them.
    """

    kind: Literal["audit"] = "audit"
    seed: Text
    odds: Annotated[float, Field(gt=0, le=1)]
    by: Text
    """Who asked for it."""
    reason: str = ""


class Administer(Record):
    """What somebody did that no other change tells: handed out a key, took an export, tried dead letters again.

    It changes no lesson. It holds no secrets and no contents, so a purge leaves it where it is.
    """

    kind: Literal["admin"] = "admin"
    act: Text
    """What was done, as the name of the call: `admin.export`, `keys.add`."""
    subject: str = ""
    """Whom or what it concerned: the name of a holder, the id of a key, a number of records."""
    by: Text
    """Who did it, as the bank knows its caller: a process, or a key and its holder."""


class Rollback(Record):
    """Make the experiences what they were after an earlier entry. Another rollback undoes it."""

    kind: Literal["rollback"] = "rollback"
    to: Annotated[int, Field(ge=0)]
    """The sequence of that entry; 0 is before the first."""
    reason: str


class Purge(Record):
    """What remains of an erasure: when, why and how much, but not what."""

    kind: Literal["purge"] = "purge"
    what: Erasure
    digest: str
    """SHA-256 of the id: somebody who has the id can check that it was erased."""
    reason: str
    experiences: int = 0
    lessons: int = 0
    trajectories: int = 0
    recalls: int = 0
    entries: int = 0
    """Journal entries that lost their content, or part of it."""


class Erased(Record):
    """The place of a journal entry whose content was purged."""

    kind: Literal["erased"] = "erased"
    by: int
    """The sequence of the `Purge`."""


class Missing(Record):
    """The place of a journal entry that was lost with a damaged file, see `salvage`."""

    kind: Literal["missing"] = "missing"


class Forgotten(Record):
    """How many runs and recalls were erased because of their age, but not which."""

    kind: Literal["forgotten"] = "forgotten"
    before: datetime
    """Everything older than this was erased."""
    runs: int = 0
    recalls: int = 0


class Proposal(Record):
    """What a person is asked to decide. Nothing of it is in force before.

    The evidence proposes to retire a lesson that a person approved: `retire` it, or `approve` it again. A file that
    somebody edited proposes to `add`, `edit` or `retire` a lesson: `approve` does so, `retire` rejects the proposal.
    Of two lessons that say nearly the same, the bank proposes to `merge` them: `lessons.merge` does so, `approve` keeps
    both.
    """

    lesson: Lesson
    """The lesson to be retired; or, from a file, the proposal itself: a lesson in quarantine, in the words proposed."""
    reason: str
    """The evidence, or where it was read, in one sentence."""
    change: Literal["add", "edit", "retire", "merge"] = "retire"
    origin: Literal["evidence", "file"] = "evidence"
    of: str | None = None
    """The id of the lesson that would be edited or retired, as a file proposes, or merged with this one."""


FILE: Final = "file"
"""Who wrote what came from a file, and how; and the key under which an experience names that file."""
EDITS: Final = "edits"
"""The key of a proposal's metadata that names the lesson it would edit. It is erased with that lesson."""
RETIRES: Final = "retires"
"""The same for a lesson that it would retire."""


def target_of(experience: Experience, /) -> str | None:
    """The id of the lesson that a proposal would edit or retire."""
    named = (experience.metadata.get(key) for key in (EDITS, RETIRES))
    return next((id for id in named if isinstance(id, str)), None)


class Synced(Record):
    """What a file of lessons and the bank gave each other, or would give (`preview`)."""

    path: str
    lessons: int = 0
    """Lessons in the file."""
    left_out: int = 0
    """Lessons that may be shown and did not fit the budget."""
    proposals: tuple[Proposal, ...] = ()
    """What somebody had changed in the file, and nobody had proposed before."""
    added: tuple[Lesson, ...] = ()
    """Lessons that came in on probation, from a file that people wrote themselves."""
    before: str = ""
    after: str = ""
    """The text of the file."""
    notes: tuple[str, ...] = ()


Change = Annotated[
    Add | Administer | Audit | Edit | Replace | Rejudge | Retire | Restore | Trust | Merge | Rollback,
    Field(discriminator="kind"),
]
"""A consolidator's decision, as data: it can be shown, stored, reviewed, replayed, undone."""


class Settle(Record):
    """A recall was joined with its outcome."""

    kind: Literal["settle"] = "settle"
    settlement: Settlement


class JournalEntry(Record):
    """One line of the bank's journal."""

    sequence: int
    at: datetime
    scope: str
    writer: str
    entry: Annotated[Change | Settle | Purge | Erased | Forgotten | Missing, Field(discriminator="kind")]


class Reflected(Record):
    """What one call of `reflect` did."""

    lessons: tuple[Lesson, ...] = ()
    """General lessons that are new. Each is drawn against those that it covers: `Lesson.against` names them."""
    topics: tuple[str, ...] = ()
    """The names of the topics that were looked at."""
    changes: tuple[Change, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    notes: tuple[str, ...] = ()


class Learned(Record):
    """What one call of `learn` did."""

    experience: Experience | None = None
    """`None` when every run was already known."""
    verdicts: tuple[Verdict, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    changes: tuple[Change, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    known: tuple[str, ...] = ()
    """Ids of runs that this scope had already learned; they added nothing."""
    notes: tuple[str, ...] = ()
    """Fallbacks that were used and failures that cost only a lesson: one sentence each. Never empty after a failure."""
    errors: tuple[str, ...] = ()
    """The codes of those errors in `notes` after which a run stays pending.

    `model_unavailable`: there is no connection to the model, or it refuses the key. Further runs would fail, too.
    """
