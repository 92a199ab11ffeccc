"""Numbers that keep the house small, and things no file of it may hold."""

from __future__ import annotations

import gates


def test_source_files_stay_within_their_length() -> None:
    problems = gates.sizes(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_no_room_outgrows_its_lines_without_a_decision() -> None:
    problems = gates.room_lines(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_no_file_holds_a_mock_a_machine_path_a_package_index_or_a_secret() -> None:
    problems = gates.text(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_no_file_is_too_heavy_for_a_clone() -> None:
    problems = gates.file_weights(gates.ROOT)
    assert not problems, "\n".join(problems)
