"""Reads a lesson the way a comparison needs it: sentences of canonical words, with what must not be confused marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final

from lessonbank.contracts.records import Lesson

from ._words import ANY_PHRASE, GLUE, NEGATIONS, ORDERING, PHRASES, PROTECTED, SAME, UNITS

LONGEST: Final = 20_000
"""Characters of a lesson that are compared; longer ones are equal or different, letter by letter."""

_MOST_RELATIONS: Final = 40

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN: Final = re.compile(
    rf"(?P<flag>(?<![\w-])--?[A-Za-z][\w-]*)"
    rf"|(?P<number>(?<![\w.])[-+]?\d+(?:,\d{{3}})*(?:\.\d+)?(?![\w.:/-]*[^\W\d_])(?![\w:/-]*\d)(?!\.\d))"
    rf"|(?P<amount>(?<![\w.])\d+(?:\.\d+)?(?=[A-Za-z%]{{1,2}}(?!\w)))"
    rf"|[{_CJK}]"
    rf"|(?P<word>(?:~?/|\.(?=\w))?[^\W{_CJK}]+(?:[.\-/:@'’]+[^\W{_CJK}]+)*(?:\+\+|\#|/(?=[\s`'\").,;]|$))?)"
    rf"|(?P<symbol>[<>=!]=|&&|\|\||[^\w\s.,;:!?()\[\]{{}}\"'`*_\-–—…•#/\\“”„‘’«»<>，。、；：！？（）「」『』《》]|<|>)"
    rf"|(?P<comma>[,:(–—，、：])",
)
_DENIED_THINGS: Final = frozenset({"nothing", "none", "nobody", "nowhere", "neither"})
"""They stand for what is not there, and say nothing about the words behind them."""
_ARROWS: Final = re.compile(r"[-=]+>|→|^[ \t]*(?:>+|#+)[ \t]", re.M)
_STOPS: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<=\S)[.!?…]+(?=[\s\"'`)*”]|$)|;|\n+|[。！？；]")
_QUOTED: Final = re.compile(r"`([^`\n]{1,120})`|\"([^\"\n]{1,60})\"|“([^”\n]{1,60})”")
_LONG_WORDS: Final = re.compile(r"[^\W\d_]{4,}")
_CODED: Final = re.compile(r"[\d_./@:#+~]|[a-z][A-Z]|^-")
_CASED: Final = re.compile("-[A-Z]|A")
"""Tokens whose case counts: `-r` and `-R` are two options of one letter; and plan A is not a plan."""
_VOWEL: Final = re.compile("[aeiouy]")
_USUAL: Final = 64
"""Characters of a token that is kept once it is read, since lessons share most of their words."""
_IZE: Final = re.compile(
    r"^((?:re|de|un)?(?:optim|apolog|organ|recogn|normal|serial|initial|custom|author|final|minim|maxim|priorit|summar"
    r"|synchron|util|visual|standard|general|special|categor|emphas|token|random|local|capital|parametr|ital))"
    r"is(e|ed|es|er|ers|ing|ation|ations)$"
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word in its canonical form. `hard`: a name, number, unit, code or quotation, equal or different."""

    text: str
    hard: bool = False


Sentence = tuple[Word, ...]
_COMMA: Final = Word(",")


@dataclass(frozen=True, slots=True)
class Reading:
    """A lesson, read. `relations` hold (kind, words on the one side, words on the other) of *before*, *instead*, …"""

    wording: str
    title: Sentence
    body: tuple[Sentence, ...]
    flat: Sentence
    forms: frozenset[str]
    """Every word, and what each may be a form of: counted once, since one lesson is compared with many."""
    ordered: bool
    numbers: frozenset[str]
    units: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]
    telling: frozenset[str]
    """The words without those that only relate others: negations, prepositions and the like."""
    negated: frozenset[str]
    plain: frozenset[str]
    relations: tuple[tuple[str, frozenset[str], frozenset[str]], ...]
    latin: bool


@dataclass(slots=True)
class _Raw:
    """A sentence while it is read: canonical words and commas in order."""

    words: list[Word] = field(default_factory=list[Word])
    names: set[str] = field(default_factory=set[str])
    units: set[str] = field(default_factory=set[str])


def read(lesson: Lesson, /) -> Reading:
    """The reading of title, description and content; kept for a while, since one lesson is compared with many."""
    return _read(lesson.title, lesson.content, lesson.description)


def read_text(text: str, /) -> Reading:
    """The reading of a text alone."""
    return _read("", text, "")


@lru_cache(maxsize=1024)
def _read(title: str, content: str, description: str) -> Reading:
    wording = " ".join(unicodedata.normalize("NFKC", f"{title}\n{content}\n{description}").split())
    if len(wording) > LONGEST:
        return _reading(wording, [], [], [])
    return _reading(wording, _sentences(title, titled=True), _sentences(content), _sentences(description))


def _reading(wording: str, title: list[_Raw], content: list[_Raw], description: list[_Raw]) -> Reading:
    every = [*title, *content, *description]
    kept = [tuple(_kept(raw.words)) for raw in every]
    flat = tuple(word for sentence in kept for word in sentence)
    negated, plain = _polarity(every)
    words = frozenset(stem(word.text) for word in flat)
    return Reading(
        wording=wording,
        title=tuple(word for sentence in kept[: len(title)] for word in sentence),
        body=tuple(sentence for sentence in kept[len(title) :] if sentence),
        flat=flat,
        forms=frozenset(form for word in flat for form in bases(word.text)),
        ordered=any(word.text in ORDERING for raw in every for word in raw.words),
        numbers=frozenset(word.text for word in flat if word.text[-1:].isdigit() and word.hard),
        units=frozenset(unit for raw in every for unit in raw.units),
        names=frozenset(name for raw in every for name in raw.names),
        words=words,
        telling=words - PROTECTED,
        negated=frozenset(negated),
        plain=frozenset(plain),
        relations=tuple(islice((relation for raw in every for relation in _relations(raw.words)), _MOST_RELATIONS)),
        latin=_is_latin(wording),
    )


def _is_latin(text: str) -> bool:
    if text.isascii():
        return any(map(str.isalpha, text))
    letters = [c for c in text if c.isalpha()]
    return sum(c < "\u0250" for c in letters) * 2 > len(letters)


def _sentences(text: str, *, titled: bool = False) -> list[_Raw]:
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    text = _ARROWS.sub(" ", text)
    quoted = {word for found in _QUOTED.finditer(text) for word in _pieces("".join(g or "" for g in found.groups()))}
    shouted = text.upper() == text or (titled and _title_case(text))
    return [_sentence(part, quoted, shouted=shouted) for part in _STOPS.split(text) if part and part.strip()]


def _title_case(text: str) -> bool:
    words = _LONG_WORDS.findall(text)
    return len(words) > 1 and sum(word[0].isupper() for word in words) * 2 > len(words) + 1


def _pieces(text: str) -> list[str]:
    return [_folded(found[0]) for found in _TOKEN.finditer(text)]


def _folded(token: str) -> str:
    return token if _CASED.fullmatch(token) else token.casefold()


def _sentence(text: str, quoted: set[str], *, shouted: bool) -> _Raw:
    raw = _Raw()
    text = text.lower() if shouted else text
    for pattern, put in PHRASES if ANY_PHRASE.search(text) else ():
        text = pattern.sub(put, text)
    for position, found in enumerate(_TOKEN.finditer(text)):
        if found.lastgroup == "comma":
            raw.words.append(_COMMA)
        elif found.lastgroup in ("number", "amount"):
            raw.words.append(Word(found[0].replace(",", ""), hard=True))
        else:
            _take(raw, found[0], quoted, opening=position == 0, is_word=found.lastgroup == "word")
    return raw


def _take(raw: _Raw, token: str, quoted: set[str], *, opening: bool, is_word: bool) -> None:
    folded = token.casefold() if opening else _folded(token)
    if folded in UNITS and raw.words and raw.words[-1].text[-1:].isdigit():
        raw.units.add(UNITS[folded] or folded)
        raw.words.append(Word(UNITS[folded] or folded, hard=True))
        return
    said = _said if len(token) <= _USUAL else _said.__wrapped__
    words, names = said(token, folded, opening, folded in quoted, is_word)
    raw.words += words
    raw.names.update(names)


@lru_cache(maxsize=4096)
def _said(
    token: str, folded: str, opening: bool, quoted: bool, is_word: bool
) -> tuple[tuple[Word, ...], tuple[str, ...]]:
    """The words of a token, and those of them that are names."""
    coded = bool(_CODED.search(token))
    named = coded or quoted or (token.isupper() and len(token) > 1) or (token[:1].isupper() and not opening)
    is_code = coded or not is_word
    parts = [folded] if is_code else folded.removesuffix("'s").replace("'", "").split("-")
    texts = [_IZE.sub(r"\1iz\2", part) for part in parts]
    words = [word for text in texts for word in SAME.get(text, text).split()]
    return (
        tuple(Word(word, hard=named or not word[-1:].isalpha()) for word in words),
        tuple(text for text in texts if named and text not in GLUE and text not in PROTECTED),
    )


def _kept(words: list[Word]) -> Iterator[Word]:
    denies = any(word.text in NEGATIONS for word in words)
    for word in words:
        if word.text == "," or word.text in GLUE:
            continue
        if word.text == "always" and not denies:
            continue
        yield word


def _polarity(sentences: list[_Raw]) -> tuple[set[str], set[str]]:
    """Words said under a negation, and words said plainly. A negation reaches to the end of its clause."""
    negated: set[str] = set()
    plain: set[str] = set()
    for raw in sentences:
        denied = False
        for word in raw.words:
            if word.text in _DENIED_THINGS:
                continue
            if word.text in NEGATIONS:
                denied = True
            elif word.text in (",", "but", "before", "after", "until", "unless", "since", "if", "when"):
                denied = False
            elif word.text not in GLUE:
                (negated if denied else plain).add(stem(word.text))
    return negated, plain


_EARLIER: Final = {"before": True, "then": True, "until": True, "after": False}
_RELATING: Final = frozenset({*_EARLIER, "insteadof", "not"})


def _relations(words: list[Word]) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    texts = [word.text for word in words]
    for i, text in enumerate(texts):
        if text not in _RELATING:
            continue
        if text in _EARLIER:
            left, right = _sides(texts, i)
            yield ("time", left, right) if _EARLIER[text] else ("time", right, left)
        elif text == "insteadof" or (text == "not" and i and texts[i - 1] in (",", "and")):
            left, right = _sides(texts, i)
            yield "choice", left, right


def _sides(texts: list[str], at: int) -> tuple[frozenset[str], frozenset[str]]:
    """What stands before and behind a connector; behind it, where it opens the sentence, is up to the comma."""
    if at > 0:
        return _content(texts[:at]), _content(texts[at + 1 :])
    end = texts.index(",") if "," in texts else len(texts)
    return _content(texts[end:]), _content(texts[1:end])


def _content(texts: list[str]) -> frozenset[str]:
    return frozenset(stem(text) for text in texts if text not in GLUE and text != ",")


@lru_cache(maxsize=4096)
def bases(word: str, /) -> frozenset[str]:
    """What `word` may be a plural, a third person or an -ing form of, itself included."""
    found = {word}
    if word in ("news", "https", "does", "less", "status", "always"):
        return frozenset(found)
    if len(word) > 4 and word.endswith("ies"):
        found.add(word[:-3] + "y")
    elif len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        found |= {word[:-2], word[:-1]}
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        found.add(word[:-1])
    if word.endswith("ing") and len(word) > 5 and _VOWEL.search(word[:-3]):
        stripped = word[:-3]
        found |= {stripped, stripped + "e"}
        if stripped[-1] == stripped[-2]:
            found.add(stripped[:-1])
    return frozenset(found)


@lru_cache(maxsize=4096)
def stem(word: str, /) -> str:
    """A rough stem, for counting common words: never for deciding that two texts are the same."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    if word.endswith("i"):
        return word[:-1] + "y"
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
