"""Groups are withheld as one: the receipt says so, people are told, and it is evidence of the group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, File, Lesson, Parts, ReasoningBank, Retrieval, Step, Trajectory
from lessonbank.contracts.records import Extraction, GroupDraw, Provenance, Run
from lessonbank.contracts.withholding import Members
from lessonbank.evidence import Assignment, Holdout
from lessonbank.evidence.groups import group_label, source_of
from lessonbank.evidence.treatments import entries

CANCEL, FLIGHT = "Cancel the pending order W17 of Mia", "Book a flight from Boston to Denver"


async def one_lesson(attempts: Sequence[Run]) -> Extraction:
    run = attempts[0].trajectory
    text = f"Look at the state of what {run.id} asks for before you act on it."
    return Extraction(lessons=(Lesson(title=f"Look first ({run.id})", content=text),))


class TopicsOut:
    """A policy of the caller's own: topics whose first lesson it knows are withheld, nothing else."""

    base_rate = 0.5

    def __init__(self, *, withheld: bool) -> None:
        self.withheld = withheld

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        topics = dict.fromkeys(group for groups in lessons.values() for group in groups if group.startswith("topic/"))
        made = tuple(GroupDraw(group=topic, withheld=self.withheld, probability=0.5) for topic in list(topics)[:1])
        return Assignment(probability=dict.fromkeys(lessons, 0.0), base_rate=0.5, groups=made)


def opened(where: str | File = ":memory:", *, holdout: Any = None, **told: Any) -> ReasoningBank:
    policy = TopicsOut(withheld=True) if holdout is None else holdout
    parts, evidence = Parts(extractor=one_lesson), Evidence(holdout=policy, act=False)
    retrieval = Retrieval("lexical", limit=3, floor=None)
    return lessonbank.connect(
        where, scope="t", embedder="lexical", parts=parts, retrieval=retrieval, evidence=evidence, **told
    )


def learn(bank: ReasoningBank, task: str, n: int) -> None:
    bank.learn(Trajectory(id=f"run-{n}", task=task, steps=(Step(action="look"),)), outcome="success")


def taught(bank: ReasoningBank) -> None:
    for n, task in enumerate((CANCEL, CANCEL.replace("17", "5"), FLIGHT)):
        learn(bank, task, n)


def test_a_withheld_topic_takes_its_lessons_out_and_leaves_the_others() -> None:
    with opened() as bank:
        taught(bank)
        recall = bank.retrieve("Cancel the pending order W9 of Mia, then book a flight to Denver")
        (draw,) = recall.groups
        out = {candidate.lesson_id for candidate in recall.candidates if draw.group in candidate.groups}
        assert len(recall.candidates) == 3 and draw.withheld and draw.probability == 0.5
        assert {lesson.id for lesson in recall.withheld} == out
        assert {lesson.id for lesson in recall.shown} == {c.lesson_id for c in recall.candidates} - out
        assert all(lesson.title not in recall.text for lesson in recall.withheld)
        name = next(lesson.topic.name for lesson in recall.withheld if lesson.topic)
        for id in out:
            assert f"withheld at random with its topic '{name}' (probability 0.5)" in recall.why[id]
        assert f"withheld as a group, to compare with: topic '{name}'" in str(bank.recalls.explain(recall))
        kept = bank.recalls.get(recall.id)
        assert (kept.groups, kept.candidates) == (recall.groups, recall.candidates)
        told = {entry.treatment: entry.shown for entry in entries(kept)}
        assert draw.group in told and not any(told.values())


def test_a_recall_that_lost_all_its_lessons_with_a_topic_says_why_it_is_empty() -> None:
    with opened() as bank:
        taught(bank)
        recall = bank.retrieve("Cancel the pending order W9")
        assert recall.text == ""
        assert any("withheld at random as a group" in note for note in recall.notes)


def test_every_lesson_says_which_groups_it_belonged_to() -> None:
    with opened(holdout=Holdout(0.1, 0.1)) as bank:
        taught(bank)
        recall = bank.retrieve(CANCEL)
        assert not recall.groups
        assert {len(candidate.groups) for candidate in recall.candidates} == {2}
        assert {candidate.groups[0] for candidate in recall.candidates} == {"source/strategy/told/model"}
        assert (
            group_label(recall.candidates[0].groups[0])
            == "strategies, from runs with a told outcome, written by a model"
        )


def test_a_bank_that_only_observes_draws_for_no_group() -> None:
    evidence = Evidence(holdout=TopicsOut(withheld=True), observe=True)
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", evidence=evidence) as bank:
        bank.lessons.add(title="Look first", content="Look at its state.", task=CANCEL, by="Ana")
        recall = bank.retrieve(CANCEL)
        assert recall.candidates and not recall.groups and not entries(recall)


def test_a_policy_with_impossible_odds_for_a_group_is_refused() -> None:
    class Wrong(TopicsOut):
        def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
            draw = GroupDraw(group="topic/x", withheld=False, probability=1.5)
            return Assignment(probability=dict.fromkeys(lessons, 0.0), groups=(draw,))

    with opened(holdout=Wrong(withheld=False)) as bank:
        taught(bank)
        with pytest.raises(lessonbank.errors.UsageError, match="outside 0 to 1"):
            bank.retrieve(CANCEL)


@pytest.mark.parametrize(
    ("told", "imported", "source"),
    [
        ({"method": "llm", "verdict_source": "judge"}, False, "source/strategy/judged/model"),
        ({"method": "merge", "verdict_source": "human"}, False, "source/strategy/told/model"),
        ({"method": "extractive", "verdict_source": "framework_error"}, False, "source/strategy/told/extractive"),
        ({"method": "human"}, False, "source/strategy/human"),
        ({"method": "human"}, True, "source/strategy/imported"),
        ({"method": "../../<b>"}, False, "source/strategy/judged/other"),
    ],
)
def test_where_a_lesson_comes_from_is_one_id(told: dict[str, Any], imported: bool, source: str) -> None:
    lesson = Lesson(title="t", content="c", provenance=Provenance(**told))
    assert source_of(lesson, imported=imported) == source
    assert "/" not in group_label(source)
