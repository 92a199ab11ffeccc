"""The pages that are looked at one by one: by axe, for their width, and for the documentation's pictures."""

from __future__ import annotations

from typing import Final

PAGES: Final = {
    "lessons": "/lessons",
    "runs": "/runs",
    "run": "/runs/run-007",
    "inbox": "/inbox",
    "inbox-edit": "/inbox?do=edit",
    "sign-in": "/sign-in",
    "nowhere": "/nowhere",
}
