"""A bank in a database is used as one in a file is."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import pytest

import lessonbank
from lessonbank import File, Step, Trajectory
from lessonbank.errors import MissingExtra, ReadOnly, StoreUnavailable, UsageError

pytestmark = pytest.mark.full
RUN = Trajectory(
    task="Cancel the pending order",
    steps=(
        Step(action="cancel order 17", observation="error: the order is locked"),
        Step(action="unlock order 17", observation="unlocked"),
        Step(action="cancel order 17", observation="cancelled"),
    ),
    answer="The order is cancelled.",
)


def _learn(bank: lessonbank.ReasoningBank) -> set[str]:
    learned = bank.learn(RUN, outcome="success")
    assert learned.lessons
    return {lesson.id for lesson in learned.lessons}


def test_what_one_machine_learns_another_recalls(postgres: Callable[[], str]) -> None:
    address = postgres()
    with lessonbank.connect(address, scope="acme/support", embedder="hashing", evidence=0.0) as one:
        lessons = _learn(one)
        with lessonbank.connect(address, scope="acme/support", evidence=0.0) as other:
            recall = other.retrieve("Cancel my pending order")
            assert {candidate.lesson_id for candidate in recall.candidates} == lessons
            assert other.scoped("acme/sales").retrieve("Cancel my pending order").candidates == ()
            assert other.admin.verify() == ()


def test_no_password_is_shown(postgres: Callable[[], str]) -> None:
    address = postgres().replace("keeper@", "keeper:opensesame@")
    with lessonbank.connect(address, scope="acme") as bank:
        assert "opensesame" not in repr(bank.settings)
        assert str(bank.settings["store"]).startswith("postgresql://")


def test_a_database_can_be_opened_to_read_alone(postgres: Callable[[], str]) -> None:
    address = postgres()
    with lessonbank.connect(address, scope="acme", embedder="lexical", evidence=0.0) as bank:
        lessons = _learn(bank)
    with lessonbank.connect(File(address, read_only=True), scope="acme", evidence=0.0) as bank:
        assert {lesson.id for lesson in bank.lessons.list()} == lessons
        with pytest.raises(ReadOnly):
            bank.learn(Trajectory(task="Book a flight"), outcome="failure")


def test_a_server_that_is_not_there_is_one_sentence(postgres: Callable[[], str]) -> None:
    wrong = postgres().replace("/bank", "/nobank")
    with pytest.raises(StoreUnavailable, match="cannot reach the database"):
        lessonbank.connect(wrong, scope="acme")
    with pytest.raises(StoreUnavailable, match="cannot reach the database") as refused:
        lessonbank.connect("postgresql://me:opensesame@127.0.0.1:1/bank", scope="acme")
    assert "opensesame" not in str(refused.value)


@pytest.mark.parametrize("password", ["marmot%quokka", "marmot@quokka", "marmot/quokka", "marmot@@quokka"])
def test_a_password_that_was_not_encoded_is_in_no_error(password: str) -> None:
    with pytest.raises(UsageError, match="cannot be read: write postgresql://USER") as refused:
        lessonbank.connect(f"postgresql://me:{password}@127.0.0.1:1/bank", scope="acme")
    shown = "".join(traceback.format_exception(refused.value))
    assert "marmot" not in shown
    assert "quokka" not in shown


def test_without_its_driver_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("lessonbank.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"lessonbank\[postgres\]"):
        lessonbank.connect("postgresql://localhost/bank", scope="acme")
