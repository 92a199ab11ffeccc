"""Knows the values of runs and where each came from, so that no lesson repeats what belongs to one customer or case."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise
from typing import Final, Literal

from lessonbank._base.patterns import compiled
from lessonbank.contracts.records import Json, Trajectory
from lessonbank.guard.sanitise import SLOT

from ._empty import DENSE
from ._literals import COMMON
from ._named_entities import Entity, find_entities, is_thing, people
from ._named_entities import is_ordinary as is_ordinary
from ._named_entities import unusual as unusual
from ._run_texts import FIELD, Part, Source, asked, ends, keys_of, leaves, listed, nfc, pairs_in, parts_of, texts_of
from ._run_texts import LOOKS as LOOKS
from ._run_texts import is_command as is_command
from ._run_texts import is_command_field as is_command_field
from ._run_texts import parsed as parsed

REQUEST: Final = "the request"
Level = Literal["prose", "command"]

_PAGE: Final = 4_000
"""Characters of one result in plain text in which names are looked for, from each end."""
_LONGEST: Final = 16
"""Words of a value that are looked for as a whole; of a longer one only what looks personal is."""
_ARGUMENT: Final = 20_000
"""Characters of an argument whose words are looked at."""
_INSTRUCTIONS: Final = 100_000
"""Characters of a run's instructions that are looked at."""
_TOKEN = rf"\d+(?:[.,]\d+)*(?![^\W_])|{DENSE}|(?:(?!{DENSE})[^\W_])+"
_ASCII_TOKEN = re.compile(r"\d+(?:[.,]\d+)*(?![0-9A-Za-z])|[0-9A-Za-z]+", re.ASCII)
"""The same for a text of ASCII, several times as fast."""
_DIGIT = re.compile(r"\d")
_LINE_PAIR = re.compile(
    r"\n(?=[^:\n]{1,53}+:[ \t])[ \t*-]{0,8}([^\W\d][\w -]{0,40}?)[ \t]{0,4}:[ \t]{1,8}(\S[^\n]{0,300})$", re.MULTILINE
)
"""A pattern that begins with a line break passes over a text several times as fast as one that begins with `^`."""
_SEPARATORS: Final = (",", ";", "|", "\t")
_HEAD: Final = 5
"""Lines of a text among which the head of a table is looked for."""
_ROWS: Final = 200
_CHOICE = re.compile(r"[a-z]{2,15}(?:[_ -][a-z]{2,15}){0,2}")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_-]{0,39}")
_PLAIN_ID = re.compile(r"[A-Za-z]{1,4}[-_]?[0-9]{1,6}")
"""A value that has no part which looks personal: it is one thing as a whole."""
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
_CONSTANTS: Final = {"none", "null", "nil", "true", "false", "undefined", "nan"}


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
    vocabulary: set[str] = field(default_factory=_CONSTANTS.copy)
    """Words of tools and fields, of closed sets and of programs (`name=None`): they name nobody."""
    request: str = ""
    repeated: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Fields with values that stand in several of the runs."""
    listed: set[str] = field(default_factory=set[str])
    """Values that a tool's own schema lists."""
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What results say that are JSON, by their text: it is read once."""

    @classmethod
    def of(cls, runs: Sequence[Trajectory], /) -> RunValues:
        """The values of `runs`. Linear in their size."""
        self = cls(runs)
        read = [parts_of(run) for run in runs]
        self._learn_names(read)
        requests = list(dict.fromkeys([text for run in runs for text in asked(run)]))
        self.request = words_of(*requests)
        self._take_parts(chain([Part(0, REQUEST, text) for text in requests], *read))
        self.data = {part.text: part.data for parts in read for part in parts if part.source}
        self.repeated = _repeated(read) if len(read) > 1 else set()
        return self

    # --- what a lesson may say ---------------------------------------------------------------------------------------

    def mask(self, text: str, /, *, level: Level = "prose") -> str:
        """`text` with a slot such as `<order id>` for each value that it repeats or that looks personal.

        The text is as a reader sees it: a sequence that drives a terminal must not take part of a slot with it. In a
        `command` plain numbers and dates stay unless the run has them: they are its options.
        """
        text = nfc(text)
        spans = list(self._repeats(text))
        for entity in find_entities(text):
            if level == "prose" or _stands_out(text, entity):
                spans.append((entity.start, entity.end, entity.kind))
        return _replaced(text, spans)

    def mask_private(self, text: str, /) -> str:
        """`text` with a slot for each private value of the runs; what only looks so goes if the runs have it.

        An amount or a date of the agent's instructions is a rule and stays.
        """
        text = nfc(text)
        spans = list(self._repeats(text, only_private=True))
        alike = [(x.start, x.end, x.kind) for x in find_entities(text)]
        # A value may come thousands of times, and the run may be long: each different one is looked for once.
        pairs = {(text[start:end], kind) for start, end, kind in alike}
        there = {
            pair for pair in pairs if not _is_usual_number(*pair) and words_of(_told_by(*pair)) in self._words_of_runs
        }
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
        brought: dict[str, tuple[int, Source]] = {}
        read: set[str] = set()
        for part in chain.from_iterable(map(parts_of, self.runs)):
            new = set(ends(part.text).lower().split()) - read if part.source else set[str]()
            read |= new
            text = " ".join(new)
            for token in (_ASCII_TOKEN if text.isascii() else compiled(_TOKEN)).findall(text):
                brought.setdefault(token, (part.step, part.source))
        return brought

    @cached_property
    def _instructed(self) -> str:
        return words_of(*(run.instructions[:_INSTRUCTIONS] for run in self.runs))

    def argument(self, key: str, value: Json, /, *, step: int) -> str:
        """What stands for an argument of the call made at `step`: itself, if it says nothing of anybody, else a slot.

        That is a switch, or a choice that is listed, or usual.
        """
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        if isinstance(value, str) and _CHOICE.fullmatch(value):
            usual = (key, value) in self.repeated and not (unusual(words(value)) or is_personal(key))
            if value in self.listed or (usual and not self.in_request(value)):
                return value
        text = " ".join(_scalars(value)) if isinstance(value, dict | list) else str(value)
        return self.slot(key, text[:_ARGUMENT], step=step)

    def slot(self, key: str, value: str, /, *, step: int) -> str:
        """What stands for the argument `value` of the call made at `step`: its field and where it came from."""
        read = words(value)
        joined = " ".join(read)
        entry = self.known.get(joined)
        noun = noun_of(key) or "value"
        brought = entry if entry is not None and entry.source and 0 < entry.step < step else None
        is_asked = bool(joined) and f" {joined} " in self.request
        if is_asked and not (brought and brought.noun == noun):
            return f"<{noun} from {REQUEST}>"
        if brought:
            return f"<{brought.noun} from {brought.source}>"
        origins = [self._returned.get(word) for word in read]
        if origins and all(origin is not None and origin[0] < step for origin in origins):
            return f"<{noun} from {max(origin for origin in origins if origin is not None)[1]}>"
        return f"<chosen {noun}>"

    def fields_in(self, names: Iterable[str], /) -> list[str]:
        """The keys of some data that name a field, and are no values themselves."""
        known = [(name, self.known.get(field)) for name in names if (field := words_of_field(name)) is not None]
        return [name for name, value in known if not (value and value.private)]

    def in_request(self, value: str, /) -> bool:
        """Whether the words of `value` stand in the request."""
        joined = words_of(value)
        return not joined.isspace() and joined in self.request

    def _repeats(self, text: str, *, only_private: bool = False) -> Iterator[tuple[int, int, str]]:
        """Where `text` repeats a known value: the longest first, each word once."""
        read = tokens(text)
        at = 0
        while at < len(read):
            for end in range(min(len(read), at + self.longest.get(read[at][0], 0)), at, -1):
                entry = self.known.get(" ".join([token for token, _, _ in read[at:end]]))
                if entry is not None and (entry.private or not only_private):
                    yield read[at][1], read[end - 1][2], entry.noun
                    at = end
                    break
            else:
                at += 1

    # --- what a run has ----------------------------------------------------------------------------------------------

    def _learn_names(self, read: Sequence[Sequence[Part]]) -> None:
        fields = keys_of([part.data for parts in read for part in parts if not part.source])
        names = {call.name for run in self.runs for step in run.steps for call in step.action.calls}
        parts = chain.from_iterable(map(_PARTS_OF_NAME.findall, names.union(filter(words_of_field, fields))))
        self.vocabulary |= {part.lower() for part in parts if len(part) > 1}
        self.listed = {value for run in self.runs if run.tools for value in listed(run.tools)}
        self.vocabulary.update([word for value in self.listed for word in words(value)])

    def _take_parts(self, parts: Iterable[Part]) -> None:
        """Take in what is new of each part: results and calls say the same again and again."""
        results, fields = set[tuple[str, bool]](), set[tuple[bool, str, str, str]]()
        for part in parts:
            if part.source not in ("", REQUEST):
                if (result := (part.text, part.of_command)) in results:
                    continue
                results.add(result)
            if part.data is None:
                self._take_text(part.text, part, parts=bool(part.source) and not part.of_command)
                continue
            for key, parent, value in leaves(part.data):
                field = bool(part.source), key, parent, str(value)
                if field in fields:
                    continue
                fields.add(field)
                if isinstance(value, str) and is_command_field(key):
                    self._take_text(value, part, parts=False)
                else:
                    self._take(value, key, parent, part)

    def _take_text(self, text: str, part: Part, *, parts: bool) -> None:
        """Take in what looks personal in a text, and what it says field by field."""
        if not text:
            return
        is_asked = part.source == REQUEST
        text = nfc(text if is_asked else ends(text, _PAGE))
        # A lesson loses every number, whosever it is: only of the request it matters how they were written.
        if entities := find_entities(text) if is_asked else people(text):
            self._take_found(text, entities, part, parts=parts)
        for key, value in pairs_in(text):
            if is_personal(key) or _DIGIT.search(value):
                self._take(value, key, "", part)
        for pair in _LINE_PAIR.finditer(f"\n{text}"):
            if is_personal(pair[1]):
                self._take(pair[2], pair[1], "", part)
        for key, cell in _cells(text) if "\n" in text else ():
            self._take(cell, key, "", part)

    def _take_found(self, text: str, entities: Iterable[Entity], part: Part, *, parts: bool) -> None:
        for start, end, kind in entities:
            value = text[start:end]
            read = words(value)
            entry = Value(kind, part.source, part.step, private=not _is_usual_number(value, kind))
            if _tells(read) and not _CONSTANTS.issuperset(read):
                self._keep(read, entry)
            if parts and kind == "name":
                self._keep_parts(read, entry)

    def _take(self, value: Json, key: str, parent: str, part: Part) -> None:
        text = str(value)
        read = words(text)
        is_whole = _tells(read) and len(read) <= _LONGEST
        if is_whole:
            personal = is_personal(key)
            others = [token for token in read if token not in self.vocabulary]
            if (len(read) == 1 or not personal) and (not others or (text.islower() and not unusual(others))):
                return  # ordinary words, or those that tools and fields are named by
            private = personal or _looks_private(text, read, key)
            entry = Value(noun_of(key, parent) or "value", part.source, part.step, private)
            self._keep(read, entry)
            if isinstance(value, str) and personal:
                self._keep_parts(read, entry)
        if isinstance(value, str) and (not is_whole or len(read) > 1) and not _PLAIN_ID.fullmatch(value):
            text = nfc(ends(value))
            self._take_found(text, find_entities(text), part, parts=bool(part.source))

    def _keep_parts(self, read: Sequence[str], value: Value) -> None:
        for token in unusual(read) - self.vocabulary:
            if token.isalpha() and not is_thing(token):
                self._keep([token], value)

    def _keep(self, read: Sequence[str], value: Value) -> None:
        joined, first = " ".join(read), read[0]
        self.longest[first] = min(_LONGEST, max(len(read), self.longest.get(first, 0)))
        old = self.known.get(joined)
        if old is None or (old.source == "" and value.source):
            self.known[joined] = value
        elif value.private and not old.private:
            self.known[joined] = Value(old.noun, old.source, old.step, private=True)


@lru_cache(maxsize=1024)
def words_of_field(name: str, /) -> str | None:
    """The words of a key of some data if it is spelled as fields are; else it is a value itself."""
    parts = _PARTS_OF_NAME.findall(name) if _PLAIN_NAME.fullmatch(name) else []
    is_field = bool(parts) and (name[:1].islower() or not unusual(map(str.lower, parts)))
    return " ".join(words(name)) if is_field else None


def _repeated(read: Sequence[Sequence[Part]]) -> set[tuple[str, str]]:
    """The fields and values that calls of several runs have."""
    counted = Counter(
        pair
        for parts in read
        for pair in {
            (key, value)
            for part in parts
            if not part.source and part.data is not None
            for key, _, value in leaves(part.data)
            if isinstance(value, str) and not is_command_field(key)
        }
    )
    return {pair for pair, times in counted.items() if times > 1}


def tokens(text: str, /) -> list[tuple[str, int, int]]:
    """The words of `text` without case, accents and signs, each with its place."""
    read: list[tuple[str, int, int]] = []
    for match in (_ASCII_TOKEN if text.isascii() else compiled(_TOKEN)).finditer(text):
        word = match[0]
        if word[0].isdigit() and not word.isdigit():
            word = _number(word) if "." in word or "," in word else word.casefold()
        elif word.isascii():
            word = word.lower()
        else:
            bare = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
            word = bare.casefold() or word
        read.append((word, *match.span()))
    return read


def words(text: str, /) -> list[str]:
    """The words of `text`, as `tokens` reads them once its letters are composed."""
    if not text.isascii():
        return [token for token, _, _ in tokens(nfc(text))]
    return [_number(word) if "." in word or "," in word else word for word in _ASCII_TOKEN.findall(text.lower())]


def words_of(*texts: str) -> str:
    """The words of `texts` in one line with a blank at both ends, so that a value can be looked for in it."""
    return " ".join(["", *words("\n".join(texts)), ""])


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
    spans = _with_slots(spans, [match.span() for match in SLOT.finditer(text)])
    merged: list[tuple[int, int, str, int]] = []
    for start, end, noun in sorted(spans, key=lambda span: (span[0], -span[1])):
        size = end - start
        if merged and start < merged[-1][1]:
            first, last, last_noun, best = merged[-1]
            merged[-1] = (first, max(last, end), noun if size > best else last_noun, max(best, size))
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


def _with_slots(
    spans: Sequence[tuple[int, int, str]], slots: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int, str]]:
    """`spans`, each with all of a slot that it would cut in two. Its own slot then stands for both."""
    if not slots:
        return spans
    begins = [start for start, _ in slots]

    def beyond(at: int) -> tuple[int, int]:
        start, end = slots[max(0, bisect_left(begins, at) - 1)]
        return (start, end) if start < at < end else (at, at)

    return [(beyond(start)[0], beyond(end)[1], noun) for start, end, noun in spans]


def _scalars(value: Json) -> list[str]:
    scalars: list[str] = []
    waiting: list[Json] = [value]
    while waiting and len(scalars) < 20:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
        elif node is not None and not isinstance(node, bool):
            scalars.append(str(node)[:200])
    return scalars


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


def _stands_out(text: str, entity: Entity) -> bool:
    """Whether something in a command is more than an option, a version or a line's number."""
    value = text[entity.start : entity.end]
    digits = sum(map(str.isdigit, value))
    if entity.kind in ("date", "number", "id"):
        return digits >= 5 and "/" not in value
    return entity.kind not in ("amount", "version") or any(sign in value for sign in "$€£")


def _looks_private(text: str, read: Sequence[str], key: str) -> bool:
    if _DIGIT.search(text):
        return not (_COUNTED.search(key.lower()) and text.isdigit() and len(text) <= 3)
    if len(read) == 1:
        return not text.isascii()
    return not text.isascii() or any(x.end - x.start >= len(text.strip()) - 2 for x in people(text))


def _tells(read: Sequence[str]) -> bool:
    """Whether a value is long enough to be somebody's: three letters, two digits, two signs of a dense script."""
    size = sum(map(len, read))
    return size >= 3 or (size == 2 and (read[0].isdigit() or bool(compiled(DENSE).match(read[0]))))


def _cells(text: str) -> Iterator[tuple[str, str]]:
    """The cells of a table in plain text, each with the head of its column."""
    lines = (line.strip().strip("|") for line in text.splitlines() if line.strip())
    first = list(islice(lines, _HEAD + 1))
    for number, (line, below) in enumerate(pairwise(first)):
        sign = max(_SEPARATORS, key=line.count)
        heads = [head.strip() for head in line.split(sign)]
        if len(heads) < 2 or below.count(sign) != len(heads) - 1:
            continue
        if all(FIELD.fullmatch(head) for head in heads) and any(map(is_personal, heads)):
            for row in (*first[number + 1 :], *islice(lines, _ROWS - len(first))):
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
