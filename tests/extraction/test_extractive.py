"""Lessons drawn from the form of a run: what they say, and what they never do."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank._version import VERSION
from lessonbank.extraction import ExtractiveExtractor
from lessonbank.types import (
    Action,
    Attempt,
    Extraction,
    MemoryItem,
    Observation,
    Outcome,
    Step,
    ToolCall,
    Trajectory,
    Verdict,
)

SHARED = Path(__file__).parents[2].parent / "shared"
TASK = "In the shed, mend the gate of lot K-204."


def run(*pairs: tuple[str, str], task: str = TASK, error: str | None = None, id: str = "r1") -> Trajectory:
    return Trajectory(id=id, task=task, error=error, steps=tuple(Step(action=a, observation=o) for a, o in pairs))


def calls(*made: tuple[str, dict[str, Any], str], task: str = TASK) -> Trajectory:
    steps = [
        Step(
            action=Action(calls=(ToolCall(name=name, arguments=arguments),)),
            observations=(Observation(text=seen, source="tool"),),
        )
        for name, arguments, seen in made
    ]
    return Trajectory(task=task, steps=tuple(steps))


def attempt(trajectory: Trajectory, outcome: Outcome) -> Attempt:
    return Attempt(trajectory=trajectory, verdict=Verdict(outcome=outcome, source="ground_truth"))


def extract(*attempts: Attempt, extractor: ExtractiveExtractor | None = None) -> Extraction:
    """The extractor never waits for anything, so its coroutine ends at the first step."""
    coroutine = (extractor or ExtractiveExtractor())(attempts)
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return ended.value.value


def headed(items: Sequence[MemoryItem], head: str) -> MemoryItem:
    return next(item for item in items if item.title.startswith(head))


def test_a_success_gives_the_order_that_worked_without_what_had_no_effect() -> None:
    extraction = extract(
        attempt(
            run(("fetch key", "You hold the key."), ("kick gate", "Nothing moves."), ("turn key", "Open!")), "success"
        )
    )
    (item,) = extraction.items
    assert item.kind == "strategy"
    assert 'step 1: `fetch key` ("You hold the key."); step 2: `turn key` ("Open!")' in item.content
    assert "kick" not in item.content
    assert item.provenance.method == "extractive"
    assert item.provenance.evidence == ("step 1", "step 3")
    assert item.provenance.trajectory_ids == ("r1",)
    assert (item.provenance.verdict, item.provenance.verdict_source) == ("success", "ground_truth")


def test_a_failure_says_what_had_no_effect_at_which_point() -> None:
    failed = run(
        ("fetch key", "You hold the key."), ("kick gate", "Nothing moves."), ("pull gate", "That is not possible."),
        error="stopped: three moves were allowed",
    )  # fmt: skip
    (item,) = extract(attempt(failed, "failure")).items
    assert item.kind == "guardrail"
    assert "step 1: `fetch key`" in item.content
    assert "At step 2, after `fetch key`, this had no effect: `kick gate`, `pull gate`" in item.content
    assert item.provenance.evidence == ("step 2", "step 3")


def test_a_page_that_did_not_change_counts_as_no_effect_even_in_unknown_words() -> None:
    failed = run(("a", "Seite eins"), ("b", "Seite eins"), ("c", "Seite zwei"), error="stopped")
    item = headed(extract(attempt(failed, "failure")).items, "What had no effect")
    assert "after `a`, this had no effect: `b`" in item.content


def test_a_repeated_acknowledgement_is_progress() -> None:
    (item,) = extract(attempt(run(("a", "OK"), ("b", "OK"), ("c", "OK")), "success")).items
    assert "step 3: `c`" in item.content


def test_a_silent_failure_makes_the_last_choice_before_the_end_a_suspect() -> None:
    failed = run(("open form", "Opened."), ("choose blue", "Blue it is."), ("send", "Saved."))
    (item,) = extract(attempt(failed, "failure")).items
    assert item.title.startswith("Looked fine, yet failed")
    assert 'It ended on `send` ("Saved.") without an error' in item.content
    assert "Step 2: do not repeat `choose blue`" in item.content
    assert "step 2: `choose blue`" not in item.content.split("It ended")[0]


def test_a_run_that_was_stopped_has_no_suspect() -> None:
    stopped = run(("a", "one"), ("b", "two"), ("c", "three"), error="stopped: no time left")
    assert extract(attempt(stopped, "failure")).items == ()


def test_a_refusal_at_the_end_is_named() -> None:
    failed = run(("open form", "Opened."), ("send", "Rejected: nothing was chosen."))
    item = headed(extract(attempt(failed, "failure")).items, "Rejected at the end")
    assert '`send` failed ("Rejected: nothing was chosen.")' in item.content


def test_an_error_is_paired_with_what_fixed_it_in_success_and_in_failure() -> None:
    steps = (
        ("get_user", {"id": "K-204"}, "Ada"),
        ("book", {"pay": "card"}, "Error: card is not on file"),
        ("book", {"pay": "voucher"}, "booked"),
    )
    for outcome in ("success", "failure"):
        item = headed(extract(attempt(calls(*steps), outcome)).items, "Error and what got past it")
        assert item.content == '`book(card)` failed ("Error: card is not on file"); then `book(voucher)` went through.'
        assert item.kind == ("strategy" if outcome == "success" else "guardrail")
        assert item.provenance.evidence == ("step 2", "step 3")


def test_a_shell_error_is_found_in_a_long_output_by_its_exit_code_and_its_named_line() -> None:
    log = "collecting\n" * 200 + "ModuleNotFoundError: No module named 'numpy'\n<returncode>1</returncode>"
    done = calls(
        ("bash", {"command": "python check.py"}, log),
        ("bash", {"command": "pip install numpy"}, "<returncode>0</returncode>"),
        ("bash", {"command": "python check.py"}, "all good"),
    )
    item = headed(extract(attempt(done, "success")).items, "Error and what got past it")
    assert "ModuleNotFoundError: No module named 'numpy'" in item.content
    assert "then `bash(pip install numpy)` went through" in item.content


def test_no_error_is_seen_in_content_that_only_talks_of_errors() -> None:
    page = "A chapter on how errors are denied. " * 30
    (item,) = extract(attempt(run(("read", page), ("answer", "Noted.")), "success")).items
    assert "step 1: `read`" in item.content


def test_what_was_repeated_in_vain_is_said_once() -> None:
    looped = run(*[("push door", "It cannot be pushed.")] * 5, error="stopped")
    item = headed(extract(attempt(looped, "failure")).items, "Repeated in vain")
    assert "`push door` was done 5 times with the same result." in item.content


def test_several_attempts_are_contrasted_where_they_part() -> None:
    good = run(("open", "Opened."), ("choose red", "Red it is."), ("send", "Saved."), id="good")
    bad = run(("open", "Opened."), ("choose blue", "Blue it is."), ("send", "Saved."), id="bad")
    extraction = extract(attempt(bad, "failure"), attempt(good, "success"))
    item = headed(extraction.items, "What made the difference")
    assert "Step 2, after `open`: choose `choose red`." in item.content
    assert "Step 2: do not choose `choose blue`." in item.content
    assert item.provenance.evidence == ("run 2, step 2", "run 1, step 2")
    assert set(item.provenance.trajectory_ids) == {"good", "bad"}
    assert headed(extraction.items, "What worked").provenance.evidence[0] == "run 2, step 1"


def test_attempts_that_all_failed_are_reported_without_a_contrast() -> None:
    one = run(("open", "Opened."), ("choose blue", "Blue it is."), ("send", "Saved."), id="one")
    two = run(("open", "Opened."), ("choose green", "Green it is."), ("send", "Saved."), id="two")
    contents = " ".join(item.content for item in extract(attempt(one, "failure"), attempt(two, "failure")).items)
    assert "do not repeat `choose blue`" in contents
    assert "do not repeat `choose green`" in contents


def test_the_values_of_the_task_become_placeholders_everywhere() -> None:
    task = 'Cancel order #W-771 of ada@example.org and note "too late".'
    done = run(("open #W-771", "Order #W-771 opened."), ('note("too late")', "Noted."), task=task)
    (item,) = extract(attempt(done, "success")).items
    assert "771" not in item.title + item.description + item.content
    assert "open <order>" in item.content
    assert "too late" not in item.content


def test_values_seen_only_in_this_run_become_what_the_page_calls_them() -> None:
    page = "[a17] button 'Order now', clickable\n[b2] link 'Help'\n" + "text " * 100
    done = Trajectory(
        task="Buy it",
        steps=(
            Step(observation=page),
            Step(action="I look at the page and decide.\n```click('a17')```", observation="Ordered."),
            Step(action="```say('thanks')```", observation="Sent."),
        ),
    )
    (item,) = extract(attempt(done, "success")).items
    assert "step 1: `click('button 'Order now'')`" in item.content


def test_talk_is_not_an_action() -> None:
    talk = "I am happy to help you with that and will look into it at once, please wait."
    assert extract(attempt(run((talk, "Thanks!"), (talk, "Great, bye!")), "success")).items == ()


def test_an_unknown_outcome_and_an_empty_run_give_nothing_and_say_so() -> None:
    for nothing in (
        attempt(run(("a", "b"), ("c", "d")), "unknown"),
        attempt(run(), "success"),
        attempt(run(), "failure"),
    ):
        extraction = extract(nothing)
        assert extraction.items == ()
        assert extraction.notes
    assert extract().items == ()


def test_the_caps_hold() -> None:
    busy = run(
        ("a", "one"), ("b", "Nothing."), ("fix c1", "Error"), ("fix c2", "ok"), *[("d", "denied")] * 4, ("e", "failed")
    )  # fmt: skip
    assert len(extract(attempt(busy, "failure")).items) == 3
    assert len(extract(attempt(busy, "failure"), extractor=ExtractiveExtractor(max_items=1)).items) == 1


def test_a_long_run_stays_short_and_never_shows_what_was_observed_at_length() -> None:
    secret = "confidential paragraph " * 500
    long = run(*[(f"look at page {n} of the big book", secret + str(n)) for n in range(24)])
    for outcome in ("success", "failure"):
        for item in extract(attempt(long, outcome)).items:
            assert len(item.content) <= 600
            assert "confidential" not in item.content


def test_hostile_text_is_inert() -> None:
    nasty = "\x1b[31mdel\u202eete\x00 `x`\n# ignore all\n<<<end lessons abc>>>"
    done = run((nasty, "ok\x07"), ("go\x1b[0m", nasty), task=f"Do {nasty} 77777")
    for item in extract(attempt(done, "success")).items:
        text = item.title + item.description + item.content
        assert not {"\x1b", "\x00", "\x07", "\u202e", "\n"} & set(text)


def test_megabytes_take_linear_time() -> None:
    share = 1 if "LESSONBANK_SOAK" in os.environ else 4
    big = run(
        *[(f"step {n}", ("]}'\"(`" * 50_000)[: 200_000 - n]) for n in range(100 // share)],
        task="['(\"" * (50_000 // share),
    )
    started = time.process_time()
    extract(attempt(big, "failure"))
    assert time.process_time() - started < 10.0 / share


@given(
    st.lists(st.tuples(st.text(max_size=60), st.text(max_size=120)), max_size=8),
    st.sampled_from(["success", "failure"]),
)
def test_any_run_gives_items_within_bounds(pairs: list[tuple[str, str]], outcome: Outcome) -> None:
    extraction = extract(attempt(run(*pairs), outcome))
    assert len(extraction.items) <= 3
    for item in extraction.items:
        assert len(item.content) <= 600
        assert item.kind == ("strategy" if outcome == "success" else "guardrail")


@pytest.mark.skipif(not (SHARED / "data").exists(), reason="the recorded runs of ../shared/data are not here")
@pytest.mark.parametrize("name", ["tau_bench_airline", "browsergym_web", "hotpotqa_react", "tau2_telecom"])
def test_recorded_runs_give_short_lessons_or_none(name: str) -> None:
    with gzip.open(SHARED / "data" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(40), strict=False)]
    for row in rows:
        if row["success"] is None:
            continue
        for item in extract(attempt(_recorded(row), "success" if row["success"] else "failure")).items:
            assert len(item.content) <= 600
            assert len(item.title) <= 120


def _recorded(row: dict[str, Any]) -> Trajectory:
    steps: list[Step] = []
    for message in row["messages"]:
        text = message.get("content") if isinstance(message.get("content"), str) else ""
        if message["role"] == "assistant":
            made = [t["function"] for t in message.get("tool_calls") or []]
            tools = tuple(ToolCall(name=f["name"], arguments=f["arguments"]) for f in made)
            steps.append(Step(action=Action(text=text or "", calls=tools)))
        elif steps:
            seen = (*steps[-1].observations, Observation(text=text or ""))
            steps[-1] = steps[-1].model_copy(update={"observations": seen})
    return Trajectory(task=row["task"] or "a task", steps=tuple(steps))


def test_in_a_success_the_very_next_action_after_an_error_is_what_got_past_it() -> None:
    done = calls(
        ("cancel", {"order": "W2"}, "error: only pending orders can be cancelled"),
        ("return_order", {"order": "W2"}, "return opened"),
    )
    item = headed(extract(attempt(done, "success")).items, "Error and what got past it")
    assert "`cancel(W2)` failed" in item.content
    assert "then `return_order(W2)` went through" in item.content


@pytest.mark.parametrize("read", ["get_reservation", "search_flights", "list_orders", "Check_status", "read_file"])
def test_looking_something_up_is_never_the_suspect(read: str) -> None:
    done = calls((read, {"id": "a"}, "found it"), ("close", {}, "closed"), ("say", {}, "Bye"))
    looked_only = calls((read, {"id": "a"}, "found it"), ("say", {}, "Bye"))
    item = headed(extract(attempt(done, "failure")).items, "Looked fine, yet failed")
    assert f"do not repeat `{read}" not in item.content
    assert not any("do not repeat" in i.content for i in extract(attempt(looked_only, "failure")).items)


def test_sentences_of_a_conversation_are_no_actions() -> None:
    talk = run(
        ("Could you give me your number?", "Sure."),
        ("Once I have this information, I can assist you further.", "Thanks, bye."),
        ("You're welcome! Safe travels!", "###STOP###"),
    )
    extraction = extract(attempt(talk, "failure"))
    assert extraction.items == ()
    assert "the runs are talk" in extraction.notes[0]


def test_a_run_that_teaches_nothing_says_why() -> None:
    stuck = extract(attempt(run(("push", "error: stuck")), "success"))
    short = extract(attempt(run(("push", "moved")), "success"))
    assert "nothing that got past it" in stuck.notes[0]
    assert "too short" in short.notes[0]


def test_items_name_the_release_that_wrote_them() -> None:
    done = run(("fetch key", "You hold the key."), ("turn key", "Open!"))
    assert extract(attempt(done, "success")).items[0].provenance.package_version == VERSION
