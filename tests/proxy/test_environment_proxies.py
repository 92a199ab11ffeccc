"""What goes to this machine passes no proxy of the environment, which would read keys and runs on their way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from running_proxy import PATIENCE, running
from scripted_upstream import Reply, Upstream, chat

import lessonbank

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def company(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The proxy of a company, that the environment names."""
    with Upstream(Reply(status=502)) as found:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, found.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        yield found
        assert found.got == []


def test_a_bank_on_a_server_of_this_machine_is_asked_directly() -> None:
    with Upstream(Reply(b"[]")) as service:
        place = lessonbank.Server(service.url, api_key="lb_a_key", timeout=PATIENCE)
        with lessonbank.connect(place, scope="t") as bank:
            assert bank.lessons.list() == ()
        assert service.got[0].header("authorization") == "Bearer lb_a_key"


def test_a_model_on_this_machine_is_asked_directly(tmp_path: Path) -> None:
    with Upstream(chat(json.dumps({"thoughts": "-", "status": "success"}))) as server:
        model = lessonbank.Model("judge", base_url=f"{server.url}/v1", timeout=PATIENCE)
        with lessonbank.connect(tmp_path / "bank.db", scope="t", model=model, embedder="lexical") as bank:
            bank.judge("Done.", task="Ship a parcel")
        assert server.got


def test_the_proxy_asks_an_upstream_on_this_machine_directly(tmp_path: Path) -> None:
    with Upstream(chat("Done.")) as upstream, running(upstream.url, tmp_path, scope="t") as proxy:
        with httpx2.Client(trust_env=False, timeout=PATIENCE) as client:
            answer = client.post(f"{proxy.url}/v1/chat/completions", json={"messages": []})
        assert (answer.status_code, len(upstream.got)) == (200, 1)
