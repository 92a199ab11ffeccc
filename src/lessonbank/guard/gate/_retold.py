"""Tells apart what a lesson that code wrote repeats of its run, and the words that code puts around it.

Such a lesson recommends what was done. Words of its run stand in it as the task, as calls in code marks, and as
messages in quotes; all others are of a fixed few sentences, which sound like nothing.
"""

from __future__ import annotations

import re
from typing import Final

from lessonbank.contracts.records import Lesson

# What is cut to its length may end before the mark is closed.
_CALL = re.compile(r"`[^`\n]*(?:`|\Z)")
_MESSAGE = re.compile(r'\("([^"\n]*)(?:"\)|\Z)')
_WORD = re.compile(r"[^\W\d_]+")
_SLOT = re.compile(r"<[^<>\n]{1,80}>")
_IN_A_ROW = re.compile(r"[^\W\d_]+ [^\W\d_]+")
_OWN: Final = frozenset(
    re.findall(
        r"\w+",
        "a after all an and another approach at attempts before brackets change choice choose difference do "
        "done effect end ended error failed fine first from got had here in it last like looked made no not "
        "on one or order parted past rejected repeat repeated result run same seen start step that the then "
        "there these this times try vain value values was went what when with without worked yet through "
        "again",
    )
)
"""The words of these sentences. None of them names a check, a secret, a person or a rule."""


def retold(lesson: Lesson, /) -> str | None:
    """The task, the messages and the calls with sentences in them that `lesson` repeats.

    `None` if it has words that code does not write: a file may say of any lesson that code wrote it.
    """
    head, _, topic = lesson.title.partition(": ")
    calls, rest = _CALL.findall(lesson.content), _CALL.sub(" ", lesson.content)
    if not _OWN.issuperset(_WORD.findall(f"{head} {_MESSAGE.sub(' ', rest)}".lower())):
        return None
    told = [call for call in calls if _IN_A_ROW.search(_SLOT.sub("", call))]
    return ".\n".join((topic, lesson.description, *_MESSAGE.findall(rest), *told))
