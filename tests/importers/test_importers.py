"""Every format's runs come out whole: steps, calls, results, outcome, and nothing that gives the outcome away."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.records import Trajectory, Verdict
from lessonbank.errors import FormatError
from lessonbank.importers import FORMATS, Imported, Skipped, detect, read
from lessonbank.text.messages import to_messages

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
LAMP = "browsergym/2030-01-01_00-00-00_DemoAgentArgs_on_shop.7_42"
CRASH = "browsergym/2030-01-02_00-00-00_DemoAgentArgs_on_shop.8_1"

EVERY = {
    "neutral.jsonl": ("neutral", 3, 2),
    "tau_bench.json": ("tau_bench", 2, 1),
    "tau2.json": ("tau2", 2, 1),
    "mini/run_a/clock__clock-7.traj.json": ("mini_swe_agent", 1, 0),
    "mini/run_a/clock__clock-8.traj.json": ("mini_swe_agent", 1, 0),
    "mini/bare.traj.json": ("mini_swe_agent", 1, 0),
    "swe_agent/calls.traj": ("swe_agent", 1, 0),
    "swe_agent/text.traj": ("swe_agent", 1, 0),
    "swe_agent/steps.traj": ("swe_agent", 1, 0),
    LAMP: ("browsergym", 1, 0),
    f"{LAMP}/experiment.log": ("browsergym", 1, 0),
    f"{CRASH}/summary_info.json": ("browsergym", 1, 0),
    "claude_code.jsonl": ("claude_code", 2, 4),
    "claude_code_flat.jsonl": ("claude_code", 1, 0),
    "openhands/output.jsonl": ("openhands", 1, 1),
    "openhands/resolver_output.jsonl": ("openhands", 1, 0),
    "otel.json": ("otel", 2, 1),
    "otel_lines.jsonl": ("otel", 1, 2),
    "messages/openai.json": ("messages", 1, 0),
    "messages/openai.jsonl": ("messages", 2, 2),
    "messages/one_per_line.jsonl": ("messages", 1, 1),
    "messages/anthropic.json": ("messages", 1, 0),
    "swe_bench/preds.json": ("swe_bench", 0, 1),
    "swe_bench/all_preds.jsonl": ("swe_bench", 0, 1),
    "swe_bench/report.json": ("swe_bench", 0, 1),
}


def runs(name: str, format: str = "auto") -> list[Imported]:
    return [entry for entry in read(FIXTURES / name, format=format) if isinstance(entry, Imported)]


def skipped(name: str) -> list[tuple[int, str]]:
    return [(entry.line, entry.reason) for entry in read(FIXTURES / name) if isinstance(entry, Skipped)]


def told(run: Trajectory) -> list[tuple[str, list[str], list[tuple[str, str | None, str]]]]:
    """Each step as (what was said, names of calls, what was observed)."""
    return [
        (
            step.action.text,
            [call.name for call in step.action.calls],
            [(seen.source, seen.name, seen.text) for seen in step.observations],
        )
        for step in run.steps
    ]


@pytest.mark.parametrize("name", EVERY)
def test_each_fixture_is_recognised_and_read_to_its_end(name: str) -> None:
    format, good, bad = EVERY[name]
    assert detect(FIXTURES / name) == format
    entries = list(read(FIXTURES / name))
    assert sum(isinstance(entry, Imported) for entry in entries) == good
    assert sum(isinstance(entry, Skipped) for entry in entries) == bad
    assert list(read(FIXTURES / name, format=format)) == entries


def test_no_run_of_any_file_shares_an_id_with_another() -> None:
    ids = [entry.trajectory.id for entry in read(FIXTURES) if isinstance(entry, Imported)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", [name for name in EVERY if "browsergym" not in name])
def test_a_gzipped_copy_is_read_directly_and_is_the_same_run(name: str, tmp_path: Path) -> None:
    folder = tmp_path / (FIXTURES / name).parent.name
    folder.mkdir()
    copy = folder / f"{Path(name).name}.gz"
    copy.write_bytes(gzip.compress((FIXTURES / name).read_bytes()))
    plain = [entry.trajectory.id for entry in runs(name)]
    assert [entry.trajectory.id for entry in read(copy) if isinstance(entry, Imported)] == plain


def test_no_trajectory_holds_the_outcome_or_the_solution() -> None:
    for entry in read(FIXTURES):
        if isinstance(entry, Imported):
            kept = entry.trajectory.model_dump_json()
            assert "SECRET" not in kept
            assert "BOOKKEEPING" not in kept
            assert entry.trajectory.metadata.keys() <= {"source", "run_id", "task_id", "model", "prompt"}


def test_neutral_rows_keep_their_label_in_the_verdict() -> None:
    won, lost, crashed = runs("neutral.jsonl")
    assert won.verdict == Verdict(outcome="success", reward=1.0, reason="stock list", source="ground_truth")
    assert lost.verdict is not None
    assert lost.verdict.outcome == "failure"
    assert crashed.verdict is None
    assert crashed.trajectory.error == "TimeoutError"
    assert won.trajectory.task == "Say whether rye bread is left"
    assert won.trajectory.metadata == {"source": "bakery", "run_id": "r1", "task_id": "rye", "model": "oven-1"}
    assert told(won.trajectory)[1] == ("", ["stock"], [("tool", "stock", "3 loaves")])
    assert told(lost.trajectory)[1] == ("No.", [], [("environment", "exit", "done")])
    rows = [json.loads(line) for line in (FIXTURES / "neutral.jsonl").read_text().splitlines() if '"r1"' in line]
    assert to_messages(won.trajectory) == rows[0]["messages"]
    assert [line for line, _ in skipped("neutral.jsonl")] == [2, 5]
    assert skipped("neutral.jsonl")[1][1] == "the entry has no list of messages"


def test_a_label_added_later_does_not_make_it_another_run(tmp_path: Path) -> None:
    row = {"source": "s", "run_id": "r", "task": "t", "messages": [{"role": "user", "content": "x"}], "success": None}
    path = tmp_path / "a.jsonl"
    entries: list[Imported] = []
    for success in (None, True):
        path.write_text(json.dumps({**row, "success": success, "label_source": "half \ud800"}))
        entries += [entry for entry in read(path) if isinstance(entry, Imported)]
    assert len(entries) == 2
    assert len({entry.trajectory.id for entry in entries}) == 1
    assert entries[1].verdict is not None
    assert entries[1].verdict.reason == "half \ufffd"


def test_tau_bench_episodes_have_their_reward_and_lose_the_solution() -> None:
    won, lost = runs("tau_bench.json")
    assert won.verdict is not None
    assert (won.verdict.outcome, won.verdict.reward) == ("success", 1.0)
    assert lost.verdict is not None
    assert lost.verdict.outcome == "failure"
    assert won.trajectory.task == "You are Ada. You want your invoice resent."
    assert won.trajectory.instructions == "# Billing policy"
    assert told(won.trajectory)[1:] == [
        ("", ["resend"], [("tool", "resend", "sent")]),
        ("Done.", [], [("user", None, "###STOP###")]),
    ]


def test_tau2_keeps_the_users_own_tools_apart_from_the_agents() -> None:
    won, stopped = runs("tau2.json")
    assert won.trajectory.task == "The radio makes no sound."
    assert won.trajectory.instructions == "# Radio policy"
    assert told(won.trajectory)[1:] == [
        ("", ["lookup"], [("tool", "lookup", "no such model")]),
        (
            "Turn the knob.",
            [],
            [
                ("user", None, "[calls turn_knob({})]"),
                ("user", "turn_knob", "sound is on"),
                ("user", None, "Works! ###STOP###"),
            ],
        ),
    ]
    assert won.trajectory.steps[1].observations[0].is_error
    usage = won.trajectory.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens, usage.cost) == (2, 22, 6, 0.25)
    assert stopped.trajectory.error == "max_steps"


def test_mini_swe_agent_runs_have_the_issue_as_task_and_the_report_as_verdict() -> None:
    (entry,) = runs("mini/run_a/clock__clock-7.traj.json")
    run = entry.trajectory
    assert run.task == "The clock is an hour late"
    assert told(run)[1:] == [
        ("Look first.", ["bash"], [("tool", "bash", "<returncode>0</returncode>\n<output>\nclock\n</output>")]),
        ("Submit.", ["bash"], [("environment", "exit", "diff --git a/clock b/clock")]),
    ]
    assert run.metadata == {
        "source": "mini-swe-agent",
        "run_id": "run_a",
        "task_id": "clock__clock-7",
        "model": "oven-1",
    }
    assert (run.usage.requests, run.usage.cost) == (2, 0.5)
    assert run.error is None
    assert entry.verdict is not None
    assert (entry.verdict.outcome, entry.verdict.reason) == ("success", "SWE-bench report run_report.json")


def test_the_patch_of_a_mini_swe_agent_run_is_its_answer_unless_its_last_message_shows_it(tmp_path: Path) -> None:
    whole = json.loads((FIXTURES / "mini/run_a/clock__clock-7.traj.json").read_text())
    path = tmp_path / "clock__clock-7.traj.json"
    answers = list[str | None]()
    for messages in (whole["messages"], whole["messages"][:-1]):
        path.write_text(json.dumps(whole | {"messages": messages}))
        answers += [entry.trajectory.answer for entry in read(path) if isinstance(entry, Imported)]
    assert answers == [None, "diff --git a/clock b/clock"]


def test_a_mini_swe_agent_run_that_hit_a_limit_says_so_and_its_output_is_the_environments() -> None:
    (entry,) = runs("mini/run_a/clock__clock-8.traj.json")
    assert entry.trajectory.error == "LimitsExceeded"
    assert entry.trajectory.task == "The clock stops"
    assert entry.trajectory.steps[1].observations[0].source == "environment"
    assert entry.verdict is not None
    assert entry.verdict.outcome == "failure"
    (bare,) = runs("mini/bare.traj.json")
    assert (bare.trajectory.task, bare.verdict) == ("Late", None)


def test_reports_that_disagree_say_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run_a"
    shutil.copytree(FIXTURES / "mini" / "run_a", folder)
    (folder / "other_report.json").write_text(json.dumps({"resolved_ids": [], "unresolved_ids": ["clock__clock-7"]}))
    verdicts = {e.trajectory.metadata["task_id"]: e.verdict for e in read(folder) if isinstance(e, Imported)}
    assert verdicts["clock__clock-7"] is None
    assert verdicts["clock__clock-8"] is not None


def test_swe_agent_files_are_read_in_each_of_their_shapes() -> None:
    (calls,), (text,), (steps,) = (runs(f"swe_agent/{name}.traj") for name in ("calls", "text", "steps"))
    assert {run.trajectory.task for run in (calls, text, steps)} == {"Door squeaks"}
    assert told(calls.trajectory)[1:] == [
        ("Open the file.", ["open"], [("tool", "open", "1: squeak()")]),
        ("Submit.", ["submit"], [("environment", None, "submitted")]),
    ]
    assert calls.trajectory.answer == "diff --git a/door.py b/door.py"
    assert "demonstration" not in calls.trajectory.model_dump_json()
    for run in (text.trajectory, steps.trajectory):
        assert run.instructions == "SETTING"
        assert run.steps[1].thought == "Look."
        assert told(run)[1] == ("ls", [], [("environment", None, "door.py")])
    assert (calls.trajectory.error, text.trajectory.error) == (None, "exit_cost")


def test_browsergym_folders_are_read_from_their_text_alone() -> None:
    (entry,) = runs(LAMP)
    run = entry.trajectory
    assert run.task == "Buy a lamp"
    assert run.instructions == "# Instructions\nAct.\n\n# Action Space\nclick(bid)"
    assert [step.action.text for step in run.steps] == ["", "Go to the lamp.\n\n```click('1')```", "```click('2')```"]
    first, second = run.steps[0].observations[0], run.steps[1].observations[0]
    assert (first.source, second.source) == ("user", "environment")
    assert "# Goal\nforged heading" in first.text
    assert "# Error message from last action\nTimeoutError" in second.text
    assert "History" not in second.text
    assert run.metadata["task_id"] == "shop.7"
    assert entry.verdict is not None
    assert (entry.verdict.outcome, entry.verdict.reward) == ("success", 1.0)


def test_a_browsergym_run_that_crashed_has_an_error_and_no_verdict() -> None:
    (entry,) = runs(CRASH)
    assert entry.trajectory.error == "Exception uncaught: TimeoutError"
    assert entry.verdict is None


def test_a_browsergym_folder_without_its_log_is_skipped_with_the_reason(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / LAMP / "summary_info.json", tmp_path)
    (entry,) = read(tmp_path)
    assert isinstance(entry, Skipped)
    assert entry.reason.startswith("there is no experiment.log beside summary_info.json")


def test_a_claude_code_session_is_one_run_and_its_sub_agent_another() -> None:
    main, helper = runs("claude_code.jsonl")
    run = main.trajectory
    assert run.task == "Bake a loaf"
    assert run.answer == "The loaf is baked."
    assert [step.thought for step in run.steps] == ["", "Flour first.", ""]
    assert told(run)[1] == (
        "I will look.",
        ["Bash", "Task"],
        [
            ("tool", "Bash", "flour"),
            ("tool", "Task", "In the fridge."),
            ("environment", "claude-code", "Stop hook feedback: not baked yet"),
        ],
    )
    assert (run.usage.requests, run.usage.input_tokens, run.usage.output_tokens) == (2, 30, 6)
    assert run.metadata == {"source": "claude-code", "run_id": "s-1", "model": "oven-1", "prompt": "u2"}
    assert (helper.trajectory.task, helper.trajectory.answer) == ("Find yeast", "In the fridge.")
    (torn, reason), *others = skipped("claude_code.jsonl")
    assert torn == 15
    assert reason.startswith("not valid JSON")
    assert others == [
        (16, "the user line has no message content"),
        (17, "messages[0] has a tool call without a name"),
        (18, "not a line of a transcript: an object with a type is expected"),
    ]


def test_a_greeting_is_not_the_task_of_an_imported_run(tmp_path: Path) -> None:
    said = [("user", "Hi there!"), ("assistant", "Hello."), ("user", "Cancel my order"), ("assistant", "Done.")]
    messages = [{"role": role, "content": text} for role, text in said]
    files: dict[str, Any] = {
        "list.json": messages,
        "session.jsonl": [
            {"type": role, "sessionId": "s", "uuid": str(n), "message": message}
            for n, (role, message) in enumerate(zip((r for r, _ in said), messages, strict=True))
        ],
    }
    for name, content in files.items():
        lines = content if name.endswith(".jsonl") else [content]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        (entry,) = read(tmp_path / name)
        assert isinstance(entry, Imported), entry
        assert entry.trajectory.task == "Cancel my order", name
    (tmp_path / "named.jsonl").write_text(json.dumps({"task": "Hi", "messages": messages}), encoding="utf-8")
    (entry,) = read(tmp_path / "named.jsonl")
    assert isinstance(entry, Imported)
    assert entry.trajectory.task == "Hi"


def test_a_claude_code_session_that_ended_in_an_api_error_says_so() -> None:
    (entry,) = runs("claude_code_flat.jsonl")
    assert entry.trajectory.task == "Bake a cake"
    assert entry.trajectory.error == "API Error: overloaded"


def test_openhands_events_become_turns_and_internal_ones_are_left_out() -> None:
    (entry,) = runs("openhands/output.jsonl")
    run = entry.trajectory
    assert run.task == "The oven is cold"
    assert run.instructions == "You are OpenHands."
    assert told(run)[1:] == [
        ("", ["execute_bash"], [("tool", "execute_bash", "no rule\n[exit code 2]")]),
        ("It is warm.", [], []),
    ]
    assert run.steps[1].thought == "Build it."
    assert run.steps[1].action.calls[0].arguments == {"command": "make"}
    assert entry.verdict is not None
    assert (entry.verdict.outcome, entry.verdict.source) == ("failure", "ground_truth")
    assert run.usage.cost == 0.2


def test_what_an_openhands_resolver_thought_of_its_run_is_an_opinion() -> None:
    (entry,) = runs("openhands/resolver_output.jsonl")
    assert entry.verdict == Verdict(outcome="success", reason="It looks warm", source="judge")
    assert entry.trajectory.metadata["task_id"] == "o/oven#5"
    assert told(entry.trajectory)[1] == ("", ["run"], [("tool", "error", "boom")])
    assert entry.trajectory.steps[1].observations[0].is_error
    assert entry.trajectory.answer == "Done."


def test_a_trace_becomes_one_run_for_each_agent_in_it() -> None:
    main, helper = runs("otel.json")
    run = main.trajectory
    assert run.instructions == "You garden."
    assert run.task == "Water the plants"
    assert told(run)[1] == (
        "",
        ["water", "ask"],
        [("tool", "ask", "nobody home"), ("tool", "water", "watered")],
    )
    assert run.steps[1].observations[0].is_error
    assert run.answer == "All plants are watered."
    assert (run.usage.requests, run.usage.input_tokens, run.usage.output_tokens) == (2, 29, 7)
    assert run.metadata["task_id"] == "garden"
    assert (helper.trajectory.task, helper.trajectory.answer) == ("Anybody home?", "No.")
    assert "switched off" in skipped("otel.json")[0][1]


def test_message_lists_come_back_as_the_very_messages_of_the_file() -> None:
    (openai,) = runs("messages/openai.json")
    assert to_messages(openai.trajectory) == json.loads((FIXTURES / "messages/openai.json").read_text())
    (anthropic,) = runs("messages/anthropic.json")
    source = json.loads((FIXTURES / "messages/anthropic.json").read_text())
    assert to_messages(anthropic.trajectory) == source["messages"]
    assert anthropic.trajectory.instructions == "You bake."
    labelled, plain = runs("messages/openai.jsonl")
    assert labelled.verdict is not None
    assert plain.verdict is None
    assert [line for line, _ in skipped("messages/openai.jsonl")] == [3, 4]
    assert skipped("messages/openai.jsonl")[1][1] == "messages[1] is 7, not a message: each needs a role and content"


def test_a_file_with_one_message_a_line_is_one_conversation() -> None:
    (entry,) = runs("messages/one_per_line.jsonl")
    assert entry.trajectory.answer == "Yes, three loaves."
    assert [line for line, _ in skipped("messages/one_per_line.jsonl")] == [4]


def test_a_run_without_messages_or_task_is_skipped_with_the_reason(tmp_path: Path) -> None:
    assert skipped("tau_bench.json") == [(3, "the run has no messages")]
    (tmp_path / "a.json").write_text(json.dumps([{"role": "assistant", "content": "x"}]))
    (entry,) = read(tmp_path / "a.json")
    assert isinstance(entry, Skipped)
    assert entry.reason == "the run does not say what its task was"


def test_predictions_say_in_one_sentence_that_they_hold_no_runs() -> None:
    ((_, reason),) = skipped("swe_bench/all_preds.jsonl")
    assert reason.startswith("SWE-bench predictions and reports hold no runs")


def test_a_folder_is_walked_and_what_holds_no_runs_is_passed_over(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES, tmp_path / "all")
    (tmp_path / "all" / "notes.txt").write_text("nothing")
    (tmp_path / "all" / "package.json").write_text('{"name": "x"}')
    (tmp_path / "all" / ".hidden").mkdir()
    shutil.copy(FIXTURES / "neutral.jsonl", tmp_path / "all" / ".hidden")
    files = [name for name in EVERY if "browsergym" not in name] + [LAMP, CRASH]
    expected = sum(EVERY[name][1] for name in files if name in EVERY) + 1
    assert sum(isinstance(entry, Imported) for entry in read(tmp_path / "all")) == expected
    only = [entry for entry in read(tmp_path / "all", format="tau2") if isinstance(entry, Imported)]
    assert len(only) == 2


def test_what_cannot_be_read_in_a_folder_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    shutil.copy(FIXTURES / "neutral.jsonl", tmp_path / "good.jsonl")
    (tmp_path / "broken.json").write_text('[{"task": "x", "mess', encoding="utf-8")
    (tmp_path / "sub" / "text.jsonl").write_text("nothing\nat all\n", encoding="utf-8")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"task": "t"}' * 500)[:40])
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "settings.json").write_text('{"name": "x"}', encoding="utf-8")
    (tmp_path / "empty.jsonl").touch()
    for format in ("auto", "neutral"):
        entries = list(read(tmp_path, format=format))
        broken = {
            e.path.name: e.reason
            for e in entries
            if isinstance(e, Skipped) and not e.unknown and e.path.name != "good.jsonl"
        }
        assert broken.keys() == {"broken.json", "text.jsonl", "cut.jsonl.gz", "gone.jsonl"}
        assert "not valid JSON" in broken["text.jsonl"]
        assert "cannot be read further" in broken["cut.jsonl.gz"]
        assert "No such file" in broken["gone.jsonl"]
        assert sum(isinstance(entry, Imported) for entry in entries) == 3
    unknown = {e.path.name: e.reason for e in read(tmp_path) if isinstance(e, Skipped) and e.unknown}
    assert unknown.keys() == {"settings.json", "empty.jsonl"}
    assert "is in no known format" in unknown["settings.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="a file of Linux that opens and cannot be read")
def test_a_file_that_opens_and_cannot_be_read_is_named(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "neutral.jsonl", tmp_path / "good.jsonl")
    (tmp_path / "sick.jsonl").symlink_to("/proc/self/mem")
    found = {e.path.name: e.reason for e in read(tmp_path) if isinstance(e, Skipped)}
    assert "the file cannot be read further" in found["sick.jsonl"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read everything")
def test_what_one_may_not_read_is_named(tmp_path: Path) -> None:
    for name in ("closed", "locked"):
        (tmp_path / name).mkdir()
        shutil.copy(FIXTURES / "neutral.jsonl", tmp_path / name / "runs.jsonl")
    shutil.copy(FIXTURES / "neutral.jsonl", tmp_path / "good.jsonl")
    (tmp_path / "secret.jsonl").touch(mode=0o000)
    (tmp_path / "closed").chmod(0o000)
    (tmp_path / "locked").chmod(0o600)
    found = {str(e.path.relative_to(tmp_path)): e.reason for e in read(tmp_path) if isinstance(e, Skipped)}
    (tmp_path / "closed").chmod(0o700), (tmp_path / "locked").chmod(0o700)
    assert all("Permission denied" in found[name] for name in ("secret.jsonl", "closed", "locked/runs.jsonl"))


def test_a_folder_of_nothing_but_broken_files_says_so_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("nothing", encoding="utf-8")
    with pytest.raises(FormatError, match=r"is a run .*, and 1 file or folder cannot be read: .*broken\.jsonl"):
        list(read(tmp_path))


def test_what_cannot_be_imported_at_all_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "broken.json").write_text('{\n "a": 1,\n "b" 2}')
    for path, sentence in {
        "missing": "there is no file or folder",
        "empty": "is a run in a known format",
        "empty.jsonl": "is in no known format: it is empty",
        "other.json": "is in no known format: known are",
        "broken.json": "line 3: not valid JSON",
    }.items():
        with pytest.raises(FormatError, match=sentence):
            list(read(tmp_path / path))
    with pytest.raises(FormatError, match="there is no format 'csv': use auto or one of"):
        read(tmp_path / "other.json", format="csv")
    with pytest.raises(FormatError, match="folder of files"):
        detect(tmp_path / "empty")


def test_a_first_line_that_is_broken_does_not_hide_the_format(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"task": "cut\n' + (FIXTURES / "neutral.jsonl").read_text())
    entries = list(read(path))
    assert [entry.line for entry in entries if isinstance(entry, Skipped)] == [1, 3, 6]
    assert sum(isinstance(entry, Imported) for entry in entries) == 3


@pytest.mark.full
def test_a_damaged_archive_gives_what_it_holds_and_says_where_it_ends(tmp_path: Path) -> None:
    row = {"task": "t", "messages": [{"role": "user", "content": "x"}]}
    lines = "".join(json.dumps({**row, "run_id": str(n), "noise": f"{n * 7919:x}"}) + "\n" for n in range(1_000))
    packed = gzip.compress(lines.encode())
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])
    entries = list(read(path))
    assert len(entries) > 200
    last = entries[-1]
    assert isinstance(last, Skipped)
    assert last.line == len(entries)
    assert "the file cannot be read further" in last.reason


def test_json_lines_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    row = {"task": "t", "messages": [{"role": "user", "content": "x"}]}
    path.write_text(json.dumps(row) + "\n" + " " * 2**19 + "\n" + json.dumps({**row, "task": "old"}) + "\n")
    entries = read(path)
    first = next(entries)
    path.write_text(path.read_text().replace('"old"', '"new"'))
    assert isinstance(first, Imported)
    assert [entry.trajectory.task for entry in entries if isinstance(entry, Imported)] == ["new"]


def test_every_format_says_in_one_line_what_it_is() -> None:
    assert len(FORMATS) == 26
    assert all(name.isidentifier() and description and "\n" not in description for name, description in FORMATS)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_says_how_the_file_is_written(encoding: str, packed: bool, tmp_path: Path) -> None:
    row = {"task": "naïve 修", "messages": [{"role": "user", "content": "q"}], "success": True}
    raw = (json.dumps(row, ensure_ascii=False) + "\r\n").encode(encoding)
    more = (json.dumps({**row, "run_id": "b"}, ensure_ascii=False) + "\r\n").encode(encoding)
    lines = raw + more.removeprefix("".encode(encoding))
    path = tmp_path / "runs.jsonl"
    path.write_bytes(gzip.compress(lines) if packed else lines)
    assert [e.trajectory.task for e in read(path) if isinstance(e, Imported)] == ["naïve 修"] * 2


def test_whole_documents_in_another_encoding_are_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    rows = [{"task": "修", "messages": [{"role": "user", "content": "q"}]}]
    path.write_bytes(json.dumps(rows, indent=2, ensure_ascii=False).encode("utf-16"))
    assert [e.trajectory.task for e in read(path) if isinstance(e, Imported)] == ["修"]


def test_a_number_of_thousands_of_digits_is_named_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    good = '{"task": "t", "messages": [{"role": "user", "content": "q"}]}'
    path.write_text(good + "\n" + '{"task": "t", "messages": [], "reward": ' + "9" * 5000 + "}\n", encoding="utf-8")
    skipped = next(e for e in read(path) if isinstance(e, Skipped))
    assert skipped.reason == "not valid JSON: a number of thousands of digits"


ROW: dict[str, Any] = {"task": "t", "messages": [{"role": "user", "content": "q"}]}


def one(path: Path, row: dict[str, Any], **how: Any) -> Imported | Skipped:
    """What a file of a line that is not JSON and then `row` gives for `row`."""
    path.write_text("cut off {\n" + json.dumps({**ROW, **row}), encoding="utf-8")
    _, entry = read(path, **how)
    return entry


@pytest.mark.parametrize(
    ("success", "outcome"), [(1, "success"), (0, "failure"), (1.0, "success"), (None, None), (math.nan, None)]
)
def test_success_may_be_written_as_one_or_zero(success: float, outcome: str | None, tmp_path: Path) -> None:
    entry = one(tmp_path / "runs.jsonl", {"success": success})
    assert isinstance(entry, Imported)
    assert (entry.verdict.outcome if entry.verdict else None) == outcome


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"success": "true"}, 'success is "true": write true, false, or null'),
        ({"success": "yes"}, 'success is "yes": write'),
        ({"success": ""}, 'success is "": write'),
        ({"success": 2}, "success is 2: write"),
        ({"success": 0.5}, "success is 0.5: write"),
        ({"success": ["true"]}, "success is a list: write"),
        ({"success": {}}, "success is an object: write"),
        ({"reward": "0.9"}, 'reward is "0.9": write a finite number, or null'),
        ({"reward": True}, "reward is true: write"),
        ({"reward": math.inf}, "reward is Infinity: write"),
        ({"success": True, "reward": "1"}, 'reward is "1": write'),
        ({"success": "x" * 100_000}, 'success is "xxx'),
    ],
)
@pytest.mark.parametrize("format", ["neutral", "messages"])
def test_an_outcome_of_another_type_is_an_error_that_names_file_line_and_value(
    row: dict[str, Any], said: str, format: str, tmp_path: Path
) -> None:
    entry = one(tmp_path / "runs.jsonl", row, format=format)
    assert isinstance(entry, Skipped)
    assert (entry.path, entry.line) == (tmp_path / "runs.jsonl", 2)
    assert entry.reason.startswith(said)
    assert len(entry.reason) < 200


def test_an_openhands_result_of_another_type_is_an_error(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (FIXTURES / "openhands/resolver_output.jsonl").read_text().splitlines()]
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps({**rows[0], "success": "true"}), encoding="utf-8")
    (entry,) = read(path)
    assert isinstance(entry, Skipped)
    assert entry.reason.startswith('success is "true"')


@pytest.mark.parametrize(
    ("row", "success_at", "outcome", "reward"),
    [
        ({"reward": 0.9}, 1.0, "failure", 0.9),
        ({"reward": 0.9}, 0.5, "success", 0.9),
        ({"reward": 10}, 11.0, "failure", 10.0),
        ({"success": True, "reward": 0.9}, 1.0, "success", None),
        ({"success": True, "reward": 0.9}, 0.9, "success", 0.9),
        ({"success": False, "reward": 0.9}, 0.5, "failure", None),
        ({"success": False, "reward": 0.9}, 1.0, "failure", 0.9),
    ],
)
def test_a_graded_reward_is_read_by_the_threshold_and_never_contradicts_what_the_file_states(
    row: dict[str, Any], success_at: float, outcome: str, reward: float | None, tmp_path: Path
) -> None:
    entry = one(tmp_path / "runs.jsonl", row, success_at=success_at)
    assert isinstance(entry, Imported)
    assert entry.verdict is not None
    assert (entry.verdict.outcome, entry.verdict.reward) == (outcome, reward)


def test_rewards_of_benchmarks_are_read_by_the_threshold_too() -> None:
    for name in ("tau_bench.json", "tau2.json", LAMP):
        entries = [entry for entry in read(FIXTURES / name, success_at=-1) if isinstance(entry, Imported)]
        assert [entry.verdict.outcome for entry in entries if entry.verdict] == ["success"] * len(entries)


@pytest.mark.parametrize("text", ["0", "[]", "{}"])
def test_a_file_of_a_byte_or_two_is_no_bank(text: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        list(read(path))
    assert "bank" not in str(caught.value)
