"""Decides which topic a new lesson belongs to, once and for good: lessons are measured together with their topic."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Final, NamedTuple, Protocol

from anyio import to_thread
from pydantic import BaseModel

from lessonbank._base.aio import read_reply
from lessonbank._base.checks import short_repr
from lessonbank.contracts.ports import LanguageModel, LessonFilter, Store
from lessonbank.contracts.records import EXTRACTIVE, Change, Experience, Lesson, Topic, Trajectory, Usage
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.records.usage import NO_USAGE
from lessonbank.errors import ModelError, NotFound
from lessonbank.evidence.groups import topic_names, topics_named
from lessonbank.guard import canonical_line, fence, nonce
from lessonbank.guard.gate.run_values import RunValues, unusual
from lessonbank.guard.quote import quoted
from lessonbank.search import AROUND, by_words
from lessonbank.text.bm25 import words
from lessonbank.text.prompts import Prompt, load
from lessonbank.text.replies import Fields, JsonObject, find_objects, read_objects, spoken

LEAST_RUNS: Final = 4
"""Runs of a topic, with both outcomes, below which there is nothing to compare."""
NEAR: Final = 0.4
"""How much of its words a task shares with one of a topic, at least, for the topic to be considered."""
ALIKE: Final = 0.55
"""How much of the recurring words it shares with the near tasks of a topic, on average, to belong to it."""
SURE: Final = 0.8
"""From here on no model is asked."""
_READ: Final = 20_000
_QUICK: Final = 2_000
"""Characters that are read faster than a thread starts."""
_NAMED: Final = 4
_MOST_NAMES: Final = 12
"""Topics that an error names."""
_LONGEST: Final = 60
_LATELY: Final = 200
_CHOICES: Final = 40
_KEPT: Final = 64
_OTHER: Final = re.compile(r"[^\w-]|_")
_DIGIT: Final = re.compile(r"\d")
_SLOT: Final = re.compile(r"<[^<>]{1,80}>")
_NOUN: Final = re.compile(r"<([a-z]{3,20})>")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_PARTS_OF_TOOL: Final = re.compile(r"__|[./:]")
_WORDS_OF_TOOL: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ASKING: Final = frozenset(
    re.findall(
        r"\w+",
        "been can could d do does e email had hello help hi how i like ll m mail name need no not s thanks ve where why"
        " would",
    )
)
"""Words with which people ask, and which name no family of tasks."""
_NOT: Final = frozenset({"no", "not"})
_STEM: Final = 5
"""Letters by which a word is recognised in another form: refunds, refunding."""


class Chosen(NamedTuple):
    """A topic, and what choosing it took."""

    topic: Topic
    usage: Usage = NO_USAGE
    note: str = ""
    """Why it was chosen in another way than it should have been; mostly empty."""


class Topics(Protocol):
    """Chooses the topic of new lessons."""

    @property
    def asks_model(self) -> bool:
        """Whether naming a topic asks a model, which may take seconds."""
        ...

    async def __call__(self, experience: Experience, /) -> Chosen:
        """The topic for the lessons of an experience that is about to be kept. It never raises for a model's sake."""
        ...


class _Near(NamedTuple):
    """What the neighbourhood of a task says."""

    topic: Topic | None
    likeness: float
    name: str
    lessons: Sequence[Lesson]
    private: frozenset[str]
    """Words of the task that no name may repeat."""


@dataclass(frozen=True, slots=True)
class TopicsByWords:
    """A topic is a family of tasks: those that share the words that come again and again.

    Names, places and things that only one task speaks of are no such words. A task that is like none begins a topic.
    """

    store: Store
    asks_model: bool = False

    async def __call__(self, experience: Experience, /) -> Chosen:
        """The topic of the nearest tasks, where these are near enough."""
        near = await self.near(experience)
        return Chosen(near.topic or Topic(id=_new_id(experience), name=near.name))

    async def near(self, experience: Experience, /) -> _Near:
        """The best of the topics around, and how like its tasks this one is."""
        task = experience.task[:_READ]
        matches = await by_words(self.store, task, scope=experience.scope, limit=AROUND)
        around = [match.experience for match in matches if match.experience.id != experience.id]
        private = _private(task) if len(task) <= _QUICK else await to_thread.run_sync(_private, task)
        private |= _ids_of(experience)
        mine, tasks = _topic_words(experience.task), [_topic_words(other.task) for other in around]
        held = Counter(word for task in (mine, *tasks) for word in task)
        recurring = [[word for word in task if held[word] > 1] for task in (mine, *tasks)]
        likeness, members = defaultdict[str, list[float]](list), defaultdict[str, Counter[str]](Counter)
        for other, plain, again in zip(around, tasks, recurring[1:], strict=True):
            if _ask_alike(mine, plain):
                for id in {lesson.topic.id for lesson in other.lessons if lesson.topic}:
                    likeness[id].append(_shared(recurring[0], again))
                    members[id].update(again)
        lessons = [lesson for other in around for lesson in other.lessons]
        deed = _deed(experience.lessons)
        if deed:  # whatever words it was asked for in
            lately = await self.store.lessons(LessonFilter(limit=_LATELY), scope=experience.scope)
            every = {i.id: i for i in (*lessons, *lately)}.values()
            ids = {name: id for id, name in topic_names(every).items()}
            if deed in ids:
                return _Near(Topic(id=ids[deed], name=deed), 1.0, deed, lessons, private)
        own = deed or _name(_naming(mine), private)
        means = {id: sum(alike) / len(alike) for id, alike in likeness.items()}
        best = max(means, key=lambda id: (means[id], id), default="")
        if not best or means[best] < ALIKE:
            return _Near(None, means.get(best, 0.0), own, lessons, private)
        common = deed or _name(_naming([word for word in mine if members[best][word]]), private)
        return _Near(Topic(id=best, name=common), means[best], own, lessons, private)


class _Reply(BaseModel):
    """The form a model is asked to answer in."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicsByModel:
    """Like `TopicsByWords`; where the words do not decide it, a model chooses among the topics that there are."""

    words: TopicsByWords
    model: LanguageModel
    prompt: Prompt | None = None
    """`None`: the package's `general/topic`."""
    asks_model: bool = True
    _chosen: dict[str, Chosen] = field(default_factory=dict[str, Chosen])
    """By experience: a decision that the bank makes again, because it changed meanwhile, is not paid for again."""

    async def __call__(self, experience: Experience, /) -> Chosen:
        """A known topic, or a new one under the model's name for it."""
        near = await self.words.near(experience)
        if near.topic and near.likeness >= SURE:
            return Chosen(near.topic)
        lately = await self.words.store.lessons(LessonFilter(limit=_LATELY), scope=experience.scope)
        names = topic_names({lesson.id: lesson for lesson in (*near.lessons, *lately)}.values())
        if not names:
            return Chosen(Topic(id=_new_id(experience), name=near.name))
        if experience.id in self._chosen:
            return self._chosen[experience.id]._replace(usage=Usage())
        chosen = await self._asked(experience, near, dict(list(names.items())[:_CHOICES]))
        if len(self._chosen) >= _KEPT:
            self._chosen.clear()
        self._chosen[experience.id] = chosen
        return chosen

    async def _asked(self, experience: Experience, near: _Near, names: dict[str, str]) -> Chosen:
        prompt, mark = self.prompt or load("general/topic"), nonce()
        shown = "\n".join(canonical_line(name, limit=_LONGEST) for name in names.values())
        text = "\n".join([experience.task[:2_000], *(lesson.title for lesson in experience.lessons)])
        slots = {
            "nonce": mark,
            "topics": fence(shown, label="topics", nonce=mark),
            "task": fence(text, label="task", nonce=mark),
        }
        by_words = near.topic or Topic(id=_new_id(experience), name=near.name)
        try:
            reply = await self.model.generate(prompt.render(**slots), temperature=0.0, schema=_Reply)
        except ModelError as error:
            return Chosen(by_words, note=f"the topic was chosen by words, the model failed: {quoted(error, limit=200)}")
        name = _without(near.private, await read_reply(parse_topic, reply.text))
        if not name:
            return Chosen(by_words, reply.usage, "the topic was chosen by words: the model's reply names none")
        known = {_name([topic_name]).casefold(): id for id, topic_name in names.items()}
        id = known.get(name.casefold()) or _new_id(experience)
        # A name that another task gave stays with that task's lessons, unless this task speaks of the same.
        is_own = name.casefold() not in known or _speaks_of(text, name)
        return Chosen(Topic(id=id, name=name if is_own else near.name), reply.usage)


def parse_topic(reply: str, /) -> str:
    """The name in a model's reply, in the one form of a memory; empty where there is none."""
    return _name(read_objects(find_objects(spoken(reply)[:_READ]), _topic_in)[-1:])


def _topic_in(json_object: JsonObject, fields: Fields) -> Iterable[str]:
    name = fields.get("topic")
    return [name] if isinstance(name, str) and not json_object.is_cut else []


async def in_topics(
    choose: Topics | None, changes: Sequence[Change], /
) -> tuple[tuple[Change, ...], Usage, tuple[str, ...]]:
    """`changes` with a topic for every new lesson that has none; what choosing took, and what a reader should know."""
    if choose is None:
        return tuple(changes), NO_USAGE, ()
    new_changes, usage, notes = list[Change](), NO_USAGE, list[str]()
    for change in changes:
        if (brought := change.brings) is not None and None in [lesson.topic for lesson in brought.lessons]:
            own = next((lesson.topic for lesson in brought.lessons if lesson.topic), None)
            chosen = Chosen(own) if own else await choose(brought)
            usage, notes = usage + chosen.usage, [*notes, *filter(None, [chosen.note])]
            change = change.model_copy(update={"experience": _about(brought, chosen.topic)})
        new_changes.append(change)
    return tuple(new_changes), usage, tuple(notes)


def _about(experience: Experience, topic: Topic) -> Experience:
    lessons = [lesson if lesson.topic else lesson.model_copy(update={"topic": topic}) for lesson in experience.lessons]
    return experience.model_copy(update={"lessons": tuple(lessons)})


def _new_id(experience: Experience) -> str:
    """An id that says nothing of the task, and that is the same if the decision is made again."""
    return digest(f"topic {experience.id}")[:8]


def _topic_words(task: str) -> Sequence[str]:
    """The words of a task that could be its family's, each once: no numbers, no ids."""
    return tuple([word for word in dict.fromkeys(words(task[:_READ])) if word.isalpha() or not _DIGIT.search(word)])


def _shared(words: Sequence[str], other: Sequence[str]) -> float:
    """The cosine of two sets of words, 0 to 1."""
    return len(set(words) & set(other)) / sqrt(len(words) * len(other)) if words and other else 0.0


def _ask_alike(task: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two tasks may ask for the same deed. To cancel an order and to refund an order share a thing alone."""
    likeness, mine, theirs = _shared(task, other), _telling(task), _telling(other)
    shared = set(mine).intersection(theirs)
    begin_apart = bool(shared) and mine[0] not in theirs and theirs[0] not in mine and not unusual((mine[0], theirs[0]))
    is_one_thing = len(shared) == 1 < min(len(mine), len(theirs))
    return likeness >= (SURE if begin_apart or is_one_thing else NEAR)


def _telling(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a task that name something, where there are any."""
    return [word for word in words if word not in _ASKING] or words


def _naming(words: Sequence[str]) -> Sequence[str]:
    """The words of a name: those that tell something, with the `no` or `not` before them, which turns their sense."""
    tells = frozenset(_telling(words))
    return [word for word, then in pairwise((*words, "")) if word in tells or (word in _NOT and then in tells)]


def _deed(lessons: Sequence[Lesson]) -> str:
    """What rules saw done at last by a tool, as a person says it: `refund`, `cancel order`; empty where they saw none.

    Customers ask for one deed in many words."""
    for lesson in lessons:
        last = lesson.title.partition(", then ")[0].rsplit(" ", 1)[-1]
        if lesson.provenance.method == EXTRACTIVE and f"`{last}(" in lesson.content:
            tool = _PARTS_OF_TOOL.split(last)[-1]
            return _name([part.lower() for part in _WORDS_OF_TOOL.findall(tool)])
    return ""


def _name(words: Iterable[str], private: frozenset[str] = frozenset()) -> str:
    """At most four of these beside a `no` or `not`, and nothing but letters, digits, blanks and hyphens."""
    parts = [word for word in words if word not in private]
    plain = [place for place, word in enumerate(parts) if word not in _NOT][:_NAMED]
    parts = parts[: plain[-1] + 1] if plain else []  # no name ends with a `not`
    return " ".join(_OTHER.sub(" ", canonical_line(" ".join(parts))).split())[:_LONGEST].strip()


def _private(task: str) -> frozenset[str]:
    """The words of a task that say who or where: what a lesson about it masks, and every name in it.

    In English a word that is in no dictionary is a name, too: written large, or beside another such word.
    """
    plain = _SLOT.sub(" , ", RunValues.of([Trajectory(task=task)]).mask(task))
    names = set(words(task)) - set(words(plain))
    tokens = [(match[0], match[0].lower(), match.start(), match.end()) for match in _LETTERS.finditer(plain)]
    rare = unusual([low for _, low, _, _ in tokens])
    odd = [low in rare or (len(low) < 3 and not word.islower()) for word, low, _, _ in tokens]
    if 2 * sum(odd) < len(odd):
        for place, (word, low, start, end) in enumerate(tokens):
            beside = (place > 0 and odd[place - 1] and plain[tokens[place - 1][3] : start] == " ") or (
                place + 1 < len(tokens) and odd[place + 1] and plain[end : tokens[place + 1][2]] == " "
            )
            if odd[place] and (beside or not word.islower()):
                names.add(low)
    return frozenset(names)


def _ids_of(experience: Experience) -> frozenset[str]:
    """The words of a task that its lessons say as a slot: `alpha`, where they say `<order>` for `order alpha`."""
    nouns = {slot for lesson in experience.lessons for slot in _NOUN.findall(f"{lesson.title} {lesson.content}")}
    tokens = words(experience.task[:_READ]) if nouns else []
    return frozenset([id for noun, id in pairwise(tokens) if noun in nouns])


def _without(private: frozenset[str], name: str) -> str:
    return " ".join(word for word in name.split() if not (_DIGIT.search(word) or private.intersection(words(word))))


def _speaks_of(text: str, name: str) -> bool:
    stems = {word[:_STEM] for word in words(text)}
    return all(word[:_STEM] in stems for word in words(name))


def topics_called(asked: str, names: Mapping[str, str], /) -> frozenset[str]:
    """The ids of the topics with this id or name; `names` is what `topic_names` says. Raises NotFound: none has it."""
    text, people = asked.casefold(), topics_named(names)
    ids = frozenset(id for id, name in names.items() if text in (id, name.casefold(), people[id].casefold()))
    if not ids:
        known = ", ".join(map(repr, sorted(set(people.values()))[:_MOST_NAMES]))
        raise NotFound(f"no topic {short_repr(asked)} in this scope; it has: {known or 'none yet'}")
    return ids
