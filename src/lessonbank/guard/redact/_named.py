"""Finds secrets by their name: `password = …` in code, environments, JSON, YAML, tables and prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lessonbank._base.patterns import compiled

from ._spans import Detector, Page, Span, places
from ._words import (
    CORE,
    KEYS,
    STEMS,
    expression,
    harmless,
    is_unpronounceable,
    kind_of_core,
    looks_like_password,
    random_looking,
)

_OPENS = re.compile(rf"(?:{KEYS})[ _-]?\Z")
PARTS = re.findall(
    r"\S+",
    "pass pw secret token credential key kennwort mdp contrase clave senha парол 密 口令 パスワード 비밀번호"
    " wachtwoord hasło lösenord",
)
"""Every name of a secret contains one of these."""
_STEMS = {part: [(stem, stem.index(part)) for stem in STEMS if part in stem] for part in PARTS}
"""How names begin that contain a part, and how far ahead of it: they are looked for only where the part stands."""
_LONG = 512
"""The closing quote must come within so many characters."""
_LEAST = 4
"""Characters of the shortest password; keys and tokens are never so short."""
_NAME = rf"(?P<core>{CORE})(?:(?<=[码碼令ド호])|(?P<rest>[\w.-]{{0,32}}))"
_IS = r"""
    \s (?: [—–] (?=\s) | is | was | are | to | be | as | ist | lautet | est | es | é | är | это ) (?!\w)
    (?: \s (?: now | set \s to | changed \s to) )? (?: \s? : )?"""
_SIGN = r"""(?x) (?:
      \\{0,3}["'] \s{0,4} : \s{0,24} \{ [^{}\[\]]{0,120}? \\{0,3}["'] value \\{0,3}["'] \s{0,4} :
    | [\\"'`*_\])]{0,6} [ \t]{0,4} (?: : [ ]{0,2} [A-Za-z_][\w.\[\]|, ]{0,32}? [ ]{1,4} = (?!=)   # password: str =
        | (?P<soft> \| | -> | > ) | :?==? | => | : )
      (?: [ ]? [|>][-+]? \s*\n | \*{1,2} )?
    | \\{0,3}["']? (?: , \s{0,24} \\{0,3}["'] type \\{0,3}["'] \s? : \s? \\{0,3}["'] \w{0,40} \\{0,3}["'] )?
      [,;]? \s{0,24}? (?: - \s)? \\{0,3}["']? value \\{0,3}["']? \s{0,4} [:=]
    | (?P<said> ["'`]?
        (?: \s (?: for | of | at | on | für | von | du | de | del | от | для ) (?: \s [^\s:]{1,32} ){1,3}?
        (?: : | IS ) | IS ) )
    | \s? (?: [是为為] | [은는이가はが] (?= \s? ["'`]? [!-~]{4} ) ) \s? :? \s?
    | (?P<listed> \\?["'`] \s? , \s? (?= \\?["'`]) )
    | (?P<statement> [ ] (?=') )
    | (?P<beside> [ ] (?= [^\s"'`<>(\[{]{6} ) )
    ) [ \t]{0,24} (?: \n[ \t]{1,24} )? (?: \\?[rbfu](?=["']) )?
    """.replace("IS", _IS)
_QUOTES = frozenset("\"'`\\")
_QUOTE = re.compile(r"(\\{0,3})([\"'`])")
_CLOSING = re.compile(r"\s*[,:\]}]")
"""What follows a quote that ended a text of JSON, and began none."""
_QUOTED = {
    '"': re.compile(r'([^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+)"'),
    "'": re.compile(r"([^'\"\\\n]*+(?:\\[^\"\n][^'\"\\\n]*+)*+)'"),
    "`": re.compile(r"([^`\"\n]*+)`"),
}
_ESCAPED = re.compile(r"([^\"'\n\\]*+)\\{1,3}[\"']")
_BARE = re.compile(
    r"(?:[^\s\"'`<>\\,;&|(){}\[\]。，；»]++|[,;&(){}\[\]](?![\"'\s\\(){}\[\],;&]|$|[\w.-]{1,32}+\s?[=:(]))*+"
)
_REST = re.compile(r"[^\s\"'`<>\\,;&|(){}\[\]。，；»]*+")
_ENDING = ".,:;!?)]}*"
_OPENING = ("[", "{", "(", "<", ",", ":", "]", "}", "")
"""What a value without quotes does not begin with: a list, a mapping, a placeholder of ours, the end of a text."""
_ODD = re.compile(r"[a-zA-Z][!?@#$%^&+=*]|[!?@#$%^&+=*][a-zA-Z]")
_ROLE = re.compile(r"(?:ALTER|CREATE) (?:ROLE|USER|GROUP)\b[^\n;]*\Z", re.IGNORECASE)
_WITH = re.compile(r"\b(?:with|using|and|by|mit|avec|con|com)(?: (?:the|a|your|my|its|this))? \Z", re.IGNORECASE)
_CHOSEN = re.compile(r"(?=[^\s]*[a-z])(?=[^\s]*[A-Z])[^\s]*\d")
"""Small letters, capitals and a digit: what stands behind "with the password" is no word then."""
_BEGUN = re.compile(r"\w+\Z")
_OPAQUE = re.compile(rf"secret|token|credential|(?:{KEYS})[ _-]?key")
_SMALL = re.compile(r"[a-z]")
_PATHLIKE = re.compile(r"[/~.]")


class _Value(NamedTuple):
    start: int
    end: int
    quoted: bool


def find_named_values(page: Page, /) -> Iterator[Span]:
    """Find values next to the name of a secret, if they look like one."""
    done = 0
    for at in _cores(page):
        name = compiled(_NAME).match(page.low, at) if at >= done else None
        sign = compiled(_SIGN).match(page.low, name.end()) if name else None
        value = _value(page.text, sign.end()) if sign else None
        if not (name and sign and value):
            continue
        if value.end - value.start > _LONG:
            done = value.end  # whatever it is: what is inside would be read again and again
        if value.end - value.start < _LEAST * (2 if _OPAQUE.match(name["core"]) else 1):
            continue
        kind = kind_of_core(page.low, *name.span("core"), last=name.end())
        if kind and _is_secret(page.text, name, sign, kind, value):
            done = value.end
            yield Span(value.start, value.end, kind, page.text[value.start : value.end], typed=False)


NAMED = Detector(find_named_values, "low_words", PARTS)


def _cores(page: Page) -> list[int]:
    """Where a core word may begin. A key is one only behind the word that says what it opens."""
    low, starts = page.low, set[int]()
    for part in PARTS:
        for at in places(low, part) if part in page.low_words else ():
            starts.update(at - ahead for stem, ahead in _STEMS[part] if low.startswith(stem, at - ahead))
            if part == "key" and (opening := _OPENS.search(low, max(0, at - 14), at)):
                starts.add(opening.start())
    return sorted(starts)


def _value(text: str, start: int) -> _Value | None:
    """What stands behind the sign: what is in the quotes, or all until something ends it."""
    if text[start : start + 1] in _QUOTES and (opening := _QUOTE.match(text, start)):
        if _CLOSING.match(text, opening.end()):
            return None
        body = (_ESCAPED if opening[1] else _QUOTED[opening[2]]).match(text, opening.end(), opening.end() + _LONG)
        if body:
            return _Value(*body.span(1), quoted=True) if body.end(1) - body.start(1) >= _LEAST else None
        start = opening.end()
    if text[start : start + 1] in _OPENING:
        return None
    end = _BARE.match(text, start, start + _LONG).end()  # type: ignore[union-attr]  # it matches nothing, too
    if end - start == _LONG:
        end = _REST.match(text, end).end()  # type: ignore[union-attr]
    if text[end - 1 : end] in _ENDING:
        end -= len(text[start:end]) - len(text[start:end].rstrip(_ENDING))
    return _Value(start, end, quoted=False) if end - start >= _LEAST else None


def _is_secret(text: str, name: re.Match[str], sign: re.Match[str], kind: str, value: _Value) -> bool:
    candidate = text[value.start : value.end]
    if kind != "password" and not random_looking(candidate) and not _is_assigned(text, name, sign, value):
        return False
    if harmless(candidate.strip()) or (name["core"] == "pwd" and _PATHLIKE.match(candidate)):
        return False  # `PWD` is also where a shell is
    if name["core"] == "clave" and not (random_looking(candidate) or _ODD.search(candidate)):
        return False  # the Spanish word for the key of a mapping, too
    if not value.quoted and expression(text[value.start : value.end + 1]):
        return False
    if sign["said"] and value.quoted:
        return len(candidate) >= 8 and " " not in candidate
    if sign["statement"] or sign["beside"]:
        return " " not in candidate and _stands_beside(
            text[max(0, name.start() - 120) : name.start()], sign, kind, candidate
        )
    if sign.lastgroup:
        return " " not in candidate and _stands_out(sign.lastgroup, kind, candidate)
    if kind != "password":
        return candidate.count(" ") < 2
    if value.quoted:
        return candidate.count(" ") < 3 or "phrase" in name["core"]
    return looks_like_password(candidate) or _is_setting(text, name, value)


def _is_assigned(text: str, name: re.Match[str], sign: re.Match[str], value: _Value) -> bool:
    """Whether letters alone can be a key: where a setting or a literal stands, or behind a key's beginning."""
    candidate = text[value.start : value.end]
    if sign.lastgroup or not is_unpronounceable(candidate):
        return False
    return value.quoted or candidate.startswith("sk-") or sign[0][0] in _QUOTES or _is_large(text, name)


def _is_large(text: str, name: re.Match[str]) -> bool:
    """Whether the whole name is in capitals, as those in an environment are."""
    before = _BEGUN.search(text[max(0, name.start() - 64) : name.start()])
    return not _SMALL.search((before[0] if before else "") + text[name.start() : name.end()])


def _stands_beside(before: str, sign: re.Match[str], kind: str, candidate: str) -> bool:
    """Whether `candidate` is a secret that stands next to its name with nothing but a blank between."""
    if sign["statement"]:
        return bool(_ROLE.search(before))
    if kind == "password" and _CHOSEN.match(candidate) and _WITH.search(before):
        return True
    return _stands_out("beside", kind, candidate)


def _stands_out(sign: str, kind: str, candidate: str) -> bool:
    """Whether `candidate` is no word that stands there by chance: the looser the sign, the odder it must be."""
    if sign == "beside":
        return random_looking(candidate) and (kind == "password" or len(candidate) >= 16)
    if sign == "listed":
        return random_looking(candidate) or bool(_ODD.search(candidate))
    return looks_like_password(candidate)


def _is_setting(text: str, name: re.Match[str], value: _Value) -> bool:
    """A word may be a password where nothing but a value can stand: in an environment file, a query."""
    since = max(0, name.start() - 64)
    line = text[max(text.rfind("\n", since, name.start()) + 1, since) : value.start]
    if re.fullmatch(r"(?:export |set |ENV )?\s*[A-Z][A-Z0-9_]*=", line):
        return True
    return bool(re.search(r"[?&][\w.-]*=$", line))
