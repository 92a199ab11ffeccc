"""The records that flow through the loop and outlive the process."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from .ids import new_id, now
from .record import Record as Record
from .record import Text as Text
from .runs import RECALL as RECALL
from .runs import SECONDS as SECONDS
from .runs import UNFINISHED as UNFINISHED
from .runs import Action as Action
from .runs import Json as Json
from .runs import Observation as Observation
from .runs import Outcome as Outcome
from .runs import PromptRef as PromptRef
from .runs import Run as Run
from .runs import RunRef as RunRef
from .runs import RunStatus as RunStatus
from .runs import Speaker as Speaker
from .runs import Step as Step
from .runs import ToolCall as ToolCall
from .runs import Trajectory as Trajectory
from .runs import Usage as Usage
from .runs import Verdict as Verdict
from .runs import VerdictSource as VerdictSource
from .undo import Erased as Erased
from .undo import Erasure as Erasure
from .undo import Forgotten as Forgotten
from .undo import Purge as Purge
from .undo import Rollback as Rollback

_CITED = re.compile(r"\[(\d{1,3})\]")
Kind = Literal["strategy", "guardrail"]
TrustState = Literal["probation", "active", "quarantined"]
LessonState = Literal["probation", "active", "quarantined", "retired"]
"""A lesson's trust; or `retired`, whatever that was."""
Rule = Literal["empty", "vague", "literal", "chatter", "submission", "order", "duplicate", "echo", "cap"]
"""Why a lesson was turned away at the gate."""


class Provenance(Record):
    """Where a lesson comes from: enough to find, review and take back everything one source wrote."""

    writer: str = "learn"
    """Who wrote it: `learn`, `import`, a person's name."""
    method: str = "llm"
    """How it was written: `llm`, `extractive`, `human`, or an extractor's own name."""
    trajectory_ids: tuple[str, ...] = ()
    verdict: Outcome = "unknown"
    verdict_source: VerdictSource = "judge"
    prompts: tuple[PromptRef, ...] = ()
    model: str | None = None
    package_version: str = ""
    evidence: tuple[str, ...] = ()
    """The steps that support it, as the extractor named them: `step 7`, or `run 2, step 3`."""


class Lesson(Record):
    """One transferable lesson: a title, when to use it, what to do (paper section 3.1)."""

    id: str = Field(default_factory=new_id)
    title: Text
    description: str = ""
    content: Text
    kind: Kind = "strategy"
    """`strategy` was drawn from success, `guardrail` from failure."""
    retired: bool = False
    state: TrustState = "probation"
    """How far it is trusted; what moves it is a record, never its text. A quarantined lesson is shown to nobody."""
    risk: str | None = None
    """What the gate found risky in it."""
    version: int = 1
    """Grows with every edit. What was shown of an earlier wording is no evidence for this one."""
    created_at: datetime = Field(default_factory=now)
    provenance: Provenance = Field(default_factory=Provenance)

    @property
    def hidden(self) -> bool:
        """Whether it is shown to nobody: retired, or quarantined."""
        return self.retired or self.state == "quarantined"

    @property
    def text(self) -> str:
        """What it says, as it is searched: title, description and content, each on its own line."""
        return "\n".join((self.title, self.description, self.content))

    @property
    def wording(self) -> str:
        """What it says, without case and spacing: equal for exact duplicates only."""
        return " ".join(f"{self.kind} {self.title} {self.content}".casefold().split())


class Rejected(Record):
    """A lesson that was turned away, and why."""

    title: str
    content: str
    rule: Rule
    reason: str


class Experience(Record):
    """What the bank stores and retrieves: a task, the attempts made at it, the lessons drawn (paper appendix A.2)."""

    id: str = Field(default_factory=new_id)
    scope: str
    task: Text
    lessons: tuple[Lesson, ...] = ()
    attempts: tuple[RunRef, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    """What its runs gave besides, and the gate turned away: for people to look at, never shown to an agent."""
    created_at: datetime = Field(default_factory=now)
    metadata: dict[str, Json] = Field(default_factory=dict)

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
    """What an extractor returns: the lessons, and how they came to be."""

    lessons: tuple[Lesson, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    """What a reader should know: a fallback taken, lessons dropped and why."""


class Candidate(Record):
    """One lesson a retrieval considered, and what became of it."""

    lesson_id: str
    experience_id: str
    score: float
    rank: int
    shown: bool
    placed: bool = True
    """Whether it had a place in the text. What repeats another, or does not fit, has none: nothing was drawn for it."""
    withheld: bool = False
    """Whether its own draw left it out. Where the whole recall was withheld it was not shown, whatever that said."""
    probability: float = 0.0
    """The probability with which it was to be withheld, fixed before the draw."""
    why: str = ""


def numbers_cited(text: str, /) -> frozenset[int]:
    """The numbers in square brackets: how an agent names what it was shown."""
    return frozenset(int(number) for number in _CITED.findall(text))


class Recall(Record):
    """The receipt of one retrieval: what was found, shown, withheld, and the exact text."""

    id: str = Field(default_factory=new_id)
    scope: str
    task: str
    text: str = ""
    """What goes into the prompt; empty when nothing is worth showing."""
    text_digest: str = ""
    lessons: tuple[Lesson, ...] = ()
    """Every lesson considered, best first. Not kept with the stored receipt: `candidates` names them."""
    candidates: tuple[Candidate, ...] = ()
    holdout: float | None = None
    """The rate at which lessons are withheld while nothing is known of them; `None` where nothing ever is."""
    control: bool = False
    """Whether the whole recall was withheld, by a draw of its own: this task goes without memory, to compare with."""
    control_probability: float = 0.0
    retriever: str = ""
    space: str | None = None
    notes: tuple[str, ...] = ()
    """Fallbacks that were taken, and why `text` is empty where it is: one sentence each."""
    kept: bool = True
    """Whether the bank stored this receipt. `False`: an attempt could not reach its bank and goes on without memory."""
    created_at: datetime = Field(default_factory=now)
    metadata: dict[str, Json] = Field(default_factory=dict)
    """What the caller said of the task, such as whose it is: recalls can be found and erased by it."""

    @property
    def shown(self) -> tuple[Lesson, ...]:
        """The lessons that are in `text`."""
        ids = {c.lesson_id for c in self.candidates if c.shown}
        return tuple(lesson for lesson in self.lessons if lesson.id in ids)

    @property
    def withheld(self) -> tuple[Lesson, ...]:
        """The lessons left out at random, so that what they change can be measured: all, where the recall was."""
        ids = {c.lesson_id for c in self.candidates if c.withheld or (self.control and c.placed)}
        return tuple(lesson for lesson in self.lessons if lesson.id in ids)

    def observed(self) -> Recall:
        """The same receipt with nothing shown and nothing drawn: what a bank that only observes hands out."""
        why = "the bank only observes (Evidence(observe=True)): no lesson is shown"
        plain = {"shown": False, "placed": False, "withheld": False, "probability": 0.0, "why": why}
        candidates = tuple(candidate.model_copy(update=plain) for candidate in self.candidates)
        told = {"text": "", "text_digest": "", "candidates": candidates, "control": False, "control_probability": 0.0}
        return self.model_copy(update={**told, "notes": (*self.notes, why)})

    def cited(self, text: str, /) -> tuple[Lesson, ...]:
        """The shown lessons that `text` names by number, as in `[2]`: what an agent says it used, or left aside."""
        named = numbers_cited(text)
        return tuple(lesson for number, lesson in enumerate(self.shown, 1) if number in named)

    @property
    def scores(self) -> dict[str, float]:
        """Lesson id to similarity."""
        return {c.lesson_id: c.score for c in self.candidates}

    @property
    def why(self) -> dict[str, str]:
        """Lesson id to one sentence: why it was shown or not."""
        return {c.lesson_id: c.why for c in self.candidates}


class Settlement(Record):
    """What became of the task a recall was made for: the ledger joins the two."""

    recall_id: str
    scope: str
    experience_id: str | None = None
    trajectory_ids: tuple[str, ...] = ()
    runs: int = 0
    """How many runs under the one recall it speaks of; 0 where only `trajectory_ids` say."""
    outcome: Outcome
    reward: float | None = None
    """What a single run was given, or the share of several that succeeded."""
    confidence: float = 1.0
    source: VerdictSource = "judge"
    """Of several: `judge`, where an opinion has any part in it."""
    judge: str = ""
    """Which judge said so: its model, and its prompt with version."""
    steps: int = 0
    usage: Usage = Field(default_factory=Usage)
    seconds: float | None = None
    """Wall time, where the run says it (`metadata["seconds"]`); an attempt measures its own."""
    cited: tuple[str, ...] = ()
    """Lessons that the agent named by their number: adherence, which is not effect."""
    template: str | None = None
    """The template of the task, where the run names one: tasks of one template are not independent."""
    at: datetime = Field(default_factory=now)


class Add(Record):
    """Keep a new experience."""

    kind: Literal["add"] = "add"
    experience: Experience


class Replace(Record):
    """Put an experience in the place of an earlier version of itself (same id)."""

    kind: Literal["replace"] = "replace"
    experience: Experience
    reason: str = ""


class Rejudge(Record):
    """Put a verdict in the place of the one that a run of an experience had: the truth was told later."""

    kind: Literal["verdict"] = "verdict"
    experience_id: str
    trajectory_id: str
    verdict: Verdict
    reason: str = ""


class Retire(Record):
    """Stop showing lessons; they stay, and can be restored."""

    kind: Literal["retire"] = "retire"
    lesson_ids: tuple[str, ...]
    reason: str


class Restore(Record):
    """Show retired lessons again."""

    kind: Literal["restore"] = "restore"
    lesson_ids: tuple[str, ...]
    reason: str


class Merge(Record):
    """Keep one experience for several lessons: the sources are retired, never destroyed."""

    kind: Literal["merge"] = "merge"
    experience: Experience
    source_lesson_ids: tuple[str, ...]
    reason: str


class Trust(Record):
    """Trust lessons more, or less: the record that moves a lesson, with who or what moved it and on which evidence."""

    kind: Literal["trust"] = "trust"
    lesson_ids: tuple[str, ...]
    state: TrustState
    by: Literal["person", "corroboration", "ledger"]
    """`corroboration`: another run, independent of the first, taught the same."""
    reason: str
    evidence: tuple[str, ...] = ()
    """Ids of the runs or lessons that speak for it."""


class Edit(Record):
    """Put a person's words in the place of a lesson's. It keeps its id and its trust; its evidence starts anew."""

    kind: Literal["edit"] = "edit"
    lesson_id: str
    title: Text
    description: str
    content: Text
    by: Text
    """The person's name."""
    reason: str = ""


Change = Annotated[
    Add | Edit | Replace | Rejudge | Retire | Restore | Trust | Merge | Rollback, Field(discriminator="kind")
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
    entry: Annotated[Change | Settle | Purge | Erased | Forgotten, Field(discriminator="kind")]


class Counts(Record):
    """How much a scope (or a whole bank) holds."""

    experiences: int = 0
    lessons: int = 0
    retired: int = 0
    quarantined: int = 0
    """Of those that are not retired."""
    trajectories: int = 0
    pending: int = 0
    recalls: int = 0
    settled: int = 0


class Learned(Record):
    """What one call of `learn` did."""

    experience: Experience | None = None
    """`None` when every trajectory was known already."""
    verdicts: tuple[Verdict, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    changes: tuple[Change, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    known: tuple[str, ...] = ()
    """Trajectory ids this scope had learned before; they added nothing."""
    notes: tuple[str, ...] = ()
    """Fallbacks taken and failures survived, one sentence each. Never empty when something went wrong."""
    errors: tuple[str, ...] = ()
    """The codes of the errors that `notes` tells of, of those for which a run waits for another try.

    `model_unavailable`: there is no connection to the model, or it refuses the key. Further runs would fare no better.
    """
