"""Every provider's embeddings, through pydantic-ai."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Literal, cast

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from lessonbank.errors import (
    LessonbankError,
    MissingExtra,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    ModelUnreachable,
    TransientModelError,
    UsageError,
)
from lessonbank.guard import one_line
from lessonbank.guard.quote import quoted, words_of
from lessonbank.protocols import Vectors

from ._rows import unit_rows

try:
    import httpx2
    from pydantic_ai.embeddings import EmbeddingModel, EmbeddingSettings, infer_embedding_model
    from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, UserError
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
except ImportError as missing:
    raise MissingExtra("an embedder named `provider:model`", extra="models") from missing

_COMPATIBLE = frozenset({"openai", "openai-chat", "ollama", "vllm", "litellm"})
_OUR_EXTRAS = frozenset({"openai", "google"})
_AGAIN = frozenset({408, 409, 425, 429})
_FOR_GOOD = frozenset({401, 402, 403, 404})
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
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            shown = base_url.split("@")[-1].split("?")[0]  # without a name, a password or a key
            raise UsageError(f"`base_url` must begin with http:// or https://, got {shown!r}")
        if api_key is not None and not api_key.strip():
            raise UsageError("api_key is blank: pass the key, or leave api_key out to use the environment's")
        self._source = _model_id(model, base_url) if isinstance(model, str) else model
        self._base_url = base_url
        self._api_key = api_key
        self._asked = dimensions
        self._window = window
        self._seconds = seconds
        # See `models/pydantic_ai.py`: one model (and connection pool) for each event loop.
        built = self._build()
        self._spare: EmbeddingModel | None = built
        self._models: RunVar[EmbeddingModel] = RunVar("embedding models")
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
        model = await self._here()
        settings = EmbeddingSettings(dimensions=self._asked) if self._asked else EmbeddingSettings()
        try:
            with anyio.move_on_after(self._seconds):
                return (await model.embed(inputs, input_type=role, settings=settings)).embeddings
        except ModelAPIError as error:
            raise _translated(error, self._name) from error
        except UserError as error:
            raise UsageError(f"{self._name}: {_first_sentence(error)}") from error
        except Exception as error:  # an SDK may raise anything
            said = quoted(f"{type(error).__name__}: {words_of(error)}")
            raise ModelError(f"{self._name} failed: {said}") from error
        raise ModelTimeout(f"{self._name} gave no vectors within {self._seconds:g} s")

    def _check_dimensions(self, dimensions: int) -> None:
        expected = self._dimensions
        if expected is not None and dimensions != expected:
            raise ModelError(f"{self._name} gave vectors of {dimensions} dimensions where {expected} were expected")
        self._dimensions = dimensions

    async def _here(self) -> EmbeddingModel:
        try:
            return self._models.get()
        except LookupError:
            model, self._spare = self._spare, None
            if model is None:
                model = await anyio.to_thread.run_sync(self._build)
            self._models.set(model)
            return model

    def _build(self) -> EmbeddingModel:
        if not isinstance(self._source, str):
            return self._source
        try:
            return infer_embedding_model(self._source, provider_factory=self._provider)
        except ImportError as error:
            raise _missing(self._source, error) from error
        except (UserError, ValueError) as error:
            raise UsageError(f"the embedder {self._source!r} cannot be used: {_first_sentence(error)}") from error
        except LessonbankError:
            raise
        except Exception as error:  # an SDK may raise anything
            said = quoted(f"{type(error).__name__}: {words_of(error)}")
            raise UsageError(f"the embedder {self._source!r} cannot be used: {said}") from error

    def _provider(self, name: str) -> Provider[Any]:
        if self._base_url is None and self._api_key is None:
            return infer_provider(name)
        provider: Any = infer_provider_class(name)
        if self._base_url is None:
            return provider(api_key=self._api_key)
        limits = httpx2.Limits(max_keepalive_connections=0)
        client = httpx2.AsyncClient(limits=limits, timeout=httpx2.Timeout(600.0, connect=10.0))
        # A variable that is set and blank would become a header that no client sends.
        key = self._api_key or os.environ.get("OPENAI_API_KEY", "").strip() or "no-key"
        return provider(base_url=self._base_url, api_key=key, http_client=client)


def _model_id(model: str, base_url: str | None, /) -> str:
    if base_url is not None:
        provider, colon, rest = model.partition(":")
        return f"openai:{rest if colon and provider in _COMPATIBLE else model}"
    if ":" in model:
        return model
    provider, slash, rest = model.partition("/")
    if not slash or not rest:
        raise UsageError(
            f"the embedder {model[:80]!r} has no provider: write `provider:model`, such as 'openai:{model[:80]}', "
            "or give the `base_url` of an OpenAI-compatible server"
        )
    return f"{provider}:{rest}"


def _translated(error: ModelAPIError, name: str, /) -> ModelError:
    body = error.body
    message = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else None
    said = quoted(str(message or error.message))
    if isinstance(error, ModelConnectionError):
        return ModelUnreachable(f"{name} could not be reached: {said}")
    status: int | None = getattr(error, "status_code", None)
    if status is None:
        return ModelError(f"{name} answered in a form that cannot be read: {said}")
    again = status >= 500 or status in _AGAIN
    said = f"{name} answered HTTP {status}: {said}"
    if status in _FOR_GOOD:
        return ModelUnavailable(said)
    return TransientModelError(said, retry_after=error.retry_after) if again else ModelError(said)


def _first_sentence(error: Exception, /) -> str:
    return one_line(str(error).partition(" To try Pydantic AI")[0], limit=300)


def _missing(model: str, error: ImportError, /) -> UsageError:
    provider = model.partition(":")[0]
    named = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    extra = named[1] if named else provider
    if extra in _OUR_EXTRAS:
        return MissingExtra(f"the provider {provider!r}", extra=extra)
    return UsageError(f"the provider {provider!r} needs a package: pip install 'pydantic-ai-slim[{extra}]'")
