"""A server over a file, in a thread of the test's process, and keys for two tenants."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2

import lessonbank
from lessonbank.http.service.application import Limits
from lessonbank.http.service.serving import Running, running
from lessonbank.testing.bank_contract import SETTINGS


@pytest.fixture
def server(tmp_path: Path) -> Generator[Running]:
    opened = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="default", **SETTINGS)
    with running(opened, limits=Limits(body=200_000, values=50_000, pause=1.0)) as server:
        yield server


@pytest.fixture
def http(server: Running) -> Generator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def keys(server: Running) -> dict[str, dict[str, str]]:
    """The header of a key for each role of the tenant acme, and for an agent and an admin of the tenant other."""
    roles: dict[str, Any] = {role: ("acme", role) for role in ("agent", "reader", "reviewer", "admin")}
    roles |= {"other agent": ("other", "agent"), "other admin": ("other", "admin"), "operator": ("", "admin")}
    return {
        name: {"Authorization": f"Bearer {server.key('Ana', scope=scope, role=role)}"}
        for name, (scope, role) in roles.items()
    }
