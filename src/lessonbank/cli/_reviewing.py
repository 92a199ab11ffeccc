"""Asks for the key of a reviewer before a command decides what is shown: an agent with a shell has none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lessonbank._base.checks import short_path
from lessonbank.errors import NotAllowed, UsageError

from ._bank import opened
from ._output import warn

if TYPE_CHECKING:
    from lessonbank import ReasoningBank

UNPROTECTED = (
    "not protected from an agent on this machine: `lessonbank keys add NAME --kind reviewer` makes it ask for a key"
)

KeyFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        envvar="LESSONBANK_REVIEWER_KEY_FILE",
        help="The file with your key as a reviewer. Without: you are asked for it.",
        show_default=False,
    ),
]
Reviewer: TypeAlias = Annotated[
    str | None,
    typer.Option("--by", envvar="LESSONBANK_BY", help="Your name, where the bank has reviewers.", show_default=False),
]


def reviewing(memory: ReasoningBank, by: str, key_file: Path | None, /) -> ReasoningBank:
    """`memory` in the hands of the reviewer `by`; as it is, and a warning, where it has none. Raises NotAllowed."""
    if _has_reviewers(memory) is False:
        warn(UNPROTECTED)
    return owning(memory, by, key_file)


def _has_reviewers(memory: ReasoningBank) -> bool | None:
    """`None`: a server's key of one tenant may not ask, and the server checks each call itself."""
    try:
        return bool(memory.admin.reviewers())
    except NotAllowed:
        return None


def person_of(bank: str, by: str | None, key_file: Path | None, /) -> dict[str, str | None]:
    """The `by` and `key` of a call that is not a bank's own. Raises NotAllowed, UsageError."""
    with opened(bank, "default") as memory:
        if not _has_reviewers(memory):
            return {"by": None, "key": None}
    return {"by": _require_name(by), "key": key_of(_require_name(by), key_file)}


def owning(memory: ReasoningBank, by: str | None, key_file: Path | None, /) -> ReasoningBank:
    """Open a bank with a reviewer's key and without a warning, for commands that are no decision about lessons.

    Raises NotAllowed: it has reviewers, and nobody says which one this is or can be asked for the key.
    """
    has_reviewers = _has_reviewers(memory)
    if not (has_reviewers or (has_reviewers is None and key_file)):
        return memory
    return memory.scoped(writer=_require_name(by), key=key_of(_require_name(by), key_file))


def _require_name(by: str | None) -> str:
    if by is None:
        raise NotAllowed("this bank has reviewers: say with --by which one you are")
    return by


def key_of(by: str, key_file: Path | None, /) -> str:
    """The key of a reviewer, from a file, or typed where nobody sees it. Raises UsageError, NotAllowed."""
    if key_file is not None:
        try:
            return key_file.expanduser().read_text(encoding="utf-8-sig").strip()
        except (OSError, RuntimeError, UnicodeDecodeError) as error:
            raise UsageError(f"the key in {short_path(key_file)} cannot be read: {type(error).__name__}") from None
    if not sys.stdin.isatty():
        raise NotAllowed("this needs the key of a reviewer, and there is no terminal to ask at: give --key-file")
    return str(typer.prompt(f"Key of {by}", hide_input=True, err=True)).strip()
