"""Where the corpora lie, and the modules beside them, which the report shares with the tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "security"
CORPUS = TESTS / "corpus"
SHARED = ROOT.parent / "shared" / "data"
"""Recorded runs of real agents, where this machine has them."""

for folder in (TESTS, CORPUS):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import attacks  # noqa: E402 - it lies beside the corpora


def cases(name: str, /, *kinds: str, every: int = 1) -> list[dict[str, Any]]:
    """Each `every`-th case of a corpus, or of some kinds of it."""
    return attacks.cases(name, *kinds)[::every]
