"""Reads JSON that somebody else wrote, within bounds: many small values take fifty times the room of their text."""

from __future__ import annotations

import json
from typing import Final, cast

from lessonbank.types import Json

_MOST: Final = 4_000_000
"""Brackets and commas of a record."""


def parse(raw: bytes | str, /) -> Json:
    """The JSON value in `raw`; bytes that are no UTF-8 are replaced.

    Raises:
        ValueError: no JSON, nested too deep, too many values, or a number of thousands of digits.
    """
    text = raw.decode("utf-8-sig", "replace") if isinstance(raw, bytes) else raw
    if len(text) > _MOST and sum(map(text.count, ",[{")) > _MOST:
        raise ValueError(f"more than {_MOST:,} values in one record")
    try:
        return cast("Json", json.loads(text))
    except RecursionError:
        raise ValueError("nested too deep") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise ValueError("a number of thousands of digits") from None
