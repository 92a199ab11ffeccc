"""What a record holds by default is not written, so that a default is part of the format of every bank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from lessonbank.contracts.records import Experience, Missing, Recall, Record, Trajectory
from lessonbank.contracts.records.changes import JournalEntry
from lessonbank.stores._records import json_of

WRITTEN = Path(__file__).parent / "kept" / "defaults.txt"
STORED = (Trajectory, Recall, JournalEntry)


def records_in(kind: Any, seen: set[type[Record]], /) -> None:
    """Every record that one of `kind` may hold, itself included."""
    if isinstance(kind, type) and issubclass(kind, Record) and kind not in seen:
        seen.add(kind)
        for field in kind.model_fields.values():
            records_in(field.annotation, seen)
    for part in get_args(kind):
        records_in(part, seen)


def fields_with_defaults() -> Iterator[tuple[str, FieldInfo]]:
    seen = set[type[Record]]()
    for kind in STORED:
        records_in(kind, seen)
    for kind in sorted(seen, key=lambda one: one.__name__):
        for name, field in kind.model_fields.items():
            if not field.is_required():
                yield f"{kind.__name__}.{field.serialization_alias or name}", field


def default_of(field: FieldInfo) -> object:
    return field.get_default(call_default_factory=True, validated_data={})


def test_a_default_that_records_were_written_under_stays_as_it_is() -> None:
    """Who changes a default changes what older banks say: rename the field, or walk the banks, and then this file."""
    now = {f"{name} = {default_of(field)!r}" for name, field in fields_with_defaults() if not takes_data(field)}
    written = set(WRITTEN.read_text(encoding="utf-8").splitlines())
    assert written - now == set(), "these defaults were changed, and banks were written under them"
    assert now - written == set(), f"add these lines to {WRITTEN.name}"


def takes_data(field: FieldInfo) -> bool:
    return bool(field.default_factory_takes_validated_data)


def test_no_default_that_differs_each_time_is_compared_with_a_value() -> None:
    for name, field in fields_with_defaults():
        assert takes_data(field) or default_of(field) == default_of(field), name


def test_a_record_keeps_its_id_and_its_moment_however_fast_it_is_written() -> None:
    text = json_of(Experience(scope="s", task="t", attempts=()))
    assert '"id"' in text
    assert '"created_at"' in text


def test_an_entry_says_its_kind() -> None:
    assert json_of(Missing()) == '{"kind":"missing"}'
