"""Draws cures from a run: a command or call that failed, and what was done before it went through.

By exit codes and flags alone, and never by words: what an output says is only the key by which a cure is found again.
Of a call of a tool a cure tells the names of the tool and of its arguments, and never a value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from lessonbank.contracts.records import Lesson, Provenance, Trajectory
from lessonbank.contracts.records.lessons import EXTRACTIVE
from lessonbank.guard.hazards import CHECKS_LESS, OUTPUT, may_loosen
from lessonbank.text.error_line import (
    BRANCH,
    ITS_BRANCH,
    JOINS,
    NO_SCRIPT,
    PLACELESS,
    SAYS_ERROR,
    UNREAD,
    WALLED,
    error_in,
)
from lessonbank.text.shell_commands import (
    INSTALLS,
    RUNS,
    TELLS,
    name_of,
    operands_of,
    parts_in,
    program_of,
    stands_for,
    start_of,
    unwrapped,
    words_of,
)

from ._checks import SCRATCH, check_of
from ._deeds import (
    LACKS,
    LONGEST,
    NAME,
    Command,
    Deed,
    Edit,
    Spoke,
    commands_in,
    is_plain,
    lacked_by,
    lines_of,
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
_DOCUMENT: Final = re.compile(
    r"(?:change(?:s|log)|news|history|readme|version|releases?)(?:\.\w{1,4})?|[\w.-]+\.(?:md|rst|adoc)|\.env(?:\.\w+)?",
    re.IGNORECASE,
)
"""What no check reads for its rules: an error that names such a file can be cured by an edit of it."""
_ASKED, _FREED, _JOINED, _QUOTED, _AGAIN = "ask", "free", "join", "quote", "again"
_SAYS: Final = {
    _ASKED: "It went through after the person had done something: ask for it.",
    _FREED: "It went through outside of the sandbox, which the person has to allow: ask for it.",
    _JOINED: "It ran with `;` in the place of `&&`, which this shell does not know.",
    _QUOTED: "It went through with quotes around what the shell had misread.",
    _AGAIN: "It went through when it was run again, and nothing else was done.",
}
"""Cures that are no command. `quote` and `again` stand in episodes of before alone."""
_PASSES: Final = re.compile(r"(?i)index\.lock|\b(?:is|are) locked\b|resource busy|timed? ?out|try again later")
"""What programs say of a state that passes by itself: what was done meanwhile is no cure."""
_PERSONS: Final = re.compile(r"(?i)permission denied|publickey|authentication ?failed|agent refused|no device")
"""What programs say that lack a right or a device of the person; how to log in they say themselves."""
_OPENS: Final = re.compile(
    r"(?i)\W{0,20}(?:\w{0,40}(?:error|exception)|traceback|fatal|failed)\b(?!\W{0,3}(?:none|null|false|0)\b)"
)
_TO_BRANCH: Final = re.compile(r"^(git (?:checkout|switch) (?:-\w+ )*)(?=\S*\d)[\w./-]+$")
"""A command that goes to a branch with a number: that of one task."""
_NO_UPSTREAM: Final = "has no upstream branch"
"""What git says at the first push of each branch. How to go on is told at once, although git says that, too."""
_BRINGS: Final = re.compile(r"(?:(?:\S*python\S* -m |uv )?pip3?|npm|pnpm|brew) (?:install|i|add) ")
_THERE: Final = "already exists"
_OF_PROJECT: Final = re.compile(r"g?make|just|rake|npm|pnpm|yarn|bun|deno|go|.+\.\w+")
"""Programs whose sub-commands are a project's own: what it says itself is worth to be told."""
_RECORDS: Final = ("git add", "git commit")  # what keeps a change got no other command through
_ASTRAY: Final = re.compile(r"git|sed|cp|mv|rm|ln|touch|chmod|perl")
"""Programs that work on the paths that they are given, from whatever folder."""
_DID_NOTHING: Final = re.compile(r"Everything up-to-date|Already up[- ]to[- ]date")
_BRANCHES: Final = re.compile(r"git (?:checkout|switch) (?:.* )?(?:-[bBcC]|--create|--orphan)\b")
"""What makes a branch: another one in each task."""
_WORDS: Final = re.compile(r"(?:[^\s\"']|\"[^\"]*\"|'[^']*'|[\"'])+")
_ITS_PATH: Final = "<path>"  # what a command was about that another program did instead
_FILE: Final = re.compile(r"(?<!-\w )(?<= )[\w./~][^\s=@'\"]*\.(?!com\b)[a-z]\w{1,5}(?!\S)")
_NAMES_FILE: Final = re.compile(r"(?:[A-Za-z]:)?[\w.~][^\s=@:]*[./][^\s=@:]*|(?:[A-Za-z]:)?/\S+")
_PATHS: Final = re.compile(rf"\"?{_ITS_PATH}\"?(?: \"?{_ITS_PATH}\"?)*")
_SPELLED: Final = re.compile(r"^(?:python3?|py(?: -3)?|pip3?|node(?:js)?)(?=\s)")
_BY_PYTHON: Final = re.compile(r"^(?:python3?|py) -m ")
_NUMBER: Final = re.compile(r"#?\d+|[A-Za-z]+-\d+")  # of one task
_FIXES: Final = re.compile(r"--?(?:fix|write|w|in-place)")
"""The option with which a program mends what it checks without it."""
_PLACES: Final = re.compile(r"-C|--(?:prefix|cwd|dir|directory|project|manifest-path)(?:=.*)?")
"""An option that says in which folder, as `cd` does."""
_FORMATS: Final = re.compile(r"(?<![a-z])(?:fmt|format|fix)(?![a-z])")
_DOES_LESS: Final = re.compile(r"--(?:check|dry-run|no-run|list|help|version|verbose|debug|quiet|trace|[\w-]*only)|-v+")
"""What makes a command only look, or do a part."""
_HAS_NUMBER: Final = re.compile(r"(?<!\S)\d{6,}(?!\S)")  # of one task
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
    is_instead: bool = False
    """Whether the cure did what the command was for, and not what had to come before it."""
    is_said: bool = False
    """Whether the output of the command named the cure: any agent tries that."""
    others: frozenset[str] = frozenset()
    """The programs of its line of which each may be the one that failed."""

    @property
    def key(self) -> str:
        """What a cure for it is looked up by."""
        return key_of(self.program, self.error)

    def is_like(self, key: str, /) -> bool:
        """Whether the failure of a key is of the same program with the same words, in whatever sub-command."""
        program, _, error = key.partition(_FAILED)
        is_said = len(self.error) >= _TELLING and bool(SAYS_ERROR.search(self.error))
        is_script = RUNS.fullmatch(f"{program} ") and LACKS.search(error)  # whatever script then lacks the same
        is_of_it = name_of(program) == name_of(self.program) or program in self.others or bool(is_script)
        is_shell = JOINS in error and JOINS in self.error  # whatever program it was to start
        return is_shell or (is_said and error == self.error and is_of_it)

    @property
    def replaced_key(self) -> str:
        """The key of the fact that another program does here what this one was asked for."""
        return key_of(name_of(self.program), "")

    @property
    def _advice(self) -> str:
        if self.cure.startswith(_EDITED):
            return f"It went through after an edit of `{self.cure.removeprefix(_EDITED)}`."
        if self.cure in _SAYS:
            return _SAYS[self.cure]
        is_check, is_same = check_of(self.command) is not None, program_of(self.cure.partition("(")[0]) == self.program
        if is_same and may_loosen(self.command, self.cure, is_check=is_check):
            return f"`{self.cure}` went through: {CHECKS_LESS}."
        if self.is_instead:
            return f"`{self.cure}` went through."
        did = "brought what was not there" if INSTALLS.match(self.cure) else "went through, and then it did"
        return f"`{self.cure}` {did}."

    def lesson(self, run: str, /) -> Lesson:
        """What the cure tells, as a lesson of this run. It has a place: the program."""
        is_as_run = self.is_instead or RUNS.match(self.command)
        command = self.command if is_as_run else _FILE.sub(_ITS_PATH, self.command)
        return Lesson(
            title=f"`{_shortened(command, _BOTH - len(self.cure))}` failed here before",
            content=self._advice,
            place=self.program,
            rests_on=OUTPUT if self.is_said else "",
            provenance=Provenance(
                method=EXTRACTIVE, trajectory_ids=(run,), verdict="success", verdict_source="ground_truth"
            ),
        )


def key_of(program: str, error: str, /) -> str:
    """What a cure is looked up by: the same for the same command that failed in the same way."""
    return f"{program}{_FAILED}{error}"


def failure_of(line: str, printed: str, /) -> Failure | None:
    """A command that failed just now, of several that lead to one another the last; `None` where it only looks."""
    failed = [command for command in commands_in(line, 1, printed, set()) if command.can_teach]
    if not failed:
        return None
    others = frozenset(command.program for command in failed)
    return Failure(failed[-1].program, error_in(printed), failed[-1].text, 0, others=others)


def opens_with_error(printed: str, /) -> bool:
    """Whether what a tool gave says at once that it failed, where its program does not tell it."""
    return _OPENS.match(printed) is not None


def failures_in(run: Trajectory, /, exit_codes: Mapping[str, int]) -> list[Failure]:
    """The commands of a run that failed, with what got them through."""
    lines, failures = list(lines_of(run, exit_codes)), list[Failure]()
    for at, line in enumerate(lines):
        commands = [deed for deed in line if isinstance(deed, Command)]
        if failed := [command for command in commands if command.can_teach]:
            later = [deed for deeds in lines[at + 1 : at + 1 + _SOON] for deed in deeds]
            failures += _of_line(failed, later, commands)
    return failures


def _of_line(failed: Sequence[Command], later: Sequence[Deed], line: Sequence[Command]) -> Iterator[Failure]:
    """What became of the commands of a line of which one failed: the next try tells which."""
    tries = [(command, _followed(command, later, line)) for command in failed]
    cured = [(command, failure) for command, failure in tries if failure.cure]
    if len([failure for _, failure in cured if failure.cure not in (_FREED, _JOINED)]) > 1:  # these are of a whole line
        cured = _likely(cured, failed[0].printed)
        tries[-1] = (failed[-1], replace(tries[-1][1], cure=""))
    command, failure = cured[0] if cured else tries[-1]
    failure = failure if failure.cure else _with_what_it_lacked(failed[0], later) or failure
    for each in (failure, *_replaced(command, later)):
        yield each if _tells_more(command, each) else replace(each, cure="")


def _tells_more(failed: Command, after: Failure) -> bool:
    """Whether a cure holds more than what failed, and more than any agent tries next, such as another name."""
    new = {*after.cure.split()} - {*after.command.split(), "…", _ITS_PATH}
    is_less = program_of(after.cure) == after.program and any(map(_DOES_LESS.fullmatch, new))
    is_renamed = _SPELLED.match(after.command) and _SPELLED.match(after.cure) and not INSTALLS.match(after.cure)
    is_renamed = is_renamed or _BY_PYTHON.sub("", after.cure) == re.sub(r"^pip3", "pip", after.command)
    is_more = new or (after.command.endswith(f" {after.cure}") and name_of(after.program) != "git")
    tells = (TELLS.match(after.cure) and not TELLS.match(after.command)) or _HAS_NUMBER.search(after.cure)
    return bool(is_more) and not (is_less or tells or (failed.is_absent and is_renamed))


def _likely(cured: Sequence[tuple[Command, Failure]], printed: str) -> Sequence[tuple[Command, Failure]]:
    """Of several commands that were cured, the one that the output names; any where the same cured them all."""
    texts = (error_in(printed), printed)
    in_error, in_all = ([pair for pair in cured if pair[0].is_named_in(text)] for text in texts)
    if in_error or len(in_all) == 1:
        return in_error or in_all
    if len({failure.cure for _, failure in cured}) > 1:
        return []
    return [(command, failure) for command, failure in cured if command.program not in _RECORDS] or cured


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


def _followed(failed: Command, later: Sequence[Deed], line: Sequence[Command]) -> Failure:
    """What became of a command; the others of its own line are no cure when they are tried again."""
    shown = failed.text if failed.is_plain else f"{failed.program} …"
    failure = Failure(failed.program, error_in(failed.printed), shown, failed.at)
    if failed.program in ("tee", "rm"):  # what comes before them is fed to them, or makes what they take away
        return failure
    done = ((n, deed.spelled_as(failed)) for n, deed in enumerate(later) if isinstance(deed, Command))
    tries = ((n, command) for n, command in done if command.is_again(failed))
    others = ((n, command) for n, command in tries if not (command.part.is_doubtful or command.says_again(failed)))
    place, again = next(others, (0, None))
    if again is None or not again.got_past(failed):
        return failure
    beside = {command.program for command in line if command is not failed}
    between = [deed for deed in later[:place] if not (isinstance(deed, Command) and deed.program in beside)]
    cure = _cure(failed, again, between, failure.error)
    is_instead = cure.endswith(again.text)
    is_said = _is_said(failed, cure, is_instead=is_instead)
    for branch in BRANCH.findall(failed.printed):
        cure = re.sub(rf"(?<![\w.-]){re.escape(branch)}(?![\w.-])", ITS_BRANCH, cure)
    shown, cure = _fitted(failed, again, shown, cure)
    cure = cure if len(cure) <= LONGEST and is_plain(cure) else ""
    return replace(failure, command=shown, through_at=again.at, cure=cure, is_instead=is_instead, is_said=is_said)


def _fitted(failed: Command, again: Command, shown: str, cure: str) -> tuple[str, str]:
    """A failed command and its cure, without what is of one task, or is too long: then only what differs is shown."""
    if not cure.endswith(again.text) or (not again.varies(failed) and len(cure) <= LONGEST):
        return shown, cure
    before = cure.removesuffix(again.text)
    command, text = _of_any_task(failed.text, again.text)
    if len(before + text) <= LONGEST and (again.words > failed.words or len(command + text) <= _BOTH):
        return command, before + text
    is_told = before or again.words > failed.words or again.renames(failed)
    return shown, f"{before}{_added(failed, again)}" if is_told else ""


def _added(failed: Command, again: Command) -> str:
    """A command with the words that another one had not, and those of its program."""
    shown, known = again.program.split(), {*failed.words}
    words = _WORDS.findall(again.text)
    rest = [w if w.rpartition("/")[2] in shown or w.strip("\"'") not in known else "…" for w in words[1:]]
    return re.sub(r"…(?: …)+", "…", " ".join((*words[:1], *rest)))


def _is_said(failed: Command, cure: str, *, is_instead: bool = False) -> bool:
    """Whether the output named the cure: what was lacking, what git does, or what the program asks for."""
    fixes = any(map(_FIXES.fullmatch, words_of(cure))) and name_of(program_of(cure)) == name_of(failed.program)
    if fixes or (check_of(failed.text) is not None and _FORMATS.search(cure)):
        return True  # any agent formats
    asked, printed = _asked(failed, cure, is_instead=is_instead), failed.printed.replace("_", "-").casefold()
    if asked is None or _NO_UPSTREAM in printed:
        return False
    names = (re.escape(word.partition("=")[0].replace("_", "-").casefold()) for word in asked)
    return all(re.search(rf"(?<![\w-]){name}(?![\w-])", printed) for name in names)


def _asked(failed: Command, cure: str, *, is_instead: bool) -> Collection[str] | None:
    """What an output has to name, for any agent to try a cure; `None` where that is the project's own."""
    program, words, brings = program_of(cure), words_of(unwrapped(cure)), _BRINGS.match(cure)
    if is_instead and program == failed.program and {*words_of(cure)[:1]} <= failed.words:
        new = {*words_of(cure)} - failed.words
        if any(map(_PLACES.fullmatch, new)):
            return ()
        return {word for word in new if word.startswith("-")} or new
    if program.startswith("git ") and program != failed.program:
        return {"branch" if ITS_BRANCH in cure else program.removeprefix("git ")}
    if brings and (packages := [word for word in words_of(cure[brings.end() :]) if word[:1] not in "-…"]):
        return packages
    does = " ".join(words[:2])
    if installs := INSTALLS.match(" ".join(words)):
        rest = words[len(installs[0].split()) :]
        is_all = all(word.startswith("-") for word in rest)  # all that the repository names
        return {installs[0], *rest} if is_all else None
    if cure.startswith("cd "):
        return ()  # any agent looks for the folder
    if name_of(program) != name_of(failed.program) or _OF_PROJECT.fullmatch(name_of(program)):
        return None
    return {_THERE} if _THERE in failed.printed else {does, *(word.strip("-") for word in words if word[0] == "-")}


def _brings(text: str, failed: Command, before: Sequence[Deed]) -> bool:
    """Whether a command installs what an error names, or all that the repository names and named before."""
    installs = INSTALLS.match(text)
    if installs is None or (failed.text.startswith("/") and not text.startswith("/")):  # of another interpreter
        return False
    is_tool = RUNS.match(failed.text) or stands_for(program_of(text), failed.program)
    if failed.is_absent and "-m" not in failed.words and is_tool:
        return False  # no package brings an interpreter, or what installs packages
    words = {word.strip("'\"") for word in text[installs.end() :].split() if not word.startswith((".", "-"))}
    named = {re.split(r"[<>=\[]|(?<=.)@", word)[0].replace("-", "_").casefold() for word in words}
    is_named = not lacked_by(failed).isdisjoint({part for word in named for part in (word, word.rpartition("/")[2])})
    is_in = any(len(name) > 3 and name in word for name in missing_modules(failed) for word in named)
    is_all = (not named or " -r " in text) and not any(map(_edits, before))
    return is_named or is_in or is_all


def _with_what_it_lacked(failed: Command, later: Sequence[Deed]) -> Failure | None:
    """What installed a module or a program that was not there, where the first try that got further needs it."""
    done = [(n, deed) for n, deed in enumerate(later) if isinstance(deed, Command)]
    tries = [(n, command) for n, command in done if command.shows(failed)]
    place, again = next(((n, c) for n, c in tries if c.ran and not c.says_again(failed)), (0, None))
    installs = [(n, c) for n, c in done if n < place and c.code == 0 and _brings(c.text, failed, later[:n])]
    if again is None or not failed.lacks or not installs:
        return None
    at, install = installs[-1]
    is_again = any(at < n < place or (n > at and command.says_again(failed)) for n, command in tries)
    if is_again or (install.part.is_hidden and any(at < n < place and not command.looks for n, command in done)):
        return None
    is_said = _is_said(failed, install.text)
    error = error_in(failed.printed)
    return Failure(failed.program, error, failed.text, failed.at, again.at, install.text, is_said=is_said)


def _replaced(failed: Command, later: Sequence[Deed]) -> Iterator[Failure]:
    """What failed with one program, and went through with another that stands for it: in whatever words it fails."""
    acted = next((deed for deed in later if isinstance(deed, Command) and not deed.looks), None)
    is_unknown = NO_SCRIPT.search(failed.printed) is not None and not failed.is_absent
    stands = acted and acted.stands_for(failed)
    if acted is None or acted.code != 0 or not stands:
        is_open = failed.is_absent or is_unknown
        acted = next((deed for deed in later if is_open and isinstance(deed, Command) and deed.replaces(failed)), None)
    if acted and is_unknown:
        error, cure = error_in(failed.printed), acted.text[:LONGEST]
        yield Failure(failed.program, error, failed.text, failed.at, acted.at, cure, is_instead=True)
    elif acted:
        same = operands_of(failed.text) & operands_of(acted.text)
        command, cure = (
            _PATHS.sub(_ITS_PATH, reduce(lambda text, word: text.replace(word, _ITS_PATH), same, deed.text))
            for deed in (failed, acted)
        )
        before, path, _ = cure.partition(_ITS_PATH)  # what stands behind it is of one task
        if not path and (start := start_of(cure, failed.program)) and not cure.endswith(failed.text.partition(" ")[2]):
            command, before = f"{start_of(failed.text, failed.program)} …", f"{start} …"
        elif not path and stands and failed.is_absent and not (len(cure) <= LONGEST and is_plain(cure)):
            command, before = f"{failed.program} …", f"{acted.program} …"
        if len(before + path) <= LONGEST and is_plain(before + path):
            name, cure = name_of(failed.program), before + path
            yield Failure(name, "", command, failed.at, acted.at, cure, is_instead=True)


def _cure(failed: Command, again: Command, between: Sequence[Deed], error: str) -> str:
    """What was edited is of one task, so it is no cure, unless the error names that document."""
    edited = {getattr(deed, "file", "") for deed in between if _edits(deed)}
    acted = [deed for deed in between if isinstance(deed, Command) and deed.helps(failed)]
    is_same = again.words == failed.words
    if again.is_free and not failed.is_free:
        return _FREED if WALLED.search(failed.printed) or (is_same and not (acted or edited)) else ""
    if JOINS in failed.printed:
        return _JOINED if is_same else ""
    if UNREAD.search(failed.printed) and not failed.is_absent:  # what else is new in it had no part in that
        is_shown = again.text != failed.text and len(again.text) <= LONGEST and is_plain(again.text)
        return again.text if is_shown and again.quotes(failed) else ""
    if failed.is_absent and not acted and again.prepared not in ("", failed.prepared):
        return _prepared(again)
    if not is_same and again.text != failed.text:
        if again.folder not in ("", failed.folder) and PLACELESS.search(failed.printed) and not failed.is_absent:
            return ""  # was it the folder, or the words?
        return again.text if _is_changed(failed, again, acted, edited) else ""
    if edited:
        file = next(iter(edited))
        is_named = len(edited) == 1 and bool(_DOCUMENT.fullmatch(file)) and file in error
        return f"{_EDITED}{file}" if is_named and not acted else ""
    return _act(failed, acted) if acted else _same(failed, again, between)


def _edits(deed: Deed) -> bool:
    return isinstance(deed, Edit) or (isinstance(deed, Command) and deed.edits and deed.code <= 0)


def _is_changed(failed: Command, again: Command, acted: Sequence[Command], edited: Collection[str]) -> bool:
    """Whether other words got a command through. A check that was run after an edit may pass for that."""
    if (len(failed.words) == 1 and not check_of(failed.text)) or _BRANCHES.match(again.text):
        return False  # it said how it is used, or it is of one task
    if again.program != "git" and _ASTRAY.fullmatch(again.program):
        return False  # other files
    if failed.program == again.program and _differ_in_files(failed, again):
        return False  # these are of one task
    acted = [command for command in acted if command.program not in _RECORDS]
    if acted:
        return False  # was it that, or the words?
    return not edited or (again.words > failed.words and check_of(failed.text) is None)


def _differ_in_files(failed: Command, again: Command) -> bool:
    """Whether a command and its next try differ in the files alone that they are about."""
    texts = (re.sub(r"\s--?[\w-]+[= ](?=[\w./~])", " -", text) for text in (failed.text, again.text))
    mine, its = ({*words_of(text)[1:]} for text in texts)
    return mine != its and all(
        _NAMES_FILE.fullmatch(word) and not word.endswith(f"/{failed.program}") for word in mine ^ its
    )


def _act(failed: Command, acted: Sequence[Command]) -> str:
    """What was done before it went through: what the error names, else all: of two both, else the last."""
    acted = [command for command in acted if not _is_of_one_task(failed, command)]
    named = [command for command in acted if command.is_named_in(failed.printed)]
    is_one_of_many = len(acted) > _MOST_BETWEEN and not any(" " in command.program for command in named)
    if is_one_of_many or TELLS.match(failed.text) or _PASSES.search(failed.printed):
        return ""
    acts = [command for command in acted if command.program not in _RECORDS] or acted
    is_pair = len(acts) == 2 and len({name_of(command.program) for command in acts}) == 1
    acts = acts if is_pair else named or acts
    both = " && ".join(command.text for command in acts)
    act = both if len(acts) == 2 and len(both) <= LONGEST else acts[-1].text if acts else ""
    act = _TO_BRANCH.sub(rf"\1{ITS_BRANCH}", act)
    return act if len(act) <= LONGEST else ""


def _is_of_one_task(failed: Command, acted: Command) -> bool:
    """Whether an act is of the task at hand: it has a text or files of its own, or needs what was not there."""
    mends = any(map(_FIXES.fullmatch, acted.words)) and any(map(_NAMES_FILE.fullmatch, acted.words))
    mends = mends and name_of(acted.program) != name_of(failed.program)
    is_same = failed.is_absent and name_of(acted.program) == name_of(failed.program)
    own = words_of(acted.text)[1 : -1 if acted.program in ("mv", "cp") else None]
    is_scratch = any(word[:1] in "/~" and SCRATCH.match(word) for word in own)
    has_its_number = any(map(_NUMBER.fullmatch, acted.words & failed.words))
    is_none = acted.program == "git stash" or _DID_NOTHING.search(acted.printed)
    return "…" in acted.text or bool(is_none) or is_scratch or mends or is_same or has_its_number


def _prepared(again: Command) -> str:
    return f"{again.prepared}{'; ' if again.prepared.startswith('$') else ' && '}{again.text}"


def _entered(failed: Command, again: Command) -> str:
    """The folder in which it went through; empty where the agent had only gone astray."""
    name = again.folder.rpartition("/")[2]
    if _ASTRAY.fullmatch(name_of(again.program)) or any(word.endswith(f"/{again.folder}") for word in failed.words):
        return ""
    place = name if name == again.folder else f"…/{name}"
    return f"cd {place} && {again.text}" if NAME.fullmatch(name) else ""


def _same(failed: Command, again: Command, between: Sequence[Deed]) -> str:
    """Why the same command went through, where nothing was done but to prepare it in its line, to enter or to wait."""
    if again.prepared != failed.prepared:
        return _prepared(again) if again.prepared else ""
    if again.text != failed.text:  # the same thing by another name
        is_named = PLACELESS.search(failed.printed) and not _differ_in_files(failed, again)
        return again.text if is_named else ""
    if again.folder not in ("", failed.folder):
        return _entered(failed, again)
    if check_of(failed.text) not in (None, "the release"):
        return ""  # a test may only be flaky
    has_spoken = any(isinstance(deed, Spoke) for deed in between)
    return _ASKED if has_spoken and _PERSONS.search(failed.printed) else ""
