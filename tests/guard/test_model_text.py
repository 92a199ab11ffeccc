"""What a model writes is redacted as what it was shown: it may write a secret, or join what stood apart in the run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

import lessonbank
from lessonbank.contracts.ports import Message
from lessonbank.contracts.records import (
    Add,
    Change,
    Experience,
    Extraction,
    Lesson,
    Rejected,
    Run,
    Step,
    Trajectory,
    Verdict,
)
from lessonbank.errors import ModelError
from lessonbank.guard.redact._records import TEXTS
from lessonbank.testing import ScriptedModel

HALVES = ("AKIA" + "Q7M2N5", "B3XW6Y4ZJT")
KEY = "".join(HALVES)
RUN = Trajectory(
    task="Upload the report",
    steps=(Step(action=f"echo {HALVES[0]}", observation=f"and {HALVES[1]} is the rest; the upload worked"),),
    answer="uploaded",
)
IDS = frozenset(
    re.findall(
        r"\w+",
        "id scope kind state outcome source model error trajectory_id trajectory_ids lesson_ids source_lesson_ids"
        " by rule identity experience_id writer method package_version verdict_source risk recall_id run_ids lesson_id"
        " merged parent_run seal",
    )
)
"""Fields that hold an id, a state or a name that no model writes."""
pytestmark = pytest.mark.anyio


def joining(messages: Sequence[Message]) -> str:
    """A model that puts the two halves together, wherever it was asked for words."""
    said = messages[-1].content
    first, second = (half if half in said else "?" for half in HALVES)
    whole = first + second
    if code := re.search(r'^\{"check": "([0-9a-f]{8})", "reason"', said, re.MULTILINE):
        return json.dumps({"check": code[1], "reason": f"It used {whole}", "outcome": "success", "confidence": 0.9})
    lesson = {"title": f"Use {whole}", "description": f"When {whole} is asked for", "content": f"Log in with {whole}."}
    return json.dumps({"lessons": [{**lesson, "evidence": ["step 1"]}]})


async def connected(**settings: Any) -> lessonbank.AsyncReasoningBank:
    return await lessonbank.connect_async(
        ":memory:", scope="desk", embedder="lexical", evidence=lessonbank.Evidence(holdout=None), **settings
    )


async def everything(bank: lessonbank.AsyncReasoningBank) -> str:
    """All that the bank keeps about its runs, lessons and changes."""
    runs, lessons = await bank.runs.list(limit=100), await bank.lessons.list(retired=True, limit=100)
    return "\n".join(map(repr, (*runs, *lessons, *await bank.history.list())))


async def test_a_key_that_a_model_joins_is_in_no_verdict_and_no_lesson() -> None:
    async with await connected(model=ScriptedModel(joining)) as bank:
        learned = await bank.learn(RUN)
        assert learned.verdicts[0].reason == "It used [aws key 1]"
        assert KEY not in learned.model_dump_json()
        assert KEY not in await everything(bank)


async def judge(run: Trajectory, /) -> Verdict:
    return Verdict(outcome="success", confidence=0.9, reason=f"the key is {KEY}")


async def extractor(attempts: Sequence[Run], /) -> Extraction:
    lesson = Lesson(
        title=f"Give {KEY}",
        description=f"With {KEY}",
        content=f"Before uploading, log in as {KEY}.",
    )
    lesson = lesson.model_copy(update={"provenance": lesson.provenance.model_copy(update={"evidence": (KEY,)})})
    draft = Rejected(title=KEY, content=KEY, rule="vague", reason=f"{KEY} says nothing")
    return Extraction(lessons=(lesson,), rejected=(draft,), notes=(f"{KEY} was left out",))


class Rewording:
    """A consolidator that writes another text than it was given."""

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        worded = [lesson.model_copy(update={"content": f"{lesson.content} Use {KEY}."}) for lesson in new.lessons]
        metadata = {**new.metadata, "why": f"the model said {KEY}"}
        return [Add(experience=new.model_copy(update={"lessons": tuple(worded), "metadata": metadata}))]


async def test_no_part_of_a_bank_brings_a_key_in() -> None:
    parts = lessonbank.Parts(judge=judge, extractor=extractor, consolidator=Rewording())
    async with await connected(parts=parts, safety=lessonbank.Safety(admission=None)) as bank:
        learned = await bank.learn(RUN)
        assert len(learned.lessons) == 1
        assert KEY not in learned.model_dump_json()
        assert KEY not in await everything(bank)
        assert KEY not in (await bank.judge(RUN)).reason
        drawn = await bank.extract([Run(trajectory=RUN, verdict=await judge(RUN))])
        assert KEY not in drawn.model_dump_json()
        one = Experience(scope="desk", task="Another", lessons=drawn.lessons)
        assert KEY not in repr(await bank.consolidate(one, dry_run=True))
        assert KEY not in repr(await bank.consolidate(one))
        told = (
            await bank.runs.correct(RUN.id, outcome="failure", by="Ana", reason=f"It shows {KEY}")
        ).model_dump_json()
        assert KEY not in told + await everything(bank)


async def failing(run: object, /) -> Any:
    raise ModelError(f"the provider answered {KEY}")


async def test_the_message_of_a_model_that_fails_is_redacted_too() -> None:
    for parts in (lessonbank.Parts(judge=failing), lessonbank.Parts(judge=judge, extractor=failing)):
        async with await connected(parts=parts) as bank:
            learned = await bank.learn(RUN)
            assert not learned.lessons
            assert "[aws key 1]" in repr(learned)
            assert KEY not in repr(learned) + await everything(bank)


def choosing(messages: Sequence[Message]) -> str:
    said = messages[-1].content
    code = re.findall(r"[0-9a-f]{8}", said)
    return "\n".join(json.dumps({"check": one, "analysis": f"Run 1 has {KEY}", "index": [1]}) for one in set(code))


async def agent(task: str, memory: str, /) -> str:
    return "done"


async def test_the_reason_for_the_best_of_several_runs_is_redacted(caplog: pytest.LogCaptureFixture) -> None:
    def broken(messages: Sequence[Message]) -> str:
        return f"I choose {KEY}"

    for reply, where in ((choosing, "why"), (broken, "notes")):
        async with await connected(model=ScriptedModel(reply)) as bank:
            scaled = await bank.scale("Upload the report", agent, k=2)
            assert "[aws key 1]" in str(getattr(scaled, where))
            assert KEY not in scaled.model_dump_json() + await everything(bank) + caplog.text


async def test_a_bank_that_redacts_nothing_keeps_what_a_model_wrote() -> None:
    async with await connected(
        parts=lessonbank.Parts(judge=judge, extractor=extractor), safety=lessonbank.Safety(redact=None, admission=None)
    ) as bank:
        learned = await bank.learn(RUN)
        assert KEY in learned.verdicts[0].reason
        assert KEY in learned.lessons[0].content


def _holds_text(kind: object) -> bool:
    return "str" in str(kind) or "Json" in str(kind) or any(f".{of.__name__}'" in str(kind) for of in TEXTS)


def test_no_field_that_holds_text_is_left_out() -> None:
    left = {
        f"{kind.__name__}.{name}"
        for kind, names in TEXTS.items()
        for name, field in kind.model_fields.items()
        if name not in names and name not in IDS and _holds_text(field.annotation)
    }
    assert left == {
        "Trust.evidence",
        "Administer.act",
        "Audit.seed",
        "Lesson.near_duplicate_of",
        "Replace.heirs",
        "Retire.group",
        "Retire.successor",
    }  # ids of runs, lessons and groups, names of calls and of their callers, and a drawn number


# --- redacted before it is cut or folded ------------------------------------------------------------------------------

OWN = re.compile(r"CUST-\n?\d{4} \d{4}")
"""What only the user's redactor knows. Cut or folded, it is not recognised any more."""
NUMBER = "CUST-4815 1623"
BROKEN = NUMBER.replace("-", "-\n")
GOOD = "Open the ledger before the stamp tool, because the tool reads the weight from it. "


def cut_at(limit: int) -> str:
    """A text with a customer's number where it is cut after `limit` characters."""
    filled = ("open the ledger, then " * limit)[: limit - 15]
    return f"{filled} {NUMBER} is the customer whose parcel this was."


def replying(**fields: str) -> ScriptedModel:
    def reply(messages: Sequence[Message]) -> str:
        said = messages[-1].content
        if code := re.search(r'^\{"check": "([0-9a-f]{8})", "reason"', said, re.MULTILINE):
            return json.dumps(
                {"check": code[1], "reason": fields.get("reason", "ok"), "outcome": "success", "confidence": 0.9}
            )
        lesson = {"title": "Open the ledger first", "description": "When a parcel is stamped", "content": GOOD}
        return fields.get("said") or json.dumps({"lessons": [{**lesson, **fields, "evidence": ["step 1"]}]})

    return ScriptedModel(reply)


@pytest.mark.full
@pytest.mark.parametrize(
    "fields",
    [
        {"reason": cut_at(998)},
        {"reason": f"It was for {BROKEN}."},
        {"title": cut_at(200)},
        {"title": f"Ask for {BROKEN} first"},
        {"description": cut_at(500)},
        {"description": f"When {BROKEN} calls"},
        {"content": cut_at(2000)},
        {"said": json.dumps({"lessons": []}) + " " + cut_at(106)},
    ],
)
async def test_the_users_redactor_reads_what_a_model_wrote_before_it_is_cut_or_folded(fields: dict[str, str]) -> None:
    safety = lessonbank.Safety(redact=lambda text: OWN.sub("[customer]", text), admission=None)
    async with await connected(model=replying(**fields), safety=safety) as bank:
        learned = await bank.learn(RUN)
        assert not re.search("CUST|4815", repr(learned) + await everything(bank))


async def test_a_bank_that_redacts_nothing_keeps_what_its_judge_wrote() -> None:
    async with await connected(
        model=replying(reason="Mail ann@example.org"), safety=lessonbank.Safety(redact=None)
    ) as bank:
        assert (await bank.judge(RUN)).reason == "Mail ann@example.org"


async def test_a_key_that_a_server_repeats_is_removed_whatever_the_redactor() -> None:
    def refusing(_: Sequence[Message]) -> str:
        raise ModelError(f"401: the key {KEY} is wrong")

    for redactor in (None, str.upper):
        safety = lessonbank.Safety(redact=redactor)
        async with await connected(model=ScriptedModel(refusing), safety=safety) as bank:
            assert KEY not in repr(await bank.judge(RUN))
