"""Decides how a coding agent's run ended: by the checks that ran in it, else by what a person said plainly.

A check is a test, a build, a linter or a release, by its exit code. An edit makes what was checked before it stale.
Words are never ground truth. Those that may object, and a revert, only take a success back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from lessonbank.contracts.records import Observation, Outcome, Run, ToolCall, Trajectory, Verdict

from ._opinions import Opinion, opinion_in
from ._rejections import INTERRUPTED, is_rejection
from ._reverts import reverted, reverts_in
from ._shell import bare, calls_of, command_of, is_shell, own_code, parts_of

WENT_ON: Final = "the session went on after that"
"""The reason of the verdict on what was learned of a task before its session went on."""
Check: TypeAlias = Literal["the tests", "the build", "the linter", "the release"]
Sign: TypeAlias = Literal["edit", "revert", "rejection", "interrupt"] | Opinion | tuple[Check, bool]
"""What happened in a run, in its order; a check with whether it passed."""
_MOST_OUTPUT: Final = 20_000
_EDITOR: Final = re.compile(r"edit|write|patch|replace|create_file|insert|^create$", re.IGNORECASE)
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
    r"(?:make|just|rake)\s+(?:all|build|docs?|html|dist|package)[\w-]*)(?=\s|$)"
)
_RELEASE: Final = re.compile(
    _BEFORE + r"(?:(?:npm|pnpm|yarn|bun|cargo|poetry|uv|flit|hatch)\s+(?:npm\s+)?publish|twine\s+upload|gem\s+push|"
    r"(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:release|publish)[\w:-]*|gh\s+release\s+create|goreleaser\s+release|"
    r"semantic-release|(?:make|just|rake)\s+(?:release|publish)[\w-]*|gradlew?\s.*\bpublish|mvnw?\s.*\bdeploy|"
    r"(?:(?:ba|z)?sh\s+)?(?:\S*/)?(?:release|publish)\.sh)(?=\s|$)"
)
_CHECKS: Final[Mapping[Check, re.Pattern[str]]] = {
    "the tests": _TEST,
    "the linter": _LINT,
    "the release": _RELEASE,
    "the build": _BUILD,
}
_RUNS_NOTHING: Final = re.compile(
    r"\s(?:--version|--help|-h|--collect-only|--co|--dry-run|--no-run|--list\w*|--setup-plan|--watch)(?=[\s=]|$)|&\s*$"
)
_REWRITES: Final = re.compile(r"\s(?:--fix|--write|--in-place)(?=[\s=]|$)")
_NO_RESULT: Final = {124, 125, 126, 127}
"""The program was stopped by a clock, or could not be started. From 129 on a signal ended it."""
_CHANGES: Final = re.compile(
    _BEFORE + r"(?:sed\s.*-i|perl\s+-\w*i|tee\s|mv\s|cp\s|rm\s|patch\s|apply_patch|"
    r"git\s+(?:apply|checkout|restore|reset|revert|stash|merge|rebase|pull|cherry-pick|am|clean)\b)"
)
_REVERTS: Final = re.compile(
    _BEFORE + r"git\s+(?:revert\s(?!.*--(?:abort|quit))|reset\s.*--hard|(?:checkout|restore)\s+(?:--\s+)?\.(?=\s|$))"
)
"""Takes back all that was done: one file that is restored is a step of the work."""
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


@dataclass(slots=True)
class _Known:
    """What is known of the work as it is now."""

    edited: bool = False
    checks: dict[Check, bool] = field(default_factory=dict[Check, bool])
    reverted: bool = False
    rejected: bool = False
    interrupted: bool = False
    opinion: Opinion | None = None

    def add(self, sign: Sign) -> None:
        """Take the next sign in. Checks of what the run did not change prove nothing of it; a release is its work."""
        if sign == "revert" and self.edited:
            self._begin_again(edited=False, reverted=True)
        elif sign in ("edit", "revert"):  # who changed nothing yet was asked for the revert
            self._begin_again(edited=True, reverted=False)
        elif sign == "rejection":
            self.rejected, self.opinion = True, None
        elif sign == "interrupt":
            self.interrupted, self.opinion = True, None
        elif sign in ("right", "wrong"):
            self.rejected, self.opinion = sign == "wrong", sign
        elif self.edited or sign[0] == "the release":
            self.checks[sign[0]] = sign[1]
            self.interrupted = False

    def _begin_again(self, *, edited: bool, reverted: bool) -> None:
        self.edited, self.reverted = edited, reverted
        self.checks, self.rejected, self.interrupted, self.opinion = {}, False, False, None

    def verdict(self) -> Verdict | None:
        """Decide how a session ended, with the rule in `reason`; `None` where nothing was checked and nobody said."""
        checked = _outcome_of(self.checks)
        if self.opinion == "wrong" and (checked is None or checked.outcome != "failure"):
            return _SAID_WRONG
        if self.interrupted:
            return _decided("unknown", "the user interrupted the run")
        if self.reverted:
            return _decided("unknown", "what the run had changed was taken back")
        if self.rejected and (checked is None or checked.outcome == "success"):
            return _decided("unknown", "the user rejected the result, and nothing was changed after that")
        if self.opinion == "right" and (checked is None or checked.outcome != "success"):
            return _SAID_RIGHT if checked is None else _decided("unknown", "the user praised what a check did not pass")
        return checked


def _decided(outcome: Outcome, reason: str) -> Verdict:
    return Verdict(outcome=outcome, reason=reason, source="ground_truth")


_SAID_RIGHT: Final = Verdict(outcome="success", confidence=0.9, reason="the user said that it is right", source="human")
_SAID_WRONG: Final = Verdict(outcome="failure", confidence=0.9, reason="the user said that it is wrong", source="human")


def _outcome_of(checks: Mapping[Check, bool]) -> Verdict | None:
    """Failed tests are a failure. Another check that failed beside passed tests may fail for what was there before."""
    if not checks:
        return None
    failed = [check for check, passed in checks.items() if not passed]
    if not failed:
        return _decided("success", f"{' and '.join(checks)} passed after the last edit")
    if checks.get("the tests"):
        return _decided("unknown", f"the tests passed after the last edit, and {' and '.join(failed)} failed")
    return _decided("failure", f"{' and '.join(failed)} failed after the last edit")


def verdict_of(run: Trajectory, /, exit_codes: Mapping[str, int]) -> Verdict | None:
    """The outcome that a run's own checks show, or that a person said plainly; `None` where no rule speaks.

    The rule is its `reason`. What checks show is ground truth; what a person said is not.

    `exit_codes`: those of the calls, by their ids, as far as the record has them.
    """
    known = _Known()
    for sign in _signs(run, exit_codes):
        known.add(sign)
    return known.verdict()


def replaced_by(run: Trajectory, known: Iterable[Run], /) -> list[tuple[Trajectory, Verdict]] | None:
    """What was learned of the same prompt before its session went on, with the verdict that it has now.

    `None` where a run of `known` has all of it: another session only repeats it.
    """
    others = [one for one in known if one.trajectory.id != run.id]
    if any(_size(one.trajectory) >= _size(run) for one in others):
        return None
    went_on = _decided("unknown", WENT_ON)
    return [(one.trajectory, went_on) for one in others if _is_by_rules(one)]


def _size(run: Trajectory) -> int:
    return sum(1 + len(step.observations) for step in run.steps)


def has_reverts(run: Trajectory, /) -> bool:
    """Whether a run took back what was committed before it."""
    return bool(reverts_in(run))


def reverted_by(later: Trajectory, former: Iterable[Run], /) -> Iterator[tuple[Trajectory, Verdict]]:
    """The runs before it, newest first, whose commits a run took back: they are no success any more."""
    if not (reverts := reverts_in(later)):
        return
    ours = {
        run.trajectory.id: run.trajectory for run in former if run.verdict.outcome == "success" and _is_by_rules(run)
    }
    ours.pop(later.id, None)
    for run in reverted(reverts, ours.values()):
        yield run, _decided("unknown", "what it had committed was reverted later")


def _is_by_rules(run: Run) -> bool:
    """Whether no person said how a run ended: a person's own correction stands."""
    return run.verdict.source != "human" or run.verdict.reason in (_SAID_RIGHT.reason, _SAID_WRONG.reason)


def _signs(run: Trajectory, exit_codes: Mapping[str, int]) -> Iterator[Sign]:
    acted = False
    for step in run.steps:
        for call, result in calls_of(step):
            acted = True
            yield from _signs_of_call(call, result, exit_codes.get(call.id or ""))
        acted = acted or bool(step.action.text)
        for seen in step.observations:
            if acted and seen.source == "user":
                yield from _signs_of_words(seen.text)


def _signs_of_words(text: str) -> Iterator[Sign]:
    if text.lstrip().startswith(INTERRUPTED):
        yield "interrupt"
    elif opinion := opinion_in(text):
        yield opinion
    elif is_rejection(text):
        yield "rejection"


def _signs_of_call(call: ToolCall, result: Observation | None, code: int | None) -> Iterator[Sign]:
    if not is_shell(call):
        if _EDITOR.search(call.name.rpartition(".")[2]) and not (result and result.is_error):
            yield "edit"
        return
    commands, joints = parts_of(bare(command_of(call.arguments)))
    for place, command in enumerate(commands):
        yield from _signs_of_command(command, result, own_code(commands, joints, place, code))


def _signs_of_command(command: str, result: Observation | None, code: int | None) -> Iterator[Sign]:
    check: Check | None = next((check for check, pattern in _CHECKS.items() if pattern.match(command)), None)
    if check is None:
        if _REVERTS.match(command):
            yield from () if result is None or result.is_error else ("revert",)
        elif _CHANGES.match(command) or _INTO_FILE.search(command):
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
