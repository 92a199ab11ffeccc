"""Two agents on two machines share one bank over HTTP; a reader watches, and an agent's key cannot approve.

The server runs in a thread here. In production: `lessonbank serve` and `lessonbank keys add`.
Install `lessonbank[server]`, then: python examples/bank_server.py
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import lessonbank
from lessonbank import Evidence, Server, Step, Trajectory
from lessonbank.errors import NotAllowed
from lessonbank.http.service.serving import running

TASK = "Publish release 1.5 of the parser"


def main() -> str:
    """What the second agent is shown for its task."""
    file = Path(tempfile.mkdtemp()) / "bank.db"
    opened = partial(lessonbank.connect_async, file, scope="acme", embedder="lexical", evidence=Evidence(holdout=None))
    with running(opened) as server:
        keys = [server.key(f"agent-{n}", scope="acme") for n in (1, 2)]

        with lessonbank.connect(Server(server.url, api_key=keys[0]), scope="acme/code") as first:
            steps = (
                Step(action="make release", observation="error: CHANGELOG.md has no entry for this version"),
                Step(action="make changelog", observation="CHANGELOG.md updated"),
                Step(action="make release", observation="released"),
            )
            first.learn(Trajectory(task=TASK, steps=steps), outcome="success")

        with lessonbank.connect(Server(server.url, api_key=keys[1]), scope="acme/code") as second:
            with second.attempt("Publish release 1.6 of the parser") as attempt:
                text = attempt.text
                attempt.finish(answer="released", outcome="success")
            try:
                second.lessons.approve(attempt.lessons[0].id, by="agent-2")
            except NotAllowed as refused:
                print(refused)
    return text


if __name__ == "__main__":
    print(main())
