"""Records of format 10 had facts of the bank in their metadata: an upgrade keeps each of them, and whatever else stood
there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from any_text import any_text
from hypothesis import given, settings
from hypothesis import strategies as st

import lessonbank
from lessonbank import Experience, Lesson, Trajectory
from lessonbank.contracts.records import (
    Add,
    Duplicate,
    Json,
    Neighbour,
    ProposedChange,
    Submission,
    Verdict,
)
from lessonbank.contracts.records.format_10 import upgrade_change, upgrade_experience, upgrade_run

pytestmark = pytest.mark.full

ID = st.sampled_from(["l1", "l2", "l3", "r1"])
TEXT = any_text(max_size=8)
LESSON = st.builds(Lesson, id=ID, title=st.just("T"), content=st.just("C"), approved=st.booleans())
OWN = st.dictionaries(st.sampled_from(["user", "seconds", "model", "n"]), TEXT | st.integers(), max_size=3)
DUPLICATE = st.builds(
    Duplicate, title=TEXT, evidence=st.lists(TEXT, max_size=2).map(tuple), why=TEXT, lesson=st.none() | LESSON
)
NEIGHBOUR = st.builds(Neighbour, lesson_id=ID, why=TEXT)
VERDICT = st.builds(Verdict, outcome=st.sampled_from(["success", "failure"]), reason=TEXT)
RUN = st.builds(
    Trajectory,
    task=st.just("t"),
    tools=st.lists(TEXT | st.just({"name": "f"}), max_size=2).map(tuple),
    parent_run=st.none() | ID,
    recall_id=st.none() | ID,
    unfinished=st.booleans(),
    imported=st.booleans(),
    submission=st.none()
    | st.builds(
        Submission,
        verdict=st.none() | VERDICT,
        outcome=st.none() | st.just("failure"),
        reward=st.none() | st.floats(0, 1),
        recall_id=st.none() | ID,
        run_ids=st.lists(ID, max_size=2).map(tuple),
        identity=st.just("key:ana"),
        writer=st.just("ana"),
        seal=st.just("5ea1"),
    ),
    metadata=OWN,
)
EXPERIENCE = st.builds(
    Experience,
    scope=st.just("s"),
    task=st.just("t"),
    repeats=st.dictionaries(ID, st.lists(DUPLICATE, max_size=2).map(tuple), max_size=2),
    not_recognised=st.dictionaries(ID, NEIGHBOUR, max_size=2),
    not_merged=st.dictionaries(ID, NEIGHBOUR, max_size=2),
    merged=st.dictionaries(ID, st.lists(ID, max_size=3).map(tuple), max_size=2),
    proposal=st.none()
    | st.builds(ProposedChange, change=st.sampled_from(["edit", "retire"]), lesson_id=ID, was=st.just("d1ge57")),
    pending=st.booleans(),
    imported=st.booleans(),
    template=st.none() | TEXT,
    recall_id=st.none() | ID,
    metadata=OWN,
)


def run_of_format_10(run: Trajectory) -> dict[str, Any]:
    """The run as format 10 kept it."""
    fields = run.model_dump(mode="json")
    told = {name: fields.pop(name) for name in ("tools", "parent_run", "recall_id", "unfinished", "imported")}
    metadata = fields["metadata"] | {name: value for name, value in told.items() if value}
    if (noted := fields.pop("submission")) is not None:
        renamed = {"recall_id": "recall", "run_ids": "runs"}
        kept = {renamed.get(name, name): part for name, part in noted.items() if part not in (None, [])}
        if run.submission and run.submission.verdict:
            kept["verdict"] = run.submission.verdict.model_dump(mode="json", exclude_defaults=True)
        metadata["lessonbank_submitted"] = kept
    return {**fields, "metadata": metadata}


def experience_of_format_10(experience: Experience) -> dict[str, Any]:
    """The experience as format 10 kept it."""
    fields = experience.model_dump(mode="json")
    names = ("repeats", "not_recognised", "not_merged", "merged", "pending", "imported", "template", "recall_id")
    told = {name: value for name in names if (value := fields.pop(name)) not in (None, False, {})}
    for name in {"not_recognised", "not_merged"} & told.keys():
        told[name] = {id: {"with": one["lesson_id"], "why": one["why"]} for id, one in told[name].items()}
    for entry in [one for several in told.get("repeats", {}).values() for one in several]:
        del entry["is_general"]
        if entry["lesson"] is None:
            del entry["lesson"]
    if (proposal := fields.pop("proposal")) is not None:
        told |= {f"{proposal['change']}s": proposal["lesson_id"], "was": proposal["was"]}
    return {**fields, "metadata": fields["metadata"] | told}


@settings(max_examples=settings().max_examples * 2, deadline=None)
@given(RUN)
def test_a_run_keeps_every_fact(run: Trajectory) -> None:
    old = run_of_format_10(run)
    assert Trajectory.model_validate(upgrade_run(old)) == run
    assert upgrade_run(upgrade_run(old)) == upgrade_run(old)


@settings(max_examples=settings().max_examples * 2, deadline=None)
@given(EXPERIENCE)
def test_an_experience_keeps_every_fact_alone_and_in_a_change(experience: Experience) -> None:
    old = experience_of_format_10(experience)
    assert Experience.model_validate(upgrade_experience(old)) == experience
    assert upgrade_experience(upgrade_experience(old)) == upgrade_experience(old)
    change = {"kind": "add", "experience": old}
    assert Add.model_validate(upgrade_change(change)) == Add(experience=experience)
    assert change == {"kind": "add", "experience": experience_of_format_10(experience)}, "the old one stays as it is"


KEYS = (
    *("repeats", "not_recognised", "not_merged", "merged", "pending", "imported", "template", "recall_id", "tools"),
    *("edits", "retires", "was", "unfinished", "lessonbank_submitted", "parent_run", "user"),
)
PARTS = (
    *("title", "evidence", "why", "lesson", "with", "verdict", "outcome", "reward", "recall", "runs", "identity"),
    *("writer", "seal", "other"),
)
SCALAR = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["a", "b", "success"])
)
JSON: st.SearchStrategy[Json] = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(PARTS), inner, max_size=4),
    max_leaves=12,
)


def scalars(value: Json) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from scalars(one)
    else:
        yield json.dumps(value)


@settings(max_examples=settings().max_examples * 4, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6))
def test_whatever_stands_under_these_keys_is_still_there_and_can_be_read(metadata: dict[str, Json]) -> None:
    for kind, fields, upgrade in (
        (Trajectory, {"task": "t"}, upgrade_run),
        (Experience, {"scope": "s", "task": "t"}, upgrade_experience),
    ):
        old = {**fields, "metadata": metadata}
        new = upgrade(old)
        kind.model_validate(new)
        assert set(scalars(metadata)) <= set(scalars(new))
        assert upgrade(new) == new
        if not metadata.keys() - {"user"}:
            assert new == old


@pytest.mark.parametrize("metadata", [{}, {"user": "u"}, {"template": "x", "file": "CLAUDE.md", "origin": "mem0"}])
def test_what_a_caller_says_of_a_run_or_a_recall_stays_where_it_is(metadata: dict[str, Json]) -> None:
    for fields in ({"task": "t", "metadata": metadata}, {"task": "t"}):
        assert upgrade_run(fields) == fields
    assert upgrade_change({"kind": "retire", "lesson_ids": ["l"]}) == {"kind": "retire", "lesson_ids": ["l"]}


def test_a_record_of_today_does_not_change() -> None:
    own: dict[str, Json] = {"unfinished": True, "pending": True, "imported": True, "repeats": {"l": []}, "edits": "l"}
    run = Trajectory(task="t", metadata=own).model_dump(mode="json")
    experience = Experience(scope="s", task="t", metadata=own).model_dump(mode="json")
    assert (upgrade_run(run), upgrade_experience(experience)) == (run, experience)


@pytest.mark.parametrize("reward", [10**400, -(10**400), float("inf"), True], ids=["huge", "low", "endless", "flag"])
def test_a_reward_that_is_no_number_stays_where_it_was(reward: Any) -> None:
    old = {"task": "t", "metadata": {"lessonbank_submitted": {"reward": reward}}}
    assert upgrade_run(old) == old


def test_an_entry_that_nobody_can_read_still_counts_as_one_repeat() -> None:
    odd: dict[str, Json] = {"l1": [{"title": "T", "lesson": {"title": 7}}, 3], "l2": "much"}
    new = upgrade_experience({"scope": "s", "task": "t", "metadata": {"repeats": odd}})
    assert new["repeats"] == {"l1": [{"title": "T"}, {}], "l2": []}
    assert new["metadata"] == {"repeats": {"l1": [{"lesson": {"title": 7}}, 3], "l2": "much"}}


def test_what_was_imported_stays_so_whatever_its_mark_says() -> None:
    for mark in (True, False, None, "a file"):
        for upgrade in (upgrade_run, upgrade_experience):
            assert upgrade({"task": "t", "metadata": {"imported": mark}})["imported"] is True


# --- an export of that time -------------------------------------------------------------------------------------------


def export(path: Path, *records: tuple[str, dict[str, Any]], version: int = 1) -> Path:
    lines = [json.dumps({"kind": kind, "record": record}) + "\n" for kind, record in records]
    head = json.dumps({"format": "lessonbank-export", "version": version, "scope": "s"}) + "\n"
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    end = json.dumps({"end": True, "records": len(lines), "sha256": digest}) + "\n"
    path.write_text("".join([head, *lines, end]), encoding="utf-8")
    return path


def old_records() -> Iterator[tuple[str, dict[str, Any]]]:
    """What a bank of that time exported: a recall, a run that waits, one that was not finished, and experiences."""
    yield "recall", {"id": "recall-1", "scope": "s", "task": "Pay it", "metadata": {"user": "u-1"}}
    submitted = {"verdict": {"outcome": "success"}, "recall": "recall-1", "identity": "key:eve"}
    for id, metadata in {
        "waits": {"user": "u-1", "tools": ["pay(id: string)"], "lessonbank_submitted": submitted},
        "begun": {"unfinished": True, "recall_id": "recall-1", "parent_run": "waits"},
        "done": {"template": "pay"},
    }.items():
        yield "trajectory", {"id": id, "task": "Pay it", "answer": "Paid.", "metadata": metadata}
    first = {"id": "first", "title": "Look first", "content": "Look at the bill before you pay it."}
    again = {**first, "id": "again", "content": "Read the bill, then pay it.", "state": "active", "approved": True}
    attempt = {"trajectory_id": "done", "verdict": {"outcome": "success"}, "n_steps": 0}
    told = {"title": first["title"], "evidence": ["step 1"], "why": "the same moves", "lesson": again}
    metadata = {"user": "u-1", "template": "pay", "recall_id": "recall-1", "repeats": {"first": [told]}}
    yield "experience", {"id": "e1", "scope": "s", "task": "Pay it", "lessons": [first], "metadata": {"template": 3}}
    yield "experience", {"id": "e2", "scope": "s", "task": "Pay two", "attempts": [attempt], "metadata": metadata}
    merged = {"id": "both", "title": "Look", "content": "Look at each bill.", "provenance": {"method": "merge"}}
    why = {"with": "first", "why": "the model failed: down"}
    metadata = {"merged": {"both": ["first"]}, "not_merged": {"both": why}, "not_recognised": {"both": why}}
    yield "experience", {"id": "e3", "scope": "s", "task": "Pay it", "lessons": [merged], "metadata": metadata}
    words = {"id": "edit", "title": "Look first", "content": "Look.", "state": "quarantined"}
    words["provenance"] = {"writer": "file", "method": "file"}
    metadata = {"imported": True, "origin": "file", "file": "CLAUDE.md", "edits": "first", "was": "0"}
    yield "experience", {"id": "e4", "scope": "s", "task": "Pay it", "lessons": [words], "metadata": metadata}


def test_an_export_of_an_earlier_release_brings_all_that_it_says(tmp_path: Path) -> None:
    with lessonbank.connect(":memory:", scope="s", embedder="lexical") as bank:
        assert bank.admin.import_(export(tmp_path / "old.jsonl", *old_records())) == 8
        runs = {run.trajectory.id: run for run in bank.runs.list()}
        assert {id: run.status for id, run in runs.items()} == {
            "waits": "pending",
            "begun": "unfinished",
            "done": "learned",
        }
        assert runs["waits"].trajectory.tools == ("pay(id: string)",)
        assert runs["begun"].trajectory.parent_run == "waits"
        assert [run.metadata for run in runs.values()] == [{"template": "pay"}, {}, {"user": "u-1"}]
        assert all(run.trajectory.imported for run in runs.values())
        assert [recall.metadata for recall in bank.recalls.list()] == [{"user": "u-1"}]
        (repeat,) = bank.lessons.repeats("first")
        assert (repeat.experience_id, repeat.why) == ("e2", "the same moves")
        assert repeat.lesson
        assert (repeat.lesson.id, repeat.lesson.state, repeat.lesson.approved) == ("again", "probation", False)
        assert bank.lessons.experience("first").metadata == {"template": 3}
        both = bank.lessons.experience("both")
        assert (both.merged, both.metadata) == ({"both": ("first",)}, {})
        assert both.not_merged == both.not_recognised
        (proposal,) = bank.lessons.proposals()
        assert (proposal.change, proposal.of, proposal.reason) == ("edit", "first", "read in CLAUDE.md")
        assert bank.admin.verify() == ()


def test_an_export_of_an_earlier_release_says_nothing_of_how_runs_were_submitted(tmp_path: Path) -> None:
    with lessonbank.connect(":memory:", scope="s", embedder="lexical") as bank:
        mine = bank.retrieve("Pay it")
        submitted = {"verdict": {"outcome": "success", "source": "human"}, "recall": mine.id}
        run = {"id": "r", "task": "Pay it", "metadata": {"lessonbank_submitted": submitted, "recall_id": mine.id}}
        owner = {"scope": "s", "task": "Pay it", "metadata": {"recall_id": mine.id, "pending": True}}
        bank.admin.import_(export(tmp_path / "old.jsonl", ("trajectory", run), ("experience", owner)))
        bank.runs.retry()
        assert bank.recalls.list(settled=True) == ()
        kept = bank.runs.get("r")
        assert (kept.verdict.outcome, kept.trajectory.recall_id, kept.metadata) == ("unknown", None, {})


def test_in_an_export_of_today_these_keys_of_metadata_are_the_callers_own(tmp_path: Path) -> None:
    own: dict[str, Any] = {"unfinished": True, "tools": ["x()"]}
    run = Trajectory(id="r", task="Pay it", metadata=own).model_dump(mode="json")
    with lessonbank.connect(":memory:", scope="s", embedder="lexical") as bank:
        bank.admin.import_(export(tmp_path / "new.jsonl", ("trajectory", run), version=2))
        kept = bank.runs.get("r")
        assert (kept.status, kept.metadata, kept.trajectory.tools) == ("pending", own, ())
