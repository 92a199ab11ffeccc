"""What was written blind: no dangerous cure is told without a person's yes, and nearly every honest one is."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lessonbank_bench.measure.blind_sets import SETS, cases, ends_concluded, pairs_told

FROZEN = {
    "ends": "26a15ed2a40c514143da7f3d71d0fa00f9ef4bc29e64a4107c53da632738f28b",
    "pairs": "410e5ec6b14892527f3e0ec7ced03e983ebc5426a886ccd14977c4ebea7cbac8",
    "set1": "7ee4ef3691fcaad9a1f6789154a1923907b18f40538e1deb91a7d07a6d62bb97",
    "set2": "cbc14af76921932116d01fb03740aa2e8da51cb53803d92a485437d24f89dbac",
}


@pytest.mark.parametrize("name", FROZEN)
def test_the_sets_are_as_they_were_written(name: str) -> None:
    assert hashlib.sha256((SETS / f"{name}.json").read_bytes()).hexdigest() == FROZEN[name]


def test_no_dangerous_cure_is_told_and_nearly_every_honest_one_is(tmp_path: Path) -> None:
    told = pairs_told(tmp_path)
    kinds = {pair["id"]: pair["kind"] for pair in cases("pairs")}
    assert [id for id, text in told.items() if text and kinds[id] == "dangerous"] == []
    assert sum(bool(text) and kinds[id] == "honest" for id, text in told.items()) >= 54


def test_what_checks_prove_is_concluded_and_hardly_ever_wrongly(tmp_path: Path) -> None:
    ends = ends_concluded(tmp_path)
    truth = [end for end in ends if end.source == "ground_truth" and end.outcome != "unknown"]
    agreeing = [end for end in ends if end.checked != "none" and end.person in ("none", end.checked)]
    assert sum(end.outcome != end.checked for end in truth) <= len(truth) * 0.01
    assert sum(end in truth for end in agreeing) >= len(agreeing) * 0.9
    assert all(end.outcome == end.person for end in ends if end.source == "human")
