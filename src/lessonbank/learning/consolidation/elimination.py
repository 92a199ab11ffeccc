"""Joins what runs rule out: exclusions about one choice in one place become one lesson, until one option is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from lessonbank._version import VERSION
from lessonbank.contracts.ports import Consolidator, Decision, Retriever
from lessonbank.contracts.records import Add, Change, Choice, Duplicate, Experience, Lesson, Relation
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.records.repeats import taught_again, with_repeats
from lessonbank.guard.gate import doubt

from ._normal_form import read_text
from .append import asks_model
from .lineage import descent, merging
from .recognise import nearby_lessons
from .retry import spent

ABOUT: Final = 0.5
"""From this share of words in common two choices of one place are the same."""
ONE_LEFT: Final = "only one option is left"


@dataclass(frozen=True, slots=True)
class Eliminating:
    """Around a consolidator: a lesson about a choice is joined with the held one about the same choice and place.

    "Not A" and "not B" contradict each other in words, and together they are the answer. The joined lesson says what is
    ruled out, what is open and what is confirmed. It is a `Merge`: both sources are retired, `history.lineage` names
    them, and `unmerge` or a rollback brings them back. What is trusted already keeps its words: then the new lesson
    says both, and stands beside it. Where one run confirms what another rules out, nothing is joined: the new lesson
    stands against the held one. What says nothing new is a repeat. A lesson that settles what a held one left to more
    runs takes its place in the same way.
    """

    inner: Consolidator
    retriever: Retriever
    among: int = 10
    """How many of the nearest experiences are looked through."""
    asks_model: bool = field(init=False)
    """Whether it may ask a model, be it an embedder."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "asks_model", self.retriever.space is not None or asks_model(self.inner))

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """The inner consolidator's changes for what is about no known choice, and a `Merge` for each joined lesson."""
        lessons = [lesson for lesson in new.lessons if (lesson.choice or lesson.relation) and not lesson.hidden]
        if not lessons:
            return await self.inner(new)
        known = await nearby_lessons(self.retriever, new, among=self.among)
        # What a person kept to some tasks would come to all, joined.
        step = _Joining([pair for pair in known.values() if not (pair[0].hidden or pair[0].only_for_tasks)], new)
        for lesson in lessons:
            step.take(lesson)
        rest = new.model_copy(update={"lessons": tuple(i for i in new.lessons if i.id not in step.decided)})
        decided = await self.inner(rest)
        changes = [step.complete(c) if isinstance(c, Add) and c.experience.id == new.id else c for c in decided]
        return Decision((*changes, *step.merges), usage=spent(decided))


class _Joining:
    """What becomes of the lessons of one experience, one after the other."""

    def __init__(self, known: Sequence[tuple[Lesson, Experience]], new: Experience, /) -> None:
        self._known, self._new = list(known), new
        self.decided = set[str]()
        self.merges = list[Change]()
        self._kept, self._repeats = list[Lesson](), dict[str, tuple[Duplicate, ...]]()

    def take(self, lesson: Lesson, /) -> None:
        """Join one lesson with the held one that it settles, or with the first that is about the same choice."""
        if settled := next((pair for pair in self._known if settles(lesson, pair[0])), None):
            self._settle(lesson, *settled)
            return
        pair = next((pair for pair in self._known if same_choice(lesson, pair[0])), None)
        choice = lesson.choice
        if pair is None or choice is None or pair[0].choice is None:
            if lesson.relation:  # the extractor has compared it: nobody is asked again
                self._keep(lesson, lesson)
            return
        known, owner = pair
        joined = both(choice, pair[0].choice)
        if joined is None:
            against = Relation(lesson_ids=(known.id,), kind="contradicts")
            self._keep(lesson, lesson.model_copy(update={"relation": against}))
        elif joined == pair[0].choice:
            repeat = taught_again(lesson, "it rules out what is ruled out already", words=lesson.text != known.text)
            self._repeats[known.id] = (*self._repeats.get(known.id, ()), repeat)
            self.decided.add(lesson.id)
        elif not doubt(worded := saying(joined, lesson, known)):
            self._join(lesson, known, owner, worded)

    def _settle(self, lesson: Lesson, known: Lesson, owner: Experience) -> None:
        self._keep(lesson, lesson.model_copy(update={"relation": None}))
        made = descent((lesson, known)).model_copy(update={"package_version": VERSION})
        update = {"id": new_id(), "relation": None, "topic": known.topic or lesson.topic, "provenance": made}
        sources = [(lesson, self._new), (known, owner)]
        self.merges.append(merging(lesson.model_copy(update=update), sources, reason="it settles what was open"))
        self._known = [pair for pair in self._known if pair[0].id != known.id]

    def _join(self, lesson: Lesson, known: Lesson, owner: Experience, worded: Lesson) -> None:
        if known.state == "active":
            update = {name: getattr(worded, name) for name in ("title", "description", "content", "kind", "choice")}
            self._keep(lesson, lesson.model_copy(update=update))
            return
        self._keep(lesson, lesson)
        why = "what both rule out" + (f": {ONE_LEFT}" if left(worded.choice) else "")
        merge = merging(worded, [(lesson, self._new), (known, owner)], reason=why)
        self.merges.append(merge)
        self._known = [pair for pair in self._known if pair[0].id != known.id]
        self._known.append((worded, merge.experience))

    def _keep(self, lesson: Lesson, revision: Lesson) -> None:
        self.decided.add(lesson.id)
        self._kept.append(revision)

    def complete(self, change: Add, /) -> Add:
        """`change` with the lessons that were decided here, and what they repeat."""
        experience = change.experience
        order = {lesson.id: number for number, lesson in enumerate(self._new.lessons)}
        lessons = sorted((*experience.lessons, *self._kept), key=lambda lesson: order.get(lesson.id, len(order)))
        update = {"lessons": tuple(lessons), "repeats": with_repeats(experience.repeats, self._repeats)}
        return change.model_copy(update={"experience": experience.model_copy(update=update)})


def settles(new: Lesson, known: Lesson, /) -> bool:
    """Whether `new` says for sure what `known` left to more runs. What is trusted keeps its words."""
    if not (new.relation and new.relation.kind == "sharper" and known.id in new.relation.lesson_ids):
        return False
    was_open = known.applies_to is not None and known.applies_to.unsettled and known.state != "active"
    return was_open and new.applies_to is not None and not new.applies_to.unsettled


def same_choice(lesson: Lesson, other: Lesson, /) -> bool:
    """Whether two lessons are about one choice in one place: the same reach and name, and words in common."""
    if not (lesson.choice and other.choice and lesson.applies_to and other.applies_to):
        return False
    here, there = ((place.reach, _folded(place.name)) for place in (lesson.applies_to, other.applies_to))
    if here != there or (here[0] != "kind" and not here[1]):
        return False
    ours, theirs = (frozenset(read_text(choice.about).words) for choice in (lesson.choice, other.choice))
    return bool(ours) and len(ours & theirs) >= ABOUT * len(ours | theirs)


def both(choice: Choice, other: Choice, /) -> Choice | None:
    """What two choices prove together, in the words of `other`; `None` where they contradict each other.

    They do where one confirms what the other rules out, and where no option at all would be left.
    """
    excluded = _union(other.excluded, choice.excluded)
    confirmed = _union(other.confirmed, choice.confirmed)
    out, right = ({_folded(option) for option in options} for options in (excluded, confirmed))
    known = _union(other.open, choice.open)
    still = tuple(option for option in known if _folded(option) not in out | right)
    if out & right or (known and not still and not confirmed):
        return None
    return Choice(about=other.about, excluded=excluded, open=() if confirmed else still, confirmed=confirmed)


def left(choice: Choice | None, /) -> str:
    """The option that remains when all others that are known are ruled out; empty where there are more."""
    if choice is None or choice.confirmed or not choice.excluded or len(choice.open) != 1:
        return ""
    return choice.open[0]


def saying(choice: Choice, new: Lesson, known: Lesson, /) -> Lesson:
    """The lesson that says what `choice` proves, drawn from both.

    Where `new` says all of it already, these are its words; else they are made by rule.
    """
    origin = descent((new, known)).model_copy(update={"package_version": VERSION})
    if new.choice and _sides(new.choice) == _sides(choice):
        update = {"id": new_id(), "relation": None, "topic": known.topic, "choice": choice, "provenance": origin}
        return new.model_copy(update=update)
    place = known.applies_to.name if known.applies_to else ""
    what = f"{choice.about} in {place}" if place else choice.about
    out, answer = " or ".join(choice.excluded), " or ".join(choice.confirmed) or left(choice)
    title = f"Use {answer} as {what}" if answer else f"Do not use {out} as {what}"
    sentences = [f"For {what}, runs rule out {', '.join(choice.excluded)}."] if choice.excluded else []
    if choice.confirmed:
        sentences.append(f"A run confirms {answer}: use it.")
    elif answer:
        sentences.append(f"Of the options that are known only {answer} is left: use it.")
    elif choice.open:
        sentences.append(f"Still open: {', '.join(choice.open)}. Choose one of these.")
    return Lesson(
        title=title,
        description=known.description or new.description,
        content=" ".join(sentences),
        kind="strategy" if choice.confirmed else "guardrail",
        risk=new.risk if new.is_doubted else known.risk or new.risk,
        topic=known.topic,
        applies_to=known.applies_to,
        choice=choice,
        provenance=origin,
    )


def _sides(choice: Choice) -> tuple[set[str], ...]:
    return tuple({_folded(option) for option in side} for side in (choice.excluded, choice.open, choice.confirmed))


def _union(options: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    named = {_folded(option): option for option in reversed((*options, *other))}
    return tuple(named[key] for key in dict.fromkeys(map(_folded, (*options, *other))))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
