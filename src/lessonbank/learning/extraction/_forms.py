"""The form of an answer, for providers that can hold a model to one; the evidence comes first on purpose."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Lesson(BaseModel):
    """One lesson: first what shows it, then what it says."""

    evidence: list[str] = Field(description='Steps of the record that show the cause, such as "step 7"')
    cause: str = Field(description="What those steps show")
    title: str
    description: str = Field(description="When to use it and when not")
    content: str


class ContrastLesson(BaseModel):
    """One lesson from several runs."""

    evidence: list[str] = Field(description='Steps that show the difference, such as "run 2, step 3"')
    cause: str = Field(description="What those steps show")
    kind: Literal["strategy", "guardrail"]
    title: str
    description: str = Field(description="When to use it and when not")
    content: str


class Lessons(BaseModel):
    """The lessons of one run, the most decisive first; may be empty."""

    items: list[Lesson]


class ContrastLessons(BaseModel):
    """The lessons of several runs, the most decisive first; may be empty."""

    items: list[ContrastLesson]
