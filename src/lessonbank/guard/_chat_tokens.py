"""Finds the tokens and tags with which models separate the turns of a conversation, so that they can be broken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from lessonbank._base.tables import read_once
from lessonbank.contracts.lesson_block import LIKE_MARKER

# One blank after the first character: no tokenizer takes `< |im_end|>` for its own any more, and it can still be read.
# One class of first characters, so that a text is searched for those only.
_TURN = re.compile(
    r"[<\[\]>](?:"
    # ChatML, Llama 3, Phi, Qwen, GLM, Harmony, DeepSeek, Command-R: <|…|>; Gemma 4: <|…> and <…|>; K2: <ifm|…>
    r"(?<=<)(?=/?(?:ifm)?\|[^\s<>]{1,80}+>|[^\s<>|]{1,40}+\|>|(?i:invoke\s+name\s*=|parameter(?:=|\s+name\s*=)|function=)|/?s>"
    # Llama 2
    r"|<\s*/?SYS>>)|(?<!\w<)(?<=<)(?=/?\w{1,20}+\|\w{1,40}+>)"
    # EXAONE; MiniMax; Llama 2 in small letters; Falcon
    r"|(?<=\[)(?=\|[^\s\[\]|]{1,40}+\|\]|e~\[)|(?<=\])(?=~!?b[\[\]])|(?<![\w)\]]\[)(?<=\[)(?=(?i:/?INST)\])"
    r"|(?<=>)(?=>[A-Z]{3,20}<<))"
)
# Whatever family it is of: capitals in brackets that open a line. Logs have them, too, and can still be read.
_OPENING = re.compile(r"^[ \t]{0,8}+(?:[>*-][ \t]?){0,2}+\[(?=/?[A-Z][A-Z0-9_ ]{1,40}\])", re.MULTILINE)
_WORD = re.compile(
    r"<(?=(?P<tag>/?[A-Za-z_][\w:.-]{0,40}+)(?:/?>|\s[^<>]{0,200}>))|\[(?=/?(?P<word>[A-Za-z_][\w ]{1,40}+)\])"
)
_NUMBER = re.compile(r"\d+")
_TOKEN = re.compile(r"<[^<>]+>|\[[^\[\]]+\]")
# What a model's own reply and our own text may hold, and text inside a fence may not: thoughts, and marker lines.
_INNER = re.compile(rf"<(?=/?(?i:think(?:ing)?)>|{LIKE_MARKER.removeprefix('<')})")
# A line that opens like a turn of a transcript. Small letters are left to configuration files: `user: root`.
_SPEAKER = re.compile(
    r"^(?:[^\w\n]{0,16}+(?:[Hh]uman|[Aa]ssistant|User|System|Developer|HUMAN|ASSISTANT|USER|SYSTEM|DEVELOPER)[*_]{0,3}+"
    r"|[ \t]{0,8}+#{2,4} (?:Instruction|Response))(?=:)",
    re.MULTILINE,
)
_CORRECT = re.compile(r"GPT4 Correct (?:User|Assistant)(?=:)")
_TIGHT_COLON = re.compile(r":(?=\S)")
_TAGGED_USER = re.compile(r"^[ \t]{0,8}+<(?=/?user>)", re.MULTILINE | re.IGNORECASE)
_TURNS = (("<[]", _TURN), ("[", _OPENING), ("<", _TAGGED_USER), (":", _SPEAKER), (":", _CORRECT))
"""Patterns, each with the signs one of which all of its matches have."""


def turns(seen: str, /) -> list[int]:
    """The places of `seen` (a shadow) where a blank takes the force of a token, a tag or a line's opening."""
    places = [
        match.end()
        for signs, pattern in _TURNS
        if any(map(seen.__contains__, signs))
        for match in pattern.finditer(seen)
    ]
    if "<" in seen or "[" in seen:
        places += [match.end() for match in _WORD.finditer(seen) if _separates(match["tag"], match["word"])]
    return places


@read_once
def tokens() -> Mapping[str, str]:
    """Each token of `chat_tokens.txt`, as it is compared, with the package that ships it."""
    lines = Path(__file__).with_name("chat_tokens.txt").read_text(encoding="utf-8").splitlines()
    entries = [line.split(": ", 1) for line in lines if not line.startswith("#")]
    return {
        token.casefold() if token[0] == "<" else token: source
        for source, words in reversed(entries)
        for token in _TOKEN.findall(words)
    }


@lru_cache(maxsize=4096)  # a page has few tags, many times
def _separates(tag: str | None, word: str | None) -> bool:
    if word is not None:
        return f"[{_NUMBER.sub('#', word)}]" in tokens()
    name = _NUMBER.sub("#", (tag or "").casefold())
    space, is_in_space, _ = name.removeprefix("/").partition(":")
    alike = (name, name.removeprefix("/"), f"{space}:" if is_in_space else name)
    return any(f"<{variant}>" in tokens() for variant in alike)


def speaks(seen: str, /) -> bool:
    """Whether a colon of `seen` stands behind a speaker or inside an address. Most colons end a word of a sentence."""
    return bool(_TIGHT_COLON.search(seen) or _SPEAKER.search(seen) or _CORRECT.search(seen))


def inner(seen: str, /) -> list[int]:
    """The places of `seen` where a blank breaks tags that set thoughts apart, and lines that look like our markers."""
    return [match.end() for match in _INNER.finditer(seen)]
