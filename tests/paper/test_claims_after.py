"""What is learned and kept: each claim checked through the public API, offline."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from claiming import (
    RUN,
    Profile,
    bank,
    both_profiles,
    claim,
    judged,
    run,
    some_lessons,
)

import lessonbank
from lessonbank import Lesson
from lessonbank.contracts.settings import UNSET
from lessonbank.contracts.store_calls import settlement_of
from lessonbank.errors import LessonbankError, ModelError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank.testing.settings import grouped


def extract(
    profile: Profile, outcome: Any = "success", reply: Any = "", **options: Any
) -> tuple[lessonbank.Learned, ScriptedModel]:
    model = ScriptedModel([reply or some_lessons()])
    with bank(profile, model=model, **options) as memory:
        return memory.learn(RUN, outcome=outcome), model


@claim("extract-temperature")
@both_profiles
def test_the_extractor_is_asked_at_temperature_one(profile: Profile) -> None:
    _, model = extract(profile)
    assert model.calls[0].temperature == 1.0


@claim("prompt-by-verdict")
@both_profiles
def test_the_verdict_chooses_the_prompt(profile: Profile) -> None:
    chosen = {outcome: extract(profile, outcome)[0].lessons[0].provenance.prompts for outcome in ("success", "failure")}
    assert "extract_success" in chosen["success"][0].id
    assert "extract_failure" in chosen["failure"][0].id


@claim("failures-teach")
@both_profiles
def test_a_failure_teaches_a_guardrail(profile: Profile) -> None:
    assert [extract(profile, outcome)[0].lessons[0].kind for outcome in ("failure", "success")] == [
        "guardrail",
        "strategy",
    ]


@claim("at-most-three")
@both_profiles
def test_three_lessons_are_kept_of_one_run(profile: Profile) -> None:
    learned, model = extract(profile, reply=some_lessons(7))
    assert len(learned.lessons) == 3
    assert re.search(r"at most 3 items|each separate \w+, 3 the most", model.calls[0].prompt)


@claim("lesson-schema")
@both_profiles
def test_a_lesson_has_title_description_and_content(profile: Profile) -> None:
    learned, model = extract(profile)
    lesson = learned.lessons[0]
    assert (lesson.title, lesson.description) == ("Lesson 1", "When it is about 1.")
    assert lesson.content == "Do the thing number 1 before anything else."
    assert "one sentence" in model.calls[0].prompt
    assert ("1 to 3 sentences" if profile == "paper" else "at most 60 words") in model.calls[0].prompt


@claim("description-sums-up")
def test_the_paper_describes_and_the_default_says_when_to_use_it() -> None:
    paper, default = extract("paper")[1].calls[0].prompt, extract("default")[1].calls[0].prompt
    assert "one sentence that sums the item up" in paper
    assert "when not to" in default
    assert "when not to" not in paper


@claim("think-first")
@both_profiles
def test_the_extractor_is_told_to_find_the_cause_first(profile: Profile) -> None:
    for outcome in ("success", "failure"):
        prompt = extract(profile, outcome)[1].calls[0].prompt
        if profile == "paper":
            assert "Before you write any, reason about why the trajectory" in prompt
        else:
            assert prompt.index('"evidence"') < prompt.index('"cause"') < prompt.index('"title"')


@claim("no-particulars")
def test_the_paper_forbids_particulars_and_the_default_keeps_facts_of_the_environment() -> None:
    paper, default = extract("paper")[1].calls[0].prompt, extract("default")[1].calls[0].prompt
    assert "Leave out particular websites, query texts and literal strings" in paper
    assert "keep facts about the environment exact" in default


@claim("extract-sees-web")
def test_the_paper_extractor_sees_thoughts_and_actions_only() -> None:
    prompt = extract("paper")[1].calls[0].prompt
    for told in ("Find the cheapest blue shoes", "I sort by price.", "sort", "report the first"):
        assert told in prompt
    for hidden in ("blue shoe, 12 dollars", "page: done", "Never buy without asking", "in size 9"):
        assert hidden not in prompt


@claim("extract-sees-web")
def test_the_default_extractor_sees_instructions_and_observations() -> None:
    prompt = extract("default")[1].calls[0].prompt
    for told in ("I sort by price.", "blue shoe, 12 dollars", "page: done", "Never buy without asking", "in size 9"):
        assert told in prompt


@claim("extract-sees-code")
def test_the_paper_extractor_for_code_sees_all_messages() -> None:
    learned, model = extract("paper", domain="code")
    assert learned.lessons[0].provenance.prompts[0].id == "paper/extract_success_code"
    for told in ("I sort by price.", "blue shoe, 12 dollars", "page: done", "in size 9"):
        assert told in model.calls[0].prompt
    assert "Never buy without asking" not in model.calls[0].prompt


@claim("rationale-not-fed")
def test_the_judges_reason_reaches_the_default_extractor_only() -> None:
    for profile, fed in (("paper", False), ("default", True)):
        replies = [judged(profile), some_lessons()]
        model = ScriptedModel(replies)
        with bank(profile, model=model) as memory:
            reason = memory.learn(RUN).verdicts[0].reason
        assert (reason in model.calls[1].prompt) is fed


@claim("markdown-form")
def test_the_paper_asks_for_markdown_and_the_default_for_json() -> None:
    paper, default = extract("paper")[1].calls[0], extract("default")[1].calls[0]
    assert all(h in paper.prompt for h in ("# Memory Item 1", "## Title", "## Description", "## Content"))
    assert paper.schema is None
    assert "Reply with JSON only" in default.prompt
    assert default.schema is not None


@claim("fragments")
@both_profiles
@pytest.mark.parametrize(
    "reply",
    [
        "Sure:\n\n# Memory Item 1\n## Title Sort first\n## Description When it is long.\n## Content Sort it.",
        '<think>hm</think>\n```json\n{"items": [{"title": "Sort first", "description": "", "content": "Sort it.", '
        '"evidence": ["step 2"],}]}\n```',
        '[{"title": "Sort first", "description": "d", "content": "Sort it.", "evidence": "step 2"}, {"title": "Ha',
    ],
)
def test_every_reply_shape_is_read_and_half_lessons_are_dropped(profile: Profile, reply: str) -> None:
    if profile == "default" and "#" in reply:
        reply += "\n## Evidence step 2"
    learned, _ = extract(profile, reply=reply)
    assert [(i.title, i.content) for i in learned.lessons] == [("Sort first", "Sort it.")]


@claim("no-evidence-asked")
def test_a_lesson_without_evidence_is_kept_by_the_paper_only() -> None:
    for evidence in ("step 99", "none"):
        assert extract("paper", reply=some_lessons(evidence=evidence))[0].lessons
        dropped = extract("default", reply=some_lessons(evidence=evidence))[0]
        assert not dropped.lessons
        assert dropped.notes
    assert extract("default", reply=some_lessons(evidence="step 2"))[0].lessons[0].provenance.evidence == ("step 2",)


@claim("may-restate")
def test_a_lesson_that_restates_the_instructions_is_kept_by_the_paper_only() -> None:
    restated = some_lessons(content="Never buy without asking the customer first of all.")
    assert extract("paper", reply=restated)[0].lessons
    assert not extract("default", reply=restated)[0].lessons


@claim("extraction-fails")
@both_profiles
@pytest.mark.parametrize("reply", [ModelError("HTTP 400"), "I would rather talk about the weather."])
def test_a_failed_extraction_keeps_the_run_for_another_try(profile: Profile, reply: Any) -> None:
    seen = list[str]()
    hook = lambda event: seen.append(type(event).__name__)  # noqa: E731
    with bank(profile, model=ScriptedModel([reply, some_lessons()]), hooks=(hook,)) as memory:
        learned = memory.learn(RUN, outcome="success")
        assert (learned.lessons, len(memory.runs.pending(limit=10_000))) == ((), 1)
        assert learned.notes
        assert "ExtractionFailed" in seen
        assert memory.learn(memory.runs.pending(limit=10_000)[0], outcome="success").lessons
        assert not memory.runs.pending(limit=10_000)


def contrast(profile: Profile, reply: str) -> tuple[lessonbank.Learned, ScriptedModel]:
    model = ScriptedModel([reply])
    with bank(profile, model=model) as memory:
        return memory.learn([run(), run(), run()], outcome=["success", "failure", "success"]), model


@claim("contrast-together")
@both_profiles
def test_several_runs_are_contrasted_in_one_call(profile: Profile) -> None:
    learned, model = contrast(profile, some_lessons(evidence="run 1, step 2"))
    assert len(model.calls) == 1
    assert len(set(re.findall(r"<<<run (\d)", model.calls[0].prompt))) == 3
    assert learned.lessons[0].provenance.prompts[0].id.endswith("contrast")
    assert learned.experience
    assert len(learned.experience.attempts) == 3


@claim("at-most-five")
@both_profiles
def test_five_lessons_are_kept_of_a_contrast(profile: Profile) -> None:
    learned, model = contrast(profile, some_lessons(9, evidence="run 1, step 2"))
    assert len(learned.lessons) == 5
    assert re.search(r"at most 5 items|each separate \w+, 5 the most", model.calls[0].prompt)
    assert ("1 to 5 sentences" if profile == "paper" else "at most 60 words") in model.calls[0].prompt


@claim("contrast-without-labels")
def test_the_paper_contrast_shows_no_outcomes() -> None:
    for profile, shown in (("paper", False), ("default", True)):
        _, model = contrast(profile, some_lessons(evidence="run 1, step 2"))
        assert bool(re.search(r"<<<run 2 \(failure\)", model.calls[0].prompt)) is shown
        assert bool(re.search(r"Run 2: failure", model.calls[0].prompt)) is shown


@claim("one-recall-for-all")
@both_profiles
@pytest.mark.anyio
async def test_all_runs_of_a_task_share_one_recall(profile: Profile) -> None:
    settings: dict[str, Any] = {"scope": "paper/test", "profile": profile, "holdout": None, "embedder": "hashing"}
    reply = some_lessons(evidence="run 1, step 2")
    memory = await lessonbank.connect_async(":memory:", **grouped(model=ScriptedModel([reply]), **settings))
    recall = await memory.retrieve(run().task)
    await memory.learn([run(), run(), run()], recall=recall, outcome=["success", "failure", "success"])
    settled = await settlement_of(memory.store, recall.id, scope="paper/test")
    assert settled
    assert len(settled.trajectory_ids) == 3
    assert (settled.outcome, settled.reward) == ("success", pytest.approx(2 / 3))
    await memory.close()


@claim("append-only")
@both_profiles
def test_everything_is_appended(profile: Profile) -> None:
    with bank(profile, model=ScriptedModel([some_lessons(2)] * 3)) as memory:
        learned = [memory.learn(run(f"Find shoes in {town}"), outcome="success") for town in ("Oslo", "Rome", "Kyiv")]
        assert [one.changes[0].kind for one in learned] == ["add"] * 3
        lessons = memory.lessons.list(limit=10_000)
        assert len(lessons) == (6 if profile == "paper" else 2)
        assert [len(one.lessons) for one in learned] == ([2, 2, 2] if profile == "paper" else [2, 0, 0])
        assert [any("taught again" in n for n in one.notes) for one in learned[1:]] == [profile == "default"] * 2
        found = memory.retrieve("Find shoes in Kyiv")
        assert (found.candidates[0].score, len(found.shown)) == (pytest.approx(1.0, abs=1e-4), 2)


@claim("kept-as-drawn")
def test_what_is_no_lesson_is_turned_away_by_the_default_only() -> None:
    reply = json.loads(some_lessons(1))
    reply["items"][0] |= {"title": "End the run", "content": "finish[the refund is booked]"}
    kept, _ = extract("paper", reply=json.dumps(reply))
    assert [i.title for i in kept.lessons] == ["End the run"]
    refused, _ = extract("default", reply=json.dumps(reply), admission=UNSET)
    assert refused.lessons == ()
    assert refused.experience and [r.rule for r in refused.experience.rejected] == ["submission"]


@claim("what-is-kept")
@both_profiles
def test_task_run_and_lessons_are_kept(profile: Profile) -> None:
    with bank(profile, model=ScriptedModel([some_lessons(2)])) as memory:
        learned = memory.learn(RUN, outcome="success")
        assert learned.experience
        kept = memory.lessons.experience(learned.lessons[0].id)
        assert (kept.task, len(kept.lessons)) == (RUN.task, 2)
        assert memory.runs.get(kept.attempts[0].trajectory_id).trajectory == RUN


@claim("kept-as-json")
def test_a_bank_is_a_database_and_its_export_is_json(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"scope": "paper/test", "embedder": "hashing", "holdout": None, "profile": "paper"}
    with lessonbank.connect(
        tmp_path / "bank.db", model=ScriptedModel([some_lessons()]), **grouped(**settings)
    ) as memory:
        memory.learn(RUN, outcome="success")
        memory.admin.export(tmp_path / "bank.jsonl")
        lessons = memory.lessons.list(limit=10_000)[::-1]
    assert (tmp_path / "bank.db").read_bytes().startswith(b"SQLite format 3")
    assert all(json.loads(line) for line in (tmp_path / "bank.jsonl").read_text(encoding="utf-8").splitlines())
    with lessonbank.connect(":memory:", **grouped(**settings)) as other:
        other.admin.import_(tmp_path / "bank.jsonl")
        assert [_untold(one) for one in other.lessons.list(limit=10_000)[::-1]] == [_untold(one) for one in lessons]


def _untold(lesson: Lesson) -> Lesson:
    """`lesson` without the identity of who taught it, and whether somebody checked it: no other bank can know that."""
    taught = lesson.provenance.model_copy(update={"identity": ""})
    return lesson.model_copy(update={"provenance": taught, "risk": None})


@claim("rerun-appends")
@both_profiles
def test_the_same_run_twice_adds_nothing(profile: Profile) -> None:
    with bank(profile, model=ScriptedModel([some_lessons(), some_lessons()])) as memory:
        memory.learn(RUN, outcome="success")
        again = memory.learn(RUN, outcome="success")
        assert (again.known, again.lessons, memory.admin.counts().experiences) == ((RUN.id,), (), 1)
        memory.learn(RUN.model_copy(update={"id": "f" * 32}), outcome="success")
        assert memory.admin.counts().experiences == 2


@claim("no-provenance")
@both_profiles
def test_a_lesson_says_where_it_comes_from(profile: Profile) -> None:
    with bank(profile, model=ScriptedModel([judged(profile), some_lessons()], name="a:model")) as memory:
        source = memory.learn(RUN).lessons[0].provenance
    assert source.trajectory_ids == (RUN.id,)
    assert (source.verdict, source.verdict_source, source.model) == ("success", "judge", "a:model")
    assert len(source.prompts) == 2
    assert all(len(p.digest) == 64 for p in source.prompts)
    assert source.package_version


@claim("no-taking-back")
@both_profiles
def test_a_lesson_can_be_retired_and_restored(profile: Profile) -> None:
    with bank(profile, model=ScriptedModel([some_lessons()])) as memory:
        lesson = memory.learn(RUN, outcome="success").lessons[0]
        memory.lessons.retire(lesson.id, reason="it misled")
        assert not memory.retrieve(RUN.task).lessons
        assert memory.lessons.get(lesson.id).retired
        memory.lessons.restore(lesson.id, reason="it did not")
        assert memory.retrieve(RUN.task).shown
        with pytest.raises(LessonbankError):
            memory.lessons.get("no such lesson")
