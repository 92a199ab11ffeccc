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
from lessonbank.text.shell_commands import program_of, runs_nothing

from ._checks import (
    BEFORE,
    CHANGES,
    CHOSE_NOTHING,
    COUNTS,
    FAILS,
    INTO_FILE,
    RAN_NOTHING,
    SAYS_FAILED,
    SAYS_PASSED,
    SCRATCH,
    SHOWS_FAILURE,
    SHOWS_SUCCESS,
    TESTS_FAILED,
    Check,
    check_of,
    may_check,
    runs_hooks,
    started_in,
)
from ._opinions import Opinion, objects_to_nothing, opinion_in
from ._rejections import INTERRUPTED, is_rejection
from ._reverts import reverted, reverts_in
from ._shell import (
    AWAY,
    ENTERS,
    as_printed,
    bare,
    calls_of,
    command_of,
    file_of,
    folder_of,
    goes_elsewhere,
    handed_on,
    is_shell,
    own_code,
    parts_of,
)
from ._targets import Target

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
    target: Target
    away: bool
    """Whether another machine ran it."""
    started: tuple[Target, ...] = ()
    """What a target or a script started, as far as it printed that."""

    def is_of(self, edited: set[str]) -> bool:
        """Whether it looks at any of the files that were edited, as far as their names say."""
        if all(map(_DOCUMENT.search, edited)) and (self.check == "the tests" or _OF_CODE.search(self.target.command)):
            return _OF_DOCUMENTS.search(self.target.command) is not None
        looks = not self.started or any(target.may_have(file) for target in self.started for file in edited)
        return looks and any(map(self.target.has, edited))

    def settles(self, other: _Checked) -> bool:
        """Whether it is the same command, or a wider one: one that chooses nothing, or more, or that builds first."""
        words = {word for word in self.words if not _SAME_SCOPE.match(word)}
        if self.check == "the tests" and other.check == "the build" and _BUILDS_FIRST.search(self.target.command):
            return words - {"test", "check", "verify", "package", "install"} <= other.words
        if (
            self.check == "the checks"
            and len(words) == 2
            and words & {"make", "just", "task"}
            and not self.target.folder
        ):
            return True
        return self.check == other.check and (words <= other.words or self._chooses_more(other))

    def _chooses_more(self, other: _Checked) -> bool:
        more = self.words - other.words
        chosen, _, last = other.target.command.strip().rpartition(" ")
        is_choice = not _NO_CHOICE.fullmatch(last) and check_of(chosen) is not None
        return is_choice and self.words > other.words and not any(word.startswith("-") for word in more)


@dataclass(frozen=True, slots=True)
class _Edit:
    """Files that were changed, or given back as they were; `""` stands for one whose name is not known."""

    files: frozenset[str] = frozenset({""})
    restores: bool = False


@dataclass(frozen=True, slots=True)
class _Ran:
    """A command that is no known check, nor a known change, and that does more than look."""

    program: str
    failed: bool
    """Whether its exit code says so, or that of its line, where that is all that is known."""
    may_change: bool = False
    """Whether it may have changed files."""


Sign: TypeAlias = Literal["revert", "rejection", "interrupt", "delivery", "clean"] | Opinion | _Checked | _Edit | _Ran
"""What happened in a run, in its order."""
_MOST_OUTPUT: Final = 20_000
_MOST_COMMANDS: Final = 200
"""Commands of a line; one with more is taken for an edit."""
_EDITOR: Final = re.compile(r"edit|write|patch|replace|create_file|insert|^create$", re.IGNORECASE)
_TELLS_NOTHING: Final = re.compile(
    r"\s(?:--watch(?:All)?(?!=false)|--exit-(?:zero|0)|--if-present|--soft-fail|--fail-never|-fn|--ignore-errors|"
    r"-Dmaven\.test\.failure\.ignore\S*|-run[\s=](?:NONE|XXX)|--ui)(?=[\s=]|$)|(?<![&>|])&(?![&>])|"
    r"\btest[:_-](?:setup|up|down|fixtures|seed|deps|watch|debug)(?=\s|$)"
)
"""It goes on, or its exit code is 0 whatever it finds."""
_DOCUMENT: Final = re.compile(
    r"\.(?:mdx?|markdown|rst|adoc)$|(?:^|/)(?:\.(?:git|docker)ignore|\.editorconfig|CODEOWNERS|README|CHANGELOG|LICENSE|AUTHORS)[^/]*$",
    re.IGNORECASE,
)
_OF_CODE: Final = re.compile(
    r"\b(?:cargo|go|tsc|mypy|pyright|ruff|flake8|pylint|eslint|gradlew?|mvnw?|dotnet|cmake|ninja|clippy|typecheck)\b"
)
_OF_DOCUMENTS: Final = re.compile(r"doc|\.md|mdbook|markdown|readme|link|spell|site|prose", re.IGNORECASE)
"""What a check of documents is called."""
_WRITES: Final = re.compile(
    r"\b(?:python[\d.]*|node|ruby)\s+-[ce]?\s[\s\S]{0,4000}?(?:\.write\(|\.write_text\(|writeFile|File\.write)"
)
"""A script that stands in the line itself and changes files."""
_DELIVERS: Final = re.compile(
    rf"{BEFORE}(?:rsync|scp|sftp|(?:docker|podman|kubectl)\s(?:.*\s)?(?:cp|build)|gh\s+pr\s+create|"
    r"git\s+(?:-\S+\s+\S+\s+)?push)(?=\s|$)"
)
"""Brings the work to another machine, or into an image."""
_PULLS: Final = re.compile(rf"{BEFORE}git\s+pull\b")
_SETS: Final = re.compile(r"^\s*(?:\w+=\S*\s+)+")
"""What a command sets for its program: the same check is run with and without it."""
_SAME_SCOPE: Final = re.compile(
    r"^(?:-(?:-?|v+|q+|x|s|u|i|B|count=\d+|j\d*|n\d*|-(?:verbose|quiet|silent|release|no-cache|parallel|ci|bail|runInBand|update\S*|"
    r"no-daemon|force|lf|last-failed|only-?[fF]ailures|rerun-tasks|allow-\S+|experimental\S*|cov\S*|locked|frozen\S*|offline|watch(?:All)?=false|"
    r"(?:summary|color|no-color|reporter|format|tb|durations|stacktrace|gtest_brief|maxWorkers|console)(?:=\S+)?))|all|\d+)$"
)
"""A word of a check that makes it look at no less."""
_BUILDS_FIRST: Final = re.compile(
    r"(?:^|[\s/])(?:bazel|cargo|go|mvnw?|gradlew?|dotnet|swift|sbt|mill|dune|stack|cabal)\s"
)
"""Builds what it tests."""
_REWRITES: Final = re.compile(
    r"\s(?:--fix|--write|--in-place|--auto-?correct(?:-all)?|--apply(?:-unsafe)?)(?=[\s=]|$)|[\s:-]fix(?=[\s:]|$)|"
    r"\b(?:rubocop\s(?:[^|]*\s)?-[aA]|ktlint\s(?:[^|]*\s)?-F|swiftlint\s+autocorrect)(?=\s|$)"
)
_NO_CHOICE: Final = re.compile(r"-.*|run|tests?|check|build")
"""A last word that chooses nothing."""
_RECORDS: Final = re.compile(r"(?=.*\b(?:jest|vitest)\s).*\s(?:-u|--update\S*)(?=\s|$)")
"""Writes what it finds down as what should be, and then passes."""
_PYTEST_RAN_NONE: Final = {4, 5}
"""It was called in a wrong way, or found no test."""
_PYTEST_ITSELF: Final = re.compile(r"(?:^|[\s/])(?:pytest|py\.test)(?=\s|$)")
_PREPARES: Final = re.compile(
    rf"{BEFORE}(?:kubectl\s(?:.*\s)?(?:apply|set)|git\s+(?:add|rm|mv|commit|tag)|dbt\s+(?:run|seed)|(?:buf|go|sqlc|prisma)\s+generate|helm\s+dep\w*\s+\w+|"
    r"(?:terraform|tofu)\s(?:.*\s)?(?:fmt|init)|cmake(?!\s+-[^SBDG])|configure)\s"
)
_FAILS_OUTRIGHT: Final = {"the release", "CI", "the hooks"}
"""Checks that start elsewhere: what they print of a failure has no form."""
_PENDING: Final = 8
"""With which `gh pr checks` says that a check still runs."""
_NO_RESULT: Final = {124, 125, 126, 127}
"""The program was stopped by a clock, or could not be started. From 129 on a signal ended it."""
_REVERTS: Final = re.compile(
    BEFORE + r"git\s+(?:revert\s(?!.*--(?:abort|quit))|reset\s.*--hard|(?:checkout|restore)\s+(?:--\s+)?\.(?=\s|$))"
)
"""Takes back all that was done."""
_RESTORES: Final = re.compile(
    BEFORE + r"git\s+(?:checkout(?:\s+HEAD)?(?:\s+--|(?=\s+\S+\.\w+\s*$))|restore)((?:\s+[\w./@+][\w./@+-]*)+)\s*$"
)
"""Takes back some files: a step of the work, unless they are all that was edited."""
_GO_PACKAGES: Final = re.compile(r"^(?:ok|\?|FAIL|---)[ \t]+\S+[ \t]+(.*)$", re.MULTILINE)
"""What became of each package."""
_SEES_CHANGES: Final = re.compile(BEFORE + r"git\s+(?:status|diff)(?=\s|$)")
_SERVES: Final = re.compile(BEFORE + r"(?:docker|podman|kubectl|helm|systemctl|psql|mysql|sqlite3|gem|az|aws|gcloud)\s")
"""What acts on a service or a machine."""
_SAID_RIGHT: Final = Verdict(outcome="success", confidence=0.9, reason="the user said that it is right", source="human")
_SAID_WRONG: Final = Verdict(outcome="failure", confidence=0.9, reason="the user said that it is wrong", source="human")
_TESTED_NOTHING: Final = re.compile(r"\(cached\)|.*\[no test(?:s to run| files)\]")


@dataclass(slots=True)
class _Known:
    """What is known of the work as it is now."""

    edited: set[str] = field(default_factory=set[str])
    """The files that are not as they were."""
    checks: list[_Checked] = field(default_factory=list[_Checked])
    """Those after the last edit, each command once."""
    failed: list[_Checked] = field(default_factory=list[_Checked])
    """Those before it that failed, and that neither the same command nor a wider one settled since."""
    last: frozenset[str] = frozenset({""})
    """The files of the last edit, and of the one before documents: a check of others proves nothing of it."""
    delivered: bool = False
    """Whether the work was brought to another machine since the last edit."""
    doubts: set[str] = field(default_factory=set[str])
    """The programs that failed since the last edit, and did not go through since."""
    changing: bool = False
    """Whether a command ran since the last check that may have changed files."""
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
        elif sign == "delivery":
            self.delivered = True
        elif sign == "clean":
            self.changing = False
        elif isinstance(sign, _Ran):
            self._run(sign)
        else:
            self.rejected, self.opinion = sign == "wrong", sign

    def _run(self, done: _Ran) -> None:
        self.doubts = self.doubts | {done.program} if done.failed else self.doubts - {done.program}
        self.changing |= done.may_change and bool(self.checks)

    def _check(self, done: _Checked) -> None:
        if (done.away or done.check == "CI") and not self.delivered:
            return
        self.failed = [check for check in self.failed if not (done.passed and done.settles(check))]
        if done.passed:
            self.doubts.discard(program_of(done.target.command.strip()))
        if self.edited and not (
            done.is_of(self.edited) and (not done.passed or any(map(done.target.may_have, self.last)))
        ):
            return
        if self.edited or done.check == "the release":
            same = [
                check for check in self.checks if done.words == check.words or (done.passed and done.settles(check))
            ]
            self.checks = [*(check for check in self.checks if check not in same), done]
            self.interrupted = self.changing = False
        elif not done.passed:
            self.failed.append(done)

    def _edit(self, done: _Edit) -> None:
        left = {file for file in self.edited if not _is_one_of(file, done.files)} if done.restores else set[str]()
        is_reverted = done.restores and bool(self.edited) and not left
        self._begin_again(edited=left if is_reverted else self.edited | done.files, reverted=is_reverted)
        self.last = done.files | (self.last - {""} if all(map(_DOCUMENT.search, done.files)) else frozenset())

    def _begin_again(self, *, edited: set[str], reverted: bool) -> None:
        self.edited, self.reverted, self.delivered, self.doubts, self.changing = edited, reverted, False, set(), False
        self.failed += [check for check in self.checks if not check.passed]
        self.checks, self.rejected, self.interrupted, self.opinion = [], False, False, None

    def verdict(self) -> Verdict | None:
        """Decide how a session ended, with the rule in `reason`; `None` where nothing was checked and nobody said."""
        checked = _outcome_of(self.checks, self.failed)
        if checked and (self.changing or (self.doubts and checked.outcome == "success")):
            checked = _verdict_of("unknown", "a command failed, or ran after the last check and may have changed files")
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
    return bool(file) and any(f"/{file}".endswith(f"/{path.removeprefix('./')}") for path in restored)


def _verdict_of(outcome: Outcome, reason: str, source: VerdictSource = "ground_truth") -> Verdict:
    return Verdict(outcome=outcome, reason=reason, source=source)


def _outcome_of(checks: Sequence[_Checked], before: Sequence[_Checked]) -> Verdict | None:
    """Failed tests are a failure. Another check that failed beside passed tests may fail for what was there before."""
    if not checks:
        return None
    kinds = dict.fromkeys(check.check for check in checks)
    failed = dict.fromkeys(check.check for check in checks if not check.passed)
    source: VerdictSource = "ground_truth" if all(check.by_code for check in checks) else "judge"
    if (before and not failed) or any(
        wider.check == check.check and check.passed and not wider.passed
        for at, check in enumerate(checks)
        for wider in checks[:at]
    ):
        return _verdict_of("unknown", "what had failed was not checked again as a whole")
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
    others = [other for other in known if other.trajectory.id != run.id]
    if any(_size(other.trajectory) >= _size(run) for other in others):
        return None
    went_on = _verdict_of("unknown", WENT_ON).model_copy(update={"final": True})
    return [(other.trajectory, went_on) for other in others if _is_by_rules(other)]


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
        yield run, _verdict_of("unknown", "what it had committed was reverted later").model_copy(update={"final": True})


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
        waits = call.name == "write_stdin" and isinstance(call.arguments, dict) and not call.arguments.get("chars")
        if _EDITOR.search(call.name.rpartition(".")[2]) and not waits and not (result and result.is_error):
            yield from () if SCRATCH.match(file := file_of(call)) else (_Edit(frozenset({file})),)
        return
    line = handed_on(command_of(call.arguments))
    if result is not None and (pair := as_printed(line, result.text[-_MOST_OUTPUT:])):
        line, code = pair
    commands, joints = parts_of(bare(line))
    if _WRITES.search(line) or len(commands) > _MOST_COMMANDS:
        yield _Edit()
    if len(commands) > _MOST_COMMANDS:
        return
    for place, command in enumerate(commands):
        own, before = own_code(commands, joints, place, code, prepares=_means_the_same), commands[:place]
        is_log = joints[place - 1 : place] == ["|"] and check_of(commands[place - 1]) is not None
        away = is_log or any(map(AWAY.match, commands[: place + 1]))
        for sign in _signs_of_command(command, result, own, bool(code), Target(command, folder_of(before)), away=away):
            if isinstance(sign, _Checked) or not goes_elsewhere(before):
                yield sign


def _means_the_same(command: str) -> bool:
    """Whether a line fails as the check at its end does where this command before it fails."""
    return bool(ENTERS.match(command) or check_of(command) or _PREPARES.match(command))


def _signs_of_command(
    command: str, result: Observation | None, code: int | None, line_failed: bool, target: Target, *, away: bool
) -> Iterator[Sign]:
    check, printed = check_of(command), result.text[-_MOST_OUTPUT:] if result else ""
    if _DELIVERS.match(command):
        yield "delivery"
    if check is None and runs_hooks(command, printed):
        check = "the hooks"
    if check is None:
        yield from () if away else _signs_of_change(command, result, code, line_failed=line_failed)
        return
    if _REWRITES.search(command) or _RECORDS.match(command):
        yield _Edit()
    if _REWRITES.search(command):
        return
    if result is not None and (check == "CI" or not (runs_nothing(command) or _TELLS_NOTHING.search(command))):
        is_inverted = command.lstrip().startswith("! ")
        if (code in _PYTEST_RAN_NONE and _PYTEST_ITSELF.search(command)) or (check == "CI" and code == _PENDING):
            code = None
        status = (0 if code else 1) if is_inverted and code is not None else code
        passed = _passed(printed, status) if _shows(check, printed, status) else None
        if passed is None and (line_failed if code is None else code and code not in _NO_RESULT and not is_inverted):
            yield _Ran(program_of(command.strip()), failed=True)
        if passed is not None and not (passed and code is None and line_failed):
            words = frozenset[str]() if check == "CI" else frozenset(_SETS.sub("", command).split())
            by_code = code is not None or (line_failed and not passed)
            begun = started_in(printed) if passed and check != "the hooks" else []
            yield _Checked(check, words, passed, by_code, target, away, tuple(Target(text, "") for text in begun))


def _shows(check: Check, printed: str, code: int | None) -> bool:
    """Whether what a check printed bears its exit code out: it looked at something, or found something."""
    if code:
        is_shown = SHOWS_FAILURE.search(printed) is not None and not _shows_passed_tests(printed)
        return check in _FAILS_OUTRIGHT or is_shown
    is_silent = code == 0 and not SHOWS_SUCCESS.search(printed)
    return check != "the tests" or not (is_silent or _is_old_news(printed))


def _signs_of_change(
    command: str, result: Observation | None, code: int | None, *, line_failed: bool
) -> Iterator[Sign]:
    if code not in _NO_RESULT and (may_check(command) or _SERVES.match(command)):
        failed = line_failed if code is None else bool(code)
        yield _Ran(program_of(command.strip()), failed, not failed and may_check(command))
    if _SEES_CHANGES.match(command) and result and (not result.text.strip() or "nothing to commit" in result.text):
        yield "clean"
    if _REVERTS.match(command):
        yield from () if result is None or result.is_error else ("revert",)
    elif restored := _RESTORES.match(command):
        yield _Edit(frozenset(restored[1].split()), restores=result is not None and not result.is_error)
    elif CHANGES.match(command) or INTO_FILE.search(command):
        yield _Edit()
    elif _PULLS.match(command):  # the work of others, which no earlier check has seen
        yield _Ran("git pull", failed=False, may_change=True)


def _passed(printed: str, code: int | None) -> bool | None:
    """Whether a check passed: by its exit code, else by its runner's last line; `None` where they disagree."""
    if RAN_NOTHING.search(printed) or (code is not None and (code in _NO_RESULT or code < 0 or 128 < code < 255)):
        return None
    if code is not None:
        return False if code else None if FAILS.search(printed) else True
    fails, passes = bool(SAYS_FAILED.search(printed)), bool(SAYS_PASSED.search(printed))
    if fails and _shows_passed_tests(printed):
        return None
    return False if fails else True if passes else None


def _shows_passed_tests(printed: str) -> bool:
    """Whether tests passed and none failed: of a line that failed, something else did."""
    return SAYS_PASSED.search(printed) is not None and TESTS_FAILED.search(printed) is None


def _is_old_news(printed: str) -> bool:
    """Whether nothing was tested: there are no tests, none was chosen, or none of what they test has changed."""
    packages = _GO_PACKAGES.findall(printed)
    counts = [number for numbers in COUNTS.findall(printed) for number in numbers if number]
    is_nothing = bool(packages or counts) and all(map(_TESTED_NOTHING.match, packages)) and not any(map(int, counts))
    return is_nothing or CHOSE_NOTHING.search(printed) is not None
