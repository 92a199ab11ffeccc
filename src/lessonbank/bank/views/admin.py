"""What the owner of a bank does: count, export, import, erase, back up, verify, rebuild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, get_args

from anyio import to_thread

from lessonbank._base.aio import get_or_none
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
from lessonbank._base.iterate import closing, paged
from lessonbank._base.plural import plural
from lessonbank.bank import retention
from lessonbank.bank.handle import Handle, log, person
from lessonbank.bank.outbox import erase_spooled, said_of
from lessonbank.bank.recall_again import AFTER, kept_cures
from lessonbank.contracts.ports import RecallFilter, RunFilter
from lessonbank.contracts.records import (
    Counts,
    Erasure,
    Experience,
    Extraction,
    Forgotten,
    Json,
    Recall,
    Run,
    Synced,
    target_of,
)
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.settings import REFUSED
from lessonbank.contracts.store_calls import (
    care_of,
    count_records,
    experience_of_lesson,
    forget,
    get_recall,
    get_setting,
    get_trajectory,
    list_recalls,
    list_scopes,
    purge_one,
)
from lessonbank.errors import Conflict, StoreError, UsageError
from lessonbank.files.formats import BUDGET, ExportFormat, FileFormat, format_of
from lessonbank.guard import identity
from lessonbank.guard.names import checked_name, name_key
from lessonbank.guard.quote import redacting_with
from lessonbank.guard.reviewed import asks
from lessonbank.importers import memories
from lessonbank.search import Refusals

from . import archive
from .journal_check import differences
from .succession import Erasing as Erasing
from .succession import Successions, SuccessionSearch, with_successors
from .succession import Successor as Successor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from .files import LessonFiles


@asks("admin")
@dataclass(frozen=True, slots=True)
class AsyncAdmin:
    """`bank.admin`. Methods act in the scope of the bank, but writers, `scopes`, `backup`, `verify` and `rebuild`."""

    _handle: Handle

    async def counts(self) -> Counts:
        """How much the scope holds."""
        return await count_records(self._handle.store, scope=self._handle.scope)

    async def export(
        self,
        path: str | Path,
        /,
        *,
        format: ExportFormat = "jsonl",
        budget: int = BUDGET,
        all: bool = False,
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
        if self._handle.skips("export"):
            return 0
        if format == "jsonl":
            count = await archive.write(self._handle.store, a_path(path), scope=self._handle.scope)
            await self._handle.note_act("admin.export", plural(count, "record"), read_only=True)
            return count
        if format == "atif":
            count = await archive.write_runs(self._handle.store, a_path(path), scope=self._handle.scope)
            await self._handle.note_act("admin.export", f"{plural(count, 'run')} as {format}", read_only=True)
            return count
        told = await self._files.write(a_path(path), format, budget=budget, every=all)
        left_out = sum(one.left_out for one in told)
        too_many = f"{plural(left_out, 'lesson does', 'lessons do')} not fit the budget of {budget:,} tokens"
        _warn(*([too_many] if left_out else []), *_notes(told))
        count = sum(one.lessons for one in told)
        await self._handle.note_act("admin.export", f"{plural(count, 'lesson')} as {format}", read_only=True)
        return count

    async def sync(
        self,
        path: str | Path,
        /,
        *,
        format: FileFormat | None = None,
        budget: int = BUDGET,
        preview: bool = False,
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
        if self._handle.skips("sync"):
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
        if self._handle.skips("import_"):
            return 0
        source, approved_by = a_path(path), maybe_text(approved_by, "approved_by=")
        count = await self._imported(source, approved_by)
        approval = f", approved by {approved_by}" if approved_by else ""
        await self._handle.note_act("admin.import", f"{plural(count, 'record')}{approval}")
        return count

    async def _imported(self, source: Path, approved_by: str | None) -> int:
        format = await to_thread.run_sync(format_of, source)
        if format in (None, "markdown"):  # other programs, too, keep what they know in files of any name
            with redacting_with(self._handle.parts.intake.redactor):
                found = await to_thread.run_sync(partial(memories.read, source, scope=self._handle.scope))
            if found is not None:
                told_by = f"{short_path(source)} holds memories of {found.format}, which nobody trusts yet"
                _refuse_approval(approved_by, told_by)
                return await self._remember(found, short_path(source))
        if format is not None:
            _refuse_approval(approved_by, f"{short_path(source)} is a file that anybody may have edited")
            told = await self._files.read(source)
            _warn(*_notes(told))
            return sum(len(one.proposals) + len(one.added) for one in told)
        return await archive.read(
            self._handle.store,
            source,
            scope=self._handle.scope,
            writer="import",
            approved_by=approved_by,
            one_wording=self._handle.options.unique_wording,
            redactor=self._handle.parts.intake.redactor,
        )

    async def _remember(self, found: memories.Memories, name: str) -> int:
        taken = [await self._admitted(one) for one in found.experiences]
        refused = Counter(draft.rule for one in taken for draft in one.rejected)
        if refused:
            log.warning("%s: the gate kept no lesson of %d memories: %s", name, refused.total(), dict(refused))
        kept = [one for one in taken if one.lessons]
        return await archive.add(
            self._handle.store,
            kept,
            scope=self._handle.scope,
            writer="import",
            one_wording=self._handle.options.unique_wording,
        )

    async def _admitted(self, experience: Experience) -> Experience:
        """What the gate leaves of memories that another program kept: redacted, in form, and only what are lessons."""
        drawn = await self._handle.parts.intake.lessons(Extraction(lessons=experience.lessons), (), shown=())
        told = {
            "task": await self._handle.parts.intake.task(experience.task),
            "lessons": drawn.lessons,
            "rejected": drawn.rejected,
        }
        return experience.model_copy(update=told)

    async def reindex(self, *, progress: Callable[[int], None] | None = None) -> int:
        """Embed whatever has no vector in the present space, as after a change of embedder; how many were done.

        Texts that the embedder refused are tried again. Vectors of another dimension are dropped and made again.
        `progress` is called with the number done so far. Raises NotAllowed, ModelError.
        """
        a_call(progress, "progress=")
        if await get_setting(self._handle.store, REFUSED.of(self._handle.scope)):
            await self._handle.store.put_setting(REFUSED.of(self._handle.scope), None)
        done = 0
        while batch := await self._handle.parts.retriever.catch_up(scope=self._handle.scope, most=256):
            done += batch
            if progress:
                progress(done)
        await self._handle.note_act("admin.reindex", plural(done, "record"))
        return done

    async def unembedded(self) -> tuple[str, ...]:
        """Which texts the embedder refuses, so that no search by vectors finds them: one sentence each."""
        kept = await get_setting(self._handle.store, REFUSED.of(self._handle.scope))
        refusals = Refusals.read(kept, self._handle.parts.retriever.space or "").by_id
        return tuple(
            f"{id}: refused {plural(told.tries, 'time')}, last because {told.reason}" for id, told in refusals.items()
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
        if self._handle.skips("purge"):
            return Erasing()
        reason = await self._handle.parts.intake.sentence(a_text(reason, "reason="))
        named = Erasing(
            lessons=maybe_ids(lesson, "lesson="),
            runs=maybe_ids(run, "run="),
            recalls=maybe_ids(recall, "recall="),
            whole_scope=a_flag(all, "all="),
        )
        wanted = await self._wanted(named, None if metadata is None else a_mapping(metadata))
        writer = self._handle.writer if by is None else person(by)
        waiting = {"ids": {*named.runs, *wanted.recalls}, "metadata": metadata, "all": all}
        erase_waiting = partial(erase_spooled, self._handle.spool, self._handle.scope, **waiting)
        spooled, cures = await erase_waiting(preview=True), await self._cures_of(wanted, metadata)
        wanted = wanted.model_copy(update={"spooled": len(spooled), "cures": cures and cures[1]})
        found, held = Successions(), await self._held(wanted, frozenset[str]().union(*spooled))
        if a_flag(preview, "preview="):
            await self._check_there(await self._held(named, frozenset[str]().union(*spooled)))
            return with_successors(wanted, await self._successions(held, named.lessons, pays=False))
        if wanted.whole_scope:
            await purge_one(self._handle.store, "scope", "", scope=self._handle.scope, writer=writer, reason=reason)
        else:
            found = await self._erase(held, named.lessons, writer=writer, reason=reason)
        if cures and not cures[1].empty:
            runs, lessons, recalls = cures[1].runs or None, cures[1].lessons or None, cures[1].recalls or None
            await cures[0].purge(run=runs, lesson=lessons, recall=recalls, all=all, reason=reason, by=by)
        await erase_waiting()  # last: where the bank refuses, all of it stays
        return with_successors(wanted, found)

    async def _erase(self, held: Erasing, named: Sequence[str], *, writer: str, reason: str) -> Successions:
        """Erase what the bank holds; what lives on of it."""
        these: Sequence[tuple[Erasure, str]] = [
            *(("trajectory", id) for id in held.runs),  # first: their lessons go with them
            *(("lesson", id) for id in held.lessons),
            *(("recall", id) for id in held.recalls),
        ]
        erase = partial(self._handle.store.purge, these, scope=self._handle.scope, writer=writer, reason=reason)
        for tries_left in (2, 1, 0) if these else ():
            found = await self._successions(held, named, pays=True)
            try:
                changes = found.changes(corroborates=self._handle.options.corroborates)
                await erase(changes=changes, unchanged=found.unchanged)
            except Conflict:  # others learned from what it was decided upon
                if not tries_left:
                    raise
            else:
                return found
        return Successions()

    async def _cures_of(
        self, wanted: Erasing, metadata: Mapping[str, Json] | None
    ) -> tuple[AsyncAdmin, Erasing] | None:
        """What goes with it of cures, in the scope of their own: those drawn from these runs, and recalls in them."""
        scope = await kept_cures(self._handle.store, self._handle.scope)
        if scope is None:
            return None
        below = AsyncAdmin(replace(self._handle, scope=scope))
        if wanted.whole_scope:
            return below, wanted
        own = Erasing() if metadata is None else await below._wanted(Erasing(), metadata)
        lessons = await below._with_derived((*wanted.runs, *own.runs), own.lessons)
        runs = await self._handle.store.runs(RunFilter(ids=wanted.runs), scope=self._handle.scope)
        found = [await below._recalls_with({AFTER: run.recall_id}) for run in runs if run.recall_id]
        recalls = tuple(dict.fromkeys(chain(own.recalls, *found)))
        return below, Erasing(lessons=lessons, runs=own.runs, recalls=recalls)

    async def _successions(self, wanted: Erasing, named: Sequence[str], *, pays: bool) -> Successions:
        """What lives on of the lessons that go with runs. What a person named, or goes with it, does not."""
        if named and not wanted.runs:
            return Successions()
        named = await self._with_derived((), named)
        search = SuccessionSearch(self._handle, frozenset(wanted.runs), frozenset(wanted.lessons), pays=pays)
        return await search.find([id for id in wanted.lessons if id not in named])

    async def forget(self, *, days: float, by: str | None = None) -> Forgotten:
        """Erase runs and recalls that are older than `days`, also of cures. Lessons, counts and evidence stay.

        `Learning(keep_runs=days)` does this automatically. Where the journal leaps by more than a week, what is that
        old only because of the leap is not erased, unless a person (`by`) says that the clock is right. Raises
        UsageError (there is such a leap, and nobody says so: nothing was erased), NotAllowed, StoreUnavailable.
        """
        days, name = some_days(days, "days="), None if by is None else checked_name(by, what="by=")
        before = now() - timedelta(days=days)
        if self._handle.skips("forget"):
            return Forgotten(before=before)
        if name is None:
            _, leap = await retention.older_than(self._handle.store, days, scope=self._handle.scope)
            if leap:
                raise UsageError(leap[0])
        writer = name or self._handle.writer
        await erase_spooled(self._handle.spool, self._handle.scope, before=before)
        told = await forget(self._handle.store, scope=self._handle.scope, before=before, writer=writer)
        if cures := await kept_cures(self._handle.store, self._handle.scope):
            more = await forget(self._handle.store, scope=cures, before=before, writer=writer)
            told = told.model_copy(update={"runs": told.runs + more.runs, "recalls": told.recalls + more.recalls})
        return told

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
        self._handle.check_whole_file("writers")
        return await identity.key_names(self._handle.store, "writer")

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
            await retention.keep(self._handle.store, self._handle.options.keep_runs)
        return key

    async def remove_reviewer(self, name: str, /) -> None:
        """End the key of a reviewer. What that person decided stays. Without any reviewer nothing asks for a key.

        Raises UsageError (no such reviewer), NotAllowed.
        """
        await self._end_key("reviewer", name, "remove_reviewer")

    async def reviewers(self) -> tuple[str, ...]:
        """The names of those who decide what is shown, sorted. None: any program on this machine can decide it."""
        return await identity.key_names(self._handle.store, "reviewer")

    async def _key_for(self, role: identity.Role, name: str, call: str) -> str:
        await self._handle.check_owner(call)
        name = checked_name(name, what="name=")
        if self._handle.skips(call):
            return ""
        await self._handle.note_act(f"admin.{call}", name)  # first: a new key of the caller's own ends the one in hand
        return await identity.add_key(self._handle.store, role, name)

    async def _end_key(self, role: identity.Role, name: str, call: str) -> None:
        await self._handle.check_owner(call)
        name = a_text(name, call)
        if self._handle.skips(call):
            return
        if name_key(name) not in await identity.key_names(self._handle.store, role):
            raise UsageError(f"no {role} {name!r} has a key: see bank.admin.{role}s()")
        await self._handle.note_act(f"admin.{call}", name_key(name))
        await identity.end_key(self._handle.store, role, name)

    async def scopes(self) -> tuple[str, ...]:
        """Every scope of the file, sorted. Raises UsageError on a handle made by `scoped()`."""
        self._handle.check_whole_file("scopes")
        return tuple(await list_scopes(self._handle.store))

    async def backup(self, path: str | Path, /) -> None:
        """Copy the whole file as it is now, every scope with its journal and vectors, while others may write to it.

        The copy is a bank. An earlier backup at `path` stays until the new one is whole, checked and on disk.

        Raises:
            UsageError: `path` is the bank itself, a folder or no bank; this bank is not in a file; or a scoped handle.
            StoreUnavailable: the copy cannot be written, or the bank is damaged.
        """
        self._handle.check_whole_file("backup")
        if not self._handle.skips("backup"):
            await self._handle.note_act("admin.backup", read_only=True)  # first: the copy's journal is the bank's
            await care_of(self._handle.store).backup(a_path(path))

    async def storage(self) -> Mapping[str, str]:
        """What keeps the bank, and how it is: versions, and what its owner should do, in short texts by name.

        Raises UsageError on a handle made by `scoped()`.
        """
        self._handle.check_whole_file("storage")
        told = dict((await care_of(self._handle.store).verify(tables=False)).storage)
        return {**told, "spool": await said_of(self._handle.spool)} if self._handle.options.place else told

    async def verify(self, *, journal: bool = True, records: bool = True) -> tuple[str, ...]:
        """What is wrong with what is stored, one sentence each; empty when nothing was found.

        With `journal`, each record is also compared with what the journal makes of it. Without `records` no record is
        read, nor compared: only whether the file is whole and its tables fit one another. Raises UsageError on a handle
        made by `scoped()`.
        """
        self._handle.check_whole_file("verify")
        compared = a_flag(journal, "journal=") and a_flag(records, "records=")
        found = list((await care_of(self._handle.store).verify(records=a_flag(records, "records="))).problems)
        for scope in await list_scopes(self._handle.store) if compared else ():
            try:
                found += await differences(self._handle.store, scope=scope)
            except StoreError as error:
                found.append(f"{scope}: {error}")
        return tuple(found)

    async def rebuild(self) -> None:
        """Rebuild everything that follows from the records. Missing vectors also need `reindex`.

        Raises UsageError (a handle made by `scoped()` of a bank without reviewers), NotAllowed.
        """
        await self._handle.check_owner("rebuild")
        await care_of(self._handle.store).rebuild()
        await self._handle.note_act("admin.rebuild", read_only=True)

    @property
    def _files(self) -> LessonFiles:
        from .files import LessonFiles  # noqa: PLC0415 - few banks need files, and a parser of Markdown comes with them

        return LessonFiles(self._handle)

    async def _wanted(self, named: Erasing, metadata: Mapping[str, Json] | None) -> Erasing:
        """What was named, with all that goes with it. Raises UsageError."""
        ids = bool(named.lessons or named.runs or named.recalls)
        if ids + named.whole_scope + (metadata is not None) != 1 or metadata == {}:
            raise UsageError(
                "purge takes ids (lesson=, run=, recall=, each one or several), or metadata={…}, or all=True: "
                "exactly one of the three"
            )
        if named.whole_scope:
            return named
        if metadata is None:
            runs, recalls, lessons = named.runs, named.recalls, named.lessons
        else:
            runs, recalls = await self._runs_with(metadata), await self._recalls_with(metadata)
            lessons = await self._without_runs(metadata)
        return Erasing(lessons=await self._with_derived(runs, lessons), runs=runs, recalls=recalls)

    async def _without_runs(self, metadata: Mapping[str, Json]) -> tuple[str, ...]:
        """The lessons with some metadata that no run taught: written by hand, or kept by another program."""
        found = list[str]()
        async with closing(self._handle.store.scan(scope=self._handle.scope)) as every:
            async for one in every:
                if not one.attempts and metadata.items() <= one.metadata.items():
                    found += [lesson.id for lesson in one.lessons]
        return tuple(found)

    async def _with_derived(self, runs: Sequence[str], lessons: Sequence[str]) -> tuple[str, ...]:
        """The lessons that go with runs and lessons: those drawn from a run, those of experiences with no other run,
        and what was merged from any of these or would change one."""
        gone, found = set(runs), dict.fromkeys(lessons)
        if not gone and not found:
            return ()
        resting = list[tuple[set[str | None], tuple[str, ...]]]()
        async with closing(self._handle.store.scan(scope=self._handle.scope)) as every:
            async for one in every:
                attempts = {ref.trajectory_id for ref in one.attempts}
                whole = bool(attempts) and attempts <= gone
                drawn = [i.id for i in one.lessons if whole or gone.intersection(i.provenance.trajectory_ids)]
                found |= dict.fromkeys(drawn)
                if on := {target_of(one), *chain(*one.merged.values())} - {None}:
                    resting.append((on, tuple(lesson.id for lesson in one.lessons)))
        while more := [id for on, ids in resting if not on.isdisjoint(found) for id in ids if id not in found]:
            found |= dict.fromkeys(more)
        return tuple(found)

    async def _held(self, wanted: Erasing, waiting: frozenset[str]) -> Erasing:
        """`wanted` without the ids that only waited on this machine, so that the bank does not have them."""
        store, scope = self._handle.store, self._handle.scope

        async def is_held(find: Callable[..., Awaitable[object]], id: str) -> bool:
            return id not in waiting or await get_or_none(find(store, id, scope=scope)) is not None

        runs = [id for id in wanted.runs if await is_held(get_trajectory, id)]
        recalls = [id for id in wanted.recalls if await is_held(get_recall, id)]
        return wanted.model_copy(update={"runs": tuple(runs), "recalls": tuple(recalls)})

    async def _check_there(self, wanted: Erasing) -> None:
        """Refuse ids that are not there now. The purge itself also finds what only the journal still holds."""
        store, scope = self._handle.store, self._handle.scope
        for id in wanted.lessons:
            await experience_of_lesson(store, id, scope=scope)
        for id in wanted.runs:
            await get_trajectory(store, id, scope=scope)
        for id in wanted.recalls:
            await get_recall(store, id, scope=scope)

    async def _runs_with(self, metadata: Mapping[str, Json]) -> tuple[str, ...]:
        async def page(limit: int, after: str | None) -> Sequence[Run]:
            return await self._handle.store.runs(
                RunFilter(metadata=metadata, limit=limit, after=after), scope=self._handle.scope
            )

        return tuple([run.trajectory.id async for run in paged(page, lambda run: run.trajectory.id)])

    async def _recalls_with(self, metadata: Mapping[str, Json]) -> tuple[str, ...]:
        async def page(limit: int, after: str | None) -> Sequence[Recall]:
            wanted = RecallFilter(metadata=metadata, limit=limit, after=after)
            return await list_recalls(self._handle.store, wanted, scope=self._handle.scope)

        return tuple([recall.id async for recall in paged(page, lambda recall: recall.id)])


def _refuse_approval(by: str | None, why: str) -> None:
    if by is not None:
        raise UsageError(
            f"approved_by= is for exports of a bank, and {why}: leave it out, and approve lessons one by one"
        )


def _notes(told: Iterable[Synced]) -> Iterator[str]:
    return (note for one in told for note in one.notes)


def _warn(*notes: str) -> None:
    for note in notes:
        log.warning("%s", note)
