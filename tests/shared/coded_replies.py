"""Replies of a scripted model that carry the check code of the call, as every model is asked to give it back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any


def code_in(messages: Sequence[Any], /) -> str:
    """The code that a prompt asks to be given back."""
    return re.findall(r'"check": "([0-9a-f]{8})"', messages[-1].content)[-1]


def coded(**fields: Any) -> Callable[[Sequence[Any]], str]:
    """A reply with these fields, bound to the code of the call; a `check` among them stands in its place."""
    return lambda messages: json.dumps({"check": code_in(messages)} | fields)
