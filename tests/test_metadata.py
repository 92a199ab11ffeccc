"""Metadata: what belongs to one person can be found and erased, also where nothing was learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, ReasoningBank, Step, Trajectory
from lessonbank.errors import NotFound, UsageError

MAIL = "jane.roe@example.com"
JANE: dict[str, Any] = {"user": "u-17"}
JOHN: dict[str, Any] = {"user": "u-18"}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    evidence = Evidence(holdout=None)
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical", evidence=evidence) as opened:
        yield opened


def run(id: str, task: str = "Cancel the order") -> Trajectory:
    return Trajectory(id=id, task=task, steps=(Step(action="cancel", observation="error: no reason given"),))


def ids(runs: Any) -> set[str]:
    return {one.trajectory.id for one in runs}


def test_metadata_are_kept_on_every_run_and_recall_whichever_call_made_them(bank: ReasoningBank) -> None:
    recall = bank.retrieve("Cancel the order", metadata=JANE)
    bank.learn(run("learned"), recall=recall, outcome="failure", metadata=JANE)
    bank.submit(run("submitted"), outcome="failure", metadata=JANE)
    with bank.attempt("Cancel the order", metadata=JANE) as attempt:
        attempt.finish(run("attempted"), outcome="failure")
    with bank.attempt("Cancel the order", metadata=JANE) as attempt:
        attempt.finish(run("later"), outcome="failure", wait=False)
    with bank.attempt("Cancel the order", metadata=JANE) as unfinished:
        unfinished.step("look")
    with pytest.raises(ZeroDivisionError), bank.attempt("Cancel the order", metadata=JANE):
        1 / 0  # noqa: B018
    bank.learn(run("john"), outcome="failure", metadata=JOHN)
    found = bank.runs.search(metadata=JANE)
    assert {"learned", "submitted", "attempted", "later"} < ids(found)
    assert len(found) == 6
    assert len(bank.recalls.search(metadata=JANE)) == 5
    assert ids(bank.runs.search(metadata=JOHN)) == {"john"}
    assert all(one.metadata["user"] == "u-17" for one in found)


def test_a_run_keeps_its_own_metadata_beside_the_callers(bank: ReasoningBank) -> None:
    own = run("one").model_copy(update={"metadata": {"template": "cancel", "user": "nobody"}})
    bank.learn(own, outcome="failure", metadata=JANE)
    assert bank.runs.get("one").metadata == {"template": "cancel", "user": "u-17"}


@pytest.mark.full
@pytest.mark.parametrize(
    "wrong",
    [
        "u-17",
        3,
        ["user"],
        {3: "x"},
        {"user": object()},
        {"at": float("nan")},
        0,
        False,
        "",
        [],
        ["ab"],
        {"ab"},
        [("user", "u-17")],
    ],
)
def test_metadata_that_json_cannot_hold_are_refused_in_one_sentence(bank: ReasoningBank, wrong: Any) -> None:
    for call in (
        lambda: bank.retrieve("Cancel the order", metadata=wrong),
        lambda: bank.learn(run("one"), outcome="failure", metadata=wrong),
        lambda: bank.submit(run("one"), outcome="failure", metadata=wrong),
    ):
        with pytest.raises(UsageError, match="metadata") as raised:
            call()
        assert "\n" not in str(raised.value)
    assert (bank.admin.counts().trajectories, bank.admin.counts().recalls) == (0, 0)


def test_a_preview_names_what_a_purge_would_erase_and_erases_nothing(bank: ReasoningBank) -> None:
    recall = bank.retrieve("Cancel the order", metadata=JANE)
    learned = bank.learn(run("jane"), recall=recall, outcome="failure", metadata=JANE)
    bank.learn(run("john", "Ship the parcel"), outcome="failure", metadata=JOHN)
    before = bank.admin.counts()
    preview = bank.admin.purge(metadata=JANE, reason="erasure request", by="Ana", preview=True)
    assert (preview.runs, preview.recalls, preview.empty) == (("jane",), (recall.id,), False)
    assert preview.lessons == tuple(lesson.id for lesson in learned.lessons)
    assert bank.admin.counts() == before
    assert bank.admin.purge(metadata=JANE, reason="erasure request", by="Ana") == preview
    assert ids(bank.runs.list()) == {"john"}
    assert bank.recalls.list() == ()
    assert all(lesson.id not in preview.lessons for lesson in bank.lessons.list(retired=True))
    assert bank.lessons.list()
    last = bank.history.list()[-1]
    assert (last.writer, last.entry.kind) == ("Ana", "purge")
    assert bank.admin.purge(metadata=JANE, reason="again").empty


def test_an_address_as_metadata_still_finds_its_records_although_secrets_are_redacted(bank: ReasoningBank) -> None:
    told: dict[str, Any] = {"user": MAIL}
    recall = bank.retrieve(f"Write to {MAIL}", metadata=told)
    assert MAIL not in recall.task
    bank.learn(run("jane", f"Write to {MAIL}"), recall=recall, outcome="failure", metadata=told)
    bank.submit(run("later", f"Write to {MAIL}"), outcome="failure", metadata=told)
    assert ids(bank.runs.search(metadata=told)) == {"jane", "later"}
    assert [one.id for one in bank.recalls.search(metadata=told)] == [recall.id]


def test_nothing_of_what_was_purged_by_metadata_is_left_in_the_bytes_of_the_file(tmp_path: Path) -> None:
    path, told = tmp_path / "bank.db", {"user": MAIL}
    evidence = Evidence(holdout=None)
    with lessonbank.connect(path, scope="acme", embedder="lexical", evidence=evidence) as bank:
        recall = bank.retrieve("Repair the marmalade sluice", metadata=told)
        bank.learn(run("jane", "Repair the marmalade sluice"), recall=recall, outcome="failure", metadata=told)
        bank.retrieve("Polish the quicksilver trombone", metadata=told)
        with bank.attempt("Unfold the tangerine ladder", metadata=told) as attempt:
            attempt.step("unfold the tangerine ladder")
        bank.learn(run("john"), outcome="failure", metadata=JOHN)
        words = (MAIL, "marmalade", "quicksilver", "tangerine")
        assert b"marmalade" in everything(tmp_path)  # the words of tasks are kept as they are
        erased = bank.admin.purge(metadata=told, reason="erasure request", by="Ana")
        assert (len(erased.runs), len(erased.recalls)) == (2, 3)
        assert [word for word in words if word.encode() in everything(tmp_path)] == []
        assert bank.admin.verify() == ()
        assert ids(bank.runs.list()) == {"john"}
        bank.admin.export(tmp_path / "export.jsonl")  # what the bank packs is readable here
    assert [word for word in words if word.encode() in everything(tmp_path)] == []


def everything(folder: Path) -> bytes:
    """The bytes of all files of a folder: the bank, its log and its index."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def test_purge_takes_ids_or_metadata_or_everything_and_nothing_empty(bank: ReasoningBank) -> None:
    bank.learn(run("one"), outcome="failure", metadata=JANE)
    wrong: list[dict[str, Any]] = [{}, {"metadata": {}}, {"metadata": JANE, "all": True}]
    for told in (*wrong, {"run": "one", "metadata": JANE}, {"run": "one", "all": True}):
        with pytest.raises(UsageError, match="exactly one"):
            bank.admin.purge(reason="no", **told)
    for ids in ([], (), [""], ["one", 3], {"one"}, 3):
        with pytest.raises(UsageError, match="run= takes an id"):
            bank.admin.purge(run=ids, reason="no")  # type: ignore[arg-type]
    assert bank.admin.counts().trajectories == 1


def test_records_of_several_kinds_are_erased_together_or_not_at_all(bank: ReasoningBank) -> None:
    by_hand = bank.lessons.add(title="Ask first", content="Ask why.", task="Cancel", by="Ana")
    other = bank.lessons.add(title="Ask twice", content="Ask twice why.", task="Return", by="Ana")
    merged = bank.lessons.merge(by_hand.id, other.id, title="Ask", content="Ask and ask why.", by="Ana")
    for name in ("one", "two", "three"):
        bank.learn(run(name, f"Ship parcel {name}"), outcome="failure")
    kept = bank.lessons.list(text="three")
    recall = bank.retrieve("Where is my parcel?")
    these: dict[str, Any] = {"run": ["one", "two", "one"], "lesson": by_hand.id, "recall": (recall.id,)}
    counts, last = bank.admin.counts(), bank.history.list()[-1]
    with pytest.raises(NotFound):
        bank.admin.purge(**these | {"recall": [recall.id, "nothing"]}, reason="asked")
    assert (bank.admin.counts(), bank.history.list()[-1]) == (counts, last)
    preview = bank.admin.purge(**these, reason="asked", preview=True)
    assert (preview.runs, preview.recalls) == (("one", "two"), (recall.id,))
    assert {by_hand.id, merged.id} < set(preview.lessons), "what was merged from a lesson goes with it"
    assert other.id not in preview.lessons
    assert bank.admin.counts() == counts
    assert bank.admin.purge(**these, reason="asked", by="Ana") == preview
    assert ids(bank.runs.list()) == {"three"}
    assert bank.recalls.list() == ()
    assert {one.id for one in bank.lessons.list(retired=True)} == {other.id, *(one.id for one in kept)}
    assert bank.admin.verify() == ()


def test_what_was_written_by_hand_goes_also_where_runs_have_the_same_metadata(bank: ReasoningBank) -> None:
    lesson = bank.lessons.add(title="Ask Jane", content="Ask Jane why.", task="Cancel", by="Ana", metadata=JANE)
    bank.learn(run("jane", "Ship the parcel"), outcome="failure", metadata=JANE)
    erased = bank.admin.purge(metadata=JANE, reason="erasure request")
    assert lesson.id in erased.lessons
    assert bank.lessons.list(retired=True) == ()


def test_metadata_survive_export_and_import(bank: ReasoningBank, tmp_path: Path) -> None:
    recall = bank.retrieve("Cancel the order", metadata=JANE)
    bank.learn(run("jane"), recall=recall, outcome="failure", metadata=JANE)
    bank.admin.export(tmp_path / "bank.jsonl")
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical") as other:
        other.admin.import_(tmp_path / "bank.jsonl")
        assert ids(other.runs.search(metadata=JANE)) == {"jane"}
        assert [one.id for one in other.recalls.search(metadata=JANE)] == [recall.id]


def test_no_key_of_a_callers_metadata_means_anything_to_the_bank(bank: ReasoningBank) -> None:
    own: dict[str, Any] = {"pending": True, "unfinished": True, "imported": True, "recall_id": "r", "parent_run": "p"}
    own |= {"lessonbank_submitted": {"outcome": "failure"}, "tools": ["x()"], "repeats": {"l": []}, "edits": "l"}
    own |= {"submitted": {"outcome": 3, "nothing": 1}}
    learned = bank.learn(run("odd"), outcome="success", metadata=own)
    assert learned.experience
    assert (learned.experience.imported, learned.experience.pending, learned.experience.metadata) == (False, False, {})
    kept = bank.runs.get("odd")
    assert (kept.status, kept.verdict.outcome, kept.recall_id, kept.metadata) == ("learned", "success", None, own)
    assert kept.trajectory == run("odd").model_copy(update={"metadata": own})
    added = bank.lessons.add(title="Weigh", content="Weigh it first.", task="Post it", by="Ana", metadata=own)
    assert [one.id for one in bank.lessons.list(metadata={"edits": "l"})] == [added.id]
    assert bank.lessons.proposals() == ()
    assert bank.lessons.list(recall="r") == ()


def test_a_lesson_that_a_rollback_took_out_can_still_be_erased(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        lesson = bank.lessons.add(
            title="Ask Jane Roe", content="Ask Jane Roe before you ship.", task="Ship it", by="Ana"
        )
        bank.history.rollback(to=0, reason="taken back")
        assert bank.admin.purge(lesson=lesson.id, reason="asked to", by="Ana").lessons == (lesson.id,)
        assert "Jane" not in repr(bank.history.list())
