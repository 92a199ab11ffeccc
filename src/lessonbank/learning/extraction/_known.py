"""Shows an extractor the nearest lessons of the bank, and reads how its own stand to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lessonbank.contracts.records import Duplicate, Lesson, Relation
from lessonbank.guard import canonical_line, fence
from lessonbank.guard.gate import says_nothing
from lessonbank.text.prompts import load
from lessonbank.text.rendering import BYTES_PER_TOKEN, width

from .parsing import Draft, shorten

BUDGET: Final = 600
"""The most tokens (estimated) that they take, what is asked about them included."""
_NUMBER: Final = re.compile(r"\W{0,3}K? ?([0-9]{1,2})(?![0-9])")
_TITLE: Final = 70
"""Characters of the title of an addition."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The drafts that say something of their own, and what the others repeat."""

    lessons: tuple[Draft, ...]
    repeats: dict[str, tuple[Duplicate, ...]]


@dataclass(frozen=True, slots=True)
class Known:
    """The lessons that an extractor is shown, as K1 to K3."""

    lessons: tuple[Lesson, ...] = ()
    additions: bool = False
    """Whether the extractor is asked what a lesson that comes again adds."""

    def write_prompt(self, nonce: str, /) -> str:
        """What the prompt says about them; empty where there are none."""
        if not self.lessons:
            return ""
        prompt = load("general/known_adds" if self.additions else "general/known")
        room = BUDGET * BYTES_PER_TOKEN - width(prompt.user) - width(fence("", label="memory", nonce=nonce))
        each = room // len(self.lessons) // BYTES_PER_TOKEN
        shown = "\n".join(_short(f"K{n}. {_line(lesson)}", each) for n, lesson in enumerate(self.lessons, 1))
        return prompt.render(lessons=fence(shown, label="memory", nonce=nonce))[-1].content + "\n\n"

    def with_additions(self, drafts: Sequence[Draft], /) -> list[Draft]:
        """The drafts, and what those that repeat a known lesson add to it, each as a draft of its own."""
        repeats = [draft for draft in drafts if self.additions and draft.adds and self._repeated(draft)]
        return [*drafts, *map(_addition, repeats)]

    def sorted(self, drafts: Sequence[Draft], /) -> Sorted:
        """Drafts that only repeat a known lesson apart from the rest."""
        own, repeats = list[Draft](), dict[str, tuple[Duplicate, ...]]()
        for draft in drafts:
            known = self._repeated(draft)
            if known is None or _decides_more(draft, known):
                own.append(draft)
            else:
                why = "the extractor says that the run shows it"
                again = Duplicate(title=known.title, evidence=draft.evidence, why=why)
                repeats[known.id] = (*repeats.get(known.id, ()), again)
        return Sorted(tuple(own), repeats)

    def relation_of(self, draft: Draft, /) -> Relation | None:
        """The known lesson that `draft` says more exactly, denies, or adds to."""
        known = self._of(draft)
        if known is None or draft.beside is None or draft.beside[0] == "same":
            return None
        return Relation(lesson_ids=(known.id,), kind=draft.beside[0])

    def _repeated(self, draft: Draft) -> Lesson | None:
        return self._of(draft) if draft.beside and draft.beside[0] == "same" else None

    def _of(self, draft: Draft) -> Lesson | None:
        named = _NUMBER.match(draft.beside[1]) if draft.beside else None
        return self.lessons[int(named[1]) - 1] if named and 1 <= int(named[1]) <= len(self.lessons) else None


def _addition(draft: Draft) -> Draft:
    """What a draft adds, in words of its own: it is read beside the lesson that it adds to, and also without it."""
    stand = draft.beside and ("adds", draft.beside[1])
    # The gate refuses a lesson whose title and content are the same empty words: that must still be seen.
    words = draft.adds if says_nothing(draft.adds, draft.adds) else f"More on: {draft.title}"
    return replace(draft, title=shorten(words, _TITLE), content=draft.adds, choice=None, beside=stand, adds="")


def _decides_more(draft: Draft, known: Lesson) -> bool:
    """Whether a choice rules out or confirms an option of which the known lesson says nothing."""
    choice, before = draft.choice, known.choice
    if choice is None or before is None:
        return False
    decided = {option.casefold() for option in (*before.excluded, *before.confirmed)}
    return any(option.casefold() not in decided for option in (*choice.excluded, *choice.confirmed))


def _line(lesson: Lesson) -> str:
    when = f" (when: {lesson.description})" if lesson.description else ""
    open_ = " [needs more runs]" if lesson.applies_to and lesson.applies_to.unsettled else ""
    return canonical_line(f"{lesson.title}{when}: {lesson.content}{open_}", limit=2_000)


def _short(line: str, tokens: int) -> str:
    room = tokens * BYTES_PER_TOKEN - 3
    return line if width(line) <= room else line.encode()[:room].decode(errors="ignore") + "…"
