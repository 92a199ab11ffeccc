"""Reads playbooks of ACE (github.com/ace-agent/ace, commit 97fc614): bullets with counters, under headings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ._memory import Format, Memory, memory

_BULLET: Final = re.compile(r"^\s*\[[^\]\n]{1,80}\]\s*helpful=\d+\s*harmful=\d+\s*::[ \t]*(.*)$")
_HEADING: Final = re.compile(r"^\s*##+\s*(.+)$")
_WARNING: Final = re.compile(r"mistake|avoid|pitfall", re.I)


def _read(text: str) -> Sequence[Memory]:
    """Bullets as lessons. Their counters are the word of a model, and are not taken over."""
    memories, heading = list[Memory](), ""
    for line in text.splitlines():
        if bullet := _BULLET.match(line):
            memories.append(memory(bullet[1], kind="guardrail" if _WARNING.search(heading) else "strategy"))
        elif below := _HEADING.match(line):
            heading = below[1]
    return memories


FORMAT = Format("ace", "ACE playbooks (`.txt`)", of_text=_read)
