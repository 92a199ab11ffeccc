"""A scripted agent of fixed skill for small repositories: the next command, from the messages alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lessonbank.contracts.ports import Completion, Message
from lessonbank.demo.reading import Statement, opinion, read

from .world import PREFIXES

PLAYER_VERSION = "1"
"""Names the scripted agent's skill. Numbers of two versions are never compared."""
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
RULES = """You change small repositories with bash. Answer each time with exactly one command in a block such as

```mswea_bash_command
ls dev docs
```

Every command runs in a new shell in the repository. A change is accepted when one commit holds all of this:
the change itself in core.py, and nothing else there;
a change note, named after the task (AB-123.md) and put into the folder below docs/ that the organisation uses; \
`dev/check` says whether it found one;
the generated file that this kind of change needs, written after the change by one of the scripts in dev/; \
the other scripts have nothing to do;
a subject that is a prefix, a colon, a blank and the task. Prefixes are ENH, MNT and REL; each repository uses one of \
them for everything.
Once it is committed, hand in with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`, alone. There are {steps} commands."""
_BLOCK = re.compile(r"```mswea_bash_command\n(.*?)\n```", re.DOTALL)
_NOTHING = re.compile(r"\bnothing\b", re.IGNORECASE)
_ID = re.compile(r"for task (\S+)\.$")
_EDITS = (
    (re.compile(r"add a function `(\w+)` that returns (\d+)"), r"printf '\n\ndef {0}():\n    return {1}\n' >> core.py"),
    (re.compile(r"rename the function `(\w+)` to `(\w+)`"), "sed 's,{0},{1},' core.py > new && mv new core.py"),
    (re.compile(r"set the constant `(\w+)` to (\d+)"), "sed 's,^{0} .*,{0} = {1},' core.py > new && mv new core.py"),
    (re.compile(r"remove the option `(\w+)`"), "grep -v {0} core.py > new && mv new core.py"),
)


class _Choice(NamedTuple):
    """One thing that could be done next."""

    control: str
    """What memory calls it by."""
    command: str


class Player:
    """Follows what the memory says, else tries in an order drawn from `seed` and the goal.

    Its skill: it looks at what there is, makes the change it is asked for, takes an output that says "nothing" for no
    progress, tries nothing twice, commits, and hands in.
    """

    def __init__(self, seed: int, /) -> None:
        self._seed = seed

    def __call__(self, messages: Sequence[Message], /) -> Completion:
        """The next reply; a pure function of the messages and the seed."""
        return Completion(text=f"```mswea_bash_command\n{self._next(messages)}\n```")

    def _next(self, messages: Sequence[Message]) -> str:
        goal, worked, tried = messages[1].content, list[str](), list[str]()
        listed = ""
        for said, seen in zip(messages[2::2], messages[3::2], strict=False):
            command = _BLOCK.findall(said.content)[-1]
            if _NOTHING.search(seen.content):
                tried.append(command)
                continue
            listed = listed or seen.content
            worked, tried = [*worked, command], []
        choices = [choice for choice in _choices(goal, len(worked), listed) if choice.command not in tried]
        if not choices:
            return SUBMIT
        statements = _read(messages[0].content, goal)
        return max(choices, key=lambda choice: self._preference(statements, goal, choice, len(worked) + 1)).command

    def _preference(self, told: Sequence[Statement], goal: str, choice: _Choice, step: int) -> tuple[float, str]:
        said = opinion(told, choice.control, step=step, after=None)
        drawn = hashlib.sha256(f"{self._seed}|{goal}|{choice.control}|{step}".encode()).hexdigest()
        return round(said, 9), drawn


@lru_cache(maxsize=8)
def _read(system: str, goal: str) -> tuple[Statement, ...]:
    """The rules that every agent is given are no memory."""
    _, _, memory = system.partition(" commands.")
    return read(memory, goal=goal)


def _choices(goal: str, stage: int, listed: str) -> list[_Choice]:
    """What could be done at a stage: the number of commands that got somewhere."""
    found = _ID.search(goal)
    id = found[1] if found else "task"
    if stage == 0:
        return [_Choice("ls", "ls dev docs")]
    if stage == 1:
        return [_Choice("core.py", _edit(goal))]
    if stage == 2:
        return [
            _Choice(f"docs/{f}", f"t={id} && echo $t > docs/{f}/$t.md && dev/check") for f in _below("docs", listed)
        ]
    if stage == 3:
        return [_Choice(f"dev/{script}", f"dev/{script}") for script in _below("dev", listed) if script != "check"]
    if stage == 4:
        return [_Choice(prefix, f"git add -A && git commit -qm '{prefix}: {id}'") for prefix in PREFIXES]
    return []


def _edit(goal: str) -> str:
    return next((made.format(*found.groups()) for asked, made in _EDITS if (found := asked.search(goal))), "true")


def _below(folder: str, listed: str) -> list[str]:
    """What `ls` says is in a folder."""
    _, _, after = listed.partition(f"{folder}:\n")
    return [line for line in after.split("\n\n")[0].split("\n") if line and not line.startswith("<")]
