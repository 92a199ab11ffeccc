"""Requests as a reader would write them first: the OpenAPI document shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_MESSAGES: Final = [
    {"role": "user", "content": "Cancel the pending order #W123"},
    {"role": "assistant", "content": "Order #W123 is cancelled."},
]
EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "retrieve": {"task": "Cancel the pending order #W123"},
    "submit": {"source": _MESSAGES, "outcome": "success"},
    "learn": {"source": _MESSAGES, "reward": 1.0},
    "tell": {"of": {"ticket": "T-17"}, "outcome": "success"},
    "keep_unfinished": {"source": _MESSAGES},
    "judge": {"source": _MESSAGES, "outcome": "failure"},
    "lessons.add": {
        "title": "Look the order up first",
        "content": "Read the state of an order before you cancel it.",
        "task": "Cancel an order",
        "by": "Ana",
    },
    "lessons.approve": {"ids": ["0190c0ffee0a7b3c8d4e5f60718293a4"], "by": "Ana"},
    "lessons.quarantine": {"ids": ["0190c0ffee0a7b3c8d4e5f60718293a4"], "reason": "It names a customer."},
    "lessons.retire": {"ids": ["0190c0ffee0a7b3c8d4e5f60718293a4"], "reason": "The shop has another system."},
    "lessons.restore": {"ids": ["0190c0ffee0a7b3c8d4e5f60718293a4"], "reason": "The old system is back."},
    "lessons.edit": {"content": "Read the state of an order twice.", "by": "Ana"},
    "lessons.merge": {
        "ids": ["0190c0ffee0a7b3c8d4e5f60718293a4", "0190c0ffee0a7b3c8d4e5f60718293a5"],
        "title": "Read the order first",
        "content": "Read the state of an order before you change it.",
        "by": "Ana",
    },
    "lessons.narrow": {"to": ["cancel order"], "by": "Ana"},
    "runs.correct": {"outcome": "failure", "by": "Ana", "reason": "The order was not cancelled."},
    "history.rollback": {"to": 12, "reason": "A bad import.", "by": "Ana"},
    "admin.purge": {"metadata": {"user": "u-17"}, "reason": "An erasure request.", "preview": True},
    "admin.forget": {"days": 90},
}
