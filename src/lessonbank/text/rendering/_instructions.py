"""What an agent was told before any task, the same text for every run of it, so that prompt caches hold it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from lessonbank.contracts.records import Trajectory

from ._excerpt import unify
from ._pages import is_page
from ._scenes import Scene

_SIGNATURE = re.compile(r"^[A-Za-z_]\w*\(.*\)$")
_FRAMED = "(the task, in a frame that is told with the instructions)"
_TEMPLATE = 400  # characters around the task from which the first turn is a template that tells how to work


def told_first(run: Trajectory, /) -> str:
    """The instructions, and the template that the task stood in, without examples of calls whose form is plain."""
    template = "\n(the task)\n".join(filter(None, template_of(run)))
    return "\n\n".join(filter(None, ("\n".join(_signatures(unify(run.instructions))), template)))


def template_of(run: Trajectory, /) -> tuple[str, str]:
    """What stood before and after the task in the first turn of the run, where that is more than a greeting."""
    first = run.steps[0].observations if run.steps and not run.steps[0].action.text else ()
    if len(first) != 1 or first[0].source != "user" or run.steps[0].action.calls:
        return "", ""
    text = unify(first[0].text)
    before, found, after = text.partition(unify(run.task))
    if not found or len(before) + len(after) < _TEMPLATE or is_page(text):
        return "", ""
    return before.strip("\n"), after.strip("\n")


def _signatures(text: str, /) -> Iterator[str]:
    """The lines, without the indented examples under a signature such as `click(bid: str)`."""
    under = False
    for line in text.split("\n"):
        if _SIGNATURE.match(line):
            under = True
        elif line.strip() and not line[:1].isspace():
            under = False
        elif under:
            continue
        yield line


def without_template(scenes: list[Scene], run: Trajectory, /) -> list[Scene]:
    """The steps, without the template in the first: it is told with the instructions."""
    if not any(template_of(run)):
        return scenes
    return [scenes[0].seen(lambda one: replace(one, label=f"{one.label} {_FRAMED}", lines=())), *scenes[1:]]
