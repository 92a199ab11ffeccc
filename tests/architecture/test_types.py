"""Types hold: in the library, in the examples, and in what a user's own checker will see."""

from __future__ import annotations

import gates


def test_the_strict_type_check_finds_what_it_should_and_nothing_else() -> None:
    problems = gates.types(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_the_misuse_file_expects_something() -> None:
    misuse = (gates.ROOT / "tests" / "typing" / "misuse.py").read_text(encoding="utf-8")
    assert misuse.count("# expect: ") >= 8
