"""What an experiment is and what each of its attempts leaves behind: the file that asks, and the lines that answer."""

from __future__ import annotations

import re
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field, ValidationError, field_validator, model_validator

from lessonbank.contracts.records import Outcome, Record, Trajectory
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import UsageError
from lessonbank.guard import one_line
from lessonbank_bench.arms import lesson_code

Mode = Literal["online", "frozen", "transfer"]
Phase = Literal["train", "test"]
Stage = Literal["recall", "attempt", "learn"]
RunMode = Literal["parallel", "sequential", "vanilla", "retry"]
Share: TypeAlias = Annotated[float, Field(ge=0.0, le=1.0)]
Chance: TypeAlias = Annotated[float, Field(gt=0.0, lt=1.0)]
Amount: TypeAlias = Annotated[float, Field(gt=0.0)]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/+=:,-]{0,59}$")]
_SPAN = re.compile(r"(\d{1,9})-(\d{1,9})")
_ID = re.compile(r"\b[0-9a-f]{32}\b|(?<=')[0-9a-f]{8}(?=')")
_CODE = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{8}(?=\||>>>)")
_MARKER = re.compile(r"(?<!\S)([0-9a-f]{8})>>>")
"""The end of a marker line; where words were shuffled it stands alone."""
_OUR_BANK = re.compile(r"(?:lessonbank|reasoningbank-paper)(?::(?!.*exclude=).+)?")
_MOST_SEEDS = 10_000
_WHY = {
    "string_pattern_mismatch": "a name begins with a letter or digit; up to 59 letters, digits, blanks and "
    "._/+=:,- follow",
    "extra_forbidden": "there is no such key; the guide on experiments has them all",
    "too_short": "there are too few; an experiment has two arms or more, and a seed",
}
"""In place of what pydantic says."""


class Runs(Record):
    """Several runs of each task in the place of one."""

    k: Annotated[int, Field(ge=1, le=100)]
    """How many; in `retry` mode, how many at most."""
    mode: RunMode = "parallel"
    """`parallel`, `sequential`, `vanilla`: as `bank.scale` does them. `retry`: one after the other, until one counts as
    a success; what each taught is there for the next."""
    labels: bool | None = None
    """Whether the contrast of several runs is told how each ended; `None`: as the arm's profile does."""
    reflect: bool = False
    """In `retry` mode, whether the next attempt reads what the agent itself makes of those that failed."""
    bank: Literal["shared", "instance"] = "shared"
    """One bank for all tasks of a seed, or an empty one for each task."""

    @model_validator(mode="after")
    def _fits_together(self) -> Runs:
        if self.labels is not None and self.mode not in ("parallel", "sequential"):
            raise ValueError(f"labels are for a contrast of several runs, and mode {self.mode!r} makes none")
        if self.reflect and self.mode != "retry":
            raise ValueError(f"reflect is for mode 'retry', not for {self.mode!r}")
        return self


class Arm(Record):
    """One way to remember, under a name of its own."""

    name: Name
    memory: str = ""
    """Which memory of the environment; the arm's name where none is given."""
    limit: Annotated[int, Field(ge=1, le=100)] = 3
    """Experiences shown for a task."""
    wrong_verdicts: Share = 0.0
    """The share of verdicts that are told wrongly."""
    again: bool = False
    """The baseline once more, with the agent's chance drawn anew: what differs then is noise (an A/A arm)."""
    of: str = ""
    """The arm this one was added for: the same, but for lessons of a task's own like; see `Experiment.leave_out`."""
    runs: Annotated[Runs | None, Field(exclude_if=lambda told: told is None)] = None
    """Several runs of each task; one where nothing is said."""


class Question(Record):
    """What the experiment is to find out, and what is believed beforehand."""

    effect: Annotated[float, Field(gt=-1.0, lt=1.0)] = 0.08
    """The difference in the success rate that is to be found, where there is one: 0.08 is eight points."""
    base: Chance = 0.4
    """The success rate of the baseline."""
    correlation: Annotated[float, Field(ge=-1.0, le=1.0)] | None = None
    """Between the two outcomes of a pair: one task done by two arms. `None`: 0.5, or what comes closest to it."""
    clustering: Share = 0.02
    """The correlation between two differences of one seed. On the desk it is about 0.02 between equal arms."""
    power: Chance = 0.8
    level: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.95


class Price(Record):
    """What one attempt is expected to cost."""

    attempt: Annotated[float, Field(ge=0.0)] = 0.0
    """US dollars."""
    seconds: Annotated[float, Field(ge=0.0)] = 0.0


class Budget(Record):
    """Where a run stops, at the end of a task."""

    money: Amount | None = None
    """US dollars; an attempt of unknown cost counts with its expected price."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    attempts: Annotated[int, Field(ge=1)] | None = None
    errors: Annotated[int, Field(ge=1)] = 20
    """Errors of infrastructure in a row, of all arms or of one: with a dead server there is nothing to measure."""


class Experiment(Record):
    """Arms, seeds and one stream of tasks for each seed."""

    name: str = "experiment"
    environment: str = "desk"
    settings: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """What the environment is told; see its documentation."""
    arms: Annotated[tuple[Arm, ...], Field(min_length=2, max_length=40)]
    baseline: str = ""
    """The arm that others are compared with; the first where none is given."""
    seeds: Annotated[tuple[int, ...], Field(min_length=1, max_length=_MOST_SEEDS)]
    tasks: Annotated[int, Field(ge=1, le=100_000)]
    """For each seed, and in each phase that is compared."""
    mode: Mode = "online"
    """`online`: each task is learned from. `frozen`: `train` tasks are, the others are not. `transfer`: the same, and
    what is trained on and what is tested on are of different groups."""
    train: Annotated[int, Field(ge=0, le=100_000)] = 0
    train_on: str = ""
    test_on: str = ""
    model: str = ""
    """`provider:model`, who acts in the environment, and judges and distils for the memories; none: a script acts."""
    base_url: str = ""
    """An OpenAI-compatible server that offers the model."""
    judged: bool = False
    """Leave the verdict to each memory's own judge, instead of telling it the verifier's word."""
    shuffle: bool = True
    """Draw the order of a seed's tasks from the seed."""
    leave_out: tuple[Literal["task", "template"], ...] = ("task", "template")
    """Arms that are added for the first one with the bank itself: shown no lesson of the same task, of its template."""
    share: bool = True
    """Where two arms are shown the same for a task, one attempt is made for both (not for an arm with `again`)."""
    stop: bool | tuple[str, ...] = False
    """Stop after a seed at which each arm, or each of those named, is shown to differ from the baseline. Claims then
    rest on intervals that are right however often one looks."""
    question: Question = Field(default_factory=Question)
    price: Price = Field(default_factory=Price)
    budget: Budget = Field(default_factory=Budget)

    @field_validator("seeds", mode="before")
    @classmethod
    def _spread(cls, value: Any) -> Any:
        return _seeds(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits_together(self) -> Experiment:
        names = [arm.name for arm in self.arms]
        if len({_slug(name) for name in names}) < len(names):
            raise ValueError("two arms have one name; name each differently")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("a seed is given twice; each seed is one stream")
        if self.baseline and self.baseline not in names:
            raise ValueError(f"baseline {self.baseline!r} is none of the arms")
        if self.mode != "online" and not self.train:
            raise ValueError(f"mode {self.mode!r} needs train, the number of tasks to learn from first")
        if self.mode == "transfer" and not (self.train_on and self.test_on):
            raise ValueError("mode 'transfer' needs train_on and test_on, the groups of tasks")
        if self.mode == "transfer" and self.train_on == self.test_on:
            raise ValueError("mode 'transfer' goes from one group of tasks to another; train_on and test_on are one")
        base = self.against
        if any(arm.again and arm.memory not in ("", memory_of(base)) for arm in self.arms):
            raise ValueError("an arm with again = true has the baseline's memory; leave memory out")
        if self.judged and (not self.model or any(arm.wrong_verdicts for arm in self.arms)):
            raise ValueError("judged = true needs a model, and no wrong_verdicts, since no verdict is told")
        if base.again:
            raise ValueError("the baseline cannot be its own repetition; leave again out")
        return self

    @model_validator(mode="after")
    def _can_stop(self) -> Experiment:
        claims = [arm.name for arm in self.claims]
        if self.stop and not claims:
            raise ValueError("stop needs an arm that something is to be shown of, besides the baseline")
        if unknown := sorted(set(self.stop if isinstance(self.stop, tuple) else ()) - set(claims)):
            raise ValueError(f"stop names {unknown[0]!r}, which is no arm that something is to be shown of")
        return self

    @property
    def against(self) -> Arm:
        """The arm that others are compared with."""
        return next((arm for arm in self.arms if arm.name == self.baseline), self.arms[0])

    @property
    def claims(self) -> tuple[Arm, ...]:
        """The arms that something is to be shown of: not the baseline, its repetition, or one added for another."""
        return tuple(arm for arm in self.arms if not (arm.again or arm.of or arm.name == self.against.name))

    def played(self, arm: Arm, /) -> Arm:
        """The arm as it is played: a repetition is set as the baseline is."""
        if not arm.again:
            return arm
        base = self.against
        return base.model_copy(update={"name": arm.name, "memory": memory_of(base), "again": True})

    @property
    def hash(self) -> str:
        """SHA-256 of what decides what is run; budgets, prices and what is hoped for may change between two calls."""
        level = f" {self.question.level}" if self.stop else ""  # it decides where a run stops
        return digest(self.model_dump_json(exclude={"budget", "price", "question", "base_url"}) + level)


class Failure(Record):
    """What broke around the agent. While it was to recall or to attempt, there is no outcome; while it was to learn,
    there is one, of an arm that goes on without what it would have learned."""

    stage: Stage
    code: str
    message: str


class Lesson(Record):
    """A lesson as it was written."""

    kind: str
    title: str
    content: str

    @property
    def code(self) -> str:
        """Names it in rows: the same wherever the same lesson was drawn again."""
        return lesson_code(self.title, self.content)


class OneRun(Record):
    """One of several runs of a task."""

    trajectory: Trajectory
    """With an `error` where it crashed."""
    success: bool | None
    """The verifier's word; a run that crashed is no success."""
    verdict: Outcome | None = None
    """What a judge took it for; `None` where none was asked."""


class AttemptRow(Record):
    """One attempt at one task, or the several runs that an arm makes of it: everything that a comparison rests on, and
    what it takes to rebuild the memory."""

    config: str
    """The experiment's hash."""
    versions: dict[str, str]
    at: datetime
    seed: int
    arm: str
    phase: Phase = "test"
    place: int
    """Of the task in its stream, from 0, training included."""
    task_id: str
    task: str
    family: str
    """Tasks of one family (template) are not independent."""
    success: bool | None = None
    """What the environment's verifier says; `None` where infrastructure failed, or only somebody else can tell."""
    scores: dict[str, float] = Field(default_factory=dict)
    """What else the verifier measured."""
    told: bool | None = None
    """What the memory was told."""
    verdict: Outcome | None = None
    """What the memory took it for."""
    steps: int = 0
    requests: int = 0
    tokens: int = 0
    judging: Annotated[int, Field(exclude_if=lambda told: not told)] = 0
    """Those of `tokens` that the memory's own judge took."""
    cost: float | None = None
    seconds: float = 0.0
    """Of the attempt itself."""
    memory_seconds: float = 0.0
    """Of recalling and learning."""
    memory: str = ""
    """The text the agent was given."""
    memory_digest: str
    """SHA-256 of that text."""
    same_digest: str
    """SHA-256 of that text without the code that its fence is marked with, which is drawn anew for every recall."""
    shown: tuple[str, ...] = ()
    """The codes of the lessons in it, in order, where a bank says them."""
    shared: str = ""
    """The arm whose attempt this is, where it was shown the same: made once, and paid for once."""
    run: Trajectory | None = None
    """`None` where there are several."""
    runs: Annotated[tuple[OneRun, ...], Field(exclude_if=lambda told: not told)] = ()
    """In the order in which they were made. The row's `success` is that of the chosen one, and its steps are of all."""
    choice: Annotated[int | None, Field(exclude_if=lambda told: told is None)] = None
    """The place of the chosen one in `runs`."""
    lessons: tuple[Lesson, ...] = ()
    notes: tuple[str, ...] = ()
    error: Failure | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        """Which attempt of the experiment this is."""
        return self.seed, self.place, self.arm

    def facts(self) -> dict[str, Any]:
        """Everything but when it was, how long it took, codes of fences and new ids: equal for equal attempts."""
        kept = self.model_dump(mode="json", exclude={"at", "seconds", "memory_seconds", "memory_digest"})
        notes = [_ID.sub("an id", note) for note in self.notes]
        return {**kept, "memory": without_codes(self.memory), "notes": notes}


def acted(run: Trajectory, /) -> int:
    """How many actions a run took."""
    return sum(bool(step.action.text or step.action.calls) for step in run.steps)


def without_codes(text: str, /) -> str:
    """`text` with the codes of its fences made equal: what two recalls of one memory have in common."""
    codes = set(_MARKER.findall(text)) if "<<<" in text else set[str]()
    return _CODE.sub(lambda found: "--------" if found[0] in codes else found[0], text)


def memory_of(arm: Arm, /) -> str:
    """The memory an arm stands for."""
    return arm.memory or arm.name


def file_name(arm: str, seed: int, /) -> str:
    """Under which name the bank of an arm and a seed is kept."""
    return f"{_slug(arm)}-{seed}.jsonl"


def answers_name(arm: str, seed: int, place: int | None = None, /) -> str:
    """Under which name the answers of its model are; of one task, where each has a bank of its own."""
    return f"{_slug(arm)}-{seed}{'' if place is None else f'-{place}'}.answers.jsonl"


def read_experiment(path: Path, /) -> Experiment:
    """The experiment that a TOML file describes.

    Raises:
        UsageError: there is no such file, it is no TOML, or it describes none; the message names the first entry.
    """
    return made(read_values(path), source=str(path))


def read_values(path: Path, /) -> dict[str, Any]:
    """What a TOML file says.

    Raises:
        UsageError: there is no such file, or it is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{str(path)!r} is not TOML: {one_line(str(error), limit=200)}") from error


def made(values: dict[str, Any], /, *, source: str) -> Experiment:
    """An experiment from plain values, with the arms that `leave_out` adds; `UsageError` where they are none."""
    try:
        return _with_left_out(Experiment.model_validate(values))
    except ValidationError as error:
        first = cast("dict[str, Any]", error.errors(include_url=False)[0])
        where = ".".join(str(part) for part in first["loc"]) or "the experiment"
        told = _WHY.get(str(first["type"])) or str(first["msg"]).removeprefix("Value error, ")
        raise UsageError(f"{source}: {one_line(where, limit=80)}: {one_line(told, limit=300)}") from error


def _with_left_out(experiment: Experiment) -> Experiment:
    first = next((arm for arm in experiment.claims if _OUR_BANK.fullmatch(memory_of(arm))), None)
    if first is None or any(arm.of for arm in experiment.arms):
        return experiment
    added = tuple(
        first.model_copy(
            update={
                "name": f"{first.name[:36]}, other {like}s",
                "memory": f"{memory_of(first)}{',' if ':' in memory_of(first) else ':'}exclude={like}",
                "of": first.name,
            }
        )
        for like in experiment.leave_out
    )
    return Experiment.model_validate(experiment.model_copy(update={"arms": (*experiment.arms, *added)}).model_dump())


def _seeds(text: str) -> tuple[int, ...]:
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise ValueError("seeds are a list of numbers, or a span such as '100-119'")
    first, last = int(found[1]), int(found[2])
    if not 0 <= last - first < _MOST_SEEDS:
        raise ValueError(f"a span of seeds ascends and has at most {_MOST_SEEDS:,} of them")
    return tuple(range(first, last + 1))


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
