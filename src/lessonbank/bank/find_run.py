"""Finds the run that somebody means: by its id, by its recall, or by metadata that only this run has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import a_mapping, an_id, is_instance, short_repr
from lessonbank.contracts.ports import RunFilter
from lessonbank.contracts.records import Json, Recall, Trajectory
from lessonbank.contracts.records.runs import NO_SUBMISSION
from lessonbank.contracts.settings import OFF
from lessonbank.contracts.store_calls import get_trajectories, get_trajectory, pending_runs, settlement_of
from lessonbank.errors import NotFound, UsageError

from .scoped_bank import ScopedBank

_UNFINISHED: Final = 1000
"""Unfinished runs that are looked through for a recall, the latest first."""


async def find_run(bank: ScopedBank, of: object, /) -> Trajectory:
    """Find the run that the caller means.

    Raises:
        NotFound: no run is kept of it.
        UsageError: several runs are meant, or `of` is nothing that names a run.
    """
    if is_instance(of, Mapping):
        fields = cast("Mapping[str, Json]", of)
        return _only(await _with_metadata(bank, fields), f"with the metadata {short_repr(fields)}")
    if is_instance(of, Recall):
        of = an_id(of.id, "the recall")
        return _only(await _of_recall(bank, of), f"of the recall {short_repr(of)}")
    id = an_id(of, "the run")
    if bank.options.off:
        raise NotFound(OFF)
    if run := await get_or_none(get_trajectory(bank.store, id, scope=bank.scope)):
        return run
    return _only(await _of_recall(bank, id), f"with the id {short_repr(id)}, nor one of a recall with it")


async def _with_metadata(bank: ScopedBank, metadata: Mapping[str, Json]) -> list[Trajectory]:
    if not (fields := a_mapping(metadata)):
        raise UsageError("the run is named by its metadata, and these are empty: give its id, its recall or its fields")
    runs = await bank.store.runs(RunFilter(metadata=fields, verdicts=False, limit=2), scope=bank.scope)
    return [run.trajectory for run in runs]


async def _of_recall(bank: ScopedBank, id: str) -> list[Trajectory]:
    """The runs that settled a recall; else those that wait with it, or were given up."""
    if settlement := await settlement_of(bank.store, id, scope=bank.scope):
        return list(await get_trajectories(bank.store, settlement.trajectory_ids, scope=bank.scope))
    waiting = [*await pending_runs(bank.store, scope=bank.scope), *await _unfinished(bank)]
    waiting += await pending_runs(bank.store, scope=bank.scope, status="failed")
    return [run for run in waiting if id in ((run.submission or NO_SUBMISSION).recall_id, run.recall_id)]


async def _unfinished(bank: ScopedBank) -> list[Trajectory]:
    """The latest runs whose attempt ended without an outcome."""
    wanted = RunFilter(status="unfinished", verdicts=False, limit=_UNFINISHED)
    return [run.trajectory for run in await bank.store.runs(wanted, scope=bank.scope)]


def _only(runs: list[Trajectory], what: str) -> Trajectory:
    if not runs:
        raise NotFound(f"there is no run {what} in this scope: hand it to `learn` first")
    if len(runs) > 1:
        ids = " and ".join(short_repr(run.id) for run in runs[:2])
        raise UsageError(f"there is more than one run {what}, such as {ids}: name one by its id")
    return runs[0]
