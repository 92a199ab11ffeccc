"""Draws cures from a run: a command or call that failed, and what was done before it went through.

By exit codes and flags alone, and never by words: what an output says is only the key by which a cure is found again.
Of a call of a tool a cure tells the names of the tool and of its arguments, and never a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, TypeAlias

from lessonbank.contracts.records import Lesson, Provenance, ToolCall, Trajectory
from lessonbank.contracts.records.lessons import EXTRACTIVE
from lessonbank.guard.hazards import CHECKS_LESS, may_loosen
from lessonbank.text.error_line import (
    ABSENT,
    BRANCH,
    ITS_BRANCH,
    MODULE,
    NO_SCRIPT,
    PLACELESS,
    SAYS_ERROR,
    UNREAD,
    error_in,
)
from lessonbank.text.shell_commands import (
    EDITS,
    INSTALLS,
    RUNS,
    RUNS_TEXT,
    TELLS,
    apart,
    differ_in_options,
    differ_in_start,
    name_of,
    only_looks,
    operands_of,
    parts_in,
    program_of,
    stands_for,
    start_of,
    unwrapped,
    words_of,
)

from ._checks import check_of
from ._shell import ENTERS, HEREDOC, as_printed, bare, calls_of, command_of, is_shell, parts_of

_LONGEST: Final = 100
"""Characters of a command that a cure tells."""
_BOTH: Final = 135
"""Characters of the two commands of a cure: with the words around them they fit one line of 200."""
_FAILED: Final = " failed: "
_TELLING: Final = 20
"""Characters of a line that says what was wrong and not only that it was."""
_SOON: Final = 12
"""Commands and edits after a failure among which the next try is looked for."""
_MOST_BETWEEN: Final = 3
_NO_RESULT: Final = {124, 125}
_EDITED: Final = "edit "
_ASKED: Final = "ask"
"""The cure of what went through after the person had done something, such as to load a key."""
_DOCUMENT: Final = re.compile(
    r"(?:change(?:s|log)|news|history|readme|version|releases?)(?:\.\w{1,4})?|[\w.-]+\.(?:md|rst|adoc)|\.env(?:\.\w+)?",
    re.IGNORECASE,
)
"""What no check reads for its rules: an error that names such a file can be cured by an edit of it."""
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add) File: (.+)$", re.MULTILINE)
_EDITOR: Final = re.compile(r"edit|(?<!todo)write(?!_stdin)|patch|replace|create_file|insert", re.IGNORECASE)
_MAKER: Final = re.compile(r"write|create", re.IGNORECASE)
_SHAPED: Final = re.compile(r"[|;<>&(){}`\n\"\\]")
"""A command with one of these is more than a program and its arguments."""
_PLAINLY_QUOTED: Final = re.compile(r"'[^'`\n]*'|\"[^\"`$\n]*\"")
_MAKES: Final = re.compile(r"(?<![0-9&>-])>{1,2}\s*([\w./~-]+)|\btee\s+(?:-a\s+)?([\w./~-]+)")
_SHORTENED: Final = re.compile(r"\s*(?:2>&1\s*)?\|\s*(?:tail|head|cat)(?:\s+-?\w+){0,3}\s*$")
"""What only shortens the output. Whether the program went through is not told then."""
_NOT_THERE: Final = 127
_CLOSED: Final = 126
_SHELL_LACKS: Final = re.compile(
    r"(?:\S{0,40}sh|\(eval\)):.{0,80}command not found|\S{0,80}python[\d.]*(?:\.exe)?: No module named|Python was not found"
)
"""What is printed at once for a program that is not there: no pipe hides that."""
_LACKS: Final = re.compile(f"{MODULE.pattern}|ModuleNotFound|{ABSENT.pattern}|no matches found: ", re.MULTILINE)
"""How programs say that a module or a program is not there, or that they were not even asked."""
_FREES: Final = {"sandbox_permissions": "require_escalated", "with_escalated_permissions": True, "dangerouslyDisableSandbox": True}
"""How the call of an agent's shell asks the person to let it out of the sandbox."""
_FREED: Final = "free"
"""The cure of what went through, word for word, outside of the sandbox."""
_QUOTED: Final = "quote"
"""The cure of what the shell took for a pattern."""
_PROSE: Final = re.compile(
    r"(?ms)(?<!-[ceq] )(?:\"\$\(cat <<-?\s*['\"]?(\w+)['\"]?\n.*?^\s*\1\s*\)\"|'[^']{80,}'|\"[^\"$`]{80,}\"|'[^'\n]*\n[^']*'|\"[^\"$`\n]*\n[^\"$`]*\")"
)
"""A long text in quotes: what it says is of one task."""
_ENDINGS: Final = re.compile(r"dos2unix\s|s/\\r")
"""An edit of line endings alone."""
_ITS_SCRIPT: Final = "<script>"
_ENTERS_ONE: Final = re.compile(r"\s*(?:cd|Set-Location)\s+(?:/d\s+)?(\"[^\"$]+\"|'[^']+'|\S+)\s*$")
_PREPARES: Final = re.compile(r"\s*(?:(?:source|\.|export)\s+\S{1,60}|(?:export\s+|\$env:)?\w+\s*=\s*(?:\"[^\"`$]{1,80}\"|'[^']{1,80}'|\S{1,60}))\s*$")
_MENDS: Final = re.compile(r"fix|format|fmt|write|update|install", re.IGNORECASE)
_NOTHING_TO_RUN: Final = {("pytest", 4), ("pytest", 5)}
"""Exit codes that say that what was named is not there."""
_READS: Final = re.compile(
    r"(?i:get|list|search|find|grep|glob|read|view|show|look|check|query|fetch|count|describe|task|todo|ask|skill|agent|tool|"
    r"kill|bash|enter|exit|update_plan|web|monitor|think|write_stdin)(?![a-z])"
)
_NAME: Final = re.compile(r"[\w.-]{1,60}")
_OPENS: Final = re.compile(
    r"\W{0,20}(?:\w{0,40}(?:error|exception)|traceback|fatal|failed)\b(?!\W{0,3}(?:none|null|false|0)\b)", re.IGNORECASE
)
_ITS_PATH: Final = "<path>"
"""What a command was about that another program did instead."""
_PATHS: Final = re.compile(rf"\"?{_ITS_PATH}\"?(?: \"?{_ITS_PATH}\"?)*")
_OF_ONE_TASK: Final = re.compile(r"(?=\S*\d)[\w.:-]{4,}|\"(?=.*\d)[^\"]{4,}\"|(?=.*\w).*[/\\].*")
"""A word that a command and its next try share, and that the same command in another task has not."""
_MESSAGE: Final = re.compile(
    r"(?ms)(\s(?:-\w?m|-s|--(?:message|reason|title|body|comment|notes?|subject|summary|description|text|content))[\s=])"
    r"(?:\"\$\(cat <<-?\s*['\"]?(\w+)['\"]?\n.*?^\s*\2\s*\)\"|'[^']*'|\"(?:[^\"\\]|\\.)*\")",
)
"""What a command says to people: another text in each task."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that failed, how it can be found again, and what became of it."""

    program: str
    """The program with its sub-command, such as `git push`."""
    error: str
    """The line that says what was wrong, without numbers and places: a key, and never shown."""
    command: str
    at: int
    """The place of its step in the run, from 0."""
    through_at: int | None = None
    """The step in which it went through next; `None` if it did not."""
    cure: str = ""
    """The command that got it through; empty where that cannot be told."""

    @property
    def key(self) -> str:
        """What a cure for it is looked up by."""
        return key_of(self.program, self.error)

    def is_like(self, key: str, /) -> bool:
        """Whether the failure of a key is of the same program with the same words, in whatever sub-command."""
        program, _, error = key.partition(_FAILED)
        is_said = len(self.error) >= _TELLING and bool(SAYS_ERROR.search(self.error))
        is_script = RUNS.fullmatch(f"{program} ") and _LACKS.search(error)  # whatever script then lacks the same
        is_of_it = name_of(program) == name_of(self.program) or bool(is_script)
        return is_said and error == self.error and is_of_it

    @property
    def replaced_key(self) -> str:
        """The key of the fact that another program does here what this one was asked for."""
        return key_of(name_of(self.program), "")

    @property
    def _advice(self) -> str:
        if self.cure.startswith(_EDITED):
            return f"It went through after an edit of `{self.cure.removeprefix(_EDITED)}`."
        if self.cure == _QUOTED:
            return "It went through with quotes around the path that the shell took for a pattern."
        if self.cure == _FREED:
            return "It went through outside of the sandbox, which the person has to allow: ask for it."
        if self.cure == _ASKED:
            return "It went through after the person had done something: ask for it."
        is_changed = program_of(self.cure.partition("(")[0]) == self.program
        if is_changed and may_loosen(self.command, self.cure, is_check=check_of(self.command) is not None):
            return f"`{self.cure}` went through: {CHECKS_LESS}."
        if _is_instead(self.command, self.cure):
            return f"`{self.cure}` went through."
        brings = INSTALLS.match(self.cure) and not is_changed
        return f"`{self.cure}` {'brought what was not there.' if brings else 'went through, and then it did.'}"

    def lesson(self, run: str, /) -> Lesson:
        """What the cure tells, as a lesson of this run. It has a place: the program."""
        return Lesson(
            title=f"`{_shortened(self.command, _BOTH - len(self.cure))}` failed here before",
            content=self._advice,
            place=self.program,
            provenance=Provenance(
                method=EXTRACTIVE, trajectory_ids=(run,), verdict="success", verdict_source="ground_truth"
            ),
        )


@dataclass(frozen=True, slots=True)
class _Edit:
    file: str = ""


@dataclass(frozen=True, slots=True)
class _Spoke:
    """The person said something."""


_Deed: TypeAlias = "_Command | _Edit | _Spoke"


@dataclass(frozen=True, slots=True)
class _Command:
    at: int
    text: str
    program: str
    words: frozenset[str]
    folder: str
    code: int
    printed: str
    is_sure: bool = True
    """Whether the code is its own: in a pipe it is that of what shortens the output."""
    before: frozenset[str] = frozenset()
    """The programs of its line before it. One that is run again failed itself."""
    prepared: str = ""
    """What its line sets up first, such as `source .venv/bin/activate`."""
    script: str = ""
    """The script that its line gives an interpreter."""
    is_free: bool = False
    """Whether it ran outside of the sandbox."""

    @property
    def failed(self) -> bool:
        return self.code > 0 and not 128 < self.code < 192 and self.code not in _NO_RESULT  # no signal ended it

    @property
    def looks(self) -> bool:
        return only_looks(self.text)

    def is_again(self, other: _Command) -> bool:
        """Whether it is the next try: the same command, or with more words, or with others about the same."""
        is_there = not self.folder or not other.folder or self.folder == other.folder or self.is_placed(other)
        is_more = self.words >= other.words or (other.program, other.code) in _NOTHING_TO_RUN
        is_same = self.words == other.words or (is_more and self.got_past(other))
        is_sure = self.is_sure or (other.is_missing and not self.is_missing)  # no pipe hides that it is not there
        mine, its = (
            command.program.replace(" run ", " ") for command in (self, other)
        )  # `bun test` is not always its script
        is_next = (is_same and mine == its and self.has_script_of(other)) or self.varies(other) or self.quotes(other)
        return is_sure and is_there and is_next

    def is_placed(self, other: _Command) -> bool:
        """Whether it ran above or below the folder in which the other try did not find something."""
        short, long = sorted((f"{self.folder}/", f"{other.folder}/"), key=len)
        return PLACELESS.search(other.printed) is not None and (long.startswith(short) or long.endswith(f"/{short}"))

    def has_script_of(self, other: _Command) -> bool:
        """Whether both run the same script, or one that needs what the other lacked."""
        needs = set(re.findall(r"\w+", self.script.casefold())) & _lacked(other)
        return self.script == other.script or other.is_absent or bool(needs)

    def quotes(self, other: _Command) -> bool:
        """Whether it quotes what a shell took for a pattern."""
        named = re.search(r"no matches found: (\S+)", other.printed)
        is_quoted = named is not None and re.search(rf"['\"]{re.escape(named[1])}['\"]", self.text)
        return self.program == other.program and self.got_past(other) and bool(is_quoted)

    def varies(self, other: _Command) -> bool:
        """Whether it went through with other options, or started in another way: what it is about is the same."""
        is_about_it = self.program == other.program and differ_in_options(self.text, other.text)
        is_try = self.code == 0 and self.text != other.text and not self.looks and self.has_script_of(other)
        return is_try and (is_about_it or differ_in_start(self.text, other.text))

    def helps(self, other: _Command) -> bool:
        """Whether it may be what got another one through: it acts, and is no check, nor the same on another thing."""
        is_check = check_of(self.text) in ("the tests", "the linter") and not _MENDS.search(self.text)
        (mine, its), (set_here, set_there) = zip(*map(apart, (self.text, other.text)), strict=True)
        is_twin = mine[:2] == its[:2] and set_here == set_there and not {*mine[2:]}.isdisjoint(its[2:])
        acts = self.code == 0 and not self.looks and not self.script
        return acts and not is_check and not is_twin and not TELLS.match(self.text)

    @property
    def lacks(self) -> bool:
        """Whether a module or a program was not there."""
        return _LACKS.search(self.printed) is not None

    @property
    def is_absent(self) -> bool:
        """Whether its program is not there."""
        module = re.search(r"\s-m\s+([\w.]+)", self.text)
        is_told = ABSENT.search(self.printed) is not None and name_of(self.program) in self.printed
        lacks = is_told or bool(module and f"No module named {module[1]}" in self.printed)
        is_closed = self.code == _CLOSED and "ermission denied" in self.printed
        return self.code == _NOT_THERE or is_closed or (self.code > 0 and lacks)

    @property
    def is_missing(self) -> bool:
        """Whether nothing of it ran: its program is not there, or the shell could not read the line."""
        return self.is_absent or (self.code > 0 and UNREAD.search(self.printed) is not None)

    def got_past(self, other: _Command) -> bool:
        """Whether it went through, or at least ran where the other try did not."""
        ran = self.code == 1 and (other.program, other.code) in _NOTHING_TO_RUN
        return self.code == 0 or ran or (other.is_missing and not self.is_missing)

    def replaces(self, other: _Command) -> bool:
        """Whether it went through on the same thing, such as one file, and is no look and not that file itself."""
        started = start_of(self.text, other.program)
        is_act = not self.looks and not INSTALLS.match(self.text) and not _ENDINGS.search(self.text)
        if self.code == 0 and started and is_act:  # by what starts it
            return not other.text.startswith(started)
        if not other.is_absent:  # what it was for is done by another runner
            return self.code == 0 and _are_alike(self.text, other.text)
        same = operands_of(self.text) & operands_of(other.text)
        is_itself = any(word.rpartition("/")[2] == self.program for word in same)
        is_other = self.text.partition(" ")[0] != other.text.partition(" ")[0]
        is_try = self.code == 0 and self.looks <= other.looks and not _ENDINGS.search(self.text)
        return is_try and bool(same) and is_other and not is_itself


def key_of(program: str, error: str, /) -> str:
    """What a cure is looked up by: the same for the same command that failed in the same way."""
    return f"{program}{_FAILED}{error}"


def failure_of(line: str, printed: str, /) -> Failure | None:
    """A command that failed just now, of several that lead to one another the last; `None` where it only looks."""
    line = _MESSAGE.sub(r"\1'…'", line)
    parts, joints = parts_of(line)
    lines = (line, parts[-1]) if {*joints} <= {"&&"} else (line,)
    commands = filter(None, (_command(0, text, "", 1, printed) for text in lines))
    command = next(commands, None) or next(_of_script(0, line, "", 1, printed), None)
    if command is None or (command.looks and not command.lacks):
        return None
    return Failure(command.program, error_in(printed), command.text, 0)


def opens_with_error(printed: str, /) -> bool:
    """Whether what a tool gave says at once that it failed, where its program does not tell it."""
    return _OPENS.match(printed) is not None


def failures_in(run: Trajectory, /, exit_codes: Mapping[str, int]) -> list[Failure]:
    """The commands of a run that failed, with what got them through."""
    done, failures = list(_done(run, exit_codes)), list[Failure]()
    for at, deed in enumerate(done):
        if isinstance(deed, _Command) and deed.failed and (not deed.looks or deed.lacks):
            later = done[at + 1 : at + 1 + _SOON]
            failure = _followed(deed, later)
            failures += [
                failure if failure.cure else _with_what_it_lacked(deed, later) or failure,
                *_replaced(deed, later),
            ]
    return failures


def _lacked(failed: _Command) -> set[str]:
    """The names of the module that was not there, as one writes them in a package's name, too."""
    named = {word for found in MODULE.findall(failed.printed) for word in found if word}
    named |= {part for word in named for part in (word.split(".")[0], word.strip("@").rpartition("/")[2])}
    return {word.replace("-", "_").casefold() for word in named if len(word) > 1}


def _are_alike(text: str, other: str) -> bool:
    """Whether two commands check the same, such as the types, by whatever runner."""
    mine, its = check_of(text), check_of(other)
    is_types = {mine, its} == {"the linter", "the build"} and name_of(program_of(text)) in ("tsc", "vue-tsc")
    return its is not None and (mine == its or is_types) and not _MENDS.search(text)


def _is_instead(failed: str, cure: str) -> bool:
    """Whether a cure did what the command was for, and not what had to come before it."""
    program, other = program_of(cure), program_of(failed)
    if _ENDINGS.search(cure) or cure.endswith(" …") or only_looks(failed):
        return not _ENDINGS.search(cure)
    if _are_alike(cure, failed):
        return True
    is_started = start_of(cure, other) and cure.split()[0] != failed.split()[0] and not INSTALLS.match(cure)
    is_call = "(" in cure and cure.partition("(")[0] == failed.partition("(")[0]
    if is_call or is_started or cure.endswith(failed) or _ITS_PATH in cure or stands_for(program, other):
        return True
    is_more = {*words_of(failed)} <= {*words_of(cure)} or check_of(cure) or differ_in_options(cure, failed)
    return bool(is_more and program == other) or differ_in_start(cure, failed)


def _of_any_task(failed: str, cure: str) -> tuple[str, str]:
    """A command and its next try without the paths and names that both hold: another task has others."""
    for word in set(parts_in(cure)[1:]).intersection(parts_in(failed)[1:]):
        if _OF_ONE_TASK.fullmatch(word) and not word.startswith("-"):
            place, pattern = _ITS_PATH if {"/", "\\"} & {*word} else "<value>", rf"(?<![^\s=]){re.escape(word)}(?!\S)"
            failed, cure = (re.sub(pattern, place, text) for text in (failed, cure))
    return failed, cure


def _shortened(text: str, most: int) -> str:
    text = re.sub(r"\w+://[^\s\"']+", "<address>", text)
    if len(text) <= most:
        return text
    return f"{text[: most - 2].rpartition(' ')[0]} …"  # a word that is cut hides from the redactor what it is


def _followed(failed: _Command, later: Sequence[_Deed]) -> Failure:
    failure = Failure(failed.program, error_in(failed.printed), failed.text, failed.at)
    place = next((n for n, deed in enumerate(later) if isinstance(deed, _Command) and deed.is_again(failed)), None)
    if place is None:
        return failure
    again, done = later[place], {deed.program for deed in later[: place + 1] if isinstance(deed, _Command)}
    assert isinstance(again, _Command)
    if not again.got_past(failed) or not failed.before.isdisjoint(done - {failed.program}):
        return failure
    cure = _cure(failed, again, later[:place], failure.error)
    for branch in BRANCH.findall(failed.printed):
        cure = re.sub(rf"(?<![\w.-]){re.escape(branch)}(?![\w.-])", ITS_BRANCH, cure)
    if (again.varies(failed) or len(cure) > _LONGEST) and cure.endswith(again.text):
        command, cure = _of_any_task(failed.text, cure)
        failure = replace(failure, command=command)
    return replace(failure, through_at=again.at, cure=cure if len(cure) <= _LONGEST else "")


def _brings(text: str, failed: _Command) -> bool:
    """Whether a command installs what an error names, or all that the repository names."""
    installs = INSTALLS.match(text)
    if installs is None or (failed.text.startswith("/") and not text.startswith("/")):  # of another interpreter
        return False
    if failed.is_absent and (RUNS.match(failed.text) or stands_for(program_of(text), failed.program)):
        return "-m" in failed.words  # no package brings an interpreter, or what installs packages
    words = {word.strip("'\"") for word in text[installs.end() :].split() if not word.startswith((".", "-"))}
    named = {re.split(r"[<>=\[]|(?<=.)@", word)[0].replace("-", "_").casefold() for word in words}
    lacked = {*re.sub(r"\W", " ", error_in(failed.printed).replace("-", "_")).split(), *_lacked(failed)}
    is_named = not lacked.isdisjoint({part for word in named for part in (word, word.rpartition("/")[2])})
    is_in = any(len(name) > 3 and name in word for name in _lacked(failed) for word in named)
    return not named or " -r " in text or is_named or is_in


def _with_what_it_lacked(failed: _Command, later: Sequence[_Deed]) -> Failure | None:
    """What installed a module or a program that was not there, where no later try says so any more."""
    error, done = error_in(failed.printed), [deed for deed in later if isinstance(deed, _Command)]
    place = next((n for n, command in enumerate(done) if command.code == 0 and _brings(command.text, failed)), None)
    if (
        not failed.lacks
        or place is None
        or not (tries := [command for command in done[place + 1 :] if not command.looks])
    ):
        return None
    if any(command.code and error_in(command.printed) == error for command in tries):
        return None
    return Failure(failed.program, error, failed.text, failed.at, tries[0].at, done[place].text)


def _replaced(failed: _Command, later: Sequence[_Deed]) -> Iterator[Failure]:
    """What failed with one program, and went through with another that stands for it: in whatever words it fails."""
    acted = next((deed for deed in later if isinstance(deed, _Command) and not deed.looks), None)
    is_unknown = NO_SCRIPT.search(failed.printed) is not None and not failed.is_absent
    stands = acted and stands_for(acted.program, failed.program) and acted.has_script_of(failed)
    if acted is None or acted.code != 0 or not stands:
        is_open = failed.is_absent or is_unknown
        acted = next((deed for deed in later if is_open and isinstance(deed, _Command) and deed.replaces(failed)), None)
    if acted and is_unknown:
        yield Failure(failed.program, error_in(failed.printed), failed.text, failed.at, acted.at, acted.text[:_LONGEST])
    elif acted:
        same = operands_of(failed.text) & operands_of(acted.text)
        command, cure = (
            _PATHS.sub(_ITS_PATH, reduce(lambda text, word: text.replace(word, _ITS_PATH), same, deed.text))
            for deed in (failed, acted)
        )
        before, path, _ = cure.partition(_ITS_PATH)  # what stands behind it is of one task
        if not path and (start := start_of(cure, failed.program)) and not cure.endswith(failed.text.partition(" ")[2]):
            command, before = f"{start_of(failed.text, failed.program)} …", f"{start} …"
        if len(before + path) <= _LONGEST:
            yield Failure(name_of(failed.program), "", command, failed.at, acted.at, before + path)


def _cure(failed: _Command, again: _Command, between: Sequence[_Deed], error: str) -> str:
    """What was edited is of one task, so it is no cure, unless the error names that document.

    Nor is a command that was only run again.
    """
    edited = {deed.file for deed in between if isinstance(deed, _Edit)}
    acted = [deed for deed in between if isinstance(deed, _Command) and deed.helps(failed)]
    if edited:
        file = next(iter(edited))
        is_named = len(edited) == 1 and bool(_DOCUMENT.fullmatch(file)) and file in error
        return f"{_EDITED}{file}" if is_named and not acted and again.words == failed.words else ""
    if again.is_free and not failed.is_free and again.words == failed.words and not acted:
        return _FREED
    if again.quotes(failed):
        return _QUOTED
    if again.text != failed.text and again.words == failed.words and UNREAD.search(failed.printed) and not acted:
        return again.text
    if again.words > failed.words or (failed.program, failed.code) in _NOTHING_TO_RUN or again.varies(failed):
        is_bare = len(failed.words) == 1 and not check_of(failed.text)  # it said how it is used
        return again.text if not acted and again.text != failed.text and not is_bare else ""
    if again.words == failed.words and again.prepared != failed.prepared and not acted:
        return f"{again.prepared} && {again.text}" if again.prepared else ""
    if again.words == failed.words and again.folder not in ("", failed.folder) and not acted:
        name = again.folder.rpartition("/")[2]
        place = name if name == again.folder else f"…/{name}"
        return f"cd {place} && {again.text}" if _NAME.fullmatch(name) else ""
    if again.words == failed.words and not acted and any(isinstance(deed, _Spoke) for deed in between):
        return _ASKED if check_of(failed.text) in (None, "the release") else ""  # a test may only be flaky
    if again.words != failed.words or not 0 < len(acted) <= _MOST_BETWEEN:
        return ""
    named = [command for command in acted if command.program.rpartition(" ")[2] in failed.printed]
    return (named or [command for command in acted if command.program != "git add"] or acted)[-1].text


def _done(run: Trajectory, exit_codes: Mapping[str, int]) -> Iterator[_Deed]:
    """The commands whose exit code is known, and the edits, in their order."""
    made = set[str]()
    for at, step in enumerate(run.steps):
        for call, result in calls_of(step):
            code, given = exit_codes.get(call.id or ""), call.arguments if isinstance(call.arguments, dict) else {}
            if is_shell(call) and code is not None and result:
                is_free = any(given.get(name) == value for name, value in _FREES.items())
                for deed in _of_line(at, call, code, result.text, made):
                    yield replace(deed, is_free=is_free) if isinstance(deed, _Command) else deed
            elif not is_shell(call) and _EDITOR.search(call.name) and not (result and result.is_error):
                made |= {_edited_file(call)} if _MAKER.search(call.name) else set()
                yield _Edit(_edited_file(call))
            elif not is_shell(call) and code is not None and result and (done := _call(at, call, code, result.text)):
                yield done
        if any(seen.source == "user" for seen in step.observations):
            yield _Spoke()


def _of_line(at: int, call: ToolCall, code: int, printed: str, made: set[str]) -> Iterator[_Deed]:
    """What a line of a shell did: its command, or several that all went through.

    An edit where that is not known, and where it is of a file that the run itself made: no later task has that.
    """
    directory = call.arguments.get("workdir") if isinstance(call.arguments, dict) else None
    folder, line = directory if isinstance(directory, str) else "", _MESSAGE.sub(r"\1'…'", command_of(call.arguments))
    line, code = as_printed(line, printed) or (line, code)
    parts, joints = parts_of(HEREDOC.sub("<<''", line))
    plain = parts_of(bare(line))[0]
    opened = [row for row in line.splitlines() if "<<" in row]
    made |= {
        name.rpartition("/")[2]
        for groups in _MAKES.findall("\n".join((bare(line), *opened)))
        for name in groups
        if name
    }
    is_of_run = not made.isdisjoint(name.rpartition("/")[2] for name in bare(line).split())
    edits = is_of_run or (any(map(EDITS.match, plain)) and not _ENDINGS.search(line))
    scripts = list(_of_script(at, line, folder, code, printed))
    is_given = bool(scripts) and RUNS_TEXT.match(f"{plain[-1]} ") is not None
    command = None if edits or is_given else _command(at, line, folder, code, printed)
    if edits or is_given:
        deeds: list[_Deed] = [_Edit()] if edits or not all(map(only_looks, plain)) else []
        yield from (*scripts, *deeds) if code == 0 else (*deeds, *scripts)
    elif command is not None:
        yield command
    elif len(plain) == 1 and (command := _command(at, _PROSE.sub("'…'", line), folder, code, printed)) is not None:
        yield replace(command, script=line)
    elif len(parts) == len(plain) > 1 and "|" not in joints and "||" not in joints:
        yield from _of_parts([_command(at, part, folder, code, printed) for part in parts], parts, joints, code)
    elif code == 0 and (short := _command(at, _SHORTENED.sub("", line), folder, 0, printed)) is not None:
        is_there = _SHELL_LACKS.match(printed) is None
        yield replace(short, is_sure=not is_there, code=0 if is_there else _NOT_THERE)
    elif not all(only_looks(part) for part in plain):
        yield _Edit()  # more than one command: what it did is not known
        yield from scripts


def _of_parts(
    each: Sequence[_Command | None], parts: Sequence[str], joints: Sequence[str], code: int
) -> Iterator[_Deed]:
    """The commands of a line of several: the exit code is that of the last ones, which lead to one another."""
    start = max((n for n, joint in enumerate(joints, 1) if joint != "&&"), default=0)
    if not all(only_looks(part.strip()) or ENTERS.match(part) for part in parts[:start]):
        yield _Edit()
    if code == 0:
        yield from (deed or _Edit() for deed in each[start:])
    elif (last := each[-1]) is not None:
        yield replace(last, before=frozenset(program_of(part) for part in parts[start:-1]))


def _of_script(at: int, line: str, folder: str, code: int, printed: str) -> Iterator[_Command]:
    """A script of the run's own that lacked a module, or that went through: what it is does not matter then."""
    last = parts_of(bare(line))[0][-1]
    runs, is_given = RUNS.match(last), RUNS_TEXT.match(f"{last} ") is not None
    if runs and (code in _NO_RESULT or (is_given if code == 0 else _LACKS.search(printed))):
        text, program = f"{runs[1]} {_ITS_SCRIPT}", re.split(r"[/\\]", runs[1])[-1].removesuffix(".exe")
        yield _Command(at, text, program, frozenset(text.split()), folder, code, printed, script=line if is_given else last)


def _edited_file(call: ToolCall) -> str:
    """The name of the one file that a call edits; empty where that is not plain."""
    given = call.arguments
    if isinstance(given, dict):
        named = next((given[name] for name in ("file_path", "path", "filePath") if name in given), None)
        text = str(given.get("input") or given.get("patch") or "")
    else:
        named, text = None, given
    files = [named] if isinstance(named, str) else _PATCHED.findall(text)
    return files[0].rstrip("/").rpartition("/")[2] if len(files) == 1 else ""


def _call(at: int, call: ToolCall, code: int, printed: str) -> _Command | None:
    """The call of a tool that acts, told by names alone; `None` where they are no names."""
    names = sorted(call.arguments) if isinstance(call.arguments, dict) else []
    if _READS.match(call.name) or not all(map(_NAME.fullmatch, (call.name, *names))):
        return None
    text = f"{call.name}({', '.join(names)})" if names else call.name
    return _Command(at, text[:_LONGEST], call.name, frozenset((call.name, *names)), "", code, printed)


def _command(at: int, line: str, folder: str, code: int, printed: str) -> _Command | None:
    """The one command of a line, which may enter a folder first, or prepare; `None` where it is anything else."""
    commands, joints = parts_of(line)
    is_plain = all(
        ENTERS.match(command) or _PREPARES.match(command) or (joint != "&&" and only_looks(command.strip()))
        for command, joint in zip(commands, joints, strict=False)
    ) and not {*joints} - {"&&", ";", "\n"}
    if len(commands) != len(parts_of(bare(line))[0]) or not is_plain:
        return None
    for before in commands[:-1]:
        if (match := _ENTERS_ONE.match(before)) is not None:
            folder = match[1].strip("\"'").replace("\\", "/").rstrip("/")
    prepared = " && ".join(command.strip() for command in commands[:-1] if _PREPARES.match(command))
    text = " ".join(commands[-1].replace(" 2>&1", "").split())
    program = program_of(text)
    if not program or len(text) > 10 * _LONGEST or _SHAPED.search(_PLAINLY_QUOTED.sub("''", text)):
        return None
    return _Command(at, text, program, frozenset(words_of(text)), folder, code, printed, prepared=prepared)
