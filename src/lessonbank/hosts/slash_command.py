"""Answers `/lessonbank` inside a coding agent: the hook prints it to the person, and no model reads it.

What lets a lesson out (`keep`, `edit`) is only named here: a person does it in a terminal or on the review page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from shlex import quote
from typing import Final

from lessonbank._base.ids import LEAST
from lessonbank._base.iterate import each
from lessonbank._base.plural import plural
from lessonbank.bank.recall_again import cures_of
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Lesson
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.errors import LessonbankError, NotFound, printable

from .switches import Switches
from .week import exposure, spent_since

_MOST: Final = 30
_LONGEST: Final = 110
_ERASED: Final = 500
"""The latest runs of a scope among which those of a session are looked for."""
SESSION: Final = "session"
"""The metadata of a recall that names the session which asked."""
_HELP: Final = "remove ID | keep ID | edit ID | off, on (this session) | off here, on here | erase this session"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """The command in one session."""

    bank: ReasoningBank
    """Of the session's repository."""
    name: str
    """Where the bank is, for commands in a terminal."""
    session: str
    forget: Callable[[], None]
    """Forgets what the session was given."""
    switches: Switches
    asked: RetrieveOptions
    """How the agent asks for lessons."""

    def answer(self, words: str, /) -> str:
        """What the person is told."""
        first, _, rest = words.strip().partition(" ")
        act = self._acts().get((first + (" here" if rest.strip() == "here" else "")).casefold() or "list")
        if act is None:
            return f"lessonbank has no `{printable(words.strip(), most=60)}`: write /lessonbank {_HELP}"
        try:
            return act(rest.strip())
        except LessonbankError as error:
            return f"lessonbank: {printable(str(error), most=300)}"

    def _acts(self) -> dict[str, Callable[[str], str]]:
        switch = self.switches
        return {
            "list": lambda _: self._list(),
            "keep": lambda id: self._in_a_terminal("approve", id),
            "edit": lambda id: self._in_a_terminal("edit", id),
            "remove": self._remove,
            "erase": self._erase,
            "off": lambda _: switch.set(session=self.session, off=True),
            "on": lambda _: switch.set(session=self.session, off=False),
            "off here": lambda _: switch.set(scope=self.bank.scope, off=True),
            "on here": lambda _: switch.set(scope=self.bank.scope, off=False),
        }

    def _list(self) -> str:
        known = ((lesson, exposure(bank, lesson, self.asked)) for bank, lesson in self._lessons())
        lessons = [*{(lesson.text, stands): (lesson, stands) for lesson, stands in known}.values()]
        lines = [f"{row.id[-8:]}  {stands:5}  {_line(row)}" for row, stands in lessons[:_MOST]]
        if len(lessons) > _MOST:
            more = f"--bank {quote(self.name)} --scope {quote(self.bank.scope)}"
            lines.append(f"and {len(lessons) - _MOST} more: lessonbank lessons list {more}")
        waiting = sum(stands == "waits" for _, stands in lessons)
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        cost = spent_since(today, [self.bank, self._cures])
        head = f"lessonbank: {plural(len(lessons), 'lesson')} of {self.bank.scope}, {waiting} of them wait for you"
        off = ["off in this session"] * self.switches.is_off(session=self.session)
        off += ["off in this repository"] * self.switches.is_off(scope=self.bank.scope)
        return "\n".join([head, *lines, *off, f"today: {cost}", f"/lessonbank {_HELP}"])

    @property
    def _cures(self) -> ReasoningBank:
        return self.bank.scoped(cures_of(self.bank.scope))

    def _lessons(self) -> list[tuple[ReasoningBank, Lesson]]:
        """Of both scopes, the newest first."""
        both = [
            (bank, lesson) for bank in (self.bank, self._cures) for lesson in each(bank.lessons.list, attrgetter("id"))
        ]
        return sorted(both, key=lambda pair: pair[1].created_at, reverse=True)

    def _find(self, id: str) -> tuple[ReasoningBank, Lesson]:
        matches = [pair for pair in self._lessons() if len(id) >= LEAST and pair[1].id.endswith(id)]
        if len(matches) != 1:
            raise NotFound(f"there is no lesson {id}: /lessonbank lists them" if id else "give the lesson's id")
        return matches[0]

    def _in_a_terminal(self, act: str, id: str) -> str:
        bank, lesson = self._find(id)
        where = f"--bank {quote(self.name)} --scope {quote(bank.scope)}"
        page = f"lessonbank review {quote(self.name)} --scope {quote(bank.scope)}"
        return f"only you can do that: lessonbank lessons {act} {lesson.id[-8:]} {where} --by YOU | or: {page}"

    def _remove(self, id: str) -> str:
        _, lesson = self._find(id)
        if lesson.approved:
            return f"somebody approved it: {self._in_a_terminal('retire', id)}"
        for memory, same in self._lessons():  # a cure may also be a lesson for prompts
            if same.text == lesson.text and not same.approved:
                memory.lessons.retire(same.id, reason="removed with /lessonbank")
        return f"it is not shown any more: {_line(lesson)}"

    def _erase(self, what: str) -> str:
        if what.casefold() != "this session":
            return "write /lessonbank erase this session: its runs, its lessons and what it was shown go for good"
        self.switches.set(session=self.session, off=True)
        count = 0
        for bank in (self.bank, self._cures):
            runs = [run.trajectory for run in bank.runs.list(limit=_ERASED)]
            ids = [run.id for run in runs if f"{run.metadata.get('run_id', '')}/".startswith(f"{self.session}/")]
            given = each(partial(bank.recalls.list, metadata={SESSION: self.session}), attrgetter("id"))
            recalls = [recall.id for recall in given]
            if ids or recalls:
                bank.admin.purge(run=ids or None, recall=recalls or None, reason="a person erased the session")
                count += len(ids)
        self.forget()
        return f"erased: {plural(count, 'run')} with their lessons; nothing more is kept of this session"


def _line(lesson: Lesson) -> str:
    text = printable(": ".join(filter(None, (lesson.title, lesson.content))), most=400)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
