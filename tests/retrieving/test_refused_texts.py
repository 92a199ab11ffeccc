"""A text that cannot be embedded costs its own vector, and nothing else; neither do vectors of another dimension."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Experience, Learning, Lesson, ReasoningBank, Retrieval, Step, Trajectory
from lessonbank.errors import ModelError, ModelUnavailable, SpaceMismatch, TransientModelError
from lessonbank.search import DenseRetriever, Refusals
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import HashingEmbedder, ScriptedModel

pytestmark = pytest.mark.full

BAD = "poison"


class Choosy:
    """An embedder that fails at texts with a certain word, or altogether; it counts what it is asked."""

    def __init__(self, *, size: int = 64, error: type[ModelError] = ModelError) -> None:
        self.space, self._size, self._error = "choosy", size, error
        self.refuses, self.down, self.requests = BAD, False, list[list[str]]()

    async def embed(self, texts: Sequence[str], /, *, role: Any) -> Any:
        self.requests.append(list(texts))
        if self.down:
            raise self._error("the service is down")
        if bad := [text for text in texts if self.refuses in text]:
            raise self._error(f"cannot tokenise {bad[0]!r}")
        return await HashingEmbedder(dimensions=self._size).embed(texts, role=role)

    @property
    def documents(self) -> int:
        """How many requests named a text that it refuses."""
        return sum(any(self.refuses in text for text in texts) for texts in self.requests)


def run(task: str) -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="look", observation=f"error: no {task.split()[-1]} here"),))


def opened(path: Path | str, embedder: Any, **more: Any) -> ReasoningBank:
    return lessonbank.connect(path, scope="t", embedder=embedder, evidence=Evidence(holdout=None), **more)


def filled(path: Path, *tasks: str) -> None:
    """A bank that knows these tasks, and has no vectors yet."""
    with opened(path, "lexical") as bank:
        for task in tasks:
            bank.lessons.add(title=f"To {task}", content=f"Look twice before you {task}.", task=task, by="Ana")


TASKS = ("cancel the order", f"water the {BAD} ivy", "book a flight", "paint the fence")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    filled(tmp_path / "bank.db", *TASKS)
    return tmp_path / "bank.db"


@pytest.mark.parametrize("error", [ModelError, TransientModelError])
@pytest.mark.parametrize("level", ["experience", "lesson"])
def test_one_text_that_cannot_be_embedded_leaves_the_others_to_be_found_by_their_vectors(
    path: Path, level: Any, error: type[ModelError]
) -> None:
    mine = Choosy(error=error)
    with opened(path, mine, retrieval=Retrieval(level=level)) as bank:
        for _ in range(10):
            recall = bank.retrieve("book a flight")
            assert recall.shown[0].title
            assert not [note for note in recall.notes if "words only" in note]
            assert sum("because the embedder refuses their text" in note for note in recall.notes) == 1
        asked = mine.documents
        bank.retrieve("paint the fence")
        assert mine.documents == asked, "it is not asked again with every retrieval"
        (told,) = bank.admin.unembedded()
        assert "refused 1 time," in told
        assert "cannot tokenise" in told


def test_another_process_does_not_ask_for_a_refused_text_either(path: Path) -> None:
    with opened(path, Choosy()) as bank:
        bank.retrieve("book a flight")
    mine = Choosy()
    with opened(path, mine) as bank:
        assert bank.retrieve("book a flight").shown
        assert bank.admin.unembedded()
    assert mine.documents == 0


def test_reindex_tries_refused_texts_again_at_once(path: Path) -> None:
    mine = Choosy()
    with opened(path, mine) as bank:
        bank.retrieve("book a flight")
        assert bank.admin.reindex() == 0
        assert len(bank.admin.unembedded()) == 1
        mine.refuses = "nothing any more"
        assert bank.admin.reindex() == 1
        assert bank.admin.unembedded() == ()
        assert not [note for note in bank.retrieve("water the ivy").notes if "embedder" in note]


def test_erasing_a_refused_text_erases_what_the_embedder_said_of_it(path: Path) -> None:
    with opened(path, Choosy()) as bank:
        bank.retrieve("book a flight")
        (bad,) = [one for one in bank.lessons.list() if BAD in one.title]
        bank.admin.purge(lesson=bad.id, reason="asked to")
        assert bank.admin.unembedded() == ()


def test_an_embedder_that_is_down_is_left_alone_for_a_growing_time_and_words_answer(path: Path) -> None:
    mine = Choosy()
    mine.down = True
    with opened(path, mine) as bank:
        recalls = [bank.retrieve(f"book a flight, number {number}") for number in range(10)]
        assert all(recall.shown for recall in recalls)
        told = [" ".join(recall.notes) for recall in recalls]
        assert all("searched by words only, because the embedder failed" in notes for notes in told)
        assert len(mine.requests) == 2
        assert "it is asked again in" in told[-1]


def test_an_embedder_that_takes_queries_alone_is_not_asked_for_every_text(path: Path) -> None:
    mine = Choosy(error=ModelUnavailable)
    with opened(path, mine) as bank:
        bank.retrieve("book a flight")
        known = mine.requests[0]
        mine.requests.clear()
        mine.refuses = "e"
        recall = bank.retrieve("PAINT")
    assert known
    assert any("because the embedder failed" in note for note in recall.notes)
    assert len(mine.requests) <= 2


def test_a_bank_that_may_not_be_written_searches_what_has_a_vector(path: Path) -> None:
    mine = Choosy()
    with opened(path, mine) as bank:
        bank.retrieve("book a flight")
        bank.learn(run("mend the roof"), outcome="failure")
    filled(path, "sweep the yard")
    with lessonbank.connect(path, scope="t", embedder=mine) as bank:  # the bank names this embedder again
        pass
    mine.requests.clear()
    with opened(lessonbank.File(path, read_only=True), mine) as bank:  # type: ignore[arg-type]
        recall = bank.retrieve("book a flight")
        assert recall.retriever.startswith("experience/dense")
        assert recall.shown
        assert any("none can be written" in note for note in recall.notes)
    assert mine.requests == [["book a flight"]]


def test_another_embedder_on_a_read_only_bank_is_no_reason_not_to_read(path: Path) -> None:
    with opened(lessonbank.File(path, read_only=True), "hashing") as bank:  # type: ignore[arg-type]
        assert bank.retrieve("book a flight").lessons == ()
        assert any("none can be written" in note for note in bank.retrieve("book a flight").notes)


@pytest.mark.full
def test_many_refused_texts_do_not_hide_the_others(tmp_path: Path) -> None:
    filled(tmp_path / "bank.db", *(f"{BAD} {n}" for n in range(12)), *(f"water plant {n}" for n in range(12)))
    mine = Choosy()
    with opened(tmp_path / "bank.db", mine) as bank:
        assert bank.retrieve("water plant 7").shown
        assert len(bank.admin.unembedded()) == 12
        assert mine.documents <= 60


# -- the same space, another dimension ---------------------------------------------------------------------------------


def test_vectors_of_another_dimension_cost_neither_a_recall_nor_a_lesson_and_reindex_mends_it(path: Path) -> None:
    with opened(path, Choosy()) as bank:
        bank.admin.reindex()
    with opened(path, Choosy(size=32)) as bank:
        recall = bank.retrieve("book a flight")
        assert recall.shown
        assert any("searched by words only, because a vector of 32 dimensions does not fit" in n for n in recall.notes)
        learned = bank.learn(run("mend the roof"), outcome="failure")
        assert learned.experience
        assert any("kept, but not embedded: a vector of 32 dimensions" in note for note in learned.notes)
        added = bank.lessons.add(title="Ask", content="Ask twice.", task="mend the door", when="always", by="Ana")
        assert bank.lessons.edit(added.id, content="Ask three times.", by="Ana").content == "Ask three times."
        assert bank.admin.reindex() == 5
        assert not [note for note in bank.retrieve("book a flight").notes if "words only" in note]
        assert not [n for n in bank.learn(run("close the gate"), outcome="failure").notes if "embedded" in n]


@pytest.mark.parametrize("level", ["experience", "lesson"])
def test_another_dimension_is_found_before_a_model_is_paid_and_the_run_waits_for_reindex(
    path: Path, level: Any
) -> None:
    model, settings = ScriptedModel(["no reply that can be read"] * 20), Retrieval(level=level)
    with opened(path, Choosy(), retrieval=settings) as bank:
        bank.admin.reindex()
    with opened(path, Choosy(size=32), model=model, retrieval=settings) as bank:
        recall = bank.retrieve("book a flight")
        assert recall.shown
        assert any("only, because a vector of 32 dimensions does not fit" in note for note in recall.notes)
        unjudged = bank.learn(run("mend the wall"))
        learned = bank.learn(run("book a flight"), recall=recall, outcome="failure")
        assert unjudged.errors == learned.errors == ("space_mismatch",)
        assert all(any("does not fit the space" in note for note in one.notes) for one in (unjudged, learned))
        assert bank.recalls.explain(recall.id).outcome == "failure"
        bank.submit(run("paint the door"))
    assert model.calls == []
    with opened(path, Choosy(size=32), model=model, retrieval=settings) as bank:
        assert len(bank.runs.pending()) == 3
        assert bank.admin.reindex() >= 3
        judged, extracted, submitted = [one.errors for one in bank.runs.retry()]
        assert (judged, extracted, submitted) == (("judge_output",), ("extraction_output",), ("judge_output",))
        assert not [note for note in bank.retrieve("book a flight").notes if "only" in note]


@pytest.mark.anyio
async def test_another_dimension_is_found_before_a_model_is_paid(path: Path) -> None:
    model, recognising = ScriptedModel([]), Learning(consolidation="recognise")
    with opened(path, Choosy()) as bank:
        bank.admin.reindex()
        lesson = bank.lessons.list()[0]
    async with await lessonbank.connect_async(
        path, scope="t", embedder=Choosy(size=32), model=model, learning=recognising
    ) as bank:
        again = Experience(scope="t", task=TASKS[0], lessons=(Lesson(title=lesson.title, content="Look, then act."),))
        with pytest.raises(SpaceMismatch, match="32 dimensions does not fit"):
            await bank.consolidate(again)
        assert (await bank.learn(run("mend the wall"), outcome="failure")).errors == ("space_mismatch",)
    assert model.calls == []


@pytest.mark.full
def test_reindex_leaves_vectors_that_fit(path: Path) -> None:
    with opened(path, Choosy()) as bank:
        assert bank.admin.reindex() == 3
        assert bank.admin.reindex() == 0


# -- how long one waits ------------------------------------------------------------------------------------------------


def test_the_pause_of_a_text_grows_to_a_day() -> None:
    refusals, pauses, now = Refusals(), list[float](), 1000.0
    for _ in range(9):
        refusals = refusals.after({"a": ("text", "why")}, tried=["a"], now=now)
        again = refusals.by_id["a"].again
        pauses.append(again - now)
        now = again
    assert pauses == [60.0, 240.0, 960.0, 3840.0, 15_360.0, 61_440.0, 86_400.0, 86_400.0, 86_400.0]


def test_a_refused_text_waits_until_its_time_and_longer_after_each_try() -> None:
    one = Refusals().after({"a": ("text", "why")}, tried=["a"], now=1000.0)
    assert one.waits("a", "text", now=1059.0)
    assert not one.waits("a", "text", now=1061.0)
    assert not one.waits("a", "another text", now=1059.0)
    two = one.after({"a": ("text", "why")}, tried=["a"], now=1061.0)
    assert two.waits("a", "text", now=1061.0 + 239.0)
    assert two.after({}, tried=["a"], now=2000.0) == Refusals()


def test_what_waits_is_read_as_it_was_written_and_spaces_are_kept_apart() -> None:
    one = Refusals().after({"a": ("text", "why")}, tried=["a"], now=1000.0)
    kept = one.written(Refusals().written(None, "other"), "mine")
    assert Refusals.read(kept, "mine") == one
    assert Refusals.read(kept, "other") == Refusals() == Refusals.read("{no json", "mine")


@pytest.mark.anyio
async def test_an_embedder_that_fails_at_different_tasks_is_left_alone_longer_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("lessonbank.search._refusals.monotonic", lambda: now[0])
    embedder, store = Choosy(), SqliteStore.in_memory()
    search = DenseRetriever(store, embedder)

    async def told(task: str, scope: str = "t") -> str:
        return (await search(task, scope=scope, limit=1)).notes[-1]

    embedder.down = True
    for _ in range(9):
        assert "asked again" not in await told("the same task"), "one task that fails says nothing about others"
    for number, pause in enumerate((2, 8, 32, 128, 512, 600, 600)):
        assert "asked again" not in await told(f"another task {number}")
        asked = len(embedder.requests)
        assert f"asked again in {pause} s" in await told("any task")
        assert len(embedder.requests) == asked
        assert "asked again" not in await told("any task", scope=f"other{number}")
        now[0] += pause
    embedder.down = False
    assert (await search("the same task", scope="t", limit=1)).notes == ()
    embedder.down = True
    assert "asked again" not in await told("a first task")
    assert "asked again" not in await told("a second task"), "it answered meanwhile"
    await store.close()
