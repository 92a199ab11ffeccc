"""Turns recorded runs of other programs into trajectories, whatever file they were kept in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from lessonbank.errors import FormatError

from . import (
    browsergym,
    claude_code,
    messages,
    mini_swe_agent,
    neutral,
    openhands,
    otel,
    swe_agent,
    swe_bench,
    tau2,
    tau_bench,
)
from ._outcomes import Outcomes
from ._reading import Entry, Format, Imported, Row, Skipped, Source

__all__ = ["FORMATS", "Entry", "Imported", "Skipped", "detect", "read"]

# The first that matches wins, so the particular come before the general.
_ORDER: tuple[Format, ...] = (
    tau2.FORMAT,
    tau_bench.FORMAT,
    mini_swe_agent.FORMAT,
    swe_agent.FORMAT,
    openhands.FORMAT,
    otel.FORMAT,
    browsergym.FORMAT,
    claude_code.FORMAT,
    neutral.FORMAT,
    swe_bench.FORMAT,
    messages.FORMAT,
)
_BY_NAME = {format.name: format for format in _ORDER}
FORMATS: tuple[tuple[str, str], ...] = tuple((format.name, format.description) for format in _ORDER)
"""Every format's name and what it is, in one line."""
_SAMPLE = 20
_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj")


def read(path: str | os.PathLike[str], /, *, format: str = "auto") -> Iterator[Entry]:
    """The runs in a file, or in all the files of a folder, as they are read.

    JSON lines are read one at a time, gzip directly. A line or entry that cannot be read is a `Skipped` with its
    number and the reason, and reading goes on. The same run of the same file always gets the same trajectory id. What
    the file says of the outcome is in `Imported.verdict`, and nowhere in the trajectory. A folder is walked in
    sorted order; files that hold no runs are passed over, and with a `format` so are files of another.

    Args:
        path: A file, a folder of files, or a BrowserGym result folder.
        format: A name of `FORMATS`; `auto` finds out.

    Returns:
        An iterator of `Imported` and `Skipped`.

    Raises:
        FormatError: no such path, format or content; in a folder, once it turns out that nothing in it is a run.
    """
    place = Path(path)
    if format != "auto" and format not in _BY_NAME:
        raise FormatError(f"there is no format {format!r}: use auto or one of {', '.join(_BY_NAME)}")
    if not place.exists():
        raise FormatError(f"there is no file or folder {str(place)!r}")
    if place.is_dir() and not browsergym.is_run(place):
        return _folder(place, format)
    _check_regular(place)
    chosen = detect(place) if format == "auto" else format
    return _with_outcomes(_BY_NAME[chosen], Source(place), Outcomes())


def detect(path: str | os.PathLike[str], /) -> str:
    """The name of the format of a file, or of a BrowserGym result folder, by its first values.

    Raises:
        FormatError: the file is missing, empty, or in no known format.
    """
    place = Path(path)
    if place.is_dir():
        if browsergym.is_run(place):
            return browsergym.NAME
        raise FormatError(f"{str(place)!r} is a folder of files, not a run: detect its files one by one")
    if not place.exists():
        raise FormatError(f"there is no file {str(place)!r}")
    _check_regular(place)
    if place.name == browsergym.LOG:
        return browsergym.NAME
    return _detected(Source(place))


def _check_regular(place: Path) -> None:
    if not (place.is_file() or place.is_dir()):
        raise FormatError(f"{str(place)!r} is not a regular file: runs are read more than once, so save them to a file")


def _detected(source: Source) -> str:
    reason = "it is empty"
    for row in islice(source.rows(), _SAMPLE):
        if not isinstance(row, Row):
            reason = f"line {row.line}: {row.reason}"
            continue
        for format in _ORDER:
            if format.matches(row.value, source.name):
                return format.name
        reason = f"known are {', '.join(_BY_NAME)}"
    raise FormatError(f"{str(source.path)!r} is in no known format: {reason}")


def _with_outcomes(format: Format, source: Source, outcomes: Outcomes) -> Iterator[Entry]:
    """Coding agents' files do not say how the run ended; a test report beside them may."""
    for entry in format.read(source):
        if isinstance(entry, Imported) and entry.verdict is None and format in _JUDGED_ELSEWHERE:
            instance = str(entry.trajectory.metadata.get("task_id", ""))
            yield replace(entry, verdict=outcomes.verdict(entry.path, instance))
        else:
            yield entry


_JUDGED_ELSEWHERE = (mini_swe_agent.FORMAT, swe_agent.FORMAT, openhands.FORMAT)


def _folder(folder: Path, wanted: str) -> Iterator[Entry]:
    outcomes = Outcomes()
    found = False
    for place in _places(folder):
        chosen = _recognised(place)
        if chosen is None or wanted not in ("auto", chosen.name):
            continue
        for entry in _with_outcomes(chosen, Source(place), outcomes):
            found = True
            yield entry
    if not found:
        kind = "a known format" if wanted == "auto" else wanted
        raise FormatError(f"nothing under {str(folder)!r} is a run in {kind}")


def _places(folder: Path) -> Iterator[Path]:
    """Result folders and files that may hold runs, sorted; hidden folders are left alone."""
    for here, below, files in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if browsergym.is_run(Path(here)):
            below.clear()
            yield Path(here)
            continue
        for name in sorted(files):
            if name.removesuffix(".gz").endswith(_ENDINGS):
                yield Path(here) / name


def _recognised(place: Path) -> Format | None:
    """Reports count as outcomes of the runs beside them, not as files of their own."""
    try:
        format = _BY_NAME[detect(place)]
    except (FormatError, OSError):
        return None
    return None if format is swe_bench.FORMAT else format
