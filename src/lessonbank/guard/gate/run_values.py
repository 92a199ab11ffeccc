"""Knows the values of runs and where each came from, so that no lesson repeats what belongs to one customer or case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, Literal

from lessonbank.types import Json, Observation, ToolCall, Trajectory

from ._empty import DENSE
from ._literals import COMMON
from ._lookalikes import LookAlike, Sought, is_thing, look_alikes, people
from ._lookalikes import is_ordinary as is_ordinary
from ._run_texts import DEPTH, FIELD, READ, answered, arguments, ends, leaves, listed, nfc, said_by_user, texts_of
from ._run_texts import parsed as parsed

REQUEST: Final = "the request"
Source = str
"""Where a value came from: `the request`, `find_customer's result`, or an empty text where the agent chose it."""
Level = Literal["prose", "command"]

_PAGE: Final = 4_000
"""Characters of one result in plain text in which names are looked for, from each end."""
_LONGEST: Final = 16
"""Words of a value that are looked for as a whole; of a longer one only what looks personal is."""
_INSTRUCTIONS: Final = 100_000
"""Characters of a run's instructions that are looked at."""
_TOKEN = re.compile(rf"\d+(?:[.,]\d+)*(?![^\W_])|{DENSE.pattern}|(?:(?!{DENSE.pattern})[^\W_])+")
_ASCII_TOKEN = re.compile(r"\d+(?:[.,]\d+)*(?![0-9A-Za-z])|[0-9A-Za-z]+", re.ASCII)
"""The same for a text of ASCII, several times as fast."""
_DIGIT = re.compile(r"\d")
PAIR_OR_WORDS = Sought(
    r"""["']([^\W\d]\w{0,40}+)["']\s{0,4}:\s{0,4}(?:"([^"\n]{1,300})"|'([^'\n]{1,300})'|(-?\d[\d.]{0,30}))"""
    r"""|(?<![\w"'])([^\W\d]\w{0,40}+)=(?:"([^"\n]{1,300})"|'([^'\n]{1,300})'|([^\s,;)"']{1,200}))"""
    # Words with no pair, all at once: to try each of their letters takes three times as long.
    r"""|\w++(?:[^\w"']++\w++(?!=))*+"""
)
_LINE_PAIR = re.compile(r"^[ \t*-]{0,8}([^\W\d][\w -]{0,40}?)[ \t]{0,4}:[ \t]{1,8}(\S[^\n]{0,300})$", re.MULTILINE)
_COMMAND = re.compile(r"(?:bash_|shell_)?(?:command|cmd|script|code)s?")
_SEPARATORS: Final = (",", ";", "|", "\t")
_ROWS: Final = 200
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_-]{0,39}")
_PARTS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PERSONAL = re.compile(
    r"name|surname|street|address|\baddr|city|town|zip|postal|postcode|mail|phone|mobile|\btel|fax|birth|\bdob|ssn"
    r"|passport|licen[cs]e|login|customer|client|patient|passenger|guest|member|owner|holder|contact|recipient|sender"
    r"|employee|person|author|assignee|attendee|user|iban|account|card|company|nombre|apellido|prenom|prénom|nachname"
    r"|vorname|adresse|direcc|stra(?:ss|ß)e|kunde|cliente|telefon|correo|имя|адрес|фамилия|телефон|氏名|住所|姓名|地址"
)
_IMPERSONAL = re.compile(
    r"file|tool|host|class|func|method|module|package|path|table|column|branch|repo|field|type|status|state|action|role"
)
_COUNTED = re.compile(r"status|code|exit|version|page|limit|count|line|port|size|total_results|step|retries|timeout")
_GENERIC = frozenset(("id", "name", "number", "value", "key", "code", "type", "no", "nr"))
_CONSTANTS = frozenset(("none", "null", "nil", "true", "false", "undefined", "nan"))


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a run: the noun that names it, where it was first seen, and whether it is somebody's."""

    noun: str
    source: Source
    step: int
    """The step that brought it, counted from 1; 0 is the request."""
    private: bool


@dataclass
class RunValues:
    """Every value of some runs of one task, by its words."""

    runs: Sequence[Trajectory] = ()
    known: dict[str, Value] = field(default_factory=dict[str, Value])
    longest: dict[str, int] = field(default_factory=dict[str, int])
    """The first word of a known value to the words of the longest one that begins so."""
    vocabulary: set[str] = field(default_factory=lambda: set(_CONSTANTS))
    """Words of tools and fields, of closed sets and of programs (`name=None`): they name nobody."""
    request: str = ""
    repeated: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Fields with values that stand in several of the runs."""
    listed: set[str] = field(default_factory=set[str])
    """Values that a tool's own schema lists."""
    _alike: dict[str, tuple[LookAlike, ...]] = field(default_factory=dict[str, tuple[LookAlike, ...]])

    @classmethod
    def of(cls, runs: Sequence[Trajectory], /) -> RunValues:
        """The values of `runs`. Linear in their size."""
        self = cls(runs)
        for run in runs:
            self._learn_names(run)
        told = list(dict.fromkeys(text for run in runs for text in (ends(run.task), *said_by_user(run))))
        self.request = words_of(*told)
        in_runs: dict[tuple[str, str], set[int]] = {}
        for text in told:
            self._take_text(text, REQUEST, 0, parts=True)
        for number, run in enumerate(runs):
            for pair in self._take_run(run):
                in_runs.setdefault(pair, set()).add(number)
        self.repeated = {pair for pair, seen in in_runs.items() if len(seen) > 1}
        return self

    # --- what a lesson may say ---------------------------------------------------------------------------------------

    def mask(self, text: str, /, *, level: Level = "prose") -> str:
        """`text` with a slot such as `<order id>` for each value that it repeats or that looks personal.

        In a `command` plain numbers and dates stay unless the run has them: they are its options.
        """
        text = nfc(text)
        spans = list(self._repeats(text))
        for found in look_alikes(text):
            if level == "prose" or _stands_out(text, found):
                spans.append((found.start, found.end, found.kind))
        return _replaced(text, spans)

    def mask_private(self, text: str, /) -> str:
        """`text` with a slot for each private value of the runs; what only looks so goes if the runs have it.

        An amount or a date of the agent's instructions is a rule and stays.
        """
        text = nfc(text)
        spans = list(self._repeats(text, only_private=True))
        alike = [(x.start, x.end, x.kind) for x in look_alikes(text)]
        # A value may come thousands of times, and the run may be long: each different one is looked for once.
        told = {(text[start:end], kind) for start, end, kind in alike}
        there = {one for one in told if not _is_usual_number(*one) and words_of(_told_by(*one)) in self._words_of_runs}
        spans += [span for span in alike if (text[span[0] : span[1]], span[2]) in there]
        values = {text[start:end] for start, end, _ in spans}
        rules = {value for value in values if _is_rule(value, self._instructed)}
        return _replaced(text, [span for span in spans if text[span[0] : span[1]] not in rules])

    @cached_property
    def _words_of_runs(self) -> str:
        return words_of(*(text for run in self.runs for text in texts_of(run)))

    @cached_property
    def _returned(self) -> Mapping[str, tuple[int, Source]]:
        """A word that some result brought, to the step and the tool that did first."""
        words: dict[str, tuple[int, Source]] = {}
        read: set[str] = set()
        steps = [(number, step) for run in self.runs for number, step in enumerate(run.steps, 1)]
        for number, source, seen in ((number, *one) for number, step in steps for one in answered(step)):
            new = set(ends(seen.text).lower().split()) - read
            read |= new
            for token in _pattern_for(told := " ".join(new)).findall(told):
                words.setdefault(token, (number, source))
        return words

    @cached_property
    def _instructed(self) -> str:
        return words_of(*(run.instructions[:_INSTRUCTIONS] for run in self.runs))

    def slot(self, key: str, value: str, /, *, step: int) -> str:
        """What stands for the argument `value` of the call made at `step`: its field and where it came from."""
        found = self.known.get(words_of(value).strip())
        noun = noun_of(key) or "value"
        returned = found is not None and bool(found.source) and 0 < found.step < step
        if self.in_request(value) and not (returned and found is not None and found.noun == noun):
            return f"<{noun} from {REQUEST}>"
        if returned and found is not None:
            return f"<{found.noun} from {found.source}>"
        told = [self._returned.get(word) for word in words(value)]
        if told and all(one is not None and one[0] < step for one in told):
            return f"<{noun} from {max(one for one in told if one is not None)[1]}>"
        return f"<chosen {noun}>"

    def is_closed(self, key: str, value: Json, /) -> bool:
        """Whether an argument is of a small set and says nothing of anybody: a switch, a listed or usual choice."""
        if value is None or isinstance(value, bool):
            return True
        if not isinstance(value, str) or not re.fullmatch(r"[a-z]{2,15}(?:[_ -][a-z]{2,15}){0,2}", value):
            return False
        if value in self.listed:
            return True
        usual = (key, value) in self.repeated and all(map(is_ordinary, words(value)))
        return usual and not is_personal(key) and not self.in_request(value)

    def is_field(self, name: str, /) -> bool:
        """Whether a key of some data names a field, and is no value itself."""
        parts = _PARTS_OF_NAME.findall(name) if _PLAIN_NAME.fullmatch(name) else []
        known = self.known.get(words_of(name).strip()) if parts else None
        usual = name[:1].islower() or all(map(is_ordinary, map(str.lower, parts)))
        return bool(parts) and usual and not (known and known.private)

    def in_request(self, value: str, /) -> bool:
        """Whether the words of `value` stand in the request."""
        joined = words_of(value).strip()
        return bool(joined) and f" {joined} " in self.request

    def _repeats(self, text: str, *, only_private: bool = False) -> Iterator[tuple[int, int, str]]:
        """Where `text` repeats a known value: the longest first, each word once."""
        read = tokens(text)
        at = 0
        while at < len(read):
            for end in range(min(len(read), at + self.longest.get(read[at][0], 0)), at, -1):
                found = self.known.get(" ".join([token for token, _, _ in read[at:end]]))
                if found is not None and (found.private or not only_private):
                    yield read[at][1], read[end - 1][2], found.noun
                    at = end
                    break
            else:
                at += 1

    # --- what a run has ----------------------------------------------------------------------------------------------

    def _learn_names(self, run: Trajectory) -> None:
        for step in run.steps:
            for call in step.action.calls:
                self._name(call.name)
                self._name_fields(arguments(call))
        for enum in listed(run.metadata.get("tools")):
            self.listed.add(enum)
            self.vocabulary.update(words(enum))

    def _name_fields(self, value: Json, depth: int = 0) -> None:
        if isinstance(value, dict) and depth < DEPTH:
            for key, inner in value.items():
                if self.is_field(key):
                    self._name(key)
                self._name_fields(inner, depth + 1)

    def _name(self, name: str) -> None:
        self.vocabulary |= {part.lower() for part in _PARTS_OF_NAME.findall(name) if len(part) > 1}

    def _take_run(self, run: Trajectory) -> Iterator[tuple[str, str]]:
        """Take in the values of `run`; gives the fields and values of its calls."""
        for number, step in enumerate(run.steps, 1):
            for call in step.action.calls:
                given = arguments(call)
                if isinstance(given, str):
                    self._take_text(given, "", number)
                else:
                    yield from self._take_leaves(given, "", number)
            runs_commands = any(map(is_command, step.action.calls))
            for source, seen in answered(step):
                self._take_result(seen, source, number, parts=not runs_commands)
        self._take_text(run.answer or "", "", len(run.steps))

    def _take_result(self, seen: Observation, source: Source, step: int, *, parts: bool) -> None:
        data = parsed(seen.text)
        if data is not None:
            for _ in self._take_leaves(data, source, step):
                pass
        else:
            self._take_text(ends(seen.text), source, step, parts=parts)

    def _take_leaves(self, data: Json, source: Source, step: int) -> Iterator[tuple[str, str]]:
        for key, parent, value in leaves(data):
            if isinstance(value, str) and _COMMAND.fullmatch(key.lower()):
                self._take_text(value, source, step)
                continue
            self._take(value, key, parent, source, step)
            if isinstance(value, str):
                yield key, value

    def _take_text(self, text: str, source: Source, step: int, *, parts: bool = False) -> None:
        """Take in what looks personal in a text, and what it says field by field."""
        if not text:
            return
        # A lesson loses every number, whosever it is: only of the request it matters how they were written.
        text = nfc(ends(text, READ if source == REQUEST else _PAGE))
        for found in look_alikes(text) if source == REQUEST else people(text):
            self._take_look_alike(text[found.start : found.end], found, source, step, parts=parts)
        for pair in PAIR_OR_WORDS.finditer(text):
            if pair.lastindex is None:
                continue
            key, value = [part for part in pair.groups() if part is not None]
            if is_personal(key) or _DIGIT.search(value):
                self._take(value, key, "", source, step)
        for pair in _LINE_PAIR.finditer(text):
            if is_personal(pair[1]):
                self._take(pair[2], pair[1], "", source, step)
        for key, cell in _cells(text):
            self._take(cell, key, "", source, step)

    def _take_look_alike(self, value: str, found: LookAlike, source: Source, step: int, *, parts: bool) -> None:
        kept = Value(found.kind, source, step, private=not _is_usual_number(value, found.kind))
        read = words(value)
        if _tells(read) and not _CONSTANTS.issuperset(read):
            self._keep(" ".join(read), kept)
        if parts and found.kind == "name":
            self._keep_parts(value, kept)

    def _take(self, value: Json, key: str, parent: str, source: Source, step: int) -> None:
        if value is None or isinstance(value, bool):
            return
        text = str(value)
        read = words(text)
        if not _tells(read) or len(read) > _LONGEST:
            if isinstance(value, str):
                self._take_look_alikes_of(value, source, step)
            return
        personal = is_personal(key)
        if self._is_plain(text, read, personal=personal):
            return
        noun = noun_of(key, parent) or "value"
        private = personal or _looks_private(text, read, key)
        kept = Value(noun, source, step, private)
        self._keep(" ".join(read), kept)
        if isinstance(value, str) and personal:
            self._keep_parts(text, kept)
        if isinstance(value, str) and len(read) > 1:
            self._take_look_alikes_of(value, source, step)

    def _take_look_alikes_of(self, value: str, source: Source, step: int) -> None:
        text = nfc(ends(value))
        if text not in self._alike:  # the fields of many calls and results have the same values
            self._alike[text] = tuple(look_alikes(text))
        for found in self._alike[text]:
            self._take_look_alike(text[found.start : found.end], found, source, step, parts=bool(source))

    def _is_plain(self, text: str, read: Sequence[str], *, personal: bool) -> bool:
        """Whether a value is nothing but ordinary words, or the words that tools and fields are named by."""
        if personal and len(read) > 1:
            return False
        others = [token for token in read if token not in self.vocabulary]
        return not others or (text.islower() and all(map(is_ordinary, others)))

    def _keep_parts(self, text: str, value: Value) -> None:
        for token in words(text):
            telling = len(token) > 2 and token.isalpha() and not is_ordinary(token) and token not in self.vocabulary
            if telling and not is_thing(token):
                self._keep(token, value)

    def _keep(self, joined: str, value: Value) -> None:
        old = self.known.get(joined)
        if not joined:
            return
        first, length = joined.partition(" ")[0], joined.count(" ") + 1
        self.longest[first] = min(_LONGEST, max(length, self.longest.get(first, 0)))
        if old is None or (old.source == "" and value.source):
            self.known[joined] = value
        elif value.private and not old.private:
            self.known[joined] = Value(old.noun, old.source, old.step, private=True)


def is_command(call: ToolCall, /) -> bool:
    """Whether a call runs a line of a shell or a program."""
    given = call.arguments
    return isinstance(given, dict) and len(given) < 4 and any(map(_COMMAND.fullmatch, map(str.lower, given)))


def is_command_field(name: str, /) -> bool:
    """Whether a field of this name holds a line of a shell or a program."""
    return _COMMAND.fullmatch(name.lower()) is not None


def tokens(text: str, /) -> list[tuple[str, int, int]]:
    """The words of `text` without case, accents and signs, each with its place."""
    read: list[tuple[str, int, int]] = []
    for found in _pattern_for(text).finditer(text):
        word = found[0]
        if word[0].isdigit() and not word.isdigit():
            word = _number(word) if "." in word or "," in word else word.casefold()
        elif word.isascii():
            word = word.lower()
        else:
            bare = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
            word = bare.casefold() or word
        read.append((word, *found.span()))
    return read


def words(text: str, /) -> list[str]:
    """The words of `text` as `tokens` reads them."""
    if not text.isascii():
        return [token for token, _, _ in tokens(text)]
    return [_number(word) if "." in word or "," in word else word for word in _ASCII_TOKEN.findall(text.lower())]


def _pattern_for(text: str) -> re.Pattern[str]:
    return _ASCII_TOKEN if text.isascii() else _TOKEN


def words_of(*texts: str) -> str:
    """The words of `texts` in one line with a blank at both ends, so that a value can be looked for in it."""
    return " ".join(["", *chain.from_iterable(map(words, map(nfc, texts))), ""])


@lru_cache(maxsize=1024)
def noun_of(key: str, parent: str = "") -> str:
    """`order_id` as people say it; a key such as `id` takes the name of what it stands in."""
    parts = [part.lower() for part in re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key[:60]))][:4]
    if len(parts) == 1 and parts[0] in _GENERIC and parent:
        before = noun_of(parent)
        before = before[:-1] if before.endswith("s") and not before.endswith("ss") else before
        return f"{before} {parts[0]}".strip()
    return " ".join(parts)


@lru_cache(maxsize=1024)
def is_personal(key: str, /) -> bool:
    """Whether a field of this name holds what belongs to a person."""
    low = key.casefold()
    return bool(_PERSONAL.search(low)) and not (_IMPERSONAL.search(low) and "name" in low)


def _replaced(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """`text` with the slot of each span; of those that overlap the longest names it."""
    if not spans:
        return text
    merged: list[tuple[int, int, str, int]] = []
    for start, end, noun in sorted(spans, key=lambda span: (span[0], -span[1])):
        size = end - start
        if merged and start < merged[-1][1]:
            first, last, told, best = merged[-1]
            merged[-1] = (first, max(last, end), noun if size > best else told, max(best, size))
        else:
            merged.append((start, end, noun, size))
    parts: list[str] = []
    done = 0
    for start, end, noun, _ in merged:
        while end < len(text) and unicodedata.category(text[end])[0] == "M":
            end += 1
        slot = f"<{noun}>"
        between = text[done:start]
        if not (parts and parts[-1] == slot and not between.strip(" ,")):
            parts += [between, slot]
        done = max(done, end)
    return "".join((*parts, text[done:]))


def _told_by(value: str, kind: str) -> str:
    """What of a value a run must have: of an e-mail address the person, who may have an account of that name."""
    return value.partition("@")[0] if kind == "e-mail" else value


def _is_rule(value: str, instructed: str) -> bool:
    """Whether a number stands in the agent's instructions: a fee or a limit, and nobody's."""
    return (
        bool(instructed)
        and len(_DIGIT.findall(value)) < 7
        and (value[:1].isdigit() or value[:1] in "$€£" or value[-1:].isdigit())
        and words_of(value) in instructed
    )


def _is_usual_number(value: str, kind: str, /) -> bool:
    """Whether a number or a word with digits is one that everybody has: a count, a version, a status, a year."""
    return kind in ("number", "id") and bool(COMMON.fullmatch(value) or re.fullmatch(r"(?:19|20)\d\d", value))


def _stands_out(text: str, found: LookAlike) -> bool:
    """Whether something in a command is more than an option, a version or a line's number."""
    value = text[found.start : found.end]
    digits = sum(map(str.isdigit, value))
    if found.kind == "phone":
        return "+" in value or "(" in value
    if found.kind in ("date", "number", "id"):
        return digits >= 5 and "/" not in value
    return found.kind not in ("amount", "version") or any(sign in value for sign in "$€£")


def _looks_private(text: str, read: Sequence[str], key: str) -> bool:
    if _DIGIT.search(text):
        return not (_COUNTED.search(key.lower()) and text.isdigit() and len(text) <= 3)
    if len(read) == 1:
        return not text.isascii()
    return not text.isascii() or any(x.end - x.start >= len(text.strip()) - 2 for x in people(text))


def _tells(read: Sequence[str]) -> bool:
    """Whether a value is long enough to be somebody's: three letters, two digits, two signs of a dense script."""
    size = sum(map(len, read))
    return size >= 3 or (size == 2 and (read[0].isdigit() or bool(DENSE.match(read[0]))))


def _cells(text: str) -> Iterator[tuple[str, str]]:
    """The cells of a table in plain text, each with the head of its column."""
    if "\n" not in text:
        return
    lines = [line.strip().strip("|") for line in text.splitlines()[:_ROWS] if line.strip()]
    for number, line in enumerate(lines[:5]):
        sign = max(_SEPARATORS, key=line.count)
        heads = [head.strip() for head in line.split(sign)]
        below = lines[number + 1 :]
        if len(heads) < 2 or not below or below[0].count(sign) != len(heads) - 1:
            continue
        if all(FIELD.fullmatch(head) for head in heads) and any(map(is_personal, heads)):
            for row in below:
                yield from zip(heads, (cell.strip() for cell in row.split(sign)[: len(heads)]), strict=False)
            return


def _number(word: str) -> str:
    """`1,204.50` and `1204.5` are one number."""
    if "," in word and "." in word:
        decimal = max(word.rfind(","), word.rfind("."))
        word = re.sub("[.,]", "", word[:decimal]) + "." + word[decimal + 1 :]
    elif re.fullmatch(r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3}){2,}", word):
        return re.sub("[.,]", "", word)
    elif word.count(",") == 1:
        word = word.replace(",", ".")
    return word.rstrip("0").rstrip(".") if word.count(".") == 1 else word
