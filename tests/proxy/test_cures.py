"""Through the proxy a tool that fails as it did before is followed by what got past it, in every dialect."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from running_proxy import PATIENCE, Running, running
from scripted_upstream import Call, Reply, Upstream, chat

import lessonbank
from lessonbank import Evidence, Experience
from lessonbank.adapters.following import RunFollower
from lessonbank.importers import failure_of
from lessonbank.proxy import memory
from lessonbank.proxy.dialects import failed_at, read_request, with_texts

pytestmark = pytest.mark.full

TASK = {"role": "user", "content": "Publish release 1.4"}
FAILED, DONE = "error: the changelog is missing", "published"


def result(id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def call(name: str, id: str) -> Reply:
    return chat("", Call(name, "{}", id))


def played(proxy: Running, upstream: Upstream, session: str, *results: tuple[str, str, str]) -> None:
    """A run in which these tools are called, each with its id and what it gave, and which ends well."""
    upstream.replies[:] = [*(call(name, id) for name, id, _ in results), chat("Done.")]
    messages: list[dict[str, Any]] = [TASK]
    named = {"x-lessonbank-conversation": session}
    for _, id, said in (*results, ("", "", "")):
        body = {"model": "m", "messages": messages}
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", json=body, headers=named, timeout=PATIENCE)
        messages += [reply.json()["choices"][0]["message"], result(id, said)]
    told = {"conversation": session, "outcome": "success", "wait": True}
    httpx2.post(f"{proxy.url}/lessonbank/outcome", json=told, timeout=PATIENCE)


@pytest.mark.parametrize("cures", [True, False])
def test_a_failure_that_an_earlier_run_got_past_is_followed_by_its_cure(cures: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"scope": "acme/x", "memory": {"cures": cures}}
    with Upstream() as upstream, running(upstream.url, tmp_path, **options) as proxy:
        steps = [("publish", "c1", FAILED), ("add_changelog", "c2", "ok"), ("publish", "c3", DONE)]
        played(proxy, upstream, "s1", *steps)
        before = [got.body["messages"] for got in upstream.got]
        assert "went through" not in json.dumps(before)
        upstream.got.clear()
        played(proxy, upstream, "s2", ("publish", "d1", FAILED), ("add_changelog", "d2", "ok"), ("look", "d3", "ok"))
        after = [got.body["messages"] for got in upstream.got]
        counts = [json.dumps(messages).count("`add_changelog` went through") for messages in after]
        assert counts == ([0, 1, 1, 1] if cures else [0, 0, 0, 0])
        assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(after))


BODIES: dict[str, Any] = {
    "chat": {
        "messages": [
            TASK,
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "publish"}}]},
            result("c1", FAILED),
        ]
    },
    "messages": {
        "messages": [
            TASK,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "publish", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": FAILED}]},
        ]
    },
    "responses": {
        "input": [
            TASK,
            {"type": "function_call", "call_id": "c1", "name": "publish", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": FAILED},
        ]
    },
}


@pytest.mark.parametrize("dialect", BODIES)
def test_a_failure_is_found_in_every_dialect_and_a_text_can_follow_it(dialect: Any) -> None:
    raw = json.dumps(BODIES[dialect]).encode()
    request = read_request(dialect, raw)
    assert request
    found = failed_at(request)
    assert found
    at, messages = found
    key = "input" if dialect == "responses" else "messages"
    assert (at, messages) == (2, BODIES[dialect][key])
    changed = json.loads(with_texts(request, {0: "ONE", 2: "TWO"}))
    assert "ONE" in json.dumps(changed[key][0])
    assert "TWO" in json.dumps(changed[key][2])
    assert changed[key][1] == BODIES[dialect][key][1]


@pytest.mark.parametrize("dialect", BODIES)
def test_memory_reads_the_failure_in_every_dialect(dialect: Any) -> None:
    failure = failure_of("publish", FAILED)
    assert failure
    with lessonbank.connect(":memory:", scope="x", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        cures = bank.scoped("x/@cures")
        lesson = replace(failure, cure="add_changelog").lesson("run-1")
        cures.consolidate(Experience(scope="x/@cures", task=failure.key, lessons=(lesson,)))
        run = RunFollower(bank, "proxy").begin_waiting("Publish release 1.4")
        (messages,) = BODIES[dialect].values()
        assert "`add_changelog` went through" in memory.cure_of(run, messages)
        assert memory.cure_of(run, [{"role": "tool"}]) == ""
        assert memory.cure_of(None, messages) == ""


def test_results_without_a_call_before_them_are_left_alone() -> None:
    request = read_request("chat", json.dumps({"messages": [result("c1", FAILED)]}).encode())
    assert request
    assert failed_at(request) == (0, [result("c1", FAILED)])


@pytest.mark.parametrize("content", [{"content": None}, {"content": {"said": FAILED}}, {}])
def test_a_message_that_has_no_place_for_a_text_stays_as_it_is(content: Any) -> None:
    body = {"messages": [*BODIES["chat"]["messages"][:2], {"role": "tool", "tool_call_id": "c1", **content}]}
    request = read_request("chat", json.dumps(body).encode())
    assert request
    assert json.loads(with_texts(request, {2: "TWO"})) == body


def test_what_went_well_is_not_looked_up() -> None:
    body = {"messages": [*BODIES["chat"]["messages"][:2], result("c1", DONE)]}
    request = read_request("chat", json.dumps(body).encode())
    assert request
    assert failed_at(request) is None
