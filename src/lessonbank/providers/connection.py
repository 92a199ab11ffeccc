"""What a provider's models and embedders share: how they are named, reached and built, and what their errors say."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from lessonbank._base.aio import PerLoop
from lessonbank._base.checks import MOST_SECONDS
from lessonbank._base.loopback import DIRECT
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

try:
    import httpx2
    from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelRequestTimeout, UserError
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
except ImportError as missing:
    raise MissingExtra("a model or an embedder named `provider:model`", extra="models") from missing

T = TypeVar("T")
_OTHER_NAMES: Final = {"gemini": "google", "google-gla": "google", "claude": "anthropic", "gpt": "openai"}
"""What other programs call a provider."""
_FAMILIES: Final = {
    "claude": "anthropic",
    "anthropic": "anthropic",
    "gemini": "google",
    "google": "google",
    "mistral": "mistral",
    "llama": "ollama",
    "qwen": "ollama",
    "openai": "openai",
}
"""How the names of a provider's models begin; else a name is taken for OpenAI's."""
_EXAMPLES: Final = {
    "openai": "openai:gpt-5-mini",
    "anthropic": "anthropic:claude-sonnet-4-5",
    "google": "google:gemini-2.5-flash",
    "mistral": "mistral:mistral-large-latest",
    "ollama": "ollama:llama3.2",
}
_PASSED: Final = re.compile(r"pass it via `\w+\((\w+)=\.\.\.\)` to use the .+ provider")
"""What pydantic-ai advises, in terms of its own classes."""
_COMPATIBLE: Final = frozenset({"openai", "openai-chat", "ollama", "vllm", "litellm"})
_OUR_EXTRAS: Final = frozenset({"openai", "anthropic", "google"})
_AGAIN: Final = frozenset({408, 409, 425, 429})
_FOR_GOOD: Final = frozenset({401, 402, 403, 404})
"""The key, the account or the model's name is refused: every request will be."""
_OUT_OF_QUOTA: Final = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
_NO_KEY: Final = "no-key"
"""What a server that asks for no key is sent."""


class Connection(Generic[T]):
    """A provider's model or embedder, built anew for each event loop: pooled connections belong to one.

    Args:
        what: what it is called in errors, such as `model`.
        source: a provider's name for it (see `source_of`), or one that is ready.
        make: builds it from the source and a function that gives the provider.
        base_url: an OpenAI-compatible server.
        api_key: instead of the provider's environment variable (with `base_url`: of `OPENAI_API_KEY`).
        unknown: what to say, instead of the provider's own words, where none is known by this name.
    """

    def __init__(
        self,
        what: str,
        source: str | T,
        make: Callable[[Any, Callable[[str], Provider[Any]]], T],
        /,
        *,
        base_url: str | None,
        api_key: str | None,
        unknown: str = "",
    ) -> None:
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            shown = base_url.split("@")[-1].split("?")[0]  # without a name, a password or a key
            raise UsageError(f"`base_url` must begin with http:// or https://, got {shown!r}")
        if api_key is not None and not api_key.strip():
            raise UsageError("api_key is blank: pass the key, or leave api_key out to use the environment's")
        self._what, self._source, self._make, self._unknown = what, source, make, unknown
        self._base_url, self._api_key = base_url, api_key
        # Built here so that a wrong name fails now. The first loop takes it; another loop, or a forked child, gets its
        # own: pooled connections must not be shared by two of them.
        self.first: Final = self._build()
        """The one that was built to begin with."""
        self._spare: T | None = self.first
        self._built: RunVar[T] = RunVar("built")
        self._locks = PerLoop(anyio.Lock)

    async def here(self) -> T:
        """Return the client of this event loop."""
        async with self._locks.here():
            try:
                return self._built.get()
            except LookupError:
                built, self._spare = self._spare, None
                if built is None:
                    built = await anyio.to_thread.run_sync(self._build)
                self._built.set(built)
                return built

    def _build(self) -> T:
        try:
            return self._make(self._source, self._provider)
        except ImportError as error:
            raise _missing(str(self._source), error) from error
        except (UserError, ValueError) as error:
            reason = first_sentence(error)
            if self._unknown and reason.startswith(("Unknown model", "Unknown provider")):
                raise UsageError(f"no provider is known for {self._source!r}: {self._unknown}") from error
            raise UsageError(f"the {self._what} {self._source!r} cannot be used: {reason}") from error
        except LessonbankError:
            raise
        except Exception as error:  # an SDK may raise anything
            raise UsageError(f"the {self._what} {self._source!r} cannot be used: {said_of(error)}") from error

    def _provider(self, name: str) -> Provider[Any]:
        if self._base_url is None and self._api_key is None:
            _check_environment(name)
            return infer_provider(name)
        provider: Any = infer_provider_class(name)
        if self._base_url is None:
            return provider(api_key=self._api_key)
        # A local or self-hosted server: a new connection costs nothing beside an answer, and none is left open.
        limits = httpx2.Limits(max_keepalive_connections=0)
        # How long an answer may take is `Model(timeout=)`'s to say: a slow machine may need more than ten minutes.
        client = httpx2.AsyncClient(limits=limits, timeout=httpx2.Timeout(MOST_SECONDS, connect=10.0), mounts=DIRECT)
        # A variable that is set and blank would become a header that no client sends.
        key = self._api_key or os.environ.get("OPENAI_API_KEY", "").strip() or _NO_KEY
        return provider(base_url=self._base_url, api_key=key, http_client=client)


def source_of(name: str, base_url: str | None, /, *, what: str, compatible: str) -> str:
    """`name` as `provider:model`; with `base_url`, of the provider that is `compatible` with it.

    Raises:
        UsageError: it has no provider, no name behind it, or is an address.
    """
    if name.startswith(("http://", "https://")):
        call = f"{what.capitalize()}('NAME', base_url={name[:80]!r})"
        raise UsageError(f"the {what} {name[:80]!r} is an address: write the name that the server has for it, {call}")
    if base_url is not None:
        provider, colon, rest = name.partition(":")
        return f"{compatible}:{rest if colon and provider in _COMPATIBLE else name}"
    provider, _, rest = name.strip().partition(":" if ":" in name else "/")
    if not rest.strip():
        raise UsageError(
            f"the {what} {name[:80]!r} has no {'name' if name.strip().endswith((':', '/')) else 'provider'}: write "
            f"`provider:model`, such as {_example(name)!r}, or give the `base_url` of an OpenAI-compatible server"
        )
    return f"{_OTHER_NAMES.get(provider.lower(), provider.lower())}:{rest}"


def _example(name: str) -> str:
    """How the caller may have meant it."""
    model_name = name.strip().rstrip(":/")[:80]
    provider = next((vendor for begins, vendor in _FAMILIES.items() if model_name.lower().startswith(begins)), "openai")
    return (
        f"{provider}:{model_name}"
        if model_name and model_name.lower() not in (*_FAMILIES, *_FAMILIES.values())
        else _EXAMPLES[provider]
    )


def translated(error: ModelAPIError, name: str, /, *, hint: str = "") -> ModelError:
    """The error of this package for one of a provider. `hint`: what else an answer nobody can read may mean."""
    if isinstance(error, ModelRequestTimeout):
        return ModelTimeout(f"{name} gave no answer in time: {said_of(error)}")
    if isinstance(error, ModelConnectionError):
        return ModelUnreachable(f"{name} could not be reached: {said_of(error)}")
    status: int | None = getattr(error, "status_code", None)
    if status is None:
        return ModelError(f"{name} answered in a form that cannot be read{hint}: {said_of(error)}")
    message = f"{name} answered HTTP {status}{_advice(status)}: {quoted(body_of(error))}"
    spent = error.provider_error_code in _OUT_OF_QUOTA or error.provider_error_type in _OUT_OF_QUOTA
    if spent or status in _FOR_GOOD:
        return ModelUnavailable(message)
    if not (status >= 500 or status in _AGAIN):
        return ModelError(message)
    return TransientModelError(message, retry_after=error.retry_after)


def body_of(error: ModelAPIError, /) -> str:
    """What the service said, without the wrapping: its `message` and `param`, where it is JSON."""
    body = _inner(error.body, "error") or error.body
    message, param = _inner(body, "message"), _inner(body, "param")
    if isinstance(message, str):
        return f"{message} ({param})" if isinstance(param, str) and param not in message else message
    return str(body) if body else error.message


def said_of(error: Exception, /) -> str:
    """The kind of an error and what it says, in one line."""
    return quoted(f"{type(error).__name__}: {words_of(error)}")


def first_sentence(error: Exception, /) -> str:
    """What an error of pydantic-ai says, without its advertisement."""
    text = str(error).partition(" To try Pydantic AI")[0]
    return one_line(_PASSED.sub(r"give it as `Model(…, \g<1>=…)`", text), limit=300)


def _advice(status: int) -> str:
    if status in (401, 403):
        return " (check the API key and what it may use)"
    return " (check the model's name and the base URL)" if status == 404 else ""


def _inner(body: object, key: str) -> object:
    return cast("dict[str, object]", body).get(key) if isinstance(body, dict) else None


def _check_environment(provider: str) -> None:
    """Refuse a key that is set and blank: the SDK would ask with it, or fail with an error of its own."""
    family = provider.removesuffix("-chat").removesuffix("-responses")
    variable = f"{family.upper().replace('-', '_')}_API_KEY"
    key = os.environ.get(variable)
    if key == "" and (family == "ollama" or (family == "google" and os.environ.get("GEMINI_API_KEY"))):
        return  # an empty one is none to them: Ollama needs none, and Google has an older variable
    if key is not None and not key.strip():
        raise UsageError(f"{variable} is set but blank: put the key into it, or pass api_key=")


def _missing(name: str, error: ImportError) -> UsageError:
    provider = name.partition(":")[0]
    match = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    extra = match[1] if match else provider
    if extra in _OUR_EXTRAS:
        return MissingExtra(f"the provider {provider!r}", extra=extra)
    return UsageError(f"the provider {provider!r} needs a package: pip install 'pydantic-ai-slim[{extra}]'")
