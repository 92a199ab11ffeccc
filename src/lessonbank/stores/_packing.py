"""Records as few bytes: their JSON, deflated against the field names that every record has."""

from __future__ import annotations

import zlib
from typing import Final

from lessonbank.errors import StoreUnavailable

_MARK: Final = b"\x02"
"""Names the present dictionary. Another dictionary needs another mark: what is packed must be readable for ever."""
_ZLIB: Final = b"\x78"
"""How records of earlier releases begin: plain zlib."""

_FIRST_NAMES: Final = (
    b'"text":"","text_digest":"","items":[],"holdout":0.1,"retriever":"experience/lexical","space":null,"notes":[],'
    b'"candidates":[{"item_id":"019","experience_id":"019","score":0.,"rank":1,"shown":true,"withheld":false,'
    b'"probability":0.1,"why":"the closest task"},{"kind":"settle","settlement":{"recall_id":"019","scope":"default",'
    b'"experience_id":"019","trajectory_ids":["019"],"outcome":"failure","reward":null,"confidence":1.0,"source":"judge",'
    b'"steps":0,"usage":{"requests":0,"input_tokens":0,"output_tokens":0,"cost":null},"at":"2026-01-01T00:00:00.000000Z"}}'
    b'{"kind":"retire","item_ids":["019"],"reason":""}{"kind":"merge","source_item_ids":["019"],'
    b'{"kind":"replace","experience":{"id":"019","scope":"default","task":"the order of the user with and for all a '
    b'not is before check when page list first after file test","items":[{"id":"019","title":"","description":"When '
    b'the ","content":"If the ","kind":"guardrail","retired":false,"created_at":"2026-01-01T00:00:00.000000Z",'
    b'"provenance":{"writer":"learn","method":"llm","trajectory_ids":["019"],"verdict":"failure",'
    b'"verdict_source":"ground_truth","prompts":[{"id":"general/extract_success","version":"1","digest":""}],'
    b'"model":null,"package_version":"0.1.0","evidence":["step 1"]}}],"attempts":[{"trajectory_id":"019",'
    b'"verdict":{"outcome":"success","confidence":1.0,"reason":"","source":"ground_truth","reward":1.0,"model":null,'
    b'"prompt":null,"usage":{"requests":0,"input_tokens":0,"output_tokens":0,"cost":null}},"n_steps":1}],'
    b'"created_at":"2026-01-01T00:00:00.000000Z","metadata":{}}}'
    b'{"kind":"add","experience":{"id":"019","scope":"default","task":"","items":[{"id":"019","title":"","description":"",'
    b'"content":"","kind":"strategy","retired":false,"created_at":"2026-01-01T00:00:00.000000Z","provenance":{"writer":'
    b'"learn","method":"llm","trajectory_ids":[],"verdict":"unknown","verdict_source":"judge","prompts":[],"model":null,'
    b'"package_version":"","evidence":[]}}],"attempts":[],"created_at":"2026-01-01T00:00:00.000000Z","metadata":{}}}'
)
_NAMES: Final = _FIRST_NAMES.replace(b'"retired":false,', b'"retired":false,"state":"probation","risk":null,').replace(
    b'],"created_at"', b'],"rejected":[],"created_at"'
)
_DICTIONARIES: Final = {b"\x01": _FIRST_NAMES, _MARK: _NAMES}


_LONG: Final = 8192
"""Bytes from which a record is worth a window of its own: short ones start from a copy that has read the names."""
_short: Final = zlib.compressobj(4, zlib.DEFLATED, -13, 6, zlib.Z_DEFAULT_STRATEGY, _NAMES)


def packed(text: str, /) -> bytes:
    """The bytes that stand for a record's JSON."""
    data = text.encode()
    if len(data) < _LONG:
        deflate = _short.copy()
    else:
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, _NAMES)
    return b"".join((_MARK, deflate.compress(data), deflate.flush()))


def unpacked(data: bytes, /) -> bytes:
    """The inverse of `packed`, as UTF-8.

    Raises:
        StoreUnavailable: the bytes are damaged.
    """
    try:
        if data[:1] == _ZLIB:
            return zlib.decompress(data)
        inflate = zlib.decompressobj(-15, _DICTIONARIES.get(data[:1], _NAMES))
        text = inflate.decompress(data[1:])
    except (zlib.error, TypeError) as error:  # a column of SQLite may hold a text or a number: whatever somebody put
        raise StoreUnavailable(f"a kept record cannot be unpacked ({error}): restore a backup") from None
    if data[:1] not in _DICTIONARIES or not inflate.eof:
        raise StoreUnavailable("a kept record cannot be unpacked (it is cut off): restore a backup")
    return text
