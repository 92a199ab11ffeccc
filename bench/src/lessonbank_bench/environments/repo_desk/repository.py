"""Puts a repository on disk for one task, and tells afterwards whether the change was accepted."""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
import subprocess
import warnings
from collections.abc import Mapping
from pathlib import Path

from lessonbank_bench.environments.mini_shell import scrubbed

from .world import Code, Repository, Task

_SECONDS = 30.0
_LARGEST = 200_000
"""Bytes of a `core.py` that are looked at."""
_HELD = ".git/desk"
"""Where a repository's scripts know from what they want: as hashes, since whoever looks should not simply read it."""
_CHECK = f"""#!/bin/sh
# Looks for a change note in the folder where they are kept.
wanted=$(sed -n 1p {_HELD})
for note in docs/*/*.md; do
  if [ "$(dirname "$note" | git hash-object --stdin)" = "$wanted" ]; then
    echo "The change note was accepted."
    exit
  fi
done
echo "Nothing was found where change notes are kept."
"""
_SCRIPT = f"""#!/bin/sh
# Brings a generated file up to date.
name=$(basename "$0")
if [ "$(echo "$name" | git hash-object --stdin)" = "$(sed -n 2p {_HELD})" ]; then
  mkdir -p generated
  git hash-object core.py > "generated/$name.txt"
  echo "The file generated/$name.txt was written."
else
  echo "Nothing to do."
fi
"""
_ABOUT = "Texts about this repository.\n"
_CONFIG = "[core]\n\tfsync = none\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
"""Housekeeping, and waiting for the disk, take longer than the commits."""
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
"""Nothing that an agent left in a repository is run by looking at it."""


def lay_out(repository: Repository, folder: Path, /) -> None:
    """Make the repository in `folder`, with one commit."""
    for name in (*repository.scripts, "check"):
        path = folder / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_CHECK if name == "check" else _SCRIPT, encoding="utf-8")
        path.chmod(0o755)
    for name in repository.folders:
        path = folder / "docs" / name / "about.txt"
        path.parent.mkdir(parents=True)
        path.write_text(_ABOUT, encoding="utf-8")
    folder.joinpath("core.py").write_text(source(repository.name, repository.code), encoding="utf-8")
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    with folder.joinpath(".git", "config").open("a", encoding="utf-8") as config:
        config.write(_CONFIG)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=Import")
    git(folder, "repack", "-a", "-d", "--quiet")  # three files to copy for every task, not fifty


def take(laid_out: Path, task: Task, folder: Path, /) -> None:
    """A copy of a repository for one task."""
    shutil.copytree(laid_out, folder)
    held = [blob(f"docs/{task.repository.folder}\n"), blob(f"{task.script}\n")]
    folder.joinpath(_HELD).write_text("\n".join(held) + "\n", encoding="utf-8")


def verified(task: Task, folder: Path, /) -> Mapping[str, float]:
    """What of the last commit is as it has to be: each 1.0 or 0.0. The change is accepted where all are 1.0."""
    listed = git(folder, "ls-tree", "-r", "-z", "--full-tree", "HEAD")
    entries = (entry.partition("\t") for entry in listed.split("\0"))
    files = {path: told.split(" ")[-1] for told, _, path in entries}
    subject = git(folder, "log", "-1", "--format=%s")
    code = defined(git(folder, "cat-file", "blob", "HEAD:core.py"))
    generated = files.get(f"generated/{task.script}.txt") == blob(files.get("core.py", "") + "\n")
    titled = re.fullmatch(rf"{task.repository.prefix}: {re.escape(task.id)}\b.*", subject.strip())
    return {
        "change": float(code == task.wanted),
        "note": float(f"docs/{task.repository.folder}/{task.id}.md" in files),
        "generated": float(generated),
        "prefix": float(titled is not None),
    }


def source(name: str, code: Code, /) -> str:
    """`core.py`."""
    constants = "".join(f"{name} = {value}\n" for name, value in code.constants.items())
    options = "".join(f'    "{option}",\n' for option in code.options)
    functions = "".join(f"\n\ndef {name}():\n    return {value}\n" for name, value in code.functions.items())
    return f'"""{name}."""\n\n{constants}\nOPTIONS = (\n{options})\n{functions}'


def defined(text: str, /) -> Code | None:
    """What the text of a `core.py` defines, without running it; `None` where it is no such file."""
    if len(text) > _LARGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions: dict[str, int] = {}
    values: dict[str, object] = {}
    for node in body:
        match node:
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.Constant(value=int(value)))]):
                functions[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = _literal(value)
            case _:
                pass
    options = values.pop("OPTIONS", ())
    constants = {name: value for name, value in values.items() if isinstance(value, int)}
    listed = isinstance(options, tuple | list) and all(isinstance(option, str) for option in options)  # pyright: ignore[reportUnknownVariableType]
    return Code(functions, constants, tuple(map(str, options)) if listed else ())  # pyright: ignore[reportUnknownArgumentType, reportArgumentType]


def blob(text: str, /) -> str:
    """The hash that git gives a file with this text."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def git(folder: Path, *arguments: str) -> str:
    """What git says; nothing where it fails, as it does in what an agent left behind."""
    done = subprocess.run(
        ["git", *_SAFE, *arguments],
        cwd=folder,
        env=scrubbed(folder.parent),
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")
