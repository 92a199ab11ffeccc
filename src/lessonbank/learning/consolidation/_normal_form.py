"""Brings a lesson to the form in which two are compared: case, markup, filler words and endings make no difference."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from lessonbank._base.patterns import compiled
from lessonbank.contracts.records import Lesson
from lessonbank.text.bm25 import STOP_WORDS

LONGEST: Final = 20_000
"""Characters of a lesson that are compared; longer ones are equal or different, letter by letter."""


def _set(words: str, /) -> frozenset[str]:
    return frozenset(words.split())


FILLERS: Final = _set(
    "a an the this that these those which is are be been being was were it its them they their you your we our i my"
    " will should must please just simply do does did has have also so there"
)
"""Words whose coming and going leaves advice as it is. Nothing that denies, counts, orders or compares is here."""
DENIALS: Final = _set(
    "no not never none nothing nobody neither nor without avoid refuse prevent stop skip omit ignore forbid"
    " nicht kein keine keinen nie niemals ohne ne pas jamais aucun sans nunca jamás ningún sin não nem sem non senza"
    " mai niet geen nooit zonder inte aldrig ikke aldri нельзя не нет никогда без"
)
TURNING: Final = DENIALS | _set("only except unless until before after instead first last least most")
"""Words that turn advice around, wherever they stand."""
_WHOLE: Final = FILLERS | TURNING | _set("always news customs goods means")
"""Words that keep their endings: some say something else without."""
_LINKS: Final = frozenset(("and", "then"))
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN: Final = (
    rf"(?P<code>(?<![\w-])--?[A-Za-z][\w-]*)"
    rf"|(?P<number>(?<![\w.])[-+]?\d+(?:,\d{{3}})*(?:\.\d+)?(?=[A-Za-z%]{{1,2}}(?!\w)|(?![\w:/-]*\w)(?!\.\d)))"
    rf"|[{_CJK}]"
    rf"|(?P<word>(?:~?/|\.(?=\w))?[^\W{_CJK}]+(?:[.\-/:@'+]+[^\W{_CJK}]+)*(?:\+\+|\#|/(?=[\s`'\").,;]|$))?)"
    rf"|(?P<symbol>[<>=!]=|&&|\|\||[^\w\s.,;:!?()\[\]{{}}\"'`*_\-–—…•#/\\“”„‘’«»<>，。、；：！？（）「」『』《》]|<|>)"
    rf"|(?P<comma>[,:(–—，、：])"
)
_MARKUP: Final = re.compile(r"[-=]+>|→|^[ \t]*(?:>+|#+)[ \t]", re.M)
_STOPS: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<=\S)[.!?…]+(?=[\s\"'`)*”]|$)|;|\n+|[。！？；]")
_QUOTED: Final = re.compile(r"`([^`\n]{1,120})`|\"([^\"\n]{1,60})\"|“([^”\n]{1,60})”")
_DENIED: Final = re.compile(r"(?i)\b(?:(ca)n['’]t|(can)not|(wo)n['’]t|(\w+)n['’]t)\b")
_RATHER: Final = re.compile(r"(?i)\brather than\b")
_CODED: Final = re.compile(r"[\d_./@:#+~]|[a-z][A-Z]|^-")
_CASED: Final = re.compile("-[A-Z]|A")
"""Tokens whose case counts: `-r` and `-R` are two options; and plan A is not a plan."""
_BRITISH: Final = re.compile(r"(?<=\w\w\w)(?:is(?=e|ing|ed|ation)|ys(?=e|ing|ed)|our(?=s?$|ed|ing|ite)|tre(?=s?$))")
_SPELT: Final = {"is": "iz", "ys": "yz", "our": "or", "tre": "ter"}
_VOWEL: Final = re.compile("[aeiouy]")
_UNITS: Final = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour"}
_FIGURES: Final = "zero one two three four five six seven eight nine ten"
_SAME: Final = {word: str(number) for number, word in enumerate(_FIGURES.split())} | {
    "each": "every",
    "select": "choose",
    "of": "in",
    "upon": "on",
}

Sentence = tuple[tuple[str, ...], ...]
"""The clauses of a sentence, each as its words."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A lesson in its normal form."""

    wording: str
    title: tuple[Sentence, ...]
    body: tuple[Sentence, ...]
    words: tuple[str, ...]
    """All of them, in order."""
    telling: frozenset[str]
    """What it speaks of: its words without those that turn advice around and those of every text."""
    facts: frozenset[str]
    """Numbers, and names that are written like code, quoted or begin with a capital."""
    turning: frozenset[str]
    """Those of its words that turn advice around."""


def read(lesson: Lesson, /) -> Reading:
    """The normal form of title, content and description; kept for a while, since one lesson is compared with many."""
    return _read(lesson.title, lesson.content, lesson.description)


def read_text(text: str, /) -> Reading:
    """The normal form of a text alone."""
    return _read("", text, "")


@lru_cache(maxsize=1024)
def _read(title: str, content: str, description: str) -> Reading:
    wording = " ".join(unicodedata.normalize("NFKC", f"{title}\n{content}\n{description}").split())
    if len(wording) > LONGEST:
        title, content, description = "", "", ""
    facts = set[str]()
    head, body = _sentences(title, facts, titled=True), (*_sentences(content, facts), *_sentences(description, facts))
    words = tuple(word for sentence in (*head, *body) for clause in sentence for word in clause)
    every = frozenset(words)
    return Reading(wording, head, body, words, every - TURNING - STOP_WORDS, frozenset(facts), every & TURNING)


def _sentences(text: str, facts: set[str], *, titled: bool = False) -> tuple[Sentence, ...]:
    text = _MARKUP.sub(" ", unicodedata.normalize("NFKC", text).replace("’", "'"))
    text = _DENIED.sub(
        lambda match: f"{(match[1] and 'can') or match[2] or (match[3] and 'will') or match[4]} not", text
    )
    text = _RATHER.sub("instead of", text.lower() if text.isupper() else text)
    quoted = {
        token[0].casefold() for q in _QUOTED.finditer(text) for token in compiled(_TOKEN).finditer(q[0].strip('`"“”'))
    }
    read = (_sentence(part, quoted, facts, titled=titled) for part in _STOPS.split(text) if part and part.strip())
    return tuple(sentence for sentence in read if any(sentence))


def _sentence(text: str, quoted: set[str], facts: set[str], *, titled: bool) -> Sentence:
    clauses: list[list[str]] = [[]]
    opens = True
    for match in compiled(_TOKEN).finditer(text):
        token = match[0]
        if match.lastgroup == "comma":
            clauses.append([])
            opens = True
            continue
        is_code = match.lastgroup != "word" or bool(_CODED.search(token))
        folded = token if _CASED.fullmatch(token) and not opens else token.casefold()
        after_number = bool(clauses[-1]) and clauses[-1][-1][-1:].isdigit()
        word = folded.replace(",", "") if is_code else normal(folded, unit=after_number)
        is_name = (len(token) > 1 and token.isupper()) or (token[0].isupper() and not (opens or titled))
        opens = False
        if is_code or is_name or folded in quoted:
            facts.add(word)
        if word and word not in FILLERS:
            clauses[-1].append(word)
    if DENIALS.isdisjoint(word for clause in clauses for word in clause):
        clauses = [[word for word in clause if word != "always"] for clause in clauses]
    return tuple(tuple(clause) for clause in clauses if clause)


@lru_cache(maxsize=4096)
def normal(word: str, /, *, unit: bool = False) -> str:
    """One word without the endings of plurals, third persons and -ing, in one spelling, numbers as figures."""
    word = word.removesuffix("'s").replace("'", "").replace("-", "")
    word = _BRITISH.sub(lambda match: _SPELT[match[0]], _SAME.get(word, word))
    if unit:
        word = _UNITS.get(word, word)
    if word in _WHOLE or len(word) < 4 or not word.isascii():
        return word
    for ending, put in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word.removesuffix(ending) + put if _VOWEL.search(word.removesuffix(ending)) else word
            break
    return word.removesuffix("e") if len(word) > 3 else word


def without_links(words: tuple[str, ...], /) -> tuple[str, ...]:
    """`words` without those that only join two clauses in their order."""
    return tuple(word for word in words if word not in _LINKS)
