"""Tells a run for a reader who has to decide: what it did, what changed, how it ended."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from lessonbank.contracts.records import Trajectory
from lessonbank.contracts.records.tools import signatures

from ._acts import acts
from ._code import code
from ._ends import ending
from ._excerpt import unify, width
from ._fit import fit, wanted
from ._instructions import told_first, without_template
from ._pages import pages
from ._parts import Part
from ._recorded import TINY, View, only_task, render_recorded, room_of
from ._repeats import old_lines, repeats, without_task
from ._results import results
from ._scenes import Choice, Scene, scenes_of
from ._share import Claim, share
from ._short import listed
from ._used import used_later

CHOICES: tuple[Choice, ...] = (without_task, repeats, pages, results, code, old_lines, used_later)
"""What is told of a run, choice after choice; each sees what the one before left."""
INSTRUCTIONS = 2_500
"""Tokens of an agent's instructions that are shown."""
_SPANS = r"steps? ([\d–]+(?:, [\d–]+)*)"
_UNTOLD = re.compile(rf"^\[(?:not told whole: {_SPANS}|{_SPANS} left out)\]$", re.MULTILINE)
_BRIEF = re.compile(r"^\[step (\d+), in brief(?:, [\d,]+ characters cut)?\]$", re.MULTILINE)
_HEADING = re.compile(r"\[step (\d+)\]")
_COMPARED = re.compile(r"\w[^\n]* \((?:the same page|another page|the page (?:as|is nearly empty)\b).*\):?")
_BREAK = 2


def render(
    trajectory: Trajectory,
    /,
    *,
    budget: int,
    view: View = "full",
    instructions: bool = True,
    steps: Collection[int] = (),
) -> str:
    """`trajectory` in at most `budget` tokens (as `estimate_tokens` counts), in time linear in its size.

    Kept, as far as the budget goes: the task; one line for every action, with the element it touched; what users said;
    how the run ended. Then the final change of code and the tests after it, what changed on pages and what carries
    state, and what later steps rest on. Text that stood before is named, not repeated. Steps are numbered from 1 as in
    the trajectory (`[step 7]`); `incomplete_steps` gives those that are not told whole.

    `instructions=False` leaves the agent's instructions to `render_instructions`. `steps` (numbers from 1) is for a
    second look: it shows these steps only, each as whole as the budget allows.

    Raises:
        UsageError: `budget` is not positive.
    """
    room = room_of(budget)
    if view != "full":
        return render_recorded(trajectory, room=room, view=view)
    if steps:
        return "\n\n".join(fit(_chosen_steps(trajectory, frozenset(steps)), room, gaps=False))
    if room < TINY:
        return only_task(trajectory, room)
    return _whole(trajectory, room, instructions=instructions)


def render_instructions(trajectory: Trajectory, /, *, budget: int = INSTRUCTIONS) -> str:
    """What the agent was told before any task and its tools, in at most `budget` tokens, or "" where nothing is known.

    The text does not depend on what happened in the run, so it is the same in every run of an agent. Put it before the
    run, and a provider's prompt cache holds it.
    """
    parts = [
        Part("[instructions the agent was given]", told_first(trajectory), 2),
        Part("[tools the agent could call]", "\n".join(signatures(trajectory.tools)), 1),
    ]
    parts = [part for part in parts if part.text]
    sizes = share([Claim(part.size + _BREAK, part.weight, 0) for part in parts], room_of(budget))
    return "\n\n".join(filter(None, (part.fit(size - _BREAK) for part, size in zip(parts, sizes, strict=True))))


def incomplete_steps(rendered: str, /) -> tuple[int, ...]:
    """The numbers of the steps that a rendered run leaves out, tells in brief or in a line, or cuts.

    So are pages that are told by what changed. A second look shows these more fully.
    """
    numbers = {int(number) for number in _BRIEF.findall(rendered)} | set(listed(rendered))
    for cut, gone in _UNTOLD.findall(rendered):
        for first, _, last in (span.partition("–") for span in (cut or gone).split(", ")):
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers | set(_compared(rendered))))


def _compared(rendered: str, /) -> Iterator[int]:
    """The steps whose page is told by what changed."""
    number = 0
    for line in rendered.split("\n"):
        if heading := _HEADING.fullmatch(line):
            number = int(heading[1])
        elif _COMPARED.fullmatch(line):
            yield number


def _whole(run: Trajectory, room: int, /, *, instructions: bool) -> str:
    first = [Part("[task]", unify(run.task), 60)]
    if instructions and (told := told_first(run)):
        first.append(Part("[instructions the agent was given]", told, 40))
    last = list(ending(run))
    scenes = _told(without_template(list(acts(scenes_of(run), run)), run), run)
    framed = [*first, *last]
    want = sum(part.size + _BREAK for part in framed)
    floors = [min(part.size, room // 4 if part.weight > 30 else room // 8) for part in framed]
    left = max(sum(floors), room - wanted(scenes)) if want > room - wanted(scenes) else want
    claims = [Claim(part.size, part.weight, floor) for part, floor in zip(framed, floors, strict=True)]
    sizes = share(claims, left - _BREAK * len(framed))
    texts = [part.fit(size) for part, size in zip(framed, sizes, strict=True)]
    used = sum(width(text) + _BREAK for text in texts)
    blocks = [*texts[: len(first)], *fit(scenes, room - used), *texts[len(first) :]]
    return "\n\n".join(filter(None, blocks))


def _told(scenes: list[Scene], run: Trajectory, /) -> list[Scene]:
    for choice in CHOICES:
        scenes = list(choice(scenes, run))
    return scenes


def _chosen_steps(run: Trajectory, numbers: frozenset[int], /) -> list[Scene]:
    scenes = [scene for scene in acts(scenes_of(run, numbers), run) if scene.number in numbers]
    return _told(scenes, run)
