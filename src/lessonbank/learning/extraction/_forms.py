"""The form of an answer, for providers that can hold a model to one; the evidence comes first on purpose."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from lessonbank.contracts.records import Reach


class _Grounds(BaseModel):
    """What shows a lesson of one run."""

    evidence: list[str] = Field(description='Steps of the record that show the cause, such as "step 7"')
    cause: str = Field(description="What those steps show")


class _GroundsBetween(BaseModel):
    """What shows a lesson of several runs."""

    evidence: list[str] = Field(description='Steps that show the difference, such as "run 2, step 3"')
    cause: str = Field(description="What those steps show")
    kind: Literal["strategy", "guardrail"]


class _Beside(BaseModel):
    """How a lesson stands to those that memory has."""

    stands: Literal["new", "same", "sharper", "contradicts"]
    to: str = Field(description='Of which lesson of the memory, such as "K1"; empty if new')


class _Adding(_Beside):
    """A lesson's stand to known lessons, and what it adds to one of them."""

    adds: str = Field(description="What it shows beyond that lesson, in one sentence; empty if nothing")


class Choice(BaseModel):
    """What the record shows about one choice."""

    about: str = Field(description="What is chosen, in words of the lesson")
    excluded: list[str] = Field(description="Options that the record rules out")
    open: list[str] = Field(description="Options that it leaves open")
    confirmed: list[str] = Field(description="Options that it shows to work")


class _LessonText(BaseModel):
    """What a lesson claims and says."""

    rests_on: str = Field(description="The field or message that shows it")
    applies_to: Reach
    where: str = Field(description="Name of that record, place or organisation; empty for a kind")
    unsettled: bool = Field(description="Whether more runs are needed to know how far it goes")
    choice: Choice | None = Field(description="Where it is about a choice between options")
    title: str = Field(description="The deed, at most 10 words")
    description: str = Field(description="When to use it and when not")
    content: str = Field(description="At most 60 words")


class Lesson(_LessonText, _Grounds):
    """A lesson in a reply: first the evidence for the lesson, then its text."""


class ContrastLesson(_LessonText, _GroundsBetween):
    """One lesson from several runs."""


class LessonBeside(_LessonText, _Beside, _Grounds):
    """One lesson, where memory has some already."""


class ContrastLessonBeside(_LessonText, _Beside, _GroundsBetween):
    """One lesson from several runs, where memory has some already."""


class LessonAdding(_LessonText, _Adding, _Grounds):
    """One lesson, which may add to one that memory has."""


class ContrastLessonAdding(_LessonText, _Adding, _GroundsBetween):
    """One lesson from several runs, which may add to one that memory has."""


class GeneralLesson(BaseModel):
    """What single lessons of several tasks have in common."""

    evidence: list[str] = Field(description='Runs that show it and lessons that it covers, such as "R1" and "L2"')
    cause: str = Field(description="What separates the runs")
    kind: Literal["strategy", "guardrail"]
    applies_to: Reach
    where: str
    title: str = Field(description="The deed, at most 10 words")
    description: str = Field(description="When to use it and when not")
    content: str = Field(description="At most 60 words")


class GeneralLessons(BaseModel):
    """General lessons; may be empty."""

    items: list[GeneralLesson]


class Lessons(BaseModel):
    """The lessons of one run, the most decisive first; may be empty."""

    items: list[Lesson]


class ContrastLessons(BaseModel):
    """The lessons of several runs, the most decisive first; may be empty."""

    items: list[ContrastLesson]


class LessonsBeside(BaseModel):
    """The lessons of one run, where memory has some already; may be empty."""

    items: list[LessonBeside]


class ContrastLessonsBeside(BaseModel):
    """The lessons of several runs, where memory has some already; may be empty."""

    items: list[ContrastLessonBeside]


class LessonsAdding(BaseModel):
    """The lessons of one run, which may add to those that memory has; may be empty."""

    items: list[LessonAdding]


class ContrastLessonsAdding(BaseModel):
    """The lessons of several runs, which may add to those that memory has; may be empty."""

    items: list[ContrastLessonAdding]
