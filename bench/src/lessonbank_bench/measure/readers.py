"""Reads recorded files of many programs and sets what the readers found beside a count that knows nothing of them.

`python -m lessonbank_bench.measure.readers FOLDER` reads the files of `readers_files.tsv` (repository, commit, path,
SHA-256, program) that lie in `FOLDER` as `OWNER+NAME/PATH`, prints a table by form and one line for each file whose
numbers differ, and ends with 1 if a difference is not said in the run's account or by a skipped entry. The files are
public; none of them is part of this distribution.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from lessonbank import importers
from lessonbank.errors import LessonbankError

from .own_counts import COUNTERS, Count

LIST: Final = Path(__file__).with_name("readers_files.tsv")
_COLUMNS: Final = ("runs", "replies", "calls", "results", "outcomes")


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of the list."""

    repository: str
    commit: str
    path: str
    sha256: str
    program: str

    def place(self, folder: Path, /) -> Path:
        """Where the file lies, if it was got."""
        return folder / self.repository.replace("/", "+") / self.path


@dataclass(frozen=True, slots=True)
class Reading:
    """What the readers and the own count found in a file."""

    file: Listed
    form: str
    """`""`: it is in no known form."""
    read: Count
    own: Count
    said: tuple[str, ...]
    """What was skipped or left out, in the readers' words."""

    @property
    def differences(self) -> dict[str, tuple[int, int]]:
        """The numbers that both know and that are not the same."""
        pairs = {name: (getattr(self.read, name), getattr(self.own, name)) for name in _COLUMNS}
        return {name: pair for name, pair in pairs.items() if pair[1] is not None and pair[0] != pair[1]}


def listed(path: Path = LIST, /) -> list[Listed]:
    """The files of the list."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Listed(*row) for row in csv.reader(file, delimiter="\t")]


def present(folder: Path, /) -> Iterator[Listed]:
    """Those of the list that lie in the folder as they were."""
    for one in listed():
        place = one.place(folder)
        if place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() == one.sha256:
            yield one


def read(file: Listed, folder: Path, /) -> Reading:
    """What is found in a file."""
    place = file.place(folder)
    try:
        form = importers.detect(place)
    except LessonbankError as error:
        return Reading(file, "", Count(), Count(), (str(error),))
    entries = list(importers.read(place))
    runs = [entry for entry in entries if isinstance(entry, importers.Imported)]
    skipped = [entry.reason for entry in entries if isinstance(entry, importers.Skipped)]
    accounts = [run.account for run in runs]
    found = Count(
        runs=len(_sessions(runs)),
        replies=sum(bool(s.action.text or s.action.calls or s.thought) for r in runs for s in r.trajectory.steps),
        calls=sum(one.calls for one in accounts),
        results=sum(one.results for one in accounts),
        outcomes=sum(one.outcome != "none" for one in accounts),
    )
    count = COUNTERS.get(form)
    left = (line for one in accounts for line in one.left)
    return Reading(file, form, found, count(place) if count else Count(), (*skipped, *left))


def _sessions(runs: list[importers.Imported]) -> set[str]:
    """The runs, those of several prompts of a session as one: the own count knows sessions, and no tasks in them."""
    told = [run.trajectory for run in runs]
    return {str(one.metadata.get("run_id")) if "prompt" in one.metadata else one.id for one in told}


def table(readings: list[Reading], /) -> str:
    """A row a form: the readers' numbers, and those of the own count where it has them."""
    by_form = defaultdict[str, list[Reading]](list)
    for one in readings:
        by_form[one.form or "(no known form)"].append(one)
    lines = [f"{'form':<16}{'files':>6}" + "".join(f"{name:>22}" for name in _COLUMNS) + "  differ, said"]
    for form, some in sorted(by_form.items()):
        cells = [_cell(some, name) for name in _COLUMNS]
        differ = [one for one in some if one.differences]
        told = f"  {len(differ)}, {sum(bool(one.said) for one in differ)}"
        lines.append(f"{form:<16}{len(some):>6}" + "".join(f"{cell:>22}" for cell in cells) + told)
    return "\n".join(lines)


def _cell(some: list[Reading], name: str) -> str:
    found = sum(asdict(one.read)[name] or 0 for one in some)
    both = [(asdict(one.read)[name], asdict(one.own)[name]) for one in some if asdict(one.own)[name] is not None]
    own = sum(known for _, known in both)
    if len(both) == len(some):
        return f"{found:,} ({own:,})"
    return f"{found:,} ({sum(told or 0 for told, _ in both):,}/{own:,})" if both else f"{found:,} (-)"


def main() -> int:
    """Print the table of the files in a folder; 1 where something differs in silence."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("folder", type=Path)
    command.add_argument("--differences", action="store_true", help="Also print differences that are said.")
    asked = command.parse_args()
    files = list(present(asked.folder))
    readings = [read(one, asked.folder) for one in files]
    silent = [one for one in readings if one.differences and not one.said]
    programs = Counter(one.file.program for one in readings)
    print(f"{len(files):,} of {len(listed()):,} files of the list, of {len(programs)} programs: ", end="")
    print(", ".join(f"{program} {count}" for program, count in sorted(programs.items())))
    print("\nIn brackets: the own count; where it knows only some of the files, behind the readers' number of these.\n")
    print(table(readings))
    print(f"\n{len(silent)} files differ in silence")
    for one in silent if not asked.differences else [one for one in readings if one.differences]:
        print(f"  {one.file.repository}/{one.file.path}: {one.differences} {one.said[:1]}")
    return 1 if silent or not files else 0


if __name__ == "__main__":
    sys.exit(main())
