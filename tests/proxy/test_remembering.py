"""What is told of a run reaches that run, also where a request comes twice or the conversation has gone on."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank.contracts.records import Outcome
from lessonbank.proxy.conversations import Ended
from lessonbank.proxy.entrance import Whose
from lessonbank.proxy.frames import packed, read
from lessonbank.proxy.memory import Memory
from lessonbank.proxy.process import MemoryProcess
from lessonbank.proxy.remembering import OUTCOME, Remembering

MINE = Whose("acme/x")
FIRST = {"role": "user", "content": "Publish release 1.4"}
DONE = {"role": "assistant", "content": "Published."}
SECOND = {"role": "user", "content": "Publish release 1.5"}


class Noting(MemoryProcess):
    """The proxy's side of a memory that has a text for every task, and notes what it is told."""

    def __init__(self) -> None:
        super().__init__({})
        self.told: list[tuple[str, Outcome | None]] = []

    async def begin(self, run: str, task: str, /, *, whose: Whose) -> str | None:
        return "A LESSON"

    def end(self, ended: Ended, /, *, outcome: Outcome | None = None, reward: float | None = None) -> None:
        self.told.append((ended.run, outcome))

    def tell(self, run: str, /, *, whose: Whose, outcome: Outcome | None, reward: float | None) -> None:
        self.told.append((run, outcome))


async def ask(proxy: Remembering, *messages: dict[str, Any], id: str = "r1", status: int = 200, **headers: str) -> None:
    """A request, and its answer."""
    exchange = await proxy.open("chat", json.dumps({"messages": messages}).encode(), headers, whose=MINE)
    assert exchange
    exchange.answered(status, {"content-type": "application/json"})
    exchange.take(json.dumps({"id": id, "choices": [{"message": DONE}]}).encode())
    exchange.end()


def tell(proxy: Remembering, response: str, outcome: Outcome) -> str | None:
    return proxy.settle(MINE, conversation=None, response=response, outcome=outcome, reward=None)


@pytest.mark.anyio
async def test_a_request_that_failed_and_comes_again_tells_the_end_of_the_run_before_it_once() -> None:
    memory = Noting()
    proxy = Remembering(memory)
    await ask(proxy, FIRST)
    for status in (500, 200):
        await ask(proxy, FIRST, DONE, SECOND, id="r2", status=status, **{OUTCOME: "success"})
    assert [outcome for _, outcome in memory.told] == ["success"]
    assert tell(proxy, "r2", "failure") != memory.told[0][0]


@pytest.mark.anyio
async def test_what_is_told_of_an_earlier_response_is_told_of_its_run() -> None:
    memory = Noting()
    proxy = Remembering(memory)
    await ask(proxy, FIRST)
    first = tell(proxy, "r1", "success")
    await ask(proxy, FIRST, DONE, SECOND, id="r2")
    assert tell(proxy, "r1", "failure") == first
    second = tell(proxy, "r2", "success")
    assert memory.told == [(first, "success"), (first, "failure"), (second, "success")]


@pytest.mark.anyio
async def test_a_request_to_which_no_text_can_be_added_is_followed_again_when_it_comes_again() -> None:
    proxy = Remembering(Noting())
    twice = b'{"messages": [{"role": "user", "content": "Publish it", "content": "Publish it"}]}'
    for _ in range(2):
        with pytest.raises(ValueError, match="named twice"):
            await proxy.open("chat", twice, {}, whose=MINE)


def test_an_outcome_told_after_the_memory_was_started_again_counts(tmp_path: Path) -> None:
    frame: dict[str, Any] = {"run": "run-1", "scope": "acme/x", "writer": ""}
    end = {"parts": [[FIRST], [DONE]], "begins": 0, "system": None, "tools": None, "seconds": 1.0, "usage": [1, 2, 3]}
    frames = {"op": "end", "error": None, "stopped": None, **end}, {"op": "tell", "outcome": "success"}
    for told in frames:
        with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
            Memory(lambda: bank, io.BytesIO()).do(frame | told)
    with lessonbank.connect(tmp_path / "bank.db", scope="acme/x", embedder="lexical") as bank:
        assert bank.runs.get("run-1").status == "learned"


def test_a_frame_that_is_nested_too_deeply_does_not_end_the_memory() -> None:
    deep = packed({"op": "end"}, system="[" * 100_000 + "]" * 100_000)
    source = io.BytesIO(deep + packed({"op": "drain"}))
    assert read(source) == {"op": "nested too deeply"}
    assert read(source) == {"op": "drain"}
