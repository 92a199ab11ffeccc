"""The code reads as one hand wrote it."""

from __future__ import annotations

import gates
import pytest


def test_ruff_finds_nothing() -> None:
    problems = gates.lint(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_every_file_is_formatted() -> None:
    problems = gates.formatting(gates.ROOT)
    assert not problems, "\n".join(problems)


@pytest.mark.full
def test_every_text_file_is_opened_with_its_encoding() -> None:
    problems = gates.encodings(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_no_function_and_no_record_is_named_by_a_participle() -> None:
    problems = gates.participles(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_no_parameter_and_no_variable_says_nothing_of_its_value() -> None:
    problems = gates.empty_names(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_no_docstring_begins_with_a_pronoun() -> None:
    problems = gates.pronouns(gates.ROOT)
    assert not problems, "\n".join(problems)
