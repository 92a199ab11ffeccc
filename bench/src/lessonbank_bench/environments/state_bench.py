"""STATE-Bench's two doors for memory: its recorded runs as trajectories, and its hook answered from a bank."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any, cast

from lessonbank import Evidence
from lessonbank._base.checks import replace_surrogates
from lessonbank.contracts.records import Lesson, Trajectory, Verdict
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import FormatError, UsageError
from lessonbank.guard import canonical, canonical_line, one_line
from lessonbank.importers import Imported, Skipped
from lessonbank.text.messages import trajectory_from
from lessonbank.wiring import connect

_MOST_BYTES = 64 * 2**20
_INSTALL = "make it from the train trajectories first, see docs/environments/state-bench.md"


class Learnings:
    """What STATE-Bench asks an agent's memory: `retrieve_learnings(query, top_k) -> list[str]`.

    The bank is only read. A receipt of each answer is kept in it; nothing is withheld to measure effects, because the
    harness compares whole runs. Calls may come from several threads.

    Args:
        where: a bank that has learned from the domain's train trajectories.
        scope: the scope it learned them in.

    Raises:
        UsageError: there is no such bank.
    """

    def __init__(self, where: str | Path, /, *, scope: str) -> None:
        if not Path(where).is_file():
            raise UsageError(f"there is no bank {one_line(str(where))!r} for STATE-Bench to ask: {_INSTALL}")
        self._bank = connect(where, scope=scope, evidence=Evidence(holdout=None))

    def retrieve_learnings(self, query: str, top_k: int = 3) -> list[str]:
        """At most `top_k` lessons for `query`, best first, each as the text of one learning."""
        if not query.strip():
            return []
        return [_text(lesson) for lesson in self._bank.retrieve(query, limit=top_k).shown[:top_k]]

    def close(self) -> None:
        """Closes the bank. Closing twice is fine."""
        self._bank.close()


def remembering(agent: type, where: str | Path, /, *, scope: str) -> type:
    """A subclass of STATE-Bench's `StateBenchAgent` that answers `retrieve_learnings` from a bank.

    The bank is opened at the first question, not when the harness looks through the folder `agents`.
    """
    opened: list[Learnings] = []
    turn = Lock()

    def retrieve_learnings(self: Any, query: str, top_k: int = 3) -> list[str]:
        with turn:
            if not opened:
                opened.append(Learnings(where, scope=scope))
        return opened[0].retrieve_learnings(query, top_k=top_k)

    return type("LessonbankAgent", (agent,), {"retrieve_learnings": retrieve_learnings})


def runs(path: str | Path, /) -> Iterator[Imported | Skipped]:
    """The runs of a file, or of a folder such as `datasets/train_task_trajectories/travel`, in sorted order.

    The train trajectories carry no verdict; scored runs of the harness do (`task_completion_pass`). The calls of a
    turn come before what the agent says in it, each with its result, as the harness made them.

    Raises:
        FormatError: there is no such file or folder, or no `.json` in it.
    """
    place = Path(path)
    files = sorted(place.rglob("*.json")) if place.is_dir() else [place] if place.is_file() else []
    if not files:
        raise FormatError(f"there are no STATE-Bench runs at {one_line(str(place))!r}: give its folder of .json files")
    for file in files:
        try:
            yield _run(file)
        except (FormatError, OSError, ValueError, RecursionError) as wrong:
            yield Skipped(file, 1, one_line(str(wrong), limit=200))


def _run(file: Path) -> Imported:
    if file.stat().st_size > _MOST_BYTES:
        raise FormatError(f"more than {_MOST_BYTES >> 20} MB in one run")
    value = _mapping(replace_surrogates(json.loads(file.read_text(encoding="utf-8", errors="replace"))), "it")
    turns = value.get("conversation")
    if not isinstance(turns, list) or not turns:
        raise FormatError("no STATE-Bench run: it has no list `conversation`")
    made = trajectory_from({"messages": list(_messages(cast("list[Any]", turns)))})
    return Imported(_named(made, file, value), _verdict(value), file, 1)


def _mapping(value: Any, what: str, key: str = "conversation") -> dict[str, Any]:
    if not isinstance(value, dict) or key not in value:
        raise FormatError(f"no STATE-Bench run: {what} has no {key!r}")
    return cast("dict[str, Any]", value)


def _named(made: Trajectory, file: Path, value: dict[str, Any]) -> Trajectory:
    """The same run of the same file always gets the same id."""
    domain, task = file.resolve().parent.name, str(value.get("task_id") or file.stem)
    identity = json.dumps(["state-bench", domain, task, value["conversation"]], sort_keys=True)
    error = value.get("error")
    return made.model_copy(
        update={
            "id": digest(identity)[:32],
            "error": error if isinstance(error, str) and error else None,
            "metadata": {"source": f"state-bench/{domain}", "task_id": task},
            "original": (),
        }
    )


def _messages(turns: list[Any]) -> Iterator[dict[str, Any]]:
    """The conversation as chat messages: one message for each call, because a call may rest on the one before."""
    for at, turn in enumerate(turns):
        said = _mapping(turn, f"conversation[{at}]", "role")
        calls: Any = said.get("tool_calls") or []
        if not isinstance(calls, list):
            raise FormatError(f"conversation[{at}].tool_calls is no list")
        for number, call in enumerate(cast("list[Any]", calls)):
            yield from _call(_mapping(call, f"conversation[{at}].tool_calls[{number}]", "name"), f"{at}-{number}")
        if said.get("content") or not calls:
            yield {"role": str(said["role"]), "content": str(said.get("content") or "")}


def _call(made: dict[str, Any], id: str) -> Iterator[dict[str, Any]]:
    arguments = json.dumps(made.get("arguments") or {}, ensure_ascii=False)
    function = {"name": str(made["name"]), "arguments": arguments}
    yield {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
    result = made.get("result")
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    yield {"role": "tool", "tool_call_id": id, "name": str(made["name"]), "content": text}


def _verdict(value: dict[str, Any]) -> Verdict | None:
    passed = value.get("task_completion_pass")
    if passed not in (0, 1):
        return None
    return Verdict(
        outcome="success" if passed else "failure",
        reward=float(passed),
        reason="STATE-Bench task_completion_pass",
        source="ground_truth",
    )


def _text(lesson: Lesson) -> str:
    """A lesson as one learning: its fields are untrusted, so they are in the one form that memories have."""
    when = canonical_line(lesson.description)
    title = f"{lesson.kind}: {canonical_line(lesson.title)}"
    return "\n".join(part for part in (title, when and f"when: {when}", canonical(lesson.content).strip()) if part)
