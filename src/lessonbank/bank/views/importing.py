"""Takes files of others into a scope, checked and on probation: exports of a bank, and memories of other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from lessonbank._base.checks import short_path
from lessonbank._base.iterate import batches
from lessonbank._base.plural import plural
from lessonbank.bank.scoped_bank import ScopedBank, log
from lessonbank.contracts.ports import Imported, Redactor
from lessonbank.contracts.records import (
    UNCHECKED,
    Experience,
    Extraction,
    Lesson,
    Recall,
    Record,
    Settlement,
    Trajectory,
)
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.store_calls import care_of
from lessonbank.errors import FormatError, UsageError
from lessonbank.guard.gate import doubt
from lessonbank.guard.names import checked_name
from lessonbank.guard.quote import redacting_with
from lessonbank.guard.redact import redacted, through
from lessonbank.importers import memories

from . import archive

R = TypeVar("R", bound=Record)
_WRITER = "import"
_TOGETHER = 512
"""Memories that are added together."""


async def import_export(bank: ScopedBank, path: Path, /, *, approved_by: str | None) -> int:
    """Add the records of an export that the scope does not have; how many were new.

    The whole file is checked before anything is written, and the store writes all of it or nothing. Records keep their
    ids and origin and move to the scope. Lessons come in on probation, unless a person (`approved_by`) vouches for
    those that were trusted where they come from. Where wordings are unique, a lesson that is here in the same words is
    not kept twice. Each text is redacted: the other bank may not have been, or may not have known a form of key. A
    record with a time of the future gets the time of this moment, and a warning says so.

    Raises:
        FormatError: not an export, cut short, changed, of an unknown version, or with a time that cannot be.
        Conflict: a lesson of the file belongs to another experience here; nothing was imported.
    """
    if approved_by is not None:
        checked_name(approved_by, what="approved_by=")
    records, late = await to_thread.run_sync(archive.checked, path)
    new = await care_of(bank.store).import_records(
        partial(_portions, records, path, bank.scope, bank.parts.intake.redactor),
        scope=bank.scope,
        writer=_WRITER,
        approved_by=approved_by,
        unique_wording=bank.options.unique_wording,
    )
    if late:
        subject = plural(late, "record has", "records have")
        file = short_path(path)
        log.warning("%s: %s a time of the future, and got the time of this import: check the clocks", file, subject)
    return new


async def import_memories(bank: ScopedBank, path: Path, /, *, approved_by: str | None) -> int | None:
    """Add what another program kept, on probation and all or none; how many were new. `None`: no program's file.

    Raises:
        UsageError: somebody vouches for it.
        Conflict: a lesson belongs to another experience here; nothing was imported.
    """
    with redacting_with(bank.parts.intake.redactor):
        source = await to_thread.run_sync(partial(memories.read, path, scope=bank.scope))
    if source is None:
        return None
    refuse_approval(approved_by, f"{short_path(path)} holds memories of {source.format}, which nobody trusts yet")
    taken = [await _admitted(bank, experience) for experience in source.experiences]
    refused = Counter(draft.rule for experience in taken for draft in experience.rejected)
    if refused:
        log.warning("%s: the gate kept no lesson of %d memories: %s", short_path(path), refused.total(), dict(refused))
    doubted = [_on_probation(experience, bank.scope) for experience in taken if experience.lessons]
    portions = lambda: (Imported(experiences=some) for some in batches(doubted, size=_TOGETHER))  # noqa: E731
    return await care_of(bank.store).import_records(
        portions, scope=bank.scope, writer=_WRITER, unique_wording=bank.options.unique_wording
    )


async def _admitted(bank: ScopedBank, experience: Experience) -> Experience:
    """What the gate leaves of memories that another program kept: redacted, in form, and only what are lessons."""
    drawn = await bank.parts.intake.lessons(Extraction(lessons=experience.lessons), (), shown=())
    update = {
        "task": await bank.parts.intake.task(experience.task),
        "lessons": drawn.lessons,
        "rejected": drawn.rejected,
    }
    return experience.model_copy(update=update)


def refuse_approval(by: str | None, why: str, /) -> None:
    """Raises UsageError where a person vouches for what is no export."""
    if by is not None:
        raise UsageError(
            f"approved_by= is for exports of a bank, and {why}: leave it out, and approve lessons one by one"
        )


def _portions(
    records: Callable[[], Iterator[tuple[Record, int]]], path: Path, scope: str, redactor: Redactor | None
) -> Iterator[Imported]:
    """The records of a file in portions, as they may be kept in `scope`."""
    try:
        for portion in archive.portions(records()):
            yield _portion(portion if redactor is None else _redacted(portion, redactor), scope)
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read {short_path(path)} as an export: {error}; nothing was imported") from error


def _redacted(records: Sequence[Record], redactor: Redactor) -> list[Record]:
    """`records` without secrets in runs and experiences, and in what receipts say."""
    return [
        _redacted_receipt(record, redactor)
        if isinstance(record, Recall)
        else redacted(record, redactor)
        if isinstance(record, Trajectory | Experience)
        else record
        for record in records
    ]


def _redacted_receipt(receipt: Recall, redactor: Redactor) -> Recall:
    """Redact a receipt; one whose text changes gets the digest of the new text."""
    fit = receipt.fit
    if fit and fit.unfitted:
        receipt = receipt.model_copy(
            update={"fit": fit.model_copy(update={"unfitted": through(redactor, fit.unfitted)})}
        )
    task, text = (through(redactor, words) if words else words for words in (receipt.task, receipt.text))
    if (task, text) == (receipt.task, receipt.text):
        return receipt
    proof = digest(text) if receipt.text_digest and text != receipt.text else receipt.text_digest
    return receipt.model_copy(update={"task": task, "text": text, "text_digest": proof})


def _portion(records: Sequence[Record], scope: str) -> Imported:
    experiences = _of(records, Experience, scope)
    return Imported(
        runs=_of(records, Trajectory, None),
        recalls=_of(records, Recall, scope),
        experiences=[_on_probation(experience, scope) for experience in experiences],
        settlements=_of(records, Settlement, scope),
        trusted={e.id: {i.id: i.text for i in e.lessons if i.state == "active"} for e in experiences},
    )


def _of(records: Iterable[Record], kind: type[R], scope: str | None) -> list[R]:
    """The records of one kind, moved to `scope`."""
    matches = [record for record in records if isinstance(record, kind)]
    return matches if scope is None else [_moved(record, scope) for record in matches]


def _moved(record: R, scope: str) -> R:
    return record if getattr(record, "scope", scope) == scope else record.model_copy(update={"scope": scope})


def _on_probation(experience: Experience, scope: str) -> Experience:
    """`experience` trusted no further than anything new: nothing a file says of itself makes it trusted."""
    return experience.model_copy(update={"scope": scope, "lessons": tuple(map(_doubted, experience.lessons))})


def _doubted(lesson: Lesson) -> Lesson:
    risk = lesson.risk or doubt(lesson) or UNCHECKED
    state = "quarantined" if lesson.state == "quarantined" else "probation"
    return lesson.model_copy(update={"state": state, "risk": risk, "approved": False})
