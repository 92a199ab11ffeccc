"""Finds the lines that say how a test run or a script went, so that its step keeps them where it is told in brief."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ._scenes import Block, Line, Rank

_MOST = 100
"""Characters that are kept of such a line."""
_SHORT = 3
"""Lines of an output that is kept whole."""
_COUNTED = re.compile(
    r"\b\d+ (?:passed|failed|errors?|passing|failing)\b|^Ran \d+ tests?\b|^(?:OK|FAILED)(?: \(|\s*$)|\bno tests ran\b"
    r"|^test result: |^(?:Tests|Test Suites): |^(?:ok|FAIL)\t"
)
_VERDICT = re.compile(r"^(?:OK|FAILED)(?: \(|\s*$)")
_RAN = re.compile(r"^Ran \d+ tests?\b")
_FAILED = re.compile(r"^(?:FAIL|ERROR): \S|^(?:FAILED|ERROR) \S+::|^\s*--- FAIL: |^not ok \d")
_RAISED = re.compile(r"^(?:E +)?[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Configured|NotReady|Exist)\b")
_JUDGED = re.compile(r"^\W{0,6}(?:(?:SUCCESS|PASS|GOOD|OK|FAIL|ERROR|WRONG|BAD)[A-Z]{0,3}\b|[✓✗✅❌✔✘])")
"""What an agent's own script calls a result."""
_WRONG = re.compile(r"^\W{0,6}(?:FAIL|ERROR|WRONG|BAD|[✗❌✘])")
_SAID = re.compile(r"\w")


def with_result(block: Block, /) -> Block:
    """It, with the lines ranked first that say how the command went.

    These are the counts of a test run and the names of what failed; else the last error; else what the script itself
    calls right or wrong; else the last line, or all of a short output.
    """
    places = frozenset(_telling(block.lines))
    lines = (part for at, line in enumerate(block.lines) for part in (_start(line) if at in places else (line,)))
    return replace(block, lines=tuple(lines))


def _start(line: Line) -> Iterator[Line]:
    yield line._replace(text=line.text[:_MOST], rank=Rank.RESULT)
    if rest := line.text[_MOST:]:
        yield Line(rest, Rank.CONTEXT, joined=True)


def _telling(lines: Sequence[Line], /) -> Iterator[int]:
    """The places of these lines."""
    places = [at for at, line in enumerate(lines) if not line.joined and not line.hidden]
    counted = [at for at in places if _COUNTED.search(lines[at].text)]
    if counted:
        yield counted[-1]
        if _VERDICT.match(lines[counted[-1]].text):
            yield from [at for at in counted if _RAN.match(lines[at].text)][-1:]
        yield from [at for at in places if _FAILED.match(lines[at].text)][:2]
        return
    raised = [at for at in places if _RAISED.match(lines[at].text)]
    judged = [at for at in places if _JUDGED.match(lines[at].text)]
    wrong = [at for at in judged if _WRONG.match(lines[at].text)]
    said = [at for at in places if _SAID.search(lines[at].text)]
    whole = said if len(said) <= _SHORT else []
    yield from raised[-1:] or whole or sorted({*wrong[-1:], *judged[-1:]}) or said[-1:]
