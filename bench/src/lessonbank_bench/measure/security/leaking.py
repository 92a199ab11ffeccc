"""Sends every secret of the corpus through a bank, and searches all that the bank kept, sent, embedded or said."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import lessonbank
from lessonbank.contracts.records import Experience, Lesson, Run, Verdict
from lessonbank.contracts.settings import UNSET

from .places import TESTS
from .table import Row, counted, share

import secrets_corpus  # isort: skip - `places` makes it importable
import test_secrets  # isort: skip

assert TESTS


class _Told(logging.Handler):
    """Everything that is logged, at any level."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


async def rows(every: int = 1, *, protected: bool = True) -> list[Row]:
    """Secrets that got anywhere; harmless texts that were changed. `protected=False` shows that the search works."""
    leaked, number = list[str](), 0
    surroundings = secrets_corpus.SURROUNDINGS[:: 1 + every // 10]
    for surrounding in surroundings:
        cases = [case for case in secrets_corpus.cases() if case.surrounding == surrounding][::every]
        number += len(cases)
        leaked += test_secrets.found_in(await _everything(cases, protected=protected), cases)
    harmless = secrets_corpus.benign()[::every]
    changed = [text for text in harmless if test_secrets.redact(text) != text]
    name = "secret in any stored byte, log line, event, vector input or prompt"
    return [
        counted(name, leaked, cases=f"{number} secrets, in {len(surroundings)} surroundings"),
        share("harmless text redacted", changed, of=len(harmless), what="texts", most=2.0),
    ]


async def _everything(cases: list[secrets_corpus.Case], *, protected: bool) -> str:
    """All that a bank that met these cases holds and gave away, as one text."""
    watching, handler, logger = test_secrets.Watching(), _Told(), logging.getLogger()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bank.db"
            told = await _met(watching, path, cases, protected=protected)
            return "\n".join([*watching.seen, *handler.lines, *told, test_secrets.everything_in(path)])
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


async def _met(
    watching: test_secrets.Watching, path: Path, cases: list[secrets_corpus.Case], *, protected: bool
) -> list[str]:
    async with await lessonbank.connect_async(
        path,
        scope="t",
        model=watching.model,
        embedder=watching,
        parts=lessonbank.Parts(hooks=[watching.hook]),
        evidence=lessonbank.Evidence(holdout=None),
        safety=lessonbank.Safety(redact=UNSET if protected else None),
    ) as bank:
        run = test_secrets.run_of(cases)
        await bank.judge(run)
        await bank.extract([Run(trajectory=run, verdict=Verdict(outcome="failure"))])
        learned = await bank.learn(run.model_copy(update={"id": "another"}), outcome="failure")
        lesson = Lesson(title=cases[0].text, content="\n".join(case.text for case in cases[:20]))
        await bank.consolidate(Experience(scope="t", task=cases[-1].text, lessons=(lesson,)))
        recall = await bank.retrieve("\n".join(case.text for case in cases))
        await bank.admin.export(path.with_name("bank.jsonl"))
        return [repr(learned), repr(recall), (await bank.runs.get("another")).trajectory.model_dump_json()]
