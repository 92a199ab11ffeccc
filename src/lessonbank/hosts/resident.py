"""The resident process behind the hooks: keeps a bank open, answers prompts in time, and learns from ended sessions.

There is one for each bank and its settings. It ends when it was not needed for an hour.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from shlex import quote
from typing import IO, Any, Final

from pydantic import TypeAdapter, ValidationError

from lessonbank._base.plural import plural
from lessonbank.bank.recall_again import cures_of
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Recall
from lessonbank.contracts.retrieve_options import RetrieveOptions, check_names
from lessonbank.errors import LessonbankError, StoreDamaged, StoreUnavailable, UsageError
from lessonbank.guard.quote import quoted

from . import client
from .cures import Cures
from .sessions import Sessions, holds, open_bank, problem_in
from .slash_command import SESSION, SlashCommand
from .week import waiting

log = logging.getLogger("lessonbank")
IDLE: Final = 3600.0
"""Seconds without a request until the process ends."""
_TICK: Final = 60.0
"""Seconds between two looks at the clock."""
_MOST_COUNTED: Final = 50
"""Lessons of a scope among which those that wait are counted: each takes a fifth of a millisecond."""
_PATIENCE: Final = 2.0
"""Seconds for a client that connected to say something."""
_MOST_BEFORE: Final = client.MOST_SHOWN - 2_400
"""Bytes of lessons below which there is room for corrections."""
_RETRIEVE: Final = TypeAdapter(RetrieveOptions)


class Resident:
    """Answers the hooks of all sessions that use one bank."""

    def __init__(
        self, bank: ReasoningBank, sessions: Sessions, listener: socket.socket, lock: IO[str], *, name: str = ""
    ) -> None:
        self._bank, self._sessions, self._listener, self._lock = bank, sessions, listener, lock
        self._name, self._greeted = name, set[str]()
        self._busy, self._guard = set[str](), threading.Lock()
        self._used, self._stopped = time.monotonic(), threading.Event()
        self._learner = ThreadPoolExecutor(1, "lessonbank-learn")

    def serve(self) -> None:
        """Answer until nobody asks any more; then learn what is left."""
        self._later()
        with ThreadPoolExecutor(8, "lessonbank-hook") as answering:
            while not self._stopped.is_set() and time.monotonic() - self._used < IDLE:
                try:
                    connection, _ = self._listener.accept()
                except TimeoutError:
                    self._later()
                else:
                    self._used = time.monotonic()
                    answering.submit(self._talk, connection)
            self.stop()
        self._learner.shutdown()

    def _later(self) -> None:
        self._learner.submit(self._learn)

    def _learn(self) -> None:
        try:
            self._sessions.learn(self._bank)
        except Exception as error:  # noqa: BLE001 - a background thread: what is not learned now is learned later
            log.warning("learning from the noted sessions failed: %s", type(error).__name__)

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(_PATIENCE)
            try:
                if client.is_same_user(connection):
                    self._answer(connection)
            except (OSError, ValueError):  # it hung up, or it speaks something else
                pass
            except Exception as error:  # noqa: BLE001 - one hook gets nothing; the others go on
                log.warning("a hook was not answered: %s", type(error).__name__)
                if isinstance(error, StoreUnavailable):  # the file was replaced: the next process opens the new one
                    self.stop()

    def _answer(self, connection: socket.socket) -> None:
        with connection.makefile("rwb") as stream:
            request: dict[str, Any] = json.loads(stream.readline(client.MOST_READ))
            if (request.get("protocol"), request.get("release")) != (client.PROTOCOL, client.release()):
                self.stop()
                _say(stream, {"replace": True})
            elif not client.is_session(request.get("session", "none")):
                _say(stream, {})
            elif request.get("do") == client.RECALL:
                self._recall(stream, request)
            elif request.get("do") == client.AGAIN:
                self._again(stream, str(request["session"]), str(request.get("transcript") or ""))
            elif request.get("do") == client.CURE:
                self._cure(stream, request)
            elif request.get("do") == client.SAY:
                _say(stream, {"text": self._answer_command(request)})
            elif request.get("do") == client.NOTE:
                _say(stream, {})
                self._later()
            else:
                _say(stream, {"process": os.getpid()})
                if request.get("do") == client.STOP:
                    self.stop()

    def _recall(self, stream: Any, request: dict[str, Any]) -> None:
        """Offer a session its lessons, once. They count as shown only when the hook says that it printed them."""
        session = str(request["session"])
        if not self._begins(session):
            return _say(stream, {})
        try:
            chosen = self._sessions.scope_for(self._bank, request["scope"], request.get("folder", ""), asks=True)
            if self._sessions.switches.is_off(session=session, scope=chosen.scope):
                return _say(stream, {})
            bank = self._bank.scoped(chosen.scope, writer=request["host"])
            asked = _asked(request)
            recall = bank.retrieve(request["prompt"], **asked.keywords)
            again = self._corrections(recall, session, request["host"], asked)
            recalls = [each for each in (recall, again) if each and each.candidates]
            text = "\n".join(each.text for each in recalls if each.text)
            _say(stream, {"text": text, "line": self._line(bank, recalls, session, asked, question=chosen.question)})
            if not (recalls and _is_printed(stream, text)):
                recalls = []
            id, correction = (each.id if each and each in recalls else "" for each in (recall, again))
            self._sessions.remember(session, id, chosen.scope, corrections=correction)
        except StoreDamaged as error:
            _say(stream, {"line": "" if self._is_greeted(session) else f"lessonbank: no lessons: {quoted(error)}"})
            raise
        finally:
            with self._guard:
                self._busy.discard(session)

    def _corrections(self, first: Recall, session: str, host: str, asked: RetrieveOptions) -> Recall | None:
        """The rules that a person said in this repository, once a session; `None` where there are none, or no room."""
        cures, is_full = self._sessions.cures, len(first.text.encode()) > _MOST_BEFORE
        if cures is None or is_full or self._sessions.recalls_given(self._bank, session)[1]:
            return None
        return cures.say(first.scope, first, host=host, asked=asked)

    def _again(self, stream: Any, session: str, transcript: str) -> None:
        """Give a session that goes on its recalls' texts again, but those that the conversation still has."""
        texts = [
            recall.text
            for recall in self._sessions.recalls_given(self._bank, session)
            if recall and not (any(lesson.hidden for lesson in recall.shown) or holds(transcript, recall.text))
        ]
        is_off = self._sessions.switches.is_off(session=session, scope=self._sessions.scope_of(session))
        _say(stream, {} if is_off else {"text": "\n".join(filter(None, texts))})

    def _cure(self, stream: Any, request: dict[str, Any]) -> None:
        """Tell a session what got a command through that failed just now, once."""
        session, cures = str(request["session"]), self._sessions.cures
        scope = self._sessions.scope_for(self._bank, request["scope"], request.get("folder", "")).scope
        if cures is None or self._sessions.switches.is_off(session=session, scope=scope):
            return _say(stream, {})
        command, printed, show = str(request["command"]), str(request["printed"]), partial(_show_cure, stream)
        host, asked = str(request["host"]), _asked(request)
        cures.tell(scope, command, printed, show, session=session, host=host, asked=asked)
        return _say(stream, {})  # which nobody reads who was told a cure

    def _answer_command(self, request: dict[str, Any]) -> str:
        """What the person is told who wrote `/lessonbank`."""
        session = str(request["session"])
        scope = self._sessions.scope_for(self._bank, request["scope"], request.get("folder", "")).scope
        bank, forget = self._bank.scoped(scope, writer=request["host"]), partial(self._sessions.forget, session)
        command = SlashCommand(bank, self._name, session, forget, self._sessions.switches, _asked(request))
        return command.answer(str(request["words"]))

    def _line(
        self, bank: ReasoningBank, recalls: Sequence[Recall], session: str, asked: RetrieveOptions, *, question: str
    ) -> str:
        """What the person sees, once a session unless lessons are shown: how many were, and how many wait."""
        shown = sum(candidate.shown for recall in recalls for candidate in recall.candidates)
        if self._is_greeted(session) and not (shown or question):
            return ""
        waits = list[str]()
        for memory in (bank, bank.scoped(cures_of(bank.scope))):
            if count := waiting(memory, asked, most=_MOST_COUNTED):
                many = f"{count}{'' if count < _MOST_COUNTED else ' or more'} wait{'s' if count == 1 else ''}"
                waits.append(f"{many} for you: lessonbank review {quote(self._name)} --scope {memory.scope}")
        parts = [f"{plural(shown, 'lesson')} shown", *waits] if shown or waits else []
        return " | ".join(f"lessonbank: {part}" for part in (", ".join(parts), question) if part)

    def _is_greeted(self, session: str) -> bool:
        with self._guard:
            is_known = session in self._greeted
            self._greeted.add(session)
            return is_known

    def _begins(self, session: str) -> bool:
        """Whether a session has no lessons yet and is not being given any: hosts may ask several times at once."""
        with self._guard:
            if session in self._busy or self._sessions.recall_of(session):
                return False
            self._busy.add(session)
            return True

    def stop(self) -> None:
        """Leave the place to the next process. What is being answered or learned is finished."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        path = self._listener.getsockname()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as waker:
            waker.connect(path)  # `accept` wakes up for nothing else
        Path(path).unlink(missing_ok=True)
        self._lock.close()


def _is_printed(stream: Any, text: str) -> bool:
    """Whether the hook printed what it was handed, or had nothing to print."""
    return not text or stream.readline(64) == b"printed\n"


def _show_cure(stream: Any, recall: Recall) -> bool:
    sentence = "a cure is told" if recall.text else "a cure is known, and kept back this time to measure what it does"
    line = f"lessonbank: {sentence}: {recall.task.partition(' failed: ')[0]}"
    # Some programs keep it in the result of the command: its reader takes it out by this frame.
    framed = f"<{client.FRAME}>\n{recall.text}\n</{client.FRAME}>" if recall.text else ""
    _say(stream, {"text": framed, "line": line})
    return _is_printed(stream, recall.text)


def _asked(request: dict[str, Any]) -> RetrieveOptions:
    """The options of `retrieve` as the hook's command has them: as JSON, or as plain words such as `yes`.

    The receipt names the session. Raises TypeError, UsageError: `install` did not write the command.
    """
    words: dict[str, str] = request["retrieve"]
    check_names(words)
    try:
        asked = _RETRIEVE.validate_python({name: _value(word) for name, word in words.items()})
        of_session = {**(asked.metadata or {}), SESSION: str(request["session"])}
        return replace(asked, fit="none", metadata=of_session)  # a prompt waits a tenth of a second
    except ValidationError as error:
        raise UsageError(f"an option of the hook is wrong: {quoted(error)}") from None


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _say(stream: Any, reply: dict[str, object]) -> None:
    stream.write(json.dumps(reply).encode() + b"\n")
    stream.flush()


def main() -> None:
    """Serve one bank. The hook that starts this process hands it the lock of the bank's resident process."""
    words = sys.argv[1:]
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True) if value}
    with os.fdopen(client.LOCK, "a") as lock:
        os.set_inheritable(client.LOCK, False)
        _serve(options, lock)


def _serve(options: dict[str, str], lock: IO[str]) -> None:
    folder = Path(client.spool_folder(options["key"]))
    client.write_private(str(folder / "options"), dict(options))
    log.addHandler(RotatingFileHandler(folder / "log", maxBytes=100_000, backupCount=1))
    Path(options["bank"]).expanduser().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        _opened(options, folder) as bank,
        Cures.of(options, folder) as cures,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        path = client.socket_path(options["key"])
        Path(path).unlink(missing_ok=True)  # of a process that was killed
        listener.bind(path)
        listener.listen(64)
        listener.settimeout(_TICK)
        Resident(bank, Sessions(folder, cures=cures), listener, lock, name=options["bank"]).serve()


def _opened(options: dict[str, str], folder: Path) -> ReasoningBank:
    """The bank, ready to be searched. Why it cannot be opened stays beside the notes, for the next hook to say."""
    problem = folder / client.PROBLEM
    try:
        bank = open_bank(options)
        bank.lessons.search("warm")  # the first search loads what searching needs
    except LessonbankError as error:  # also of a model, whose key may be missing here
        reason = quoted(error)
        if reason != problem_in(folder):
            client.write_private(str(problem), {"reason": reason})
        raise
    problem.unlink(missing_ok=True)
    return bank


if __name__ == "__main__":
    main()
