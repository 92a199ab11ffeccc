"""One task several times: four runs side by side, one lesson from what made the difference, then a second look.

python examples/scale_a_task.py
"""

import json
import random

import lessonbank
from lessonbank import Evidence, Step, Trajectory, Usage

TASK = "What does the cheapest blue shoe cost?"
SHELF = {"page 1": 14, "page 2": 12, "page 3": 19}
LESSON = {
    "title": "Look at every page",
    "description": "When the cheapest or the best of a list is asked for.",
    "content": "Open every page of the list before you answer: the first one is not sorted.",
    "kind": "strategy",
    "evidence": ["run 1, step 1"],
}


def write_lesson(prompt: str) -> str:
    """A model that contrasts the runs. A real one is named: model="openai:gpt-5-mini"."""
    return json.dumps({"items": [LESSON]})


def agent(task: str, memory: str, *, seed: int, check: str = "") -> Trajectory:
    """A toy: it stops after a page or two, unless a lesson, or a check of its run, tells it to look at all."""
    patient = "every page" in memory or bool(check)
    pages = list(SHELF)[: 3 if patient else random.Random(seed).choice([1, 1, 2])]
    steps = tuple(Step(action=f"open {page}", observation=f"cheapest: {SHELF[page]} dollars") for page in pages)
    answer, usage = f"{min(SHELF[page] for page in pages)} dollars", Usage(input_tokens=900 * len(pages))
    return Trajectory(task=task, steps=steps, answer=answer, usage=usage)


def correct(run: Trajectory) -> bool:
    """The world's own check."""
    return run.answer == "12 dollars"


def main() -> list[float | None]:
    """Pass@1 of four runs without a lesson, of runs with it under a budget, and how a second look at one run ended."""
    roles = {"extractor": write_lesson}
    with lessonbank.connect(
        ":memory:", scope="docs/scale", model=roles, embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        first = bank.scale(TASK, agent, k=4, verify=correct, choose="verdicts", seed=3)
        print(first, end="\n\n")
        again = bank.scale(TASK, agent, k=4, verify=correct, choose="verdicts", seed=3, tokens=8_000)
        print(again, end="\n\n")
        looked = bank.scale(TASK, agent, k=4, mode="sequential", verify=correct, memory=False, seed=4)
        print(looked)
    return [first.pass_at_1, again.pass_at_1, looked.best_of_n]


if __name__ == "__main__":
    main()
