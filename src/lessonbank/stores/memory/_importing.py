"""An import into a scope in memory: planned whole before anything is written, so that a conflict changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessonbank.errors import NotFound
from lessonbank.stores._arrivals import marked, without_claims
from lessonbank.stores._changes import Draft, vouched
from lessonbank.types import Add, Change, Recall, Settle, Settlement, Trajectory
from lessonbank.types.timeline import Entry

from ._scope import Scope, journaled

if TYPE_CHECKING:
    from lessonbank.protocols import Imported


class Import:
    """What an import makes of a scope: `add` every portion, then `write`."""

    def __init__(self, here: Scope, /, *, scope: str, writer: str, approved_by: str | None) -> None:
        self._here, self._scope, self._writer, self._by = here, scope, writer, approved_by
        self._draft = Draft(here, scope=scope)
        self._runs: dict[str, Trajectory] = {}
        self._recalls: dict[str, Recall] = {}
        self._settlements: dict[str, Settlement] = {}
        self.entries: list[tuple[str, Entry]] = []
        """What goes to the journal, each with its writer."""

    @property
    def count(self) -> int:
        """How many records are new."""
        added = len(self._runs) + len(self._recalls) + len(self._draft.added)
        return added + sum(isinstance(entry, Settle) for _, entry in self.entries)

    def add(self, portion: Imported, /) -> None:
        """Plan one portion. Raises Conflict, NotFound."""
        here = self._here
        portion = marked(portion, scope=self._scope)
        self._runs |= {r.id: r for r in portion.runs if r.id not in here.trajectories and r.id not in self._runs}
        self._recalls |= {r.id: r for r in portion.recalls if r.id not in here.recalls and r.id not in self._recalls}
        for experience in portion.experiences:
            if not self._draft.knows(experience.id):
                self._change(Add(experience=without_claims(experience, self)), self._writer)
        for settlement in portion.settlements:
            self._settle(settlement)
        for id, texts in portion.trusted.items() if self._by else ():
            kept = self._draft.written.get(id) or here.experience(id)
            trust = vouched(kept, texts, by=self._by or "") if kept else None
            if trust:
                self._change(trust, self._by or "")

    def has_run(self, id: str, /) -> bool:
        """See `Before.has_run`."""
        return id in self._here.trajectories or self._here.holding([id]) is not None

    def made_recall(self, id: str, /) -> bool:
        """See `Before.made_recall`."""
        return id in self._here.recalls and not self._here.recalls[id].imported

    def has_lesson(self, id: str, /) -> bool:
        """See `Before.has_lesson`."""
        return self._here.owner(id) is not None

    def write(self) -> None:
        """Do what was planned."""
        here = self._here
        for run in self._runs.values():
            here.keep(run)
        here.recalls.update(self._recalls)
        here.settlements.update(self._settlements)
        for experience in self._draft.written.values():
            here.write(experience)
        for writer, entry in self.entries:
            journaled(here.journal, [entry], scope=self._scope, writer=writer)

    def _change(self, change: Change, writer: str) -> None:
        self._draft.do(change)
        self.entries.append((writer, change))

    def _settle(self, settlement: Settlement) -> None:
        id = settlement.recall_id
        if id not in self._here.recalls and id not in self._recalls:
            raise NotFound(f"no recall {id!r} in this scope")
        present = self._settlements.get(id) or self._here.settlements.get(id)
        if present is None and not self.made_recall(id):
            self._settlements[id] = settlement
            self.entries.append((self._writer, Settle(settlement=settlement)))
