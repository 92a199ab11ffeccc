"""What an installation consists of: members and elements of settings files, a block of TOML, files of our own."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from operator import attrgetter
from pathlib import Path
from typing import Final, Protocol

from lessonbank._base.checks import short_path
from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError, UsageError

from . import settings_file

MARK: Final = "lessonbank"
"""Every entry of ours holds this word: in its name, in its command, or in its first line."""
_CLIENT: Final = re.compile(r"lessonbank/(?:hosts|hooks)/client\.py")
"""The program of a hook, where it is and where it was."""
_BEGIN: Final = "# >>> lessonbank: `lessonbank install AGENT --remove` takes these lines out"
_END: Final = "# <<< lessonbank"
_OUR_MARK: Final = re.compile(r" ?# (?:>>>|<<<) lessonbank\b")
_OUR_TABLE: Final = re.compile(r"\[mcp_servers\.lessonbank[].]")
SERVER: Final = "lessonbank.cli"
"""What the command of an MCP server says that we wrote, and not a person under the same name."""


class Piece(Protocol):
    """One change to one file, and how to take it back."""

    @property
    def file(self) -> Path:
        """The file that is changed."""
        ...

    def added(self, text: str, /) -> str:
        """The file's text with the piece, once. Raises FormatError."""
        ...

    def removed(self, text: str, /) -> str:
        """The file's text without the piece. Raises FormatError."""
        ...


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a JSON object. Without a value it is only taken out."""

    file: Path
    path: tuple[str, ...]
    value: Json = None
    sign: str = ""
    """What our value says. Another one, which a person wrote under our name, stays."""

    def added(self, text: str, /) -> str:
        rest = self.removed(text)
        return rest if self.value is None else self._into(rest if rest.strip() else settings_file.EMPTY)

    def removed(self, text: str, /) -> str:
        return settings_file.without(text, self._is_ours) if text.strip() else text

    def _into(self, text: str) -> str:
        if settings_file.without_member(text, self.path) != text:
            raise FormatError(f"{'.'.join(self.path)} is not ours: give it another name")
        return settings_file.with_member(text, self.path, self.value)

    def _is_ours(self, path: tuple[str, ...], value: Json) -> bool:
        return path == self.path and self.sign in str(value)


@dataclass(frozen=True, slots=True)
class Trace(Member):
    """A member that the program itself wrote down of us: it goes when we go, and what held it stays."""

    def added(self, text: str, /) -> str:
        return text

    def removed(self, text: str, /) -> str:
        return settings_file.without_member(text, self.path) if text.strip() else text


@dataclass(frozen=True, slots=True)
class Element(Member):
    """An element of a JSON list that calls our hook. A hook that somebody added to it stays."""

    def _into(self, text: str) -> str:
        return settings_file.with_element(text, self.path, self.value)

    def _is_ours(self, path: tuple[str, ...], value: Json) -> bool:
        if path == self.path and isinstance(value, dict) and isinstance(inner := value.get("hooks"), list):
            return bool(inner) and all(_CLIENT.search(str(hook)) for hook in inner)
        return path == (*self.path, "hooks") and isinstance(value, dict) and bool(_CLIENT.search(str(value)))


@dataclass(frozen=True, slots=True)
class Block:
    """A table of a TOML file, between two marks. Codex moves and drops marks when it writes the file."""

    file: Path
    text: str

    def added(self, text: str, /) -> str:
        before = self.removed(text)
        gap = "" if not before or before.endswith("\n") else "\n "  # the mark says that the end of a line is ours
        made = f"{before}{gap}{_BEGIN}\n{self.text.strip()}\n{_END}\n"
        _toml_in(made, "with our lines it would be")
        return made

    def removed(self, text: str, /) -> str:
        servers = _toml_in(text, "it is").get("mcp_servers")
        has_ours = isinstance(servers, dict) and SERVER in str(servers.get(MARK))
        rest, is_ours = "", False
        for line in text.splitlines(keepends=True):
            goes_on = is_ours and not line.startswith(("[", "#", "\n", "\r"))
            is_ours = has_ours and (goes_on or bool(_OUR_TABLE.match(line)))
            if mark := _OUR_MARK.match(line):
                rest = rest.removesuffix("\n") if mark.group().startswith(" ") else rest
            elif not is_ours:
                rest += line
        return rest


def _toml_in(text: str, what: str) -> dict[str, Json]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{what} no valid TOML: {error}") from None


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours as a whole. It names us, so that another program's file is not taken for it."""

    file: Path
    text: str
    sign: str = MARK

    def added(self, text: str, /) -> str:
        if text and self.sign not in text:
            raise FormatError("it is not ours: move it away")
        return self.text

    def removed(self, text: str, /) -> str:
        return "" if self.sign in text else text


def add(pieces: list[Piece], /) -> list[Path]:
    """Write all pieces; the files that changed. No file is written unless every piece fits.

    Raises FormatError where a file is broken or leaves no room, UsageError where it cannot be written.
    """
    return _write(_changed(pieces, attrgetter("added")))


def preview(pieces: list[Piece], /) -> str:
    """What `add` would change, as a patch. Raises FormatError."""
    patches = (
        unified_diff(_text_of(file).splitlines(), text.splitlines(), str(file), str(file), lineterm="")
        for file, text in _changed(pieces, attrgetter("added")).items()
    )
    return "\n".join(line for patch in patches for line in patch)


def remove(pieces: list[Piece], /) -> list[Path]:
    """Take all pieces back; the files that changed. Raises FormatError and UsageError, like `add`."""
    texts = _changed(pieces, attrgetter("removed"))
    return _write(
        {path: "" if text == settings_file.EMPTY and not path.is_symlink() else text for path, text in texts.items()}
    )


def _changed(pieces: list[Piece], change: Callable[[Piece], Callable[[str], str]]) -> dict[Path, str]:
    texts: dict[Path, str] = {}
    for piece in pieces:
        try:
            texts[piece.file] = change(piece)(texts[piece.file] if piece.file in texts else _text_of(piece.file))
        except FormatError as error:
            raise FormatError(f"{short_path(piece.file)} was not changed: {error}") from None
    return texts


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"it cannot be read: {type(error).__name__}") from None


def _write(texts: dict[Path, str]) -> list[Path]:
    changed = [file for file, text in texts.items() if _text_of(file) != text]
    for file in changed:
        try:
            if texts[file] or file.is_symlink():
                _replace(file, texts[file])
            else:
                file.unlink()
                _tidy(file.parent)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise UsageError(
                f"{short_path(file)} cannot be written: {why}. Make it writable, and run this again"
            ) from None
    return changed


def _replace(file: Path, text: str) -> None:
    """In one go, with the mode it had; a link stays a link."""
    real = Path(os.path.realpath(file))
    real.parent.mkdir(parents=True, exist_ok=True)
    part = real.with_name(f"{real.name}.{secrets.token_hex(4)}.part")
    try:
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as target:
            target.write(text.encode())
            target.flush()
            os.fsync(target.fileno())
        part.chmod(mode)
        part.replace(real)
    finally:
        part.unlink(missing_ok=True)


def _tidy(folder: Path) -> None:
    """Remove the folders that our files were in, as far as nothing else is in them."""
    with contextlib.suppress(OSError):
        while folder not in (Path.home(), Path.cwd()) and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent
