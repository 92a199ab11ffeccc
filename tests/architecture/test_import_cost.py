"""Importing the library is cheap, and asking the command for help is too."""

from __future__ import annotations

import gates
import pytest


def test_importing_lessonbank_loads_little() -> None:
    problems = gates.import_cost(gates.ROOT)
    assert not problems, "\n".join(problems)


@pytest.mark.full
def test_help_loads_neither_arrays_nor_providers() -> None:
    problems = gates.help_cost(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_a_recall_loads_no_reader_of_runs() -> None:
    problems = gates.recall_cost(gates.ROOT)
    assert not problems, "\n".join(problems)
