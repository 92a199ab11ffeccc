"""Shows only what is trusted enough and kept for such tasks, and fills the places that others would have taken."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anyio import to_thread

from lessonbank.contracts.records import Experience, Found, Lesson, Match
from lessonbank.guard.trust import TrustPolicy, showable

from ._wrapper import RetrieverWrapper

_WIDER = 4
_WORD = re.compile(r"\w+")
_QUICK = 4096
"""Characters whose words are found faster than a thread starts."""
_MOST = 512
"""Experiences that are looked through at most: beyond them nothing is near any more."""


@dataclass(frozen=True, slots=True)
class TrustFilter(RetrieverWrapper):
    """Leaves out lessons that a policy does not show yet, and those that people keep for other tasks.

    Both happen before places are counted: the inner retriever is asked for more until enough are found, or all are.
    """

    policy: TrustPolicy
    own_of: str = ""
    """The identity whose own lessons are shown beside those that the policy shows."""

    @property
    def name(self) -> str:
        """The inner name and the policy."""
        own = "+own" if self.own_of else ""
        return f"{self.inner.name if self.policy == 'open' else f'{self.inner.name}+{self.policy}'}{own}"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds and may be shown; a note where something was found and nothing may."""
        asked, words = limit, frozenset[str]()
        while True:
            retrieval = await self.inner(task, scope=scope, limit=asked)
            if not words and any(
                lesson.only_for_tasks for match in retrieval.matches for lesson in match.experience.lessons
            ):
                words = task_words(task) if len(task) <= _QUICK else await to_thread.run_sync(task_words, task)
            matches = [m for match in retrieval.matches if (m := self._filter_match(match, words))]
            if len(matches) >= limit or len(retrieval.matches) < asked or asked >= _MOST:
                break
            asked *= _WIDER
        if matches or not retrieval.matches:
            return retrieval.model_copy(update={"matches": tuple(matches[:limit])})
        count, why = len(retrieval.matches), f"none trusted yet ({self.policy})"
        if any(self._showable(match.experience).lessons for match in retrieval.matches):
            why = "and their lessons are kept for other tasks (lessons.narrow)"
        return Found(notes=retrieval.notes, empty=f"past tasks found: {count}, {why}")

    def _showable(self, experience: Experience) -> Experience:
        return showable(experience, self.policy, own_of=self.own_of)

    def _filter_match(self, match: Match, words: frozenset[str]) -> Match | None:
        experience = self._showable(match.experience)
        if any(lesson.only_for_tasks for lesson in experience.lessons):
            meant = tuple(lesson for lesson in experience.lessons if is_for(lesson, words))
            experience = experience.model_copy(update={"lessons": meant})
        ids = {lesson.id for lesson in experience.lessons}
        if not ids or (match.lesson_id is not None and match.lesson_id not in ids):
            return None
        return match if experience is match.experience else match.model_copy(update={"experience": experience})


def task_words(text: str, /) -> frozenset[str]:
    """The words of a task without case, and without numbers."""
    return frozenset(word for word in {*_WORD.findall(text.casefold())} if not any(map(str.isdigit, word)))


def is_for(lesson: Lesson, words: frozenset[str], /) -> bool:
    """Whether a lesson is meant for a task of these words: people may keep it for some tasks."""
    return not lesson.only_for_tasks or any(words >= task_words(text) for text in lesson.only_for_tasks)
