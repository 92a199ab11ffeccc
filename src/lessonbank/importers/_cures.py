"""Draws cures from a run: a command or call that failed, and what was done before it went through.

By exit codes and flags alone, and never by words: what an output says is only the key by which a cure is found again.
Of a call of a tool a cure tells the names of the tool and of its arguments, and never a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from lessonbank.contracts.records import Lesson, Provenance, Trajectory
from lessonbank.contracts.records.lessons import EXTRACTIVE
from lessonbank.guard.hazards import CHECKS_LESS, may_loosen
from lessonbank.text.error_line import BRANCH, ITS_BRANCH, NO_SCRIPT, SAYS_ERROR, UNREAD, WALLED, error_in
from lessonbank.text.shell_commands import (
    INSTALLS,
    RUNS,
    differ_in_options,
    differ_in_start,
    name_of,
    only_looks,
    operands_of,
    parts_in,
    program_of,
    stands_for,
    start_of,
    words_of,
)

from ._checks import check_of
from ._deeds import (
    ENDINGS,
    LACKS,
    LONGEST,
    NAME,
    NOTHING_TO_RUN,
    Command,
    Deed,
    Edit,
    Spoke,
    are_alike,
    deeds_in,
    deeds_of,
    missing_modules,
)

_BOTH: Final = 135
"""Characters of the two commands of a cure: with the words around them they fit one line of 200."""
_FAILED: Final = " failed: "
_TELLING: Final = 20
"""Characters of a line that says what was wrong and not only that it was."""
_SOON: Final = 12
"""Commands and edits after a failure among which the next try is looked for."""
_MOST_BETWEEN: Final = 3
_EDITED: Final = "edit "
_ASKED: Final = "ask"
"""The cure of what went through after the person had done something, such as to load a key."""
_DOCUMENT: Final = re.compile(
    r"(?:change(?:s|log)|news|history|readme|version|releases?)(?:\.\w{1,4})?|[\w.-]+\.(?:md|rst|adoc)|\.env(?:\.\w+)?",
    re.IGNORECASE,
)
"""What no check reads for its rules: an error that names such a file can be cured by an edit of it."""
_FREED: Final = "free"
"""The cure of what went through, word for word, outside of the sandbox."""
_QUOTED: Final = "quote"
"""The cure of what the shell took for a pattern."""
_OPENS: Final = re.compile(
    r"\W{0,20}(?:\w{0,40}(?:error|exception)|traceback|fatal|failed)\b(?!\W{0,3}(?:none|null|false|0)\b)", re.IGNORECASE
)
_ITS_PATH: Final = "<path>"
"""What a command was about that another program did instead."""
_PATHS: Final = re.compile(rf"\"?{_ITS_PATH}\"?(?: \"?{_ITS_PATH}\"?)*")
_SPELLED: Final = re.compile(r"^(?:python3?|py(?: -3)?|pip3?|node(?:js)?)(?=\s)")
_OF_ONE_TASK: Final = re.compile(r"(?=\S*\d)[\w.:-]{4,}|\"(?=.*\d)[^\"]{4,}\"|(?=.*\w).*[/\\].*")
"""A word that a command and its next try share, and that the same command in another task has not."""


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
        is_script = RUNS.fullmatch(f"{program} ") and LACKS.search(error)  # whatever script then lacks the same
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


def key_of(program: str, error: str, /) -> str:
    """What a cure is looked up by: the same for the same command that failed in the same way."""
    return f"{program}{_FAILED}{error}"


def failure_of(line: str, printed: str, /) -> Failure | None:
    """A command that failed just now, of several that lead to one another the last; `None` where it only looks."""
    done = [deed for deed in deeds_in(0, line, "", 1, printed, set()) if isinstance(deed, Command)]
    command = done[-1] if done else None
    if command is None or (command.looks and not command.is_misread):
        return None
    return Failure(command.program, error_in(printed), command.text, 0)


def opens_with_error(printed: str, /) -> bool:
    """Whether what a tool gave says at once that it failed, where its program does not tell it."""
    return _OPENS.match(printed) is not None


def failures_in(run: Trajectory, /, exit_codes: Mapping[str, int]) -> list[Failure]:
    """The commands of a run that failed, with what got them through."""
    done, failures = list(deeds_of(run, exit_codes)), list[Failure]()
    for at, deed in enumerate(done):
        if isinstance(deed, Command) and deed.failed and (not deed.looks or deed.is_misread):
            later = done[at + 1 : at + 1 + _SOON]
            failure = _followed(deed, later)
            failure = failure if failure.cure else _with_what_it_lacked(deed, later) or failure
            for each in (failure, *_replaced(deed, later)):
                failures.append(replace(each, cure="") if deed.is_absent and _is_usual(each) else each)
    return failures


def _is_usual(failure: Failure) -> bool:
    """Whether the cure is the next try of any agent: the same interpreter by its other name."""
    return _SPELLED.sub("", failure.command) == _SPELLED.sub("", failure.cure)


def _is_instead(failed: str, cure: str) -> bool:
    """Whether a cure did what the command was for, and not what had to come before it."""
    program, other = program_of(cure), program_of(failed)
    if ENDINGS.search(cure) or cure.endswith(" …") or only_looks(failed):
        return not ENDINGS.search(cure)
    if are_alike(cure, failed):
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
    whole = text[: most - 2].rpartition(" ")[0]  # a word that is cut hides from the redactor what it is
    return f"{whole or program_of(text)[:most]} …"


def _followed(failed: Command, later: Sequence[Deed]) -> Failure:
    failure = Failure(failed.program, error_in(failed.printed), failed.text, failed.at)
    place = next((n for n, deed in enumerate(later) if isinstance(deed, Command) and deed.is_again(failed)), None)
    if place is None:
        return failure
    again, done = later[place], {deed.program for deed in later[: place + 1] if isinstance(deed, Command)}
    assert isinstance(again, Command)
    if not again.got_past(failed) or not failed.before.isdisjoint(done - {failed.program}):
        return failure
    cure = _cure(failed, again, later[:place], failure.error)
    for branch in BRANCH.findall(failed.printed):
        cure = re.sub(rf"(?<![\w.-]){re.escape(branch)}(?![\w.-])", ITS_BRANCH, cure)
    if (again.varies(failed) or len(cure) > LONGEST) and cure.endswith(again.text):
        command, cure = _of_any_task(failed.text, cure)
        failure = replace(failure, command=command)
    return replace(failure, through_at=again.at, cure=cure if len(cure) <= LONGEST else "")


def _brings(text: str, failed: Command) -> bool:
    """Whether a command installs what an error names, or all that the repository names."""
    installs = INSTALLS.match(text)
    if installs is None or (failed.text.startswith("/") and not text.startswith("/")):  # of another interpreter
        return False
    is_tool = RUNS.match(failed.text) or stands_for(program_of(text), failed.program)
    if failed.is_absent and "-m" not in failed.words and is_tool:
        return False  # no package brings an interpreter, or what installs packages
    words = {word.strip("'\"") for word in text[installs.end() :].split() if not word.startswith((".", "-"))}
    named = {re.split(r"[<>=\[]|(?<=.)@", word)[0].replace("-", "_").casefold() for word in words}
    lacked = {*re.sub(r"\W", " ", error_in(failed.printed).replace("-", "_")).split(), *missing_modules(failed)}
    is_named = not lacked.isdisjoint({part for word in named for part in (word, word.rpartition("/")[2])})
    is_in = any(len(name) > 3 and name in word for name in missing_modules(failed) for word in named)
    return not named or " -r " in text or is_named or is_in


def _with_what_it_lacked(failed: Command, later: Sequence[Deed]) -> Failure | None:
    """What installed a module or a program that was not there, where no later try says so any more."""
    error, done = error_in(failed.printed), [deed for deed in later if isinstance(deed, Command)]
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


def _replaced(failed: Command, later: Sequence[Deed]) -> Iterator[Failure]:
    """What failed with one program, and went through with another that stands for it: in whatever words it fails."""
    acted = next((deed for deed in later if isinstance(deed, Command) and not deed.looks), None)
    is_unknown = NO_SCRIPT.search(failed.printed) is not None and not failed.is_absent
    stands = acted and stands_for(acted.program, failed.program) and acted.has_script_of(failed)
    if acted is None or acted.code != 0 or not stands:
        is_open = failed.is_absent or is_unknown
        acted = next((deed for deed in later if is_open and isinstance(deed, Command) and deed.replaces(failed)), None)
    if acted and is_unknown:
        yield Failure(failed.program, error_in(failed.printed), failed.text, failed.at, acted.at, acted.text[:LONGEST])
    elif acted:
        same = operands_of(failed.text) & operands_of(acted.text)
        command, cure = (
            _PATHS.sub(_ITS_PATH, reduce(lambda text, word: text.replace(word, _ITS_PATH), same, deed.text))
            for deed in (failed, acted)
        )
        before, path, _ = cure.partition(_ITS_PATH)  # what stands behind it is of one task
        if not path and (start := start_of(cure, failed.program)) and not cure.endswith(failed.text.partition(" ")[2]):
            command, before = f"{start_of(failed.text, failed.program)} …", f"{start} …"
        if len(before + path) <= LONGEST:
            yield Failure(name_of(failed.program), "", command, failed.at, acted.at, before + path)


def _cure(failed: Command, again: Command, between: Sequence[Deed], error: str) -> str:
    """What was edited is of one task, so it is no cure, unless the error names that document.

    Nor is a command that was only run again.
    """
    edited = {deed.file for deed in between if isinstance(deed, Edit)}
    acted = [deed for deed in between if isinstance(deed, Command) and deed.helps(failed)]
    is_freed = again.is_free and not failed.is_free and again.words == failed.words
    if is_freed and (WALLED.search(failed.printed) or not (acted or edited)):
        return _FREED
    if edited:
        file = next(iter(edited))
        is_named = len(edited) == 1 and bool(_DOCUMENT.fullmatch(file)) and file in error
        return f"{_EDITED}{file}" if is_named and not acted and again.words == failed.words else ""
    if again.quotes(failed):
        return _QUOTED
    if again.text != failed.text and again.words == failed.words and UNREAD.search(failed.printed) and not acted:
        return again.text
    if again.words > failed.words or (failed.program, failed.code) in NOTHING_TO_RUN or again.varies(failed):
        is_bare = len(failed.words) == 1 and not check_of(failed.text)  # it said how it is used
        return again.text if not acted and again.text != failed.text and not is_bare else ""
    if again.words == failed.words and again.prepared != failed.prepared and not acted:
        return f"{again.prepared} && {again.text}" if again.prepared else ""
    if again.words == failed.words and again.folder not in ("", failed.folder) and not acted:
        name = again.folder.rpartition("/")[2]
        place = name if name == again.folder else f"…/{name}"
        return f"cd {place} && {again.text}" if NAME.fullmatch(name) else ""
    if again.words == failed.words and not acted and any(isinstance(deed, Spoke) for deed in between):
        return _ASKED if check_of(failed.text) in (None, "the release") else ""  # a test may only be flaky
    if again.words != failed.words or not 0 < len(acted) <= _MOST_BETWEEN:
        return ""
    named = [command for command in acted if command.program.rpartition(" ")[2] in failed.printed]
    return (named or [command for command in acted if command.program != "git add"] or acted)[-1].text
