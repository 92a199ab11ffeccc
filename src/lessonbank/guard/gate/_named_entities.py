"""Finds in a text what looks like it belongs to one person or one case: names, addresses, numbers, dates, mail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from lessonbank._base.patterns import compiled
from lessonbank._base.tables import read_once
from lessonbank.guard.redact import personal_in

Kind = Literal["name", "address", "amount", "version", "date", "number", "id"]


class Entity(NamedTuple):
    """A part of a text, and what it looks like."""

    start: int
    end: int
    kind: str
    """A `Kind`, or what the redactor calls it: `e-mail`, `phone`."""


_WORDS: Final = "ordinary_words.txt"
_THINGS: Final = "names_of_things.txt"
_WORK: Final = "words_of_work.txt"
_NOUN: Final = re.compile(
    r"\w{5,}(?:ung|ungen)|\w{4,}(?:heit|keit|schaft|tion|tionen|tät|täten|zione|zioni|ción|ciones|ção|ções|iere)"
)
"""How nouns for what one does end, and in German the verb for it: both may begin with a capital, and name nobody."""
_ALSO_NAMES = frozenset(
    re.findall(
        r"\w+",
        "april art august baker banks baron bill bishop black brown bush carter chance chase cherry cook "
        "cross dale day dean dick drew english field fields fisher ford fox frank good grace grant gray green "
        "hall hill holly hope hunt hunter jan jay joy june king lake lance lane lee long love major mark "
        "marsh mason max may miles moon noble north page park pat pope porter price reed rice rich rivers rod "
        "rose savage sharp short sky small snow stark stone street strong summer swift wade ward waters wells "
        "west white will wise wood young flug lager preis ordner vert conte reis bo ed ho hu jo li lu ng wu xi xu yu ",
    )
)


_CASELESS = "\u0590-\u08ff\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_FOREIGN = rf"[^\x00-\x7f](?<=[\w\s{_CASELESS}])"


@lru_cache(maxsize=8)
def is_ascii(text: str, /) -> bool:
    """Whether all letters, digits and blanks of `text` are ASCII: other signs, such as dashes, change no word."""
    return text.isascii() or not compiled(_FOREIGN).search(text)


class Sought:
    """A pattern in two forms: for any text, and, several times as fast, for a text whose letters are ASCII."""

    def __init__(self, source: str, /, *, any_case: bool = False) -> None:
        self.source, self.any_case = source, any_case

    @cached_property
    def general(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE if self.any_case else 0)

    @cached_property
    def ascii(self) -> re.Pattern[str]:
        source = self.source
        for general, plain in _PLAIN:
            source = source.replace(general, plain)
        return re.compile(source, re.ASCII)


def sought_in(text: str, /, *patterns: Sought) -> list[Iterator[re.Match[str]]]:
    """The matches of each pattern in `text`. Where the case does not matter, those in ASCII are in small letters."""
    if not is_ascii(text):
        return [sought.general.finditer(text) for sought in patterns]
    low = text.lower()
    return [sought.ascii.finditer(low if sought.any_case else text) for sought in patterns]


_PLAIN: Final = (
    (r"[^\W\d_a-z]", "[A-Z]"),
    (r"[^\W\d_]", "[A-Za-z]"),
    (r"[^\W\d]", "[A-Za-z_]"),
    (r"[^\s", r"[^ \t-\r\x1c-\x1f"),
    (r"\s", r"[ \t-\r\x1c-\x1f]"),
)
"""Classes of characters, each with its characters in ASCII."""
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "prof", "sir", "herr", "frau", "señor", "señora", "mme"))
_PARTICLE = r"de|la|las|los|del|da|das|do|dos|di|du|van|von|der|den|ter|ten|zu|le|bin|ibn|al|el|bint|y|e"
_PARTICLES = frozenset(_PARTICLE.split("|"))
# A pattern that begins with a sign, and looks behind it then, skips a text much faster than one that looks first.
_CAPITAL = r"[^\W\d_a-z](?<![^\W\d_].)[^\W\d_]*+(?:['’-][^\W\d_]++)*+"
_CAPITALISED = Sought(_CAPITAL)
_BETWEEN = rf"(?:\.?[ \t]+|[ \t]*\n[ \t]*)(?:(?:{_PARTICLE})[ \t]+){{0,3}}"
_GAP = re.compile(_BETWEEN)
_CAPITALISED_ROW = Sought(rf"{_CAPITAL}(?:{_BETWEEN}{_CAPITAL})+")
_NAME_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")

_STREET = (
    "street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|place|pl|square|sq|terrace|way|highway|hwy"
    "|parkway|pkwy|crescent|close|row"
)
_CITY = r"(?:\s*,\s*[^\W\d_a-z][^\W\d_]+(?:[ '’-][^\W\d_a-z][^\W\d_]+){0,2}){0,2}"
_HAS_DIGIT = re.compile(r"\d")
_GERMANIC = r"(?:stra(?:ß|ss)e|str\.|weg|gasse|allee|platz|gatan|vägen|laan|straat)\s+\d"
_GERMANIC_END = "(?:stra(?:ß|ss)e|weg|gasse|allee|platz|gatan|vägen|laan|straat)"
_ROMANCE = r"(?:rue|calle|via|avenida|rua|ulica|ul\.|улица|ул\.|plaza|piazza|viale|chemin|quai)\s"
_FRENCH = "(?:rue|avenue|boulevard|chemin|place|quai|allée)"
# What an address of each form must have, in small letters, and the form.
_ADDRESSES = (
    (
        rf"\s(?:{_STREET})\b",
        rf"(?i:\d(?<![\w.].)\d{{0,4}}[a-z]?(?:[-/]\d{{1,4}})?\s+(?:[^\W\d][\w'’.-]{{0,30}}\s+){{1,4}}?(?:{_STREET})\b\.?"
        rf"(?:,?\s*(?:apt|apartment|suite|unit|flat|ste|no)\b\.?\s*#?\w{{1,8}})?){_CITY}",
    ),
    (_GERMANIC, rf"(?i:\b[^\W\d_][\w.-]{{0,30}}{_GERMANIC}\d{{0,4}}(?:\s?[a-z]\b)?){_CITY}"),
    (rf"{_GERMANIC_END}\b", rf"\d(?<![\w.].)\d{{0,4}}[a-z]?,?\s+[^\W\d_a-z][\w.-]{{0,30}}{_GERMANIC_END}\b{_CITY}"),
    (_ROMANCE, rf"(?i:\b{_ROMANCE}\s*(?:[\w'’.-]{{1,30}}\s+){{0,4}}?[\w'’.-]{{1,30}},?\s+\d{{1,5}}\b){_CITY}"),
    (
        rf"\s{_FRENCH}\s",
        rf"(?i:\d(?<![\w.].)\d{{0,4}},?\s+(?:bis\s+)?{_FRENCH}\s+"
        rf"(?:(?:de|du|des|la|le|les)\s+|[ld]['’]){{0,3}}[\w'’-]{{2,30}})(?:\s[^\W\d_a-z][\w'’-]{{1,30}}){{0,2}}{_CITY}",
    ),
    (r"box\s+\d", r"(?i:\bp\.?\s?o\.?\s?box\s+\d+)"),
    (
        "[丁目番号號室路区區市街町]",
        r"[\u3040-\u30ff\u3400-\u9fff]{2,20}\d[\d‐－-]*(?:[丁目番地号號室楼樓]+[\d-]*)*",
    ),
)
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?|januar|februar|märz|mai|juni|juli|oktober|dezember|enero|marzo|abril|mayo|junio|julio"
)
_MONTH_DATE = Sought(
    rf"\b(?=[adefjmnos])(?:{_MONTH})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?"
    rf"|(?<![\w.])\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?:{_MONTH})\b\.?(?:,?\s+\d{{4}}\b)?",
    any_case=True,
)
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:T[\d:.]+Z?)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
_MONEY = r"[$€£¥₹₽₩]|usd|eur|gbp|jpy|chf|inr|cny|cad|aud|dollars?|euros?|pounds?|cents?|francs?|yen|rupees?"
_AMOUNT = Sought(
    rf"(?=[$€£¥₹₽₩uegjcidapfyr])(?:{_MONEY})\s?-?\d[\d.,]*(?<![.,])"
    rf"|(?<![\w.,])-?\d[\d.,]*(?<![.,])\s?(?:{_MONEY})(?!\w)",
    any_case=True,
)
_NUMBERED = Sought(r"(?:#|(?<!\w))[^\W\d]*+(?:\d\w*+(?:[-.,:+@'’]\w++)*+|(?<=[^\W\d])(?:[-.:+@]\w++)++)")
_DIGITS = re.compile(r"\d[\d.,'’]*")
_CENTS = re.compile(r"[.,]\d{1,2}$")
_VERSION_AFTER = re.compile(r"(?i)\b(?:release|version|v\.?|ver\.)\s$")
_DATE_SLASHED = Sought(r"\d(?<![\w/.].)(?:\d?/\d{1,2}/\d{2,4}|\d{3}/\d\d/\d\d)(?![\w/])")
_COMMON_FORMS = re.compile(
    r"(?i)(?:utf|iso|rfc|sha|http|tls|pep|python|x)[-/ ]?\d[\d.-]*"
    r"|[a-z]{3,}_?\d|\d(?:st|nd|rd|th|x|k|d|h|m|s|gb|mb|%)|v\d(?:\.\d)*"
)

_NAMED_AFTER = Sought(
    r"\b(?=[cdeghimnpstuм])"  # what one of the words begins with: most words are passed over at once
    r"(?:(?P<sure>name is|name['’]s|name:|named|call me|signed|sincerely|heiße|m['’]appelle|me llamo|nombre es"
    r"|mi chiamo|nome é|меня зовут)|i am|i['’]m|this is|it['’]s|customer|passenger|patient|client|guest|member|user"
    r"|employee|student|mr|mrs|ms|dr),?\.?\s+(?=[^\W\d_])",
    any_case=True,
)
_NAMED_THING = re.compile(
    r"(?i)\b(?:module|package|file|folder|function|class|method|column|table|field|attribute|argument|parameter|option"
    r"|variable|branch|command|test|key|label)s?\s$"
)
"""What stands before `named` where no person is told: `No module named x`."""
_NAMED_DENSE = (
    r"(?:我叫|我是|名字是|姓名[是:：]?|私は|名前は|客户|顾客|客戶)\s*(?P<it>[\u3040-\u30ff\u3400-\u9fff・]{2,8}?)"
    r"(?=[，,。、.!\s]|です|と申|さん|様|$)",
    r"(?P<it>[\u3400-\u9fff\u30a0-\u30ff・]{2,6}?)(?=さん|様|さま|先生|女士|小姐|氏)",
    r"(?:저는\s*)?(?P<it>[\uac00-\ud7a3]{2,4})(?=님|씨|입니다|이라고)",
    r"(?:اسمي|שמי|قسمي)\s+(?P<it>\w{2,20}(?:\s\w{2,20})?)",
    r"ชื่อ\s*(?P<it>[\u0e00-\u0e7f]{2,20}(?:\s[\u0e00-\u0e7f]{2,20})?)",
    r"नाम\s+(?P<it>[\u0900-\u097f]{2,20}(?:\s[\u0900-\u097f]{2,20})?)(?=\s+है)",
)
_CASELESS_RUN = rf"[{_CASELESS}]+(?:[ ・·]+[{_CASELESS}]+)*"
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]+")


_BODIES: Final = frozenset(
    form
    for word in re.findall(
        r"\w+",
        "Inc Ltd LLC Corp Corporation GmbH PLC League University Institute Foundation Federation Association Council "
        "Airlines Airways Energy Framework Technologies Industries",
    )
    for form in (word, word.upper(), word.capitalize())
)
"""What ends the name of a company, a body or a program: it and the words before it name no person."""


@read_once
def _names_of_things() -> frozenset[str]:
    """Names of products, companies and countries that everybody knows. A row of nothing else is no person's name."""
    return frozenset(Path(__file__).with_name(_THINGS).read_text(encoding="utf-8").split())


@read_once
def ordinary_words() -> frozenset[str]:
    """Words that everybody uses: where one stands alone, it names nobody."""
    return frozenset(Path(__file__).with_name(_WORDS).read_text(encoding="utf-8").split())


@read_once
def _words_of_work() -> frozenset[str]:
    """What other languages than English call tasks, and the things that tasks are about."""
    return frozenset(Path(__file__).with_name(_WORK).read_text(encoding="utf-8").split())


def unusual(words: Iterable[str], /) -> set[str]:
    """Return the `words` (in small letters) that are not ordinary."""
    known = ordinary_words()
    return {w for w in words if not (len(w) < 3 or w in known or (w[-1] == "s" and w[:-1] in known))}


def is_ordinary(word: str, /) -> bool:
    """Whether `word` (in small letters) or its singular is an ordinary word."""
    return not unusual((word,))


@lru_cache(maxsize=64)
def find_entities(text: str, /, *, names: bool = True) -> Sequence[Entity]:
    """Every part of `text` that looks personal, in no order; parts may overlap. Linear in the text.

    Kept for a moment: of a task the values are taken in, and then it is masked, and fields say the same again.
    """
    alike = people(text) if names else []
    alike += [Entity(entity.start, entity.end, entity.kind) for entity in personal_in(text)]
    if not _HAS_DIGIT.search(text):
        return alike
    low = text.lower()
    for hints, pattern in _ADDRESSES:
        if compiled(hints).search(low):
            alike += [Entity(*match.span(), "address") for match in compiled(pattern).finditer(text)]
    *known, numbers = sought_in(text, _AMOUNT, _MONTH_DATE, _DATE_SLASHED, _NUMBERED)
    for kind, matches in zip(("amount", "date", "date"), known, strict=True):
        alike += [Entity(*match.span(), kind) for match in matches]
    for match in numbers:
        if (kind := _kind_of_number(match[0])) is not None:
            is_version = kind == "amount" and _VERSION_AFTER.search(text, max(0, match.start() - 12), match.start())
            alike.append(Entity(*match.span(), "version" if is_version else kind))
    return alike


def _kind_of_number(word: str) -> Kind | None:
    bare = word.lstrip("#")
    if not any(map(str.isdigit, bare)) or len(bare) < 2 or (_COMMON_FORMS.fullmatch(bare) and bare == word):
        return None
    if _DATE.fullmatch(bare):
        return "date"
    if not _DIGITS.fullmatch(bare):
        return "id" if len(bare) > 2 else None
    return "amount" if _CENTS.search(bare) else "number"


def people(text: str, /) -> list[Entity]:
    """Names of persons: capitalised words in a row, what stands where a name is told, and names in another script."""
    names: list[Entity] = []
    rows, cues = sought_in(text, _CAPITALISED_ROW, _NAMED_AFTER)
    for row in rows:
        at = row.start()
        names += [Entity(at + start, at + end, "name") for start, end in _names_in(row[0])]
    names += [name for cue in cues if (name := _words_behind(text, cue))]
    if is_ascii(text):
        return names
    for pattern in _NAMED_DENSE:
        names += [Entity(*name.span("it"), "name") for name in compiled(pattern).finditer(text)]
    caseless = [run.span() for run in compiled(_CASELESS_RUN).finditer(text)]
    if sum(end - start for start, end in caseless) < sum(len(word) for word in _LATIN.findall(text)):
        names += [Entity(*span, "name") for span in caseless]
    return names


def names_after_cues(text: str, /) -> list[Entity]:
    """What stands where a name is told: `my name is`, `customer`, `Mr`."""
    return [name for cue in sought_in(text, _NAMED_AFTER)[0] if (name := _words_behind(text, cue))]


@lru_cache(maxsize=256)  # pages say the same again and again
def _names_in(text: str) -> Sequence[tuple[int, int]]:
    """Where names stand in a row of capitalised words."""
    rows: list[list[re.Match[str]]] = [[]]
    for match in sought_in(text, _CAPITALISED)[0]:
        is_body = match[0] in _BODIES
        if not is_body and not _is_capitalised(match[0]):
            continue
        if rows[-1] and not _in_a_row(text, rows[-1][-1], match):
            rows.append([])
        if is_body:
            rows[-1] = []
        else:
            rows[-1].append(match)
    return [name for row in rows if (name := _name_of(row))]


def _in_a_row(text: str, last: re.Match[str], match: re.Match[str]) -> bool:
    gap = text[last.end() : match.start()] if match.start() - last.end() < 24 else "…"
    if gap[:1] == "." and not (len(last[0]) == 1 or last[0].lower() in _TITLES):
        return False
    return gap == " " or _GAP.fullmatch(gap) is not None


def _name_of(row: list[re.Match[str]]) -> tuple[int, int] | None:
    """The part of a row of capitalised words that is a person's name: two words at least that are not ordinary.

    One of them must be more than the name of a thing that everybody knows, unless a title stands before it.
    """
    first, last = 0, len(row)
    while first < last and not _may_name(row[first][0]):
        first += 1
    while last > first and not _may_name(row[last - 1][0]):
        last -= 1
    inner = row[first:last]
    titled = first > 0 and row[first - 1][0].lower() in _TITLES
    telling = [word for word in inner if _is_telling(word[0]) and (titled or not is_thing(word[0].lower()))]
    is_name = telling and (titled or sum(_may_name(word[0]) for word in inner) > 1)
    return (inner[0].start(), inner[-1].end()) if is_name else None


def is_thing(word: str, /) -> bool:
    """Whether `word` (in small letters) is part of the name of a thing that everybody knows."""
    return word in _names_of_things()


def _may_name(word: str) -> bool:
    low = word.lower()
    return low in _ALSO_NAMES or _is_telling(word)


def _is_telling(word: str) -> bool:
    low = word.lower()
    if len(word) < 2 or low in _PARTICLES or low in _TITLES or not unusual((low,)):
        return False
    return not (low in _words_of_work() or _NOUN.fullmatch(low))


def _is_capitalised(word: str) -> bool:
    """Whether a word looks like a name: `Jane`, `O'Brien`, `McDonald`, the initial `J`; not `JSON`, not `GitHub`."""
    if not word[0].isupper():
        return False
    if word[1:].islower():  # most are
        return True
    rest = re.sub(r"['’-].|^(?:Mc|Mac|De|Di|La|Le|Van|Fitz)(?=[A-Z])", "", word[1:] if word[1:2] in "'’" else word)
    return len(word) == 1 or rest[1:] == rest[1:].lower()


def _words_behind(text: str, cue: re.Match[str]) -> Entity | None:
    """The words behind `cue` up to three, as long as none of them is an ordinary one."""
    if cue["sure"] == "named" and _NAMED_THING.search(text, max(0, cue.start() - 20), cue.start()):
        return None
    words: list[re.Match[str]] = []
    for word in _NAME_WORD.finditer(text, cue.end(), min(len(text), cue.end() + 80)):
        between = text[words[-1].end() : word.start()] if words else text[cue.end() : word.start()]
        if between.strip() or len(words) == 3 or not _may_name(word[0]):
            break
        words.append(word)
    is_told = words and (cue["sure"] or words[0][0][:1].isupper() or len(words) > 1)
    if is_told and any(_is_telling(word[0]) for word in words):
        return Entity(words[0].start(), words[-1].end(), "name")
    return None
