"""Tells a run for a reader who has to decide: what it did, what changed, how it ended."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from lessonbank.contracts.records import Trajectory
from lessonbank.contracts.records.tools import signatures
from lessonbank.errors import UsageError

from ._code import code
from ._excerpt import BYTES_PER_TOKEN, block_size, clip, unify, width
from ._fit import demand, fit
from ._pages import is_page, pages
from ._scenes import Choice, Scene, results, scenes_of

View: TypeAlias = Literal["full", "recorded", "thoughts", "messages"]
"""`full`: what decides. `recorded`: all as it was recorded. `messages`: so, without the instructions (the paper's code
runs). `thoughts`: what the agent thought and did, no instructions and no observations (the paper's web runs)."""
INSTRUCTIONS = 2_500
"""Tokens of an agent's instructions that are shown."""
_TINY = 400
"""Bytes below which there is room for the task only."""
_BREAK = 2
_INSTRUCTIONS = "[instructions the agent was given]"
_TEMPLATE = 400  # characters around the task from which the first turn is a template that tells how to work
_FRAMED = "(the task, in a frame that is told with the instructions)"
_SIGNATURE = re.compile(r"^[A-Za-z_]\w*\(.*\)$")
_SPANS = r"steps? ([\d–]+(?:, [\d–]+)*)"
_UNTOLD = re.compile(rf"^\[(?:not told whole: {_SPANS}|{_SPANS} left out)\]$", re.MULTILINE)
_BRIEF = re.compile(r"^\[step (\d+), in brief(?:, [\d,]+ characters cut)?\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Part:
    """A text beside the steps. `label` is ours and safe to stand alone on a line; `text` is the run's."""

    label: str
    text: str
    weight: int
    """Its part of the room, where not all of it fits."""

    @property
    def size(self) -> int:
        """Bytes it takes whole, with the line breaks after it."""
        return width(self.label) + 1 + (block_size(self.text) + 1 if self.text else 0) + _BREAK

    def fit(self, limit: int, /) -> str:
        """Return the run in at most `limit` bytes, or nothing where not even its label fits."""
        body = clip(self.text, limit - width(self.label) - 2)
        if body:
            return f"{self.label}\n{body}"
        return self.label if not self.text and width(self.label) < limit else ""


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
    state. Steps are numbered from 1 as in the trajectory (`[step 7]`); `incomplete_steps` gives those that are not told
    whole.

    `instructions=False` leaves the agent's instructions to `render_instructions`. `steps` (numbers from 1) is for a
    second look: it shows these steps only, each as whole as the budget allows.

    Raises:
        UsageError: `budget` is not positive.
    """
    room = _room(budget)
    if steps:
        return "\n\n".join(fit(_scenes(trajectory, view, frozenset(steps)), room, gaps=False))
    task = _Part("[task]", unify(trajectory.task), 60)
    if room < _TINY:
        return task.fit(room) or clip(task.text, room)
    agent_text = {"full": _agent_text(trajectory), "recorded": unify(trajectory.instructions)}.get(view)
    first = [task, _Part(_INSTRUCTIONS, agent_text, 40)] if agent_text and instructions else [task]
    last = [_Part(label, text, 30) for label, text in _ending(trajectory, view)]
    scenes = _scenes(trajectory, view)
    framed = [*first, *last]
    sizes = _share(framed, max(room // 2, room - demand(scenes)))
    texts = [part.fit(size - _BREAK) for part, size in zip(framed, sizes, strict=True)]
    used = sum(width(text) + _BREAK for text in texts)
    blocks = [*texts[: len(first)], *fit(scenes, room - used), *texts[len(first) :]]
    return "\n\n".join(filter(None, blocks))


def render_steps(trajectory: Trajectory, /, *, budget: int, view: View = "messages") -> str:
    """The numbered steps alone, for prompts that have a place of their own for the task and the answer.

    Raises:
        UsageError: `budget` is not positive.
    """
    return "\n\n".join(fit(_scenes(trajectory, view), _room(budget)))


def render_instructions(trajectory: Trajectory, /, *, budget: int = INSTRUCTIONS) -> str:
    """What the agent was told before any task and its tools, in at most `budget` tokens, or "" where nothing is known.

    The text does not depend on what happened in the run, so it is the same in every run of an agent. Put it before the
    run, and a provider's prompt cache holds it.
    """
    parts = [
        _Part(_INSTRUCTIONS, _agent_text(trajectory), 2),
        _Part("[tools the agent could call]", "\n".join(signatures(trajectory.tools)), 1),
    ]
    parts = [part for part in parts if part.text]
    sizes = _share(parts, _room(budget))
    return "\n\n".join(filter(None, (part.fit(size - _BREAK) for part, size in zip(parts, sizes, strict=True))))


def incomplete_steps(rendered: str, /) -> tuple[int, ...]:
    """The numbers of the steps that a rendered run leaves out, tells in brief or cuts.

    So are pages that are told by what changed. A second look shows these more fully.
    """
    numbers = {int(number) for number in _BRIEF.findall(rendered)}
    for cut, gap in _UNTOLD.findall(rendered):
        for first, _, last in (span.partition("–") for span in (cut or gap).split(", ")):
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def _room(budget: int, /) -> int:
    """The bytes of a budget in tokens."""
    if budget < 1:
        raise UsageError(f"A rendering budget is a positive number of tokens, not {budget}.")
    return budget * BYTES_PER_TOKEN


def _share(parts: Sequence[_Part], room: int, /) -> list[int]:
    """Bytes for each part: small ones get all they want, the large ones share the rest by weight."""
    sizes, weight = [0] * len(parts), sum(part.weight for part in parts)
    for place, part in sorted(enumerate(parts), key=lambda pair: pair[1].size / pair[1].weight):
        sizes[place] = min(part.size, room * part.weight // weight)
        room, weight = room - sizes[place], weight - part.weight
    return sizes


def _scenes(run: Trajectory, view: View, wanted: Collection[int] = ()) -> Sequence[Scene]:
    """The steps, the `wanted` or all, as the choices of a view leave them."""
    scenes: Sequence[Scene] = scenes_of(run, wanted)
    if wanted:
        scenes = [scene for scene in scenes if scene.number in wanted]
    for choice in CHOICES[view]:
        scenes = choice(scenes, run)
    return scenes


def _without_observations(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """The steps without what came back."""
    return [replace(scene, blocks=tuple(block for block in scene.blocks if block.kind != "seen")) for scene in scenes]


def _without_template(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """The steps, without the template in the first: it is told with the instructions."""
    if not (scenes and scenes[0].number == 1 and any(_template(run))):
        return scenes
    return [scenes[0].seen(lambda block: replace(block, label=f"{block.label} {_FRAMED}", lines=())), *scenes[1:]]


CHOICES: Final[Mapping[View, tuple[Choice, ...]]] = {
    "full": (_without_template, pages, results, code),
    "recorded": (),
    "messages": (),
    "thoughts": (_without_observations,),
}
"""What is told of a run in each view, choice after choice; each sees what the one before left."""


def _agent_text(run: Trajectory, /) -> str:
    """The instructions, and the template that the task stood in, without examples of calls whose form is plain."""
    template = "\n(the task)\n".join(filter(None, _template(run)))
    return "\n\n".join(filter(None, ("\n".join(_signatures(unify(run.instructions))), template)))


def _template(run: Trajectory, /) -> tuple[str, str]:
    """What stood before and after the task in the first turn of the run, where that is more than a greeting."""
    first = run.steps[0].observations if run.steps and not run.steps[0].action.text else ()
    if len(first) != 1 or first[0].source != "user" or run.steps[0].action.calls:
        return "", ""
    text = unify(first[0].text)
    before, middle, after = text.partition(unify(run.task))
    if not middle or len(before) + len(after) < _TEMPLATE or is_page(text):
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


def _ending(run: Trajectory, view: View) -> Iterator[tuple[str, str]]:
    """The answer and what stopped the run; in the full view also that nothing came of the last step."""
    answer, error, steps = unify(run.answer or ""), unify(run.error or ""), run.steps
    if answer and steps and answer == unify(steps[-1].action.text):
        yield f"[no answer apart from the steps: the last thing the agent wrote is in step {len(steps)}]", ""
    elif answer:
        yield "[final answer]", answer
    if error:
        yield "[what stopped the run]", error
    if error or not steps or view != "full":
        return
    action, observations = steps[-1].action, steps[-1].observations
    if (action.calls or action.text) and not observations:
        yield f"[the record ends with step {len(steps)}: what it led to was not recorded]", ""
    elif action.calls and not answer:
        yield f"[the record ends with step {len(steps)}: no last word of the agent, no error was recorded]", ""
