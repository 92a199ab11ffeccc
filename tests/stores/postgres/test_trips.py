"""What is sent to the database: how often somebody waits for its answer, and that statements hold no values."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import lessonbank
from lessonbank import Safety, Step, Trajectory

pytestmark = pytest.mark.full
SCOPE = "confidential/tenant"
WORD = "xylophone"


class Line:
    """A socket before the server's, which counts the questions and keeps the statements."""

    def __init__(self, server: str, /) -> None:
        self._server = server
        self.folder = tempfile.mkdtemp(prefix="lb-line-")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(f"{self.folder}/.s.PGSQL.5432")
        self._door.listen()
        self.trips = 0
        self.statements = list[bytes]()
        self._open = list[socket.socket]()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, server = self._door.accept()[0], socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                answered = threading.Event()
                answered.set()
                threading.Thread(target=self._ask, args=(client, server, answered), daemon=True).start()
                threading.Thread(target=self._answer, args=(client, server, answered), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, answered: threading.Event) -> None:
        """Carry questions. What comes after an answer was heard is a trip; what comes before it goes along."""
        left, begun = b"", False
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if answered.is_set():
                    answered.clear()
                    self.trips += 1
                left += data
                if not begun:  # the first message has no letter
                    begun, left = True, left[int.from_bytes(left[:4], "big") :]
                left = self._read(left)
                server.sendall(data)
        server.close()

    def _read(self, left: bytes) -> bytes:
        while len(left) > 4 and len(left) > (size := int.from_bytes(left[1:5], "big")):
            if left[:1] in b"PQ":
                self.statements.append(left[5 : size + 1])
            left = left[size + 1 :]
        return left

    def _answer(self, client: socket.socket, server: socket.socket, answered: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                answered.set()
                client.sendall(data)
        client.close()

    def close(self) -> None:
        for one in (self._door, *self._open):
            one.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def line(postgres_server: str) -> Iterator[Line]:
    host = conninfo_to_dict(postgres_server)["host"]
    made = Line(str(Path(str(host)) / ".s.PGSQL.5432"))
    yield made
    made.close()


def _run(number: int) -> Trajectory:
    steps = (
        Step(action=f"cancel order {number}", observation="error: the order is locked"),
        Step(action=f"unlock order {number}", observation="unlocked"),
        Step(action=f"cancel order {number}", observation="cancelled"),
    )
    return Trajectory(task=f"Cancel the pending order of {WORD} {number}", steps=steps, answer="It is cancelled.")


def _trips(line: Line, call: Callable[[], object]) -> int:
    before = line.trips
    call()
    return line.trips - before


def test_a_call_waits_for_the_database_a_few_times(postgres: Callable[[], str], line: Line) -> None:
    address = f"{postgres().partition('?')[0]}?host={line.folder}"
    with lessonbank.connect(address, scope=SCOPE, embedder="lexical", safety=Safety(caps=None)) as bank:
        for number in range(3):  # what a process asks once
            assert bank.learn(_run(number), outcome="success").changes
            assert bank.retrieve(f"Cancel an order of {WORD} {number}").candidates
        # Each a few times: a process asks some things once in a while.
        learned = min(_trips(line, lambda n=n: bank.learn(_run(n), outcome="success")) for n in range(3, 8))
        recalled = min(_trips(line, lambda n=n: bank.retrieve(f"Cancel an order of {WORD} {n}")) for n in range(5))
    assert learned <= 10
    assert recalled <= 6


def test_a_page_of_runs_waits_no_longer_for_many_than_for_one(postgres: Callable[[], str], line: Line) -> None:
    address = f"{postgres().partition('?')[0]}?host={line.folder}"
    with lessonbank.connect(address, scope=SCOPE, embedder="lexical", safety=Safety(caps=None)) as bank:
        for number in range(4):
            bank.learn(_run(number), outcome="success")
        one, four = (min(_trips(line, lambda n=n: bank.runs.list(limit=n)) for _ in range(3)) for n in (1, 4))
        assert len(bank.runs.list(limit=4)) == 4
    assert one == four


def test_no_value_stands_in_a_statement(postgres: Callable[[], str], line: Line) -> None:
    address = f"{postgres().partition('?')[0]}?host={line.folder}"
    with lessonbank.connect(address, scope=SCOPE, embedder="hashing") as bank:
        learned = bank.learn(_run(1), outcome="success")
        recall = bank.retrieve(f"Cancel the order of {WORD}")
        bank.learn(_run(2), recall=recall, outcome="success")
        assert bank.lessons.list()
        assert [run.trajectory.task for run in bank.runs.list()]
        assert bank.history.list()
        bank.lessons.retire(learned.lessons[0].id, by="ana", reason=f"no {WORD}")
    sent = b"\n".join(line.statements)
    assert b"lessonbank.experiences" in sent
    for value in (SCOPE, WORD, recall.id, learned.lessons[0].id):
        assert value.encode() not in sent


def test_a_session_that_the_server_ended_is_not_asked(postgres: Callable[[], str]) -> None:
    address = postgres()
    with lessonbank.connect(address, scope=SCOPE, embedder="lexical") as bank:
        for number in range(4):
            assert bank.learn(_run(number), outcome="success").changes
            assert bank.retrieve(f"Cancel an order of {WORD}").kept
            with psycopg.connect(address, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE usename = session_user AND pid <> pg_backend_pid()"
                )
        assert not [note for note in bank.retrieve(f"Cancel an order of {WORD}").notes if "could not be" in note]
