"""Measures how long a coding agent waits for the hook, with its resident process running.

    python -m lessonbank_bench.measure.hooks [--calls 40] [--lessons 300]

Each call is a process of its own, as a coding agent starts it, and asks for another session. Beside it stands a Python
that does nothing, started in the same way by turns: what it takes, no hook in Python can save.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import lessonbank
from lessonbank.hosts import client

_KEY, _SCOPE = "measure", "team"
_WAIT = 60.0
"""Seconds for the resident process to be there."""


@contextmanager
def own_folder() -> Generator[Path]:
    """A folder that goes, with the places in it where hooks and their resident process keep what is theirs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, variable in (("run", "XDG_RUNTIME_DIR"), ("state", "XDG_STATE_HOME")):
            (folder / part).mkdir(mode=0o700)
            os.environ[variable] = str(folder / part)
        yield folder


def filled(path: Path, lessons: int) -> None:
    """Make a bank with so many lessons."""
    unmeasured = lessonbank.Evidence(holdout=None)
    with lessonbank.connect(path, scope=_SCOPE, evidence=unmeasured, embedder="lexical") as bank:
        for number in range(lessons):
            task = f"Ship parcel number {number} to customer {number * 7919 % 1000} in Norway"
            bank.lessons.add(title=f"Fill form {number} first", content="The customs ask for it.", task=task, by="Ana")


def called(folder: Path, session: str, within: float) -> tuple[float, bool]:
    """Seconds of one call, and whether it gave lessons."""
    options = {"key": _KEY, "scope": _SCOPE, "trusted": "no", "bank": str(folder / "bank.db"), "holdout": "0"}
    words = [word for name, value in {**options, "within": str(within)}.items() for word in (f"--{name}", value)]
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": "Ship parcel number 7 to Norway"}
    command = [sys.executable, "-I", "-S", client.__file__, "claude-code", *words]
    began = time.perf_counter()
    done = subprocess.run(command, input=json.dumps(event).encode(), capture_output=True, check=True)
    return time.perf_counter() - began, bool(done.stdout)


def nothing() -> float:
    """Seconds of a Python that does nothing."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return time.perf_counter() - began


def measured(folder: Path, calls: int) -> dict[str, float]:
    """Milliseconds, and the share of calls that gave lessons within the usual deadline."""
    until = time.monotonic() + _WAIT
    while not called(folder, "warm", 5.0)[1] and time.monotonic() < until:
        time.sleep(0.2)
    open_ended, plain = list[float](), list[float]()
    for number in range(calls):
        open_ended.append(called(folder, f"open-{number}", 5.0)[0])
        plain.append(nothing())
    usual = [called(folder, f"usual-{number}", client.ANSWER_WITHIN) for number in range(calls)]
    return {
        "hook, median ms": 1000 * median(open_ended),
        "hook, slowest ms": 1000 * max(open_ended),
        "Python that does nothing, median ms": 1000 * median(plain),
        "with the usual deadline, slowest ms": 1000 * max(seconds for seconds, _ in usual),
        "with the usual deadline, gave lessons %": 100 * sum(given for _, given in usual) / calls,
    }


def main() -> None:
    """Print the figures, and the load under which they were taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--lessons", type=int, default=300)
    asked = parser.parse_args()
    with own_folder() as folder:
        filled(folder / "bank.db", asked.lessons)
        try:
            for what, figure in measured(folder, asked.calls).items():
                print(f"{what}: {figure:.0f}")
        finally:
            client.ask(_KEY, {"do": client.STOP})
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
