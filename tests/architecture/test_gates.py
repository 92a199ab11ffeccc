"""The project keeps every rule of `gates.py`; the docstring of each function there says what the rule is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gates
import pytest

KEPT = (
    *(gates.lint, gates.formatting, gates.participles, gates.empty_names, gates.pronouns, gates.scope_settings),
    *(gates.imports, gates.packages, gates.sizes, gates.room_lines, gates.text, gates.file_weights),
    *(gates.public_names, gates.import_cost, gates.recall_cost, gates.named_commands),
    *(gates.decision_records, gates.commands),
)
LATER = (gates.encodings, gates.command_count, gates.help_cost)
"""Those of the full set."""


@pytest.mark.parametrize(
    "gate",
    [*KEPT, *(pytest.param(gate, marks=pytest.mark.full) for gate in LATER)],
    ids=lambda gate: gate.__name__,
)
def test_the_project_keeps_the_rule(gate: Callable[[Path], list[str]]) -> None:
    problems = gate(gates.ROOT)
    assert not problems, "\n".join(problems)
