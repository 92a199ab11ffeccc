"""Records as text and back: what is written can always be read again, whatever strangers put into it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar, cast

from pydantic import ValidationError

from lessonbank._base.checks import replace_surrogates
from lessonbank._base.surrogates import encodable as encodable
from lessonbank.contracts.records import Record
from lessonbank.contracts.records.entry import Entry
from lessonbank.errors import StoreDamaged, UsageError

if TYPE_CHECKING:
    from lessonbank.contracts.records.timeline import Entry as AnyEntry

R = TypeVar("R", bound=Record)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def json_of(record: Record, /) -> str:
    """The JSON of a record as it is kept: without what its class has by default, which is part of the format, then.

    Raises:
        ValueError: the record has no JSON form.
    """
    text = record.model_dump_json(exclude_defaults=True)
    if not isinstance(record, Entry):
        return text
    # The kind of an entry is a default of its class, and says by which class it is read.
    kind = cast("AnyEntry", record).kind
    return f'{{"kind":"{kind}"{"," if len(text) > 2 else ""}{text[1:]}'


def dumped(record: R, /) -> tuple[R, str]:
    """The record as it is kept, and its JSON. They differ from what was given only in lone surrogates.

    Raises:
        UsageError: the record has no JSON form.
    """
    try:
        return record, json_of(record)
    except ValueError:
        clean = type(record).model_validate(replace_surrogates(record.model_dump()))
    try:
        return clean, json_of(clean)
    except ValueError as error:
        raise UsageError(f"this {type(record).__name__} cannot be written as JSON: {error}") from None


def loaded(kind: type[R], text: str | bytes, /) -> R:
    """The record that `text` holds.

    Raises:
        StoreDamaged: the text is no such record.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        return _loaded_slowly(kind, text)


def _loaded_slowly(kind: type[R], text: str | bytes) -> R:
    # pydantic's own JSON reader stops at a nesting depth that its writer still accepts.
    try:
        return kind.model_validate(json.loads(text))
    except (ValueError, RecursionError):
        raise StoreDamaged(f"a kept {kind.__name__} cannot be read") from None


def microseconds(moment: datetime, /) -> int:
    """Microseconds since 1970 in UTC, exactly; a moment without a zone is taken as UTC."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def moment(microseconds: int, /) -> datetime:
    """The inverse of `microseconds`."""
    return _EPOCH + timedelta(microseconds=microseconds)


LONGEST_WAIT: Final = 86_400_000_000
"""Microseconds for which a run waits, or a worker has it, at most: what is due later was written by a wrong clock."""


def wait_of(seconds: float, /) -> int:
    """Seconds of a wait in microseconds; not 0, however short it is: one call never takes the same run twice."""
    return min(max(round(seconds * 1e6), 1), LONGEST_WAIT)
