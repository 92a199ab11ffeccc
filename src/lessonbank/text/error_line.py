"""Finds the line of an output that says what was wrong: the key by which the cure of a command is found again."""

from __future__ import annotations

import re
from typing import Final

SAYS_ERROR: Final = re.compile(
    r"\b(?:\w*error|fatal|exception|failed|failure|not found|no such|cannot|can't|could not|unable|missing|denied|"
    r"refused|undefined|unknown|invalid|has no)\b",
    re.IGNORECASE,
)
_NOISE: Final = re.compile(
    r"^(?:Exit code \d+|Error: Exit code.*|Exit Code: .*|Error: \(none\)|Signal: .*|Background PIDs: .*|"
    r"Process Group PGID: .*|make(?:\[\d+\])?: \*\*\*.*|make(?:\[\d+\])?: (?:Entering|Leaving).*|Traceback .*|"
    r"npm (?:ERR!|error)(?: (?:code|errno|A complete log|To see a list|Did you mean).*|\s+npm run)?|"
    r"\+ CategoryInfo .*|\+ FullyQualifiedErrorId .*|ELIFECYCLE .*)$"
)
_SUMS_UP: Final = re.compile(
    r"error: failed to push some refs.*|error: (?:could not compile|aborting due to) .*|"
    r"For more information about this error.*|\d+ examples?, .* outside of examples|\d+ - \S+ \(Failed\)|"
    r"The following tests FAILED:|Errors while running CTest|\d+% tests passed.*"
)
"""What is said at the end whatever was wrong."""
ABSENT: Final = re.compile(
    r"command not found|: not found$|is not recognized as|CommandNotFound|Failed to spawn|Python was not found|"
    r"could not determine executable|scripts is disabled",
    re.MULTILINE,
)
"""How shells say that a program is not there."""
NO_SCRIPT: Final = re.compile(r"[Mm]issing script|NO_SCRIPT|cript not found|No rule to make t|Unknown command-line o")
"""How runners say that a repository names no such script."""
JOINS: Final = "is not a valid statement separator"
"""How an old PowerShell says that it does not know `&&`."""
UNREAD: Final = re.compile(rf"no matches found: |ParserError|{JOINS}|unexpected EOF while looking|syntax error near")
"""How shells say that they could not read a line: nothing of it was run then."""
WALLED: Final = re.compile(r"not perm|ermission denied|E(?:PERM|ACCES|NOTFOUND|AI_AGAIN)|resolve ho|Read-only f|Denied")
"""How programs say that a sandbox does not let them write, or reach a network."""
MODULE: Final = re.compile(
    r"(?:No module named|Cannot find (?:module|package)|required module provides package|Can't resolve|resolve import)"
    r" ['\"]?(@?[\w./-]+)|requires? \"([\w.-]+)\"|(?:Library not loaded: \S*/|cannot load library ')(\w+)"
)
"""What was not there, of a language's own modules."""
PLACELESS: Final = re.compile(
    r"no such file|not found|cannot find|ENOENT|missing script|not a git repo|does not exist|could not read|"
    r"did not match any",
    re.IGNORECASE,
)
"""What a command says that was run in the wrong folder."""
BRANCH: Final = re.compile(r"(?<=current branch )[^\s']+|(?<=src refspec )[^\s']+|(?<=branch ')[^'\n]+(?=')")
"""The branch that an error of git names: another one in each task, and the cure is the same."""
ITS_BRANCH: Final = "<branch>"
_VALUES: Final = (
    (BRANCH, ITS_BRANCH),
    (re.compile(r"(?<=no matches found: )\S+"), "<pattern>"),
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), ""),
    (re.compile(r"(?:/[\w.+-]+){2,}/?|(?<!\S)[\w.-]+(?:/[\w.+-]+)+(?=: [Nn]o such file)"), "/…"),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "#"),
    (re.compile(r"\d+"), "#"),
    (re.compile(r"\([^()]*[#_][^()]*\)"), "(…)"),
)


def error_in(printed: str, /) -> str:
    """The line of an output that says what was wrong, without numbers, places and noise around it."""
    lines = [line.removeprefix("Output: ").strip() for line in printed[-8_000:].splitlines()]
    lines = [line for line in lines if line and not _NOISE.match(line)][::-1]
    lines = [line for line in lines if not _SUMS_UP.fullmatch(line)] or lines
    several = next((line for line in lines if " " in line), lines[0] if lines else "")  # a word alone says little
    sentence = next((line for line in lines if SAYS_ERROR.search(line)), several)
    for pattern, place in _VALUES:
        sentence = pattern.sub(place, sentence)
    return " ".join(sentence.split())[:120]
