"""Turn what was found into a receipt and the text that goes into a prompt: pure, fenced, under a hard budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ._ids import digest
from .guard import clean, fence, one_line
from .prompts import Prompt
from .rendering import estimate_tokens
from .types import Candidate, Found, Match, MemoryItem, Recall

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
        held: frozenset[str],
        holdout: float | None,
        retriever: str,
        space: str | None,
    ) -> Recall:
        """The receipt for `found`: which items are shown, which are `held` back (drawn with probability `holdout`),
        and the text. The fence's nonce follows from `id`: fresh for each recall, the same for its whole life."""
        ranked = [(match, item) for match in found.matches for item in _items(match)]
        shown, text, left_out = self._fit([item for _, item in ranked], held, nonce=digest(id)[:8])
        return Recall(
            id=id,
            scope=scope,
            task=task,
            text=text,
            text_digest=digest(text),
            items=tuple(item for _, item in ranked),
            candidates=tuple(
                _candidate(match, item, rank, shown=shown, held=held, left_out=left_out, holdout=holdout or 0.0)
                for rank, (match, item) in enumerate(ranked, 1)
            ),
            holdout=holdout,
            retriever=retriever,
            space=space,
            notes=found.notes,
        )

    def _fit(
        self, items: Sequence[MemoryItem], held: frozenset[str], *, nonce: str
    ) -> tuple[frozenset[str], str, dict[str, str]]:
        """Best first, whole items only; what is repeated or does not fit is left out with its reason.

        An item is withheld only where it would have been shown, and no copy of it takes its place: else what is
        measured by withholding would not be what showing it changes.
        """
        shown: list[MemoryItem] = []
        text, left_out, words = "", dict[str, str](), set[str]()
        for item in items:
            longer = self._text([*shown, item], nonce)
            if item.wording in words:
                left_out[item.id] = "says the same as an item above it"
            elif estimate_tokens(longer) > self.budget:
                left_out[item.id] = f"does not fit the budget of {self.budget} tokens"
            else:
                words.add(item.wording)
                shown, text = (shown, text) if item.id in held else ([*shown, item], longer)
        return frozenset(i.id for i in shown), text, left_out

    def _text(self, items: Sequence[MemoryItem], nonce: str) -> str:
        lines = "\n".join(_lines(number, item, self.style) for number, item in enumerate(items, 1))
        return self.prompt.render(items=fence(lines, label="lessons", nonce=nonce))[-1].content.strip()


def _items(match: Match) -> Sequence[MemoryItem]:
    """The item that a match names, or every item of its experience; a retired one never."""
    return [item for item in match.experience.active_items if match.item_id in (None, item.id)]


def _lines(number: int, item: MemoryItem, style: Style) -> str:
    """One item. Only its own `[n]` starts a line: whatever its fields hold is indented below."""
    if style == "paper":
        return f"[{number}] {one_line(item.title)}\n{_indent(item.content)}"
    when = f"  when: {one_line(item.description)}\n" if item.description.strip() else ""
    return f"[{number}] {item.kind}: {one_line(item.title)}\n{when}{_indent(item.content)}"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in clean(text).strip().split("\n"))


def _candidate(
    match: Match,
    item: MemoryItem,
    rank: int,
    *,
    shown: frozenset[str],
    held: frozenset[str],
    left_out: dict[str, str],
    holdout: float,
) -> Candidate:
    origin = (
        f"its task scored {match.score:.3f}" if match.item_id is None else f"found with a score of {match.score:.3f}"
    )
    withheld = item.id in held and item.id not in left_out
    why = f"withheld at random (probability {holdout:g}); {origin}" if withheld else left_out.get(item.id, origin)
    return Candidate(
        item_id=item.id,
        experience_id=match.experience.id,
        score=match.score,
        rank=rank,
        shown=item.id in shown,
        withheld=withheld,
        probability=holdout,
        why=why,
    )
