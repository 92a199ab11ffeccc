"""Finds what a person says in a session as a rule of the repository, such as "use pnpm, not npm".

By the forms in `corrections.toml`: one with which a sentence begins, or the repository's name in it. What may be a wish
for this one change is none: a rule is shown in every session after it, and a wrong one is worse than none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from lessonbank.contracts.records import Trajectory

_MOST: Final = 2
"""Rules of one session."""
_LONGEST: Final = 200
_LONGEST_TURN: Final = 600
"""Characters of what a person says at once: a longer text is mostly pasted."""
_CONTINUED: Final = re.compile(r"\n {4}")
_SLOT: Final = re.compile(r"<(\w+)>")
_ADDED: Final = re.compile(
    r"\A# Context from my IDE setup:.*\n## My request for Codex:\n|-{3} Content from referenced files -{3}.*", re.DOTALL
)
"""What Codex writes before the words of a person who works in an editor, and Gemini CLI behind `@file`."""
_QUOTED: Final = re.compile(
    r"<([\w:-]+)[^<>]*>.*?</\1>|```.*?(?:```|\Z)|\"[^\"]*(?:\"|\Z)|“[^”]*(?:”|\Z)|„[^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)",
    re.DOTALL,
)
_PASTED: Final = re.compile(r"^(?:[>|$%#+@{\[<]|\t| {4}|[A-Z]{3,}\b:).*", re.MULTILINE)
_SENTENCE: Final = re.compile(r"[^\n]+?(?:[.!?](?=\s|$)|(?=\n|$))")
_QUOTE: Final = "\x00"


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
    bare, (rules, passing, placed) = text.replace("’", "'"), _patterns()
    for pasted in (_QUOTED, _PASTED):
        bare = pasted.sub(lambda match: _QUOTE * len(match[0]), bare)
    for match in _SENTENCE.finditer(bare):
        rule = rules.match(bare, match.start(), match.end())
        start = rule.start("rule") if rule else match.start()
        if (rule or placed.match(match[0])) and not passing.search(bare, start, match.end()):
            sentence = text[start : match.end()].strip()
            yield from [sentence] if len(sentence) <= _LONGEST else ()


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """What a rule begins with, what it does not hold, and a sentence that names the repository and binds."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    slots = dict[str, str]()

    def one_of(lines: Iterable[str]) -> str:
        return "|".join(_SLOT.sub(lambda slot: slots[slot[1]], line) for text in lines for line in _lines(text))

    for name, text in tables["slots"].items():
        slots[name] = one_of([text])
    lead = rf"[\s*•–—-]*(?:(?:{one_of(tables['leads'].values())})\b[\s,:;.!–—-]+)*"
    rule = f"{lead}(?P<rule>{one_of(tables['forms'].values())})"
    place, binds, observes = (one_of([tables["placed"][name]]) for name in ("place", "binds", "observes"))
    placed = f"(?=.*(?:{place}))(?=.*(?:{binds}))(?!.*(?:{observes}))"
    passing = one_of(tables["passing"].values())
    return re.compile(rule, re.IGNORECASE), re.compile(passing, re.IGNORECASE), re.compile(placed, re.IGNORECASE)


def _lines(text: str) -> list[str]:
    """Its expressions: a line that is indented goes on with the one before it."""
    return _CONTINUED.sub("", text).strip().splitlines()
