"""The lessons of a scope: find them, write and edit them, and decide which may be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from lessonbank._base.checks import (
    a_flag,
    a_list_of_ids,
    a_mapping,
    a_text,
    an_id,
    filters,
    is_instance,
    maybe_id,
    maybe_one_of,
    maybe_text,
    nonempty,
    one_of,
    short_repr,
)
from lessonbank.bank.scoped_bank import ScopedBank, lesson_of, person
from lessonbank.contracts.ports import LessonFilter, Vectors
from lessonbank.contracts.records import (
    Add,
    Change,
    Edit,
    Experience,
    JournalEntry,
    Json,
    Kind,
    Lesson,
    LessonState,
    Proposal,
    Provenance,
    Recall,
    Repeat,
    Replace,
    Restore,
    Retire,
    Trust,
)
from lessonbank.contracts.records.repeats import repeats_in, split_off
from lessonbank.contracts.store_calls import experience_of_lesson, get_experience
from lessonbank.errors import Conflict, UsageError
from lessonbank.evidence.groups import topic_names
from lessonbank.guard import canonical, canonical_line
from lessonbank.guard.gate import CONTENT
from lessonbank.guard.identity import key_names
from lessonbank.guard.reviewed import asks
from lessonbank.learning.consolidation.additions import adds_to, joined
from lessonbank.learning.consolidation.lineage import descent, in_common, merging, unmerge
from lessonbank.learning.topics import in_topics, topics_called
from lessonbank.search.trusted import task_words

from .proposals import changes_of, edit_to, file_proposals, pair_proposals

NOTE: Final = "note"
"""The method of a lesson that an agent noted itself."""
_BY_AGENT: Final = "noted by the agent itself"
_MOST_WAITING: Final = 500
"""Lessons that may wait in quarantine when one more is noted."""
_LONGEST_TITLE: Final = 100
_LONGEST: Final = 200
"""Characters of what names a task."""


@asks("lessons")
@dataclass(frozen=True, slots=True)
class AsyncLessons:
    """`bank.lessons`. Every method acts in the scope of its bank.

    Where the bank has reviewers (`admin.add_reviewer`), only one of them decides what is shown: the methods that do
    raise NotAllowed for anybody else.
    """

    _bank: ScopedBank

    async def list(
        self,
        *,
        state: LessonState | None = None,
        kind: Kind | None = None,
        writer: str | None = None,
        topic: str | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        recall: str | None = None,
        retired: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Lesson, ...]:
        """Lessons, newest first, at most `limit`. `after`: the id of the last lesson of the page before.

        Retired lessons are left out, unless `retired` or `state="retired"` asks for them. `topic`: a topic's name or
        id, as `topics` lists them. `text`: every word of it stands in the title, description or content. `metadata`:
        the lesson's experience has these keys and values. `recall`: the id of a recall; runs that used it taught the
        lesson. Raises UsageError, NotFound (`after`, `topic`).
        """
        topics = None if topic is None else topics_called(a_text(topic, "topic=", blank=False), await self.topics())
        lessons = await self._bank.store.lessons(
            LessonFilter(
                state=maybe_one_of(state, "state=", get_args(LessonState)),
                kind=maybe_one_of(kind, "kind=", get_args(Kind)),
                writer=maybe_text(writer, "writer="),
                topics=topics,
                recall=maybe_id(recall, "recall="),
                retired=a_flag(retired, "retired="),
                **filters(text=text, metadata=metadata, limit=limit, after=after),
            ),
            scope=self._bank.scope,
        )
        return tuple(lessons)

    async def search(
        self,
        text: str,
        /,
        *,
        state: LessonState | None = None,
        kind: Kind | None = None,
        writer: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Lesson, ...]:
        """Lessons that contain every word of `text`, newest first. Raises UsageError, NotFound (`after`)."""
        return await self.list(
            text=text, state=state, kind=kind, writer=writer, metadata=metadata, limit=limit, after=after
        )

    async def topics(self) -> Mapping[str, str]:
        """The topics of the lessons in this scope: id to name."""
        scope = self._bank.scope
        return topic_names([lesson async for e in self._bank.store.scan(scope=scope) for lesson in e.lessons])

    async def get(self, id: str, /) -> Lesson:
        """One lesson. Raises NotFound."""
        return lesson_of(await self.experience(id), id)

    async def experience(self, lesson_id: str, /) -> Experience:
        """The experience a lesson belongs to: its task, its runs and the lessons beside it. Raises NotFound."""
        return await experience_of_lesson(self._bank.store, an_id(lesson_id), scope=self._bank.scope)

    async def repeats(self, id: str, /) -> tuple[Repeat, ...]:
        """Each time a lesson came again, oldest first: from which runs, how they ended, in which words.

        Raises NotFound.
        """
        await self.experience(id)
        again = await self._bank.store.experiences("repeats", [id], scope=self._bank.scope)
        return tuple(repeat for experience in again for repeat in repeats_in(experience, id))

    async def split(self, id: str, experience_id: str, /, *, reason: str, by: str | None = None) -> tuple[Lesson, ...]:
        """Undo a recognition: what an experience taught in other words becomes lessons of its own, on probation.

        `repeats` names the experience. Raises UsageError (it taught nothing in other words), NotFound, Conflict.
        """
        await self.experience(id)
        experience = await get_experience(self._bank.store, an_id(experience_id), scope=self._bank.scope)
        apart, lessons = split_off(experience, id)
        if not lessons:
            raise UsageError(f"the experience {experience.id!r} did not teach the lesson {id!r} again in other words")
        checked = await self._bank.parts.intake.experience(experience.model_copy(update={"lessons": lessons}))
        apart = apart.model_copy(update={"lessons": (*experience.lessons, *checked.lessons)})
        vectors, _ = await self._bank.index([apart])
        change = Replace(experience=apart, reason=a_text(reason, "reason=", blank=False))
        await self._bank.apply(change, by=by, vectors=vectors, if_unchanged=[experience])
        return checked.lessons

    async def merge(
        self, *ids: str, title: str = "", content: str = "", by: str, when: str = "", reason: str = ""
    ) -> Lesson:
        """Keep one lesson, in a person's words, for several that say nearly the same. These are retired.

        It is a new lesson, approved and shown at once, which the tasks of all of them find. Its evidence starts from
        nothing. `unmerge` undoes it. `when`: when to use it, and when not. `by`: the person's name. Of a lesson and
        what adds to it, the words of both are joined where none are given. Raises UsageError (fewer than two lessons,
        no words, or a strategy and a guardrail), NotFound, Conflict (one is retired, another lesson has these words, or
        one of the two that are joined is approved and the other is not).
        """
        writer, named = person(by), tuple(dict.fromkeys(a_list_of_ids(ids, "merge")))
        if len(named) < 2:
            raise UsageError("merge takes at least two lessons, as in merge(lesson.id, other.id, title=…, …)")
        title, content, when = a_text(title, "title="), a_text(content, "content="), a_text(when, "when=")
        sources = [(lesson_of(owner, id), owner) for id in named for owner in [await self.experience(id)]]
        lesson = None if title or content or when else _joined([lesson for lesson, _ in sources], by=writer)
        lesson = lesson or Lesson(
            title=a_text(title, "title=", blank=False),
            description=when,
            content=a_text(content, "content=", blank=False),
            **in_common([lesson for lesson, _ in sources]),
            provenance=_written_by(writer, descent([lesson for lesson, _ in sources])),
        )
        again = [
            experience
            for id in named
            for experience in await self._bank.store.experiences("repeats", [id], scope=self._bank.scope)
        ]
        why = a_text(reason, "reason=") or f"merged by {writer}"
        merge = merging(lesson, sources, again=again, reason=why)
        safe = await self._bank.parts.intake.experience(merge.experience)
        vectors, _ = await self._bank.index([safe])
        change = merge.model_copy(update={"experience": safe})
        owners = list({owner.id: owner for _, owner in sources}.values())
        vouched = _approval((lesson.id,), writer, why)
        await self._bank.apply(change, vouched, by=by, vectors=vectors, if_unchanged=owners)
        return await self.get(lesson.id)

    async def unmerge(self, id: str, /, *, reason: str, by: str | None = None) -> tuple[Lesson, ...]:
        """Undo a merge: its lesson is retired, and those that it stands for are shown again, as they were.

        Raises UsageError (no merge made this lesson, or it is retired), NotFound, Conflict (one of the others was
        restored already).
        """
        owner = await self.experience(id)
        changes = unmerge(owner, reason=a_text(reason, "reason=", blank=False))
        await self._bank.apply(*changes, by=by)
        return tuple([await self.get(source) for source in owner.merged.get(id, ())])

    async def add(
        self,
        *,
        title: str,
        content: str,
        task: str,
        by: str,
        when: str = "",
        kind: Kind = "strategy",
        metadata: Mapping[str, Json] | None = None,
    ) -> Lesson:
        """Write a lesson by hand. It is approved and shown at once.

        Retrieval compares tasks: `task` is an example of a task that the lesson is for. `when`: when to use it, and
        when not. `by`: the person's name. Raises UsageError, NotAllowed, Conflict (another lesson has these words).
        """
        writer = person(by)
        lesson = Lesson(
            title=a_text(title, "title=", blank=False),
            description=a_text(when, "when="),
            content=a_text(content, "content=", blank=False),
            kind=one_of(kind, "kind=", get_args(Kind)),
            provenance=_written_by(writer, Provenance()),
        )
        about, fields = a_text(task, "task=", blank=False), a_mapping(metadata)
        new = Experience(scope=self._bank.scope, task=about, lessons=(lesson,), metadata=fields)
        new = await self._bank.parts.intake.experience(new)
        vectors, _ = await self._bank.index([new])
        (change,), _, _ = await in_topics(self._bank.parts.topics, [Add(experience=new)])
        applied = await self._bank.apply(change, _approval((lesson.id,), writer, ""), by=by, vectors=vectors)
        return await self.get(lesson.id) if applied else new.lessons[0]

    async def note(
        self,
        content: str,
        /,
        *,
        task: str,
        title: str = "",
        run: str | None = None,
        recall: Recall | str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Lesson:
        """Put what an agent noted into the inbox. Nobody is shown it before a person approves it.

        `task`: what the agent was doing; `run`: the id of the run that shows it, or `recall`: what that run was
        shown. Raises UsageError (the inbox is full), Conflict (another lesson has these words).
        """
        text, about = a_text(content, "the note", blank=False), a_text(task, "task=", blank=False)
        run = maybe_id(run, "run=")
        shown_before = recall.id if is_instance(recall, Recall) else maybe_id(recall, "recall=")
        if len(await self.list(state="quarantined", limit=_MOST_WAITING)) == _MOST_WAITING:
            raise UsageError(f"{_MOST_WAITING} lessons wait in this scope: decide about some of them first")
        lesson = Lesson(
            title=canonical_line(a_text(title, "title=") or text, limit=_LONGEST_TITLE),
            content=canonical(text, limit=CONTENT),
            provenance=Provenance(writer=self._bank.writer, method=NOTE, trajectory_ids=(run,) if run else ()),
        )
        new = Experience(scope=self._bank.scope, task=about, lessons=(lesson,), metadata=a_mapping(metadata))
        new = new.model_copy(update={"recall_id": shown_before})
        new = await self._bank.parts.intake.experience(new)
        source = new.lessons[0].provenance.model_copy(update={"identity": await self._bank.identity()})
        update = {"state": "quarantined", "risk": _BY_AGENT, "provenance": source}
        waits = new.lessons[0].model_copy(update=update)
        if not self._bank.is_off("note"):
            await self._bank.apply(Add(experience=new.model_copy(update={"lessons": (waits,)})))
        return waits

    async def edit(
        self,
        id: str,
        /,
        *,
        by: str,
        title: str | None = None,
        content: str | None = None,
        when: str | None = None,
        reason: str = "",
    ) -> Lesson:
        """Change what a lesson says. It keeps its id; its evidence starts again from nothing.

        With the edit the person approves the new words. Where the bank has reviewers, a lesson that was active waits
        again, also a retired one: approve it, too. One in quarantine stays there. What is not given stays as it is.
        `by`: the person's name. Raises UsageError, NotFound, Conflict (it says this already, or another lesson has
        these words).
        """
        writer = person(by)
        fields = {
            "title": None if title is None else a_text(title, "title=", blank=False),
            "content": None if content is None else a_text(content, "content=", blank=False),
            "description": maybe_text(when, "when="),
        }
        owner = await self.experience(id)
        lesson = lesson_of(owner, id)
        worded = lesson.model_copy(update={name: text for name, text in fields.items() if text is not None})
        others = tuple(worded if other.id == id else other for other in owner.lessons)
        safe = lesson_of(await self._bank.parts.intake.experience(owner.model_copy(update={"lessons": others})), id)
        now = lesson.model_copy(update=_words(safe))
        change = edit_to(now, by=writer, reason=a_text(reason, "reason="))
        return await self._edited(change, owner, now, *await self._trusted(lesson, by=writer))

    async def narrow(self, id: str, /, *, to: str | Sequence[str], by: str, reason: str = "") -> Lesson:
        """Keep a lesson for the tasks it helps: those that hold all words of one of `to`. `to=()`: for every task.

        Its evidence starts again from nothing, because what it did on other tasks says nothing any more. `by`: the
        person's name. Raises UsageError, NotFound, Conflict (it is kept for these already).
        """
        writer, owner = person(by), await self.experience(id)
        lesson = lesson_of(owner, id)
        only = tuple([await self._bank.parts.intake.task(text) for text in _tasks(to)])
        narrowed = lesson.model_copy(update={"only_for_tasks": only})
        change = edit_to(narrowed, by=writer, reason=a_text(reason, "reason="))
        return await self._edited(change, owner, lesson)

    async def _trusted(self, lesson: Lesson, /, *, by: str) -> list[Trust]:
        """How far the new words of a lesson are trusted: nobody but their writer has seen them yet."""
        if lesson.state == "quarantined":
            return []
        if not await key_names(self._bank.store, "reviewer"):
            return [] if lesson.retired else [_approval((lesson.id,), by, f"edited by {by}")]
        waits = Trust(lesson_ids=(lesson.id,), state="probation", by="person", reason=f"edited by {by}")
        return [waits] if lesson.state == "active" else []

    async def _edited(self, change: Edit, owner: Experience, lesson: Lesson, *then: Trust) -> Lesson:
        """Apply an edit with the vectors of `lesson`, which has its words."""
        vectors, _ = await self._bank.index([owner.model_copy(update={"lessons": (lesson,)})])
        vectors = {key: vector for key, vector in vectors.items() if key == lesson.id}
        await self._bank.apply(change, *then, by=change.by, vectors=vectors)
        return await self.get(lesson.id)

    async def proposals(self) -> tuple[Proposal, ...]:
        """What a person is asked to decide: approved lessons that the evidence shows to harm, what files propose, and
        lessons that contradict each other or say nearly the same.

        A lesson that is shown to harm is shown until you decide: `retire` takes it back, `approve` again keeps it. What
        somebody wrote into a file is shown to nobody: `approve` accepts it, `retire` rejects it. Of two lessons that
        say nearly the same, `merge` makes one, and `approve` keeps both.
        """
        evidence = await self._bank.parts.ledger.proposals(scope=self._bank.scope)
        return (*evidence, *await file_proposals(self._bank), *await pair_proposals(self._bank))

    async def approve(self, *ids: str, by: str, reason: str = "") -> tuple[JournalEntry, ...]:
        """A person vouches for lessons: they may be shown from now on, also those in quarantine.

        What a file proposes is done: a lesson is added, edited or retired. Nothing else lets a lesson out of
        quarantine: never call this for an agent, a tool or an import. `by`: the person's name. Raises UsageError,
        NotFound, Conflict.
        """
        plain, writer, why = a_list_of_ids(ids, "approve"), person(by), a_text(reason, "reason=")
        changes, vectors = list[Change](), dict[str, Vectors]()
        for id in () if self._bank.options.off else plain:
            if proposal := await changes_of(self._bank, id, by=writer, reason=why or f"approved by {writer}"):
                plain = tuple(other for other in plain if other != id)
                changes += proposal[0]
                vectors |= proposal[1]
        vouched = [_approval(plain, writer, why)] if plain else []
        return await self._bank.apply(*vouched, *changes, by=by, vectors=vectors)

    async def quarantine(self, *ids: str, reason: str, by: str | None = None) -> tuple[JournalEntry, ...]:
        """Show lessons to nobody until a person approves them. Raises UsageError, NotFound, Conflict."""
        named = a_list_of_ids(ids, "quarantine")
        await self._hides(named, "quarantine", by=by)
        change = Trust(lesson_ids=named, state="quarantined", by="person", reason=a_text(reason, "reason="))
        return await self._bank.apply(change, by=by)

    async def retire(self, *ids: str, reason: str, by: str | None = None) -> tuple[JournalEntry, ...]:
        """Stop showing lessons. They stay, and `restore` brings them back. Raises UsageError, NotFound, Conflict."""
        named = a_list_of_ids(ids, "retire")
        await self._hides(named, "retire", by=by)
        change = Retire(lesson_ids=named, reason=a_text(reason, "reason="))
        return await self._bank.apply(change, by=by)

    async def restore(self, *ids: str, reason: str, by: str | None = None) -> tuple[JournalEntry, ...]:
        """Show retired lessons again. Raises UsageError, NotFound, Conflict."""
        change = Restore(lesson_ids=a_list_of_ids(ids, "restore"), reason=a_text(reason, "reason="))
        return await self._bank.apply(change, by=by)

    async def _hides(self, ids: Sequence[str], call: str, *, by: str | None) -> None:
        """Hiding a lesson is free, so that it is quick; but what a person vouched for, a person takes back."""
        if by is not None:
            person(by)
        if self._bank.options.off:
            return
        if any([lesson_of(await self.experience(id), id).approved for id in ids]):
            await self._bank.check_reviewer(call, by=by)


def _tasks(to: str | Sequence[str]) -> list[str]:
    """What tasks are named by, each once. Raises UsageError."""
    if is_instance(to, (list, tuple)) and not to:
        return []
    named = [to] if is_instance(to, str) else nonempty(to, "to=", str)
    tasks = [" ".join(a_text(text, "to=").split())[:_LONGEST] for text in named]
    if wordless := [text for text in tasks if not task_words(text)]:
        raise UsageError(
            f"to= names tasks by their words, and {short_repr(wordless[0])} has none: give words of the tasks"
        )
    return list(dict.fromkeys(tasks))


def _approval(ids: tuple[str, ...], by: str, reason: str) -> Trust:
    return Trust(lesson_ids=ids, state="active", by="person", reason=reason or f"approved by {by}")


def _joined(sources: Sequence[Lesson], /, *, by: str) -> Lesson | None:
    """A lesson with what adds to it; `None` where that is not what they are. Raises Conflict."""
    first, other = sources[0], sources[-1]
    base, addition = (first, other) if adds_to(other, first) else (other, first)
    if len(sources) > 2 or not adds_to(addition, base):
        return None
    if base.approved != addition.approved or base.state != addition.state:
        waits = addition if base.approved else base
        raise Conflict(f"the lesson {waits.id!r} is trusted less than the other: approve it first, or give both words")
    lesson = joined(base, addition)
    return lesson.model_copy(update={"risk": None, "provenance": _written_by(by, lesson.provenance)})


def _written_by(writer: str, earlier: Provenance) -> Provenance:
    return earlier.model_copy(update={"writer": writer, "method": "human"})


def _words(lesson: Lesson) -> dict[str, str]:
    return {"title": lesson.title, "description": lesson.description, "content": lesson.content}
