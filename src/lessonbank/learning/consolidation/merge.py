"""Let a model word one lesson for two that are near, and believe it only as far as it can be checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import json_repair
from pydantic import BaseModel

from lessonbank._base.aio import gather, read_reply
from lessonbank._version import VERSION
from lessonbank.contracts.ports import Decision, Embedder, LanguageModel, Retriever
from lessonbank.contracts.records import Add, Change, Experience, Lesson, Neighbour, Usage
from lessonbank.errors import ModelError
from lessonbank.guard import clean, fence, nonce
from lessonbank.guard.gate import doubt
from lessonbank.guard.quote import in_one_line, quoted
from lessonbank.text.prompts import Prompt, load

from ._contradiction import disagreement
from ._sentences import Reading, bases, read
from ._words import NEGATIONS, PROTECTED
from .duplicates import compare, overlap
from .lineage import descent, merging
from .recognise import LONGEST, Pair, as_shown, close, held, sift, with_near

GROWTH: Final = 1.5
"""A merged lesson is at most this much longer than the longer of its sources."""
COVER: Final = 0.2
"""The share of words that a merged lesson has in common with each source, at least."""
CORE: Final = 0.6
"""The share that it keeps of what both sources say, at least."""

STRANGE: Final = 0.2
"""The share of a merged lesson's words that neither source has, at most."""

_REPLY: Final = 20_000
_APART: Final = "the model keeps them apart"
_OBJECT: Final = re.compile(r"\{.*\}", re.S)


class Merged(BaseModel):
    """The form a model is asked to answer in."""

    merge: bool
    title: str
    description: str
    content: str


@dataclass(frozen=True, slots=True)
class _Pair:
    """A new lesson and the held lesson it may be merged with."""

    new: Lesson
    held: Lesson
    owner: Experience


@dataclass(frozen=True, slots=True)
class MergeSimilar:
    """Like `Recognise` without a model, and for lessons that are near a held one, a model proposes one text for both.

    The model proposes, this decides: a text that contradicts a source, drops or adds a number or a name, strays from
    a source or is too long is refused, and so is a model that fails. Then the lesson is simply added, and the
    experience's `not_merged` says why. What is merged
    is a `Merge`: the sources are retired, and `lineage.unmerge` brings them back.
    """

    retriever: Retriever
    model: LanguageModel
    prompt: Prompt | None = None
    """`None`: the package's `general/merge`."""
    embedder: Embedder | None = None
    """Finds paraphrases that share few words; what it finds is still checked."""
    among: int = 10

    async def __call__(self, new: Experience, /) -> Decision:
        """One `Add`, and a `Merge` for each proposal that holds."""
        known = await held(self.retriever, new, among=self.among)
        sifted = sift(new.lessons, [lesson for lesson, _ in known.values()])
        pairs = await self._pairs(sifted.kept, known)
        told = await gather([partial(self._propose, pair) for pair in pairs], limit=4)
        refused: dict[str, Neighbour] = {}
        merges: list[Change] = []
        apart = set[Pair]()
        for pair, (proposal, _) in zip(pairs, told, strict=True):
            if isinstance(proposal, str):
                refused[pair.new.id] = Neighbour(lesson_id=pair.held.id, why=proposal)
                apart |= {(pair.new.id, pair.held.id)} if proposal == _APART else set()
            else:
                merges.append(
                    merging(proposal, [(pair.new, new), (pair.held, pair.owner)], reason="one lesson for two")
                )
        kept = with_near(sifted.of(new), [lesson for lesson, _ in known.values()], apart=apart)
        if refused:
            kept = kept.model_copy(update={"not_merged": refused})
        usage = sum((cost for _, cost in told), Usage())
        return Decision((Add(experience=kept), *merges), usage=usage)

    async def _pairs(self, lessons: Sequence[Lesson], known: dict[str, tuple[Lesson, Experience]]) -> list[_Pair]:
        """Each lesson with the nearest held one that no lesson before it has taken."""
        cosines = await close(self.embedder, lessons, [lesson for lesson, _ in known.values()])
        # What is trusted keeps its words: a newcomer's would take their place, and its trust with them.
        free = {
            id: (h, owner) for id, (h, owner) in known.items() if not (h.state == "active" or h.retired or h.hidden)
        }
        pairs = list[_Pair]()
        for lesson in lessons:
            if lesson.hidden:  # what is quarantined must not come out in other words
                continue
            near = [
                id
                for id, (h, _) in free.items()
                if compare(lesson, h, similarity=cosines.get((lesson.id, h.id))).level == "near"
            ]
            if near:
                best = max(near, key=lambda id: overlap(read(lesson), read(free[id][0])))
                pairs.append(_Pair(lesson, *free.pop(best)))
        return pairs

    async def _propose(self, pair: _Pair) -> tuple[Lesson | str, Usage]:
        """The merged lesson, or why there is none; and what asking took."""
        prompt, mark = self.prompt or load("general/merge"), nonce()
        one, two = (fence(as_shown(lesson), label="lesson", nonce=mark) for lesson in (pair.held, pair.new))
        try:
            slots = {"nonce": mark, "first": one, "second": two}
            reply = await self.model.generate(prompt.render(**slots), temperature=0.0, schema=Merged)
        except ModelError as error:
            return f"the model failed: {quoted(error, limit=200)}", Usage()
        return self._checked(await read_reply(parse_merged, reply.text), pair, prompt), reply.usage

    def _checked(self, wording: dict[str, str] | str, pair: _Pair, prompt: Prompt) -> Lesson | str:
        if isinstance(wording, str):
            return wording
        origin = descent((pair.new, pair.held)).model_copy(
            update={"prompts": (prompt.ref,), "model": self.model.name, "package_version": VERSION}
        )
        lesson = Lesson(
            title=wording["title"],
            description=wording["description"],
            content=wording["content"],
            kind=pair.new.kind,
            provenance=origin,
        )
        if doubt(lesson):
            return "the merged text gives orders or recommends what is risky"
        return objection(lesson, (pair.new, pair.held)) or lesson


def parse_merged(reply: str, /) -> dict[str, str] | str:
    """Title, description and content of a reply, or one sentence: why there is no merged lesson in it."""
    found = _OBJECT.search(reply[:_REPLY])
    fields = _fields(found[0]) if found else {}
    if fields.get("merge") is False:
        return _APART
    texts = {key: fields.get(key) or "" for key in ("title", "description", "content")}
    if not all(isinstance(text, str) for text in texts.values()):
        return "the model's reply has a field that is no text"
    wording = {
        "title": in_one_line(texts["title"], limit=200),
        "description": in_one_line(texts["description"], limit=500),
        "content": clean(texts["content"]).strip(),
    }
    return wording if wording["title"] and wording["content"] else "no merged lesson could be read from the reply"


def objection(merged: Lesson, sources: Sequence[Lesson], /) -> str:
    """Why a proposed text may not stand for its sources, in one sentence; empty when nothing speaks against it.

    Checked are length, contradiction of a source, numbers and names (all of both, and no others), and words in common.
    """
    allowed = min(LONGEST, int(GROWTH * max(len(source.content) for source in sources)) + 40)
    if len(merged.content) > allowed:
        return f"the merged text has {len(merged.content)} characters, at most {allowed} are allowed"
    reading, readings = read(merged), [read(source) for source in sources]
    if any(merged.kind != source.kind for source in sources):
        return "a strategy and a guardrail are not merged"
    return _about_facts(reading, readings) or _about_words(reading, readings)


def _about_facts(merged: Reading, sources: Sequence[Reading]) -> str:
    said = frozenset(form for source in sources for form in source.forms)
    numbers = frozenset(number for source in sources for number in source.numbers)
    names = frozenset(name for source in sources for name in source.names)
    kept = {word.text for word in merged.flat}
    new_names = frozenset(name for name in merged.names - names if not bases(name) & said)
    if invented := (merged.numbers - numbers) | new_names:
        return f"the merged text brings in {_some(invented)}"
    if lost := (numbers - {"1"} | _exact(names)) - kept - merged.names:  # "one" is rarely a number
        return f"the merged text loses {_some(lost)}"
    return ""


def _exact(names: frozenset[str]) -> frozenset[str]:
    """Names that are identifiers, paths, options: what has to be kept letter by letter."""
    return frozenset(name for name in names if re.search(r"[\d_./@:+#-]", name))


def _about_words(merged: Reading, sources: Sequence[Reading]) -> str:
    for source in sources:
        if why := disagreement(merged, source):
            return f"the merged text contradicts a source: {why}"
    return _strayed(merged, sources)


def _strayed(merged: Reading, sources: Sequence[Reading]) -> str:
    """Whether it leaves what the sources say, or says what neither does; a new denial is never let in."""
    said = frozenset(word for source in sources for word in source.words)
    core = frozenset(word for word in said - PROTECTED if all(word in source.words for source in sources))
    new = merged.words - said
    if len(new - PROTECTED) > STRANGE * len(merged.words) or new & NEGATIONS:
        return f"the merged text brings in {_some(new & NEGATIONS or new - PROTECTED)}"
    too_far = any(overlap(merged, source) < COVER for source in sources)
    if too_far or len(core & merged.words) < CORE * len(core):
        return "the merged text leaves out too much of its sources"
    return ""


def _some(words: frozenset[str]) -> str:
    return ", ".join(repr(word[:40]) for word in sorted(words)[:3])


def _fields(text: str) -> dict[str, Any]:
    try:
        value: object = json_repair.loads(text)
    except Exception:  # noqa: BLE001 - guesswork on rubbish must never stop `learn`
        return {}
    return value if isinstance(value, dict) else {}
