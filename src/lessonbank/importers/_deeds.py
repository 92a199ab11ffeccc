"""Reads what the commands and edits of a run did, one by one: what failed, what went through, and what is not known.

By exit codes and flags alone. Of a call of a tool only names are kept: of the tool and of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from lessonbank.contracts.records import ToolCall, Trajectory
from lessonbank.text.error_line import ABSENT, MODULE, PLACELESS, UNREAD, WALLED, error_in
from lessonbank.text.shell_commands import (
    EDITS,
    INSTALLS,
    RUNS,
    RUNS_TEXT,
    SAYS,
    TELLS,
    apart,
    differ_in_options,
    differ_in_start,
    is_respelled,
    name_of,
    only_looks,
    operands_of,
    program_of,
    stands_for,
    start_of,
    unwrapped,
    words_of,
)

from ._checks import SCRATCH, check_of, started_in
from ._lines import NOT_THERE, PROSE, Part, parts_in_line
from ._shell import ENTERS, as_printed, calls_of, command_of, file_of, is_shell, parts_of

LONGEST: Final = 100
"""Characters of a command that a cure tells."""
_NO_RESULT: Final = {124, 125}
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add) File: (.+)$", re.MULTILINE)
_EDITOR: Final = re.compile(r"edit|(?<!todo)write(?!_stdin)|patch|replace|create_file|insert", re.IGNORECASE)
_MAKER: Final = re.compile(r"write|create", re.IGNORECASE)
_SHAPED: Final = re.compile(r"[|;<>&(){}`\n\"]")
"""A command with one of these is more than a program and its arguments."""
_PLAINLY_QUOTED: Final = re.compile(r"'[^'`\n]*'|\"(?:[^\"`$\n]|\$(?!\())*\"|<(?:path|value|branch|script)>")
_CALL: Final = re.compile(r"[\w.-]+\([\w.-]*(?:, [\w.-]+)*\)?")
"""A call of a tool, told by names."""
_PRINTED: Final = 8_000
_CLOSED: Final = 126
PATTERN: Final = re.compile(r"no matches found: (\S+)")
"""What a shell took for a pattern."""
LACKS: Final = re.compile(f"{MODULE.pattern}|ModuleNotFound|{ABSENT.pattern}|no matches found: ", re.MULTILINE)
"""How programs say that a module or a program is not there, or that they were not even asked."""
_STOPPED: Final = re.compile(f"{UNREAD.pattern}|{WALLED.pattern}")  # it did not even look
_FREES: Final = {
    "sandbox_permissions": "require_escalated",
    "with_escalated_permissions": True,
    "dangerouslyDisableSandbox": True,
}
"""How the call of an agent's shell asks the person to let it out of the sandbox."""
ENDINGS: Final = re.compile(r"dos2unix\s|s/\\r")
"""An edit of line endings alone."""
_IMPORTS: Final = re.compile(r"(?:\bfrom|\bimport|require\(|\bimport\()\s*['\"]?([\w-]+)")
"""What a script takes from elsewhere: the name with which it begins."""
_ENTERS_ONE: Final = re.compile(
    r"\s*(?:cd|Set-Location)\s+(?:/d\s+|-(?:Literal)?Path\s+)?(\"[^\"$]+\"|'[^']+'|\S+)\s*$"
)
_PREPARES: Final = re.compile(
    r"\s*(?:(?:source|\.|export)\s+\S{1,60}|"
    r"(?:export\s+|\$env:)?\w+\s*=\s*(?:\"[^\"`$]{1,80}\"|'[^']{1,80}'|\S{1,60}))\s*$"
)
_MENDS: Final = re.compile(r"fix|format|fmt|write|update|install", re.IGNORECASE)
_NO_SUCH: Final = r"(?:No such (?:container|service|image): |exec: |no such service: )"
_FAR: Final = re.compile(r"ssh\s[^'\"]*(['\"])(.*)\1")  # a line that another machine runs
_PROVES: Final = re.compile(r"(?<!\w)(?<!no-)(?:validate|verify|doctor|check)(?![\w(])")
_READS: Final = re.compile(
    r"(?i:get|list|search|find|grep|glob|read|view|show|look|check|query|fetch|count|describe|task|todo|ask|skill|agent|tool|"
    r"kill|bash|enter|exit|exec|wait|schedule|update_plan|web|monitor|think|write_stdin)(?![a-z])"
)
NAME: Final = re.compile(r"[\w.-]{1,60}")
_INTO: Final = re.compile(r"(?<![0-9&>-])>{1,2}\s*(\"[^\"]+\"|'[^']+'|[^\s&|;<>]+)|\s[0-9&]>{1,2}\s*(?:&[0-9]|[^\s&]+)")
"""Where what a command prints goes."""
_NAMES_ITSELF: Final = re.compile(r"rm|ln|cp|mv|mkdir|touch|tee")
"""Programs that begin what they say with their name: where it is not there, another of the line has failed."""
_HOOKED: Final = re.compile(r"(?i)\bhooks?\b|pre-commit|husky|command not found|: not found")
"""What a commit says that a hook stopped: nothing before it in its line has failed."""
_NOWHERE: Final = re.compile(r"/dev/null|\$null|nul", re.IGNORECASE)
_WRITES: Final = re.compile(r"(?:cat|echo|printf|tee)\b(?=.*(?:>|<<))|tee\s|(?:Set|Add)-Content\b|Out-File\b")
_SET_FIRST: Final = re.compile(r"(?:\w+=(?:\"[^\"]*\"|'[^']*'|[^\s'\"]*)\s+)+")
_NESTS: Final = re.compile(
    r"\S*\b(?:powershell|pwsh|cmd|(?:ba|z)?sh)(?:\.exe)?\s+(?:-\S+\s+)*(?:-\w*c|-Command|/c)\b", re.IGNORECASE
)
"""A shell that is given a line of its own."""
_NAMED: Final = re.compile(
    r"(?!(?:for|do|done|if|then|else|elif|fi|while|until|case|esac)\b)[\w.@~/][\w.@~/+:-]*(?: .+)?"
)
"""The name of a program; of what is none, a line was read wrongly."""
_ASSIGNS: Final = re.compile(r"\$?(\w+)\s*=\s*(?:'[^']*'|\"[^\"]*\"|\$\(.*\)|[^\s'\"]*)$")
_TAKES: Final = re.compile(r"^\$\w+\s*=\s*(?=[\w.&])")
"""What PowerShell puts before a command whose result it keeps."""
_SLEEPS: Final = re.compile(r"Start-Sleep\b")
_WHOLE: Final = Part("", 0)
Deed: TypeAlias = "Command | Edit | Spoke"


@dataclass(frozen=True, slots=True)
class Edit:
    file: str = ""


@dataclass(frozen=True, slots=True)
class Spoke:
    """The person said something."""


@dataclass(frozen=True, slots=True)
class Command:
    at: int
    text: str
    program: str
    words: frozenset[str]
    folder: str
    code: int
    printed: str
    prepared: str = ""
    """What its line sets up first, such as `source .venv/bin/activate`."""
    script: str = ""
    """The long texts that its line holds, and what it sets for it: what they say is of one task."""
    is_free: bool = False
    """Whether it ran outside of the sandbox."""
    edits: bool = False
    """Whether it writes files of the task at hand, or runs what the run itself wrote."""
    is_own: bool = False
    """Whether the run itself wrote what it runs: no later task has that."""
    part: Part = _WHOLE
    """Where it stands in its line."""
    writes: frozenset[str] = frozenset()
    """The names of the files that it writes."""

    @property
    def has_message(self) -> bool:
        """Whether the long texts that it is given are words for people, and no script."""
        return PROSE.fullmatch(self.script) is not None

    @property
    def is_plain(self) -> bool:
        """Whether it is a program and its arguments, but for what a shell took for a pattern."""
        named = PATTERN.search(self.printed)
        return is_plain(self.text.replace(named[1], "") if named else self.text)

    def is_named_in(self, text: str) -> bool:
        """Whether a text names its sub-command."""
        return re.search(rf"(?<!\w){re.escape(self.program.rpartition(' ')[2])}(?!\w)", text) is not None

    @property
    def failed(self) -> bool:
        return self.code > 0 and not 128 < self.code < 192 and self.code not in _NO_RESULT  # no signal ended it

    @property
    def looks(self) -> bool:
        far = _FAR.fullmatch(self.text)
        commands = map(str.strip, parts_of(far[2])[0]) if far else [self.text]
        return all(map(only_looks, commands)) and not _WRITES.match(self.text)

    @property
    def can_teach(self) -> bool:
        """Whether it failed, and that is of no one task: what a look does not find it will not find again."""
        is_act = not self.looks or SAYS.fullmatch(self.text) or _STOPPED.search(self.printed)
        is_silent = _NAMES_ITSELF.fullmatch(self.program) and f"{self.program}: " not in self.printed
        is_silent = is_silent or (self.program == "git add" and _HOOKED.search(self.printed))
        is_read = _NAMED.fullmatch(self.program) and not _NESTS.match(self.text)
        is_silent = is_silent or (self.part.is_fed and not self.is_absent)  # what it was fed was wrong
        return self.failed and not self.is_own and not is_silent and bool(is_act and is_read)

    def is_again(self, other: Command) -> bool:
        """Whether it is the next try: the same command, or with more words, or with others about the same."""
        is_there = not self.folder or not other.folder or self.folder == other.folder or self.is_placed(other)
        is_same = self.words == other.words or (self.words >= other.words and (self.code == 0 or self.got_past(other)))
        mine, its = (command.program.replace(" run ", " ") for command in (self, other))  # `bun test` has other tests
        is_next = (is_same and mine == its and self.has_script_of(other)) or self.varies(other) or self.quotes(other)
        is_next = is_next or (self.is_free and not other.is_free and mine == its and WALLED.search(other.printed))
        return is_there and bool(is_next)

    def spelled_as(self, other: Command) -> Command:
        """This command with the words of another one that it only spells in another way, such as a full path."""
        if self.program != other.program or self.words == other.words:
            return self
        starts = {*words_of(self.text)[:1], *words_of(other.text)[:1]}
        ours, its = self.words - other.words - starts, other.words - self.words - starts
        same = {word: named for word in ours for named in its if is_respelled(word, named)}
        return replace(self, words=frozenset(same.get(word, word) for word in self.words)) if same else self

    def is_placed(self, other: Command) -> bool:
        """Whether it ran above or below the folder in which the other try did not find something."""
        short, long = sorted((f"{self.folder}/", f"{other.folder}/"), key=len)
        return PLACELESS.search(other.printed) is not None and (long.startswith(short) or long.endswith(f"/{short}"))

    def has_script_of(self, other: Command) -> bool:
        """Whether both run the same script, or one that needs what the other lacked, or say other words to people."""
        if self.script == other.script or other.is_absent or (self.has_message and other.has_message):
            return True
        return not missing_modules(other).isdisjoint(_IMPORTS.findall(self.script.casefold()))

    def quotes(self, other: Command) -> bool:
        """Whether it went on with other quotes around the same, where the shell could not read the other try."""
        return UNREAD.search(other.printed) is not None and not self.is_missing and self.is_requoted(other)

    def is_requoted(self, other: Command) -> bool:
        """Whether it differs from another one in its quotes alone, or in other signs."""
        mine, its = (re.sub(r"\W", "", f"{command.text} {command.script}") for command in (self, other))
        return mine == its and (self.text, self.script) != (other.text, other.script)

    def stands_for(self, other: Command) -> bool:
        """Whether it is about the same as another one, by a program of which a repository has one or the other."""
        mine, its = (words_of(command.text)[1:] for command in (self, other))
        install = INSTALLS.match(self.text) is not None and INSTALLS.match(other.text) is not None
        is_about_it = not its or its[0] in mine or install or other.is_absent
        return stands_for(self.program, other.program) and is_about_it and self.has_script_of(other)

    def varies(self, other: Command) -> bool:
        """Whether it went through with other options, or started in another way: what it is about is the same."""
        is_about_it = self.program == other.program and differ_in_options(self.text, other.text)
        is_try = self.code == 0 and self.text != other.text and not self.looks and self.has_script_of(other)
        is_try = is_try and not _NESTS.match(self.text)  # that one went through, and not what it was given
        return is_try and (is_about_it or differ_in_start(self.text, other.text) or self.renames(other))

    def rewords(self, other: Command) -> bool:
        """Whether it went through in other words, about the same as far as they tell, or in other quotes alone."""
        is_it = self.program == other.program or " " in start_of(self.text, other.program)
        is_other = (self.text, self.script) != (other.text, other.script)
        is_try = is_it and is_other and self.went and self.is_free == other.is_free
        mine, its = ({w.lstrip("/") for w in words_of(c.text) if not w.isdigit()} for c in (self, other))
        mine, its = (words - {"run", *other.program.split()} for words in (mine, its))
        tells = [any(TELLS.match(f"x {word}") for word in words) for words in (mine - its, its)]
        files, before = ({word for word in words if re.search(r"\w[./:]\w|/$", word)} for words in (mine, its))
        is_about_it = 2 * len(mine & its) >= len(its) and not (files and before and files.isdisjoint(before))
        is_act = not (other.edits or self.edits or tells == [True, False] or check_of(other.text))
        return is_try and (self.is_requoted(other) or (is_about_it and is_act))

    @property
    def is_unread(self) -> bool:
        """Whether the shell could not read its line."""
        return UNREAD.search(self.printed) is not None and not self.is_absent

    def renames(self, other: Command) -> bool:
        """Whether it has another name in the place of one that was not there, such as that of a container."""
        mine, its = ({*words_of(command.text)} for command in (self, other))
        lost = {word for word in its - mine if not word.startswith("-")}
        is_named = all(re.search(rf"{_NO_SUCH}['\"]?{re.escape(word)}(?![\w.-])", other.printed) for word in lost)
        return self.program == other.program and len(lost) == len(mine - its) == 1 and is_named

    def helps(self, other: Command) -> bool:
        """Whether it may be what got another one through: it acts, and is no check, nor the same on another thing."""
        mends = _MENDS.search(self.text) is not None and not (_WRITES.match(self.text) or EDITS.match(self.text))
        proves = check_of(self.text) in ("the tests", "the linter") or _PROVES.search(self.text)
        (mine, its), (set_here, set_there) = zip(*(apart(unwrapped(c.text)) for c in (self, other)), strict=True)
        is_twin = mine[:2] == its[:2] and set_here == set_there and not {*mine[2:]}.isdisjoint(its[2:])
        is_read = _NAMED.fullmatch(self.program) and is_plain(self.text) and not _NESTS.match(self.text)
        only_tells = self.looks or self.program == "mkdir" or TELLS.match(self.text)
        is_left_out = only_tells or self.script or self.part.is_fed or (not mends and (self.edits or proves or is_twin))
        return (self.code == 0 or self.part.is_left) and bool(is_read) and not is_left_out

    @property
    def went(self) -> bool:
        """Whether its exit code says that it went through, or a call of a server: behind a pipe none does."""
        return self.code == 0 and (not self.part.is_hidden or self.part.is_left)

    @property
    def ran(self) -> bool:
        """Whether it went through, or is a check that says what it found."""
        command = " ".join(word for word in words_of(self.text) if word not in operands_of(self.text))
        return self.code == 0 or (check_of(command) not in (None, "the build") and not self.lacks)

    def shows(self, other: Command) -> bool:
        """Whether it tells if what another one lacked is there: it is started in the same way, or names that."""
        mine, its = (_SET_FIRST.sub("", command.text) for command in (self, other))
        if mine.split()[:1] == its.split()[:1] and (self.program == other.program or RUNS.match(its)):
            return True
        is_itself = other.is_absent and name_of(other.program) in other.printed
        named = {word for text in (mine, *started_in(self.printed)) for word in text.split()}
        return not (is_itself or self.looks or INSTALLS.match(mine)) and not named.isdisjoint(lacked_by(other))

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
        return self.code == NOT_THERE or is_closed or (self.code > 0 and lacks)

    @property
    def misses_another(self) -> bool:
        """Whether a program that it starts is not there."""
        return ABSENT.search(self.printed) is not None and not self.is_absent

    @property
    def is_missing(self) -> bool:
        """Whether nothing of it ran: its program is not there, or the shell could not read the line."""
        return self.is_absent or (self.code > 0 and UNREAD.search(self.printed) is not None)

    def says_again(self, other: Command) -> bool:
        """Whether it went wrong in the same way, also where its exit code is hidden."""
        error = error_in(other.printed)
        if self.part.is_hidden:
            return error in map(error_in, self.printed[-_PRINTED:].splitlines())
        return self.failed and error_in(self.printed) == error

    def got_past(self, other: Command) -> bool:
        """Whether it went through, or at least ran where the other try did not."""
        is_it = self.ran if other.is_absent else self.words == other.words
        ran_now = self.code == 0 or (not (self.is_missing or self.lacks) and is_it)
        is_other = (self.prepared, self.text) != (other.prepared, other.text)
        return self.went or ((other.is_missing or (other.lacks and is_other)) and ran_now)

    def replaces(self, other: Command) -> bool:
        """Whether it went through on the same thing, such as one file, and is no look and not that file itself."""
        started, its = start_of(self.text, other.program), {*words_of(other.text)[1:]}
        is_try = self.code == 0 and not self.looks and not ENDINGS.search(self.text) and not _NESTS.match(self.text)
        if is_try and started and not INSTALLS.match(self.text) and not other.text.startswith(started):
            return " " not in started or "=" in started or its <= self.words  # by what starts it
        if not other.is_absent:  # what it was for is done by another runner
            return self.code == 0 and are_alike(self.text, other.text) and not self.is_again(other)
        if check_of(other.text) in (None, "the linter"):  # another one does, or finds, other things
            return False
        same = operands_of(self.text) & operands_of(other.text)
        is_itself = any(word.rpartition("/")[2] == self.program for word in same)
        is_other = self.text.partition(" ")[0] != other.text.partition(" ")[0]
        return is_try and bool(same) and is_other and not is_itself


def is_plain(text: str) -> bool:
    """Whether a text is a program and its arguments, or two of them, and nothing more: only that is shown."""
    return bool(_CALL.fullmatch(text)) or not _SHAPED.search(
        _INTO.sub("", _PLAINLY_QUOTED.sub("''", text.replace(" && ", " ").replace("; ", " ")))
    )


def lacked_by(failed: Command) -> set[str]:
    """The words of the error of a command that lacked something, and the names of the module."""
    return {*re.sub(r"\W", " ", error_in(failed.printed).replace("-", "_")).split(), *missing_modules(failed)}


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


def lines_of(run: Trajectory, exit_codes: Mapping[str, int]) -> Iterator[list[Deed]]:
    """What each line of a shell whose exit code is known did, each edit and each other call, in their order."""
    made = set[str]()
    for at, step in enumerate(run.steps):
        for call, result in calls_of(step):
            code, given = exit_codes.get(call.id or ""), call.arguments if isinstance(call.arguments, dict) else {}
            if is_shell(call) and code is not None:
                line, folder = command_of(call.arguments), given.get("workdir") or given.get("dir_path")
                folder, printed = folder if isinstance(folder, str) else "", result.text if result else ""
                is_free = any(given.get(name) == value for name, value in _FREES.items())
                commands = commands_in(line, code, printed, made, at=at, folder=folder)
                yield [replace(command, is_free=is_free) for command in commands]
            elif not is_shell(call) and _EDITOR.search(call.name) and not (result and result.is_error):
                made |= {_edited_file(call)} if _MAKER.search(call.name) else set()
                yield [Edit(_edited_file(call))]
            elif not is_shell(call) and code is not None and result and (done := _call(at, call, code, result.text)):
                yield [done]
        if any(seen.source == "user" for seen in step.observations):
            yield [Spoke()]


def commands_in(line: str, code: int, printed: str, made: set[str], *, at: int = 0, folder: str = "") -> list[Command]:
    """The commands of a line of a shell. `made`: names of files that the run wrote; those of the line are added."""
    line, code = as_printed(line, printed) or (line, code)
    values, prepared, commands = dict[str, str](), list[str](), list[Command]()
    for part in parts_in_line(line, code, printed):
        part = replace(part, text=_TAKES.sub("", part.text))
        if match := _ENTERS_ONE.match(part.text):
            folder = match[1].strip("\"'").replace("\\", "/").rstrip("/")
        elif match := _ASSIGNS.fullmatch(part.text):
            values[match[1]] = f"{part.text} {part.script}"
            prepared += [part.text] if not part.script and _PREPARES.match(part.text) else []
        elif _PREPARES.match(part.text):
            prepared.append(part.text)
        elif not ENTERS.match(part.text) and not _SLEEPS.match(part.text):
            command = _command(part, values, at=at, folder=folder, printed=printed, made=made)
            before = [text for text in prepared if f"{text} " not in command.script]
            commands.append(replace(command, prepared=" && ".join(before)))
            made |= command.writes
    if prepared and not commands:  # it is all that the line does
        commands.append(_command(Part(prepared[-1], code), {}, at=at, folder=folder, printed=printed, made=made))
    return commands


def _command(part: Part, values: Mapping[str, str], *, at: int, folder: str, printed: str, made: set[str]) -> Command:
    """One command of a line, in which some names were given values."""
    files = {match[1].strip("\"'") for match in _INTO.finditer(part.text) if match[1]}
    files = {file for file in files if not _NOWHERE.fullmatch(file)}
    text = " ".join((part.text if _WRITES.match(part.text) else _INTO.sub("", part.text)).split())
    used = [value for name, value in values.items() if re.search(rf"\$\{{?{name}\b", text)]
    script, program = "".join((part.script, *used)), program_of(text)
    is_own = not {_file_name(word) for word in words_of(unwrapped(text))[:2]}.isdisjoint(made)
    if runs := _script_in(text, is_own=is_own and LACKS.search(printed) is not None):
        script, text, is_own = f"{text} {script}", f"{runs} <script>", False
        program = re.split(r"[/\\]", words_of(runs)[-1])[-1].removesuffix(".exe")
    text = text.replace(" <<", "")
    is_of_run = not only_looks(text) and not made.isdisjoint(map(_file_name, text.split()))
    return Command(
        at=at,
        text=text,
        program=program,
        words=frozenset(words_of(text)),
        folder=folder,
        code=part.code,
        printed=printed,
        script=script,
        edits=is_of_run or _edits(part.text) or any(not SCRATCH.match(file) for file in files),
        is_own=is_own,
        part=part,
        writes=frozenset(map(_file_name, files)),
    )


def _script_in(text: str, *, is_own: bool) -> str:
    """The interpreter, with what is set for it, of a script that no later task has; empty where a command has none."""
    sets = _SET_FIRST.match(text)
    begins = sets[0] if sets else ""
    started = f"{text[len(begins) :]} "
    runs = RUNS.match(started)
    return f"{begins}{runs[1]}" if runs and (is_own or RUNS_TEXT.match(started)) else ""


def _edits(text: str) -> bool:
    """Whether a command writes what the task at hand needs: a file, or by a script that the line gives."""
    if RUNS_TEXT.match(f"{text} "):
        return not only_looks(text)
    return _WRITES.match(text) is not None or (EDITS.match(text) is not None and not ENDINGS.search(text))


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _edited_file(call: ToolCall) -> str:
    """The name of the one file that a call edits; empty where that is not plain."""
    given = call.arguments
    text = given if isinstance(given, str) else str(given.get("input") or given.get("patch") or "")
    files = [named] if (named := file_of(call)) else _PATCHED.findall(text)
    return files[0].rstrip("/").rpartition("/")[2] if len(files) == 1 else ""


def _call(at: int, call: ToolCall, code: int, printed: str) -> Command | None:
    """The call of a tool that acts, told by names alone; `None` where they are no names."""
    names = sorted(call.arguments) if isinstance(call.arguments, dict) else []
    if _READS.match(call.name) or not all(map(NAME.fullmatch, (call.name, *names))):
        return None
    text = f"{call.name}({', '.join(names)})" if names else call.name
    return Command(at, text[:LONGEST], call.name, frozenset((call.name, *names)), "", code, printed)
