"""The records of what changes in a bank: decisions, erasures, the journal that keeps both, what a call of learn did."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import Field

from lessonbank._base.plural import plural

from .entry import Contentless, Entry, Removal, Sentence
from .lessons import Experience, Lesson, TrustState
from .notes import Note
from .recalls import Settlement
from .record import Record, Text
from .runs import Verdict
from .usage import Usage

E = TypeVar("E", bound=Entry)
Erasure: TypeAlias = Literal["lesson", "trajectory", "recall", "scope"]
_WORDS: Final = {"title", "description", "content", "only_for_tasks"}
_STATES: Final = {"active": "approved", "quarantined": "quarantined", "probation": "put on probation"}
_PURGED: Final = "purged"
"""The reason of what an erasure left: the one that was given may quote what it speaks of."""
_BY: Final = {"person": "", "corroboration": ", because it was taught again", "ledger": ", by the evidence"}


def _ids_of(experience: Experience) -> tuple[str, ...]:
    return tuple(lesson.id for lesson in experience.lessons)


def _with(entry: E, **fields: Any) -> E:
    """`entry` with these fields; itself where it has them."""
    is_same = all(getattr(entry, name) == value for name, value in fields.items())
    return entry if is_same else entry.model_copy(update=fields)


def _left_of(entry: E, **fields: Any) -> E:
    """What an erasure left of an entry: with these fields, and without its reason; itself where it has them."""
    left = _with(entry, **fields)
    return left if left is entry else left.model_copy(update={"reason": _PURGED})


def _in_words(verdict: Verdict) -> str:
    return f"{verdict.outcome} by {verdict.source.replace('_', ' ')}"


class Add(Entry):
    """Keep a new experience."""

    kind: Literal["add"] = "add"
    experience: Experience

    @property
    def brings(self) -> Experience:
        return self.experience

    def without(self, removal: Removal, /) -> Add | None:
        left = removal.experience(self.experience)
        return None if left is None else _with(self, experience=left)

    def sentence(self) -> Sentence:
        text = f"kept a task with {plural(len(self.experience.lessons), 'lesson')}"
        return Sentence(text, _ids_of(self.experience), self.experience.task, experience=self.experience.id)


class Replace(Entry):
    """Replace an experience by a new version of itself (same id)."""

    kind: Literal["replace"] = "replace"
    experience: Experience
    reason: str = ""
    heirs: tuple[str, ...] = ()
    """The lessons that it holds, or teaches again, in the place of erased ones. No rollback takes them out."""

    @property
    def brings(self) -> Experience:
        return self.experience

    def hand_on(self, experience: Experience, /, *, there: Collection[str]) -> Experience:
        """Give another version of the experience the heirs that this one brought; `there`: lessons that exist."""
        new = tuple(i for i in self.experience.lessons if i.id in self.heirs and i.id not in there)
        again = {id: duplicates for id, duplicates in self.experience.repeats.items() if id in self.heirs}
        update = {"lessons": (*experience.lessons, *new), "repeats": {**experience.repeats, **again}}
        return experience.model_copy(update=update)

    def without(self, removal: Removal, /) -> Replace | None:
        left, heirs = removal.experience(self.experience), tuple(id for id in self.heirs if id not in removal.lessons)
        return None if left is None else _left_of(self, experience=left, heirs=heirs)

    def sentence(self) -> Sentence:
        ids, home = _ids_of(self.experience), self.experience.id
        run = next((attempt for attempt in self.experience.attempts if attempt.verdict.source == "human"), None)
        if run is None:
            return Sentence("replaced what a task taught", ids, self.reason, experience=home)
        text = f"a person said how a run ended ({run.verdict.outcome}), and what its task taught was replaced"
        return Sentence(text, ids, run.verdict.reason or self.reason, run.trajectory_id, home)


class Rejudge(Entry):
    """Replace the verdict of a run, because its outcome was told later."""

    kind: Literal["verdict"] = "verdict"
    experience_id: str
    trajectory_id: str
    verdict: Verdict
    reason: str = ""
    before: Verdict | None = None
    """The verdict that was replaced; `None` in a journal of a version that did not keep it."""

    @property
    def amends(self) -> str:
        return self.experience_id

    def amend(self, experience: Experience, /) -> Experience:
        """Give the verdict to every attempt that is the run."""
        attempts = tuple(
            a.model_copy(update={"verdict": self.verdict}) if a.trajectory_id == self.trajectory_id else a
            for a in experience.attempts
        )
        return experience.model_copy(update={"attempts": attempts})

    def without(self, removal: Removal, /) -> Rejudge | None:
        return None if self.trajectory_id == removal.trajectory or self.experience_id in removal.experiences else self

    def sentence(self) -> Sentence:
        old = f"{_in_words(self.before)}, now " if self.before else ""
        text = f"corrected a verdict: {old}{_in_words(self.verdict)}"
        return Sentence(text, (), self.reason, self.trajectory_id, self.experience_id)


class _OfLessons(Entry):
    """Base of changes that set flags of lessons, which stay otherwise."""

    lesson_ids: tuple[str, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        return self.lesson_ids

    def without(self, removal: Removal, /) -> Self | None:
        left = tuple(id for id in self.lesson_ids if id not in removal.lessons)
        return _left_of(self, lesson_ids=left) if left or not self.lesson_ids else None


class Retire(_OfLessons):
    """Stop showing lessons. They stay and can be restored."""

    kind: Literal["retire"] = "retire"
    reason: str
    group: str = ""
    """The group that was taken back as one. What comes into it later has evidence of its own."""
    successor: str = ""
    """The lesson that took their place. Versions before wrote it where two lessons were drawn against each other."""
    asleep: bool = False
    """Whether they sleep: a run that meets one wakes it."""

    def mark(self, lesson: Lesson, /) -> Lesson:
        return lesson.model_copy(update={"retired": True, "asleep": self.asleep})

    def misfit(self, lesson: Lesson, /) -> str:
        if lesson.asleep and not self.asleep:  # so that no run wakes it
            return ""
        return "is retired already: nothing was changed" if lesson.retired else ""

    def sentence(self) -> Sentence:
        return Sentence("put to sleep" if self.asleep else "retired", self.lesson_ids, self.reason)


class Restore(_OfLessons):
    """Show retired lessons again."""

    kind: Literal["restore"] = "restore"
    reason: str

    def mark(self, lesson: Lesson, /) -> Lesson:
        return lesson.model_copy(update={"retired": False, "asleep": False})

    def misfit(self, lesson: Lesson, /) -> str:
        return "" if lesson.retired else "is not retired: nothing was changed"

    def sentence(self) -> Sentence:
        return Sentence("restored", self.lesson_ids, self.reason)


class Merge(Entry):
    """Keep one experience for several lessons. The sources are retired, not destroyed."""

    kind: Literal["merge"] = "merge"
    experience: Experience
    source_lesson_ids: tuple[str, ...]
    reason: str

    @property
    def brings(self) -> Experience:
        return self.experience

    @property
    def marks(self) -> tuple[str, ...]:
        return self.source_lesson_ids

    def mark(self, lesson: Lesson, /) -> Lesson:
        return lesson.model_copy(update={"retired": True})

    def misfit(self, lesson: Lesson, /) -> str:
        return "is retired already: nothing was changed" if lesson.retired else ""

    def without(self, removal: Removal, /) -> Merge | Retire | None:
        left = removal.experience(self.experience)
        if left is not None:
            return _left_of(self, experience=left)
        # The other sources stay retired: an erasure shows nothing anew.
        return Retire(lesson_ids=self.marks, reason=_PURGED).without(removal)

    def sentence(self) -> Sentence:
        return Sentence("joined lessons", self.source_lesson_ids, self.reason, experience=self.experience.id)


class Trust(_OfLessons):
    """Change how far lessons are trusted: who or what did it, and on which evidence."""

    kind: Literal["trust"] = "trust"
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

    def mark(self, lesson: Lesson, /) -> Lesson:
        return lesson.model_copy(update={"state": self.state, "approved": self.approves})

    def misfit(self, lesson: Lesson, /) -> str:
        if lesson.state == self.state and not self.approves:
            return f"is {self.state} already: nothing was changed"
        if lesson.state == "quarantined" and self.by != "person":
            return "is quarantined: only a person can let it out"
        return ""

    def without(self, removal: Removal, /) -> Self | None:
        evidence = tuple(id for id in self.evidence if id != removal.trajectory and id not in removal.lessons)
        left = super().without(removal)
        return left and _left_of(left, evidence=evidence)

    def sentence(self) -> Sentence:
        return Sentence(f"{_STATES[self.state]}{_BY[self.by]}", self.lesson_ids, self.reason)


class Edit(Entry):
    """Replace the words of a lesson by a person's, or the tasks it is kept for.

    It keeps its id; its evidence starts again. How far its new words are trusted, a `Trust` beside it says.
    """

    kind: Literal["edit"] = "edit"
    lesson_id: str
    title: Text
    description: str
    content: Text
    only_for_tasks: tuple[str, ...] = Field(default=(), validation_alias="only", serialization_alias="only")
    by: Text
    """The person's name."""
    reason: str = ""

    @property
    def marks(self) -> tuple[str, ...]:
        return (self.lesson_id,)

    def mark(self, lesson: Lesson, /) -> Lesson:
        """Make another version of the same lesson, written by a person."""
        provenance = lesson.provenance.model_copy(update={"method": "human", "writer": self.by})
        fields = {name: getattr(self, name) for name in sorted(_WORDS)}
        if (self.title, self.description, self.content) != (lesson.title, lesson.description, lesson.content):
            # They repeat words that may be gone.
            fields |= {"applies_to": None, "choice": None, "rests_on": "", "near_duplicate_of": None}
        return lesson.model_copy(update={**fields, "version": lesson.version + 1, "provenance": provenance})

    def misfit(self, lesson: Lesson, /) -> str:
        same = self.mark(lesson).model_dump(include=_WORDS) == lesson.model_dump(include=_WORDS)
        return "says this already: nothing was changed" if same else ""

    def without(self, removal: Removal, /) -> Edit | None:
        return None if self.lesson_id in removal.lessons else self

    def sentence(self) -> Sentence:
        only = f" (for {' or '.join(self.only_for_tasks)})" if self.only_for_tasks else ""
        return Sentence(f"edited: {self.title}{only}", (self.lesson_id,), self.reason)


class Audit(Contentless):
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

    def sentence(self) -> Sentence:
        text = f"asked for labels of {self.odds:.0%} of judged runs, by {self.by}"
        return Sentence(text, reason=self.reason)


class Administer(Contentless):
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

    def sentence(self) -> Sentence:
        return Sentence(f"{self.act}, by {self.by}", reason=self.subject)


class Rollback(Contentless):
    """Make the experiences what they were after an earlier entry. Another rollback undoes it."""

    kind: Literal["rollback"] = "rollback"
    to: Annotated[int, Field(ge=0)]
    """The sequence of that entry; 0 is before the first."""
    reason: str

    def sentence(self) -> Sentence:
        return Sentence(f"rolled back to change {self.to}", reason=self.reason)


class Purge(Contentless):
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

    def sentence(self) -> Sentence:
        some = f"{plural(self.lessons, 'lesson')}, {plural(self.trajectories, 'run')}"
        return Sentence(f"erased a {self.what}: {some}", reason=self.reason)


class Erased(Contentless):
    """The place of a journal entry whose content was purged."""

    kind: Literal["erased"] = "erased"
    by: int
    """The sequence of the `Purge`."""

    def sentence(self) -> Sentence:
        return Sentence(f"erased by change {self.by}")


class Missing(Contentless):
    """The place of a journal entry that was lost with a damaged file, see `salvage`."""

    kind: Literal["missing"] = "missing"

    def sentence(self) -> Sentence:
        return Sentence("lost with a damaged file")


class Forgotten(Contentless):
    """How many runs and recalls were erased because of their age, but not which."""

    kind: Literal["forgotten"] = "forgotten"
    before: datetime
    """Everything older than this was erased."""
    runs: int = 0
    recalls: int = 0

    def sentence(self) -> Sentence:
        some = f"{plural(self.runs, 'run')} and {plural(self.recalls, 'recall')}"
        return Sentence(f"forgot {some} from before {self.before.isoformat()}")


class Proposal(Record):
    """What a person is asked to decide. Nothing of it is in force before.

    The evidence proposes to `retire` a lesson that harms, or to `approve` one that helps, where a person decides. A
    file that somebody edited proposes to `add`, `edit` or `retire` a lesson: `approve` does so, `retire` rejects it.
    Of two lessons that say nearly the same, the bank proposes to `merge` them: `lessons.merge` does so, `approve` keeps
    both. Of two that contradict each other, or of which one says the other more exactly, it proposes to `choose`: each
    is a proposal of its own, and `approve` or `retire` for one of them decides.
    """

    lesson: Lesson
    """The lesson to be retired; or, from a file, the proposal itself: a lesson in quarantine, in the words proposed."""
    reason: str
    """The evidence, or where it was read, in one sentence."""
    change: Literal["add", "edit", "retire", "merge", "approve", "choose"] = "retire"
    origin: Literal["evidence", "file"] = "evidence"
    of: str | None = None
    """The id of the other lesson: to be edited or retired, as a file proposes, merged with this one, or chosen."""


FILE: Final = "file"
"""Who wrote what came from a file, and how; and the metadata key under which an experience names that file."""


def target_of(experience: Experience, /) -> str | None:
    """The id of the lesson that a proposal would edit or retire."""
    return experience.proposal.lesson_id if experience.proposal else None


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


class Settle(Entry):
    """A recall was joined with its outcome."""

    kind: Literal["settle"] = "settle"
    settlement: Settlement

    def without(self, removal: Removal, /) -> Settle | None:
        if self.settlement.recall_id == removal.receipt:
            return None
        return _with(self, settlement=removal.settlement(self.settlement))

    def sentence(self) -> Sentence:
        runs = self.settlement.trajectory_ids
        known = self.settlement.outcome != "unknown"
        text = f"heard how a task ended: {self.settlement.outcome}" if known else "joined a recall with its run"
        return Sentence(text, run=runs[0] if len(runs) == 1 else "")


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
    """General lessons that are new. `Lesson.relation` names those that each covers."""
    topics: tuple[str, ...] = ()
    """The names of the topics that were looked at."""
    changes: tuple[Change, ...] = ()
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


class Learned(Record):
    """What one call of `learn` did."""

    experience: Experience | None = None
    """`None` when every run was already known."""
    verdicts: tuple[Verdict, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    changes: tuple[Change, ...] = ()
    usage: Usage = Usage()
    known: tuple[str, ...] = ()
    """Ids of runs that this scope had already learned; they added nothing."""
    notes: tuple[Note, ...] = ()
    """Fallbacks that were used and failures that cost only a lesson: one sentence each. Never empty after a failure."""
    errors: tuple[str, ...] = ()
    """The codes of those errors in `notes` after which a run stays pending.

    `model_unavailable`: there is no connection to the model, or it refuses the key. Further runs would fail, too.
    """
