"""The tables "their name, ours" name only what the bank has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import lessonbank

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "coming-from.md"
CALL = re.compile(r"\bbank\.(?:(\w+)\.)?(\w+)(?:\(([^)]*)\))?")
KEYWORD = re.compile(r"(\w+)=")


def rows() -> list[str]:
    """What stands in the column of ours."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Their names in code") : text.index("## Instruction files")]
    return [line.split(" | ")[-1].rstrip(" |") for line in table.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("cell", rows())
def test_each_name_of_ours_is_there_and_takes_what_the_table_gives_it(cell: str) -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank:
        for view, name, given in CALL.findall(cell):
            if name in ("db", "text"):
                continue
            method = getattr(getattr(bank, view) if view else bank, name)
            taken = list(inspect.signature(method).parameters.values()) if callable(method) else []
            is_open = any(one.kind is one.VAR_KEYWORD for one in taken)
            assert is_open or set(KEYWORD.findall(given)) <= {one.name for one in taken}, (name, given)
