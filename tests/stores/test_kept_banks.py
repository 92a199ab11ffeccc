"""A bank that an earlier release wrote opens in place and says what that release said of it, field by field."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Parts
from lessonbank.testing import HashingEmbedder

KEPT: Final = Path(__file__).parent / "kept"
sys.path.insert(0, str(KEPT))
from description import described  # noqa: E402

MOVED: Final[Mapping[str, str]] = {}
"""A key of a record's `metadata` then to the field of that record now; its value is the same."""
SCOPE: Final = "acme/support"


async def nothing(_: Any) -> Extraction:
    return Extraction()


def opened(where: str | Path, scope: str = SCOPE) -> lessonbank.ReasoningBank:
    parts = Parts(extractor=nothing)
    return lessonbank.connect(where, scope=scope, embedder=HashingEmbedder(dimensions=16), evidence=Evidence(0.3), parts=parts)


def unlike(then: Any, now: Any, where: str = "") -> Iterator[str]:
    """Where what was is not any more. A field that is new says nothing of what was."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key, value in then.items():
            if key == "metadata" and isinstance(value, dict):
                yield from _unlike_metadata(value, now, where)
            elif key not in now:
                yield f"{where}.{key} is gone: {value!r}"
            else:
                yield from unlike(value, now[key], f"{where}.{key}")
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for place, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from unlike(one, other, f"{where}[{place}]")
    elif then != now:
        yield f"{where}: {then!r} is now {now!r}"


def _unlike_metadata(then: Mapping[str, Any], record: Mapping[str, Any], where: str) -> Iterator[str]:
    now = record.get("metadata", {})
    for key, value in then.items():
        field = MOVED.get(key)
        found = record.get(field) if field else now.get(key)
        yield from unlike(value, found, f"{where}.{field or f'metadata.{key}'}")


def said(name: str) -> Any:
    return json.loads((KEPT / name).read_text(encoding="utf-8"))


@pytest.fixture
def bank_file(tmp_path: Path) -> Path:
    return Path(shutil.copy(KEPT / "format_10.db", tmp_path / "bank.db"))


def test_a_file_of_format_10_says_what_it_said(bank_file: Path) -> None:
    with opened(bank_file) as bank:
        assert list(unlike(said("format_10.json"), described(bank))) == []
