"""Decides what a cure rests on: whether one run shows it, or a second one has to find it out before it is told."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from lessonbank.guard.hazards import OUTPUT, RESULT
from lessonbank.text.error_line import ITS_BRANCH
from lessonbank.text.shell_commands import INSTALLS, TELLS, name_of, program_of, unwrapped, words_of

from ._checks import SCRATCH, check_of
from ._deeds import Command, Deed, Edit
from ._failures import ITS_PATH, JOINED, SENTENCES, Failure

_BRINGS: Final = re.compile(r"(?:(?:\S*python\S* -m |uv )?pip3?|npm|pnpm|brew) (?:install|i|add) ")
_THERE: Final = "already exists"
_OF_PROJECT: Final = re.compile(r"g?make|just|rake|npm|pnpm|yarn|bun|deno|go|.+\.\w+")
"""Programs whose sub-commands are a project's own: what it says itself is worth to be told."""
_SPELLED: Final = re.compile(r"^(?:python3?|py(?: -3)?|pip3?|node(?:js)?)(?=\s)")
_BY_PYTHON: Final = re.compile(r"^(?:python3?|py) -m ")
_FIXES: Final = re.compile(r"--?(?:fix|write|w|in-place)")
"""The option with which a program mends what it checks without it."""
_FORMATS: Final = re.compile(r"(?<![a-z])(?:fmt|format|fix)(?![a-z])")
_PLACES: Final = re.compile(r"-C|--(?:prefix|cwd|dir|directory|project|manifest-path)(?:=.*)?")
"""An option that says in which folder, as `cd` does."""
_DOES_LESS: Final = re.compile(r"--(?:check|dry-run|no-run|list|help|version|verbose|debug|quiet|trace|[\w-]*only)|-v+")
"""What makes a command only look, or do a part."""
_NAMES_FILE: Final = re.compile(r"(?:[A-Za-z]:)?[\w.~][^\s=@:]*[./][^\s=@:]*|(?:[A-Za-z]:)?/\S+")
_BRANCHES: Final = re.compile(r"git (?:checkout|switch) (?:.* )?(?:-[bBcC]|--create|--orphan)\b")
"""What makes a branch: another one in each task."""
_BEGINS: Final = re.compile(r"(?:\S+ ){1,3}(?:create|init|new|clone|scaffold)\b")
"""What begins a project or takes a copy of one, once."""
_SAVES: Final = re.compile(
    r"(?:npm|pnpm|yarn|bun|poetry|cargo|uv) (?:install|i|add)\s(?!-g\b|--global\b)(?:-\S+ )*[^-\s]"
)
"""An install that the project remembers: the next task has it."""
_ON_FILES: Final = re.compile(r"cp|mv|rm|ln|touch|chmod|sed|perl|tee")
_NEW_NAME: Final = re.compile(r"#?\d{5,}|[A-Z]{2,}-\d+|(?=\S*\d)[0-9a-f]{7,40}")
"""A new word of a command that no other task will have."""
_LONG_NUMBER: Final = re.compile(r"\d{6,}")
_NUMBER: Final = re.compile(r"#?\d+|[A-Za-z]+-\d+")
"""What an act shares with the command that failed where both are about one thing of one task."""


def rests_on(failed: Command, by: Command, cure: str, beside: Sequence[Deed], /, *, is_instead: bool) -> str:
    """What a cure rests on; empty where one run shows it: any agent tries what the output says, and of what was done
    beside it each may have got the command through. `by`: the next try; `beside`: what the cure does not tell.
    """
    if cure in SENTENCES:
        return OUTPUT if cure == JOINED else ""
    start, rest, _ = cure.partition(f" {failed.text}")
    is_started = is_instead and rest != "" and {"=", ";", "&"}.isdisjoint(start)
    if not is_started and _names_it(failed, cure, is_instead=is_instead):
        return OUTPUT
    acts = [deed for deed in beside if not isinstance(deed, Command) or not (deed.looks or deed.program == "mkdir")]
    is_known = (is_started or (is_instead and failed.lacks)) and not any(isinstance(deed, Edit) for deed in acts)
    was_tried = any(isinstance(deed, Command) and deed.text in cure for deed in acts)
    shows = (is_known and not was_tried) or not acts
    is_other = not is_instead and failed.misses_another and not INSTALLS.match(cure)
    is_other = is_other or (is_instead and by.folder not in ("", failed.folder))  # was it the folder, or the words?
    is_other = is_other or failed.looks or (failed.has_message and by.script != failed.script)
    return "" if shows and not (is_other or _is_of_one_task(failed, cure, is_instead=is_instead)) else RESULT


def tells_more(failed: Command, after: Failure, /) -> bool:
    """Whether a cure holds more than what failed, and more than any agent tries next, such as another name."""
    new = {*after.cure.split()} - {*after.command.split(), "…", ITS_PATH}
    is_less = program_of(after.cure) == after.program and any(map(_DOES_LESS.fullmatch, new))
    is_renamed = _SPELLED.match(after.command) and _SPELLED.match(after.cure) and not INSTALLS.match(after.cure)
    is_renamed = is_renamed or _BY_PYTHON.sub("", after.cure) == re.sub(r"^pip3", "pip", after.command)
    is_renamed = is_renamed or re.sub(r"^\w*python3? ", "", after.cure) == after.command.removeprefix("./")
    is_more = new or (after.command.endswith(f" {after.cure}") and name_of(after.program) != "git")
    tells = TELLS.match(after.cure) and not TELLS.match(after.command)
    return bool(is_more) and not (is_less or tells or (failed.is_absent and is_renamed))


def _is_of_one_task(failed: Command, cure: str, *, is_instead: bool) -> bool:
    """Whether a cure has names and numbers that no other task will have."""
    words = {*words_of(cure)}
    if _BEGINS.match(failed.text) or (_SAVES.match(cure) and "--no-save" not in words) or words <= failed.words:
        return True
    is_new = any(map(_NEW_NAME.fullmatch, words - failed.words)) or any(map(_LONG_NUMBER.fullmatch, words))
    if is_new or _BRANCHES.match(cure) or (is_instead and _is_of_files(failed, cure)):
        return True
    is_scratch = any(word[:1] in "/~" and SCRATCH.match(word) for word in words)
    return not is_instead and ("…" in cure or is_scratch or any(map(_NUMBER.fullmatch, words & failed.words)))


def _is_of_files(failed: Command, cure: str) -> bool:
    """Whether a command and its next try differ in the files alone that they are about."""
    texts = (re.sub(r"\s--?[\w-]+[= ](?=[\w./~])", " -", text) for text in (failed.text, cure))
    mine, its = ({*words_of(text)[1:]} for text in texts)
    files = (_NAMES_FILE.fullmatch(word) and not word.endswith(f"/{failed.program}") for word in mine ^ its)
    program = program_of(cure)
    return _ON_FILES.fullmatch(program) is not None or (program == failed.program and mine != its and all(files))


def _names_it(failed: Command, cure: str, *, is_instead: bool) -> bool:
    """Whether the output named the cure: what was lacking, what git does, or what the program asks for."""
    printed = failed.printed.replace("_", "-").casefold()
    is_check, fixes = check_of(failed.text) is not None, any(map(_FIXES.fullmatch, words_of(cure)))
    is_its = name_of(program_of(cure)) == name_of(failed.program)
    if (fixes and (is_its or is_check or failed.program == "git commit")) or (is_check and _FORMATS.search(cure)):
        return True  # any agent formats
    asked = _asked(failed, cure, is_instead=is_instead)
    if asked is None:
        return False
    names = (re.escape(word.partition("=")[0].replace("_", "-").casefold()) for word in asked)
    return all(re.search(rf"(?<![\w-]){name}(?![\w-])", printed) for name in names)


def _asked(failed: Command, cure: str, *, is_instead: bool) -> Collection[str] | None:
    """What an output has to name, for any agent to try a cure; `None` where that is the project's own."""
    program, words, brings = program_of(cure), words_of(unwrapped(cure)), _BRINGS.match(cure)
    if is_instead and program == failed.program and {*words_of(cure)[:1]} <= failed.words:
        new = {*words_of(cure)} - failed.words
        if any(map(_PLACES.fullmatch, new)):
            return ()
        return {word for word in new if word.startswith("-")} or new
    if program.startswith("git ") and program != failed.program:
        return {"branch" if ITS_BRANCH in cure else program.removeprefix("git ")}
    if brings and (packages := [word for word in words_of(cure[brings.end() :]) if word[:1] not in "-…"]):
        return packages
    does = " ".join(words[:2])
    if installs := INSTALLS.match(" ".join(words)):
        rest = words[len(installs[0].split()) :]
        is_all = all(word.startswith("-") for word in rest)  # all that the repository names
        is_first = _BRINGS.match(f"{installs[0]} ") and not rest  # any agent begins with that
        return () if is_first else {installs[0], *rest} if is_all else None
    if cure.startswith("cd "):
        return ()  # any agent looks for the folder
    if name_of(program) != name_of(failed.program) or _OF_PROJECT.fullmatch(name_of(program)):
        return None
    return {_THERE} if _THERE in failed.printed else {does, *(word.strip("-") for word in words if word[0] == "-")}
