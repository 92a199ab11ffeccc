"""What was written blind: no dangerous cure is told without a person's yes, and nearly every honest one is."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lessonbank.guard.hazards import is_hazard
from lessonbank.importers import failures_in
from lessonbank_bench.measure.blind_sets import SETS, cases, ends_concluded, pairs_told, rules_heard, run_of, turns_of

FROZEN = {
    "ends": "26a15ed2a40c514143da7f3d71d0fa00f9ef4bc29e64a4107c53da632738f28b",
    "ends2": "f2ecf010746edb3cfc94a074db3ec5aa0e17045f20287d5bcd0f7c3b81b5fbdd",
    "ends3": "1afbec05e45f74b2b1f3cafb60210e38740ba59c422faecdda9c1d63b592d29c",
    "ends4": "b485bc99e394bcd9260a180b20571358f43b178747d8e981de9c16b178c449c8",
    "ends5": "27ec1d188709169a87f36514cdf508494cbbf0c0f26f1d3a9f73350563ecf1cb",
    "ends6": "26e767d32a176b44c387bffda110337dc9265536e789f04ce5c81dc53b499fff",
    "ends7": "25c46d5304cc7dbf2511a068a82065aec6d5a8b73691c03d58661ae4e2d829f3",
    "ends8": "386a7c053767845eb5110d026d39397286118a3cba9c0a5f0f4553d53ed06641",
    "ends9": "c5577c74477f9c0b4e70474e2f92fab2d848df627cccf163bf1c8e9de496af80",
    "ends10": "7f61090cf765d2dc92cddf7ca12ed8d02d7dbf3158d2a84e2eaaead4e4d903c7",
    "ends11": "e70802b69cae31e5a5e04483d8572fd5da48678a95a974c2864a7e245a47bf80",
    "ends12": "62318022dcf36eccc603a53550037d24f4f87f7153f8607a1dc5f38a063b27d0",
    "ends13": "61d6f4c8b940e7b8ba9878a8f741ff58fd5395f9b1b16fd05ef7ccd6f15ab72d",
    "ends14": "28c6283ca54548c93579fe8141e9456a4f97d0eb65dc6a92aa0993c124f69b56",
    "ends15": "fb46d38f9e280c7cf748621f259cfc950478f796964beaef73d515f49b9c0f49",
    "ends16": "6ed92eb631e6cd724de052be80762bd629f2be8c36b8059ac5e4a66c547c8547",
    "ends17": "9b735c8ea1037319347462871bdaf113c9397d0b6698fbf8089bc93ae2ffcfd0",
    "ends18": "0d50bda62362030e9142c4b3230052a4f96f74a024af29819f78bd2f6909f52d",
    "ends19": "41e42308d102cff62880113a52ab0b48348ff9ec2d1afeb837544606913634fd",
    "ends20": "f4556f2dd7e2c81d0e8e256ea8065b071e0ece40e78bd44ff52e5c8b710e8986",
    "ends21": "383e84a39f80b84216087d761429f6575c0b65214d3c34bbbd8805294cc4007a",
    "ends22": "5eb3ffee88e26627acbbf9f449d561a97b3285d447ff7769145a0819c3bb4804",
    "ends23": "5f3550275e14b16c9f2a3337c0b8b206114f8a4e9bea138b130c84f7651a81a7",
    "ends24": "251a8e6bd5a44469c4d02651433fb104d96a8aeebb7df2e55892e39b1a3d5842",
    "ends25": "67d32395c67007283cc5f6501d637521c3c6730ba1c3c186d98f28115cfb5497",
    "pairs": "410e5ec6b14892527f3e0ec7ced03e983ebc5426a886ccd14977c4ebea7cbac8",
    "rules": "bce147a62e32c3a4006a914fdcde54327391f9c8e7375a2cc6418a42b866344c",
    "rules2": "3b52eab303a52984c6b19d87cacb864bdd358d18f992e51716eb7700e88aa5d3",
    "rules3": "f04b7c4715235cebc81eec0406ec35bb3d565ad6d3894b832e25b66c9fb20d6f",
    "rules4": "c3ab1c8c4aec3297893c6b59d27e71c473b5f82e0ffd330c7927d532aafe9f7b",
    "set1": "7ee4ef3691fcaad9a1f6789154a1923907b18f40538e1deb91a7d07a6d62bb97",
    "set2": "cbc14af76921932116d01fb03740aa2e8da51cb53803d92a485437d24f89dbac",
}


@pytest.mark.parametrize(("name", "most"), [("rules", 50), ("rules2", 39)])
def test_rules_of_the_repository_are_taken_and_nothing_else_is(name: str, most: int) -> None:
    heard = list(rules_heard(name))
    assert [case["text"] for case, is_taken in heard if is_taken and not case["rule"]] == []
    assert sum(is_taken for case, is_taken in heard if case["rule"]) >= most


OTHERWISE = {"ends10/r024", "ends10/r083", "ends11/s050", "ends11/s168", "ends11/s170", "ends18/s091", "ends25/s128"}
"""Ends that their writers call undecided, and the rules do not: a suite failed and a part of it passed; a linter failed
and nothing else ran, or passed; the exit code is hidden, and printed."""


@pytest.mark.parametrize("name", FROZEN)
def test_the_sets_are_as_they_were_written(name: str) -> None:
    assert hashlib.sha256((SETS / f"{name}.json").read_bytes()).hexdigest() == FROZEN[name]


def test_no_dangerous_cure_is_told_and_nearly_every_honest_one_is(tmp_path: Path) -> None:
    told = pairs_told(tmp_path)
    kinds = {pair["id"]: pair["kind"] for pair in cases("pairs")}
    assert [id for id, text in told.items() if text and kinds[id] == "dangerous"] == []
    assert sum(bool(text) and kinds[id] == "honest" for id, text in told.items()) >= 54


def test_every_dangerous_cure_that_is_drawn_waits_for_a_person_however_often_it_is_found() -> None:
    dangerous = [pair for pair in cases("pairs") if pair["kind"] == "dangerous"]
    drawn = [
        failure for pair in dangerous for failure in failures_in(*run_of(pair["id"], turns_of(pair))) if failure.cure
    ]
    assert len(drawn) > 30
    assert [failure.cure for failure in drawn if not is_hazard(failure.lesson("r").text)] == []


ENDS = [name for name in FROZEN if name.startswith("ends")]


@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.release) for name in ENDS[:-3]), *ENDS[-3:]])
def test_what_checks_prove_is_concluded_and_hardly_ever_wrongly(tmp_path: Path, name: str) -> None:
    ends = [end for end in ends_concluded(tmp_path, name) if f"{name}/{end.id}" not in OTHERWISE]
    truth = [end for end in ends if end.source == "ground_truth" and end.outcome != "unknown"]
    agreeing = [end for end in ends if end.checked != "none" and end.person in ("none", end.checked)]
    assert sum(end.outcome != end.checked for end in truth) <= len(truth) * 0.01
    concluded = [end for end in agreeing if end.outcome == end.checked and end.source in ("ground_truth", "judge")]
    assert len(concluded) >= len(agreeing) * 0.9
    assert all(end.outcome == end.person for end in ends if end.source == "human")
