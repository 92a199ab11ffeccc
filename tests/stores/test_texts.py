"""A record is plain JSON that any tool can read; what is damaged is never taken for a record."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from any_text import any_text
from hypothesis import given

import lessonbank
from lessonbank.contracts.records import Add
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import StoreDamaged, StoreUnavailable
from lessonbank.stores import _format_10
from lessonbank.stores._texts import checked, kept_again, with_sum
from lessonbank.testing.store_samples import experience


def stored(text: str) -> bytes:
    """What a store selects of a record."""
    kept, total = with_sum(text)
    return f"{total} {kept}".encode()


@given(text=any_text(max_size=300))
def test_what_is_kept_comes_back(text: str) -> None:
    assert checked(stored(text)) == text.encode()
    assert kept_again(stored(text)) == with_sum(text)


def test_a_record_that_was_cut_off_is_refused_wherever_that_was() -> None:
    whole = stored(Add(experience=experience()).model_dump_json())
    for length in range(len(whole)):
        with pytest.raises(StoreUnavailable, match="restore a backup"):
            checked(whole[:length])


def test_no_bit_of_a_record_can_flip_and_change_what_is_read() -> None:
    whole = stored(Add(experience=experience()).model_dump_json())
    for bit in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StoreDamaged, match="lessonbank salvage"):
            checked(bytes(flipped))


@pytest.mark.parametrize("data", [b"", b" ", b"{}", b"x {}", b"1", b"\xff" * 40, None, "1 {}", 7])
def test_what_was_never_written_is_refused(data: bytes) -> None:
    with pytest.raises(StoreUnavailable, match="restore a backup"):
        checked(data)


def test_sqlite_itself_reads_what_a_bank_says(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    with lessonbank.connect(path, scope="t", embedder="lexical") as bank:
        bank.learn([{"role": "user", "content": "Find the order"}], outcome="success")
        bank.lessons.add(title="Look first", content="Open the order.", task="Find it", by="Ana")
        bank.retrieve("Find the order")
    with closing(sqlite3.connect(path)) as raw:
        (task,) = raw.execute("SELECT json_extract(record, '$.task') FROM trajectories").fetchone()
        kinds = raw.execute("SELECT json_extract(entry, '$.kind') FROM journal ORDER BY number").fetchall()
        (asked,) = raw.execute("SELECT json_extract(record, '$.task') FROM recalls").fetchone()
    assert (task, asked, {kind for (kind,) in kinds}) == ("Find the order", "Find the order", {"add", "trust"})


def test_the_dictionary_is_the_one_that_format_10_was_written_with() -> None:
    assert digest(_format_10.WORDS.decode()) == "bd030953dd0fa3efac26b8ce5f4411f3378ec691465d6f6810954ee5501cc3f2"
    kept = bytes.fromhex("05cadd00da2354f524a2543c49c02a1b58f02bd50200")
    assert _format_10.unpacked(kept) == b'{"kind":"retire","lesson_ids":["a"],"reason":"because"}'


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x05abc", b"\x05abcdefghi", b"\x78\x9c", b"{}", b"\xff" * 40])
def test_what_format_10_never_packed_is_refused(data: bytes) -> None:
    with pytest.raises(StoreUnavailable, match="restore a backup"):
        _format_10.unpacked(data)
