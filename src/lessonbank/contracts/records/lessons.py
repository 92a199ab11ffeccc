"""The records of lessons and experiences (the lessons of one task): what is drawn from runs, kept, and found again."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import Field

from .ids import record_id, record_time
from .record import Moment, Record, Text
from .runs import Json, Outcome, PromptRef, RunRef, VerdictSource
from .usage import Usage

Kind = Literal["strategy", "guardrail"]
TrustState = Literal["probation", "active", "quarantined"]
LessonState = Literal["probation", "active", "quarantined", "retired"]
"""How far a lesson is trusted; `retired` if it is retired, whatever its trust."""
Reach = Literal["record", "place", "organisation", "kind"]
"""How far a fact goes: one record; a repository, site or account; the organisation it belongs to; every task of the
kind."""
RelationKind = Literal["sharper", "general", "contradicts", "adds"]
"""How a lesson stands to others: it says the same more exactly, it says what several of them have in common, it denies
them, or it adds a fact to them."""
UNCHECKED: Final = "unchecked"
"""The `risk` of a lesson that no model checked for harm."""
EXTRACTIVE: Final = "extractive"
"""The method of a lesson that code wrote, without a model."""
Rule = Literal["empty", "vague", "literal", "chatter", "submission", "order", "duplicate", "echo", "cap"]
"""Why the gate rejected a draft."""


_MADE_FROM: Final = re.compile(r"lesson ([0-9a-f]{32})")


class Provenance(Record):
    """Where a lesson comes from: enough to find, review and take back everything one source wrote."""

    writer: str = "learn"
    """Who wrote it, for people to read: `learn`, `import`, a person's name, the name given to `scoped(writer=)`."""
    identity: str = ""
    """Who taught it, as the bank knows it: `process:ana@host`, or `key:u-17` for a writer with a key."""
    method: str = "llm"
    """How it was written: `llm`, `extractive`, `human`, or an extractor's own name."""
    trajectory_ids: tuple[str, ...] = ()
    verdict: Outcome = "unknown"
    verdict_source: VerdictSource = "judge"
    prompts: tuple[PromptRef, ...] = ()
    model: str | None = None
    package_version: str = ""
    evidence: tuple[str, ...] = ()
    """The steps that support it: `step 7`, or `run 2, step 3`, by the order of `trajectory_ids`."""

    @property
    def source_lesson_ids(self) -> tuple[str, ...]:
        """The ids of the lessons that it was made from: `evidence` names each as `lesson ID`."""
        return tuple([named[1] for reference in self.evidence if (named := _MADE_FROM.fullmatch(reference))])


class Topic(Record):
    """A stable set of lessons about the same kind of situation. A lesson gets its topic when it is kept, for good."""

    id: str = Field(pattern=r"^[0-9a-f]{8}$")
    """The same for all its lessons. Nobody can read from it what they are about."""
    name: str = Field(default="", max_length=60)
    """What this lesson calls it, in words of its own task: an erased run leaves nothing behind in the lessons beside
    it. Of the names of a topic's lessons the most common one stands for all."""

    def __str__(self) -> str:
        return self.name or self.id


class AppliesTo(Record):
    """How far the fact of a lesson goes, as wide as its runs show. It never widens the scope of the bank."""

    reach: Reach
    name: str = Field(default="", max_length=80)
    """What the record, place or organisation is called."""
    unsettled: bool = False
    """Whether more runs are needed to know how far it goes."""


class Choice(Record):
    """What runs have shown about one choice: the options they ruled out, those still open, those confirmed."""

    about: str = Field(max_length=80)
    """What is chosen, such as `subject prefix`."""
    excluded: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()


class Relation(Record):
    """How a lesson stands to others, and which these are."""

    lesson_ids: tuple[str, ...]
    kind: RelationKind = Field(validation_alias="stand", serialization_alias="stand")


class Lesson(Record):
    """One transferable lesson: a title, when to use it, what to do (paper section 3.1)."""

    id: str = Field(default_factory=record_id)
    title: Text
    description: str = ""
    content: Text
    kind: Kind = "strategy"
    """`strategy` was drawn from success, `guardrail` from failure."""
    retired: bool = False
    asleep: bool = False
    """Whether it is retired only because no run met it for long. A run that meets it wakes it."""
    state: TrustState = "probation"
    """How far it is trusted. Only a Trust record changes it, never its text. Nobody is shown a quarantined lesson."""
    approved: bool = False
    """Whether a person of this bank made it active. Only a Trust record sets this."""
    risk: str | None = None
    """`UNCHECKED`, or what speaks against it, such as the model's word. `None`: a model has checked it for harm."""
    topic: Topic | None = None
    """What kind of situation it is about. `None`: nobody decided that."""
    version: int = 1
    """Grows with every edit. Evidence for an earlier wording does not count for this one."""
    applies_to: AppliesTo | None = None
    """How far its fact goes. `None`: nobody said. Like `choice`, it only repeats words of the lesson."""
    choice: Choice | None = None
    """The choice that the lesson is about, if there is one."""
    rests_on: str = ""
    """The field or message that shows the lesson's fact, in words of the lesson. Empty: nobody said."""
    relation: Relation | None = Field(default=None, validation_alias="against", serialization_alias="against")
    """The lessons that it was compared with. It stands beside them until a person or the evidence decides."""
    near_duplicate_of: str | None = Field(default=None, validation_alias="near", serialization_alias="near")
    """The id of a lesson that it nearly repeats: a person is asked to merge the two."""
    only_for_tasks: tuple[str, ...] = Field(default=(), validation_alias="only", serialization_alias="only")
    """The tasks that a person keeps it for: those that hold all words of one of these; empty: every task."""
    place: str | None = None
    """The repository, site or account that it is about. `None`: nobody said."""
    created_at: Moment = Field(default_factory=record_time)
    provenance: Provenance = Provenance()

    @property
    def is_unchecked(self) -> bool:
        """Whether no model has checked it for harm, or a model objected, and no person approved it. Agents are told.

        What rules drew counts as unchecked, because banks of earlier versions did not store it.
        """
        return not self.approved and (self.risk is not None or self.provenance.method == EXTRACTIVE)

    @property
    def is_doubted(self) -> bool:
        """Whether something speaks against it, more than that nobody checked it, and no person approved it."""
        return self.risk not in (None, UNCHECKED) and not self.approved

    @property
    def hidden(self) -> bool:
        """Whether the lesson is shown to nobody: retired, or quarantined."""
        return self.retired or self.state == "quarantined"

    @property
    def text(self) -> str:
        """The text that is searched: title, description and content, each on its own line."""
        return "\n".join((self.title, self.description, self.content))

    @property
    def wording(self) -> str:
        """The lesson's text without case and spacing: equal for exact duplicates only."""
        return " ".join(f"{self.kind} {self.title} {self.content}".casefold().split())


class Rejected(Record):
    """A draft that the gate rejected, and why."""

    title: str
    content: str
    rule: Rule
    reason: str


class Duplicate(Record):
    """What an experience taught that the bank held already."""

    title: str = ""
    evidence: tuple[str, ...] = ()
    """The steps that support it, as in `Provenance.evidence`."""
    why: str = ""
    """Why it was taken for the same."""
    lesson: Lesson | None = None
    """All of it, where its words are others than those of the held lesson."""
    is_general: bool = False
    """Whether the held lesson is a general one that is found here too: these runs alone did not teach it."""


class Neighbour(Record):
    """A held lesson with which a new one was not joined."""

    lesson_id: str
    why: str
    """Why the two stay apart."""


class ProposedChange(Record):
    """What the lesson of an experience would do to another one, once a person approves it."""

    change: Literal["edit", "retire"]
    lesson_id: str
    """The lesson that would be changed. The proposal is erased with it."""
    was: str = ""
    """The digest of the text that somebody saw and changed."""


class Experience(Record):
    """What the bank stores and retrieves: a task, the attempts made at it, the lessons drawn (paper appendix A.2)."""

    id: str = Field(default_factory=record_id)
    scope: str
    task: Text
    lessons: tuple[Lesson, ...] = ()
    attempts: tuple[RunRef, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    """Drafts that the gate rejected. People can read them; they are never shown to an agent."""
    repeats: dict[str, tuple[Duplicate, ...]] = Field(default_factory=dict)
    """What came again, by the id of the lesson that is held elsewhere. A search finds that lesson here, too."""
    not_recognised: dict[str, Neighbour] = Field(default_factory=dict)
    """By the id of a lesson: the held one that it may repeat. It was kept because a model could not answer."""
    not_merged: dict[str, Neighbour] = Field(default_factory=dict)
    """By the id of a lesson: the held one with which a model was asked to merge it."""
    merged: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By the id of a merged lesson: the ids of its sources."""
    proposal: ProposedChange | None = None
    """What its lesson would change, where a file of lessons proposes that."""
    pending: bool = False
    """Whether its runs wait, because nothing could be drawn from them yet."""
    imported: bool = False
    """Whether an import brought it, or a run that it was drawn from. Then it never vouches for a lesson."""
    template: str | None = None
    """The template of its task, where its first run names one."""
    recall_id: str | None = None
    """The recall that its runs used."""
    created_at: Moment = Field(default_factory=record_time)
    metadata: dict[str, Json] = Field(default_factory=dict)
    """What the caller, or the file that it was read from, says of it. It means nothing to the bank."""

    @property
    def active_lessons(self) -> tuple[Lesson, ...]:
        """The lessons that may be shown."""
        for lesson in self.lessons:
            if lesson.retired or lesson.state == "quarantined":
                return tuple([lesson for lesson in self.lessons if not lesson.hidden])
        return self.lessons


class Match(Record):
    """An experience found for a task, with its similarity (higher is closer; 1.0 is the same text)."""

    experience: Experience
    score: float
    lesson_id: str | None = None
    """The lesson that was found, where lessons and not tasks were searched."""


class Found(Record):
    """What a retriever returns: matches best first, and what a reader should know about the search."""

    matches: tuple[Match, ...] = ()
    notes: tuple[str, ...] = ()
    empty: str = ""
    """Why there is no match, in one sentence, where the retriever left out what it had found."""


class Extraction(Record):
    """What an extractor returns: the lessons, rejected drafts, usage and notes."""

    lessons: tuple[Lesson, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    repeats: dict[str, tuple[Duplicate, ...]] = Field(default_factory=dict)
    """What the bank has already, as `Experience.repeats`."""
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()
    """What a reader should know: a fallback taken, lessons dropped and why."""
