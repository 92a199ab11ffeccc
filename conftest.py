"""What every test may count on: no network, no keys, no model hub, one event loop library, repeatable examples."""

from __future__ import annotations

import gc
import inspect
import ipaddress
import os
import shutil
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_KEY_ENDINGS = ("_API_KEY", "_AUTH_TOKEN", "_ACCESS_TOKEN", "_SECRET_KEY")
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # No plugin is installed, and each process would ask every distribution for one.
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
    # Output is compared as text: no colours, no terminal of the developer's own width.
    "NO_COLOR": "1",
    "COLUMNS": "120",
    # What a bank does not take in time waits in a folder of the tests.
    "XDG_STATE_HOME": str(Path(tempfile.gettempdir()) / f"lessonbank-tests-state-{os.getpid()}"),
    # No test meets a certificate of a public authority: to read all of them takes each HTTP client 20 ms.
    "SSL_CERT_FILE": str(Path(__file__).parent / "tests/fixtures/authority.pem"),
    # Several tests run at once: threads that wait for their next small product only take time from each other.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_LONGEST = (
    *("test_types.py", "test_kills.py", "test_pages_in_a_browser.py", "test_two_sessions.py", "test_experiment.py"),
    *("test_damage.py", "test_site.py", "test_plots.py", "test_fair_arms.py", "test_examples.py"),
    *("test_blind_sessions.py", "test_report_pngs.py", "test_tryout.py", "test_mcp_processes.py", "test_chaos.py"),
    *("test_fairness.py", "test_hostile_files.py", "test_sqlite_trouble.py", "test_schema.py", "test_scale.py"),
    *("test_failing_memory.py", "test_long_lessons.py", "test_packets.py"),
)
"""In turn given to one worker after another."""
_OPEN_HOSTS = {"", "localhost", "localhost.localdomain", "ip6-localhost"}


class OfflineError(RuntimeError):
    """A test tried to leave this machine. Not an OSError, so that no retry or fallback can swallow it."""

    def __init__(self, target: object, /) -> None:
        super().__init__(f"tests are offline: {target!r} is not on this machine; use a fake of lessonbank.testing")


def _close_network() -> None:
    """Let sockets reach loopback and nothing else, in every thread of the test process."""
    socket.socket.connect = _guarded(socket.socket.connect)  # type: ignore[method-assign]
    socket.socket.connect_ex = _guarded(socket.socket.connect_ex)  # type: ignore[method-assign]
    socket.socket.sendto = _guarded(socket.socket.sendto)  # type: ignore[method-assign]
    look_up = socket.getaddrinfo

    def local_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_far(host)
        return look_up(host, *args, **kwargs)

    socket.getaddrinfo = local_look_up


def _guarded(call: Callable[..., Any], /) -> Callable[..., Any]:
    def guarded(self: socket.socket, *args: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _refuse_far(args[-1][0])  # the address comes last in all three
        return call(self, *args)

    return guarded


def _refuse_far(host: Any, /) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else (host or "")
    if name in _OPEN_HOSTS:
        return
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        raise OfflineError(name) from None
    if not (address.is_loopback or address.is_unspecified):
        raise OfflineError(name)


def _forget_keys_and_proxies() -> None:
    """A developer's own keys must not make a test pass, and a proxy on loopback is a way out."""
    for name in list(os.environ):
        if name.endswith(_KEY_ENDINGS) or name.lower() in {"http_proxy", "https_proxy", "all_proxy"}:
            del os.environ[name]
    os.environ.update(_OFFLINE)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False  # the command line is imported again for each call of it


def _write_to_memory() -> None:
    """Folders of tests in memory, where there is room: they outlive a killed process and wait for no other's disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    if roomy:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def _read_no_source_for_stacks() -> None:
    """Playwright asks for the stack twice a call, and looks for the source of each frame among thousands of modules."""

    def stack(context: int = 0) -> list[inspect.FrameInfo]:
        frames = traceback.walk_stack(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        return [inspect.FrameInfo(f, f.f_code.co_filename, line, f.f_code.co_name, None, None) for f, line in frames]

    inspect.stack = stack


gc.disable()  # until all tests are collected, none of which goes
_close_network()
_forget_keys_and_proxies()
_read_no_source_for_stacks()
_write_to_memory()

# `derandomize`: a red build must mean a change, not bad luck. `just search` looks for new counterexamples.
settings.register_profile(
    "repeatable",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("repeatable"), max_examples=400)
_usual = "soak" if "LESSONBANK_SOAK" in os.environ else "repeatable"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _usual))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each worker gets a part of the list as it is ordered, and begins with some of the longest: none ends with one."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    rest = [item for item in items if item.path.name not in _LONGEST]
    ordered: list[pytest.Item] = []
    for number in range(workers):
        first = [item for item in items if item.path.name in _LONGEST[number::workers]]
        others = max(0, (len(items) - len(ordered)) // (workers - number) - len(first))
        ordered += [*first, *rest[:others]]
        del rest[:others]
    items[:] = [*ordered, *rest]


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: the garbage collector need not look at them again and again."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, the loop our users have."""
    return "asyncio"


@pytest.fixture
def small_boundaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short walk crosses the edges behind which a large bank is kept in another way."""
    for name, size in {
        "sqlite._derived.TAIL": 3,
        "_words._MORE": 1,
    }.items():
        monkeypatch.setattr(f"lessonbank.stores.{name}", size)
