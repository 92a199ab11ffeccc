"""`week`: what memory did for coding agents is counted from the bank itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from running import lessonbank_cli

from lessonbank import Evidence, Learning, Parts, ReasoningBank, connect
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.hosts.cures import CureExtractor, Cures
from lessonbank.hosts.week import week_of
from lessonbank.importers import Imported

from .conftest import run_of

pytestmark = pytest.mark.full
SHOP = "coding/example.org/acme/shop"
NOW = datetime.now(UTC)
FAILS = "ModuleNotFoundError: No module named 'rates'"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    with connect(str(tmp_path / "bank.db"), scope="coding", evidence=Evidence(holdout=None)) as memory:
        yield memory


def session(name: str) -> Imported:
    """A session in which a command failed, and another one got it through."""
    failed, cured = ("make test", FAILS, True), ("make rates", "ok", False)
    run = run_of(f"Speed up report {name}", failed, cured, ("make test", "ok", False), run_id=name)
    return Imported(run, exit_codes={"c0": 2, "c1": 0, "c2": 0})


def a_week(bank: ReasoningBank, folder: Path) -> None:
    """Two sessions, in the second of which the cure was told."""
    shop = bank.scoped(SHOP)
    parts, learning = Parts(extractor=CureExtractor()), Learning(domain="code")
    with connect(
        folder / "bank.db", scope="coding", parts=parts, learning=learning, evidence=Evidence(holdout=None)
    ) as own:
        cures = Cures(own, folder)
        for name in ("s-1", "s-2"):
            if name == "s-2":
                asked = RetrieveOptions(own=True)
                cures.tell(SHOP, "make test", FAILS, lambda _: True, session=name, host="codex", asked=asked)
            one = session(name)
            shop.learn(one.trajectory, outcome="success" if name == "s-1" else None)
            cures.learn(SHOP, [one], session=name, host="codex")


def test_the_week_is_counted_by_what_it_saw_learned_showed_helped_and_cost(bank: ReasoningBank, tmp_path: Path) -> None:
    a_week(bank, tmp_path)
    told = week_of(bank, NOW - timedelta(days=7))
    assert (told.repositories, told.sessions, told.tasks) == ({SHOP}, {"s-1", "s-2"}, 2)
    assert told.outcomes == {"success by checks": 1, "unknown": 1}
    assert (told.cures, told.cures_shown, told.kept_back) == (1, 1, 0)
    assert told.through == {"told": 1, "told went through": 1}
    assert told.tokens_shown > 20
    lines = told.lines("bank.db")
    assert [line.split()[0] for line in lines] == ["saw", "learned", "showed", "helped", "waits", "cost"]
    assert lines[0] == "saw      2 sessions with 2 tasks in 1 repository: 1 success by checks, 1 unknown"
    assert lines[3] == "helped   failed commands, told: 1 of 1 went through"


def test_what_waits_is_what_the_agents_are_not_shown(bank: ReasoningBank, tmp_path: Path) -> None:
    a_week(bank, tmp_path)
    for trusted, waits in ((False, None), (True, 1)):
        bank.scoped(SHOP).retrieve("Speed up report s-3", own=True, trusted=trusted)
        assert week_of(bank, NOW - timedelta(days=7)).waiting.get(f"{SHOP}/@cures") == waits


def test_what_was_before_the_week_does_not_count(bank: ReasoningBank, tmp_path: Path) -> None:
    a_week(bank, tmp_path)
    told = week_of(bank, NOW + timedelta(days=1))
    assert (told.tasks, told.cures, told.cures_shown, told.tokens_shown) == (0, 0, 0, 0)


def test_the_command_prints_it_and_names_what_waits(bank: ReasoningBank, tmp_path: Path) -> None:
    a_week(bank, tmp_path)
    with connect(":memory:", scope=SHOP, evidence=Evidence(holdout=None)) as other:
        other.learn(session("s-9").trajectory, outcome="success")
        other.admin.export(tmp_path / "bob.jsonl")
    bank.scoped(SHOP).admin.import_(tmp_path / "bob.jsonl")
    bank.scoped(SHOP).lessons.note("The form is in the drawer.", task="Ship a parcel")  # of an agent: in quarantine
    words = ("week", "--bank", tmp_path / "bank.db")
    printed = lessonbank_cli(*words, cwd=tmp_path).stdout
    assert f"lessonbank review {tmp_path / 'bank.db'} --scope {SHOP}" in printed.replace("\n", " ")
    told = json.loads(lessonbank_cli(*words, "--json", cwd=tmp_path).stdout)
    assert told["cures_shown"] == 1
    assert told["waiting"] == {SHOP: 2}
    assert told["sessions"] == ["s-1", "s-2"]


def test_sessions_in_a_scope_that_a_person_named_count(bank: ReasoningBank) -> None:
    bank.scoped("acme/support").learn("Done.", task="Refund an order", outcome="success")
    bank.scoped("acme/team").learn(session("s-1").trajectory, outcome="success", metadata={"host": "codex"})
    told = week_of(bank, NOW - timedelta(days=7))
    assert (told.repositories, told.sessions, told.tasks) == ({"acme/team"}, {"s-1"}, 1)


def test_a_bank_that_no_coding_agent_used_says_so_and_what_to_ask_in_its_place(bank: ReasoningBank) -> None:
    bank.scoped("shop/support").retrieve("Refund an order")
    told = week_of(bank, NOW - timedelta(days=7)).lines("bank.db")
    assert len(told) == 2
    assert told[0].startswith("no coding agent used this bank")
    assert "lessonbank lift --bank bank.db" in told[1]
