"""The parts of a ledger without its store: what a bank does with its evidence, many times as fast as the bank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lessonbank.contracts.withholding import Withholding
from lessonbank.evidence import AdaptiveHoldout
from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.review import Review, review
from lessonbank.evidence.stored_ledger import harmful_treatments, treatment_reviews

from .playing import SCOPE, Come, recall_id
from .rows import Receipts, Straight
from .stream import Stream
from .truth import Change, Drawn, changes

_FIRST, _SHARE = 20, 0.05
"""The rhythm of a bank's reviews: after so many new outcomes, and so large a share of all."""


@dataclass(frozen=True, slots=True)
class Looked:
    """One review."""

    task: int
    """The last task before it."""
    episodes: Episodes
    found: Review


class Pure:
    """A policy, the columns, and the reviews of both."""

    def __init__(
        self, stream: Stream, policy: Withholding, /, *, acts: bool = True, receipts: bool = False, truth: bool = True
    ) -> None:
        """`receipts`: by way of receipts and settlements. `truth`: keep what was true of each draw, to compare with."""
        self.truth = truth
        self.policy, self.reviews = policy, list[Looked]()
        self.changes: dict[int, list[Change]] = {}
        """What each recall could tell, and the truth of it."""
        self.rows = Receipts() if receipts else Straight(stream)
        self.said: dict[tuple[str, str], int] = {}
        """By treatment and word: after how many tasks a review said it first."""
        self._numbers, self._acts, self._out = stream.numbers, acts, set[str]()
        self._lessons = {lesson.id: lesson for lesson in stream.lessons}
        self._told, self._reviewed, self._task = 0, 0, 0

    def draw(self, task: int, stream: Stream, placed: Sequence[int], /) -> Drawn:
        """See `Bank.draw`."""
        members = {stream.lessons[n].id: stream.lessons[n].groups for n in placed}
        made = self.policy(members, recall_id=recall_id(task), task="", scope=SCOPE)
        groups = {draw.group: (draw.withheld, draw.probability) for draw in made.groups}
        lessons = tuple((id in made.withheld, made.probability[id]) for id in members)
        return Drawn((made.control, made.control_probability), groups, lessons)

    def note(self, come: Come, /) -> Iterable[int]:
        """See `Bank.note`."""
        self._task = come.task
        told = self.changes[come.task] = changes(come.stream, come.task, come.placed, come.drawn, with_truth=self.truth)
        self.rows.add(come, told)
        self._told += len(come.said)
        if not come.said or self._told - self._reviewed < max(_FIRST, _SHARE * self._reviewed):
            return ()
        return self.review()

    def review(self) -> list[int]:
        """Look at the evidence. Returns the lessons that it takes back."""
        episodes = self.rows.episodes()
        found = review(episodes)
        self._reviewed = self._told
        self.reviews.append(Looked(self._task, episodes, found))
        if isinstance(self.policy, AdaptiveHoldout):
            self.policy.tell(SCOPE, treatment_reviews(episodes, found))
        self._say(episodes, found)
        if not self._acts:
            return []
        out = {id for _, ids in harmful_treatments(episodes, found) for id in ids} - self._out
        self._out |= out
        self.rows.restart({group for id in out for group in self._lessons[id].groups}, self._task)
        return sorted(self._numbers[id] for id in out)

    def _say(self, episodes: Episodes, found: Review) -> None:
        """Note what is said for the first time."""
        for treatment, word in zip(episodes.treatments, found.standing, strict=True):
            if word != "no evidence yet":
                self.said.setdefault((treatment, word), self._task + 1)
