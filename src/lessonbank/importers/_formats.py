"""Reads a file or folder of recorded runs: which of the known formats it has, and how its runs ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from lessonbank._base.atomic_write import belongs_to_database
from lessonbank._base.checks import a_flag, a_path, is_instance, short_path, short_repr
from lessonbank._base.extensions import extension
from lessonbank._base.plural import plural
from lessonbank._base.safe_read import LEADS_OUT, NOT_REGULAR
from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError
from lessonbank.learning.judging import SUCCESS_AT, checked_threshold

from . import (
    adk,
    aider,
    atif,
    browsergym,
    claude_code,
    claude_stream,
    cline,
    codex,
    codex_exec,
    copilot_cli,
    gemini_cli,
    inspect_ai,
    langfuse,
    langsmith,
    messages,
    mini_swe_agent,
    neutral,
    openai_agents,
    opencode,
    openhands,
    otel,
    qwen_code,
    swe_agent,
    swe_bench,
    tau2,
    tau_bench,
)
from ._account import ends_in, program_of
from ._evidence import verdict_of
from ._files import NOT_A_BANK, Row, Skipped, Source
from ._outcomes import Outcomes
from ._reading import TOO_DEEP, Entry, Format, Imported

# The first that matches wins, so the particular come before the general.
_ORDER: tuple[Format, ...] = tuple(
    reader.FORMAT
    for reader in (
        *(atif, adk, openai_agents, tau2, tau_bench, mini_swe_agent, swe_agent, openhands, inspect_ai, langfuse),
        *(langsmith, otel, browsergym, cline, codex, codex_exec, copilot_cli, gemini_cli, qwen_code, claude_stream),
        *(claude_code, neutral, swe_bench, opencode, messages, aider),
    )
)
_FOLDERS = (browsergym, tau2, openhands)
"""Those of which a folder can be one result."""
_JUDGED_ELSEWHERE = (mini_swe_agent.FORMAT, swe_agent.FORMAT, openhands.FORMAT)
_CODING_AGENTS = (
    *(claude_code.FORMAT, claude_stream.FORMAT, cline.FORMAT, codex.FORMAT, codex_exec.FORMAT, copilot_cli.FORMAT),
    *(gemini_cli.FORMAT, opencode.FORMAT, qwen_code.FORMAT),
)
_FILES = (opencode, aider)
"""Those whose files hold no JSON."""
_BY_NAME = {format.name: format for format in _ORDER}
FORMATS: tuple[tuple[str, str], ...] = tuple((format.name, format.description) for format in _ORDER)
"""Every format's name and what it is, in one line."""
EXTENSIONS: Final = "lessonbank.importers"
"""The group of entry points by which other distributions bring formats."""
_SAMPLE = 20
_MOST_IN_VAIN = 10_000
_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".pb", ".binpb", ".otlp", aider.FILE, opencode.FILE)


def read(
    path: str | os.PathLike[str],
    /,
    *,
    format: str | Format = "auto",
    success_at: float = SUCCESS_AT,
    follow_links: bool = False,
) -> Iterator[Entry]:
    """The runs in a file, or in all the files of a folder, as they are read.

    JSON lines are read one at a time, gzip directly. A line or entry that cannot be read is a `Skipped` with its
    number and the reason, and reading goes on. The same run of the same file always gets the same trajectory id. What
    the file says of the outcome is in `Imported.verdict`, and nowhere in the trajectory. A folder is walked in
    sorted order. A file or folder in it that cannot be read is a `Skipped`; so is one without runs in a known format,
    with `unknown` set. With a `format`, files of another one are passed over.

    Only regular files are read, as long as they are when they are opened. One record (a line, or a file that is one
    JSON value) may have 64 MB, unpacked.

    Args:
        path: A file, a folder of files, or a folder that is one result (BrowserGym, tau2-bench, OpenHands).
        format: A name of `FORMATS`; `auto` finds out. Another name is that of an entry point in the group
            `lessonbank.importers` of a distribution that is installed: a `Format`, or a function of the path that
            gives `Imported` and `Skipped`. A `Format` itself can be given, too.
        success_at: The reward from which a run is a success, where the file gives no more than a reward.
        follow_links: Whether links in a folder may lead out of it. Those that stay inside are always read.

    Returns:
        An iterator of `Imported` and `Skipped`.

    Raises:
        FormatError: no such path, format or content; in a folder, once it turns out that nothing in it is a run.
        UsageError: `success_at` is no number, or `path` no path.
    """
    place, success_at = a_path(path), checked_threshold(success_at)
    a_flag(follow_links, "follow_links")
    wanted = str.__str__(format) if is_instance(format, str) else ""
    is_ours = wanted in ("auto", *_BY_NAME)
    foreign: Any = format if is_instance(format, Format) else None if is_ours else extension(EXTENSIONS, wanted)
    if foreign is None and not is_ours:
        raise FormatError(f"there is no format {short_repr(format)}: use auto or one of {', '.join(_BY_NAME)}")
    if not _holds(place.exists):
        raise FormatError(f"there is no file or folder {short_path(place)}")
    if foreign is not None and not is_instance(foreign, Format):
        return iter(foreign(place))
    order = _ORDER if foreign is None else (foreign,)
    if place.is_dir() and (foreign or _of_folder(place) is None):
        return _folder(place, foreign.name if foreign else wanted, success_at, order, follow_links=follow_links)
    _check_file(place)
    chosen = foreign or _BY_NAME[detect(place) if wanted == "auto" else wanted]
    # A file that was named may be a link; what belongs to a result folder must lie in it.
    inside = place if place.is_dir() and not follow_links else None
    source = Source(place, inside=inside, success_at=success_at)
    return _with_outcomes(chosen, source, Outcomes(inside=inside, follow_links=follow_links))


def detect(path: str | os.PathLike[str], /) -> str:
    """The name of the format of a file, or of a result folder, by its first values.

    Raises:
        FormatError: the file is missing, empty, or in no known format.
    """
    place = a_path(path)
    if _holds(place.is_dir):
        if whole := _of_folder(place):
            return whole.name
        raise FormatError(f"{short_path(place)} is a folder of files, not a run: detect its files one by one")
    if not _holds(place.exists):
        raise FormatError(f"there is no file {short_path(place)}")
    _check_file(place)
    if place.name == browsergym.LOG:
        return browsergym.NAME
    if whole := _of_file(place):
        return whole.name
    match = _recognised(Source(place))
    if isinstance(match, Format):
        return match.name
    why = match.reason if match.unknown else f"is in no known format: line {match.line}: {match.reason}"
    raise FormatError(f"{short_path(place)} {why}")


def _check_file(place: Path) -> None:
    if _of_file(place):
        return
    if not (place.is_file() or place.is_dir()):
        raise FormatError(f"{short_path(place)} {NOT_REGULAR}")
    if _holds(lambda: belongs_to_database(place)):
        raise FormatError(f"{short_path(place)} cannot be read: {NOT_A_BANK}; name the files of your agent")


def _recognised(source: Source, order: Sequence[Format] = _ORDER) -> Format | Skipped:
    """The format of a file by its first values, or why it has none. One line that cannot be read makes it broken."""
    unknown, broken = "is in no known format: it is empty", None
    for row in islice(source.rows(), _SAMPLE):
        if not isinstance(row, Row):
            broken = broken or row
            continue
        try:
            if format := next((format for format in order if format.matches(row.value, source.name)), None):
                return format
        except RecursionError:
            return Skipped(source.path, row.line, TOO_DEEP)
        unknown = f"is in no known format: known are {', '.join(_BY_NAME)}"
        if changed := _changed(row.value):
            broken = broken or Skipped(source.path, row.line, changed)
    if broken is None:
        return Skipped(source.path, 1, unknown, unknown=True)
    return broken


def _changed(value: Json) -> str:
    """Why a file that looks like a known program's has no format, with what it says of outcomes."""
    program, ends = program_of(value), ends_in(value)
    reason = f"it looks like a file of {program} in a shape that is not known" if program else ""
    return f"{reason}, and says how a run ended in {', '.join(ends)}" if program and ends else reason


def _with_outcomes(format: Format, source: Source, outcomes: Outcomes) -> Iterator[Entry]:
    """Many files do not say how the run ended; a test report beside them may, or what happened in the run."""
    for entry in _while_some_are_runs(format, source):
        if isinstance(entry, Imported) and entry.verdict is None and format in _JUDGED_ELSEWHERE:
            instance = str(entry.trajectory.metadata.get("task_id", ""))
            yield replace(entry, verdict=outcomes.verdict(entry.path, instance))
        elif isinstance(entry, Imported) and entry.verdict is None and format in _CODING_AGENTS:
            yield _with_evidence(entry)
        else:
            yield entry


def _with_evidence(entry: Imported) -> Imported:
    """The outcome by what happened in the run. The run keeps the reason, because a told outcome has none."""
    verdict = None if entry.trajectory.error else verdict_of(entry.trajectory, entry.exit_codes)
    if verdict is None:
        return entry
    metadata = {**entry.trajectory.metadata, "outcome_by": verdict.reason}
    return replace(entry, verdict=verdict, trajectory=entry.trajectory.model_copy(update={"metadata": metadata}))


def _while_some_are_runs(format: Format, source: Source) -> Iterator[Entry]:
    """Every entry, until too many in a row are no runs: a small archive may hold millions of such lines."""
    in_vain = 0
    try:
        for entry in format.read(source):
            yield entry
            in_vain = in_vain + 1 if isinstance(entry, Skipped) else 0
            if isinstance(entry, Skipped) and in_vain == _MOST_IN_VAIN:
                why = f"{_MOST_IN_VAIN:,} entries in a row are no runs: the file is not read further"
                yield replace(entry, reason=why)
                return
    except RecursionError:
        yield Skipped(source.path, 1, TOO_DEEP)


def _folder(
    folder: Path, wanted: str, success_at: float, order: Sequence[Format], *, follow_links: bool
) -> Iterator[Entry]:
    inside = None if follow_links else folder.resolve()
    outcomes = Outcomes(inside=inside, follow_links=follow_links)
    has_runs, unreadable = False, list[Skipped]()
    for place in _places(folder, inside):
        chosen = place if isinstance(place, Skipped) else _format_of(place, inside, order)
        if isinstance(chosen, Skipped):
            unreadable += [] if chosen.unknown else [chosen]
            if wanted == "auto" or not chosen.unknown:
                yield chosen
        elif isinstance(place, Path) and chosen is not swe_bench.FORMAT and wanted in ("auto", chosen.name):
            has_runs = True
            yield from _with_outcomes(chosen, Source(place, inside=inside, success_at=success_at), outcomes)
    if not has_runs:
        raise FormatError(_nothing_in(folder, wanted, unreadable))


def _nothing_in(folder: Path, wanted: str, unreadable: list[Skipped]) -> str:
    nothing = f"nothing under {short_path(folder)} is a run in {'a known format' if wanted == 'auto' else wanted}"
    if not unreadable:
        return nothing
    first = unreadable[0]
    many = plural(len(unreadable), "file or folder cannot be read", "files or folders cannot be read")
    return f"{nothing}, and {many}: {short_path(first.path)}, line {first.line}: {first.reason}"


def _places(folder: Path, inside: Path | None) -> Iterator[Path | Skipped]:
    """Result folders and files that may hold runs, sorted; hidden folders are left alone.

    `inside`: the folder that links must not leave; with `None`, links to folders are walked too, each folder once.
    """
    closed, seen = list[OSError](), set[Path]()
    for here, below, files in os.walk(folder, onerror=closed.append, followlinks=inside is None):
        place = Path(here)
        if (real := place.resolve()) in seen:  # only where links are followed, which can lead in a circle
            below.clear()
            continue
        seen.add(real)
        below[:] = sorted(name for name in below if not name.startswith("."))
        if _of_folder(place):
            below.clear()
            yield place
            continue
        yield from (place / name for name in sorted(files) if name.casefold().removesuffix(".gz").endswith(_ENDINGS))
        yield from (Skipped(place / name, 1, LEADS_OUT) for name in below if _leads_out(place / name, inside))
    for error in closed:
        yield Skipped(Path(error.filename or folder), 1, f"the folder cannot be read: {error.strerror or error}")


def _leads_out(folder: Path, inside: Path | None) -> bool:
    """Whether a folder is a link to one that lies elsewhere. It is not walked; one that lies inside is met anyway."""
    return inside is not None and folder.is_symlink() and not folder.resolve().is_relative_to(inside)


def _holds(check: Callable[[], bool], /) -> bool:
    """What a check of a path says; `False` where nobody may look. What cannot be read is named later."""
    try:
        return check()
    except OSError:
        return False


def _format_of(place: Path, inside: Path | None, order: Sequence[Format]) -> Format | Skipped:
    """The format of a file or result folder that was found in a folder, or why it has none."""
    return _of_folder(place) or _of_file(place) or _recognised(Source(place, inside=inside), order)


def _of_folder(place: Path) -> Format | None:
    """The format of a folder that is one result; `None` for any other, and for a file."""
    if not _holds(place.is_dir):
        return None
    return next((module.FORMAT for module in _FOLDERS if _holds(partial(module.is_run, place))), None)


def _of_file(place: Path) -> Format | None:
    """The format of a file that holds no JSON; `None` for any other."""
    return next((module.FORMAT for module in _FILES if _holds(partial(module.is_store, place))), None)
