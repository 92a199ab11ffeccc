"""The base of every persisted value: immutable, strict, and safe to encode."""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

from lessonbank._base.checks import replace_surrogates, short_repr
from lessonbank.errors import LessonbankError, UsageError

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""Text that is not blank."""
Moment = Annotated[datetime, AfterValidator(lambda at: at if at.tzinfo else at.replace(tzinfo=UTC))]
"""A time with its zone. Without one it is UTC."""


class InvalidRecord(UsageError, ValueError):  # noqa: N818 - reads as what it is
    """A record was made with a field that does not exist, is missing or has a wrong value."""


class Record(BaseModel):
    """Base of every persisted value: immutable, strict about unknown fields.

    Lone surrogates come out of cut-off JSON and byte streams; they must not cost a run its record, and are mended. A
    field whose name grew better keeps its old one as an alias: that is what banks, exports and HTTP hold.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        serialize_by_alias=True,
        loc_by_alias=False,
    )

    if not TYPE_CHECKING:  # what a record takes is said by its fields

        def __init__(self, /, **data: Any) -> None:
            try:
                self.__pydantic_validator__.validate_python(data, self_instance=self)
            except Exception as error:  # noqa: BLE001 - a value of the caller's own may raise anything when it is read
                _validate_mended(self, data, error)

        # Records inside of a record are then read by pydantic itself: a call of this for each would take twice as long.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """A record from data, as pydantic does it, but for lone surrogates."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            if not _of_surrogates(error):
                raise
            return super().model_validate(replace_surrogates(obj), **options)


def _validate_mended(record: BaseModel, data: dict[str, Any], error: Exception) -> None:
    """Try again without lone surrogates, if those were wrong. Else, and if more is, say so in one sentence."""
    if not isinstance(error, ValidationError) or not _of_surrogates(error):
        raise _refused(type(record), error) from error
    try:
        record.__pydantic_validator__.validate_python(replace_surrogates(data), self_instance=record)
    except Exception as again:
        raise _refused(type(record), again) from again


def _refused(kind: type[BaseModel], error: Exception) -> LessonbankError:
    if isinstance(error, LessonbankError):
        return error
    if isinstance(error, ValidationError):
        return InvalidRecord(_explain(kind, error))
    return InvalidRecord(
        f"{kind.__name__} takes plain values; reading one of those given raised {type(error).__name__}"
    )


def _explain(kind: type[BaseModel], error: ValidationError) -> str:
    """What is wrong, in one sentence: first a field that does not exist, which may be a missing one mistyped."""
    problems = error.errors(include_url=False)
    first = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    place = ".".join(str(part) for part in first["loc"])[:200]
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        near = get_close_matches(place, kind.model_fields, n=1)
        return f"{kind.__name__} has no field {short_repr(place)}" + (f": did you mean {near[0]!r}?" if near else "")
    if first["type"] == "missing":
        return f"{kind.__name__} needs {place}="
    reason = " ".join(reason_of(first["msg"]).split())[:200]
    return f"{kind.__name__}({place}=) is wrong: {reason}; got {short_repr(first['input'])}"


def reason_of(message: str, /) -> str:
    """What a validator says is wrong, without the word that pydantic puts before it."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _of_surrogates(error: ValidationError) -> bool:
    return any(each["type"] == "string_unicode" for each in error.errors(include_url=False))
