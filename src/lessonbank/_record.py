"""The base of every persisted value: immutable, strict, and safe to encode."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)

from ._ids import mended

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""Text that is not blank."""


class Record(BaseModel):
    """Base of every persisted value: immutable, strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _mend_text_that_is_no_unicode(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Lone surrogates come out of cut-off JSON and byte streams; they must not cost a run its record."""
        try:
            return handler(data)
        except ValidationError as error:
            if any(e["type"] == "string_unicode" for e in error.errors(include_url=False)):
                return handler(mended(data))
            raise
