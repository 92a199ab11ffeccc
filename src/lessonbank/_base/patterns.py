"""Patterns that few texts need: a program that meets none of these texts does not compile them."""

from __future__ import annotations

import re
from functools import cache


@cache
def compiled(source: str, flags: int = 0, /) -> re.Pattern[str]:
    """`source` as a pattern, made when it is first needed."""
    return re.compile(source, flags)
