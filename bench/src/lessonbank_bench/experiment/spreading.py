"""From the arms of an experiment to arms that do each task several times, in each of the ways that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, cast

from lessonbank.errors import UsageError
from lessonbank.guard import one_line

MODES: Final = ("parallel", "sequential", "vanilla", "retry", "reflect")
"""`reflect` is `retry` with a reflection on each attempt that failed."""
BANKS: Final = ("shared", "instance")


@dataclass(frozen=True, slots=True)
class Spread:
    """The ways to do a task several times. Every arm is played in each.

    Raises:
        UsageError: a way that there is not.
    """

    ks: Sequence[int] = (5,)
    modes: Sequence[str] = ("parallel",)
    banks: Sequence[str] = ("shared",)
    arms: Sequence[str] = ()
    """Which of the arms, and further memories by their names; all where none is named."""
    labels: bool | None = None

    def __post_init__(self) -> None:
        for what, given, known in (("mode", self.modes, MODES), ("bank", self.banks, BANKS)):
            if unknown := [name for name in given if name not in known]:
                raise UsageError(f"there is no {what} {one_line(unknown[0], limit=40)!r}; there are {', '.join(known)}")


def spread_arms(arms: object, spread: Spread, /) -> dict[str, Any]:
    """The arms, and what else of an experiment's values goes with them: no arm is added or repeated besides."""
    known = [cast("Mapping[str, Any]", arm) for arm in cast("Sequence[object]", arms) if isinstance(arm, dict)]
    by_name = {str(arm.get("name")): arm for arm in known if not arm.get("again")}
    chosen = [by_name.get(name, {"name": name, "memory": name}) for name in spread.arms] or list(by_name.values())
    made = [dict(arm) for each in chosen for arm in _ways(each, spread)]
    return {"arms": made, "baseline": "", "leave_out": [], "stop": False, "share": False}


def _ways(arm: Mapping[str, Any], spread: Spread) -> Iterator[dict[str, Any]]:
    """With one run all ways are one; without memory there is no bank that could be shared, and nothing to aggregate."""
    memory = str(arm.get("memory") or arm["name"])
    seen = set[str]()
    for k, mode, bank in product(spread.ks, spread.modes, spread.banks):
        own = bank == "instance" and memory != "none"
        if k == 1:
            way, told = "k=1", {"k": 1}
        else:
            plain = "parallel" if memory == "none" and mode == "vanilla" else mode
            way = f"{plain}, k={k}" + (", bank per task" if own else "")
            told = {"k": k, "mode": "retry" if mode == "reflect" else plain, "reflect": mode == "reflect"}
            told |= {"bank": "instance"} if own else {}
            told |= (
                {"labels": spread.labels} if plain in ("parallel", "sequential") and spread.labels is not None else {}
            )
        if way not in seen:
            seen.add(way)
            yield {**arm, "name": f"{arm['name']}, {way}", "memory": memory, "runs": told}
