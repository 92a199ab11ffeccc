"""How long one learn holds the event loop: the loop thread's own CPU time between two ticks, by size of the run.

    python -m lessonbank_bench.measure.pauses [7]

Seven runs of each size, or as many as it is told. Each run is handed in as messages, judged and learned from by a
scripted model. CPU time of the loop's thread does not grow when other programs use the machine. The library promises at
most 10 ms.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.ports import Message
from lessonbank.testing import ScriptedModel

from .store.freezing import Ticker

SIZES = (10_000, 100_000, 1_000_000)
"""Characters of a run."""
_WORDS = ("order", "refund", "customer", "page", "error:", "line", "=", "def", "return", "test", "failed", "€")


def messages(size: int, seed: int, /) -> list[dict[str, str]]:
    """A conversation of about `size` characters: twenty turns with code, tables and errors in the observations."""
    draw = random.Random(seed)
    turn = lambda length: "\n".join(" ".join(draw.choices(_WORDS, k=12)) for _ in range(length // 80 + 1))  # noqa: E731
    said = [{"role": "user", "content": f"Refund order O-{seed} of the customer and confirm the amount"}]
    for step in range(20):
        said.append({"role": "assistant", "content": f"I look at page {step}. {turn(size // 200)}"})
        said.append({"role": "user", "content": turn(size // 20)})
    return [*said, {"role": "assistant", "content": "The amount is confirmed."}]


def answer(asked: Sequence[Message], /) -> str:
    """A judge's verdict with the code of its call, and one lesson: each reads its own part of it."""
    code = re.search(r"\b[0-9a-f]{8,32}\b", "\n".join(message.content for message in asked))
    verdict = {"check": code[0] if code else "", "reason": "done", "outcome": "success", "confidence": 0.9}
    lesson = {
        "title": "Compare the ledger first",
        "description": "When an amount is settled",
        "content": "Compare the last entry of the ledger with the request, because the summary page lags by an hour.",
    }
    return json.dumps({**verdict, "items": [{"evidence": ["step 20"], "cause": "the amount", **lesson}]})


async def longest(bank: AsyncReasoningBank, size: int, /, *, times: int) -> list[float]:
    """Milliseconds: the longest pause of each learn."""
    worst: list[float] = []
    for seed in range(times + 1):
        source, ticker = messages(size, seed + size), Ticker()
        gc.collect()
        ticking = asyncio.create_task(ticker.run())
        await bank.learn(source)
        await asyncio.sleep(0.005)
        ticking.cancel()
        worst.append(max(ticker.own))
    return sorted(worst[1:])  # the first one imports what is used


async def main(times: int = 7, /) -> None:
    """Print the median and the worst for each size."""
    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel(answer)
        async with await lessonbank.connect_async(
            Path(folder) / "bank.db", scope="s", embedder="lexical", model=model
        ) as bank:
            for size in SIZES:
                found = await longest(bank, size, times=times)
                print(f"{size:>9,} characters: median {found[len(found) // 2]:5.1f} ms, worst {found[-1]:5.1f} ms")
            counts = await bank.admin.counts()
            print(f"{counts.trajectories} runs, {counts.pending} not judged, {counts.lessons} lessons")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
