"""A cure that one session found is told in the next one, when the same command fails in the same way, and measured."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from waiting import until

from lessonbank import ReasoningBank
from lessonbank.bank.recall_again import cures_of
from lessonbank.contracts.records import Recall, Run, Trajectory, Verdict
from lessonbank.guard.hazards import OUTPUT
from lessonbank.hosts.cures import CureExtractor, Cures
from lessonbank.hosts.resident import Resident

from .conftest import Hooks, called, hung_up, prompt, said
from .conftest import learned as learned_of

pytestmark = pytest.mark.full
PROTO = "Exit code 2\nModuleNotFoundError: No module named 'billing.rates_pb'\nmake: *** [test] Error 1"
SCOPE = cures_of("team")
Call = tuple[str, str]
FAILED: Call = ("make test", PROTO)


@pytest.fixture(autouse=True)
def shown_at_once(hooks: Hooks) -> None:
    """Lessons of the person's own sessions, as `install` writes it."""
    hooks.options = {"trusted": None, "own": "true"}


def failed(command: str = "make test", printed: str = PROTO, *, session: str = "s-2") -> dict[str, Any]:
    told = {"hook_event_name": "PostToolUseFailure", "session_id": session, "cwd": "/", "tool_name": "Bash"}
    return {**told, "tool_input": {"command": command}, "error": printed, "is_interrupt": False}


def learned(hooks: Hooks, bank: ReasoningBank, resident: Resident, session: str, *calls: Call) -> None:
    """A session of Claude Code that made these calls ends, and is learned."""
    lines = [said(session, "user", f"Add a column {session}")]
    for number, (command, printed) in enumerate(calls):
        lines += called(session, f"c{number}", command, printed, failed=printed.startswith("Exit code"))
    learned_of(hooks, bank, resident, session, lines)


def proto(hooks: Hooks, bank: ReasoningBank, resident: Resident, session: str = "s-1") -> None:
    learned(hooks, bank, resident, session, FAILED, ("make proto", "ok"), ("make test", "3 passed"))


def recalls(bank: ReasoningBank) -> tuple[Recall, ...]:
    return bank.scoped(SCOPE).recalls.list()


def test_a_cure_is_told_when_the_command_fails_again_whatever_the_task_and_once(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    assert hooks(failed()) == ""
    proto(hooks, bank, resident)
    told = json.loads(hooks(failed("cd app && make test")))
    text = told["hookSpecificOutput"]["additionalContext"]
    assert told["hookSpecificOutput"]["hookEventName"] == "PostToolUseFailure"
    assert told["systemMessage"] == "lessonbank: a cure is told: make test"
    assert "`make test` failed here before" in text
    assert "`make proto` went through, and then it did." in text
    assert text.splitlines()[0] == "<lessonbank>"
    assert [line[:14] for line in text.rstrip().splitlines()[-2:]] == ["<<<end lessons", "</lessonbank>"]
    assert "ModuleNotFoundError" not in text
    (lesson,) = bank.scoped(SCOPE).lessons.list()
    assert len(lesson.text) <= 200
    assert lesson.place == "make test"
    assert hooks(failed()) == ""
    assert len(recalls(bank)) == 1
    assert hooks(failed(session="s-3")) != ""


@pytest.mark.parametrize(
    "event",
    [
        failed(printed="Exit code 2\nE   assert 1 == 2"),
        failed("just lint"),
        failed("make test | tail"),
        {**failed(), "is_interrupt": True},
        failed(printed="The user doesn't want to proceed with this tool use"),
        {**failed(), "tool_name": "Read"},
        {**failed(), "tool_input": {}},
        {**failed(), "agent_id": "sub"},
    ],
)
def test_another_failure_gets_nothing(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, event: dict[str, Any]
) -> None:
    proto(hooks, bank, resident)
    assert hooks(event) == ""
    assert recalls(bank) == ()


def test_the_same_cure_of_several_tasks_is_one_lesson_with_its_count(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    for number in range(3):
        proto(hooks, bank, resident, f"s-{number}")
    (lesson,) = bank.scoped(SCOPE).lessons.list()
    assert len(bank.scoped(SCOPE).lessons.repeats(lesson.id)) == 2


@pytest.mark.parametrize("between", [("npm ci", "make seed"), ("make seed",)])
def test_a_cure_that_one_session_does_not_show_is_told_when_a_second_one_found_it(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, between: tuple[str, ...]
) -> None:
    said, needed = "Exit code 1\nerror: run `make seed` first", ("make seed", "make test")
    for number, before in enumerate((between, ("make seed",))):
        calls = [(command, "ok") for command in (*before, *needed[1:])]
        learned(hooks, bank, resident, f"s-{number}", ("make test", said), *calls)
        told = hooks(failed(printed=said, session=f"t-{number}"))
        assert ("`make seed` went through" in told) == (number == 1 or between == ("make seed",))


def test_a_cure_of_a_bank_of_before_that_the_output_named_still_waits(bank: ReasoningBank) -> None:
    record = {"failed": "gen ts", "cure": "gen ts --out a", "program": "gen", "instead": True, "said": True}
    run = Trajectory(task="gen failed: --out is required", metadata={"cure": record})
    extracted = asyncio.run(CureExtractor()([Run(trajectory=run, verdict=Verdict(outcome="success", source="judge"))]))
    assert extracted.lessons[0].rests_on == OUTPUT


@pytest.mark.parametrize(
    ("after", "outcome"),
    [((("make proto", "ok"), ("make test", "3 passed")), "success"), ((("ls", "a"),), "failure")],
)
def test_what_became_of_the_command_settles_the_recall(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, after: tuple[Call, ...], outcome: str
) -> None:
    proto(hooks, bank, resident)
    assert hooks(failed()) != ""
    learned(hooks, bank, resident, "s-2", FAILED, *after)
    (settled,) = bank.scoped(SCOPE).recalls.list(settled=True)
    assert settled.id == recalls(bank)[0].id
    runs = {run.recall_id: run for run in bank.scoped(SCOPE).runs.list()}
    assert runs[settled.id].verdict.outcome == outcome
    assert len(runs[settled.id].trajectory.steps) == (3 if outcome == "success" else 1)


def test_the_person_is_told_of_a_cure_that_is_kept_back_to_measure_it(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    proto(hooks, bank, resident)
    sessions = resident._sessions  # pyright: ignore[reportPrivateUsage]
    with Cures.of({"bank": str(hooks.folder / "bank.db"), "holdout": "0.95"}, hooks.spool) as sessions.cures:
        answers = [json.loads(hooks(failed(session=f"s-{number}"))) for number in range(2, 8)]
    held = [answer for answer in answers if "hookSpecificOutput" not in answer]
    line = "lessonbank: a cure is known, and kept back this time to measure what it does: make test"
    assert held
    assert all(answer == {"systemMessage": line} for answer in held)


def test_a_cure_that_was_not_printed_is_told_at_the_next_failure(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    proto(hooks, bank, resident)
    told = {"do": "cure", "host": "claude-code", "session": "s-2", "scope": "team", "folder": "/"}
    assert b"make proto" in hung_up(**told, command="make test", printed=PROTO, retrieve={"own": "true"})
    printed = until(lambda: hooks(failed()))
    assert "make proto" in printed


def test_commands_that_fail_at_once_in_a_session_are_told_their_cure_once(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    proto(hooks, bank, resident)
    learned(hooks, bank, resident, "s-9", ("make lint", PROTO), ("make proto", "ok"), ("make lint", "ok"))
    events = [failed(command) for command in ("make test", "make lint") * 6]
    answers = [hooks.finished(process) for process in [hooks.start(event) for event in events]]
    assert sorted(json.loads(one)["systemMessage"].rpartition(" ")[2] for one in answers if one) == ["lint", "test"]
    assert until(lambda: len(json.loads((hooks.spool / "s-2.cures").read_bytes())) == 2)  # after the hooks ended


def test_an_erased_session_leaves_no_receipt_of_a_cure(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    proto(hooks, bank, resident)
    assert hooks(failed()) != ""
    assert hooks(failed(session="s-3")) != ""
    assert "erased: " in hooks(prompt("/lessonbank erase this session", session="s-2"))
    assert [recall.metadata["session"] for recall in recalls(bank)] == ["s-3"]


def test_a_session_whose_receipt_was_erased_is_learned(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    proto(hooks, bank, resident)
    assert hooks(failed()) != ""
    bank.scoped(SCOPE).admin.purge(recall=[one.id for one in recalls(bank)], reason="asked for")
    learned(hooks, bank, resident, "s-2", FAILED, ("make proto", "ok"), ("make test", "3 passed"))
    assert len(bank.scoped(SCOPE).runs.list()) == 2


@pytest.mark.parametrize("cure", ["git push --force", "sudo make proto", "rm -rf build", "git commit --no-verify -m x"])
def test_a_cure_that_weakens_a_check_or_destroys_waits_for_a_person(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, cure: str
) -> None:
    learned(hooks, bank, resident, "s-1", FAILED, (cure, "ok"), ("make test", "3 passed"))
    (lesson,) = bank.scoped(SCOPE).lessons.list()
    assert hooks(failed()) == ""
    assert recalls(bank) == ()
    bank.scoped(SCOPE).lessons.approve(lesson.id, by="Ana")
    assert cure in json.loads(hooks(failed()))["hookSpecificOutput"]["additionalContext"]


def test_with_trusted_every_cure_waits_for_a_person(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    hooks.options = {"trusted": "true", "own": "true"}
    proto(hooks, bank, resident)
    assert hooks(failed()) == ""


def test_gemini_cli_tells_its_exit_code_in_the_output(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    proto(hooks, bank, resident)
    output = "Output: ModuleNotFoundError: No module named 'billing.rates_pb'\nExit Code: {}\nProcess Group PGID: 7"
    event: dict[str, Any] = {"hook_event_name": "AfterTool", "session_id": "g-1", "cwd": "/"}
    event |= {"tool_name": "run_shell_command", "tool_input": {"command": "make test"}}
    assert hooks({**event, "tool_response": {"llmContent": output.format(0)}}, host="gemini-cli") == ""
    counted = "\n".join([PROTO, *map(str, range(1000, 1200)), "the last one"])
    assert hooks({**event, "tool_response": {"llmContent": f"Output: {counted}"}}, host="gemini-cli") == ""
    told = json.loads(hooks({**event, "tool_response": {"llmContent": output.format(2)}}, host="gemini-cli"))
    assert "make proto" in told["hookSpecificOutput"]["additionalContext"]
    assert told["hookSpecificOutput"]["hookEventName"] == "AfterTool"


def test_what_gemini_cli_and_qwen_code_write_around_an_output_is_not_taken_for_its_last_line(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    """Where no line of it looks like an error, the last one says what was wrong."""
    printed = "make: no build yet\nmake: *** [Makefile:2: test] Error 2"
    calls = (("make test", f"Exit code 2\n{printed}"), ("make build", "ok"), ("make test", "3 passed"))
    learned(hooks, bank, resident, "s-1", *calls)
    told = f"Output: {printed}\nExit Code: 2\nProcess Group PGID: 7"
    event = {**failed(), "tool_name": "run_shell_command", "error": f"Command: make test\nDirectory: .\n{told}"}
    assert "make build" in hooks({**event, "session_id": "q-1"}, host="qwen-code")
    del event["error"]
    event |= {"hook_event_name": "AfterTool", "session_id": "g-1"}
    response = {"llmContent": f"<untrusted_context>\n{told}\n</untrusted_context>"}
    assert "make build" in hooks({**event, "tool_response": response}, host="gemini-cli")


def test_qwen_code_tells_its_exit_code_in_the_error(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    proto(hooks, bank, resident)
    said = "Command: make test\nDirectory: (root)\nOutput: ModuleNotFoundError: No module named 'billing.rates_pb'\n"
    said += "Error: (none)\nExit Code: {}\nSignal: (none)"
    event = {**failed(), "tool_name": "run_shell_command"}
    assert hooks({**event, "error": said.format(0)}, host="qwen-code") == ""
    assert "make proto" in hooks({**event, "error": said.format(2)}, host="qwen-code")


PUSH = "git add a.md && git commit -m 'A page' && git push origin fix-1"
NO_UPSTREAM = "fatal: The current branch fix-1 has no upstream branch."
MAKES = "codegen schema > /tmp/s.json && rg -n x /tmp/s.json | head -3"
NO_FOLDER = "error: the folder is not known"
WROTE = "cat > docs/{}.md <<'E'\n# {}\nE"


@pytest.mark.parametrize(
    ("line", "printed", "after", "later", "told"),
    [
        (PUSH, NO_UPSTREAM, ["git push -u origin fix-1"], "cd app && git push origin fix-1", "git push -u origin"),
        (MAKES, NO_FOLDER, ["mkdir -p /tmp/s && codegen schema --out /tmp/s"], MAKES, "--out /tmp/s"),
        (
            WROTE.format("a", "A"),
            "bash: docs/a.md: No such file or directory",
            ["cp -r skeleton docs", WROTE.format("a", "A")],
            WROTE.format("b", "Another"),
            "cp -r skeleton",
        ),
    ],
)
def test_a_cure_of_a_command_in_a_line_is_told_at_the_next_failure(
    hooks: Hooks,
    resident: Resident,
    bank: ReasoningBank,
    line: str,
    printed: str,
    after: list[str],
    later: str,
    told: str,
) -> None:
    learned(hooks, bank, resident, "s-1", (line, f"Exit code 1\n{printed}"), *((one, "done") for one in after))
    assert told in hooks(failed(later, f"Exit code 1\n{printed.replace('docs/a.md', 'docs/b.md')}"))


def test_codex_writes_the_exit_code_into_its_file_before_it_asks(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    proto(hooks, bank, resident)
    rollout = hooks.folder / "rollout.jsonl"
    printed = PROTO.removeprefix("Exit code 2\n")
    event = {**failed(), "hook_event_name": "PostToolUse", "tool_response": printed, "tool_use_id": "call_7"}
    event = {**event, "error": None, "transcript_path": str(rollout)}

    def told(code: int, call: str = "call_7") -> str:
        item = {"type": "CommandExecution", "id": call, "exit_code": code}
        line = {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}
        rollout.write_text(f'{json.dumps(line)}\n{{"type": "event_msg", "payload": {{"call_id": "call_7"}}}}\n')
        return hooks(event, host="codex")

    assert hooks(event, host="codex") == ""
    assert told(0) == ""
    assert told(2, call="call_70") == ""
    assert "make proto" in told(2)
