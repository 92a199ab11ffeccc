"""No lesson repeats what belongs to one customer or case, whoever wrote the lesson."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

import anyio
import pytest
from planted_runs import Case, cases

import lessonbank
from lessonbank.contracts.records import (
    Action,
    Extraction,
    Json,
    Lesson,
    Observation,
    Provenance,
    Run,
    Step,
    ToolCall,
    Trajectory,
)
from lessonbank.guard.gate import LessonGate
from lessonbank.learning.extraction import ExtractiveExtractor

pytestmark = pytest.mark.full

COUNT = 280


def flat(text: str) -> str:
    """Small letters without accents and signs, so that no way to write a value hides it."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.findall(r"\w+", bare.casefold().replace("_", " ")))


def telling(value: str) -> Iterator[str]:
    """A value, and each part of it that names somebody by itself."""
    yield flat(value)
    yield from (part for part in flat(value).split() if part.isdigit() and len(part) > 3)
    if not re.search(r"[\d@]", value):
        yield from (part for part in flat(value).split() if len(part) > 3 and part not in ("page", "grace", "young"))


def leaked(case: Case, lessons: tuple[Lesson, ...]) -> list[str]:
    texts = [f" {flat(text)} " for lesson in lessons for text in (lesson.title, lesson.description, lesson.content)]
    parts = {part for value in case.planted for part in telling(value)}
    dense = {part for part in parts if not part.isascii()}
    return sorted(
        part for part in parts if any(f" {part} " in text or (part in dense and part in text) for text in texts)
    )


@cache
def corpus() -> tuple[Case, ...]:
    return tuple(cases(COUNT))


@cache
def extracted(number: int) -> Extraction:
    return anyio.run(ExtractiveExtractor(), corpus()[number].attempts)


def test_no_planted_value_stands_in_an_extractive_lesson() -> None:
    found = {n: leaked(corpus()[n], extracted(n).lessons) for n in range(len(corpus()))}
    told = {(n, corpus()[n].kind): values for n, values in found.items() if values}
    assert len(corpus()) >= 200
    assert sum(map(len, told.values())) == 0, told


@pytest.mark.full
def test_lessons_are_still_drawn_and_name_tools_and_fields() -> None:
    drawn = [(case, told) for n, case in enumerate(corpus()) if (told := extracted(n).lessons)]
    assert len(drawn) >= 0.9 * COUNT
    for names in ("tools", "fields"):
        naming = [c for c, lessons in drawn if any(n in i.content for n in getattr(c, names) for i in lessons)]
        wanted = [c for c, _ in drawn if getattr(c, names)]
        assert len(naming) >= 0.95 * len(wanted), names
    assert {lesson.provenance.method for _, lessons in drawn for lesson in lessons} == {"extractive"}


def quoting(case: Case) -> tuple[Lesson, ...]:
    """What a careless model writes: every planted value in every field, in more than one writing."""
    name, street, order, user, balance, mail, phone, token, birth = case.planted
    how = Provenance(method="llm", model="scripted")
    return (
        Lesson(
            title=f"Check the balance before paying {name.upper()}",
            description=f"When {name} of {street} asks for order {order}",
            content=f"Look up the account: {name.lower()} ({user}, born {birth}) had only {balance}, and a refund "
            f"above it is refused. Then send the receipt to {mail} or call {phone}, naming case {token}.",
            provenance=how,
        ),
        Lesson(
            title="Read the stored address and not the spoken one",
            content=f"The stored street wins over what is said, as goods go there:\n{street}\nas for {order}.",
            provenance=how,
        ),
        Lesson(
            title="Confirm before the refund",
            content="Confirm the address before the refund is sent, because an unconfirmed one is rejected at the end.",
            provenance=how,
        ),
    )


@pytest.mark.full
def test_no_planted_value_stands_in_a_lesson_that_a_model_wrote() -> None:
    kept = 0
    for number, case in enumerate(some := corpus()[::4]):
        run = case.attempts[0].trajectory
        # The task is generic here: a lesson that repeats a value of the task is rejected whole by an older rule.
        attempts = [Run(trajectory=run.model_copy(update={"task": "Serve the customer"}), verdict=a.verdict)
                    for a in case.attempts[:1]]  # fmt: skip
        told = LessonGate()(Extraction(lessons=quoting(case)), attempts, shown=())
        there = Case(case.kind, case.attempts, tuple(v for v in case.planted if flat(v) in said_in(attempts)), (), ())
        assert leaked(there, told.lessons) == [], (number, case.kind, [lesson.text for lesson in told.lessons])
        assert any(lesson.title == "Confirm before the refund" for lesson in told.lessons)
        kept += len(told.lessons) >= 2
    assert kept >= 0.9 * len(some)


def said_in(attempts: list[Run]) -> str:
    run = attempts[0].trajectory
    return flat(
        " ".join([*(str(s.model_dump()) for s in run.steps), *(o.text for s in run.steps for o in s.observations)])
    )


def test_a_value_of_the_task_is_in_no_lesson_of_a_model_either() -> None:
    for case in corpus()[::5]:
        told = LessonGate()(Extraction(lessons=quoting(case)), list(case.attempts), shown=())
        here = flat(" ".join(a.trajectory.model_dump_json() for a in case.attempts))
        there = Case(case.kind, case.attempts, tuple(v for v in case.planted if flat(v) in here), (), ())
        assert leaked(there, told.lessons) == []


def refund() -> Trajectory:
    return Trajectory(
        task="You are Sophia Silva. Refund my order 8812.",
        steps=(
            Step(
                action=Action(
                    calls=(ToolCall(name="find_customer", arguments={"name": "Jane Roe", "street": "12 Elm Street"}),)
                ),
                observations=(
                    Observation(
                        text='{"name": "Jane Roe", "street": "12 Elm Street", "order_id": 8812, "balance": 340.5}',
                        source="tool",
                    ),
                ),
            ),
            Step(
                action=Action(calls=(ToolCall(name="refund", arguments={"order_id": 8812}),)),
                observations=(Observation(text="ok", source="tool"),),
            ),
        ),
    )


def test_the_next_customer_sees_fields_and_their_sources_and_no_values_of_the_one_before() -> None:
    with lessonbank.connect(
        ":memory:", scope="acme/support", embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as bank:
        bank.learn(refund(), reward=1.0)
        text = bank.retrieve("Refund my order 9911").text
    for value in ("Sophia", "Silva", "Jane", "Roe", "Elm", "340", "8812"):
        assert value not in text
    assert "find_customer(name=<chosen name>, street=<chosen street>)" in text
    assert "returned: name, street, order_id, balance" in text
    assert "refund(order_id=<order id from the request>)" in text


def test_a_value_that_a_tool_returned_names_its_field_and_the_tool() -> None:
    run = refund().model_copy(update={"task": "Pay the customer back"})
    (lesson,) = anyio.run(ExtractiveExtractor(), [attempt_of(run)]).lessons
    assert "refund(order_id=<order id from find_customer's result>)" in lesson.content


def attempt_of(run: Trajectory) -> Run:
    return Run(trajectory=run, verdict=lessonbank.Verdict(outcome="success", source="ground_truth"))


def booked(cabin: str, *, tools: bool = False) -> Trajectory:
    call = ToolCall(name="book", arguments={"cabin": cabin, "insured": False, "passenger": "jane"})
    steps = (
        Step(action=Action(calls=(ToolCall(name="look", arguments={}),)), observation="seats"),
        Step(action=Action(calls=(call,)), observation="booked"),
    )
    schema: Json = {"name": "book", "parameters": {"properties": {"cabin": {"enum": ["economy", "first"]}}}}
    return Trajectory(task="Book a seat", steps=steps, tools=({"function": schema},) if tools else ())


def test_a_usual_choice_stays_where_several_runs_or_the_schema_of_the_tool_have_it() -> None:
    one = anyio.run(ExtractiveExtractor(), [attempt_of(booked("economy"))]).lessons[0].content
    two = anyio.run(ExtractiveExtractor(), [attempt_of(booked("economy")) for _ in range(2)]).lessons[0].content
    listed = anyio.run(ExtractiveExtractor(), [attempt_of(booked("economy", tools=True))]).lessons[0].content
    assert "book(cabin=<chosen cabin>, insured=false, passenger=<chosen passenger>)" in one
    assert "book(cabin=economy, insured=false, passenger=<chosen passenger>)" in two
    assert "book(cabin=economy, insured=false, passenger=<chosen passenger>)" in listed


@pytest.mark.parametrize("content", ["Jane Roe, 12 Elm Street", "340.50"])
def test_a_lesson_that_is_nothing_but_values_is_rejected_with_a_reason(content: str) -> None:
    run = refund().model_copy(update={"task": "Pay the customer back"})
    drawn = Extraction(lessons=(Lesson(title="The customer", content=content),))
    told = LessonGate()(drawn, [attempt_of(run)], shown=())
    assert told.lessons == ()
    assert told.rejected[0].reason


def test_a_number_of_the_agents_own_instructions_is_a_rule_and_stays_in_a_lesson_of_a_model() -> None:
    run = refund().model_copy(
        update={"task": "Pay the customer back", "instructions": "A refund above $340.50 needs a person."}
    )
    content = "A refund above $340.50 needs a person, so hand order 8812 over before the call is made."
    told = LessonGate()(Extraction(lessons=(Lesson(title="Hand over", content=content),)), [attempt_of(run)], shown=())
    assert (
        told.lessons[0].content
        == "A refund above $340.50 needs a person, so hand order <order id> over before the call is made."
    )
    assert "became slots" in told.notes[0]


def done(*lines: str) -> str:
    """What is taught by a run that did these things in plain text, the first of them in vain."""
    seen = ("error: try again", *("ok, that is done" for _ in lines[1:]))
    steps = tuple(Step(action=line, observation=text) for line, text in zip(lines, seen, strict=True))
    lessons = anyio.run(ExtractiveExtractor(), [attempt_of(Trajectory(task="Serve the customer", steps=steps))]).lessons
    return "\n".join(lesson.content for lesson in lessons)


@pytest.mark.parametrize("id", ["W123", "#W123", "AB-12", "W12345", "ORD_77", "#A71"])
def test_a_short_id_that_stands_nowhere_else_is_in_no_lesson(id: str) -> None:
    told = done("log_in", f"cancel_order {id}", f"open {id} now", f"cancel_order {id} --force", "close_case w123")
    assert "cancel_order <id> --force" in told
    assert "close_case <id>" in told
    assert not re.search(rf"\b{re.escape(id.lstrip('#'))}\b|w123", told), told


def test_names_of_programs_files_and_options_keep_their_digits() -> None:
    lines = (
        "python3 -m pytest tests/test_v2.py -k H264", "python3.11 run.py --level 3 -O2", "ruff check --select E501 src",
        "7z x data.7z && base64 -d x.b64", "sha256sum dist/app-1.2.0.whl", "iconv -f UTF-16 -t UTF-8 a.txt",
        "ffmpeg -c:v h264 -i a.mp4", "cat docs/RFC2822.md", "run_tests test_v2.py", "press F5",
    )  # fmt: skip
    told = done("look", *lines[:4]) + done("look", *lines[4:7]) + done("look", *lines[7:])
    assert [line for line in lines if f"`{line}`" not in told] == []


def test_what_programs_call_nothing_is_nobodys_name() -> None:
    seen = 'def author(name=None, login=null, user=True):\n{"customer": "null", "owner": "Jennifer Null"}'
    run = Trajectory(task="Tell an absent key from a null", steps=(Step(action="cat model.py", observation=seen),))
    content = "`JSON_TYPE(col, path) IS NULL` is true only where the key is absent; test for None before True is read."
    lesson = Lesson(title="Tell an absent JSON key from JSON null", content=f"{content} Ask Jennifer Null.")
    told = LessonGate()(Extraction(lessons=(lesson,)), [attempt_of(run)], shown=())
    assert [(kept.title, kept.content) for kept in told.lessons] == [(lesson.title, f"{content} Ask <name>.")]
