"""Types hold: in the library, in the examples, and in what a user's own checker will see."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import gates
import pytest

CHECKED = (*gates.TYPED, "bench/src")
KNOWN = Path(tempfile.gettempdir()) / "lessonbank-tests-types"
"""One empty file for each state of the project, and of what is installed beside it, that the checker found sound."""


@pytest.mark.release
def test_the_strict_type_check_finds_what_it_should_and_nothing_else() -> None:
    """It takes longer than any other, so `just types` and CI run it by itself, and the release.

    What it found sound is not read again, but with `LESSONBANK_SOAK`.
    """
    sound = KNOWN / fingerprint(gates.ROOT)
    if sound.exists() and "LESSONBANK_SOAK" not in os.environ:
        return
    problems = gates.types(gates.ROOT, CHECKED)
    assert not problems, "\n".join(problems)
    if sound.name == fingerprint(gates.ROOT):  # nobody wrote while it was read
        KNOWN.mkdir(exist_ok=True)
        sound.touch()


def fingerprint(root: Path) -> str:
    """A digest of all that the checker's answer hangs on."""
    digest = hashlib.sha256()
    for part in read_by_the_checker(root):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


@cache
def installed() -> str:
    return "\n".join(sorted(f"{each.name} {each.version}" for each in distributions()))


def read_by_the_checker(root: Path) -> Iterator[bytes]:
    yield "\n".join([sys.version, sys.prefix, installed()]).encode()
    yield Path(gates.__file__).read_bytes()
    yield (root / "pyproject.toml").read_bytes()
    for place in CHECKED:
        for path in sorted((root / place).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix().encode()
                yield path.read_bytes()


@pytest.mark.release
def test_whatever_the_checker_would_read_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    seen = {fingerprint(tmp_path)}
    for name in (
        "src/a/b.py",
        "examples/c.py",
        "tests/typing/d.py",
        "bench/src/e.py",
        "src/py.typed",
        "pyproject.toml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        for text in ("x = 1\n", "x = 2\n"):
            (tmp_path / name).write_text(text, encoding="utf-8")
            seen.add(fingerprint(tmp_path))
    assert len(seen) == 1 + 6 * 2


@pytest.mark.release
def test_mypy_sees_the_public_api_as_a_user_needs_it() -> None:
    problems = gates.user_types(gates.ROOT)
    assert not problems, "\n".join(problems)


def test_each_mistake_in_the_misuse_file_is_expected_of_both_checkers() -> None:
    misuse = (gates.ROOT / "tests" / "typing" / "misuse.py").read_text(encoding="utf-8")
    assert misuse.count("# expect: ") >= 50
    marked = re.findall(r"# expect: (\w+), ([\w-]+)$", misuse, re.MULTILINE)
    assert len(marked) == misuse.count("# expect: ")
