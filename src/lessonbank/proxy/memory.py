"""The memory of a proxy: a process of its own, so that whatever happens to it leaves a plain proxy.

It reads frames from its standard input and answers on its standard output. At the end of the input it learns what is
left to learn, closes the bank and ends.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, BinaryIO, Final, Unpack, cast

import lessonbank
from lessonbank.adapters.following import FollowedRun, RunFollower, harmless, run_from
from lessonbank.contracts.records import SECONDS, Observation, Step, Usage
from lessonbank.contracts.retrieve_options import RetrieveKeywords
from lessonbank.errors import LessonbankError, StoreReplaced
from lessonbank.guard.identity import acting_as
from lessonbank.guard.quote import quoted
from lessonbank.importers import calls_of
from lessonbank.text.messages import trajectory_from

from .frames import Frame, packed, read

log = logging.getLogger("lessonbank")
_THREADS: Final = 32
_RULES: Final = ("system", "developer")


class Memory:
    """Does what frames ask for."""

    def __init__(
        self,
        connect: Callable[[], lessonbank.ReasoningBank],
        out: BinaryIO,
        /,
        *,
        cures: bool = True,
        **options: Unpack[RetrieveKeywords],
    ) -> None:
        self._out, self._lock = out, threading.Lock()
        self._follow = lambda: RunFollower(connect(), "proxy", cures=cures, **options)
        self._opening, self._follower = threading.Lock(), self._follow()

    def do(self, frame: Frame, /) -> None:
        """One frame. Nothing in it ends this process."""
        with acting_as(frame.get("writer") or ""):
            self._do(frame)

    def _do(self, frame: Frame) -> None:
        try:
            match frame["op"]:
                case "begin":
                    self.say({"id": frame["id"], "text": self._begin(frame["task"], frame).text})
                case "again":
                    self.say({"id": frame["id"], "text": cure_of(self._follower.get(frame["run"]), frame["messages"])})
                case "end":
                    self._end(frame)
                case "tell":
                    self._follower.tell(frame["run"], scope=frame["scope"], **_outcome_in(frame))
                case "drain":
                    self._follower.bank.drain()
                    self.say({"id": frame["id"], "text": ""})
                case problem:
                    log.warning("memory lost what the proxy sent: it is %s", problem)
        except Exception as problem:  # noqa: BLE001 - a frame of any content must not end the memory of all others
            log.warning("memory could not do what the proxy asked for: %s: %s", type(problem).__name__, quoted(problem))
            if "id" in frame:  # the proxy asks a memory that owes it an answer nothing more
                self.say({"id": frame["id"], "text": ""})

    def say(self, frame: Frame, /) -> None:
        """Answer the proxy. If it is gone, this process ends soon, too."""
        with self._lock:
            self._out.write(packed(frame))
            self._out.flush()

    def close(self) -> None:
        """Learn what is left to learn, and close the bank."""
        self._follower.bank.close()

    def _begin(self, task: str, frame: Frame) -> FollowedRun:
        """The run of a frame, with its recall. Where the file was replaced, the one that lies there now is opened."""
        follower, name = self._follower, {"run": frame["run"], "scope": frame["scope"]}
        run = follower.begin_waiting(task, **name)
        if not task or run.recall is not None:
            return run
        try:
            follower.bank.scoped(frame["scope"]).recalls.list(limit=1)
        except StoreReplaced:
            with self._opening:
                if self._follower is follower:
                    self._follower = self._follow()
                    threading.Thread(target=follower.bank.close).start()
            return self._follower.begin_waiting(task, **name)
        return run

    def _end(self, frame: Frame) -> None:
        # A run that was not begun here has no recall.
        run = self._follower.get(frame["run"]) or self._begin("", frame)
        messages: list[Any] = [message for part in frame["parts"] for message in part]
        before, own = messages[: frame["begins"]], messages[frame["begins"] :]
        rules: list[Any] = [m for m in before if isinstance(m, dict) and cast("Frame", m).get("role") in _RULES]
        source = {"messages": [*rules, *own], "system": frame["system"], "tools": frame["tools"]}
        draft = run_from(source, task=run.task or None)
        requests, asked, output = frame["usage"]
        usage = Usage(requests=requests, input_tokens=asked, output_tokens=output)
        trajectory, metadata = draft.model_copy(update={"usage": usage}), {SECONDS: frame["seconds"]}
        run.read_results(trajectory)
        if frame["stopped"]:
            run.stop(trajectory, reason=frame["stopped"], metadata=metadata)
        else:
            run.finish(trajectory, error=frame["error"], metadata=metadata, **_outcome_in(frame))


def open_bank(settings: Mapping[str, Any], /) -> lessonbank.ReasoningBank:
    """The bank that a proxy's settings name, as the commands name it."""
    model = lessonbank.Model(**settings["model"]) if settings["model"] else None
    holdout = settings["holdout"]
    return lessonbank.connect(
        settings["bank"],
        scope=settings["scope"],
        model=model,
        embedder=settings["embedder"],
        learning=lessonbank.Learning(domain=settings["domain"]),
        evidence=lessonbank.Evidence() if holdout is None else lessonbank.Evidence(holdout=holdout or None),
    )


def main() -> None:
    """Serve the proxy that started this process until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they reach both processes, and the proxy has runs to hand over
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(format="lessonbank: %(message)s")
    # What a library prints must not stand between the frames.
    source, out = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    settings = cast("Frame", read(source))
    try:
        connect, options = partial(open_bank, settings), settings.get("retrieve", {})
        memory = Memory(connect, out, cures=settings.get("cures", True), **options)
    except LessonbankError as error:
        out.write(packed({"error": str(error), "code": error.code}))
        out.flush()
        return
    with closing(memory), ThreadPoolExecutor(_THREADS) as threads:
        memory.say({"ready": True})
        while frame := read(source):
            # Ends keep their order, and only begin work; what waits for an answer has a thread.
            if frame["op"] in ("again", "begin", "drain"):
                threads.submit(memory.do, frame)
            else:
                memory.do(frame)


def cure_of(run: FollowedRun | None, messages: list[Any]) -> str:
    """What got past the last failures of tools in these messages before."""
    if run is None:
        return ""
    with harmless("a second look"):
        steps = trajectory_from(messages, task=run.task or None).steps
        last = next((step for step in reversed(steps) if step.action.calls), Step())
        return "\n\n".join(
            text
            for call, seen in calls_of(last)
            if seen
            and (text := run.came_back_waiting(call.id or "", call.name, call.arguments, seen.text, _code(seen)))
        )
    return ""


def _code(seen: Observation) -> bool | None:
    return True if seen.is_error else None


def _outcome_in(frame: Frame) -> dict[str, Any]:
    return {"outcome": frame.get("outcome"), "reward": frame.get("reward")}


if __name__ == "__main__":
    main()
