"""The phrases that the gate looks for. They stand in `phrases.toml`, which is read when the gate is first used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_CONTINUED = re.compile(r"\n[ \t]+")


@cache
def phrases(table: str, /) -> Mapping[str, str]:
    """The entries of one table, each as the source of a regular expression."""
    tables = _tables()
    words = tables["words"]
    return {name: re.sub(r"@([A-Z]+)@", lambda m: f"(?:{words[m[1]]})", text) for name, text in tables[table].items()}


@cache
def any_of(table: str, /, flags: re.RegexFlag = re.MULTILINE) -> re.Pattern[str]:
    """One pattern for all entries of a table, for text in small letters."""
    return re.compile("|".join(phrases(table).values()), flags)


@cache
def _tables() -> dict[str, dict[str, str]]:
    read = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))
    return {name: {key: _joined(text) for key, text in table.items()} for name, table in read.items()}


def _joined(text: str) -> str:
    return "|".join(_CONTINUED.sub("", text).splitlines())
