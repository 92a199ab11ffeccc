"""Retry, time, concurrency and size are limits around a model, not features of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.errors import ModelError, ModelTimeout, TransientModelError, UsageError
from lessonbank.providers.models.wrappers import Clipped, Limited, Paced, Retrying, TimeLimited, standard
from lessonbank.testing.fakes import ScriptedModel
from lessonbank.testing.model_contract import ASKED, LanguageModelContract, Shape

ASYNC = pytest.mark.anyio


@ASYNC
class TestAllOfThem(LanguageModelContract):
    def make(self, reply: str, /) -> LanguageModel:
        return standard(ScriptedModel(lambda messages: reply))

    def make_failing(self) -> LanguageModel:
        return standard(ScriptedModel(lambda messages: ModelError("no")))


class Naps:
    """Notes how long it was asked to sleep, and does not."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


DOWN = TransientModelError("down")


@ASYNC
@pytest.mark.parametrize(
    ("replies", "naps"),
    [([DOWN, DOWN, DOWN, "up"], [0.5, 1.0, 2.0]), ([TransientModelError("slow down", retry_after=7.0), "up"], [7.0])],
    ids=["after doubling waits", "never sooner than the service asked for"],
)
async def test_a_failure_that_may_pass_is_tried_again(replies: Sequence[Any], naps: list[float]) -> None:
    sleep = Naps()
    model = Retrying(ScriptedModel(replies), sleep=sleep, chance=lambda: 1.0)
    assert ((await model.generate(ASKED)).text, sleep.seconds) == ("up", naps)


@ASYNC
@pytest.mark.parametrize(
    ("failures", "naps"),
    [
        ([TransientModelError("come back later", retry_after=3600.0)], 0),
        ([TransientModelError("first"), TransientModelError("second")], 1),
        ([ModelError("wrong key")], 0),
        ([ModelTimeout("slow")], 0),
    ],
    ids=["asks for an hour", "the attempts are used up", "cannot pass", "ran out of time"],
)
async def test_the_last_failure_is_raised_where_another_try_is_not_worth_it(
    failures: list[ModelError], naps: int
) -> None:
    sleep = Naps()
    with pytest.raises(ModelError) as caught:
        await Retrying(ScriptedModel(failures), attempts=2, sleep=sleep).generate(ASKED)
    assert (caught.value, len(sleep.seconds)) == (failures[-1], naps)


@ASYNC
async def test_jitter_spreads_the_waits_and_none_exceeds_the_longest() -> None:
    naps = Naps()
    down = TransientModelError("down")
    model = Retrying(
        ScriptedModel([down] * 9 + ["up"]),
        attempts=10,
        longest_wait=4.0,
        sleep=naps,
        chance=iter([0.0, 0.5] * 5).__next__,
    )
    await model.generate(ASKED)
    assert naps.seconds[:3] == [0.25, 0.75, 1.0]
    assert max(naps.seconds) <= 4.0


@ASYNC
async def test_a_model_that_does_not_answer_in_time_is_a_timeout() -> None:
    async def never(messages: Sequence[Message]) -> str:
        await anyio.sleep_forever()
        return ""

    with pytest.raises(ModelTimeout, match=r"scripted gave no answer within 0\.01 s"):
        await TimeLimited(ScriptedModel(never), seconds=0.01).generate(ASKED)


@ASYNC
async def test_the_concurrency_limit_is_never_exceeded_and_all_are_served() -> None:
    running = most = 0

    async def answer(messages: Sequence[Message]) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return "ok"

    inner = ScriptedModel(answer)
    model = Limited(inner, concurrency=3)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(model.generate, ASKED)
    assert most == 3
    assert len(inner.calls) == 20


@ASYNC
async def test_a_paced_model_begins_requests_evenly_spaced() -> None:
    naps = Naps()
    model = Paced(ScriptedModel(lambda messages: "ok"), rate=600.0, sleep=naps)
    for _ in range(4):
        await model.generate(ASKED)
    assert model.name == "scripted"
    assert naps.seconds[0] == 0.0
    assert [0.05 < nap <= number * 0.1 for number, nap in enumerate(naps.seconds[1:], 1)] == [True] * 3
    assert sorted(naps.seconds) == naps.seconds


def test_a_limited_model_serves_one_event_loop_after_another() -> None:
    model = Limited(ScriptedModel(lambda messages: "ok"), concurrency=1)

    async def ask() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.generate, ASKED)
            tasks.start_soon(model.generate, ASKED)

    anyio.run(ask)
    anyio.run(ask)


@ASYNC
async def test_a_reply_is_cut_and_one_that_fits_is_untouched() -> None:
    model = Clipped(ScriptedModel(["abc", "abcdef"]), characters=3)
    assert [(await model.generate(ASKED)).text for _ in range(2)] == ["abc", "abc"]


@ASYNC
async def test_everything_asked_reaches_the_model_inside() -> None:
    inner = ScriptedModel(["ok"], name="inner")
    model = standard(inner)
    await model.generate(ASKED, temperature=0.7, schema=Shape)
    assert model.name == "inner"
    assert (inner.calls[0].messages, inner.calls[0].temperature, inner.calls[0].schema) == (ASKED, 0.7, Shape)
    inner.assert_all_used()


def test_limits_that_allow_nothing_are_refused() -> None:
    with pytest.raises(UsageError):
        Limited(ScriptedModel([]), concurrency=0)
    with pytest.raises(UsageError):
        Retrying(ScriptedModel([]), attempts=0)
