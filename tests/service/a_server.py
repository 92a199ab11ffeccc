"""A server over a file, in a thread of the test's process, and keys for two tenants."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import lessonbank
from lessonbank.http.service.application import Limits
from lessonbank.http.service.serving import Running, running
from lessonbank.testing.bank_contract import SETTINGS


@contextmanager
def served(folder: Path) -> Generator[Running]:
    opened = partial(lessonbank.connect_async, folder / "bank.db", scope="default", **SETTINGS)
    with running(opened, limits=Limits(body=200_000, values=50_000, pause=1.0)) as server:
        yield server


def keys_of(server: Running) -> dict[str, dict[str, str]]:
    """The header of a key for each role of the tenant acme, and for an agent and an admin of the tenant other."""
    roles: dict[str, Any] = {role: ("acme", role) for role in ("agent", "reader", "reviewer", "admin")}
    roles |= {"other agent": ("other", "agent"), "other admin": ("other", "admin"), "operator": ("", "admin")}
    return {
        name: {"Authorization": f"Bearer {server.key('Ana', scope=scope, role=role)}"}
        for name, (scope, role) in roles.items()
    }
