"""The labelled pairs, and small records for the policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

Pair = dict[str, Any]


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    lines = (Path(__file__).parent / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
