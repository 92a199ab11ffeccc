"""Decides how a coding agent's run ended: by the checks that ran in it, else by what a person said plainly.

A check is a test, a build, a linter or a release, by its exit code. An edit makes what was checked before it stale.
Words are never ground truth. Those that may object, and a revert, only take a success back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from lessonbank.contracts.records import Observation, Outcome, Run, ToolCall, Trajectory, Verdict, VerdictSource

from ._checks import BEFORE, Check, check_of, runs_hooks
from ._opinions import Opinion, objects_to_nothing, opinion_in
from ._rejections import INTERRUPTED, is_rejection
from ._reverts import reverted, reverts_in
from ._shell import (
    ENTERS,
    as_printed,
    bare,
    calls_of,
    command_of,
    folder_of,
    goes_elsewhere,
    handed_on,
    is_shell,
    own_code,
    parts_of,
)

WENT_ON: Final = "the session went on after that"
"""The reason of the verdict on what was learned of a task before its session went on."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """A check that ran."""

    check: Check
    words: frozenset[str]
    passed: bool
    by_code: bool
    """Whether its exit code says so, and not its output alone."""
    folder: str
    """The folder of the repository that its line enters first."""

    def is_of(self, edited: set[str]) -> bool:
        """Whether it looks at any of the files that were edited, as far as their names say."""
        return not self.folder or any("/" not in one or f"/{self.folder}/" in f"/{one}" for one in edited)

    def settles(self, other: _Checked) -> bool:
        """Whether it is the same command, or a wider one."""
        return self.check == other.check and self.words <= other.words

    def is_part_of(self, other: _Checked) -> bool:
        """Whether it looks at less of the same thing."""
        more = self.words - other.words
        return self.check == other.check and self.words > other.words and not all(map(_SAME_SCOPE.match, more))


@dataclass(frozen=True, slots=True)
class _Edit:
    """Files that were changed, or given back as they were; `""` stands for one whose name is not known."""

    files: frozenset[str] = frozenset({""})
    restores: bool = False
    formats: bool = False
    """Whether a program only laid the text out anew: what was checked before holds."""


Sign: TypeAlias = Literal["revert", "rejection", "interrupt"] | Opinion | _Checked | _Edit
"""What happened in a run, in its order."""
_MOST_OUTPUT: Final = 20_000
_EDITOR: Final = re.compile(r"edit|write|patch|replace|create_file|insert|^create$", re.IGNORECASE)
_FILE: Final = ("file_path", "path", "filePath", "absolute_path", "notebook_path")
_RUNS_NOTHING: Final = re.compile(
    r"\s(?:--version|--help|-h|--collect-only|--co|--dry-run|--no-run|--list\w*|--setup-plan|--watch(?:All)?(?!=false))(?=[\s=]|$)|"
    r"&\s*$|^\s*make\s(?:.*\s)?-[ni]\b"
)
_SETS: Final = re.compile(r"^\s*(?:\w+=\S*\s+)+")
"""What a command sets for its program: the same check is run with and without it."""
_SAME_SCOPE: Final = re.compile(
    r"^(?:-(?:v+|q+|x|s|count=\d+|j\d*|n\d*|-verbose|-release|-no-cache|-parallel|"
    r"-(?:summary|color|no-color|reporter|format|tb|durations|stacktrace|gtest_brief)(?:=\S+)?)|all|\d+)$"
)
"""A word of a check that makes it look at no less."""
_REWRITES: Final = re.compile(r"\s(?:--fix|--write|--in-place)(?=[\s=]|$)")
_PYTEST_RAN_NONE: Final = {4, 5}
"""It was called in a wrong way, or found no test."""
_PYTEST_ITSELF: Final = re.compile(r"(?:^|[\s/])(?:pytest|py\.test)(?=\s|$)")
_PENDING: Final = 8
"""With which `gh pr checks` says that a check still runs."""
_NO_RESULT: Final = {124, 125, 126, 127}
"""The program was stopped by a clock, or could not be started. From 129 on a signal ended it."""
_CHANGES: Final = re.compile(
    BEFORE + r"(?:sed\s.*-i|perl\s+-\w*i|tee\s|mv\s|cp\s|rm\s|patch\s|apply_patch|"
    r"git\s+(?:apply|checkout|restore|reset|revert|stash|merge(?!\s+--ff-only\s+[^/\s]+\s*$)|rebase|pull|"
    r"cherry-pick|am|clean|rm|mv)\b|"
    r"(?:npm|pnpm|yarn|bun)\s+(?:add|remove|uninstall|up|update|upgrade|(?:install|i)\s+[^-\s&|;])|"
    r"cargo\s+(?:add|remove|rm|update|fix)\b|(?:uv|poetry|pdm|rye)\s+(?:add|remove|lock|update)\b|"
    r"go\s+(?:get|generate|mod\s+(?:tidy|init|edit))\b|bundle\s+(?:add|update)\b|composer\s+(?:require|update|remove)\b|"
    r"dotnet\s+(?:add|remove)\b|alembic\s+(?:revision|merge)\b|rails\s+(?:g|generate)\b|artisan\s+make:)"
)
"""A branch of one's own that is merged by going forward brings nothing new: it is how checked work is delivered."""
_FORMATS: Final = re.compile(
    BEFORE + r"(?!.*\s--?check\b)(?:prettier\s.*(?:--write|-w)\b|(?:gofmt|goimports|gofumpt)\s.*-w\b|black|isort|"
    r"(?:ruff|cargo|dart|mix|terraform|deno|swift|biome)\s+(?:format|fmt)|"
    r"(?:gradlew?|mvnw?)\s.*\b(?:spotlessApply|spotless:apply|ktlintFormat))(?=\s|$)"
)
_REVERTS: Final = re.compile(
    BEFORE + r"git\s+(?:revert\s(?!.*--(?:abort|quit))|reset\s.*--hard|(?:checkout|restore)\s+(?:--\s+)?\.(?=\s|$))"
)
"""Takes back all that was done."""
_RESTORES: Final = re.compile(BEFORE + r"git\s+(?:checkout(?:\s+HEAD)?\s+--|restore)((?:\s+[\w./@+][\w./@+-]*)+)\s*$")
"""Takes back some files: a step of the work, unless they are all that was edited."""
_INTO_FILE: Final = re.compile(r"(?<![0-9&<>-])>{1,2}\s*(?![&\s]|/dev/null)")
_FAILS: Final = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failures?|errors?|failing)\b(?! \(\d+ fixed, 0 remaining)|"
    r"(?:failures|errors)=[1-9]|^FAIL(?:ED)?\b|"
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
_GO_PACKAGES: Final = re.compile(r"^(?:ok|\?|FAIL)[ \t]+\S+[ \t]+(\(cached\)|\[no test files\]|\S+)", re.MULTILINE)
"""What became of each package."""
_NOTHING: Final = re.compile(
    r"no tests ran|! KeyboardInterrupt !|collected 0 items|Ran 0 tests|0 passing|"
    r"[Nn]o tests found|[Mm]issing script|No rule to make target|command not found|"
    r"running in (?:the )?background|to background"
)


@dataclass(slots=True)
class _Known:
    """What is known of the work as it is now."""

    edited: set[str] = field(default_factory=set[str])
    """The files that are not as they were."""
    checks: list[_Checked] = field(default_factory=list[_Checked])
    """Those after the last edit, each command once."""
    failed: list[_Checked] = field(default_factory=list[_Checked])
    """Those before it that failed, and that neither the same command nor a wider one settled since."""
    reverted: bool = False
    rejected: bool = False
    interrupted: bool = False
    opinion: Opinion | None = None

    def add(self, sign: Sign) -> None:
        """Take the next sign in. Checks of what the run did not change prove nothing of it; a release is its work."""
        if isinstance(sign, _Edit):
            self._edit(sign)
        elif sign == "revert":  # who changed nothing yet was asked for the revert
            self._begin_again(edited=set() if self.edited else {""}, reverted=bool(self.edited))
        elif sign == "rejection":
            self.rejected, self.opinion = True, None
        elif sign == "interrupt":
            self.interrupted, self.opinion = True, None
        elif isinstance(sign, _Checked):
            self._check(sign)
        else:
            self.rejected, self.opinion = sign == "wrong", sign

    def _check(self, done: _Checked) -> None:
        self.failed = [one for one in self.failed if not (done.passed and done.settles(one))]
        if self.edited and not done.is_of(self.edited):
            return
        if self.edited or done.check == "the release":
            same = [one for one in self.checks if done.words == one.words or (done.passed and done.settles(one))]
            self.checks = [*(one for one in self.checks if one not in same), done]
            self.interrupted = False
        elif not done.passed:
            self.failed.append(done)

    def _edit(self, done: _Edit) -> None:
        if done.formats:
            self.edited = self.edited or {""}
            return
        left = {one for one in self.edited if not _is_one_of(one, done.files)} if done.restores else set[str]()
        is_reverted = done.restores and bool(self.edited) and not left
        self._begin_again(edited=left if is_reverted else self.edited | done.files, reverted=is_reverted)

    def _begin_again(self, *, edited: set[str], reverted: bool) -> None:
        self.edited, self.reverted = edited, reverted
        self.failed += [one for one in self.checks if not one.passed]
        self.checks, self.rejected, self.interrupted, self.opinion = [], False, False, None

    def verdict(self) -> Verdict | None:
        """Decide how a session ended, with the rule in `reason`; `None` where nothing was checked and nobody said."""
        checked = _outcome_of(self.checks, self.failed)
        if self.opinion == "wrong" and (checked is None or checked.outcome != "failure"):
            return _SAID_WRONG
        if self.interrupted:
            return _verdict_of("unknown", "the user interrupted the run")
        if self.reverted:
            return _verdict_of("unknown", "what the run had changed was taken back")
        if self.rejected and (checked is None or checked.outcome == "success"):
            return _verdict_of("unknown", "the user rejected the result, and nothing was changed after that")
        if self.opinion == "right" and (checked is None or checked.outcome != "success"):
            praised = "the user praised what a check did not pass"
            return _SAID_RIGHT if checked is None else _verdict_of("unknown", praised)
        return checked


def _is_one_of(file: str, restored: frozenset[str]) -> bool:
    """Whether a file, which an editor may name in full, is one of those that a command names from its folder."""
    return bool(file) and any(f"/{file}".endswith(f"/{one.removeprefix('./')}") for one in restored)


def _verdict_of(outcome: Outcome, reason: str, source: VerdictSource = "ground_truth") -> Verdict:
    return Verdict(outcome=outcome, reason=reason, source=source)


_SAID_RIGHT: Final = Verdict(outcome="success", confidence=0.9, reason="the user said that it is right", source="human")
_SAID_WRONG: Final = Verdict(outcome="failure", confidence=0.9, reason="the user said that it is wrong", source="human")


def _outcome_of(checks: Sequence[_Checked], before: Sequence[_Checked]) -> Verdict | None:
    """Failed tests are a failure. Another check that failed beside passed tests may fail for what was there before."""
    if not checks:
        return None
    kinds = dict.fromkeys(one.check for one in checks)
    failed = dict.fromkeys(one.check for one in checks if not one.passed)
    source: VerdictSource = "ground_truth" if all(one.by_code for one in checks) else "judge"
    if not failed and any(one.is_part_of(wider) for one in checks for wider in before):
        return _verdict_of("unknown", "only a part of what had failed was checked again")
    if not failed:
        return _verdict_of("success", f"{' and '.join(kinds)} passed after the last edit", source)
    if "the tests" in kinds and "the tests" not in failed:
        return _verdict_of("unknown", f"the tests passed after the last edit, and {' and '.join(failed)} failed")
    return _verdict_of("failure", f"{' and '.join(failed)} failed after the last edit", source)


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
    went_on = _verdict_of("unknown", WENT_ON)
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
        yield run, _verdict_of("unknown", "what it had committed was reverted later")


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
    elif is_rejection(text) and not objects_to_nothing(text):
        yield "rejection"


def _signs_of_call(call: ToolCall, result: Observation | None, code: int | None) -> Iterator[Sign]:
    if not is_shell(call):
        if _EDITOR.search(call.name.rpartition(".")[2]) and not (result and result.is_error):
            yield _Edit(frozenset({_file_of(call)}))
        return
    line = handed_on(command_of(call.arguments))
    if result is not None and (told := as_printed(line, result.text[-_MOST_OUTPUT:])):
        line, code = told
    commands, joints = parts_of(bare(line))
    for place, command in enumerate(commands):
        if goes_elsewhere(commands[:place]):
            return
        own = own_code(commands, joints, place, code, prepares=_means_the_same)
        yield from _signs_of_command(command, result, own, bool(code), folder=folder_of(commands[:place]))


def _means_the_same(command: str) -> bool:
    """Whether a line fails as the check at its end does where this command before it fails."""
    return bool(ENTERS.match(command) or check_of(command))


def _file_of(call: ToolCall) -> str:
    named = call.arguments if isinstance(call.arguments, dict) else {}
    return next((file for key in _FILE if isinstance(file := named.get(key), str)), "")


def _signs_of_command(
    command: str, result: Observation | None, code: int | None, line_failed: bool, *, folder: str
) -> Iterator[Sign]:
    check, printed = check_of(command), result.text[-_MOST_OUTPUT:] if result else ""
    if check is None and runs_hooks(command, printed):
        check = "the hooks"
    if check is None:
        yield from _signs_of_change(command, result)
        return
    if _REWRITES.search(command):
        yield _Edit()
    elif result is not None and (check == "CI" or not _RUNS_NOTHING.search(command)):
        is_inverted = command.lstrip().startswith("! ")
        if (code in _PYTEST_RAN_NONE and _PYTEST_ITSELF.search(command)) or (check == "CI" and code == _PENDING):
            code = None
        told = (0 if code else 1) if is_inverted and code is not None else code
        passed = None if check == "the tests" and _is_old_news(printed) else _passed(printed, told)
        if passed is not None:
            words = frozenset[str]() if check == "CI" else frozenset(_SETS.sub("", command).split())
            yield _Checked(check, words, passed, code is not None or (line_failed and not passed), folder)


def _signs_of_change(command: str, result: Observation | None) -> Iterator[Sign]:
    if _FORMATS.match(command):
        yield _Edit(formats=True)
    elif _REVERTS.match(command):
        yield from () if result is None or result.is_error else ("revert",)
    elif restored := _RESTORES.match(command):
        yield _Edit(frozenset(restored[1].split()), restores=result is not None and not result.is_error)
    elif _CHANGES.match(command) or _INTO_FILE.search(command):
        yield _Edit()


def _passed(printed: str, code: int | None) -> bool | None:
    """Whether a check passed: by its exit code, else by its runner's last line; `None` where they disagree."""
    if _NOTHING.search(printed) or (code is not None and (code in _NO_RESULT or not 0 <= code <= 128)):
        return None
    if code is not None:
        return False if code else None if _FAILS.search(printed) else True
    fails, passes = bool(_SUMMARY_FAILED.search(printed)), bool(_SUMMARY_PASSED.search(printed))
    return False if fails else True if passes else None


def _is_old_news(printed: str) -> bool:
    """Whether Go tested nothing: no package has tests, or none of what they test has changed."""
    packages = _GO_PACKAGES.findall(printed)
    return bool(packages) and all(told in ("(cached)", "[no test files]") for told in packages)
