"""Hostile text costs a redactor no more than long text, whatever it begins like, and with all that is looked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from lessonbank.contracts.records import Step, Trajectory
from lessonbank.guard.redact import redact, redacted

pytestmark = pytest.mark.full

SIZE = 50_000 if "LESSONBANK_SOAK" in os.environ else 25_000
SLACK = 6
"""A machine that does other things as well is slower than the promise: 0.2 seconds for 100,000 characters."""
LIMIT = 0.2 * SIZE / 100_000 * SLACK
DASHES = "-" * 5
PIECES = (
    "a", "aA1", "1 ", "4111 ", "4111-", "-", "--a-", f"{DASHES}BEGIN PRIVATE KEY{DASHES}", f"{DASHES}END",
    "Private-Lines: 9\n", "@", "a@a", "@a.com", "a@a.", "+1 ", "+49", "001 ", "(415)", "415-555-", "-1234 ", "://",
    "://a:", "postgres://a:", "eyJ", "eyJaaaaaaaa.", "sk-", "xoxb-", "SG.a", ":AA", "Q~", "==", "AKIA", ".aaaaaa.",
    "password=", "password='", 'password=\\"', "password: str = ", "token:", "token=token=", "token |", "token is ",
    'secret": "', "key", "api key ", "name: token value: ", "Authorization: ", "Bearer ", "Basic aaaaaaaa ",
    "Cookie: a=", "Cookie: a=bbbb; ", "&sig=", "--password ", "mysql -p", "curl -u a:", "redis-cli -a ", "phone: 12",
    "SSN 123-45-", "tel", "GB82", "DE12 3456 ", "\\", "\\n", "\\u0041", "%41", "%", "&amp;", "\n", "a\n", "\n ", "\n> ",
    "aaaaaaaaaaaa\n", "a\u200b", "\uff41", "\U0001d41a", "[", "[e-mail 1]", "QUtJQUFB", "QUtJ/", "41", "\u0130",
    "QUtJQUFB" * 8 + "\n", '"', "'", "{", '{"a":', ",", "password=,;&", "API_KEY=", "API_KEY=sk-qwhdk", "ssh a@b.co ",
    "ssh -a ", "ssh -a b", "scp a@b.co:a ", "git clone a@b.co:a ", "git clone", "7373682d" * 8 + " ",
    "c3NoIGFA" * 3 + " ",
    "\b", "a\b", "\x1b[", "\x1b[1m", "\x1b]8;;", "\0", "\u200d", "\U0001f469\u200d", "\\u001b[", "\ufb01", "lb_writer_",
    "key=", "Lessonbank-Writer-Key: ",
)  # fmt: skip
EVERYTHING = "\n".join(PIECES)
"""Has a sign of each kind of secret, so that none of them is left out as one that the text cannot hold."""


def seconds(call: Callable[[], object]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before


def filled(piece: str, size: int = SIZE) -> str:
    return (piece * (size // len(piece) + 1))[:size]


@pytest.mark.parametrize("piece", PIECES)
def test_no_pattern_takes_long_on_the_text_that_is_worst_for_it(piece: str) -> None:
    for text in (filled(piece), f"{filled(piece)}\n{EVERYTHING}"):
        spent = (seconds(lambda text=text: redact(text)) for _ in range(12))
        assert any(each < LIMIT for each in spent), "a busy machine is slow once, a bad pattern always"


@pytest.mark.parametrize("tail", ["a", "1", " ", "A1b2", "\n"])
def test_a_beginning_before_a_long_rest_costs_one_pass(tail: str) -> None:
    assert seconds(lambda: [redact(piece + filled(tail, 4000)) for piece in PIECES]) < 5 * SLACK


def test_time_grows_as_the_text_does() -> None:
    pairs = ["".join(pair) for pair in pairwise(PIECES)]
    short = seconds(lambda: [redact(filled(pair, 2_000)) for pair in pairs])
    long = seconds(lambda: [redact(filled(pair, 8_000)) for pair in pairs])
    assert long < 8 * short  # four times is linear, sixteen times is not


def test_a_long_run_is_redacted_at_more_than_half_a_megabyte_a_second() -> None:
    steps = tuple(
        Step(thought=f"thought {n}: look at the list", action=f"ls {n}", observation=f"file_{n}.txt 4096 bytes\n" * 40)
        for n in range(1000)
    )
    run = Trajectory(task="long", steps=steps)
    assert seconds(lambda: redacted(run, redact)) < len(run.model_dump_json()) / 500_000 * SLACK
