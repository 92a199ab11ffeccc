"""Reads what the commands and edits of a run did, one by one: what failed, what went through, and what is not known.

By exit codes and flags alone. Of a call of a tool only names are kept: of the tool and of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from lessonbank.contracts.records import ToolCall, Trajectory
from lessonbank.text.error_line import ABSENT, MODULE, PLACELESS, UNREAD, error_in
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
    program_of,
    start_of,
    words_of,
)

from ._checks import check_of
from ._shell import ENTERS, HEREDOC, as_printed, bare, calls_of, command_of, is_shell, parts_of

LONGEST: Final = 100
"""Characters of a command that a cure tells."""
_NO_RESULT: Final = {124, 125}
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add) File: (.+)$", re.MULTILINE)
_EDITOR: Final = re.compile(r"edit|(?<!todo)write(?!_stdin)|patch|replace|create_file|insert", re.IGNORECASE)
_MAKER: Final = re.compile(r"write|create", re.IGNORECASE)
_SHAPED: Final = re.compile(r"[|;<>&(){}`\n\"\\]")
"""A command with one of these is more than a program and its arguments."""
_PLAINLY_QUOTED: Final = re.compile(r"'[^'`\n]*'|\"[^\"`$\n]*\"")
_MAKES: Final = re.compile(r"(?<![0-9&>-])>{1,2}\s*([\w./~-]+)|\btee\s+(?:-a\s+)?([\w./~-]+)")
_SHORTENED: Final = re.compile(r"\s*(?:2>&1\s*)?\|\s*(?:tail|head|cat)(?:\s+-?\w+){0,3}\s*$")
"""What only shortens the output. Whether the program went through is not told then."""
_SERVES: Final = re.compile(
    r"\s*\(?([^;&|<>()\n]{1,200}?)\s*&\s*\)?\s*[;\n]?\s*(?:sleep\s+[\d.]+\s*(?:;|\n|&&)\s*)?"
    r"(?:curl|wget|nc)\s[^;&|\n]*\b(?:localhost|127\.0\.0\.1)\b[^;&|\n]*"
)
"""A server, which never ends by itself, and a call of it: the exit code tells whether it answers."""
_PRINTED: Final = 8_000
_NOT_THERE: Final = 127
_CLOSED: Final = 126
_PATTERN: Final = re.compile(r"no matches found: (\S+)")
"""What a shell took for a pattern."""
_SHELL_LACKS: Final = re.compile(
    r"(?:\S{0,40}sh|\(eval\)):.{0,80}command not found|\S{0,80}python[\d.]*(?:\.exe)?: No module named|"
    r"Python was not found"
)
"""What is printed at once for a program that is not there: no pipe hides that."""
LACKS: Final = re.compile(f"{MODULE.pattern}|ModuleNotFound|{ABSENT.pattern}|no matches found: ", re.MULTILINE)
"""How programs say that a module or a program is not there, or that they were not even asked."""
_FREES: Final = {
    "sandbox_permissions": "require_escalated",
    "with_escalated_permissions": True,
    "dangerouslyDisableSandbox": True,
}
"""How the call of an agent's shell asks the person to let it out of the sandbox."""
_PROSE: Final = re.compile(
    r"(?ms)(?<!-[ceq] )(?:\"\$\(cat <<-?\s*['\"]?(\w+)['\"]?\n.*?^\s*\1\s*\)\"|'[^']{80,}'|\"[^\"$`]{80,}\"|"
    r"'[^'\n]*\n[^']*'|\"[^\"$`\n]*\n[^\"$`]*\")"
)
"""A long text in quotes: what it says is of one task."""
ENDINGS: Final = re.compile(r"dos2unix\s|s/\\r")
"""An edit of line endings alone."""
_ITS_SCRIPT: Final = "<script>"
_ENTERS_ONE: Final = re.compile(r"\s*(?:cd|Set-Location)\s+(?:/d\s+)?(\"[^\"$]+\"|'[^']+'|\S+)\s*$")
_PREPARES: Final = re.compile(
    r"\s*(?:(?:source|\.|export)\s+\S{1,60}|"
    r"(?:export\s+|\$env:)?\w+\s*=\s*(?:\"[^\"`$]{1,80}\"|'[^']{1,80}'|\S{1,60}))\s*$"
)
_MENDS: Final = re.compile(r"fix|format|fmt|write|update|install", re.IGNORECASE)
NOTHING_TO_RUN: Final = {("pytest", 4), ("pytest", 5)}
"""Exit codes that say that what was named is not there."""
_READS: Final = re.compile(
    r"(?i:get|list|search|find|grep|glob|read|view|show|look|check|query|fetch|count|describe|task|todo|ask|skill|agent|tool|"
    r"kill|bash|enter|exit|update_plan|web|monitor|think|write_stdin)(?![a-z])"
)
NAME: Final = re.compile(r"[\w.-]{1,60}")
_MESSAGE: Final = re.compile(
    r"(?ms)(\s(?:-\w?m|-s|--(?:message|reason|title|body|comment|notes?|subject|summary|description|text|content))[\s=])"
    r"(?:\"\$\(cat <<-?\s*['\"]?(\w+)['\"]?\n.*?^\s*\2\s*\)\"|'[^']*'|\"(?:[^\"\\]|\\.)*\")",
)
"""What a command says to people: another text in each task."""


@dataclass(frozen=True, slots=True)
class Edit:
    file: str = ""


@dataclass(frozen=True, slots=True)
class Spoke:
    """The person said something."""


Deed: TypeAlias = "Command | Edit | Spoke"


@dataclass(frozen=True, slots=True)
class Command:
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
    is_served: bool = False
    """Whether the code is that of a call of it: another server may have answered, while it failed again."""

    @property
    def failed(self) -> bool:
        return self.code > 0 and not 128 < self.code < 192 and self.code not in _NO_RESULT  # no signal ended it

    @property
    def looks(self) -> bool:
        return only_looks(self.text)

    def is_again(self, other: Command) -> bool:
        """Whether it is the next try: the same command, or with more words, or with others about the same."""
        is_there = not self.folder or not other.folder or self.folder == other.folder or self.is_placed(other)
        is_more = self.words >= other.words or (other.program, other.code) in NOTHING_TO_RUN
        is_same = self.words == other.words or (is_more and self.got_past(other))
        is_sure = self.is_sure or (other.is_missing and not self.is_missing)  # no pipe hides that it is not there
        mine, its = (
            command.program.replace(" run ", " ") for command in (self, other)
        )  # `bun test` is not always its script
        is_next = (is_same and mine == its and self.has_script_of(other)) or self.varies(other) or self.quotes(other)
        return is_sure and is_there and is_next

    def is_placed(self, other: Command) -> bool:
        """Whether it ran above or below the folder in which the other try did not find something."""
        short, long = sorted((f"{self.folder}/", f"{other.folder}/"), key=len)
        return PLACELESS.search(other.printed) is not None and (long.startswith(short) or long.endswith(f"/{short}"))

    def has_script_of(self, other: Command) -> bool:
        """Whether both run the same script, or one that needs what the other lacked."""
        if self.script == other.script or other.is_absent:
            return True
        return not missing_modules(other).isdisjoint(re.findall(r"\w+", self.script.casefold()))

    def quotes(self, other: Command) -> bool:
        """Whether it quotes what a shell took for a pattern."""
        named = _PATTERN.search(other.printed)
        is_quoted = named is not None and re.search(rf"['\"]{re.escape(named[1])}['\"]", self.text)
        return self.program == other.program and self.got_past(other) and bool(is_quoted)

    def varies(self, other: Command) -> bool:
        """Whether it went through with other options, or started in another way: what it is about is the same."""
        is_about_it = self.program == other.program and differ_in_options(self.text, other.text)
        is_try = self.code == 0 and self.text != other.text and not self.looks and self.has_script_of(other)
        return is_try and (is_about_it or differ_in_start(self.text, other.text))

    def helps(self, other: Command) -> bool:
        """Whether it may be what got another one through: it acts, and is no check, nor the same on another thing."""
        is_check = check_of(self.text) in ("the tests", "the linter") and not _MENDS.search(self.text)
        (mine, its), (set_here, set_there) = zip(*map(apart, (self.text, other.text)), strict=True)
        is_twin = mine[:2] == its[:2] and set_here == set_there and not {*mine[2:]}.isdisjoint(its[2:])
        acts = self.code == 0 and not self.looks and not self.script
        return acts and not is_check and not is_twin and not TELLS.match(self.text)

    @property
    def lacks(self) -> bool:
        """Whether a module or a program was not there."""
        return LACKS.search(self.printed) is not None

    @property
    def is_absent(self) -> bool:
        """Whether its program is not there."""
        module = re.search(r"\s-m\s+([\w.]+)", self.text)
        is_told = ABSENT.search(self.printed) is not None and name_of(self.program) in self.printed
        lacks = is_told or bool(module and f"No module named {module[1]}" in self.printed)
        is_closed = self.code == _CLOSED and "ermission denied" in self.printed
        return self.code == _NOT_THERE or is_closed or (self.code > 0 and lacks)

    @property
    def is_misread(self) -> bool:
        """Whether its shell could not read the line, while its program is there."""
        return self.lacks and not self.is_absent

    @property
    def is_missing(self) -> bool:
        """Whether nothing of it ran: its program is not there, or the shell could not read the line."""
        return self.is_absent or (self.code > 0 and UNREAD.search(self.printed) is not None)

    def got_past(self, other: Command) -> bool:
        """Whether it went through, or at least ran where the other try did not."""
        ran = self.code == 1 and (other.program, other.code) in NOTHING_TO_RUN
        if self.is_served and error_in(other.printed) in map(error_in, self.printed[-_PRINTED:].splitlines()):
            return False
        return self.code == 0 or ran or (other.is_missing and not self.is_missing)

    def replaces(self, other: Command) -> bool:
        """Whether it went through on the same thing, such as one file, and is no look and not that file itself."""
        started = start_of(self.text, other.program)
        is_act = not self.looks and not INSTALLS.match(self.text) and not ENDINGS.search(self.text)
        if self.code == 0 and started and is_act:  # by what starts it
            return not other.text.startswith(started)
        if not other.is_absent:  # what it was for is done by another runner
            return self.code == 0 and are_alike(self.text, other.text)
        same = operands_of(self.text) & operands_of(other.text)
        is_itself = any(word.rpartition("/")[2] == self.program for word in same)
        is_other = self.text.partition(" ")[0] != other.text.partition(" ")[0]
        is_try = self.code == 0 and not self.looks and not ENDINGS.search(self.text)
        return is_try and bool(same) and is_other and not is_itself


def missing_modules(failed: Command) -> set[str]:
    """The names of the module that was not there, as one writes them in a package's name, too."""
    named = {word for groups in MODULE.findall(failed.printed) for word in groups if word}
    named |= {part for word in named for part in (word.split(".")[0], word.strip("@").rpartition("/")[2])}
    return {word.replace("-", "_").casefold() for word in named if len(word) > 1}


def are_alike(text: str, other: str) -> bool:
    """Whether two commands check the same, such as the types, by whatever runner."""
    mine, its = check_of(text), check_of(other)
    is_types = {mine, its} == {"the linter", "the build"} and name_of(program_of(text)) in ("tsc", "vue-tsc")
    return its is not None and (mine == its or is_types) and not _MENDS.search(text)


def deeds_of(run: Trajectory, exit_codes: Mapping[str, int]) -> Iterator[Deed]:
    """The commands whose exit code is known, and the edits, in their order."""
    made = set[str]()
    for at, step in enumerate(run.steps):
        for call, result in calls_of(step):
            code, given = exit_codes.get(call.id or ""), call.arguments if isinstance(call.arguments, dict) else {}
            if is_shell(call) and code is not None and result:
                is_free = any(given.get(name) == value for name, value in _FREES.items())
                line, folder = command_of(call.arguments), given.get("workdir")
                folder = folder if isinstance(folder, str) else ""
                for deed in deeds_in(at, line, folder, code, result.text, made):
                    yield replace(deed, is_free=is_free) if isinstance(deed, Command) else deed
            elif not is_shell(call) and _EDITOR.search(call.name) and not (result and result.is_error):
                made |= {_edited_file(call)} if _MAKER.search(call.name) else set()
                yield Edit(_edited_file(call))
            elif not is_shell(call) and code is not None and result and (done := _call(at, call, code, result.text)):
                yield done
        if any(seen.source == "user" for seen in step.observations):
            yield Spoke()


def deeds_in(at: int, line: str, folder: str, code: int, printed: str, made: set[str]) -> Iterator[Deed]:
    """What a line of a shell did: its command, or several that all went through.

    An edit where that is not known, and where it is of a file that the run itself made: no later task has that.
    """
    line = _MESSAGE.sub(r"\1'…'", line)
    line, code = as_printed(line, printed) or (line, code)
    if code == 0 and (served := _SERVES.fullmatch(line)):
        server = _command(at, served[1], folder, code, printed)
        yield replace(server, is_served=True) if server else Edit()
        return
    parts, joints = parts_of(HEREDOC.sub("<<''", line))
    unquoted = bare(line)
    plain = parts_of(unquoted)[0]
    opened = [row for row in line.splitlines() if "<<" in row]
    made |= {
        name.rpartition("/")[2] for groups in _MAKES.findall("\n".join((unquoted, *opened))) for name in groups if name
    }
    is_of_run = not made.isdisjoint(name.rpartition("/")[2] for name in unquoted.split())
    edits = is_of_run or (any(map(EDITS.match, plain)) and not ENDINGS.search(line))
    scripts = list(_of_script(at, line, plain[-1], folder, code, printed))
    is_given = bool(scripts) and RUNS_TEXT.match(f"{plain[-1]} ") is not None
    command = None if edits or is_given else _command(at, line, folder, code, printed)
    if edits or is_given:
        deeds: list[Deed] = [Edit()] if edits or not all(map(only_looks, plain)) else []
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
        yield Edit()  # more than one command: what it did is not known
        yield from scripts


def _of_parts(each: Sequence[Command | None], parts: Sequence[str], joints: Sequence[str], code: int) -> Iterator[Deed]:
    """The commands of a line of several: the exit code is that of the last ones, which lead to one another."""
    start = max((n for n, joint in enumerate(joints, 1) if joint != "&&"), default=0)
    if not all(only_looks(part.strip()) or ENTERS.match(part) for part in parts[:start]):
        yield Edit()
    if code == 0:
        yield from (deed or Edit() for deed in each[start:])
    elif (last := each[-1]) is not None:
        yield replace(last, before=frozenset(program_of(part) for part in parts[start:-1]))


def _of_script(at: int, line: str, last: str, folder: str, code: int, printed: str) -> Iterator[Command]:
    """A script of the run's own that lacked a module, or that went through: what it is does not matter then."""
    runs, is_given = RUNS.match(last), RUNS_TEXT.match(f"{last} ") is not None
    if runs and (code in _NO_RESULT or (is_given if code == 0 else LACKS.search(printed))):
        text, program = f"{runs[1]} {_ITS_SCRIPT}", re.split(r"[/\\]", runs[1])[-1].removesuffix(".exe")
        yield Command(
            at, text, program, frozenset(text.split()), folder, code, printed, script=line if is_given else last
        )


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


def _call(at: int, call: ToolCall, code: int, printed: str) -> Command | None:
    """The call of a tool that acts, told by names alone; `None` where they are no names."""
    names = sorted(call.arguments) if isinstance(call.arguments, dict) else []
    if _READS.match(call.name) or not all(map(NAME.fullmatch, (call.name, *names))):
        return None
    text = f"{call.name}({', '.join(names)})" if names else call.name
    return Command(at, text[:LONGEST], call.name, frozenset((call.name, *names)), "", code, printed)


def _command(at: int, line: str, folder: str, code: int, printed: str) -> Command | None:
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
    program, named = program_of(text), _PATTERN.search(printed)
    shape = _PLAINLY_QUOTED.sub("''", text.replace(named[1], "") if named else text)
    if not program or len(text) > 10 * LONGEST or _SHAPED.search(shape):
        return None
    return Command(at, text, program, frozenset(words_of(text)), folder, code, printed, prepared=prepared)
