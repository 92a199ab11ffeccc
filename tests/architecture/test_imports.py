"""Who may import whom is drawn in pyproject.toml, and the code keeps to it."""

from __future__ import annotations

import gates


def test_the_import_contracts_hold() -> None:
    problems = gates.imports(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_every_folder_of_modules_is_a_package_that_the_contracts_see() -> None:
    problems = gates.packages(gates.ROOT)
    assert not problems, "\n".join(problems)
