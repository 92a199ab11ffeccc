"""A server for each test, a client of it and its keys; what lies beside the tests can be imported."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2
from a_server import keys_of, served

from lessonbank.http.service.serving import Running


@pytest.fixture
def server(tmp_path: Path) -> Generator[Running]:
    with served(tmp_path) as server:
        yield server


@pytest.fixture
def http(server: Running) -> Generator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def keys(server: Running) -> dict[str, dict[str, str]]:
    """See `keys_of`."""
    return keys_of(server)
