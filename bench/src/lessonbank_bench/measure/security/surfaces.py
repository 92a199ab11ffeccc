"""Replays the structural corpus on every surface that text of a memory leaves by."""

from __future__ import annotations

import json
import logging
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

import lessonbank
from lessonbank._base.checks import replace_surrogates
from lessonbank.cli import app
from lessonbank.contracts.events import Event, FellBack
from lessonbank.contracts.records import Add, Experience, Extraction, Lesson, Run, Step, Trajectory
from lessonbank.guard.sanitise import canonical, fence
from lessonbank.learning.judging import LLMJudge
from lessonbank.testing import ScriptedModel
from lessonbank.testing.settings import grouped

from .places import CORPUS
from .rendering import FRAME, NONCE, RENDERERS, TOKENS, encodable, faults, text_faults
from .table import Row, counted

from structural_checks import Case, live_in, read, tokens_in  # isort: skip - `places` makes it importable

SURFACES = ("prompt", "recalled text", "tool result", "command line", "JSON", "export", "hook note", "log line")
KINDS = {
    "fence": "fence closed or forged",
    "forged line": "line or second preamble forged",
    "code point": "disallowed code point out",
    "role marker": "role marker at a line start",
    "token": "token of a chat template out",
    "thinking": "token of thinking in a table of the command line, a note or a log",
    "live link": "live link, image or tag in a prompt or field",
    "size": "prompt larger than its budget, or not encodable",
}
THOUGHTS = frozenset({"<think>", "</think>", "[THINK]"})
assert CORPUS


@dataclass
class Found:
    """What was broken: for each kind of fault, the cases and where."""

    by_kind: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def note(self, kinds: Iterator[str] | set[str], case: Case, surface: str) -> None:
        """Count faults of one case on one surface."""
        for kind in kinds:
            self.by_kind["size" if kind == "not encodable" else kind].append(f"{case.id} on {surface}")

    def note_line(self, text: str, case: Case, surface: str) -> None:
        """The same for a line that people read: tokens of thinking, which may stand in a model's reply, apart."""
        kinds = set(text_faults(text))
        if "token" in kinds and not tokens_in(text, TOKENS - THOUGHTS):
            kinds = kinds - {"token"} | {"thinking"}
        self.note(kinds, case, surface)


async def rows(every: int = 1) -> list[Row]:
    """The structural outcomes, over all surfaces."""
    cases, found = read("structural")[::every], Found()
    for case in cases:
        found.note(faults(RENDERERS[-1], case), case, "prompt")
        form, run = canonical(case.against(NONCE)), fence(case.against(NONCE), label="run", nonce=NONCE)
        found.note(text_faults(form), case, "field")
        found.note({"live link"} if live_in(form) else set(), case, "field")
        found.note({"fence"} if run.count(NONCE) != 2 else set(), case, "fence")
        found.note(text_faults(run), case, "fence")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.db"
        await _through_a_bank(path, cases, found)
        _on_the_command_line(path, cases, found)
    await _in_notes_and_logs(cases, found)
    told = f"{len(cases)} cases, each on {len(SURFACES)} surfaces"
    unstable = [case.id for case in cases if (c := canonical(case.text)) != canonical(c)]
    return [
        *(
            counted(KINDS[kind], ids, cases=told)
            if kind != "thinking"
            else Row(name=KINDS[kind], value=len(ids), cases=told, broken_by=tuple(ids))
            for kind, ids in found.by_kind.items()
        ),
        counted("canonical form not stable", unstable, cases=f"{len(cases)} cases"),
    ]


def block_faults(text: str, /) -> Iterator[str]:
    """What a block may not hold, wherever it is shown: one opening, one closing, our lines alone outside."""
    lines = text.strip().split("\n")
    codes = re.findall(r"^<<<lessons ([0-9a-f]{8})>>>$", text, re.MULTILINE)
    if len(codes) != 1 or lines[-1] != f"<<<end lessons {codes[0]}>>>" or text.count(f"<<<end lessons {codes[0]}") != 1:
        yield "fence"
    front = f"{codes[0]}| " if codes else "?"
    frame = [line.replace(codes[0] if codes else "?", NONCE) for line in lines if not line.startswith(front)]
    if frame != list(FRAME):
        yield "forged line"
    yield from text_faults(text)
    if not encodable(text):
        yield "size"


# --- through a bank --------------------------------------------------------------------------------------------------


def _kept(case: Case) -> Experience:
    """The case as an older or a foreign bank may hold it: nothing of it made inert."""
    text = replace_surrogates(case.text).strip() or "nothing"
    lessons = (
        Lesson(title=text[:300], description=text[:2000], content="Plain words."),
        Lesson(title="Plain title", description="seen before", content=text),
    )
    return Experience(scope="s", task=f"find {case.id}", lessons=lessons)


async def _through_a_bank(path: Path, cases: Sequence[Case], found: Found) -> None:
    options: dict[str, Any] = {"scope": "s", "embedder": "lexical", "holdout": None, "budget": 8000}
    async with await lessonbank.connect_async(path, **grouped(**options)) as bank:
        await bank.store.apply([Add(experience=_kept(case)) for case in cases], scope="s", writer="report")
        for case in cases:
            text = (await bank.retrieve(f"find {case.id}")).text
            if text:  # a text longer than the whole budget is left out
                found.note(set(block_faults(text)), case, "recalled text")
                found.note(await _as_tool_result(text), case, "tool result")
        await bank.admin.export(path.with_name("export.jsonl"))
    for line in path.with_name("export.jsonl").read_bytes().decode("utf-8", "replace").splitlines():
        of = next((case for case in cases if f'"find {case.id}"' in line), cases[0])
        found.note(_line_faults(line), of, "export")


async def _as_tool_result(text: str) -> set[str]:
    """What a recalled block does as the answer of a tool: to the message it is in, and to the judge that reads it."""
    message = json.dumps({"role": "tool", "content": text})
    broken = {"forged line"} if json.loads(message)["content"] != text or "\n" in message else set[str]()
    model = ScriptedModel(["no verdict"])
    await LLMJudge(model)(Trajectory(task="look", steps=(Step(action="recall_lessons", observation=text),)))
    prompt = model.calls[0].messages[-1].content
    markers = re.findall(r"^<<<(?:end )?\w+ [0-9a-f]{8}>>>$", prompt, re.MULTILINE)
    return broken | ({"fence"} if len(markers) != 2 else set()) | set(text_faults(prompt))


def _line_faults(line: str) -> set[str]:
    broken = set() if line.isascii() and line.isprintable() else {"code point"}
    try:
        json.loads(line)
    except ValueError:
        broken.add("forged line")
    return broken


def _on_the_command_line(path: Path, cases: Sequence[Case], found: Found) -> None:
    warned = list[str]()
    said = _commands(warned, "--bank", str(path), "--scope", "s")

    for words in (("lessons", "list", "--limit", "10000"), ("history", "list")):
        found.note_line(said(*words), cases[0], f"command line ({words[0]} of all)")
    for words in (("lessons", "list", "--limit", "10000", "--json"), ("history", "list", "--json")):
        found.note(_line_faults(said(*words).replace("\n", "")), cases[0], f"JSON ({words[0]} of all)")
    for case in cases:
        text = said("retrieve", f"find {case.id}")
        block, _, rest = text.partition("\nWhy")
        found.note_line(rest, case, "command line")
        found.note(set(block_faults(block)) if "<<<" in block else set(text_faults(block)), case, "command line")
        found.note(_line_faults(said("retrieve", f"find {case.id}", "--json").replace("\n", "")), case, "JSON")
        for note in warned:
            found.note_line(note, case, "command line")
        warned.clear()


def _commands(warned: list[str], /, *always: str) -> Callable[..., str]:
    """What a command prints; what it warns of, on the other stream, goes to `warned`.

    The commands are made once: to make them takes ten times as long as to run one.
    """
    runner, command = CliRunner(env={"NO_COLOR": "1", "COLUMNS": "200"}), get_command(app)

    def said(*words: str) -> str:
        failed = "\x00failed"
        with runner.isolation() as streams:
            try:
                command.main(args=[*words, *always], prog_name="lessonbank")
            except SystemExit as ended:
                failed = failed if ended.code else ""
            except Exception:  # noqa: BLE001 - whatever a hostile text breaks is the finding
                pass
            sys.stdout.flush()
            sys.stderr.flush()
            told, notes = (stream.getvalue().decode("utf-8", "replace") for stream in streams[:2])
            warned.extend([notes] if notes else [])
            return failed or told.replace("\r\n", "\n")

    return said


# --- what parts say --------------------------------------------------------------------------------------------------


class _Lines(logging.Handler):
    """Keeps log lines as a file would get them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


async def _in_notes_and_logs(cases: Sequence[Case], found: Found) -> None:
    """Reasons of a judge, titles of lessons that were turned away, errors of parts: in hooks, notes and logs."""
    now, notes = {"text": ""}, list[str]()

    def hook(event: Event) -> None:
        notes.extend([event.why] if isinstance(event, FellBack) else [])

    async def draws(attempts: Sequence[Run], /) -> Extraction:
        text = replace_surrogates(now["text"]).strip() or "nothing"
        return Extraction(lessons=(Lesson(title=text[:300], content="Be careful."),))

    def judges(_: object) -> str:
        return json.dumps({"check": "x", "reason": now["text"], "outcome": "success", "confidence": 1})

    handler, logger = _Lines(), logging.getLogger("lessonbank")
    logger.addHandler(handler)
    propagated, logger.propagate = logger.propagate, False
    options: dict[str, Any] = {"scope": "s", "embedder": "lexical", "holdout": None, "hooks": [hook]}
    try:
        async with await lessonbank.connect_async(
            ":memory:", **grouped(model=ScriptedModel(judges), extractor=draws, **options)
        ) as bank:
            for case in cases:
                now["text"] = case.text
                learned = await bank.learn(_run(), outcome="success")
                notes += [*learned.notes, *(await bank.learn(_run())).notes]
                await _logged(case.text)
                for said, surface in ((notes, "hook note"), (handler.lines, "log line")):
                    found.note_line(" ".join(said), case, surface)
                    found.note({"forged line"} if any("\n" in line for line in said) else set(), case, surface)
                    said.clear()
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def _run() -> Trajectory:
    return Trajectory(task="Open the valve", steps=(Step(action="turn", observation="it is open"),), answer="open")


async def _logged(text: str) -> None:
    """A crash of an agent whose memory fails, too: what failed is logged."""

    async def broken(run: Trajectory, /) -> Any:
        raise RuntimeError(text)

    bank = await lessonbank.connect_async(
        ":memory:", scope="s", embedder="lexical", parts=lessonbank.Parts(judge=broken)
    )
    async with bank, bank.attempt("open the valve") as attempt:
        attempt.step("turn", "it is open")
