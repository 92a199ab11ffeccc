"""The command line stays small, and what files say about it is true."""

from __future__ import annotations

import gates
import pytest


@pytest.mark.full
def test_there_are_no_more_commands_than_a_person_finds_their_way_in() -> None:
    problems = gates.command_count(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_every_command_and_option_that_a_file_names_is_there() -> None:
    problems = gates.named_commands(gates.ROOT)
    assert not problems, "\n".join(problems)
