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
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final, Unpack, cast

import lessonbank
from lessonbank.adapters.following import FollowedRun, RunFollower, harmless, run_from
from lessonbank.contracts.records import SECONDS, Observation, Step, Usage
from lessonbank.contracts.retrieve_options import RetrieveKeywords
from lessonbank.errors import LessonbankError
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
        bank: lessonbank.ReasoningBank,
        out: BinaryIO,
        /,
        *,
        cures: bool = True,
        **options: Unpack[RetrieveKeywords],
    ) -> None:
        self._bank, self._out, self._lock = bank, out, threading.Lock()
        self._follower = RunFollower(bank, "proxy", cures=cures, **options)

    def do(self, frame: Frame, /) -> None:
        """One frame. Nothing in it ends this process."""
        with acting_as(frame.get("writer") or ""):
            self._do(frame)

    def _do(self, frame: Frame) -> None:
        try:
            match frame["op"]:
                case "begin":
                    run = self._follower.begin_waiting(frame["task"], run=frame["run"], scope=frame["scope"])
                    self.say({"id": frame["id"], "text": run.text})
                case "again":
                    self.say({"id": frame["id"], "text": cure_of(self._follower.get(frame["run"]), frame["messages"])})
                case "end":
                    self._end(frame)
                case "tell":
                    self._follower.tell(frame["run"], scope=frame["scope"], **_outcome_in(frame))
                case "drain":
                    self._bank.drain()
                    self.say({"id": frame["id"], "text": ""})
                case problem:
                    log.warning("memory lost what the proxy sent: it is %s", problem)
        except Exception as problem:  # noqa: BLE001 - a frame of any content must not end the memory of all others
            log.warning("memory could not do what the proxy asked for: %s: %s", type(problem).__name__, quoted(problem))

    def say(self, frame: Frame, /) -> None:
        """Answer the proxy. If it is gone, this process ends soon, too."""
        with self._lock:
            self._out.write(packed(frame))
            self._out.flush()

    def _run(self, frame: Frame) -> FollowedRun:
        """The run that a frame names. One that was not begun here has no recall."""
        return self._follower.get(frame["run"]) or self._follower.begin_waiting(
            "", run=frame["run"], scope=frame["scope"]
        )

    def _end(self, frame: Frame) -> None:
        run = self._run(frame)
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
        bank = open_bank(settings)
    except LessonbankError as error:
        out.write(packed({"error": str(error), "code": error.code}))
        out.flush()
        return
    with bank, ThreadPoolExecutor(_THREADS) as threads:
        memory = Memory(bank, out, cures=settings.get("cures", True), **settings.get("retrieve", {}))
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
