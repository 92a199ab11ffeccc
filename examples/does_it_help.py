"""Six lessons of which we know what each is worth, because we planted it: does the ledger find out? Offline, seconds.

python examples/does_it_help.py
"""

import random
import sys

import lessonbank
from lessonbank.contracts.records import Provenance, Retire, Trust
from lessonbank.evidence import Holdout, Lift

PLANTED = {
    "Check the status line first": (+0.25, "Open the order and read its status line before you cancel anything."),
    "Ask for the reason": (+0.15, "Ask the customer for the reason, and choose the matching one in the list."),
    "Confirm by e-mail": (0.0, "Send the confirmation e-mail from the order page when you are done."),
    "Use the short form": (0.0, "Use the short form: the long form asks for the same things."),
    "Note the ticket number": (0.0, "Write the ticket number into the comment field of the order."),
    "Begin in the archive": (-0.2, "Look for the order in the archive first, and only then among the open ones."),
}
TASK = "Cancel order {number} of the web shop"


async def no_new_lessons(attempts: object) -> lessonbank.Extraction:
    """So that six stay six."""
    return lessonbank.Extraction()


def main(tasks: int = 1500) -> Lift:
    """Each task succeeds with probability 0.4, and what the lessons that were shown add."""
    luck, policy = random.Random(7), Holdout(lessons=0.2, recalls=0.2, seed="planted")
    by = Provenance(method="human", writer="Ana")
    lessons = [lessonbank.Lesson(title=title, content=text, provenance=by) for title, (_, text) in PLANTED.items()]
    with lessonbank.connect(
        ":memory:",
        scope="shop",
        embedder="lexical",
        evidence=lessonbank.Evidence(holdout=policy),
        parts=lessonbank.Parts(extractor=no_new_lessons),
    ) as bank:
        bank.consolidate(lessonbank.Experience(scope="shop", task=TASK.format(number=0), lessons=tuple(lessons)))
        for number in range(1, tasks + 1):
            recall = bank.retrieve(TASK.format(number=number))
            chance = 0.4 + sum(PLANTED[lesson.title][0] for lesson in recall.shown)
            run = lessonbank.Trajectory(task=recall.task, answer=f"Order {number} is dealt with.")
            learned = bank.learn(run, recall=recall, reward=float(luck.random() < chance))
            for change in learned.changes:
                if isinstance(change, Retire | Trust):
                    print(f"after {number} tasks: {change.kind}, {change.reason}")
        return bank.lift()


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
