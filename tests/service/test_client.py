"""The client where the server is gone, slow, old or wrong: it says so, tries again where it may, and never hangs."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest
from scripted_upstream import Got, Reply, Upstream

pytest.importorskip("httpx2", reason="needs the extra client")

import lessonbank
from lessonbank import Server
from lessonbank.errors import (
    ModelTimeout,
    NotFound,
    RateLimited,
    StoreUnavailable,
    Unauthenticated,
    UsageError,
    VersionMismatch,
)

pytestmark = pytest.mark.full


@contextmanager
def answering(*answers: tuple[int, dict[str, str], Any], port: int = 0) -> Generator[tuple[str, list[Got]]]:
    """A server that gives these answers in order, the last one again and again; its address, and what it was asked."""
    replies = [Reply(json.dumps(body).encode(), status=status, headers=headers) for status, headers, body in answers]
    with Upstream(*replies, port=port) as server:
        yield server.url, server.got


@contextmanager
def refusing() -> Generator[str]:
    """An address that refuses connections, and that nobody else gets meanwhile: its socket does not listen."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def problem(code: str, status: int, **headers: str) -> tuple[int, dict[str, str], Any]:
    return status, headers, {"code": code, "detail": "told by the server", "status": status}


def test_an_argument_that_cannot_be_is_refused_before_anything_is_asked_of_the_server() -> None:
    with answering((200, {}, 0)) as (url, asked), connected(url) as bank:
        with pytest.raises(UsageError, match="progress="):
            bank.admin.reindex(progress=3)  # type: ignore[arg-type]
        assert asked == []
        assert bank.admin.reindex() == 0


def connected(url: str, **told: Any) -> lessonbank.ReasoningBank:
    return lessonbank.connect(Server(url, api_key="lb_a_b", **{"timeout": 2.0, **told}), scope="acme")


COUNTS = (200, {}, {"lessons": 3})


def test_an_attempt_goes_on_without_a_server() -> None:
    with refusing() as url, connected(url) as bank:
        with bank.attempt("Ship parcel 7") as attempt:
            assert attempt.text == ""
            attempt.finish(answer="shipped", outcome="success")
        assert "cannot be reached" in " ".join(attempt.notes)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            bank.retrieve("Ship parcel 7")


def test_an_attempt_waits_for_a_silent_server_no_longer_than_its_patience() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with connected(url) as bank:
            with bank.attempt("Ship parcel 7", patience=0.3) as attempt:
                attempt.finish(answer="shipped", outcome="success")
            assert "no answer within 0.3 seconds" in " ".join(attempt.notes)


def test_a_bank_is_closed_while_its_server_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        bank = connected(f"http://127.0.0.1:{silent.getsockname()[1]}")
        bank.in_background(lambda: bank.aio.learn("Done.", task="Ship parcel 7"), lost="nothing was learned")
        bank.close(patience=0.3)
    (note,) = [one.getMessage() for one in caplog.records if "nothing was learned" in one.getMessage()]
    assert note == "the bank gave no answer within 0.3 seconds while it was closed: nothing was learned (1×)"


def test_what_may_be_answered_later_is_tried_again_under_one_name() -> None:
    busy, limited = problem("store_unavailable", 503), problem("rate_limited", 429, **{"Retry-After": "0"})
    with answering(busy, limited, COUNTS) as (url, asked), connected(url) as bank:
        assert bank.admin.counts().lessons == 3
        assert len(asked) == 3
        assert len({one.header("idempotency-key") for one in asked}) == 1


def test_what_was_refused_is_not_tried_again_and_is_the_error_of_its_code() -> None:
    kinds = {
        "not_found": (404, NotFound),
        "unauthenticated": (401, Unauthenticated),
        "model_timeout": (504, ModelTimeout),
        "usage": (422, UsageError),
    }
    for code, (status, kind) in kinds.items():
        with answering(problem(code, status)) as (url, asked), connected(url) as bank:
            with pytest.raises(kind, match="told by the server"):
                bank.admin.counts()
            assert len(asked) == 1


def test_a_proxy_that_answers_for_the_server_is_understood() -> None:
    for status, kind in ((502, StoreUnavailable), (429, RateLimited), (401, Unauthenticated), (500, StoreUnavailable)):
        with (
            answering((status, {}, "<html>")) as (url, _),
            connected(url) as bank,
            pytest.raises(kind, match=str(status)),
        ):
            bank.admin.counts()


def test_an_answer_of_another_release_is_named() -> None:
    newer = (200, {"Lessonbank-Version": "9.9"}, {"lessons": 3, "wonders": 1})
    with answering(newer) as (url, _), connected(url) as bank, pytest.raises(VersionMismatch, match=r"9\.9"):
        bank.admin.counts()


def test_a_key_is_sent_to_this_machine_or_encrypted_and_is_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://bank.example", "https://user:pw@bank.example", "https://", "https://bank.example?key=lb_a_b"):
        with pytest.raises(UsageError) as caught:
            connected(url)
        assert "lb_a_b" not in str(caught.value)
        assert "pw" not in str(caught.value)
    with connected("https://bank.example/team") as bank:
        assert "lb_a_b" not in repr(bank.settings) + repr(bank) + repr(vars(bank.aio))
    with pytest.raises(UsageError, match="characters that no key has"):
        lessonbank.connect(Server("https://bank.example", api_key="lb_ä_d"), scope="acme")
    monkeypatch.setenv("LESSONBANK_API_KEY", "lb_c_d\n")  # as a mounted secret often ends
    with answering(COUNTS) as (url, asked), lessonbank.connect(url, scope="acme/ß") as bank:
        bank.admin.counts()
        assert asked[0].header("authorization") == "Bearer lb_c_d"
        assert asked[0].header("lessonbank-scope") == "acme%2F%C3%9F"


def test_settings_of_the_server_are_refused_here() -> None:
    for told in ({"model": "openai:x"}, {"evidence": 0.1}, {"profile": "paper"}):
        with pytest.raises(UsageError, match="is decided where the server runs"):
            lessonbank.connect("https://bank.example", scope="acme", **told)  # type: ignore[arg-type]


def test_switched_off_memory_asks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONBANK_OFF", "1")
    with lessonbank.connect("http://127.0.0.1:1", scope="acme") as bank:
        assert bank.retrieve("Ship parcel 7").text == ""


class Raising(dict[str, Any]):
    """Metadata that cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("no")

    __iter__ = keys = values = __len__ = items  # type: ignore[assignment]


CANNOT_BE_SENT: dict[str, Callable[[lessonbank.ReasoningBank], object]] = {
    "digits": lambda bank: bank.runs.list(limit=10**5000),
    "half a pair": lambda bank: bank.lessons.list(writer="A\ud800na"),
    "half a pair in a body": lambda bank: bank.lessons.merge("a", "b", title="t", content="c", by="A\ud800na"),
    "raises": lambda bank: bank.learn("Done.", task="t", outcome="success", metadata={"a": Raising()}),
    "long": lambda bank: bank.recalls.preview("cancel it", preface="two words " * 10_000),
}


@pytest.mark.parametrize("what", CANNOT_BE_SENT)
def test_what_cannot_be_sent_is_refused_in_one_sentence(what: str) -> None:
    with (
        answering((200, {}, {})) as (url, asked),
        lessonbank.connect(Server(url), scope="t") as bank,
        pytest.raises(UsageError) as refused,
    ):
        CANNOT_BE_SENT[what](bank)
    assert asked == []
    assert len(str(refused.value)) <= 500


def test_a_call_is_tried_for_its_whole_time_while_the_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank.http.client.connection._LONGEST_PAUSE", 0.2)
    busy = problem("store_unavailable", 503)
    with answering(*[busy] * 6, COUNTS) as (url, asked), connected(url, timeout=60.0) as bank:
        assert bank.admin.counts().lessons == 3
        assert len(asked) == 7


def test_a_server_that_is_started_again_gets_the_run_that_ended_meanwhile() -> None:
    kept = (200, {}, ["run-1"])
    with refusing() as url:
        pass  # the server is away
    with connected(url, timeout=60.0) as bank, ThreadPoolExecutor(1) as thread:
        told = thread.submit(bank.submit, lessonbank.Trajectory(id="run-1", task="Ship parcel 7"), outcome="success")
        with pytest.raises(TimeoutError):
            told.result(timeout=2.0)  # before, the client gave up after 1.4 seconds
        with answering(kept, port=int(url.rpartition(":")[2])):
            assert told.result() == ("run-1",)
