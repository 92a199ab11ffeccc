"""Finds what SWE-bench reports that lie beside a trajectory say of its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lessonbank.contracts.records import Json, Verdict

from ._files import Row, Source
from ._reading import listing, mapping, truth

_SOLVED = ("resolved_ids", "resolved")
_UNSOLVED = ("unresolved_ids", "empty_patch_ids", "unresolved", "no_generation")


class Outcomes:
    """Reports by folder, each read once for all the trajectories of an import.

    A report that is a link must not lead out of its own folder, nor out of `inside`, where there is one.
    """

    def __init__(self, *, inside: Path | None, follow_links: bool) -> None:
        self._inside, self._follow_links = inside, follow_links
        self._folders: dict[Path, dict[str, tuple[bool, str] | None]] = {}

    def verdict(self, path: Path, instance: str, /) -> Verdict | None:
        """The outcome of `instance` by the reports in the trajectory's folder.

        Where the folder holds this one instance, the run's folder above it counts too. Reports that disagree are of
        different runs, and say nothing.
        """
        folder = path.resolve().parent
        for place in (folder, folder.parent) if folder.name == instance else (folder,):
            if place not in self._folders:
                self._folders[place] = _reported(place, inside=self._bound(place))
            report = self._folders[place].get(instance)
            if report:
                return truth(report[0], float(report[0]), reason=f"SWE-bench report {report[1]}")
        return None

    def _bound(self, folder: Path) -> Path | None:
        if self._follow_links:
            return None
        return self._inside if self._inside and folder.is_relative_to(self._inside) else folder


def _reported(folder: Path, *, inside: Path | None) -> dict[str, tuple[bool, str] | None]:
    known: dict[str, tuple[bool, str] | None] = {}
    for path in sorted(folder.glob("*.json")):
        if not any(word in path.name for word in ("report", "result")):
            continue
        for instance, solved in _outcomes(Source(path, inside=inside)):
            earlier = known.get(instance, (solved, ""))
            known[instance] = (solved, path.name) if earlier and earlier[0] == solved else None
    return known


def _outcomes(report: Source) -> Iterator[tuple[str, bool]]:
    for row in report.rows():  # one that cannot be read says nothing
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
