"""What a run did, move by move: a short label, what was seen, and whether it got anywhere; all by form, not meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lessonbank.guard import one_line
from lessonbank.types import Action, Step, ToolCall, Trajectory

Effect = Literal["moved", "inert", "error", "repeat"]

_READ = 20_000
"""Characters of one observation that are looked at, from each end: enough for any message, linear for any page."""
_SHORT = 200
"""An observation this short is a message and is read for its wording; a longer one is content and is not."""
_LABEL, _SEEN, _ARGUMENT = 80, 70, 60

_ERROR = re.compile(
    r"(?<!no )(?<!0 )\b(?:errors?|exception|traceback|invalid|fail(?:ed|ure|s)?|reject(?:ed|s)?|denied|forbidden"
    r"|refused|illegal|unable|cannot|can't|could not|couldn't|unknown|incorrect|wrong|unauthori[sz]ed|timed? ?out"
    r"|not found|no such)\b"
    r"(?!\W{0,3}(?:none|null|false|0)\b)",
    re.IGNORECASE,
)
_OPENS_WITH_ERROR = re.compile(r"\W*(?:\w{0,40}error|error|exception|traceback|fatal|failed)\b", re.IGNORECASE)
_EXIT = re.compile(
    r"<returncode>\s*-?[1-9]\d*\s*</returncode>|\bexit(?:ed)?(?: with)?(?: code| status)[:= ]+-?[1-9]"
    r"|^\w{0,60}(?:Error|Exception): |^Traceback \(most",
    re.MULTILINE,
)
_NAMED_ERROR = re.compile(r"\w(?:Error|Exception)\b")
_INERT = re.compile(
    r"^\W*no\b|\bnothing\b|\bno (?:effect|change|result|match|difference)|\bunchanged\b|\bignored\b"
    r"|\bnot (?:available|allowed|permitted|possible|supported|applicable|enabled|clickable|visible)\b|\bdisabled\b",
    re.IGNORECASE,
)
_ACKNOWLEDGED = re.compile(r"^\W*(?:ok(?:ay)?|done|success\w*|saved|set|updated|created|true|yes)\b", re.IGNORECASE)

_FENCED = re.compile(r"```(?:[\w+-]{0,20}[ \t]*\n)?(.{1,2000}?)```", re.DOTALL)
_MARKED = re.compile(r"^[ \t]{0,20}action(?: \d+)?[ \t]{0,5}:[ \t]*(.+)$", re.IGNORECASE | re.MULTILINE)
_TOKEN = re.compile(r"[#@]?\w(?:[\w@.#/:+-]{0,80}\w)?")
_HAS_DIGIT = re.compile(r"\d")
_TAG = re.compile(r"</?[\w-]{1,40}>")
_TALK_WORDS = 10
_READS = re.compile(
    r"(?:get|list|search|find|read|view|show|look|check|query|fetch|count|describe|think|calculate|scroll|noop|wait"
    r"|cat|ls|grep|rg|head|tail|sed -n|pwd|cd|git (?:log|diff|show|status))(?![a-z])",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"([^\"\n]{3,120})\"|'([^'\n]{3,120})'|\[([^\[\]\n]{3,120})\]|\(([^()\n]{3,120})\)")
_NAMED_BEFORE = re.compile(r"([A-Za-z]{3,20})(?: (?:id|number|no|nr|code))?[:#]? *$")
_UNNAMING = frozenset({"the", "for", "and", "with", "from", "that", "this", "are", "was", "has", "have", "you", "your"})


@dataclass(frozen=True, slots=True)
class Move:
    """One thing the agent did. `number` counts the trajectory's steps from 1."""

    number: int
    label: str
    seen: str
    effect: Effect

    @property
    def reads(self) -> bool:
        """Whether its name says that it only looks: whatever went wrong, looking was not it."""
        return bool(_READS.match(self.label))


@dataclass(frozen=True, slots=True)
class Literals:
    """The values that belong to one task and not to the next: what a lesson must not repeat."""

    task: str
    names: dict[str, str]
    """Value to placeholder, such as `B-331` to `<record>`."""

    def generalise(self, text: str, /) -> str:
        """`text` with the task's own values as placeholders."""
        return self.mask(_QUOTED.sub(self._quoted, text))

    def mask(self, text: str, /) -> str:
        """The same for single words only: what came back keeps its quoted names."""
        return _TOKEN.sub(lambda m: self.names.get(m[0], m[0]), text)

    def _quoted(self, match: re.Match[str]) -> str:
        inner = next(group for group in match.groups() if group is not None)
        if inner.lower() not in self.task:
            return match[0]
        return match[0].replace(inner, self.names.get(inner, "<value from the task>"))


def literals(task: str, /) -> Literals:
    """The values of `task`: words with a digit in them, named by the word before, as in `record B-331`."""
    names: dict[str, str] = {}
    text = task[:_READ]
    for match in _TOKEN.finditer(text):
        if len(match[0]) > 2 and _HAS_DIGIT.search(match[0]) and match[0] not in names:
            names[match[0]] = f"<{_name_before(text, match.start())}>"
    return Literals(text.lower(), names)


def _name_before(text: str, at: int) -> str:
    before = _NAMED_BEFORE.search(text, max(0, at - 30), at)
    word = before[1].lower() if before else ""
    return word if word and word not in _UNNAMING else "value"


def moves(trajectory: Trajectory, /) -> tuple[Move, ...]:
    """What was done, in order. What was merely said is left out: where the agent has tools, all text."""
    known = literals(trajectory.task)
    tools = any(step.action.calls for step in trajectory.steps)
    return tuple(_classified(trajectory.steps, known, tools=tools))


def _classified(steps: Sequence[Step], known: Literals, *, tools: bool) -> Iterator[Move]:
    page = ""
    done: set[tuple[str, int]] = set()
    earlier: set[str] = set()
    for number, step in enumerate(steps, 1):
        seen = "\n".join(_ends(o.text) for o in step.observations).strip()
        label = _label(step.action, known, _Shown(page, earlier), tools=tools)
        if label:
            effect = _effect(seen, page, is_error=any(o.is_error for o in step.observations))
            if effect == "moved" and (label, hash(seen)) in done:
                effect = "repeat"
            done.add((label, hash(seen)))
            yield Move(number, label, _cut(known.mask(_gist(seen, effect)), _SEEN), effect)
        page = seen
        earlier.update(t for t in _TOKEN.findall(seen[:_READ]) if len(t) > 2 and _HAS_DIGIT.search(t))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}"


def _effect(text: str, last: str, *, is_error: bool) -> Effect:
    if is_error or _OPENS_WITH_ERROR.match(text) or _EXIT.search(text[:_SHORT]) or _EXIT.search(text[-2 * _SHORT :]):
        return "error"
    if len(text) <= _SHORT:
        if _ERROR.search(text):
            return "error"
        if _INERT.search(text):
            return "inert"
    says_something = len(_TAG.sub("", text).strip()) > 2 and not _ACKNOWLEDGED.match(text)
    return "inert" if says_something and text == last else "moved"


def _gist(text: str, effect: Effect) -> str:
    """The line that says it: of an error the last line that names it, of a message the first line, of content none."""
    lines = [line for line in text.splitlines() if len(_TAG.sub("", line).strip(" \t`{}[]()-=")) > 2]
    if effect != "error":
        return _TAG.sub("", "".join(lines[:1])) if len(text) <= _SHORT and text[:1] not in "{[" else ""
    ends = [line for line in (*lines[:20], *lines[-20:]) if "Traceback" not in line]
    named = [line for line in ends if _NAMED_ERROR.search(line)]
    told = named or [line for line in ends if _ERROR.search(line)]
    return told[-1] if told else ""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the agent had in front of it when it acted: the last page, and every value with a digit shown so far."""

    page: str
    earlier: set[str]

    def generalise(self, text: str, /) -> str:
        """Values that only this run has become what the page calls them, or a placeholder."""
        return _TOKEN.sub(lambda m: self._named(m[0]) if m[0] in self.earlier else m[0], text)

    def _named(self, value: str) -> str:
        """`[a12] button 'Save', clickable` makes `a12` the button 'Save'."""
        at = self.page.find(f"[{value}] ")
        if at < 0:
            return "<value seen earlier>"
        said = self.page[at + len(value) + 3 : at + len(value) + 63].split("\n")[0].split(",")[0].strip()
        return said.replace('"', "'") or "<value seen earlier>"


def _label(action: Action, known: Literals, shown: _Shown, *, tools: bool) -> str:
    if tools:
        return _cut(" and ".join(_called(call, known, shown) for call in action.calls[:3]), _LABEL)
    text = action.text[-_READ:].strip()
    found = _FENCED.findall(text) or _MARKED.findall(text)
    lines = (found[-1] if found else text).strip().splitlines()
    if not lines or (not found and _is_talk(lines[-1])):
        return ""
    return _cut(shown.generalise(known.generalise(lines[0] if found else lines[-1])), _LABEL)


def _is_talk(line: str) -> bool:
    """A sentence to somebody, not an action: long, or closed as sentences are."""
    words = line.split()
    return len(words) > _TALK_WORDS or (len(words) > 2 and line.rstrip("\"' ")[-1:] in ".!?")


def _called(call: ToolCall, known: Literals, shown: _Shown) -> str:
    if isinstance(call.arguments, str):
        return f"{call.name}({shown.generalise(known.generalise(call.arguments[:200]))})"
    told = [(key, _argument(value, known, shown)) for key, value in list(call.arguments.items())[:6]]
    if len(told) == 1:
        return f"{call.name}({told[0][1]})"
    return f"{call.name}({', '.join(f'{key}={value}' for key, value in told)})"


def _argument(value: object, known: Literals, shown: _Shown) -> str:
    if isinstance(value, str):
        if len(value) > 2 and value.lower() in known.task:
            return known.names.get(value, "<value from the task>")
        head = "".join(value.strip()[:300].splitlines()[:1])
        return _cut(shown.generalise(known.generalise(head)), _ARGUMENT)
    if isinstance(value, dict | list):
        return "…"
    return _cut(known.mask(json.dumps(value)), _ARGUMENT)


def _cut(text: str, limit: int) -> str:
    line = one_line(text[: 4 * limit]).replace("`", "'")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
