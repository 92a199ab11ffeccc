"""A long text is read in portions, so that other threads run in between; what stands where it is cut is found, too."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from lessonbank.guard.redact import Redaction, redact
from lessonbank.guard.redact._spans import Detector

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


def test_no_detector_gets_a_long_text_whole_which_would_keep_other_threads_waiting() -> None:
    lengths = list[int]()
    Redaction(detectors=[Detector(lambda page: lengths.append(len(page.text)) or ())])(f"{LINE * 6_000}é\n")
    assert len(lengths) > 5
    assert max(lengths) < len(LINE) * 1_000
