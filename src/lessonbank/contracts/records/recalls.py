"""The records of one retrieval: what was shown for a task, and what became of it."""

from __future__ import annotations

from operator import attrgetter

from pydantic import Field

from lessonbank.contracts.lesson_block import numbers_cited

from .ids import record_id, record_time
from .lessons import Lesson
from .notes import Note, notes_of
from .record import Moment, Record
from .runs import Json, Outcome, PromptRef, VerdictSource
from .usage import Usage


class Candidate(Record):
    """One lesson that a retrieval considered, and what was done with it."""

    lesson_id: str
    experience_id: str
    score: float
    rank: int
    shown: bool
    placed: bool = True
    """Whether it had a place in the text. A lesson that repeats another or does not fit has no place and no draw."""
    withheld: bool = False
    """Whether its own draw left it out. If the whole recall was withheld, it was not shown in any case."""
    probability: float = 0.0
    """The probability of withholding it, fixed before the draw."""
    groups: tuple[str, ...] = ()
    """Ids of the groups it belonged to then, the widest first: its source, its topic. Their draws are on the recall."""
    unfit: bool = False
    """Whether it was offered, and a model that read the task left it out of the text (`Recall.fit`)."""
    why: str = ""

    @property
    def offered(self) -> bool:
        """Whether the lesson was drawn to be shown: it is in the text, or a model that read the task left it out."""
        return self.shown or self.unfit


class FitReceipt(Record):
    """What a model made of the lessons that were offered for a task."""

    how: str
    """`select` or `rewrite`."""
    is_applied: bool = False
    """Whether the text of the recall is what the model made of them. If not, a note of the recall says why."""
    kept: tuple[str, ...] = ()
    """Ids of the lessons that it kept, in the order of the text."""
    unfitted: str = ""
    """The text without the model, where the text is its work."""
    model: str = ""
    prompt: PromptRef | None = None
    usage: Usage = Field(default_factory=Usage)
    """What the call cost, as far as the model said so: nothing where it did not answer."""
    seconds: float = 0.0


class GroupDraw(Record):
    """One draw for all lessons of a group that were found."""

    group: str
    """Its id, as the candidates name it."""
    withheld: bool
    probability: float
    """The probability of withholding them, fixed before the draw."""


class Recall(Record):
    """The receipt of one retrieval: what was found, shown, withheld, and the exact text."""

    id: str = Field(default_factory=record_id)
    scope: str
    task: str
    text: str = ""
    """What goes into the prompt; empty when nothing is worth showing."""
    text_digest: str = ""
    lessons: tuple[Lesson, ...] = ()
    """Every lesson considered, best first. Receipts are kept without; `bank.recalls` gives them as they are now."""
    candidates: tuple[Candidate, ...] = ()
    holdout: float | None = None
    """The rate at which new lessons are withheld; `None` if nothing is ever withheld."""
    control: bool = False
    """Whether the whole recall was withheld at random: this task got no lessons, for comparison."""
    control_probability: float = 0.0
    groups: tuple[GroupDraw, ...] = ()
    """The draws for groups of lessons. A group that is not named here was not drawn."""
    retriever: str = ""
    space: str | None = None
    notes: tuple[Note, ...] = ()
    """Fallbacks that were used, and why `text` is empty if it is: one sentence each."""
    kept: bool = True
    """Whether this receipt was on disk when the text was given. If not, `notes` says why, and `learn` keeps it when the
    recall is handed in. A receipt that never comes back is not measured."""
    signature: str = ""
    """The bank's own mark, by which it knows a receipt again that it did not keep. Not kept with the stored receipt."""
    imported: bool = False
    """Whether an import brought it. Only the import sets this. An imported receipt is no evidence here."""
    step: int | None = None
    """The number of the step before which it was shown, in the middle of a run. `None`: at the beginning, or a cure."""
    created_at: Moment = Field(default_factory=record_time)
    fit: FitReceipt | None = None
    """What a model made of the lessons that were offered; `None` where none was asked."""
    metadata: dict[str, Json] = Field(default_factory=dict)
    """What the caller gave as `metadata=`, such as `{"user": "u-17"}`. Recalls can be found and erased by it."""

    @property
    def is_withheld(self) -> bool:
        """Whether lessons were found and a draw left them all out: where nothing is found, nothing is withheld."""
        return self.control and bool(self.candidates)

    @property
    def shown(self) -> tuple[Lesson, ...]:
        """The lessons that are in `text`, in its order."""
        lessons = {lesson.id: lesson for lesson in self.lessons}
        return tuple(lessons[id] for id in self.shown_ids if id in lessons)

    @property
    def shown_ids(self) -> tuple[str, ...]:
        """Their ids, in the order of the numbers that they have in `text`."""
        ranked = [c.lesson_id for c in sorted(self.candidates, key=attrgetter("rank")) if c.shown]
        return self.fit.kept if self.fit and self.fit.is_applied else tuple(ranked)

    @property
    def withheld(self) -> tuple[Lesson, ...]:
        """The lessons left out at random, so that their effect can be measured; all, if the recall was withheld."""
        groups = {draw.group for draw in self.groups if draw.withheld}
        ids = {
            c.lesson_id
            for c in self.candidates
            if c.withheld or (c.placed and (self.control or not groups.isdisjoint(c.groups)))
        }
        return tuple(lesson for lesson in self.lessons if lesson.id in ids)

    def observed(self) -> Recall:
        """Return the receipt of a bank that only observes: nothing shown, nothing drawn."""
        why = "the bank only observes (Evidence(observe=True)): no lesson is shown"
        plain = {"shown": False, "placed": False, "withheld": False, "probability": 0.0, "why": why}
        candidates = tuple(candidate.model_copy(update=plain) for candidate in self.candidates)
        update = {"text": "", "text_digest": "", "candidates": candidates, "control": False, "control_probability": 0.0}
        update["groups"] = ()
        return self.model_copy(update={**update, "notes": (*self.notes, *notes_of(why))})

    def citations(self, text: str, /) -> tuple[str, ...]:
        """The ids of the shown lessons that `text` names by number, as in `[2]`. An erased lesson keeps its number."""
        numbers = numbers_cited(text)
        return tuple([id for number, id in enumerate(self.shown_ids, 1) if number in numbers]) if numbers else ()

    def cited(self, text: str, /) -> tuple[Lesson, ...]:
        """The shown lessons that `text` names by number: those that an agent says it used or ignored."""
        ids = self.citations(text)
        return tuple(lesson for lesson in self.shown if lesson.id in ids)

    @property
    def scores(self) -> dict[str, float]:
        """Lesson id to similarity."""
        return {c.lesson_id: c.score for c in self.candidates}

    @property
    def why(self) -> dict[str, str]:
        """Lesson id to one sentence: why it was shown or not."""
        return {c.lesson_id: c.why for c in self.candidates}


class Settlement(Record):
    """The outcome of the task of a recall. The evidence joins the two."""

    recall_id: str
    scope: str
    experience_id: str | None = None
    trajectory_ids: tuple[str, ...] = ()
    runs: int = 0
    """How many runs of this recall it counts; 0: as many as `trajectory_ids`."""
    outcome: Outcome
    reward: float | None = None
    """The reward of a single run, or the mean of several, where a run without one counts 1 or 0. The evidence takes it
    as it is, if it is from 0 to 1."""
    confidence: float = 1.0
    source: VerdictSource = "judge"
    """Of several runs: `judge`, if a judge decided any of them."""
    judge: str = ""
    """Which judge decided: its model, and its prompt with version."""
    steps: int = 0
    usage: Usage = Usage()
    seconds: float | None = None
    """Wall time, where the run says it (`metadata["seconds"]`); an attempt measures its own."""
    cited: tuple[str, ...] = ()
    """Lessons that the agent named by number. This is adherence, not effect."""
    template: str | None = None
    """The template of the task, where the run names one: tasks of one template are not independent."""
    agent: str = ""
    """The model that the agent ran on, where the run names it: `metadata["model"]`. Estimates pool all models."""
    another_task: bool = False
    """Whether a run was of another task than the recall, so that its outcome may say nothing of what was shown."""
    at: Moment = Field(default_factory=record_time)
    identity: str = ""
    """Who told it, as the bank knows it: `process:ana@host`, or `key:u-17` for a writer with a key."""
