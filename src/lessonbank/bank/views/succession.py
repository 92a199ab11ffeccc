"""Finds in whose words lessons live on that go with erased runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from lessonbank._base.aio import get_or_none
from lessonbank.bank.judge_and_extract import JudgeAndExtract
from lessonbank.bank.scoped_bank import ScopedBank, lesson_of, log
from lessonbank.contracts.records import Change, Experience, Lesson, Restore, Run, Trajectory
from lessonbank.contracts.records.repeats import taught_in
from lessonbank.contracts.store_calls import experience_of_lesson, get_trajectories
from lessonbank.guard.quote import quoted
from lessonbank.guard.shown_lines import ShownBlocks
from lessonbank.guard.shown_texts import receipts_in
from lessonbank.guard.wording import wording_of
from lessonbank.learning.consolidation.succession import Heir, Succession, as_new, found_again, passed_on
from lessonbank.learning.outcome import signed

_BACK = "the lesson that stood for it goes with an erased run"
_TRIES = 3
"""Experiences from whose runs one lesson is drawn again at most: a model may be asked for each."""


@dataclass(frozen=True, slots=True)
class Successions:
    """What lives on of the lessons that go with erased runs."""

    passed: tuple[Succession, ...] = ()
    restored: tuple[Succession, ...] = ()
    """Merged lessons that go, and each lesson they stood for that stays. It is shown again."""
    untold: tuple[tuple[str, Heir], ...] = ()
    """Lessons that a model would draw again, by id, each with the first whose runs it would read."""
    heirs: dict[str, tuple[Heir, ...]] = field(default_factory=dict[str, tuple[Heir, ...]])
    """Who taught each of them again, by its id."""
    owners: tuple[Experience, ...] = ()
    """What held them: how far they were trusted is passed on."""

    def changes(self, *, corroborates: bool) -> Sequence[Change]:
        """What passes them on, see `passed_on`."""
        back = tuple(dict.fromkeys(succession.lesson.id for succession in self.restored))
        restore = [Restore(lesson_ids=back, reason=_BACK)] if back else []
        return [*restore, *passed_on(self.passed, self.heirs, corroborates=corroborates)]

    @property
    def basis(self) -> Sequence[Experience]:
        """The records that the decision rests on."""
        heirs = [heir for succession in self.passed for heir in self.heirs[succession.of.id]]
        every = [
            *(heir.experience for heir in heirs),
            *(succession.heir.experience for succession in self.restored),
            *self.owners,
        ]
        return list({experience.id: experience for experience in every}.values())


@dataclass(frozen=True, slots=True)
class SuccessionFinder:
    """Finds the lessons that live on in other runs' words."""

    bank: ScopedBank
    runs: frozenset[str]
    """The ids of the runs that go."""
    lessons: frozenset[str]
    """The ids of all lessons that go."""
    may_ask_model: bool
    """Whether a model may be asked."""
    _heirs: dict[str, Heir] = field(default_factory=dict[str, Heir])
    _drawn: dict[str, Sequence[Lesson]] = field(default_factory=dict[str, Sequence[Lesson]])
    _worded: dict[str, Lesson] = field(default_factory=dict[str, Lesson])
    _freed: set[str] = field(default_factory=set[str])
    """The sources of merged lessons that go: nothing else retired them."""

    async def find(self, ids: Sequence[str], /) -> Successions:
        """What lives on of these lessons, which go because their runs go."""
        successions, untold, owners = list[Succession](), list[tuple[str, Heir]](), list[Experience]()
        heirs = dict[str, tuple[Heir, ...]]()
        restored = [succession for id in ids for succession in await self._restored(id)]
        for id in ids:
            own = await self._heirs_of(id)
            owner = await self._owner(id) if own else None
            if owner is None:
                continue
            heirs[id] = own
            if succession := await self._succession(lesson_of(owner, id), own):
                successions.append(succession)
                owners.append(owner)
            elif not self._may_draw and any(heir.runs for heir in own):
                untold.append((id, next(heir for heir in own if heir.runs)))
        return Successions(tuple(successions), tuple(restored), tuple(untold), heirs, tuple(owners))

    @property
    def _may_draw(self) -> bool:
        return self.may_ask_model or not self.bank.parts.asks_model

    async def _restored(self, id: str) -> list[Succession]:
        """The lessons that a merged one stood for, where it goes and they stay."""
        owner = await self._owner(id)
        made = owner.merged.get(id, ()) if owner else ()
        merged = next((lesson for lesson in owner.active_lessons if lesson.id == id), None) if owner and made else None
        if merged is None:
            return []
        self._freed.update(made)
        stay = [await self._owner(lesson_id) for lesson_id in made if lesson_id not in self.lessons]
        originals = [
            (lesson, experience)
            for experience in stay
            if experience
            for lesson in experience.lessons
            if lesson.id in made and lesson.retired
        ]
        return [
            Succession(merged, lesson, await self._heir(experience), is_new=False) for lesson, experience in originals
        ]

    async def _owner(self, id: str) -> Experience | None:
        """What holds a lesson; `None` where it is gone."""
        return await get_or_none(experience_of_lesson(self.bank.store, id, scope=self.bank.scope))

    async def _heirs_of(self, id: str) -> tuple[Heir, ...]:
        """Who taught a lesson again and stays, the earliest first."""
        every = await self.bank.store.experiences("repeats", [id], scope=self.bank.scope)
        taught = [experience for experience in every if taught_in(experience, id)]
        stay = [
            experience
            for experience in taught
            if not self.runs.issuperset(ref.trajectory_id for ref in experience.attempts)
        ]
        return tuple([await self._heir(experience) for experience in stay])

    async def _heir(self, experience: Experience) -> Heir:
        if experience.id not in self._heirs:
            runs = await self._runs(experience)
            self._heirs[experience.id] = Heir(experience, runs, self.runs)
        return self._heirs[experience.id]

    async def _runs(self, experience: Experience) -> tuple[Trajectory, ...]:
        store, scope = self.bank.store, self.bank.scope
        ids = [ref.trajectory_id for ref in experience.attempts if ref.trajectory_id not in self.runs]
        runs = await get_trajectories(store, ids, scope=scope)
        shown = ShownBlocks(set(await receipts_in(store, runs, scope=scope)))
        return tuple(left for run in runs if (left := _without(run, shown)))

    async def _succession(self, lost: Lesson, heirs: Sequence[Heir]) -> Succession | None:
        tries = 0
        for heir in heirs:
            if (lesson := heir.kept_words(lost)) is not None:
                return await self._passed(lost, await self._checked(lesson, heir), heir)
            if heir.runs and self._may_draw and tries < _TRIES:
                tries += 1
                if (drawn := found_again(await self._drawn_from(heir), lost)) is not None:
                    return await self._passed(lost, drawn, heir)
        return None

    async def _checked(self, lesson: Lesson, heir: Heir) -> Lesson:
        experience = heir.experience.model_copy(update={"lessons": (lesson,), "rejected": ()})
        (checked,) = (await self.bank.parts.intake.experience(experience)).lessons
        return checked

    async def _drawn_from(self, heir: Heir) -> Sequence[Lesson]:
        known = heir.experience
        if known.id not in self._drawn:
            self._drawn[known.id] = await self._signed(heir)
        return self._drawn[known.id]

    async def _signed(self, heir: Heir) -> Sequence[Lesson]:
        verdicts = {ref.trajectory_id: ref.verdict for ref in heir.experience.attempts}
        attempts = [Run(trajectory=run, verdict=verdicts[run.id]) for run in heir.runs]
        try:
            drawn = await JudgeAndExtract(self.bank).extract(attempts, alone=True)
        except Exception as error:  # noqa: BLE001 - an extractor of the caller's own may raise anything; an erasure ends
            log.warning("no lesson could be drawn again from the runs of %s: %s", heir.experience.id, quoted(error))
            return ()
        teller = next((lesson.provenance for lesson in heir.experience.lessons), None)
        writer, identity = (teller.writer, teller.identity) if teller else ("learn", "")
        return [signed(lesson, attempts, writer=writer, identity=identity) for lesson in drawn.lessons]

    async def _passed(self, lost: Lesson, lesson: Lesson, heir: Heir) -> Succession:
        """A lesson of these words that stays takes its place; else the words become a new one."""
        wording = wording_of(lesson)
        if self.bank.options.unique_wording and wording not in self._worded:
            owners = await self.bank.store.experiences("wording", [wording], scope=self.bank.scope)
            every = [candidate for owner in owners for candidate in owner.lessons if wording_of(candidate) == wording]
            self._worded.update((wording, candidate) for candidate in every if candidate.id not in self.lessons)
        if known := self._worded.get(wording):
            return Succession(lost, known, heir, is_new=False)
        new = as_new(lesson, lost, retired=lost.retired and lost.id not in self._freed)
        self._worded[wording] = new
        return Succession(lost, new, heir)


def _without(run: Trajectory, shown: ShownBlocks) -> Trajectory | None:
    """A run without what memory had shown to it; `None` where its metadata are nested too deeply to be read again."""
    text = run.model_dump_json()
    if (left := shown.without(text)) == text:
        return run
    try:
        return Trajectory.model_validate_json(left)
    except ValidationError:
        return None
