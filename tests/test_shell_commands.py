"""What a command of a shell only reads, or looks at, is told by its program: nothing got past an error by it."""

from __future__ import annotations

import pytest
from linear import FAR, growth

from lessonbank.learning.extraction._commands import reads, tries_again
from lessonbank.text.shell_commands import only_looks, only_reads

READS = (
    "cat a.py", "fgrep x a", "git show HEAD", "sed -n 3p a.py", "awk '{print $1}' a", "node -v", "python -V",
)  # fmt: skip
LOOKS = ("pip show numpy", "curl localhost:80", "docker ps", "python -c 'print(1)'", "make -n", "pytest --help -k a")
ACTS = (
    "sed -i s/a/b/ a.py",
    "pytest -v",
    "pytest -v tests",
    "bin/test a",
    "pip install numpy",
    "git checkout -- a.py",
    "",
)


@pytest.mark.parametrize("command", READS)
def test_what_reads_also_looks(command: str) -> None:
    assert only_reads(command)
    assert only_looks(command)


@pytest.mark.parametrize("command", LOOKS)
def test_what_asks_a_machine_or_runs_nothing_looks_and_reads_no_file(command: str) -> None:
    assert only_looks(command)
    assert not only_reads(command)


@pytest.mark.parametrize("command", ACTS)
def test_what_acts_does_not_look(command: str) -> None:
    assert not only_looks(command)


@pytest.mark.full
@pytest.mark.parametrize("piece", ["A=1 ", "word", "文"])
def test_four_times_as_long_a_command_takes_about_four_times_as_long(piece: str) -> None:
    assert growth(lambda text: only_looks(f"cat {text}"), piece) <= FAR
    assert growth(lambda text: only_looks(f"A=1 {text}"), piece) <= FAR


def test_a_line_reads_if_each_of_its_commands_does() -> None:
    assert reads("cd src && cat a.py | head -3; git log")
    assert not reads("cd src && make")
    assert not reads("cat a.py && rm a.py")


def test_the_file_that_a_program_reads_is_no_command_of_its_own() -> None:
    assert tries_again("cat notes", "cat -v notes")
    assert not tries_again("pip install numpy", "pip uninstall numpy")
