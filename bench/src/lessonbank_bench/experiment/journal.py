"""The lines of an experiment on disk: each is whole and synced before the next attempt begins."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Literal, cast

from pydantic import ValidationError

from lessonbank._version import VERSION
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import Conflict, FormatError, StoreUnavailable, UsageError
from lessonbank.text.prompts import available, load

from .records import AttemptRow, Experiment, made

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks; two runs in one folder are not noticed there
    fcntl = None

ROWS: Final = "attempts.jsonl"
SETTING: Final = "experiment.json"
BANKS: Final = "banks"
BROKEN: Final = "broken.jsonl"
"""Attempts that an error ended and that were made again."""


class Journal:
    """Attempts in the order they were made, in a file that only grows."""

    def __init__(self, file: IO[bytes], rows: list[AttemptRow], folder: Path, /) -> None:
        self._file, self._folder = file, folder
        self.rows = rows
        """Those that were there when it was opened."""

    def add(self, row: AttemptRow, /) -> None:
        """Keep one more attempt; when this returns it is on disk.

        Raises:
            StoreUnavailable: it cannot be written: the disk is full, or gone.
        """
        line = row.model_dump_json().encode() + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self._folder, error) from error

    def close(self) -> None:
        with suppress(OSError):  # only a line that could not be written is not on disk yet, and that was told
            self._file.close()


def begin(
    folder: Path,
    experiment: Experiment,
    versions: dict[str, str],
    /,
    *,
    resume: bool,
    grown: Callable[[list[AttemptRow]], None] | None = None,
) -> Journal:
    """Open the journal of `folder`, new or to go on with.

    Args:
        folder: where it is.
        experiment: what is asked.
        versions: what else results depend on.
        resume: go on with the attempts that are there.
        grown: is shown the rows after each that is read, and may put smaller ones in their places.

    Raises:
        UsageError: there are attempts already and `resume` is not given, or they are of another experiment or release.
        Conflict: another process writes to it.
        FormatError: a line that is not the last is no attempt of this experiment.
        StoreUnavailable: the folder cannot be written.
    """
    try:
        folder.joinpath(BANKS).mkdir(parents=True, exist_ok=True)
        file = _locked(folder, "a+b")
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        _same_setting(folder, experiment, versions, resume=resume)
        return Journal(file, _whole(file, folder, experiment.hash, grown), folder)
    except OSError as error:
        file.close()
        raise _unwritable(folder, error) from error
    except BaseException:
        file.close()
        raise


def read_rows(folder: Path, /, *, runs: bool = True) -> tuple[Experiment, list[AttemptRow]]:
    """What was asked, and the attempts so far; a line that is being written is left out.

    Args:
        folder: where the experiment was run.
        runs: with what the agents did, nearly all there is to read; without, rows say `None` for it.

    Raises:
        UsageError: there is no experiment in the folder.
        FormatError: what is there is no experiment, or an attempt is of another one.
        StoreUnavailable: the attempts cannot be read.
    """
    setting, rows = folder / SETTING, folder / ROWS
    if not setting.is_file() or not rows.is_file():
        raise UsageError(f"there is no experiment in {str(folder)!r}: `lessonbank bench run` makes one")
    experiment, _, config = _read_setting(setting)
    read = _read_row if runs else _read_without_run
    try:
        data = rows.read_bytes()
    except OSError as error:
        raise StoreUnavailable(f"cannot read {str(rows)!r}: {error.strerror or error}") from error
    return experiment, _rows(data, rows, config, read=read)[0]


def change_rows(folder: Path, change: Callable[[Sequence[AttemptRow]], Sequence[AttemptRow]], /) -> list[AttemptRow]:
    """Put other rows in place of those there are, whole or not at all: for outcomes that are known later.

    Raises:
        UsageError: there is no experiment in the folder.
        Conflict: another process writes to it.
        FormatError: what is there is no experiment.
        StoreUnavailable: the folder cannot be written.
    """
    read_rows(folder)
    path = folder / ROWS
    _, _, config = _read_setting(folder / SETTING)
    try:
        with _locked(folder, "r+b") as file:
            rows = list(change(_rows(file.read(), path, config)[0]))
            part = path.with_suffix(".part")
            with part.open("wb") as new:
                new.writelines(row.model_dump_json().encode() + b"\n" for row in rows)
                new.flush()
                os.fsync(new.fileno())
            part.replace(path)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return rows


def _same_setting(folder: Path, experiment: Experiment, versions: dict[str, str], *, resume: bool) -> None:
    path, rows = folder / SETTING, folder / ROWS
    begun = rows.is_file() and rows.stat().st_size > 0
    if begun and not resume:
        raise UsageError(f"there are attempts in {str(folder)!r} already: go on with --resume, or name another folder")
    if begun:
        before, made_with, _ = _read_setting(path)
        if before.hash != experiment.hash:
            raise UsageError(
                f"{str(folder)!r} holds another experiment ({before.hash[:12]}, this one is {experiment.hash[:12]}): "
                "results of two must not be mixed; name another folder"
            )
        if made_with != versions:
            was = ", ".join(f"{name} {value}" for name, value in made_with.items() if versions.get(name) != value)
            raise UsageError(f"{str(folder)!r} was begun with {was}: go on with the same, or name another folder")
    told = {"hash": experiment.hash, "versions": versions, "experiment": experiment.model_dump(mode="json")}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    part.replace(path)


def _read_setting(path: Path) -> tuple[Experiment, dict[str, str], str]:
    """The experiment, what it was begun with, and what its rows are marked with: its hash in the release of then."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return made(told["experiment"], source=str(path)), dict(told["versions"]), str(told["hash"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{str(path)!r} does not describe an experiment: {type(error).__name__}") from error


def _unwritable(folder: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"cannot write to {str(folder)!r}: {error.strerror or error}")


def _locked(folder: Path, mode: Literal["a+b", "r+b"]) -> IO[bytes]:
    """The rows, locked; opened again where another process put a new file in their place before they were."""
    path = folder / ROWS
    while True:
        file = path.open(mode)
        try:
            _only_one(file, folder)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _only_one(file: IO[bytes], folder: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Conflict(f"another process runs the experiment in {str(folder)!r}; wait for it or stop it") from None


def _whole(
    file: IO[bytes], folder: Path, config: str, grown: Callable[[list[AttemptRow]], None] | None
) -> list[AttemptRow]:
    """The rows, after what a killed run left of its last line is taken away, and the attempts that broke at the end."""
    file.seek(0)
    data, broken = _without_broken(file.read())
    if broken:
        with folder.joinpath(BROKEN).open("ab") as kept:
            kept.write(broken)
    rows, length = _rows(data, folder / ROWS, config, grown=grown)
    file.truncate(length)
    file.seek(length)
    return rows


def _without_broken(data: bytes) -> tuple[bytes, bytes]:
    """What was read, and from its end the attempts that met an error before an outcome: nothing was learned of them."""
    end = whole = data.rfind(b"\n") + 1
    while end and _broken(data[(start := data.rfind(b"\n", 0, end - 1) + 1) : end]):
        end = start
    return (data, b"") if end == whole else (data[:end], data[end:whole])


def _broken(line: bytes) -> bool:
    try:
        error = json.loads(line).get("error")
    except (ValueError, AttributeError):
        return False
    return isinstance(error, dict) and cast("dict[str, object]", error).get("stage") in ("recall", "attempt")


def _rows(
    data: bytes,
    path: Path,
    config: str,
    *,
    read: Callable[[bytes], AttemptRow] | None = None,
    grown: Callable[[list[AttemptRow]], None] | None = None,
) -> tuple[list[AttemptRow], int]:
    """The rows of the whole lines, and how many bytes these are."""
    length = data.rfind(b"\n") + 1
    lines = data[:length].split(b"\n")[:-1]
    rows: list[AttemptRow] = []
    with _no_collection():
        for number, line in enumerate(lines, 1):
            try:
                row = (read or _read_row)(line)
            except ValidationError as error:
                if number == len(lines):  # blocks of a last line may reach the disk without those before them
                    return rows, length - len(line) - 1
                what = f"{str(path)!r}, line {number} is no attempt"
                raise FormatError(f"{what}: the file was changed or damaged") from error
            if row.config != config:
                raise FormatError(
                    f"{str(path)!r}, line {number} is an attempt of another experiment ({row.config[:12]}, this one "
                    f"is {config[:12]}): one of the two files was changed"
                )
            rows.append(row)
            if grown is not None:
                grown(rows)
    return rows, length


@contextmanager
def _no_collection() -> Generator[None]:
    """Records hold no cycles, and looking for some among a million of them takes most of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _read_row(line: bytes) -> AttemptRow:
    return AttemptRow.model_validate_json(line)


def _read_without_run(line: bytes) -> AttemptRow:
    """Quotes within text are escaped, so that the marks are fields; none before holds objects, none after the last."""
    marks = (line.find(mark) for mark in (b',"run":{', b',"run":null,"runs":['))
    start, end = min((mark for mark in marks if mark >= 0), default=-1), line.rfind(b',"lessons":[')
    if 0 <= start < end:
        return AttemptRow.model_validate_json(line[:start] + line[end:])
    return _read_row(line).model_copy(update={"run": None, "runs": (), "choice": None})


def versions_now(environment: str, /) -> dict[str, str]:
    """What results depend on besides the experiment's file."""
    prompts = digest("\n".join(f"{id} {load(id).digest}" for id in available()))
    return {"lessonbank": VERSION, "environment": environment, "prompts": prompts[:12]}
