"""No secret of the corpus gets past the entrance of a bank: not to a model, an embedder, a hook, a log or the disk."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import secrets_corpus as corpus
from bank_file import everything_in

import lessonbank
from lessonbank.contracts.records import (
    Action,
    Experience,
    Lesson,
    Observation,
    Run,
    Step,
    ToolCall,
    Trajectory,
    Verdict,
)
from lessonbank.guard.redact import redact
from lessonbank.testing import HashingEmbedder, ScriptedModel

CASES = corpus.cases()
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
MARK = re.compile(r"(\[([a-z -]+) \d+\])")
pytestmark = pytest.mark.anyio


def of(surrounding: str) -> list[corpus.Case]:
    return [case for case in CASES if case.surrounding == surrounding]


def found_in(text: str, cases: Sequence[corpus.Case]) -> list[str]:
    views = "\n".join(corpus.readings(text))
    return [case.id for case in cases if any(part in views for part in telling(case.core))]


def telling(core: str) -> list[str]:
    """Its halves; where one is fewer than eight digits, which stand by chance in the ids and times of a bank, eight."""
    parts = [part for part in corpus.halves(core) if len(part) >= 8 or not part.isdecimal()]
    return parts or [core[i : i + 8] for i in range(len(core) - 7)]


# --- the corpus by itself --------------------------------------------------------------------------------------------


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(CASES) >= 375
    assert len(corpus.benign()) >= 150
    assert len({case.id for case in CASES}) == len(CASES)


def test_the_corpus_would_show_a_leak() -> None:
    assert [case.id for case in CASES if not corpus.leaks(case.text, case.core)] == []
    assert all(found_in("\n".join(c.text for c in of(s)), of(s)) for s in corpus.SURROUNDINGS)


@pytest.mark.full
@pytest.mark.parametrize("surrounding", corpus.SURROUNDINGS)
def test_nothing_of_a_secret_can_be_read_whatever_it_stands_in(surrounding: str) -> None:
    assert [c.id for c in of(surrounding) if corpus.leaks(redact(c.text), c.core)] == []


def test_harmless_text_stays_as_it_is() -> None:
    texts = corpus.benign()
    changed = [text for text in texts if redact(text) != text]
    assert len(changed) <= 0.02 * len(texts), changed


@pytest.mark.parametrize("name", ["tau_bench_airline", "hotpotqa_react"])
def test_recorded_runs_lose_nothing_but_addresses_and_numbers_of_people(name: str) -> None:
    path = SHARED / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip("the recorded runs are not on this machine")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        runs = [json.loads(line) for line in islice(lines, 15)]
    texts = [m["content"] for run in runs for m in run["messages"] if isinstance(m.get("content"), str)]
    marks = {mark for text in texts for mark in MARK.findall(redact(text)) if mark[0] not in text}
    assert {kind for _, kind in marks} <= {"e-mail", "phone"}


# --- through a bank --------------------------------------------------------------------------------------------------


class Watching:
    """Everything that a bank's parts were given, as text."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.model = ScriptedModel(self._answer)
        self.inner = HashingEmbedder()
        self.space = self.inner.space

    def _answer(self, messages: Sequence[Any]) -> str:
        """A lesson that repeats what was read, as a careless model writes it."""
        self.seen.extend(message.content for message in messages)
        echo = messages[-1].content[-2000:]
        return json.dumps({"items": [{"evidence": ["step 1"], "title": "Look first", "content": echo}]})

    async def embed(self, texts: Sequence[str], /, **more: Any) -> Any:
        self.seen.extend(texts)
        return await self.inner.embed(texts, **more)

    def hook(self, event: object) -> None:
        self.seen.append(repr(event))


def run_of(cases: Sequence[corpus.Case]) -> Trajectory:
    """A run that has the cases in turn in each of its fields."""
    texts = [case.text for case in cases]
    part = max(1, len(texts) // 12)
    some = [texts[n * part : (n + 1) * part] for n in range(11)] + [texts[11 * part :]]
    data: list[Any] = [{"note": text, "list": [text]} for text in some[4]]
    calls = tuple(ToolCall(name="bash", arguments={"command": text}) for text in some[2])
    raw = tuple(ToolCall(name="bash", arguments=text) for text in some[3])
    return Trajectory(
        task="\n\n".join(some[0]) or "a task",
        instructions="\n\n".join(some[1]),
        steps=(
            Step(thought="\n\n".join(some[5]), action=Action(text="\n\n".join(some[6]), calls=(*calls, *raw))),
            *(Step(action="look", observation=Observation(text=text, name=text[:200])) for text in some[7]),
        ),
        answer="\n\n".join(some[8]),
        error="\n\n".join(some[9]),
        metadata={"data": data, **dict.fromkeys(some[10], 1)},
        original=tuple({"role": "user", "content": text} for text in some[11]),
    )


@pytest.mark.full
@pytest.mark.parametrize("surrounding", corpus.SURROUNDINGS[:: 1 if "LESSONBANK_SOAK" in os.environ else 4])
async def test_no_secret_reaches_a_model_an_embedder_a_hook_a_log_or_the_disk(
    surrounding: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watching, path, cases = Watching(), tmp_path / "bank.db", of(surrounding)
    caplog.set_level(logging.DEBUG)
    async with await lessonbank.connect_async(
        path,
        scope="t",
        model=watching.model,
        embedder=watching,
        parts=lessonbank.Parts(hooks=[watching.hook]),
        evidence=lessonbank.Evidence(holdout=None),
    ) as bank:
        run = run_of(cases)
        await bank.judge(run)
        await bank.extract([Run(trajectory=run, verdict=Verdict(outcome="failure"))])
        learned = await bank.learn(run.model_copy(update={"id": "another"}), outcome="failure")
        lesson = Lesson(title=cases[0].text, content="\n".join(c.text for c in cases[:20]))
        await bank.consolidate(Experience(scope="t", task=cases[1].text, lessons=(lesson,)))
        recall = await bank.retrieve("\n".join(case.text for case in cases))
        await bank.admin.export(tmp_path / "bank.jsonl")
        kept = (await bank.runs.get("another")).trajectory.model_dump_json()
        assert watching.model.calls
    told = "\n".join([*watching.seen, caplog.text, repr(learned), repr(recall), kept, everything_in(path)])
    assert found_in(told, cases) == []


async def test_the_search_for_leaks_finds_what_a_bank_without_a_redactor_keeps(tmp_path: Path) -> None:
    watching, path, cases = Watching(), tmp_path / "bank.db", of("prose")
    async with await lessonbank.connect_async(
        path,
        scope="t",
        model=watching.model,
        embedder=watching,
        parts=lessonbank.Parts(hooks=[watching.hook]),
        safety=lessonbank.Safety(redact=None),
    ) as bank:
        await bank.learn(run_of(cases), outcome="failure")
    assert len(found_in(everything_in(path), cases)) == len(cases)
    assert len(found_in("\n".join(watching.seen), cases)) == len(cases)


async def test_a_crashed_attempt_leaves_no_secret(tmp_path: Path) -> None:
    case = next(c for c in CASES if c.id == "github token / traceback")
    path = tmp_path / "bank.db"
    async with await lessonbank.connect_async(path, scope="t", embedder="lexical") as bank:
        with pytest.raises(ValueError, match="cannot use"):
            async with bank.attempt("call the service") as attempt:
                attempt.step("call", case.text)
                raise ValueError(case.text)
        assert (await bank.admin.counts()).trajectories == 1
    assert found_in(everything_in(path), [case]) == []
