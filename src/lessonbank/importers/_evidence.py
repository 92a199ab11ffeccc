"""Decides how a coding agent's run ended, by the checks that ran in it: tests, a build, a linter. Words decide nothing.

An edit makes what was checked before it stale. What a person said can only take a success back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from lessonbank.contracts.records import Json, Observation, Outcome, Run, ToolCall, Trajectory, Verdict

from ._rejections import is_rejection

Check: TypeAlias = Literal["the tests", "the build", "the linter"]
Sign: TypeAlias = Literal["edit", "rejection", "interrupt"] | tuple[Check, bool]
"""What happened in a run, in its order; a check with whether it passed."""
_SHELLS: Final = {
    *("bash", "shell", "exec_command", "local_shell", "run_shell_command", "run_commands", "execute_command"),
    *("container.exec", "execute_bash", "run_terminal_cmd"),
}
_MOST_COMMAND, _MOST_OUTPUT = 10_000, 20_000
_EDITOR: Final = re.compile(r"edit|write|patch|replace|create_file|insert", re.IGNORECASE)
_WRAPPED: Final = re.compile(r"^\s*(?:/\S*/)?(?:ba|z)?sh\s+-\w*c\s+(['\"])(.*)\1\s*$", re.DOTALL)
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_SEPARATOR: Final = re.compile(r"(&&|\|\||[;|\n])")
_BEFORE: Final = (
    r"^\s*(?:\w+=\S*\s+)*(?:(?:sudo|time|timeout\s+\S+|env|npx|uv\s+run|poetry\s+run|pdm\s+run|hatch\s+run|"
    r"bundle\s+exec|xvfb-run)\s+)*(?:\S*python[\d.]*\s+(?:-\w\s+)*-m\s+)?(?:\S*/)?"
)
_TEST: Final = re.compile(
    _BEFORE + r"(?:pytest|py\.test|unittest|tox|nox|ctest|jest|vitest|mocha|ava|rspec|phpunit|"
    r"cargo\s+(?:nextest\s+run|test)|go\s+test|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?test[\w:-]*|deno\s+test|"
    r"node\s+--test|(?:make|just|rake)\s+(?:test|check)[\w-]*|gradlew?\s.*\btest|mvnw?\s.*\b(?:test|verify)|"
    r"(?:dotnet|mix|swift|bazel|sbt)\s+test|\S*python[\d.]*\s+(?:\S*/)?manage\.py\s+test)(?=\s|$)"
)
_LINT: Final = re.compile(
    _BEFORE + r"(?:flake8|pylint|mypy|pyright|basedpyright|eslint|stylelint|shellcheck|rubocop|hadolint|"
    r"ruff\s+check|biome\s+(?:check|lint)|cargo\s+clippy|go\s+vet|golangci-lint\s+run|pre-commit\s+run|"
    r"(?:black|prettier)\s.*--check|ruff\s+format\s.*--check|"
    r"(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:lint|typecheck|type-check)[\w:-]*|"
    r"(?:make|just|rake)\s+(?:lint|types|typecheck)[\w-]*)(?=\s|$)"
)
_BUILD: Final = re.compile(
    _BEFORE
    + r"(?:tsc|ninja|sphinx-build|build(?=\s*$)|(?:mkdocs|zensical|vite|next|docker|dotnet|swift|bazel)\s+build|"
    r"cargo\s+(?:build|check)|go\s+build|cmake\s+--build|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?build[\w:-]*|"
    r"gradlew?\s.*\b(?:build|assemble)|mvnw?\s.*\b(?:package|compile|install)|make(?=\s*$)|"
    r"(?:make|just|rake)\s+(?:all|build|docs?|html|dist|package|release)[\w-]*)(?=\s|$)"
)
_CHECKS: Final[Mapping[Check, re.Pattern[str]]] = {"the tests": _TEST, "the linter": _LINT, "the build": _BUILD}
_RUNS_NOTHING: Final = re.compile(
    r"\s(?:--version|--help|-h|--collect-only|--co|--dry-run|--no-run|--list\w*|--setup-plan|--watch)(?=[\s=]|$)|&\s*$"
)
_REWRITES: Final = re.compile(r"\s(?:--fix|--write|--in-place)(?=[\s=]|$)")
_NO_RESULT: Final = {124, 125, 126, 127}
"""The program was stopped by a clock, or could not be started. From 129 on a signal ended it."""
_ENTERS: Final = re.compile(r"^\s*(?:cd|source|\.|export|set|ulimit|umask)(?=\s|$)")
_CHANGES: Final = re.compile(
    _BEFORE + r"(?:sed\s.*-i|perl\s+-\w*i|tee\s|mv\s|cp\s|rm\s|patch\s|apply_patch|"
    r"git\s+(?:apply|checkout|restore|reset|revert|stash|merge|rebase|pull|cherry-pick|am|clean)\b)"
)
_INTO_FILE: Final = re.compile(r"(?<![0-9&<>-])>{1,2}\s*(?![&\s]|/dev/null)")
_FAILS: Final = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failures?|errors?|failing)\b|(?:failures|errors)=[1-9]|^FAIL(?:ED)?\b|"
    r"test result: FAILED|^not ok\b",
    re.MULTILINE,
)
"""Words of a failure, which contradict an exit code of 0."""
_PYTEST: Final = r"^=*[ \t]*(?:\d+ [a-z]+, )*[1-9]\d* (?:{})(?:, \d+ [a-z]+)*(?: in [\d.]+s.*)?[ \t]*=*$|"
_SUMMARY_FAILED: Final = re.compile(
    _PYTEST.format("failed|errors?") + r"^FAILED \((?:failures|errors)=|^test result: FAILED|^FAIL[ \t]+\S|"
    r"^Tests:?[ \t]+(?:\d+ \w+, )*[1-9]\d* failed|^[ \t]+[1-9]\d* failing$|^\d+ examples?, [1-9]|^# fail [1-9]",
    re.MULTILINE,
)
_SUMMARY_PASSED: Final = re.compile(
    _PYTEST.format("passed") + r"^OK(?: \(.*\))?$|^test result: ok|^ok[ \t]+\S+[ \t]+[\d.(]|"
    r"^Tests:?[ \t]+(?:\d+ \w+, )*[1-9]\d* passed|^[ \t]+[1-9]\d* passing\b|^[1-9]\d* examples?, 0 f|^# pass [1-9]",
    re.MULTILINE,
)
"""The runners' own last lines: they count where the host kept no exit code."""
_NOTHING: Final = re.compile(
    r"no tests ran|collected 0 items|Ran 0 tests|no test files|0 passing|running in (?:the )?background|to background"
)
_INTERRUPTED: Final = ("[Request interrupted", "<turn_aborted>")


@dataclass(slots=True)
class _Known:
    """What is known of the work as it is now."""

    edited: bool = False
    checks: dict[Check, bool] = field(default_factory=dict[Check, bool])
    rejected: bool = False
    interrupted: bool = False

    def add(self, sign: Sign) -> None:
        """Take the next sign in. Checks of what the run did not change prove nothing of it."""
        if sign == "edit":
            self.edited, self.checks, self.rejected, self.interrupted = True, {}, False, False
        elif sign == "rejection":
            self.rejected = True
        elif sign == "interrupt":
            self.interrupted = True
        elif self.edited:
            self.checks[sign[0]] = sign[1]
            self.interrupted = False

    def outcome(self) -> tuple[Outcome, str] | None:
        """How it ended and the rule that says so; `None` where nothing was checked and nobody objected."""
        if self.interrupted:
            return "unknown", "the user interrupted the run"
        checked = _outcome_of(self.checks)
        if self.rejected and (checked is None or checked[0] == "success"):
            return "unknown", "the user rejected the result, and nothing was changed after that"
        return checked


def _outcome_of(checks: Mapping[Check, bool]) -> tuple[Outcome, str] | None:
    """Failed tests are a failure. Another check that failed beside passed tests may fail for what was there before."""
    if not checks:
        return None
    failed = [check for check, passed in checks.items() if not passed]
    if not failed:
        return "success", f"{' and '.join(checks)} passed after the last edit"
    if checks.get("the tests"):
        return "unknown", f"the tests passed after the last edit, and {' and '.join(failed)} failed"
    return "failure", f"{' and '.join(failed)} failed after the last edit"


def verdict_of(run: Trajectory, /, exit_codes: Mapping[str, int]) -> Verdict | None:
    """The outcome that a run's own checks show, with the rule in `reason`; `None` where no rule speaks.

    `exit_codes`: those of the calls, by their ids, as far as the record has them.
    """
    known = _Known()
    for sign in _signs(run, exit_codes):
        known.add(sign)
    told = known.outcome()
    return Verdict(outcome=told[0], reason=told[1], source="ground_truth") if told else None


def has_rejection(run: Trajectory, /) -> bool:
    """Whether a person rejected something in a run: then an earlier run of its session may be meant."""
    return any(map(is_rejection, _words(run)))


def taken_back(former: Run, later: Trajectory, /) -> Verdict | None:
    """`unknown` for a run that succeeded, where a person rejected it in the session that went on; else `None`."""
    heard = sum(1 for _ in _words(former.trajectory))
    said = list(_words(later))[heard:]
    if (
        former.verdict.outcome != "success"
        or former.verdict.source != "ground_truth"
        or former.trajectory.id == later.id
    ):
        return None
    if not any(map(is_rejection, said)):
        return None
    return Verdict(outcome="unknown", reason="the user rejected it later in the session", source="ground_truth")


def _words(run: Trajectory) -> Iterator[str]:
    return (seen.text for step in run.steps for seen in step.observations if seen.source == "user")


def _signs(run: Trajectory, exit_codes: Mapping[str, int]) -> Iterator[Sign]:
    acted = False
    for step in run.steps:
        results = {seen.call_id: seen for seen in step.observations if seen.call_id}
        unnamed = [seen for seen in step.observations if seen.source == "tool" and not seen.call_id]
        for call in step.action.calls:
            acted = True
            result = results.get(call.id or "") or (unnamed.pop(0) if unnamed else None)
            yield from _signs_of_call(call, result, exit_codes.get(call.id or ""))
        acted = acted or bool(step.action.text)
        for seen in step.observations:
            if acted and seen.source == "user":
                yield from _signs_of_words(seen.text)


def _signs_of_words(text: str) -> Iterator[Sign]:
    if text.lstrip().startswith(_INTERRUPTED):
        yield "interrupt"
    elif is_rejection(text):
        yield "rejection"


def _signs_of_call(call: ToolCall, result: Observation | None, code: int | None) -> Iterator[Sign]:
    name = call.name.rpartition(".")[2].casefold()
    if name not in _SHELLS and call.name.casefold() not in _SHELLS:
        if _EDITOR.search(name) and not (result and result.is_error):
            yield "edit"
        return
    parts = _SEPARATOR.split(_bare(_command(call.arguments)).rstrip())
    commands, joints = parts[::2], parts[1::2]
    while len(commands) > 1 and not commands[-1].strip():
        commands, joints = commands[:-1], joints[:-1]
    for place, command in enumerate(commands):
        yield from _signs_of_command(command, result, _own_code(commands, joints, place, code))


def _own_code(commands: Sequence[str], joints: Sequence[str], place: int, code: int | None) -> int | None:
    """The exit code of one command in a line of several; `None` where that of the line does not tell it."""
    if code is None or "||" in joints:
        return None
    if code == 0:
        return 0 if set(joints[place:]) <= {"&&"} else None
    before = [command for command, joint in zip(commands[:place], joints, strict=False) if joint == "&&"]
    return code if place == len(commands) - 1 and all(map(_ENTERS.match, before)) else None


def _signs_of_command(command: str, result: Observation | None, code: int | None) -> Iterator[Sign]:
    check: Check | None = next((check for check, pattern in _CHECKS.items() if pattern.match(command)), None)
    if check is None:
        if _CHANGES.match(command) or _INTO_FILE.search(command):
            yield "edit"
        return
    if _REWRITES.search(command):
        yield "edit"
    elif result is not None and not _RUNS_NOTHING.search(command):
        passed = _passed(result.text[-_MOST_OUTPUT:], code)
        if passed is not None:
            yield (check, passed)


def _passed(printed: str, code: int | None) -> bool | None:
    """Whether a check passed: by its exit code, else by its runner's last line; `None` where they disagree."""
    if _NOTHING.search(printed) or (code is not None and (code in _NO_RESULT or not 0 <= code <= 128)):
        return None
    if code is not None:
        return False if code else None if _FAILS.search(printed) else True
    fails, passes = bool(_SUMMARY_FAILED.search(printed)), bool(_SUMMARY_PASSED.search(printed))
    return False if fails else True if passes else None


def _command(arguments: Mapping[str, Json] | str) -> str:
    """The shell's text; programs give it under several names, as a text or as a list of words."""
    if isinstance(arguments, str):
        return arguments[:_MOST_COMMAND]
    told = next((arguments[name] for name in ("command", "cmd", "commands", "script") if name in arguments), "")
    if isinstance(told, list):
        words = [word for word in told if isinstance(word, str)]
        told = words[-1] if len(words) == 3 and words[1].startswith("-") else "\n".join(words)
    return told[:_MOST_COMMAND] if isinstance(told, str) else ""


def _bare(command: str) -> str:
    """A command without what it only quotes: a message about tests is no test."""
    wrapped = _WRAPPED.match(command)
    return _QUOTED.sub("''", _HEREDOC.sub("<<''", wrapped.group(2) if wrapped else command))
