"""The model desk: requests that somebody answers, the same request that is never asked twice, and replay."""

from __future__ import annotations

import io
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lessonbank_bench.model_desk import Desk, key, main, role, server

PATIENCE, SHORT, PAUSE = 20.0, 0.4, 0.3
"""Seconds: the desk waits for a run that goes on before it hands out another, here for the last of these."""
AGENT = "You change small repositories with bash. `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT` hands in."


def asked(*said: str, system: str = AGENT) -> dict[str, Any]:
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    return {"model": "desk", "messages": [{"role": "system", "content": system}, *turns]}


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank_bench.model_desk._PAUSE", PAUSE)


@contextmanager
def serving(folder: Path, patience: float) -> Iterator[str]:
    running = server(Desk(folder), 0, patience=patience)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/v1/chat/completions"
    running.shutdown()
    running.server_close()


def post(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def test_a_reply_is_kept_and_given_again_without_anybody_at_the_desk(tmp_path: Path) -> None:
    replies: list[str] = []
    with serving(tmp_path, 30) as url:
        client = threading.Thread(target=lambda: replies.append(post(url, asked("Do it."))))
        client.start()
        assert Desk(tmp_path).take("one", patience=20)
        Desk(tmp_path).answer("one", "ls")
        client.join()
    with serving(tmp_path, 0.1) as url:
        assert [*replies, post(url, asked("Do it."))] == ["ls", "ls"]
        with pytest.raises(urllib.error.HTTPError) as nobody:
            post(url, asked("Do something else."))
        nobody.value.close()
        assert nobody.value.code == 504


def test_a_replay_answers_what_is_on_the_cassette_and_writes_nothing(tmp_path: Path) -> None:
    line = json.dumps({"key": key(asked("Do it.")), "reply": "ls"})
    (tmp_path / "cassette.jsonl").write_text(line + "\n", encoding="utf-8")
    desk = Desk(tmp_path, replay=True)
    assert desk.reply(asked("Do it."), patience=60) == "ls"
    assert desk.reply(asked("Do something else."), patience=60) is None
    assert [path.name for path in tmp_path.iterdir()] == ["cassette.jsonl"]


def test_codes_and_folders_that_were_drawn_do_not_make_another_request() -> None:
    one = asked("<<<run 12345678>>>\n| x\nThe code is 12345678\n/tmp/house-rules-ab12cd_f/repository")
    two = asked("<<<run abcdef01>>>\n| x\nThe code is abcdef01\n/tmp/house-rules-zz12cd_f/repository")
    assert key(one) == key(two) != key(asked("<<<run abcdef01>>>\n| y"))


def test_the_hour_at_which_a_command_listed_files_does_not_make_another_request() -> None:
    listed = "-rw-r--r-- 1 root root  195 Nov 28 21:37 core.py\ndrwx------  3 root root 4096 Jan  2  2026 docs"
    later = listed.replace("Nov 28 21:37", "Nov 29 01:02").replace("Jan  2  2026", "Feb 11 09:30")
    assert key(asked("ls -la", listed)) == key(asked("ls -la", later))
    assert key(asked("ls -la", listed)) != key(asked("ls -la", listed.replace("195", "196")))
    assert key(asked("Thu Jan 1 00:00:00 2026")) != key(asked("Thu Jan 2 00:00:00 2026"))


def test_nobody_takes_what_is_taken_and_roles_are_apart(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    lessons = asked("Write lessons.", system="You write lessons for an agent.")
    house = {"messages": [{"role": "system", "content": "You act in a simulated house, one command a turn."}]}
    assert (role(asked("a")), role(house), role(lessons)) == ("agent", "agent", "memory")
    for body in (asked("a"), lessons, asked("a")):
        desk.reply(body, patience=0)
    first = desk.take("one", patience=PATIENCE)
    assert first is not None
    assert first["body"] == asked("a")
    assert desk.take("two", patience=SHORT) is None
    assert (desk.take("memory", patience=PATIENCE) or {})["body"] == lessons


def test_whoever_acts_meets_a_world_in_one_run_and_follows_that_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first, second, other = asked("a"), asked("a", "ls", "core.py"), asked("b")
    desk.reply(first, world="w1", patience=0)
    assert (desk.take("one", patience=PATIENCE) or {})["follows"] is False
    desk.reply(other, world="w1", patience=0)
    desk.reply(second, world="w1", patience=0)
    again = desk.take("one", patience=PAUSE / 2)
    assert again is not None
    assert (again["body"], again["follows"]) == (second, True)
    assert desk.take("one", patience=SHORT) is None
    desk.reply(asked("c"), world="w2", patience=0)
    assert (desk.take("one", patience=PATIENCE) or {})["body"] == asked("c")
    assert (desk.take("two", patience=PATIENCE) or {})["body"] == other


def test_a_reader_is_shown_a_new_conversation_whole_and_of_one_that_goes_on_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    desk.reply(asked("the task"), patience=0)
    assert main(["take", str(tmp_path), "one"]) == 0
    said = capsys.readouterr().out
    assert AGENT in said
    assert "the task" in said
    desk.reply(asked("the task", "ls", "core.py"), patience=0)
    monkeypatch.setattr("sys.stdin", io.StringIO("ls"))
    assert main(["answer", str(tmp_path), "one"]) == 0
    said = capsys.readouterr().out
    assert "core.py" in said
    assert "the task" not in said
    monkeypatch.setattr("sys.stdin", io.StringIO("done"))
    assert main(["answer", str(tmp_path), "one", "--patience", "0.1"]) == 0
    assert capsys.readouterr().out == "Nothing more waits.\n"
