"""Keep a task's own past, or its near copies, out of its memory: what is left shows transfer and not repetition."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from lessonbank._base.checks import display_name
from lessonbank.contracts.records import Experience, Found
from lessonbank.search._wrapper import SLACK, RetrieverWrapper, ask_next

Rule: TypeAlias = Callable[[str, Experience], bool]
"""Whether an experience is left out when this task is asked for."""
Template: TypeAlias = Callable[[str], str | None]
"""Which template a task was made from; `None` when that is not known."""

_QUOTED: Final = re.compile(r'"[^"\n]{1,200}"|`[^`\n]{1,200}`')
_DIGIT: Final = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class LeaveOut(RetrieverWrapper):
    """Leaves out experiences by a rule, and goes on asking until it has as many as wanted or there are no more.

    `LeaveOut(inner, same_task)` is the leave-one-task-out guard, `LeaveOut(inner, same_template())` the
    leave-one-template-out guard. Where most tasks follow one of the same template, as on WebArena, a gain without
    the second may be repetition alone.
    """

    rule: Rule
    what: str = ""
    """What is left out, for the name and the notes; by default as the rule calls itself."""

    @property
    def name(self) -> str:
        """The inner name and what is left out."""
        return f"{self.inner.name}+leave-out({self._what})"

    @property
    def _what(self) -> str:
        return self.what or display_name(self.rule).replace("_", " ")

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """The best `limit` experiences that the rule lets through: fewer only when the scope has no more."""
        asked: int | None = limit + SLACK
        found, kept = Found(), list[int]()
        while asked is not None:
            found = await self.inner(task, scope=scope, limit=asked)
            kept = [i for i, match in enumerate(found.matches) if not self.rule(task, match.experience)]
            asked = ask_next(asked, got=len(found.matches), count=len(kept), limit=limit)
        return self._told(found, kept[:limit], limit=limit)

    def _told(self, found: Found, kept: list[int], *, limit: int) -> Found:
        """The matches at the places `kept`, and a note on the better ones that were passed over."""
        passed = (kept[-1] + 1 if len(kept) == limit else len(found.matches)) - len(kept)
        if not passed:
            return found.model_copy(update={"matches": tuple(found.matches[i] for i in kept)})
        note = f"left out by {self._what}: {passed}"
        if not kept:
            return Found(notes=found.notes, empty=note)
        return Found(matches=tuple(found.matches[i] for i in kept), notes=(*found.notes, note))


def same_task(task: str, experience: Experience, /) -> bool:
    """Whether the experience is of this very task: the same text, but for case, spacing and forms of characters."""
    return normalised(task) == normalised(experience.task)


@dataclass(frozen=True, slots=True)
class same_template:  # noqa: N801 - reads as the rule it is, beside `same_task`
    """Whether an experience's task was made from the template of this task, or is this very task.

    The query's template is `of` its text. The experience's is `of` its task, and the one that its run named, too.
    By default `of` takes out what often differs between tasks of one template (see `without_values`). What you know is
    better: `same_template(templates.get)`, for a mapping of task texts to names of templates.
    """

    of: Template | None = None

    def __call__(self, task: str, experience: Experience, /) -> bool:
        """Whether to leave it out. Tasks whose template is not known share it with no other task."""
        of = self.of or without_values
        template = of(task)
        theirs = (of(experience.task), experience.template)
        return same_task(task, experience) or (template is not None and template in theirs)


def without_values(text: str, /) -> str:
    """`text`, normalised, with `_` for quoted text and for words with a digit: order numbers, dates, prices."""
    words = normalised(_QUOTED.sub(" _ ", text)).split()
    return " ".join("_" if _DIGIT.search(word) else word for word in words)


def normalised(text: str, /) -> str:
    """NFKC, casefolded, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
