"""Redaction and the canonical forms take time in proportion to their text, and redaction takes it off the loop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice, pairwise, product

import pytest
from linear import FAR, PIECES, RATIO, growth, growth_of, repeated, seconds, too_slow

from lessonbank.contracts.records import Action, Step, ToolCall, Trajectory
from lessonbank.guard import canonical, canonical_line, clean, fence, is_prose, one_line
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import Redacting, redact, redacted
from lessonbank.guard.redact._rules import Rule, rules
from lessonbank.guard.redact._spans import Page

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
    *("aA1", "1 ", "4111-", "Private-Lines: 9\n", "a@a", "a@a.", "001 ", "(415)", "415-555-", "-1234 ", "://"),
    *("postgres://a:", "SG.a", ".aaaaaa.", "password='", "token:", "token=token=", "token |", 'secret": "', "key"),
    *("api key ", "name: token value: ", "Authorization: ", "Basic aaaaaaaa ", "Cookie: a=", "Cookie: a=bbbb; "),
    *("&sig=", "--password ", "curl -u a:", "redis-cli -a ", "phone: 12", "SSN 123-45-", "tel", "DE12 3456 ", "\\n"),
    *("%", "a\n", "\n ", "aaaaaaaaaaaa\n", "\uff41", "\U0001d41a", "QUtJ/", "41", "\u0130", "QUtJQUFB" * 8 + "\n"),
    *("password=,;&", "API_KEY=", "API_KEY=sk-qwhdk", "ssh a@b.co ", "ssh -a ", "ssh -a b", "scp a@b.co:a "),
    *("git clone", "7373682d" * 8 + " ", "c3NoIGFA" * 3 + " ", "\b", "a\b", "\x1b[", "\x1b[1m", "\x1b]8;;", "\0"),
    *("\u200d", "\U0001f469\u200d", "\\u001b[", "\ufb01", "lb_writer_", "key=", "Lessonbank-Writer-Key: "),
    *("[a](/\\", "[a](/ ", "![a](", "</", "<&", "&#47;", "www.", "~~~\n", "\n> ", "| a |\n", "[a]: /\\"),
)  # fmt: skip
EVERYTHING = "\n".join(HOSTILE)
"""Has a sign of each kind of secret, so that none of them is left out as one that the text cannot hold."""
FIELDS = 6
BEHIND = ("", "a", "A1b2", "=", " a", "\n", "-", "a.", "'\"", ":/")
"""What may stand behind a word of a rule, again and again."""


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


@pytest.mark.parametrize("part", range(8))
def test_four_times_the_text_takes_four_times_as_long(part: int) -> None:
    """Measured only where four times of a piece take longer than once of a letter may: nearly all of a short time is
    the time of everything that is looked for."""
    call, size = CALLS["redact, with all that is looked for"], 1_000
    usual = min(seconds(partial(call, repeated("a", size))) for _ in range(3))
    long = {piece: seconds(partial(call, repeated(piece, 4 * size))) for piece in HOSTILE[part::8]}
    slow = [piece for piece, time in long.items() if time > RATIO * usual]
    assert too_slow({"redact": call}, pieces=slow, size=size) == {}


@pytest.mark.release
@pytest.mark.parametrize("part", range(8))
def test_four_times_of_two_things_in_turn_takes_four_times_as_long(part: int) -> None:
    calls = {"redact": CALLS["redact, with all that is looked for"]}
    pairs = ("".join(pair) for pair in pairwise(HOSTILE))
    assert too_slow(calls, pieces=islice(pairs, part, None, 8), size=1_000) == {}


@pytest.mark.parametrize("tail", ["a", "1", " ", "A1b2", "\n"])
def test_a_beginning_before_a_long_rest_costs_one_pass(tail: str) -> None:
    assert growth(lambda text: [redact(piece + text) for piece in HOSTILE], tail, size=1_000) <= FAR


@pytest.mark.release
@pytest.mark.parametrize("name", CALLS)
def test_no_function_takes_longer_than_its_text_grows(name: str) -> None:
    size = 400_000 if name == "redacted" else 100_000  # equal words of shorter fields are read once for all of them
    assert too_slow({name: CALLS[name]}, pieces=HOSTILE, size=size) == {}


def slow_rules(every: Iterable[Rule], things: Iterable[str] = BEHIND) -> set[str]:
    """The rules that read a text of one of their words, with anything behind it, more than once."""

    def reading(rule: Rule, word: str, behind: str, again: str, size: int) -> Callable[[], object]:
        page = Page(word + behind + repeated(again, size))
        return lambda: deque(rule.at(word, page), maxlen=0)

    cases = [(rule, word, behind) for rule in every for word, behind in product(rule.words[:1], things)]
    both = [(*case, again) for case in cases for again in (case[1] + case[2], case[2] or case[1])]
    return {case[0].kind for case in both if growth_of(partial(reading, *case), size=3_000) > FAR}


@pytest.mark.parametrize("table", ["keys", "places", "options"])
def test_every_rule_of_the_file_reads_its_text_once(table: str) -> None:
    assert slow_rules(rules(table)) == set()


def test_a_rule_that_reads_its_text_at_each_of_its_words_is_seen() -> None:
    assert slow_rules([Rule("greedy", ("zz-",), r"[a-z=-]*!"), *rules("keys")[:2]], ["", " a"]) == {"greedy"}


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
