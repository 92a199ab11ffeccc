"""What measures the store, run as its docstring says on a bank small enough for a test; and its rows."""

from __future__ import annotations

import json
import sys
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lessonbank_bench.measure.store import retrieving, workload
from lessonbank_bench.measure.store.__main__ import main, measured, options


def test_every_figure_of_searching_and_weight_is_there_beside_its_raw_operation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieving, "prepared", partial(retrieving.prepared, 500))
    words = ["--lessons", "300", "--calls", "4", "--folder", str(tmp_path), "--parts", "retrieve", "size", "peers"]
    monkeypatch.setattr(sys, "argv", ["store", "--json", *words])
    main()
    said = json.loads(capsys.readouterr().out)
    figures = {figure["name"]: figure for figure in said["figures"]}
    assert figures["retrieve, through the bank"]["ratio"] > 0
    assert figures["recall@5 of retrieve"]["met"] is True
    assert figures["disk per lesson, text excluded"]["target"] == "≤ 1.2"
    assert ["Chroma 1.5.9", "needs --peers DIR for its environment"] in said["missing"]
    assert [file.name for file in tmp_path.glob("*.db")] == ["bank-300.db"]


def test_a_kept_bank_is_taken_again(tmp_path: Path) -> None:
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
    words = ["--lessons", "60", "--calls", "4", "--folder", str(tmp_path), "--parts", "bulk"]
    first, again = (measured(options(words), work) for work in (tmp_path / "first", tmp_path / "again"))
    assert first.missing == again.missing == []
    assert first.figures[0].value == again.figures[0].value


def test_rows_are_the_same_whatever_portion_is_asked_for() -> None:
    assert np.array_equal(workload.rows(9_990, 20), workload.rows(0, 10_010)[9_990:])
    assert [*workload.texts(495, 10)] == [*workload.texts(0, 505)][495:]
    assert np.allclose(np.linalg.norm(workload.rows(0, 50), axis=1), 1.0, atol=1e-5)


def test_texts_are_no_more_repetitive_than_real_ones() -> None:
    made = [*workload.texts(0, 60)]
    tasks = " ".join(text.task for text in made).encode()
    assert len({text.task for text in workload.texts(0, 1500)}) == 1500
    assert 0.35 < len(zlib.compress(tasks)) / len(tasks) < 0.5
    assert 170 < np.mean([len(text.task) for text in made]) < 210
    assert 270 < np.mean([text.size - len(text.task) for text in made]) < 320


def test_no_query_is_given_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    workload._block.cache_clear()
    monkeypatch.setattr(workload, "_BLOCK", 1_000)
    queries = workload.Queries()
    taken = [*queries.take(1_500), *queries.take(1_000)]
    workload._block.cache_clear()
    assert len({each.tobytes() for each in taken}) == len(taken) == 2_500
