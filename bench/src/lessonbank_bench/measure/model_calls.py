"""What a task costs in calls to a model: how many requests each part makes, and how long these and the replies are.

    python -m lessonbank_bench.measure.model_calls            # 30 short runs with tools
    python -m lessonbank_bench.measure.model_calls --runs 100

No model is asked: each request is written down, and answered in the form that it wants. So what goes in is exact but
for the estimate of tokens (one for three bytes), and what comes out is a short reply of ours, with one lesson each.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from pydantic import BaseModel

import lessonbank
from lessonbank.contracts.ports import Completion, Message
from lessonbank.contracts.records import Usage
from lessonbank.text.rendering import estimate_tokens

from .calls import run

PARTS = {
    "JudgeReply": "judge",
    "Lessons": "extractor, first",
    "LessonsAdding": "extractor, later",
    "Answers": "check for harm",
}
"""What asks, by the form of the reply that it wants. Once the bank has lessons, the extractor is shown the nearest."""
_CODE = re.compile(r"\b[0-9a-f]{8}\b")
_LESSON: dict[str, Any] = {
    "title": "Read the policy before a refund",
    "description": "When a customer wants money back.",
    "content": "Call find_order and check_policy before refund: the policy says within how many days.",
    "evidence": ["step 2"],
}


@dataclass
class Recorder:
    """A model that writes down what it is asked, and answers in the form that is wanted."""

    name: str = "recorder"
    asked: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """By part: the tokens of each request, and of its reply."""

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The reply to one request."""
        del temperature
        form = schema.__name__ if schema else "text"
        reply = json.dumps(_reply(form, messages))
        went, came = sum(estimate_tokens(one.content) for one in messages), estimate_tokens(reply)
        self.asked[PARTS.get(form, form)].append((went, came))
        return Completion(text=reply, usage=Usage(requests=1, input_tokens=went, output_tokens=came), model=self.name)


def _reply(form: str, messages: Sequence[Message]) -> dict[str, Any]:
    if form == "Answers":
        return {"answers": [{"lesson": 1, "answer": "keep"}]}
    if form.startswith("Lessons"):
        again = {"stands": "same", "to": "K1", "adds": ""} if form == "LessonsAdding" else {}
        return {"items": [{**_LESSON, **again}]}
    codes = _CODE.findall("\n".join(one.content for one in messages))
    told = {"outcome": "success", "confidence": 0.9, "reason": "The refund is confirmed in step 3.", "steps": [3]}
    return {"check": max(codes, key=codes.count, default=""), **told}


def record(runs: int, /, *, is_told: bool) -> tuple[Recorder, list[int]]:
    """What `runs` tasks ask of a model by default, and the tokens of the text that each was given."""
    model, given = Recorder(), list[int]()
    with lessonbank.connect(":memory:", scope="desk", embedder="lexical", model=model) as bank:
        for number in range(runs):
            recall = bank.retrieve(run(number).task)
            given.append(estimate_tokens(recall.text))
            bank.learn(run(number), recall=recall, outcome="success" if is_told else None)
    return model, given


def main(words: Sequence[str] | None = None, /) -> None:
    """Print a table for outcomes that are told, and one for outcomes that a judge decides."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--runs", type=int, default=30, help="Tasks, each retrieved for and learned from.")
    runs = reader.parse_args(words).runs
    for is_told in (True, False):
        model, given = record(runs, is_told=is_told)
        print(f"{runs} tasks, the outcome {'told' if is_told else 'left to the judge'}")
        print(f"  {'part':16s} {'calls':>6s} {'tokens in':>10s} {'out':>5s}   a call")
        print(f"  {'retrieve':16s} {0:6d} {'':>10s} {'':>5s}   {fmean(given):.0f} tokens of text for the agent")
        for part, asked in model.asked.items():
            went, came = (fmean(column) for column in zip(*asked, strict=True))
            print(f"  {part:16s} {len(asked):6d} {went:10,.0f} {came:5.0f}")
        spent = [sum(one) for asked in model.asked.values() for one in asked]
        print(f"  a task: {len(spent) / runs:.2f} calls, {sum(spent) / runs:,.0f} tokens\n")


if __name__ == "__main__":
    main()
