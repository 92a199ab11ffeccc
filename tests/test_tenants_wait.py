"""No tenant waits for another one's model, and no task of a tenant holds a lock while a model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Extraction, Learning, Lesson, Parts, Step, Verdict
from lessonbank import Trajectory as Run
from lessonbank.contracts.records import Add, Change
from lessonbank.errors import UsageError
from lessonbank.testing import HashingEmbedder

pytestmark = pytest.mark.full

SECONDS = 20
"""Long enough for a busy machine: a test that would wait forever fails instead."""


def run(task: str) -> Run:
    return Run(task=task, steps=(Step(action="look", observation="error: nothing here"),))


class Meeting:
    """Lets nobody pass before `expected` have come."""

    def __init__(self, expected: int) -> None:
        self.expected, self.came, self.all_here = expected, 0, asyncio.Event()

    async def wait(self) -> None:
        self.came += 1
        if self.came >= self.expected:
            self.all_here.set()
        await self.all_here.wait()


class SlowEmbedder:
    """Waits with the others for each text it embeds for keeping."""

    def __init__(self, wait: Callable[[], Awaitable[None]]) -> None:
        self._embedder, self._wait = HashingEmbedder(), wait

    @property
    def space(self) -> str:
        return "slow"

    async def embed(self, texts: Sequence[str], /, *, role: Any) -> Any:
        await self._wait()
        return await self._embedder.embed(texts, role=role)


def slow_part(name: str, wait: Callable[[], Awaitable[None]]) -> dict[str, Any]:
    """The arguments of `connect` for a bank in which one part waits, as for a model."""

    async def judge(_: Run) -> Verdict:
        await wait()
        return Verdict(outcome="failure", confidence=0.9)

    async def extractor(attempts: Any) -> Extraction:
        await wait()
        content = f"To {attempts[0].trajectory.task}, open the second drawer where the first drawer is empty."
        return Extraction(lessons=(Lesson(title="Look in both drawers", content=content),))

    async def consolidator(new: Any) -> Sequence[Change]:
        await wait()
        return [Add(experience=new)]

    if name == "embedder":
        return {"embedder": SlowEmbedder(wait)}
    parts = {"judge": judge, "extractor": extractor, "consolidator": consolidator}
    return {"embedder": "lexical", "parts": Parts(**{name: parts[name]})}


async def opened(where: str, **options: Any) -> AsyncReasoningBank:
    return await lessonbank.connect_async(where, scope="t", evidence=Evidence(holdout=None), **options)


@pytest.fixture
def where(tmp_path: Path) -> str:
    return str(tmp_path / "bank.db")


@pytest.mark.parametrize("part", ["judge", "extractor", "consolidator", "embedder"])
def test_two_tasks_of_each_of_two_tenants_learn_at_once_and_no_lock_is_held_while_a_model_is_asked(
    where: str, part: str
) -> None:
    """All four ask at the same time; with a lock around the question, of a tenant or of all, they could never meet."""

    async def main() -> None:
        async with await opened(where, **slow_part(part, Meeting(4).wait)) as bank:
            tenants = [bank.scoped(f"tenant/{n}") for n in range(2)]
            told = {} if part == "judge" else {"outcome": "failure"}
            calls = [t.learn(run(f"find {what}"), **told) for t in tenants for what in ("the order", "a parcel")]
            learned = await asyncio.wait_for(asyncio.gather(*calls), SECONDS)
            assert all(one.lessons for one in learned)
            assert [(await tenant.admin.counts()).experiences for tenant in tenants] == [2, 2]

    asyncio.run(main())


def test_a_person_can_retire_a_lesson_while_a_model_is_asked(where: str) -> None:
    async def main() -> None:
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            asked.set()
            await go_on.wait()

        async with await opened(where, **slow_part("extractor", wait)) as bank:
            lesson = await bank.lessons.add(title="Ask", content="Ask for the order number.", task="Find it", by="Ana")
            learning = asyncio.create_task(bank.learn(run("find order 1"), outcome="failure"))
            await asyncio.wait_for(asked.wait(), SECONDS)
            await asyncio.wait_for(bank.lessons.retire(lesson.id, reason="wrong", by="Ana"), SECONDS)
            assert (await asyncio.wait_for(bank.retrieve("Find it"), SECONDS)).kept
            go_on.set()
            learned = await learning
            assert learned.lessons
            assert (await bank.lessons.get(lesson.id)).retired

    asyncio.run(main())


async def the_same(_: Any) -> Extraction:
    return Extraction(
        lessons=(Lesson(title="Save before leaving", content="Press save before the form is left, or it is lost."),)
    )


def test_tasks_of_one_scope_with_the_same_lesson_keep_it_once(where: str) -> None:
    tasks = 8

    async def main() -> None:
        async with await opened(
            where,
            embedder="lexical",
            learning=Learning(consolidation="recognise"),
            parts=Parts(extractor=the_same),
        ) as bank:
            calls = [bank.learn(run(f"fill the form {n}"), outcome="success") for n in range(tasks)]
            await asyncio.wait_for(asyncio.gather(*calls), SECONDS)
            assert [lesson.title for lesson in await bank.lessons.list()] == ["Save before leaving"]
            assert (await bank.admin.counts()).trajectories == tasks

    asyncio.run(main())


def test_tasks_of_one_scope_that_decide_at_the_same_time_keep_the_same_lesson_once(where: str) -> None:
    """Both search for duplicates before either has written: the later one has to look again."""

    async def main() -> None:
        meeting = Meeting(2)

        async def embed_together() -> None:
            await meeting.wait()

        async with await opened(
            where,
            embedder=SlowEmbedder(embed_together),
            learning=Learning(consolidation="recognise"),
            parts=Parts(extractor=the_same),
        ) as bank:
            calls = [bank.learn(run(f"fill the form {n}"), outcome="success") for n in range(2)]
            await asyncio.wait_for(asyncio.gather(*calls), SECONDS)
            assert len(await bank.lessons.list()) == 1

    asyncio.run(main())


def test_a_consolidator_that_calls_learn_of_its_own_scope_is_refused_instead_of_calling_itself_forever(
    where: str,
) -> None:
    async def main() -> None:
        async def nested(new: Any) -> Sequence[Change]:
            await bank.learn(run("find the key"), outcome="failure")
            return [Add(experience=new)]

        async with await opened(where, embedder="lexical", parts=Parts(consolidator=nested)) as bank:
            with pytest.raises(UsageError, match="may only return changes"):
                await asyncio.wait_for(bank.learn(run("find order 1"), outcome="failure"), SECONDS)
            assert len(await bank.runs.pending()) == 2

    asyncio.run(main())
