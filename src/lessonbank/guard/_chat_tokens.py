"""Finds the tokens and tags with which models separate the turns of a conversation, so that they can be broken."""

from __future__ import annotations

import re

from lessonbank.contracts.lesson_block import LIKE_MARKER

# One blank after the first character: no tokenizer takes `< |im_end|>` for its own any more, and it can still be read.
# Sources: the chat templates and tokenizer files that the families publish.
_TAGS = (
    # roles, and what stands around calls of tools and their results
    r"system(?:[-_](?:prompt|message|reminder|instructions?))?|assistant|human|developer|antml:\w{1,40}"
    r"|function_(?:calls?|results?)|tool_(?:calls?|code|use|outputs?|results?|responses?)|minimax:\w{1,40}|seed:\w{1,40}"
    # Gemma, GLM, Command-R, StarCoder, Hermes
    r"|(?:start|end)_of_(?:turn|image)|[be]os|[be]os_token|[es]op|eod|eot|fim_\w{1,20}|arg_(?:key|value)"
    # Baichuan, TeleChat, Nemotron, Ling, InternLM
    r"|reserved_\d{1,4}|_(?:user|bot|system|end)|special_\d{1,4}|role|eo[hasu]"
)
# One class of first characters, so that a text is searched for those only.
_TURN = re.compile(
    r"[<\[\]](?:"
    # ChatML, Llama 3, Phi, Qwen, GLM, Harmony, DeepSeek, Command-R: <|…|>; Gemma 4: <|…> and <…|>
    r"(?<=<)(?=/?\|[^\s<>|]{1,64}+\|?>|[^\s<>|]{1,40}+\|>"
    rf"|(?i:/?(?:{_TAGS})(?:/?>|\s[^<>]{{0,200}}>))|(?i:invoke\s+name\s*=|parameter(?:=|\s+name\s*=)|function=)|/?s>"
    # Llama 2
    r"|<\s*/?SYS>>)"
    # EXAONE; Mistral, GLM, Kimi; MiniMax
    r"|(?<=\[)(?=\|[^\s\[\]|]{1,40}+\|\])"
    r"|(?<=\[)(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|CALL_ID|THINK|gMASK|BOS|EOS)\]"
    r"|e~\[)|(?<![\w)\]]\[)(?<=\[)(?=(?i:/?INST)\])|(?<=\])(?=~!?b[\[\]]))"
)
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
_TURNS = (("<[]", _TURN), ("<", _TAGGED_USER), (":", _SPEAKER), (":", _CORRECT))
"""Patterns, each with the signs one of which all of its matches have."""


def turns(seen: str, /) -> list[int]:
    """The places of `seen` (a shadow) where a blank takes the force of a token, a tag or a line's opening."""
    return [
        found.end()
        for signs, pattern in _TURNS
        if any(map(seen.__contains__, signs))
        for found in pattern.finditer(seen)
    ]


def speaks(seen: str, /) -> bool:
    """Whether a colon of `seen` stands behind a speaker or inside an address. Most colons end a word of a sentence."""
    return bool(_TIGHT_COLON.search(seen) or _SPEAKER.search(seen) or _CORRECT.search(seen))


def inner(seen: str, /) -> list[int]:
    """The places of `seen` where a blank breaks tags that set thoughts apart, and lines that look like our markers."""
    return [found.end() for found in _INNER.finditer(seen)]
