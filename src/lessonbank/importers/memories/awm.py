"""Reads workflow files of Agent Workflow Memory (github.com/zorazrw/agent-workflow-memory): WebArena and Mind2Web."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ._memory import Format, Memory, memory

_HEADING: Final = re.compile(r"^(?:#+[ \t]*)?(?:(?:Workflow[ \t]+\d+|Query(?:[ \t]+#?\d+)?)[ \t]*:|##)[ \t]*(\S.*)$")
_ACTION: Final = re.compile(r"^<action>[ \t]*$|[ \t]->[ \t](?:CLICK|TYPE|SELECT|HOVER|ENTER)\b", re.M)
_FOOTER: Final = "\nclick('id') # input string id value for all actions"
"""What its induction writes below the workflows: how to write an action."""

_TAG: Final = re.compile(r"^</?(?:think|action)>[ \t]*\n?", re.M)
"""They mark a turn of the agent. A lesson is none."""


def _read(text: str) -> Sequence[Memory]:
    return [
        memory(_TAG.sub("", steps), title=name.replace("_", " "), task=name.replace("_", " "))
        for name, steps in _workflows(text.partition(_FOOTER)[0])
        if _ACTION.search(steps)
    ]


def _workflows(text: str) -> Iterator[tuple[str, str]]:
    """Each heading with what stands below it."""
    name, steps = "", list[str]()
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            yield name, "\n".join(steps)
            name, steps = heading[1].strip(), []
        else:
            steps.append(line)
    yield name, "\n".join(steps)


FORMAT = Format("awm", "Agent Workflow Memory's workflow files (`.txt`)", of_text=_read)
