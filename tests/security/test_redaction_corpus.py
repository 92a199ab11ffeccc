"""What share of a corpus of made-up secrets leaks, and what share of harmless texts is changed."""

from __future__ import annotations

import pytest
from redaction_corpus import harmless, harmless_later, later, secrets

from lessonbank.guard.redact import redact

KNOWN_CHANGES = frozenset(["https://user@example.com/path"])
"""A name before a host reads like an e-mail address, and often is one."""


KNOWN_LEAKS = frozenset(["de2", "es2", "ru3", "en3", "en4"])
"""Passwords of words and digits beside their name, without a sign between: file names stand there, too."""


def readable(told: str, secret: str) -> bool:
    """Whether half of `secret` can be read in `told`."""
    half = len(secret) // 2
    return any(secret[at : at + half] in told for at in range(len(secret) - half + 1))


def test_no_secret_of_the_corpus_can_be_read_afterwards() -> None:
    assert [leak.kind for leak in secrets() if readable(redact(leak.text), leak.secret)] == []


def test_of_secrets_written_later_only_passwords_in_loose_prose_leak() -> None:
    assert {leak.kind for leak in later() if readable(redact(leak.text), leak.secret)} == KNOWN_LEAKS
    assert [text for text in harmless_later() if redact(text) != text] == []


def test_the_text_around_a_secret_stays() -> None:
    for leak in secrets():
        before = leak.text.partition(leak.secret)[0]
        if leak.kind not in ("rsa", "openssh", "1password", "ntlm"):  # more than the named secret goes
            assert redact(leak.text).startswith(before[:8]), leak.kind


def test_harmless_texts_stay_as_they_are() -> None:
    assert {text for text in harmless() if redact(text) != text} == KNOWN_CHANGES


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u2007", "\u2009", "\u202f", "\u3000"])
def test_an_account_and_a_card_go_whatever_blanks_stand_in_them(blank: str) -> None:
    account, card = (text.replace(" ", blank) for text in ("DE89 3704 0044 0532 0130 00", "4111 1111 1111 1111"))
    assert redact(f"to {account} by {card}.") == "to [iban 1] by [card 1]."


def test_a_certificate_and_a_public_key_are_no_private_keys() -> None:
    for text in harmless():
        if text.startswith("MII"):
            assert redact(f"{text}\n{text}") == f"{text}\n{text}"
