"""Redaction and the canonical forms take time in proportion to their text, and redaction takes it off the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from linear import PIECES, RATIO, growth, too_slow

from lessonbank.contracts.records import Action, Step, ToolCall, Trajectory
from lessonbank.guard import canonical, canonical_line, clean, fence, is_prose, one_line
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import Redacting, redact, redacted

pytestmark = pytest.mark.full

DASHES = "-" * 5
HOSTILE = (
    *PIECES,
    *(f"{DASHES}BEGIN RSA PRIVATE KEY{DASHES}\nMIIE\n", f"{DASHES}BEGIN PRIVATE KEY{DASHES}", "MIIEpAIBAAKCAQEA\n"),
    *("Private-Lines: 9\n", "sk-", "xoxb-", "-eyJ", "eyJaaaaaaaa.", "pat.", "glpat-", "AKIA", "M.", ":AA", "Q~", "=="),
    *("$6$abc$", "$argon2id$v=19$m=1,t=1,p=1$", "{SSHA}", ":::", "*A", "a:5432:b:c:", "a:*:b:c:d1\n", "://a:"),
    *("@a.com",),
    *("password=", 'password=\\"', "password: str = ", "Пароль: ", "密码是", "mot de passe ", "clave: a1 "),
    *("token is ",),
    *("identified by '", "password '", "/user:a ", "htpasswd -b a ", "mysql -p", "--a-", "Cookie: a=bbbb; ", "Bearer "),
    *("4111 ", "GB82", "+49 ", "415-555-1234 ", "SSN 123-45-", "a\u200b", "4\u00a0", "%41", "\\u0041", "QUtJQUFB"),
    *("7373682d",),
    *('"a": 12345678901, ', "[e-mail 1]", "ssh -a b@c.co ", "git clone a@b.co:a ", "a1\n", "a1b2c3d4e5f6\n"),
    *('"a1b2c3d", ', '"ghp_a1b2" + ', "| a1b2c3d ", "<b>a1b2c3d", "a1b2c3d**", "a1b2c3d\t", "- a1b2c3d4e5\n"),
    *("&#103;", '\\"a1'),
    *("[a](/\\", "[a](/ ", "![a](", "</", "<&", "&#47;", "www.", "~~~\n", "\n> ", "| a |\n", "[a]: /\\"),
)  # fmt: skip
EVERYTHING = "\n".join(HOSTILE)
"""Has a sign of each kind of secret, so that none of them is left out as one that the text cannot hold."""
FIELDS = 6


def a_run(text: str) -> object:
    """A run of so much text in all: a part of it in each place where a run can hold some, arguments among them."""
    part = text[: len(text) // FIELDS]
    call = ToolCall(name="t", arguments={part[:2_000]: [part, {"name": "password", "value": part}]})
    step = Step(action=Action(text=part, calls=(call,)), thought=part)
    return redacted(Trajectory(task=f"x{part}", steps=(step,), answer=part), redact)


CALLS: dict[str, Callable[[str], object]] = {
    "redact": redact,
    "redact, with all that is looked for": lambda text: redact(f"{text}\n{EVERYTHING}"),
    "redacted": a_run,
    "canonical": canonical,
    "canonical_line": canonical_line,
    "clean": clean,
    "one_line": one_line,
    "is_prose": is_prose,
    "fence": lambda text: fence(text, label="run", nonce="12345678"),
}


@pytest.mark.parametrize(
    "piece", [f"{DASHES}BEGIN PRIVATE KEY{DASHES}", "password=", "@a.com", '"a": 12345678901, ', '"ghp_a1b2" + ']
)
def test_four_times_the_text_takes_four_times_as_long(piece: str) -> None:
    assert growth(CALLS["redact, with all that is looked for"], piece, size=20_000) <= RATIO


@pytest.mark.release
@pytest.mark.parametrize("name", CALLS)
def test_no_function_takes_longer_than_its_text_grows(name: str) -> None:
    size = 400_000 if name == "redacted" else 100_000  # equal words of shorter fields are read once for all of them
    assert too_slow({name: CALLS[name]}, pieces=HOSTILE, size=size) == {}


@pytest.mark.anyio
async def test_a_long_run_and_a_redactor_of_ones_own_are_read_in_a_thread() -> None:
    seen = set[int]()

    def noting(text: str) -> str:
        seen.add(threading.get_ident())
        return text

    intake = IntakeFilter(redactor=noting)
    run = Trajectory(task="a task", steps=(Step(action="look", observation="x " * 50_000),))
    await intake.runs([run])
    await intake.task("a task")
    await intake.sentence("a reason")
    assert threading.get_ident() not in seen
    assert await IntakeFilter(redactor=Redacting()).runs([run]) == [run]
