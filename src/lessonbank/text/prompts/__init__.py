"""Prompts are versioned files with named slots, so that what a model was told can be read, reviewed and kept.

A prompt file is front matter (`id`, `version`, `slots`, `source`, one `key: value` a line), a line `---`, and the text
in the sections `# System` (may be missing or empty) and `# User`. Slots are written `{{name}}` and declared in `slots`,
separated by commas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from lessonbank._base.tables import read_once
from lessonbank.contracts.ports import Message
from lessonbank.contracts.records import PromptRef
from lessonbank.errors import PromptError

DOMAINS = ("general", "web", "code", "paper")
"""`general`, `web` and `code` are this package's own words; `paper` holds the published method."""

_ROOT = Path(__file__).parent
_KEYS = ("id", "version", "slots", "source")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SLOT = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_SECTION = re.compile(r"^# (System|User)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The words for one role, with slots to fill."""

    id: str
    version: str
    source: str
    slots: tuple[str, ...]
    system: str
    user: str
    digest: str
    """SHA-256 of the file's text, as 64 hex digits."""

    @property
    def ref(self) -> PromptRef:
        """What provenance keeps of it."""
        return PromptRef(id=self.id, version=self.version, digest=self.digest)

    def render(self, /, **slots: str) -> tuple[Message, ...]:
        """The messages with every slot filled, in one pass: a value that contains `{{x}}` stays as it is.

        Raises:
            PromptError: a slot is missing, or there is no such slot.
        """
        if missing := [name for name in self.slots if name not in slots]:
            raise PromptError(f"Prompt {self.id} needs a value for the slot {missing[0]!r}.")
        if unknown := [name for name in slots if name not in self.slots]:
            raise PromptError(f"Prompt {self.id} has no slot {unknown[0]!r}; its slots are: {', '.join(self.slots)}.")
        user = Message(role="user", content=_fill(self.user, slots), stable=_stable(self.user, slots))
        if not self.system:
            return (user,)
        return (Message(role="system", content=_fill(self.system, slots)), user)


@cache
def load(id: str, /) -> Prompt:
    """A prompt of this package, such as `general/judge`.

    Raises:
        PromptError: there is no such prompt.
    """
    if id not in _texts():
        raise PromptError(f"There is no prompt {id!r}; the package has: {', '.join(available())}.")
    prompt = _parse(_texts()[id], where=f"{id}.md")
    if prompt.id != id:
        raise PromptError(f"Prompt file {id}.md calls itself {prompt.id!r}; the id must be its path.")
    return prompt


def load_file(path: str | Path, /) -> Prompt:
    """A user's own prompt file.

    Raises:
        PromptError: the file cannot be read, or is not in the form described above.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise PromptError(f"Prompt file {path} cannot be read: {error}.") from error
    return _parse(text, where=str(path))


def for_domain(domain: str, role: str, /) -> Prompt:
    """The prompt of a domain for a role (`judge`, `extract_success`, …), or the general one where it has none.

    Raises:
        PromptError: there is no such domain, or no prompt for the role in it and in `general`.
    """
    if domain not in DOMAINS:
        raise PromptError(f"There is no prompt domain {domain!r}; choose one of: {', '.join(DOMAINS)}.")
    own = f"{domain}/{role}"
    return load(own if own in _texts() else f"general/{role}")


def available() -> tuple[str, ...]:
    """The ids of all prompts of this package, sorted."""
    return tuple(sorted(_texts()))


@read_once
def _texts() -> dict[str, str]:
    """The files of this package, by id."""
    files = [file for domain in DOMAINS for file in _ROOT.joinpath(domain).glob("*.md")]
    return {f"{file.parent.name}/{file.stem}": file.read_text(encoding="utf-8") for file in files}


def _fill(template: str, slots: dict[str, str], /) -> str:
    texts, names = _pieces(template)
    return texts[0] + "".join(slots[name] + text for name, text in zip(names, texts[1:], strict=True))


def _stable(template: str, slots: dict[str, str], /) -> int:
    """How far it is the same for every run of an agent: to the end of the agent's slot, where that comes first."""
    texts, names = _pieces(template)
    return len(texts[0]) + len(slots["agent"]) if names[:1] == ["agent"] else 0


@lru_cache(maxsize=64)
def _pieces(template: str, /) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before, between and behind the slots, and the names of the slots."""
    pieces = _SLOT.split(template)
    return pieces[::2], [name.strip() for name in pieces[1::2]]


def _parse(raw: str, /, *, where: str) -> Prompt:
    text = raw.replace("\r\n", "\n")
    head, body = _split(text, where=where)
    system, user = _sections(body, where=where)
    slots = tuple(name.strip() for name in head["slots"].split(",") if name.strip())
    _check_slots(slots, system + user, where=where)
    return Prompt(
        id=head["id"],
        version=head["version"],
        source=head["source"],
        slots=slots,
        system=system,
        user=user,
        digest=sha256(text.encode()).hexdigest(),
    )


def _split(text: str, /, *, where: str) -> tuple[dict[str, str], str]:
    lines, rule, body = text.removeprefix("---\n").partition("\n---\n")
    if not rule:
        raise PromptError(f"Prompt file {where} has no line '---' between its front matter and its text.")
    head: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines.split("\n"))):
        key, colon, value = line.partition(":")
        if not colon or key not in _KEYS or key in head:
            raise PromptError(f"Prompt file {where}: {line!r} is not one of the front matter lines {', '.join(_KEYS)}.")
        head[key] = value.strip()
    for key in _KEYS:
        if not head.get(key) and (key != "slots" or key not in head):
            raise PromptError(f"Prompt file {where} does not say its {key} in the front matter.")
    return head, body


def _sections(body: str, /, *, where: str) -> tuple[str, str]:
    before, *rest = _SECTION.split(body)
    names, texts = rest[::2], [text.strip() for text in rest[1::2]]
    if names not in (["User"], ["System", "User"]) or before.strip():
        raise PromptError(f"Prompt file {where} must consist of the sections '# System' (optional) and '# User'.")
    if not texts[-1]:
        raise PromptError(f"Prompt file {where} has an empty '# User' section.")
    return (texts[0] if len(texts) > 1 else ""), texts[-1]


def _check_slots(declared: tuple[str, ...], text: str, /, *, where: str) -> None:
    used = [match.strip() for match in _SLOT.findall(text)]
    for name in (*declared, *used):
        if not _NAME.fullmatch(name):
            raise PromptError(f"Prompt file {where}: {name[:40]!r} is no slot name (a-z, 0-9 and _).")
    if len(set(declared)) < len(declared):
        raise PromptError(f"Prompt file {where} declares the slot {max(declared, key=declared.count)!r} twice.")
    if undeclared := [name for name in used if name not in declared]:
        raise PromptError(f"Prompt file {where} uses the slot {undeclared[0]!r} without declaring it.")
    if unused := [name for name in declared if name not in used]:
        raise PromptError(f"Prompt file {where} declares the slot {unused[0]!r} and does not use it.")
    if len(used) != text.count("{{"):
        raise PromptError(f"Prompt file {where} has a slot that is opened with '{{{{' and not closed.")
