"""Lessons leave the bank as files that people use, and come in again as proposals that a person decides."""

from __future__ import annotations

import logging
import os
import stat
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lessonbank
from lessonbank import Evidence, Lesson, ReasoningBank, Safety, Step, Trajectory
from lessonbank.bank.views.selection import rank
from lessonbank.contracts.records import Experience
from lessonbank.errors import Conflict, FormatError, NotFound, UsageError
from lessonbank.evidence.effects import Estimate, LessonLift
from lessonbank.files import disk

full = pytest.mark.full
TASK = "Cancel the pending order"
MINE = "# Shop\r\n\r\nUse tabs.\xff".encode(
    "latin-1"
)  # no UTF-8, and lines that end as on Windows: none of our business


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    with lessonbank.connect(
        tmp_path / "bank.db", scope="acme", embedder="lexical", evidence=Evidence(holdout=None)
    ) as opened:
        yield opened


def told(bank: ReasoningBank, title: str = "Ask for the reason first", task: str = TASK, more: str = "") -> Lesson:
    return bank.lessons.add(
        title=title,
        content=f"{title}, before the cancel tool is called.{more}",
        when="It is pending.",
        task=task,
        by="Ana",
    )


def learned(bank: ReasoningBank, task: str) -> Lesson:
    """A lesson on probation."""
    steps = (Step(action="send the parcel", observation="error: the customs form is missing"),)
    return bank.learn(Trajectory(task=task, steps=steps), outcome="failure").lessons[0]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())


def test_lessons_stand_between_markers_and_the_rest_of_a_file_stays_byte_for_byte(
    bank: ReasoningBank, tmp_path: Path
) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_bytes(MINE)
    lesson = told(bank)
    assert bank.admin.export(file, format="claude-md") == 1
    first = file.read_bytes()
    assert first.startswith(MINE)
    assert f"- **Ask for the reason first** `{lesson.id[-8:]}`\r\n  When: It is pending.\r\n".encode() in first
    file.write_bytes(first + b"more\x80")
    told(bank, "Look at the order first")
    assert bank.admin.export(file, format="claude-md") == 2
    second = file.read_bytes()
    assert second.startswith(MINE)
    assert second.endswith(b"-->\r\nmore\x80")
    assert b"Look at the order first" in second


def test_what_somebody_changes_in_a_file_is_a_proposal_until_a_person_approves_it(
    bank: ReasoningBank, tmp_path: Path
) -> None:
    file, lesson = tmp_path / "AGENTS.md", told(bank)
    bank.admin.export(file, format="agents-md")
    assert bank.admin.import_(file) == 0
    edit(file, "Ask for the reason first,", "Ask politely for the reason,")
    assert bank.admin.import_(file) == 1
    assert bank.admin.import_(file) == 0
    (proposal,) = bank.lessons.proposals()
    assert (proposal.change, proposal.origin, proposal.of) == ("edit", "file", lesson.id)
    assert (proposal.lesson.state, proposal.lesson.provenance.writer) == ("quarantined", "file")
    assert bank.lessons.get(lesson.id) == lesson
    assert "politely" not in bank.retrieve(TASK).text
    bank.lessons.approve(proposal.lesson.id, by="Ana")
    assert bank.lessons.proposals() == ()
    after = bank.lessons.get(lesson.id)
    assert (after.version, after.state, after.approved) == (2, "active", True)
    assert after.content == "Ask politely for the reason, before the cancel tool is called."
    assert "politely" in bank.retrieve(TASK).text
    assert [one.id for one in bank.lessons.list(retired=True)] == [lesson.id]
    bank.admin.export(file, format="agents-md")
    assert "Ask politely for the reason," in file.read_text()
    assert bank.admin.import_(file) == 0


@full
def test_what_somebody_adds_or_takes_out_is_a_proposal_too(bank: ReasoningBank, tmp_path: Path) -> None:
    file, gone = tmp_path / "GEMINI.md", told(bank)
    stays = told(bank, "Look at the order first")
    bank.admin.export(file, format="gemini-md")
    text = file.read_text()
    start, end = text.index("- **Ask"), text.index("<!-- lessonbank:end")
    file.write_text(text[:start] + "- **Weigh it**\n  When: A parcel leaves.\n  Use the scale.\n\n" + text[end:])
    assert bank.admin.import_(file) == 2
    assert not bank.lessons.get(gone.id).retired
    found = {one.change: one for one in bank.lessons.proposals()}
    assert {change: one.of for change, one in found.items()} == {"retire": gone.id, "add": None}
    bank.lessons.approve(*(one.lesson.id for one in found.values()), by="Ana")
    assert bank.lessons.get(gone.id).retired
    added = bank.lessons.get(found["add"].lesson.id)
    assert (added.title, added.description, added.content) == ("Weigh it", "A parcel leaves.", "Use the scale.")
    assert (added.state, added.approved, added.topic) == ("active", True, stays.topic)
    bank.admin.export(file, format="gemini-md")
    assert bank.admin.import_(file) == 0
    assert {one.id for one in bank.lessons.list()} == {stays.id, added.id}
    assert bank.admin.verify() == ()


@full
def test_a_proposal_that_was_rejected_is_not_made_again_and_changes_nothing(
    bank: ReasoningBank, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, lesson = tmp_path / "CLAUDE.md", told(bank)
    bank.admin.export(file, format="claude-md")
    edit(file, "before the cancel", "after the cancel")
    bank.admin.import_(file)
    (proposal,) = bank.lessons.proposals()
    bank.lessons.retire(proposal.lesson.id, reason="no")
    assert bank.lessons.proposals() == ()
    assert bank.lessons.get(lesson.id) == lesson
    with caplog.at_level(logging.WARNING):
        assert bank.admin.import_(file) == 0
    assert "proposed before, and rejected" in caplog.text
    with pytest.raises(Conflict, match="was rejected: restore it first"):
        bank.lessons.approve(proposal.lesson.id, by="Ana")
    bank.lessons.restore(proposal.lesson.id, reason="yes")
    bank.lessons.approve(proposal.lesson.id, by="Ana")
    assert "after the cancel" in bank.lessons.get(lesson.id).content


@full
def test_a_proposal_about_a_lesson_that_changed_since_is_refused(bank: ReasoningBank, tmp_path: Path) -> None:
    file, lesson = tmp_path / "CLAUDE.md", told(bank)
    bank.admin.export(file, format="claude-md")
    edit(file, "before the cancel", "after the cancel")
    bank.admin.import_(file)
    (proposal,) = bank.lessons.proposals()
    bank.lessons.edit(lesson.id, content="Ask, and wait.", by="Ana")
    with pytest.raises(Conflict, match="was edited since"):
        bank.lessons.approve(proposal.lesson.id, by="Ana")
    assert bank.lessons.get(lesson.id).content == "Ask, and wait."
    bank.lessons.retire(lesson.id, reason="old")
    assert bank.lessons.proposals() == ()


@full
def test_an_edit_takes_over_only_what_was_touched(bank: ReasoningBank, tmp_path: Path) -> None:
    code = "Run this:\n\n```sh\n    make   all\n```"
    lesson = bank.lessons.add(title="Make all", content=code, task="Build the site", by="Ana")
    file = tmp_path / "CLAUDE.md"
    bank.admin.export(file, format="claude-md")
    edit(file, "**Make all**", "**Make all of it**")
    bank.admin.import_(file)
    bank.lessons.approve(bank.lessons.proposals()[0].lesson.id, by="Ana")
    after = bank.lessons.get(lesson.id)
    assert (after.title, after.content) == ("Make all of it", lesson.content)


@full
@pytest.mark.parametrize("profile", ["default", "paper"])
def test_when_to_use_a_lesson_can_be_edited_alone(tmp_path: Path, profile: Literal["default", "paper"]) -> None:
    file = tmp_path / "CLAUDE.md"
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical", profile=profile) as bank:
        lesson = told(bank)
        bank.admin.export(file, format="claude-md")
        edit(file, "When: It is pending.", "When: It is pending, and paid.")
        assert (bank.admin.import_(file), bank.admin.import_(file)) == (1, 0)
        (proposal,) = bank.lessons.proposals()
        bank.lessons.approve(proposal.lesson.id, by="Ana")
        after = bank.lessons.get(lesson.id)
        assert (after.description, after.content) == ("It is pending, and paid.", lesson.content)
        assert bank.admin.verify() == ()


@full
def test_an_edit_to_the_words_of_another_lesson_is_told_and_not_proposed(
    bank: ReasoningBank, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, one, other = tmp_path / "CLAUDE.md", told(bank), told(bank, "Look at the order first")
    bank.admin.export(file, format="claude-md")
    edit(file, f"**{one.title}**", f"**{other.title}**")
    edit(file, one.content, other.content)
    with caplog.at_level(logging.WARNING):
        assert bank.admin.import_(file) == 0
    assert "another lesson says this: 'Look at the order first'" in caplog.text


@full
def test_a_lesson_that_the_bank_changed_meanwhile_is_no_edit_of_the_file(bank: ReasoningBank, tmp_path: Path) -> None:
    one, other = told(bank), told(bank, "Look at the order first")
    file = tmp_path / "CLAUDE.md"
    bank.admin.export(file, format="claude-md")
    bank.lessons.edit(one.id, content="Ask, and wait.", by="Ana")
    bank.lessons.retire(other.id, reason="old")
    told(bank, "Read the policy")
    assert bank.admin.import_(file) == 0
    assert bank.admin.export(file, format="claude-md") == 2
    assert "Ask, and wait." in file.read_text()


@full
def test_erasing_a_lesson_erases_what_files_proposed_about_it(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
        edited, accepted, removed = told(bank), told(bank, "Look at the order"), told(bank, "Read the policy")
        file = tmp_path / "CLAUDE.md"
        bank.admin.export(file, format="claude-md")
        edit(file, "Ask for the reason first,", "Kwijibo asks,")
        edit(file, "Look at the order,", "Embiggen the order,")
        bank.admin.import_(file)
        (done,) = [one for one in bank.lessons.proposals() if one.of == accepted.id]
        bank.lessons.approve(done.lesson.id, by="Ana")
        text = file.read_text()
        start = text.index("- **Read the policy**")
        file.write_text(text[:start] + text[text.index("\n\n", start) + 2 :])
        bank.admin.import_(file)
        assert Counter(one.change for one in bank.lessons.proposals()) == {"edit": 1, "retire": 1}
        for one in (edited, accepted, removed):
            bank.admin.purge(lesson=one.id, reason="asked")
        assert bank.lessons.list(retired=True) == bank.lessons.proposals() == ()
        assert bank.admin.verify() == ()
    data = b"".join(one.read_bytes() for one in tmp_path.glob("bank.db*"))
    assert not [word for word in (b"Kwijibo", b"Embiggen", b"Read the policy") if word in data]


@full
def test_everything_that_came_from_a_file_can_be_taken_back_at_once(bank: ReasoningBank, tmp_path: Path) -> None:
    mine, file = told(bank), tmp_path / "CLAUDE.md"
    file.write_text("- Log in before you read the list.\n- Log out in the evening.\n")
    assert bank.admin.import_(file) == 2
    bank.lessons.approve(*(one.id for one in bank.lessons.list(writer="file")), by="Ana")
    file.write_text("")
    bank.admin.sync(file)
    edit(file, "**Log out in the evening.**", "**Log out in the morning.**")
    assert bank.admin.import_(file) == 1
    assert len(bank.admin.purge(metadata={"file": "CLAUDE.md"}, reason="asked").lessons) == 3, "with the proposal"
    assert bank.lessons.list(retired=True) == (mine,)
    file.write_text("- Log in before you read the list.\n")
    bank.admin.import_(file)
    bank.admin.purge(metadata={"origin": "claude-md"}, reason="asked")
    assert bank.lessons.list(retired=True) == (mine,)
    assert bank.admin.verify() == ()


@full
def test_an_export_does_not_overwrite_what_nobody_read_yet(bank: ReasoningBank, tmp_path: Path) -> None:
    told(bank)
    file = tmp_path / "CLAUDE.md"
    bank.admin.export(file, format="claude-md")
    edit(file, "<!-- lessonbank:end", "I wrote this down for all of us.\n\n<!-- lessonbank:end")
    before = file.read_bytes()
    with pytest.raises(UsageError, match="its edits were not read yet"):
        bank.admin.export(file, format="claude-md")
    assert file.read_bytes() == before
    assert bank.admin.import_(file) == 1
    assert bank.admin.export(file, format="claude-md") == 1
    assert "for all of us" not in file.read_text()
    assert bank.lessons.proposals()[0].lesson.content == "I wrote this down for all of us."


@full
def test_a_preview_of_sync_changes_nothing_and_says_what_would_be(bank: ReasoningBank, tmp_path: Path) -> None:
    told(bank)
    file = tmp_path / "CLAUDE.md"
    (new,) = bank.admin.sync(file, preview=True)
    assert (new.lessons, new.before, file.exists()) == (1, "", False)
    assert bank.admin.sync(file)[0].after == new.after == file.read_text()
    edit(file, "before the cancel", "after the cancel")
    before, changes = file.read_bytes(), len(bank.history.list())
    (told_of,) = bank.admin.sync(file, preview=True)
    assert [one.change for one in told_of.proposals] == ["edit"]
    assert (file.read_bytes(), len(bank.history.list())) == (before, changes)
    (done,) = bank.admin.sync(file)
    assert done.after == told_of.after == file.read_text()
    assert [one.change for one in bank.lessons.proposals()] == ["edit"]
    assert "after the cancel" not in file.read_text()
    (again,) = bank.admin.sync(file)
    assert (again.before, again.proposals) == (again.after, ())


@full
def test_what_somebody_writes_while_a_file_is_replaced_is_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_text("mine, and newer")
    with pytest.raises(UsageError, match="was changed meanwhile"):
        disk.replace(file, b"ours", earlier=b"mine")
    assert [one.read_text() for one in tmp_path.iterdir()] == ["mine, and newer"]


@full
def test_only_trusted_and_approved_lessons_leave_the_bank_unless_all_are_asked_for(
    bank: ReasoningBank, tmp_path: Path
) -> None:
    told(bank)
    new = learned(bank, "Send the parcel abroad")
    risky = bank.lessons.add(title="Force it", content="Push with --no-verify.", task=TASK, by="Ana")
    bank.lessons.quarantine(risky.id, reason="risky")
    old = told(bank, "Read the policy")
    bank.lessons.retire(old.id, reason="old")
    file = tmp_path / "notes.md"
    assert bank.admin.export(file, format="markdown") == 1
    assert bank.admin.export(file, format="markdown", all=True) == 2
    text = file.read_text()
    assert f"`{new.id[-8:]}` (on probation)" in text
    assert "Force it" not in text
    assert "Read the policy" not in text
    assert bank.admin.import_(file) == 0
    assert bank.admin.sync(file)[0].lessons == 1


def lift(standing: str, value: float | None = None) -> LessonLift:
    return LessonLift(lesson_id="x", standing=standing, success=Estimate(value=value))  # type: ignore[arg-type]


@full
def test_the_best_evidence_comes_first_and_noise_moves_nothing() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    one = Lesson(id="a", title="A", content="A", created_at=at)
    newer = one.model_copy(update={"created_at": at.replace(month=2)})
    in_order = [
        rank(one, lift("helps", 0.3), 0),
        rank(one, lift("helps", 0.1), 9),
        rank(one, lift("likely helps", 0.5), 0),
        rank(one, None, 2),
        rank(one.model_copy(update={"approved": True}), None, 0),
        rank(newer, None, 0),
        rank(one, None, 0),
        rank(one, lift("harms", -0.2), 9),
    ]
    assert sorted(in_order) == in_order
    assert rank(one, lift("no evidence yet", 0.4), 0) == rank(one, lift("no evidence yet", -0.4), 0)


@full
def test_a_file_keeps_to_its_budget_and_says_what_it_left_out(
    bank: ReasoningBank, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(12):
        told(bank, f"Ask for reason {'abcdefghijkl'[n]} first", more=" And wait." * 20)
    file = tmp_path / "CLAUDE.md"
    with caplog.at_level(logging.WARNING):
        written = bank.admin.export(file, format="claude-md", budget=600)
    assert 0 < written < 12
    assert f"{12 - written} lessons do not fit the budget of 600 tokens" in caplog.text
    assert len(file.read_bytes()) <= 600 * 3
    assert bank.admin.sync(file, budget=600)[0].left_out == 12 - written
    assert bank.admin.export(tmp_path / "AGENTS.md", format="agents-md", budget=1) == 0
    assert "There is no lesson yet." in (tmp_path / "AGENTS.md").read_text()


@full
def test_the_same_bank_gives_the_same_bytes(bank: ReasoningBank, tmp_path: Path) -> None:
    for n in range(5):
        told(bank, f"Ask for reason {n} first", task=f"Task of kind {'abcde'[n]} number {n}")
    learned(bank, "Send the parcel abroad")
    bank.admin.export(tmp_path / "one.md", format="markdown", all=True)
    bank.admin.backup(tmp_path / "copy.db")
    with lessonbank.connect(tmp_path / "copy.db", scope="acme", embedder="lexical") as copy:
        copy.admin.export(tmp_path / "two.md", format="markdown", all=True)
    assert (tmp_path / "one.md").read_bytes() == (tmp_path / "two.md").read_bytes()
    before = (tmp_path / "one.md").stat()
    bank.admin.export(tmp_path / "one.md", format="markdown", all=True)
    assert (tmp_path / "one.md").stat() == before, "an unchanged file is not written at all"


TEXTS = st.text("ab #-`*<>@!\n|:.\\[]()1", min_size=1, max_size=30).filter(lambda text: any(map(str.isalpha, text)))


@full
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3, unique_by=lambda pair: pair[0].strip()), TEXTS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_out_and_in_again_is_nothing_and_an_approved_edit_is_there_the_next_time(
    tmp_path: Path, said: list[tuple[str, str]], new: str
) -> None:
    file = tmp_path / "CLAUDE.md"
    file.unlink(missing_ok=True)
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical") as bank:
        for title, content in said:
            try:
                bank.lessons.add(title=title, content=content, task="Do the work", by="Ana")
            except Conflict:
                continue
        bank.admin.export(file, format="claude-md")
        first = file.read_bytes()
        assert bank.admin.import_(file) == 0
        bank.admin.export(file, format="claude-md")
        assert file.read_bytes() == first
        body, end, tail = first.decode().rpartition("<!-- lessonbank:end")
        file.write_text(body + f"- **Quite new**\n  Word: {' '.join(new.split())} xyzzy\n\n" + end + tail)
        assert bank.admin.import_(file) == 1
        bank.lessons.approve(*(one.lesson.id for one in bank.lessons.proposals()), by="Ana")
        bank.admin.export(file, format="claude-md")
        assert "**Quite new**" in file.read_text()
        assert "xyzzy" in file.read_text()
        edit(file, "xyzzy", "plugh")
        assert bank.admin.import_(file) == 1
        bank.lessons.approve(*(one.lesson.id for one in bank.lessons.proposals()), by="Ana")
        bank.admin.export(file, format="claude-md")
        assert "plugh" in file.read_text()
        assert (bank.admin.import_(file), bank.lessons.proposals()) == (0, ())
        last = file.read_bytes()
        bank.admin.export(file, format="claude-md")
        assert file.read_bytes() == last


# --- skills ----------------------------------------------------------------------------------------------------------


@full
def test_each_topic_becomes_a_skill_and_is_found_again_wherever_it_was_moved(
    bank: ReasoningBank, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told(bank)
    parcel = told(bank, "Weigh the parcel", task="Ship the parcel abroad")
    skills = tmp_path / ".claude" / "skills"
    assert bank.admin.export(skills, format="skill") == 2
    one, other = sorted(skills.glob("*/SKILL.md"))
    for file in (one, other):
        lines = file.read_text().splitlines()
        assert lines[:2] == ["---", f"name: {file.parent.name}"]
        assert lines[2].startswith('description: "')
    moved = skills / "shipping"
    other.parent.rename(moved)
    edit(moved / "SKILL.md", "name: ", "name: my-")
    told(bank, "Fill the form", task="Ship the parcel abroad")
    assert bank.admin.export(skills, format="skill") == 3
    assert len(list(skills.glob("*/SKILL.md"))) == 2
    text = (moved / "SKILL.md").read_text()
    assert text.startswith("---\nname: my-")
    assert "Fill the form" in text
    edit(moved / "SKILL.md", "Weigh the parcel,", "Weigh it twice,")
    assert bank.admin.import_(skills) == 1
    assert bank.lessons.proposals()[0].of == parcel.id
    bank.lessons.retire(
        *(one.id for one in bank.lessons.list(state="active", topic=str(parcel.topic.id))), reason="old"
    )  # type: ignore[union-attr]
    with caplog.at_level(logging.WARNING):
        assert bank.admin.export(skills, format="skill") == 1
    assert "shipping/SKILL.md has no lesson any more" in caplog.text
    with pytest.raises(UsageError, match="name the folder of all skills"):
        bank.admin.export(one, format="skill")


# --- what people kept elsewhere --------------------------------------------------------------------------------------


@full
@pytest.mark.parametrize(
    "name", ["CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursor/rules/shop.mdc", "skills/ship/SKILL.md"]
)
def test_what_people_kept_elsewhere_comes_in_on_probation_with_its_origin(
    bank: ReasoningBank, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    file, key = tmp_path / name, "sk-" + "fake" + "A1b2C3d4E5f6G7h8I9j0K1l2"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"# Parcels\n\n- Weigh a parcel before you print its label.\n- The key of the carrier is {key}.\n- ok\n"
    )
    with caplog.at_level(logging.WARNING):
        assert bank.admin.import_(file) == 2
    assert "skipped: text of fewer than three words" in caplog.text
    lessons = bank.lessons.list(writer="file")
    assert {one.state for one in lessons} == {"probation"}
    assert {str(one.topic) for one in lessons} == {"Parcels"}
    experience = bank.lessons.experience(lessons[0].id)
    assert experience.metadata["file"] == ("ship/SKILL.md" if "SKILL" in name else file.name)
    assert experience.metadata["origin"] in ("claude-md", "agents-md", "gemini-md", "cursor-rules", "skill")
    assert experience.task.startswith("Parcels: ")
    assert key not in "".join(one.content for one in lessons)
    assert bank.lessons.proposals() == ()
    assert bank.admin.import_(file) == 0
    assert not [p for p in tmp_path.glob("bank.db*") if key.encode() in p.read_bytes()]


@full
def test_a_folder_is_read_whole_and_one_odd_file_costs_the_others_nothing(
    bank: ReasoningBank, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    skills = tmp_path / "skills"
    for name in ("ship", "pay"):
        (skills / name).mkdir(parents=True)
        (skills / name / "SKILL.md").write_text(f"# {name}\n\nAlways {name} before the evening comes.\n")
    (skills / "odd").mkdir()
    (skills / "odd" / "SKILL.md").write_bytes(b"\x00\x01")
    (tmp_path / "secret.md").write_text("- Nobody may read what stands in here.")
    (skills / "out").mkdir()
    (skills / "out" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    with caplog.at_level(logging.WARNING):
        assert bank.admin.import_(skills) == 2
    assert "is no text" in caplog.text
    assert "leads out of its folder" in caplog.text
    assert not bank.lessons.search("Nobody may read")


def test_a_skill_folder_that_is_a_link_out_of_its_place_is_not_written_through(
    bank: ReasoningBank, tmp_path: Path
) -> None:
    skills, elsewhere = tmp_path / "skills", tmp_path / "elsewhere"
    told(bank)
    bank.admin.export(skills, format="skill")
    (file,) = skills.rglob("SKILL.md")
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    (elsewhere / "SKILL.md").write_text("mine")
    for call in (partial(bank.admin.export, skills, format="skill"), partial(bank.admin.import_, file)):
        with pytest.raises(UsageError, match="leads out of its folder"):
            call()
    assert (elsewhere / "SKILL.md").read_text() == "mine"


@full
def test_a_secret_in_a_heading_is_kept_nowhere(bank: ReasoningBank, tmp_path: Path) -> None:
    key = "ghp" + "_" + "A1b2C3d4E5f6G7h8I9j0" * 2
    file = tmp_path / "CLAUDE.md"
    file.write_text(f"# Log in with {key}\n\n- Log in before you read the list.\n")
    assert bank.admin.import_(file) == 1
    bank.lessons.approve(bank.lessons.list()[0].id, by="Ana")
    (tmp_path / "AGENTS.md").write_text("")
    bank.admin.export(tmp_path / "AGENTS.md", format="agents-md")
    edit(
        tmp_path / "AGENTS.md", "<!-- lessonbank:end", f"### {key}\n\n- Log out in the evening.\n\n<!-- lessonbank:end"
    )
    assert bank.admin.import_(tmp_path / "AGENTS.md") == 1
    assert not [p for p in tmp_path.glob("bank.db*") if key[4:].encode() in p.read_bytes()]
    assert key[4:] not in str(bank.lessons.list()) + str(bank.history.list())


@full
def test_what_cannot_become_a_proposal_stops_a_sync_before_anything_is_lost(
    bank: ReasoningBank, tmp_path: Path
) -> None:
    told(bank)
    file = tmp_path / "CLAUDE.md"
    bank.admin.sync(file)
    for text, why in (("word " * 1000, "more than 4,000 characters"), ("- one more thing\n" * 301, "more than 300")):
        bank.admin.sync(file)
        whole = file.read_bytes()
        lines = text if text.startswith("-") else f"- {text}\n"
        numbered = "".join(f"{line} {n}\n" for n, line in enumerate(lines.splitlines()))
        edit(file, "<!-- lessonbank:end", f"{numbered}\n<!-- lessonbank:end")
        before = file.read_bytes()
        with pytest.raises(FormatError, match=why):
            bank.admin.sync(file)
        assert file.read_bytes() == before
        assert bank.lessons.proposals() == ()
        file.write_bytes(whole)


@full
def test_nobody_vouches_for_a_file_of_lessons_in_passing(bank: ReasoningBank, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("- Log in before you read the list.\n")
    with pytest.raises(UsageError, match="anybody may have edited"):
        bank.admin.import_(tmp_path / "CLAUDE.md", approved_by="Ana")


@full
def test_a_run_that_teaches_what_a_file_proposes_leaves_a_sound_bank(bank: ReasoningBank, tmp_path: Path) -> None:
    lesson, file = learned(bank, "Send the parcel abroad"), tmp_path / "CLAUDE.md"
    bank.lessons.approve(lesson.id, by="Ana")
    bank.admin.export(file, format="claude-md")
    edit(file, f"**{lesson.title}**", f"**{lesson.title} always**")
    bank.admin.import_(file)
    (proposal,) = bank.lessons.proposals()
    same = Lesson(title=proposal.lesson.title, content=proposal.lesson.content, kind=proposal.lesson.kind)
    bank.consolidate(Experience(scope="acme", task="Send a parcel to Peru", lessons=(same,)))
    assert bank.lessons.repeats(proposal.lesson.id)
    bank.lessons.approve(proposal.lesson.id, by="Ana")
    assert bank.lessons.get(lesson.id).title == f"{lesson.title} always"
    assert bank.admin.verify() == ()


@full
def test_what_a_file_says_is_unchecked_and_what_seems_no_lesson_waits_for_a_person(
    bank: ReasoningBank, tmp_path: Path
) -> None:
    (tmp_path / "CLAUDE.md").write_text(
        "- Skip the tests with --no-verify when in a hurry.\n- Sure! Here are the lessons that I drew from the run.\n"
    )
    assert bank.admin.import_(tmp_path / "CLAUDE.md") == 2
    found = {one.content.split()[0]: (one.state, one.risk) for one in bank.lessons.list()}
    assert found == {"Skip": ("probation", "unchecked"), "Sure!": ("quarantined", "may be no lesson")}
    (waits,) = bank.lessons.proposals()
    assert "may be no lesson" in waits.reason


@full
def test_a_lesson_of_a_file_witnesses_nothing(tmp_path: Path) -> None:
    with lessonbank.connect(
        tmp_path / "bank.db", scope="acme", embedder="lexical", safety=Safety(trust="corroborated")
    ) as bank:
        lesson = learned(bank, "Send the parcel abroad")
        (tmp_path / "CLAUDE.md").write_text(f"# Send a parcel\n\n- {lesson.content}\n")
        bank.admin.import_(tmp_path / "CLAUDE.md")
        assert {one.state for one in bank.lessons.list()} == {"probation"}


# --- files that are none ---------------------------------------------------------------------------------------------


@full
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"a\x00b", "is no text"),
        (b"a" * 1_000_001, "has more than 1,000,000 bytes"),
        (b"<!-- lessonbank:begin -->\n", "not one begin and one end"),
        (b"<!-- lessonbank:end -->\n<!-- lessonbank:begin -->", "not one begin and one end"),
        (b"<!-- lessonbank:begin -->\n\xff\n<!-- lessonbank:end -->", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_sentence_and_stays(
    bank: ReasoningBank, tmp_path: Path, data: bytes, why: str
) -> None:
    told(bank)
    file, changes = tmp_path / "CLAUDE.md", len(bank.history.list())
    file.write_bytes(data)
    for call in (bank.admin.import_, bank.admin.sync, lambda path: bank.admin.export(path, format="claude-md")):
        with pytest.raises(FormatError, match=why) as refused:
            call(file)
        assert len(str(refused.value)) <= 500
    assert (file.read_bytes(), len(bank.history.list())) == (data, changes)
    assert sorted(p.name for p in tmp_path.glob("*CLAUDE*")) == ["CLAUDE.md"]


@full
def test_what_is_no_file_of_ours_is_refused(bank: ReasoningBank, tmp_path: Path) -> None:
    told(bank)
    (tmp_path / "notes.md").write_text("- my own notes, which nobody exported")
    with pytest.raises(FormatError, match="there are no lessonbank markers"):
        bank.admin.import_(tmp_path / "notes.md")
    with pytest.raises(UsageError, match="there is no file"):
        bank.admin.import_(tmp_path / "CLAUDE.md")
    with pytest.raises(UsageError, match="tells no format"):
        bank.admin.sync(tmp_path / "lessons.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="is a skill, a rule"):
        bank.admin.import_(tmp_path / "empty")
    with pytest.raises(UsageError, match="format="):
        bank.admin.export(tmp_path / "x.md", format="html")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is a bank"):
        bank.admin.export(tmp_path / "bank.db", format="markdown")
    os.mkfifo(tmp_path / "AGENTS.md")
    with pytest.raises(UsageError, match="a pipe"):
        bank.admin.sync(tmp_path / "AGENTS.md")
    with pytest.raises(NotFound):
        bank.lessons.approve("0" * 32, by="Ana")


@full
def test_a_file_keeps_its_mode_and_a_link_stays_a_link(bank: ReasoningBank, tmp_path: Path) -> None:
    told(bank)
    real, link = tmp_path / "AGENTS.md", tmp_path / "CLAUDE.md"
    real.write_text("# Mine\n")
    real.chmod(0o640)
    link.symlink_to("AGENTS.md")
    assert bank.admin.export(link, format="claude-md") == 1
    assert link.is_symlink()
    assert "Ask for the reason" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    (tmp_path / "project").mkdir()
    out = tmp_path / "project" / "CLAUDE.md"
    out.symlink_to(real)
    before = real.read_bytes()
    with pytest.raises(UsageError, match="leads out of its folder"):
        bank.admin.export(out, format="claude-md")
    assert real.read_bytes() == before


@full
def test_two_tenants_never_meet_in_a_file(bank: ReasoningBank, tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    lesson = told(bank)
    bank.admin.export(file, format="claude-md")
    edit(file, "before the cancel", "after the cancel")
    other = bank.scoped("globex")
    other.admin.import_(file)
    (proposal,) = other.lessons.proposals()
    assert (proposal.change, proposal.of) == ("add", None)
    assert bank.lessons.proposals() == ()
    assert bank.lessons.get(lesson.id) == lesson
