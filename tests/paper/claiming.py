"""What the tests of claims share: the mark that binds them to the manifest, a bank in memory, scripted replies."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import pytest
from coded_replies import coded

import lessonbank
from lessonbank import Action, Observation, ReasoningBank, Step, ToolCall, Trajectory
from lessonbank.testing.fakes import HashingEmbedder, ScriptedModel
from lessonbank.testing.settings import grouped

Profile = Literal["default", "paper"]
F = TypeVar("F", bound=Callable[..., Any])
TESTED: dict[str, set[str]] = defaultdict(set)

both_profiles = pytest.mark.parametrize("profile", ["paper", "default"])

RUN = Trajectory(
    task="Find the cheapest blue shoes",
    instructions="You are a shop assistant. Never buy without asking the customer first of all.",
    steps=(
        Step(observation=Observation(text="and please in size 9", source="user")),
        Step(
            thought="I sort by price.",
            action=Action(text="", calls=(ToolCall(name="sort", arguments={"by": "price"}),)),
            observations=(Observation(text="blue shoe, 12 dollars", source="tool", name="sort"),),
        ),
        Step(thought="That one.", action="report the first", observation="page: done"),
    ),
    answer="The blue shoe for 12 dollars",
)
SUCCESS = 'Thoughts: the price was found.\nStatus: "success"'
FAILURE = 'Thoughts: the size was forgotten.\nStatus: "failure"'


def claim(*ids: str) -> Callable[[F], F]:
    """Marks a test as checking claims of the manifest."""

    def mark(test: F) -> F:
        for id in ids:
            TESTED[id].add(test.__name__)
        return test

    return mark


def bank(profile: Profile = "paper", **options: Any) -> ReasoningBank:
    """A bank in memory that withholds nothing and keeps whatever is drawn, unless told."""
    settings: dict[str, Any] = {"scope": "paper/test", "embedder": "hashing", "holdout": None, "admission": None}
    settings |= options
    return lessonbank.connect(":memory:", profile=profile, **grouped(**settings))


def run(task: str = "Find the cheapest blue shoes", **fields: Any) -> Trajectory:
    """A small run with something to learn from."""
    steps = (
        Step(thought="I try.", action="search shoes", observation="error: choose a colour first"),
        Step(thought="I choose.", action="choose colour blue", observation="colour chosen"),
        Step(thought="Again.", action="search shoes", observation="3 results"),
    )
    return Trajectory(task=task, **{"steps": steps, "answer": "12 dollars"} | fields)


def verdict(outcome: str, confidence: float = 0.95) -> Callable[[Sequence[Any]], str]:
    """A reply of the default judge."""
    return coded(reason="step 1 shows it", outcome=outcome, confidence=confidence)


def judged(profile: Profile, outcome: str = "success") -> Any:
    """What a judge of `profile` answers."""
    return (SUCCESS if outcome == "success" else FAILURE) if profile == "paper" else verdict(outcome)


def some_lessons(count: int = 1, *, evidence: str = "step 1", last: str = "", **fields: str) -> str:
    """An extractor's reply with `count` lessons; `last` are words at their end that other replies do not have."""
    made = [
        {
            "evidence": [evidence],
            "cause": "seen",
            "title": f"Lesson {n}",
            "description": f"When it is about {n}.",
            "content": f"Do the thing number {n} before anything else{last}.",
        }
        | fields
        for n in range(1, count + 1)
    ]
    return json.dumps({"items": made})


class Listening:
    """An embedder that remembers what it was asked."""

    def __init__(self) -> None:
        self.inner, self.asked = HashingEmbedder(), list[tuple[str, str]]()

    @property
    def space(self) -> str:
        return self.inner.space

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Any:
        self.asked += [(role, text) for text in texts]
        return await self.inner.embed(texts, role=role)


def recalled(profile: Profile, reply: str = "", **options: Any) -> lessonbank.Recall:
    with bank(profile, model=ScriptedModel([reply or some_lessons()]), **options) as memory:
        memory.learn(run(), outcome="success")
        return memory.retrieve("Find the cheapest red shoes")
