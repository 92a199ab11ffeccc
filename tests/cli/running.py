"""Runs the command line as a user does, on a few runs: in this process, or in one of its own where that matters."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

COMMAND = (sys.executable, "-m", "lessonbank.cli")
_PACKAGE = "lessonbank.cli"
_PACKAGES = ("lessonbank.cli.", "lessonbank_bench.cli.")
_READ_AT_IMPORT = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TERM", "COLORTERM")
_IMPORTED: dict[tuple[str | None, ...], dict[str, Any]] = {}
"""The command line's modules, by what they read."""

RUNS: list[dict[str, Any]] = [
    {
        "source": "test",
        "run_id": f"r{n}",
        "task_id": f"t{n}",
        "task": f"Ship box {n} abroad",
        "messages": [
            {"role": "user", "content": f"Ship box {n} abroad"},
            {"role": "assistant", "content": "print label"},
            {"role": "user", "content": "error: customs form missing"},
            {"role": "assistant", "content": "fill customs form"},
            {"role": "user", "content": "form saved"},
            {"role": "assistant", "content": "print label"},
            {"role": "user", "content": "label printed"},
        ],
        "reward": float(n % 2),
        "success": bool(n % 2),
    }
    for n in range(4)
]


def lessonbank_cli(*words: object, cwd: Path, stdin: int | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """What the console script does, with these words, in this folder, away from a terminal; only sooner.

    Calls share the command line's modules as long as what these read of the environment at their import is the same.
    `stdin` is a descriptor, otherwise there is nothing to read.
    """
    argv = ["lessonbank", *map(str, words)]
    with _appended() as out, _appended() as err, _read(stdin) as given, _as_a_process(cwd, argv, env, given, out, err):
        code = _exit_code()
        out.flush(), err.flush()
        return subprocess.CompletedProcess(argv, code, _text(out), _text(err))


def lessonbank_process(*words: object, cwd: Path, **how: Any) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own; `how` is for `subprocess.run`, and outweighs what is set here."""
    given = {"encoding": "utf-8", "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 120, **how}
    return subprocess.run([*COMMAND, *map(str, words)], cwd=cwd, check=False, **given)


def learn(runs: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return lessonbank_cli("learn", runs, "--bank", "bank.db", "--scope", "t", *more, cwd=runs.parent)


def _exit_code() -> int:
    """What the interpreter would leave with."""
    try:
        import_module(_PACKAGE).main()
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        print(left.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter: whatever it is, it is told and the exit code says so
        traceback.print_exc(file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def _as_a_process(
    cwd: Path, argv: list[str], env: dict[str, str], given: IO[str], out: IO[str], err: IO[str]
) -> Iterator[None]:
    """What a process has for itself, for as long as this lasts."""
    before = dict(os.environ), sys.argv, sys.stdin, sys.excepthook
    modules = _taken_out()
    os.environ.update(env)
    sys.argv, sys.stdin = argv, given
    read = tuple(map(os.environ.get, _READ_AT_IMPORT))
    sys.modules.update(_IMPORTED.get(read, {}))
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
    finally:
        environment, sys.argv, sys.stdin, sys.excepthook = before
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)
        _IMPORTED[read] = _taken_out()
        sys.modules.update(modules)
        if _PACKAGE in modules:
            setattr(sys.modules["lessonbank"], "cli", modules[_PACKAGE])  # noqa: B010 - no attribute of the package's type


def _taken_out() -> dict[str, Any]:
    """The command line's own modules, no longer imported."""
    names = [name for name in sys.modules if f"{name}.".startswith(_PACKAGES)]
    return {name: sys.modules.pop(name) for name in names}


def _appended() -> IO[str]:
    """A file in place of a pipe: commands that a command starts can write to it, too."""
    return io.TextIOWrapper(tempfile.TemporaryFile("a+b"), encoding="utf-8", newline="")


def _read(stdin: int | None) -> IO[str]:
    return os.fdopen(os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin), encoding="utf-8")


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
