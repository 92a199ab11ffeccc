"""What is packed can be unpacked, by later releases too; what is damaged is never taken for a record."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.records import Add
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import StoreDamaged, StoreUnavailable
from lessonbank.stores import _packing
from lessonbank.stores._packing import packed, unpacked
from lessonbank.testing.store_samples import experience

KEPT = bytes.fromhex("05")
"""Mark of the present dictionary and layout."""


@given(text=st.text(max_size=300), times=st.sampled_from([1, 40, 400]))
def test_what_is_packed_comes_back(text: str, times: int) -> None:
    assert unpacked(packed(text * times)) == (text * times).encode()


@pytest.mark.full
def test_records_of_every_length_come_back_and_are_short() -> None:
    chance = random.Random(1)
    for size in (0, 1, 100, 8191, 8192, 8193, 70_000, 1_000_000):
        text = Add(experience=experience("".join(chance.choices("abcdefgh é注", k=max(size, 1))))).model_dump_json()
        assert unpacked(packed(text)) == text.encode()
    text = Add(experience=experience()).model_dump_json()
    assert len(packed(text)) < 0.3 * len(text), "the ids are drawn: some bytes more or less"


def test_the_dictionary_is_the_one_that_files_were_written_with() -> None:
    """Whoever changes a byte of it makes every kept record unreadable: a new one needs a new mark."""
    assert packed("")[:1] == KEPT
    assert digest(_packing._WORDS.decode()) == "bd030953dd0fa3efac26b8ce5f4411f3378ec691465d6f6810954ee5501cc3f2"
    kept = bytes.fromhex("05cadd00da2354f524a2543c49c02a1b58f02bd50200")
    assert unpacked(kept) == b'{"kind":"retire","lesson_ids":["a"],"reason":"because"}'


def test_a_record_that_was_cut_off_is_refused_wherever_that_was() -> None:
    whole = packed(Add(experience=experience()).model_dump_json())
    for length in range(len(whole)):
        with pytest.raises(StoreUnavailable, match="restore a backup"):
            unpacked(whole[:length])


def test_no_bit_of_a_record_can_flip_and_change_what_is_read() -> None:
    whole = packed(Add(experience=experience()).model_dump_json())
    for bit in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            assert unpacked(bytes(flipped)) == unpacked(whole), "only the bits that fill up the last byte say nothing"
        except StoreDamaged as error:
            assert "lessonbank salvage" in str(error)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x05abc", b"\x05abcdefghi", b"\x78\x9c", b"{}", b"\xff" * 40])
def test_what_was_never_packed_is_refused(data: bytes) -> None:
    with pytest.raises(StoreUnavailable, match="restore a backup"):
        unpacked(data)


def test_threads_pack_at_the_same_time() -> None:
    texts = [f'{{"kind":"add","number":{n},"text":"{"word " * (n % 50)}"}}' for n in range(400)]
    wrong: list[str] = []

    def pack() -> None:
        wrong.extend(text for text in texts if unpacked(packed(text)) != text.encode())

    threads = [threading.Thread(target=pack) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
