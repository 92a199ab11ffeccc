"""A text of a megabyte in any call leaves the event loop free: what reads it runs in a thread."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Experience, Lesson

pytestmark = [pytest.mark.anyio, pytest.mark.full]

LONG = "Pay the invoice of Norvex for 17 parcels. " * 24_000
MOST = 0.04
"""Seconds of the loop's thread, the best of eight. Reading a megabyte word by word took it 0.05 to 0.12."""

CALLS: dict[str, Callable[[AsyncReasoningBank, str], Awaitable[Any]]] = {
    "retrieve": lambda bank, text: bank.retrieve(text),
    "preview": lambda bank, text: bank.recalls.preview(text),
    "learn": lambda bank, text: bank.learn("Paid.", task=text, outcome="success"),
    "judge": lambda bank, text: bank.judge(text, task="Pay it", outcome="success"),
    "consolidate": lambda bank, text: bank.consolidate(
        Experience(scope="a", task=text, lessons=(Lesson(title=f"Pay {text[0]}", content=text[:3000]),))
    ),
    "add": lambda bank, text: bank.lessons.add(
        title=f"Pay {text[0]}", content=f"Look at invoice {text[0]} first.", task=text, by="Ana"
    ),
    "search": lambda bank, text: bank.lessons.search(text),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_megabyte_costs_the_event_loop_milliseconds(name: str) -> None:
    took = list[float]()
    async with await lessonbank.connect_async(
        ":memory:", scope="a", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        await bank.lessons.add(title="Look", content="Look at the invoice first.", task="Pay the invoice", by="Ana")
        await CALLS[name](bank, LONG[:2000])
        for number in range(8):
            text = f"{number} {LONG}{number}"
            begun = time.thread_time()
            await CALLS[name](bank, text)
            took.append(time.thread_time() - begun)
            if took[-1] < MOST:
                break
    assert min(took) < MOST, took
