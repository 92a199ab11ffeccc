"""Where the project lies: what is measured on the corpora of its tests is measured in a clone of it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[4]
TESTS = ROOT / "tests"
SHARED = ROOT.parent / "shared" / "data"
"""Recorded runs of real agents, where this machine has them."""
