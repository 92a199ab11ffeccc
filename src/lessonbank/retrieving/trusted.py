"""Shows only what is trusted enough, and fills the places that others would have taken."""

from __future__ import annotations

from dataclasses import dataclass

from lessonbank.guard.trust import TrustPolicy, showable
from lessonbank.types import Found, Match

from ._wrapper import Around

_WIDER = 4
_MOST = 512
"""Experiences that are looked through at most: beyond them nothing is near any more."""


@dataclass(frozen=True, slots=True)
class Trusted(Around):
    """Leaves out lessons that a policy does not show yet, before their places are counted.

    The inner retriever is asked for more until enough trusted ones are found or there are no more.
    """

    policy: TrustPolicy

    @property
    def name(self) -> str:
        """The inner name and the policy."""
        return f"{self.inner.name}+{self.policy}"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds and may be shown; a note where something was found and nothing may."""
        asked = limit
        while True:
            found = await self.inner(task, scope=scope, limit=asked)
            kept = [m for match in found.matches if (m := _shown(match, self.policy))]
            if len(kept) >= limit or len(found.matches) < asked or asked >= _MOST:
                break
            asked *= _WIDER
        if kept or not found.matches:
            return found.model_copy(update={"matches": tuple(kept[:limit])})
        why = f"past tasks found: {len(found.matches)}, none trusted yet ({self.policy})"
        return Found(notes=found.notes, empty=why)


def _shown(match: Match, policy: TrustPolicy) -> Match | None:
    experience = showable(match.experience, policy)
    ids = {lesson.id for lesson in experience.lessons}
    if not ids or (match.lesson_id is not None and match.lesson_id not in ids):
        return None
    return match if experience is match.experience else match.model_copy(update={"experience": experience})
