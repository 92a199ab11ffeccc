"""The arguments of the tool `recall`: the options of `retrieve` that an agent may set itself."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, Any, TypeVar

from pydantic import Field

from lessonbank._base.signatures import with_keywords
from lessonbank.contracts.retrieve_options import OPTIONS, Option

F = TypeVar("F", bound=Callable[..., Any])


def takes_retrieve_options(tool: F, /) -> F:
    """`tool`, with an argument for each option that is not the owner's alone."""
    mine = [option for option in OPTIONS.values() if option.offer.by_agent]
    keyword = Parameter.KEYWORD_ONLY
    named = [Parameter(option.name, keyword, default=option.default, annotation=_argument(option)) for option in mine]
    return with_keywords(tool, [(parameter, parameter.annotation) for parameter in named], evaluate=True)


def _argument(option: Option) -> Any:
    bounds = {"ge": option.offer.least, "le": option.offer.most_by_agent}
    limits: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[option.kind, Field(description=option.offer.help or None, **limits)]
