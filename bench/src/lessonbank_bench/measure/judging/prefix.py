"""How much of what a judge and an extractor read a provider's prompt cache can hold: the text that all runs share.

    python -m lessonbank_bench.measure.judging.prefix RUNS… [--domain code] [--runs 100]

Nothing is asked of a model. Each request is what would be sent; of each but the first, the part is counted with which
an earlier request began as well. Tokens are estimated. For one agent, give a file with runs of one agent.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import anyio
from pydantic import BaseModel

from lessonbank import Run, Verdict
from lessonbank.contracts.ports import Completion, Message
from lessonbank.learning.extraction import LLMExtractor
from lessonbank.learning.judging import LLMJudge
from lessonbank.text.prompts import for_domain
from lessonbank.text.rendering import estimate_tokens

from .labelled import Labelled, read_labelled


class Listener:
    """A model that keeps what it is asked and says nothing of use."""

    name = "nobody"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """Nothing."""
        self.asked.append("\n".join(message.content for message in messages))
        return Completion(text='{"items": []}')


async def sent(runs: Sequence[Labelled], domain: str, /) -> dict[str, list[str]]:
    """What the judge's first look and the extractor send for each run."""
    judged, drawn = Listener(), Listener()
    judge = LLMJudge(judged, prompt=for_domain(domain, "judge"))
    roles = {role: for_domain(domain, name) for role, name in _ROLES.items()}
    extractor = LLMExtractor(drawn, **roles)
    for one in runs:
        await judge(one.hidden)
        outcome = "success" if one.success else "failure"
        await extractor([Run(trajectory=one.hidden, verdict=Verdict(outcome=outcome, source="ground_truth"))])
    return {"judge": judged.asked, "extractor": drawn.asked}


_ROLES = {"success": "extract_success", "failure": "extract_failure", "contrast": "contrast"}


def shared(texts: Sequence[str], /) -> int:
    """Tokens of all texts that an earlier one began with as well."""
    return sum(
        max((estimate_tokens(text[: _same(text, before)]) for before in texts[:n]), default=0)
        for n, text in enumerate(texts)
    )


def _same(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def main() -> None:
    """Print a line for each part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--domain", default="general")
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    runs = read_labelled(asked.files, domain=asked.domain)[: asked.runs]
    for part, texts in anyio.run(sent, runs, asked.domain).items():
        total, same = sum(map(estimate_tokens, texts)), shared(texts)
        each = f"{total / len(texts):,.0f} tokens a run, {same / len(texts):,.0f} of them shared"
        print(f"{part}: {len(texts)} runs, {total:,} tokens, {same:,} of them ({same / total:.0%}) shared; {each}")


if __name__ == "__main__":
    main()
