"""Finds what SWE-bench reports that lie beside a trajectory say about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lessonbank.types import Json, Verdict

from ._reading import Row, Source, listing, mapping, truth

_LIMIT = 16 * 2**20
_SOLVED = ("resolved_ids", "resolved")
_UNSOLVED = ("unresolved_ids", "empty_patch_ids", "unresolved", "no_generation")


class Outcomes:
    """Reports by folder, each read once for all the trajectories of an import."""

    def __init__(self) -> None:
        self._folders: dict[Path, dict[str, tuple[bool, str] | None]] = {}

    def verdict(self, path: Path, instance: str, /) -> Verdict | None:
        """The outcome of `instance` by the reports in the trajectory's folder.

        Where the folder holds this one instance, the run's folder above it counts too. Reports that disagree are of
        different runs, and say nothing.
        """
        folder = path.resolve().parent
        for place in (folder, folder.parent) if folder.name == instance else (folder,):
            if place not in self._folders:
                self._folders[place] = _reported(place)
            found = self._folders[place].get(instance)
            if found:
                return truth(success=found[0], reward=float(found[0]), reason=f"SWE-bench report {found[1]}")
        return None


def _reported(folder: Path) -> dict[str, tuple[bool, str] | None]:
    known: dict[str, tuple[bool, str] | None] = {}
    for path in sorted(folder.glob("*.json")):
        if not any(word in path.name for word in ("report", "result")) or not _is_small(path):
            continue
        for instance, solved in _outcomes(path):
            earlier = known.get(instance, (solved, ""))
            known[instance] = (solved, path.name) if earlier and earlier[0] == solved else None
    return known


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size <= _LIMIT
    except OSError:
        return False  # a link to nothing, or not ours to read


def _outcomes(path: Path) -> Iterator[tuple[str, bool]]:
    for row in Source(path).rows():
        if isinstance(row, Row):
            yield from _listed(mapping(row.value))


def _listed(report: dict[str, Json]) -> Iterator[tuple[str, bool]]:
    for keys, solved in ((_SOLVED, True), (_UNSOLVED, False)):
        for key in keys:
            yield from ((name, solved) for name in listing(report.get(key)) if isinstance(name, str))
    for instance, details in report.items():
        resolved = mapping(details).get("resolved")
        if isinstance(resolved, bool):
            yield instance, resolved
