"""Reads the records of format 10, and of step 1 in PostgreSQL: deflated there against the field names that all have."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from lessonbank.contracts.records import Experience, Recall, Record, Trajectory
from lessonbank.contracts.records.format_10 import upgrade_change, upgrade_experience, upgrade_run
from lessonbank.errors import StoreDamaged

from ._entries import entry_of
from ._records import json_of, loaded
from ._texts import TextWithSum, with_sum

Table: TypeAlias = Literal["journal", "experiences", "trajectories", "recalls"]

_UPGRADES: Final[Mapping[Table, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "journal": upgrade_change,
    "experiences": upgrade_experience,
    "trajectories": upgrade_run,
    "recalls": dict[str, Any],  # their metadata is the caller's, so nothing moves
}
_RECORDS: Final[Mapping[Table, type[Record]]] = {
    "experiences": Experience,
    "trajectories": Trajectory,
    "recalls": Recall,
}

_MARK: Final = b"\x05"
"""Names this dictionary and layout: mark, checksum of the text, deflated text."""
_TEXT: Final = 5
"""Where the deflated text begins."""

_NAMES: Final = (
    b'"text":"","text_digest":"","lessons":[],"holdout":0.1,"retriever":"experience/lexical","space":null,"notes":[],"'
    b'candidates":[{"lesson_id":"019","experience_id":"019","score":0.,"rank":1,"shown":true,"withheld":false,"probabi'
    b'lity":0.1,"why":"the closest task"},{"kind":"settle","settlement":{"recall_id":"019","scope":"default","experien'
    b'ce_id":"019","trajectory_ids":["019"],"outcome":"failure","reward":null,"confidence":1.0,"source":"judge","steps'
    b'":0,"usage":{"requests":0,"input_tokens":0,"output_tokens":0,"cost":null},"at":"2026-01-01T00:00:00.000000Z"}}{"'
    b'kind":"retire","lesson_ids":["019"],"reason":""}{"kind":"merge","source_lesson_ids":["019"],{"kind":"replace","e'
    b'xperience":{"id":"019","scope":"default","task":"the order of the user with and for all a not is before check wh'
    b'en page list first after file test","lessons":[{"id":"019","title":"","description":"When the ","content":"If th'
    b'e ","kind":"guardrail","retired":false,"state":"probation","approved":false,"risk":null,"topic":null,"version":1'
    b',"only":[],"created_at":"2026-01-01T00:00:00.000000Z","provenance":{"writer":"learn","identity":"","method":"llm'
    b'","trajectory_ids":["019"],"verdict":"failure","verdict_source":"ground_truth","prompts":[{"id":"general/extract'
    b'_success","version":"1","digest":""}],"model":null,"package_version":"0.1.0","evidence":["step 1"]}}],"attempts"'
    b':[{"trajectory_id":"019","verdict":{"outcome":"success","confidence":1.0,"reason":"","source":"ground_truth","re'
    b'ward":1.0,"model":null,"prompt":null,"usage":{"requests":0,"input_tokens":0,"output_tokens":0,"cost":null}},"n_s'
    b'teps":1}],"rejected":[],"created_at":"2026-01-01T00:00:00.000000Z","metadata":{}}}{"kind":"add","experience":{"i'
    b'd":"019","scope":"default","task":"","lessons":[{"id":"019","title":"","description":"","content":"","kind":"str'
    b'ategy","retired":false,"state":"probation","approved":false,"risk":null,"topic":null,"version":1,"only":[],"crea'
    b'ted_at":"2026-01-01T00:00:00.000000Z","provenance":{"writer":"learn","identity":"","method":"llm","trajectory_id'
    b's":[],"verdict":"unknown","verdict_source":"judge","prompts":[],"model":null,"package_version":"","evidence":[]}'
    b'}],"attempts":[],"rejected":[],"created_at":"2026-01-01T00:00:00.000000Z","metadata":{}}}'
)
_RECEIPT: Final = (
    b'"holdout":0.3,"control":false,"control_probability":0.1,"groups":[{"group":"topic/","withheld":false,"probabilit'
    b'y":0.1}],"retriever":"experience/dense","space":"sentence-transformers:\\n~~~\\n<<<end lessons ,"text_digest":""'
    b',"lessons":[],"candidates":[{"lesson_id":"01a","experience_id":"01a","score":0.7,"rank":1,"shown":true,"placed":'
    b'true,"withheld":false,"probability":0.1,"groups":["source/guardrail/told/extractive","topic/"],"why":"its task s'
    b'cored 0.7"},{"lesson_id":"01a'
)
WORDS: Final = _RECEIPT + _NAMES
"""Whoever changes a byte of it makes every such record unreadable."""


def unpacked(data: bytes, /) -> bytes:
    """The JSON of a packed record, as UTF-8.

    Raises:
        StoreDamaged: the bytes are not those that were written.
    """
    try:
        inflate = zlib.decompressobj(-15, WORDS)
        text = inflate.decompress(data[_TEXT:])
    except (zlib.error, TypeError) as error:  # a column of SQLite may hold a text or a number: whatever somebody put
        raise StoreDamaged(f"a kept record cannot be unpacked ({error})") from None
    if data[:1] != _MARK or not inflate.eof:
        raise StoreDamaged("a kept record cannot be unpacked (it is cut off)")
    if zlib.crc32(text).to_bytes(4) != data[1:_TEXT]:
        raise StoreDamaged("a kept record is not what was written (its checksum is wrong)")
    return text


class Upgraded(NamedTuple):
    """A record of format 10, as this release keeps it."""

    text: TextWithSum
    has_moved: bool
    """Whether what it said in its metadata has moved to fields."""


def upgraded(table: Table, data: bytes, /) -> Upgraded:
    """What a packed record of a table becomes.

    Bytes that are not those that were written stay what they are, a damaged record: the others can be read.
    """
    try:
        text = unpacked(data).decode()
    except StoreDamaged:
        hexadecimal, total = with_sum(bytes(data).hex())
        return Upgraded((hexadecimal, total ^ 1), has_moved=False)
    before = json.loads(text)
    after = _UPGRADES[table](before)
    return Upgraded(with_sum(_as_kept(table, after) or text), has_moved=after != before)


def _as_kept(table: Table, fields: dict[str, Any]) -> str:
    """The JSON of a record today; empty where it is none that can be read: then it stays as it was."""
    text = json.dumps(fields, ensure_ascii=False).encode()
    try:
        return json_of(entry_of(text) if table == "journal" else loaded(_RECORDS[table], text))
    except (StoreDamaged, ValueError):
        return ""
