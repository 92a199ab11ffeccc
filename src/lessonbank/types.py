"""The records that flow through the loop and outlive the process."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field, JsonValue, model_validator

from ._ids import new_id, now
from ._record import Record as Record
from ._record import Text as Text
from ._undoing import Erased as Erased
from ._undoing import Erasure as Erasure
from ._undoing import Purge as Purge
from ._undoing import Rollback as Rollback

Json: TypeAlias = JsonValue
Outcome = Literal["success", "failure", "unknown"]
VerdictSource = Literal["ground_truth", "human", "framework_error", "judge"]
Speaker = Literal["tool", "user", "environment"]
Kind = Literal["strategy", "guardrail"]


class Usage(Record):
    """What calls to a model cost: requests, tokens, and US dollars where the price is known."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage, /) -> Usage:
        """Sum of both; the cost is unknown (`None`) only while no part of it is known."""
        costs = [c for c in (self.cost, other.cost) if c is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=sum(costs) if costs else None,
        )


class ToolCall(Record):
    """One call the agent made: a name and arguments as data (or as the text the model wrote, if not JSON)."""

    name: str
    arguments: dict[str, Json] | str = Field(default_factory=dict)
    id: str | None = None


class Action(Record):
    """What the agent did in one turn: what it said and the calls it made, several at once if it did so."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class Observation(Record):
    """What came back, and from whom."""

    text: str = ""
    source: Speaker = "environment"
    name: str | None = None
    """The tool (or participant) that answered."""
    call_id: str | None = None
    is_error: bool = False


class Step(Record):
    """One turn: thought, action, and what was observed after it.

    `Step(action="ls", observation="a.txt")` is the short form of
    `Step(action=Action(text="ls"), observations=(Observation(text="a.txt"),))`. A step with an empty action
    holds what was said to the agent before its first turn.
    """

    thought: str = ""
    action: Action = Field(default_factory=Action)
    observations: tuple[Observation, ...] = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            thought: str = "",
            action: Action | str = "",
            observation: Observation | str | None = None,
            observations: tuple[Observation | str, ...] = (),
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _expand_plain_strings(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = dict(cast("dict[str, Any]", data))
        if isinstance(fields.get("action"), str):
            fields["action"] = Action(text=fields["action"])
        seen: list[Any] = list(fields.get("observations") or ())
        single = fields.pop("observation", None)
        if single is not None:
            seen.append(single)
        fields["observations"] = tuple({"text": o} if isinstance(o, str) else o for o in seen)
        return fields


class Trajectory(Record):
    """Everything an agent did for one task."""

    id: str = Field(default_factory=new_id)
    """Names this run. Learning the same id twice in one scope adds nothing, so importers derive it from the content."""
    task: Text
    instructions: str = ""
    """The agent's own instructions (system prompt, policy): the judge and the extractor read them."""
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    error: str | None = None
    """What stopped the run, if something did: an exception, a crash, a limit."""
    usage: Usage = Field(default_factory=Usage)
    metadata: dict[str, Json] = Field(default_factory=dict)
    original: tuple[Json, ...] = ()
    """The messages this was made from, kept only where the fields above cannot rebuild them exactly."""


class PromptRef(Record):
    """Which words a model was given: the prompt's id, version and digest."""

    id: str
    version: str
    digest: str


class Verdict(Record):
    """An opinion of a run, or the truth about it; `source` says which."""

    outcome: Outcome
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    reason: str = ""
    source: VerdictSource = "judge"
    reward: float | None = None
    model: str | None = None
    prompt: PromptRef | None = None
    usage: Usage = Field(default_factory=Usage)


class Attempt(Record):
    """A trajectory together with its verdict: the extractor's input."""

    trajectory: Trajectory
    verdict: Verdict


class AttemptRef(Record):
    """An attempt as an experience keeps it: the trajectory by id, the verdict whole."""

    trajectory_id: str
    verdict: Verdict
    n_steps: int = 0


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
    created_at: datetime = Field(default_factory=now)
    provenance: Provenance = Field(default_factory=Provenance)

    @property
    def wording(self) -> str:
        """What it says, without case and spacing: equal for exact duplicates only."""
        return " ".join(f"{self.kind} {self.title} {self.content}".casefold().split())


class Experience(Record):
    """What the bank stores and retrieves: a task, the attempts made at it, the lessons drawn (paper appendix A.2)."""

    id: str = Field(default_factory=new_id)
    scope: str
    task: Text
    items: tuple[MemoryItem, ...] = ()
    attempts: tuple[AttemptRef, ...] = ()
    created_at: datetime = Field(default_factory=now)
    metadata: dict[str, Json] = Field(default_factory=dict)

    @property
    def active_items(self) -> tuple[MemoryItem, ...]:
        """The items that may be shown."""
        return tuple(item for item in self.items if not item.retired)


class Match(Record):
    """An experience found for a task, with its similarity (higher is closer; 1.0 is the same text)."""

    experience: Experience
    score: float


class Found(Record):
    """What a retriever returns: matches best first, and what a reader should know about the search."""

    matches: tuple[Match, ...] = ()
    notes: tuple[str, ...] = ()


class Extraction(Record):
    """What an extractor returns: the items, and how they came to be."""

    items: tuple[MemoryItem, ...] = ()
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
    withheld: bool = False
    probability: float = 0.0
    """The probability with which it was to be withheld, fixed before the draw."""
    why: str = ""


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
        """The items left out at random, so that what they change can be measured."""
        ids = {c.item_id for c in self.candidates if c.withheld}
        return tuple(item for item in self.items if item.id in ids)

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
    outcome: Outcome
    reward: float | None = None
    confidence: float = 1.0
    source: VerdictSource = "judge"
    steps: int = 0
    usage: Usage = Field(default_factory=Usage)
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


Change = Annotated[Add | Replace | Retire | Restore | Merge | Rollback, Field(discriminator="kind")]
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
