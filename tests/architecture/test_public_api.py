"""The public API changes only on purpose."""

from __future__ import annotations

import gates


def test_the_public_api_is_its_snapshot_and_both_banks_have_the_same_methods() -> None:
    problems = gates.public_names(gates.ROOT)
    assert not problems, "\n".join(problems)
