"""Lessons in files of people and agents: written between markers, and what somebody changed there read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from anyio import to_thread

from lessonbank._base.checks import short_path
from lessonbank._base.plural import plural
from lessonbank.bank.scoped_bank import ScopedBank
from lessonbank.contracts.records import (
    FILE,
    Add,
    Experience,
    Json,
    Lesson,
    Proposal,
    ProposedChange,
    Provenance,
    Synced,
    TrustState,
)
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import FormatError, LessonbankError, StoreUnavailable, UsageError
from lessonbank.files import disk
from lessonbank.files.block import Block, Entry, Parts, parts, written
from lessonbank.files.foreign import MOST, lessons_of_text
from lessonbank.files.formats import GENERAL, KEPT_ELSEWHERE, SKILL, FileFormat, folder, format_of, head
from lessonbank.guard import one_line
from lessonbank.guard.gate import CONTENT
from lessonbank.guard.wording import wording_of
from lessonbank.importers.memories import ORIGIN
from lessonbank.learning.topics import in_topics
from lessonbank.text.rendering import estimate_tokens

from .selection import Holdings, ranked_entries, within_budget

_FOUND: Final = (SKILL, ".mdc", "CLAUDE.md", "AGENTS.md", "GEMINI.md")
"""How the names of files end that are read of a folder."""
_PLAIN: Final = Provenance(writer=FILE, method=FILE)


@dataclass(frozen=True, slots=True)
class FileOnDisk:
    """A file as it is."""

    path: Path
    format: FileFormat | None
    data: bytes | None
    """`None`: there is none yet."""
    parts: Parts

    @classmethod
    def read(cls, path: Path, format: FileFormat | None, /) -> FileOnDisk:
        """What is there. Raises UsageError, FormatError, StoreUnavailable."""
        data = disk.read(path)
        try:
            return cls(path, format, data, parts(data or b""))
        except FormatError as error:
            raise FormatError(f"cannot use {short_path(path)}: {error}") from error

    @property
    def name(self) -> str:
        """The file's name in the bank: no place of this machine."""
        return f"{self.path.parent.name}/{SKILL}" if self.path.name == SKILL else self.path.name

    @property
    def text(self) -> str:
        """All of it."""
        return (self.data or b"").decode(errors="replace")

    @property
    def block(self) -> Block:
        """Our part. Raises FormatError."""
        return self.parts.read() if self.parts.block else Block()

    def becomes(self, entries: Sequence[Entry], /, *, topic: str = "", title: str = "") -> bytes:
        """The file with these lessons. A new one begins as its readers ask for."""
        block = written(entries, topic=topic)
        if (self.data or b"").strip() or self.format is None:
            return self.parts.with_block(block)
        front = head(self.format, topic=title, name=self.path.parent.name)
        return "\n".join(filter(None, (front, block, ""))).encode()


@dataclass(frozen=True, slots=True)
class Draft:
    """A lesson that a file brings, and what it would change."""

    experience: Experience
    change: Literal["add", "edit", "retire"]
    of: str | None = None

    @property
    def lesson(self) -> Lesson:
        return self.experience.lessons[0]


@dataclass(frozen=True, slots=True)
class LessonFiles:
    """The lessons of a bank as files."""

    _bank: ScopedBank

    async def write(self, path: Path, format: FileFormat, /, *, budget: int, every: bool) -> list[Synced]:
        """Write the lessons. Raises UsageError (somebody's edits were not imported yet), FormatError, StoreError."""
        holdings = await Holdings.read(self._bank)
        plans = await self._plans(path, format, holdings, budget=budget, every=every)
        for plan in plans:
            if (await self._changes(plan.file, holdings))[0]:
                file = short_path(plan.file.path)
                raise UsageError(f"{file} was edited and its edits were not read yet: import it first, or sync it")
        for plan in plans:
            await plan.write()
        return [plan.report() for plan in plans]

    async def read(self, path: Path, /) -> list[Synced]:
        """Read what somebody changed, as proposals; and what people wrote elsewhere, as lessons on probation.

        Of a folder, a file that cannot be used costs the others nothing. Raises UsageError, FormatError, StoreError.
        """
        holdings, reports = await Holdings.read(self._bank), list[Synced]()
        for file in await to_thread.run_sync(partial(_files_of, path)):
            try:
                reports.append(file if isinstance(file, Synced) else await self._read(file, holdings))
            except FormatError as error:
                if path in (file.path, Path(file.path)):
                    raise
                reports.append(_skipped(Path(file.path), error))
        return reports

    async def _read(self, file: FileOnDisk, holdings: Holdings) -> Synced:
        drafts, notes = await self._changes(file, holdings)
        added, more = await self._written_elsewhere(file, holdings)
        await self._add_all([*drafts, *added])
        report = Synced(path=str(file.path), lessons=len(file.block.entries), before=file.text, after=file.text)
        lessons = tuple(draft.lesson for draft in added)
        return report.model_copy(update={**_proposals(drafts, file), "added": lessons, "notes": notes + more})

    async def sync(self, path: Path, format: FileFormat, /, *, budget: int, preview: bool) -> list[Synced]:
        """Read what somebody changed, as proposals, and write the lessons that may be shown.

        Raises UsageError, FormatError, StoreError.
        """
        holdings, reports = await Holdings.read(self._bank), list[Synced]()
        for plan in await self._plans(path, format, holdings, budget=budget, every=False):
            drafts, notes = await self._changes(plan.file, holdings)
            if not preview:
                await self._add_all(drafts)
                await plan.write()
            report = plan.report()
            update = {**_proposals(drafts, plan.file), "notes": (*report.notes, *notes)}
            reports.append(report.model_copy(update=update))
        return reports

    async def _plans(
        self, path: Path, format: FileFormat, holdings: Holdings, *, budget: int, every: bool
    ) -> list[Plan]:
        entries = await ranked_entries(self._bank, holdings, every=every)
        if format == "skill":
            return await to_thread.run_sync(partial(_skills, path, entries, budget=budget))
        selection = within_budget(entries, budget=budget)
        held = await to_thread.run_sync(FileOnDisk.read, path, format)
        return [Plan(held, held.becomes(selection), lessons=len(selection), left_out=len(entries) - len(selection))]

    async def _changes(self, file: FileOnDisk, holdings: Holdings) -> tuple[list[Draft], tuple[str, ...]]:
        """What somebody changed between the markers and nobody proposed yet, and what a reader should know."""
        drafts, notes = list[Draft](), list[str]()
        block = await to_thread.run_sync(lambda: file.block)
        entries = [await self._without_secrets(entry) for entry in block.entries]
        for draft in _differences(Block(tuple(entries), block.shown), file.name, holdings):
            if len(drafts) == MOST:
                raise FormatError(
                    f"more than {MOST} lessons were changed in {short_path(file.path)}: change fewer at once"
                )
            if len(draft.lesson.content) > CONTENT:
                raise FormatError(
                    f"a lesson in {short_path(file.path)} has more than {CONTENT:,} characters: make it shorter"
                )
            checked = await self._checked(draft, "quarantined")
            known = _known(checked, holdings)
            if known is checked.lesson:
                drafts.append(checked)
            elif known.retired or known.provenance.writer != FILE:
                why = "proposed before, and rejected" if known.provenance.writer == FILE else "another lesson says this"
                notes.append(f"{file.name}: {why}: {one_line(checked.lesson.title, limit=80)!r}")
        return drafts, tuple(notes)

    async def _written_elsewhere(self, file: FileOnDisk, holdings: Holdings) -> tuple[list[Draft], tuple[str, ...]]:
        """What people wrote for an agent, each piece as a lesson on probation."""
        if file.parts.block is not None:
            return [], ()
        if file.format not in KEPT_ELSEWHERE:
            raise FormatError(
                f"there are no lessonbank markers in {short_path(file.path)}: name a file that export wrote"
            )
        try:
            text = (file.data or b"").decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{short_path(file.path)} is not UTF-8: save it as UTF-8") from error
        read, drafts = await to_thread.run_sync(lessons_of_text, text), list[Draft]()
        for entry in read.entries:
            bare = await self._without_secrets(entry)
            draft = await self._checked(_new(bare, file.name, holdings, origin=file.format or FILE))
            if holdings.by_wording.setdefault(wording_of(draft.lesson), draft.lesson) is draft.lesson:
                drafts.append(draft)
        cut, known = sum(len(e.content) > CONTENT for e in read.entries), len(read.entries) - len(drafts)
        notes = [f"cut: {plural(cut, 'lesson')} of more than {CONTENT:,} characters"] if cut else []
        notes += [f"skipped: {plural(known, 'lesson')} that the bank has in the same words"] if known else []
        return drafts, tuple(f"{file.name}: {note}" for note in (*read.skipped, *notes))

    async def _without_secrets(self, entry: Entry) -> Entry:
        """The heading names a topic, which nothing redacts later; the rest of an entry becomes a lesson, which is."""
        return replace(entry, topic=await self._bank.parts.intake.task(entry.topic)) if entry.topic else entry

    async def _checked(self, draft: Draft, state: TrustState | None = None) -> Draft:
        """The draft without secrets; its lesson in `state`, whatever it says. What seems to be no lesson waits."""
        safe = await self._bank.parts.intake.experience(draft.experience)
        lesson = safe.lessons[0]
        update = {"state": state or ("quarantined" if lesson.is_doubted else lesson.state)}
        return replace(draft, experience=safe.model_copy(update={"lessons": (lesson.model_copy(update=update),)}))

    async def _add_all(self, drafts: Sequence[Draft]) -> None:
        """All of them, or none."""
        if not drafts:
            return
        vectors, _ = await self._bank.index([draft.experience for draft in drafts])
        new = [Add(experience=draft.experience) for draft in drafts if draft.change == "add"]
        changes = [Add(experience=draft.experience) for draft in drafts if draft.change != "add"]
        in_order, _, _ = await in_topics(self._bank.parts.topics, new)
        # A proposal may say what the lesson says that it would change, but for the line about when to use it.
        await self._bank.apply_embedded((*in_order, *changes), vectors, writer=self._bank.writer, unique_wording=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a file would become."""

    file: FileOnDisk
    after: bytes
    lessons: int
    left_out: int = 0
    notes: tuple[str, ...] = ()

    async def write(self) -> None:
        """Make it so, unless it is so already or somebody changed the file meanwhile. Raises UsageError, StoreError."""
        if self.after != self.file.data:
            await to_thread.run_sync(partial(disk.replace, self.file.path, self.after, earlier=self.file.data))

    def report(self) -> Synced:
        """Say in words what was read and written."""
        return Synced(
            path=str(self.file.path),
            lessons=self.lessons,
            left_out=self.left_out,
            before=self.file.text,
            after=self.after.decode(errors="replace"),
            notes=self.notes,
        )


def _skills(path: Path, entries: Sequence[Entry], *, budget: int) -> list[Plan]:
    """A file for each topic in the folder `path`: where it is already, wherever somebody moved it, or a new one."""
    if path.name == SKILL or path.is_file():
        raise UsageError(f"{short_path(path)} is one skill, and each topic becomes one: name the folder of all skills")
    known = {held.parts.topic: held for held in _marked(path)}
    cost = estimate_tokens(head("skill", topic="x" * 60, name="x" * 60) + written([], topic="x" * 8))
    selection = within_budget(entries, budget=budget, topic_cost=cost)
    topics = {entry.topic_id or GENERAL: entry.topic for entry in selection}
    plans = list[Plan]()
    for id, name in topics.items():
        held = known.pop(id, None) or FileOnDisk.read(path / folder(name, id) / SKILL, "skill")
        own = [replace(entry, topic="") for entry in selection if (entry.topic_id or GENERAL) == id]
        plans.append(Plan(held, held.becomes(own, topic=id, title=name), lessons=len(own)))
    if plans:
        plans[0] = replace(plans[0], left_out=len(entries) - len(selection))
    return plans + [_emptied(held, id) for id, held in known.items()]


def _marked(path: Path) -> Iterator[FileOnDisk]:
    """The skills below a folder that have a part of ours about a topic."""
    for file in disk.below(path, (SKILL,)) if path.is_dir() else ():
        held = FileOnDisk.read(file, "skill")
        if held.parts.topic:
            yield held


def _emptied(held: FileOnDisk, topic: str) -> Plan:
    note = f"{held.name} has no lesson any more: delete its folder if you do not need it"
    return Plan(held, held.becomes([], topic=topic), lessons=0, notes=(note,))


def _files_of(path: Path) -> list[FileOnDisk | Synced]:
    """The file, or those below a folder; of these, one that cannot be read costs the others nothing."""
    if not path.is_dir():
        held = FileOnDisk.read(path, format_of(path))
        if held.data is None:
            raise UsageError(f"there is no file {short_path(path)}")
        return [held]
    files = list[FileOnDisk | Synced]()
    for file in disk.below(path, _FOUND):
        try:
            files.append(FileOnDisk.read(file, format_of(file)))
        except (UsageError, StoreUnavailable) as error:
            files.append(_skipped(file, error))
    if not files:
        raise FormatError(f"no file in {short_path(path)} is a skill, a rule, CLAUDE.md, AGENTS.md or GEMINI.md")
    return files


def _skipped(path: Path, error: LessonbankError) -> Synced:
    return Synced(path=str(path), notes=(f"skipped: {error}",))


def _differences(block: Block, file: str, holdings: Holdings) -> Iterator[Draft]:
    """What somebody changed in a file since it was written, as far as the bank does not say the same by now."""
    for entry in block.edited:
        holding = holdings.find(entry.id) if entry.id else None
        if holding is None or holding[0].retired:
            yield _new(entry, file, holdings)
        elif words := _changed_words(entry, holding[0]):
            yield _change(holding, file, "edit", **words)
    for id in block.removed:
        holding = holdings.find(id)
        if holding is not None and not holding[0].hidden:
            words = {
                "title": f"Retire: {holding[0].title}",
                "description": "",
                "content": f"Somebody took the lesson {holding[0].id} out of {file}.",
            }
            yield _change(holding, file, "retire", **words)


def _known(draft: Draft, holdings: Holdings) -> Lesson:
    """The lesson that says or proposes the same already, or the draft's own, which does so from now on."""
    lesson = draft.lesson
    if draft.of is None:
        wording = wording_of(lesson)
        pending = (proposal for proposal in holdings.proposals.values() if wording_of(proposal) == wording)
        return holdings.by_wording.setdefault(wording, next(pending, lesson))
    other = holdings.by_wording.get(wording_of(lesson), lesson)
    if draft.change == "edit" and other is not lesson and other.id != draft.of:
        return other
    return holdings.proposals.setdefault((draft.of, lesson.text), lesson)


def _changed_words(entry: Entry, lesson: Lesson) -> dict[str, str]:
    """The fields that are other ones than the bank's; what was not touched keeps the letters that it has there."""
    now = Entry.of(lesson)
    fields = {"title": entry.title, "description": entry.when, "content": entry.content}
    held = {"title": now.title, "description": now.when, "content": now.content}
    return {name: text for name, text in fields.items() if text != held[name]}


def _change(holding: tuple[Lesson, Experience], file: str, change: Literal["edit", "retire"], **words: str) -> Draft:
    """A proposal about a lesson of the bank. It is erased with the runs of that lesson, and with the lesson itself."""
    lesson, owner = holding
    origin = Provenance(writer=FILE, method=FILE, trajectory_ids=lesson.provenance.trajectory_ids)
    proposal = Lesson(
        title=words.get("title", lesson.title),
        description=words.get("description", lesson.description),
        content=words.get("content", lesson.content),
        kind=lesson.kind,
        topic=lesson.topic,
        provenance=origin,
    )
    experience = Experience(
        scope=owner.scope,
        task=owner.task,
        lessons=(proposal,),
        proposal=ProposedChange(change=change, lesson_id=lesson.id, was=digest(lesson.text)),
        imported=True,
        metadata={ORIGIN: FILE, FILE: file},
    )
    return Draft(experience, change, lesson.id)


def _new(entry: Entry, file: str, holdings: Holdings, *, origin: str = FILE) -> Draft:
    """A lesson that nobody had told the bank. Its task is what stands above it: that is what retrieval compares."""
    topic = holdings.topic(entry.topic)
    task = f"{entry.topic}: {entry.title}" if entry.topic else entry.title
    lesson = Lesson(title=entry.title, description=entry.when, content=entry.content, topic=topic, provenance=_PLAIN)
    read: dict[str, Json] = {ORIGIN: origin, FILE: file}
    return Draft(Experience(scope=holdings.scope, task=task, lessons=(lesson,), imported=True, metadata=read), "add")


def _proposals(drafts: Iterable[Draft], file: FileOnDisk) -> dict[str, Any]:
    why = f"read in {one_line(file.name, limit=100)}"
    return {
        "proposals": tuple(
            Proposal(lesson=draft.lesson, reason=why, change=draft.change, origin=FILE, of=draft.of) for draft in drafts
        )
    }
