"""Tells of a run that changes code what a reviewer asks for: the final change, the code around it, the last tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise

from lessonbank.contracts.records import Trajectory

from ._scenes import Block, Line, Rank, Scene, observed
from ._went import with_result

_AROUND = 15
"""Lines around a hunk, as they were read, that are worth their place."""
_TELLING_LINE = 12  # characters of code by which a place is known again, where it is one line
_DIFF = re.compile(r"^(?:diff --git |--- (?:a/|\S+\t)|\+\+\+ b/)", re.M)
_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.M)
_EDIT = re.compile(
    r"\bsed -i|\bperl -p?i|\bcat\s*>|\btee\b|<<\s*['\"]?\w+|(?:^|[;&|]\s*|\$ )patch\s"
    r"|git (?:apply|checkout|stash|restore|reset)"
    r"|str_replace|\binsert\b|\bcreate\b|apply_patch|write|\bEdit\b|\.replace\(|open\((?:(?!open\()[^)])*?['\"][wa]",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"^.{0,120}?(?:\bcat\s*>+|\btee\b(?: -a)?)\s*(\S+)")
_INSTALL = re.compile(
    r"\b(?:pip3?|conda|mamba|apt(?:-get)?|npm|yarn|poetry|uv|brew|gem|cargo|easy_install)\b[^\n|;&]{0,40}"
    r"\b(?:install|sync|add|update|develop)\b"
)
_LIST = re.compile(r"^\W*(?:\w+\W+)?(?:cd \S+ && )?(?:ls|find|tree|pwd|git (?:log|status))\b")
_TEST = re.compile(r"pytest|unittest|\btox\b|nosetests|runtests|manage\.py test|(?:npm|go|cargo|make|mvn|bin/)\s*test")
_RUN = re.compile(r"\b(?:python3?|node|ruby|go run|cargo run)\s+\S|\./\S+")
_SHOWN = re.compile(r"\bcat\s+(?=\S*(?:patch|diff))\S++\s*+$|\bgit diff\b(?:(?!\bgit diff\b)[^>|])*+$")
"""Commands that show the change, perhaps an earlier form of it. Linear: no try reads what the next one reads again."""
_SUMMARY = re.compile(
    r"\d+ (?:passed|failed|errors?|deselected|xfailed)\b|^Ran \d+ tests?|^OK\b|^FAILED\b|^FAIL:|^ERROR:"
    r"|^(?:E  |AssertionError)"
    r"|\bFAILED\b|tests? (?:passed|failed)|no tests ran"
)
_PASSED = re.compile(r"\bPASSED\b|\bok$|^\S+\.py [.sx]+\s|Warning\b|^\s*warnings\.warn|site-packages")
_FETCHED = re.compile(
    r"^\s*(?:Collecting|Downloading|Installing|Requirement already|Using cached|Preparing|Building|Get:|Unpacking)"
)
_WRAPPED = re.compile(r"</?output>|<returncode>0</returncode>")
_NUMBERED = re.compile(r"^\s*\d+[\s:|\t-]+")


@dataclass(frozen=True, slots=True)
class _Change:
    """What was left behind: the step that shows it last, its files, its hunks, and the last edit of those files."""

    shown: int
    files: frozenset[str]
    places: frozenset[tuple[str, str]]
    """What stood there before: each line with the one after it, without blank lines."""
    edited: int


def code(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """The final change decides, then the tests after the last edit, the place that was changed, reproductions."""
    change = _final(scenes)
    if change is None:
        return scenes
    ranked = [_ranked(scene.seen(_unwrapped), change).seen(_repeated) for scene in scenes]
    return _around(ranked, change)


def is_diff(text: str, /) -> bool:
    """Whether a text shows a change as a diff."""
    return len(_DIFF.findall(text)) >= 2 and "\n@@" in text


def _final(scenes: Sequence[Scene], /) -> _Change | None:
    """The last diff that was shown; where none was, the edits themselves are the change."""
    edits = [scene for scene in scenes if _EDIT.search(scene.acts)]
    for scene, block in reversed(list(observed(scenes))):
        if is_diff(text := block.text):
            files = frozenset(_FILE.findall(text)) - {"/dev/null"}
            names = {file.rpartition("/")[2] for file in files}
            of_files = [edit.number for edit in edits if _edits(edit.acts, names)]
            before = [number for number in of_files if number <= scene.number]
            return _Change(
                scene.number, files, frozenset(chain.from_iterable(map(_places, _hunks(text)))), max(before, default=0)
            )
    calls = any(block.kind == "call" for scene in edits for block in scene.blocks)
    return _Change(0, frozenset(), frozenset(), edits[-1].number) if calls and len(edits) > 1 else None


def _edits(acts: str, names: Collection[str], /) -> bool:
    """Whether a call writes to one of the files; a script that is written to a file may name others."""
    whole = _WRITTEN.search(acts)
    target = whole[1] if whole else acts
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}\b", target) for name in names)


def _hunks(diff: str, /) -> Iterator[list[str]]:
    """By hunk: the lines that were there before, those taken away and those that stand around."""
    hunk = list[str]()
    for line in diff.split("\n"):
        if line.startswith(("@@", "diff --git ", "--- ", "+++ ")):
            yield hunk
            hunk = []
        elif line[:1] in ("-", " ") and line[1:].strip():
            hunk.append(line[1:].strip())
    yield hunk


def _places(hunk: Sequence[str], /) -> Iterator[tuple[str, str]]:
    """How a place is known again: by two lines in a row, since one stands in many places, or by one that tells."""
    if len(hunk) == 1 and len(hunk[0]) >= _TELLING_LINE:
        yield hunk[0], ""
    yield from pairwise(hunk)


def _ranked(scene: Scene, change: _Change, /) -> Scene:
    acts = scene.acts
    after = scene.number > change.edited
    if _INSTALL.search(acts):
        return scene.seen(lambda block: block.ranked(lambda line: max(line.rank, Rank.OLD)))
    scene = scene.seen(partial(_diff, number=scene.number, change=change))
    if _TEST.search(acts):
        scene = scene.seen(lambda block: block.ranked(partial(_of_tests, after=after)))
    elif _EDIT.search(acts):
        scene = scene.only("call", partial(_script, change=change))
    elif _RUN.search(acts):
        scene = scene.seen(lambda block: block.ranked(partial(_of_script, after=after)))
    elif _LIST.search(acts):
        scene = scene.seen(lambda block: block.ranked(lambda line: max(line.rank, Rank.OLD)))
    scene = scene.seen(lambda block: block.ranked(_without_noise))
    return scene.seen(with_result) if any(kind.search(acts) for kind in (_TEST, _RUN, _SHOWN)) else scene


def _unwrapped(block: Block, /) -> Block:
    """It, without the frame that says no more than that a command was run and went well."""
    return replace(block, lines=tuple(line for line in block.lines if not _WRAPPED.fullmatch(line.text)))


def _repeated(block: Block, /) -> Block:
    """It, with a line that says a third time in a row what the two before say ranked last."""
    lines = list(block.lines)
    for at in range(2, len(lines)):
        if lines[at].text == lines[at - 1].text == lines[at - 2].text:
            lines[at] = lines[at]._replace(rank=Rank.NOISE)
    return replace(block, lines=tuple(lines))


def _diff(block: Block, /, *, number: int, change: _Change) -> Block:
    """The final diff whole; an earlier one of the same files says nothing more."""
    if not is_diff(block.text):
        return block
    if number == change.shown:
        return block.ranked(lambda line: Rank.DECIDES)
    same = set(_FILE.findall(block.text)) <= change.files
    return block.ranked(lambda line: Rank.NOISE if same else line.rank)


def _of_tests(line: Line, /, *, after: bool) -> Rank:
    if _SUMMARY.search(line.text):
        return Rank.DECIDES if after else Rank.CONTEXT
    return Rank.NOISE if _PASSED.search(line.text) else max(line.rank, Rank.SAID) if after else Rank.OLD


def _of_script(line: Line, /, *, after: bool) -> Rank:
    return min(line.rank, Rank.STATE if after else Rank.SAID)


def _script(block: Block, /, *, change: _Change) -> Block:
    """An edit's own text says no more than the diff does, where there is one."""
    if not change.shown:
        return block.ranked(lambda line: min(line.rank, Rank.DECIDES))
    return block.ranked(lambda line: line.rank if line.rank == Rank.MUST else Rank.REST)


def _without_noise(line: Line, /) -> Rank:
    return Rank.NOISE if line.rank > Rank.DECIDES and _FETCHED.match(line.text) else line.rank


def _around(scenes: Sequence[Scene], change: _Change, /) -> Sequence[Scene]:
    """The lines around each hunk, from the last step that read them before they were changed."""
    reads: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    for i, scene in enumerate(scenes):
        for j, block in enumerate(scene.blocks):
            if block.kind != "seen" or scene.number >= change.shown or is_diff(block.text):
                continue
            read = [(_NUMBERED.sub("", line.text).strip(), at) for at, line in enumerate(block.lines)]
            for (line, at), (after, to) in pairwise([*((line, at) for line, at in read if line), ("", len(read))]):
                reads |= {place: (i, j, at, to) for place in ((line, after), (line, "")) if place in change.places}
    near: dict[tuple[int, int], set[int]] = {}
    for i, j, at, to in reads.values():
        near.setdefault((i, j), set()).update(range(at - _AROUND, to + _AROUND + 1))
    return [
        _lifted(scene, {j: near[i, j] for j in range(len(scene.blocks)) if (i, j) in near})
        for i, scene in enumerate(scenes)
    ]


def _lifted(scene: Scene, near: dict[int, set[int]], /) -> Scene:
    if not near:
        return scene
    blocks = list(scene.blocks)
    for j, places in near.items():
        lines = blocks[j].lines
        lifted = (
            line._replace(rank=min(line.rank, Rank.DECIDES)) if at in places else line for at, line in enumerate(lines)
        )
        blocks[j] = replace(blocks[j], lines=tuple(lifted))
    return replace(scene, blocks=tuple(blocks))
