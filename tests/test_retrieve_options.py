"""An option of `retrieve` is checked where it is given, and a stored recall is what it was."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import replace
from typing import Any, cast

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Safety
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Found
from lessonbank.contracts.retrieve_options import OPTIONS as NAMED
from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.evidence import Holdout
from lessonbank.evidence.ledger import Ledger
from lessonbank.http.client.bank import RemoteBank
from lessonbank.learning.consolidation.append import asks_model

pytestmark = pytest.mark.anyio


async def opened(**more: Any) -> AsyncReasoningBank:
    settings = {"embedder": "lexical", "evidence": Evidence(holdout=None), **more}
    return await lessonbank.connect_async(":memory:", scope="t", **settings)


def test_type_checkers_see_every_option_as_a_keyword() -> None:
    assert [*RetrieveKeywords.__annotations__] == [*RetrieveOptions.__dataclass_fields__] == [*NAMED]


def test_an_option_that_cannot_be_is_refused_where_it_is_given() -> None:
    for wrong, told in (
        ({"limit": 0}, "limit is a whole number of at least 1; got 0"),
        ({"trusted": "yes"}, "trusted= is True or False; got 'yes'"),
        ({"metadata": {"x": object()}}, "metadata= takes a mapping from text to JSON values"),
    ):
        with pytest.raises(UsageError, match=told):
            RetrieveOptions(**cast("Any", wrong))


def test_an_agent_makes_what_the_owner_of_a_server_asks_stricter_and_never_wider() -> None:
    owner = RetrieveOptions(trusted=True, metadata={"team": "a"})
    assert owner.for_agent({"trusted": False, "metadata": {"team": "b"}}) == owner
    assert owner.for_agent({"limit": 2}) == RetrieveOptions(limit=2, trusted=True, metadata={"team": "a"})
    assert RetrieveOptions().for_agent({"trusted": True}) == RetrieveOptions(trusted=True)
    assert [RetrieveOptions(limit=3).for_agent({"limit": many}).limit for many in (2, 50, None)] == [2, 3, 3]


async def test_an_attempt_refuses_an_option_that_is_none() -> None:
    async with await opened() as bank:
        with pytest.raises(TypeError, match="unexpected keyword argument 'limt'"):
            bank.attempt("Ship a parcel", limt=2)  # pyright: ignore[reportCallIssue]


class NewestFirst(Ledger):
    """A ledger for which the newest lesson of an experience helps most."""

    async def order(self, found: Found, /, *, places: int, recall_id: str, scope: str) -> Found:
        turned = [
            match.model_copy(
                update={"experience": match.experience.model_copy(update={"lessons": match.experience.lessons[::-1]})}
            )
            for match in found.matches
        ]
        return found.model_copy(update={"matches": tuple(turned)})


async def test_a_preview_shows_lessons_in_the_order_in_which_retrieve_does() -> None:
    lessons = tuple(lessonbank.Lesson(title=title, content=f"{title} it.") for title in ("Weigh", "Pack", "Seal"))
    async with await opened() as bank:
        await bank.consolidate(lessonbank.Experience(scope="t", task="Ship a parcel", lessons=lessons))
        bank.parts = replace(bank.parts, ledger=NewestFirst())
        shown = [lesson.title for lesson in (await bank.retrieve("Ship a parcel")).shown]
        assert shown == ["Seal", "Pack", "Weigh"]
        preview = await bank.recalls.preview("Ship a parcel", metadata={"user": "u"})
        assert [lesson.title for lesson in preview.shown] == shown
        assert (preview.kept, preview.metadata) == (False, {"user": "u"})


async def test_a_stored_recall_has_its_lessons_what_was_shown_and_what_was_cited() -> None:
    async with await opened() as bank:
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
        assert left.citations("As [1] says") == (made.shown[0].id,)


class Counting:
    """A store that counts the calls that reach it."""

    def __init__(self, store: Any) -> None:
        self._store, self.calls = store, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._store, name)


async def test_the_lessons_of_a_whole_page_of_recalls_are_one_read_of_the_store() -> None:
    async with await opened() as bank:
        for place in ("Rome", "Oslo", "Lima"):
            await bank.lessons.add(title=f"Weigh for {place}", content="Weigh it.", task=f"Ship to {place}", by="Ana")
            await bank.retrieve(f"Ship to {place}")
        store = Counting(bank.store)
        bank.store = cast("Store", store)
        assert all(recall.shown for recall in await bank.recalls.list())
        assert store.calls == ["recalls", "experiences"]


async def test_a_stored_recall_of_a_task_without_memory_has_what_was_withheld() -> None:
    async with await opened(evidence=Evidence(holdout=Holdout(0.0, recalls=0.999))) as bank:
        await bank.lessons.add(title="Weigh it", content="Weigh it before you ship it.", task="Ship a parcel", by="Ana")
        made = await bank.retrieve("Ship a parcel")
        assert made.control
        assert (await bank.recalls.get(made.id)).withheld == made.withheld
        assert len(made.withheld) == 1


@pytest.mark.parametrize("trust", ["open", "corroborated", "reviewed"])
async def test_a_bank_without_a_model_and_an_embedder_says_that_it_asks_none(trust: Any) -> None:
    async with await opened(safety=Safety(trust=trust)) as bank:
        assert not asks_model(bank.parts.consolidator)


@pytest.mark.full
async def test_every_method_of_a_remote_bank_answers_in_one_sentence_where_no_server_is() -> None:
    bank = await lessonbank.connect_async(lessonbank.Server("http://127.0.0.1:9", timeout=0.1), scope="a/b")
    assert isinstance(bank, RemoteBank)
    calls: dict[str, tuple[object, ...]] = {
        "retrieve": ("t",),
        "recall_again": ("it failed",),
        "learn": ([{"role": "user", "content": "x"}],),
        "submit": ([{"role": "user", "content": "x"}],),
        "tell": ("run-1",),
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


@pytest.mark.full
def test_fakes_work_without_pytest_and_a_contract_says_that_it_needs_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYTEST], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "lessonbank.testing.BankContract runs under pytest: pip install pytest"
