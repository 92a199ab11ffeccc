"""The memory of a proxy is a process of its own: dead, hanging or failing, it leaves a plain proxy behind."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from running_proxy import PATIENCE, Running, running
from scripted_upstream import Call, Got, Reply, Upstream, chat
from waiting import until

import lessonbank
from lessonbank.contracts.store_calls import settlement_of
from lessonbank.errors import LessonbankError
from lessonbank.testing.model_server import ModelServer

pytestmark = pytest.mark.full

CHAT = "/v1/chat/completions"
TASK = {"role": "user", "content": "Publish release 1.4"}
SCOPE = "acme/x"
HINT = "Update the changelog first."


def opened(bank: Path, scope: str = SCOPE) -> lessonbank.ReasoningBank:
    return lessonbank.connect(bank, scope=scope, embedder="lexical", evidence=lessonbank.Evidence(holdout=None))


def with_lesson(folder: Path, scope: str = SCOPE) -> None:
    with opened(folder / "bank.db", scope) as bank:
        bank.lessons.add(title="A hint", content=HINT, task="Publish release 1.4", by="Ana")


def ask(proxy: Running, *messages: dict[str, Any], **headers: str) -> dict[str, Any]:
    """One request; the message that comes back."""
    named = {f"x-lessonbank-{name}": value for name, value in headers.items()}
    body = {"model": "m", "messages": messages}
    reply = httpx2.post(proxy.url + CHAT, json=body, headers=named, timeout=PATIENCE)
    return reply.json().get("choices", [{}])[0].get("message", {})


def tell(proxy: Running, **told: Any) -> dict[str, Any]:
    told = {"wait": True, **told}
    return httpx2.post(f"{proxy.url}/lessonbank/outcome", json=told, timeout=PATIENCE).json()


def shown(got: Got) -> str:
    return json.dumps(got.body["messages"])


async def tellers(folder: Path, scope: str) -> list[str]:
    """Who told the outcomes of a scope's recalls, as the bank knows them."""
    async with await lessonbank.connect_async(folder / "bank.db", scope=scope, embedder="lexical") as bank:
        settled = [await settlement_of(bank.store, one.id, scope=scope) for one in await bank.recalls.list()]
        return [one.identity for one in settled if one]


def test_what_each_of_several_keys_of_a_scope_tells_counts_as_its_own(tmp_path: Path) -> None:
    keys = {"key-of-user-0001": "acme/one", "key-of-user-0002": SCOPE, "key-of-user-0003": SCOPE}
    for scope in (SCOPE, "acme/one"):
        with_lesson(tmp_path, scope)
    with Upstream(lambda got: chat("Done.")) as upstream, running(upstream.url, tmp_path, keys=keys) as proxy:
        for key in keys:
            ask(proxy, TASK, key=key, conversation=key)
            headers = {"x-lessonbank-key": key}
            told = {"conversation": key, "outcome": "success", "wait": True}
            assert httpx2.post(f"{proxy.url}/lessonbank/outcome", json=told, headers=headers, timeout=PATIENCE).json()
    several, (one,) = anyio.run(tellers, tmp_path, SCOPE), anyio.run(tellers, tmp_path, "acme/one")
    assert len(set(several)) == 2
    assert all(name.startswith("key:proxy/") for name in several)
    assert not one.startswith("key:proxy/")


def test_a_killed_memory_leaves_a_plain_proxy_and_comes_back_and_keeps_the_run_that_ended_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with_lesson(tmp_path)
    with (
        Upstream(chat("", Call("make", "{}", "c1"))) as upstream,
        running(upstream.url, tmp_path, scope=SCOPE) as proxy,
    ):
        message = ask(proxy, TASK)
        assert HINT in shown(upstream.got[-1])
        ask(proxy, {"role": "user", "content": "Publish release 1.3"}, conversation="ends")
        memory = proxy.serving.memory_pid()
        assert memory
        os.kill(memory, signal.SIGKILL)
        until(lambda: proxy.serving.memory_pid() != memory)
        tell(proxy, conversation="ends", outcome="success", wait=False)
        assert httpx2.get(f"{proxy.url}/lessonbank/status").json() == {"memory": "down"}
        ask(proxy, TASK, message, {"role": "tool", "tool_call_id": "c1", "content": "ok"})
        assert HINT in shown(upstream.got[-1]), "a conversation under way keeps its text"
        ask(proxy, {"role": "user", "content": "Publish release 1.5"})
        assert shown(upstream.got[-1]) == json.dumps([{"role": "user", "content": "Publish release 1.5"}])
        until(proxy.serving.memory_pid)
        ask(proxy, {"role": "user", "content": "Publish release 1.6"})
        assert HINT in shown(upstream.got[-1])
    assert [r.message for r in caplog.records if "unexpectedly" in r.message] != []
    with opened(tmp_path / "bank.db") as bank:
        known = [run for run in bank.runs.list() if run.verdict and run.trajectory.task == "Publish release 1.3"]
        assert [run.verdict.outcome for run in known if run.verdict] == ["success"]


def test_a_bank_that_was_replaced_is_opened_for_the_next_conversation(tmp_path: Path) -> None:
    def put_away() -> None:
        for file in tmp_path.glob("bank.db*"):
            file.unlink()

    with Upstream(lambda got: chat("Done.")) as upstream, running(upstream.url, tmp_path, scope=SCOPE) as proxy:
        ask(proxy, TASK, conversation="one")
        put_away()
        (tmp_path / "bank.db").mkdir()
        for name in ("two", "three"):
            ask(proxy, TASK, conversation=name)
            assert HINT not in shown(upstream.got[-1])
        (tmp_path / "bank.db").rmdir()
        with_lesson(tmp_path)
        ask(proxy, TASK, conversation="four")
        assert HINT in shown(upstream.got[-1])
        tell(proxy, conversation="four", outcome="success")
    with opened(tmp_path / "bank.db") as bank:
        assert "success" in {run.verdict.outcome for run in bank.runs.list() if run.verdict}


def test_a_memory_that_hangs_delays_one_request_by_its_patience(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with_lesson(tmp_path)
    options: dict[str, Any] = {"scope": SCOPE, "memory": {"retrieve": {"patience": 1.0}}}
    with Upstream(chat("Done.")) as upstream, running(upstream.url, tmp_path, **options) as proxy:
        memory = proxy.serving.memory_pid()
        assert memory
        os.kill(memory, signal.SIGSTOP)
        try:
            for number in range(4):
                ask(proxy, {"role": "user", "content": f"Publish release 1.{number}"})
        finally:
            os.kill(memory, signal.SIGCONT)
        assert not any("Update" in shown(got) for got in upstream.got)
    assert len([r for r in caplog.records if "did not answer" in r.message]) == 1


def test_the_proxy_holds_no_database_and_no_model_library() -> None:
    code = (
        "import sys, lessonbank.proxy.server\n"
        "held = {'sqlite3', 'numpy', 'pydantic_ai', 'openai', 'anthropic'} & set(sys.modules)\n"
        "print(sorted(held))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['starlette'] = sys.modules['starlette.types'] = None\n"
        "sys.argv = ['lessonbank', 'proxy', '--bank', 'b.db', '--scope', 's', '--upstream', 'http://x']\n"
        "from lessonbank.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 2
    assert "pip install 'lessonbank[proxy]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_recall_of_a_proxy_is_asked_with_what_its_owner_says(tmp_path: Path) -> None:
    lesson = lessonbank.Lesson(title="A hint", content=HINT)
    with opened(tmp_path / "bank.db") as bank:
        bank.consolidate(lessonbank.Experience(scope=SCOPE, task="Publish release 1.4", lessons=(lesson,)))
    asked = {"trusted": True, "metadata": {"team": "a"}}
    with Upstream(chat("Published.")) as upstream:
        with running(upstream.url, tmp_path, scope=SCOPE, memory={"retrieve": asked}) as proxy:
            ask(proxy, TASK)
        assert HINT not in shown(upstream.got[0])
    with opened(tmp_path / "bank.db") as bank:
        assert len(bank.recalls.list(metadata={"team": "a"})) == 1


def test_a_bank_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bank.db").write_bytes(b"no database" * 1000)
    with pytest.raises(LessonbankError, match=r"bank\.db"), running("http://127.0.0.1:9", tmp_path, scope=SCOPE):
        pass


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with Upstream() as upstream:
        port = int(upstream.url.rpartition(":")[2])
        with (
            pytest.raises(LessonbankError, match="choose another --port"),
            running(upstream.url, tmp_path, scope=SCOPE, port=port),
        ):
            pass


@pytest.mark.parametrize("address", ["ftp://x", "api.openai.com", "https://user:pw@x", "https://x?key=1", "http://"])
def test_an_upstream_that_is_no_address_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(LessonbankError, match="without a key or a query"), running(address, tmp_path, scope=SCOPE):
        pass


def test_the_end_of_the_proxy_keeps_the_runs_that_came_to_an_answer(tmp_path: Path) -> None:
    secret = "-".join(("sk", "of", "a", "user", "0123456789"))

    def answer(got: Got) -> Reply:
        return chat("Published.") if "1.4" in shown(got) else chat("", Call("make", "{}", "c"))

    with Upstream(answer) as upstream, running(upstream.url, tmp_path, scope=SCOPE) as proxy:
        for task in ("Publish release 1.4", "Publish release 1.5"):
            headers = {"authorization": f"Bearer {secret}", "x-api-key": secret}
            body = {"model": "m", "messages": [{"role": "user", "content": task}]}
            httpx2.post(proxy.url + CHAT, json=body, headers=headers, timeout=PATIENCE)
    with opened(proxy.bank) as bank:
        runs = {run.trajectory.task: run for run in bank.runs.list()}
        assert runs["Publish release 1.4"].trajectory.answer == "Published."
        assert runs["Publish release 1.4"].trajectory.metadata["source"] == "proxy"
        assert runs["Publish release 1.4"].recall_id
        assert runs["Publish release 1.5"].trajectory.metadata["stopped"]
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_an_answer_to_which_nothing_is_said_ends_the_run_and_the_judge_decides(tmp_path: Path) -> None:
    asked = threading.Event()

    def judge(body: dict[str, Any]) -> str:
        asked.set()
        return "Thoughts: it is published.\nStatus: success"

    with ModelServer(judge, default="no lesson") as model, Upstream(chat("Published.")) as upstream:
        named = {"name": "judge", "base_url": model.base_url, "timeout": 60.0}
        with running(upstream.url, tmp_path, scope=SCOPE, idle=0.05, memory={"model": named}) as proxy:
            ask(proxy, TASK)
            assert asked.wait(PATIENCE)
    assert "Published." in json.dumps(model.requests[0].body)


def test_an_outcome_comes_with_the_next_request_and_can_be_corrected_later(tmp_path: Path) -> None:
    numbers = iter(range(100))

    def answer(_: Got) -> Reply:
        return chat("Published.", id=f"r{next(numbers)}")

    with Upstream(answer) as upstream, running(upstream.url, tmp_path, scope=SCOPE) as proxy:
        message = ask(proxy, TASK, conversation="one")
        follow = {"role": "user", "content": "Now publish release 1.5"}
        ask(proxy, TASK, message, follow, conversation="one", outcome="failure")
        assert tell(proxy, conversation="one", reward=1.0)["learned"] is True
        ask(proxy, {"role": "user", "content": "Publish release 1.6"}, outcome="nonsense")
        first = tell(proxy, response="r2", outcome="failure")
        assert tell(proxy, response="r2", outcome="success") == first
        for wrong in ({}, {"outcome": "good"}, {"reward": 7}, {"response": "r2"}, {"response": 3, "reward": 1}):
            assert "error" in tell(proxy, **wrong)
        with opened(proxy.bank) as bank:
            found = {run.trajectory.task: run.verdict.outcome for run in bank.runs.list() if run.verdict}
    assert found == {
        "Publish release 1.4": "failure",
        "Now publish release 1.5": "success",
        "Publish release 1.6": "success",
    }


def test_an_error_after_which_the_client_gives_up_fails_the_run(tmp_path: Path) -> None:
    failed = threading.Event()

    def answer(got: Got) -> Reply:
        if len(got.body["messages"]) == 1:
            return chat("", Call("make", "{}", "c1"))
        failed.set()
        return Reply(b'{"error": {"message": "no"}}', status=500)

    with Upstream(answer) as upstream, running(upstream.url, tmp_path, scope=SCOPE) as proxy:
        message = ask(proxy, TASK)
        ask(proxy, TASK, message, {"role": "tool", "tool_call_id": "c1", "content": "ok"})
        assert failed.is_set()
    with opened(proxy.bank) as bank:
        (run,) = bank.runs.list()
    assert run.trajectory.error == "the model's server answered 500"
    assert run.verdict
    assert (run.verdict.outcome, run.verdict.source) == ("failure", "framework_error")


def test_an_upstream_that_cannot_be_reached_is_an_error_that_sdks_read_and_logs_repeat_nothing_of_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="lessonbank")
    secret = "-".join(("sk", "of", "a", "user", "0123456789"))
    with socket.socket() as taken, closing(logging.FileHandler(tmp_path / "program.log")) as own:
        taken.bind(("127.0.0.1", 0))  # it does not listen, and nobody else gets the port meanwhile
        with running(f"http://127.0.0.1:{taken.getsockname()[1]}", tmp_path, scope=SCOPE) as proxy:
            body = {"model": "m", "messages": [{"role": "user", "content": "a private matter"}]}
            headers = {"authorization": f"Bearer {secret}"}
            reply = httpx2.post(proxy.url + CHAT, json=body, headers=headers, timeout=PATIENCE)
        assert own.stream is not None, "log files of the program stay open"
    assert reply.status_code == 502
    assert "could not be reached" in reply.json()["error"]["message"]
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "could not be reached" in said
    assert secret not in said
    assert "private" not in said


def test_the_command_serves_until_it_is_interrupted_and_keeps_what_happened(tmp_path: Path) -> None:
    with_lesson(tmp_path)
    with Upstream(chat("Published.")) as upstream:
        command = [sys.executable, "-m", "lessonbank.cli", "proxy", "--upstream", upstream.url, "--port", "0"]
        command += ["--bank", str(tmp_path / "bank.db"), "--scope", SCOPE, "--embedder", "lexical", "--holdout", "0"]
        hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore it
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=hears) as process:
            assert process.stderr
            line = process.stderr.readline()
            url = next(word for word in line.split() if word.startswith("http://127.0.0.1"))
            body = {"model": "m", "messages": [TASK]}
            assert httpx2.post(url + CHAT, json=body, timeout=PATIENCE).status_code == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
            assert process.stderr.read() == ""
    assert HINT in shown(upstream.got[0])
    with opened(tmp_path / "bank.db") as bank:
        assert [run.trajectory.answer for run in bank.runs.list()] == ["Published."]
