"""The names of this machine itself: what goes there passes no proxy of the environment, which would read keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
DIRECT: Final[Mapping[str, None]] = {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
"""The `mounts` of an HTTP client that leaves `HTTP_PROXY` and the like aside for these names."""
