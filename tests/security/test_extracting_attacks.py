"""A run, and a model that fell for it, decide what a lesson says and nothing else: not how many, whose, or trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from structural_checks import TOKENS, bad_characters, fenced, live_in, roles_in, tokens_in

import lessonbank
from lessonbank.contracts.ports import Message
from lessonbank.contracts.records import (
    Action,
    Extraction,
    Lesson,
    Observation,
    Outcome,
    Run,
    Step,
    ToolCall,
    Trajectory,
    Verdict,
)
from lessonbank.errors import ExtractionError
from lessonbank.guard.sanitise import canonical
from lessonbank.learning.extraction import LLMExtractor
from lessonbank.testing import ScriptedModel
from lessonbank.text.prompts import load

pytestmark = [pytest.mark.anyio, pytest.mark.full]

FILE = Path(__file__).parent / "corpus" / "extracting.jsonl"
PROMPTS = {role: load(f"general/{role}") for role in ("extract_success", "extract_failure", "contrast")}
ONE_RUN, SEVERAL_RUNS = 3, 5
LIMITS = {"title": 200, "description": 600, "content": 4_000}


@dataclass(frozen=True, slots=True)
class Case:
    """An attack: what stands in a part of the run, what the model replies, and how many lessons may come of it."""

    id: str
    attack: str
    part: str
    text: str
    verdict: Outcome
    runs: int
    kept: int
    reply: str
    lessons: tuple[Mapping[str, Any], ...]
    """What the reply has as lessons, where it was put together from such."""

    @property
    def mark(self) -> str:
        """A word that is in the case and nowhere else."""
        return f"quill{self.id}"

    @property
    def most(self) -> int:
        """Lessons that a model was asked for."""
        return ONE_RUN if self.runs == 1 else SEVERAL_RUNS


def read() -> list[Case]:
    return [_case(row) for row in map(json.loads, FILE.read_text(encoding="ascii").splitlines())]


def _case(row: dict[str, Any]) -> Case:
    def filled(text: str) -> str:
        return text.replace("{mark}", f"quill{row['id']}")

    lessons = [
        {k: v.replace("{n}", str(n)) if isinstance(v, str) else v for k, v in lesson.items()}
        for n in range(row.get("times", 1))
        for lesson in row.get("lessons", [])
    ]
    reply = "".join(p * n for p, n in row["reply"]) if "reply" in row else written(row["form"], lessons, row)
    keep = {name: row[name] for name in ("id", "attack", "part", "verdict", "runs", "kept")}
    return Case(**keep, text=filled(row["text"]), reply=filled(reply), lessons=tuple(lessons))


def written(form: str, lessons: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """A reply with these lessons, in one of the forms that models use."""
    if form == "lines":
        return "\n".join(map(json.dumps, lessons))
    if form == "groups":
        return json.dumps({f"group {n}": {"lessons": [lesson]} for n, lesson in enumerate(lessons)})
    if form == "markdown":
        return "\n\n".join(
            f"# Memory Lesson {n}\n## Title {lesson['title']}\n## Description {lesson['description']}\n"
            f"## Content {lesson['content']}\n## Evidence {lesson['evidence'][0]}"
            for n, lesson in enumerate(lessons, 1)
        )
    return json.dumps(row.get("around", {}) | {"items": lessons})


CASES = read()
# --- runs, and the prompt about them ---------------------------------------------------------------------------------


def run_of(part: str, text: str) -> Trajectory:
    """A run of three steps with `text` in one part of it, or in all."""

    def at(name: str) -> str:
        return text if part in (name, "everywhere") else ""

    call = ToolCall(name=f"look_up{at('tool name')}", arguments={"order": f"A17{at('argument')}"})
    seen = Observation(text=f"two parcels{at('observation')}", source="tool", name=f"look_up{at('observation name')}")
    return Trajectory(
        task=f"Help with the order.{at('task')}",
        instructions=f"You work at a desk.{at('instructions')}",
        steps=(
            Step(observation=Observation(text=f"Where is it?{at('user')}", source="user")),
            Step(
                thought=f"Look first.{at('thought')}",
                action=Action(text=f"One moment.{at('action')}", calls=(call,)),
                observations=(seen,),
            ),
            Step(action="tell them", observation=f"told{at('last observation')}"),
        ),
        answer=f"One parcel is late.{at('answer')}",
        error=at("error") or None,
        metadata={"desk": f"north{at('metadata')}"},
    )


def attempts_of(case: Case, text: str) -> list[Run]:
    reason = f"Step 2 decides.{text if case.part in ('reason', 'everywhere') else ''}"
    verdict = Verdict(outcome=case.verdict, confidence=0.8, reason=reason)
    return [Run(trajectory=run_of(case.part, text), verdict=verdict) for _ in range(case.runs)]


def around(prompt: str) -> str:
    """A prompt without what stands in its fences: the agent's instructions first, then others that have one code."""
    (agent,) = re.findall(r"^<<<agent ([0-9a-f]{8})>>>$", prompt, re.MULTILINE)
    told, lines = fenced(prompt.split("\n"), "agent", agent)
    (code,) = re.findall(r"^The code of the marker lines below: (\w{8})$", "\n".join(lines).partition("<<<")[0], re.M)
    assert code not in "\n".join(told)
    opening = [n for n, line in enumerate(lines) if re.fullmatch(rf"<<<(?!end )[\w ()]+ {code}>>>", line)]
    assert opening
    kept, end = "", 0
    for start in opening:
        stop = lines.index(lines[start].replace("<<<", "<<<end "), start)
        assert start >= end
        assert code not in "\n".join(lines[start + 1 : stop])
        kept += "\n".join((*lines[end : start + 1], "(fenced)", ""))
        end = stop
    return (kept + "\n".join(lines[end:])).replace(code, "CODE")


async def drawn(case: Case, text: str, reply: str) -> tuple[Extraction | None, list[Run], list[str]]:
    """What comes of the case, of which attempts, and what was asked."""
    model = ScriptedModel(lambda _: reply, name="asked")
    success, failure, contrast = PROMPTS.values()
    attempts = attempts_of(case, text)
    try:
        extraction = await LLMExtractor(model, success=success, failure=failure, contrast=contrast)(attempts)
    except ExtractionError:
        extraction = None
    return extraction, attempts, [call.prompt for call in model.calls]


# --- what must hold for every case -----------------------------------------------------------------------------------


def assert_code_decides(lesson: Lesson, case: Case, ids: Sequence[str], since: datetime) -> None:
    """Everything of `lesson` but its words is what the code knows."""
    source = lesson.provenance
    assert (lesson.state, lesson.retired, lesson.risk) == ("probation", False, None), case.id
    assert re.fullmatch("[0-9a-f]{32}", lesson.id), case.id
    assert lesson.id not in case.reply, case.id
    assert since <= lesson.created_at <= datetime.now(UTC), case.id
    assert (source.writer, source.method, source.model) == ("learn", "llm", "asked"), case.id
    assert source.trajectory_ids == tuple(ids), case.id
    assert (source.verdict, source.verdict_source) == (case.verdict, "judge"), case.id
    assert {ref.digest for ref in source.prompts} <= {prompt.digest for prompt in PROMPTS.values()}, case.id
    real = r"step [123]" if case.runs == 1 else rf"run [1-{case.runs}], step [123]"
    assert source.evidence, case.id
    assert all(re.fullmatch(real, step) for step in source.evidence), case.id
    if case.runs == 1:
        assert lesson.kind == ("strategy" if case.verdict == "success" else "guardrail"), case.id


def assert_inert(lesson: Lesson, case: Case) -> None:
    for name, most in LIMITS.items():
        text = getattr(lesson, name)
        assert len(text) <= most, case.id
        assert not bad_characters(text), case.id
        assert not roles_in(text), case.id
        assert not tokens_in(canonical(text), TOKENS), case.id


async def assert_contained(case: Case) -> None:
    since = datetime.now(UTC)
    extraction, attempts, asked = await drawn(case, case.text, case.reply)
    _, _, plainly = await drawn(case, " plain", case.reply)
    assert [around(prompt) for prompt in asked] == [around(prompt) for prompt in plainly], case.id
    assert all(case.mark not in around(prompt) for prompt in asked), case.id
    assert all((case.mark in prompt) == (case.part != "metadata") for prompt in asked), case.id
    lessons = extraction.lessons if extraction else ()
    assert len(lessons) <= case.most, case.id
    assert len(lessons) == case.kept, case.id
    assert len({lesson.id for lesson in lessons}) == len(lessons), case.id
    for lesson in lessons:
        assert_code_decides(lesson, case, [attempt.trajectory.id for attempt in attempts], since)
        assert_inert(lesson, case)


# --- the corpus, class by class --------------------------------------------------------------------------------------


def test_the_corpus_is_large_and_has_a_test_for_every_class() -> None:
    assert len(CASES) >= 32
    assert len({case.id for case in CASES}) == len(CASES)
    assert {case.attack for case in CASES} == {*CONTAINED, "not-judged"}
    assert {case.verdict for case in CASES} == {"success", "failure", "unknown"}
    assert sum(case.kept > 0 for case in CASES) >= 20


CONTAINED = {
    "too-many": "fifty lessons are three of one run and five of several",
    "foreign-fields": "fields that nobody asked for are not read",
    "no-such-step": "a step that the run does not have is no evidence",
    "quoted-run": "lessons quoted from a run need evidence like any other",
    "hostile-wording": "the words of a lesson come out inert",
    "huge": "a reply of any size gives lessons of bounded size",
    "forged-outcome": "a run does not decide what kind of lesson it gave",
}


@pytest.mark.parametrize("attack", CONTAINED)
async def test_a_run_and_a_reply_decide_nothing_but_the_words_of_a_lesson(attack: str) -> None:
    cases = [case for case in CASES if case.attack == attack]
    assert cases
    for case in cases:
        await assert_contained(case)


async def test_nothing_is_drawn_from_a_run_without_a_verdict() -> None:
    for case in (case for case in CASES if case.attack == "not-judged"):
        extraction, _, asked = await drawn(case, case.text, case.reply)
        assert extraction is not None, case.id
        assert (extraction.lessons, asked) == ((), []), case.id


# --- through a bank --------------------------------------------------------------------------------------------------


def judging(case: Case, messages: Sequence[Message]) -> str:
    """A judge whose reason repeats the attack, and which comes to no verdict where the case has none."""
    if case.verdict == "unknown":
        return f'{{"outcome": "success", "confidence": 1.0, "reason": {json.dumps(case.text)}}}'
    (code,) = re.findall(r'^\{"check": "([0-9a-f]{8})", "reason"', messages[-1].content, re.MULTILINE)
    return json.dumps({"check": code, "reason": case.text, "outcome": case.verdict, "confidence": 0.9})


async def test_a_bank_keeps_every_lesson_in_its_own_scope_and_on_probation() -> None:
    kept = 0
    for_case: dict[str, Case] = {}
    models = {
        "judge": ScriptedModel(lambda messages: judging(for_case["now"], messages)),
        "extractor": ScriptedModel(lambda _: for_case["now"].reply, name="asked"),
    }
    async with await lessonbank.connect_async(
        ":memory:", scope="desk", model=models, embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as bank:
        for case in CASES:
            for_case["now"] = case
            before = {lesson.id for lesson in (await bank.lessons.list(retired=True, limit=10_000))[::-1]}
            learned = await bank.learn([attempt.trajectory for attempt in attempts_of(case, case.text)])
            new = [
                lesson
                for lesson in (await bank.lessons.list(retired=True, limit=10_000))[::-1]
                if lesson.id not in before
            ]
            assert {v.outcome for v in learned.verdicts} == {case.verdict}, case.id
            assert len(new) == len(learned.lessons) <= case.kept, case.id
            for lesson in new:
                assert lesson.state in ("probation", "quarantined"), case.id
                assert not lesson.retired, case.id
                assert (lesson.provenance.writer, lesson.provenance.verdict) == ("learn", case.verdict), case.id
                assert canonical(lesson.content) == lesson.content, case.id
                assert not live_in(lesson.content), case.id
                assert_inert(lesson, case)
            kept += len(new)
        assert await bank.admin.scopes() == ("desk",)
        assert (await bank.admin.counts()).retired == 0
    assert kept >= 12  # what several cases teach in the same words is one lesson


async def test_no_case_of_the_corpus_gets_a_lesson_without_a_verdict() -> None:
    asked: list[Sequence[Run]] = []

    async def eager(attempts: Sequence[Run], /) -> Extraction:
        asked.append(attempts)
        return Extraction(lessons=(Lesson(title="Look first", content="`look_up` the parcel before a refund."),))

    unsure = ScriptedModel(lambda _: "I cannot tell.")
    async with await lessonbank.connect_async(
        ":memory:",
        scope="desk",
        model=unsure,
        embedder="lexical",
        parts=lessonbank.Parts(extractor=eager),
        evidence=lessonbank.Evidence(holdout=None),
    ) as bank:
        runs = 0
        for case in (case for case in CASES if case.part not in ("error", "everywhere")):
            learned = await bank.learn([attempt.trajectory for attempt in attempts_of(case, case.text)])
            assert ({v.outcome for v in learned.verdicts}, learned.lessons) == ({"unknown"}, ()), case.id
            runs += case.runs
        counts = await bank.admin.counts()
    assert (counts.lessons, counts.pending) == (0, runs)
    assert asked == []


async def test_a_run_without_a_verdict_is_not_read_beside_one_that_has_one() -> None:
    success, failure, contrast = PROMPTS.values()
    for case in (case for case in CASES if case.attack == "not-judged"):
        model = ScriptedModel(lambda _, c=case: c.reply, name="asked")
        (judged, *_), (unjudged, *_) = attempts_of(CASES[0], " plain"), attempts_of(case, case.text)
        draw = LLMExtractor(model, success=success, failure=failure, contrast=contrast)
        extraction = await draw([judged, unjudged])
        assert case.mark not in model.calls[0].prompt, case.id
        assert {lesson.provenance.trajectory_ids for lesson in extraction.lessons} <= {(judged.trajectory.id,)}, case.id


async def test_what_is_drawn_without_a_model_carries_the_words_of_a_run_inert() -> None:
    outcomes: tuple[Outcome, ...] = ("success", "failure")
    drawn_from = 0
    async with await lessonbank.connect_async(
        ":memory:", scope="desk", embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as bank:
        for case, outcome in zip(CASES[::2], cycle(outcomes)):
            moves = (("open", "a list"), (f"pay {case.text}", f"Error: {case.text}"), (case.text, f"paid {case.text}"))
            steps = tuple(
                Step(action=Action(calls=(ToolCall(name=name, arguments=name),)), observation=seen)
                for name, seen in (*moves, ("close", f"closed {case.text}"))
            )
            learned = await bank.learn(Trajectory(task="Pay the parcel.", steps=steps), outcome=outcome)
            assert len(learned.lessons) <= ONE_RUN, case.id
            for lesson in learned.lessons:
                assert lesson.state in ("probation", "quarantined"), case.id
                assert (lesson.provenance.method, lesson.provenance.verdict) == ("extractive", outcome), case.id
                assert_inert(lesson, case)
                assert not live_in(lesson.content), case.id
            drawn_from += any(case.mark in lesson.text for lesson in learned.lessons)
    assert drawn_from >= 8


@pytest.mark.parametrize(
    "form", ["{quote}, which I leave out.\n{list}", "{list}\nLeft out: {quote}"], ids=["before", "after"]
)
async def test_a_lesson_quoted_beside_an_empty_list_is_not_drawn(form: str) -> None:
    lesson = {"evidence": ["step 2"], "title": "Skip the ledger", "content": "Refund at once, `look_up` is wrong."}
    quote = json.dumps(lesson)
    reply = form.replace("{quote}", quote).replace("{list}", '{"items": []}')
    extraction, _, _ = await drawn(CASES[0], quote, reply)
    assert extraction is None or extraction.lessons == ()
