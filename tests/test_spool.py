"""A run that the bank could not take in time waits on this machine, and is handed in once, in order, when it can."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lessonbank
from lessonbank import Evidence, File, Safety, Trajectory
from lessonbank._base.sync_bridge import run_sync
from lessonbank.bank import spool as spools
from lessonbank.bank.spool import Spool
from lessonbank.errors import NotFound
from lessonbank.wiring._stores import spool_place

pytestmark = pytest.mark.full

KEY = "AKIA" + "IOSFODNN7EXAMPLE"
TASK = "Ship a parcel to Rome"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "lessonbank"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with connected(tmp_path / "bank.db") as bank:
        bank.lessons.add(title="Weigh it", content="Weigh it.", task=TASK, by="Ana")
    return tmp_path / "bank.db"


def connected(file: Path) -> lessonbank.ReasoningBank:
    return lessonbank.connect(file, scope="t", embedder="lexical", evidence=Evidence(holdout=None))


@contextmanager
def held(file: Path) -> Generator[None]:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


def spooled(file: Path, *runs: str, metadata: dict[str, object] | None = None) -> None:
    """Runs of an agent while another program writes to the file."""
    with connected(file) as bank, held(file):
        for run in runs:
            with bank.attempt(TASK, patience=0.5, metadata=metadata) as attempt:  # type: ignore[arg-type]
                attempt.finish(Trajectory(id=run, task=TASK, answer=f"key {KEY}"), outcome="success")
            assert "it waits on this machine" in " ".join(attempt.notes)


def ids(bank: lessonbank.ReasoningBank) -> list[str]:
    return [run.trajectory.id for run in bank.runs.list()][::-1]


def test_the_next_process_hands_in_what_waits_in_order_and_once(file: Path, state: Path) -> None:
    spooled(file, "run-1", "run-2", metadata={"user": "u-17"})
    (place,) = state.iterdir()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert KEY.encode() not in place.read_bytes()
    with connected(file) as bank:
        assert "2 runs wait on this machine" in bank.admin.storage()["spool"]
        recall = bank.retrieve(TASK)
        bank.drain()
        assert ids(bank) == ["run-1", "run-2"]
        kept = bank.runs.get("run-1")
        assert (kept.status, kept.verdict and kept.verdict.outcome) == ("learned", "success")
        assert kept.metadata["user"] == "u-17"
        assert kept.recall_id not in (None, recall.id)
        assert "0 runs wait" in bank.admin.storage()["spool"]
    assert b"run-1" not in place.read_bytes()


def test_what_waits_for_a_key_that_ended_waits_on(file: Path) -> None:
    with connected(file) as bank:
        writer = bank.scoped(writer="ana", key=bank.admin.add_writer("ana"))
        with held(file), writer.attempt(TASK, patience=0.5) as attempt:
            attempt.finish(answer="shipped", outcome="success")
        bank.admin.add_writer("ana")
        writer.retrieve(TASK)
        writer.drain()
        place = writer.aio._outbox.spool  # pyright: ignore[reportPrivateUsage]
        assert place
        assert "1 runs wait on this machine" in place.describe()
        assert "0 were dropped" in place.describe()


def test_a_run_that_meets_any_error_waits_on_and_holds_up_no_other(file: Path) -> None:
    with connected(file) as bank, held(file):
        for run in ("run-1", "run-2"):
            with bank.attempt(TASK, patience=0.5) as attempt:
                attempt.finish(Trajectory(id=run, task=TASK, answer=f"shipped {run}"), outcome="success")

    def redactor(text: str) -> str:
        assert "run-1" not in text
        return text

    with lessonbank.connect(file, scope="t", embedder="lexical", safety=Safety(redact=redactor)) as bank:
        bank.retrieve(TASK)
        bank.drain()
        assert ids(bank) == ["run-2"]
        assert "1 runs wait on this machine" in bank.admin.storage()["spool"]


def test_a_file_from_which_all_was_handed_in_is_not_written_any_more(file: Path, state: Path) -> None:
    spooled(file, "run-1")
    with connected(file) as bank:
        bank.retrieve(TASK)
        bank.drain()
        (place,) = state.iterdir()
        before = place.read_bytes()
        for _ in range(3):
            bank.retrieve(TASK)
        bank.drain()
        assert place.read_bytes() == before
        assert place.stat().st_size > 0


def test_a_file_that_cannot_be_read_costs_no_call(file: Path, state: Path) -> None:
    spooled(file, "run-1")
    (place,) = state.iterdir()
    place.write_bytes(b"no database" * 100)
    with connected(file) as bank:
        assert bank.retrieve(TASK).text


def test_a_run_that_was_erased_meanwhile_is_dropped_and_the_drop_is_counted(file: Path) -> None:
    spooled(file, "run-1")
    with connected(file) as bank:
        bank.learn(Trajectory(id="run-1", task=TASK), outcome="success")  # its answer was lost on the way
        run_sync(bank.aio.store.purge([("trajectory", "run-1")], scope="t", writer="Ana", reason="asked for elsewhere"))
        bank.retrieve(TASK)
        bank.drain()
        assert ids(bank) == []
        assert "1 were dropped" in bank.admin.storage()["spool"]


@pytest.mark.parametrize("named", [{"run": "run-1"}, {"metadata": {"user": "u-17"}}, {"all": True}])
def test_a_purge_reaches_what_waits(file: Path, named: dict[str, object]) -> None:
    spooled(file, "run-1", metadata={"user": "u-17"})
    with connected(file) as bank:
        assert bank.admin.purge(**named, reason="asked for", preview=True).spooled == 1  # type: ignore[arg-type]
        assert bank.admin.purge(**named, reason="asked for", by="Ana").spooled == 1  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            bank.admin.purge(run="run-1", reason="asked for", by="Ana")
        assert "0 runs wait" in bank.admin.storage()["spool"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_purge_of_a_recall_takes_the_runs_that_wait_with_it(file: Path, waits: bool) -> None:
    """Whether the recall waits with them or the bank has it: its text is in these runs."""
    with connected(file) as bank, ExitStack() as stack:
        stack.enter_context(held(file) if waits else nullcontext())
        with bank.attempt(TASK, patience=0.5) as attempt:
            shown = attempt.recall.id
            stack.enter_context(nullcontext() if waits else held(file))
            attempt.finish([Trajectory(id=f"run-{n}", task=TASK) for n in (1, 2)], outcome="success")
    spooled(file, "run-3")
    with connected(file) as bank:
        assert "3 runs wait" in bank.admin.storage()["spool"]
        assert bank.admin.purge(recall=shown, reason="asked for", preview=True).spooled == 1
        assert bank.admin.purge(recall=shown, reason="asked for", by="Ana").spooled == 1
        assert "1 runs wait" in bank.admin.storage()["spool"]
        bank.retrieve(TASK)
        bank.drain()
        assert ids(bank) == ["run-3"]
        assert shown not in [recall.id for recall in bank.recalls.list()]


def test_a_purge_reaches_what_waits_and_what_is_kept_in_one_call(file: Path) -> None:
    spooled(file, "run-1")
    with connected(file) as bank:
        bank.learn(Trajectory(id="run-2", task=TASK), outcome="success")
        assert bank.admin.purge(run=["run-1", "run-2"], reason="asked for", preview=True).runs == ("run-1", "run-2")
        with pytest.raises(NotFound):
            bank.admin.purge(run=["run-2", "run-3"], reason="asked for", by="Ana")
        with pytest.raises(NotFound):
            bank.admin.purge(run=["run-1", "run-3"], reason="asked for", by="Ana")
        assert "1 runs wait" in bank.admin.storage()["spool"]  # all of it, or none
        erased = bank.admin.purge(run=["run-1", "run-2"], reason="asked for", by="Ana")
        assert (erased.runs, erased.spooled) == (("run-1", "run-2"), 1)
        bank.retrieve(TASK)
        bank.drain()
        assert ids(bank) == []


@pytest.mark.parametrize("waits", [True, False])
def test_of_several_runs_that_wait_together_only_those_that_are_meant_are_erased(file: Path, waits: bool) -> None:
    runs = [Trajectory(id=f"run-{n}", task=TASK, metadata={"user": f"u-{n}"}) for n in range(4)]
    with connected(file) as bank, held(file), bank.attempt(TASK, patience=0.5) as attempt:
        attempt.note("Ask for gloves.")
        attempt.finish(runs, outcome="success")
    with connected(file) as bank:
        if waits:
            preview = bank.admin.purge(run="run-0", reason="asked for", preview=True)
            erased = bank.admin.purge(run="run-0", reason="asked for", by="Ana")
            assert preview.spooled == erased.spooled == 1
            assert bank.admin.purge(metadata={"user": "u-1"}, reason="asked for", by="Ana").spooled == 1
            assert "2 runs wait" in bank.admin.storage()["spool"]
        else:
            bank.learn(runs[:2], outcome="success")
            for run in ("run-0", "run-1"):
                run_sync(bank.aio.store.purge([("trajectory", run)], scope="t", writer="Ana", reason="elsewhere"))
        bank.retrieve(TASK)
        bank.drain()
        assert ids(bank) == ["run-2", "run-3"]
        assert [run.status for run in bank.runs.list()] == ["learned"] * 2
        assert bank.lessons.list(state="quarantined") == ()
        assert "0 runs wait" in bank.admin.storage()["spool"]
        assert "0 were dropped" in bank.admin.storage()["spool"]


def test_what_the_agent_noted_waits_with_its_run_and_comes_into_the_inbox_with_it(file: Path) -> None:
    with connected(file) as bank, held(file):
        with bank.attempt(TASK, patience=0.5, metadata={"user": "u-17"}) as attempt:
            for note in ("The scale is in room 4.", f"Log in with {KEY}.", "Ask for gloves."):
                attempt.note(note)
            attempt.finish(answer="shipped", outcome="success")
        assert [note for note in attempt.notes if "inbox" in note] == []
    with connected(file) as bank:
        bank.retrieve(TASK)
        bank.drain()
        waiting = bank.lessons.list(state="quarantined")
        assert [one.title for one in waiting][::-1][0::2] == ["The scale is in room 4.", "Ask for gloves."]
        assert all(one.provenance.trajectory_ids == (attempt.run_id,) for one in waiting)
        assert KEY not in waiting[1].content
        assert [bank.lessons.experience(one.id).metadata for one in waiting] == [{"user": "u-17"}] * 3


def test_a_note_that_is_no_text_costs_itself_and_not_the_run_that_waits(file: Path) -> None:
    with connected(file) as bank, held(file), bank.attempt(TASK, patience=0.5) as attempt:
        attempt.note(None)  # type: ignore[arg-type]
        attempt.note("Ask for gloves.")
        attempt.finish(answer="shipped", outcome="success")
    assert [note for note in attempt.notes if "inbox" in note and "None" in note]
    with connected(file) as bank:
        bank.retrieve(TASK)
        bank.drain()
        assert ids(bank) == [attempt.run_id]
        assert [one.title for one in bank.lessons.list(state="quarantined")] == ["Ask for gloves."]


def test_a_block_that_ends_without_finish_says_once_where_its_run_is(file: Path) -> None:
    with connected(file) as bank, held(file), bank.attempt(TASK, patience=0.5) as attempt:
        attempt.step("weigh", "2 kg")
    assert "waits on this machine" in " ".join(attempt.notes)
    assert "kept as unfinished" not in " ".join(attempt.notes)


def test_runs_wait_apart_for_databases_of_one_name_on_two_servers_and_for_two_users() -> None:
    addresses = [
        "postgresql://db/lessons",
        "postgresql://ana@db/lessons",
        "postgresql://ben@db/lessons",
        "postgresql:///lessons?host=a.example",
        "postgresql:///lessons?host=b.example",
    ]
    assert len({spool_place(File(one)) for one in addresses}) == len(addresses)
    one, other = (spool_place(File(f"postgresql://ana:{word}@db/lessons?password={word}")) for word in ("a1", "b2"))
    assert one == other


def test_forgetting_reaches_what_waits(file: Path) -> None:
    spooled(file, "run-1")
    with connected(file) as bank:
        bank.admin.forget(days=1e-9)
        assert "0 runs wait" in bank.admin.storage()["spool"]


def test_it_can_be_switched_off(file: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONBANK_SPOOL", "0")
    with connected(file) as bank, held(file), bank.attempt(TASK, patience=0.5) as attempt:
        attempt.finish(answer="shipped", outcome="success")
    assert "the run was not kept within 0.5 seconds" in " ".join(attempt.notes)
    assert not state.exists()


def entry(run: str, *, days: float = 0.0) -> spools.Spooled:
    ended = datetime.now(UTC) - timedelta(days=days)
    runs = (Trajectory(id=run, task=TASK),)
    return spools.Spooled(call="submit", scope="t", writer="learn", runs=runs, recall=None, ended_at=ended)


def test_it_has_bounds_and_counts_what_it_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Spool.of("/bank.db", None)
    assert place
    monkeypatch.setattr(spools, "MOST_BYTES", 3 * len(entry("run-1").model_dump_json()))
    assert [place.put(entry(f"run-{n}", days=8 if n == 0 else 0)) for n in range(4)] == [True, True, True, False]
    assert place.claim()
    assert not place.claim()
    found = place.next(0)
    assert found
    assert found[1]
    assert found[1].runs[0].id == "run-1"
    assert "2 runs wait" in place.describe()
    assert "2 were dropped" in place.describe()


def test_who_was_slow_ends_no_claim_that_another_process_took_over(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Spool.of("/bank.db", None)
    assert place
    place.put(entry("run-1"))
    monkeypatch.setattr(spools, "_CLAIMED", -1.0)
    slow = place.claim()
    monkeypatch.setattr(spools, "_CLAIMED", 60.0)
    other = place.claim()
    assert not place.claim(slow)
    place.release(slow)
    assert not place.claim()
    place.release(other)
    assert place.claim()


def test_what_cannot_be_read_goes_by_its_age_and_not_with_a_lesson_and_runs_are_counted() -> None:
    place = Spool.of("/bank.db", None)
    assert place
    place.put(entry("run-1").model_copy(update={"runs": tuple(Trajectory(task=TASK) for _ in range(3))}))
    with sqlite3.connect(place.path) as file:
        file.execute("INSERT INTO runs (at, scope, entry) VALUES (?, 't', '{}')", (datetime.now(UTC).timestamp(),))
    file.close()
    assert "4 runs wait" in place.describe()
    assert place.erase("t", ids=()) == []
    assert place.erase("t", before=datetime.now(UTC) - timedelta(days=1)) == []
    assert place.erase("t", ids=["run-9"], preview=True) == [frozenset()]
    assert len(place.erase("t", before=datetime.now(UTC) + timedelta(days=1))) == 2


def test_another_key_and_another_address_have_files_of_their_own() -> None:
    made = [Spool.of("a", None), Spool.of("b", None), Spool.of("a", "key")]
    assert len({one.path for one in made if one}) == 3
