"""An option of `retrieve` is everywhere where a recall is made, and a stored recall is what it was."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Safety
from lessonbank.bank.views import AsyncRecalls
from lessonbank.contracts.ports import Store
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.evidence import Holdout
from lessonbank.http.client.bank import RemoteBank
from lessonbank.learning.consolidation.ask import asks_model

pytestmark = pytest.mark.anyio
OPTIONS = set(inspect.signature(AsyncReasoningBank.retrieve).parameters) - {"self", "task"}


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def mcp_recall() -> Callable[..., Any]:
    return pytest.importorskip("lessonbank.mcp.tools", reason="needs the extra mcp").recall


def command() -> Callable[..., Any]:
    from lessonbank.cli.retrieve import retrieve

    return retrieve


@pytest.mark.parametrize(
    ("where", "besides"),
    [
        (lambda: AsyncReasoningBank.attempt, set[str]()),
        (lambda: AsyncReasoningBank.scale, set[str]()),
        (command, set[str]()),
        (lambda: AsyncReasoningBank.trial, {"limit", "metadata"}),
        (lambda: AsyncRecalls.preview, {"metadata"}),
        (mcp_recall, {"metadata"}),
    ],
    ids=["attempt", "scale", "command line", "trial", "preview", "mcp"],
)
def test_an_option_of_retrieve_is_wherever_a_recall_is_made(
    where: Callable[[], Callable[..., Any]], besides: set[str]
) -> None:
    """`besides`: a trial and a preview keep no receipt, a trial searches as the bank does, MCP has its own metadata."""
    assert OPTIONS - besides <= parameters(where())


async def with_two_lessons(**options: Any) -> AsyncReasoningBank:
    bank = await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None), **options
    )
    await bank.lessons.add(title="Approved", content="Weigh it first.", task="Ship a parcel", by="Ana")
    other = await bank.lessons.add(title="Not approved", content="Ask twice.", task="Ship a parcel", by="Ana")
    await bank.lessons.quarantine(other.id, reason="unclear", by="Ana")
    return bank


async def test_trusted_is_heeded_by_preview_scale_and_trial() -> None:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None), safety=Safety(trust="open")
    ) as bank:
        lesson = lessonbank.Lesson(title="Told once", content="Weigh it first.")
        await bank.consolidate(lessonbank.Experience(scope="t", task="Ship a parcel", lessons=(lesson,)))
        assert (await bank.recalls.preview("Ship a parcel")).shown
        assert not (await bank.recalls.preview("Ship a parcel", trusted=True)).shown
        seen = list[str]()

        async def agent(task: str, memory: str) -> str:
            seen.append(memory)
            return "done"

        await bank.scale("Ship a parcel", agent, k=1, learn=False)
        await bank.scale("Ship a parcel", agent, k=1, learn=False, trusted=True, metadata={"user": "u"})
        assert [bool(text) for text in seen] == [True, False]
        assert len(await bank.recalls.list(metadata={"user": "u"})) == 1
        with pytest.raises(UsageError, match="the memory for the task 'Ship a parcel' is empty"):
            await bank.trial(["Ship a parcel"], agent, verify=lambda run: True, max_runs=2, trusted=True)


async def test_a_stored_recall_has_its_lessons_what_was_shown_and_what_was_cited() -> None:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        for number in range(3):
            title, content = f"Weigh it {number}", f"Weigh it {number} times before you ship it."
            await bank.lessons.add(title=title, content=content, task="Ship a parcel", by="Ana")
        made = await bank.retrieve("Ship a parcel")
        assert len(made.shown) == 3
        stored = (await bank.recalls.get(made.id), *await bank.recalls.list(), *await bank.recalls.search("parcel"))
        for recall in stored:
            assert recall.lessons == made.lessons
            assert recall.shown == made.shown
            assert recall.cited("As [2] says") == (made.shown[1],)
        await bank.admin.purge(lesson=made.shown[0].id, reason="erasure", by="Ana")
        left = await bank.recalls.get(made.id)
        assert left.shown == made.shown[1:]
        assert "1 lesson that this task found is no longer in the bank" in left.notes
        assert left.cited("As [1] says") == ()
        assert left.cited("As [2] says") == (made.shown[1],)


class Counting:
    """A store that counts the calls that reach it."""

    def __init__(self, store: Any) -> None:
        self._store, self.calls = store, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._store, name)


async def test_the_lessons_of_a_whole_page_of_recalls_are_one_read_of_the_store() -> None:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        for place in ("Rome", "Oslo", "Lima"):
            await bank.lessons.add(title=f"Weigh for {place}", content="Weigh it.", task=f"Ship to {place}", by="Ana")
            await bank.retrieve(f"Ship to {place}")
        store = Counting(bank.store)
        bank.store = cast("Store", store)
        assert all(recall.shown for recall in await bank.recalls.list())
        assert store.calls == ["recalls", "experiences"]


async def test_a_stored_recall_of_a_task_without_memory_has_what_was_withheld() -> None:
    policy = Holdout(0.0, recalls=0.999)
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=policy)
    ) as bank:
        await bank.lessons.add(title="Weigh it", content="Weigh it before you ship it.", task="Ship a parcel", by="Ana")
        made = await bank.retrieve("Ship a parcel")
        assert made.control
        assert (await bank.recalls.get(made.id)).withheld == made.withheld
        assert len(made.withheld) == 1


@pytest.mark.parametrize("trust", ["open", "corroborated", "reviewed"])
async def test_a_bank_without_a_model_and_an_embedder_says_that_it_asks_none(trust: Any) -> None:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", safety=Safety(trust=trust)
    ) as bank:
        assert not asks_model(bank._consolidator)  # pyright: ignore[reportPrivateUsage]


async def test_every_method_of_a_remote_bank_answers_in_one_sentence_where_no_server_is() -> None:
    bank = await lessonbank.connect_async("http://127.0.0.1:9", scope="a/b")
    assert isinstance(bank, RemoteBank)
    calls: dict[str, tuple[object, ...]] = {
        "retrieve": ("t",),
        "learn": ([{"role": "user", "content": "x"}],),
        "submit": ([{"role": "user", "content": "x"}],),
        "keep_unfinished": ([{"role": "user", "content": "x"}],),
        "judge": (lessonbank.Trajectory(task="t"),),
        "extract": ([],),
        "consolidate": (lessonbank.Experience(scope="a/b", task="t"),),
        "lift": (),
        "reflect": (),
        "drain": (),
    }
    public = {name for name, _ in inspect.getmembers(AsyncReasoningBank, inspect.iscoroutinefunction)}
    elsewhere = {"scale", "trial", "close"}  # they call the agent first, or have nothing to ask
    assert {name for name in public if not name.startswith("_")} - elsewhere == set(calls)
    for name, arguments in calls.items():
        with pytest.raises(LessonbankError) as refused:
            await getattr(bank, name)(*arguments)
        assert str(refused.value), name
    await bank.close()


WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
from lessonbank.testing import ModelServer, ScriptedModel
from lessonbank.testing.fakes import ScriptedModel
import lessonbank.testing.model_server
from lessonbank.errors import UsageError
try:
    from lessonbank.testing import BankContract
except UsageError as error:
    print(error)
"""


def test_fakes_work_without_pytest_and_a_contract_says_that_it_needs_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYTEST], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "lessonbank.testing.BankContract runs under pytest: pip install pytest"
