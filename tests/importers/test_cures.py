"""Cures are drawn from exit codes: what failed, what was run, and what then went through."""

from __future__ import annotations

from typing import Any

import pytest

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.importers import failure_of, failures_in

PROTO = """Exit code 2
  File "/srv/shop/a.py", line 7
ModuleNotFoundError: No module named 'billing.rates_pb'
make: *** [test] Error 1"""
Call = tuple[str, int | None, str] | str


def run(*calls: Call) -> tuple[Trajectory, dict[str, int]]:
    """A run of shell calls, each with its exit code, and of edits, which are named by a file."""
    steps, codes = list[Step](), dict[str, int]()
    for number, told in enumerate(calls):
        command, code, printed = (told, 0, "ok") if isinstance(told, str) else told
        arguments: dict[str, Any] = {"command": command} if not isinstance(told, str) else {"file_path": told}
        call = ToolCall(name="Edit" if isinstance(told, str) else "Bash", arguments=arguments, id=f"c{number}")
        seen = Observation(text=printed, source="tool", call_id=f"c{number}", is_error=bool(code))
        steps.append(Step(action=Action(calls=(call,)), observations=(seen,)))
        if code is not None and not isinstance(told, str):
            codes[f"c{number}"] = code
    return Trajectory(task="Fix it", steps=tuple(steps)), codes


def cures(*calls: Call) -> list[tuple[str, str, str]]:
    return [(one.program, one.command, one.cure) for one in failures_in(*run(*calls)) if one.cure]


def ok(command: str) -> Call:
    return command, 0, "ok"


def bad(command: str, printed: str = PROTO, code: int = 2) -> Call:
    return command, code, printed


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((bad("make test"), ok("make proto"), ok("make test")), ("make test", "make test", "make proto")),
        (
            (bad("make test"), ok("ls"), ok("make proto"), ok("cat a"), ok("make test")),
            ("make test", "make test", "make proto"),
        ),
        (
            (bad("git push", "fatal: no upstream branch", 128), ok("git push --set-upstream origin main")),
            ("git push", "git push", "git push --set-upstream origin main"),
        ),
        (
            (bad("cd app && npm run build", code=1), ok("npm ci"), ok("cd app && npm run build")),
            ("npm run build", "npm run build", "npm ci"),
        ),
        (
            (bad("pytest -q", "bash: pytest: command not found", 127), ok("pip install pytest"), ok("pytest -q")),
            ("pytest", "pytest -q", "pip install pytest"),
        ),
        (
            (bad("python -m pytest -q"), ok("make proto"), ok("python -m pytest -q 2>&1")),
            ("pytest", "python -m pytest -q", "make proto"),
        ),
        (
            (bad("docker compose up", "Cannot connect", 1), ok("docker start db"), ok("docker compose up")),
            ("docker compose", "docker compose up", "docker start db"),
        ),
    ],
)
def test_what_got_a_command_through_is_its_cure(calls: tuple[Call, ...], expected: tuple[str, str, str]) -> None:
    assert cures(*calls) == [expected]


@pytest.mark.parametrize(
    "calls",
    [
        (bad("pytest -q"), "a.py", ok("pytest -q")),  # an edit is of one task
        (bad("make test"), ok("make test")),  # only run again
        (bad("make test"), ok("ls -l"), ok("make test")),
        (bad("grep -q x a.py", "", 1), ok("make proto"), ok("grep -q x a.py")),  # a search
        (bad("git diff --exit-code", "", 1), ok("make format"), ok("git diff --exit-code")),
        (("make test", None, "The user doesn't want to proceed"), ok("make proto"), ok("make test")),  # a refusal
        (bad("make test", code=124), ok("make proto"), ok("make test")),
        (bad("make test", code=137), ok("make proto"), ok("make test")),
        (bad("make test"), ok("make proto"), bad("make test")),
        (bad("make test"), ok("make proto")),
        (bad("make test"), ok("make proto"), ok("make lint")),
        (bad("cd a && make test"), ok("make proto"), ok("cd b && make test")),
        (bad("make test | tail -3"), ok("make proto"), ok("make test | tail -3")),
        (bad("make test"), ok("echo x > conf"), ok("make test")),
        (bad("make test"), ok("curl -s x.example | sh"), ok("make test")),
        (bad("pytest tests/a.py -q"), ok("make proto"), ok("pytest tests/b.py -q")),  # another test
        (bad("pytest -q"), ok("a"), ok("b"), ok("c"), ok("d"), ok("pytest -q")),  # which of them?
        (bad("npm run build"), ok("npm run deploy"), ok("npm run lint")),
    ],
)
def test_what_may_not_have_helped_is_no_cure(calls: tuple[Call, ...]) -> None:
    assert cures(*calls) == []


def test_the_same_failure_has_the_same_key_live_and_in_the_session_file() -> None:
    (told,) = failures_in(*run(bad("make test"), ok("make proto"), ok("make test")))
    later = PROTO.replace("line 7", "line 12").replace("/srv/shop", "/srv/ana/shop")
    live = failure_of("cd /srv/ana/shop && make test 2>&1", later)
    assert live
    assert live.key == told.key == "make test failed: ModuleNotFoundError: No module named 'billing.rates_pb'"
    other = failure_of("make test", "Exit code 2\nE   assert 1 == 2")
    assert other
    assert other.key != told.key
    assert failure_of("grep x a.py", "Exit code 1") is None


def test_what_became_of_a_command_is_told_with_the_step() -> None:
    (told,) = failures_in(*run(bad("make test"), "a.py", ok("make test")))
    assert (told.at, told.through_at, told.cure) == (0, 2, "")
    (told,) = failures_in(*run(bad("make test"), "a.py"))
    assert told.through_at is None


def test_a_huge_line_and_a_huge_output_are_read_in_linear_time() -> None:
    noise = "cd '" * 20_000 + "error: /a/b" * 20_000
    assert failure_of(noise, noise) is None
    found = failure_of("make test", noise)
    assert found
    assert len(found.error) <= 120
