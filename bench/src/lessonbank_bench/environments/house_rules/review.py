"""What the reviewer says to a change that is handed in, and what it comes to in the end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from lessonbank_bench.environments.repo_desk.repository import defined, git

from .conventions import PREFIXES, Change
from .repository import change, handed_in
from .world import Task

HAND_INS = 2
NAMED = 2
"""Things that are wrong and are named, each time."""
MOST_RUNS = 6
"""Of scripts, on the final `core.py`: three are wanted at most, and the change may be handed in twice."""
_SOMETHING = "Something else is not as it is done here."
_REMARKS = (
    "Remark: the machines that run our tests were slow today.",
    "Remark: I would have taken a shorter name, but names are yours to choose.",
    "Remark: somebody else asked for nearly the same last month.",
    "Remark: the office is closed on Friday.",
    "Remark: I read changes from the oldest commit to the last.",
    "Remark: please say hello to the others.",
)
"""Of no use for this task or for any other."""


@dataclass(slots=True)
class Review:
    """The reviewer of one task."""

    task: Task
    folder: Path
    accepted: bool = False
    shares: list[float] = field(default_factory=list[float])
    """Of the task's conventions that were kept, each time it was handed in."""

    @property
    def closed(self) -> bool:
        """Whether nothing more can be handed in."""
        return self.accepted or len(self.shares) >= HAND_INS

    def after_command(self) -> str:
        """What the reviewer says, where the command handed in; else nothing."""
        if not handed_in(self.folder) or self.closed:
            return ""
        handed = change(self.folder)
        broken = [one for one in self.task.conventions if not one.kept(handed, self.task.ask)]
        basic = wrong(self.task, self.folder, handed)
        self.shares.append(0.0 if basic else 1 - len(broken) / len(self.task.conventions))
        self.accepted = not (basic or broken)
        return self._answer(basic or [_SOMETHING if one.silent else one.sentence for one in broken])

    def _answer(self, reasons: list[str]) -> str:
        if self.accepted:
            return "The reviewer: ACCEPTED. The task is closed."
        turn = len(self.shares)
        last = " The task is closed." if self.closed else " One more time it may be handed in."
        remark = random.Random(f"{self.task.goal} {turn}").choice(_REMARKS)
        named = [f"- {reason}" for reason in reasons[:NAMED]]
        head = f"The reviewer: REJECTED. I stop at the first {NAMED} things, there may be more.{last}"
        return "\n".join((head, *named, remark))


def wrong(task: Task, folder: Path, handed: Change, /) -> list[str]:
    """What everybody was told, and is not so."""
    reasons: list[str] = []
    if defined(git(folder, "cat-file", "blob", "HEAD:core.py")) != task.wanted:
        reasons.append("core.py in the last commit does not define what was asked for, no more and no less.")
    if not any(path.startswith("docs/") and path.endswith(f"/{task.id}.md") for path in handed.texts):
        reasons.append(f"There is no change note {task.id}.md in a folder below docs/.")
    if crowded(task, handed):
        reasons.append("The change holds more than it needs: notes, lists, tags or runs of scripts.")
    if handed.branch == "main" or not handed.commits:
        reasons.append("The change is not committed on a branch of its own.")
    elif not any(handed.commits[-1].subject.startswith(f"{prefix}: {task.id}") for prefix in PREFIXES):
        reasons.append("The last commit's subject does not begin with a prefix, a colon, a blank and the task.")
    return reasons


def crowded(task: Task, handed: Change, /) -> bool:
    """Whether things were tried at once instead of known."""
    notes = [path for path in handed.texts if path.endswith(f"/{task.id}.md")]
    lists = [path for path, text in handed.texts.items() if path.startswith("index/") and task.name in text.split()]
    return len(notes) > 1 or len(lists) > 1 or len(handed.tags) > 1 or len(handed.scripts) > MOST_RUNS
