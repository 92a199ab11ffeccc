"""Finds what a person says in a session as a rule of the repository, such as "use pnpm, not npm".

Each sentence is weighed by the signs in `corrections.toml`; one must say that it goes on or holds for all. A rule is
shown in every session after it, and a wrong one is worse than none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from lessonbank.contracts.records import Trajectory

_MOST: Final = 2
_LONGEST: Final = 200
_LONGEST_TURN: Final = 300
"""Characters of what a person says at once: a longer text is mostly pasted, or a task."""
_SLOT: Final = re.compile(r"<(\w+)>")
_ADDED: Final = re.compile(
    r"\A# Context from my IDE setup:.*\n## My request for Codex:\n|-{3} Content from referenced files -{3}.*", re.DOTALL
)
"""What Codex writes before the words of a person who works in an editor, and Gemini CLI behind `@file`."""
_QUOTED: Final = re.compile(
    r"<([\w:-]+)[^<>]*>.*?</\1>|```.*?(?:```|\Z)|\"[^\"]*(?:\"|\Z)|“[^”]*(?:”|\Z)|„[^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)"
    r"|(?<!\w)'[^'\n]*'|(?<!\w)\([^()\n]*\)|(?<!\S)#{2,6} .*",
    re.DOTALL,
)
_PASTED: Final = re.compile(r"^(?:[>|$%#+@{\[<]|\t|  |[A-Z]{3,}\b:|(?:\S+: )?(?i:warning|error|hint):).*", re.MULTILINE)
_SENTENCE: Final = re.compile(r"[^\n]+?(?:(?<!e\.g)(?<!i\.e)[.!?](?=\s|$)|(?=\n|$|\s[—–]\s))")
_CLAUSE: Final = re.compile(r"[,;](?= (?!so (?!please)))| \(")
_Sign = tuple[bool, int, re.Pattern[str]]
_NEVER: Final = -9
"""A sign of this weight speaks against a rule in whatever part of the sentence."""


def corrections_in(runs: Sequence[Trajectory], /) -> list[str]:
    """The rules that the person said in one session after the agent had begun to act, at most two, the first ones."""
    rules = (rule for text in _words(runs) for rule in rules_in(text))
    return list(dict.fromkeys(rules))[:_MOST]


def _words(runs: Sequence[Trajectory]) -> Iterator[str]:
    has_acted = False
    for step in (step for run in runs for step in run.steps):
        has_acted = has_acted or bool(step.action.calls)
        if has_acted:
            yield from (seen.text for seen in step.observations if seen.source == "user")


def rules_in(text: str, /) -> Iterator[str]:
    """The sentences of what a person said that are rules of the repository."""
    text = _ADDED.sub("", text)
    if len(text) > _LONGEST_TURN or text.lstrip().startswith(("/", "<")):
        return
    bare, (enough, lead, signs) = text.replace("’", "'"), _signs()
    for pasted in (_QUOTED, _PASTED):
        bare = pasted.sub(lambda match: "\x00" * len(match[0]), bare)
    for match in _SENTENCE.finditer(bare):
        spoken = lead.sub("", match[0])
        sentence = text[match.end() - len(spoken) : match.end()].strip()
        if len(sentence) <= _LONGEST and _weight(spoken, signs) >= enough:
            yield sentence


def _weight(spoken: str, signs: Sequence[_Sign]) -> int:
    """What the signs come to: in the whole sentence, or up to its first comma, where a reason or a wish begins."""
    parts = spoken, _CLAUSE.split(spoken, 1)[0]
    there = [[sign for sign in signs if sign[2].search(spoken if sign[1] <= _NEVER else part)] for part in parts]
    return max(sum(w for _, w, _ in some) * any(is_general for is_general, *_ in some) for some in there)


@cache
def _signs() -> tuple[int, re.Pattern[str], list[_Sign]]:
    """How much is enough for a rule, what is said before one, and each sign: is it general, its weight, its words."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    slots = dict[str, str]()

    def one_of(text: str) -> str:
        lines = text.replace("\n    ", "").strip().splitlines()
        return "|".join(_SLOT.sub(lambda slot: slots[slot[1]], line) for line in lines)

    for name, text in table["slots"].items():
        slots[name] = one_of(text)
    lead = rf"\A[\s*•–—-]*(?:(?:{slots['lead']})\b[\s,:;.!–—-]+)*"
    of = [(kind == "general", *sign) for kind in ("general", "signs") for sign in table[kind].values()]
    signs = [(is_general, weight, re.compile(one_of(text), re.IGNORECASE)) for is_general, weight, text in of]
    return table["enough"], re.compile(lead, re.IGNORECASE), signs
