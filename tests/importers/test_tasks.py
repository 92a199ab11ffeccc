"""Several tasks in one session are several runs, each named by its own prompt, and nothing else is a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, read

from .test_coding_agents import opencode_database

FIRST = "Add a discount to the cart"
PASSES = ("pytest -q", "3 passed in 0.1s")


class Lines:
    """A session of Claude Code being written."""

    def __init__(self, session: str = "s-1") -> None:
        self.session, self.rows, self._calls = session, list[dict[str, Any]](), 0

    def line(self, role: str, content: Any, **more: Any) -> Lines:
        told = {"type": role, "sessionId": self.session, "uuid": f"u{len(self.rows)}"}
        self.rows.append({**told, "message": {"role": role, "content": content}, **more})
        return self

    def asks(self, text: str) -> Lines:
        return self.line("user", text)

    def says(self, text: str) -> Lines:
        return self.line("assistant", [{"type": "text", "text": text}])

    def does(self, name: str, given: dict[str, Any], printed: str, *, failed: bool = False) -> Lines:
        self._calls += 1
        id = f"c{self._calls}"
        self.line("assistant", [{"type": "tool_use", "id": id, "name": name, "input": given}])
        result = {"type": "tool_result", "tool_use_id": id, "content": printed, "is_error": failed}
        return self.line("user", [result])

    def works(self, said: str = "Done.") -> Lines:
        """An edit, and tests that pass."""
        self.does("Edit", {"file_path": "a.py"}, "ok").does("Bash", {"command": PASSES[0]}, PASSES[1])
        return self.says(said)

    def write(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(row) + "\n" for row in self.rows), encoding="utf-8")
        return path


def runs(path: Path) -> list[Imported]:
    return [entry for entry in read(path) if isinstance(entry, Imported)]


def tasks(path: Path) -> list[tuple[str, str | None]]:
    return [(one.trajectory.task, one.verdict.outcome if one.verdict else None) for one in runs(path)]


def test_a_session_of_three_tasks_is_three_runs_with_outcomes_of_their_own(tmp_path: Path) -> None:
    session = Lines().asks(FIRST).works().asks("Explain how taxes are rounded").says("Half up.")
    session.asks("Thanks! Now translate the error pages").does("Edit", {"file_path": "b.py"}, "ok")
    session.does("Bash", {"command": "pytest -q"}, "Exit code 1\n1 failed", failed=True).says("One fails.")
    found = runs(session.write(tmp_path / "s-1.jsonl"))
    assert [(one.trajectory.task, one.verdict and one.verdict.outcome) for one in found] == [
        (FIRST, "success"),
        ("Explain how taxes are rounded", None),
        ("Thanks! Now translate the error pages", "failure"),
    ]
    assert [one.trajectory.answer for one in found] == ["Done.", "Half up.", "One fails."]
    assert [one.trajectory.metadata["run_id"] for one in found] == ["s-1"] * 3
    assert [one.trajectory.metadata["prompt"] for one in found] == ["u0", "u6", "u8"]
    assert [len(one.trajectory.steps) for one in found] == [4, 2, 4]


@pytest.mark.parametrize(
    "text",
    [
        "no, that is wrong, the total is still off",
        "hmm, I get a TypeError when I call add('a', 1)",
        "thanks, perfect!",
        "No. Great work.",
        "ok, commit it as WIP",
        "run the tests again",
        "now commit and push",
        "thanks, can you open a PR",
        "lgtm, works here. push it",
        "Ok. Tu peux pousser ?",
        "run the whole e2e suite",
        "also handle negative numbers",
        "but keep the old name",
        "use Decimal instead",
        "go on",
        "weiter",
        "why did you remove the cache?",
        "the total is off by one",
        "it works, but it is slow, make it faster",
        "[Request interrupted by user]",
        "done",
        "loaded",
    ],
)
def test_a_word_about_the_work_or_a_step_of_it_is_no_task(tmp_path: Path, text: str) -> None:
    session = Lines().asks(FIRST).works().asks(text).says("Ok.")
    assert [task for task, _ in tasks(session.write(tmp_path / "s-1.jsonl"))] == [FIRST]


@pytest.mark.parametrize(
    "text",
    [
        "Now add a docstring to every function",
        "Speed up the nightly report",
        "what is the capital of France?",
        "I want a page that lists all orders",
        "Perfect. Please remove the old login form",
        "Übersetze die Fehlerseiten",
    ],
)
def test_what_asks_for_something_new_is_a_task(tmp_path: Path, text: str) -> None:
    session = Lines().asks(FIRST).works().asks(text).says("Ok.")
    assert [task for task, _ in tasks(session.write(tmp_path / "s-1.jsonl"))] == [FIRST, text]


def test_an_answer_to_the_agents_question_is_no_task_but_one_to_anything_else_is(tmp_path: Path) -> None:
    session = Lines().asks(FIRST).says("Which rounding do you want?").asks("Round half even, per line").works()
    assert [task for task, _ in tasks(session.write(tmp_path / "s-1.jsonl"))] == [FIRST]
    other = Lines().asks(FIRST).works("Done. Anything else?").asks("Translate the error pages").says("Ok.")
    assert len(tasks(other.write(tmp_path / "s-2.jsonl"))) == 2


def test_what_is_said_after_an_interruption_goes_on_with_the_task(tmp_path: Path) -> None:
    session = Lines().asks(FIRST).does("Edit", {"file_path": "a.py"}, "ok").asks("[Request interrupted by user]")
    session.asks("Put the rule into rules.py").works()
    assert tasks(session.write(tmp_path / "s-1.jsonl")) == [(FIRST, "success")]


def command(name: str, arguments: str = "") -> str:
    return (
        f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n"
        f"<command-args>{arguments}</command-args>"
    )


def test_a_slash_command_is_a_task_as_it_was_typed(tmp_path: Path) -> None:
    session = Lines().asks(command("plan", "the linter")).line("user", "Make a plan.", isMeta=True)
    session.does("Read", {"file_path": "a"}, "x").asks("[Request interrupted by user]").asks("write the plan down")
    session.works().asks(command("review")).line("user", "Review the code.", isMeta=True).says("It is fine.")
    assert [task for task, _ in tasks(session.write(tmp_path / "s-1.jsonl"))] == ["/plan the linter", "/review"]


@pytest.mark.parametrize(
    ("arguments", "task"),
    [
        ("", "/plan"),
        ("the linter\nand its rules", "/plan the linter\nand its rules"),
        ("<b> & more", "/plan <b> & more"),
    ],
)
def test_an_interruption_never_takes_the_place_of_a_slash_command(arguments: str, task: str, tmp_path: Path) -> None:
    session = Lines().asks(command("plan", arguments)).line("user", "Make a plan.", isMeta=True)
    session.does("Read", {"file_path": "a"}, "x").asks("[Request interrupted by user]").says("I stop.")
    session.asks("[Request interrupted by user for tool use]").asks("go on").says("Done.")
    assert tasks(session.write(tmp_path / "s-1.jsonl"))[0][0] == task


def test_what_the_program_says_in_the_users_name_is_no_task(tmp_path: Path) -> None:
    session = Lines().line("user", "<local-command-caveat>Caveat: it was run directly.", isMeta=True)
    session.asks(command("model", "opus")).asks("<local-command-stdout>Set model to opus</local-command-stdout>")
    session.asks(FIRST).works().asks("<bash-input>git status</bash-input>").asks("<bash-stdout>clean</bash-stdout>")
    session.asks("<task-notification><status>completed</status></task-notification>").says("It has ended.")
    session.asks(command("compact")).asks("<local-command-stdout>Compacted</local-command-stdout>")
    session.line("user", "This session is being continued: fix everything.", isCompactSummary=True).says("Ok.")
    (run,) = runs(session.write(tmp_path / "s-1.jsonl"))
    assert (run.trajectory.task, run.verdict and run.verdict.outcome) == (FIRST, "success")
    assert not any(
        "<" in seen.text for step in run.trajectory.steps for seen in step.observations if seen.source == "user"
    )


@pytest.mark.parametrize(
    "agent", ["acompact-0f3a", "aprompt_suggestion-11", "asession_memory-9b2c", "aside_question-7"]
)
def test_a_summary_that_the_program_asks_for_is_no_run(agent: str, tmp_path: Path) -> None:
    aside = {"isSidechain": True, "agentId": agent}
    session = Lines().line("user", "Your task is to create a detailed summary.", **aside)
    session.line("assistant", [{"type": "text", "text": "<summary>…</summary>"}], **aside)
    assert runs(session.write(tmp_path / f"agent-{agent}.jsonl")) == []


def test_a_session_that_repeats_the_lines_of_another_repeats_its_runs(tmp_path: Path) -> None:
    session = Lines().asks(FIRST).works().asks("Translate the error pages").works()
    first = runs(session.write(tmp_path / "s-1.jsonl"))
    session.session = "s-2"
    session.rows = [{**row, "sessionId": "s-2"} for row in session.rows]
    session.asks("Remove the old login form").works()
    second = runs(session.write(tmp_path / "s-2.jsonl"))
    ids = [[one.trajectory.id for one in found] for found in (first, second)]
    assert ids[1][:2] == ids[0]
    assert len(ids[1]) == 3


def test_the_first_task_stays_the_same_run_when_others_follow(tmp_path: Path) -> None:
    session = Lines().asks(FIRST).works()
    (alone,) = runs(session.write(tmp_path / "s-1.jsonl"))
    first, _ = runs(session.asks("Translate the error pages").works().write(tmp_path / "s-1.jsonl"))
    assert first.trajectory.id == alone.trajectory.id


def codex(path: Path) -> Path:
    def said(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    def done() -> Iterator[dict[str, Any]]:
        call = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "make"}', "call_id": "c"}
        yield call
        yield {"type": "function_call_output", "call_id": "c", "output": "Process exited with code 0\nOutput:\nok"}
        yield said("assistant", "Done.")

    items = [said("user", FIRST), *done(), said("user", "thanks"), said("user", "Translate the pages"), *done()]
    rows = [{"type": "session_meta", "payload": {"id": "s-1"}}]
    rows += [{"type": "response_item", "payload": item} for item in items]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


SPOKEN = [("user", FIRST), ("", "Done."), ("user", "thanks"), ("user", "Translate the pages"), ("", "Ok")]


def gemini(path: Path) -> Path:
    call: dict[str, Any] = {"id": "c", "name": "run_shell_command", "args": {"command": "make"}, "result": []}
    rows: list[dict[str, Any]] = [{"sessionId": "s-1", "projectHash": "h", "startTime": "t"}]
    for number, (role, text) in enumerate(SPOKEN):
        more: dict[str, Any] = {} if role else {"toolCalls": [call]}
        rows.append({"id": str(number), "type": role or "gemini", "content": text, **more})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def opencode(path: Path) -> Path:
    return opencode_database(
        path.parent,
        [("s-1", {"role": role or "assistant"}, [{"type": "text", "text": text}]) for role, text in SPOKEN],
    )


@pytest.mark.parametrize("write", [codex, gemini, opencode])
def test_tasks_are_told_apart_in_the_sessions_of_other_programs(tmp_path: Path, write: Any) -> None:
    found = runs(write(tmp_path / "session.jsonl"))
    assert [one.trajectory.task for one in found] == [FIRST, "Translate the pages"]
    assert [one.trajectory.metadata["prompt"] for one in found] == ["s-1#1", "s-1#2"]


@pytest.mark.full
def test_a_huge_prompt_is_read_in_linear_time(tmp_path: Path) -> None:
    session = Lines().asks(FIRST).works().asks("ok " * 100_000 + "!" * 300_000).works()
    assert len(tasks(session.write(tmp_path / "s-1.jsonl"))) <= 2
