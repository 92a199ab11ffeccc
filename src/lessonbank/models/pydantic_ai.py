"""Every provider's models, through pydantic-ai: no provider client is written here."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, cast

import anyio.to_thread
from anyio.lowlevel import RunVar
from pydantic import BaseModel

from lessonbank.errors import (
    LessonbankError,
    MissingExtra,
    ModelError,
    ModelUnavailable,
    ModelUnreachable,
    TransientModelError,
    UsageError,
)
from lessonbank.guard import one_line
from lessonbank.guard.quote import quoted, words_of
from lessonbank.protocols import Completion, Message, Owed
from lessonbank.types import Usage

try:
    import httpx2
    from pydantic_ai.capabilities import BatchModelRequests
    from pydantic_ai.direct import model_request
    from pydantic_ai.exceptions import (
        ModelAPIError,
        ModelConnectionError,
        ModelRequestTimeout,
        UnexpectedModelBehavior,
        UserError,
    )
    from pydantic_ai.messages import (
        CachePoint,
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )
    from pydantic_ai.models import Model, ModelRequestParameters, infer_model
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
    from pydantic_ai.settings import ModelSettings
except ImportError as missing:
    raise MissingExtra("a model named `provider:model`", extra="models") from missing

_COMPATIBLE = frozenset({"openai", "openai-chat", "ollama", "vllm", "litellm"})
_OUR_EXTRAS = frozenset({"openai", "anthropic", "google"})
_TOLD_WHAT_TO_CACHE = frozenset({"anthropic"})
"""Providers that cache only what a request marks; the others find out alone, or do not cache."""
_AGAIN = frozenset({408, 409, 425, 429})
_FOR_GOOD = frozenset({401, 402, 403, 404})
"""The key, the account or the model's name is refused: every request will be."""
_OUT_OF_QUOTA = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
_NO_KEY = "no-key"
"""What a server that asks for no key is sent."""
_SCHEMA_WORDS = ("response_format", "json_schema", "text.format", "output_config", "structured output", "schema")


class PydanticAIModel:
    """A provider's model.

    Structured output is asked for where the model is known to have it. What a model turns out to refuse (a
    temperature, a schema) is left out from then on. The SDK's own retries are off: `Retrying` does that, and counts.

    Args:
        model: `provider:model` (or `provider/model`), or a ready pydantic-ai `Model`.
        base_url: an OpenAI-compatible server (Chat Completions). The model is then named as that server names it.
        api_key: instead of the provider's environment variable (with `base_url`: of `OPENAI_API_KEY`).
        batch: send requests to the provider's batch API. They are then made with `ask`.

    Raises:
        UsageError: no such provider, no key or a blank one, a name without a provider, or a model without a batch API.
        MissingExtra: the provider's SDK is not installed.
    """

    def __init__(
        self,
        model: str | Model,
        /,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        batch: bool = False,
    ) -> None:
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            shown = base_url.split("@")[-1].split("?")[0]  # without a name, a password or a key
            raise UsageError(f"`base_url` must begin with http:// or https://, got {shown!r}")
        if api_key is not None and not api_key.strip():
            raise UsageError("api_key is blank: pass the key, or leave api_key out to use the environment's")
        self._source = _model_id(model, base_url) if isinstance(model, str) else model
        self._base_url = base_url
        self._api_key = api_key
        self._batches = BatchModelRequests() if batch else None
        # Built here so that a wrong name fails now. The first loop takes it; another loop, or a forked child, gets its
        # own: pooled connections must not be shared by two of them.
        built = self._build()
        self._spare: Model | None = built
        self._name = _name(model, built, base_url)
        self._without: set[str] = {"temperature"} if _ignores_temperature(built) else set()
        self._models: RunVar[Model] = RunVar("models")

    @property
    def name(self) -> str:
        """`provider:model`; with `base_url`, as the caller named it."""
        return self._name

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """One request, not streamed.

        Raises:
            ModelError: the provider refused, or its answer could not be read.
            ModelUnavailable: unreachable, or it refuses the key, the account or the model's name.
            TransientModelError: overloaded, rate limited (with its Retry-After), unreachable or failing.
        """
        model = await self._here()
        history = _history(messages, cached=model.system in _TOLD_WHAT_TO_CACHE)
        response = await self._request(model, history, temperature, schema)
        if response.state == "suspended":
            raise ModelError(f"{self._name} answers later, in a batch: give it as Model(…, batch=True)")
        return self._completion(response)

    async def ask(
        self,
        messages: Sequence[Message],
        /,
        *,
        temperature: float = 0.0,
        schema: type[BaseModel] | None = None,
        ticket: str | None = None,
    ) -> Completion | Owed:
        """One request of a batch, or, with a `ticket`, a look for its answer. Raises what `generate` does."""
        model = await self._here()
        history = _history(messages, cached=model.system in _TOLD_WHAT_TO_CACHE)
        if ticket is not None:
            history += ModelMessagesTypeAdapter.validate_json(ticket)
        response = await self._request(model, history, temperature, schema)
        if response.state != "suspended":
            return self._completion(response)
        owed = ModelMessagesTypeAdapter.dump_json([response]).decode()
        return Owed(ticket=owed, seconds=model.continuation_delay(response) or 0.0)

    def _completion(self, response: ModelResponse) -> Completion:
        return Completion(
            text=(response.text or "").encode("utf-8", "replace").decode("utf-8"),
            usage=_usage(response),
            model=response.model_name or self._name,
        )

    async def _request(
        self, model: Model, history: list[ModelMessage], temperature: float, schema: type[BaseModel] | None
    ) -> ModelResponse:
        settings, parameters = self._settings(temperature), self._parameters(model, schema)
        try:
            return await model_request(model, history, model_settings=settings, model_request_parameters=parameters)
        except ModelAPIError as error:
            if not self._learned_from(error, asked_schema=parameters.output_object is not None):
                raise _translated(error, self._name) from error
        except UserError as error:
            raise UsageError(f"{self._name}: {_first_sentence(error)}") from error
        except UnexpectedModelBehavior as error:
            raise ModelError(_unreadable(self._name, error)) from error
        except Exception as error:  # an SDK may raise anything
            raise ModelError(f"{self._name} failed: {_said(error)}") from error
        asked = [one for one in history if not (isinstance(one, ModelResponse) and one.state == "suspended")]
        return await self._request(model, asked, temperature, schema)

    async def _here(self) -> Model:
        try:
            return self._models.get()
        except LookupError:
            model, self._spare = self._spare, None
            if model is None:
                model = await anyio.to_thread.run_sync(self._build)
            self._models.set(model)
            return model

    def _build(self) -> Model:
        if not isinstance(self._source, str):
            return self._batched(self._source)
        try:
            return self._batched(infer_model(self._source, provider_factory=self._provider))
        except ImportError as error:
            raise _missing(self._source, error) from error
        except (UserError, ValueError) as error:
            raise _unusable(self._source, error) from error
        except LessonbankError:
            raise
        except Exception as error:  # an SDK may raise anything
            raise UsageError(f"the model {self._source!r} cannot be used: {_said(error)}") from error

    def _batched(self, model: Model) -> Model:
        if self._batches is None:
            return model
        try:
            return self._batches.get_wrapper_model(model) or model  # None: it is one already
        except UserError as error:
            raise UsageError(
                f"batch=True needs a model with a batch API, such as one of openai, anthropic or google: "
                f"{_first_sentence(error)}"
            ) from error

    def _provider(self, name: str) -> Provider[Any]:
        if self._base_url is None and self._api_key is None:
            _check_environment(name)
            return infer_provider(name)
        provider: Any = infer_provider_class(name)
        if self._base_url is None:
            return provider(api_key=self._api_key)
        # A local or self-hosted server: a new connection costs nothing beside an answer, and none is left open.
        limits = httpx2.Limits(max_keepalive_connections=0)
        client = httpx2.AsyncClient(limits=limits, timeout=httpx2.Timeout(600.0, connect=10.0))
        key = self._api_key or os.environ.get("OPENAI_API_KEY", "").strip() or _NO_KEY
        return provider(base_url=self._base_url, api_key=key, http_client=client)

    def _settings(self, temperature: float) -> ModelSettings:
        if "temperature" in self._without:
            return ModelSettings(max_retries=0)
        return ModelSettings(temperature=temperature, max_retries=0)

    def _parameters(self, model: Model, schema: type[BaseModel] | None) -> ModelRequestParameters:
        if schema is None or "schema" in self._without or not model.profile.get("supports_json_schema_output", False):
            return ModelRequestParameters()
        shape = OutputObjectDefinition(json_schema=schema.model_json_schema(), name=schema.__name__)
        return ModelRequestParameters(output_mode="native", output_object=shape)

    def _learned_from(self, error: ModelAPIError, *, asked_schema: bool) -> bool:
        """Whether the refusal names something the request can do without; it is left out from now on."""
        if getattr(error, "status_code", None) not in (400, 422):
            return False
        said = _body(error).lower()
        if "temperature" in said and "temperature" not in self._without:
            self._without.add("temperature")
            return True
        if asked_schema and any(word in said for word in _SCHEMA_WORDS):
            self._without.add("schema")
            return True
        return False


def _check_environment(provider: str, /) -> None:
    """Refuse a key that is set and blank: the SDK would ask with it, or fail with an error of its own.

    Raises:
        UsageError: it names the variable.
    """
    family = provider.removesuffix("-chat").removesuffix("-responses")
    variable = f"{family.upper().replace('-', '_')}_API_KEY"
    if variable in os.environ and not os.environ[variable].strip():
        raise UsageError(f"{variable} is set but blank: put the key into it, or pass api_key=")


def _model_id(model: str, base_url: str | None, /) -> str:
    if base_url is not None:
        provider, colon, rest = model.partition(":")
        return f"openai-chat:{rest if colon and provider in _COMPATIBLE else model}"
    if model.startswith("openai:") and os.environ.get("OPENAI_BASE_URL"):
        # Servers that are named so speak Chat Completions; few speak Responses.
        return f"openai-chat:{model.removeprefix('openai:')}"
    if ":" in model:
        return model
    provider, slash, rest = model.partition("/")
    if not slash or not rest:
        raise UsageError(
            f"the model {model[:80]!r} has no provider: write `provider:model`, such as 'openai:{model[:80]}', "
            "or give the `base_url` of an OpenAI-compatible server"
        )
    return f"{provider}:{rest}"


def _name(given: str | Model, built: Model, base_url: str | None) -> str:
    if not isinstance(given, str):
        return f"{built.system}:{built.model_name}"
    return given if base_url is not None else _model_id(given, None)


def _ignores_temperature(model: Model, /) -> bool:
    """Models that reason by default take none; pydantic-ai would warn with every request and drop it."""
    profile: Any = model.profile
    reasons = profile.get("openai_supports_reasoning", False) and profile.get("thinking_enabled_by_default", False)
    return bool(reasons or profile.get("anthropic_disallows_sampling_settings", False))


def _history(messages: Sequence[Message], /, *, cached: bool) -> list[ModelMessage]:
    """The messages as pydantic-ai has them; `cached`: with a mark where the text ends that comes again."""
    history: list[ModelMessage] = []
    parts: list[SystemPromptPart | UserPromptPart] = []
    for message in messages:
        if message.role != "assistant":
            part = SystemPromptPart if message.role == "system" else UserPromptPart
            marked = cached and message.role == "user" and 0 < message.stable < len(message.content)
            parts.append(_marked(message) if marked else part(content=message.content))
            continue
        if parts:
            history.append(ModelRequest(parts=parts))
            parts = []
        history.append(ModelResponse(parts=[TextPart(content=message.content)]))
    if parts:
        history.append(ModelRequest(parts=parts))
    return history


def _marked(message: Message, /) -> UserPromptPart:
    return UserPromptPart(
        content=[message.content[: message.stable], CachePoint(), message.content[message.stable :].lstrip("\n")]
    )


def _usage(response: ModelResponse, /) -> Usage:
    try:
        cost = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        cost = None  # no price is known for it
    return Usage(
        requests=1,
        input_tokens=response.usage.input_tokens,
        cached_tokens=response.usage.cache_read_tokens,
        output_tokens=response.usage.output_tokens,
        cost=cost,
    )


def _translated(error: ModelAPIError, name: str, /) -> ModelError:
    if isinstance(error, ModelConnectionError | ModelRequestTimeout):
        return ModelUnreachable(f"{name} could not be reached: {_said(error)}")
    status: int | None = getattr(error, "status_code", None)
    if status is None:
        return ModelError(_unreadable(name, error))
    said = f"{name} answered HTTP {status}{_advice(status)}: {quoted(_body(error))}"
    spent = error.provider_error_code in _OUT_OF_QUOTA or error.provider_error_type in _OUT_OF_QUOTA
    if spent or status in _FOR_GOOD:
        return ModelUnavailable(said)
    if not (status >= 500 or status in _AGAIN):
        return ModelError(said)
    return TransientModelError(said, retry_after=error.retry_after)


def _advice(status: int, /) -> str:
    if status in (401, 403):
        return " (check the API key and what it may use)"
    return " (check the model's name and the base URL)" if status == 404 else ""


def _body(error: ModelAPIError, /) -> str:
    """What the service said, without the wrapping: its `message` and `param`, where it is JSON."""
    body = _inner(error.body, "error") or error.body
    message, param = _inner(body, "message"), _inner(body, "param")
    if isinstance(message, str):
        return f"{message} ({param})" if isinstance(param, str) and param not in message else message
    return str(body) if body else error.message


def _inner(body: object, key: str, /) -> object:
    return cast("dict[str, object]", body).get(key) if isinstance(body, dict) else None


def _said(error: Exception, /) -> str:
    return quoted(f"{type(error).__name__}: {words_of(error)}")


def _unreadable(name: str, error: Exception, /) -> str:
    return f"{name} answered in a form that cannot be read (is it a Chat Completions server?): {_said(error)}"


def _first_sentence(error: Exception, /) -> str:
    return one_line(str(error).partition(" To try Pydantic AI")[0], limit=300)


def _missing(model: str, error: ImportError, /) -> UsageError:
    provider = model.partition(":")[0]
    named = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    extra = named[1] if named else provider
    if extra in _OUR_EXTRAS:
        return MissingExtra(f"the provider {provider!r}", extra=extra)
    return UsageError(f"the provider {provider!r} needs a package: pip install 'pydantic-ai-slim[{extra}]'")


def _unusable(model: str, error: Exception, /) -> UsageError:
    said = _first_sentence(error)
    if not said.startswith(("Unknown model", "Unknown provider")):
        return UsageError(f"the model {model!r} cannot be used: {said}")
    return UsageError(
        f"no provider is known for {model!r}: write `provider:model` with one of openai, anthropic, google, groq, "
        "mistral, openrouter, ollama, bedrock, azure, deepseek or another of pydantic-ai's, "
        "or give the `base_url` of an OpenAI-compatible server"
    )
