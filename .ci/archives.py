"""Checks what built archives hold and what an extra brings: the part of `.ci/release-check` that is Python."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tarfile
import time
import tomllib
import zipfile
from collections import Counter
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

MAX_BYTES = 1_000_000
"""The largest file in an archive."""
WHEEL_NEEDS = (
    "lessonbank/__init__.py",
    "lessonbank/py.typed",
    "lessonbank/stores/sqlite/schema.sql",
    "lessonbank/stores/sqlite/0011_tables.sql",
    "lessonbank/stores/sqlite/0011_names.sql",
    "lessonbank/guard/gate/phrases.toml",
    "lessonbank/guard/gate/ordinary_words.txt",
    "lessonbank/guard/gate/platitudes.txt",
    "lessonbank/guard/redact/rules.toml",
    "lessonbank/text/prompts/general/judge.md",
    "lessonbank/text/prompts/paper/judge_web.md",
)
NEVER = ("/tests/", "__pycache__", ".pyc", ".db", ".venv/", ".git/")
EXTRAS = {
    "models": ("pydantic_ai", "lessonbank.providers.models.pydantic_ai"),
    "openai": ("openai", "lessonbank.providers.models.pydantic_ai"),
    "anthropic": ("anthropic", "lessonbank.providers.models.pydantic_ai"),
    "google": ("google.genai", "lessonbank.providers.models.pydantic_ai"),
    "local": ("fastembed", "lessonbank.providers.embedders.fastembed"),
    "sentence-transformers": ("sentence_transformers", "lessonbank.providers.embedders.sentence_transformers"),
    "presidio": ("presidio_analyzer", "lessonbank.guard.redact.presidio"),
    "client": ("lessonbank.http.client.bank",),
    "server": ("lessonbank.http.service.application",),
    "proxy": ("lessonbank.proxy.server",),
    "pages": ("lessonbank.pages.application",),
    "postgres": ("lessonbank.stores.postgres",),
    "try": ("lessonbank.http.service.tryout", "lessonbank.stores.postgres"),
    "mcp": ("lessonbank.mcp.app",),
    "zstd": ("zstandard",),
    "otel": ("lessonbank.telemetry", "opentelemetry.proto"),
}
"""What can be imported once an extra is installed; for the others, the adapter of that name."""
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def extras(project: Path = PROJECT) -> dict[str, list[str]]:
    """What each extra requires."""
    return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def interpreter(extra: str) -> str:
    """This Python, or the oldest one that has what the extra requires."""
    needed = re.findall(r"python_version >= '([\d.]+)'", " ".join(extras()[extra]))
    enough = all(sys.version_info >= tuple(map(int, one.split("."))) for one in needed)
    return sys.executable if enough else f"python{needed[0]}"


def megabytes_of(extra: str) -> float:
    """What the extra adds to lessonbank alone: the files of the packages that it brings, without bytecode."""
    brought = _needed("lessonbank", {extra}) - _needed("lessonbank", set())
    files = [file.locate() for name in brought for file in distribution(name).files or () if file.suffix != ".pyc"]
    return sum(Path(str(file)).stat().st_size for file in files if Path(str(file)).is_file()) / 1e6


def _needed(name: str, chosen: set[str]) -> set[str]:
    """The installed packages that a package needs with some of its extras, and what they need."""
    found, waiting = set[tuple[str, frozenset[str]]](), [(name, frozenset(chosen))]
    while waiting:
        one = waiting.pop()
        with suppress(PackageNotFoundError):  # it is for other platforms
            lines = distribution(one[0]).requires or ()
            more = [needed for line in lines if (needed := _requirement(line, one[1]))]
            waiting += [needed for needed in more if needed not in found]
            found |= {one, *more}
    return {name for name, _ in found if _is_installed(name)}


def _requirement(line: str, chosen: frozenset[str]) -> tuple[str, frozenset[str]] | None:
    """What a line of the metadata asks for, unless it is for an extra that was not chosen."""
    asked, _, marker = line.partition(";")
    for_extra = re.findall(r"extra *== *['\"]([^'\"]+)", marker)
    name, extras = re.findall(r"^([\w.-]+)(?:\[(.*?)\])?", asked.strip())[0]
    wanted = frozenset(one.strip() for one in extras.split(",") if one.strip())
    return None if for_extra and not chosen & set(for_extra) else (_normal(name), wanted)


def _is_installed(name: str) -> bool:
    with suppress(PackageNotFoundError):
        return bool(distribution(name))
    return False


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def seconds_to_import(extra: str) -> float:
    """CPU time, in a process that has lessonbank already."""
    # litellm fetches a price list while it is imported, in a thread that can hold up the import for good.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    _ = import_module("lessonbank").connect  # what every program with a bank loads
    began = time.process_time()
    for name in EXTRAS.get(extra, (f"lessonbank.adapters.{extra.replace('-', '_')}",)):
        import_module(name)
    return time.process_time() - began


def problems(folder: Path, source: Path) -> list[str]:
    """What is wrong with the archives in `folder`; `source` is the package as it is in the project."""
    found: list[str] = []
    for path in sorted(folder.iterdir()):
        files = _files(path)
        print(f"{path.name}: {len(files)} files, {sum(files.values()):,} bytes unpacked")
        found += [f"{path.name}: {name} has {size} bytes" for name, size in files.items() if size > MAX_BYTES]
        if path.suffix == ".whl":
            found += [f"{path.name}: holds {name}" for name in files if any(part in f"/{name}" for part in NEVER)]
        if not any(name.endswith("LICENSE") for name in files):
            found.append(f"{path.name}: no LICENSE")
        if path.name.startswith("lessonbank-") and path.suffix == ".whl":
            _tell_rooms(files)
            found += [f"{path.name}: no {name}" for name in (*WHEEL_NEEDS, *_present(source)) if name not in files]
            found += [
                f"{path.name}: {name} is not of the package" for name in files if not name.startswith("lessonbank")
            ]
    return found


def _files(path: Path) -> dict[str, int]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {one.filename: one.file_size for one in wheel.infolist() if not one.is_dir()}
    with tarfile.open(path) as sdist:
        return {one.name: one.size for one in sdist if one.isfile()}


def _present(source: Path) -> list[str]:
    """Every file of the package in the project, as the wheel should name it."""
    paths = (path for path in sorted(source.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return [path.relative_to(source.parent).as_posix() for path in paths]


def _tell_rooms(files: dict[str, int]) -> None:
    rooms = Counter[str]()
    for name, size in files.items():
        room = name.split("/")
        rooms["/".join(room[:2]) if len(room) > 2 else room[0]] += size
    for room, size in rooms.most_common():
        print(f"  {size:>9,}  {room}")
    print(
        "  not Python:",
        ", ".join(sorted(name for name in files if not name.endswith(".py") and "/prompts/" not in name)),
    )
    print("  prompts:", sum("/prompts/" in name and name.endswith(".md") for name in files))


def main() -> int:
    """Print what was found; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path, nargs="?", help="the folder of archives")
    parser.add_argument("--extras", type=Path, help="print the names of the extras in this pyproject.toml")
    parser.add_argument("--python", help="print the Python that this extra needs")
    parser.add_argument(
        "--import",
        dest="extra",
        help="import what this extra brings, and print its cost",
    )
    told = parser.parse_args()
    if told.extras:
        print("\n".join(extras(told.extras)))
        return 0
    if told.python:
        print(interpreter(told.python))
        return 0
    if told.extra:
        seconds = seconds_to_import(told.extra)
        print(f"{megabytes_of(told.extra):.0f} MB {seconds:.2f} s")
        return 0
    found = problems(told.place, Path(__file__).parents[1] / "src" / "lessonbank")
    print("\n".join(found) or "the archives hold what they should")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
