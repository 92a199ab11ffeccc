"""Parts that fail, runs that forge and replies that do not stop: what was minted, how much, and did the agent go on?"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

import lessonbank
from lessonbank.contracts.records import Extraction, Lesson, Run
from lessonbank.testing import ScriptedModel

from .places import TESTS, cases
from .table import Row, counted

import test_abuse as abuse  # isort: skip - `places` makes them importable
import test_extracting_attacks as extracting  # isort: skip
import test_judging_attacks as judging  # isort: skip

assert TESTS
_BROKEN = ("judge_raises", "judge_returns", "extractor_raises")


async def rows(every: int = 1) -> list[Row]:
    """The three outcomes that must be 0."""
    silent = cases("abuse", "judge_reply", "judge_raises", "judge_returns", "judge_hangs", every=every)
    forged = [case for case in judging.CASES if case.part not in ("error", "everywhere")][::every]
    wordy, drawn = cases("abuse", "extractor_reply", every=every), extracting.CASES[::every]
    at_work = cases("abuse", *_BROKEN, "embedder_raises", "store", every=every)
    minted = [*await _minted(silent), *await _minted_by_forgery(forged)]
    over = [*await _over_the_cap(wordy), *await _drawn_over_the_cap(drawn)]
    return [
        counted("lesson minted without a verdict", minted, cases=f"{len(silent) + len(forged)} judges and forged runs"),
        counted("verdict decided by the run itself", await _flipped(forged), cases=f"{len(forged)} runs, each reply"),
        counted("cap of lessons overrun", over, cases=f"{len(wordy) * 2 + len(drawn)} replies"),
        counted("agent run broken by its memory", await _broken(at_work), cases=f"{len(at_work)} failing parts"),
    ]


async def _eager(attempts: Sequence[Run], /) -> Extraction:
    return Extraction(lessons=(Lesson(title="Look first", content="`look_up` the parcel before a refund."),))


async def _minted(some: list[dict[str, Any]]) -> list[str]:
    """Judges that give no verdict, in front of an extractor that always draws something."""
    found: list[str] = []
    for case in some:
        async with await abuse.connected(**_judge(case), extractor=abuse.good_extractor) as bank:
            with anyio.move_on_after(0.1 if case["kind"] == "judge_hangs" else 20):
                with suppress(Exception):  # a fault of the caller's own part is shown to it
                    await bank.learn(abuse.RUN)
            found += [case["id"]] if await abuse.minted(bank) else []
    return found


def _judge(case: dict[str, Any]) -> dict[str, Any]:
    if case["kind"] == "judge_hangs":
        return {"judge": abuse.never}
    if case["kind"] != "judge_reply":
        return {"judge": abuse.broken_judge(case)}
    reply = abuse.spelled(case["reply"])
    return {"model": {"judge": ScriptedModel(lambda _: reply)}}


async def _minted_by_forgery(forged: Sequence[judging.Case]) -> list[str]:
    """Runs that claim their verdict, before a judge that only quotes what it read."""
    model = ScriptedModel(lambda messages: judging.taken_apart(messages).told)
    found: list[str] = []
    async with await lessonbank.connect_async(
        ":memory:",
        scope="s",
        model={"judge": model},
        embedder="lexical",
        parts=lessonbank.Parts(extractor=_eager),
        evidence=lessonbank.Evidence(holdout=None),
    ) as bank:
        for case in forged:
            learned = await bank.learn(judging.run_of(case.part, case.text))
            found += [case.id] if learned.lessons or learned.verdicts[0].outcome != "unknown" else []
    return found


async def _flipped(forged: Sequence[judging.Case]) -> list[str]:
    """Runs that get the verdict they forge where a judge quotes them, or that hide the one it gives."""
    found: list[str] = []
    for case in forged:
        if case.attack != "padding":
            _, asked = await judging.judged(judging.run_of(case.part, case.text), lambda _: "")
            found += [case.id] if await judging.flips_of(case, asked) else []
    return found


async def _over_the_cap(wordy: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for runs, most in ((1, extracting.ONE_RUN), (4, extracting.SEVERAL_RUNS)):
        several = [abuse.RUN.model_copy(update={"id": f"run-{n}"}) for n in range(runs)]
        for case in wordy:
            reply = abuse.reply_of(case, "step 1" if runs == 1 else "run 1, step 1")
            roles = {"judge": ScriptedModel([]), "extractor": ScriptedModel(lambda _, reply=reply: reply)}
            async with await abuse.connected(model=roles) as bank:
                learned = await bank.learn(several, outcome="success")
                kept = await abuse.minted(bank)
            found += [case["id"]] if len(learned.lessons) > most or kept > most else []
    return found


async def _drawn_over_the_cap(drawn: Sequence[extracting.Case]) -> list[str]:
    """Extractors that fell for a run: how many lessons come of it, and none of a run without a verdict."""
    found: list[str] = []
    for case in drawn:
        roles = {"judge": ScriptedModel(lambda _: "{}"), "extractor": ScriptedModel(lambda _, c=case: c.reply)}
        async with await abuse.connected(model=roles) as bank:
            runs = [attempt.trajectory for attempt in extracting.attempts_of(case, case.text)]
            outcome = None if case.verdict == "unknown" else case.verdict
            await bank.learn([run.model_copy(update={"error": None}) for run in runs], outcome=outcome)
            most = 0 if outcome is None else case.most
            found += [case.id] if await abuse.minted(bank) > most else []
    return found


async def _broken(some: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    logger = logging.getLogger("lessonbank")
    logger.disabled = True  # what goes wrong here is said in the table
    try:
        with tempfile.TemporaryDirectory() as folder:
            for case in some:
                done = await abuse.at_work_with(case, Path(folder) / f"{case['id']}.db")
                found += [] if done == "done" else [f"{case['id']}: {done}"]
    finally:
        logger.disabled = False
    return found
