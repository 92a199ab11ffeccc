"""What a tool takes, as a model of its own: it writes the schema that clients read, and checks each call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar, cast, get_type_hints

from pydantic import BaseModel, Field, create_model

from lessonbank._base.signatures import with_keywords
from lessonbank.contracts.retrieve_options import OPTIONS, Option

F = TypeVar("F", bound=Callable[..., Any])


def takes_retrieve_options(tool: F, /) -> F:
    """`tool`, with an argument for each option of `retrieve` that is not the owner's alone."""
    mine = [option for option in OPTIONS.values() if option.offer.by_agent]
    keyword = Parameter.KEYWORD_ONLY
    named = [Parameter(option.name, keyword, default=option.default, annotation=_argument(option)) for option in mine]
    return with_keywords(tool, [(parameter, parameter.annotation) for parameter in named], evaluate=True)


def _argument(option: Option) -> Any:
    bounds = {"ge": option.offer.least, "le": option.offer.most_by_agent}
    limits: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[option.kind, Field(description=option.offer.help or None, **limits)]


def arguments_of(tool: Callable[..., Any], /) -> type[BaseModel]:
    """The keywords of `tool` as a model. Others are passed over: what a model makes up changes nothing."""
    kinds = get_type_hints(tool, include_extras=True)
    fields: dict[str, Any] = {
        name: (kinds[name], ... if keyword.default is Parameter.empty else keyword.default)
        for name, keyword in signature(tool).parameters.items()
        if keyword.kind is Parameter.KEYWORD_ONLY
    }
    return create_model(f"{tool.__name__}_arguments", **fields)


def checked(model: type[BaseModel], given: Mapping[str, Any], /) -> dict[str, Any]:
    """What a client gave, as the tool takes it. Some clients send a list as its JSON. Raises ValidationError."""
    read = {
        name: _read(value, model.model_fields[name].annotation)
        for name, value in given.items()
        if name in model.model_fields
    }
    arguments = model.model_validate(read)
    return {name: getattr(arguments, name) for name in model.model_fields}


def _read(value: Any, kind: Any) -> Any:
    if isinstance(value, str) and kind is not str:
        with suppress(ValueError, RecursionError):
            read: object = json.loads(value)
            return cast("object", read) if isinstance(read, list | dict) else value
    return value
