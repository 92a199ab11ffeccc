"""Recognise a lesson that was taught before, so that it gathers evidence instead of copies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pydantic import BaseModel

from lessonbank._base.aio import gather
from lessonbank.contracts.ports import Decision, Embedder, LanguageModel, LessonFilter, Retriever, Store
from lessonbank.contracts.records import Add, Duplicate, Experience, Lesson, Neighbour, Usage
from lessonbank.contracts.records.repeats import taught_again, with_repeats
from lessonbank.errors import ModelError
from lessonbank.guard import fence, nonce
from lessonbank.guard.quote import quoted
from lessonbank.text.prompts import Prompt, load
from lessonbank.text.replies import Fields, JsonObject, find_objects, read_objects, spoken

from ._normal_form import read
from .duplicates import CLOSE, NEAR, SOME, compare, overlap, same_moves, same_words

LONGEST: Final = 2_000
"""Characters of a lesson that a model is shown, and that are embedded."""
_READ: Final = 32_000
"""Characters of a reply that are read, behind its thoughts."""

_RETIRED: Final = 50
"""The newest retired lessons of a scope that a new one is compared with."""

Pair = tuple[str, str]
"""The id of a new lesson and that of a held one."""
Cosines = dict[Pair, float]
"""The cosine of the embeddings of each pair."""


class Same(BaseModel):
    """The form a model is asked to answer in."""

    same: bool


@dataclass(frozen=True, slots=True)
class Recognise:
    """Keep the experience, and leave out lessons that one of the nearest experiences has, also in other words.

    `duplicates.compare` decides what is the same without a model. Where there is a model, it is asked one yes-or-no
    question about the nearest held lesson that words and embeddings call `near`, that may be shown, and that lacks no
    number or name of the new one. Anything but a clear yes means no. One text in which a word or an order was changed
    is never asked about: that is often the opposite.

    A lesson that is near a held one, and of which no model said that it is another, names it:
    `Lesson.near_duplicate_of`. A person may merge the two.

    The old lesson keeps its words. The experience's `repeats` name it and have what came again, whole where the words
    differ.
    """

    retriever: Retriever
    model: LanguageModel | None = None
    embedder: Embedder | None = None
    """Finds paraphrases that share few words; only a model's answer can join them."""
    prompt: Prompt | None = None
    """`None`: the package's `general/recognise`."""
    among: int = 10
    """How many of the nearest experiences are compared."""
    imported: bool = True
    """Whether an imported lesson may stand for a new one. Where runs must vouch for a lesson it may not: no run ever
    vouches for an imported one, so it would keep what runs teach from being trusted."""
    store: Store | None = None
    """Has the retired lessons: the search finds no task of which nothing may be shown."""
    asks_model: bool = field(init=False)
    """Whether it may ask a model, be it an embedder."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "asks_model", self.model is not None or self.retriever.space is not None)

    async def __call__(self, new: Experience, /) -> Decision:
        """One `Add`, with the lessons that say something new."""
        if not new.lessons:
            return Decision([Add(experience=new)])
        neighbours = await nearby_lessons(self.retriever, new, among=self.among)
        # What only taught a lesson again does not say where it comes from.
        strange = {id for id, (_, owner) in neighbours.items() if owner.imported or id in owner.repeats}
        known = [lesson for id, (lesson, _) in neighbours.items() if self.imported or id not in strange]
        known += await self._retired(new)
        experience = deduplicate(new.lessons, known).of(new)
        if self.model is None or not experience.lessons:
            return Decision([Add(experience=with_near(experience, known))])
        return await self._asked(experience, known, self.model)

    async def _retired(self, new: Experience) -> list[Lesson]:
        """What was taken out and is taught again in another form: that takes it out as well."""
        if self.store is None:
            return []
        retired = await self.store.lessons(LessonFilter(state="retired", limit=_RETIRED), scope=new.scope)
        return [held for held in retired if any(same_words(lesson, held) for lesson in new.lessons)]

    async def _asked(self, new: Experience, known: Sequence[Lesson], model: LanguageModel) -> Decision:
        shown = [lesson for lesson in known if not (lesson.retired or lesson.hidden)]
        cosines = await cosines_between(self.embedder, new.lessons, shown)
        pairs = [(lesson, _nearest(lesson, shown, cosines)) for lesson in new.lessons]
        near = [(lesson, held) for lesson, held in pairs if held is not None]
        answers = await gather([partial(self._ask, *pair, model) for pair in near], limit=4)
        joined: dict[str, tuple[Lesson, str]] = {}
        failed: dict[str, Neighbour] = {}
        for (lesson, known_as), (same, why, _) in zip(near, answers, strict=True):
            if same:
                joined[lesson.id] = known_as, why
            elif why:
                failed[lesson.id] = Neighbour(lesson_id=known_as.id, why=why)
        apart = {(lesson.id, other.id) for lesson, other in near if lesson.id not in failed}
        experience = with_near(deduplicate_by(new.lessons, joined).of(new), known, cosines, apart=apart)
        if failed:
            experience = experience.model_copy(update={"not_recognised": failed})
        return Decision([Add(experience=experience)], usage=sum((cost for *_, cost in answers), Usage()))

    async def _ask(self, lesson: Lesson, known: Lesson, model: LanguageModel) -> tuple[bool, str, Usage]:
        """Whether the model takes the two for one; why, or what went wrong; and what asking took."""
        prompt, mark = self.prompt or load("general/recognise"), nonce()
        first, second = (fence(as_shown(either), label="lesson", nonce=mark) for either in (known, lesson))
        try:
            asked = prompt.render(nonce=mark, first=first, second=second)
            reply = await model.generate(asked, temperature=0.0, schema=Same)
        except ModelError as error:
            return False, f"the model failed: {quoted(error, limit=200)}", Usage()
        same = _same_in(reply.text)
        if same is None:
            return False, "the model's reply is neither yes nor no", reply.usage
        return same, f"{model.name} says that it is the same in other words" if same else "", reply.usage


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Lessons that are new, and what the others repeat (lesson id to what came again)."""

    lessons: tuple[Lesson, ...]
    repeats: dict[str, tuple[Duplicate, ...]]

    def of(self, new: Experience, /) -> Experience:
        """`new` with the kept lessons, and what it repeats."""
        if not self.repeats:
            return new
        return new.model_copy(update={"lessons": self.lessons, "repeats": with_repeats(new.repeats, self.repeats)})


async def nearby_lessons(
    retriever: Retriever, new: Experience, /, *, among: int
) -> dict[str, tuple[Lesson, Experience]]:
    """The lessons of the `among` experiences nearest to the task of `new`, each with its experience, by id.

    Those that may be shown come first.
    """
    near = await retriever(new.task, scope=new.scope, limit=among)
    pairs = [(lesson, match.experience) for match in near.matches for lesson in match.experience.lessons]
    known: dict[str, tuple[Lesson, Experience]] = {}
    for lesson, experience in sorted(pairs, key=lambda pair: pair[0].retired or pair[0].hidden):
        # An experience that only taught it again is not the one that holds it.
        if lesson.id not in known or lesson.id not in experience.repeats:
            known[lesson.id] = lesson, experience
    return known


def deduplicate(lessons: Sequence[Lesson], held: Sequence[Lesson], /) -> Deduplication:
    """`lessons` without those that are the same as a held one, in any state, or as one before them."""
    known, joined = [*held], dict[str, tuple[Lesson, str]]()
    for lesson in lessons:
        match = next(((other, why) for other in known if (why := one_lesson(lesson, other))), None)
        if match is None:
            known.append(lesson)
        else:
            joined[lesson.id] = match
    return deduplicate_by(lessons, joined)


def one_lesson(new: Lesson, known: Lesson, /) -> str:
    """Why words alone say that the two are one; empty where they do not."""
    if why := same_words(new, known):
        return why
    return "the same moves, for a task in other words" if same_moves(new, known) else ""


def deduplicate_by(lessons: Sequence[Lesson], joined: dict[str, tuple[Lesson, str]], /) -> Deduplication:
    """`lessons` without the `joined` ones (lesson id to the held lesson and why they are one)."""
    repeats: dict[str, tuple[Duplicate, ...]] = {}
    for lesson in lessons:
        if lesson.id in joined:
            known, why = joined[lesson.id]
            again = taught_again(lesson, why, words=lesson.text != known.text)
            repeats[known.id] = (*repeats.get(known.id, ()), again)
    return Deduplication(tuple(lesson for lesson in lessons if lesson.id not in joined), repeats)


def with_near(
    new: Experience, known: Sequence[Lesson], cosines: Cosines | None = None, /, *, apart: Collection[Pair] = ()
) -> Experience:
    """`new`, each of its lessons with the known one that it nearly repeats. A person may merge the two.

    `apart`: new and held lesson, by id, that a model told apart.
    """
    shown = [lesson for lesson in known if not lesson.hidden]
    lessons = list[Lesson]()
    for lesson in new.lessons:
        near = [] if lesson.hidden else _near(lesson, shown, cosines or {})
        left = [(common, other) for common, other in near if (lesson.id, other.id) not in apart]
        best = max(left, key=lambda pair: pair[0])[1].id if left else None
        lessons.append(lesson.model_copy(update={"near_duplicate_of": best}) if best else lesson)
    return new.model_copy(update={"lessons": tuple(lessons)})


async def cosines_between(embedder: Embedder | None, lessons: Sequence[Lesson], others: Sequence[Lesson], /) -> Cosines:
    """The cosines of lessons with others; empty without an embedder, or where it fails: words decide then."""
    if embedder is None or not lessons or not others:
        return {}
    try:
        texts = [f"{lesson.title}\n{lesson.description}\n{lesson.content}"[:LONGEST] for lesson in (*lessons, *others)]
        rows = await embedder.embed(texts, role="document")
    except ModelError:
        return {}
    return {
        (a.id, b.id): float(rows[i] @ rows[len(lessons) + k])
        for i, a in enumerate(lessons)
        for k, b in enumerate(others)
    }


def as_shown(lesson: Lesson, /) -> str:
    """A lesson as a model is shown it."""
    lines = (f"kind: {lesson.kind}", f"title: {lesson.title}", f"description: {lesson.description}", lesson.content)
    return "\n".join(lines)[: 2 * LONGEST]


def _same_in(reply: str) -> bool | None:
    """What a reply says, in whatever words it stands; `None` where it says neither, or both."""
    answers = {*read_objects(find_objects(spoken(reply)[:_READ]), _answer_in)}
    return answers.pop() if len(answers) == 1 else None


def _answer_in(json_object: JsonObject, fields: Fields) -> Iterable[bool]:
    same = fields.get("same")
    return [same] if isinstance(same, bool) and not json_object.is_cut else []


def _nearest(lesson: Lesson, known: Sequence[Lesson], cosines: Cosines) -> Lesson | None:
    if lesson.hidden:  # what is quarantined must not come out in other words
        return None
    asked = [(common, other) for common, other in _near(lesson, known, cosines) if not _would_be_lost(lesson, other)]
    return max(asked, key=lambda pair: pair[0])[1] if asked else None


def _near(lesson: Lesson, known: Sequence[Lesson], cosines: Cosines) -> list[tuple[float, Lesson]]:
    """The lessons that are near by their words, or by these with their cosine; each with its share of common words."""
    pairs = list[tuple[float, Lesson]]()
    for other in known:
        cosine, common = cosines.get((lesson.id, other.id)), overlap(read(lesson), read(other))
        enough = SOME if (cosine or 0.0) >= CLOSE else NEAR  # most have less, and are not compared further
        if common >= enough and compare(lesson, other, similarity=cosine).level == "near":
            pairs.append((common, other))
    return pairs


def _would_be_lost(new: Lesson, other: Lesson) -> bool:
    """Whether `new` says a number or a name that `other` does not: whoever reads `other` would never learn it."""
    return not read(new).facts <= set(read(other).words)
