"""The notes of a recall and of a learn: each has a level and a code, so that a program can tell what went wrong."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, Literal

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from lessonbank._base.patterns import compiled

NoteLevel = Literal["info", "warning", "error"]
"""`info`: all is well. `warning`: look at it. `error`: memory did not do what it was asked to."""

_OTHER: Final = ("other", "warning")
_KINDS: Final[tuple[tuple[str, NoteLevel, str], ...]] = (
    ("off", "info", "memory is switched off"),
    ("taught_again", "info", "taught again, and kept once"),
    ("joined", "info", "joined: "),
    ("no_lesson", "info", "the model says that there is no lesson|nothing was extracted|nothing general was drawn"),
    ("no_lesson", "info", "no attempt |no topic has |looking back over the topic "),
    ("withheld", "info", "(?:all memory|the lessons that were found|each lesson that was found) (?:was|were) withheld"),
    ("empty", "info", "there is no lesson in scope"),
    ("no_match", "info", "no past task in|nothing reached the floor|past tasks found:"),
    ("not_shown", "info", "no lesson in scope .* may be shown|no lesson that was found fits"),
    ("none_fits", "info", "the model that read the task kept none"),
    ("submitted", "info", "kept, to be learned in the background"),
    ("known_run", "info", "learned by another call or process|known already"),
    ("asleep", "info", r"\d+ lessons? (?:was|were) (?:put to sleep|removed)|\d+ lessons? woke up"),
    ("erased", "info", r"\d+ lessons? that this task found"),
    ("graded", "info", "the rewards? .* taken for"),
    ("waits", "warning", ".* waits for a person: "),
    ("slots", "info", ".*: values of this one run became slots"),
    ("lesson_dropped", "info", "not kept: |.* was dropped: |.* cites what the run does not show|.* beyond the limit"),
    ("left_out", "info", r"\d+ .*left out"),
    ("another_task", "warning", "another task: "),
    ("settled_again", "warning", "settled again: |settled before: "),
    ("another_writer", "warning", "told by another writer: "),
    ("contradiction", "warning", "run .* was learned as a .* and is now said to be"),
    ("not_judged", "warning", "not judged: "),
    ("not_measured", "warning", ".*: this run is not measured"),
    ("not_compared", "warning", ".* is kept as a new lesson, because"),
    ("proposed", "warning", "(?:the lesson .* is|.* lessons are) (?:shown to harm|.*: approve )"),
    ("unfinished", "warning", r"the block ended without finish\(\)"),
    ("not_fitted", "warning", "not fitted: "),
    ("words_only", "warning", "searched by (?:the )?words|.* a vector yet|.* cannot be found, because the embedder"),
    ("upkeep", "warning", "old runs were not erased|what only a leap|this bank keeps runs"),
    ("upkeep", "warning", "lessons were not put to|the evidence was not reviewed|nothing was drawn from looking back"),
    ("misused", "warning", "finish was given both|this attempt is finished|of metadata= the|a run takes .* notes"),
    ("hook_failed", "warning", "a hook failed after"),
    ("no_memory", "error", "the agent works without memory: |the agent goes on without a second look"),
    ("receipt_not_kept", "error", "this receipt is not kept yet"),
    ("not_learned", "error", "nothing was learned|no lesson was drawn, the run is kept|the attempt could not be kept"),
    ("unreadable", "error", "the messages could not be read|a step was not noted|a note is not in the inbox"),
)
_OPENINGS: Final = "|".join(f"({opening})" for _, _, opening in _KINDS)
_LEVELS: Final[dict[str, NoteLevel]] = {code: level for code, level, _ in _KINDS}
_READ: Final = 400


class Note(str):
    """A sentence of `notes`, with a level and a code that stays the same when its words change.

    Records keep the sentence alone: notes of older banks and of a server have level and code, too.
    """

    __slots__ = ("__dict__",)

    @cached_property
    def code(self) -> str:
        """The note's subject, such as `taught_again`; `other` for what a part of somebody else's says."""
        match = compiled(_OPENINGS).match(self[:_READ])
        return _KINDS[match.lastindex - 1][0] if match and match.lastindex else _OTHER[0]

    @property
    def level(self) -> NoteLevel:
        """How much it matters: info, warning or error."""
        return _LEVELS.get(self.code, "warning")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


def notes_of(*sentences: str) -> tuple[Note, ...]:
    """Sentences as notes."""
    return tuple(map(Note, sentences))
