"""What lines of a shell do to each other: only some of what goes through after an error can have got past it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from lessonbank.guard.gate import unusual
from lessonbank.text.shell_commands import only_reads

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PART = re.compile(r"&&|\|\||[;|\n]")
_HEREDOC = re.compile(r"<<-?\s*['\"]?\w")
_INTO = re.compile(r"(?:>|\btee(?: -a)?)\s*['\"]?([\w./-]*\w\.\w+)")
_MOVES_OR_SETS = re.compile(r"(?:cd\s+\S+|export\s+\S+|\w+=\S*)\s*")
_PROGRAM = re.compile(r"\S+(?: [a-z]+(?:-[a-z]+)*(?=\s|$))?")
_FIRST = re.compile(r"\S+")
_REDIRECT = re.compile(r"\s\d?>&\d")
_DIGITS = str.maketrans("", "", "0123456789")
_OPTION = re.compile(r"(?<!\S)-\S+")
_WORD = re.compile(r"[A-Za-z_]{3,}")
_NAMED = re.compile(r"['\"`]([\w.@/+-]{3,60})['\"`]")
_LONGEST, _PARTS = 400, 50
"""Characters of a command, and commands of a line, that are read."""
_LONG: Final = 4
"""Letters of a word of a message that may be a name."""


def writes_a_file(line: str, /) -> bool:
    """Whether a line begins a text that goes into a file: what failed then stands further down."""
    return _HEREDOC.search(line) is not None


def files_written_by(line: str, /) -> set[str]:
    """The names of the files that a line writes a text into, without their folders."""
    return {path.rpartition("/")[2] for path in _INTO.findall(line)} if writes_a_file(line) else set()


def names_one_of(line: str, files: Collection[str], /) -> bool:
    """Whether the command of a line names one of these files, such as a script that it runs."""
    return any(word.strip("'\"").rpartition("/")[2] in files for word in _acting(line).split())


def reads(line: str, /) -> bool:
    """Whether a line only reads: that it goes through says nothing about an error before it."""
    return all(only_reads(part[:_LONGEST]) for part in _parts(line)[:_PARTS])


def tries_again(line: str, then: str, /) -> bool:
    """Whether `then` is the same program on the same thing, such as one file with another option, or with more."""
    if _program(line) != _program(then) or _acting(line) == _acting(then):
        return False
    more = {*_REDIRECT.sub("", _acting(line)).split()} < {*_REDIRECT.sub("", _acting(then)).split()}
    return more or not _operands(line).isdisjoint(_operands(then))


def is_about(line: str, message: str, /) -> bool:
    """Whether a line acts on what a message names, as `pip install numpy` does on `No module named 'numpy'`."""
    quoted = {word for name in _NAMED.findall(message) for word in _words(name)}
    rare = unusual(word for word in _words(message) if len(word) >= _LONG)
    return not _operands(line).isdisjoint(quoted | rare)


def _parts(line: str) -> list[str]:
    """The commands of a line, without what stands in quotes."""
    return [part.strip() for part in _PART.split(_QUOTED.sub("''", line)) if part.strip()]


def _acting(line: str) -> str:
    """The first command of a line that is not about where it runs."""
    return next((part for part in _parts(line) if not _MOVES_OR_SETS.fullmatch(part)), "")


def _program(line: str) -> str:
    """The program of a line, with what it is told to do: `pip install`, but of `cat notes` only `cat`."""
    acting = _acting(line)
    # What reads has its file or its folder where other programs have a command of their own.
    match = (_FIRST if only_reads(acting.partition(" ")[0]) else _PROGRAM).match(acting)
    return match[0].translate(_DIGITS) if match else ""


def _operands(line: str) -> set[str]:
    """The words of a line that are neither its program nor an option."""
    command = _acting(line)
    return _words(_OPTION.sub(" ", command[len(_program(command)) :]))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
