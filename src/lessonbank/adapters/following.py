"""Follows the runs of an agent program: one recall when a run begins, one kept run when it ends, and never an error.

Every adapter translates its framework's callbacks into these calls. Searching, judging and learning happen on the
bank's own event loop. The program waits for nothing but the recall, and for that at most `patience` seconds.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, reduce, wraps
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar, Unpack, cast

from lessonbank._base.aio import TimeIsOver
from lessonbank._base.checks import a_flag
from lessonbank._base.sync_bridge import start
from lessonbank.bank.outbox import keep_or_spool
from lessonbank.bank.recall_again import cures_of
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.agents import Verifier, as_awaitable, stated
from lessonbank.contracts.records import (
    RECALLS_AGAIN,
    SECONDS,
    Experience,
    Json,
    Outcome,
    Recall,
    Trajectory,
    Usage,
)
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.records.tools import signatures, tool_name
from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions, takes_retrieve_options
from lessonbank.errors import UsageError
from lessonbank.guard.quote import quoted
from lessonbank.guard.scope import scope_of as scope_of
from lessonbank.importers import calls_of, doing, failures_in, opens_with_error

from ._reading import run_from as run_from
from ._reading import without_text

log = logging.getLogger("lessonbank")
Given = ParamSpec("Given")
Result = TypeVar("Result")
Asked = TypeVar("Asked")
_running: ContextVar[FollowedRun | None] = ContextVar("running", default=None)
_MOMENT: Final = 0.02
"""Seconds from the end of a run until it is read and kept. Python's threads take turns of 5 ms each: work that began at
once would hold up the host, which is about to give its answer."""
_MOST_AGAIN: Final = 3
"""Times in a run that something is told in its middle."""
_MOST_LOOKS: Final = 20
"""Failures of a run for which a cure is looked for."""
_MOST_CURES: Final = 20
_MOST_RUNS: Final = 4096
"""Runs that are remembered: a program that never says how its runs end must not fill its own memory."""


class Common(RetrieveKeywords, total=False):
    """What every adapter takes besides its bank and its scope, with the options of `retrieve`."""

    verify: Verifier | None
    """The caller's own check of a finished run. It beats the judge."""
    cures: bool
    """Whether a command that failed before is told what got it through then, where the adapter sees commands."""


class Options(Common, Generic[Asked], total=False):
    """The options of a follower, with the scope. `Asked` is what it is called with."""

    scope: Callable[[Asked], str] | None
    """Names the scope of a run; without it, the scope of the bank. If it fails, the run has no memory."""


def current_run() -> str | None:
    """The id of the run in which this code runs: the parent of a run that begins here."""
    run = open_run()
    return run.id if run else None


def open_run() -> FollowedRun | None:
    """The run in which this code runs."""
    return _running.get()


def last_asked(is_users: Sequence[bool], /) -> int:
    """Where the last messages of the user begin that stand together, by whether each message is the user's."""
    place = next((n for n in reversed(range(len(is_users))) if is_users[n]), 0)
    while place and is_users[place - 1]:
        place -= 1
    return place


@contextmanager
def harmless(where: str) -> Generator[None]:
    """Inside, what fails is a warning: memory never breaks a run, whatever another version of a host does."""
    try:
        yield
    except Exception as problem:  # noqa: BLE001 - as the first line says
        log.warning("the memory failed in %s: %s", where, _describe(problem))


def safely(work: Callable[Given, Result]) -> Callable[Given, Result | None]:
    """A callback that cannot break a run: it is `harmless`, and where it fails there is no result."""

    @wraps(work)
    def guarded(*args: Given.args, **kwargs: Given.kwargs) -> Result | None:
        with harmless(work.__name__):
            return work(*args, **kwargs)

    return guarded


class ToolResult(NamedTuple):
    """What a tool gave, as `came_back` takes it."""

    call: str
    tool: str
    arguments: Any
    printed: object
    failed: int | bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run ended, as its program told it."""

    source: object
    answer: str | None = None
    outcome: Outcome | None = None
    reward: float | None = None
    error: str | None = None
    stopped: str | None = None
    usage: Usage | None = None
    metadata: Mapping[str, Json]


class FollowedRun:
    """One run of an agent, from `begin` to `finish` or `stop`. Nothing in it raises for the memory's sake."""

    def __init__(self, follower: RunFollower, task: str, /, *, id: str, scope: str, parent: str | None) -> None:
        self.id, self.task, self.scope, self.parent = id, task, scope, parent
        self._follower, self._began = follower, monotonic()
        self._lock, self._is_over = threading.Lock(), False
        self._seen: list[object] = []
        self._tools: dict[str | int, tuple[object, Callable[[Any], object] | None]] = {}
        self._describe: tuple[Outcome | None, float | None] = (None, None)
        self._codes, self._again, self._looks = dict[str, int](), list[Recall](), _MOST_LOOKS
        self._followed_by = dict[str, str]()
        self.kept = Future[None]()
        """Done when the run is over and on disk, or could not be kept."""
        self.recall: Recall | None = None
        """What was shown and why; `None` where memory did not answer in time."""

    @property
    def text(self) -> str:
        """What goes into the request; empty when nothing is to be shown. It does not change during the run."""
        return self.recall.text if self.recall else ""

    @contextmanager
    def running(self) -> Generator[None]:
        """Inside, a run that begins is a sub-agent's, and this run is its parent."""
        token = _running.set(self)
        try:
            yield
        finally:
            with suppress(ValueError):  # a generator of the host may be closed in another context
                _running.reset(token)

    def enter(self) -> None:
        """Be the parent of what begins in this context, for a host that gives each call of a tool a task of its own."""
        _running.set(self)

    @property
    def has_observed(self) -> bool:
        """Whether anything was noted."""
        return bool(self._seen)

    def observe(self, *messages: object) -> None:
        """Note messages as they happen, in any shape that `learn` reads. `finish` takes them if it gets no run."""
        self._seen.extend(messages)

    async def follow_failures(self, results: Iterable[ToolResult], /) -> Mapping[str, str]:
        """By call, what follows the result of a tool in every request: `came_back`, looked up once for each.

        For a framework whose requests the adapter changes, and whose history stays as it is.
        """
        for result in results:
            if result.call not in self._followed_by:
                self._followed_by[result.call] = await self.came_back(*result)
        return self._followed_by

    def follow_failures_waiting(self, results: Iterable[ToolResult], /) -> Mapping[str, str]:
        """`follow_failures` for a program that does not await."""
        for result in results:
            if result.call not in self._followed_by:
                self._followed_by[result.call] = self.came_back_waiting(*result)
        return self._followed_by

    async def came_back(self, call: str, tool: str, arguments: Any, printed: object, failed: int | bool | None) -> str:
        """What got this very failure through before, for the end of what a tool gave; mostly empty.

        `call` is the id of the call. `failed` is an exit code or a flag; with `None` the words decide. It waits at most
        `patience` seconds, and only after a failure.
        """
        looking = self._look(call, tool, arguments, printed, failed)
        if looking is not None:
            await asyncio.wait([asyncio.wrap_future(looking)], timeout=self._follower.asked.patience)
        return self._cured(looking)

    def came_back_waiting(
        self, call: str, tool: str, arguments: Any, printed: object, failed: int | bool | None
    ) -> str:
        """`came_back` for a program that does not await."""
        looking = self._look(call, tool, arguments, printed, failed)
        if looking is not None:
            wait_for_futures([looking], timeout=self._follower.asked.patience)
        return self._cured(looking)

    def _look(self, call: str, tool: str, arguments: Any, printed: object, failed: int | None) -> Future[Recall] | None:
        """The search for a cure, where this call failed and there is one to look for."""
        if not self._follower.cures or not isinstance(printed, str):
            return None
        with harmless("a second look"):
            code = int(opens_with_error(printed)) if failed is None else int(failed)
            self._codes[call] = code
            if not code or self.recall is None or len(self._again) == _MOST_AGAIN or not self._looks:
                return None
            self._looks -= 1
            bank = self._follower.bank.aio.scoped(self.scope)
            options, act = self._follower.asked.keywords, doing(tool, arguments)
            return start(bank.recall_again(printed, doing=act, recall=self.recall, cured=True, **options))
        return None

    def _cured(self, looking: Future[Recall] | None) -> str:
        """What a search for a cure found. After one that came too late, no other is made in this run."""
        if looking is None:
            return ""
        with harmless("a second look"):
            if looking.cancel() or looking.cancelled():
                raise TimeIsOver(f"no answer within {self._follower.asked.patience:g} seconds")
            again = looking.result()
            self._again += [again] if again.kept else []
            return again.text
        self._looks = 0
        return ""

    def read_results(self, run: Trajectory, /) -> None:
        """Take from a whole run which calls failed, where nobody told it call by call."""
        for call, seen in (pair for step in run.steps for pair in calls_of(step)):
            if call.id and seen:
                self._codes.setdefault(call.id, int(seen.is_error or opens_with_error(seen.text)))

    def cures(self, run: Trajectory, /) -> Iterator[Experience]:
        """What got failing commands of the run through, each as what is kept of it."""
        scope = cures_of(self.scope)
        for failure in failures_in(run, self._codes)[:_MOST_CURES]:
            if failure.cure:
                yield Experience(scope=scope, task=failure.key, lessons=(failure.lesson(run.id),))

    def can_call(
        self, tools: Callable[[], Iterable[object] | None], define: Callable[[Any], object] | None = None, /
    ) -> None:
        """Note the tools of a request: objects with a name. Their signatures are kept with the run.

        `tools` is called at once, and where it fails the run goes on. `define` makes a definition of such an object. It
        is called when the run is over.
        """
        with harmless("the tools of a request"):
            self._tools |= {tool_name(tool) or id(tool): (tool, define) for tool in tools() or ()}

    def finish(
        self,
        source: object = None,
        /,
        *,
        answer: str | None = None,
        outcome: Outcome | None = None,
        reward: float | None = None,
        error: BaseException | str | None = None,
        usage: Usage | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        """The run is over: keep it, and learn from it in the background. Another call changes nothing.

        `source` is the whole run, as messages or a trajectory. `error` is what stopped it: the run counts as failed,
        unless an outcome is told. `usage` is what the run cost, where the messages do not say it.
        """
        error_text = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
        fields = metadata or {}
        self._end(
            End(
                source=source,
                answer=answer,
                outcome=outcome,
                reward=reward,
                error=error_text,
                usage=usage,
                metadata=fields,
            )
        )

    @contextmanager
    def followed(
        self, source: Callable[[], object] = lambda: None, /, *, usage: Callable[[], Usage | None] = lambda: None
    ) -> Generator[None]:
        """`running`, and what is raised inside ends the run: `source` and `usage` say what there was until then."""
        try:
            with self.running():
                yield
        except BaseException as error:
            with harmless("the end of a run"):
                self.fail(error, source(), usage=usage() if isinstance(error, Exception) else None)
            self.fail(error)  # where what was there until then could not be told; else it changes nothing
            raise

    def fail(
        self,
        error: BaseException,
        source: object = None,
        /,
        *,
        usage: Usage | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        """The run broke off. What is no `Exception` (a cancelled task, Ctrl-C) is somebody who ended it early."""
        if isinstance(error, Exception):
            self.finish(source, error=error, usage=usage, metadata=metadata)
        else:
            self.stop(source, reason=type(error).__name__, metadata=metadata)

    def stop(self, source: object = None, /, *, reason: str, metadata: Mapping[str, Json] | None = None) -> None:
        """Somebody ended the run early: keep it as unfinished. It settles nothing and teaches nothing."""
        self._end(End(source=source, stopped=reason, metadata=metadata or {}))

    def tell(self, *, outcome: Outcome | None, reward: float | None) -> bool:
        """Note how the run ends, if it is not over yet; whether it is not."""
        with self._lock:
            if not self._is_over:
                self._describe = outcome, reward
            return not self._is_over

    def _end(self, end: End) -> None:
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            if end.outcome is None and end.reward is None:
                end = replace(end, outcome=self._describe[0], reward=self._describe[1])
        seen = end.source if end.source is not None else self._seen
        # A host goes on writing into its list; the list itself is read later, in the bank's loop.
        source = list(cast("list[object]", seen)) if isinstance(seen, list) else seen
        self._seen = []
        self._follower.ended(self, source, end)

    def trajectory(self, source: object, end: End, /) -> Trajectory:
        """The run as it is kept: with its id, its parent, what stopped it, and without the text that was shown.

        Raises:
            FormatError: the messages cannot be read.
        """
        task = self.task if self.task.strip() else None
        blank = Trajectory(task=task or "(no task was given)")
        run = blank if source == [] else run_from(source, task=task)
        metadata: dict[str, Json] = {"source": self._follower.source, **run.metadata, **end.metadata}
        metadata.setdefault(SECONDS, round(monotonic() - self._began, 3))
        metadata.update({"stopped": end.stopped} if end.stopped else {})
        metadata |= {RECALLS_AGAIN: [again.id for again in self._again]} if self._again else {}
        update = {
            "id": self.id,
            "parent_run": self.parent,
            "tools": self._signatures() or run.tools,
            "metadata": metadata,
            "error": run.error or end.error,
            "answer": end.answer or run.answer,
            "usage": end.usage or run.usage,
        }
        return reduce(without_text, (self.text, *(a.text for a in self._again)), run.model_copy(update=update))

    def _signatures(self) -> tuple[str, ...]:
        tools, self._tools = self._tools.values(), {}  # a run is remembered longer than its host's tools should be
        signed = set[str]()
        for tool, define in tools:
            with harmless("a tool of a run"):
                signed.update(signatures([define(tool) if define else tool]))
        return tuple(sorted(signed))


class RunFollower:
    """Follows the runs of one agent program with one bank.

    Args:
        bank: what `lessonbank.connect` returns.
        source: the name of the framework. It is kept with every run.
        is_instruction: whether the text goes where instructions stand. Then only active lessons are shown.
        scope: the caller's own function that names the scope of a run, see `scoped`.
        verify: the caller's own check of a finished run. It beats the judge, and is called in the background.
        cures: whether a command that fails again is told what got it through before, and such cures are kept.
        options: those of `retrieve`, for the recall of every run. After `patience` seconds, 2 by default, the run goes
            on without memory.

    Raises:
        UsageError: an async bank (its work would end with the event loop of the agent), no number above 0, or an
            option that cannot be, such as `trusted=False` where the text goes among instructions.
    """

    @takes_retrieve_options
    def __init__(
        self,
        bank: ReasoningBank,
        source: str,
        is_instruction: bool = False,
        /,
        *,
        scope: Callable[..., str] | None = None,
        verify: Verifier | None = None,
        cures: bool = True,
        **options: Unpack[RetrieveKeywords],
    ) -> None:
        if not isinstance(cast("object", bank), ReasoningBank):
            raise UsageError("an adapter takes the bank of lessonbank.connect(…), which has an event loop of its own")
        self.bank, self.source = bank, source
        if is_instruction and options.get("trusted") is False:
            raise UsageError(
                f"trusted=False: {source} puts lessons where instructions stand, so it shows only those that a person "
                "approved or evidence supports; leave trusted= out"
            )
        asked: RetrieveKeywords = {"trusted": is_instruction, **options}
        self.cures = a_flag(cures, "cures=") and not str(bank.settings.get("profile")).startswith("paper")
        self.asked, self._scope, self._verify = RetrieveOptions(**asked), scope, verify and as_awaitable(verify)
        self._runs, self._lock = OrderedDict[str, tuple[FollowedRun, Future[Recall] | None]](), threading.Lock()

    async def begin(
        self, task: str, /, *, run: str | None = None, scope: str | None = None, parent: str | None = None
    ) -> FollowedRun:
        """The run with this id. The first call makes the recall, and all wait for it.

        `scope` is that of the bank if it is left out. A scope that cannot be, an empty one too, means: no memory.
        """
        followed, finding = self._begun(task, run, scope, parent)
        if finding and not finding.done():
            waiting = asyncio.wrap_future(finding)
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # said below, not by asyncio
            await asyncio.wait([waiting], timeout=self.asked.patience)
        return self._decide(followed, finding)

    def begin_waiting(
        self, task: str, /, *, run: str | None = None, scope: str | None = None, parent: str | None = None
    ) -> FollowedRun:
        """`begin` for a program that does not await."""
        followed, finding = self._begun(task, run, scope, parent)
        if finding:
            wait_for_futures([finding], timeout=self.asked.patience)
        return self._decide(followed, finding)

    def start(
        self, task: str, /, *, run: str | None = None, scope: str | None = None, parent: str | None = None
    ) -> FollowedRun:
        """`begin` without the wait: the recall is made meanwhile, and `begin` with the id of this run waits for it."""
        return self._begun(task, run, scope, parent)[0]

    def scoped(self, *arguments: Any) -> str | None:
        """The scope that the caller's function names. If it fails, a scope that cannot be: then there is no memory."""
        try:
            return None if self._scope is None else self._scope(*arguments)
        except Exception as problem:  # noqa: BLE001 - the caller's own code, and memory never breaks a run
            log.warning("scope= failed: %s", _describe(problem))
            return ""

    def get(self, run: str, /) -> FollowedRun | None:
        """The run with this id, if it was begun here."""
        with self._lock:
            return self._runs[run][0] if run in self._runs else None

    def tell(
        self, run: str, /, *, outcome: Outcome | None = None, reward: float | None = None, scope: str | None = None
    ) -> None:
        """How a run ends, told before its end or after it. It corrects verdict and evidence. Returns at once.

        `scope` is that of a run that another process followed, or this one long ago; by default the bank's.
        """
        followed = self.get(run)
        if followed is None or not followed.tell(outcome=outcome, reward=reward):
            correct = partial(self._correct, run, followed, scope, outcome, reward)
            self.bank.in_background(correct, lost="the outcome was not taken in")

    def ended(self, run: FollowedRun, source: object, end: End, /) -> None:
        """Keep a run that is over, and learn from it, in the background. `FollowedRun` calls this."""
        self.bank.in_background(partial(self._keep, run, source, end), lost="nothing was learned from this run")

    def _begun(
        self, task: str, run: str | None, scope: str | None, parent: str | None
    ) -> tuple[FollowedRun, Future[Recall] | None]:
        id, where = run or new_id(), self.bank.aio.scope if scope is None else scope
        with self._lock:
            if id not in self._runs:
                followed = FollowedRun(self, task, id=id, scope=where, parent=parent)
                finding = start(self._retrieve(task, where)) if task.strip() else None
                self._runs[id] = followed, finding
                if len(self._runs) > _MOST_RUNS:
                    self._runs.popitem(last=False)
            return self._runs[id]

    async def _retrieve(self, task: str, scope: str) -> Recall:
        return await self.bank.aio.scoped(scope).retrieve(task, **self.asked.keywords)

    def _decide(self, followed: FollowedRun, finding: Future[Recall] | None) -> FollowedRun:
        """Whatever comes too late is not shown: a text that came in the middle would spoil prompt caches."""
        with self._lock:
            if finding is None or self._runs.get(followed.id, (followed, finding))[1] is None:
                return followed
            self._runs[followed.id] = followed, None
            problem = None if finding.cancel() else finding.exception()
            if finding.cancelled() or isinstance(problem, TimeIsOver):  # either may be first
                log.warning("the agent works without memory: no answer within %g seconds", self.asked.patience)
            elif problem:
                log.warning("the agent works without memory: %s", _describe(problem))
            else:
                followed.recall = finding.result()
        return followed

    async def _keep(self, run: FollowedRun, source: object, end: End) -> None:
        try:
            await asyncio.sleep(_MOMENT)
            await self._take_in(run, source, end)
        finally:
            run.kept.set_result(None)

    async def _take_in(self, run: FollowedRun, source: object, end: End) -> None:
        bank = self.bank.aio.scoped(run.scope)
        trajectory = run.trajectory(source, end)
        recall, patience = run.recall, self.asked.patience
        if end.stopped is not None:
            await keep_or_spool(bank, "keep_unfinished", trajectory, recall=recall, patience=patience)
            return
        outcome, reward = end.outcome, end.reward
        if outcome is None and reward is None and self._verify:
            outcome, reward = await self._verified(trajectory)
        options: dict[str, Any] = {"outcome": outcome, "reward": reward, "patience": patience}
        await keep_or_spool(bank, "submit", trajectory, recall=recall, **options)
        with harmless("the cures of a run"):
            for cure in run.cures(trajectory):
                await bank.scoped(cure.scope).consolidate(cure)

    async def _verified(self, run: Trajectory) -> tuple[Outcome | None, float | None]:
        try:
            return stated(await cast("Any", self._verify)(run))
        except Exception as problem:  # noqa: BLE001 - the caller's own code: without it the judge decides
            log.warning("verify= could not check a run: %s", _describe(problem))
            return None, None

    async def _correct(
        self,
        run: str,
        followed: FollowedRun | None,
        scope: str | None,
        outcome: Outcome | None,
        reward: float | None,
    ) -> None:
        if followed:
            await asyncio.wrap_future(followed.kept)
        bank = self.bank.aio.scoped(followed.scope if followed else scope)
        record = await bank.runs.get(run)
        shown = followed.recall.id if followed and followed.recall and followed.recall.kept else None
        await bank.learn(record.trajectory, recall=record.recall_id or shown, outcome=outcome, reward=reward)


def _describe(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {quoted(problem)}"
