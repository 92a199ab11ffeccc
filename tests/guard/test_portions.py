"""A long text is read in portions, so that other threads run in between; what stands where it is cut is found, too."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from linear import growth_of

from lessonbank.guard.redact import redact

LINE = "order 4711 of the customer is on page 12, see the ledger\n"
DASHES = "-" * 5
LETTERS = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
LONG = 110_000
"""Characters: several portions."""


def token(number: int) -> str:
    return f"gh{'p_'}{number:04}{LETTERS}"


def key(number: int) -> str:
    body = [f"MII{number:04}{line:02}abc0123456789/" * 3 for line in range(60)]
    return "\n".join((f"{DASHES}BEGIN RSA PRIVATE KEY{DASHES}", *body, f"{DASHES}END RSA PRIVATE KEY{DASHES}"))


def password(number: int) -> str:
    return f"hunter{number}-Blau9"


def found(text: str, secrets: list[str]) -> bool:
    """Whether no line of a secret is left."""
    told = redact(text)
    return not [line for secret in secrets for line in secret.split("\n") if line[:5] != DASHES and line in told]


@pytest.mark.full
@pytest.mark.parametrize(
    ("secret", "before"), [(token, "token: "), (key, ""), (password, "password:\n  ")], ids=["token", "key", "password"]
)
def test_a_secret_is_found_wherever_a_long_text_is_cut(secret: Callable[[int], str], before: str) -> None:
    """Each has a value of its own, so that one which is cut is not known from another."""
    block = len(f"{before}{secret(0)}\n{LINE}")
    secrets = [secret(number) for number in range(LONG // block)]
    said = "".join(f"{before}{one}\n{LINE}" for one in secrets)
    for shift in range(0, block, max(1, block // (12 if "LESSONBANK_SOAK" in os.environ else 5))):
        assert found(f"{'.' * shift}\n{said}", secrets), shift


@pytest.mark.parametrize("filler", [LINE, "a", "é", '{"a":1,', " "])
def test_no_part_of_a_long_text_is_passed_over_whatever_it_is_made_of(filler: str) -> None:
    apart = (filler * 1_000)[:997]
    secrets = [token(number) for number in range(LONG // len(apart))]
    assert found("".join(f"{apart} {one} " for one in secrets) + apart, secrets)


@pytest.mark.full
def test_no_single_call_keeps_other_threads_waiting() -> None:
    redact(LINE)
    assert growth_of(lambda size: f"{LINE * size}é\n", size=6_000, most=2, measure=longest_call) <= 2


def longest_call(text: str) -> float:
    """Seconds of the longest call but one of what C does while `text` is redacted: one call may be interrupted."""
    began, longest = list[float](), [0.0]

    def noting(_: FrameType, event: str, __: Any) -> None:
        if event == "c_call":
            began.append(time.thread_time())
        elif event in ("c_return", "c_exception") and began:
            longest.append(time.thread_time() - began.pop())

    before = sys.getprofile()
    sys.setprofile(noting)
    try:
        redact(text)
    finally:
        sys.setprofile(before)
    return sorted(longest)[-2]
