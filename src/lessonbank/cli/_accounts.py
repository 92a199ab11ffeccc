"""What `learn --dry-run` tells: what each file holds, and what reading it leaves out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lessonbank import importers
from lessonbank._base.plural import plural
from lessonbank.errors import FormatError, printable

from ._output import say, show_json, show_table, warn, warn_of_skipped
from ._report import WIDEST, names

_SUMS = ("steps", "calls", "results", "errors", "unanswered", "strays")
_KINDS = {"task": ("field", "user"), "outcome": ("file", "judge", "checks", "none"), "speakers": ("roles", "places")}
NOTES = 12


@dataclass
class Account:
    """What the runs of one file in one format came to."""

    format: str
    sums: Counter[str] = field(default_factory=Counter[str])
    kinds: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter[str]() for name in _KINDS})
    outcomes: Counter[str] = field(default_factory=Counter[str])
    left: Counter[str] = field(default_factory=Counter[str])

    def add(self, run: importers.Imported, /) -> None:
        """Take a run in."""
        account = run.account
        self.sums.update({"runs": 1} | {name: getattr(account, name) for name in _SUMS})
        for name, counts in self.kinds.items():
            counts[getattr(account, name)] += 1
        self.outcomes[run.verdict.outcome if run.verdict else "none"] += 1
        self.left.update(account.left)


@dataclass
class Accounts:
    """The accounts of several files."""

    files: dict[tuple[Path, str], Account] = field(default_factory=dict[tuple[Path, str], Account])
    skipped: list[importers.Skipped] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list[str])

    def read(self, file: Path, /, *, format: str, success_at: float, follow_links: bool, alone: bool) -> None:
        """Read a file or folder, and keep account of each run in it."""
        try:
            for entry in importers.read(file, format=format, success_at=success_at, follow_links=follow_links):
                self._add(entry)
        except FormatError as error:
            if alone and not self.skipped and not self.passed_over:
                raise
            self.skipped.append(importers.Skipped(file, 1, str(error)))

    def _add(self, entry: importers.Entry) -> None:
        if isinstance(entry, importers.Imported):
            self.files.setdefault((entry.path, entry.format), Account(entry.format)).add(entry)
        elif entry.unknown:
            self.passed_over.append(str(entry.path))
        else:
            self.skipped.append(entry)

    def show(self, *, as_json: bool) -> None:
        """Print them: the table on stdout, what was left out on stderr."""
        if as_json:
            show_json(self.as_dict())
            return
        columns = ("runs", "steps", "calls", "results", "errors")
        short = names([file for file, _ in self.files], width=WIDEST) if self.files else {}
        rows = [
            (
                short[file],
                account.format,
                *(account.sums[c] for c in columns),
                *map(_list_counts, account.kinds.values()),
            )
            for (file, _), account in self.files.items()
        ]
        show_table("Read", ("file", "format", *columns, *_KINDS), rows)
        total = sum((account.sums for account in self.files.values()), Counter[str]())
        say(f"{plural(total['runs'], 'run')} in {plural(len(self.files), 'file')}; nothing was learned")
        self._warn(total)

    def _warn(self, total: Counter[str]) -> None:
        if total["strays"]:
            warn(f"{plural(total['strays'], 'result names', 'results name')} a call that is not there")
        left = sum((account.left for account in self.files.values()), Counter[str]())
        for sentence, times in left.most_common(NOTES):
            warn(f"{times} × {sentence}")
        if self.passed_over:
            warn(f"no runs in {plural(len(self.passed_over), 'more file')}: --json lists them")
        warn_of_skipped([f"{printable(str(entry.path))}:{entry.line}: {entry.reason}" for entry in self.skipped], NOTES)

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "files": [
                {
                    "file": str(file),
                    "format": account.format,
                    **{name: account.sums[name] for name in ("runs", *_SUMS)},
                    **{name: dict(counts) for name, counts in account.kinds.items()},
                    "outcomes": dict(account.outcomes),
                    "left": dict(account.left),
                }
                for (file, _), account in self.files.items()
            ],
            "skipped": [
                {"file": str(entry.path), "line": entry.line, "reason": entry.reason} for entry in self.skipped
            ],
            "passed_over": self.passed_over,
        }


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(name if len(counts) == 1 else f"{times} {name}" for name, times in counts.most_common())
