"""A text of a megabyte in any call leaves the event loop free: what reads it runs in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest
from linear import growth_of

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Experience, Lesson

pytestmark = pytest.mark.full

LONG = "Pay the invoice of Norvex for 17 parcels. " * 24_000
CALLS: dict[str, Callable[[AsyncReasoningBank, str], Coroutine[Any, Any, Any]]] = {
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
def test_a_megabyte_costs_the_event_loop_no_more_than_a_quarter_of_it(name: str) -> None:
    numbers = count()

    def spent(text: str) -> float:
        """Seconds of the loop's thread."""
        number = next(numbers)
        begun = time.thread_time()
        runner.run(CALLS[name](bank, f"{number} {text}{number}"))
        return time.thread_time() - begun

    with asyncio.Runner() as runner:
        bank = runner.run(
            lessonbank.connect_async(":memory:", scope="a", embedder="lexical", evidence=Evidence(holdout=None))
        )
        look: dict[str, Any] = {"title": "Look", "content": "Look at the invoice first.", "task": "Pay the invoice"}
        runner.run(bank.lessons.add(**look, by="Ana"))
        spent(LONG[:2000])
        grown = growth_of(lambda size: LONG[:size], size=len(LONG) // 4, most=2, measure=spent)
        runner.run(bank.close())
    assert grown <= 2
