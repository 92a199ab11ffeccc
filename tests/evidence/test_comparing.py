"""The report names tasks on which an effect differs, lessons that say the same, and the labels that a verdict needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planted import episodes

from lessonbank import Evidence, Trajectory, connect
from lessonbank.contracts.records import Lesson
from lessonbank.evidence import Bandit, TrialPeriods, Withholding
from lessonbank.evidence.lift import Lift
from lessonbank.evidence.notes import price_of_following
from lessonbank.evidence.report import report

LESSONS = {f"lesson {n}": Lesson(id=f"lesson {n}", title=f"Title {n}", content="Do it.") for n in range(3)}


def world(seed: int, size: int, *, opposite: float = 0.0, any_one: float = 0.0, **told: Any) -> Lift:
    """Three lessons that are found together; the first one's effect is `opposite` on tasks of two templates."""
    draw = np.random.default_rng(seed)
    family, control, held = draw.integers(0, 2, size), draw.random(size) < 0.2, draw.random((size, 3)) < 0.3
    shown = ~held & ~control[:, None]
    rate = 0.5 + opposite * shown[:, 0] * (1 - 2 * family) + any_one * shown.any(axis=1)
    made = episodes(
        (draw.random(size) < rate).astype(float),
        control=control,
        control_probability=0.2,
        lessons=np.tile(np.arange(3), (size, 1)),
        withheld=held,
        probability=0.3,
        names=3,
        cluster=family,
        clusters=("template refunds", "rebook flight #"),
        **told,
    )
    return report(made, scope="t", lessons=LESSONS)


def test_by_a_judge_alone_the_labels_that_would_help_are_named() -> None:
    size = 1_500
    draw = np.random.default_rng(4)
    control = draw.random(size) < 0.2
    judged = (draw.random(size) < 0.4 + 0.25 * ~control).astype(float)
    made = episodes(
        judged,
        control=control,
        control_probability=0.2,
        lessons=np.zeros((size, 1), dtype=np.int64),
        names=1,
        judged=judged,
        true=np.zeros(size, dtype=np.bool_),
        cluster=draw.integers(0, 2, size),
        clusters=("a", "b"),
    )
    lift = report(made, scope="t", lessons=LESSONS)
    assert lift.labels_needed and 10 < lift.labels_needed < size
    assert f"About {lift.labels_needed} more labels would decide." in str(lift)


def test_where_the_truth_is_told_no_label_is_asked_for() -> None:
    assert world(5, 300).labels_needed is None


def drawn(share: float, of_lessons: float) -> list[str]:
    """What is said of 400 recalls in which these shares of memory and of single lessons were withheld."""
    luck = np.random.default_rng(4)
    made = episodes(
        np.ones(400),
        control=luck.random(400) < share,
        control_probability=share,
        lessons=np.tile(np.arange(3), (400, 1)),
        withheld=luck.random((400, 3)) < of_lessons,
        probability=of_lessons,
        names=3,
    )
    return price_of_following(made)


def test_the_report_says_what_odds_that_follow_the_evidence_cost_in_proof() -> None:
    (told,) = drawn(0.02, 0.9)
    assert "0.22 times as much of memory as a whole as it would with 10% withheld" in told
    assert told.endswith("and less than half as much of 0 of 3 lessons")
    (told,) = drawn(0.5, 0.02)
    assert "2.8 times as much of memory" in told
    assert told.endswith("and less than half as much of 3 of 3 lessons")


@pytest.mark.parametrize("policy", [Bandit(), TrialPeriods()])
def test_a_bank_whose_odds_follow_the_evidence_says_so_in_its_lift_and_no_other_does(policy: Withholding) -> None:
    with connect(":memory:", scope="t", embedder="lexical", evidence=Evidence(policy)) as bank:
        bank.lessons.add(title="Look first", content="Look at its state.", task="Close the case", by="Ana")
        for number in range(30):
            bank.learn(Trajectory(task="Close it"), recall=bank.retrieve(f"Close the case {number}"), reward=1.0)
        notes = [note for note in bank.lift().notes if note.startswith("the odds follow the evidence (Bandit)")]
        assert len(notes) == isinstance(policy, Bandit)


def test_a_bank_whose_odds_follow_the_evidence_has_a_lift_before_anything_was_asked() -> None:
    with connect(":memory:", scope="t", embedder="lexical", evidence=Evidence(Bandit())) as bank:
        assert bank.lift().notes == ()
