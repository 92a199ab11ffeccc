"""The real SDKs learn from conversation to conversation with nothing changed but the base URL; they get every byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from running_proxy import Recording, Tenant
from scripted_upstream import Call, Reply, Upstream, chat, messages, responses

import lessonbank

pytestmark = pytest.mark.full

ERROR = "error: CHANGELOG.md has no entry for this version"
STEPS = [("make release", ERROR), ("make changelog", "CHANGELOG.md updated"), ("make release", "released")]
RULES = "You maintain a parser."
Loop = Callable[[Tenant, Recording, str, bool], str]


def _tool(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "description": "Run a command.", **schema}


PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def openai_client(tenant: Tenant, transport: Recording) -> Any:
    import openai

    return openai.OpenAI(
        base_url=f"{tenant.proxy.url}/v1",
        api_key="-".join(("upstream", "key", "of", tenant.scope)),
        default_headers=tenant.headers,
        http_client=httpx2.Client(transport=transport),
        max_retries=0,
    )


def chat_loop(tenant: Tenant, transport: Recording, task: str, stream: bool) -> str:
    """The whole loop of an agent on chat completions; the id of its last response."""
    client, results = openai_client(tenant, transport), dict(enumerate(r for _, r in STEPS))
    history: list[Any] = [{"role": "system", "content": RULES}, {"role": "user", "content": task}]
    tools = [{"type": "function", "function": _tool("shell", parameters=PARAMETERS)}]
    for number in range(len(STEPS) + 1):
        if stream:
            with client.chat.completions.stream(model="m", messages=history, tools=tools) as events:
                reply = events.get_final_completion()
        else:
            reply = client.chat.completions.create(model="m", messages=history, tools=tools)
        message = reply.choices[0].message
        history.append(message.to_dict() if stream else message)
        for call in message.tool_calls or ():
            history.append({"role": "tool", "tool_call_id": call.id, "content": results[number]})
    return reply.id


def responses_loop(tenant: Tenant, transport: Recording, task: str, stream: bool, *, stateful: bool = False) -> str:
    """The same on the Responses API; `stateful`: the server keeps the history."""
    client, results = openai_client(tenant, transport), dict(enumerate(r for _, r in STEPS))
    history: list[Any] = [{"role": "user", "content": task}]
    tools = [{"type": "function", "strict": False, **_tool("shell", parameters=PARAMETERS)}]
    options: dict[str, Any] = {"model": "m", "instructions": RULES, "tools": tools, "store": stateful}
    for number in range(len(STEPS) + 1):
        if stream:
            with client.responses.stream(input=history, **options) as events:
                reply = events.get_final_response()
        else:
            reply = client.responses.create(input=history, **options)
        if stateful:
            history, options["previous_response_id"] = [], reply.id
        else:
            history += [{k: v for k, v in item.to_dict().items() if k != "status"} for item in reply.output]
        for item in reply.output:
            if item.type == "function_call":
                output = {"type": "function_call_output", "call_id": item.call_id, "output": results[number]}
                history.append(output)
    return reply.id


def stateful_loop(tenant: Tenant, transport: Recording, task: str, stream: bool) -> str:
    return responses_loop(tenant, transport, task, stream, stateful=True)


def messages_loop(tenant: Tenant, transport: Recording, task: str, stream: bool) -> str:
    """The same on the Messages API."""
    import anthropic

    client, results = (
        anthropic.Anthropic(
            base_url=tenant.proxy.url,
            api_key="-".join(("upstream", "key", "of", tenant.scope)),
            default_headers=tenant.headers,
            http_client=httpx2.Client(transport=transport),
            max_retries=0,
        ),
        dict(enumerate(r for _, r in STEPS)),
    )
    history: list[Any] = [{"role": "user", "content": task}]
    options: dict[str, Any] = {"model": "m", "max_tokens": 99, "system": RULES}
    options["tools"] = [_tool("shell", input_schema=PARAMETERS)]
    for number in range(len(STEPS) + 1):
        if stream:
            with client.messages.stream(messages=history, **options) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(messages=history, **options)
        history.append({"role": "assistant", "content": reply.content})
        told = [
            {"type": "tool_result", "tool_use_id": part.id, "content": results[number]}
            for part in reply.content
            if part.type == "tool_use"
        ]
        history.append({"role": "user", "content": told})
    return reply.id


LOOPS: dict[str, tuple[Loop, Callable[..., Reply], str]] = {
    "chat": (chat_loop, chat, "messages"),
    "responses": (responses_loop, responses, "input"),
    "responses-stateful": (stateful_loop, responses, "input"),
    "messages": (messages_loop, messages, "messages"),
}


def script(make: Callable[..., Reply], stream: bool, run: str) -> list[Reply]:
    calls = [Call("shell", json.dumps({"command": c}), f"call_{run}_{n}") for n, (c, _) in enumerate(STEPS)]
    first = [make("Let me see.", call, stream=stream, id=f"id_{run}_{n}") for n, call in enumerate(calls)]
    return [*first, make("Published.", stream=stream, id=f"id_{run}_end")]


def texts(body: dict[str, Any], key: str) -> list[str]:
    """What stands in the user's messages of a request."""
    found: list[str] = []
    for message in body[key]:
        if message.get("role") == "user":
            content = message["content"]
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            found.append("\n".join(parts))
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", LOOPS)
def test_the_lesson_of_one_conversation_is_in_every_request_of_the_next(
    api: str, stream: bool, tenant: Tenant, upstream: Upstream, transport: Recording
) -> None:
    loop, make, key = LOOPS[api]
    upstream.replies = first = script(make, stream, "a")
    last = loop(tenant, transport, "Publish release 1.4 of the parser", stream)
    assert [bytes(body) for body in transport.bodies] == [reply.sent for reply in script(make, stream, "a")]
    assert len(first) == 1, "each request took its reply"
    assert "make changelog" not in "".join(texts(upstream.got[0].body, key))
    assert tenant.tell(response=last, outcome="success").json()["learned"] is True

    upstream.got.clear()
    upstream.replies = script(make, stream, "b")
    loop(tenant, transport, "Publish release 1.5 of the parser", stream)
    assert [bytes(body) for body in transport.bodies[4:]] == [reply.sent for reply in script(make, stream, "b")]
    requests = [got.body for got in upstream.got]
    shown = [texts(body, key)[0] for body in requests if texts(body, key)]
    assert "make changelog" in shown[0]
    assert "<<<lessons" in shown[0]
    assert shown[0].startswith("Publish release 1.5 of the parser")
    assert len(set(shown)) == 1, "the same bytes in every request"
    assert len(shown) == (1 if api == "responses-stateful" else 4)
    assert not any("<<<lessons" in json.dumps(body.get("system", body.get("instructions", ""))) for body in requests)
    for got in upstream.got:
        assert got.header("content-length") == str(len(got.raw))
        assert got.header("host") == upstream.url.removeprefix("http://")
        assert got.header("x-lessonbank-key") is None
        told = (got.header("authorization") or "") + (got.header("x-api-key") or "")
        assert told.endswith("-".join(("upstream", "key", "of", tenant.scope)))

    with lessonbank.connect(tenant.proxy.bank, scope=tenant.scope, embedder="lexical") as bank:
        (run,) = bank.runs.list(outcome="success")
    assert run.trajectory.task == "Publish release 1.4 of the parser"
    assert run.trajectory.instructions == RULES
    assert run.trajectory.answer == "Published."
    assert run.trajectory.tools == ("shell(command: string) - Run a command.",)
    usage = run.trajectory.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (4, 40, 12)
    made = [step.action.calls[0].arguments for step in run.trajectory.steps if step.action.calls]
    assert made == [{"command": command} for command, _ in STEPS]
    seen = [seen.text for step in run.trajectory.steps for seen in step.observations if seen.source == "tool"]
    assert seen == [result for _, result in STEPS]


def test_two_tenants_never_get_each_others_lessons(tenant: Tenant, upstream: Upstream, transport: Recording) -> None:
    loop, make, _ = LOOPS["chat"]
    upstream.replies = script(make, False, "a")
    last = loop(tenant, transport, "Publish release 1.4 of the parser", False)
    tenant.tell(response=last, outcome="success")
    other = Tenant(tenant.proxy, "key-of-tenant-0099", "tenant/99")
    upstream.got.clear()
    upstream.replies = script(make, False, "b")
    loop(other, transport, "Publish release 1.4 of the parser", False)
    assert "<<<lessons" not in json.dumps([got.body for got in upstream.got])
    assert other.tell(response=last, outcome="failure").status_code == 404
