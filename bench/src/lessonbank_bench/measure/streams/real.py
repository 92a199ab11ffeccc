"""A stream through a real bank, by what it offers to everybody, beside the simulator's own columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import lessonbank
from lessonbank import Evidence, Experience, Extraction, Learning, Lesson, Parts, Retrieval, Run, Step, Trajectory
from lessonbank.contracts.records import Found, Match, Recall
from lessonbank.evidence import Lift
from lessonbank.evidence.groups import groups_of
from lessonbank.evidence.review import Review, review

from .playing import SCOPE, TRUTH, Come, play
from .rows import Straight
from .stream import Planted, Stream
from .truth import Drawn, changes

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors


class Planned:
    """A retriever that finds what the stream says."""

    name, space = "planned", None

    def __init__(self) -> None:
        self.experiences: Sequence[Experience] = ()
        self.placed: Sequence[int] = ()

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """The lessons of the present task."""
        del task, scope, limit
        return Found(matches=tuple(Match(experience=self.experiences[n], score=1.0) for n in self.placed))

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """Nothing is indexed."""
        del experiences
        return {}

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Nothing is left to index."""
        del scope, most
        return 0


class Real:
    """A bank that measures and does not act, as `play` wants it."""

    def __init__(self, stream: Stream, /) -> None:
        self._retriever = Planned()
        self.bank = lessonbank.connect(
            ":memory:",
            scope=SCOPE,
            retrieval=Retrieval(limit=stream.shown),
            learning=Learning(consolidation="append"),
            evidence=Evidence(act=False),
            parts=Parts(retriever=self._retriever, extractor=_no_lessons),
        )
        for lesson in stream.lessons:
            self.bank.consolidate(_experience(lesson.id))
        kept = self._retriever.experiences = [self.bank.lessons.experience(one.id) for one in stream.lessons]
        lessons = [Planted(one.lessons[0].id, groups_of(one.lessons[0], one)) for one in kept]
        self.stream = replace(stream, lessons=tuple(lessons))
        self.straight, self._recall = Straight(self.stream), cast("Recall | None", None)

    def draw(self, task: int, stream: Stream, placed: Sequence[int], /) -> Drawn:
        """What the bank draws."""
        self._retriever.placed = placed
        recall = self._recall = self.bank.retrieve(f"template {stream.templates[task]}")
        by_id = {one.lesson_id: (one.withheld, one.probability) for one in recall.candidates if one.placed}
        groups = {one.group: (one.withheld, one.probability) for one in recall.groups}
        lessons = tuple(by_id[stream.lessons[n].id] for n in placed)
        return Drawn((recall.control, recall.control_probability), groups, lessons)

    def note(self, come: Come, /) -> Iterable[int]:
        """Tell the bank what became of it."""
        assert self._recall is not None
        assert {one.id for one in self._recall.shown} == {come.stream.lessons[n].id for n in come.shown}
        self.straight.add(come, changes(come.stream, come.task, come.placed, come.drawn))
        for source, success in come.said:
            assert source == TRUTH
            run = Trajectory(
                task=self._recall.task,
                steps=(Step(action="look", observation="seen"),),
                answer="Done.",
                metadata={"template": come.stream.templates[come.task]},
            )
            self.bank.learn(run, recall=self._recall, outcome="success" if success else "failure")
        return ()


def beside(stream: Stream, /) -> tuple[Lift, Review, Straight]:
    """What a real bank reports of a stream, and what a review says of the same draws in the simulator's columns."""
    real = Real(stream)
    with real.bank:
        play(real.stream, real)
        return real.bank.lift(), review(real.straight.episodes()), real.straight


def _experience(name: str) -> Experience:
    lesson = Lesson(id=name, title=f"The way of {name}", content=f"Where {name} is in question, do as {name} says.")
    return Experience(scope=SCOPE, task=f"A task that taught {name}", lessons=(lesson,))


async def _no_lessons(_attempts: Sequence[Run], /) -> Extraction:
    """The lessons are planted; runs add none."""
    return Extraction()
