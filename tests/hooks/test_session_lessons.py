"""What a session teaches the prompts of later ones: what got past a failing command, and nothing else."""

from __future__ import annotations

from lessonbank import Parts, connect
from lessonbank.hosts.session_lessons import SessionExtractor

from .conftest import run_of

FAILS = ("make test", "No module named rates_pb", True)
CURED = (FAILS, ("make proto", "ok", False), ("make test", "3 passed", False))


def taught(*done: tuple[str, str, bool]) -> list[str]:
    """The lessons of a success with these commands: line, output, and whether it failed."""
    with connect(":memory:", scope="s", parts=Parts(extractor=SessionExtractor())) as bank:
        bank.learn(run_of("Round the rates", *done), outcome="success")
        return [f"{one.title}: {one.content}" for one in bank.lessons.list()]


def test_what_got_past_a_failing_command_is_told_once() -> None:
    assert taught(*CURED, *CURED) == ["`make test` failed here before: `make proto` went through, and then it did."]


def test_an_order_in_which_nothing_failed_teaches_nothing() -> None:
    assert taught(("make proto", "ok", False), ("make test", "3 passed", False)) == []


def test_what_a_person_refused_did_not_fail() -> None:
    refused = ("make test", "The user doesn't want to proceed with this tool use.", True)
    assert taught(refused, *CURED[1:]) == []
