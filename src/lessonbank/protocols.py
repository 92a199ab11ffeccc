"""The ports: what a part must do to take a place in the loop.

A port with one verb is a callable: a plain async function qualifies. Every port is proven by a shared suite in
`lessonbank.testing`, which third-party implementations can run too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from pydantic import BaseModel

from .types import (
    Change,
    Counts,
    Erasure,
    Experience,
    Extraction,
    Found,
    JournalEntry,
    Match,
    Recall,
    Record,
    Run,
    Settlement,
    Trajectory,
    Usage,
    Verdict,
)

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


class Completion(Record):
    """A language model's answer."""

    text: str
    usage: Usage = Usage()
    model: str = ""
    """The model that answered, as the provider names it."""


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


class Embedder(Protocol):
    """Turns texts into unit vectors of one named space."""

    @property
    def space(self) -> str:
        """Names the vector space (model, dimensions, pooling); vectors of two spaces never meet."""
        ...

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions), in the order of `texts`."""
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
    """Says which of the drawn lessons are lessons: they are kept, the others go under `rejected` with a reason."""

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


class Store(Protocol):
    """Keeps records. They are the truth; vectors, full text and counts can be rebuilt from them.

    Every call names its scope, and nothing of another scope is ever read, written, ranked or counted. Whatever a
    call acknowledged is on disk (where the store has one) before it returns. All methods may be called from several
    tasks at once and never block the event loop.
    """

    async def keep(self, trajectories: Sequence[Trajectory], /, *, scope: str) -> Sequence[str]:
        """Record runs before anything can go wrong with them. Returns the new ids; known runs are untouched."""
        ...

    async def learned(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Collection[str]:
        """Those of the ids that belong to an experience already and are not pending."""
        ...

    async def holding(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Experience | None:
        """The newest experience that one of the runs belongs to."""
        ...

    async def pending(self, *, scope: str, limit: int | None = None) -> Sequence[Trajectory]:
        """Kept runs that still wait for a verdict or for extraction, oldest first."""
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
    ) -> Sequence[JournalEntry]:
        """Do all of it or nothing, and append it to the journal.

        `vectors` maps ids of experiences, or of lessons, to unit vectors of `space`. `settlement` closes a recall in the
        same breath. A `Rollback` goes alone, and moves experiences only: runs, receipts and settlements stay. Vectors
        of what it takes out are kept for its return. A trajectory stays pending while every attempt at it is
        `unknown`, or its experience's metadata has `"pending": true`.

        `unlearned` and `unchanged` say what the changes were decided upon: ids of trajectories that no experience had
        settled (`learned` did not name them), and experiences as they were. If that is so no more, nothing is written.

        No lesson comes in `active`: a `Trust` makes it so, and one `by` a person alone lets it out of quarantine.

        Raises:
            UsageError: a lesson that says of itself that it is active; a `Rollback` beside other changes.
            NotFound: a change names an id this scope does not have, or a `Rollback` an entry that is not there.
            Conflict: an `Add` of an id that exists; a `Restore` of a lesson that is not retired, or the reverse; a
                `Trust` in the state a lesson has, or by anybody but a person for a quarantined one; a run
                of `unlearned` that was learned, or an experience of `unchanged` that is another now or gone.
            SpaceMismatch: vectors of another dimension than the space has.
        """
        ...

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """One experience, its lessons (retired ones included) in order. Raises NotFound."""
        ...

    async def owner(self, lesson_id: str, /, *, scope: str) -> Experience:
        """The experience a lesson belongs to. Raises NotFound."""
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

    async def record(self, recall: Recall, /) -> None:
        """Keep a receipt, before its text leaves the process."""
        ...

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """A kept receipt, without its lessons. Raises NotFound."""
        ...

    def receipts(self, *, scope: str, settled: bool | None = None) -> AsyncIterator[Recall]:
        """Every kept receipt of the scope, without lessons, oldest first; with `settled`, only those that are, or not."""
        ...

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """The latest settlement of a recall."""
        ...

    def journal(
        self, *, scope: str, since: int = 0, kinds: Collection[str] | None = None
    ) -> AsyncIterator[JournalEntry]:
        """Entries of the scope with a sequence above `since`, oldest first; with `kinds` (`add`, `settle`, …) only
        these, without reading the others."""
        ...

    async def counts(self, *, scope: str) -> Counts:
        """How much the scope holds."""
        ...

    async def scopes(self) -> Sequence[str]:
        """Every scope that holds anything, sorted. For the owner of the file, never for an agent."""
        ...

    async def setting(self, key: str, /) -> str | None:
        """A choice kept with the bank, such as its embedder."""
        ...

    async def set_setting(self, key: str, value: str, /) -> None:
        """Keep a choice with the bank."""
        ...

    async def purge(self, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
        """Erase one lesson, one trajectory or the whole scope, with everything derived from it, past and present.

        What is derived from a trajectory: lessons drawn from it, alone or with others; experiences without an attempt
        at another trajectory; what was merged from these. Of a lesson: what was merged from it. Receipts that showed
        any of it lose their text, journal entries their content, and the medium its bytes. What remains is the entry
        returned, a `Purge`. The scope's last change stays the last, so moments keep their numbers. `id` is ignored
        for a scope. A scope can be purged that holds nothing.

        Raises:
            NotFound: neither the scope nor its past knows the id.
            StoreUnavailable: it is erased, but another reader still keeps the old bytes; `rebuild` finishes it.
        """
        ...

    async def rebuild(self) -> None:
        """Make everything that follows from the records anew: lessons, the word index, sums, pending marks.

        Vectors that belong to nothing are dropped. Missing ones need an embedder: ask `unindexed`, then call `index`.
        """
        ...

    async def verify(self) -> Sequence[str]:
        """What is wrong with the stored records, one sentence each; empty when all is sound."""
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
