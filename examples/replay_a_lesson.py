"""Does this lesson help? The same tasks again, with and without it, where the world can be reset.

python examples/replay_a_lesson.py
"""

import json
import random

import lessonbank
from lessonbank import Evidence, Step, Trajectory

LESSONS = {
    "items": [
        {"title": "Weigh the parcel", "content": "Run `weigh` before `label`.", "evidence": ["step 1"]},
        {"title": "Pick the label early", "content": "Run `label` before the address is read.", "evidence": ["step 2"]},
    ]
}
FIRST = Trajectory(
    task="Ship parcel 0",
    steps=(Step(action="weigh", observation="1.2 kg"), Step(action="label", observation="printed")),
)


def write_lessons(prompt: str) -> str:
    """A model that draws both lessons, the good one and the bad one."""
    return json.dumps(LESSONS)


def agent(task: str, memory: str, *, seed: int) -> Trajectory:
    """A toy: its luck follows from the seed, so both runs of a pair have the same. It keeps what it was shown."""
    chance = 0.5 + 0.3 * ("Run `weigh`" in memory) - 0.2 * ("before the address" in memory)
    shipped = random.Random(f"{seed} {task}").random() < chance
    return Trajectory(task=task, instructions=f"You ship parcels.\n\n{memory}", answer="yes" if shipped else "no")


def shipped(run: Trajectory) -> bool:
    """The world's own check: no judge is asked."""
    return run.answer == "yes"


def main() -> dict[str, str]:
    """Learn two lessons from one run, then find out what each of them changes in sixty other tasks."""
    found = dict[str, str]()
    with lessonbank.connect(
        ":memory:", scope="docs/replay", model=write_lessons, embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        bank.learn(FIRST, outcome="success")
        recalls = [bank.retrieve(f"Ship parcel {number}") for number in range(1, 61)]
        for lesson in bank.lessons.list(limit=10_000)[::-1]:
            result = bank.trial(recalls, agent, verify=shipped, without=lesson.id)
            print(result, end="\n\n")
            found[lesson.title] = result.standing
        print(bank.trial(recalls, agent, verify=shipped, placebo=True))
    return found


if __name__ == "__main__":
    main()
