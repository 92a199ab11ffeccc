"""What `connect` is handed: anything that cannot be is one clear sentence, and leaves the bank as it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lessonbank
from lessonbank import Evidence, Step, Trajectory, Verdict
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.testing import HashingEmbedder
from lessonbank.testing.settings import grouped

STUCK = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


class Nameless:
    async def generate(self, *_: Any, **__: Any) -> str:
        return "x"


def model(prompt: str) -> str:
    return "x"


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ({"scope": None}, "cannot be a scope"),
        ({"scope": 3}, "cannot be a scope"),
        ({"limit": "3"}, "limit"),
        ({"limit": 2.5}, "limit"),
        ({"limit": None}, "limit"),
        ({"budget": None}, "budget"),
        ({"model": model, "timeout": 0}, "timeout"),
        ({"model": model, "timeout": -1}, "timeout"),
        ({"model": model, "timeout": "5"}, "timeout"),
        ({"model": model, "timeout": None}, "timeout"),
        ({"model": model, "timeout": float("nan")}, "timeout"),
        ({"holdout": "0.1"}, "holdout"),
        ({"holdout": 1}, "holdout"),
        ({"holdout": True}, "holdout"),
        ({"holdout": float("nan")}, "holdout"),
        ({"judge": "openai:x"}, "judge="),
        ({"extractor": 3}, "extractor="),
        ({"retriever": "dense"}, "retriever="),
        ({"consolidation": None}, "consolidation"),
        ({"hooks": print}, "hooks="),
        ({"hooks": None}, "hooks="),
        ({"hooks": ["x"]}, "hooks="),
        ({"model": 3}, "a model is"),
        ({"model": {}}, "mapping of models"),
        ({"model": {"contrast": model}}, "mapping of models"),
        ({"model": {"jugde": model}}, "no role 'jugde'"),
        ({"model": Nameless()}, "`name`"),
        ({"embedder": 3}, "embedder="),
        ({"embedder": HashingEmbedder}, "embedder="),
        ({"embedder": "foo"}, "no embedder 'foo'"),
        ({"profile": "papers"}, "no profile"),
        ({"domain": "wob"}, "no domain"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_in_one_sentence(argument: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as raised:
        lessonbank.connect(":memory:", **grouped(**{"scope": "t", "embedder": "lexical", **argument}))
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("where", [None, 3, b"bank.db", "", " "])
def test_a_place_that_is_none_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="file path"):
        lessonbank.connect(where, scope="t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["foo", "sentence-transformers:/no/such/folder"])
def test_an_embedder_that_could_not_be_had_does_not_stay_with_the_bank(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(LessonbankError):
        lessonbank.connect(tmp_path / "bank.db", scope="t", embedder=wrong)
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert bank.retrieve("x").text == ""


class Own:
    """An embedder of somebody's own, with what it makes of good rows."""

    def __init__(self, change: Any) -> None:
        self._good, self._change = HashingEmbedder(), change

    @property
    def space(self) -> str:
        return "own"

    async def embed(self, texts: Sequence[str], /, *, role: Any) -> Any:
        return self._change(await self._good.embed(texts, role=role))


def fails(rows: Any) -> Any:
    raise ValueError("boom\n\x1b[2Jtwice")


@pytest.mark.full
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows * 0,
        lambda rows: rows * np.nan,
        lambda rows: rows[:0],
        lambda rows: rows[None],
        lambda rows: None,
        lambda rows: "no rows",
        fails,
    ],
    ids=["zero", "nan", "too few", "too deep", "none", "text", "raises"],
)
def test_an_embedder_of_ones_own_that_is_broken_costs_neither_the_lesson_nor_the_bank(
    tmp_path: Path, change: Any
) -> None:
    with lessonbank.connect(
        tmp_path / "bank.db", scope="t", embedder=Own(change), evidence=Evidence(holdout=None)
    ) as bank:
        learned = bank.learn(STUCK, outcome="failure")
        assert learned.lessons
        assert "not embedded yet" in learned.notes[-1]
        assert "\n" not in learned.notes[-1]
        recall = bank.retrieve("open the valve")
        assert recall.shown == learned.lessons
        assert "searched by words only" in recall.notes[0]
    with lessonbank.connect(
        tmp_path / "bank.db", scope="t", embedder=Own(lambda rows: rows), evidence=Evidence(holdout=None)
    ) as bank:
        recall = bank.retrieve("open the valve")
        assert recall.shown == learned.lessons
        assert recall.notes == ()


def test_rows_of_another_type_or_length_become_unit_rows() -> None:
    for change in (lambda rows: rows * 7, lambda rows: rows.tolist(), lambda rows: rows.astype("float64")):
        with lessonbank.connect(":memory:", scope="t", embedder=Own(change), evidence=Evidence(holdout=None)) as bank:
            bank.learn(STUCK, outcome="failure")
            recall = bank.retrieve("open the valve")
        assert [round(score, 3) for score in recall.scores.values()] == [1.0]


async def gives_nothing(_: Any, /) -> Any:
    return None


def is_not_async(_: Any, /) -> Verdict:
    return Verdict(outcome="success")


@pytest.mark.parametrize("part", [gives_nothing, is_not_async])
@pytest.mark.parametrize("name", ["judge", "extractor"])
def test_a_part_of_ones_own_that_breaks_its_promise_is_named_in_one_sentence(part: Any, name: str) -> None:
    outcome: Any = {} if name == "judge" else {"outcome": "failure"}
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", **grouped(**{name: part})) as bank:
        with pytest.raises(UsageError, match=f"{name}= takes an async function"):
            bank.learn(STUCK, **outcome)
        assert len(bank.runs.pending(limit=10_000)) == 1
