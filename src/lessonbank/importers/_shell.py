"""Reads the shell commands of a coding agent's run: which ones were called, with what came back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from lessonbank.contracts.records import Json, Observation, Step, ToolCall, Trajectory

_SHELLS: Final = {
    *("bash", "shell", "exec_command", "local_shell", "run_shell_command", "run_commands", "execute_command"),
    *("container.exec", "execute_bash", "run_terminal_cmd", "shell_command", "powershell"),
}
_FILE: Final = ("file_path", "path", "filePath", "absolute_path", "notebook_path")
_MOST_COMMAND: Final = 10_000
_WRAPPED: Final = re.compile(r"^\s*(?:/\S*/)?(?:ba|z)?sh\s+(-\w*o\s+pipefail\s+)?-\w*c\s+(['\"])(.*)\2\s*$", re.DOTALL)
_TAKES_TEXT: Final = re.compile(r"-\w*c|-command|/[ck]", re.IGNORECASE)
"""What stands before a command line that `bash`, PowerShell or `cmd` is given as a word."""
_HANDED_ON: Final = re.compile(
    r"(?:^|&&)\s*(?:(ssh(?:\s+-[pilo]\s+\S+|\s+-\w+){0,4}\s+[\w.@-]+)|nix-shell(?:\s+\S+){0,4}?\s+--run|vagrant\s+ssh\s+-c|"
    r"(?:(?:docker|podman)(?:-|\s+)(?:compose\s+)?(?:exec|run)|kubectl\s+exec|nix\s+develop|wsl|direnv\s+exec|sudo)"
    r"(?:\s+[^\s'\"]+){0,12}?\s+(?:/\S*/)?(?:ba|z)?sh\s+-\w*c|pwsh(?:\s+-\w+){0,4}?\s+-[cC](?:ommand)?)\s+(['\"])(.*)\2\s*$",
    re.DOTALL,
)
"""A command line that another machine, container or environment runs, and whose exit code is that of the call."""
_LOOP: Final = re.compile(r"^\s*for\s+\w+\s+in\s[^;]{1,200};\s*do\s+([^;]+?)\s*\|\|\s*exit\s+1;\s*done\s*$")
_OPTION_E: Final = re.compile(r"sh\s+-\w*e\w*(?:\s|$)")
_ITS_FOLDER: Final = re.compile(r"^\s*cd\s+\S+\s*(?:&&|;)")
AWAY: Final = re.compile(
    r"^\s*(?:timeout\s+\S+\s+)?(?:ssh(?=\s|$)|(?:docker|podman)\s+run\s(?!.*\s(?:-v|--volume|--mount)))"
)
"""A command that another machine or an image runs; `ssh` alone stands before those that follow."""
HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_ONE_WORD: Final = re.compile(r"['\"]([\w@./:=,-]{1,200})['\"]")
_PROGRAM: Final = re.compile(r"(^|[;&|\n])[ \t]*(?:&[ \t]*)?\"[^\"\n]{1,200}[/\\]([\w.-]+)\"")
"""A program whose path holds blanks."""
_IF_THROUGH: Final = re.compile(r";\s*if\s*\(\$\?\)\s*\{([^{}]*)\}")
"""What PowerShell runs if the command before went through."""
_R_CHECK: Final = re.compile(
    r"\b(?:Rscript\s+-e\s+(['\"])[^'\"]*\b(?:devtools|testthat|rcmdcheck|tinytest)::\w{0,20}(?:check|test)\w{0,20}\([^\n]*?\1|"
    r"julia\s(?:--?\S+\s+){0,5}-e\s+(['\"])[^'\"]*\bPkg\.test\([^\n]*?\2)"
)
"""Tests that a language's own shell is told to run."""
_SBT: Final = re.compile(r"\bsbt\s+(?:-\S+\s+){0,5}(['\"])[\w/:;\s.*-]{1,120}\1")
_PLAIN: Final = str.maketrans("'\";", "   ")
_STATED: Final = re.compile(r"\s*(?:Error: )?Exit code (\d{1,5})\b")
_SEPARATOR: Final = re.compile(r"(&&|\|\||[;|\n])")
ENTERS: Final = re.compile(r"^\s*(?:cd|source|\.|export|set|ulimit|umask|sleep|ssh(?=\s*$))(?=\s|$)")
"""A command that only prepares the next one."""
_ELSEWHERE: Final = re.compile(r"^\s*cd\s+\.\./\.*\w")
_ENTERED: Final = re.compile(r"^\s*cd\s+((?:\.{0,2}/){0,9}\w[\w.-]*(?:/\w[\w.-]*)*/?)\s*$")
ENDS_AT_ERROR: Final = re.compile(r"^\s*set\s+-\w*e")
_PIPE_CODE: Final = re.compile(
    r"^\s*(?:exit|test|\[+)\s+\"?\$\{?(?:PIPESTATUS\[0\]|pipestatus\[1\])\}?\"?(?:\s+-eq\s+0)?[\s\]]*$"
)
PIPEFAIL: Final = re.compile(r"^\s*set\s+-\w*o\s+pipefail\b")
_KEEPS_CODE: Final = re.compile(r"^\s*\w+=\$\?\s*$")
_FAILS_TOO: Final = re.compile(r"^\s*(?:\{\s*echo\s[^\n]{0,200}?\s)?exit\s+(?:[1-9]|\$\?)")
_PRINTS_CODE: Final = re.compile(
    r";\s*echo\s+(['\"]?)([^'\"$;|&\n]{0,40})(?:\$\?|(\$\{PIPESTATUS\[0\]\}))\1\s*(?:[;\n]|$)"
)
_GIVES_CODE: Final = re.compile(r"^\s*exit\s+\$\w+\s*$")
"""`; rc=$?` and later `exit $rc` hand the code of a command on."""


def calls_of(step: Step, /) -> Iterator[tuple[ToolCall, Observation | None]]:
    """The calls of a step, each with its result, where there is one."""
    results = {seen.call_id: seen for seen in step.observations if seen.call_id}
    unnamed = [seen for seen in step.observations if seen.source == "tool" and not seen.call_id]
    for call in step.action.calls:
        yield call, results.get(call.id or "") or (unnamed.pop(0) if unnamed else None)


def file_of(call: ToolCall, /) -> str:
    """The file that a call names; empty where it names none."""
    named = call.arguments if isinstance(call.arguments, dict) else {}
    return next((file for key in _FILE if isinstance(file := named.get(key), str)), "")


def is_shell(call: ToolCall, /) -> bool:
    """Whether a call is that of a shell."""
    return call.name.rpartition(".")[2].casefold() in _SHELLS or call.name.casefold() in _SHELLS


def command_of(arguments: Mapping[str, Json] | str, /) -> str:
    """The shell's text; programs give it under several names, as a text or as a list of words."""
    if isinstance(arguments, str):
        return arguments[:_MOST_COMMAND]
    command = next((arguments[name] for name in ("command", "cmd", "commands", "script") if name in arguments), "")
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        command = words[-1] if len(words) > 2 and _TAKES_TEXT.fullmatch(words[-2]) else "\n".join(words)
    return unwrapped(command[:_MOST_COMMAND]) if isinstance(command, str) else ""


def doing_of(step: Step, /) -> str:
    """The command or call of a step, in one line of text."""
    calls = step.action.calls
    return doing(calls[-1].name, calls[-1].arguments) if calls else unwrapped(step.action.text)


def doing(tool: str, arguments: Mapping[str, Json] | str, /) -> str:
    """The command of a call of a shell, and the name of any other tool."""
    return command_of(arguments) if is_shell(ToolCall(name=tool)) else tool


def stated_exit_code(printed: str, /) -> int | None:
    """The code with which Claude Code begins what a failed command printed; `None` where it says none."""
    match = _STATED.match(printed)
    return int(match.group(1)) if match else None


def unwrapped(command: str, /) -> str:
    """What `bash -c` was given, where a command is no more than that."""
    wrapped = _WRAPPED.match(command)
    if wrapped is None:
        return command
    inner = f"set -o pipefail; {wrapped[3]}" if wrapped[1] else wrapped[3]
    return f"set -e; {inner}" if _OPTION_E.search(command[: wrapped.start(2)]) else inner


def handed_on(command: str, /) -> str:
    """A command line with what its last command hands to another machine, container or environment in its place.

    The folders there are not those of the work.
    """
    command = _LOOP.sub(r"\1", command)
    match = _HANDED_ON.search(command)
    if match is None:
        return command
    before = command[: match.start()] + ("&& " if match.start() else "")
    inner = _ITS_FOLDER.sub("", match[3]) if match[1] or match[3].lstrip().startswith("cd /") else match[3]
    marks = ("ssh && " if match[1] else "") + (
        "set -e; " if _OPTION_E.search(match[0][: match.start(2) - match.start()]) else ""
    )
    return before + marks + inner


def bare(command: str, /) -> str:
    """A command without what it only quotes: a message about tests is no test. What sbt is to do is always quoted."""
    command = _IF_THROUGH.sub(r" &&\1", _PROGRAM.sub(r"\1 \2", _R_CHECK.sub("R CMD check", command)))
    command = _SBT.sub(lambda match: match[0].translate(_PLAIN), HEREDOC.sub("<<''", command))
    return _QUOTED.sub(lambda match: word[1] if (word := _ONE_WORD.fullmatch(match[0])) else "''", command)


def parts_of(line: str, /) -> tuple[list[str], list[str]]:
    """The commands of a line, and what stands between them."""
    parts = _SEPARATOR.split(line.rstrip())
    commands, joints = [*map(_out_of_subshell, parts[::2])], parts[1::2]
    while len(commands) > 1 and not commands[-1].strip():
        commands, joints = commands[:-1], joints[:-1]
    return commands, joints


def _out_of_subshell(command: str) -> str:
    open, shut = command.count("("), command.count(")")
    if open > shut and command.lstrip().startswith("("):
        return command.lstrip()[1:]
    return command.rstrip()[:-1] if shut > open and command.rstrip().endswith(")") else command


def goes_elsewhere(commands: Iterable[str], /) -> bool:
    """Whether commands enter a folder beside that of the work: what is checked there is not the work."""
    return any(map(_ELSEWHERE.match, commands))


def folder_of(commands: Iterable[str], /) -> str:
    """The folder below its own that a line enters before a command; empty where it enters none or several."""
    entered = [match[1].rstrip("/") for command in commands if (match := _ENTERED.match(command))]
    return entered[0] if len(entered) == 1 else ""


def own_code(
    commands: Sequence[str],
    joints: Sequence[str],
    place: int,
    code: int | None,
    *,
    prepares: Callable[[str], object] = ENTERS.match,
) -> int | None:
    """The exit code of one command in a line of several; `None` where that of the line does not tell it.

    `prepares`: a command that comes before with `&&`, and whose own failure would mean the same.
    """
    if joints[place : place + 1] == ["||"] and _FAILS_TOO.match(" ".join(commands[place + 1 : place + 4])):
        commands, joints = commands[: place + 1], joints[:place]
    if code is None or "||" in joints:
        return None
    if any(map(ENDS_AT_ERROR.match, commands[:place])):
        joints = ["&&" if joint in (";", "\n") else joint for joint in joints]
    after = joints[place:]
    if after[:1] == ["|"] and after[-1] in (";", "\n") and _PIPE_CODE.match(commands[-1]):
        after = []
    if after[:1] == [";"] and _KEEPS_CODE.match(commands[place + 1]):
        return code if any(map(_GIVES_CODE.match, commands[place + 2 :])) else None
    if any(map(PIPEFAIL.match, commands[:place])):
        after = [joint for joint in after if joint != "|"]
    if code == 0:
        return 0 if set(after) <= {"&&", "|"} and after[:1] != ["|"] else None
    before = [command for command, joint in zip(commands[:place], joints, strict=False) if joint == "&&"]
    return code if not after and all(map(prepares, before)) else None


def as_printed(command: str, printed: str, /) -> tuple[str, int] | None:
    """A command line up to where it prints its exit code, as in `; echo "exit=$?"`, with the code that it printed."""
    match = _PRINTS_CODE.search(command)
    if match is None:
        return None
    codes = re.findall(rf"^{re.escape(match.group(2).strip())}\s*(\d{{1,3}})\s*$", printed, re.MULTILINE)
    of_first = "set -o pipefail; " if match[3] else ""
    return (of_first + command[: match.start()], int(codes[0])) if len(codes) == 1 else None


def went_through(run: Trajectory, /) -> Iterator[tuple[str, str, str]]:
    """Each command of a run whose call was no error, without what it quotes; what the call printed, and all of it."""
    for step in run.steps:
        for call, result in calls_of(step):
            if result is not None and not result.is_error and is_shell(call):
                line = command_of(call.arguments)
                for command in parts_of(bare(line))[0]:
                    yield command, result.text, line
