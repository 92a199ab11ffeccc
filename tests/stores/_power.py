"""A disk as a power cut may leave it, made again from what a process wrote to it and when it waited for the disk."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HEAD = struct.Struct("=qqqq")
_SECTOR = 512
ACKS = "acks"
"""The file to which a writer says what it began and what was acknowledged: each line is one step."""


@dataclass(frozen=True)
class Step:
    """What was done to one file: `w`rite, `t`runcate, `s`ync, `c`reate, `u`nlink, `r`ename, `l`ink."""

    what: str
    name: str
    offset: int
    data: bytes
    size: int


def steps_of(log: Path, folder: Path, /) -> list[Step]:
    """What was noted, in its order. The index of the log is left out: SQLite makes it again."""
    raw, at, found = log.read_bytes(), 0, list[Step]()
    while at < len(raw):
        what, length, offset, size = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        name = Path(raw[at : at + length].decode()).relative_to(folder).as_posix()
        at += length
        data = raw[at : at + size] if chr(what) in "wrl" else b""
        at += len(data)
        if not name.endswith("-shm"):
            found.append(Step(chr(what), name, offset, data, size))
    return found


@dataclass
class File:
    """What is on the disk for certain, and what is still on its way there."""

    synced: bytearray = field(default_factory=bytearray)
    later: list[Step] = field(default_factory=list[Step])

    def after_a_cut(self, chance: random.Random, share: float) -> bytes:
        """So much of what was on its way has come, in whole sectors, each by itself."""
        content = bytearray(self.synced)
        for step in self.later:
            _do(content, step, lambda: chance.random() < share)
        return bytes(content)

    def sync(self) -> None:
        for step in self.later:
            _do(self.synced, step, lambda: True)
        self.later.clear()


def _do(content: bytearray, step: Step, comes: Any) -> None:
    if step.what == "t":
        if comes():
            del content[step.size :]
            content.extend(bytes(step.size - len(content)))
        return
    begin, end = step.offset, step.offset + len(step.data)
    while begin < end:
        stop = min((begin // _SECTOR + 1) * _SECTOR, end)
        if comes():
            content.extend(bytes(max(stop - len(content), 0)))
            content[begin:stop] = step.data[begin - step.offset : stop - step.offset]
        begin = stop


class Disk:
    """The files of one folder, by name; names are as lasting as the last sync of the folder."""

    def __init__(self) -> None:
        self.now, self.lasting = dict[str, File](), dict[str, File]()
        self._renamed = list[tuple[str, File | None]]()

    def do(self, step: Step, /) -> None:
        if step.what == "s" and step.name == ".":
            self.lasting = dict(self.now)
            self._renamed.clear()
        elif step.what == "s":
            self.now.setdefault(step.name, File()).sync()
        elif step.what in "wt":
            self.now.setdefault(step.name, File()).later.append(step)
        elif step.what == "c":
            self._name(step.name, File())
        elif step.what == "u":
            self._name(step.name, None)
        else:
            self._name(Path(step.data.decode()).name, self.now[step.name])
            if step.what == "r":
                self._name(step.name, None)

    def _name(self, name: str, file: File | None) -> None:
        self._renamed.append((name, file))
        _put(self.now, name, file)

    def cut(self, folder: Path, chance: random.Random, share: float, /) -> None:
        """Write into a folder what a cut may leave."""
        files = dict(self.lasting)
        for name, file in self._renamed[: round(len(self._renamed) * chance.random() if share else 0)]:
            _put(files, name, file)
        for name, file in files.items():
            (folder / name).write_bytes(file.after_a_cut(chance, share))


def _put(files: dict[str, File], name: str, file: File | None) -> None:
    if file is None:
        files.pop(name, None)
    else:
        files[name] = file


def images(steps: list[Step], count: int, seed: int, folder: Path, /) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """So many folders as cuts may leave them, with what the writer had said by then."""
    chance, disk, said = random.Random(seed), Disk(), list[dict[str, Any]]()
    told = [number for number, step in enumerate(steps) if step.name == ACKS]
    syncs = [number for number, step in enumerate(steps) if step.what == "s" and number > told[0]]
    # Half of the cuts come just before or after the disk was waited for.
    cuts = [chance.randrange(told[0] + 1, len(steps)) for _ in range(count // 2)]
    cuts += [chance.choice(syncs) + chance.choice((0, 1)) for _ in range(count - len(cuts))]
    cuts.sort(reverse=True)
    for number, step in enumerate(steps):
        while cuts and cuts[-1] == number:
            cuts.pop()
            place = folder / "image"
            place.mkdir()
            disk.cut(place, chance, chance.choice((0.0, 0.5, 0.5, 0.9)))
            yield place, said
            shutil.rmtree(place)
        if step.name == ACKS:
            said += [json.loads(step.data)] if step.what == "w" else []
        else:
            disk.do(step)


def noted(program: Path, folder: Path, *arguments: str) -> list[Step]:
    """What a program does to a folder."""
    library, log, place = folder / "log.so", folder / "log", folder / "place"
    place.mkdir()
    source = str(Path(__file__).with_name("disk_log.c"))
    subprocess.run([shutil.which("cc") or "cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    told = {"LD_PRELOAD": str(library), "LOG_FOLDER": str(place), "LOG_FILE": str(log)}
    subprocess.run([sys.executable, program, place, *arguments], env=os.environ | told, check=True)
    return steps_of(log, place)
