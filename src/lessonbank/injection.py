"""Turn what was found into a receipt and the text that goes into a prompt: pure, fenced, under a hard budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ._ids import digest
from .guard import canonical, canonical_line, fence_lines, is_prose, prefixed
from .ledger.withholding import Assignment
from .prompts import Prompt
from .rendering import BYTES_PER_TOKEN, width
from .types import Found, Match, MemoryItem, Recall

_NOTHING = Assignment()
Style = Literal["full", "paper"]


@dataclass(frozen=True, slots=True)
class Injector:
    """How items become text. `full` shows kind, title, description and content; `paper` title and content."""

    prompt: Prompt
    style: Style = "full"
    budget: int = 1500
    """The most tokens (estimated) a recall's text may take. An item that does not fit is left out whole."""

    def recall(
        self,
        found: Found,
        /,
        *,
        id: str,
        task: str,
        scope: str,
        assigned: Assignment = _NOTHING,
        retriever: str,
        space: str | None,
    ) -> Recall:
        """The receipt for `found`: which items are shown, which are withheld as `assigned`, and the text.

        The fence's nonce follows from `id`: fresh for each recall, the same for its whole life."""
        ranked = [(match, item) for match in found.matches for item in _items(match)]
        held = frozenset(item.id for _, item in ranked) if assigned.control else assigned.withheld
        shown, text, left_out = self._fit([item for _, item in ranked], held, nonce=digest(id)[:8])
        told: dict[str, object] = {
            "id": id,
            "scope": scope,
            "task": task,
            "text": text,
            "text_digest": digest(text),
            "items": tuple([item for _, item in ranked]),
            "candidates": tuple(
                [
                    _candidate(match, item, rank, shown=shown, left_out=left_out, assigned=assigned)
                    for rank, (match, item) in enumerate(ranked, 1)
                ]
            ),
            "holdout": assigned.usual,
            "control": assigned.control,
            "control_probability": assigned.control_probability,
            "retriever": retriever,
            "space": space,
            "notes": found.notes,
        }
        return Recall.model_validate(told)

    def _fit(
        self, items: Sequence[MemoryItem], held: frozenset[str], *, nonce: str
    ) -> tuple[frozenset[str], str, dict[str, str]]:
        """Best first, whole items only; what is repeated or does not fit is left out with its reason.

        Room for the best guardrail that fits is set aside first: what worked never hides what went wrong. Which items
        have a place is settled before the draw, and the place of a withheld item stays empty: else what is measured
        by withholding would not be what showing it changes.
        """
        before, after = self._frame(nonce)
        room = self.budget * BYTES_PER_TOKEN - width(before) - width(after) + 1
        bodies = {item.id: _body(item, self.style) for item in items}
        front = len(prefixed("", nonce=nonce))
        sizes = {id: _size(f"[{len(items)}] {body}", front) for id, body in bodies.items()}
        distinct = _distinct(items)
        placed = _placed(distinct, sizes, room)
        shown = [item.id for item in items if item.id in placed and item.id not in held]
        lines = "\n".join([f"[{number}] {bodies[id]}" for number, id in enumerate(shown, 1)])
        repeated = bodies.keys() - {item.id for item in distinct}
        left_out = {
            id: "says the same as an item above it"
            if id in repeated
            else f"does not fit the budget of {self.budget} tokens"
            for id in bodies
            if id not in placed
        }
        return frozenset(shown), f"{before}{prefixed(lines, nonce=nonce)}{after}" if shown else "", left_out

    def _frame(self, nonce: str) -> tuple[str, str]:
        """What stands before and after the lines of the items."""
        block = fence_lines("", label="lessons", nonce=nonce)
        before, _, after = self.prompt.render(items=block)[-1].content.strip().rpartition(prefixed("", nonce=nonce))
        return before, after


def _distinct(items: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
    """`items` without those that say the same as one before them. Wordings are compared where they begin alike."""
    begin = {(item.kind, *item.title.casefold().split(maxsplit=1)[:1]) for item in items}
    if len(begin) == len(items) and all(len(kind_and_word) == 2 for kind_and_word in begin):
        return items
    return list({item.wording: item for item in reversed(items)}.values())[::-1]


def _placed(items: Sequence[MemoryItem], sizes: Mapping[str, int], room: int) -> frozenset[str]:
    """The items that have a place in `room` bytes: the best guardrail that fits, then best first."""
    if sum([sizes[item.id] for item in items]) <= room:
        return frozenset([item.id for item in items])
    reserved = [i for i in items if i.kind == "guardrail" and sizes[i.id] <= room][:1]
    placed: set[str] = set()
    for item in (*reserved, *items):
        if item.id not in placed and sizes[item.id] <= room:
            room -= sizes[item.id]
            placed.add(item.id)
    return frozenset(placed)


def _items(match: Match) -> Sequence[MemoryItem]:
    """The item that a match names, or every item of its experience; a retired one never."""
    items, one = match.experience.active_items, match.item_id
    return items if one is None else [item for item in items if item.id == one]


def _body(item: MemoryItem, style: Style) -> str:
    """What is shown of an item, behind its number: whatever its fields hold stands in the first line or is indented."""
    title, when, content = _in_form(item)
    content = content.strip().replace("\n", "\n  ")
    if style == "paper":
        return f"{title}\n  {content}"
    return f"{item.kind}: {title}\n  when: {when}\n  {content}" if when else f"{item.kind}: {title}\n  {content}"


def _in_form(item: MemoryItem) -> tuple[str, str, str]:
    """Title, description and content in the one form of a memory: they mostly have it."""
    if is_prose(item.text):
        return " ".join(item.title.split()), " ".join(item.description.split()), item.content
    return canonical_line(item.title), canonical_line(item.description), canonical(item.content)


def _size(lines: str, front: int) -> int:
    """Bytes that the lines of an item take with `front` bytes before each, and the break behind them."""
    return width(lines) + front * (lines.count("\n") + 1) + 1


def _candidate(
    match: Match,
    item: MemoryItem,
    rank: int,
    *,
    shown: frozenset[str],
    left_out: Mapping[str, str],
    assigned: Assignment,
) -> dict[str, object]:
    """What a `Candidate` is made of: the recall makes all of them at once."""
    origin = (
        f"its task scored {match.score:.3f}" if match.item_id is None else f"found with a score of {match.score:.3f}"
    )
    odds = assigned.probability.get(item.id, 0.0)
    drawn = item.id in assigned.withheld and item.id not in left_out
    return {
        "item_id": item.id,
        "experience_id": match.experience.id,
        "score": match.score,
        "rank": rank,
        "shown": item.id in shown,
        "placed": item.id not in left_out,
        "withheld": drawn,
        "probability": odds,
        "why": left_out.get(item.id) or _why(origin, odds if drawn else None, assigned),
    }


def _why(origin: str, odds: float | None, assigned: Assignment) -> str:
    """`odds`: of the draw that left the item out, if it did."""
    if assigned.control:
        return f"memory was withheld whole (probability {assigned.control_probability:g}); {origin}"
    return origin if odds is None else f"withheld at random (probability {odds:g}); {origin}"
