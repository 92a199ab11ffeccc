"""Tells what kind of command a line of a shell is, by its program: one that looks, that edits, or that installs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

_WRAPS: Final = re.compile(
    r"^(?:\w+=(?:\"[^\"]*\"|'[^']*'|\$\([^()]*\)|\S*)|time|env|mise\s+(?:exec|x)(?:\s+\S+)?\s+--|command(?!\s+-)|timeout\s+\S+|(?:npx|bunx)(?:\s+(?:-y|--yes|--no-install))?|uvx|corepack(?=\s+(?:p?npm|yarn)\s)|bundle\s+exec|"
    r"(?:uv|poetry|pdm|hatch)\s+run(?:\s+--(?:with|group|extra|python|env)[\s=]\S+)*)\s+"
)
_WITH_SUB: Final = re.compile(
    r"git|make|just|rake|npm|pnpm|yarn|bun|deno|cargo|go|docker|podman|kubectl|pip3?|uv|poetry|pdm|hatch|gradlew?|mvnw?|"
    r"dotnet|bundle|playwright|prisma|rails|artisan|manage\.py|alembic|terraform|apt(?:-get)?|brew|gh|composer|mix|swift|bazel|tox|nox|helm|conda|flutter"
)
_WITH_VALUE: Final = re.compile(
    r"-[CcfFnp]|--(?:filter|prefix|cwd|dir|directory|file|project|namespace|package|context)"
)
"""Options whose value stands behind them, so that it is no sub-command."""
_FAMILIES: Final = tuple(
    frozenset(names.split())
    for names in (
        "npm pnpm yarn bun",
        "pip pip3 uv poetry pdm",
        "python python3 py",
        "docker docker-compose podman",
        "gh glab",
        "make gmake just",
        "mvn mvnw",
        "gradle gradlew",
        "apt apt-get dnf apk brew",
    )
)
"""Programs that stand for each other: a repository uses one of them."""
EDITS: Final = re.compile(
    r"\s*(?:sed\s(?:.*\s)?-\w*i|perl\s+-\w*i|(?:apply_patch\b|patch\s)|git\s+(?:apply|restore|reset\s.*--hard|revert|clean|checkout\s.*[./])|(?:cat|tee)\s*<<)"
)
"""A command that changes files of the task at hand."""
INSTALLS: Final = re.compile(
    r"(?:\S*python[\d.]*\s+-m\s+)?(?:(?:uv\s+)?pip3?|npm|pnpm|yarn|bun|poetry|pdm|uv|bundle|composer|apt(?:-get)?|brew|conda|cargo|gem|go)\s+"
    r"(?:install|ci|add|sync|i|get)\b|mix\s+deps\.get|go\s+mod\s+(?:download|tidy)|yarn$|(?:flutter|dart)\s+pub\s+get|"
    r"dotnet\s+restore"
)
_READS: Final = re.compile(
    r"ls|cat|[ef]?grep|rg|ag|find|fd|head|tail|wc|pwd|cd|echo|printf|which|where|type|test|\[|diff|cmp|stat|tree|file|sed|awk|"
    r"sort|nl|cut|command|man|uniq|less|jq|strings|xxd|hexdump|true|false|json\.tool|Get-\w+|Test-Path|Select-String|(?:Where|Select|Sort|Group|Measure)-Object|(?:Format|Out(?!-File))-\w+|Write-(?:Output|Host)|"
    r"git (?:status|log|diff|show|branch|blame|remote|rev-parse|ls-files|grep|describe)"
)
"""Programs that tell what stands in files."""
_ACTS: Final = re.compile(
    r"git\s+(?:branch\s+(?:.*\s)?-[dDmMcCfu]\b|branch\s+[^-\s]|remote\s+(?:add|set|re|prune|update))"
)
"""What else such a program does by its arguments."""
_ASKS: Final = re.compile(
    r"pip3? (?:list|show|freeze)|npm (?:ls|list|view)|curl|wget|env|ps|df|du|sleep|date|whoami|"
    r"nc|ncat|ping6?|traceroute|dig|nslookup|nmap|iw|lspci|lsusb|pg_isready|"
    r"lsof|journalctl|netstat|ss|pgrep|id|uname|(?:docker|podman|docker-compose|kubectl|helm|brew) "
    r"(?:ps|images|logs|inspect|version|info|get|describe|list)"
)
"""Programs that tell how a machine or a service is."""
SAYS: Final = re.compile(r"\S+ (?:-V|--version|--help)|(?:node|npm|ruby|php|perl|java|bun|deno) -v")
"""What tells about a program alone."""
RUNS: Final = re.compile(
    r"\s*((?:(?:uv|poetry|pdm|pipenv|hatch|volta)\s+run\s+|mise\s+(?:exec|x)\s+--\s+)?(?:\S*[/\\])?(?:python[\d.]*|py|node|ruby)(?:\.exe)?[\"']?)\s"
)
RUNS_TEXT: Final = re.compile(rf"{RUNS.pattern}+(?:-\s*<<|<<|-[ecp]\s|-\s*$)")
"""An interpreter that is given its script in the line itself."""
_READ: Final = 4_000
"""Characters of a command in which its program stands: to split all of it takes longer than in proportion."""
_ENDING: Final = re.compile(r"\.(?:exe|bat|cmd|sh)$")
_PART: Final = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s=\"']+|[\"']")
_OWN: Final = re.compile(r"(?:\./)?\w[\w.-]*/")
_INTERPRETS: Final = re.compile(r"\S*(?:python[\d.]*\s+-c|node\s+-[ep])\s")
TELLS: Final = re.compile(
    r"\S+\s+(?:-m\s+)?(?:\w+\s+)?(?:list(?:-\w+)?|ls|show|status(?:es)?|checks|watch|info|view|help|logs?|search|diff|version|devices|ps)(?:\s|$)|unzip\s+-\w*l"
)
"""A command of whatever program that only tells something."""
_DRY: Final = re.compile(
    r"\s(?:--(?:version|help|(?:just-|spec-)?dry-?(?:run)?|collect-only|co|no-run|list(?!-different)[\w-]*|setup-plan|"
    r"print-config|show(?:-?[Cc]onfig|-only)|graph|recon|noop|what-?if|fixtures|markers)|-h|-WhatIf)(?=\s|$|=(?!none|false))|"
    r"(?:^|[\s/])(?:g?make\s(?:.{0,300}\s)?-[a-z]*[inqt]|(?:just|rake|ninja|task)\s(?:.{0,300}\s)?-[nPT]|gradlew?\s(?:.{0,300}\s)?-m|"
    r"(?:tox|nox|just|task)\s(?:.{0,300}\s)?-l|ctest\s(?:.{0,300}\s)?-N|go\s+(?:test|vet|build)\s(?:.{0,300}\s)?-(?:n|c|list)|"
    r"(?:vitest|nextest|tox|nox|swift\s+test)\s+list)(?=\s|$)"
)
"""What is only told what it would do, or about itself."""

REFUSED: Final = re.compile(
    r"(?:Error: )?(?:The user (?:doesn't|does not) want to|\[Request interrupted by user|\[Operation Cancelled\]"
    r"|(?:exec_command failed: )?rejected by|(?:command|call|patch) (?:was )?(?:rejected|declined) by (?:the )?user"
    r"|User (?:rejected|denied|cancelled)|aborted by user)",
    re.IGNORECASE,
)
"""How programs tell the agent that a person said no: that is no error, and nothing gets past it."""


def only_reads(text: str, /) -> bool:
    """Whether a command only tells what stands in files, or something about a program."""
    # `bin/test` of a repository is not `test` of the shell.
    is_other = _OWN.match(text) or EDITS.match(text) or _ACTS.match(text)
    reads = not is_other and _READS.fullmatch(program_of(text))
    return bool(reads or SAYS.fullmatch(text.strip()))


def only_looks(text: str, /) -> bool:
    """Whether a command changes nothing, so that going through says nothing about an error before it."""
    asks = not _OWN.match(text) and _ASKS.fullmatch(program_of(text))
    return bool(asks or _INTERPRETS.match(text) or runs_nothing(text)) or only_reads(text)


def runs_nothing(text: str, /) -> bool:
    """Whether a command tells what it would do, or something about itself, in place of its work."""
    return _DRY.search(text) is not None


def words_of(text: str, /) -> list[str]:
    """The words of a command, as a shell splits them."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def operands_of(text: str, /) -> set[str]:
    """The words of a command that name what it is about."""
    return {word for word in words_of(text)[1:] if re.search(r"\w[./:]\w", word) and not word.startswith("-")}


def unwrapped(text: str, /) -> str:
    """A command without what only starts it, or times it. What it sets for a check stays to be seen."""
    prefix = ""
    while wrapped := _WRAPS.match(text):
        prefix += wrapped.group(0) if "=" in wrapped.group(0) else ""
        text = text[wrapped.end() :]
    return prefix + text


def program_of(text: str, /) -> str:
    """The program of a command, with its sub-command: `git push`, `npm run build`; of a script its name."""
    text = re.sub(r"(?<=[\w.])\\(?=\w)", "/", text[:_READ])
    while wrapped := _WRAPS.match(text):
        text = text[wrapped.end() :]
    words = words_of(text)
    if len(words) > 1 and re.fullmatch(r"\S*python[\d.]*", words[0]):
        words = words[2:] if words[1] == "-m" else words[1:] if words[1].endswith(".py") else words
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name == "cmake" and words[1:2] in (["--build"], ["--install"]):
        return " ".join((name, words[1]))
    plain = _plain(words[1:])
    most = 2 if plain[:1] == ["run"] else 1
    return " ".join((name, *plain[:most])) if _WITH_SUB.fullmatch(name) else name


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if not word.startswith("-") and not _WITH_VALUE.fullmatch(before)
    ]


def name_of(program: str, /) -> str:
    """A program without its sub-command."""
    return program.partition(" ")[0]


def stands_for(program: str, other: str, /) -> bool:
    """Whether a repository uses one of the two programs for the same."""
    names = {name_of(program), name_of(other)}
    return len(names) == 2 and any(names <= family for family in _FAMILIES)


def parts_in(text: str, /) -> list[str]:
    """The words of a command with their quotes, and what stands behind an equals sign."""
    return _PART.findall(text)


def apart(text: str, /) -> tuple[list[str], list[str]]:
    """The words and values of a command, and its options."""
    words = parts_in(text)
    return [word for word in words if word[0] != "-"], [word for word in words if word[0] == "-"]


def is_respelled(word: str, other: str, /) -> bool:
    """Whether two words of commands name the same: one file by its path or its name, or a name in other letters."""
    if not {"-", "@"}.isdisjoint((word[:1], other[:1])):
        return False
    short, long = sorted((word, other), key=len)
    mine, its = (re.sub(r"[\W_]", "", name).casefold() for name in (word, other))
    return long.endswith(f"/{short}") or (mine == its and re.search(r"[^\W\d]{3}", mine) is not None)


def start_of(text: str, program: str, /) -> str:
    """A command up to a program that it starts, from whatever place; empty where it does not."""
    names = [_ENDING.sub("", name_of(word).strip("\"'").rpartition("/")[2]) for word in (program, *text.split())]
    return " ".join(text.split()[: names.index(names[0], 1)]) if names.count(names[0]) > 1 else ""


def differ_in_start(text: str, other: str, /) -> bool:
    """Whether two commands differ in what starts them alone: another Python, or nothing any more."""
    left = RUNS.sub("", text)
    return (left == RUNS.sub("", other) and left != text) or other.endswith(f" {text}")


def differ_in_options(text: str, other: str, /) -> bool:
    """Whether a command is another one with other options, or with a word less; the last one stays."""
    (plain, _), (before, _) = apart(text), apart(other)
    left = iter(before)
    return plain[:1] == before[:1] and plain[-1:] == before[-1:] and all(word in left for word in plain)
