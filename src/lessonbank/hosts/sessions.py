"""Learns from the sessions of coding agents that the hooks noted, and remembers which recall each session was given."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from lessonbank import Learning, Parts, connect, importers
from lessonbank.bank.recall_again import AFTER, cures_of
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import RECALLS_AGAIN, Json, Lesson, Recall, Trajectory, Verdict
from lessonbank.errors import LessonbankError, ModelTimeout, ModelUnavailable, TransientModelError, UsageError
from lessonbank.importers import Imported

from . import client
from .cures import Cures, evidence_of, receipt_of
from .headless import PREFIX, host_model
from .repositories import COMMON, Chosen, Repositories
from .session_lessons import SessionExtractor
from .switches import Switches

log = logging.getLogger("lessonbank")
QUIET: Final = 30 * 60.0
"""Seconds without a sign after which a session counts as ended: not every host says that one ends."""
_KEPT_FOR: Final = 7 * 24 * 3600.0
"""Seconds that a note waits for a transcript which cannot be read."""
_MOST_SEARCHED: Final = 16 * 2**20
"""Bytes of a conversation, from its end, in which lessons are looked for that it may have already."""
_COMPACTED: Final = b'"compact_boundary"'
_RETRY_AFTER: Final = 3600.0
_AWAY: Final = (ModelUnavailable.code, ModelTimeout.code, TransientModelError.code)
_MOST_RETRIED: Final = 20
_MOST_REVERTED: Final = 100
"""Runs before a revert among which the one is looked for that it takes back."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a hook noted of a session that ended, or paused."""

    path: Path
    host: str
    session: str
    scope: str
    """As the hook was installed with; empty: that of the folder."""
    transcript: str
    ended: bool
    at: float
    folder: str = ""
    """Where the session worked."""


_NOTE: Final = TypeAdapter(Note)


@dataclass(slots=True)
class Report:
    """What learning from the notes came to."""

    learned: int = 0
    waiting: int = 0
    lost: int = 0


class Sessions:
    """The notes in one folder: those of one bank."""

    def __init__(self, folder: Path, /, repositories: Repositories | None = None, cures: Cures | None = None) -> None:
        self._folder, self._repositories, self.cures = folder, repositories, cures
        self.switches = Switches(folder.parent)
        self._retry_at = 0.0

    def recall_of(self, session: str, /) -> str:
        """The id of the recall that a session was given; empty if it was given none."""
        return str(_read(self._folder / f"{session}.recall").get("id") or "")

    def scope_of(self, session: str, /) -> str:
        """The scope in which a session asked for lessons; empty where it did not."""
        return str(_read(self._folder / f"{session}.recall").get("scope") or "")

    def recalls_given(self, bank: ReasoningBank, session: str, /) -> tuple[Recall | None, Recall | None]:
        """The receipts that a session was given, with their lessons as they are now: for its prompt, and corrections.

        Raises LessonbankError.
        """
        note = _read(self._folder / f"{session}.recall")
        scope = str(note.get("scope") or bank.scope)
        first = receipt_of(bank.scoped(scope), str(note.get("id") or ""))
        return first, receipt_of(bank.scoped(cures_of(scope)), str(note.get("corrections") or ""))

    def remember(self, session: str, recall: str, /, scope: str = "", *, corrections: str = "") -> None:
        """Note the scope of a session and the recalls that it was given, which its runs settle; empty: none yet."""
        path = self._folder / f"{session}.recall"
        corrections = corrections or str(_read(path).get("corrections") or "")
        client.write_private(str(path), {"id": recall, "scope": scope, "corrections": corrections})

    def forget(self, session: str, /) -> None:
        """Forget what a session was given."""
        for kind in ("recall", "cures"):
            (self._folder / f"{session}.{kind}").unlink(missing_ok=True)

    def scope_for(self, bank: ReasoningBank, scope: str, folder: str, /, *, asks: bool = False) -> Chosen:
        """The scope that a hook was installed with, else that of a working folder, see `Repositories.scope_of`."""
        if scope or not folder:
            return Chosen(scope or COMMON)
        repositories = self._repositories or Repositories()
        try:
            return repositories.scope_of(folder, is_used=lambda name: is_used(bank.scoped(name)), asks=asks)
        except ValueError:  # no path can be so
            return Chosen(COMMON)

    def notes(self) -> Iterator[Note]:
        """Every note that waits, oldest first."""
        read = [note for path in self._folder.glob("*.json") if (note := _note(path))]
        yield from sorted(read, key=lambda note: note.at)

    def learn(self, bank: ReasoningBank, /, *, quiet: float = QUIET) -> Report:
        """Learn from each session that ended, or was quiet for `quiet` seconds. A note that was used is removed."""
        self.forget_recalls()
        self._retry(bank)
        report = Report()
        for note in self.notes():
            age = time.time() - note.at
            if not note.ended and age < quiet:
                report.waiting += 1
            elif self._is_learned(bank, note, quiet):
                report.learned += 1
                self._remove(note)
            elif age > _KEPT_FOR:
                report.lost += 1
                self._remove(note)
            else:
                report.waiting += 1
        return report

    def _is_learned(self, bank: ReasoningBank, note: Note, quiet: float) -> bool:
        try:
            # The folder may be gone by now, such as a worktree.
            scope = self.scope_of(note.session) or self.scope_for(bank, note.scope, note.folder).scope
            if self.switches.is_off(session=note.session, scope=scope):
                return True
            runs, memory = _runs_of(note), bank.scoped(scope, writer=note.host)
            own = [entry for entry in runs if entry.trajectory.metadata.get("run_id") == note.session]
            recall, later = self.recalls_given(memory, note.session)
            if self.cures:  # before a model is asked, which may have no answer today
                self.cures.learn(scope, own, session=note.session, host=note.host)
            shown = _asked_with(own, recall) if recall else None
            first = receipt_of(memory, str(later.metadata.get(AFTER))) if later else None
            corrected = next((entry for entry in own if first and _has(entry.trajectory, first.task)), None)
            for entry in runs:
                about: dict[str, Json] = {"host": note.host}
                if later and entry is corrected:
                    about[RECALLS_AGAIN] = [later.id]
                given = recall if entry is shown else first if entry is corrected else None
                learn_run(memory, entry, recall=given, metadata=about)
        except Exception as error:  # noqa: BLE001 - a session that cannot be learned must not hold up the others
            code = error.code if isinstance(error, LessonbankError) else type(error).__name__
            log.warning("a session of %s was not learned and waits: %s", note.host, code)
            return False
        return bool(runs) or time.time() - note.at >= quiet  # such as one that only asked `/lessonbank`

    def _retry(self, bank: ReasoningBank) -> None:
        """Learn again, once an hour, from runs of sessions for which a model had no answer."""
        if time.monotonic() < self._retry_at:
            return
        self._retry_at = time.monotonic() + _RETRY_AFTER
        for memory in map(bank.scoped, bank.admin.scopes()):
            left = memory.runs.list(status="pending", limit=_MOST_RETRIED)
            if ids := [run.trajectory.id for run in left if run.verdict.error in _AWAY and "host" in run.metadata]:
                memory.runs.retry(*ids)

    def _remove(self, note: Note) -> None:
        """Unless a newer note of the session took its place meanwhile."""
        if _note(note.path) == note:
            note.path.unlink(missing_ok=True)
            if note.ended:
                note.path.with_suffix(".cures").unlink(missing_ok=True)

    def forget_recalls(self) -> None:
        """Forget which recalls sessions were given that nobody resumed for long."""
        for path in (*self._folder.glob("*.recall"), *self._folder.glob("*.cures")):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _KEPT_FOR:
                    path.unlink()


def is_used(bank: ReasoningBank, /) -> bool:
    """Whether the bank holds anything in its scope."""
    counts = bank.admin.counts()
    return bool(counts.experiences or counts.trajectories)


def _runs_of(note: Note) -> list[Imported]:
    """The session's runs, and those of its sub-agents, out of a file that may hold other sessions as well."""
    named = [
        (entry, str(entry.trajectory.metadata.get("run_id", "")))
        for entry in importers.read(note.transcript)
        if isinstance(entry, Imported)
    ]
    return [entry for entry, name in named if name == note.session or name.startswith(f"{note.session}/")]


def _asked_with(runs: Sequence[Imported], recall: Recall) -> Imported | None:
    """The run of the task that memory was asked about; the first one where none has its words."""
    return next((run for run in runs if _has(run.trajectory, recall.task)), runs[0] if runs else None)


def _has(run: Trajectory, task: str) -> bool:
    return task in run.task or run.task in task


def learn_run(bank: ReasoningBank, entry: Imported, /, *, recall: Recall | None, metadata: Mapping[str, Json]) -> None:
    """Learn from one task of a session, in the place of what was learned of it before the session went on."""
    run, verdict = entry.trajectory, entry.verdict
    if recall and not _has(run, recall.task):  # it need not be the first thing that the user said
        run = run.model_copy(update={"task": recall.task})
    prompt = run.metadata.get("prompt")
    earlier = importers.replaced_by(run, bank.runs.list(metadata={"prompt": prompt})) if prompt else []
    if earlier is None:
        return
    outcome = cast("Any", verdict) if verdict and verdict.outcome != "unknown" else None
    bank.learn(run, recall=recall, outcome=outcome, metadata=metadata)
    former = bank.runs.list(outcome="success", limit=_MOST_REVERTED) if importers.has_reverts(run) else ()
    for earlier_run, unknown in (*earlier, *importers.reverted_by(run, former)):
        _take_back(bank, earlier_run, unknown)


def _take_back(bank: ReasoningBank, run: Trajectory, verdict: Verdict) -> None:
    """A run says nothing any more, and what it alone taught is not shown any more."""
    bank.learn(run, outcome=cast("Any", verdict))
    erasure = bank.admin.purge(run=run.id, reason=verdict.reason, preview=True)
    alone = {*erasure.lessons} - {successor.of for successor in erasure.successors}
    if named := [id for id in alone if _may_retire(bank.lessons.get(id))]:
        bank.lessons.retire(*named, reason=verdict.reason)


def _may_retire(lesson: Lesson) -> bool:
    return not (lesson.approved or lesson.hidden)


def holds(transcript: str, block: str, /) -> bool:
    """Whether the conversation in a file has a block of lessons since it was last compacted."""
    # Gemini CLI writes a `<` as `&lt;`.
    fence = next((line.strip("<>") for line in block.splitlines() if line.startswith("<<<")), "").encode()
    try:
        with Path(transcript).open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _MOST_SEARCHED, 0))
            written = file.read(_MOST_SEARCHED)
    except OSError:
        return False
    return bool(fence) and fence in written[max(written.rfind(_COMPACTED), 0) :]


def _note(path: Path) -> Note | None:
    try:
        note = _NOTE.validate_python({**_read(path), "path": path})
    except ValidationError:
        return None
    return note if client.is_session(note.session) else None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def problem_in(folder: Path, /) -> str:
    """Why the last resident process of these notes could not begin; empty where it could."""
    return str(_read(folder / client.PROBLEM).get("reason") or "")


@dataclass(frozen=True, slots=True)
class Installed:
    """A bank that hooks use, with what its resident process was started with."""

    folder: Path
    options: dict[str, str]

    def waiting(self) -> int:
        """How many sessions wait to be learned."""
        return sum(1 for _ in Sessions(self.folder).notes())

    def process(self, *, stop: bool = False) -> int | None:
        """The number of the resident process, which is asked to end with `stop`; `None` where there is none."""
        try:
            reply = client.ask(self.options["key"], {"do": client.STOP if stop else client.WAKE})
        except (OSError, ValueError):
            return None
        process = reply.get("process")
        return process if isinstance(process, int) else None


def installed() -> Iterator[Installed]:
    """Every bank that a hook of this user was used with."""
    for folder in sorted(Path(client.state_folder()).glob("sessions-*")):
        if {"key", "bank"} <= (options := _read(folder / "options")).keys():
            yield Installed(folder, {name: str(value) for name, value in options.items()})


def learn_now(place: Installed, /) -> Report:
    """Learn from all that is noted, also from sessions that may go on. Raises LessonbankError."""
    with open_bank(place.options) as bank, Cures.of(place.options, place.folder) as cures:
        return Sessions(place.folder, cures=cures).learn(bank, quiet=0.0)


def open_bank(options: Mapping[str, str], /) -> ReasoningBank:
    """The bank of an installed hook, with its settings.

    Raises LessonbankError where it cannot be opened, or memory is off: then a note must not be taken for learned.
    """
    learning = Learning(domain="code")
    named = options.get("model", "")
    is_own = named.startswith(PREFIX)
    model = host_model(named, Path(client.spool_folder(options["key"]))) if is_own else named or None
    parts = Parts() if model else Parts(extractor=SessionExtractor())
    bank = connect(
        options["bank"], scope=COMMON, model=model, evidence=evidence_of(options), learning=learning, parts=parts
    )
    if "off" in bank.settings:
        bank.close()
        raise UsageError("memory is switched off: unset LESSONBANK_OFF to learn from sessions")
    return bank
