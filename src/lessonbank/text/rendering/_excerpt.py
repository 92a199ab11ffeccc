"""Cuts one text to a size in bytes: head, tail and the lines that speak of errors stay, each behind `| `."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

BYTES_PER_TOKEN = 3
"""English and code take three to five bytes a token, numbers and most other scripts about three."""

_PREFIX = 2  # "| " before every line
_MARK = 48  # room for one "[… 12,345,678 characters cut …]" line
_REACH = 240  # characters of an error line shown before and after the word
_SPOTS = 6
_BREAKS = ("\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
# How tools report errors, spelled so that source code which only names an error class does not match. Plain strings,
# because searching them is an order of magnitude faster than one pattern.
_SIGNS = (
    *("Traceback (most", "rror: ", 'rror": ', "rror': ", "Error - ", "Error exec", "ERROR", "xception: ", "panic: "),
    *("FAILED", "FAIL: ", " failed", "Failed ", "atal: ", "denied", "refused", "imed out", "nvalid ", "No such "),
    *("ot found", "nable to ", "annot ", "ould not "),
)


def estimate_tokens(text: str, /) -> int:
    """About how many tokens a model needs for `text`, rather too many than too few: one per three UTF-8 bytes.

    No tokenizer is loaded. Prose and code come out up to a half above the true count, JSON and Chinese close to it;
    only long runs of random characters (keys, base64) can be above the estimate.
    """
    return -(-width(text) // BYTES_PER_TOKEN)


def excerpt(text: str, /, *, budget: int) -> str:
    """`text` as lines behind `| ` in at most `budget` tokens, head, tail and error lines kept."""
    return clip(unify(text), budget * BYTES_PER_TOKEN)


def width(text: str, /) -> int:
    """Size in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def unify(text: str, /) -> str:
    """`text` with every line break, the rare ones included, as `\\n`, and none at the ends."""
    for mark in _BREAKS:
        if mark in text:
            text = text.replace(mark, "\n")
    return text.strip("\n").rstrip()


def block_size(text: str, /) -> int:
    """Bytes `text` takes as a block: itself, and the prefix of each line."""
    return width(text) + _PREFIX * (text.count("\n") + 1) if text else 0


def block(text: str, /) -> str:
    """`text` with `| ` before each line."""
    return "| " + text.replace("\n", "\n| ") if text else ""


def is_troubled(text: str, /) -> bool:
    """Whether a text speaks of an error in the words tools commonly use."""
    return any(sign in text for sign in _SIGNS)


def clip(text: str, limit: int, /) -> str:
    """The block of `text` (its breaks unified) in at most `limit` bytes; what was cut is said where it was cut."""
    if block_size(text) <= limit:
        return block(text)
    if limit < 3 * _MARK:
        return block(_head(text, limit - 4) + "…") if limit > 8 else ""
    room = limit - _MARK
    head, tail = _head(text, room // 3), _tail(text, room // 3)
    spots = _affordable(error_places(text, len(head), len(text) - len(tail)), text, room // 3)
    rest = room - sum(_cost(text, spot) for spot in spots)
    # The end of an output says how it went (tests, compilers, shells), so it gets the larger part.
    head, tail = _head(text, rest // 3), _tail(text, rest - rest // 3)
    return "\n".join(part for part in (block(head), *_middle(text, spots, len(head), len(tail)), block(tail)) if part)


def _affordable(spots: list[tuple[int, int]], text: str, limit: int, /) -> list[tuple[int, int]]:
    """The spots that fit into `limit` bytes, each line once."""
    choices: dict[str, tuple[int, int]] = {}
    for spot in spots:
        line = text[slice(*spot)]
        cost = _cost(text, spot)
        if line not in choices and cost <= limit:
            limit -= cost
            choices[line] = spot
    return list(choices.values())


def _cost(text: str, spot: tuple[int, int], /) -> int:
    return block_size(text[slice(*spot)]) + _MARK


def _middle(text: str, spots: list[tuple[int, int]], head: int, tail: int, /) -> Iterator[str]:
    at, end = head, len(text) - tail
    for start, stop in spots:
        if at <= start and stop <= end:
            yield from _cut(text, at, start)
            yield block(text[start:stop])
            at = stop
    yield from _cut(text, at, end)


def _cut(text: str, start: int, stop: int, /) -> Iterator[str]:
    if stop - start < _MARK and block_size(short := text[start:stop].strip("\n")) < _MARK:
        yield block(short)
    elif stop > start:
        yield f"[… {stop - start:,} characters cut …]"


def error_places(text: str, at: int, end: int, /) -> list[tuple[int, int]]:
    """The first six lines between `at` and `end` that speak of an error, long ones only around the word."""
    spots: list[tuple[int, int]] = []
    for hit in sorted(hit for sign in _SIGNS for hit in _hits(text, sign, at, end)):
        if hit < at:
            continue
        floor, ceiling = max(at, hit - _REACH), min(end, hit + _REACH)
        start = max(text.rfind("\n", floor, hit) + 1, floor)
        stop = text.find("\n", hit, ceiling)
        at = ceiling if stop < 0 else stop
        spots.append((start, at))
    return spots[:_SPOTS]


def _hits(text: str, sign: str, at: int, end: int, /) -> Iterator[int]:
    """Where a sign stands, twice at most: the same complaint a third time says nothing new."""
    for _ in range(2):
        at = text.find(sign, at, end)
        if at < 0:
            return
        yield at
        at += _REACH


def _head(text: str, limit: int, /) -> str:
    window = text[: max(limit, 0)]
    head = window[: _longest(lambda n: window[:n], len(window), limit)]
    line = head.rfind("\n") + 1
    return head[: line - 1] if line > len(head) * 0.7 else head


def _tail(text: str, limit: int, /) -> str:
    window = text[-limit:] if limit > 0 else ""
    size = len(window)
    tail = window[size - _longest(lambda n: window[size - n :], size, limit) :]
    line = tail.find("\n") + 1
    return tail[line:] if 0 < line < len(tail) * 0.3 else tail


def _longest(part: Callable[[int], str], size: int, limit: int, /) -> int:
    """The largest n up to `size` whose part fits into `limit` bytes as a block."""
    return max(bisect_right(range(size + 1), limit, key=lambda n: block_size(part(n))) - 1, 0)
