"""What all runs of an agent have in common, as text that can stand before the run: a provider's cache then holds it."""

from __future__ import annotations

from lessonbank.contracts.records import Trajectory
from lessonbank.contracts.records.ids import digest
from lessonbank.guard import clean, fence
from lessonbank.text.rendering import INSTRUCTIONS, render_instructions

_UNTOLD = "(The agent's instructions are not recorded.)"


def agent_prefix(run: Trajectory, /, *, budget: int, code: str | None = None) -> str:
    """The agent's instructions in a fence, the same text for every run of the agent; at most two fifths of `budget`.

    The fence's code is drawn from the text itself. Its writer cannot know it in advance, and it changes only when the
    instructions do. A copy of `code`, the one of the run's own fence, is blotted out.
    """
    # Cleaned first: a hidden character in a copy of the code would be gone only after the search for it.
    instructions = clean(render_instructions(run, budget=max(min(INSTRUCTIONS, budget * 2 // 5), 1)))
    instructions = instructions.replace(code, "-" * len(code)) if code else instructions
    return fence(instructions, label="agent", nonce=digest(instructions)[:8]) if instructions else _UNTOLD
