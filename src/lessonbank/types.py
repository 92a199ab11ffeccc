"""The records that flow through the loop and outlive the process."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ._ids import new_id, now
from ._record import Record as Record
from ._record import Text as Text
from ._runs import SECONDS as SECONDS
from ._runs import Action as Action
from ._runs import Attempt as Attempt
from ._runs import AttemptRef as AttemptRef
from ._runs import Json as Json
from ._runs import Observation as Observation
from ._runs import Outcome as Outcome
from ._runs import PromptRef as PromptRef
from ._runs import Speaker as Speaker
from ._runs import Step as Step
from ._runs import ToolCall as ToolCall
from ._runs import Trajectory as Trajectory
from ._runs import Usage as Usage
from ._runs import Verdict as Verdict
from ._runs import VerdictSource as VerdictSource
from ._undoing import Erased as Erased
from ._undoing import Erasure as Erasure
from ._undoing import Purge as Purge
from ._undoing import Rollback as Rollback

_CITED = re.compile(r"\[(\d{1,3})\]")
Kind = Literal["strategy", "guardrail"]
TrustState = Literal["probation", "active", "quarantined"]
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


class MemoryItem(Record):
    """One transferable lesson: a title, when to use it, what to do (paper section 3.1)."""

    id: str = Field(default_factory=new_id)
    title: Text
    description: str = ""
    content: Text
    kind: Kind = "strategy"
    """`strategy` was drawn from success, `guardrail` from failure."""
    retired: bool = False
    state: TrustState = "probation"
    """How far it is trusted; what moves it is a record, never its text. A quarantined item is shown to nobody."""
    risk: str | None = None
    """What the gate found risky in it."""
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
    items: tuple[MemoryItem, ...] = ()
    attempts: tuple[AttemptRef, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    """What its runs gave besides, and the gate turned away: for people to look at, never shown to an agent."""
    created_at: datetime = Field(default_factory=now)
    metadata: dict[str, Json] = Field(default_factory=dict)

    @property
    def active_items(self) -> tuple[MemoryItem, ...]:
        """The items that may be shown."""
        for item in self.items:
            if item.retired or item.state == "quarantined":
                return tuple([item for item in self.items if not item.hidden])
        return self.items


class Match(Record):
    """An experience found for a task, with its similarity (higher is closer; 1.0 is the same text)."""

    experience: Experience
    score: float
    item_id: str | None = None
    """The item that was found, where items and not tasks were searched."""


class Found(Record):
    """What a retriever returns: matches best first, and what a reader should know about the search."""

    matches: tuple[Match, ...] = ()
    notes: tuple[str, ...] = ()


class Extraction(Record):
    """What an extractor returns: the items, and how they came to be."""

    items: tuple[MemoryItem, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    """What a reader should know: a fallback taken, items dropped and why."""


class Candidate(Record):
    """One item a retrieval considered, and what became of it."""

    item_id: str
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
    items: tuple[MemoryItem, ...] = ()
    """Every item considered, best first. Not kept with the stored receipt: `candidates` names them."""
    candidates: tuple[Candidate, ...] = ()
    holdout: float | None = None
    """The rate at which items are withheld while nothing is known of them; `None` where nothing ever is."""
    control: bool = False
    """Whether the whole recall was withheld, by a draw of its own: this task goes without memory, to compare with."""
    control_probability: float = 0.0
    retriever: str = ""
    space: str | None = None
    notes: tuple[str, ...] = ()
    created_at: datetime = Field(default_factory=now)

    @property
    def shown(self) -> tuple[MemoryItem, ...]:
        """The items that are in `text`."""
        ids = {c.item_id for c in self.candidates if c.shown}
        return tuple(item for item in self.items if item.id in ids)

    @property
    def withheld(self) -> tuple[MemoryItem, ...]:
        """The items left out at random, so that what they change can be measured: all, where the recall was."""
        ids = {c.item_id for c in self.candidates if c.withheld or (self.control and c.placed)}
        return tuple(item for item in self.items if item.id in ids)

    def cited(self, text: str, /) -> tuple[MemoryItem, ...]:
        """The shown items that `text` names by their number, as in `[2]`: what an agent says it used, or left aside."""
        named = numbers_cited(text)
        return tuple(item for number, item in enumerate(self.shown, 1) if number in named)

    @property
    def scores(self) -> dict[str, float]:
        """Item id to similarity."""
        return {c.item_id: c.score for c in self.candidates}

    @property
    def why(self) -> dict[str, str]:
        """Item id to one sentence: why it was shown or not."""
        return {c.item_id: c.why for c in self.candidates}


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
    """Items that the agent named by their number: adherence, which is not effect."""
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
    """Stop showing items; they stay, and can be restored."""

    kind: Literal["retire"] = "retire"
    item_ids: tuple[str, ...]
    reason: str


class Restore(Record):
    """Show retired items again."""

    kind: Literal["restore"] = "restore"
    item_ids: tuple[str, ...]
    reason: str


class Merge(Record):
    """Keep one experience for several items: the sources are retired, never destroyed."""

    kind: Literal["merge"] = "merge"
    experience: Experience
    source_item_ids: tuple[str, ...]
    reason: str


class Trust(Record):
    """Trust items more, or less: the record that moves an item, with who or what moved it and on which evidence."""

    kind: Literal["trust"] = "trust"
    item_ids: tuple[str, ...]
    state: TrustState
    by: Literal["person", "corroboration", "ledger"]
    """`corroboration`: another run, independent of the first, taught the same."""
    reason: str
    evidence: tuple[str, ...] = ()
    """Ids of the runs or items that speak for it."""


Change = Annotated[Add | Replace | Rejudge | Retire | Restore | Trust | Merge | Rollback, Field(discriminator="kind")]
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
    entry: Annotated[Change | Settle | Purge | Erased, Field(discriminator="kind")]


class Counts(Record):
    """How much a scope (or a whole bank) holds."""

    experiences: int = 0
    items: int = 0
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
    items: tuple[MemoryItem, ...] = ()
    changes: tuple[Change, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    known: tuple[str, ...] = ()
    """Trajectory ids this scope had learned before; they added nothing."""
    notes: tuple[str, ...] = ()
    """Fallbacks taken and failures survived, one sentence each. Never empty when something went wrong."""
