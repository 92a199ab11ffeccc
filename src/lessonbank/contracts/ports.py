"""The ports: what a part must do to take a place in the loop.

A port with one verb is a callable: a plain async function qualifies. Every port is proven by a shared suite in
`lessonbank.testing`, which third-party implementations can run too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias

from pydantic import BaseModel

from .records import (
    Change,
    Claim,
    Counts,
    Erasure,
    Experience,
    Extraction,
    Forgotten,
    Found,
    JournalEntry,
    Json,
    Kind,
    Lesson,
    LessonState,
    Match,
    Outcome,
    Queue,
    Recall,
    Record,
    Run,
    RunStatus,
    Settlement,
    Trajectory,
    Usage,
    Verdict,
)
from .records.queue import IN_HAND

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    """Unit rows, shape (n, dimensions), or one row (dimensions,)."""
else:
    Vectors: TypeAlias = Any

Role = Literal["system", "user", "assistant"]


class Message(Record):
    """One message to a language model."""

    role: Role
    content: str
    stable: int = 0
    """Characters at its start that come again in other requests: a provider that is told so keeps them in its cache."""


CUT: Final = "the model's reply was cut at its limit of tokens: what came before counts"


class Completion(Record):
    """A language model's answer."""

    text: str
    usage: Usage = Usage()
    model: str = ""
    """The model that answered, as the provider names it."""
    is_cut: bool = False
    """Whether the answer ended at the limit of tokens, and not where the model was done."""


class LanguageModel(Protocol):
    """Turns messages into text."""

    @property
    def name(self) -> str:
        """`provider:model`, or what the caller chose; kept in provenance."""
        ...

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """Answer `messages`. With `schema`, a provider that can is asked for JSON of that shape; the text is
        returned as it came, and the caller parses it tolerantly either way.

        Raises:
            ModelError: the service refused; `TransientModelError` where trying again may help.
        """
        ...


class Owed(Record):
    """An answer that a provider will give later."""

    ticket: str
    """What the provider is asked with for this answer, by any process."""
    seconds: float
    """How long to wait before asking."""


class BatchModel(LanguageModel, Protocol):
    """A language model whose provider answers many requests together, hours later."""

    async def ask(
        self,
        messages: Sequence[Message],
        /,
        *,
        temperature: float = 0.0,
        schema: type[BaseModel] | None = None,
        ticket: str | None = None,
    ) -> Completion | Owed:
        """As `generate`, but it does not wait: the answer to `messages`, or what is to be asked with for it later.

        With a `ticket` nothing is sent: the provider is asked whether the answer is there.
        """
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors of one named space."""

    @property
    def space(self) -> str:
        """Names the vector space (model, dimensions, pooling); vectors of two spaces never meet."""
        ...

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions), in the order of `texts`."""
        ...


class BlockingEmbedder(Protocol):
    """An embedder whose `embed` is a plain function. `connect` takes it, too, and calls it in a thread."""

    @property
    def space(self) -> str:
        """As `Embedder.space`."""
        ...

    def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        """As `Embedder.embed`."""
        ...


class Judge(Protocol):
    """Says whether a run did its task. `unknown` when it cannot tell; it never raises for a bad reply."""

    async def __call__(self, trajectory: Trajectory, /) -> Verdict: ...


class Extractor(Protocol):
    """Draws lessons from one attempt, or from the contrast of several attempts at one task.

    Raises:
        ExtractionError: the reply held nothing usable.
        ModelError: the model failed.
    """

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction: ...


class Retriever(Protocol):
    """Finds experiences with active lessons for a task, best first."""

    @property
    def name(self) -> str:
        """Kept on every recall."""
        ...

    @property
    def space(self) -> str | None:
        """The embedding space it searches, or `None` when it is lexical."""
        ...

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found: ...

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """Vectors to be stored with new experiences, by experience id; empty when it needs none."""
        ...

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Index up to `most` experiences that are not indexed yet; how many were done."""
        ...


class Decision(tuple[Change, ...]):
    """Changes together with what it cost to decide them: what a consolidator that asks a model returns."""

    usage: Usage

    def __new__(cls, changes: Iterable[Change] = (), /, *, usage: Usage | None = None) -> Self:
        """`usage`: of every call to a model, of those too that came to nothing."""
        made = super().__new__(cls, changes)
        made.usage = usage or Usage()
        return made


class Consolidator(Protocol):
    """Decides how a new experience changes the bank. Decides only: the store applies.

    A plain sequence of changes will do; a `Decision` also says what they cost.
    """

    async def __call__(self, new: Experience, /) -> Sequence[Change]: ...


class Redactor(Protocol):
    """Takes secrets and personal data out of text before it is judged, embedded, logged or stored."""

    def __call__(self, text: str, /) -> str: ...


class Admission(Protocol):
    """Says which drafts are lessons: they are kept, the others go under `rejected` with a reason."""

    def __call__(self, extraction: Extraction, attempts: Sequence[Run], /, *, shown: Sequence[str]) -> Extraction:
        """`shown`: texts that memory had put before the runs."""
        ...


class Agent(Protocol):
    """The user's agent, as scaling and experiments see it: a task and the memory text in, a trajectory out."""

    async def __call__(self, task: str, memory: str, /) -> Trajectory: ...


class Environment(Protocol):
    """A resettable world: `reset` gives the first observation, `step` an observation, a reward and whether it ended."""

    def reset(self) -> str: ...

    def step(self, action: str, /) -> tuple[str, float, bool]: ...


RECEIPT_SECRET: Final = "receipt_secret"
"""The setting that a bank signs its receipts with. It is never exported or shown."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Some records of another bank for `Store.import_records`. A record comes before the records that name it."""

    runs: Sequence[Trajectory] = ()
    recalls: Sequence[Recall] = ()
    experiences: Sequence[Experience] = ()
    settlements: Sequence[Settlement] = ()
    trusted: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Experience id to the lessons that were active where they come from: id to text."""


class Store(Protocol):
    """Keeps records. They are the truth; vectors, full text and counts can be rebuilt from them.

    Every call names its scope. Nothing of another scope is ever read, written, ranked or counted. A call returns only
    after its data is on disk, where the store has one. All methods may be called from several
    tasks at once and never block the event loop.
    """

    async def keep(self, trajectories: Sequence[Trajectory], /, *, scope: str, wait: float = IN_HAND) -> Sequence[str]:
        """Record runs before anything can go wrong with them. Returns the new ids; known runs are untouched.

        But one that waits takes what is said of it now (its `submission`); what is not said again stays. No
        other writer changes how one said that it ended. An unfinished run is not unfinished any more.

        No worker claims them for `wait` seconds, for whoever keeps a run mostly learns from it at once. Runs that are
        kept in one call belong together: while the first of them waits, no worker claims the others.
        """
        ...

    async def learned(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Collection[str]:
        """Those of the ids that belong to an experience already and are not pending."""
        ...

    async def holding(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Experience | None:
        """The newest experience that one of the runs belongs to."""
        ...

    async def pending(self, *, scope: str, limit: int | None = None, after: str | None = None) -> Sequence[Trajectory]:
        """Kept runs that still wait for a verdict or for extraction, oldest first.

        `after` is the id of the last one of the page before. A run that is `unfinished` is not
        among them, nor one that workers gave up. Raises NotFound (`after`).
        """
        ...

    async def claim(
        self,
        *,
        worker: str,
        limit: int,
        seconds: float,
        scope: str | None = None,
        exclusive: bool = False,
        anyway: bool = False,
    ) -> Sequence[Claim]:
        """Take up to `limit` runs that wait, for `seconds`: nobody else gets them, until these are over.

        Those that may be taken longest come first, of every scope (for a worker, never for an agent) or of `scope`.
        One that is learned meanwhile (`apply` settles it) is nobody's any more. `exclusive`: no run of a scope of which
        another worker holds one, so that one process decides what comes into a scope. `anyway`: also runs whose time
        has not come, and those that were given up, but none that another worker holds; the oldest first. `worker`
        names one worker, not a group of them.
        """
        ...

    async def extend(self, ids: Collection[str], /, *, scope: str, worker: str, seconds: float) -> Collection[str]:
        """Keep runs that `worker` took for `seconds` from now; which of them are still its own.

        A run whose time is over stays its own until somebody else takes it. One that was learned is nobody's.
        """
        ...

    async def release(
        self, id: str, /, *, scope: str, worker: str, error: str | None = None, wait: float | None = 0.0
    ) -> bool:
        """Give a run back that `worker` took; whether it was still its own.

        It is not taken again for `wait` seconds; with `None` it is given up, together with those that were kept with
        it: only `claim(anyway=True)` takes it again. `error`: why the try failed; without one it does not count as
        a try.
        """
        ...

    async def queue(self, *, scope: str | None = None) -> Queue:
        """How many runs wait in `scope`, or in all of them: for whoever runs workers, never for an agent."""
        ...

    async def get_run(self, id: str, /, *, scope: str) -> Run:
        """One kept run, with its verdict and status. Raises NotFound."""
        ...

    async def list_runs(
        self,
        *,
        scope: str,
        outcome: Outcome | None = None,
        status: RunStatus | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        before: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Run]:
        """Kept runs, newest first, at most `limit`; `after` is the id of the last one of the page before.

        A run's verdict is that of the newest experience it belongs to; without one it is `unknown`. `text`: every word
        of it stands in the run's task, steps, answer or error, whatever the case. `metadata`: the run's metadata have
        these keys with these values. `before`: kept earlier than that.

        Raises:
            UsageError: `limit` is below 1.
            NotFound: there is no run `after`.
        """
        ...

    async def trajectory(self, id: str, /, *, scope: str) -> Trajectory:
        """One kept run. Raises NotFound."""
        ...

    async def apply(
        self,
        changes: Sequence[Change],
        /,
        *,
        scope: str,
        writer: str,
        vectors: Mapping[str, Vectors] | None = None,
        space: str | None = None,
        settlement: Settlement | None = None,
        unlearned: Collection[str] = (),
        unchanged: Sequence[Experience] = (),
        one_wording: bool = False,
    ) -> Sequence[JournalEntry]:
        """Do all of it or nothing, and append it to the journal.

        An `Edit` takes the vectors of the earlier words away, and what the last review of the evidence found.

        `vectors` maps ids of experiences, or of lessons, to unit vectors of `space`. `settlement` closes a recall in
        the same transaction. A `Rollback` goes alone, and moves experiences only: runs, receipts and settlements stay.
        Vectors of what it takes out are kept for its return. Lessons that a `Trust` put in quarantine, and none took
        out of it since, stay there: a `Trust` after the `Rollback`, in the same transaction, says so. A trajectory
        stays pending while every attempt at it is `unknown`, or its experience is `pending`.

        `unlearned` and `unchanged` say what the changes were decided upon: ids of trajectories that no experience had
        settled (`learned` did not name them), and experiences as they were. Otherwise nothing is written. With
        `one_wording`, nothing is written either if a lesson that an `Add` or a `Replace` brings, or the words of an
        `Edit`, have the wording (`guard.wording`) of another lesson of the scope, whatever the state of that one.

        No lesson comes in `active`: a `Trust` makes it so, and one `by` a person alone lets it out of quarantine.

        Raises:
            UsageError: a lesson that says of itself that it is active; a `Rollback` beside other changes.
            NotFound: a change names an id this scope does not have, or a `Rollback` an entry that is not there.
            Conflict: an `Add` of an id that exists; a `Restore` of a lesson that is not retired, or the reverse; an
                `Edit` to the words a lesson has; a `Trust` in the state a lesson has, or by anybody but a person for a
                quarantined one; a run of `unlearned` that was learned, or an experience of `unchanged` that is another
                now or gone.
            SpaceMismatch: vectors of another dimension than the space has.
        """
        ...

    async def import_records(
        self,
        portions: Callable[[], Iterable[Imported]],
        /,
        *,
        scope: str,
        writer: str,
        approved_by: str | None = None,
        one_wording: bool = False,
    ) -> int:
        """Add records of another bank that this scope does not have, all of them or none; how many were new.

        `portions` gives them from the first on, each time it is called; it may be called in a thread, and twice.
        What is here already stays as it is, and no record of another bank speaks for it: a settlement of a receipt that
        was made here is passed over, and an experience loses the verdicts that it names for runs that were here. Runs,
        receipts and experiences are marked as imported. With `approved_by`, a person's name, the lessons under
        `trusted` become active where they are on probation and say the same. With `one_wording`, a lesson whose wording
        is here is left out, and its experience names the one that is here as taught again. Other writers wait until
        all of it is written.

        Raises:
            UsageError: a record of another scope; nothing was written.
            Conflict: a lesson belongs to another experience here; nothing was written.
            NotFound: a settlement names a recall that is neither here nor among the records; nothing was written.
        """
        ...

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """One experience, its lessons (retired ones included) in order. Raises NotFound."""
        ...

    async def owner(self, lesson_id: str, /, *, scope: str) -> Experience:
        """The experience a lesson belongs to. Raises NotFound."""
        ...

    async def owners(self, lesson_ids: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """The experiences that lessons belong to, each once, oldest first. Ids that are unknown are left out."""
        ...

    async def worded(self, wordings: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """The experiences with a lesson of one of these wordings (`guard.wording.wording_of`), oldest first."""
        ...

    async def repeating(self, lesson_id: str, /, *, scope: str) -> Sequence[Experience]:
        """The experiences that taught this lesson again (`Experience.repeats`), oldest first."""
        ...

    async def list_lessons(
        self,
        *,
        scope: str,
        state: LessonState | None = None,
        kind: Kind | None = None,
        writer: str | None = None,
        topics: Collection[str] | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        recall: str | None = None,
        retired: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Lesson]:
        """Lessons, newest first, at most `limit`; `after` is the id of the last one of the page before.

        Retired ones are left out, unless `retired` or `state="retired"` asks for them. `writer` is that of the lesson's
        provenance. `topics`: the lesson's is one of these ids. `text`: every word of it stands in the title,
        description or content, whatever the case. `metadata`: the metadata of the lesson's experience have these keys
        with these values. `recall`: the lesson's experience is of the recall of that id. To list one state reads no
        lesson of another.

        Raises:
            UsageError: `limit` is below 1.
            NotFound: there is no lesson `after`.
        """
        ...

    def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """Every experience of the scope, oldest first, as one snapshot."""
        ...

    async def nearest(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, exclude: Collection[str] = ()
    ) -> Sequence[Match]:
        """The experiences with at least one active lesson whose task vectors are closest by cosine.

        In a space of lessons, the active lessons whose vectors are closest: one match each, which names the lesson.
        Filtered by scope, `exclude` (experience ids) and active lessons before ranking; equal scores newest first.
        A limit of 0 asks only whether the vector fits. Raises SpaceMismatch: it has another dimension than the space.
        """
        ...

    async def search(self, query: str, /, *, scope: str, limit: int, exclude: Collection[str] = ()) -> Sequence[Match]:
        """The same, by the words of the tasks: BM25 with statistics of this scope only, scaled so that the query's
        own text scores 1. Experiences without a common word are left out; equal scores newest first."""
        ...

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        """(id, task) of experiences without a vector in `space`, oldest first; with `lessons`, (id, text) of lessons.

        A space is of tasks or of lessons, as its retriever chose.
        """
        ...

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str) -> None:
        """Set vectors of existing experiences or lessons, by id. Not journaled: vectors are rebuildable."""
        ...

    async def drop_index(self, *, scope: str, space: str) -> None:
        """Forget every vector of a space in this scope."""
        ...

    async def record(self, recall: Recall, /, *, returned: bool = False) -> bool:
        """Keep a receipt, before its text leaves the process; whether the scope has it now. A known one stays as it is.

        `returned`: it was not kept then, and comes back. It is not kept either if the scope erased anything since it
        was made: it may hold what was erased.
        """
        ...

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """A kept receipt, without its lessons. Raises NotFound."""
        ...

    async def list_recalls(
        self,
        *,
        scope: str,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        lesson: str | None = None,
        settled: bool | None = None,
        before: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Recall]:
        """Kept receipts without lessons, newest first, at most `limit`; `after` is the id of the last one before.

        `text`: every word of it stands in the task or the text that was shown, whatever the case. `metadata`: the
        recall's metadata have these keys with these values. `lesson`: it showed the lesson of that id. `settled`: its
        outcome is known, or not. `before`: made earlier than that.

        Raises:
            UsageError: `limit` is below 1.
            NotFound: there is no recall `after`.
        """
        ...

    def receipts(self, *, scope: str, settled: bool | None = None) -> AsyncIterator[Recall]:
        """Every kept receipt of the scope, without lessons, oldest first; `settled` asks for those that are, or not."""
        ...

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """The latest settlement of a recall."""
        ...

    def journal(
        self,
        *,
        scope: str,
        since: int = 0,
        kinds: Collection[str] | None = None,
        naming: Collection[str] | None = None,
    ) -> AsyncIterator[JournalEntry]:
        """Entries of the scope with a sequence above `since`, oldest first; with `kinds` (`add`, `settle`, …) only
        these, without reading the others. With `naming`, entries that hold none of these ids may be left out: it is
        quicker than to read them."""
        ...

    async def counts(self, *, scope: str) -> Counts:
        """How much the scope holds."""
        ...

    async def scopes(self) -> Sequence[str]:
        """Every scope that holds anything, sorted. For the owner of the file, never for an agent."""
        ...

    async def setting(self, key: str, /) -> str | None:
        """A choice kept with the bank, such as its embedder.

        Under `RECEIPT_SECRET` lies what the bank signs its receipts with. It is drawn at random when the bank is made.
        """
        ...

    async def settings(self, prefix: str, /) -> Mapping[str, str]:
        """Every choice whose name begins with `prefix`, by name, sorted."""
        ...

    async def set_setting(self, key: str, value: str | None, /) -> None:
        """Keep a choice with the bank; `None` removes it."""
        ...

    async def purge(self, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
        """Erase a lesson, trajectory, recall or the whole scope, with all that was derived from it, past and present.

        What is derived from a trajectory: lessons drawn from it, alone or with others; experiences without an attempt
        at another trajectory; what was merged from these. Of a lesson: what was merged from it. A recall goes with its
        settlement, and nothing else does. Receipts that showed any of it lose their text, and kept runs in which that
        text stands lose it, too. Journal entries lose their content, and the medium its bytes. What remains is the
        entry returned, a `Purge`. The scope's last change stays the last, so moments keep their numbers. `id` is
        ignored for a scope. A scope can be purged that holds nothing.

        Raises:
            NotFound: neither the scope nor its past knows the id.
            StoreUnavailable: it is erased, but another reader still keeps the old bytes; `rebuild` finishes it.
        """
        ...

    async def purge_many(
        self,
        these: Sequence[tuple[Erasure, str]],
        /,
        *,
        scope: str,
        writer: str,
        reason: str,
        changes: Sequence[Change] = (),
        unchanged: Sequence[Experience] = (),
    ) -> Sequence[JournalEntry]:
        """`purge` each of these, all of them or none, and rewrite the medium once. Not for scopes.

        A lesson that goes with one that is named before it needs no entry of its own. `changes` are made first, in the
        same transaction: they pass on what lives on in other words. `unchanged` is what they were decided upon, as for
        `apply`. The entries returned are those of the erasures.

        Raises:
            UsageError: one of them is a scope.
            NotFound, StoreUnavailable: as `purge` does.
            Conflict: a change does not fit, or what it was decided upon is not so any more; nothing was written.
        """
        ...

    async def forget(self, *, scope: str, before: datetime, writer: str) -> Forgotten:
        """Erase runs kept, and recalls made, before a moment; how many. The medium loses their bytes, too.

        Runs go whole, those that wait among them. A recall without an outcome goes whole. Of one with an outcome the
        evidence stays: its times, candidates and probabilities; text, notes and metadata go, and in the place of the
        task is a salted digest that only tells which tasks were alike. Lessons, experiences (with their tasks and
        verdicts) and settlements stay. The journal says how much was forgotten; nothing is written where nothing was.

        Raises:
            StoreUnavailable: it is erased, but another reader still keeps the old bytes; `rebuild` finishes it.
        """
        ...

    async def rebuild(self) -> None:
        """Rebuild everything that follows from the records: lessons, the word index, sums, pending marks.

        Vectors that belong to nothing are dropped. Missing ones need an embedder: ask `unindexed`, then call `index`.
        """
        ...

    async def verify(self, *, records: bool = True) -> Sequence[str]:
        """What is wrong with what is stored, one sentence each; empty when nothing was found.

        `records=False` reads no record: it looks whether the medium is whole and its tables fit one another, which
        takes seconds where reading takes minutes. What a record says may be wrong all the same.
        """
        ...

    async def storage(self) -> Mapping[str, str]:
        """What keeps the bank, and how it is: versions and what its owner should do, in short texts by name."""
        ...

    async def backup(self, path: Path, /) -> None:
        """Copy the whole store as it is now to `path`, while others write: whole, checked and on disk, or not at all.

        Raises:
            UsageError: `path` is the store itself, a folder or no bank; or the store is not in a file.
            StoreUnavailable: the copy cannot be written, or the store is damaged.
        """
        ...

    async def close(self) -> None:
        """Release files and threads. Calling it twice is fine; any other call afterwards raises StoreUnavailable."""
        ...
