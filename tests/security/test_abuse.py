"""Parts that fail, hang or never stop, and runs made to be too much: nothing is learned without a verdict, no cap is
passed, and it ends."""

from __future__ import annotations

import builtins
import os
import sqlite3
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from attacks import Case, cases, spelled

import lessonbank
from lessonbank import AsyncReasoningBank, Step, Trajectory, errors
from lessonbank.contracts.records import Action, Extraction, Learned, Lesson, Observation, Run, ToolCall, Verdict
from lessonbank.learning.judging import LLMJudge
from lessonbank.providers.models.wrappers import TimeLimited
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import HashingEmbedder, ScriptedModel
from lessonbank.testing.settings import grouped
from lessonbank.testing.store_samples import added, experience

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


async def never(*_: Any) -> Any:
    await anyio.sleep_forever()


async def given_up(learning: Callable[[], Awaitable[object]], asked: anyio.Event) -> None:
    """Begin to learn, and cancel it once its judge hangs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(learning)
        await asked.wait()
        tasks.cancel_scope.cancel()


async def test_a_judge_that_hangs_can_be_given_up_and_nothing_is_lost_or_minted() -> None:
    by_model = LLMJudge(TimeLimited(ScriptedModel(never), seconds=0.02))
    for case in cases("abuse", "judge_hangs"):
        hangs, asked = case["id"].endswith("for-ever"), anyio.Event()

        async def judge(*_: Any, asked: anyio.Event = asked) -> Any:
            asked.set()
            await never()

        async with await connected(judge=judge if hangs else by_model, extractor=good_extractor) as bank:
            await (given_up(partial(bank.learn, RUN), asked) if hangs else bank.learn(RUN))
            assert await minted(bank) == 0, case["id"]
            assert [run.id for run in await bank.runs.pending(limit=10_000)] == [RUN.id], case["id"]


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


# --- an agent at work ------------------------------------------------------------------------------------------------


class FailingEmbedder:
    def __init__(self, error: Exception) -> None:
        self._sound, self._error = HashingEmbedder(), error
        self.broken = False
        self.space = self._sound.space

    async def embed(self, texts: Sequence[str], /, *, role: Any) -> Any:
        if self.broken:
            raise self._error
        return np.asarray(await self._sound.embed(texts, role=role))


@contextmanager
def trouble(what: str, path: Path) -> Generator[None]:
    """Something happens to the file of a bank that is open."""
    resource = pytest.importorskip("resource", reason="this system cannot limit a process")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    other = sqlite3.connect(path, isolation_level=None)
    try:
        if what == "locked":
            other.execute("BEGIN EXCLUSIVE")
        elif what == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        elif what == "deleted":
            for file in path.parent.glob(f"{path.name}*"):
                file.unlink()
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        other.close()


async def agent_at_work(bank: AsyncReasoningBank) -> str:
    """What an agent that remembers by a `with` block comes to; its own work always succeeds."""
    done = "not even begun"
    try:
        async with bank.attempt("open the valve") as attempt:
            done = "begun"
            attempt.step("turn the handle", "it is open")
            done = "done"
    except Exception as error:  # noqa: BLE001 - what an agent would see
        return f"{done}, then {type(error).__name__}"
    return done


async def at_work_with(case: Case, path: Path) -> str:
    match case["kind"]:
        case "judge_raises" | "judge_returns":
            bank = await connected(judge=broken_judge(case), extractor=good_extractor)
        case "extractor_raises":
            bank = await connected(judge=good_judge, extractor=broken_extractor(case))
        case "embedder_raises":
            embedder = FailingEmbedder(named(case["error"]))
            bank = await connected(embedder=embedder, judge=good_judge, extractor=good_extractor)
            await bank.learn(RUN)
            embedder.broken = True
        case _:
            bank = await connected(where=path, judge=good_judge, extractor=good_extractor)
            async with bank:
                if case["id"].endswith("closed"):
                    await bank.store.close()
                with trouble(case["id"].removeprefix("store-"), path):
                    return await agent_at_work(bank)
    async with bank:
        return await agent_at_work(bank)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Banks in files give up on a lock at once, and not after half a minute."""
    monkeypatch.setattr(SqliteStore, "open", staticmethod(partial(SqliteStore.open, busy_timeout=0.05)))


@pytest.mark.usefixtures("impatient")
async def test_an_agents_own_work_is_not_broken_by_its_memory(quick: Path) -> None:
    found: dict[str, str] = {}
    some = cases("abuse", "judge_raises", "judge_returns", "extractor_raises", "embedder_raises", "store")
    for case in some:
        found[case["id"]] = await at_work_with(case, quick / f"{case['id']}.db")
    broken = {id: what for id, what in found.items() if what != "done"}
    assert broken == {}


async def test_a_crash_of_the_agent_is_never_hidden_by_a_memory_that_fails_too(quick: Path) -> None:
    for case in cases("abuse", "judge_raises", "judge_returns", "extractor_raises"):
        parts = (
            {"judge": good_judge, "extractor": broken_extractor(case)}
            if case["kind"] == "extractor_raises"
            else {"judge": broken_judge(case), "extractor": good_extractor}
        )
        async with await connected(**parts) as bank:
            with pytest.raises(ZeroDivisionError):
                async with bank.attempt("open the valve") as attempt:
                    attempt.step("turn the handle", "it is stuck")
                    1 / 0  # noqa: B018


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


async def test_a_bank_that_was_locked_for_a_while_loses_nothing(quick: Path) -> None:
    path = quick / "bank.db"
    store = await SqliteStore.open(path, busy_timeout=0.05)
    await added(store, experience())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.StoreUnavailable):
        await store.save_runs([RUN], scope="t")
    other.close()
    assert await store.save_runs([RUN], scope="t") == [RUN.id]
    assert (await store.verify()).problems == []
    await store.close()
