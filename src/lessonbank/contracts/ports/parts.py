"""The ports of the loop's parts: models, embedders, the steps of the loop, and what a user brings."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, Protocol, Self

from pydantic import BaseModel

from lessonbank.contracts.records import Change, Experience, Extraction, Found, Record, Run, Trajectory, Usage, Verdict
from lessonbank.contracts.records.usage import NO_USAGE

from .vectors import Vectors

Role = Literal["system", "user", "assistant"]


class Message(Record):
    """One message to a language model."""

    role: Role
    content: str
    stable: int = 0
    """Characters at its start that come again in other requests: a provider that is told so keeps them in its cache."""


_MOST: Final[ContextVar[int | None]] = ContextVar("most", default=None)


@contextmanager
def replies_of(tokens: int, /) -> Generator[None]:
    """Inside, a reply needs at most so many tokens: a provider ends it there, unless its model thinks first."""
    token = _MOST.set(tokens)
    try:
        yield
    finally:
        _MOST.reset(token)


def most_tokens() -> int | None:
    """How many tokens the reply that is asked for needs at most; `None` where nobody said."""
    return _MOST.get()


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
        made.usage = usage or NO_USAGE
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
