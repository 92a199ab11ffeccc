"""Keeps what a lesson that comes again adds to the held one, and joins the two once both are trusted alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lessonbank._version import VERSION
from lessonbank.contracts.ports import Consolidator, Decision, Retriever, Store
from lessonbank.contracts.records import EXTRACTIVE, UNCHECKED, Change, Experience, Lesson, Merge, Relation, Trust
from lessonbank.contracts.records.repeats import taught_again
from lessonbank.guard.wording import without_sources
from lessonbank.search import held_lessons

from ._normal_form import read, read_text
from .append import asks_model
from .lineage import descent, merging
from .recognise import nearby_lessons, one_lesson
from .retry import spent

JOINED: Final = "it was taught again: it is part of the lesson now, whose evidence starts again from nothing"
LONGEST: Final = 900
"""Characters of a lesson to which something is joined: what is longer stands beside it."""
_TITLE: Final = 90
_FIX: Final = re.compile(
    r'`[^`]+` failed(?: \("[^"]*"\))?; then (?:`[^`]+`(?:, then `[^`]+`)*|the same with [^.]+) went through\.'
)
"""One error and what got past it, as rules write it."""
_SAME_FIX: Final = "the same error and what got past it"
_NUMBER: Final = re.compile(r"\d+")

Held = Mapping[str, tuple[Lesson, Experience]]


@dataclass(frozen=True, slots=True)
class Adding:
    """Around a consolidator: what a lesson that comes again says beyond the held one is a lesson of its own.

    A model says what it is (`Lesson.relation` with the stand `adds`). Of lessons that rules drew the form says it: they
    tell an error that a held lesson tells, with the same way past it, and one more. An addition that says nothing new
    is left out. One that another run teaches is joined to its lesson, as a `Merge`, where both have the same state and
    no person vouched for either: a person's words stay as they are.
    """

    inner: Consolidator
    retriever: Retriever
    store: Store
    among: int = 10
    """How many of the nearest experiences are looked through."""
    asks_model: bool = field(init=False)
    """Whether it may ask a model, be it an embedder."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "asks_model", self.retriever.space is not None or asks_model(self.inner))

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """The inner consolidator's changes for what is new, and a `Merge` for an addition that came again."""
        again = await held_lessons(self.store, new.repeats, scope=new.scope)
        if not any(map(_adds, (*new.lessons, *again))) and not any(map(_fixes, new.lessons)):
            return await self.inner(new)
        known = await nearby_lessons(self.retriever, new, among=self.among)
        visible = [lesson for lesson, _ in known.values() if not lesson.hidden]
        decided = await self.inner(without_known_facts(new, visible))
        source_ids = {id for change in decided if isinstance(change, Merge) for id in change.source_lesson_ids}
        repeated = [id for change in decided if (brought := change.brings) for id in brought.repeats]
        pairs = ((base_of(known[id][0], known), known[id]) for id in repeated if id in known)
        fit = (_joining(base, addition) for base, addition in pairs if base and joinable(base[0], addition[0]))
        first = next((changes for changes in fit if source_ids.isdisjoint(changes[0].source_lesson_ids)), ())
        return Decision((*decided, *first), usage=spent(decided))


def without_known_facts(new: Experience, known: Sequence[Lesson], /) -> Experience:
    """`new`, whose lessons say only what no held lesson says, where their form tells it."""
    lessons, repeats = list[Lesson](), dict(new.repeats)
    for lesson in new.lessons:
        left, again = _apart(lesson, known)
        lessons += [left] if left else []
        for id, why in again:
            repeats[id] = (*repeats.get(id, ()), taught_again(lesson, why, words=False))
    if not repeats:
        return new
    return new.model_copy(update={"lessons": tuple(lessons), "repeats": repeats})


def base_of(addition: Lesson, known: Held, /) -> tuple[Lesson, Experience] | None:
    """The lesson to which one adds, or what stands for it now; `None` where that is not shown."""
    if not _adds(addition) or addition.hidden or addition.relation is None:
        return None
    merged = {source: id for _, owner in known.values() for id, sources in owner.merged.items() for source in sources}
    id, seen = addition.relation.lesson_ids[0], set[str]()
    while id in merged and id not in seen:
        seen.add(id)
        id = merged[id]
    base = known.get(id)
    return base if base and not base[0].hidden else None


def joinable(base: Lesson, addition: Lesson, /) -> bool:
    """Whether an addition may become part of the text of its lesson without anybody's word."""
    is_alike = (base.state, base.only_for_tasks) == (addition.state, addition.only_for_tasks)
    is_free = not (base.approved or addition.approved or base.is_doubted or addition.is_doubted)
    return is_alike and is_free and len(base.content) + len(addition.content) <= LONGEST


def joined(base: Lesson, addition: Lesson, /) -> Lesson:
    """One lesson that says both."""
    is_unchecked = EXTRACTIVE in (base.provenance.method, addition.provenance.method)
    return Lesson(
        title=base.title,
        description=base.description,
        content=f"{base.content.rstrip()} {addition.content.strip()}",
        kind=base.kind,
        risk=base.risk or addition.risk or (UNCHECKED if is_unchecked else None),
        topic=base.topic,
        applies_to=base.applies_to,
        choice=base.choice,
        rests_on=base.rests_on,
        only_for_tasks=base.only_for_tasks,
        place=base.place,
        relation=base.relation,
        provenance=descent((base, addition)).model_copy(update={"package_version": VERSION}),
    )


def _joining(base: tuple[Lesson, Experience], addition: tuple[Lesson, Experience]) -> tuple[Merge, *tuple[Trust, ...]]:
    worded = joined(base[0], addition[0])
    merge = merging(worded, [base, addition], reason=JOINED)
    if base[0].state != "active":
        return (merge,)
    why = "both lessons that it is made of are active"
    sources = merge.source_lesson_ids
    return merge, Trust(lesson_ids=(worded.id,), state="active", by="corroboration", reason=why, evidence=sources)


def adds_to(addition: Lesson, base: Lesson, /) -> bool:
    """Whether one lesson says only what it adds to the other."""
    return _adds(addition) and addition.relation is not None and base.id in addition.relation.lesson_ids


def _adds(lesson: Lesson) -> bool:
    return lesson.relation is not None and lesson.relation.kind == "adds"


def _apart(lesson: Lesson, known: Sequence[Lesson]) -> tuple[Lesson | None, list[tuple[str, str]]]:
    """What is left of a lesson, and what the rest repeats: ids of held lessons, and why."""
    if lesson.hidden:
        return lesson, []
    if _adds(lesson):
        near = [old for old in known if adds_to(lesson, old) or (_adds(old) and old.relation == lesson.relation)]
        again = next((other for other in near if _says(other, lesson)), None)
        return (None, [(again.id, "it adds nothing to it")]) if again else (lesson, [])
    return _fixed_apart(lesson, known)


def _says(known: Lesson, addition: Lesson) -> bool:
    """Whether a held lesson has all words of an addition, or says the same."""
    reading, extra = read(known), read_text(addition.content)
    return bool(one_lesson(addition, known)) or (extra.telling <= reading.telling and extra.turning <= reading.turning)


def _fixed_apart(lesson: Lesson, known: Sequence[Lesson]) -> tuple[Lesson | None, list[tuple[str, str]]]:
    fixes = _fixes(lesson) if lesson.provenance.method == EXTRACTIVE else {}
    own = (other for other in known if other.kind == lesson.kind and not _adds(other))
    base = next((other for other in own if fixes.keys() & _fixes(other).keys()), None)
    if base is None:
        return lesson, []
    holders = *(other for other in known if adds_to(other, base)), base
    lesson_ids = {key: other.id for other in holders for key in _fixes(other)}
    again = [(id, _SAME_FIX) for id in dict.fromkeys(lesson_ids[key] for key in fixes if key in lesson_ids)]
    left = [sentence for key, sentence in fixes.items() if key not in lesson_ids]
    if not left:
        return None, again
    words = {
        "title": f"{lesson.title.partition(':')[0]}: {', '.join(re.findall('`([^`]+)`', left[0]))}"[:_TITLE],
        "content": " ".join(left),
        "relation": Relation(lesson_ids=(base.id,), kind="adds"),
    }
    return lesson.model_copy(update=words), again


def _fixes(lesson: Lesson) -> dict[str, str]:
    """The errors that a lesson in the words of rules tells, each with what got past it, by what makes them the same."""
    sentences = _FIX.findall(lesson.content)
    if " ".join(sentences) != lesson.content:
        return {}
    return {_NUMBER.sub("#", without_sources(sentence)).casefold(): sentence for sentence in sentences}
