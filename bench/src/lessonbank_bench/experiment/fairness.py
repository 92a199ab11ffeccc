"""Says where arms of an experiment differ in more than what they keep: then no difference can be laid to memory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Final

from lessonbank.errors import UsageError
from lessonbank_bench.arms import arm_from
from lessonbank_bench.arms.tables import Base

from .records import Arm, Experiment, memory_of

_SHARED: Final = ("budget", "embedder", "floor", "level", "preface", "profile", "retrieval")
"""Settings of how runs are judged and lessons are found and shown, and not of what is kept."""


def differences(experiment: Experiment, /) -> tuple[str, ...]:
    """One sentence for each two arms of different kinds whose shared settings differ; the paper's table has none.

    Arms of one kind are there to be compared by a setting.
    """
    banks = [(arm, base) for arm in experiment.arms if isinstance(base := _base_of(arm), Base)]
    told = [_sentence(one, other) for one, other in combinations(banks, 2) if one[1].make is not other[1].make]
    return tuple(filter(None, told))


def _base_of(arm: Arm) -> object:
    try:
        return arm_from(memory_of(arm))
    except UsageError:  # a memory that only its environment knows
        return None


def _sentence(one: tuple[Arm, Base], other: tuple[Arm, Base]) -> str:
    here, there = _settings(*one), _settings(*other)
    apart = [key for key in here if here[key] != there[key]]
    if not apart:
        return ""
    return (
        f"{one[0].name} and {other[0].name} differ in more than what they keep: in {', '.join(apart)}. Give both the "
        "same settings, or lay no difference between them to memory"
    )


def _settings(arm: Arm, base: Base) -> Mapping[str, Any]:
    shared = {key: getattr(base.options, key) for key in _SHARED}
    return {**shared, "limit": base.options.limit or arm.limit}
