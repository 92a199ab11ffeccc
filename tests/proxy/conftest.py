"""One proxy for all tests of a module, with a tenant for each; and what lies beside the tests can be imported."""

from __future__ import annotations

import sys
from collections.abc import Generator
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest
from running_proxy import KEYS, Recording, Running, Tenant, running
from scripted_upstream import Upstream

_numbers = count()


@pytest.fixture(scope="module")
def upstream() -> Generator[Upstream]:
    with Upstream() as found:
        yield found


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    with running(upstream.url, tmp_path_factory.mktemp("proxy")) as found:
        yield found


@pytest.fixture
def tenant(proxy: Running, upstream: Upstream) -> Tenant:
    """A user whom no other test has, and an upstream that has heard of nothing."""
    upstream.got.clear()
    upstream.gone.clear()
    key = list(KEYS)[next(_numbers)]
    return Tenant(proxy, key, KEYS[key])


@pytest.fixture
def transport() -> Generator[Recording]:
    with Recording() as found:
        yield found
