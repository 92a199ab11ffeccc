"""Knows the values of runs and where each came from, so that no lesson repeats what belongs to one customer or case."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import chain, repeat
from typing import Final, Literal, cast

from lessonbank.types import Json, Observation, Step, ToolCall, Trajectory

from ._empty import DENSE
from ._literals import COMMON
from ._lookalikes import LookAlike, Sought, look_alikes, people
from ._lookalikes import is_ordinary as is_ordinary

REQUEST: Final = "the request"
Source = str
"""Where a value came from: `the request`, `find_customer's result`, or an empty text where the agent chose it."""
Level = Literal["prose", "command"]

_nfc = partial(unicodedata.normalize, "NFC")
_READ: Final = 20_000
"""Characters of one text that are looked at, from each end."""
_TURN: Final = 2_000
"""Characters of what a user said in one turn that count as the request, from each end: the rest is what was pasted."""
_PAGE: Final = 4_000
"""Characters of one result in plain text in which names are looked for, from each end."""
_LONGEST: Final = 16
"""Words of a value that are looked for as a whole; of a longer one only what looks personal is."""
_INSTRUCTIONS: Final = 100_000
"""Characters of a run's instructions that are looked at."""
_LEAVES: Final = 20_000
_DEPTH: Final = 40
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
_FIELD = re.compile(r"[^\W\d][\w -]{0,40}")
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
        self._learn_names()
        told = list(dict.fromkeys(text for run in runs for text in (_ends(run.task), *_said_by_user(run))))
        self.request = words_of(*told)
        for text in told:
            self._take_text(text, REQUEST, 0, parts=True)
        in_runs = Counter[tuple[str, str]]()
        for run in runs:
            in_runs.update(self._take_run(run))
        self.repeated = {pair for pair, seen in in_runs.items() if seen > 1}
        return self

    # --- what a lesson may say ---------------------------------------------------------------------------------------

    def mask(self, text: str, /, *, level: Level = "prose") -> str:
        """`text` with a slot such as `<order id>` for each value that it repeats or that looks personal.

        In a `command` plain numbers and dates stay unless the run has them: they are its options.
        """
        text = _nfc(text)
        spans = list(self._repeats(text))
        for found in look_alikes(text):
            if level == "prose" or _stands_out(text, found):
                spans.append((found.start, found.end, found.kind))
        return _replaced(text, spans)

    def mask_private(self, text: str, /) -> str:
        """`text` with a slot for each private value of the runs; what only looks so goes if the runs have it.

        An amount or a date of the agent's instructions is a rule and stays.
        """
        text = _nfc(text)
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
        return words_of(*(text for run in self.runs for text in _texts(run)))

    @cached_property
    def _returned(self) -> Mapping[str, tuple[int, Source]]:
        """A word that some result brought, to the step and the tool that did first."""
        words: dict[str, tuple[int, Source]] = {}
        read: set[str] = set()
        steps = [(number, step) for run in self.runs for number, step in enumerate(run.steps, 1)]
        for number, source, seen in ((number, *one) for number, step in steps for one in _answered(step)):
            new = set(_ends(seen.text).lower().split()) - read
            read |= new
            told = " ".join(new)
            for token in (_ASCII_TOKEN if told.isascii() else _TOKEN).findall(told):
                words.setdefault(token, (number, source))
        return words

    @cached_property
    def _instructed(self) -> str:
        return words_of(*(run.instructions[:_INSTRUCTIONS] for run in self.runs))

    def slot(self, key: str, value: str, /, *, step: int) -> str:
        """What stands for the argument `value` of the call made at `step`: its field and where it came from."""
        asked = words_of(value)
        found = self.known.get(asked.strip())
        noun = noun_of(key) or "value"
        returned = found is not None and bool(found.source) and 0 < found.step < step
        if asked.strip() and asked in self.request and not (returned and found is not None and found.noun == noun):
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
        known = self.known.get(" ".join(words(name))) if parts else None
        usual = name[:1].islower() or all(map(is_ordinary, map(str.lower, parts)))
        return bool(parts) and usual and not (known and known.private)

    def in_request(self, value: str, /) -> bool:
        """Whether the words of `value` stand in the request."""
        return bool((joined := words_of(value)).strip()) and joined in self.request

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

    def _learn_names(self) -> None:
        """Put the words of tools and fields into the vocabulary. Most calls have the same names: each is read once."""
        calls = [call for run in self.runs for step in run.steps for call in step.action.calls]
        fields = set[str]().union(*[_keys(_arguments(call)) for call in calls])
        names = {call.name for call in calls} | set(filter(self.is_field, fields))
        self.vocabulary |= {p.lower() for name in names for p in _PARTS_OF_NAME.findall(name) if len(p) > 1}
        for run in self.runs:
            self.listed.update(_listed(run.metadata.get("tools")))
        self.vocabulary.update(*map(words, self.listed))

    def _take_run(self, run: Trajectory) -> set[tuple[str, str]]:
        """Take in the values of `run`; gives the fields and values of its calls."""
        pairs = set[tuple[str, str]]()
        for number, step in enumerate(run.steps, 1):
            for call in step.action.calls:
                given = _arguments(call)
                if isinstance(given, str):
                    self._take_text(given, "", number)
                else:
                    pairs |= self._take_leaves(given, "", number)
            for source, seen in _answered(step):
                data = parsed(seen.text)
                if data is not None:
                    self._take_leaves(data, source, number)
                else:
                    no_command = not any(map(is_command, step.action.calls))
                    self._take_text(_ends(seen.text), source, number, parts=no_command)
        self._take_text(run.answer or "", "", len(run.steps))
        return pairs

    def _take_leaves(self, data: Json, source: Source, step: int) -> set[tuple[str, str]]:
        """Take in the values of some data; gives those that are texts, with their fields."""
        pairs = set[tuple[str, str]]()
        for key, parent, value in _leaves(data):
            if isinstance(value, str) and _COMMAND.fullmatch(key.lower()):
                self._take_text(value, source, step)
                continue
            self._take(value, key, parent, source, step)
            if isinstance(value, str):
                pairs.add((key, value))
        return pairs

    def _take_text(self, text: str, source: Source, step: int, *, parts: bool = False) -> None:
        """Take in what looks personal in a text, and what it says field by field."""
        if not text:
            return
        # A lesson loses every number, whosever it is: only of the request it matters how they were written.
        text = _nfc(_ends(text, _READ if source == REQUEST else _PAGE))
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
        if _tells(read):
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
        text = _nfc(_ends(value))
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
            if len(token) > 2 and token.isalpha() and not is_ordinary(token) and token not in self.vocabulary:
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
    for found in (_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text):
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
    read = _ASCII_TOKEN.findall(text.lower())
    if "." not in text and "," not in text:
        return read
    return [_number(word) if "." in word or "," in word else word for word in read]


def words_of(*texts: str) -> str:
    """The words of `texts` in one line with a blank at both ends, so that a value can be looked for in it."""
    return " ".join(["", *chain.from_iterable(map(words, map(_nfc, texts))), ""])


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


def parsed(text: str, /) -> Json | None:
    """The data of a text that is JSON."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > 50 * _READ:
        return None
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return None


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


def _keys(data: Json) -> set[str]:
    """The names of the fields of some data."""
    keys, waiting = set[str](), [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict) and depth < _DEPTH:
            keys.update(value)
            waiting += zip(value.values(), repeat(depth + 1), strict=False)
    return keys


def _leaves(data: Json) -> list[tuple[str, str, Json]]:
    """(field, the field that it stands in, value) of all data; keys that are values themselves, too."""
    found: list[tuple[str, str, Json]] = []
    waiting: list[tuple[str, str, Json, int]] = [("", "", data, 0)]
    for _ in range(_LEAVES):
        if not waiting:
            break
        key, parent, value, depth = waiting.pop()
        if depth > _DEPTH:
            continue
        if isinstance(value, dict):
            for name, inner in value.items():
                named = _FIELD.fullmatch(name) is not None
                if not named or _DIGIT.search(name) or (" " in name and not name.islower()):
                    found.append((key or "key", parent, name))
                waiting.append((name if named else key, key, inner, depth + 1))
        elif isinstance(value, list):
            waiting += [(key, parent, inner, depth + 1) for inner in value]
        else:
            found.append((key, parent, value))
    return found


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
        if all(_FIELD.fullmatch(head) for head in heads) and any(map(is_personal, heads)):
            for row in below:
                yield from zip(heads, (cell.strip() for cell in row.split(sign)[: len(heads)]), strict=False)
            return


def _answered(step: Step) -> list[tuple[Source, Observation]]:
    """What came back in a step, but from the user, each with whence it came."""
    calls = step.action.calls
    names = {call.id: call.name for call in calls if call.id}
    told: list[tuple[Source, Observation]] = []
    for seen in step.observations:
        if seen.source == "user":
            continue
        called = calls[len(told)] if len(told) < len(calls) else (calls[0] if len(calls) == 1 else None)
        tool = seen.name or names.get(seen.call_id or "", "") or (called.name if called else "")
        told.append((f"{tool}'s result" if tool else "an earlier result", seen))
    return told


def _said_by_user(run: Trajectory) -> list[str]:
    return [_ends(seen.text, _TURN) for step in run.steps for seen in step.observations if seen.source == "user"]


def _arguments(call: ToolCall) -> Json:
    if isinstance(call.arguments, str):
        data = parsed(call.arguments)
        return call.arguments if data is None else data
    return cast("Json", call.arguments)


def _listed(tools: object) -> Iterator[str]:
    """The values of the enumerations in the tools' schemas, where a run has them."""
    waiting: list[object] = [tools]
    for _ in range(_LEAVES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, Mapping):
            for key, inner in cast("Mapping[str, object]", value).items():
                if key == "enum" and isinstance(inner, list):
                    yield from (one for one in cast("list[object]", inner) if isinstance(one, str))
                else:
                    waiting.append(inner)
        elif isinstance(value, list):
            waiting += cast("list[object]", value)


def _texts(run: Trajectory) -> Iterator[str]:
    """Everything that was asked, called, returned and said, without the instructions."""
    yield run.task
    yield from (run.answer or "", run.error or "")
    for step in run.steps:
        yield from (step.thought, step.action.text)
        for call in step.action.calls:
            yield _ends(
                call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
            )
        yield from (_ends(seen.text) for seen in step.observations)


def _ends(text: str, most: int = _READ) -> str:
    return text if len(text) <= 2 * most else f"{text[:most]}\n{text[-most:]}"


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
