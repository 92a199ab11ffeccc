"""What `connect(retrieval=…)` makes of a name or of settings, seen on a real bank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from listed import run

import lessonbank
from lessonbank import Retrieval
from lessonbank.errors import UsageError
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.full

OPTIONS: dict[str, Any] = {"scope": "t", "holdout": None, "admission": None}


@pytest.mark.parametrize(
    ("retrieval", "embedder", "name"),
    [
        (None, "lexical", "experience/lexical+floor(0.07)"),
        (None, "hashing", "experience/dense+floor(0.12)+words(0.05)"),
        ("dense", "hashing", "experience/dense+floor(0.12)+words(0.05)"),
        ("lexical", "hashing", "experience/lexical+floor(0.07)"),
        ("hybrid", "hashing", "experience/hybrid(dense+floor(0.12), lexical+floor(0.07))"),
        (Retrieval(relative_floor=0.4), "lexical", "experience/lexical+floor(0.07)+relative(0.4)"),
        (Retrieval(floor=0, relative_floor=0.4), "hashing", "experience/dense+relative(0.4)"),
        (Retrieval(floor=0), "lexical", "experience/lexical"),
        (Retrieval(floor=0), "hashing", "experience/dense"),
        (Retrieval("hybrid", floor=0), "hashing", "experience/hybrid(dense, lexical)"),
        (Retrieval(floor=0.2), "lexical", "experience/lexical+floor(0.2)"),
        (Retrieval("hybrid", floor=0.2), "hashing", "experience/hybrid(dense+floor(0.2), lexical+floor(0.2))"),
    ],
)
def test_the_parts_asked_for_are_on_every_recall_and_find_what_was_learned(
    retrieval: Any, embedder: str, name: str
) -> None:
    with lessonbank.connect(":memory:", embedder=embedder, **grouped(retrieval=retrieval, **OPTIONS)) as bank:
        bank.learn(run("save the invoice"), outcome="success")
        bank.learn(run("water the plants"), outcome="success")
        assert bank.settings["retriever"] == name
        recall = bank.retrieve("save the receipt")
        assert recall.retriever == name
        assert bank.lessons.experience(recall.candidates[0].lesson_id).task == "save the invoice"


def test_duplicates_are_looked_for_without_the_floor() -> None:
    settings = Retrieval(floor=0.9)
    options = OPTIONS | {"embedder": "lexical", "consolidation": "recognise", "retrieval": settings}
    with lessonbank.connect(":memory:", **grouped(**options)) as bank:
        first = bank.learn(run("save the invoice"), outcome="success")
        again = bank.learn(run("save the invoice"), outcome="success")
        assert first.lessons
        assert again.lessons == ()


def test_a_bank_searched_by_words_so_far_is_embedded_when_it_turns_hybrid(tmp_path: Path) -> None:
    options = OPTIONS | {"embedder": "hashing"}
    with lessonbank.connect(tmp_path / "bank.db", **grouped(retrieval="lexical", **options)) as bank:
        bank.learn(run("save the invoice"), outcome="success")
        assert bank.admin.reindex() == 0
    with lessonbank.connect(tmp_path / "bank.db", **grouped(retrieval="hybrid", **options)) as bank:
        assert bank.admin.reindex() == 1
        assert bank.retrieve("save it").space == "hashing-v1-512"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retrieval": "telepathy"}, "'telepathy'"),
        ({"retrieval": "hybrid"}, "pass embedder='hashing'"),
        ({"retrieval": "dense"}, "needs an embedder"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        lessonbank.connect(":memory:", embedder="lexical", **grouped(**OPTIONS, **options))


@pytest.mark.parametrize("settings", [{"floor": 1.5}, {"floor": -0.1}, {"by": "magic"}])
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="got"):
        Retrieval(**settings)
