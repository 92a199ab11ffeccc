"""What a purge erases, and what of it lives on."""

from __future__ import annotations

from lessonbank.contracts.records import Record

from .succession import Successions


class Successor(Record):
    """How a lesson lives on that goes with an erased run: in the words of a run that taught it again, and stays."""

    of: str
    """The id of the lesson that goes."""
    experience_id: str
    """The experience that taught it again."""
    runs: tuple[str, ...]
    """The ids of its runs that stay."""
    lesson_id: str | None = None
    """Where a lesson that stays has these words already, its id."""
    title: str = ""
    when: str = ""
    content: str = ""
    """The words. All are empty in a preview where a model would be asked to draw them from the runs again."""
    approved: bool = False
    """Whether an approval passes on: somebody gave it to exactly these words."""


class Erasing(Record):
    """What a purge would erase: ids of lessons, runs and recalls, or everything; and what of it lives on."""

    lessons: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    recalls: tuple[str, ...] = ()
    whole_scope: bool = False
    successors: tuple[Successor, ...] = ()
    """For each of the lessons that lives on, in which words. The others are gone."""
    spooled: int = 0
    """Runs that waited for the bank on this machine, see `attempt`."""

    @property
    def empty(self) -> bool:
        """Whether nothing would be erased."""
        return not (self.lessons or self.runs or self.recalls or self.whole_scope)


def with_successors(wanted: Erasing, found: Successions, /) -> Erasing:
    """`wanted`, with what lives on of it."""
    new = {one.lesson.id for one in found.passed if one.is_new}  # ids that no preview could foresee
    drawn = [
        Successor(
            of=one.of.id,
            experience_id=one.heir.experience.id,
            runs=one.heir.run_ids,
            lesson_id=None if one.lesson.id in new else one.lesson.id,
            title=one.lesson.title,
            when=one.lesson.description,
            content=one.lesson.content,
            approved=one.is_approved,
        )
        for one in (*found.passed, *found.restored)
    ]
    untold = [Successor(of=id, experience_id=heir.experience.id, runs=heir.run_ids) for id, heir in found.untold]
    return wanted.model_copy(update={"successors": (*drawn, *untold)})
