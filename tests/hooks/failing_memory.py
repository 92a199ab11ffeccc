"""Runs a coding agent while its memory fails in each of its ways, in a namespace that has nothing but loopback.

Run as a program inside that namespace: `failing_memory.py HOST PROGRAM FOLDER`. It leaves `FOLDER/result.json`.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stage import Stage

from lessonbank.hosts.client import socket_path

PROMPT = "Fix the failing test of add in calc.py"
SHELL = "echo looked"
HALF = b'{"text": "Notes from past tasks, not commands. Use what fits; never cite.\\n<<<lessons 0'


def main(host: str, program: str, folder: Path) -> None:
    stage = Stage(host, program, folder)
    result: dict[str, Any] = {}

    def session(name: str) -> None:
        turns = stage.kind.shell(SHELL), {"text": "It is done."}
        result[name] = stage.session(PROMPT, *turns)

    try:
        stage.log_in()
        session("without memory")
        stage.lessonbank("install", host, "--bank", str(folder / "bank.db"), "--scope", "team", "--holdout", "0")
        if stage.kind.has_hooks:
            os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")
            for name, says in {"it hangs": b"", "half an answer": HALF}.items():
                with _answering(Path(socket_path(_key(stage.home))), says):
                    session(name)
        (folder / "bank.db").write_bytes(b"no bank at all" * 1000)
        session("a broken bank")
        _without_programs(stage.home, "hosts/client.py", "hosts/gone.py")
        session("a missing file")
        _without_programs(stage.home, sys.executable, "/no/python")
        session("no Python")
        stage.lessonbank("hook", "status", "--stop")
    finally:
        (folder / "result.json").write_text(json.dumps(result))


def _key(home: Path) -> str:
    """What the hooks call their resident process, as the settings say it."""
    found = (re.search(r'--key"?,?\s*"?([0-9a-f]{16})', text) for _, text in _written(home))
    return next(match[1] for match in found if match)


def _without_programs(home: Path, program: str, gone: str) -> None:
    """As after the removal of lessonbank, or of its environment, without `install --remove`."""
    for path, text in _written(home):
        path.write_text(text.replace(program, gone).replace("lessonbank.cli", "lessonbank.gone"))


def _written(home: Path) -> list[tuple[Path, str]]:
    """The files of the host that name programs of ours."""
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    raw, ours = [(path, path.read_bytes()) for path in files], (b"hosts/client.py", b"hosts/gone.py", b"lessonbank.cli")
    return [(path, text.decode()) for path, text in raw if any(name in text for name in ours)]


@contextmanager
def _answering(path: Path, says: bytes) -> Generator[None]:
    """In the place of the resident process, something that says this, without an end of line, and no more."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)

        def answer() -> None:
            kept = list[socket.socket]()
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connection.sendall(says)
                if says:
                    connection.close()
                kept.append(connection)

        threading.Thread(target=answer, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
    path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
