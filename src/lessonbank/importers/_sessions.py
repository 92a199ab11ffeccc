"""Reads the sessions of a program: a person gives several tasks in one, and each is a run with its own prompt as task.

When in doubt a prompt belongs to the task before it: a word about the work, a step of it, an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar

from lessonbank.contracts.records import Json, Usage
from lessonbank.text.messages import only_greets

from ._account import ends_in
from ._files import Source
from ._opinions import opinion_in
from ._reading import Data, Entry, Format, Run, Session, at, attempts, listing, take_lines, words
from ._rejections import INTERRUPTED, is_rejection

S = TypeVar("S", bound=Session)
_MOST_OF_A_STEP: Final = 8
"""Words of a prompt that can be a mere step of the task before it."""
_LONGEST_ANSWER: Final = 200
_LEAD: Final = (
    r"\W*(?:(?:ok|okay|yes|yep|so|and then|please|now|then|just|great|good|nice|cool|lgtm|perfect|thanks|thank you|"
    r"merci|danke|gracias)\b\W*)*(?:(?:can|could|would) you (?:please )?|tu peux |kannst du |puedes )?"
)
_GOES_ON: Final = re.compile(
    _LEAD + r"(?:and|also|but|instead|actually|wait|plus|or|use|continue|go (?:on|ahead)|proceed|keep going|carry on|"
    r"(?:try )?again|retry|weiter|mach weiter|und|auch|aber|doch|continuez?|et|aussi|mais|sigue|continúa|también|pero|"
    r"продолжай|ещё|и)\b|\W*(?:继续|続けて|계속)",
    re.IGNORECASE,
)
_REMARK: Final = re.compile(
    _LEAD
    + r"(?:its?|that|this|these|those|is|are|was|were|did|the|there|they|you|your|why|still|not|no|same|nothing|looks?|"
    r"done|loaded|ready|finished|fixed|installed|started|seems|works|hm+|huh|oh|ah|well|let(?: me|'s see)|"
    r"i(?:'m|'ll|'ve| (?:am|get|got|see|saw|think|guess|will|can|did|do)))\b|" + _LEAD + "$",
    re.IGNORECASE,
)
_WISH: Final = re.compile(r"\b(?:should|must|needs?|want|would like)\b", re.IGNORECASE)
_STEP: Final = re.compile(
    _LEAD + r"(?:commit|push|merge|stage|pousser?|pushen?|amend|"
    r"(?:open|create|make|raise) (?:an? |the )?(?:draft )?(?:pr|mr|pull request)\b|"
    r"(?:re-?)?run (?:\w+ ){0,3}?(?:tests?|checks?|lint(?:ers?)?|suite|specs?|e2e|ci))\b",
    re.IGNORECASE,
)
_POINTS_BACK: Final = re.compile(r"\b(?:it|them|both|yourself)\b|\b(?:this|that|these|those)\W*$", re.IGNORECASE)
_ANYTHING_ELSE: Final = re.compile(
    r"\b(?:anything|something|what) else\b|\bwhat(?:'s| is)? next\b|\bhelp (?:you )?with\b|\blike me to do\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_MOST_READ: Final = 1_000


def sessions(
    name: str,
    description: str,
    matches: Callable[[Json, str], bool],
    begin: Callable[[str], S],
    build: Callable[[S], Run],
    /,
) -> Format:
    """A format of which each file is one session, begun with the file's name; `build` reads what its lines came to."""

    def read(source: Source) -> Iterator[Entry]:
        session, ends = begin(source.stem), dict[str, None]()

        def add(line: Data) -> None:
            session.add(line)
            ends.update(dict.fromkeys(ends_in(line)))

        yield from take_lines(source, add)
        yield from attempts(source, 1, name, lambda: tasks_of(build(session)), ends=ends)

    return Format(name, description, matches, read)


def tasks_of(run: Run, /) -> Iterator[Run]:
    """The session as one run for each task in it; whole where it says nothing of prompts, or has one task.

    What a session cost is told for all of it, so it is not told of one task among several. A last prompt that nobody
    has answered is no run yet.
    """
    begins = _asks(run.messages, run.prompts)
    ends = [*begins[1:], len(run.messages)]
    if len(begins) > 1 and not any(at(message, "role") == "assistant" for message in run.messages[begins[-1] :]):
        begins, ends = begins[:-1], ends[:-1]
    for number, (prompt, end) in enumerate(zip(begins or [-1], ends, strict=True), 1):
        name = run.prompts.get(prompt, "")
        about = {"prompt": name or f"{run.run_id}#{number}"} if begins else {}
        begin = prompt if number > 1 else 0
        task = _text(run.messages[prompt]).strip() if number > 1 else run.task
        part = replace(run, messages=run.messages[begin:end], task=task, origin=name, about=about)
        run.messages[begin:end] = [None] * (end - begin)  # whoever reads the task may give its messages up
        if len(begins) > 1:
            part = replace(part, usage=Usage(), error=run.error if number == len(begins) else None)
        yield part


def _asks(messages: Sequence[Json], prompts: Mapping[int, str]) -> list[int]:
    """The places of the prompts that ask for something new, the first that asks for anything among them."""
    places, acted, interrupted, reply = list[int](), False, False, ""
    for place, message in enumerate(messages):
        text = _text(message).strip()
        if at(message, "role") == "assistant":
            acted, reply = True, text or reply
        elif place not in prompts or not text:
            continue
        elif text.startswith(INTERRUPTED):
            interrupted = True
        elif not places:
            places += [] if only_greets(text) else [place]
            acted = interrupted = False
        else:
            if acted and not interrupted and _is_new(text, reply):
                places.append(place)
                acted = False
            interrupted = False
    return places


def _is_new(text: str, reply: str) -> bool:
    """Whether a prompt asks for another task: it is no word about the last one, no step of it and no answer."""
    if only_greets(text) or opinion_in(text) or is_rejection(text) or _GOES_ON.match(text) or _answers(text, reply):
        return False
    return any(map(_asks_for_something, _SENTENCE.split(text[:_MOST_READ])))


def _asks_for_something(sentence: str) -> bool:
    if not _WORD.search(sentence) or only_greets(sentence) or opinion_in(sentence) or _GOES_ON.match(sentence):
        return False
    if _REMARK.match(sentence) and not _WISH.search(sentence):
        return False
    is_short = len(_WORD.findall(sentence)) <= _MOST_OF_A_STEP
    return not (is_short and (_STEP.match(sentence) or _POINTS_BACK.search(sentence)))


def _answers(text: str, reply: str) -> bool:
    asked = reply.rstrip(" *_`\n")
    return asked.endswith(("?", "？")) and not _ANYTHING_ELSE.search(asked[-200:]) and len(text) <= _LONGEST_ANSWER


def _text(message: Json) -> str:
    content = at(message, "content")
    parts = [words(at(part, "text")) for part in listing(content) if at(part, "type") in ("text", None)]
    return content if isinstance(content, str) else "\n".join(filter(None, parts))


def prompts_in(messages: Iterable[Json], /, names: Mapping[int, str] = MappingProxyType({})) -> dict[int, str]:
    """The places where the user speaks, with the names that the program gave the messages, if it did."""
    return {
        place: names.get(place, "")
        for place, message in enumerate(messages)
        if at(message, "role") == "user" and _says(message)
    }


def _says(message: Json) -> bool:
    return not any(at(part, "type") == "tool_result" for part in listing(at(message, "content")))
