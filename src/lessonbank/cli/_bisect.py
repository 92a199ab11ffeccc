"""Finds the change of a bank after which a check of the user fails, for `history diff --check`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.store_calls import care_of
from lessonbank.errors import NotFound, UsageError

from ._bank import opened

if TYPE_CHECKING:
    from lessonbank.contracts.records import JournalEntry

_NOT_RUN = (126, 127)
"""What a shell exits with when it could not run the command."""


def find_first_failing(
    bank: str, scope: str, good: int, bad: int, check: str, /
) -> tuple[JournalEntry, dict[int, bool]]:
    """The change after which the command `check` fails, and after which changes it was run and passed.

    Raises:
        UsageError: the command cannot be run, or passes after `bad`.
        NotFound: there is no change `bad`.
    """
    command, runs = _words(check), dict[int, bool]()
    with tempfile.TemporaryDirectory(prefix="lessonbank-bisect-") as folder:
        origin = Path(folder) / "origin.db"
        with opened(bank, scope) as memory:
            run_sync(care_of(memory.aio.store).backup(origin))  # no act of administration: the bank stays as it is
            entries = memory.history.list(after=good)
        if not entries or entries[-1].sequence < bad:
            raise NotFound(f"there is no change {bad} in {scope}: the last one is {good + len(entries)}")

        def passes(change: int) -> bool:
            runs[change] = _passes(command, origin, scope=scope, change=change)
            return runs[change]

        first = first_failing(good, bad, passes)
    return entries[first - good - 1], runs


def _words(check: str) -> list[str]:
    try:
        words = shlex.split(check)
    except ValueError as error:
        raise UsageError(f"the check {check[:80]!r} cannot be read: {error}") from None
    if not words:
        raise UsageError("the check is empty: give a command, as in --check 'python check.py'")
    return words


def first_failing(good: int, bad: int, passes: Callable[[int], bool], /) -> int:
    """The change after which a check that `passes` after `good` fails, in at most ⌈log2(bad - good)⌉ + 1 calls.

    Raises:
        UsageError: it does not fail after `bad`.
    """
    if passes(bad):
        raise UsageError(f"the check passes after change {bad}: name a change after which it fails as B")
    while bad - good > 1:
        middle = (good + bad) // 2
        if passes(middle):
            good = middle
        else:
            bad = middle
    return bad


def _passes(command: list[str], origin: Path, *, scope: str, change: int) -> bool:
    import lessonbank

    with tempfile.TemporaryDirectory(dir=origin.parent) as folder:
        copy = Path(folder) / "bank.db"
        shutil.copyfile(origin, copy)
        with lessonbank.connect(copy, scope=scope) as memory:
            memory.history.rollback(to=change, reason="bisect")
        try:
            done = subprocess.run(
                command, env={**os.environ, "LESSONBANK_BANK": str(copy)}, stdout=sys.stderr, check=False
            )
        except OSError as error:
            raise UsageError(f"the check {command[0]!r} cannot be run: {error.strerror or error}") from error
    if done.returncode < 0 or done.returncode in _NOT_RUN:
        how = f"was ended by signal {-done.returncode}" if done.returncode < 0 else "could not be run by its shell"
        raise UsageError(f"the check {how} after change {change}, which says nothing about the bank: mend it first")
    return done.returncode == 0
