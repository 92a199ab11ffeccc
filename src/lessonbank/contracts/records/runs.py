"""The records of a run: what an agent did for a task, what it cost, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field, JsonValue, model_validator

from .ids import record_id
from .record import Record, Text
from .usage import Usage

SECONDS = "seconds"
"""The metadata key for how long a run took, in seconds."""
MODEL = "model"
"""The metadata key for the model that the agent ran on."""
TEMPLATE = "template"
"""The metadata key for the template that a run's task was made from."""
RECALLS_AGAIN = "recalls_again"
"""The metadata key for the ids of the recalls in the middle of a run: they are settled as its first one is."""
NOT_JUDGED = "not judged yet"
"""The reason of the verdict that a kept run has until somebody or something judged it."""
BRIEF = 4096
"""Characters of a run that are redacted and read faster than a thread starts."""
_FEW = 16
"""Fields of a call that is brief."""
_FIELD = 64
"""Characters that a field counts beside its text: each field is looked at alone."""
Json: TypeAlias = JsonValue
Outcome = Literal["success", "failure", "unknown"]
VerdictSource = Literal["ground_truth", "human", "framework_error", "judge"]
Speaker = Literal["tool", "user", "environment"]
RunStatus = Literal["learned", "pending", "unfinished", "failed"]


class ToolCall(Record):
    """One call the agent made: a name and arguments as data (or as the text the model wrote, if not JSON)."""

    name: str
    arguments: dict[str, Json] | str = Field(default_factory=dict)
    id: str | None = None


class Action(Record):
    """What the agent did in one turn: what it said, and the calls it made, also several at once."""

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
    is_success: bool = False
    """Whether the tool says itself that it did not fail; then its words do not decide."""


class Step(Record):
    """One turn: thought, action, and what was observed after it.

    `Step(action="ls", observation="a.txt")` is the short form of
    `Step(action=Action(text="ls"), observations=(Observation(text="a.txt"),))`. A step with an empty action
    holds what was said to the agent before its first turn.
    """

    thought: str = ""
    action: Action = Action()
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
        several = fields.get("observations") or ()
        if not isinstance(several, Iterable) or isinstance(several, (str, bytes, dict)):
            return fields  # which is refused by what the field takes
        seen = list(cast("Iterable[Any]", several))
        single = fields.pop("observation", None)
        if single is not None:
            seen.append(single)
        fields["observations"] = tuple({"text": o} if isinstance(o, str) else o for o in seen)
        return fields


class PromptRef(Record):
    """Which prompt a model was given: its id, version and digest."""

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
    usage: Usage = Usage()
    error: str | None = None
    """The code of the error that kept the judge's model from a verdict, such as `model_unavailable`."""
    final: bool = False
    """Whether an unknown outcome stays so: the run waits for no judge, such as one that a longer run replaced."""


class Submission(Record):
    """What was said of a run when it was handed in, for whoever learns from it later."""

    verdict: Verdict | None = None
    """How it ended; `None`: nobody said."""
    outcome: Outcome | None = None
    """How it ended, as banks noted it before they kept the whole verdict."""
    reward: float | None = None
    """The same of its reward."""
    recall_id: str | None = None
    """The recall that it is to settle."""
    run_ids: tuple[str, ...] = ()
    """The runs that were handed in together, if those were several."""
    identity: str = ""
    """Who handed it in, as the bank knows it."""
    writer: str = ""
    seal: str = ""
    """What proves that the bank itself wrote the last two."""

    @property
    def says_outcome(self) -> bool:
        """Whether somebody said how the run ended."""
        return self.ending != (None, None)

    @property
    def ending(self) -> tuple[Verdict | Outcome | None, float | None]:
        """How the run ended: a verdict, or an outcome and a reward, as far as somebody said it."""
        return (self.verdict, None) if self.verdict else (self.outcome, self.reward)


NO_SUBMISSION = Submission()


class Trajectory(Record):
    """Everything an agent did for one task."""

    id: str = Field(default_factory=record_id)
    """Names this run. The same id learned twice in one scope adds nothing. Importers derive it from the content."""
    task: Text
    instructions: str = ""
    """The agent's own instructions (system prompt, policy): the judge and the extractor read them."""
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    error: str | None = None
    """What stopped the run, if something did: an exception, a crash, a limit."""
    usage: Usage = Usage()
    tools: tuple[Json, ...] = ()
    """The tools that the agent could call: a line each, such as `refund(order: string)`, or a definition."""
    parent_run: str | None = None
    """Of the run of a sub-agent: the id of the run that started it."""
    recall_id: str | None = None
    """Of an unfinished run: the recall that its agent was shown."""
    unfinished: bool = False
    """Whether its attempt ended without an outcome: the run is kept and not learned."""
    imported: bool = False
    """Whether an import brought it. The import sets this, whatever the file says."""
    submission: Submission | None = None
    """What was said when it was handed in. The bank writes it and nobody else; `bank.runs` leaves it out."""
    metadata: dict[str, Json] = Field(default_factory=dict)
    """What the caller says of the run, such as `{"user": "u-17"}`. Of these keys the evidence reads `seconds`, `model`
    and `template`; the others mean nothing to the bank."""
    original: tuple[Json, ...] = ()
    """The messages this was made from, kept only where the fields above cannot rebuild them exactly."""


def without_submission(run: Trajectory, /) -> Trajectory:
    """`run` as its caller made it. What the bank notes of a run that waits is nobody else's to say, or to read."""
    return run.model_copy(update={"submission": None}) if run.submission else run


def data_of(run: Trajectory, /) -> list[object]:
    """What a run holds as data of any form."""
    arguments = [call.arguments for step in run.steps for call in step.action.calls]
    return [run.metadata, run.tools, run.original, *arguments]


def is_brief(run: Trajectory, /, *, most: int = BRIEF) -> bool:
    """Whether a run is surely at most `most` characters, estimated cheaply: one with data in data is not."""
    if run.original or run.tools:
        return False
    size = len(run.task) + len(run.instructions) + len(run.answer or "") + len(run.error or "")
    data: list[dict[str, Json] | str] = [run.metadata]
    for step in run.steps:
        size += len(step.thought) + len(step.action.text) + sum([len(seen.text) for seen in step.observations])
        data += [call.arguments for call in step.action.calls]
        if size > most:
            return False
    for given in data:
        fields = [given] if isinstance(given, str) else given.values() if len(given) <= _FEW else (given,)
        texts = [len(value) for value in fields if isinstance(value, str)]
        numbers = [value.bit_length() for value in fields if isinstance(value, int)]  # more than it has digits
        others = [most for value in fields if isinstance(value, dict | list)]
        size += _FIELD * len(fields) + sum(texts) + sum(numbers) + sum(others)
        if size > most:
            return False
    return True


class Run(Record):
    """A kept trajectory with its verdict and status. An extractor gets these, and `bank.runs` returns them."""

    trajectory: Trajectory
    verdict: Verdict
    """`unknown` while it is not judged."""
    status: RunStatus = "learned"
    """`pending`: it waits for a verdict or for extraction. `unfinished`: its attempt ended without an outcome.
    `failed`: workers tried to learn from it so often that they gave it up; `runs.retry` tries again."""
    tries: int = 0
    """How often workers took it to learn from it."""
    problem: str | None = None
    """Why the last of these tries failed."""
    recall_id: str | None = None
    """The recall that it settled, once it is learned."""
    metadata: dict[str, Json] = Field(default_factory=dict)
    """What the caller gave as `metadata=`; the same as `trajectory.metadata`."""


class RunRef(Record):
    """A run as an experience keeps it: the id of the trajectory, and the whole verdict."""

    trajectory_id: str
    verdict: Verdict
    n_steps: int = 0
