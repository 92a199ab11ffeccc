"""The report names tasks on which an effect differs, lessons that say the same, and the labels that a verdict needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from planted import episodes

from lessonbank.contracts.records import Lesson
from lessonbank.evidence.lift import Lift
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
