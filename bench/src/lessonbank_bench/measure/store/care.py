"""What looking after a bank costs: `verify`, quick and whole, and the purge of one run; in a fresh process."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from lessonbank.contracts.records import Trajectory
from lessonbank.contracts.store_calls import purge_one
from lessonbank.stores.sqlite import SqliteStore

from . import processes
from .clock import Stopwatch
from .figures import Figure, Target
from .workload import SCOPE

SCOPES = 20
"""As a team's bank has them: a purge reads the whole journal of one scope."""
_MANY = 200_000
"""Lessons up to which the goals are promised."""
_GOALS = {"verify, quick": 5.0, "verify": 60.0, "purge of one run": 0.5}
_MEMORY = 300.0


def caring(path: Path, lessons: int) -> list[Figure]:
    """Every figure of the bank at `path`, to which it writes."""
    said = processes.fresh("care", path)
    goal = {name: Target(limit) if lessons <= _MANY else None for name, limit in _GOALS.items()}
    spent = said["spent"].items()
    return [
        *(Figure(name, lessons, wall, "s", cpu=cpu, target=goal[name]) for name, (wall, cpu) in spent),
        Figure("memory of verify, peak", lessons, said["memory"], "MB", target=Target(_MEMORY)),
    ]


async def _spent(path: Path) -> dict[str, object]:
    store, spent = await SqliteStore.open(path), dict[str, tuple[float, float]]()
    for name, records in (("verify, quick", False), ("verify", True)):
        with (watch := Stopwatch()):
            health = await store.verify(records=records)
        spent[name] = watch.wall, watch.cpu
        if health.problems:
            raise AssertionError(health.problems)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    run = Trajectory(task="Move the parcel", steps=())
    await store.save_runs([run], scope=SCOPE)
    with (watch := Stopwatch()):
        await purge_one(store, "trajectory", run.id, scope=SCOPE, writer="bench", reason="measured")
    spent["purge of one run"] = watch.wall, watch.cpu
    await store.close()
    return {"spent": spent, "memory": memory}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_spent(Path(sys.argv[1])))))
