"""Lets a person write a lesson in their own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lessonbank.contracts.records import Kind
from lessonbank.errors import UsageError

from ._output import warn

_LINE = "---"
"""What stands between the fields of a draft and its content."""
_HELP = "# Fill in the fields. What the lesson says goes below the line of dashes. An unchanged file keeps nothing."


@dataclass(frozen=True)
class Draft:
    """The words of a lesson before they are kept."""

    title: str
    when: str
    content: str
    task: str | None = None
    """`None`: a lesson that is there already keeps its task and kind."""
    kind: str = "strategy"
    file: Path | None = None
    """Where it was written; kept if the bank refuses it."""

    @property
    def words(self) -> tuple[str, str, str]:
        """What an edit can change."""
        return self.title, self.when, self.content

    @property
    def kind_of(self) -> Kind:
        """The kind. Raises UsageError."""
        if self.kind == "strategy" or self.kind == "guardrail":
            return self.kind
        raise UsageError(f"a lesson is a strategy or a guardrail; got {self.kind!r}")

    @property
    def text(self) -> str:
        """What the editor shows."""
        fields = {"title": self.title, "when": self.when}
        if self.task is not None:
            fields |= {"task": self.task, "kind": self.kind}
        lines = [_HELP, *(f"{name}: {' '.join(text.split())}" for name, text in fields.items())]
        return "\n".join([*lines, _LINE, self.content, ""])

    def changed(self, words: Mapping[str, str], /) -> Draft:
        """Return the lesson's texts with some words replaced."""
        return replace(self, **{name: text for name, text in words.items() if name in _names(self)})

    @contextmanager
    def kept_on_error(self) -> Generator[None]:
        """Delete the file, unless the bank refuses the lesson: then say where it is."""
        try:
            yield
        except BaseException:  # such as a key that nobody typed
            if self.file:
                warn(f"what you wrote is in {self.file}")
            raise
        if self.file:
            self.file.unlink(missing_ok=True)


def written(draft: Draft, /, *, missing: str) -> Draft:
    """The draft as the person's editor leaves it. `missing`: the options that would have said it.

    Raises:
        UsageError: there is no editor, it failed, or it left nothing to keep.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        raise UsageError(f"give {missing}, or set EDITOR to write the lesson in your editor")
    handle, name = tempfile.mkstemp(prefix="lesson-", suffix=".txt")
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(draft.text)
    _edit(command, path)
    try:
        new = replace(_read(path.read_text(encoding="utf-8-sig"), draft), file=path)
    except (UnicodeDecodeError, UsageError) as error:
        raise UsageError(f"{error}; what you wrote is in {path}") from error
    same = _read(draft.text, draft)
    if (new.words, new.task) == (same.words, same.task):
        path.unlink(missing_ok=True)
        raise UsageError("nothing was changed")
    return new


def _edit(command: str, path: Path) -> None:
    try:
        done = subprocess.run([*shlex.split(command), str(path)], check=False, stdout=sys.stderr)
    except (OSError, ValueError) as error:
        path.unlink(missing_ok=True)
        raise UsageError(f"the editor {command!r} cannot be started: {error}") from error
    if done.returncode:
        raise UsageError(
            f"the editor {command!r} ended with code {done.returncode}: nothing was kept, and the draft is in {path}"
        )


def _read(text: str, draft: Draft) -> Draft:
    head, line, content = text.partition(f"\n{_LINE}\n")
    if not line:
        raise UsageError(f"the line {_LINE!r} is missing from the draft: it stands between the fields and the content")
    fields = dict[str, str]()
    for row in head.splitlines():
        name, colon, value = row.partition(":")
        if row.startswith("#") or not row.strip():
            continue
        if not colon or name.strip() not in _names(draft):
            raise UsageError(f"cannot read {row!r} in the draft: fields are {', '.join(_names(draft))}")
        fields[name.strip()] = value.strip()
    return draft.changed({**fields, "content": content.strip()})


def _names(draft: Draft) -> tuple[str, ...]:
    return ("title", "when", "content") if draft.task is None else ("title", "when", "task", "kind", "content")
