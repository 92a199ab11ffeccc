"""Knows the commands that check work: tests, builds, linters and releases, by their programs and by their words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from lessonbank.text.shell_commands import INSTALLS, TELLS, only_looks, runs_nothing

Check: TypeAlias = Literal["the tests", "the build", "the linter", "the release", "the checks", "CI", "the hooks"]
_KINDS: Final[tuple[Check, ...]] = ("the tests", "the linter", "the release", "the build", "CI")
_TABLES: Final = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))


def _any_of(patterns: str) -> str:
    for name, part in reversed(_TABLES["parts"].items()):
        patterns = patterns.replace(f"{{{name}}}", part)
    return "|".join(patterns.split("\n")[:-1]).replace(" ", r"\s+")


BEFORE: Final = (
    rf"^\s*(?:\w+=\S*\s+)*(?:(?:!|{_any_of(_TABLES['commands']['runners'])})\s+(?:\w+=\S*\s+)*){{0,4}}"
    r"(?:\S*python[\d.]*\s+(?:-\w\s+)*-m\s+)?(?:[\w.~-]*/){0,12}"
)
"""What may stand before the program of a command, and changes nothing."""
CHANGES: Final = re.compile(f"{BEFORE}(?:{_any_of(_TABLES['commands']['changes'])})")
SCRATCH: Final = re.compile(rf"{_TABLES['parts']['scratch']}$")
"""A file that is no part of the work."""
INTO_FILE: Final = re.compile(rf"(?<![0-9&<>-])>{{1,2}}\s*(?![&\s]|{_TABLES['parts']['scratch']}(?:\s|$))")
SAYS_FAILED, SAYS_PASSED, SHOWS_FAILURE, SHOWS_SUCCESS, RAN_NOTHING, CHOSE_NOTHING, TESTS_FAILED, FAILS, COUNTS = (
    re.compile("|".join(patterns.split("\n")[:-1]), re.MULTILINE) for patterns in _TABLES["output"].values()
)
_READERS: Final[Mapping[str, str]] = _TABLES["readers"]
_WORDS: Final[Mapping[str, Check]] = {word: kind for kind, words in _TABLES["words"].items() for word in words.split()}
_STARTED: Final = re.compile(r"^(?:[>$+] )?([a-z][\w./-]* [^\n]{1,300})$", re.MULTILINE)
_MOST_OF_A_START: Final = 2_000
_NO_CHECKS: Final = re.compile(_any_of(_TABLES["commands"]["no check"]))
_INTERPRETERS: Final = re.compile(
    r"(?:python|ruby|node|tsx|ts-node|bun|deno|(?:ba|z|da)?sh|php|perl|Rscript|pwsh|elixir)[\d.]*"
)
_SCRIPT: Final = re.compile(r"(?:[\w./~-]*[./~])?([\w-]+)\.(?:sh|bash|py|rb|m?[jt]s|pl|R|ps1|php|exs?)")
_OF_REPOSITORY: Final = re.compile(r"(?:^|\s)(?:\./)?\w[\w./-]*/$")
_PREPARES: Final = frozenset({"clean", "fix", "gen", "generate", "install", "list", "setup", "update", "watch"})
_STARTS: Final = frozenset({"run", "exec", "xtask", "task", "make", "x"})
_COMMITS: Final = re.compile(
    BEFORE + r"git\s+(?:-\S+\s+\S+\s+)?(?:commit|push)(?!.*\s(?:--no-verify|-n)(?=\s|$))(?=\s|$)"
)
_HOOKS: Final = re.compile(
    r"^[^\n]{1,200}\.{3,}(?:Passed|Failed)\s*$|staged files|lint-staged|husky - |lefthook|pre-(?:commit|push)\b",
    re.MULTILINE,
)
_PROGRAMS: Final = re.compile(
    r"\b(?:ruff|mypy|pyright|flake8|pylint|eslint|biome|tsc|vitest|jest|pytest|clippy|golangci-lint|rubocop|rspec|phpunit|"
    r"phpstan|shellcheck|detekt|ktlint|credo|tests?)\b",
)


def runs_hooks(command: str, printed: str, /) -> bool:
    """Whether a commit or a push ran checks of its own: what it printed names the hooks and a program that checks."""
    return bool(_COMMITS.match(command) and _HOOKS.search(printed) and _PROGRAMS.search(printed))


@cache
def _checks() -> Mapping[Check, re.Pattern[str]]:
    """What checks by its program: made when first asked for, which takes 25 ms."""
    return {kind: re.compile(rf"{BEFORE}(?:{_any_of(_TABLES['commands'][kind])})(?=\s|$)") for kind in _KINDS}


@cache
def _programs_of(table: str) -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Programs, and names of files, of a table: made when first asked for, which takes 27 ms."""
    return tuple(
        (
            re.compile(rf"{BEFORE}(?:{_any_of(programs + chr(10))})(?=\s|$)"),
            re.compile(files if table == "files" else rf"\.(?:{files}|{_TABLES['parts']['data']})$|/\.?\w+$"),
        )
        for programs, files in _TABLES[table].items()
    )


def looks_at(command: str, file: str, /) -> bool:
    """Whether a check may look at a file, by the name of its kind; `""` is one whose name is not known."""
    if any(re.search(files, file) and not re.search(programs, command) for files, programs in _READERS.items()):
        return False
    kinds = (
        kind for table in ("files", "languages") for program, kind in _programs_of(table) if program.match(command)
    )
    kind = next(kinds, None)
    return not file or kind is None or kind.search(f"/{file}") is not None


def _words_of(command: str) -> tuple[list[str], bool]:
    """The words of a command that may be a check, else none, and whether something starts it."""
    before = re.match(BEFORE, command)
    whole = command[before.end() :] if before else command
    words = [word for word in whole.split() if not word.startswith("-")][:4]
    is_own = bool(before and _OF_REPOSITORY.search(before[0]))
    if not words or runs_nothing(whole) or _NO_CHECKS.fullmatch(words[0]) or INSTALLS.match(whole):
        return [], False
    looks = not is_own and (only_looks(whole) or only_looks(words[0]) or TELLS.match(whole))
    return ([] if looks else words), bool(before and before.group().strip())


def may_check(command: str, /) -> bool:
    """Whether a command that is not known may check something."""
    return bool(_words_of(command)[0])


def _by_word(command: str) -> Check | None:
    """What a command checks by its sub-command, or by the name of the script that it runs."""
    words, is_started = _words_of(command)
    named = words[1:] if words and _INTERPRETERS.fullmatch(words[0]) else words
    script = _SCRIPT.fullmatch(named[0]) if named else None
    own = [script[1]] if script else words[:1] if is_started else []
    rest = named[1:3] if named[1:] and named[1] in _STARTS else named[1:2]
    return next((check for name in (*own, *rest) if (check := _of_name(name))), None)


def _of_name(name: str) -> Check | None:
    """What a name says that it checks: by its first word, or by its last."""
    parts = re.split(r"[-_:.]+", name.casefold())
    return _WORDS.get(parts[0]) or (None if parts[0] in _PREPARES else _WORDS.get(parts[-1]))


def started_in(printed: str, /) -> list[str]:
    """The checks that a target or a script started, where its output begins with their commands."""
    lines = _STARTED.findall(printed[:_MOST_OF_A_START])
    commands = (command.strip() for line in lines for command in re.split(r"&&|;", line))
    return [command for command in commands if any(check.match(command) for check in _checks().values())]


def check_of(command: str, /) -> Check | None:
    """What a command checks; `None` where it is no check."""
    return next((check for check, pattern in _checks().items() if pattern.match(command)), None) or _by_word(command)
