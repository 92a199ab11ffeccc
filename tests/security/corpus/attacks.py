"""Reads the corpora that are data alone: one JSON object a line, each with an id that a failing test names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def cases(name: str, /, *kinds: str) -> list[Case]:
    """The cases of a corpus, or those of some kinds."""
    lines = (Path(__file__).parent / f"{name}.jsonl").read_text(encoding="ascii").splitlines()
    read: list[Case] = [json.loads(line) for line in lines]
    return [case for case in read if not kinds or case["kind"] in kinds]


def spelled(value: Any, /) -> Any:
    """A value of a case; `{"repeat": …, "times": …}` stands for what would be too long to write down."""
    if isinstance(value, dict) and value.keys() == {"repeat", "times"}:
        return value["repeat"] * value["times"]
    return value
