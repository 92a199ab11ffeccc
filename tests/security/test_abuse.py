"""Parts that fail, hang or never stop, and runs made to be too much: nothing is learned without a verdict, no cap is
passed, and it ends."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import Any

import pytest
from attacks import Case, cases, spelled

import lessonbank
from lessonbank import AsyncReasoningBank, Step, Trajectory, errors
from lessonbank.contracts.records import Action, Extraction, Learned, Lesson, Observation, Run, ToolCall, Verdict
from lessonbank.testing import ScriptedModel
from lessonbank.testing.settings import grouped

pytestmark = [pytest.mark.anyio, pytest.mark.full]


AT_FULL_SIZE = os.environ.get("HYPOTHESIS_PROFILE") == "search"
"""A hundred thousand steps and lines of twenty megabytes take a minute: they are tried in the search alone."""
FULL = {"steps": 100, "line": 100, "lines": 200}
"""How many times the size in the corpus that is."""
RUN = Trajectory(
    task="open the valve", answer="open", steps=(Step(action="turn the handle", observation="it is open"),)
)


def named(error: str) -> Exception:
    found = getattr(errors, error, None) or getattr(builtins, error)
    made: Exception = found("it does not work")
    return made


async def connected(**parts: Any) -> AsyncReasoningBank:
    parts = {"embedder": "lexical", "holdout": None, **parts}
    return await lessonbank.connect_async(parts.pop("where", ":memory:"), scope="t", **grouped(**parts))


async def minted(bank: AsyncReasoningBank) -> int:
    """How many lessons are kept, whether they may be shown or not."""
    return (await bank.admin.counts()).lessons


async def good_judge(run: Trajectory, /) -> Verdict:
    return Verdict(outcome="success", confidence=0.9)


async def good_extractor(attempts: Sequence[Run], /) -> Extraction:
    content = "Before the handle is turned, release the catch beneath it, because a spring holds it shut."
    return Extraction(lessons=(Lesson(title="Release the catch first", content=content),))


# --- a judge that does not judge -------------------------------------------------------------------------------------


async def test_no_reply_of_a_judge_that_is_no_verdict_mints_a_lesson() -> None:
    wrong: list[str] = []
    for case in cases("abuse", "judge_reply"):
        reply = spelled(case["reply"])
        roles = {"judge": ScriptedModel(lambda _, reply=reply: reply)}
        async with await connected(model=roles, extractor=good_extractor) as bank:
            learned = await bank.learn(RUN)
            pending = [run.id for run in await bank.runs.pending(limit=10_000)]
            if await minted(bank) or learned.lessons or learned.verdicts[0].outcome != "unknown":
                wrong.append(f"{case['id']}: {learned.verdicts}")
            if pending != [RUN.id] or not learned.notes:
                wrong.append(f"{case['id']}: it does not wait, or nothing is said")
    assert wrong == []


def broken_judge(case: Case) -> Any:
    async def judge(run: Trajectory, /) -> Any:
        if case["kind"] == "judge_raises":
            raise named(case["error"])
        return case["value"]

    return judge


async def test_a_judge_that_raises_or_gives_rubbish_mints_nothing_and_the_run_waits() -> None:
    wrong: list[str] = []
    for case in cases("abuse", "judge_raises", "judge_returns"):
        async with await connected(judge=broken_judge(case), extractor=good_extractor) as bank:
            if "raises" in case:  # a fault of the part itself, which `learn` shows
                with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is
                    await bank.learn(RUN)
            else:
                assert (await bank.learn(RUN)).verdicts[0].outcome == "unknown"
            if await minted(bank) or [run.id for run in await bank.runs.pending(limit=10_000)] != [RUN.id]:
                wrong.append(case["id"])
            learned = await bank.learn(RUN, outcome="success")
            if len(learned.lessons) != 1 or await bank.runs.pending(limit=10_000):
                wrong.append(f"{case['id']}: it cannot be learned later")
    assert wrong == []


# --- an extractor that does not stop ---------------------------------------------------------------------------------


def reply_of(case: Case, evidence: str) -> str:
    several = [case["lesson"].replace("@", evidence).replace("#", str(n)) for n in range(case["times"])]
    listed = ", ".join(several)
    shapes = {
        "json": f'{{"items": [{listed}]}}',
        "fence": f'```json\n{{"items": [{listed}]}}\n```',
        "open": f'{{"items": [{listed}, ',
        "lines": "\n".join(several),
    }
    return shapes.get(case["shape"], "".join(several))


@pytest.mark.full
@pytest.mark.parametrize(("runs", "most"), [(1, 3), (4, 5)])
async def test_an_extractor_that_does_not_stop_is_cut_at_its_cap(runs: int, most: int) -> None:
    several = [RUN.model_copy(update={"id": f"run-{n}"}) for n in range(runs)]
    wrong: list[str] = []
    for case in cases("abuse", "extractor_reply"):
        reply = reply_of(case, "step 1" if runs == 1 else "run 1, step 1")
        roles = {"judge": ScriptedModel([]), "extractor": ScriptedModel(lambda _, reply=reply: reply)}
        async with await connected(model=roles) as bank:
            learned = await bank.learn(several, outcome="success")
            if len(learned.lessons) > most or await minted(bank) != len(learned.lessons):
                wrong.append(f"{case['id']}: {len(learned.lessons)} lessons")
            if case.get("full") and len(learned.lessons) != most:
                wrong.append(f"{case['id']}: {len(learned.lessons)} lessons where {most} are allowed: {learned.notes}")
    assert wrong == []


def broken_extractor(case: Case) -> Any:
    async def extract(attempts: Sequence[Run], /) -> Extraction:
        raise named(case["error"])

    return extract


async def test_an_extractor_that_fails_mints_nothing_and_the_run_waits() -> None:
    wrong: list[str] = []
    for case in cases("abuse", "extractor_raises"):
        async with await connected(judge=good_judge, extractor=broken_extractor(case)) as bank:
            if "raises" in case:  # a part of the caller's own with a fault of its own: `learn` shows it
                with pytest.raises(type(named(case["error"]))):
                    await bank.learn(RUN)
            else:
                learned = await bank.learn(RUN)
                wrong += [] if learned.notes else [f"{case['id']}: nothing is said"]
            if await minted(bank) or [run.id for run in await bank.runs.pending(limit=10_000)] != [RUN.id]:
                wrong.append(case["id"])
    assert wrong == []


# --- runs that are too much ------------------------------------------------------------------------------------------


def too_much(case: Case) -> Any:
    size = case.get("size", 0) * (FULL[case["shape"]] if AT_FULL_SIZE and case["shape"] in FULL else 1)
    text = spelled(case.get("text", ""))
    match case["shape"]:
        case "steps":
            return Trajectory(
                task="t", steps=[Step(action=f"try {n}", observation="error: stuck") for n in range(size)]
            )
        case "line":
            return Trajectory(task="t", steps=[Step(action="read", observation="stuck " * (size // 6))])
        case "lines":
            return Trajectory(task="t", steps=[Step(action="read", observation="stuck\n" * (size // 6))])
        case "calls":
            calls = tuple(ToolCall(name="turn", arguments={"n": n}) for n in range(size))
            return Trajectory(task="t", steps=[Step(action=Action(calls=calls), observation="stuck")])
        case "arguments":
            call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "[" * size + "]" * size}}
            return [
                {"role": "user", "content": "t"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "error: stuck"},
            ]
        case "metadata":
            nested: Any = []
            for _ in range(size):
                nested = [nested]
            return Trajectory(task="t", metadata={"x": nested}, steps=[Step(action="read", observation="stuck")])
        case "task":
            return Trajectory(task=text, steps=[Step(action="read", observation="stuck")])
        case _:
            seen = Observation(text=text)
            return Trajectory(task="t", steps=[Step(thought=text, action=text, observation=seen)] if text else [])


@pytest.mark.full
async def test_a_run_that_is_too_much_is_learned_or_refused_in_one_sentence() -> None:
    wrong: list[str] = []
    for case in cases("abuse", "trajectory"):
        run = too_much(case)
        async with await connected() as bank:
            try:
                learned: Learned | None = await bank.learn(run, outcome="failure")
            except errors.LessonbankError as error:
                learned = None
                wrong += [] if len(str(error)) < 600 else [f"{case['id']}: {len(str(error))} characters of error"]
            if learned and len(learned.lessons) > 3:
                wrong.append(f"{case['id']}: {len(learned.lessons)} lessons")
            recall = await bank.retrieve("t")
            if len(recall.text) > 20_000:
                wrong.append(f"{case['id']}: {len(recall.text)} characters for the prompt")
            assert await bank.admin.verify() == ()
    assert wrong == []
