"""Draws cures from a run: a command or call that failed, and what was done before it went through.

By exit codes and flags alone, and never by words: what an output says is only the key by which a cure is found again.
Of a call of a tool a cure tells the names of the tool and of its arguments, and never a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import Final

from lessonbank.contracts.records import Trajectory
from lessonbank.guard.hazards import RESULT
from lessonbank.text.error_line import BRANCH, ITS_BRANCH, JOINS, NO_SCRIPT, PLACELESS, WALLED, error_in
from lessonbank.text.shell_commands import (
    INSTALLS,
    RUNS,
    SAYS,
    TELLS,
    name_of,
    operands_of,
    parts_in,
    program_of,
    stands_for,
    start_of,
)

from ._checks import check_of
from ._deeds import (
    LONGEST,
    NAME,
    PATTERN,
    Command,
    Deed,
    Edit,
    Spoke,
    commands_in,
    is_plain,
    lacked_by,
    lines_of,
    missing_modules,
)
from ._failures import ASKED, EDITED, FREED, ITS_PATH, JOINED, MOST_OF_BOTH, QUOTED, Failure
from ._grounds import rests_on, tells_more

_SOON: Final = 12
"""Commands and edits after a failure among which the next try is looked for."""
_DOCUMENT: Final = re.compile(
    r"(?:change(?:s|log)|news|history|readme|version|releases?)(?:\.\w{1,4})?|[\w.-]+\.(?:md|rst|adoc)|\.env(?:\.\w+)?",
    re.IGNORECASE,
)
"""What no check reads for its rules: an error that names such a file can be cured by an edit of it."""
_JOINT: Final = "a && b"
"""What failed where the shell does not know how commands are joined: whatever they are."""
_PASSES: Final = re.compile(r"(?i)index\.lock|\b(?:is|are) locked\b|resource busy|timed? ?out|try again later")
"""What programs say of a state that passes by itself: what was done meanwhile is no cure."""
_PERSONS: Final = re.compile(r"(?i)permission denied|publickey|authentication ?failed|agent refused|no device")
"""What programs say that lack a right or a device of the person; how to log in they say themselves."""
_OPENS: Final = re.compile(
    r"(?i)\W{0,20}(?:\w{0,40}(?:error|exception)|traceback|fatal|failed)\b(?!\W{0,3}(?:none|null|false|0)\b)"
)
_RECORDS: Final = ("git add", "git commit")  # what keeps a change got no other command through
_TO_BRANCH: Final = re.compile(r"^(git (?:checkout|switch) (?:-\w+ )*)(?=\S*\d)[\w./-]+$")
"""A command that goes to a branch with a number: that of one task."""
_NOTHING: Final = re.compile(r"Everything up-to-date|Already up[- ]to[- ]date")
_WORDS: Final = re.compile(r"(?:[^\s\"']|\"[^\"]*\"|'[^']*'|[\"'])+")
_PATHS: Final = re.compile(rf"\"?{ITS_PATH}\"?(?: \"?{ITS_PATH}\"?)*")
_OF_ONE_TASK: Final = re.compile(r"(?=\S*\d)[\w.:-]{4,}|\"(?=.*\d)[^\"]{4,}\"|(?=.*\w).*[/\\].*")
"""A word that a command and its next try share, and that the same command in another task has not."""


def failure_of(line: str, printed: str, /) -> Failure | None:
    """A command that failed just now, of several that lead to one another the last; `None` where it only looks."""
    failed = [command for command in commands_in(line, 1, printed, set()) if command.can_teach]
    if not failed:
        return None
    others = frozenset(command.program for command in failed)
    return Failure(failed[-1].program, error_in(printed), failed[-1].text, 0, others=others)


def opens_with_error(printed: str, /) -> bool:
    """Whether what a tool gave says at once that it failed, where its program does not tell it."""
    return _OPENS.match(printed) is not None


def failures_in(run: Trajectory, /, exit_codes: Mapping[str, int]) -> list[Failure]:
    """The commands of a run that failed, with what got them through."""
    lines, failures = list(lines_of(run, exit_codes)), list[Failure]()
    for at, line in enumerate(lines):
        commands = [deed for deed in line if isinstance(deed, Command)]
        if failed := [command for command in commands if command.can_teach]:
            later = [deed for deeds in lines[at + 1 : at + 1 + _SOON] for deed in deeds]
            failures += _of_line(failed, later, commands)
    return failures


def _of_line(failed: Sequence[Command], later: Sequence[Deed], line: Sequence[Command]) -> Iterator[Failure]:
    """What became of the commands of a line of which one failed: the next try tells which."""
    tries = [(command, _followed(command, later, line)) for command in failed]
    cured = [(command, failure) for command, failure in tries if failure.cure]
    if len([failure for _, failure in cured if failure.cure not in (FREED, JOINED)]) > 1:  # these are of a whole line
        cured = _likely(cured, failed[0].printed)
        tries[-1] = (failed[-1], replace(tries[-1][1], cure=""))
    command, failure = cured[0] if cured else tries[-1]
    failure = failure if failure.cure else _with_what_it_lacked(failed[0], later) or failure
    drawn = (failure, *_replaced(command, later))
    drawn = [each if tells_more(command, each) else replace(each, cure="") for each in drawn]
    has_cure = any(each.cure for each in drawn)
    yield from drawn if has_cure else [_reworded(failed, later) or drawn[0], *drawn[1:]]


def _reworded(line: Sequence[Command], later: Sequence[Deed]) -> Failure | None:
    """The next try in other words, with no edit before it: that these got it through, only a second run can tell."""
    tries = [deed for deed in takewhile(lambda deed: not _edits(deed), later) if isinstance(deed, Command)]
    for failed, again in ((failed, again) for failed in reversed(line) for again in tries if again.rewords(failed)):
        shown, cure = _of_any_task(failed.text if failed.is_plain else f"{failed.program} …", again.text)
        cure = cure if len(shown + cure) <= MOST_OF_BOTH else _added(failed, again)
        at, error = (failed.at, again.at), error_in(failed.printed)
        failure = Failure(failed.program, error, shown, *at, cure, is_instead=True, rests_on=RESULT)
        is_shown = len(cure) <= LONGEST and is_plain(cure) and not again.looks
        if is_shown and tells_more(failed, failure):
            return failure
        if again.is_requoted(failed):
            return replace(failure, cure=QUOTED)
    return None


def _likely(cured: Sequence[tuple[Command, Failure]], printed: str) -> Sequence[tuple[Command, Failure]]:
    """Of several commands that were cured, the one that the output names; any where the same cured them all."""
    texts = (error_in(printed), printed)
    in_error, in_all = ([pair for pair in cured if pair[0].is_named_in(text)] for text in texts)
    if in_error or len(in_all) == 1:
        return in_error or in_all
    if len({failure.cure for _, failure in cured}) > 1:
        cured = [(command, replace(failure, rests_on=RESULT)) for command, failure in cured]
    if all(failure.cure.startswith("cd ") for _, failure in cured):  # the first one has failed for that
        return cured[:1]
    return [(command, failure) for command, failure in cured if command.program not in _RECORDS] or cured


def _of_any_task(failed: str, cure: str) -> tuple[str, str]:
    """A command and its next try without the paths and names that both hold: another task has others."""
    for word in set(parts_in(cure)[1:]).intersection(parts_in(failed)[1:]):
        if _OF_ONE_TASK.fullmatch(word) and not word.startswith("-"):
            place, pattern = ITS_PATH if {"/", "\\"} & {*word} else "<value>", rf"(?<![^\s=]){re.escape(word)}(?!\S)"
            failed, cure = (re.sub(pattern, place, text) for text in (failed, cure))
    return failed, cure


def _followed(failed: Command, later: Sequence[Deed], line: Sequence[Command]) -> Failure:
    """What became of a command; the others of its own line are no cure when they are tried again."""
    shown = failed.text if failed.is_plain else f"{failed.program} …"
    failure = Failure(failed.program, error_in(failed.printed), shown, failed.at)
    if failed.program in ("tee", "rm"):  # what comes before them is fed to them, or makes what they take away
        return failure
    done = ((n, deed.spelled_as(failed)) for n, deed in enumerate(later) if isinstance(deed, Command))
    tries = ((n, command) for n, command in done if command.is_again(failed))
    others = ((n, command) for n, command in tries if not (command.part.is_doubtful or command.says_again(failed)))
    place, again = next(others, (0, None))
    if again is None or not again.got_past(failed):
        return failure
    same = {command.program for command in line if command is not failed}
    between = [deed for deed in later[:place] if not (isinstance(deed, Command) and deed.program in same)]
    cure = _cure(failed, again, between, failure.error)
    is_instead = cure.endswith(again.text)
    beside = [deed for deed in between if not _is_in(deed, cure)]
    ground = rests_on(failed, again, cure, beside, is_instead=is_instead)
    for branch in BRANCH.findall(failed.printed):
        cure = re.sub(rf"(?<![\w.-]){re.escape(branch)}(?![\w.-])", ITS_BRANCH, cure)
    shown, cure = _fitted(failed, again, shown, cure)
    shown = _JOINT if cure == JOINED else shown
    cure = cure if len(cure) <= LONGEST and is_plain(cure) else ""
    return replace(failure, command=shown, through_at=again.at, cure=cure, is_instead=is_instead, rests_on=ground)


def _is_in(deed: Deed, cure: str) -> bool:
    """Whether a cure tells of a deed, or that only keeps what was changed."""
    if isinstance(deed, Command):
        return deed.text in cure or deed.program in _RECORDS
    return isinstance(deed, Edit) and deed.file != "" and deed.file in cure


def _fitted(failed: Command, again: Command, shown: str, cure: str) -> tuple[str, str]:
    """A failed command and its cure, without what is of one task, or is too long: then only what differs is shown."""
    if not cure.endswith(again.text) or (not again.varies(failed) and len(cure) <= LONGEST):
        return shown, cure
    before = cure.removesuffix(again.text)
    command, text = _of_any_task(failed.text, again.text)
    if len(before + text) <= LONGEST and (again.words > failed.words or len(command + text) <= MOST_OF_BOTH):
        return command, before + text
    is_told = before or again.words > failed.words or again.renames(failed) or again.quotes(failed)
    return shown, f"{before}{_added(failed, again)}" if is_told else ""


def _added(failed: Command, again: Command) -> str:
    """A command with the words that another one had not, and those of its program."""
    shown, known = again.program.split(), {*failed.words}
    words = _WORDS.findall(again.text)
    named = PATTERN.search(failed.printed)
    shown += [f"{quote}{named[1]}{quote}" for quote in "'\"" if named]
    new = [word.strip("\"'") not in known for word in (*words[1:], "")]
    tells = (is_new or (word[0] == "-" and next) for word, is_new, next in zip(words[1:], new, new[1:], strict=False))
    pairs = zip(words[1:], tells, strict=True)
    rest = [word if is_told or {word, word.rpartition("/")[2]} & {*shown} else "…" for word, is_told in pairs]
    return re.sub(r"…(?: …)+", "…", " ".join((*words[:1], *rest)))


def _brings(text: str, failed: Command, before: Sequence[Deed]) -> bool:
    """Whether a command installs what an error names, or all that the repository names and named before."""
    installs = INSTALLS.match(text)
    if installs is None or (failed.text.startswith("/") and not text.startswith("/")):  # of another interpreter
        return False
    is_tool = RUNS.match(failed.text) or stands_for(program_of(text), failed.program)
    if failed.is_absent and "-m" not in failed.words and is_tool:
        return False  # no package brings an interpreter, or what installs packages
    words = {word.strip("'\"") for word in text[installs.end() :].split() if not word.startswith((".", "-"))}
    named = {re.split(r"[<>=\[]|(?<=.)@", word)[0].replace("-", "_").casefold() for word in words}
    is_named = not lacked_by(failed).isdisjoint({part for word in named for part in (word, word.rpartition("/")[2])})
    is_in = any(len(name) > 3 and name in word for name in missing_modules(failed) for word in named)
    is_all = (not named or " -r " in text) and not any(map(_edits, before))
    return is_named or is_in or is_all


def _with_what_it_lacked(failed: Command, later: Sequence[Deed]) -> Failure | None:
    """What installed a module or a program that was not there, where the first try that got further needs it."""
    done = [(n, deed) for n, deed in enumerate(later) if isinstance(deed, Command)]
    tries = [(n, command) for n, command in done if command.shows(failed)]
    place, again = next(((n, c) for n, c in tries if c.ran and not c.says_again(failed)), (0, None))
    installs = [(n, c) for n, c in done if n < place and c.code == 0 and _brings(c.text, failed, later[:n])]
    if again is None or not failed.lacks or not installs:
        return None
    at, install = installs[-1]
    is_again = any(at < n < place or (n > at and command.says_again(failed)) for n, command in tries)
    if is_again or (install.part.is_hidden and any(at < n < place and not command.looks for n, command in done)):
        return None
    ground = rests_on(failed, again, install.text, later[:at], is_instead=False)
    error = error_in(failed.printed)
    return Failure(failed.program, error, failed.text, failed.at, again.at, install.text, rests_on=ground)


def _replaced(failed: Command, later: Sequence[Deed]) -> Iterator[Failure]:
    """What failed with one program, and went through with another that stands for it: in whatever words it fails."""
    done = [(n, deed) for n, deed in enumerate(later) if isinstance(deed, Command)]
    place, acted = next(((n, command) for n, command in done if not command.looks), (0, None))
    is_unknown = NO_SCRIPT.search(failed.printed) is not None and not failed.is_absent
    stands = acted is not None and acted.stands_for(failed)
    if acted is None or acted.code != 0 or not stands:
        is_open = failed.is_absent or is_unknown
        place, acted = next(((n, command) for n, command in done if is_open and command.replaces(failed)), (0, None))
    if acted is None:
        return
    command, cure = (failed.text, acted.text[:LONGEST]) if is_unknown else _without_paths(failed, acted, stands=stands)
    if is_unknown or (len(cure) <= LONGEST and is_plain(cure)):
        ground = rests_on(failed, acted, acted.text, later[:place], is_instead=True)
        program, error = (failed.program, error_in(failed.printed)) if is_unknown else (name_of(failed.program), "")
        yield Failure(program, error, command, failed.at, acted.at, cure, is_instead=True, rests_on=ground)


def _without_paths(failed: Command, acted: Command, *, stands: bool) -> tuple[str, str]:
    """A command and what another program did instead, without what both are about and what stands behind it."""
    same = operands_of(failed.text) & operands_of(acted.text)
    command, cure = (
        _PATHS.sub(ITS_PATH, reduce(lambda text, word: text.replace(word, ITS_PATH), same, deed.text))
        for deed in (failed, acted)
    )
    before, path, _ = cure.partition(ITS_PATH)
    if not path and (start := start_of(cure, failed.program)) and not cure.endswith(failed.text.partition(" ")[2]):
        return f"{start_of(failed.text, failed.program)} …", f"{start} …"
    if not path and stands and failed.is_absent and not (len(cure) <= LONGEST and is_plain(cure)):
        return f"{failed.program} …", f"{acted.program} …"
    return command, before + path


def _cure(failed: Command, again: Command, between: Sequence[Deed], error: str) -> str:
    """What was edited is of one task, so it is no cure, unless the error names that document."""
    done = [deed for deed in between if isinstance(deed, Command) and deed.helps(failed)]
    edited = {getattr(deed, "file", "") for deed in between if _edits(deed) and deed not in done}
    acted = [command for command in done if not _did_nothing(failed, command)]
    is_same = again.words == failed.words
    if again.is_free and not failed.is_free:
        inside = [command for command in acted if not command.is_free]
        return FREED if WALLED.search(failed.printed) or (is_same and not (inside or edited)) else ""
    if JOINS in failed.printed:
        return JOINED if is_same else ""
    if failed.is_unread:  # what else is new in it had no part in that
        return again.text if again.text != failed.text and again.quotes(failed) else ""
    if failed.looks and not SAYS.fullmatch(failed.text):
        return ""
    if failed.is_absent and not acted and again.prepared not in ("", failed.prepared):
        return _prepared(again)
    if not is_same and again.text != failed.text:
        return "" if len(failed.words) == 1 and not check_of(failed.text) else again.text  # it said how it is used
    if edited:
        file = next(iter(edited))
        is_named = len(edited) == 1 and bool(_DOCUMENT.fullmatch(file)) and file in error
        return f"{EDITED}{file}" if is_named and not acted else ""
    return _act(failed, acted) if acted else _same(failed, again, between)


def _edits(deed: Deed) -> bool:
    return isinstance(deed, Edit) or (isinstance(deed, Command) and deed.edits and deed.code <= 0)


def _act(failed: Command, acted: Sequence[Command]) -> str:
    """What was done before it went through: of two both, else what the error names, else the last."""
    if TELLS.match(failed.text) or _PASSES.search(failed.printed):
        return ""
    acts = [command for command in acted if command.program not in _RECORDS] or acted
    named = [command for command in acts if command.is_named_in(failed.printed)]
    is_pair = len(acts) == 2 and len({name_of(command.program) for command in acts}) == 1
    acts = acts if is_pair else named or acts
    both = " && ".join(command.text for command in acts)
    act = both if len(acts) == 2 and len(both) <= LONGEST else acts[-1].text
    act = _TO_BRANCH.sub(rf"\1{ITS_BRANCH}", act)
    return act if len(act) <= LONGEST else ""


def _did_nothing(failed: Command, acted: Command) -> bool:
    """Whether a command changed nothing, or needs what was not there."""
    is_same = failed.is_absent and name_of(acted.program) == name_of(failed.program)
    return is_same or acted.program == "git stash" or _NOTHING.search(acted.printed) is not None


def _prepared(again: Command) -> str:
    return f"{again.prepared}{'; ' if again.prepared.startswith('$') else ' && '}{again.text}"


def _entered(failed: Command, again: Command) -> str:
    """The folder in which it went through."""
    *above, name = again.folder.split("/")
    if above and f"/{failed.folder}".endswith(f"/{name}"):  # both are called that
        name = f"{above.pop()}/{name}"
    place = f"…/{name}" if above else name
    return f"cd {place} && {again.text}" if all(map(NAME.fullmatch, name.split("/"))) else ""


def _same(failed: Command, again: Command, between: Sequence[Deed]) -> str:
    """Why the same command went through, where nothing was done but to prepare it in its line, to enter or to wait."""
    if again.prepared != failed.prepared:
        return _prepared(again) if again.prepared else ""
    if again.text != failed.text:  # the same thing by another name
        return again.text if PLACELESS.search(failed.printed) else ""
    if again.folder not in ("", failed.folder):
        return _entered(failed, again)
    if check_of(failed.text) not in (None, "the release"):
        return ""  # a test may only be flaky
    has_spoken = any(isinstance(deed, Spoke) for deed in between)
    return ASKED if has_spoken and _PERSONS.search(failed.printed) else ""
