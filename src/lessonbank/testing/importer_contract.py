"""What every reader of recorded runs must do: subclass it, say how to write a file, and run it with pytest."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from lessonbank.errors import FormatError
from lessonbank.importers import Entry, Imported, Skipped, read

_MUTATIONS = 200
_OFTEN = 4
"""How many times more runs the second of two files has, whose times are compared."""


class ImporterContract:
    """Subclass it, name the format, and override `write`. A format of an entry point is read by its name.

    `calls` and `results`: how many each run of `write` has. `outcome`: what the file says of each of its runs.
    """

    format: ClassVar[str] = ""
    calls: ClassVar[int] = 1
    results: ClassVar[int] = 1
    outcome: ClassVar[str | None] = "success"

    def write(self, folder: Path, /, *, runs: int) -> Path:
        """Write a file with so many different runs into a folder; its path."""
        raise NotImplementedError

    def entries(self, path: Path, /) -> Iterator[Entry]:
        """What the reader makes of a file."""
        return read(path, format=self.format)

    def _runs(self, path: Path) -> list[Imported]:
        return [entry for entry in self.entries(path) if isinstance(entry, Imported)]

    def test_every_run_of_a_file_is_read_and_nothing_is_left(self, tmp_path: Path) -> None:
        entries = list(self.entries(self.write(tmp_path, runs=3)))
        assert [entry.reason for entry in entries if isinstance(entry, Skipped)] == []
        assert len(entries) == 3
        assert [left for run in entries if isinstance(run, Imported) for left in run.account.left] == []

    def test_every_run_has_a_task_and_something_the_agent_did(self, tmp_path: Path) -> None:
        for run in self._runs(self.write(tmp_path, runs=3)):
            assert run.trajectory.task.strip()
            assert any(step.action.text or step.action.calls for step in run.trajectory.steps)

    def test_calls_have_their_results(self, tmp_path: Path) -> None:
        for run in self._runs(self.write(tmp_path, runs=3)):
            account = run.account
            assert (account.calls, account.results) == (self.calls, self.results)
            assert (account.unanswered, account.strays) == (max(self.calls - self.results, 0), 0)

    def test_the_outcome_is_what_the_file_says(self, tmp_path: Path) -> None:
        for run in self._runs(self.write(tmp_path, runs=3)):
            assert (run.verdict.outcome if run.verdict else None) == self.outcome

    def test_the_same_run_has_the_same_id_and_no_two_share_one(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, runs=3)
        first, again = ([run.trajectory.id for run in self._runs(path)] for _ in range(2))
        assert first == again
        assert len(set(first)) == 3

    def test_every_run_can_be_kept(self, tmp_path: Path) -> None:
        for run in self._runs(self.write(tmp_path, runs=2)):
            assert run.trajectory.model_validate_json(run.trajectory.model_dump_json()) == run.trajectory

    def test_a_damaged_file_gives_reasons_and_never_another_error(self, tmp_path: Path) -> None:
        sound = self.write(tmp_path, runs=2)
        raw, chance = sound.read_bytes(), random.Random(0)
        for _ in range(_MUTATIONS):
            sound.write_bytes(_damaged(raw, chance))
            with suppress(FormatError):
                assert all(isinstance(entry, Imported | Skipped) for entry in self.entries(sound))

    def test_time_grows_with_the_size_of_the_file(self, tmp_path: Path) -> None:
        few, many = (self._seconds(tmp_path / str(count), count) for count in (50, 50 * _OFTEN))
        assert many < 3 * _OFTEN * few + 0.5

    def _seconds(self, folder: Path, count: int) -> float:
        folder.mkdir()
        path = self.write(folder, runs=count)
        began = time.process_time()
        assert len(self._runs(path)) == count
        return time.process_time() - began


def _damaged(raw: bytes, chance: random.Random) -> bytes:
    """The bytes of a file with a piece left out, told twice, cut off or exchanged."""
    start, length = chance.randrange(len(raw)), chance.randrange(1, 40)
    piece = raw[start : start + length]
    other = chance.choice(
        (b"", piece * 2, b"null", b"[]", b'"x"', b"{", bytes(chance.randrange(256) for _ in range(3)))
    )
    return raw[:start] if chance.random() < 0.1 else raw[:start] + other + raw[start + length :]
