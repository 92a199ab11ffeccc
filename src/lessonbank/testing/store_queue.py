"""The store contract, queue part: kept runs are handed to workers, one worker each, until they are learned."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank._base.aio import gather
from lessonbank.contracts.ports import RunFilter, Store
from lessonbank.contracts.records import Add, QueueStatus, Submission, Trajectory
from lessonbank.contracts.store_calls import count_records, get_run, pending_runs, queue_of, settled_runs

from .store_samples import MINE, THEIRS, StoreTests, added, attempt, check_sound, experience, rebuild, trajectory

_HOUR = 3600.0


async def _keep_runs(store: Store, count: int, /, *, scope: str = MINE, wait: float = 0.0) -> list[Trajectory]:
    """Runs that were kept one by one: workers may claim each of them."""
    runs = [trajectory(f"task {n}") for n in range(count)]
    for run in runs:
        await store.save_runs([run], scope=scope, wait=wait)
    return runs


async def _claimed(
    store: Store,
    limit: int = 10,
    /,
    *,
    worker: str = "one",
    seconds: float = _HOUR,
    scope: str | None = None,
    exclusive: bool = False,
    include_given_up: bool = False,
) -> list[Trajectory]:
    claims = await queue_of(store).claim(
        worker=worker, limit=limit, seconds=seconds, scope=scope, exclusive=exclusive, include_given_up=include_given_up
    )
    return [claim.trajectory for claim in claims]


async def _learn(store: Store, run: Trajectory) -> None:
    new = Add(experience=experience(attempts=[attempt(run, "success")]))
    await store.apply([new], scope=MINE, writer="tests", if_unlearned=[run.id])


class QueueTests(StoreTests):
    """A kept run is the queue."""

    async def test_runs_are_claimed_oldest_first_and_once(self) -> None:
        async with self.opened() as store:
            runs = await _keep_runs(store, 3)
            assert await _claimed(store, 2) == runs[:2]
            assert await _claimed(store, 2, worker="two") == runs[2:]
            assert await _claimed(store, 2, worker="two") == []
            assert set(await settled_runs(store, [run.id for run in runs], scope=MINE)) == set()

    async def test_a_claim_names_the_scope_and_how_often_the_run_was_taken_before(self) -> None:
        async with self.opened() as store:
            (run,) = await _keep_runs(store, 1, scope=THEIRS)
            for tries in range(3):
                (claim,) = await queue_of(store).claim(worker=f"worker {tries}", limit=5, seconds=0.0)
                assert (claim.scope, claim.trajectory, claim.tries) == (THEIRS, run, tries)
            assert (await get_run(store, run.id, scope=THEIRS)).tries == 3

    async def test_many_workers_at_once_never_get_the_same_run(self) -> None:
        async with self.opened() as store:
            runs = await _keep_runs(store, 20)

            async def take(name: str) -> Sequence[Trajectory]:
                return await _claimed(store, 3, worker=name)

            claims = await gather([lambda name=f"worker {n}": take(name) for n in range(10)], limit=10)
            taken = [run.id for some in claims for run in some]
            assert sorted(taken) == sorted(run.id for run in runs)

    async def test_claims_can_be_of_one_scope(self) -> None:
        async with self.opened() as store:
            mine, theirs = await _keep_runs(store, 1), await _keep_runs(store, 2, scope=THEIRS)
            assert await _claimed(store, scope=THEIRS) == theirs
            assert await _claimed(store, scope="acme/nothing") == []
            assert await _claimed(store, scope=MINE) == mine

    async def test_a_run_whose_time_is_over_is_handed_to_the_next_worker(self) -> None:
        async with self.opened() as store:
            (run,) = await _keep_runs(store, 1)
            await _claimed(store, seconds=0.0)
            assert await _claimed(store, worker="two") == [run]
            assert not await queue_of(store).extend([run.id], scope=MINE, worker="one", seconds=_HOUR)
            assert not await queue_of(store).release(run.id, scope=MINE, worker="one", error="too late", wait=None)
            assert (await get_run(store, run.id, scope=MINE)).status == "pending"

    async def test_a_worker_keeps_its_runs_for_longer(self) -> None:
        async with self.opened() as store:
            first, second, other = await _keep_runs(store, 3)
            await _claimed(store, 2, seconds=0.0)
            held = await queue_of(store).extend(
                [first.id, second.id, "nothing"], scope=MINE, worker="one", seconds=_HOUR
            )
            assert set(held) == {first.id, second.id}
            assert await _claimed(store, worker="two") == [other]
            assert not await queue_of(store).extend([first.id], scope=THEIRS, worker="one", seconds=_HOUR)
            assert not await queue_of(store).extend(["\ud800"], scope=MINE, worker="one", seconds=_HOUR)
            assert not await queue_of(store).extend([], scope=MINE, worker="one", seconds=_HOUR)

    async def test_a_learned_run_is_nobodys(self) -> None:
        async with self.opened() as store:
            (run,) = await _keep_runs(store, 1)
            await _claimed(store, seconds=0.0)
            await _learn(store, run)
            assert not await queue_of(store).extend([run.id], scope=MINE, worker="one", seconds=_HOUR)
            assert not await queue_of(store).release(run.id, scope=MINE, worker="one", error="?", wait=None)
            assert await _claimed(store, include_given_up=True) == []
            assert await queue_of(store).queue() == QueueStatus()
            assert (await get_run(store, run.id, scope=MINE)).status == "learned"

    async def test_a_failed_try_waits_and_says_why(self) -> None:
        async with self.opened() as store:
            first, second = await _keep_runs(store, 2)
            await _claimed(store, 1)
            assert await queue_of(store).release(
                first.id, scope=MINE, worker="one", error="no model \ud800", wait=_HOUR
            )
            assert await _claimed(store, worker="two") == [second]
            run = await get_run(store, first.id, scope=MINE)
            assert (run.status, run.tries, run.problem) == ("pending", 1, "no model \ufffd")
            assert run in await store.runs(RunFilter(status="pending"), scope=MINE)
            assert first in await pending_runs(store, scope=MINE)

    async def test_a_run_that_is_given_back_without_an_error_was_not_tried(self) -> None:
        async with self.opened() as store:
            (run,) = await _keep_runs(store, 1)
            await _claimed(store)
            assert not await queue_of(store).release(run.id, scope=THEIRS, worker="one")
            assert not await queue_of(store).release("\ud800", scope=MINE, worker="one")
            assert await queue_of(store).release(run.id, scope=MINE, worker="one")
            (claim,) = await queue_of(store).claim(worker="two", limit=1, seconds=_HOUR)
            assert (claim.trajectory, claim.tries) == (run, 0)

    async def test_a_run_that_is_given_up_is_only_taken_anyway(self) -> None:
        async with self.opened() as store:
            (run,) = await _keep_runs(store, 1)
            await _claimed(store)
            await queue_of(store).release(run.id, scope=MINE, worker="one", error="it always fails", wait=None)
            assert await _claimed(store) == []
            assert await pending_runs(store, scope=MINE) == []
            assert (await count_records(store, scope=MINE)).pending == 0
            (failed,) = await store.runs(RunFilter(status="failed"), scope=MINE)
            assert (failed.trajectory, failed.status, failed.problem) == (run, "failed", "it always fails")
            assert await store.runs(RunFilter(status="pending"), scope=MINE) == []
            assert await _claimed(store, include_given_up=True) == [run]
            assert await _claimed(store, worker="two", include_given_up=True) == []
            assert (await get_run(store, run.id, scope=MINE)).status == "pending"
            await _learn(store, run)
            assert await store.runs(RunFilter(status="failed"), scope=MINE) == []

    async def test_a_run_in_the_hands_of_the_process_that_kept_it_is_only_taken_anyway(self) -> None:
        async with self.opened() as store:
            run = trajectory()
            await store.save_runs([run], scope=MINE)
            assert await _claimed(store) == []
            assert await pending_runs(store, scope=MINE) == [run]
            assert await _claimed(store, include_given_up=True) == [run]

    async def test_an_unfinished_run_is_never_claimed(self) -> None:
        async with self.opened() as store:
            run = trajectory().model_copy(update={"unfinished": True})
            await store.save_runs([run], scope=MINE, wait=0.0)
            assert await _claimed(store) == []
            assert await _claimed(store, include_given_up=True) == []
            assert await queue_of(store).queue() == QueueStatus()

    async def test_an_unfinished_run_of_which_something_is_said_can_be_claimed(self) -> None:
        async with self.opened() as store:
            for still in (False, True):  # what is said of it ends it, whatever the run itself says
                run = trajectory().model_copy(update={"unfinished": True, "metadata": {"user": "u"}})
                await store.save_runs([run], scope=MINE)
                assert await queue_of(store).claim(worker="w", limit=1, seconds=60, scope=MINE) == []
                revision = run.model_copy(update={"submission": Submission(recall_id="r1"), "unfinished": False})
                again = revision.model_copy(update={"unfinished": still})
                assert await store.save_runs([again], scope=MINE, wait=0.0) == []
                (claim,) = await queue_of(store).claim(worker="w", limit=1, seconds=60, scope=MINE)
                assert claim.trajectory == revision

    async def test_runs_that_are_kept_together_are_claimed_by_the_first_of_them(self) -> None:
        async with self.opened() as store:
            runs = [trajectory(), trajectory(), trajectory()]
            await store.save_runs(runs, scope=MINE, wait=0.0)
            assert await _claimed(store) == runs[:1]
            assert await _claimed(store, worker="two", include_given_up=True) == []
            await queue_of(store).release(runs[0].id, scope=MINE, worker="one", error="no model", wait=None)
            assert (await queue_of(store).queue()).failed == 3
            assert await _claimed(store, include_given_up=True) == runs[:1]
            await _learn(store, runs[0])
            assert await _claimed(store, include_given_up=True) == runs[1:]

    async def test_a_scope_can_be_one_workers_alone(self) -> None:
        async with self.opened() as store:
            mine, theirs = await _keep_runs(store, 3), await _keep_runs(store, 2, scope=THEIRS)
            assert await _claimed(store, 2, exclusive=True) == mine[:2]
            assert await _claimed(store, worker="two", exclusive=True) == theirs
            assert await _claimed(store, 2, exclusive=True) == mine[2:]
            await _learn(store, mine[0])
            await queue_of(store).release(mine[1].id, scope=MINE, worker="one")
            assert await _claimed(store, worker="two", exclusive=True) == []
            await queue_of(store).release(mine[2].id, scope=MINE, worker="one", error="later", wait=_HOUR)
            assert await _claimed(store, worker="two", exclusive=True) == [mine[1]]

    async def test_the_queue_counts_what_waits_what_is_claimed_and_what_is_given_up(self) -> None:
        async with self.opened() as store:
            assert await queue_of(store).queue() == await queue_of(store).queue(scope="acme/nothing") == QueueStatus()
            first, second, *_ = await _keep_runs(store, 4)
            await _keep_runs(store, 1, scope=THEIRS)
            await store.save_runs([trajectory()], scope=MINE)
            await _claimed(store, 2, scope=MINE)
            await queue_of(store).release(first.id, scope=MINE, worker="one", error="it always fails", wait=None)
            mine, all_of_it = await queue_of(store).queue(scope=MINE), await queue_of(store).queue()
            assert (mine.waiting, mine.claimed, mine.failed) == (3, 1, 1)
            assert (all_of_it.waiting, all_of_it.claimed, all_of_it.failed) == (4, 1, 1)
            assert mine.oldest is not None
            assert mine.oldest == all_of_it.oldest
            await _learn(store, second)
            later = (await queue_of(store).queue(scope=MINE)).oldest
            assert later is not None
            assert later > mine.oldest

    async def test_a_rebuild_leaves_the_queue_as_it_is(self) -> None:
        async with self.opened() as store:
            runs = await _keep_runs(store, 3)
            await added(store, experience(attempts=[attempt(runs[2], "success")]))
            await _claimed(store, 1)
            before = await queue_of(store).queue()
            await rebuild(store)
            assert await queue_of(store).queue() == before
            assert await _claimed(store, worker="two") == [runs[1]]
            await check_sound(store)
