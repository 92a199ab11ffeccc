"""Every provider's models, through pydantic-ai: no provider client is written here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from lessonbank._base.surrogates import encodable
from lessonbank.contracts.ports import Completion, Message, Owed, most_tokens
from lessonbank.contracts.records import Usage
from lessonbank.errors import MissingExtra, ModelError, UsageError
from lessonbank.providers.connection import Connection, body_of, first_sentence, said_of, source_of, translated

try:
    from pydantic_ai.capabilities import BatchModelRequests
    from pydantic_ai.direct import model_request
    from pydantic_ai.exceptions import (
        ModelAPIError,
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
    from pydantic_ai.providers import Provider
    from pydantic_ai.settings import ModelSettings
except ImportError as missing:
    raise MissingExtra("a model named `provider:model`", extra="models") from missing

_TOLD_WHAT_TO_CACHE = frozenset({"anthropic"})
"""Providers that cache only what a request marks; the others find out alone, or do not cache."""
_HINT = " (is it a Chat Completions server?)"
_KNOWN_PROVIDERS = (
    "write `provider:model` with one of openai, anthropic, google, groq, mistral, openrouter, ollama, bedrock, azure, "
    "deepseek or another of pydantic-ai's, or give the `base_url` of an OpenAI-compatible server"
)
_MOST_TOKENS = 12_000
"""Of a reply: some thousand for what is asked for, the rest for a model that thinks aloud before."""
_MOST_TOKENS_REASONING = 20_000
"""The same where the provider counts what the model thinks for itself."""
_SCHEMA_WORDS = ("response_format", "json_schema", "text.format", "output_config", "structured output", "schema")

_TOKENS_WORDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens")


class PydanticAIModel:
    """A provider's model.

    Structured output is asked for where the model is known to have it. What a model turns out to refuse (a
    temperature, a schema, a limit of tokens) is left out from then on. The SDK's own retries are off: `Retrying` does
    that, and counts. Every reply is bounded: a model that does not stop is cut, and what came before is read.

    Args:
        model: `provider:model` (or `provider/model`), or a ready pydantic-ai `Model`.
        base_url: an OpenAI-compatible server (Chat Completions). The model is then named as that server names it.
        api_key: instead of the provider's environment variable (with `base_url`: of `OPENAI_API_KEY`).
        batch: send requests to the provider's batch API. They are then made with `ask`.
        max_tokens: of one reply, what a model thinks included. `None`: as many as the replies that are asked for need.

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
        max_tokens: int | None = None,
    ) -> None:
        source = _source(model, base_url) if isinstance(model, str) else model
        make = partial(_make, batches=BatchModelRequests() if batch else None)
        self._connection = Connection[Model](
            "model", source, make, base_url=base_url, api_key=api_key, unknown=_KNOWN_PROVIDERS
        )
        built = self._connection.first
        self._name = _name(model, built, base_url)
        self._without: set[str] = {"temperature"} if _ignores_temperature(built) else set()
        self._thinks = _reasons(built)
        self._max_tokens = max_tokens or (_MOST_TOKENS_REASONING if self._thinks else _MOST_TOKENS)

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
        model = await self._connection.here()
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
        model = await self._connection.here()
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
            text=encodable(response.text or ""),
            usage=_usage(response),
            model=response.model_name or self._name,
            is_cut=response.finish_reason == "length",
        )

    async def _request(
        self, model: Model, history: list[ModelMessage], temperature: float, schema: type[BaseModel] | None
    ) -> ModelResponse:
        settings, parameters = self._settings(temperature), self._parameters(model, schema)
        try:
            return await model_request(model, history, model_settings=settings, model_request_parameters=parameters)
        except ModelAPIError as error:
            if not self._learn_from(error, settings, asked_schema=parameters.output_object is not None):
                raise translated(error, self._name, hint=_HINT) from error
        except UserError as error:
            raise UsageError(f"{self._name}: {first_sentence(error)}") from error
        except UnexpectedModelBehavior as error:
            raise ModelError(f"{self._name} answered in a form that cannot be read{_HINT}: {said_of(error)}") from error
        except Exception as error:  # an SDK may raise anything
            raise ModelError(f"{self._name} failed: {said_of(error)}") from error
        asked = [
            message for message in history if not (isinstance(message, ModelResponse) and message.state == "suspended")
        ]
        return await self._request(model, asked, temperature, schema)

    def _settings(self, temperature: float) -> ModelSettings:
        settings = ModelSettings(max_retries=0)
        if "temperature" not in self._without:
            settings["temperature"] = temperature
        if "max_tokens" not in self._without:
            brief = None if self._thinks else most_tokens()
            settings["max_tokens"] = min(self._max_tokens, brief or self._max_tokens)
        return settings

    def _parameters(self, model: Model, schema: type[BaseModel] | None) -> ModelRequestParameters:
        if schema is None or "schema" in self._without or not model.profile.get("supports_json_schema_output", False):
            return ModelRequestParameters()
        shape = OutputObjectDefinition(json_schema=schema.model_json_schema(), name=schema.__name__)
        return ModelRequestParameters(output_mode="native", output_object=shape)

    def _learn_from(self, error: ModelAPIError, sent: ModelSettings, *, asked_schema: bool) -> bool:
        """Whether the refusal names something the request can do without; it is left out from now on.

        What counts is what this request had `sent`: another one may have taught the same meanwhile.
        """
        if getattr(error, "status_code", None) not in (400, 422):
            return False
        body = body_of(error).lower()
        for setting, words in (("temperature", ("temperature",)), ("max_tokens", _TOKENS_WORDS)):
            if setting in sent and any(word in body for word in words):
                self._without.add(setting)
                return True
        if asked_schema and any(word in body for word in _SCHEMA_WORDS):
            self._without.add("schema")
            return True
        return False


def _make(
    source: str | Model, provider: Callable[[str], Provider[Any]], *, batches: BatchModelRequests | None
) -> Model:
    model = infer_model(source, provider_factory=provider) if isinstance(source, str) else source
    if batches is None:
        return model
    try:
        return batches.get_wrapper_model(model) or model  # None: it is one already
    except UserError as error:
        raise UsageError(
            f"batch=True needs a model with a batch API, such as one of openai, anthropic or google: "
            f"{first_sentence(error)}"
        ) from error


def _source(model: str, base_url: str | None) -> str:
    source = source_of(model, base_url, what="model", compatible="openai-chat")
    if base_url is None and source.startswith("openai:") and os.environ.get("OPENAI_BASE_URL"):
        # Servers that are named so speak Chat Completions; few speak Responses.
        return source.replace("openai", "openai-chat", 1)
    return source


def _name(given: str | Model, built: Model, base_url: str | None) -> str:
    if not isinstance(given, str):
        return f"{built.system}:{built.model_name}"
    return given if base_url is not None else _source(given, None)


def _reasons(model: Model, /) -> bool:
    """Whether the model thinks before it answers, unseen, and the provider counts that among the tokens of a reply."""
    profile: Any = model.profile
    return bool(profile.get("thinking_enabled_by_default", False) or profile.get("thinking_always_enabled", False))


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
            parts.append(_mark(message) if marked else part(content=message.content))
            continue
        if parts:
            history.append(ModelRequest(parts=parts))
            parts = []
        history.append(ModelResponse(parts=[TextPart(content=message.content)]))
    if parts:
        history.append(ModelRequest(parts=parts))
    return history


def _mark(message: Message, /) -> UserPromptPart:
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
