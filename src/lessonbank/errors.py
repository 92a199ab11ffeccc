"""Every error this package raises, sorted by what the reader can do next.

LessonbankError
├─ UsageError                fix the call
│  ├─ NotSupported           the store of this bank cannot do this
│  ├─ NotAllowed             the bank has reviewers, or the server's key is not for this call
│  ├─ Unauthenticated        a server knows no such key, or it has ended
│  ├─ TooLarge               a server takes no request of this size
│  ├─ MissingExtra           install the named extra
│  ├─ PromptError            a prompt file has a missing, unused or malformed slot
│  └─ FormatError            a file or message list is in no known format
├─ ModelError                the model or embedding service failed
│  ├─ TransientModelError    try again (after `retry_after` seconds, where the service said so)
│  │  ├─ ModelTimeout        no answer within the time allowed
│  │  └─ ModelUnreachable    no connection; also a ModelUnavailable
│  └─ ModelUnavailable       no other request will succeed: check the server, the key and the model's name
├─ OutputError               the model answered, but not in the agreed form
│  ├─ JudgeError
│  └─ ExtractionError
└─ StoreError
   ├─ NotFound               no such id in this scope
   ├─ SpaceMismatch          vectors of two spaces would meet
   ├─ VersionMismatch        the file is newer than this package
   ├─ Conflict               the change does not fit the bank's present state
   └─ StoreUnavailable       file missing, locked or full
      ├─ StoreReplaced       another file lies there now: open the bank again
      ├─ ReadOnly            the bank was opened to read alone
      ├─ RateLimited         a server's key was used more often than its rate allows
      └─ StoreDamaged        what the file holds is not what was written: salvage it, or restore a backup
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Generator


LONGEST: Final = 500
"""Characters of a message."""


def printable(text: object, /, *, most: int = LONGEST) -> str:
    """`text` as one line that cannot drive a terminal: control, format and surrogate characters as `\\x1b`.

    What is longer than `most` characters loses its middle: errors begin with what is wrong and end with what to do.
    """
    line = str(text)
    if len(line) > 2 * most:
        line = f"{line[:most]}…{line[-most:]}"
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(line.split()))
    return line if len(line) <= most else f"{line[: most * 2 // 3]}…{line[1 + most * 2 // 3 - most :]}"


class LessonbankError(Exception):
    """Base of all errors of this package. `code` is stable across releases. The message is one line."""

    code: ClassVar[str] = "error"

    def __init__(self, message: object = "", /) -> None:
        super().__init__(printable(message))


class UsageError(LessonbankError):
    """The call is wrong: the message says what to change."""

    code = "usage"


class NotAllowed(UsageError):  # noqa: N818
    """The bank has reviewers and the call no key of one, or the key of a server is not for it. Nothing was changed."""

    code = "not_allowed"


class NotSupported(UsageError):  # noqa: N818
    """The store of this bank cannot do this. Nothing was changed."""

    code = "not_supported"


class Unauthenticated(UsageError):  # noqa: N818
    """The server knows no such key, or the key has ended."""

    code = "unauthenticated"


class TooLarge(UsageError):  # noqa: N818
    """The server takes no request of this size."""

    code = "too_large"


class MissingExtra(UsageError):  # noqa: N818 - reads as what it is
    """An optional dependency is not installed. The message has the pip command."""

    code = "missing_extra"

    def __init__(self, feature: str, /, *, extra: str, package: str = "lessonbank", clone: str = ".") -> None:
        line = f"pip install '{package}[{extra}]' (in a clone: pip install -e '{clone}[{extra}]')"
        super().__init__(f"{feature} needs an optional dependency: {line}")
        self.extra = extra


@contextmanager
def importing(feature: str, /, *, extra: str) -> Generator[None]:
    """Import a module of this package that needs what `extra` installs.

    Raises:
        MissingExtra: a module of another package is absent.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "lessonbank":
            raise
        raise MissingExtra(f"{feature} ({error.name})", extra=extra) from error


class PromptError(UsageError):
    """A prompt file has a missing, unused or malformed slot."""

    code = "prompt"


class FormatError(UsageError):
    """A file or message list is in no format this package knows."""

    code = "format"


class ModelError(LessonbankError):
    """The language model or the embedding service failed."""

    code = "model"


class TransientModelError(ModelError):
    """A model failed; the same request may succeed later."""

    code = "model_transient"

    def __init__(self, message: str, /, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelTimeout(TransientModelError):  # noqa: N818
    """No answer within the time allowed."""

    code = "model_timeout"


class ModelUnavailable(ModelError):  # noqa: N818
    """No request can be answered: there is no connection, or the service refuses the key, the account or the model."""

    code = "model_unavailable"


class ModelUnreachable(TransientModelError, ModelUnavailable):  # noqa: N818
    """There is no connection to the service, for now."""

    code = "model_unavailable"


class OutputError(LessonbankError):
    """The model answered, but nothing usable was in the answer. `usage` is the `Usage` of the answer, where known."""

    code = "output"

    def __init__(self, message: str, /, *, usage: object = None) -> None:
        super().__init__(message)
        self.usage = usage


class JudgeError(OutputError):
    """No verdict could be read from the judge's reply."""

    code = "judge_output"


class ExtractionError(OutputError):
    """No lesson could be read from the extractor's reply."""

    code = "extraction_output"


class StoreError(LessonbankError):
    """The store failed. Nothing was half done."""

    code = "store"


class NotFound(StoreError):  # noqa: N818
    """No record of that id in this scope."""

    code = "not_found"


class SpaceMismatch(StoreError):  # noqa: N818
    """Vectors of two embedding models would be compared."""

    code = "space_mismatch"


class VersionMismatch(StoreError):  # noqa: N818
    """The file has a format that this release does not read. Nothing was changed."""

    code = "version_mismatch"


class Conflict(StoreError):  # noqa: N818
    """The change does not fit the bank's present state."""

    code = "conflict"


class StoreUnavailable(StoreError):  # noqa: N818
    """The file is missing, read-only, locked, full or damaged."""

    code = "store_unavailable"


class StoreReplaced(StoreUnavailable):
    """The file was moved, deleted or replaced while it was open. Opened again, the bank is what lies there now."""


class StoreDamaged(StoreUnavailable):
    """The file does not hold what was written to it. The message ends with what to do."""

    code = "store_damaged"

    REMEDY: ClassVar[str] = ": run `lessonbank salvage BANK NEW`, or restore a backup"

    def __init__(self, what: str, /, *, remedy: str = REMEDY) -> None:
        super().__init__(f"{what}{remedy}")


class ReadOnly(StoreUnavailable):
    """The bank was opened read-only and takes no writes."""

    code = "read_only"


class RateLimited(StoreUnavailable):
    """The key of a server was used more often than its rate allows. Nothing was changed."""

    code = "rate_limited"
