"""Twenty-two ways to write a text so that people and models still read it and a pattern does not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD_JOINERS = cycle("\u200b\u200c\u200d\u2060")
_PILE = "\u0301\u0323\u0334\u035c"


def _letters(written: str) -> Callable[[str], str]:
    """Each letter by the one at its place in `written`; a dot leaves a letter as it is."""
    table = {ord(a): b for a, b in zip(LETTERS, written.split(), strict=True) if b != "."}
    return lambda text: text.lower().translate(table)


def _from(first: int) -> Callable[[str], str]:
    return lambda text: "".join(chr(first + ord(c) - ord("a")) if c in LETTERS else c for c in text.lower())


def _inside_words(between: Callable[[str, int], str]) -> Callable[[str], str]:
    """Something put behind each second letter of a word."""

    def written(text: str) -> str:
        parts: list[str] = []
        for at, c in enumerate(text):
            inside = c.isalpha() and text[at + 1 : at + 2].isalpha() and at % 2
            parts.append(c + (between(c, at) if inside else ""))
        return "".join(parts)

    return written


def _each_letter(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(c) if c.isascii() and c.isalpha() else c for c in text)


def _emphasised(marks: str) -> Callable[[str], str]:
    """The middle of each word between two marks."""

    def written(text: str) -> str:
        words = text.split(" ")
        return " ".join(f"{w[:1]}{marks}{w[1:3]}{marks}{w[3:]}" if w[:4].isalpha() and len(w) > 3 else w for w in words)

    return written


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "Cyrillic letters": _letters("а Ь с ԁ е . ɡ һ і ј к . м п о р ԛ г ѕ т и ѵ ԝ х у ."),
    "Greek letters": _letters("α β ϲ . ε . . η ι ϳ κ . μ . ο ρ . . . τ υ ν ω χ γ ζ"),
    "letters of Cherokee and Lisu": _letters("Ꭺ Ᏼ Ꮯ Ꭰ Ꭼ ꓝ Ꮐ Ꮋ Ꭵ Ꭻ Ꮶ Ꮮ Ꮇ ꓠ ꓳ Ꮲ . Ꮢ Ꮪ Ꭲ ꓴ Ꮩ Ꮃ ꓫ Ꭹ Ꮓ"),
    "small capitals": _letters("ᴀ ʙ ᴄ ᴅ ᴇ ꜰ ɢ ʜ ɪ ᴊ ᴋ ʟ ᴍ ɴ ᴏ ᴘ ꞯ ʀ ꜱ ᴛ ᴜ ᴠ ᴡ . ʏ ᴢ"),
    "superscripts": _letters("ᵃ ᵇ ᶜ ᵈ ᵉ ᶠ ᵍ ʰ ⁱ ʲ ᵏ ˡ ᵐ ⁿ ᵒ ᵖ . ʳ ˢ ᵗ ᵘ ᵛ ʷ ˣ ʸ ᶻ"),
    "full-width letters": _from(0xFF41),
    "mathematical letters": _from(0x1D5EE),
    "circled letters": _from(0x24D0),
    "squared letters": _from(0x1F170),
    "regional indicators": _each_letter(lambda c: chr(0x1F1E6 + ord(c.lower()) - ord("a"))),
    "digits for letters": _letters("4 . . . 3 . . . 1 . . . . . 0 . . . 5 7 . . . . . ."),
    "signs for letters": _letters("@ . . . . . . . ! . . . . . 0 . . . $ . . . . . . ."),
    "entities": _each_letter(lambda c: f"&#{ord(c)};"),
    "entities in hexadecimal, inside words": _inside_words(lambda c, at: "&#x200b;"),
    "bold inside words": _emphasised("**"),
    "code marks inside words": _emphasised("`"),
    "one diacritic a letter": _each_letter(lambda c: c + "\u0323"),
    "piled-up diacritics": _each_letter(lambda c: c + _PILE),
    "zero-width characters": _inside_words(lambda c, at: next(_WORD_JOINERS)),
    "soft hyphens, as entities": _inside_words(lambda c, at: "&shy;"),
    "spaced letters": lambda text: "  ".join(" ".join(word) for word in text.split(" ")),
    "tags inside words": _inside_words(lambda c, at: "<b></b>"),
}
"""How a text is written, by what the way is called. The first changes nothing."""
