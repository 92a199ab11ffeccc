"""Makes the judge and the extractor of a bank from its settings and its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from lessonbank._base.checks import is_instance, kind, safe_getattr, short_repr
from lessonbank.contracts.ports import BatchModel, LanguageModel, Store
from lessonbank.contracts.settings import Model
from lessonbank.errors import UsageError

OneModel: TypeAlias = str | LanguageModel | Callable[..., Any]
ModelChoice: TypeAlias = OneModel | Mapping[str, OneModel] | None
ROLES = ("judge", "extractor", "contrast", "fit")


@dataclass(frozen=True, slots=True)
class Roles:
    """One model for each role; `None` where no model was given."""

    judge: LanguageModel | None = None
    extractor: LanguageModel | None = None
    contrast: LanguageModel | None = None
    fit: LanguageModel | None = None
    """Who reads a task and the lessons for it. It is asked live, also where the others answer in batches."""

    @property
    def description(self) -> str:
        """For `doctor`: who plays what."""
        names = {r: m.name for r in ROLES if (m := cast("LanguageModel | None", getattr(self, r)))}
        if names.get("fit") == names.get("extractor", names.get("judge")):
            names.pop("fit", None)
        if not names:
            return "none (ground truth and errors decide; lessons are extractive)"
        if len(set(names.values())) == 1 and len(names) == len(ROLES) - 1:
            return next(iter(names.values()))
        return ", ".join(f"{role} {name}" for role, name in names.items())


def resolve(model: Model | None, store: Callable[[], Store] | None = None, /) -> Roles:
    """The models of each role, each with a time limit, retries and a limit on calls at once.

    `store` gives the store, once it is open: requests to a batch API are kept there until they are answered.

    Raises:
        UsageError: an unknown role or provider, a function of no usable signature, or a timeout that is not above 0.
    """
    if model is None:
        return Roles()
    named: Mapping[str, OneModel] = {"judge": cast("OneModel", model.name), "extractor": cast("OneModel", model.name)}
    if is_instance(model.name, Mapping):
        named = cast("Mapping[str, OneModel]", model.name)
        _check_roles(named)
    main = named.get("extractor", named.get("judge"))
    roles = {"fit": main, **({"contrast": main} if "extractor" in named else {}), **named}
    made = dict[tuple[object, bool], LanguageModel]()

    def of(role: str) -> LanguageModel:
        """One model for all roles that name the same, so that its limits bound all of them together."""
        choice, live = cast("OneModel", roles[role]), model.batch and role == "fit"
        key = (str.__str__(choice) if is_instance(choice, str) else id(choice), live)
        if key not in made:
            made[key] = _make_model(choice, replace(model, batch=False) if live else model, store)
        return made[key]

    return Roles(**{role: of(role) for role in ROLES if role in roles})


def _check_roles(named: Mapping[str, OneModel]) -> None:
    if unknown := sorted(set(named) - set(ROLES)):
        raise UsageError(f"there is no model role {short_repr(unknown[0])}: use judge, extractor, contrast and fit")
    if not {"judge", "extractor"} & set(named):
        raise UsageError("a mapping of models needs a judge, an extractor, or both: contrast and fit are optional")
    if "contrast" in named and "extractor" not in named:
        raise UsageError("the model role 'contrast' draws lessons like the extractor: name an extractor, too")


def _make_model(choice: OneModel, model: Model, store: Callable[[], Store] | None) -> LanguageModel:
    from lessonbank.providers.models.wrappers import Clipped, Retrying, standard

    bare = bare_model(choice, model.base_url, model.api_key, batch=model.batch, max_tokens=model.max_tokens)
    if model.batch:
        from lessonbank.providers.models.batched import Batched

        if store is None:
            raise UsageError("batch=True needs a bank, which keeps what was sent: leave it out here")
        if safe_getattr(bare, "ask") is None:
            raise UsageError(f"batch=True needs a provider's model, such as 'openai:gpt-5-mini'; got {kind(choice)}")
        return Retrying(Clipped(Batched(cast("BatchModel", bare), store=store)))
    return standard(bare, seconds=model.timeout, concurrency=model.concurrency, rate=model.rate)


def bare_model(
    choice: OneModel,
    base_url: str | None,
    api_key: str | None,
    *,
    batch: bool = False,
    max_tokens: int | None = None,
) -> LanguageModel:
    """What a choice names, without a time limit or retries. Raises UsageError, MissingExtra."""
    if is_instance(choice, str):
        choice = str.__str__(choice)  # a plain one, whatever a subclass does
        from lessonbank.providers.models.pydantic_ai import PydanticAIModel

        return PydanticAIModel(choice, base_url=base_url, api_key=api_key, batch=batch, max_tokens=max_tokens)
    if safe_getattr(choice, "generate") is not None:
        from lessonbank.providers.models.function import own_model

        return own_model(cast("LanguageModel", choice), batch=batch)
    if type(choice).__module__.startswith("pydantic_ai"):
        from lessonbank.providers.models.pydantic_ai import PydanticAIModel

        return PydanticAIModel(cast("Any", choice), batch=batch, max_tokens=max_tokens)
    if callable(choice):
        from lessonbank.providers.models.function import FunctionModel

        return FunctionModel(choice)
    if is_instance(choice, Model):
        raise UsageError(
            "a role takes a name, a function or a LanguageModel: write Model({ROLE: NAME, …}, api_key=…), and for "
            "a role on a server of its own a PydanticAIModel(NAME, base_url=…)"
        )
    raise UsageError(
        f"a model is a name such as 'openai:gpt-5-mini', Model('openai:gpt-5-mini', base_url=…, api_key=…), a function "
        f"or a LanguageModel; got {kind(choice)}"
    )
