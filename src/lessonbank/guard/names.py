"""The accepted spelling of names of writers and persons: nobody counts twice, or signs with a name like another's."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from lessonbank._base.checks import is_instance, short_repr
from lessonbank.errors import UsageError

from ._characters import plain
from .gate import looks_like
from .redact import holds_key

LONGEST: Final = 100
"""Characters that a name may have."""
OWN: Final = frozenset({"file", "import", "ledger"})
"""Who the bank itself names in its journal. Nobody else may use these names."""
_WRITTEN_TOGETHER: Final = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "MODIFIER"}
)
"""How Unicode calls the letters that stand beside those of others in one word."""
_LOOKALIKES: Final = str.maketrans(
    "авеѕіјкмнорсԁтухһԛԝαβεικνορτυχıᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ‘’ʼ",
    "abesijkmhopcdtyxhqwabeikvoptyxiabcdefghijklmnoprstuvwyz'''",
)
"""Small letters, Cyrillic, Greek and Latin, that look like an ASCII one, small or as a capital; and apostrophes."""
_LIKE_ASCII: Final = str.maketrans("1i|0", "lllo")
"""ASCII, in small letters, that looks like other ASCII, small or as a capital."""


def checked_name(name: object, /, *, what: str) -> str:
    """`name` itself, if it is spelled as it should be; `what` is the argument that it came with.

    Raises:
        UsageError: no text, blank, too long, or spelled in another way than the accepted one; the message says which.
    """
    if not is_instance(name, str) or not (name := str.__str__(name)).strip():
        raise UsageError(f"{what} takes a name that is not blank; got {short_repr(name)}")
    if len(name) > LONGEST:
        raise UsageError(f"{what} takes a name of at most {LONGEST} characters; this one has {len(name):,}")
    accepted = " ".join(plain(unicodedata.normalize("NFKC", name)).split())
    if accepted != name:
        raise UsageError(f"{what}{short_repr(name)} is not in the accepted form of a name: write {accepted!r}")
    if any(len(alphabets) > 1 for alphabets in map(_alphabets, name.split())):
        raise UsageError(f"{what}{short_repr(name)} mixes letters of several alphabets in one word: write it in one")
    if holds_key(name):
        raise UsageError(f"{what} takes a name, which others read; this one holds a key: write a name without it")
    if name_key(name) in OWN:
        raise UsageError(f"{what}{short_repr(name)} is a name that the bank itself uses: choose another")
    return name


def look(name: str, /) -> str:
    """How a name looks: as `name_key`, and `alice` as `aIice`, `0l` as `Ol`, `rn` as `m`. Only for comparing."""
    return name_key(name).translate(_LIKE_ASCII).replace("rn", "m")


def name_key(name: str, /) -> str:
    """What names have in common that count as one: also if they differ in case, blanks, signs nobody sees, alphabet."""
    key = plain(unicodedata.normalize("NFKC", name)).casefold().translate(_LOOKALIKES)
    return " ".join((key if key.isascii() else "".join(map(_seen, key))).split())


@lru_cache(maxsize=4096)
def _seen(character: str) -> str:
    """The digit, dash or ASCII letter that a character is, or looks like. Accents stay: José is not Jose."""
    if character.isdigit():
        return str(unicodedata.digit(character))
    if unicodedata.category(character) == "Pd":
        return "-"
    alphabet, *more = unicodedata.name(character, "").split(" ")
    has_table = alphabet in ("CYRILLIC", "GREEK") or "WITH" in more
    return character if has_table else looks_like(character)


def _alphabets(word: str) -> set[str]:
    letters = {unicodedata.name(letter, "").split(" ")[0] for letter in word if letter.isalpha()}
    return letters - _WRITTEN_TOGETHER
