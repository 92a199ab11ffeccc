"""`ReasoningBank`: the same bank for code that does not await. Derived from the async one, not written twice."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Coroutine
from types import CodeType
from typing import Any, Concatenate, Final, Generic, NoReturn, ParamSpec, Self, TypeVar, Unpack

from lessonbank._base.checks import a_text, an_action
from lessonbank._base.keywords import no_such_keyword
from lessonbank._base.sync_bridge import begin, run_sync
from lessonbank.contracts.retrieve_options import RetrieveKeywords, takes_retrieve_options

from .attempt import Attempt
from .loop import AsyncReasoningBank
from .views import AsyncAdmin, AsyncHistory, AsyncLessons, AsyncRecalls, AsyncRuns

log = logging.getLogger("lessonbank")
A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Generic[A]):
    """The blocking twin of the async object `aio`."""

    def __init__(self, aio: A, /) -> None:
        self.aio = aio

    def __iter__(self) -> NoReturn:
        name = type(self).__name__.lower()
        here = f"bank.{name}.list()" if hasattr(self, "list") else "bank.lessons.list() or bank.runs.list()"
        raise TypeError(f"{type(self).__name__} is no list: write {here}")

    __len__ = __iter__  # the same for `len(bank.lessons)`

    def __bool__(self) -> bool:
        return True


def _sync(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], /
) -> Callable[Concatenate[Blocking[Any], P], T]:
    """The blocking twin of an async method: same parameters, same result, same docstring.

    What the method asks of its bank (a protocol, in `scale` and `trial`) is none of the blocking bank's type.
    """

    @functools.wraps(method)
    def call(self: Blocking[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[P, Coroutine[Any, Any, T]] = getattr(self.aio, method.__name__)  # a remote bank has its own
        frame = inspect.currentframe()
        if frame and frame.f_back and frame.f_back.f_code.co_flags & inspect.CO_COROUTINE:  # a notebook's cell is none
            _warn_of_blocking(f"{type(self).__name__}.{method.__name__}", frame.f_back.f_code)
        try:
            return run_sync(bound(*args, **kwargs))
        except TypeError as error:
            name = f"{type(self).__name__}.{method.__name__}"
            wrong = no_such_keyword(method, name, kwargs)
            if wrong is None and not str(error).startswith(f"Async{name}() "):
                raise
            raise TypeError(wrong or str(error).removeprefix("Async")) from None

    return call


_warned: Final = set[CodeType]()
"""The async functions that were told: each is told once."""


def _warn_of_blocking(name: str, function: CodeType) -> None:
    if function not in _warned:
        _warned.add(function)
        log.warning(
            "%s() was called in the async function %s, whose event loop stands still until it returns: use "
            "`bank = await lessonbank.connect_async(…)` there, and await its methods",
            name,
            function.co_name,
        )


class Lessons(Blocking[AsyncLessons]):
    """`bank.lessons`. Every method acts in the scope of its bank."""

    list = _sync(AsyncLessons.list)
    search = _sync(AsyncLessons.search)
    topics = _sync(AsyncLessons.topics)
    get = _sync(AsyncLessons.get)
    experience = _sync(AsyncLessons.experience)
    repeats = _sync(AsyncLessons.repeats)
    split = _sync(AsyncLessons.split)
    merge = _sync(AsyncLessons.merge)
    unmerge = _sync(AsyncLessons.unmerge)
    add = _sync(AsyncLessons.add)
    note = _sync(AsyncLessons.note)
    edit = _sync(AsyncLessons.edit)
    narrow = _sync(AsyncLessons.narrow)
    proposals = _sync(AsyncLessons.proposals)
    approve = _sync(AsyncLessons.approve)
    quarantine = _sync(AsyncLessons.quarantine)
    retire = _sync(AsyncLessons.retire)
    restore = _sync(AsyncLessons.restore)


class Runs(Blocking[AsyncRuns]):
    """`bank.runs`. Every method acts in the scope of its bank."""

    list = _sync(AsyncRuns.list)
    search = _sync(AsyncRuns.search)
    get = _sync(AsyncRuns.get)
    pending = _sync(AsyncRuns.pending)
    retry = _sync(AsyncRuns.retry)
    queue = _sync(AsyncRuns.queue)
    spending = _sync(AsyncRuns.spending)
    correct = _sync(AsyncRuns.correct)
    audit = _sync(AsyncRuns.audit)
    unlabelled = _sync(AsyncRuns.unlabelled)


class Recalls(Blocking[AsyncRecalls]):
    """`bank.recalls`. Every method acts in the scope of its bank."""

    list = _sync(AsyncRecalls.list)
    search = _sync(AsyncRecalls.search)
    get = _sync(AsyncRecalls.get)
    preview = _sync(AsyncRecalls.preview)
    explain = _sync(AsyncRecalls.explain)


class History(Blocking[AsyncHistory]):
    """`bank.history`. Every method acts in the scope of its bank."""

    list = _sync(AsyncHistory.list)
    state = _sync(AsyncHistory.state)
    diff = _sync(AsyncHistory.diff)
    retrieve = _sync(AsyncHistory.retrieve)
    rollback = _sync(AsyncHistory.rollback)
    lineage = _sync(AsyncHistory.lineage)


class Admin(Blocking[AsyncAdmin]):
    """`bank.admin`. Methods act in the scope of the bank, but `scopes`, `backup`, `verify` and `rebuild`."""

    counts = _sync(AsyncAdmin.counts)
    export = _sync(AsyncAdmin.export)
    import_ = _sync(AsyncAdmin.import_)
    sync = _sync(AsyncAdmin.sync)
    reindex = _sync(AsyncAdmin.reindex)
    unembedded = _sync(AsyncAdmin.unembedded)
    purge = _sync(AsyncAdmin.purge)
    forget = _sync(AsyncAdmin.forget)
    scopes = _sync(AsyncAdmin.scopes)
    backup = _sync(AsyncAdmin.backup)
    storage = _sync(AsyncAdmin.storage)
    verify = _sync(AsyncAdmin.verify)
    rebuild = _sync(AsyncAdmin.rebuild)
    add_writer = _sync(AsyncAdmin.add_writer)
    remove_writer = _sync(AsyncAdmin.remove_writer)
    writers = _sync(AsyncAdmin.writers)
    add_reviewer = _sync(AsyncAdmin.add_reviewer)
    remove_reviewer = _sync(AsyncAdmin.remove_reviewer)
    reviewers = _sync(AsyncAdmin.reviewers)


class ReasoningBank(Blocking[AsyncReasoningBank]):
    """A bank whose methods wait for their result: in a script, a thread, a notebook's running loop, after a fork.

    Made by `lessonbank.connect`. `aio` is the async bank inside.
    """

    retrieve = _sync(AsyncReasoningBank.retrieve)
    recall_again = _sync(AsyncReasoningBank.recall_again)
    learn = _sync(AsyncReasoningBank.learn)
    submit = _sync(AsyncReasoningBank.submit)
    tell = _sync(AsyncReasoningBank.tell)
    keep_unfinished = _sync(AsyncReasoningBank.keep_unfinished)
    judge = _sync(AsyncReasoningBank.judge)
    extract = _sync(AsyncReasoningBank.extract)
    consolidate = _sync(AsyncReasoningBank.consolidate)
    scale = _sync(AsyncReasoningBank.scale)
    lift = _sync(AsyncReasoningBank.lift)
    reflect = _sync(AsyncReasoningBank.reflect)
    trial = _sync(AsyncReasoningBank.trial)
    drain = _sync(AsyncReasoningBank.drain)
    close = _sync(AsyncReasoningBank.close)

    def scoped(
        self, scope: str | None = None, /, *, writer: str | None = None, key: str | None = None
    ) -> ReasoningBank:
        """A handle on the same bank for another scope, another writer, or both; see `AsyncReasoningBank.scoped`."""
        return ReasoningBank(self.aio.scoped(scope, writer=writer, key=key))

    @property
    def lessons(self) -> Lessons:
        """The lessons of this scope: list, search, add, edit, narrow, approve, quarantine, retire, restore."""
        return Lessons(self.aio.lessons)

    @property
    def runs(self) -> Runs:
        """The kept runs of this scope: list, search, correct, retry, audit, unlabelled."""
        return Runs(self.aio.runs)

    @property
    def recalls(self) -> Recalls:
        """The receipts of this scope: list, get, preview, explain."""
        return Recalls(self.aio.recalls)

    @property
    def history(self) -> History:
        """The journal of this scope: list, state, retrieve, diff, rollback, lineage."""
        return History(self.aio.history)

    @property
    def admin(self) -> Admin:
        """Counts, export, import, purge; and for the whole file scopes, backup, verify, rebuild."""
        return Admin(self.aio.admin)

    @property
    def scope(self) -> str:
        """Whose memory this is."""
        return self.aio.scope

    @property
    def writer(self) -> str:
        """Under whose name changes are kept."""
        return self.aio.writer

    @property
    def settings(self) -> dict[str, object]:
        """What is in force: store, profile, models, embedder, retriever and every setting; secrets are masked."""
        return self.aio.settings

    @takes_retrieve_options
    def attempt(self, task: str, /, **options: Unpack[RetrieveKeywords]) -> Attempt:
        """`with bank.attempt(task) as attempt`: retrieves, and learns on `attempt.finish(…)` or on a crash."""
        return Attempt(self.aio.attempt(task, **options), run=run_sync)

    def in_background(self, work: Callable[[], Coroutine[Any, Any, object]], /, *, lost: str) -> None:
        """Begin `work` on the bank's own event loop, and return at once; see `AsyncReasoningBank.in_background`."""
        begin(functools.partial(self.aio.in_background, lost=a_text(lost, "lost=")), an_action(work, "work"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
