"""Names the fields of what an agent did and where their values came from: no value of a run goes into a lesson."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, cast

from lessonbank.contracts.records import Json, ToolCall, Trajectory
from lessonbank.guard import plain
from lessonbank.guard.gate import names_after_cues
from lessonbank.guard.gate.run_values import REQUEST, RunValues, is_command, is_command_field, unusual, words

_READ: Final = 20_000
_TEXT: Final = f"<text from {REQUEST}>"
_TOKEN = re.compile(r"[#@]?\w(?:[\w@.#/:+-]{0,80}\w)?")
_HAS_DIGIT = re.compile(r"\d")
_SHORT_NUMBER = re.compile(r"(?<![\w@.,:/#$€£+-])\d{1,2}(?![\w@:/%]|[.,]\d)")
_QUOTED = re.compile(
    r"(?<!\w)(?:\"([^\"\n]{3,120})\"|'([^'\n]{3,120})')(?!\w)|\[([^\[\]\n]{3,120})\]|\(([^()\n]{3,120})\)"
)
_NAMED_BEFORE = re.compile(r"([A-Za-z]{3,20})(?: (?:id|number|no|nr|code))?[:#]? *$")
_NUMBERED_THINGS = frozenset(
    """account bill booking case claim contract customer invoice issue item lot message number office order parcel
    phone product record reference request reservation shipment ticket tracking transaction user
    version""".split()  # noqa: SIM905 - as text they are read more easily
)
_COUNTED = frozenset(("item", "message", "number", "phone", "version"))
"""Things that are counted as often as they are named by an id."""
_WORD_BEHIND = re.compile(r"\b([A-Za-z]{3,20})(?=(?: (?:id|number|no|nr|code)\b)?[:#]? ([A-Za-z]{3,20})\b)")
_CONTROLS = frozenset(
    re.findall(
        r"\w+",
        "click dblclick double_click hover focus press check uncheck clear fill type tap select select_option drag "
        "drag_and_drop scroll_to",
    )
)
_KEYS = re.compile(
    r"(?:(?:Control|ControlOrMeta|Ctrl|Shift|Alt|Meta|Cmd)\+)*"
    r"(?:Enter|Tab|Escape|Esc|Backspace|Delete|Arrow\w{2,5}|Page(?:Up|Down)|Home|End|Space|F\d|[A-Za-z])"
)
_BRACKETED = re.compile(r"\b([A-Za-z_]\w{0,40})\[([^\[\]\n]{0,300})\]")
_STATED = re.compile(r" (?:value|text|url)=.*")
_ICON = re.compile(r"(?:\\u[ef][0-9a-f]{3}|[\ue000-\uf8ff])\s*")
"""A sign of a font for icons, as pages print it: nobody reads it."""
_WORD = re.compile(r"[^\W\d_]+")
_PATH_LIKE = re.compile(r"[\w.@~-]*(?:/[\w.@~+-]*)+|[\w-]+(?:\.[\w-]+)+")
_COMMAND_WORD = re.compile(r"(?:^|&&|\|\||[|;(]|\$\()\s*(?:sudo\s+)?\S+|(?<=\s)-m\s+\S+|(?<=\s)--?[\w-]+")
_SLOT = re.compile(r"<[^<>]{1,160}>")
# An argument that is an id even if it stands nowhere else: capitals and digits; behind a tool's name, a letter and
# digits. The value of an option, such as `--select E501`, is the program's.
_LONE_ID = re.compile(
    r"(?<=\s)#?(?!(?:ISO|RFC|UTF|SHA|UTC|HTTP|TLS|CVE|PEP|MD|AES|RSA)[-\d])[A-Z]{1,6}[-_]?\d{2,}[A-Z\d-]*(?![\w./=-])"
)
_LONE_ID_OF_TOOL = re.compile(r"(?<=\s)(?:#?[A-Z]{1,6}[-_]?\d[A-Z\d-]*|[a-z]?\d{3,})(?![\w./=-])")
_TOOL_NAME = re.compile(r"\s*[a-z]+(?:_[a-z]+)+\s")
_OPTION_BEFORE = re.compile(r"(?:^|\s)--?[A-Za-z][\w-]*\s+$")
_IDENTIFIER = re.compile(r"(?<![\w<@.-])[a-z]{2,20}(?:_[a-z]{2,20}){1,4}(?![\w>@.-])")
_CAMEL = re.compile(r"(?<![\w<@.-])[A-Za-z][a-z]{1,20}(?:[A-Z][a-z]{1,20}){1,4}(?![\w>@-])")
_HUMP = re.compile(r"[A-Za-z][a-z]*")
_CALLED = re.compile(r"(?<![\w<@-])[A-Za-z_]\w{1,40}(?:\.[A-Za-z_]\w{0,40}){0,4}(?=\(\))")
_SLOT_OR_WORD = re.compile(f"({_SLOT.pattern}|{_WORD.pattern})")
_SEVERAL_LEFT_OUT = re.compile(r"(?:<…>[\s,_'’-]*){2,}")
_NAMES_ERROR = re.compile(r"\w(?:Error|Exception)\b|command not found|No such file")
_SMALL_WORD = re.compile(r"\b[a-z]{2,20}\b")
_SLOT_OR_UNCOMMON = re.compile(_SLOT.pattern + r"|(?<![\w<./-])[a-z]{2,20}(?: [a-z]{2,20})+(?![\w>./(-])")


@dataclass
class AgentView:
    """What the agent had in front of it when it acted: the task, every page so far, every value with a digit."""

    values: Callable[[], RunValues]
    task: str
    """In small letters, once it is read."""
    instructions: str = ""
    passed_on: Mapping[str, str] = field(default_factory=dict[str, str])
    """Short ids of the task that the agent passed on, to their slots."""
    pages: list[str] = field(default_factory=list[str])
    """What came back, step after step."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Words of the task with a digit to slots that the word before names, such as `B-331` to `<record>`."""
    numbered: set[str] = field(default_factory=set[str])
    """Every word of the task with a digit."""
    _first: dict[str, int] = field(default_factory=dict[str, int])
    """A value with a digit to the step that brought it first, as far as the pages are read."""
    _words: set[str] = field(default_factory=set[str])
    """What stood between two blanks on a page so far."""
    _read: int = 0

    def __post_init__(self) -> None:
        text = self.task[:_READ]
        for match in _TOKEN.finditer(text):
            if match[0] in self.numbered or not (match[0] in self.passed_on or _HAS_DIGIT.search(match[0])):
                continue
            noun = _name_before(text, match.start())
            if len(match[0]) > 2 and match[0] not in self.passed_on:
                self.numbered.add(match[0])
            if noun and (len(match[0]) > 2 or noun not in _COUNTED):
                self.names[match[0]] = f"<{noun}>"
        self.names = {**self.passed_on, **self.names}
        self.task = text.lower()

    @cached_property
    def instruction_words(self) -> set[str]:
        """Words of the agent's instructions: whoever wrote them meant no customer."""
        return {word for word in set(_WORD.findall(self.instructions[: 2 * _READ])) if word.islower()}

    def _seen_before(self, step: int) -> Mapping[str, int]:
        """A value with a digit to the step that brought it first; all those of the steps before `step`."""
        while self._read < step - 1:
            page = self.pages[self._read]
            self._read += 1
            # No token holds a blank, most of a page was on the pages before, and most words have no digit.
            new = set(page[:_READ].split()) - self._words
            self._words |= new
            text = " ".join([word for word in new if not word.isalpha() and _HAS_DIGIT.search(word)])
            for token in _TOKEN.findall(text):
                if len(token) > 2 and token not in self._first and _HAS_DIGIT.search(token):
                    self._first[token] = self._read
        return self._first

    def control(self, name: str, step: int, /) -> str:
        """What the page before `step` calls the control `name`: `[a12] button 'Save', clickable` makes `a12` the button
        'Save'."""
        page = self.pages[step - 2] if step > 1 else ""
        at = page.find(f"[{name}] ") if name else -1
        if at < 0:
            return ""
        label = page[at + len(name) + 3 : at + len(name) + 83].split("\n")[0].split(",")[0].strip()
        return _STATED.sub("", plain(_ICON.sub("", label))).replace('"', "'")

    def prose(self, text: str, /) -> str:
        """`text` without values, where it is a sentence."""
        return self.values().mask(self._replace_ids(_QUOTED.sub(self._quoted, plain(text))))

    def request(self, text: str, /) -> str:
        """The task without values: a short id that was passed on is one wherever it stands here."""
        replacements = [(*m.span(), self.names[m[0]]) for m in _TOKEN.finditer(text) if m[0] in self.passed_on]
        return self.prose(_replaced(text, replacements))

    def command(self, text: str, step: int, /) -> str:
        """`text` without values, where it does something at `step`: program, options, controls and paths stay."""
        known = self._without_seen(self._replace_ids(_QUOTED.sub(self._quoted, plain(text))), step)
        return _without_lone_ids(self._without_words_of_task(self.values().mask(known, level="command")))

    def _replace_ids(self, text: str) -> str:
        if not any(map(text.__contains__, self.names)):
            return text
        there = [m for m in _TOKEN.finditer(text) if m[0] in self.names and _is_id(m, text)]
        return _replaced(text, [(*m.span(), self.names[m[0]]) for m in there])

    def _quoted(self, match: re.Match[str]) -> str:
        inner = next(group for group in match.groups() if group is not None)
        if inner.lower() not in self.task:
            return match[0]
        return match[0].replace(inner, self.names.get(inner, _TEXT))

    def _without_seen(self, text: str, step: int) -> str:
        first, replacements = self._seen_before(step), list[tuple[int, int, str]]()
        for match in _TOKEN.finditer(text):
            if match[0] in self.numbered:
                replacements.append((*match.span(), "<value>"))
            elif first.get(match[0], step) < step:
                replacements.append((*match.span(), self.control(match[0], step) or "<value seen earlier>"))
        return _replaced(text, replacements)

    def _without_words_of_task(self, text: str) -> str:
        """Return a text without the telling words of the task, but in the names of programs, options and paths."""
        paths = [(m, m[0].lower() in self.task) for m in _PATH_LIKE.finditer(text)]
        free = [m for m, is_asked in paths if is_asked and "/" in m[0][1:]]
        odd = unusual(map(str.lower, _WORD.findall(text)))
        telling = [
            m for m in _WORD.finditer(text) if len(m[0]) > 3 and m[0].lower() in odd and self.values().in_request(m[0])
        ]
        if not telling and not free:
            return text
        spans = [m.span() for pattern in (_SLOT, _COMMAND_WORD) for m in pattern.finditer(text)]
        spans += [m.span() for m, is_asked in paths if not is_asked]
        replacements = [(*m.span(), f"<path from {REQUEST}>") for m in free if not _inside(m, spans)]
        spans += [(start, end) for start, end, _ in replacements]
        replacements += [(*m.span(), f"<word from {REQUEST}>") for m in telling if not _inside(m, spans)]
        return _replaced(text, sorted(replacements))


def _replaced(text: str, replacements: Sequence[tuple[int, int, str]]) -> str:
    """`text` with something else in these places, which are in order and apart."""
    parts, done = list[str](), 0
    for start, end, instead in replacements:
        parts += (text[done:start], instead)
        done = end
    return "".join((*parts, text[done:]))


def _without_lone_ids(line: str) -> str:
    ids = _LONE_ID_OF_TOOL if _TOOL_NAME.match(line) else _LONE_ID
    slots = [slot.span() for slot in _SLOT.finditer(line)]

    def without(match: re.Match[str]) -> str:
        is_option = _OPTION_BEFORE.search(line, max(0, match.start() - 60), match.start())
        return match[0] if is_option or _inside(match, slots) else "<id>"

    return ids.sub(without, line)


def _inside(match: re.Match[str], spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= match.start() and match.end() <= end for start, end in spans)


def _is_id(match: re.Match[str], text: str) -> bool:
    """Whether a short number is told as that of a thing: behind its name, or as all that a line is about."""
    before = text[: match.start()]
    return (
        len(match[0]) > 2
        or bool(_name_before(text, match.start()))
        or before.strip().isalpha()
        or (match.end() == len(text) and not _OPTION_BEFORE.search(before))
    )


def passed_on(trajectory: Trajectory, /) -> dict[str, str]:
    """Short ids of a task, to their slots: words and numbers that actions are about, as `alpha` in `order alpha`.

    A field of a call names their thing, or two different actions are about them."""
    task = trajectory.task[:_READ]
    behind = {word: noun.lower() for noun, word in _WORD_BEHIND.findall(task)}
    behind = {word: noun for word, noun in behind.items() if noun in _NUMBERED_THINGS - _COUNTED}
    numbers = {number for number, times in Counter(_SHORT_NUMBER.findall(task)).items() if times == 1}
    if not (behind or numbers):
        return {}
    beside, slots = dict[str, set[str]](), dict[str, str]()
    for step in trajectory.steps:
        for call in step.action.calls:
            given = call.arguments if isinstance(call.arguments, dict) else {}
            for key, value in given.items():
                noun = next((part for part in _WORD.findall(key.lower().replace("_", " "))), "")
                if str(value) in numbers and noun in _NUMBERED_THINGS - _COUNTED:
                    slots[str(value)] = f"<{noun}>"
                elif behind.get(str(value), "\0") in key.lower():
                    slots[str(value)] = f"<{behind[str(value)]}>"
        words = step.action.text[-200:].split()
        for word in {*words[1:2], *words[-1:]} & (numbers | behind.keys()):
            beside.setdefault(word, set()).add(" ".join(other for other in words if other != word))
    about = [word for word, others in beside.items() if len(others) > 1]
    return {word: f"<{behind.get(word, 'number')}>" for word in about} | slots


def _name_before(text: str, at: int) -> str:
    before = _NAMED_BEFORE.search(text, max(0, at - 30), at)
    word = before[1].lower() if before else ""
    return word if word in _NUMBERED_THINGS else ""


def call_text(call: ToolCall, /, *, shown: AgentView, step: int) -> str:
    """`refund(order_id=<order id from find_customer's result>)`: the tool, its fields, and whence their values."""
    given = call.arguments
    if isinstance(given, str):
        try:
            data: object = json.loads(given)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            return f"{call.name}({'…' if given.strip() else ''})"
        given = cast("dict[str, Json]", data)
    if is_command([call]):
        line = next(value for key, value in given.items() if is_command_field(key))
        return f"{call.name}({shown.command(_first_line(line_of(line)), step)})"
    values = shown.values()
    fields = values.fields_in(given)[:6]
    return f"{call.name}({', '.join([f'{key}={values.argument(key, given[key], step=step)}' for key in fields])})"


def line_of(value: Json, /) -> str:
    """The line of a shell in a field, which some programs give as a list of lines."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _first_line(text: str) -> str:
    return "".join(text.strip()[:400].splitlines()[:1])


def action_line(line: str, shown: AgentView, /, *, step: int) -> str:
    """An action that was written as text: what it acts on stays, what it types is a slot."""
    line = plain(line)
    made = _parsed_call(line)
    if made is not None:
        verb, given = made
        arguments = [_typed(value, shown, step, acts=verb in _CONTROLS and at == 0) for at, value in enumerate(given)]
        return f"{verb}({', '.join(arguments)})"
    if _BRACKETED.search(line):
        line = _BRACKETED.sub(lambda m: f"{m[1]}[{_bracketed(m, shown, step)}]", line)
        return shown.values().mask(line, level="command")
    return shown.command(line, step)


def _bracketed(match: re.Match[str], shown: AgentView, step: int) -> str:
    if match[1].lower() in _CONTROLS:
        return shown.command(match[2], step)
    return shown.values().slot("text", match[2], step=step)


def _parsed_call(line: str) -> tuple[str, list[object]] | None:
    """The name and the constants of `fill('a12', 'Jane')`."""
    if not re.match(r"\w{1,40}\(", line) or len(line) > 390:
        return None
    try:
        made = ast.parse(line.strip(), mode="eval").body
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
            return None
        return made.func.id, [ast.literal_eval(value) for value in (*made.args, *(k.value for k in made.keywords))]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _typed(value: object, shown: AgentView, step: int, *, acts: bool) -> str:
    if isinstance(value, str) and (named := shown.control(value, step)):
        return f"'{shown.command(named, step)}'"
    if acts and isinstance(value, str):
        return "<control>" if _HAS_DIGIT.search(value) else f"'{shown.command(value, step)}'"
    if isinstance(value, str) and _KEYS.fullmatch(value):
        return f"'{value}'"
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return "…"
    if not isinstance(value, str):
        return str(value) if abs(value) < 10 else "<number>"
    return shown.values().slot("text", value, step=step)


def message(text: str, shown: AgentView, /, *, beside: str, loud: bool) -> str:
    """What came back, in its ordinary words. An error is told even if some of its words are not ordinary.

    `beside` is what was done: its own words may come again.
    """
    if not text:
        return ""
    prose = shown.prose(text)
    if not (loud and _NAMES_ERROR.search(prose)):
        prose = _in_usual_words(prose, shown, set(words(beside)))
    slots = _SLOT.findall(prose)
    rest = _WORD.findall(_SLOT.sub(" ", prose))
    return prose if len(rest) > len(slots) and (loud or len(slots) < 3) else ""


def _in_usual_words(text: str, shown: AgentView, own: set[str]) -> str:
    """`text` with a slot for every word that is none of `own`, nor an ordinary one, nor of the agent's tools."""
    parts = _SLOT_OR_WORD.split(text)
    words = {part.lower() for part in parts[1::2] if part[0] != "<"}
    of_own = {word + ending for word in own for ending in ("d", "ed", "ing", "s", "es")}
    odd = unusual(words) - own - of_own - shown.values().vocabulary
    if odd:
        odd -= shown.instruction_words | _words_of_identifiers(text, odd)
    return _SEVERAL_LEFT_OUT.sub("<…> ", "".join(["<…>" if part.lower() in odd else part for part in parts])).strip()


def _words_of_identifiers(text: str, odd: Collection[str]) -> set[str]:
    """The words of names of code: an error says by them what is to be done.

    Of `unlock_order` and `fetchInvoice` one word is ordinary: else a person may be meant. `vault.release()` is code."""
    persons = {text[name.start : name.end] for name in names_after_cues(text)}
    names = {name for name in _IDENTIFIER.findall(text) if name not in persons}
    words = {word for name in names if not set(odd).issuperset(parts := name.split("_")) for word in parts}
    camels = {name for name in _CAMEL.findall(text) if name not in persons}
    humps = {name: list(map(str.lower, _HUMP.findall(name))) for name in camels}
    words |= {name.lower() for name, parts in humps.items() if len(unusual(parts)) < len(set(parts))}
    return words | {word.lower() for call in _CALLED.findall(text) for word in _WORD.findall(call)}


def uncommon_pairs(text: str, /) -> str:
    """`text` with a slot for two and more words in a row that nobody uses: a name in small letters."""
    odd = unusual(_SMALL_WORD.findall(text))

    def without(match: re.Match[str]) -> str:
        if match[0][0] == "<":
            return match[0]
        words, parts = match[0].split(" "), list[str]()
        for at, word in enumerate(words):
            if word in odd and not odd.isdisjoint((*words[at - 1 : at], *words[at + 1 : at + 2])):
                parts += [] if parts and parts[-1] == "<name>" else ["<name>"]
            else:
                parts.append(word)
        return " ".join(parts)

    return _SLOT_OR_UNCOMMON.sub(without, text) if odd else text
