"""Does memory help, and which lesson? The same tasks with and without it, where the world can be reset.

python examples/trial.py
"""

import random

import lessonbank
from lessonbank import Trajectory
from lessonbank.trials import Trial

LESSONS = {"Weigh the parcel": "Run `weigh` before `label`.", "Pick the label early": "Run `label` before all else."}


def agent(task: str, memory: str, *, seed: int) -> Trajectory:
    """A toy: its luck follows from the seed, so both runs of a pair have the same. It keeps what it was shown."""
    chance = 0.5 + 0.4 * ("Run `weigh`" in memory) - 0.2 * ("before all else" in memory)
    shipped = random.Random(f"{seed} {task}").random() < chance
    return Trajectory(task=task, instructions=f"You ship parcels.\n\n{memory}", answer="yes" if shipped else "no")


def is_shipped(run: Trajectory) -> bool:
    """The world's own check: no judge is asked."""
    return run.answer == "yes"


def main() -> dict[str, Trial]:
    """Ask about memory as a whole first, then about each lesson."""
    tasks = [f"Ship parcel {number}" for number in range(1, 101)]
    both = lessonbank.Retrieval(limit=2)
    with lessonbank.connect(":memory:", scope="docs/trial", embedder="lexical", retrieval=both) as bank:
        for title, content in LESSONS.items():
            bank.lessons.add(title=title, content=content, task="Ship a parcel", by="Ana")
        found = {"memory": bank.trial(tasks, agent, verify=is_shipped)}
        for lesson in bank.lessons.list():
            found[lesson.title] = bank.trial(tasks, agent, verify=is_shipped, without=lesson.id)
    for trial in found.values():
        print(trial, end="\n\n")
    return found


if __name__ == "__main__":
    main()
