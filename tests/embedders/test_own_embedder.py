"""An embedder of the caller's own: what blocks runs in a thread, and never holds up the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Literal

import pytest

import lessonbank
from lessonbank import Step, Trajectory
from lessonbank.testing import HashingEmbedder

RUN = Trajectory(task="Cancel order 7", steps=(Step(action="look", observation="error: nothing here"),))
SECONDS = 20
"""Long enough for a busy machine: a test that would wait forever fails instead."""


class Blocking:
    """Its plain `embed` blocks until the event loop has done something else."""

    space = "blocking-512"

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.asked: list[tuple[str, int]] = []

    def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Any:
        self.asked.append((role, threading.get_ident()))
        if not self.may_go_on.wait(SECONDS):
            raise TimeoutError("the event loop stood still")
        return HashingEmbedder().rows(texts)


@pytest.mark.anyio
@pytest.mark.parametrize("door", ["query", "document"])
async def test_a_plain_embed_that_blocks_does_not_stop_the_event_loop(door: str) -> None:
    mine = Blocking()
    async with await lessonbank.connect_async(":memory:", scope="t", embedder=mine) as bank:
        call = bank.retrieve("Cancel order 8") if door == "query" else bank.learn(RUN, outcome="failure")
        waiting = asyncio.create_task(call)
        while not mine.asked:
            await asyncio.sleep(0)
        mine.may_go_on.set()  # only a loop that still turns gets here
        done: Any = await asyncio.wait_for(waiting, SECONDS)
        assert not [note for note in done.notes if "embedder" in note]
    assert mine.asked[0][0] == door
    assert threading.get_ident() not in {thread for _, thread in mine.asked}


def test_an_embedder_whose_rows_raise_when_they_are_read_costs_no_lesson() -> None:
    class Failing(Blocking):
        def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Any:
            return (_fail(text) for text in texts)

    with lessonbank.connect(":memory:", scope="t", embedder=Failing()) as bank:
        learned = bank.learn(RUN, outcome="failure")
    assert learned.lessons
    assert "raised RuntimeError: the connection is gone" in learned.notes[-1]


def _fail(_: str) -> Any:
    raise RuntimeError("the connection is gone")


def test_an_embedder_with_a_plain_embed_finds_what_was_learned() -> None:
    mine = Blocking()
    mine.may_go_on.set()
    with lessonbank.connect(":memory:", scope="t", embedder=mine, evidence=lessonbank.Evidence(holdout=None)) as bank:
        bank.learn(RUN, outcome="failure")
        recall = bank.retrieve("Cancel order 7")
    assert recall.space == "blocking-512"
    assert recall.shown
    assert not recall.notes
