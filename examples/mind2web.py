"""Mind2Web as in the paper: predict each recorded action of a task; a run has succeeded if every step is right.

python examples/mind2web.py          (offline: two tasks in the dataset's form, and a scripted predictor)

For the real thing: the tasks of the dataset's test splits for `TASKS`, one website after the other, and your model
for `predict`. Without the last lines of `main`, a judge (`connect(…, model=…)`) would decide, as in the paper.
"""

from typing import Any

import lessonbank

UNMEASURED = lessonbank.Evidence(holdout=None)  # in earnest leave it out: what is withheld shows whether memory helps
TASKS: list[dict[str, Any]] = [
    {
        "confirmed_task": f"Find a flight from Oslo to {city}",
        "website": "fly",
        "actions": [
            {"page": "[1] input From [2] input To [3] button Search", "gold": "TYPE [1] Oslo"},
            {"page": "[1] input From: Oslo [2] input To [3] button Search", "gold": f"TYPE [2] {city}"},
            {"page": f"[1] input From: Oslo [2] input To: {city} [3] button Search", "gold": "CLICK [3]"},
        ],
    }
    for city in ("Rome", "Lima")
]


def predict(task: str, memory: str, page: str) -> str:
    """A model would be asked here, with the memory text before the task."""
    if "From: Oslo" not in page:
        return "TYPE [1] Oslo"
    # Searches before both fields are filled in, unless it was told better.
    return f"TYPE [2] {task.split()[-1]}" if memory and "To:" not in page else "CLICK [3]"


def main() -> list[float]:
    """The share of right steps of each task. The second one is shown what the first one taught."""
    shares: list[float] = []
    with lessonbank.connect(":memory:", scope="mind2web", embedder="lexical", evidence=UNMEASURED) as bank:
        for task in TASKS:
            site = bank.scoped(f"mind2web/{task['website']}")
            with site.attempt(task["confirmed_task"]) as attempt:
                right: list[bool] = []
                for step in task["actions"]:
                    action = predict(attempt.task, attempt.text, step["page"])
                    attempt.step(action, step["page"])
                    right.append(action == step["gold"])
                attempt.finish(outcome="success" if all(right) else "failure")
            shares.append(sum(right) / len(right))
    return shares


if __name__ == "__main__":
    print([f"{share:.0%}" for share in main()])
