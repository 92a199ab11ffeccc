"""What the owner of a bank does: count, export, import, erase, back up, verify, rebuild."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, get_args

from anyio import to_thread

from lessonbank._base.checks import (
    a_call,
    a_count,
    a_flag,
    a_mapping,
    a_path,
    a_text,
    maybe_ids,
    maybe_one_of,
    maybe_text,
    one_of,
    short_path,
    some_days,
)
from lessonbank._base.plural import plural
from lessonbank.bank import retention
from lessonbank.bank.outbox import describe_waiting, erase_spooled
from lessonbank.bank.recall_again import kept_cures
from lessonbank.bank.scoped_bank import ScopedBank, log, person
from lessonbank.contracts.records import Counts, Forgotten, Json, Synced
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.settings import REFUSED
from lessonbank.contracts.store_calls import care_of, count_records, forget, get_setting, list_scopes
from lessonbank.errors import StoreError, UsageError
from lessonbank.files.formats import BUDGET, ExportFormat, FileFormat, format_of
from lessonbank.guard import identity
from lessonbank.guard.names import checked_name, name_key
from lessonbank.guard.reviewed import asks
from lessonbank.search import Refusals

from .erasing import Eraser, Erasing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from .lesson_files import LessonFiles


@asks("admin")
@dataclass(frozen=True, slots=True)
class AsyncAdmin:
    """`bank.admin`. Methods act in the scope of the bank, but writers, `scopes`, `backup`, `verify` and `rebuild`."""

    _bank: ScopedBank

    async def counts(self) -> Counts:
        """How much the scope holds."""
        return await count_records(self._bank.store, scope=self._bank.scope)

    async def export(
        self, path: str | Path, /, *, format: ExportFormat = "jsonl", budget: int = BUDGET, all: bool = False
    ) -> int:
        """Write the scope as JSON lines, whole or not at all; how many records. `import_` reads it back losslessly.

        `atif` writes each kept run as a trajectory of ATIF to a file of its own in a folder, and says how many. Another
        `format` writes lessons for people and coding agents, and says how many: between two markers of a file, or of a
        file per topic in a folder (`skill`). The rest of a file stays as it is. The best lessons come first, as many as
        `budget` tokens take, trusted and approved ones only; with `all`, those on probation, too, and marked. A file
        that somebody edited since is refused: `import_` or `sync` reads the edits. Raises UsageError, FormatError,
        StoreUnavailable.
        """
        format = one_of(format, "format=", (*get_args(FileFormat), "jsonl", "atif"))
        budget, all = a_count(budget, "budget="), a_flag(all, "all=")
        if self._bank.is_off("export"):
            return 0
        if format == "jsonl":
            from . import archive  # noqa: PLC0415 - few programs export

            count = await archive.write(self._bank.store, a_path(path), scope=self._bank.scope)
            await self._bank.record_act("admin.export", plural(count, "record"), read_only=True)
            return count
        if format == "atif":
            from lessonbank.files.atif import write_runs  # noqa: PLC0415 - few programs export

            count = await write_runs(self._bank.store, a_path(path), scope=self._bank.scope)
            await self._bank.record_act("admin.export", f"{plural(count, 'run')} as {format}", read_only=True)
            return count
        reports = await self._files.write(a_path(path), format, budget=budget, every=all)
        left_out = sum(report.left_out for report in reports)
        too_many = f"{plural(left_out, 'lesson does', 'lessons do')} not fit the budget of {budget:,} tokens"
        _warn(*([too_many] if left_out else []), *_notes(reports))
        count = sum(report.lessons for report in reports)
        await self._bank.record_act("admin.export", f"{plural(count, 'lesson')} as {format}", read_only=True)
        return count

    async def sync(
        self, path: str | Path, /, *, format: FileFormat | None = None, budget: int = BUDGET, preview: bool = False
    ) -> tuple[Synced, ...]:
        """Read what somebody changed between the markers of a file, as proposals, and write the lessons of now.

        What `export` says of `format` (without one, the file's name tells it) and `budget` holds; what each file got
        and gave. `preview` changes nothing and says what would be. Raises UsageError, FormatError, StoreError.
        """
        file, budget = a_path(path), a_count(budget, "budget=")
        known = maybe_one_of(format, "format=", get_args(FileFormat)) or await to_thread.run_sync(format_of, file)
        if known is None:
            raise UsageError(
                f"the name of {short_path(file)} tells no format: give format=, such as 'claude-md' or 'skill'"
            )
        if self._bank.is_off("sync"):
            return ()
        return tuple(await self._files.sync(file, known, budget=budget, preview=a_flag(preview, "preview=")))

    async def import_(self, path: str | Path, /, *, approved_by: str | None = None) -> int:
        """Add what an export holds and this scope does not have yet, all of it or nothing; how many records were new.

        Files in which other programs keep memories are read, too (`lessonbank.importers.memories.FORMATS`): each memory
        becomes an experience whose metadata say where it comes from, and passes the same gate as what was learned here.

        Lessons keep their origin and come in on probation, whatever the file says. `approved_by`: the name of a person
        who vouches for those that were trusted where the file was written. Unless the profile is `paper`, a lesson that
        is here in the same words is not kept twice: the tasks that taught it show the one that is here.

        Of a file that `export` wrote for people, what somebody changed in it becomes proposals, which a person approves
        (`lessons.proposals`). CLAUDE.md, AGENTS.md, GEMINI.md, rules (.mdc), SKILL.md, or a folder of these, without
        markers of ours: each bullet and section becomes a lesson on probation. How many were new.

        Raises UsageError, NotAllowed, FormatError, Conflict.
        """
        if self._bank.is_off("import_"):
            return 0
        source, approved_by = a_path(path), maybe_text(approved_by, "approved_by=")
        count = await self._imported(source, approved_by)
        approval = f", approved by {approved_by}" if approved_by else ""
        await self._bank.record_act("admin.import", f"{plural(count, 'record')}{approval}")
        return count

    async def _imported(self, source: Path, approved_by: str | None) -> int:
        from .importing import import_export, import_memories, refuse_approval  # noqa: PLC0415 - few programs import

        format = await to_thread.run_sync(format_of, source)
        if format in (None, "markdown"):  # other programs, too, keep what they know in files of any name
            new = await import_memories(self._bank, source, approved_by=approved_by)
            if new is not None:
                return new
        if format is None:
            return await import_export(self._bank, source, approved_by=approved_by)
        refuse_approval(approved_by, f"{short_path(source)} is a file that anybody may have edited")
        reports = await self._files.read(source)
        _warn(*_notes(reports))
        return sum(len(report.proposals) + len(report.added) for report in reports)

    async def reindex(self, *, progress: Callable[[int], None] | None = None) -> int:
        """Embed whatever has no vector in the present space, as after a change of embedder; how many were done.

        Texts that the embedder refused are tried again. Vectors of another dimension are dropped and made again.
        `progress` is called with the number done so far. Raises NotAllowed, ModelError.
        """
        a_call(progress, "progress=")
        if await get_setting(self._bank.store, REFUSED.of(self._bank.scope)):
            await self._bank.store.put_setting(REFUSED.of(self._bank.scope), None)
        done = 0
        catch_up = partial(self._bank.parts.retriever.catch_up, scope=self._bank.scope, most=256)
        while batch := a_count(await catch_up(), "what the retriever's catch_up returns", least=0):
            done += batch
            if progress:
                progress(done)
        await self._bank.record_act("admin.reindex", plural(done, "record"))
        return done

    async def unembedded(self) -> tuple[str, ...]:
        """Which texts the embedder refuses, so that no search by vectors finds them: one sentence each."""
        setting = await get_setting(self._bank.store, REFUSED.of(self._bank.scope))
        refusals = Refusals.read(setting, self._bank.parts.space or "").by_id
        return tuple(
            f"{id}: refused {plural(refusal.tries, 'time')}, last because {refusal.reason}"
            for id, refusal in refusals.items()
        )

    async def purge(
        self,
        *,
        reason: str,
        lesson: str | Sequence[str] | None = None,
        run: str | Sequence[str] | None = None,
        recall: str | Sequence[str] | None = None,
        metadata: Mapping[str, Json] | None = None,
        all: bool = False,
        by: str | None = None,
        preview: bool = False,
    ) -> Erasing:
        """Erase lessons, runs and recalls, everything with some metadata, or the whole scope; what was erased.

        Lessons, runs and recalls take one id or several, and go together: all of them, or none. A run goes with the
        lessons drawn from it, a lesson with those merged from it. A lesson that other runs taught again lives on in
        their words, on probation (`Erasing.successors`): in those that the bank kept, or drawn again from these runs,
        for which a model is asked where the bank has one. Its evidence starts again. Cures that an adapter drew from
        these runs, in a scope of their own, go with them (`Erasing.cures`).

        Nothing brings back what is erased: only an entry without content stays in the journal. `preview` erases
        nothing, asks no model and says what would go.

        Raises UsageError, NotAllowed, NotFound, Conflict, StoreUnavailable.
        """
        if self._bank.is_off("purge"):
            return Erasing()
        reason = await self._bank.parts.intake.sentence(a_text(reason, "reason="))
        named = Erasing(
            lessons=maybe_ids(lesson, "lesson="),
            runs=maybe_ids(run, "run="),
            recalls=maybe_ids(recall, "recall="),
            whole_scope=a_flag(all, "all="),
        )
        fields = None if metadata is None else a_mapping(metadata)
        eraser = Eraser(bank=self._bank, writer=self._bank.writer if by is None else person(by), reason=reason)
        return await (eraser.preview if a_flag(preview, "preview=") else eraser.erase)(named, fields)

    async def forget(self, *, days: float, by: str | None = None) -> Forgotten:
        """Erase runs and recalls that are older than `days`, also of cures. Lessons, counts and evidence stay.

        `Learning(keep_runs=days)` does this automatically. Where the journal leaps by more than a week, what is that
        old only because of the leap is not erased, unless a person (`by`) says that the clock is right. Raises
        UsageError (there is such a leap, and nobody says so: nothing was erased), NotAllowed, StoreUnavailable.
        """
        days, name = some_days(days, "days="), None if by is None else checked_name(by, what="by=")
        before = now() - timedelta(days=days)
        if self._bank.is_off("forget"):
            return Forgotten(before=before)
        store, scope, total = self._bank.store, self._bank.scope, Forgotten(before=before)
        scopes = [*filter(None, (scope, await kept_cures(store, scope)))]
        for each in scopes if name is None else ():
            _, leap = await retention.older_than(store, days, scope=each)
            if leap:
                raise UsageError(leap[0])
        for each in scopes:
            await erase_spooled(self._bank.spool, each, before=before)
            more = await forget(store, scope=each, before=before, writer=name or self._bank.writer)
            total = total.model_copy(update={"runs": total.runs + more.runs, "recalls": total.recalls + more.recalls})
        return total

    async def add_writer(self, name: str, /) -> str:
        """Make a key for a writer, for `bank.scoped(writer=name, key=…)`. Only now can it be read.

        What is told with a key counts as told by that writer. A new key ends the writer's earlier one, also under
        another spelling of the name. Raises UsageError (no name, or a handle made by `scoped()`), NotAllowed.
        """
        return await self._key_for("writer", name, "add_writer")

    async def remove_writer(self, name: str, /) -> None:
        """End the key of a writer. What it told stays.

        Raises UsageError (no such writer, or a handle made by `scoped()`), NotAllowed.
        """
        await self._end_key("writer", name, "remove_writer")

    async def writers(self) -> tuple[str, ...]:
        """The names of writers that have a key, sorted. Raises UsageError on a handle made by `scoped()`."""
        self._bank.check_whole_file("writers")
        return await identity.key_names(self._bank.store, "writer")

    async def add_reviewer(self, name: str, /) -> str:
        """Make a key for a person who decides what is shown, for `bank.scoped(writer=name, key=…)`; only now it can be
        read. A new key ends the earlier one of that name.

        From the first reviewer on, what decides, erases or hands out keys asks for the key of one: the list is
        `lessonbank.guard.reviewed.CALLS`. The bank then keeps the `keep_runs` of this process; only a reviewer changes
        it. Raises UsageError (no name; a handle made by `scoped()` of a bank without reviewers), NotAllowed.
        """
        is_first = not await self.reviewers()
        key = await self._key_for("reviewer", name, "add_reviewer")
        if is_first and key:
            await retention.set_keep_runs(self._bank.store, self._bank.options.keep_runs)
        return key

    async def remove_reviewer(self, name: str, /) -> None:
        """End the key of a reviewer. What that person decided stays. Without any reviewer nothing asks for a key.

        Raises UsageError (no such reviewer), NotAllowed.
        """
        await self._end_key("reviewer", name, "remove_reviewer")

    async def reviewers(self) -> tuple[str, ...]:
        """The names of those who decide what is shown, sorted. None: any program on this machine can decide it."""
        return await identity.key_names(self._bank.store, "reviewer")

    async def _key_for(self, role: identity.Role, name: str, call: str) -> str:
        await self._bank.check_owner(call)
        name = checked_name(name, what="name=")
        if self._bank.is_off(call):
            return ""
        await self._bank.record_act(f"admin.{call}", name)  # first: a new key of the caller's own ends the one in hand
        return await identity.add_key(self._bank.store, role, name)

    async def _end_key(self, role: identity.Role, name: str, call: str) -> None:
        await self._bank.check_owner(call)
        name = a_text(name, call)
        if self._bank.is_off(call):
            return
        if name_key(name) not in await identity.key_names(self._bank.store, role):
            raise UsageError(f"no {role} {name!r} has a key: see bank.admin.{role}s()")
        await self._bank.record_act(f"admin.{call}", name_key(name))
        await identity.end_key(self._bank.store, role, name)

    async def scopes(self) -> tuple[str, ...]:
        """Every scope of the file, sorted. Raises UsageError on a handle made by `scoped()`."""
        self._bank.check_whole_file("scopes")
        return tuple(await list_scopes(self._bank.store))

    async def backup(self, path: str | Path, /) -> None:
        """Copy the whole file as it is now, every scope with its journal and vectors, while others may write to it.

        The copy is a bank. An earlier backup at `path` stays until the new one is whole, checked and on disk.

        Raises:
            UsageError: `path` is the bank itself, a folder or no bank; this bank is not in a file; or a scoped handle.
            StoreUnavailable: the copy cannot be written, or the bank is damaged.
        """
        self._bank.check_whole_file("backup")
        if not self._bank.is_off("backup"):
            await care_of(self._bank.store).backup(a_path(path))
            await self._bank.record_act("admin.backup", read_only=True)

    async def storage(self) -> Mapping[str, str]:
        """What keeps the bank, and how it is: versions, and what its owner should do, in short texts by name.

        Raises UsageError on a handle made by `scoped()`.
        """
        self._bank.check_whole_file("storage")
        storage = dict((await care_of(self._bank.store).verify(tables=False)).storage)
        return {**storage, "spool": await describe_waiting(self._bank.spool)} if self._bank.options.place else storage

    async def verify(self, *, journal: bool = True, records: bool = True) -> tuple[str, ...]:
        """What is wrong with what is stored, one sentence each; empty when nothing was found.

        With `journal`, each record is also compared with what the journal makes of it. Without `records` no record is
        read, nor compared: only whether the file is whole and its tables fit one another. Raises UsageError on a handle
        made by `scoped()`.
        """
        from .journal_check import differences  # noqa: PLC0415 - few programs compare the journal

        self._bank.check_whole_file("verify")
        compared = a_flag(journal, "journal=") and a_flag(records, "records=")
        problems = list((await care_of(self._bank.store).verify(records=a_flag(records, "records="))).problems)
        for scope in await list_scopes(self._bank.store) if compared else ():
            try:
                problems += await differences(self._bank.store, scope=scope)
            except StoreError as error:
                problems.append(f"{scope}: {error}")
        return tuple(problems)

    async def rebuild(self) -> None:
        """Rebuild everything that follows from the records. Missing vectors also need `reindex`.

        Raises UsageError (a handle made by `scoped()` of a bank without reviewers), NotAllowed.
        """
        await self._bank.check_owner("rebuild")
        await care_of(self._bank.store).rebuild()
        await self._bank.record_act("admin.rebuild", read_only=True)

    @property
    def _files(self) -> LessonFiles:
        from .lesson_files import LessonFiles  # noqa: PLC0415 - few banks need files, and a parser of Markdown comes with them

        return LessonFiles(self._bank)


def _notes(reports: Iterable[Synced]) -> Iterator[str]:
    return (note for report in reports for note in report.notes)


def _warn(*notes: str) -> None:
    for note in notes:
        log.warning("%s", note)
