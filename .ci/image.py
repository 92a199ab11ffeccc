#!/usr/bin/env python3
"""Does by hand what an engine does with deploy/Dockerfile: the build step, then a server that passes its health check.

It needs no container engine, but a package index. The paths of the image lie in a folder of their own; where this runs
as root, with a Python that others may run, the server runs as the user of the image. The exit code is 1 where a step
fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
PATIENCE = 120
"""Seconds in which the server becomes healthy."""


def built(work: Path) -> Path:
    """The folder that the first stage of the image makes."""
    stage, made, source = TEXT.split("\nFROM ")[1], work / "opt", work / "src"
    source.mkdir()
    for *names, target in (line.split() for line in re.findall(r"^COPY (.+)$", stage, re.M)):
        for name in names:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, source / target / (name if target == "./" else ""))
    (work / "bin").mkdir()
    (work / "bin" / "python").symlink_to(sys.executable)
    path = {**os.environ, "PATH": f"{work / 'bin'}:{os.environ['PATH']}"}
    for step in re.findall(r"^RUN (.+)$", stage, re.M):
        step = step.replace("/opt/lessonbank", str(made))
        print(f"== {step}", flush=True)
        subprocess.run(["bash", "-ec", step], cwd=source, env=path, check=True)
    return made


def words(instruction: str) -> list[str]:
    """What an instruction of the image starts."""
    told: list[str] = json.loads(re.findall(rf"{instruction} (\[.+\])$", TEXT, re.M)[-1])
    return told


def serves(made: Path, work: Path) -> bool:
    """Whether the server of the image, run as its user, passes its health check."""
    (user,) = re.findall(r"^USER (\d+):\d+$", TEXT, re.M)
    data, port = work / "data", free_port()
    data.mkdir()
    mine = {"user": int(user), "group": int(user)} if may_run(made / "bin" / "python", int(user)) else {}
    if mine:
        os.chown(data, int(user), int(user))
    places = {"/data/bank.db": str(data / "bank.db"), "0.0.0.0": "127.0.0.1"}
    start = [str(made / "bin" / words("ENTRYPOINT")[0]), *(places.get(word, word) for word in words("^CMD"))]
    look = [word.replace("8787", str(port)) for word in words("HEALTHCHECK .*CMD")]
    look[0] = str(made / "bin" / look[0])
    print(f"== {' '.join(start)}", flush=True)
    with subprocess.Popen([*start, "--port", str(port)], cwd=data, env={"PATH": os.environ["PATH"]}, **mine) as server:
        until = time.monotonic() + PATIENCE
        healthy = False
        while server.poll() is None and not healthy and time.monotonic() < until:
            healthy = subprocess.run(look, check=False, capture_output=True).returncode == 0
            time.sleep(0.2)
        server.terminate()
    return healthy


def may_run(python: Path, user: int) -> bool:
    """Whether this process may start `python` as another user, and that user may run it."""
    if os.getuid() != 0:
        return False
    try:
        return subprocess.run([python, "-c", ""], user=user, group=user, cwd="/", check=False).returncode == 0
    except PermissionError:
        print(f"user {user} may not run this Python: the server runs as root here")
        return False


def free_port() -> int:
    """A port of this machine that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def main() -> int:
    """The exit code."""
    with tempfile.TemporaryDirectory(prefix="lessonbank-image-") as folder:
        work = Path(folder)
        work.chmod(0o755)
        healthy = serves(built(work), work)
    print("the server of the image is healthy" if healthy else "the server of the image is not healthy")
    return int(not healthy)


if __name__ == "__main__":
    sys.exit(main())
