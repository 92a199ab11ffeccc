"""A request finds its conversation by what was said before it, in its scope; where that is not clear it finds none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lessonbank.proxy.answers import Answer
from lessonbank.proxy.conversations import GONE, PATIENCE, Conversation, Conversations, turn_to_recall
from lessonbank.proxy.dialects import Request, read_request
from lessonbank.proxy.entrance import Whose

ASK: dict[str, Any] = {"role": "user", "content": "Cancel the order"}


def request(*messages: dict[str, Any], **body: Any) -> Request:
    found = read_request("chat", json.dumps({"messages": messages, **body}).encode())
    assert found
    return found


def said(text: str, id: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": text} | ({"tool_calls": [{"id": id}]} if id else {})


MINE = Whose("a")


class Desk:
    """Conversations with a clock, and a memory that always has a text."""

    def __init__(self, idle: float = 60.0) -> None:
        self.all = Conversations(b"s" * 32, idle=idle)
        self.now, self.recalled = 0.0, 0

    def send(
        self, asked: Request, *, whose: Whose = MINE, name: str | None = None, hint: str = ""
    ) -> tuple[Conversation | None, str, int | None]:
        """The conversation of a request, what is added to it, and where."""
        found = self.all.find(asked, whose, name=name, hint=hint)
        if found is None:
            return None, "", None
        found.enter(asked, self.now)
        if wanted := turn_to_recall(found, asked):
            self.recalled += 1
            turn, message = wanted
            found.is_recalled, found.text, found.place = True, f"lesson {self.recalled}", (turn, message.mark)
            return found, found.text, turn
        place = found.place_in(asked)
        return found, found.text if place is not None else "", place

    def reply(
        self,
        found: Conversation | None,
        asked: Request,
        message: dict[str, Any] | None,
        *,
        id: str | None = None,
        hint: str = "",
    ) -> None:
        if found is None:
            return
        answer = Answer([message], id, waits="tool_calls" in message) if message else Answer(error=GONE)
        self.all.answered(found, asked, answer, hint=hint, now=self.now)


def test_every_request_of_a_conversation_gets_the_same_text_in_the_same_message() -> None:
    desk = Desk()
    history: list[dict[str, Any]] = [{"role": "system", "content": "be good"}, ASK]
    for number in range(5):
        asked = request(*history)
        found, text, place = desk.send(asked)
        assert (text, place) == ("lesson 1", 1)
        desk.reply(found, asked, said("", f"c{number}"))
        history += [said("", f"c{number}"), {"role": "tool", "tool_call_id": f"c{number}", "content": "done"}]
    assert desk.recalled == 1


def test_a_conversation_is_found_although_its_instructions_change() -> None:
    desk = Desk()
    asked = request({"role": "system", "content": "it is 12:00"}, ASK)
    found, *_ = desk.send(asked)
    desk.reply(found, asked, said("Which?"))
    later = request({"role": "system", "content": "it is 12:01"}, ASK, said("Which?"), {"role": "user", "content": "7"})
    assert desk.send(later) == (found, "lesson 1", 1)


def test_the_same_beginning_twice_at_once_gets_nothing_the_second_time() -> None:
    desk = Desk()
    asked = request(ASK)
    first, text, _ = desk.send(asked)
    assert text == "lesson 1"
    assert desk.send(asked) == (None, "", None)
    desk.reply(first, asked, said("", "c1"))
    follow = request(ASK, said("", "c1"), {"role": "tool", "tool_call_id": "c1", "content": "x"})
    other = request(ASK, said("", "c2"), {"role": "tool", "tool_call_id": "c2", "content": "x"})
    assert desk.send(follow) == (first, "lesson 1", 0)
    assert desk.send(other) == (None, "", None)


def test_two_that_came_to_the_same_answer_at_once_are_not_told_apart() -> None:
    desk = Desk()
    asked = request(ASK)
    for _ in range(2):
        found, *_ = desk.send(asked)
        desk.reply(found, asked, said("", "same"))
    follow = request(ASK, said("", "same"), {"role": "tool", "tool_call_id": "same", "content": "x"})
    assert desk.send(follow) == (None, "", None)


@pytest.mark.parametrize("told", [{"user": "u"}, {"metadata": {"session_id": "u"}}, {"prompt_cache_key": "u"}])
def test_users_and_sessions_tell_the_same_beginning_apart(told: dict[str, Any]) -> None:
    desk = Desk()
    asked, other = request(ASK), request(ASK, **told)
    assert [desk.send(each)[1] for each in (asked, other)] == ["lesson 1", "lesson 2"]
    assert desk.send(asked, hint="a session header")[1] == "lesson 3"
    assert desk.send(request({"role": "system", "content": "a title"}, ASK))[1] == "lesson 4"
    assert desk.send(asked)[1] == ""


def test_a_name_of_the_conversation_settles_the_matter() -> None:
    desk = Desk()
    asked = request(ASK)
    first, one, _ = desk.send(asked, name="one")
    second, two, _ = desk.send(asked, name="two")
    assert first is not second
    assert (one, two) == ("lesson 1", "lesson 2")
    assert desk.send(asked, name="one") == (first, "lesson 1", 0)


@pytest.mark.parametrize("other", [Whose("b"), Whose("a", "key:proxy/1")])
def test_nobody_finds_the_conversation_of_another_scope_or_key(other: Whose) -> None:
    desk = Desk()
    asked = request(ASK)
    for name in (None, "one"):
        mine, *_ = desk.send(asked, name=name)
        call, response = f"c {name}", f"r {name}"
        desk.reply(mine, asked, said("", call), id=response)
        follow = request(ASK, said("", call), {"role": "tool", "tool_call_id": call, "content": "x"})
        yours, text, _ = desk.send(follow, whose=other, name=name)
        assert yours is not mine
        assert text == ""
        assert desk.all.find_named(other, response=response) is None
        assert desk.all.find_named(MINE, response=response) is mine


def test_another_proxy_knows_other_keys() -> None:
    asked = request(ASK)
    first, second = Conversations(b"1" * 32, idle=1), Conversations(b"2" * 32, idle=1)
    one, other = (each.find(asked, MINE, name=None, hint="") for each in (first, second))
    assert one
    assert other
    assert set(one.keys).isdisjoint(other.keys)


def test_a_failed_request_is_sent_again_with_the_same_text() -> None:
    desk = Desk()
    asked = request(ASK)
    found, *_ = desk.send(asked)
    desk.reply(found, asked, None)
    assert desk.send(asked) == (found, "lesson 1", 0)


def test_the_same_beginning_after_an_answer_is_another_conversation() -> None:
    desk = Desk()
    asked = request(ASK)
    first, *_ = desk.send(asked)
    desk.reply(first, asked, said("Done."))
    second, text, _ = desk.send(asked)
    assert second is not first
    assert text == "lesson 2"
    desk.reply(second, asked, said("Done."))
    follow = request(ASK, said("Done."), {"role": "user", "content": "Thanks, and the other one?"})
    assert desk.send(follow) == (second, "lesson 2", 0)


def test_a_request_in_the_middle_of_an_unknown_run_gets_nothing() -> None:
    desk = Desk()
    assert desk.send(request(ASK, said("", "c"), {"role": "tool", "tool_call_id": "c", "content": "x"}))[0] is None


def test_a_message_that_moved_keeps_its_text_and_one_that_is_gone_gets_none() -> None:
    desk = Desk()
    asked = request(ASK)
    found, *_ = desk.send(asked, name="n")
    desk.reply(found, asked, said("Which?"))
    moved = request({"role": "user", "content": "A preface"}, ASK, said("Which?"), {"role": "user", "content": "7"})
    assert desk.send(moved, name="n") == (found, "lesson 1", 1)
    condensed = request({"role": "user", "content": "Summary: an order is to be cancelled."})
    assert desk.send(condensed, name="n") == (found, "", None)


def test_a_run_keeps_its_beginning_where_the_client_leaves_out_what_is_old() -> None:
    desk = Desk()
    old = [one for number in range(3) for one in ({"role": "user", "content": f"{number}"}, said(f"It is {number}."))]
    asked = request(*old, ASK)
    found, *_ = desk.send(asked, name="n")
    desk.reply(found, asked, said("", "c1"))
    work = [said("", "c1"), {"role": "tool", "tool_call_id": "c1", "content": "done"}]
    for cut, begins in ((4, 2), (6, 0)):
        asked = request(*old[cut:], ASK, *work)
        desk.send(asked, name="n")
        desk.reply(found, asked, said("Done."))
        assert found
        assert found.begins == begins


def test_a_greeting_waits_for_the_task() -> None:
    desk = Desk()
    hello = request({"role": "user", "content": "Hi!"})
    found, text, _ = desk.send(hello)
    assert text == ""
    desk.reply(found, hello, said("Hello, what can I do?"))
    asked = request({"role": "user", "content": "Hi!"}, said("Hello, what can I do?"), ASK)
    assert desk.send(asked) == (found, "lesson 1", 2)
    desk.reply(found, asked, said("Done."))
    desk.now = 100
    (ended,) = desk.all.due(desk.now)
    assert ended.begins == 0


def test_a_run_ends_when_nothing_follows_an_answer_and_the_next_turn_begins_another() -> None:
    desk = Desk(idle=60)
    asked = request(ASK)
    found, *_ = desk.send(asked)
    assert desk.all.due(10_000) == []
    desk.reply(found, asked, said("Which?"))
    desk.now = 59
    assert desk.all.due(desk.now) == []
    second = request(ASK, said("Which?"), {"role": "user", "content": "Number 7"})
    desk.send(second)
    desk.reply(found, second, said("Done."))
    desk.now = 119
    (first_run,) = desk.all.due(desk.now)
    assert json.loads(f"[{','.join(first_run.parts)}]") == [[s.value for s in second.messages], [said("Done.")]]
    assert (first_run.begins, first_run.error, first_run.stopped) == (0, None, None)
    assert (first_run.seconds, first_run.usage) == (59, (2, 0, 0))
    assert desk.all.due(10_000) == []

    third = request(*[s.value for s in second.messages], said("Done."), {"role": "user", "content": "Refund order 8"})
    assert desk.send(third) == (found, "lesson 1", 0)
    desk.reply(found, third, said("Refunded."))
    (second_run,) = desk.all.due(10_000)
    assert second_run.run != first_run.run
    assert second_run.begins == 4
    assert desk.recalled == 1


def test_an_error_ends_a_run_only_where_nothing_follows_it() -> None:
    desk = Desk()
    asked = request(ASK)
    found, *_ = desk.send(asked)
    desk.reply(found, asked, said("", "c1"))
    follow = request(ASK, said("", "c1"), {"role": "tool", "tool_call_id": "c1", "content": "x"})
    failed = Answer(error="the model's server answered 500")
    assert found
    for outcome in ("retried", "given up"):
        desk.send(follow)
        desk.all.answered(found, follow, failed, hint="", now=desk.now)
        if outcome == "retried":
            desk.send(follow)
            desk.reply(found, follow, said("Done."))
            (ended,) = desk.all.due(100)
            assert (ended.error, ended.stopped) == (None, None)
            desk.send(request(*[s.value for s in follow.messages], said("Done."), {"role": "user", "content": "More"}))
            desk.reply(found, follow, said("", "c1"))
    (ended,) = desk.all.due(100)
    assert (ended.error, ended.stopped) == ("the model's server answered 500", None)


def test_a_run_without_any_answer_and_one_whose_client_left_prove_nothing() -> None:
    desk = Desk()
    for answers in (0, 1):
        asked = request({"role": "user", "content": f"Task {answers}"})
        found, *_ = desk.send(asked)
        if answers:
            desk.reply(found, asked, said("", "c"))
            asked = request(*[s.value for s in asked.messages], said("", "c"), {"role": "tool", "tool_call_id": "c"})
            desk.send(asked)
        desk.reply(found, asked, None)
    assert [(e.error, e.stopped) for e in desk.all.due(100)] == [(None, GONE)] * 2


def test_tools_may_work_long_and_what_never_comes_back_is_unfinished() -> None:
    desk = Desk()
    asked = request(ASK)
    found, *_ = desk.send(asked)
    desk.reply(found, asked, said("", "c1"))
    assert desk.all.due(PATIENCE - 1) == []
    (ended,) = desk.all.due(PATIENCE)
    assert ended.stopped


def test_what_comes_after_the_told_end_of_a_run_is_no_other_run() -> None:
    desk = Desk()
    asked = request(ASK)
    found, *_ = desk.send(asked)
    desk.reply(found, asked, said("", "c1"))
    assert found
    ended = desk.all.end(found, has_outcome=True)
    assert ended
    assert (ended.run, ended.stopped) == (found.last_run, None)
    follow = request(ASK, said("", "c1"), {"role": "tool", "tool_call_id": "c1", "content": "x"})
    assert desk.send(follow)[1] == "lesson 1"
    desk.reply(found, follow, said("Done."))
    assert desk.all.close() == []


def test_the_end_of_the_proxy_ends_every_run() -> None:
    desk = Desk()
    for number, answer in enumerate((said("Done."), said("", "c1"))):
        asked = request({"role": "user", "content": f"Task {number}"})
        found, *_ = desk.send(asked)
        desk.reply(found, asked, answer)
    assert [bool(ended.stopped) for ended in desk.all.close()] == [False, True]
    assert desk.all.close() == []


def test_a_history_that_the_server_keeps_is_put_together() -> None:
    def ask(input: Any, **body: Any) -> Request:
        found = read_request("responses", json.dumps({"input": input, **body}).encode())
        assert found
        return found

    desk = Desk()
    first = ask("Cancel the order")
    found, text, place = desk.send(first)
    assert (text, place) == ("lesson 1", 0)
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert found
    desk.all.answered(found, first, Answer([call], "r1", waits=True), hint="", now=0)
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    second = ask([output], previous_response_id="r1")
    assert desk.send(second) == (found, "", None)  # the server has it already
    again = ask("Cancel the order", previous_response_id="r1")
    assert desk.send(again)[1] == ""
    desk.reply(found, again, None)
    assert desk.send(ask([output], previous_response_id="unknown"))[0] is None
    desk.all.answered(found, second, Answer([said("Done.")], "r2"), hint="", now=0)
    (ended,) = desk.all.due(100)
    listed = [message for part in ended.parts for message in json.loads(part)]
    assert listed == [{"role": "user", "content": "Cancel the order"}, call, output, said("Done.")]


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank.proxy.conversations.MOST", 3)
    desk = Desk()
    for number in range(5):
        asked = request({"role": "user", "content": f"Task {number}"})
        found, *_ = desk.send(asked)
        desk.reply(found, asked, said(f"Done {number}."), id=f"r{number}")
    assert len(desk.all.due(0)) == 2
    assert len(desk.all) == 3
    assert [bool(desk.all.find_named(MINE, response=f"r{n}")) for n in range(5)] == [False, False, True, True, True]
