"""The standing documents say what is true of the project, and what belongs in one place is there."""

from __future__ import annotations

import gates


def test_every_decision_record_has_its_four_parts() -> None:
    problems = gates.decision_records(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_the_readme_and_the_build_run_the_same_test_command() -> None:
    problems = gates.commands(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_every_setting_of_a_scope_is_declared_where_a_purge_looks() -> None:
    problems = gates.scope_settings(gates.ROOT)
    assert not problems, "\n".join(problems)
