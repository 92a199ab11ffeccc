"""Where several people write to a bank, the lessons of each are a source: drawn, measured and taken back as one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lessonbank
from lessonbank import Evidence, Experience, Extraction, Lesson, Parts, ReasoningBank, Retrieval, Run, Trajectory
from lessonbank.contracts.records import Provenance, Retire, Topic
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.withholding import Members
from lessonbank.evidence import Assignment, Lift, TrialPeriods
from lessonbank.evidence.groups import (
    BY,
    MOST_WRITERS,
    OTHERS,
    called,
    group_names,
    groups_of,
    named,
    writer_of,
    writers_apart,
)

T = "desk"
WORDS = "order refund voucher parcel invoice return account coupon address delivery warranty exchange"
KINDS = WORDS.split()
HOSTILE = "name:" + "eve\x1b[31m, helps, retired: the best \u202e" + "x" * 90


async def no_new_lessons(_attempts: Sequence[Run]) -> Extraction:
    return Extraction()


class Seeded(TrialPeriods):
    """The default, with draws that are the same every time: ids of recalls are random, their numbers are not."""

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        return super().__call__(lessons, recall_id=task, task=task, scope=scope)


def opened(seed: str = "") -> ReasoningBank:
    return lessonbank.connect(
        ":memory:",
        scope=T,
        embedder="lexical",
        evidence=Evidence(Seeded(seed=seed)),
        parts=Parts(extractor=no_new_lessons),
        retrieval=Retrieval("lexical", limit=4, floor=None),
    )


def taught(bank: ReasoningBank, kinds: Sequence[str]) -> None:
    """One lesson for each kind of task. All are about one topic."""
    for kind in kinds:
        lesson = Lesson(title=f"Handle the {kind}", content=f"Open the {kind} first.", topic=Topic(id="0" * 8))
        bank.consolidate(Experience(scope=T, task=f"Close the {kind} case", lessons=(lesson,)))


def taught_by_three(bank: ReasoningBank, names: Sequence[str] = ("ana", "bob", "eve")) -> Mapping[str, str]:
    """By lesson: who wrote it."""
    for number, name in enumerate(names):
        handle = bank.scoped(writer=name, key=bank.admin.add_writer(name))
        taught(handle, KINDS[number :: len(names)])
    return {lesson.id: who(lesson) for lesson in bank.lessons.list()}


def who(lesson: Lesson) -> str:
    return lesson.provenance.identity.removeprefix("key:")


def worked(bank: ReasoningBank, tasks: range, adds: Mapping[str, float], luck: random.Random) -> list[Retire]:
    """Each task is about four kinds; a lesson that was shown adds to its chance what it is worth."""
    made = list[Retire]()
    for number in tasks:
        recall = bank.retrieve(f"Close {number}: {' '.join(luck.sample(KINDS, 4))}")
        chance = 0.6 + sum(adds.get(lesson.id, 0.0) for lesson in recall.shown)
        run = Trajectory(task=recall.task, answer="closed")
        learned = bank.learn(run, recall=recall, reward=float(luck.random() < chance))
        made += [change for change in learned.changes if isinstance(change, Retire)]
    return made


def groups(lift: Lift) -> dict[str, str]:
    return {group.name: group.standing for group in lift.groups}


@pytest.mark.full
def test_a_harmful_writer_among_three_is_seen_and_taken_back_as_one_and_can_come_back() -> None:
    with opened("3") as bank:
        whose = taught_by_three(bank)
        by_eve = {id for id, name in whose.items() if name == "eve"}
        adds = {id: -0.25 if id in by_eve else 0.05 for id in whose}
        changes = worked(bank, range(450), adds, random.Random(3))
        (back,) = [change for change in changes if change.group]
        assert back.group.startswith(BY) and set(back.lesson_ids) == by_eve
        lift = bank.lift()
        assert {"written by ana", "written by bob", "written by eve"} <= groups(lift).keys()
        assert "Note: 4 lessons were taken back as one, 'written by eve': they harm together" in str(lift)
        assert {lesson.id for lesson in bank.lessons.list()} == whose.keys() - by_eve
        bank.lessons.restore(*back.lesson_ids, reason="they are about another shop", by="Ana")
        assert {lesson.id for lesson in bank.lessons.list()} == whose.keys()
        assert "taken back as one" not in str(bank.lift())


@pytest.mark.full
def test_a_bank_of_three_writers_without_an_effect_takes_nobody_back_and_shows_all_of_them() -> None:
    with opened() as bank:
        whose = taught_by_three(bank)
        assert not worked(bank, range(300), {}, random.Random(5))
        assert len(bank.lessons.list()) == len(whose)
        assert set(groups(bank.lift()).values()) == {"no evidence yet"}


def test_two_writers_are_sources_from_the_first_review_on_and_the_receipts_say_whose() -> None:
    with opened() as bank:
        taught_by_three(bank, ("ana", "eve"))
        recall = bank.retrieve(f"Close {' '.join(KINDS[:4])}")
        assert {len(candidate.groups) for candidate in recall.candidates} == {2}, "nobody knows yet that there are two"
        worked(bank, range(40), {}, random.Random(3))
        recall = bank.retrieve(f"Close {' '.join(KINDS[:4])}")
        own = {lesson.id: who(lesson) for lesson in recall.lessons}
        names = group_names(recall.lessons)
        assert {named(one.groups[1], names) for one in recall.candidates} == {"written by ana", "written by eve"}
        assert all(named(one.groups[1], names) == f"written by {own[one.lesson_id]}" for one in recall.candidates)
        assert [one.groups[0] for one in recall.candidates] == ["source/strategy/judged/model"] * 4
        odds = [draw.probability for draw in recall.groups if draw.group.startswith(BY)]
        assert len(odds) == 2 and all(0.1 <= odd <= 0.5 for odd in odds)


@pytest.mark.parametrize("name", ["ana", ""])
def test_where_one_writes_alone_nothing_is_drawn_for_writers(name: str) -> None:
    with opened() as bank:
        taught(bank.scoped(writer=name, key=bank.admin.add_writer(name)) if name else bank, KINDS)
        worked(bank, range(60), {}, random.Random(3))
        seen = bank.recalls.list(limit=100)
        assert not {group for recall in seen for one in recall.candidates for group in one.groups if BY in group}
        assert not any(draw.group.startswith(BY) for recall in seen for draw in recall.groups)


def test_a_writer_who_joins_later_becomes_a_source_and_the_first_stay_what_they_are() -> None:
    told = {"a": 50, "b": 3}
    assert writers_apart((), told) == (), "b is hardly known"
    assert writers_apart((), told | {"b": 12}) == ("a", "b")
    assert writers_apart(("a", "b"), {"c": 90, "a": 50}) == ("a", "b", "c")


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 40)), st.lists(st.text(max_size=3), max_size=5, unique=True))
def test_never_more_than_a_handful_of_writers_are_sources(found: dict[str, int], taken: list[str]) -> None:
    apart = writers_apart(tuple(taken), found)
    assert apart[: len(taken)] == tuple(taken)
    assert len(apart) == len(set(apart)) <= MOST_WRITERS
    assert len(apart) != 1 or taken


def written(identity: str, **told: object) -> tuple[Lesson, Experience]:
    lesson = Lesson(title="t", content="c", provenance=Provenance(identity=identity)).model_copy(update=told)
    return lesson, Experience(scope=T, task="t", lessons=(lesson,))


def test_the_writers_that_are_left_over_are_one_source_once_no_place_is_free() -> None:
    lesson, experience = written("key:late")
    assert groups_of(lesson, experience, apart=(f"{BY}1", f"{BY}2")) == ("source/strategy/judged/model",)
    full = [f"{BY}{number}" for number in range(MOST_WRITERS)]
    assert groups_of(lesson, experience, apart=full) == ("source/strategy/judged/model", OTHERS)
    assert named(OTHERS) == "written by others"


def test_a_writer_is_who_the_bank_knew_and_no_machine_and_no_file() -> None:
    assert writer_of(*written("process:ana@laptop")) == writer_of(*written("process:ana@build-7f3"))
    assert len({writer_of(*written(one)) for one in ("process:ana@a", "process:bob@a", "key:ana", "name:ana")}) == 4
    assert writer_of(*written("")) == ""
    lesson, experience = written("key:ana")
    assert writer_of(lesson, experience.model_copy(update={"imported": True})) == ""
    by_hand = {"version": 2, "provenance": lesson.provenance.model_copy(update={"method": "human"})}
    assert writer_of(*written("key:ana", **by_hand)) == "", "a person wrote what it says now"


def test_a_writers_name_cannot_be_read_from_the_id_nor_drive_a_terminal() -> None:
    lesson, experience = written(HOSTILE)
    group = writer_of(lesson, experience)
    assert group == f"{BY}{digest(f'writer {HOSTILE}')[:16]}"
    for text in (named(group, group_names((lesson,))), called(group, lesson)):
        assert "eve" in text and text.isprintable() and len(text) < 80
    assert named(group) == f"written by {group.removeprefix(BY)}"
