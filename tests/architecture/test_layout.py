"""The standing documents say what is true of the project."""

from __future__ import annotations

import gates


def test_every_decision_record_has_its_four_parts() -> None:
    problems = gates.decision_records(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_the_readme_and_the_build_run_the_same_test_command() -> None:
    problems = gates.commands(gates.ROOT)
    assert not problems, "\n".join(problems)
