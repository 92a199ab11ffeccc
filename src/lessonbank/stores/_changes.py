"""What a batch of changes makes of a scope, decided before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from lessonbank.contracts.records import (
    Change,
    Edit,
    Experience,
    Lesson,
    Merge,
    Rejudge,
    Replace,
    Rollback,
    Trust,
)
from lessonbank.contracts.records.timeline import Entry, taken_out
from lessonbank.errors import Conflict, NotFound, UsageError
from lessonbank.guard.wording import wording_of

from ._entries import Batch

SETTLED: Final = "settled meanwhile, by somebody else; nothing was changed"
KEPT: Final = "kept meanwhile, by somebody else; nothing was changed"
_STAYS: Final = "it was in quarantine before a rollback, and only an approval ends that"


class View(Protocol):
    """The present state of one scope, as far as a change needs to know it."""

    def knows(self, id: str, /) -> bool:
        """Whether the scope has this experience."""
        ...

    def experience(self, id: str, /) -> Experience | None:
        """The experience of that id."""
        ...

    def find_holder(self, lesson_id: str, /) -> str | None:
        """The id of the experience that holds this lesson."""
        ...

    def settled_runs(self, trajectory_ids: Collection[str], /) -> Collection[str]:
        """Return the ids of runs that an experience has settled."""
        ...

    def find_wordings(self, wordings: Collection[str], /) -> Collection[tuple[str, str]]:
        """Wording and lesson id of the lessons that have one of these wordings."""
        ...


class Draft:
    """A batch of changes laid over the present state; each change sees the ones before it.

    `written` is what has to be stored, each experience once and in its last form; `added` names those that are new;
    `touched` has for each change the experiences it wrote, and whether it holds them whole.
    """

    def __init__(self, present: View, /, *, scope: str) -> None:
        self._present = present
        self._scope = scope
        self._owners: dict[str, str | None] = {}
        self.written: dict[str, Experience] = {}
        self.added: set[str] = set()
        self.touched: list[dict[str, bool]] = []

    def knows(self, id: str, /) -> bool:
        """Whether the experience exists once the changes so far are made."""
        return id in self.written or self._present.knows(id)

    def holds(self, id: str, /) -> bool:
        """Whether an experience or a lesson of that id exists once the changes so far are made."""
        return self.knows(id) or self._owner(id) is not None

    def do(self, change: Change, /) -> None:
        """Make one change.

        Raises:
            NotFound, Conflict: it does not fit; see `Records.apply`.
            UsageError: it carries an experience of another scope.
        """
        self.touched.append({})
        if isinstance(change, Rollback):
            raise UsageError("a rollback cannot be applied together with other changes: apply it alone")
        if isinstance(change, Rejudge):
            self._rejudge(change)
        if change.marks:
            self._mark(change)
        if isinstance(change, Replace):
            self._replace(change.experience)
        elif (brought := change.brings) is not None:
            self._add(brought)

    def _add(self, experience: Experience) -> None:
        self._check_trust(experience, {})
        if self.knows(experience.id):
            raise Conflict(
                f"the experience {experience.id!r} is in this scope already: replace it instead of adding it"
            )
        self._put(experience)
        self.added.add(experience.id)

    def _replace(self, experience: Experience) -> None:
        earlier = self._experience(experience.id)
        self._check_trust(experience, {lesson.id: lesson for lesson in earlier.lessons})
        for lesson in earlier.lessons:
            self._owners[lesson.id] = None
        self._put(experience)

    def _rejudge(self, change: Rejudge) -> None:
        experience = self._experience(change.experience_id)
        if all(attempt.trajectory_id != change.trajectory_id for attempt in experience.attempts):
            raise NotFound(f"no attempt {change.trajectory_id!r} in the experience {change.experience_id!r}")
        self._write(change.amend(experience), whole=False)

    def _check_trust(self, experience: Experience, earlier: Mapping[str, Lesson]) -> None:
        for lesson in experience.lessons:
            before = earlier.get(lesson.id)
            if (before is None and lesson.state == "active") or (
                before and (lesson.state, lesson.approved) != (before.state, before.approved)
            ):
                raise UsageError(
                    f"the lesson {lesson.id!r} already has a state: a new lesson is on probation, "
                    "and only a Trust change moves it"
                )
            if before and before.state == "active" and before.text != lesson.text:
                raise UsageError(
                    f"the lesson {lesson.id!r} is trusted, so its words cannot be replaced: add a new lesson, "
                    "or edit it as a person"
                )

    def _put(self, experience: Experience) -> None:
        if experience.scope != self._scope:
            raise UsageError(
                f"the experience {experience.id!r} belongs to the scope {experience.scope!r} "
                f"and cannot be written to {self._scope!r}"
            )
        for lesson in experience.lessons:
            if self._owner(lesson.id) is not None:
                raise Conflict(
                    f"the lesson {lesson.id!r} is in this scope already: lessons keep one id and one experience"
                )
            self._owners[lesson.id] = experience.id
        self._write(experience, whole=True)

    def _write(self, experience: Experience, *, whole: bool) -> None:
        self.written[experience.id] = experience
        self.touched[-1][experience.id] = whole

    def _mark(self, change: Change) -> None:
        """Change the flags or the words of lessons."""
        by_experience: dict[str, set[str]] = {}
        for lesson_id in change.marks:
            owner = self._owner(lesson_id)
            if owner is None:
                raise NotFound(f"no lesson {lesson_id!r} in this scope")
            by_experience.setdefault(owner, set()).add(lesson_id)
        for owner, marked in by_experience.items():
            experience = self._experience(owner)
            lessons = tuple(_marked(i, change) if i.id in marked else i for i in experience.lessons)
            self._write(experience.model_copy(update={"lessons": lessons}), whole=False)

    def _experience(self, id: str) -> Experience:
        experience = self.written.get(id) or self._present.experience(id)
        if experience is None:
            raise NotFound(f"no experience {id!r} in this scope")
        return experience

    def check_wordings(self, changes: Iterable[Change], /) -> None:
        """Refuse lessons in words that are new to them and that another lesson has. Raises Conflict."""
        changes = list(changes)
        merged = {id for c in changes if isinstance(c, Merge) for id in c.source_lesson_ids}  # it may keep their words
        brought = [lesson for c in changes if (experience := c.brings) for lesson in experience.lessons]
        new = {i.id: wording_of(i) for i in brought if self._present.find_holder(i.id) is None and i.id not in merged}
        new |= {
            c.lesson_id: wording_of(Lesson(title=c.title, content=c.content)) for c in changes if isinstance(c, Edit)
        }
        if not new:
            return
        same = self._present.find_wordings(set(new.values()))
        held = [(w, id) for w, id in same if id not in merged and self._owner(id) is not None]
        first = dict(reversed(held))
        for id, wording in new.items():
            if (wording, id) not in held and (other := first.setdefault(wording, id)) != id:
                raise Conflict(f"the lesson {other!r} says this in the same words: nothing was changed; edit that one")

    def _owner(self, lesson_id: str) -> str | None:
        if lesson_id in self._owners:
            return self._owners[lesson_id]
        return self._present.find_holder(lesson_id)


def _marked(lesson: Lesson, change: Change) -> Lesson:
    if why := change.misfit(lesson):
        raise Conflict(f"the lesson {lesson.id!r} {why}")
    return change.mark(lesson)


def planned(batch: Batch, present: View, changes: Sequence[Change], /) -> Draft:
    """The changes of a batch, made on paper; those that a store makes by itself, as a rollback, are left out.

    Raises:
        NotFound, Conflict, UsageError: one of them does not fit, or what they were decided upon is not so any more;
            the store must then write nothing.
    """
    if quicker := present.settled_runs(batch.if_unlearned):
        raise Conflict(f"learned meanwhile, by somebody else: {', '.join(sorted(quicker))}; nothing was changed")
    if moved := [e.id for e in batch.if_unchanged if present.experience(e.id) != e]:
        raise Conflict(f"changed meanwhile, by somebody else: {', '.join(moved)}; nothing was changed")
    draft = Draft(present, scope=batch.scope)
    for change in changes:
        draft.do(change)
    if batch.unique_wording:
        draft.check_wordings(changes)
    return draft


def vouched(experience: Experience, trusted: Mapping[str, str], /, *, by: str) -> Trust | None:
    """The trust that a person gives to lessons that say what a file says, from lesson id to text; `None` for none."""
    ids = tuple(i.id for i in experience.lessons if trusted.get(i.id) == i.text and i.state == "probation")
    if not ids:
        return None
    return Trust(lesson_ids=ids, state="active", by="person", reason=f"imported, approved by {by}")


def check_target(rollback: Rollback, /, *, sequence: int) -> None:
    """Refuse a rollback to what has not happened; `sequence` is that of the journal's last entry.

    Raises:
        NotFound: there is no such entry.
    """
    if rollback.to > sequence:
        raise NotFound(f"there is no change {rollback.to} in this scope: the last one is {sequence}")


def handed_on(
    read: Callable[..., Mapping[int, Entry]], spans: Sequence[range], present: View, held: Collection[str], /
) -> list[Change]:
    """What gives back what purges left in the place of what they erased, where a rollback to `spans` took it out.

    `read` gives the journal entries of some kinds, by sequence; lessons that are `held` in quarantine stay there.
    """
    if all(any(sequence in span for span in spans) for sequence in read("purge")):
        return []
    changes, versions, new = list[Change](), dict[str, Experience](), set[str]()
    for change in taken_out(read("purge", "replace", "trust"), spans):
        if isinstance(change, Trust):
            changes += [change] if new.difference(held).issuperset(change.lesson_ids) else []
        elif earlier := versions.get(change.experience.id) or present.experience(change.experience.id):
            there = {id for id in change.heirs if id in new or present.find_holder(id) is not None}
            version = versions[earlier.id] = change.hand_on(earlier, there=there)
            new |= {lesson.id for lesson in version.lessons} & set(change.heirs) - there
            changes += [change.model_copy(update={"experience": version})] if version != earlier else []
    return changes


def held_back(trusts: Iterable[Entry], /) -> set[str]:
    """The lessons that somebody put in quarantine, and nobody approved since; `trusts` are a journal's, oldest first.

    The whole journal counts, also what was rolled back before: a lesson may have been away in between.
    """
    last: dict[str, str] = {}
    for entry in trusts:
        if isinstance(entry, Trust):
            last.update(dict.fromkeys(entry.lesson_ids, entry.state))
    return {id for id, state in last.items() if state == "quarantined"}


def held_again(experiences: Iterable[Experience], held: Collection[str], /) -> Trust | None:
    """What puts those of `held` in quarantine again that a rollback has let out; `None` where it let none out."""
    there = [lesson for experience in experiences for lesson in experience.lessons if lesson.id in held]
    freed = tuple(lesson.id for lesson in there if lesson.state != "quarantined")
    return Trust(lesson_ids=freed, state="quarantined", by="person", reason=_STAYS) if freed else None


def stale_places(before: Experience, after: Experience, /) -> set[int]:
    """Places of lessons that are not there any more or say something else, and 0 for the task, if it does."""
    texts = [(lesson.id, lesson.text) for lesson in after.lessons]
    lessons = enumerate(((lesson.id, lesson.text) for lesson in before.lessons), 1)
    stale = {at for at, text in lessons if text not in texts[at - 1 : at]}
    return stale if before.task == after.task else {0, *stale}
