"""Splits a line of a shell into its commands, and tells what each came to, as far as the line's exit code does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank.text.error_line import SAYS_ERROR
from lessonbank.text.shell_commands import name_of, program_of

from ._checks import SAYS_FAILED
from ._shell import ENDS_AT_ERROR, ENTERS, PIPEFAIL, own_code

NOT_THERE: Final = 127
_UNKNOWN: Final = -1
_LONGEST: Final = 1_000
"""Characters of a command that are read."""
_MOST: Final = 100
"""Commands of a line that is read."""
_TOKEN: Final = re.compile(
    r"(?s:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\([^()]*\)|\\.)|"
    r"(&&|\|\||[;|\n]|(?<![>&<])&(?![>&])|(?<=\s)[{}](?=\s|;|$))|[^'\"$\\&|;\n{}]+|."
)
"""What a shell reads as one, and in brackets what stands between two commands."""
_COMMENT: Final = re.compile(r"(?m)^\s*#.*$")
_MESSAGE: Final = re.compile(
    r"(?ms)(\s(?:-\w?m|-s|--(?:message|reason|title|body|comment|notes?|subject|summary|description|text|content|value|password|token|secret))[\s=])"
    r"(?:\"\$\(cat <<-?\s*['\"]?(\w+)['\"]?\n.*?^\s*\2\s*\)\"|'[^']*'|\"(?:[^\"\\]|\\.)*\")",
)
"""What a command says to people: another text in each task."""
_WRITTEN: Final = (
    re.compile(r"(?ms)\"\$\(cat <<-?\s*['\"]?(\w+)['\"]?\n.*?^\s*\1\s*\)\""),
    re.compile(r"(?ms)<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:^\s*\2\s*$|\Z)"),
)
"""Texts that a line holds, and not only names: what they say is of one task."""
_OF_WINDOWS: Final = (("@'", "\n'@"), ('@"', '\n"@'))
PROSE: Final = re.compile(r"(?s)'(?=.*\s).{80,}'|\"(?=.*\s)[^$`]{80,}\"|'.*\n.*'|\"[^$`]*\n[^$`]*\"")
_GIVES: Final = re.compile(r"\s-[ceq]\s$")
"""What stands before a script in quotes."""
_MARK: Final = re.compile("\ue000(\\d+)\ue000")
_OPENS: Final = re.compile(r"^(?:(?:try|finally|else|do|then|time|!)(?:\s+|$)|\(\s*)+")
_DECIDES: Final = re.compile(r"(?:if|elif|for|foreach|while|until|case|catch|function|fi|done|esac)\b")
_FINDS: Final = re.compile(
    r"(?:git\s+)?(?:[ef]?grep|diff)\b|(?:rg|ag|test|which|type|command|cmp|pgrep|jq|ls|find|ps|lsof|curl)\b|\["
)
"""What ends with 1 where it finds nothing."""
_CODELESS: Final = re.compile(r"(?:Select|Where|Sort|Group|Measure|ForEach|Format|Out|Tee)-[A-Z]\w+")
"""What has no exit code in PowerShell: that of the line is of the program before it."""
_CALLS: Final = re.compile(r"(?:curl|wget|nc)\s.*\b(?:localhost|127\.0\.0\.1)\b")
_SHELL_LACKS: Final = re.compile(
    r"(?:\S{0,40}sh|\(eval\)):.{0,80}command not found|\S{0,80}python[\d.]*(?:\.exe)?: No module named|"
    r"Python was not found"
)
"""What is printed at once for a program that is not there: no pipe hides that."""


@dataclass(frozen=True, slots=True)
class Part:
    """One command of a line."""

    text: str
    """In one line, without the long texts in it."""
    code: int
    """0 if it went through; -1 where neither the exit code nor the output tells."""
    script: str = ""
    """The long texts."""
    is_hidden: bool = False
    """Whether the line's exit code does not tell of it."""
    is_fed: bool = False
    """Whether it stands behind a pipe."""
    is_doubtful: bool = False
    """Whether it failed, or another of its line did."""
    is_left: bool = False
    """Whether it was left to run, as a server."""


def parts_in_line(line: str, code: int, printed: str, /) -> list[Part]:
    """The commands of a line; none of a line of very many.

    Of commands that lead to one another, and of which one failed, each that may have has the line's exit code: the
    output or the next try tells which. One that is hidden, as behind a pipe, went through if nothing says otherwise.
    """
    texts = list[str]()
    line = line.replace("\ue000", "").replace("\\\n", " ")
    for begins, ends in _OF_WINDOWS:  # up to the last end: what begins before it ends
        last = line.rfind(ends) + len(ends)
        line = re.sub(f"(?s){begins}.*?{ends}", lambda match: _cut(texts, match), line[:last]) + line[last:]
    for pattern in _WRITTEN:
        line = pattern.sub(lambda match: _cut(texts, match), line)
    commands, joints = _split(_COMMENT.sub("", _MESSAGE.sub(r"\1'…'", line)), texts)
    if len(commands) > _MOST:
        return []
    codes, before = _codes(commands, joints, code), ("", *joints)
    return [
        Part(
            text=" ".join(re.sub(r"<?<?'?\ue000\d+\ue000'?", _mark_as_shown, command).split())[:_LONGEST],
            code=_hidden(command, printed) if own is None else own,
            script="".join(texts[int(number)] for number in _MARK.findall(command)),
            is_hidden=own is None,
            is_fed=before[n] == "|",
            is_doubtful=code > 0 and own == code and codes.count(code) > 1,
            is_left=joints[n : n + 1] == ["&"],
        )
        for n, (command, own) in enumerate(zip(commands, codes, strict=True))
    ]


def _cut(texts: list[str], match: re.Match[str]) -> str:
    texts.append(_MARK.sub(lambda inner: texts[int(inner[1])], match[0]))
    mark = f"'\ue000{len(texts) - 1}\ue000'"
    return f"<<{mark}{match[3]}" if match[0].startswith("<<") else mark


def _mark_as_shown(match: re.Match[str]) -> str:
    return "<<" if match[0].startswith("<<") else "'…'"


def _split(line: str, texts: list[str]) -> tuple[list[str], list[str]]:
    commands, joints, held = list[str](), list[str](), list[str]()
    for token in _TOKEN.finditer(f"{line}\n"):
        if token[1] is None:
            is_text = (prose := PROSE.fullmatch(token[0])) and not _GIVES.search("".join(held[-2:]))
            held.append(_cut(texts, prose) if prose and is_text else token[0])
            continue
        command = _OPENS.sub("", "".join(held).strip()).strip()
        if command.endswith(")") and command.count(")") > command.count("("):
            command = command[:-1].rstrip()
        if command:
            commands.append(command)
            joints.append(token[1] if token[1] in ("&&", "||", "|", "&") else ";")
        held.clear()
    return commands, joints[:-1]


def _codes(commands: Sequence[str], joints: Sequence[str], code: int) -> list[int | None]:
    """The exit code of each command; `None` where only the output tells."""
    decides = any(map(_DECIDES.match, commands))
    if "||" in joints or (code and decides):
        return [_UNKNOWN] * len(commands)
    if code:
        return _failing(commands, joints, code)
    has_answer = any(map(_CALLS.match, commands))
    is_lost = [
        joint == "&" and (not has_answer or ">" in command) for command, joint in zip(commands, joints, strict=False)
    ]
    known = [None if decides else own_code(commands, joints, n, 0) for n in range(len(commands))]
    return [_UNKNOWN if is_lost[n : n + 1] == [True] else own for n, own in enumerate(known)]


def _failing(commands: Sequence[str], joints: Sequence[str], code: int) -> list[int | None]:
    """Which commands of a line that failed may be it: of those at its end that lead to one another, any."""
    ends_at_error, has_pipefail = (any(map(sets.match, commands)) for sets in (ENDS_AT_ERROR, PIPEFAIL))
    leads = ("&&", "|", ";") if ends_at_error else ("&&", "|")
    start = max((n for n, joint in enumerate(joints, 1) if joint not in leads), default=0)
    last = commands[-1] if commands else ""
    if code == 1 and _FINDS.match(last) and start < len(commands) - 1:
        return [_UNKNOWN] * len(commands)  # it found nothing
    then = (*commands[1:], "")
    piped = [
        joint == "|" and not has_pipefail and not _CODELESS.match(next)
        for joint, next in zip((*joints, ""), then, strict=True)
    ]
    return [code if n >= start and not piped[n] else _UNKNOWN for n in range(len(commands))]


def _hidden(command: str, printed: str) -> int:
    if _SHELL_LACKS.match(printed) and name_of(program_of(command)) in printed:
        return NOT_THERE
    fails = SAYS_ERROR.search(printed) or SAYS_FAILED.search(printed)
    return _UNKNOWN if fails and not ENTERS.match(command) else 0
