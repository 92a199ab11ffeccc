"""Names the keywords of a function that takes `**options`, for everything that reads its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def with_keywords(function: F, keywords: Sequence[tuple[Parameter, Any]], /, *, evaluate: bool = False) -> F:
    """`function`, whose signature and type hints name `keywords` in the place of its `**options`.

    Each keyword comes with its type, which the parameter may write as text. `evaluate`: the types of the function's
    own parameters are no texts in the signature, for readers that do not evaluate them.
    """
    signature = inspect.signature(function, eval_str=evaluate)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    options = signature.parameters.keys() - {parameter.name for parameter in own}
    hints = {name: kind for name, kind in function.__annotations__.items() if name not in options}
    function.__annotations__ = {**hints, **{parameter.name: kind for parameter, kind in keywords}}
    written = signature.replace(parameters=[*own, *(parameter for parameter, _ in keywords)])
    setattr(function, "__signature__", written)  # noqa: B010 - a function has no such attribute by its type
    return function
