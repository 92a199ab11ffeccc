"""Turns recorded runs of other programs into trajectories, whatever file they were kept in."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from lessonbank._replacing import belongs_to_database
from lessonbank.errors import FormatError
from lessonbank.learning.judging import SUCCESS_AT, checked_threshold

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
from ._reading import NOT_A_BANK, Entry, Format, Imported, Row, Skipped, Source

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


def read(path: str | os.PathLike[str], /, *, format: str = "auto", success_at: float = SUCCESS_AT) -> Iterator[Entry]:
    """The runs in a file, or in all the files of a folder, as they are read.

    JSON lines are read one at a time, gzip directly. A line or entry that cannot be read is a `Skipped` with its
    number and the reason, and reading goes on. The same run of the same file always gets the same trajectory id. What
    the file says of the outcome is in `Imported.verdict`, and nowhere in the trajectory. A folder is walked in
    sorted order. A file or folder in it that cannot be read is a `Skipped`; so is one without runs in a known format,
    with `unknown` set. With a `format`, files of another one are passed over.

    Args:
        path: A file, a folder of files, or a BrowserGym result folder.
        format: A name of `FORMATS`; `auto` finds out.
        success_at: The reward from which a run is a success, where the file gives no more than a reward.

    Returns:
        An iterator of `Imported` and `Skipped`.

    Raises:
        FormatError: no such path, format or content; in a folder, once it turns out that nothing in it is a run.
        UsageError: `success_at` is no number.
    """
    place, success_at = Path(path), checked_threshold(success_at)
    if format != "auto" and format not in _BY_NAME:
        raise FormatError(f"there is no format {format!r}: use auto or one of {', '.join(_BY_NAME)}")
    if not _holds(place.exists):
        raise FormatError(f"there is no file or folder {str(place)!r}")
    if place.is_dir() and not _holds(lambda: browsergym.is_run(place)):
        return _folder(place, format, success_at)
    _check_file(place)
    chosen = detect(place) if format == "auto" else format
    return _with_outcomes(_BY_NAME[chosen], Source(place, success_at=success_at), Outcomes())


def detect(path: str | os.PathLike[str], /) -> str:
    """The name of the format of a file, or of a BrowserGym result folder, by its first values.

    Raises:
        FormatError: the file is missing, empty, or in no known format.
    """
    place = Path(path)
    if place.is_dir():
        if _holds(lambda: browsergym.is_run(place)):
            return browsergym.NAME
        raise FormatError(f"{str(place)!r} is a folder of files, not a run: detect its files one by one")
    if not place.exists():
        raise FormatError(f"there is no file {str(place)!r}")
    _check_file(place)
    if place.name == browsergym.LOG:
        return browsergym.NAME
    found = _recognised(Source(place))
    if isinstance(found, Format):
        return found.name
    why = found.reason if found.unknown else f"is in no known format: line {found.line}: {found.reason}"
    raise FormatError(f"{str(place)!r} {why}")


def _check_file(place: Path) -> None:
    if not (place.is_file() or place.is_dir()):
        raise FormatError(f"{str(place)!r} {_NOT_REGULAR}")
    if _holds(lambda: belongs_to_database(place)):
        raise FormatError(f"{str(place)!r} cannot be read: {NOT_A_BANK}; name the files of your agent")


_NOT_REGULAR = "is not a regular file: runs are read more than once, so save them to a file"


def _recognised(source: Source) -> Format | Skipped:
    """The format of a file by its first values, or why it has none. One line that cannot be read makes it broken."""
    unknown, broken = "is in no known format: it is empty", None
    for row in islice(source.rows(), _SAMPLE):
        if not isinstance(row, Row):
            broken = broken or row
            continue
        for format in _ORDER:
            if format.matches(row.value, source.name):
                return format
        unknown = f"is in no known format: known are {', '.join(_BY_NAME)}"
    if broken is None:
        return Skipped(source.path, 1, unknown, unknown=True)
    return broken


def _with_outcomes(format: Format, source: Source, outcomes: Outcomes) -> Iterator[Entry]:
    """Coding agents' files do not say how the run ended; a test report beside them may."""
    for entry in format.read(source):
        if isinstance(entry, Imported) and entry.verdict is None and format in _JUDGED_ELSEWHERE:
            instance = str(entry.trajectory.metadata.get("task_id", ""))
            yield replace(entry, verdict=outcomes.verdict(entry.path, instance))
        else:
            yield entry


_JUDGED_ELSEWHERE = (mini_swe_agent.FORMAT, swe_agent.FORMAT, openhands.FORMAT)


def _folder(folder: Path, wanted: str, success_at: float) -> Iterator[Entry]:
    outcomes = Outcomes()
    found, unreadable = False, list[Skipped]()
    for chosen, place in _recognised_below(folder):
        if isinstance(chosen, Skipped):
            unreadable += [] if chosen.unknown else [chosen]
            if wanted == "auto" or not chosen.unknown:
                yield chosen
        elif chosen is not swe_bench.FORMAT and wanted in ("auto", chosen.name):
            found = True
            yield from _with_outcomes(chosen, Source(place, success_at=success_at), outcomes)
    if not found:
        raise FormatError(_nothing_in(folder, wanted, unreadable))


def _recognised_below(folder: Path) -> Iterator[tuple[Format | Skipped, Path]]:
    for place in _places(folder):
        yield (place, place.path) if isinstance(place, Skipped) else (_format_of(place), place)


def _nothing_in(folder: Path, wanted: str, unreadable: list[Skipped]) -> str:
    nothing = f"nothing under {str(folder)!r} is a run in {'a known format' if wanted == 'auto' else wanted}"
    if not unreadable:
        return nothing
    first = unreadable[0]
    return (
        f"{nothing}, and {len(unreadable)} files or folders cannot be read: {first.path}:{first.line}: {first.reason}"
    )


def _places(folder: Path) -> Iterator[Path | Skipped]:
    """Result folders and files that may hold runs, sorted; hidden folders are left alone."""
    closed: list[OSError] = []
    for here, below, files in os.walk(folder, onerror=closed.append):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if _holds(partial(browsergym.is_run, Path(here))):
            below.clear()
            yield Path(here)
            continue
        for name in sorted(files):
            if name.removesuffix(".gz").endswith(_ENDINGS):
                yield Path(here) / name
    for error in closed:
        yield Skipped(Path(error.filename or folder), 1, f"the folder cannot be read: {error.strerror or error}")


def _holds(check: Callable[[], bool], /) -> bool:
    """What a check of a path says; `False` where nobody may look. What cannot be read is named later."""
    try:
        return check()
    except OSError:
        return False


def _format_of(place: Path) -> Format | Skipped:
    """The format of a file or result folder that was found in a folder, or why it has none."""
    try:
        mode = place.stat().st_mode
    except OSError as error:
        return Skipped(place, 1, f"the file cannot be read: {error.strerror or error}")
    if stat.S_ISDIR(mode):
        return browsergym.FORMAT
    return _recognised(Source(place)) if stat.S_ISREG(mode) else Skipped(place, 1, _NOT_REGULAR)
