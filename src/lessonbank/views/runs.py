"""The runs that a scope has kept: find them, correct a verdict, and learn from those that wait."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from lessonbank._concurrency import if_there
from lessonbank.arguments import a_count, a_seed, a_text, an_id, filters, maybe_id, maybe_one_of, one_of
from lessonbank.types import SUBMITTED, Json, Learned, Outcome, Run, RunStatus, Trajectory, Verdict

from .handle import Handle, person

_PAGE = 200


@dataclass(frozen=True, slots=True)
class AsyncRuns:
    """`bank.runs`. Every method acts in the scope of its bank."""

    _of: Handle

    async def list(
        self,
        *,
        outcome: Outcome | None = None,
        status: RunStatus | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Run, ...]:
        """Kept runs, newest first, at most `limit`. `after`: the id of the last run of the page before.

        `text`: every word of it stands in the run's task, steps, answer or error. `metadata`: the run has these keys
        and values. Raises UsageError, NotFound (`after`).
        """
        found = await self._of.store.list_runs(
            scope=self._of.scope,
            outcome=maybe_one_of(outcome, "outcome=", get_args(Outcome)),
            status=maybe_one_of(status, "status=", get_args(RunStatus)),
            **filters(text=text, metadata=metadata, limit=limit, after=after),
        )
        return tuple(found)

    async def search(
        self,
        text: str | None = None,
        /,
        *,
        outcome: Outcome | None = None,
        metadata: Mapping[str, Json] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Run, ...]:
        """Runs that contain every word of `text` and have this metadata, newest first. Raises UsageError."""
        return await self.list(text=text, outcome=outcome, metadata=metadata, limit=limit, after=after)

    async def get(self, id: str, /) -> Run:
        """One run with its trajectory, verdict and status. Raises NotFound."""
        return await self._of.store.get_run(an_id(id), scope=self._of.scope)

    async def pending(self, *, limit: int = 50, after: str | None = None) -> tuple[Trajectory, ...]:
        """Runs that wait for a verdict or for extraction, oldest first. `retry` learns from them.

        Raises UsageError, NotFound (`after`).
        """
        limit, after = a_count(limit), maybe_id(after, "after=")
        return tuple(await self._of.store.pending(scope=self._of.scope, limit=limit, after=after))

    async def retry(self, *, limit: int = 50) -> tuple[Learned, ...]:
        """Learn from the oldest runs that wait, at most `limit` of them. Raises StoreError."""
        waiting = await self.pending(limit=limit)
        done, learned = set[str](), list[Learned]()
        for run in waiting:
            if run.id in done:
                continue
            runs, told = await self._as_submitted(run)
            result = await self._of.learn(runs, **told)
            done.update(one.id for one in runs)
            done.update(ref.trajectory_id for ref in result.experience.attempts) if result.experience else None
            learned.append(result)
        return tuple(learned)

    async def _as_submitted(self, run: Trajectory) -> tuple[list[Trajectory], dict[str, Any]]:
        """The runs that were submitted together with `run`, and what was said of them then."""
        told = run.metadata.get(SUBMITTED)
        said = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        store, scope = self._of.store, self._of.scope
        others = [id for id in said.get("runs", ()) if id != run.id]
        siblings = [one for id in others if (one := await if_there(store.trajectory(id, scope=scope)))]
        arguments = {name: said[name] for name in ("outcome", "reward") if name in said}
        recall = await if_there(store.recall(said["recall"], scope=scope)) if "recall" in said else None
        return [run, *siblings], {**arguments, "recall": recall}

    async def correct(self, id: str, /, *, outcome: Outcome, by: str, reason: str = "") -> Learned:
        """Put a person's word in the place of a run's verdict. Its receipt is settled again.

        The lessons of the run stay until somebody retires them. `by`: the person's name. Raises UsageError, NotFound.
        """
        told = ": ".join(filter(None, (person(by), a_text(reason, "reason="))))
        outcome = one_of(outcome, "outcome=", get_args(Outcome))
        verdict = Verdict(outcome=outcome, source="human", reason=told)
        return await self._of.correct(await self._of.store.trajectory(an_id(id), scope=self._of.scope), verdict)

    async def audit(self, count: int = 20, /, *, seed: int | None = None) -> tuple[Run, ...]:
        """Draw runs that a judge decided, for a person to check: each has the same chance. Answer with `correct`.

        A run that a person has confirmed or corrected is not drawn again. Raises UsageError.
        """
        count, chance = a_count(count, "count"), random.Random(None if seed is None else a_seed(seed))
        judged, after = list[Run](), None
        while page := await self.list(status="learned", limit=_PAGE, after=after):
            judged += [run for run in page if run.verdict.source == "judge" and run.verdict.outcome != "unknown"]
            after = page[-1].trajectory.id
        return tuple(chance.sample(judged, min(count, len(judged))))
