"""Lets the tests of the guard read the corpus and what checks against it, whatever pytest's import mode."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "corpus"))


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory, where there is room."""
    from sharing import folder

    with folder() as where:
        yield where
