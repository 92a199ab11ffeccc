"""Agents submit runs and go on; a worker, mostly on another machine, learns from them.

python examples/leave_learning_to_workers.py
"""

import asyncio
import tempfile
from pathlib import Path

import lessonbank
from lessonbank import Evidence, Learning
from lessonbank.http.workers import Worker

SCOPE = "docs/desk"


def agent(bank: lessonbank.ReasoningBank, order: str) -> None:
    """One task. The run is on disk when `finish` returns, and nothing is learned here."""
    with bank.attempt(f"Cancel order {order}") as attempt:
        attempt.step(f"cancel {order}", "error: the order was shipped already")
        attempt.step(f"return {order}", "a return was opened")
        attempt.finish(answer="returned", outcome="success", wait=False)


async def worker(path: Path) -> int:
    """What `lessonbank worker bank.db --drain` does."""
    learning = Learning(submit="worker")
    async with await lessonbank.connect_async(path, scope=SCOPE, embedder="lexical", learning=learning) as bank:
        worked = await Worker(bank, concurrency=4).run(drain=True)
    print(f"the worker learned from {worked.learned} runs, {worked.failed} tries failed")
    return worked.learned


def main() -> int:
    """Four runs, one worker; returns how many runs it learned from."""
    evidence, learning = Evidence(holdout=None), Learning(submit="worker")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.db"
        with lessonbank.connect(path, scope=SCOPE, embedder="lexical", evidence=evidence, learning=learning) as bank:
            for order in ("W17", "W18", "W19", "W20"):
                agent(bank, order)
            print("waiting:", bank.runs.queue().waiting)
            learned = asyncio.run(worker(path))
            print(bank.retrieve("Cancel order W21").text)
    return learned


if __name__ == "__main__":
    main()
