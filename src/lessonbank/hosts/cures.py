"""Cures: what got a failing command through in this repository, kept as lessons and told when it fails again.

A cure is a lesson in a scope of its own below that of the repository. Its experience has the key of the failure as
task. So looking it up is a recall, which may be kept back at random, and what becomes of the command settles it.
There are also corrections, the rules that a person said in a session: all of them have one key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from lessonbank import Evidence, Learning, Parts, connect
from lessonbank.bank.recall_again import AFTER, cures_of
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import (
    Extraction,
    Lesson,
    Observation,
    Provenance,
    Recall,
    Run,
    Step,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.records.lessons import EXTRACTIVE
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.errors import NotFound
from lessonbank.guard.hazards import OUTPUT
from lessonbank.importers import Failure, Imported, failure_of, failures_in
from lessonbank.text.messages import only_greets

from . import client
from .corrections import corrections_in
from .repositories import COMMON

Show: TypeAlias = Callable[[Recall], bool]
_CURE: Final = "cure"
_MOST: Final = 20
"""Failures of one session that are learned from."""
CORRECTION: Final = "what the person said here"
"""The task of all corrections."""
_SAID: Final = "The person said here"
_MOST_SHOWN: Final = 3
"""Corrections that a session is shown."""
_BY_A_PERSON: Final = Verdict(outcome="success", source="human", reason="a person said it")


class CureExtractor:
    """Draws from an episode the one lesson in it: what got a command through, as its metadata say, or a correction."""

    asks_model = False

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        lessons = [
            lesson for run in attempts if run.verdict.outcome == "success" and (lesson := _lesson(run.trajectory))
        ]
        return Extraction(lessons=tuple(lessons[:1]))


def _lesson(episode: Trajectory) -> Lesson | None:
    if episode.task == CORRECTION:
        source = Provenance(method=EXTRACTIVE, trajectory_ids=(episode.id,), verdict="success", verdict_source="human")
        return Lesson(title=_SAID, content=f"“{episode.steps[0].observations[0].text}”", provenance=source)
    record = episode.metadata.get(_CURE)
    if not isinstance(record, dict):
        return None
    failed, cure, program = (str(record.get(name, "")) for name in ("failed", "cure", "program"))
    ground = OUTPUT if record.get("said") is True else str(record.get("rests_on", ""))  # `said`: written before
    is_instead = record.get("instead") is True
    return Failure(program, "", failed, 0, cure=cure, is_instead=is_instead, rests_on=ground).lesson(episode.id)


class Cures:
    """The cures of all repositories of one bank."""

    def __init__(self, bank: ReasoningBank, folder: Path, /) -> None:
        self._bank, self._folder = bank, folder
        self._busy, self._guard = set[tuple[str, str]](), threading.Lock()

    @classmethod
    @contextlib.contextmanager
    def of(cls, options: Mapping[str, str], folder: Path, /) -> Generator[Cures]:
        """Open the cures of an installed hook's bank, with notes in `folder`. Raises LessonbankError: no bank opens."""
        parts, learning = Parts(extractor=CureExtractor()), Learning(domain="code")
        evidence = evidence_of(options)
        with connect(options["bank"], scope=COMMON, evidence=evidence, learning=learning, parts=parts) as bank:
            yield cls(bank, folder)

    def tell(
        self, scope: str, command: str, printed: str, show: Show, /, *, session: str, host: str, asked: RetrieveOptions
    ) -> None:
        """Show a session, once, the receipt of a cure for a command that failed just now, where one is known.

        Its text is empty where it was kept back at random. `show` says whether it was printed: else it is told again.
        """
        failure = failure_of(command, printed)
        if failure is None or not self._begins(session, failure.key):
            return
        try:
            bank = self._bank.scoped(scope, writer=host)
            recall = bank.recall_again(
                printed, doing=command, cured=True, trusted=asked.trusted, own=asked.own, metadata=asked.metadata
            )
            if recall.candidates and show(recall):
                with self._guard:
                    client.write_private(str(self._file(session)), {**self._given(session), failure.key: recall.id})
        finally:
            with self._guard:
                self._busy.discard((session, failure.key))

    def _begins(self, session: str, key: str) -> bool:
        """Whether a session was not told a cure for this and is not being told one: it may run commands at once."""
        with self._guard:
            if (session, key) in self._busy or key in self._given(session):
                return False
            self._busy.add((session, key))
            return True

    def learn(self, scope: str, runs: Sequence[Imported], /, *, session: str, host: str) -> None:
        """Settle what a session was told by what became of its commands; learn its cures, and what the person said."""
        bank, given = self._bank.scoped(cures_of(scope), writer=host), self._given(session)
        seen = set[str]()
        failures = ((r.trajectory, failure) for r in runs for failure in failures_in(r.trajectory, r.exit_codes))
        for run, failure in failures:
            recall = given.get(failure.key)
            if failure.key in seen or len(seen) == _MOST or not (recall or failure.cure):
                continue
            seen.add(failure.key)
            outcome = "failure" if failure.through_at is None else "success"
            bank.learn(
                _episode(run, failure), recall=receipt_of(bank, recall or ""), outcome=outcome, metadata={"host": host}
            )
        for rule in corrections_in([entry.trajectory for entry in runs]):
            bank.learn(_correction(rule, session), outcome=cast("Any", _BY_A_PERSON), metadata={"host": host})

    def say(self, scope: str, first: Recall, /, *, host: str, asked: RetrieveOptions) -> Recall | None:
        """The receipt of the latest corrections of a repository, after the first one of a run; `None`: there are none.

        Its text is empty where it was kept back at random.
        """
        bank = self._bank.scoped(cures_of(scope), writer=host)
        if only_greets(first.task) or not bank.lessons.list(text=_SAID, limit=1):
            return None
        metadata = {**(asked.metadata or {}), AFTER: first.id}
        asked = replace(asked, limit=_MOST_SHOWN, own=not asked.trusted, metadata=metadata)
        recall = bank.retrieve(CORRECTION, **asked.keywords)
        return recall if recall.candidates else None

    def _given(self, session: str) -> dict[str, str]:
        try:
            recall_ids = json.loads(self._file(session).read_bytes())
        except (OSError, ValueError):
            return {}
        return cast("dict[str, str]", recall_ids) if isinstance(recall_ids, dict) else {}

    def _file(self, session: str) -> Path:
        return self._folder / f"{session}.cures"


def receipt_of(bank: ReasoningBank, recall: str, /) -> Recall | None:
    """A receipt by its id; `None` without one, or where it was erased."""
    with contextlib.suppress(NotFound):
        return bank.recalls.get(recall) if recall else None


def _episode(run: Trajectory, failure: Failure) -> Trajectory:
    """The steps from a failure to where the command went through, as a run of its own."""
    last = failure.at if failure.through_at is None else failure.through_at
    session = str(run.metadata.get("run_id", run.id))
    about: dict[str, Any] = {"run_id": session}
    if failure.cure:
        record = {"failed": failure.command, "cure": failure.cure, "program": failure.program}
        about[_CURE] = {**record, "instead": failure.is_instead, "rests_on": failure.rests_on}
    return Trajectory(
        id=hashlib.sha256(f"{session} {failure.key} {failure.at} {last}".encode()).hexdigest()[:32],
        task=failure.key,
        steps=run.steps[failure.at : last + 1],
        metadata=about,
    )


def _correction(rule: str, session: str) -> Trajectory:
    """What a person said in a session, as a run of its own: the same one when the session goes on."""
    return Trajectory(
        id=hashlib.sha256(f"{session} {CORRECTION} {rule}".encode()).hexdigest()[:32],
        task=CORRECTION,
        steps=(Step(observation=Observation(text=rule, source="user")),),
        metadata={"run_id": session},
    )


def evidence_of(options: Mapping[str, str], /) -> Evidence:
    """How often the hooks of these options keep lessons back."""
    return Evidence(holdout=float(options["holdout"]) or None) if "holdout" in options else Evidence()
