"""Lets the tests of experiments use what drives the command line, and the corpora, of the core's tests."""

from __future__ import annotations

import sys
from pathlib import Path

_CORE = Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(_CORE / "cli"), str(_CORE / "security" / "corpus"), str(_CORE / "retrieving")]
