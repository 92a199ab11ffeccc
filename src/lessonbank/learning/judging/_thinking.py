"""Sets a reasoning model's thinking apart from what it says."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


def spoken(text: str, /) -> str:
    """`text` without its thinking blocks, stripped; nothing where a block at the start never ends. Linear in `text`.

    A closing mark without an opening one ends thinking that began before the reply (some servers drop the first mark).
    """
    text = text.replace("<thinking>", _OPEN).replace("</thinking>", _CLOSE).strip()
    kept: list[str] = []
    at = 0
    while (start := text.find(_OPEN, at)) >= 0 and (stop := text.find(_CLOSE, start)) >= 0:
        kept.append(text[at:start])
        at = stop + len(_CLOSE)
    rest = "".join((*kept, text[at:])).strip()
    if rest.startswith(_OPEN):
        return ""
    return rest if rest.startswith(("{", "[", "`")) else rest.rpartition(_CLOSE)[2].strip()
