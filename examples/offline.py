"""No model, no key, no network: ground truth decides, and lessons are drawn from the runs' own words.

python examples/offline.py
"""

import lessonbank
from lessonbank import Evidence, Step, Trajectory

FAILED = Trajectory(
    task="Publish release 1.4 of the parser",
    steps=(
        Step(action="make release", observation="error: CHANGELOG.md has no entry for this version"),
        Step(action="make release --force", observation="error: CHANGELOG.md has no entry for this version"),
    ),
)
WORKED = Trajectory(
    task="Publish release 1.5 of the parser",
    steps=(
        Step(action="make release", observation="error: CHANGELOG.md has no entry for this version"),
        Step(action="make changelog", observation="CHANGELOG.md updated"),
        Step(action="make release", observation="released"),
    ),
    answer="Published.",
)


def main() -> None:
    """Learn from one failed and one successful run, then ask what a third should know."""
    with lessonbank.connect(
        ":memory:", scope="docs/offline", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        bank.learn(FAILED, outcome="failure")
        bank.learn(WORKED, outcome="success")
        recall = bank.retrieve("Publish release 2.0 of the parser", limit=2)
        print(recall.text)
        for lesson in bank.lessons.list(limit=10_000)[::-1]:
            print(f"{lesson.kind:9} by {lesson.provenance.method}: {lesson.title}")


if __name__ == "__main__":
    main()
