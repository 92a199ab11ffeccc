"""What a run did, move by move: a short label, what was seen, and whether it got anywhere; all by form, not meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Final, Literal, cast

from lessonbank.contracts.records import Action, Json, Observation, ToolCall, Trajectory
from lessonbank.guard.gate.run_values import LOOKS, RunValues, is_command, parsed
from lessonbank.text.shell_commands import REFUSED

from ._commands import reads
from ._slots import AgentView, action_line, call_text, line_of, message, passed_on

Effect = Literal["moved", "inert", "error", "repeat"]

_READ = 20_000
"""Characters of one observation that are looked at, from each end: enough for any message, linear for any page."""
_SHORT = 200
"""An observation this short is a message and is read for its wording; a longer one is content and is not."""
_LABEL, _SEEN, _RAW, _DEED = 140, 90, 400, 40
_MADE: Final = "{0.name}({0.arguments})".format
_TEXT: Final = attrgetter("text")
_FAILED: Final = attrgetter("is_error")

_ERROR = re.compile(
    r"(?<!no )(?<!0 )\b(?:errors?|fatal|exception|traceback|invalid|fail(?:ed|ure|s)?|reject(?:ed|s)?|denied|forbidden"
    r"|refused|illegal|unable|cannot|can't|could not|couldn't|unknown|incorrect|wrong|unauthori[sz]ed|timed? ?out"
    r"|not found|no such)\b"
    r"(?!\W{0,3}(?:none|null|false|0)\b)",
    re.IGNORECASE,
)
_OPENS_WITH_ERROR = re.compile(
    r"\W*(?:(?:\w{0,40}error|error|exception|traceback|fatal|failed|fehler|erreur|errore|erro|fout|fel|błąd|chyba|ошибка"
    r"|помилка|hata)\b|错误|錯誤|エラー|오류)",
    re.IGNORECASE,
)
_EXIT = re.compile(
    r"<returncode>\s*-?[1-9]\d*\s*</returncode>|\bexit(?:ed)?(?: with)?(?: code| status)[:= ]+-?[1-9]"
    r"|^\w{0,60}(?:Error|Exception): |^Traceback \(most",
    re.MULTILINE,
)
_RETURNED = re.compile(
    r"<returncode>\s*-?[1-9]\d*\s*</returncode>|\bexit(?:ed)?(?: with)?(?: code| status)[:= ]+-?[1-9]"
    r"|^(?:ba|z|da)?sh: |^\w+: .{1,200}: No such file or directory",
    re.MULTILINE,
)
_SHELL = re.compile(r"```(?:bash|sh|shell|console|zsh|mswea_bash_command)\b")
_LINE_OF_SHELL: Final = ("command", "cmd", "bash_command", "shell_command", "commands")
"""Fields of a call that hold a line of a shell."""
_SAYS_EXIT: tuple[str, ...] = ("<returncode>", "exit", "Error: ", "Exception: ", "Traceback (most")
"""One of them stands in everything that `_EXIT` finds: to look for them is several times as fast."""
_NAMED_ERROR = re.compile(r"\w(?:Error|Exception)\b")
_INERT = re.compile(
    r"^\W*no\b|\bnothing\b|\bno (?:effect|change|result|match|difference)|\bunchanged\b|\bignored\b"
    r"|\bnot (?:available|allowed|permitted|possible|supported|applicable|enabled|clickable|visible)\b|\bdisabled\b",
    re.IGNORECASE,
)
_ACKNOWLEDGED = re.compile(r"^\W*(?:ok(?:ay)?|done|success\w*|saved|set|updated|created|true|yes)\b", re.IGNORECASE)

_FENCED = re.compile(r"```(?:[\w+-]{0,20}[ \t]*\n)?(.{1,2000}?)```", re.DOTALL)
_MARKED = re.compile(r"^[ \t]{0,20}action(?: \d+)?[ \t]{0,5}:[ \t]*(.+)$", re.IGNORECASE | re.MULTILINE)
_CLOSES = re.compile(r"end_of_(\w{1,40})")
_TAG = re.compile(r"</?[\w-]{1,40}>")
_TALK_WORDS = 10
_UNSAID = re.compile(
    r"<[^<>\n]{1,80}(?:>|…\Z)|(?:^| and |, )[^\s(\[<>]*(?=…|[(\[](?![)\]]))|\b[\w-]+(?==|…\Z)"
    r"|(?<==)(?:null|true|false)\b"
    r"|(?<=')(?:link|button|radio|checkbox|textbox|combobox|searchbox|tab|option|menuitem|LabelText)\b(?= ')"
)
"""What every use of a tool has in its label: slots, the name in front, names of fields, flags, kinds of controls."""
_LETTER = re.compile(r"[^\W\d_]")
_BARE = re.compile(r"\W*(?:error|exception|fatal|failed|failure)\W*", re.IGNORECASE)
_LOOKS_OF_EDITORS: Final = ("view", "read", "open")
_QUOTED_AT_LEAST: Final = 12
"""Characters of a line that a message may have from the call itself."""


@dataclass(frozen=True, eq=False)
class Move:
    """One thing the agent did. `number` counts the trajectory's steps from 1.

    Most moves of a long run are never told, so what is told of one is read when it is asked for.
    """

    number: int
    effect: Effect
    raw: str
    """What was done as it was: to tell two moves apart, and never for a lesson."""
    command: str
    """The line of a shell that it was, as it was; mostly empty."""
    looks: bool
    """Whether that line changes nothing."""
    calls: Sequence[ToolCall] = field(repr=False)
    came_back: str = field(repr=False)
    """As it was: never for a lesson."""
    shown: AgentView = field(repr=False)

    @cached_property
    def _write_action(self) -> str:
        if self.calls:
            return " and ".join(map(partial(call_text, shown=self.shown, step=self.number), self.calls[:3]))
        return action_line(self.raw, self.shown, step=self.number)

    @cached_property
    def label(self) -> str:
        """What was done, with a slot for every value."""
        return cut(self._write_action, _LABEL)

    @cached_property
    def deed(self) -> str:
        """What was done, in a few words: the tools that were called, or the line of a shell."""
        named = " and ".join([call.name for call in self.calls[:3]])
        text = self._write_action[len(named) + 1 : -1] if is_command(self.calls[:1]) else named or self._write_action
        return cut(text, _DEED)

    @cached_property
    def _line_or_fields(self) -> tuple[str, str]:
        """The line of what came back that says most, as it was; or else which fields it has, and no value of them.

        Of an error that is the last line that names it, of a message the first line, of data the fields. Of other
        content neither.
        """
        text, known = self.came_back, self.shown.values().data
        data = known[text] if text in known else parsed(text)
        if self.effect == "error" and (message := text if data is None else _told_error(data)):
            return _line_of_error(message, " ".join(value for _, value in self.arguments)), ""
        return (_first_line(text), "") if data is None else ("", _fields(data, self.shown.values()))

    @property
    def gist(self) -> str:
        """What came back, in a line as it was: never for a lesson."""
        return "".join(self._line_or_fields)

    @cached_property
    def seen(self) -> str:
        """What came back, in a few words between brackets and quotes; empty where there are none."""
        line, fields = self._line_or_fields
        words = fields or message(line, self.shown, beside=self._write_action, loud=self.effect == "error")
        quote = cut(words, _SEEN).replace('"', "'")
        return f' ("{quote}")' if quote else ""

    @property
    def arguments(self) -> tuple[tuple[str, str], ...]:
        """Fields and values of its first call, as they were."""
        given = self.calls[0].arguments if self.calls else {}
        return tuple([(key, str(value)[:_RAW]) for key, value in given.items()]) if isinstance(given, dict) else ()

    @property
    def reads(self) -> bool:
        """Whether its name says that it only looks: whatever went wrong, looking was not it."""
        return bool(LOOKS.match(self.label)) or dict(self.arguments).get("command") in _LOOKS_OF_EDITORS

    @property
    def is_specific(self) -> bool:
        """Whether its label names more than a tool and slots. To advise against less would forbid the tool itself."""
        return _LETTER.search(_UNSAID.sub("", self.label)) is not None


def moves(trajectory: Trajectory, values: Callable[[], RunValues], /) -> tuple[Move, ...]:
    """What was done, in order, without the values of `values`. Where the agent has tools, all text is talk."""
    tools = any(map(attrgetter("action.calls"), trajectory.steps))
    shown = AgentView(values, trajectory.task, trajectory.instructions, passed_on=passed_on(trajectory))
    made = list[Move]()
    done = set[tuple[str, int]]()
    for number, step in enumerate(trajectory.steps, 1):
        last = shown.pages[-1] if shown.pages else ""
        seen = "\n".join(map(_TEXT, step.observations)).strip()
        if len(seen) > 2 * _READ:
            seen = "\n".join(map(_ends, step.observations)).strip()
        shown.pages.append(seen)
        raw = " and ".join(map(_MADE, step.action.calls[:3]))[:_RAW] if tools else _line_done(step.action.text)
        if not raw or REFUSED.match(seen):
            continue
        command = _command(step.action, raw)
        looks = bool(command) and reads(command)
        effect = _effect(seen, last, failed=_failed(step.observations), looks=looks)
        key = raw, hash(seen)
        if effect == "moved" and key in done:
            effect = "repeat"
        done.add(key)
        made.append(Move(number, effect, raw, command, looks, step.action.calls, seen, shown))
    return tuple(made)


def _ends(seen: Observation) -> str:
    text = seen.text
    return text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}"


def _command(action: Action, line: str) -> str:
    """The line of a shell that an action is, or an empty text."""
    if not action.calls:
        return line if _SHELL.search(action.text) else ""
    given = action.calls[0].arguments
    if not isinstance(given, dict) or "path" in given:  # an editor's `command` is a word of its own
        return ""
    for name in _LINE_OF_SHELL:
        if name in given:
            return line_of(given[name]).strip()[:_RAW]
    return ""


def _failed(seen: Sequence[Observation]) -> bool | None:
    """Whether the results say themselves that one is an error; `None` where words must decide."""
    results = [observation for observation in seen if observation.source == "tool" or observation.is_success]
    if any(map(_FAILED, seen)):
        return True
    flags = [False if observation.is_success else failed(observation.text) for observation in results]
    return None if not flags or None in flags else any(flags)


def _effect(text: str, last: str, *, failed: bool | None, looks: bool = False) -> Effect:
    if looks and not failed:  # a file that speaks of errors is none
        ends = () if failed is False else {text[:_SHORT], text[-_SHORT:]}
        return "error" if any(map(_RETURNED.search, ends)) else "moved"
    if failed or (failed is None and _speaks_of_error(text)):
        return "error"
    if len(text) <= _SHORT and _INERT.search(text):
        return "inert"
    if text != last or _ACKNOWLEDGED.match(text):
        return "moved"
    return "inert" if len(_TAG.sub("", text).strip()) > 2 else "moved"


def _speaks_of_error(text: str) -> bool:
    ends = text if len(text) <= _SHORT else f"{text[:_SHORT]}\0\n{text[-2 * _SHORT :]}"
    if (any(map(ends.__contains__, _SAYS_EXIT)) and _EXIT.search(ends)) or _OPENS_WITH_ERROR.match(text):
        return True
    return len(text) <= _SHORT and _ERROR.search(text) is not None


def _line_of_error(text: str, given: str) -> str:
    """The line that says what was wrong: none that only repeats what the call was given."""
    lines = text.splitlines()
    first, last = (islice(filter(_says, order), 20) for order in (lines, reversed(lines)))
    ends = [line for line in (*first, *reversed([*last])) if "Traceback" not in line and not _repeats(line, given)]
    named = [line for line in ends if _NAMED_ERROR.search(line)]
    errors = named or [line for line in ends if _ERROR.search(line)]
    if errors and _BARE.fullmatch(errors[-1]):  # the reason stands below it
        return next(iter(ends[ends.index(errors[-1]) + 1 :]), errors[-1])
    return errors[-1] if errors else ""


def _repeats(line: str, given: str) -> bool:
    text = _TAG.sub("", line).strip()
    return len(text) >= _QUOTED_AT_LEAST and text in given


def _first_line(text: str) -> str:
    if len(text) > _SHORT or text[:1] in "{[":
        return ""
    return _TAG.sub("", next(filter(_says, text.splitlines()), ""))


def _says(line: str) -> bool:
    return len(_TAG.sub("", line).strip(" \t`{}[]()-=")) > 2


def _told_error(data: Json) -> str:
    """What data says of an error, in the field that is for it."""
    if not isinstance(data, dict):
        return ""
    for key in ("error", "message", "detail", "reason", "errors"):
        value = data.get(key)
        if isinstance(value, dict):
            value = _told_error(value)
        if isinstance(value, str) and value:
            return value if _ERROR.search(value) else f"error: {value}"
    return ""


def _fields(data: Json, values: RunValues) -> str:
    """`returned: name, street, balance`: which fields came back, and no value of them."""
    several = isinstance(data, list)
    rows = data if isinstance(data, list) else [data]
    records = [row for row in rows if isinstance(row, dict)]
    listing = ""
    for name in values.fields_in(records[0] if records else {}):
        if len(longer := f"{listing}, {name}" if listing else name) > _SEEN - 20:
            listing += ", …" if listing else ""
            break
        listing = longer
    return f"returned{' a list' if several else ''}: {listing}" if listing else ""


def _line_done(text: str) -> str:
    """Of an action in words the line that does it, as it was; empty where it was only said."""
    text = text[-_READ:].strip()
    blocks = cast("list[str]", _FENCED.findall(text) or _MARKED.findall(text))
    lines = (blocks[-1] if blocks else text).strip().splitlines()
    last = _opening(lines)
    if not lines or (not blocks and _is_talk(last)):
        return ""
    return (lines[0] if blocks else last)[:_RAW]


def _opening(lines: Sequence[str]) -> str:
    """The last line; where that only closes a command of several lines (`end_of_edit`), the line that opened it."""
    last = lines[-1].strip() if lines else ""
    name = _CLOSES.fullmatch(last)
    opened = (line for line in reversed(lines[:-1]) if name and line.split(maxsplit=1)[:1] == [name[1]])
    return next(opened, last)


def _is_talk(line: str) -> bool:
    """A sentence to somebody, not an action: long, or closed as sentences are."""
    words = line.split()
    return len(words) > _TALK_WORDS or (len(words) > 2 and line.rstrip("\"' ")[-1:] in ".!?")


def cut(text: str, limit: int, /) -> str:
    """One line of `text` within `limit`, without half a slot at its end."""
    line = " ".join(text[: 4 * limit].split()).replace("`", "'")
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    if head.rfind("<") > head.rfind(">"):
        head = head[: head.rfind("<")]
    return head.rstrip(" ,=") + "…"


_MOST: Final = 20_000
"""Characters of an answer that is read as JSON."""
_TELLING: Final = {"ok", "success", "succeeded", "is_success", "valid"}
_ERRORS: Final = {"is_error", "has_error", "has_errors", "failed", "error", "errors", "error_code", "err"}
_CODES: Final = {"exit_code", "exit_status", "return_code", "returncode"}
_BAD: Final = {"error", "failed", "failure", "fail", "denied", "rejected", "invalid", "unauthorized", "forbidden"}
_SPEAKS: Final = {"message", "detail", "reason", "msg", "result", "output", "response", "text", "content", "status"}
"""Fields whose words may say that something failed."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def failed(text: str, /) -> bool | None:
    """Whether an answer says in a field of its own that it failed, or did not; `None` where only words could say it."""
    if len(text) > _MOST or not text.lstrip().startswith("{"):
        return None
    try:
        data: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    flags = [
        flag
        for name, value in data.items()
        if (flag := _is_failed_status(_HUMP.sub("_", name).lower(), value)) is not None
    ]
    if flags:
        return any(flags)
    speaks = any(name.lower() in _SPEAKS and isinstance(value, str) for name, value in data.items())
    return None if speaks else False


def _is_failed_status(name: str, value: Json) -> bool | None:
    if name in _TELLING:
        return not value if isinstance(value, bool) else None
    if name in _CODES:
        return value != 0 if isinstance(value, int) else None
    if name in _ERRORS:
        return value not in (None, False, 0, "", [], {}, "0")
    return True if name == "status" and isinstance(value, str) and value.lower() in _BAD else None
