"""Keeps a command of a run that failed, by which key it is found again, and what its cure tells as a lesson."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.records import Lesson, Provenance
from lessonbank.contracts.records.lessons import EXTRACTIVE
from lessonbank.guard.hazards import CHECKS_LESS, may_loosen
from lessonbank.text.error_line import JOINS, SAYS_ERROR
from lessonbank.text.shell_commands import INSTALLS, RUNS, name_of, program_of

from ._checks import check_of
from ._deeds import LACKS

MOST_OF_BOTH: Final = 135
"""Characters of the two commands of a cure: with the words around them they fit one line of 200."""
_FAILED: Final = " failed: "
_TELLING: Final = 20
"""Characters of a line that says what was wrong and not only that it was."""
EDITED: Final = "edit "
ITS_PATH: Final = "<path>"  # what a command was about that another program did instead
ASKED, FREED, JOINED, QUOTED, _AGAIN = "ask", "free", "join", "quote", "again"
SENTENCES: Final = {
    ASKED: "It went through after the person had done something: ask for it.",
    FREED: "It went through outside of the sandbox, which the person has to allow: ask for it.",
    JOINED: "It ran with `;` in the place of `&&`, which this shell does not know.",
    QUOTED: "It went through with quotes around what the shell had misread.",
    _AGAIN: "It went through when it was run again, and nothing else was done.",
}
"""Cures that are no command. `again` stands in episodes of before alone."""
_FILE: Final = re.compile(r"(?<!-\w )(?<= )[\w./~][^\s=@'\"]*\.(?!com\b)[a-z]\w{1,5}(?!\S)")


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that failed, how it can be found again, and what became of it."""

    program: str
    """The program with its sub-command, such as `git push`."""
    error: str
    """The line that says what was wrong, without numbers and places: a key, and never shown."""
    command: str
    at: int
    """The place of its step in the run, from 0."""
    through_at: int | None = None
    """The step in which it went through next; `None` if it did not."""
    cure: str = ""
    """The command that got it through; empty where that cannot be told."""
    is_instead: bool = False
    """Whether the cure did what the command was for, and not what had to come before it."""
    rests_on: str = ""
    """Why one run is too little to tell the cure: the output named it, or something else may have helped."""
    others: frozenset[str] = frozenset()
    """The programs of its line of which each may be the one that failed."""

    @property
    def key(self) -> str:
        """What a cure for it is looked up by."""
        return key_of(self.program, self.error)

    def is_like(self, key: str, /) -> bool:
        """Whether the failure of a key is of the same program with the same words, in whatever sub-command."""
        program, _, error = key.partition(_FAILED)
        is_said = len(self.error) >= _TELLING and bool(SAYS_ERROR.search(self.error))
        is_script = RUNS.fullmatch(f"{program} ") and LACKS.search(error)  # whatever script then lacks the same
        is_of_it = name_of(program) == name_of(self.program) or program in self.others or bool(is_script)
        is_shell = JOINS in error and JOINS in self.error  # whatever program it was to start
        return is_shell or (is_said and error == self.error and is_of_it)

    @property
    def replaced_key(self) -> str:
        """The key of the fact that another program does here what this one was asked for."""
        return key_of(name_of(self.program), "")

    @property
    def _advice(self) -> str:
        if self.cure.startswith(EDITED):
            return f"It went through after an edit of `{self.cure.removeprefix(EDITED)}`."
        if self.cure in SENTENCES:
            return SENTENCES[self.cure]
        is_check, is_same = check_of(self.command) is not None, program_of(self.cure.partition("(")[0]) == self.program
        if is_same and may_loosen(self.command, self.cure, is_check=is_check):
            return f"`{self.cure}` went through: {CHECKS_LESS}."
        if self.is_instead:
            return f"`{self.cure}` went through."
        did = "brought what was not there" if INSTALLS.match(self.cure) else "went through, and then it did"
        return f"`{self.cure}` {did}."

    def lesson(self, run: str, /) -> Lesson:
        """What the cure tells, as a lesson of this run. It has a place: the program."""
        is_as_run = self.is_instead or RUNS.match(self.command)
        command = self.command if is_as_run else _FILE.sub(ITS_PATH, self.command)
        return Lesson(
            title=f"`{_shortened(command, MOST_OF_BOTH - len(self.cure))}` failed here before",
            content=self._advice,
            place=self.program,
            rests_on=self.rests_on,
            provenance=Provenance(
                method=EXTRACTIVE, trajectory_ids=(run,), verdict="success", verdict_source="ground_truth"
            ),
        )


def key_of(program: str, error: str, /) -> str:
    """What a cure is looked up by: the same for the same command that failed in the same way."""
    return f"{program}{_FAILED}{error}"


def _shortened(text: str, most: int) -> str:
    text = re.sub(r"\w+://[^\s\"']+", "<address>", text)
    if len(text) <= most:
        return text
    whole = text[: most - 2].rpartition(" ")[0]  # a word that is cut hides from the redactor what it is
    return f"{whole or program_of(text)[:most]} …"
