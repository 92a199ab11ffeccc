"""`ReasoningBank`: the same bank for code that does not await. Derived from the async one, not written twice."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ._portal import run_sync
from .attempt import Attempt
from .bank import AsyncReasoningBank

P = ParamSpec("P")
T = TypeVar("T")


def _sync(
    method: Callable[Concatenate[AsyncReasoningBank, P], Coroutine[Any, Any, T]], /
) -> Callable[Concatenate[ReasoningBank, P], T]:
    """The waiting twin of an async method: same parameters, same result, same docstring."""

    @functools.wraps(method)
    def call(self: ReasoningBank, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(method(self.aio, *args, **kwargs))

    return call


class ReasoningBank:
    """A bank whose methods wait for their result: in a script, a thread, a notebook's running loop, after a fork.

    Made by `lessonbank.connect`. `aio` is the async bank inside.
    """

    def __init__(self, bank: AsyncReasoningBank, /) -> None:
        self.aio = bank

    retrieve = _sync(AsyncReasoningBank.retrieve)
    learn = _sync(AsyncReasoningBank.learn)
    judge = _sync(AsyncReasoningBank.judge)
    extract = _sync(AsyncReasoningBank.extract)
    consolidate = _sync(AsyncReasoningBank.consolidate)
    scale = _sync(AsyncReasoningBank.scale)
    lift = _sync(AsyncReasoningBank.lift)
    explain = _sync(AsyncReasoningBank.explain)
    replay = _sync(AsyncReasoningBank.replay)
    items = _sync(AsyncReasoningBank.items)
    get = _sync(AsyncReasoningBank.get)
    experience = _sync(AsyncReasoningBank.experience)
    trajectory = _sync(AsyncReasoningBank.trajectory)
    pending = _sync(AsyncReasoningBank.pending)
    counts = _sync(AsyncReasoningBank.counts)
    scopes = _sync(AsyncReasoningBank.scopes)
    verify = _sync(AsyncReasoningBank.verify)
    retire = _sync(AsyncReasoningBank.retire)
    restore = _sync(AsyncReasoningBank.restore)
    approve = _sync(AsyncReasoningBank.approve)
    quarantine = _sync(AsyncReasoningBank.quarantine)
    history = _sync(AsyncReasoningBank.history)
    as_of = _sync(AsyncReasoningBank.as_of)
    diff = _sync(AsyncReasoningBank.diff)
    retrieve_as_of = _sync(AsyncReasoningBank.retrieve_as_of)
    lineage = _sync(AsyncReasoningBank.lineage)
    rollback = _sync(AsyncReasoningBank.rollback)
    purge = _sync(AsyncReasoningBank.purge)
    rebuild = _sync(AsyncReasoningBank.rebuild)
    backup = _sync(AsyncReasoningBank.backup)
    export = _sync(AsyncReasoningBank.export)
    import_ = _sync(AsyncReasoningBank.import_)
    reindex = _sync(AsyncReasoningBank.reindex)
    close = _sync(AsyncReasoningBank.close)

    def signed_by(self, writer: str, /) -> ReasoningBank:
        """The same bank for another writer; see `AsyncReasoningBank.signed_by`."""
        return ReasoningBank(self.aio.signed_by(writer))

    @property
    def scope(self) -> str:
        """Whose memory this is."""
        return self.aio.scope

    @property
    def parts(self) -> dict[str, str]:
        """What is active: store, retriever, embedder, judge, extractor, and why."""
        return self.aio.parts

    def attempt(self, task: str, /, *, limit: int | None = None, scope: str | None = None) -> Attempt:
        """`with bank.attempt(task) as attempt`: retrieves, and learns on `attempt.finish(...)` or on a crash."""
        return Attempt(self.aio.attempt(task, limit=limit, scope=scope), wait=run_sync)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
