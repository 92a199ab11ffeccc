"""The example does what it says: the second conversation has the lesson of the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from examples_of import load
from running_proxy import Recording, running
from scripted_upstream import Call, Got, Reply, Upstream, chat

pytestmark = pytest.mark.full


def agent(got: Got) -> Reply:
    """Releases at once, unless it was told what comes before; after an error it does that."""
    said = json.dumps(got.body["messages"])
    numbers = len(got.body["messages"])
    plan = ["make release", "make changelog", "make release"]
    if "make changelog" in json.dumps(got.body["messages"][0]):
        plan = plan[1:]
    done = said.count('"role": "tool"')
    if done == len(plan):
        return chat("Published.", id=f"end-{len(plan)}")
    return chat("", Call("shell", json.dumps({"command": plan[done]}), f"c-{len(plan)}-{numbers}"))


def test_the_second_conversation_needs_a_step_less(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import openai

    example: Any = load("proxy_client")
    with Upstream(agent) as upstream, running(upstream.url, tmp_path, scope="acme/code") as proxy, Recording() as pipe:
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="a key", http_client=httpx2.Client(transport=pipe))
        for version in ("1.4", "1.5"):
            last = example.run(client, f"Publish release {version} of the parser")
            example.tell(proxy.url, last, "success" if "make release" in example.DONE else "failure")
    assert capsys.readouterr().out.count("'learned': True") == 2
    tasks = [got.body["messages"][0]["content"][:19] for got in upstream.got]
    assert tasks == ["Publish release 1.4"] * 4 + ["Publish release 1.5"] * 3
