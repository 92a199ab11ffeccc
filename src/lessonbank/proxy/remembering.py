"""Adds what memory says to requests, and hands over the runs that requests and responses amount to."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from time import monotonic
from typing import Final, cast

from lessonbank.contracts.records import Outcome
from lessonbank.contracts.records.ids import new_id
from lessonbank.errors import UsageError
from lessonbank.guard.quote import quoted

from .answers import MOST, Answer, read_answer
from .conversations import GONE, Conversation, Conversations, turn_to_recall
from .dialects import Dialect, Request, failed_at, read_request, with_texts
from .entrance import Whose
from .process import MemoryProcess

log = logging.getLogger("lessonbank")
CONVERSATION: Final = "x-lessonbank-conversation"
OUTCOME: Final = "x-lessonbank-outcome"
REWARD: Final = "x-lessonbank-reward"
_MOST_LOOKS: Final = 100
"""Failures of a conversation for which a cure is looked for."""
_SESSIONS: Final = (
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "x-session-id",
    "x-opencode-session",
)
"""Headers in which clients name their session. A session holds several conversations: those of sub-agents, titles."""
_ENDS: Final = (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete", b"response.failed")
"""What stands in the last event of a stream. A client may act on it before the stream itself ends."""


class Exchange:
    """One followed request and its response. `body` is what goes to the model's server."""

    def __init__(
        self, owner: Remembering, conversation: Conversation, request: Request, /, *, hint: str, body: bytes
    ) -> None:
        self.body = body
        self._owner, self._conversation, self._request, self._hint = owner, conversation, request, hint
        self._status, self._headers = 0, dict[str, str]()
        self._chunks, self._size, self._is_over, self._looks = list[bytes](), 0, False, 3

    def answered(self, status: int, headers: Mapping[str, str], /) -> None:
        """The response begins."""
        self._status, self._headers = status, dict(headers)

    def take(self, chunk: bytes, /) -> None:
        """Note a part of the response before it goes to the client."""
        self._size += len(chunk)
        if self._size <= MOST:
            self._chunks.append(chunk)
        is_last = self._headers.get("content-length") == str(self._size) or any(sign in chunk for sign in _ENDS)
        if is_last and self._looks:  # an agent can write such a sign, too
            self._looks -= 1
            self._look(None, is_end=False)

    def end(self, problem: str | None = None, /) -> None:
        """The response is over. `problem` says what cut it short; a client may also just close a stream it has read."""
        self._look(problem, is_end=True)

    def _look(self, problem: str | None, *, is_end: bool) -> None:
        if self._is_over:
            return
        try:
            answer = self._answer(problem)
            if answer.error and not is_end:
                return
            self._is_over, self._chunks = True, []
            self._owner.answered(self._conversation, self._request, answer, hint=self._hint)
        except Exception as error:  # noqa: BLE001 - whatever memory meets in a response, the client gets it
            log.warning("a response was not taken in: %s: %s", type(error).__name__, quoted(error))

    def _answer(self, problem: str | None) -> Answer:
        if not self._status or self._size > MOST:
            return Answer(error=problem or GONE)
        answer = read_answer(self._request.dialect, self._status, self._headers, b"".join(self._chunks))
        return Answer(error=problem or answer.error) if answer.error else answer


class Remembering:
    """The memory of a proxy, as its requests and responses meet it."""

    def __init__(self, memory: MemoryProcess, /, *, idle: float = 60.0, secret: bytes | None = None) -> None:
        self.memory, self._idle = memory, idle
        self._conversations = Conversations(secret or secrets.token_bytes(32), idle=idle)

    async def open(
        self, dialect: Dialect, raw: bytes, headers: Mapping[str, str], /, *, whose: Whose
    ) -> Exchange | None:
        """Follow a request; `None` for one that passes through as it is."""
        try:
            request = read_request(dialect, raw)
        except (ValueError, RecursionError):
            return None
        hint = "\n".join([headers.get(name, "") for name in _SESSIONS])
        name = headers.get(CONVERSATION)
        conversation = self._conversations.find(request, whose, name=name, hint=hint) if request else None
        if request is None or conversation is None:
            return None
        self._take_outcome(conversation, request, headers)
        conversation.enter(request, monotonic())
        exchange = Exchange(self, conversation, request, hint=hint, body=raw)
        try:
            place = await self._place(conversation, request)
            texts = {at: text for at, text in (await self._cures(conversation, request)).items() if text}
            if place is not None:
                texts[place] = conversation.text
            exchange.body = with_texts(request, texts) if texts else raw
        except BaseException:
            exchange.end(GONE)
            raise
        return exchange

    def answered(self, conversation: Conversation, request: Request, answer: Answer, /, *, hint: str) -> None:
        """A response is over."""
        self._conversations.answered(conversation, request, answer, hint=hint, now=monotonic())

    def settle(
        self,
        whose: Whose,
        /,
        *,
        conversation: str | None,
        response: str | None,
        outcome: Outcome | None,
        reward: float | None,
    ) -> str | None:
        """How a run ended, told from outside; the run's id, or `None` if there is no such run."""
        match = self._conversations.find_named(whose, conversation=conversation, response=response)
        run = match.runs.get(response, "") if match and conversation is None and response else ""
        if match and run not in ("", match.run):  # the conversation has gone on since
            self.memory.tell(run, whose=whose, outcome=outcome, reward=reward)
            return run
        return self._settle(match, outcome, reward) if match else None

    async def watch(self) -> None:
        """End runs in which nothing happens any more, for as long as this is not cancelled."""
        while True:
            await asyncio.sleep(max(0.01, min(1.0, self._idle / 4)))
            for ended in self._conversations.due(monotonic()):
                self.memory.end(ended)

    async def close(self) -> None:
        """End every run, and let memory learn."""
        for ended in self._conversations.close():
            self.memory.end(ended)
        await self.memory.close()

    async def _place(self, conversation: Conversation, request: Request) -> int | None:
        """Where the conversation's text stands in this request."""
        async with conversation.recalling:
            wanted = turn_to_recall(conversation, request)
            if wanted is None:
                return conversation.place_in(request)
            turn, message = wanted
            conversation.is_recalled = True
            text = await self.memory.begin(conversation.run, message.task, whose=conversation.whose)
            if text is None:  # what it may still find is not shown: the run has no recall
                conversation.run = new_id()
            if not text:
                return None
            conversation.text, conversation.place = text, (turn, message.mark)
            return turn

    async def _cures(self, conversation: Conversation, request: Request) -> dict[int, str]:
        """What got past the failures of this conversation before, by where these stand in this request."""
        async with conversation.recalling:
            known, failed = conversation.cures_in(request), failed_at(request)
            if not failed or failed[0] in known or not conversation.run or len(conversation.cures) >= _MOST_LOOKS:
                return known
            at, messages = failed
            text = await self.memory.look_again(conversation.run, messages, whose=conversation.whose) or ""
            if message := request.spoken[at]:
                conversation.cures.append((at, message.mark, text))
            return {**known, at: text}

    def _take_outcome(self, conversation: Conversation, request: Request, headers: Mapping[str, str]) -> None:
        if OUTCOME not in headers and REWARD not in headers:
            return
        if conversation.run and not conversation.has_spoken and conversation.parts == [request.listed]:
            return  # the request failed and comes again: it told how the run before it ended the first time
        try:
            outcome, reward = read_outcome(headers.get(OUTCOME), headers.get(REWARD))
        except UsageError as error:
            log.warning("an outcome was not taken in: %s", quoted(error))
            return
        self._settle(conversation, outcome, reward)

    def _settle(self, conversation: Conversation, outcome: Outcome | None, reward: float | None) -> str | None:
        if ended := self._conversations.end(conversation, has_outcome=True):
            self.memory.end(ended, outcome=outcome, reward=reward)
        elif conversation.last_run:
            self.memory.tell(conversation.last_run, whose=conversation.whose, outcome=outcome, reward=reward)
        return conversation.last_run or None


def read_outcome(outcome: object, reward: object, /) -> tuple[Outcome | None, float | None]:
    """An outcome and a reward, as they came from outside.

    Raises:
        UsageError: neither, or one that cannot be.
    """
    if outcome not in (None, "success", "failure", "unknown"):
        raise UsageError("an outcome is success, failure or unknown")
    try:
        value = None if reward is None else float(cast("float", reward))
    except (TypeError, ValueError):
        value = -1.0
    if value is not None and not 0 <= value <= 1:
        raise UsageError("a reward is a number from 0 to 1")
    if outcome is None and value is None:
        raise UsageError("neither an outcome nor a reward was told")
    return outcome, value
