"""A long text is read in portions, so that other threads run in between; what stands where it is cut is found, too."""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from lessonbank.guard.redact import redact
from lessonbank.guard.redact._portions import portions

LINE = "order 4711 of the customer is on page 12, see the ledger\n"
TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DASHES = "-" * 5
KEY = "\n".join(
    (f"{DASHES}BEGIN RSA PRIVATE KEY{DASHES}", *["MIIEabc0123456789/" * 4] * 60, f"{DASHES}END RSA PRIVATE KEY{DASHES}")
)


def cuts(text: str) -> list[int]:
    return [start for start, _ in portions(text, 0, len(text))][1:]


@pytest.mark.full
@pytest.mark.parametrize("secret", [f"token: {TOKEN}\n", f"{KEY}\n", "password:\n  hunter2-Blau9\n"])
def test_a_secret_is_found_wherever_a_long_text_is_cut(secret: str) -> None:
    at = cuts(LINE * 2_000)[0]
    for before in range(at - len(secret) - 60, at + 60, max(1, len(secret) // 12)):
        filler = (LINE * 2_000)[:before].rpartition("\n")[0]
        told = redact(f"{filler}\n{secret}{LINE * 400}")
        left = [
            line for line in secret.split("\n")[1 if "\n" in secret[:-1] else 0 :] if len(line) > 12 and line in told
        ]
        assert left == [] or all(line.startswith(DASHES) for line in left)


def test_portions_cover_the_text_and_overlap() -> None:
    for text in (LINE * 3_000, "a" * 200_000, "é" * 200_000, '{"a":1,' * 30_000, " " * 200_000):
        parts = list(portions(text, 0, len(text)))
        assert (parts[0][0], parts[-1][1]) == (0, len(text))
        assert all(later[0] < earlier[1] or earlier[1] == len(text) for earlier, later in pairwise(parts))


@pytest.mark.full
def test_no_single_call_keeps_other_threads_waiting() -> None:
    began, longest = list[float](), [0.0]

    def noting(_: FrameType, event: str, __: Any) -> None:
        if event == "c_call":
            began.append(time.thread_time())
        elif event in ("c_return", "c_exception") and began:
            longest.append(time.thread_time() - began.pop())

    text = LINE * 6_000 + "é\n"
    redact(text[:1_000])
    before = sys.getprofile()
    sys.setprofile(noting)
    try:
        redact(text)
    finally:
        sys.setprofile(before)
    assert sorted(longest)[-2] < 0.01
