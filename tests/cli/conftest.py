"""Banks that are filled once for all tests that begin with the same one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], object], Path], Path]:
    """Puts a bank into a folder, as `bank.db`: a copy of what a function once filled. Returns the folder."""

    @cache
    def filled(fill: Callable[[Path], object]) -> Path:
        path = tmp_path_factory.mktemp("filled") / "bank.db"
        fill(path)
        return path

    def copy(fill: Callable[[Path], object], folder: Path) -> Path:
        shutil.copy(filled(fill), folder / "bank.db")
        return folder

    return copy
