"""Says in one line each what the elements of a recorded page are, from the page's own text, in one pass over it.

A recorded page is XML as Mind2Web's cleaning left it: elements with a `backend_node_id`, text in elements called
`text`. Nothing is resolved, fetched or expanded, whatever the text says, and a page that is not well formed is read as
far as it goes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from lessonbank.guard import one_line

LONGEST: Final = 8_000_000
"""Characters of a page that are read."""
_LINE: Final = 240
_VALUE: Final = 60
_WORDS: Final = 16
_OPTIONS: Final = 48
"""Words of a list to choose from: its options have to be seen."""
_DEEPEST: Final = 150
_TOKEN = re.compile(r"<(/?)([\w:.-]{1,40})([^<>]*)>|([^<>]+)")
_ATTRIBUTE = re.compile(r"""([\w:.-]{1,40})\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_ID = re.compile(r"""backend_node_id\s*=\s*["']([^"']{1,80})["']""")
_TOLD: Final = (
    "role", "type", "aria_label", "aria-label", "label", "title", "name", "placeholder", "alt", "value", "text_value",
    "input_value", "option_selected", "input_checked",
)  # fmt: skip
_EMPTY: Final = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass(slots=True)
class _Seen:
    tag: str
    attributes: Mapping[str, Any]
    near: str
    words: list[str] = field(default_factory=list[str])

    @property
    def full(self) -> bool:
        return len(self.words) >= (_OPTIONS if self.tag == "select" else _WORDS)

    def line(self, id: str) -> str:
        text = " ".join(self.words[: _OPTIONS if self.tag == "select" else _WORDS])
        told = [f'{key}="{value}"' for key in _TOLD if (value := _short(self.attributes.get(key)))]
        near = [f'after "{_short(self.near)}"'] if self.near else []
        parts = [f"[{id}]", self.tag, *([f'"{text}"'] if text else []), *told, *near]
        return one_line(" ".join(parts), limit=_LINE if self.tag != "select" else 2 * _LINE)


def lines(page: str, candidates: Mapping[str, Mapping[str, Any]], /) -> dict[str, str]:
    """A line for each of `candidates` (by id), in the order of the page; those that are not on it come last, by id.

    Args:
        page: `cleaned_html`.
        candidates: by `backend_node_id`, the record of the candidate, which is told where the page has no such element.
    """
    seen = _read(page[:LONGEST], candidates.keys())
    for id in sorted(candidates.keys() - seen):
        record = candidates[id]
        seen[id] = _Seen(str(record.get("tag", "element")), _attributes_of(record), "")
    return {id: one.line(id) for id, one in seen.items()}


def _read(page: str, wanted: Collection[str]) -> dict[str, _Seen]:
    reader = _Reader(wanted)
    for found in _TOKEN.finditer(page):
        closing, tag, rest, text = found.groups()
        if tag is None:
            reader.hear(text)
        elif closing:
            reader.end(tag.lower())
        else:
            reader.begin(tag.lower(), rest)
    return reader.seen


class _Reader:
    """Where in the page the reading is: the elements that are open, and those of them that text still belongs to."""

    def __init__(self, wanted: Collection[str], /) -> None:
        self.seen: dict[str, _Seen] = {}
        self._wanted = wanted
        self._open: list[tuple[str, bool]] = []
        self._hearing: list[_Seen] = []
        self._near = ""

    def begin(self, tag: str, rest: str) -> None:
        one = self._one(tag, rest)
        if rest.endswith("/") or tag in _EMPTY or len(self._open) >= _DEEPEST:
            return
        self._open.append((tag, one is not None))
        if one is not None:
            self._hearing.append(one)

    def hear(self, text: str) -> None:
        text = text.strip()
        if not text:
            return
        self._near = text
        for one in self._hearing:
            if not one.full:
                one.words += html.unescape(text[:2000]).split()[:_OPTIONS]

    def end(self, tag: str) -> None:
        """Closes the element that is named, and what was left open in it; one that is not open near by is ignored."""
        for back in range(1, min(len(self._open), 20) + 1):
            if self._open[-back][0] == tag:
                heard = sum(hearing for _, hearing in self._open[-back:])
                del self._open[-back:], self._hearing[len(self._hearing) - heard :]
                return

    def _one(self, tag: str, rest: str) -> _Seen | None:
        id = _ID.search(rest)
        if id is None or id[1] not in self._wanted or id[1] in self.seen:
            return None
        near = html.unescape(self._near[:2000])
        return self.seen.setdefault(id[1], _Seen(tag, _attributes(rest), near))


def _attributes(token: str) -> dict[str, str]:
    return {key: html.unescape(one or other) for key, one, other in _ATTRIBUTE.findall(token)}


def _attributes_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    told = record.get("attributes", {})
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except (ValueError, RecursionError):
            return {}
    return cast("Mapping[str, Any]", told) if isinstance(told, dict) else {}


def _short(value: object) -> str:
    return one_line(value[:500], limit=_VALUE).replace('"', "'") if isinstance(value, str) else ""
