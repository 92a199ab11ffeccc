"""A store, a consolidator, a format of runs and an embedder of somebody else take their place through `connect`."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import lessonbank
from lessonbank import Evidence, Experience, Lesson, Parts, Trajectory
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Add, Change, Found
from lessonbank.errors import Conflict, FormatError, SpaceMismatch, StoreUnavailable, UsageError
from lessonbank.importers import Imported, read
from lessonbank.learning.consolidation import CappedConsolidator, Caps, append
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.stores.sqlite import SqliteStore

RUN = Trajectory(task="Ship it", answer="sent")
_MODULE = """
from lessonbank import Trajectory
from lessonbank.importers import Imported
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.stores.sqlite import SqliteStore

opened = []

async def open_store(url, *, read_only):
    opened.append((url, read_only))
    return SqliteStore.in_memory()

async def no_store(url, *, read_only):
    return 7

def embedder(name):
    opened.append(name)
    return HashingEmbedder()

def runs(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        yield Imported(Trajectory(task=line), path, number, "lines")
"""
_ENTRY_POINTS = """
[lessonbank.stores]
shelf = brought_along:open_store
empty = brought_along:no_store

[lessonbank.embedders]
house = brought_along:embedder

[lessonbank.importers]
lines = brought_along:runs
"""


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """A distribution that is installed, and what was asked of it."""
    place = tmp_path / "site"
    info = place / "brought_along-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "brought_along.py").write_text(_MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-along\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(place))
    yield importlib.import_module("brought_along").opened
    sys.modules.pop("brought_along")


def test_a_store_of_ones_own_is_handed_to_connect_and_closed_with_the_bank() -> None:
    store = SqliteStore.in_memory()
    with lessonbank.connect(store, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        bank.lessons.add(title="Weigh", content="Weigh the parcel first.", task="Ship it", by="Ana")
        assert bank.aio.store is store
        assert bank.settings["store"] == "SqliteStore"
        assert bank.retrieve("Ship it").shown
    with pytest.raises(StoreUnavailable):
        lessonbank.connect(store, scope="t", embedder="lexical").lessons.list()


class Silent:
    """A store that does not answer, and takes a moment to close."""

    apply = journal = search = print

    def __init__(self) -> None:
        self.asked, self.is_closed = anyio.Event(), False

    async def settings(self, *_: object, **__: object) -> Any:
        self.asked.set()
        await anyio.sleep_forever()

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.is_closed = True


@pytest.mark.anyio
async def test_a_store_is_closed_too_where_nobody_waits_any_longer_for_connect() -> None:
    store: Any = Silent()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(lessonbank.connect_async, store, scope="t"))
        await store.asked.wait()
        tasks.cancel_scope.cancel()
    assert store.is_closed


def test_a_consolidator_of_ones_own_may_be_made_over_the_store_of_the_bank() -> None:
    def at_most_two(store: Store) -> CappedConsolidator:
        return CappedConsolidator(append, store, Caps(hour=None, scope=2))

    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(consolidator=at_most_two)) as bank:
        for number in range(4):
            lesson = Lesson(title=f"Lesson {number}", content=f"Do step {number}.")
            bank.consolidate(Experience(scope="t", task=f"Task {number}", lessons=(lesson,)))
        assert bank.admin.counts().lessons == 2
        assert bank.settings["consolidation"] == "at_most_two"


def test_a_consolidator_that_is_an_empty_list_too_decides() -> None:
    class Keeping(list[Experience]):
        async def __call__(self, new: Experience, /) -> Sequence[Change]:
            self.append(new)
            return [Add(experience=new)]

    mine = Keeping()
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(consolidator=mine)) as bank:
        bank.consolidate(Experience(scope="t", task="Ship it"))
    assert [one.task for one in mine] == ["Ship it"]


def test_a_consolidator_that_needs_no_store_is_taken_as_it_is() -> None:
    async def nothing_short(new: Experience, /) -> Sequence[Change]:
        return [Add(experience=new.model_copy(update={"lessons": ()}))]

    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(consolidator=nothing_short)) as bank:
        assert bank.learn(RUN, outcome="success").lessons == ()


def test_a_function_of_the_store_that_makes_no_consolidator_is_refused() -> None:
    def nothing(store: Store) -> None:
        return None

    parts = Parts(consolidator=nothing)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Parts\(consolidator=\) takes a consolidator, or a function of the store"):
        lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=parts)


def test_a_store_that_another_distribution_brings_is_found_by_the_address(brought: list[object]) -> None:
    with lessonbank.connect("shelf://third/row", scope="t", embedder="lexical") as bank:
        assert bank.admin.counts().lessons == 0
    assert brought == [("shelf://third/row", False)]
    with pytest.raises(UsageError, match="'empty' gave 7, which is no store"):
        lessonbank.connect("empty://x", scope="t")


def test_an_embedder_that_another_distribution_brings_is_kept_by_name_as_any_other(
    brought: list[object], tmp_path: Path
) -> None:
    lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="house:small").close()
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as again:
        assert str(again.settings["embedder"]).startswith("house:small")
    assert brought == ["small", "small"]


def test_a_format_of_runs_that_another_distribution_brings_is_read(brought: list[object], tmp_path: Path) -> None:
    (tmp_path / "runs.txt").write_text("First task\nSecond task\n")
    runs = [one for one in read(tmp_path / "runs.txt", format="lines") if isinstance(one, Imported)]
    assert [one.trajectory.task for one in runs] == ["First task", "Second task"]


def test_names_that_nothing_brings_are_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs.txt").write_text("x\n")
    with pytest.raises(UsageError, match="'shelf' is not a store of this release, and nothing that is installed"):
        lessonbank.connect("shelf://third/row", scope="t")
    with pytest.raises(FormatError, match="there is no format 'lines'"):
        read(tmp_path / "runs.txt", format="lines")


@pytest.mark.full
def test_what_is_built_in_asks_no_other_distribution() -> None:
    """Reading what is installed takes longer than a hook has, so no usual call does it."""
    program = """
import lessonbank
from lessonbank._base import extensions
def refuse(**asked):
    raise AssertionError(f"entry points were read: {asked}")
extensions.entry_points = refuse
from lessonbank.hosts import client
from lessonbank.importers import read
with lessonbank.connect(":memory:", scope="t", embedder="hashing") as bank:
    bank.retrieve("Ship it")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


class _Embedder(HashingEmbedder):
    space = "one-name"


async def _own(experience: Experience, /) -> Sequence[Change]:
    return (Add(experience=experience),)


def test_a_consolidator_of_ones_own_is_not_asked_where_vectors_would_not_fit(tmp_path: Path) -> None:
    for dimensions in (64, 128):
        with lessonbank.connect(
            tmp_path / "bank.db",
            scope="t",
            embedder=_Embedder(dimensions=dimensions),
            parts=Parts(consolidator=_own),
        ) as bank:
            lesson = Lesson(title=f"Weigh it at {dimensions}", content=f"Weigh it at {dimensions}.")
            told = Experience(scope="t", task="Ship it", lessons=(lesson,))
            if dimensions == 64:
                bank.consolidate(told)
            else:
                with pytest.raises(SpaceMismatch):
                    bank.consolidate(told)
                assert len(bank.lessons.list()) == 1


def _weighed(word: str) -> Experience:
    lesson = Lesson(title=f"Weigh it {word}", content=f"Weigh it {word}.")
    return Experience(scope="t", task="Ship it", lessons=(lesson,))


def test_an_empty_scope_says_nothing_of_vectors_that_another_process_writes_next(tmp_path: Path) -> None:
    opened = [
        lessonbank.connect(
            tmp_path / "bank.db", scope="t", embedder=_Embedder(dimensions=size), parts=Parts(consolidator=_own)
        )
        for size in (128, 64)
    ]
    with opened[0] as mine, opened[1] as theirs:
        assert mine.consolidate(_weighed("once"), dry_run=True)
        theirs.consolidate(_weighed("twice"))
        with pytest.raises(SpaceMismatch):
            mine.consolidate(_weighed("once"))


async def _refused(experience: Experience, /) -> Sequence[Change]:
    raise Conflict("the lesson is gone")


def test_what_consolidate_could_not_do_as_meant_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(consolidator=_refused)) as bank:
        assert [change.kind for change in bank.consolidate(_weighed("once"))] == ["add"]
    assert [text for text in caplog.messages if text.startswith("appended without consolidation")]


def test_what_consolidate_keeps_without_a_vector_that_fits_is_in_the_log_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for size, word in ((64, "once"), (128, "twice")):
        with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder=_Embedder(dimensions=size)) as bank:
            bank.consolidate(_weighed(word))
    assert len([text for text in caplog.messages if text.startswith("kept, but not embedded")]) == 1


class _Retriever:
    """A retriever of somebody's own, one of whose calls gives `answer`."""

    name = "mine"

    def __init__(self, call: str, answer: object, *, space: Any = None) -> None:
        self.space = space
        self._answers = {"find": Found(), "index": {}, "catch_up": 0} | {call: answer}

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Any:
        return self._answers["find"]

    async def index(self, experiences: Sequence[Experience], /) -> Any:
        return self._answers["index"]

    async def catch_up(self, *, scope: str, most: int) -> Any:
        return self._answers["catch_up"]


NONSENSE = (None, 7, "text", ["x"], object())


@pytest.mark.parametrize("answer", [*NONSENSE, {}])
def test_a_retriever_that_gives_no_matches_is_one_sentence_and_breaks_no_attempt(answer: object) -> None:
    parts = Parts(retriever=_Retriever("find", answer))
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=parts) as bank:
        for call in (bank.retrieve, bank.recalls.preview):
            with pytest.raises(
                UsageError, match="retriever= takes an async function that returns Found; this one gave"
            ):
                call("Ship it")
        with bank.attempt("Ship it") as attempt:
            attempt.finish(answer="sent", outcome="success")
        assert not attempt.text
        assert any("retriever= takes" in note for note in attempt.notes)


@pytest.mark.parametrize("answer", NONSENSE)
def test_a_retriever_that_gives_no_vectors_is_one_sentence(answer: object) -> None:
    parts = Parts(retriever=_Retriever("index", answer, space="mine-1"))
    with (
        lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=parts) as bank,
        pytest.raises(UsageError, match=r"retriever\.index takes .* a mapping from ids to vectors; this one gave"),
    ):
        bank.lessons.add(title="Weigh", content="Weigh the parcel first.", task="Ship it", by="Ana")


@pytest.mark.parametrize("answer", [None, "x", -1, 0.5])
def test_a_retriever_that_miscounts_what_it_indexed_is_one_sentence(answer: object) -> None:
    parts = Parts(retriever=_Retriever("catch_up", answer))
    with (
        lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=parts) as bank,
        pytest.raises(UsageError, match="what the retriever's catch_up returns is a whole number of at least 0; got"),
    ):
        bank.admin.reindex()


@pytest.mark.parametrize("wrong", [{"name": 7}, {"name": None}, {"space": 7}, {"index": None}, {"catch_up": 1}])
def test_a_retriever_whose_parts_are_of_wrong_types_is_refused_at_once(wrong: dict[str, object]) -> None:
    retriever = _Retriever("find", Found())
    for name, value in wrong.items():
        setattr(retriever, name, value)
    with pytest.raises(UsageError, match=r"Parts\(retriever=\) takes an object with name \(text\), space"):
        Parts(retriever=retriever)
