"""Reads SWE-bench instances in the published format, from a file or through the `datasets` package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from lessonbank.contracts.records.ids import digest
from lessonbank.errors import UsageError
from lessonbank.guard import one_line

PUBLISHED: Mapping[str, str] = {
    "verified": "princeton-nlp/SWE-bench_Verified",
    "lite": "princeton-nlp/SWE-bench_Lite",
}
"""By its short name, where a set is published."""
_FIELDS = ("instance_id", "repo", "problem_statement")
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,150}")
"""An id names folders and an image."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One issue of one repository."""

    id: str
    repo: str
    statement: str
    data: Mapping[str, Any]
    """Everything the set says of it."""

    @property
    def place(self) -> tuple[str, int, str]:
        """Where it stands in ascending order: by repository, then by number."""
        head, _, number = self.id.rpartition("-")
        return head, int(number) if number.isascii() and number.isdigit() else 0, self.id


def instances(dataset: str, /, *, split: str, repo: str = "") -> tuple[Instance, ...]:
    """The instances of a set in ascending order.

    Args:
        dataset: a `.json` or `.jsonl` file, or `verified` or `lite`.
        split: of a published set.
        repo: only those of one repository, such as `django/django`.

    Raises:
        UsageError: the file or the package is absent, or an entry is no instance.
    """
    found = _published(dataset, split) if dataset in PUBLISHED else _in_file(Path(dataset))
    made = (_instance(entry, dataset, number) for number, entry in enumerate(found, 1))
    kept = sorted((one for one in made if repo in ("", one.repo)), key=lambda one: one.place)
    if not kept:
        raise UsageError(f"environment 'swebench': there is no instance of {repo or 'any repository'} in {dataset!r}")
    if len({one.id for one in kept}) < len(kept):
        raise UsageError(f"environment 'swebench': an instance is twice in {dataset!r}")
    return tuple(kept)


def fingerprint(found: Iterable[Instance], /) -> str:
    """Names a set of instances and what they ask."""
    return digest("\n".join(f"{one.id} {digest(one.statement)}" for one in found))[:12]


def _in_file(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"environment 'swebench' cannot read its dataset {str(path)!r} ({type(error).__name__}): under [settings], "
            "dataset is a .json or .jsonl file of instances in the published format, or 'verified' or 'lite'"
        ) from error
    try:
        lines = path.suffix == ".jsonl"
        return [json.loads(line) for line in text.splitlines() if line.strip()] if lines else list(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"environment 'swebench': {str(path)!r} is no list of instances: {error}") from error


def _published(name: str, split: str) -> Iterable[Any]:
    try:
        load = import_module("datasets").load_dataset
    except ImportError as missing:
        raise UsageError(
            f"environment 'swebench': dataset = {name!r} is fetched with the datasets package: pip install datasets, "
            "or name a .json or .jsonl file"
        ) from missing
    try:
        return cast("Iterable[Any]", load(PUBLISHED[name], split=split))
    except Exception as error:  # whatever a hub client raises: no network, no such split, a broken cache
        told = one_line(str(error), limit=200)
        raise UsageError(f"environment 'swebench': {PUBLISHED[name]} ({split}) cannot be loaded: {told}") from error


def _instance(entry: Any, source: str, number: int) -> Instance:
    if not isinstance(entry, Mapping):
        raise UsageError(f"environment 'swebench': entry {number} of {source!r} is no instance")
    data = cast("Mapping[str, Any]", entry)
    for field in _FIELDS:
        if not isinstance(data.get(field), str) or not data[field].strip():
            raise UsageError(f"environment 'swebench': entry {number} of {source!r} has no {field}")
    if not _ID.fullmatch(data["instance_id"]):
        raise UsageError(f"environment 'swebench': entry {number} of {source!r} has an instance_id that is none")
    return Instance(data["instance_id"], data["repo"], data["problem_statement"], dict(data))
