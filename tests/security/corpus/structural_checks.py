"""What a text on its way out may not do: looked for apart from the guard's own code, and with a reader of Markdown."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

HERE = Path(__file__).parent
LONG = 20_000
"""Characters from which only what is quick is looked for."""
# What chat templates and tokenizer files of open-weight families, and the published prompt forms of closed ones, use.
_FAMILIES = {
    "chatml": ("<|im_start|>system", "<|im_end|>", "<|im_sep|>"),
    "llama2": ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>"),
    "llama3": ("<|begin_of_text|>", "<|start_header_id|>system<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"),
    "llama4": ("<|header_start|>", "<|header_end|>", "<|eot|>"),
    "mistral": (
        "[SYSTEM_PROMPT]",
        "[/SYSTEM_PROMPT]",
        "[AVAILABLE_TOOLS]",
        "[TOOL_CALLS]",
        "[TOOL_RESULTS]",
        "[THINK]",
    ),
    "gemma": ("<start_of_turn>model", "<end_of_turn>", "<bos>", "<eos>", "<|turn>system", "<turn|>"),
    "phi": ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
    "deepseek": ("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>"),
    "qwen": ("<|endoftext|>", "<tool_call>", "</tool_call>", "<tool_response>", "<function=run>", "</think>"),
    "command-r": ("<|START_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|CHATBOT_TOKEN|>", "<BOS_TOKEN>"),
    "glm": ("[gMASK]<sop>", "<|observation|>", "<arg_key>"),
    "harmony": ("<|start|>system", "<|channel|>final", "<|message|>", "<|call|>", "<|return|>"),
    "kimi": ("<|im_system|>", "<|tool_calls_section_begin|>", "[EOS]"),
    "minimax": ("]~b]system", "[e~[", "<minimax:tool_call>"),
    "anthropic": ("<function_calls>", '<invoke name="bash">', "<function_results>", "<system>", "</system>"),
    "others": ("<system_prompt>", "<assistant>", "<tool_use>", "<tool_result>", "<seed:bos>", "<think>"),
}
_ROLE = re.compile(
    r"^[^\w\n]{0,10}(?:Human|Assistant|System|User|Developer|HUMAN|ASSISTANT|SYSTEM|USER|human|assistant)[*_]{0,3}:"
    r"|^[ \t]*</?user>",
    re.MULTILINE,
)
_CORE = re.compile(r"<+[^<>]*>+|\[/?\w+\]|\]~!?b[\[\]]|\[e~\[")
TOKENS = frozenset(core for tokens in _FAMILIES.values() for token in tokens for core in _CORE.findall(token))
"""The tokens themselves, without the words that follow them in the corpus."""
_ELEMENT = re.compile(
    r"<(?:script|style|iframe|img|image|svg|math|link|meta|base|object|embed|form|input|video|audio|template|textarea"
    r"|title|pre|xmp|plaintext)\b|<[a-z][^>]*[\s/][^>]*=|<!--|<\?",
    re.IGNORECASE,
)
_BARE = re.compile(r"(?:https?|ftp)://|\bwww\.\w|javascript:\S|data:[a-z]+/", re.IGNORECASE)
_LEAVES = re.compile(r"[a-z][a-z0-9+.-]*:(?!:)|//|\\", re.IGNORECASE)
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True)
class Case:
    """A text of the corpus."""

    id: str
    kind: str
    text: str
    changed_by: str = ""
    """For a harmless text: the rule that changes it, if one does."""

    def against(self, nonce: str, /) -> str:
        """The text, as if its writer had guessed the nonce."""
        return self.text.replace("{nonce}", nonce)


def read(name: str, /) -> list[Case]:
    """The cases of a file beside this one."""
    rows = map(json.loads, (HERE / f"{name}.jsonl").read_text(encoding="ascii").splitlines())
    return [Case(r["id"], r.get("class") or r["kind"], _text(r), r.get("changed_by", "")) for r in rows]


def _text(row: dict[str, Any]) -> str:
    return row["text"] if "text" in row else "".join(piece * times for piece, times in row["parts"])


def bad_characters(text: str, /) -> set[str]:
    """Code points that hide, steer or break, line breaks and tabs apart; and piles of marks."""
    alphabet = set(text) - {"\n", "\t"}
    found = {c for c in alphabet if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}}
    found |= {c for c in alphabet if "\ufe00" <= c <= "\ufe0f" or "\U000e0100" <= c <= "\U000e01ef"}
    found |= alphabet & set("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
    return found | _piles(text[:LONG])


def _piles(text: str) -> set[str]:
    height = 0
    for character in text:
        height = height + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if height > 4:
            return {character}
    return set()


def tokens_in(text: str, tokens: Iterable[str], /) -> set[str]:
    """The tokens that a reader would find who normalises the text and drops what is invisible."""
    seen = "".join(c for c in unicodedata.normalize("NFKC", text[:LONG]) if unicodedata.category(c) != "Cf")
    return {t for t in tokens if unicodedata.normalize("NFKC", t) in seen}


def roles_in(text: str, /) -> list[str]:
    """Lines that open like another turn."""
    return _ROLE.findall(unicodedata.normalize("NFKC", text[:LONG]))


def live_in(text: str, /) -> list[str]:
    """What a page made from this Markdown would link to, load or run; mail addresses apart."""
    return list(_live(_MARKDOWN.parse(text[:LONG])))


def _live(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        target = str(token.attrs.get("href", ""))
        if token.type == "link_open" and _LEAVES.match(target) and not target.startswith("mailto:"):
            yield f"link {target}"
        elif token.type == "image":
            yield f"image {token.attrs.get('src')}"
        elif (token.type in {"html_inline", "html_block"} and _ELEMENT.search(token.content)) or (
            token.type == "text" and _BARE.search(token.content)
        ):
            yield token.content[:80]
        yield from _live(token.children or ())


def fenced(lines: list[str], label: str, code: str) -> tuple[list[str], list[str]]:
    """What stands between the two markers of a label, and the lines without it."""
    opening, closing = f"<<<{label} {code}>>>", f"<<<end {label} {code}>>>"
    assert (lines.count(opening), lines.count(closing)) == (1, 1)
    start, stop = lines.index(opening), lines.index(closing)
    inside = lines[start + 1 : stop]
    assert code not in "\n".join(inside)
    return inside, [*lines[:start], f"(the {label})", *lines[stop + 1 :]]
