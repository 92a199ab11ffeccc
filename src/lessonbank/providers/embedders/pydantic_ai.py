"""Every provider's embeddings, through pydantic-ai."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import anyio

from lessonbank.contracts.ports import Vectors
from lessonbank.errors import MissingExtra, ModelError, ModelTimeout, UsageError
from lessonbank.providers.connection import Connection, first_sentence, said_of, source_of, translated

from ._rows import unit_rows

try:
    from pydantic_ai.embeddings import EmbeddingModel, EmbeddingSettings, infer_embedding_model
    from pydantic_ai.exceptions import ModelAPIError, UserError
    from pydantic_ai.providers import Provider
except ImportError as missing:
    raise MissingExtra("an embedder named `provider:model`", extra="models") from missing

# What each model gives when no other length is asked for: the space is named before the first vector is there.
_NATIVE = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
    "embed-v4.0": 1536,
    "voyage-3.5": 1024,
    "voyage-3.5-lite": 1024,
}


class PydanticAIEmbedder:
    """A provider's embedding model.

    The SDK's own retries (two, honouring Retry-After) stay on: an embedding request has no other.

    Args:
        model: `provider:model` (or `provider/model`), or a ready pydantic-ai `EmbeddingModel`.
        base_url: an OpenAI-compatible server; the model is then named as that server names it.
        api_key: instead of the provider's environment variable (with `base_url`: of `OPENAI_API_KEY`).
        dimensions: a shorter vector than the model's own, where the provider can.
        window: bytes of UTF-8 the model surely reads: a token is never less than one. `Chunked` uses it.
        seconds: time limit of one request.

    Raises:
        UsageError: no such provider, no key, or a name without a provider.
        MissingExtra: the provider's SDK is not installed.
    """

    def __init__(
        self,
        model: str | EmbeddingModel,
        /,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        window: int = 8000,
        seconds: float = 60.0,
    ) -> None:
        source = model
        if isinstance(model, str):
            source = source_of(model, base_url, what="embedder", compatible="openai")
        self._connection = Connection[EmbeddingModel]("embedder", source, _make, base_url=base_url, api_key=api_key)
        built = self._connection.first
        self._asked = dimensions
        self._window = window
        self._seconds = seconds
        self._name = model if isinstance(model, str) else f"{built.system}:{built.model_name}"
        self._dimensions = dimensions or _NATIVE.get(built.model_name)
        self._space = f"{self._name}-{self._dimensions or 'native'}"

    @property
    def space(self) -> str:
        """`provider:model` and the dimensions, or `native` where only the provider knows them."""
        return self._space

    @property
    def window(self) -> int:
        """The most bytes of one text a request may hold."""
        return self._window

    def count(self, text: str, /) -> int:
        """Bytes of UTF-8: at least as many as tokens."""
        return len(text.encode("utf-8", "replace"))

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions).

        Raises:
            ModelError: the provider refused or gave something else than vectors.
            TransientModelError: it was overloaded, unreachable or too slow, after the SDK's own retries.
        """
        if not texts:
            return unit_rows([], count=0, name=self._name)
        # Providers refuse an empty input; a full stop is the least a text can say.
        inputs = [text.encode("utf-8", "replace").decode("utf-8") if text.strip() else "." for text in texts]
        rows = unit_rows(await self._request(inputs, role), count=len(texts), name=self._name)
        self._check_dimensions(rows.shape[1])
        return rows

    async def _request(self, inputs: list[str], role: Literal["query", "document"]) -> Sequence[Sequence[float]]:
        model = await self._connection.here()
        settings = EmbeddingSettings(dimensions=self._asked) if self._asked else EmbeddingSettings()
        try:
            with anyio.move_on_after(self._seconds):
                return (await model.embed(inputs, input_type=role, settings=settings)).embeddings
        except ModelAPIError as error:
            raise translated(error, self._name) from error
        except UserError as error:
            raise UsageError(f"{self._name}: {first_sentence(error)}") from error
        except Exception as error:  # an SDK may raise anything
            raise ModelError(f"{self._name} failed: {said_of(error)}") from error
        raise ModelTimeout(f"{self._name} gave no vectors within {self._seconds:g} s")

    def _check_dimensions(self, dimensions: int) -> None:
        expected = self._dimensions
        if expected is not None and dimensions != expected:
            raise ModelError(f"{self._name} gave vectors of {dimensions} dimensions where {expected} were expected")
        self._dimensions = dimensions


def is_space(name: str, /) -> bool:
    """Whether a name ends with the dimensions that an embedder puts behind that of its model."""
    model, _, dimensions = name.rpartition("-")
    return bool(model) and (dimensions == "native" or (dimensions.isdecimal() and model in _NATIVE))


def _make(source: str | EmbeddingModel, provider: Callable[[str], Provider[Any]]) -> EmbeddingModel:
    return infer_embedding_model(source, provider_factory=provider) if isinstance(source, str) else source
