"""The synchronous bank inside a running event loop, as in a notebook cell: no nest_asyncio, nothing to await.

python examples/notebook.py
"""

import asyncio

import lessonbank


def judge_and_extract(prompt: str) -> str:
    """Any function from prompt to text is a model. This one never decides and draws no lesson."""
    return '{"reason": "not enough to go on", "outcome": "unknown", "confidence": 0.2, "items": []}'


async def cell() -> int:
    """What a notebook does: run plain code while a loop is running."""
    bank = lessonbank.connect(":memory:", scope="docs/notebook", model=judge_and_extract, embedder="lexical")
    unclear = bank.learn([{"role": "user", "content": "Sort the list"}, {"role": "assistant", "content": "Done."}])
    print("verdict:", unclear.verdicts[0].outcome, "- lessons:", len(unclear.lessons))

    (waiting,) = bank.runs.pending(limit=10_000)
    settled = bank.learn(waiting, outcome="success")
    print("after ground truth:", settled.verdicts[0].source, "- still waiting:", len(bank.runs.pending(limit=10_000)))
    bank.close()
    return len(settled.verdicts)


if __name__ == "__main__":
    asyncio.run(cell())
