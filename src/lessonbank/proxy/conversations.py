"""Knows which conversation a request belongs to, what was added to it and where, and when a run of it is over.

Pure: it waits for nothing and keeps nothing but what it is told. Conversations are known by keyed hashes over whose
they are and what was said, so that a content alone, of another scope, key or proxy, finds none.
"""

from __future__ import annotations

import hmac
import json
from asyncio import Lock
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from lessonbank.contracts.records.ids import new_id

from .answers import Answer
from .dialects import Request, SpokenMessage, asks, mark_of
from .entrance import Whose

Key: TypeAlias = bytes
State: TypeAlias = Literal["asked", "answered", "waits", "failed"]
MOST: Final = 4096
"""Conversations that are remembered."""
MOST_CHARACTERS: Final = 256 * 1024 * 1024
"""Characters of messages that are held until their runs are over."""
PATIENCE: Final = 3600.0
"""Seconds for which a client's tools may work."""
GONE: Final = "the client went away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that is over: what memory gets of it. `parts` are lists of messages, as JSON; the run begins at one."""

    run: str
    whose: Whose
    parts: list[str]
    begins: int
    system: str
    tools: str
    seconds: float
    usage: tuple[int, int, int]
    """Answers, tokens read, tokens written."""
    error: str | None = None
    stopped: str | None = None


@dataclass(slots=True, eq=False)
class Conversation:
    """What is remembered of one conversation."""

    whose: Whose
    text: str = ""
    """What was added; once it is there it never changes."""
    place: tuple[int, str] | None = None
    """The message it was added to: where it stands, and its mark."""
    cures: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    """What was looked for after failures of tools: where the result stands, its mark, and the text, mostly empty."""
    run: str = ""
    """The run that is going on; empty between runs."""
    last_run: str = ""
    is_recalled: bool = False
    """Whether memory was asked for this run."""
    has_spoken: bool = False
    state: State = "asked"
    under_way: int = 0
    error: str = ""
    begins: int = 0
    first: str = ""
    """The mark of the message with which the run begins."""
    runs: dict[str, str] = field(default_factory=dict[str, str])
    """The run of each response, by its id."""
    parts: list[str] = field(default_factory=list[str])
    length: int = 0
    system: str = "null"
    tools: str = "null"
    usage: tuple[int, int, int] = (0, 0, 0)
    began: float = 0.0
    last: float = 0.0
    keys: list[Key] = field(default_factory=list[Key])
    recalling: Lock = field(default_factory=Lock)
    """Held while memory is asked, so that no other request of the conversation goes out without the text."""

    @property
    def is_busy(self) -> bool:
        """Whether its agent is at work: it waits for an answer or for its tools."""
        return self.under_way > 0 or self.state == "waits"

    @property
    def size(self) -> int:
        """Characters held for its run."""
        return sum(map(len, self.parts)) + len(self.tools)

    def place_in(self, request: Request, /) -> int | None:
        """Where the text belongs in a later request: in the message it was added to, wherever that stands now."""
        if not self.text or self.place is None or request.is_partial:
            return None
        return _same(request, *self.place)

    def cures_in(self, request: Request, /) -> dict[int, str]:
        """What was looked for after failures, by where these stand in a later request."""
        cures = [] if request.is_partial else self.cures
        return {at: text for index, mark, text in cures if (at := _same(request, index, mark)) is not None}

    def enter(self, request: Request, now: float, /) -> None:
        """A request is under way. It begins another run where none is going on."""
        self.last, self.under_way = now, self.under_way + 1
        goes_on = request.turn is None and self.last_run  # the end was told while tools were at work
        if not self.run and not goes_on:
            turn = request.turn if request.turn is not None else 0
            self.run, self.is_recalled, self.has_spoken, self.error = new_id(), False, False, ""
            self.began, self.usage = now, (0, 0, 0)
            self.begins = (self.length if request.is_partial else 0) + turn
            self.first = message.mark if request.turn is not None and (message := request.spoken[turn]) else ""

    def note(self, request: Request, answer: Answer, /) -> None:
        """Keep what a request and its answer say of the run."""
        parts = [request.listed, *([json.dumps(answer.messages)] if answer.messages else [])]
        self.parts = [*self.parts, *parts] if request.is_partial else parts
        if self.first and not request.is_partial:  # a client may leave out what is old
            same = [at for at, message in enumerate(request.spoken) if message and message.mark == self.first]
            self.begins = min(same, key=lambda at: abs(at - self.begins), default=0)
        count = len(request.messages) + len(answer.messages)
        self.length = self.length + count if request.is_partial else count
        self.system = request.system if request.system != "null" else self.system
        self.tools = request.tools if request.tools != "null" else self.tools
        answers, read, written = self.usage
        self.usage = answers + bool(answer.messages), read + answer.tokens[0], written + answer.tokens[1]


class Conversations:
    """The conversations of one proxy."""

    def __init__(self, secret: bytes, /, *, idle: float) -> None:
        self._secret, self._idle = secret, idle
        self._known: dict[Key, Conversation | None] = {}
        self._all: OrderedDict[int, Conversation] = OrderedDict()

    def __len__(self) -> int:
        return len(self._all)

    def find(self, request: Request, whose: Whose, /, *, name: str | None, hint: str) -> Conversation | None:
        """The conversation that a request belongs to, a new one perhaps; `None` where that is not clear."""
        conversation = self._find(request, whose, name=name, hint=hint)
        if conversation is not None:
            self._all.setdefault(id(conversation), conversation)
            self._all.move_to_end(id(conversation))
        return conversation

    def answered(
        self, conversation: Conversation, request: Request, answer: Answer, /, *, hint: str, now: float
    ) -> None:
        """A response is over. `answer` says what the agent said, or why there is nothing."""
        self._all.setdefault(id(conversation), conversation)  # it may have been crowded out meanwhile
        chain, asked = self._chain(request, conversation.whose, hint)
        conversation.under_way, conversation.last = conversation.under_way - 1, now
        if answer.error:
            conversation.state, conversation.error = "failed", answer.error
            if not request.is_partial:
                conversation.note(request, Answer())
            return
        conversation.note(request, answer)
        conversation.state, conversation.error = ("waits" if answer.waits else "answered"), ""
        conversation.has_spoken = True
        self._forget(asked, conversation)
        self._know(self._after(chain[-1] if chain else b"", answer), conversation)
        if answer.id:
            self._know(self._key(conversation.whose, "response", answer.id), conversation)
            conversation.runs[str(answer.id)] = conversation.run or conversation.last_run

    def find_named(
        self, whose: Whose, /, *, conversation: str | None = None, response: str | None = None
    ) -> Conversation | None:
        """The conversation that somebody names."""
        kind, name = ("response", response) if conversation is None else ("name", conversation)
        return self._known.get(self._key(whose, kind, name or ""))

    def end(self, conversation: Conversation, /, *, why: str | None = None, has_outcome: bool = False) -> Ended | None:
        """The run that is going on ends here; `None` if nothing happened in it. `why`: it is cut off and proves
        nothing. `has_outcome`: somebody says how it ended."""
        if not conversation.run or not conversation.parts:
            return None
        run, conversation.last_run, conversation.run = conversation.run, conversation.run, ""
        error = conversation.error if conversation.state == "failed" else ""
        proves_nothing = not has_outcome and (error == GONE or not conversation.has_spoken)
        stopped = why or (error if error and proves_nothing else None)
        ended = Ended(
            run=run,
            whose=conversation.whose,
            parts=conversation.parts,
            begins=conversation.begins,
            system=conversation.system,
            tools=conversation.tools,
            seconds=round(max(0.0, conversation.last - conversation.began), 3),
            usage=conversation.usage,
            error=error if error and not stopped else None,
            stopped=stopped,
        )
        conversation.parts, conversation.length, conversation.tools = [], 0, "null"
        return ended

    def due(self, now: float, /) -> list[Ended]:
        """The runs that are over because nothing came any more, and those for which there is no room."""
        runs = [self.end(each, why=_why(each)) for each in self._all.values() if self._is_over(each, now)]
        runs += list(self._crowd_out())
        return [ended for ended in runs if ended]

    def close(self) -> list[Ended]:
        """The runs that the end of the proxy ends."""
        runs = [self.end(each, why=_why(each)) for each in self._all.values()]
        return [ended for ended in runs if ended]

    def _is_over(self, conversation: Conversation, now: float) -> bool:
        if not conversation.run or conversation.under_way:
            return False
        return now - conversation.last >= (PATIENCE if conversation.state == "waits" else self._idle)

    def _crowd_out(self) -> Iterator[Ended | None]:
        held = sum(each.size for each in self._all.values())
        while self._all and (len(self._all) > MOST or held > MOST_CHARACTERS):
            _, oldest = self._all.popitem(last=False)
            held -= oldest.size
            yield self.end(oldest, why=_why(oldest))
            for key in oldest.keys:
                self._forget(key, oldest)

    # -- whose request is it? -------------------------------------------------------------------------------------

    def _find(self, request: Request, whose: Whose, *, name: str | None, hint: str) -> Conversation | None:
        if name or request.conversation:
            kind = "name" if name else "conversation"
            return self._find_or_begin(self._key(whose, kind, name or request.conversation or ""), whose)
        if request.previous:
            return self._known.get(self._key(whose, "response", request.previous))
        chain, asked = self._chain(request, whose, hint)
        if asked in self._known:
            return self._again(asked)
        for key in reversed(chain):
            if key in self._known:
                return self._known[key]
        if request.turn is None:
            return None
        return self._find_or_begin(asked, whose)

    def _again(self, asked: Key) -> Conversation | None:
        """Take the same request once more: after a failure it is a retry. While the first is under way, who knows."""
        conversation = self._known[asked]
        return None if conversation is None or conversation.under_way else conversation

    def _find_or_begin(self, key: Key, whose: Whose) -> Conversation:
        conversation = self._known.get(key)
        if conversation is None:
            conversation = Conversation(whose)
            self._know(key, conversation)
        return conversation

    def _know(self, key: Key, conversation: Conversation) -> None:
        """From now on `key` leads to `conversation`; to none if another one, which is at work too, has come as far."""
        other = self._known.get(key, conversation)
        clear = other is conversation or (other is not None and not other.is_busy)
        self._known[key] = conversation if clear else None
        conversation.keys.append(key)

    def _forget(self, key: Key, conversation: Conversation) -> None:
        if self._known.get(key, conversation) in (conversation, None):
            self._known.pop(key, None)

    # -- keys -----------------------------------------------------------------------------------------------------

    def _key(self, *parts: str | Whose) -> Key:
        return self._hash(json.dumps(parts))

    def _hash(self, text: str, before: Key = b"") -> Key:
        return hmac.digest(self._secret, before + text.encode(), "sha256")

    def _chain(self, request: Request, whose: Whose, hint: str) -> tuple[list[Key], Key]:
        """A key for each message of the history so far, and one for the request as it stands, instructions and all."""
        key = self._key(whose, request.dialect, hint, request.hint)
        keys: list[Key] = []
        for message in request.spoken:
            if message is not None and message.speaker != "rules":
                key = self._hash(message.mark, key)
                keys.append(key)
        return keys, self._hash(json.dumps(["asked", request.rules]), key)

    def _after(self, key: Key, answer: Answer) -> Key:
        for message in answer.messages:
            if mark := mark_of(message):
                key = self._hash(mark, key)
        return key


def _same(request: Request, index: int, mark: str) -> int | None:
    """Where a message stands now that stood at `index`."""
    same = [i for i, message in enumerate(request.spoken) if message and message.mark == mark]
    return index if index in same else next(iter(same), None)


def turn_to_recall(conversation: Conversation, request: Request, /) -> tuple[int, SpokenMessage] | None:
    """The turn of the user that memory is to be asked for: the first of a run that asks for something.

    Only one text is ever added to a conversation, so none is looked for once there is one.
    """
    turn = request.turn
    message = None if turn is None else request.spoken[turn]
    if turn is None or message is None or conversation.text or conversation.is_recalled or not asks(message):
        return None
    return turn, message


def _why(conversation: Conversation) -> str | None:
    """Why a run that ends now proves nothing; `None` for one that came to an answer, or to an error."""
    if conversation.state == "failed":
        return None
    return (
        None if conversation.state == "answered" and not conversation.under_way else "no answer of the agent ended it"
    )
