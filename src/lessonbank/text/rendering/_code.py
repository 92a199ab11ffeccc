"""Tells of a run that changes code what a reviewer asks for: the final change, the code around it, the last tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise

from lessonbank.contracts.records import Trajectory

from ._scenes import Block, Line, Rank, Scene, observations, split_line

_AROUND = 15  # lines around a hunk, as they were read, that are worth their place
_DIFF = re.compile(r"^(?:diff --git |--- (?:a/|\S+\t)|\+\+\+ b/)", re.M)
_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.M)
_EDIT = re.compile(
    r"\bsed -i|\bperl -p?i|\bcat\s*>|\btee\b|<<\s*['\"]?\w+|(?:^|[;&|]\s*|\$ )patch\s"
    r"|git (?:apply|checkout|stash|restore|reset)"
    r"|str_replace|\binsert\b|\bcreate\b|apply_patch|write|\bEdit\b|\.replace\(|open\((?:(?!open\()[^)])*?['\"][wa]",
    re.IGNORECASE,
)
_INSTALL = re.compile(
    r"\b(?:pip3?|conda|mamba|apt(?:-get)?|npm|yarn|poetry|uv|brew|gem|cargo|easy_install)\b[^\n|;&]{0,40}"
    r"\b(?:install|sync|add|update|develop)\b"
)
_LIST = re.compile(r"^\W*(?:\w+\W+)?(?:cd \S+ && )?(?:ls|find|tree|pwd|git (?:log|status))\b")
_TEST = re.compile(r"pytest|unittest|\btox\b|nosetests|runtests|manage\.py test|(?:npm|go|cargo|make|mvn|bin/)\s*test")
_RUN = re.compile(r"\b(?:python3?|node|ruby|go run|cargo run)\s+\S|\./\S+")
_SHOWN = re.compile(r"\bcat\s+(?=\S*(?:patch|diff))\S++\s*+$|\bgit diff\b(?:(?!\bgit diff\b)[^>|])*+$")
"""Commands that show the change, perhaps an earlier form of it. Linear: no try reads what the next one reads again."""
_RESULT = re.compile(
    r"\b\d+ (?:passed|failed|errors?|passing|failing|deselected|xfailed)\b|^Ran \d+ tests?\b|\bno tests ran\b"
    r"|^(?:OK|FAILED)(?: \(|\s*$)|^test result: |^(?:Tests|Test Suites): |^(?:ok|FAIL)\t"
    r"|^(?:FAIL|ERROR): \S|^(?:FAILED|ERROR) \S+::|^\s*--- FAIL: |^not ok \d"
    r"|^(?:E +)?[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Configured|NotReady|Exist)\b"
    r"|^\W{0,6}(?:(?:SUCCESS|PASS|GOOD|FAIL|WRONG|BAD)[A-Z]{0,3}\b|[✓✗✅❌✔✘])"
)
"""Counts of tests, what failed, errors, and what an agent's own script calls right or wrong."""
_RESULTS, _LONG = 3, 100  # lines of an output that say how the command went, and characters of each
_PASSED = re.compile(r"\bPASSED\b|\bok$|^\S+\.py [.sx]+\s|Warning\b|^\s*warnings\.warn|site-packages")
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
    return _around([_rank(scene.seen(_unwrap), change) for scene in scenes], change)


def is_diff(text: str, /) -> bool:
    """Whether a text shows a change as a diff."""
    return len(_DIFF.findall(text)) >= 2 and "\n@@" in text


def _final(scenes: Sequence[Scene], /) -> _Change | None:
    """The last diff that was shown; where none was, the edits themselves are the change."""
    edits = [scene for scene in scenes if _EDIT.search(scene.acts)]
    for scene, block in reversed(list(observations(scenes))):
        if is_diff(text := block.text):
            files = frozenset(_FILE.findall(text)) - {"/dev/null"}
            names = {file.rpartition("/")[2] for file in files}
            before = (edit for edit in edits if edit.number <= scene.number)
            edited = max((edit.number for edit in before if any(name in edit.acts for name in names)), default=0)
            return _Change(scene.number, files, _places(text), edited)
    calls = any(block.kind == "call" for scene in edits for block in scene.blocks)
    return _Change(0, frozenset(), frozenset(), edits[-1].number) if calls and len(edits) > 1 else None


def _places(diff: str, /) -> frozenset[tuple[str, str]]:
    """How the changed places are known again: by two lines in a row that were there, as one stands in many places."""
    there = (line[1:].strip() for line in diff.split("\n") if line[:1] in ("-", " ") and not line.startswith("--- "))
    return frozenset(pairwise(filter(None, there)))


def _rank(scene: Scene, change: _Change, /) -> Scene:
    acts, after = scene.acts, scene.number > change.edited
    if _INSTALL.search(acts) or _LIST.search(acts):
        return scene.seen(lambda block: block.with_ranks(lambda line: max(line.rank, Rank.OLD)))
    scene = scene.seen(partial(_diff, number=scene.number, change=change))
    if _TEST.search(acts):
        scene = scene.seen(lambda block: block.with_ranks(partial(_of_tests, after=after)))
    elif _EDIT.search(acts):
        scene = scene.only("call", partial(_script, change=change))
    elif _RUN.search(acts):
        most = Rank.STATE if after else Rank.SAID
        scene = scene.seen(lambda block: block.with_ranks(lambda line: min(line.rank, most)))
    return scene.seen(_with_result) if any(kind.search(acts) for kind in (_TEST, _RUN, _SHOWN)) else scene


def _unwrap(block: Block, /) -> Block:
    """Return a block without the frame that says no more than that a command was run and went well."""
    return replace(block, lines=tuple(line for line in block.lines if not _WRAPPED.fullmatch(line.text)))


def _diff(block: Block, /, *, number: int, change: _Change) -> Block:
    """The final diff whole; an earlier one of the same files says nothing more."""
    if not is_diff(block.text):
        return block
    if number == change.shown:
        return block.with_ranks(lambda line: Rank.DECIDES)
    same = set(_FILE.findall(block.text)) <= change.files
    return block.with_ranks(lambda line: Rank.NOISE if same else line.rank)


def _of_tests(line: Line, /, *, after: bool) -> Rank:
    if _RESULT.search(line.text):
        return Rank.DECIDES if after else Rank.CONTEXT
    return Rank.NOISE if _PASSED.search(line.text) else max(line.rank, Rank.SAID) if after else Rank.OLD


def _script(block: Block, /, *, change: _Change) -> Block:
    """An edit's own text says no more than the diff does, where there is one."""
    if not change.shown:
        return block.with_ranks(lambda line: min(line.rank, Rank.DECIDES))
    return block.with_ranks(lambda line: line.rank if line.rank == Rank.MUST else Rank.REST)


def _with_result(block: Block, /) -> Block:
    """Rank the lines first that say how the command went; else the last line, or all of a short output."""
    if is_diff(block.text):
        return block
    indices = [at for at, line in enumerate(block.lines) if line.text.strip() and not line.joined and not line.hidden]
    telling = [at for at in indices if _RESULT.search(block.lines[at].text)]
    places = frozenset(telling[-_RESULTS:] or (indices if len(indices) <= _RESULTS else indices[-1:]))
    lines = (split_line(line, _LONG, Rank.RESULT) if at in places else (line,) for at, line in enumerate(block.lines))
    return replace(block, lines=tuple(chain.from_iterable(lines)))


def _around(scenes: Sequence[Scene], change: _Change, /) -> Sequence[Scene]:
    """The lines around each hunk, from the last step that read them before they were changed."""
    reads: dict[tuple[str, str], tuple[int, int]] = {}
    for scene, block in observations(scenes):
        if scene.number < change.shown and not is_diff(block.text):
            read = ((_NUMBERED.sub("", line.text).strip(), at) for at, line in enumerate(block.lines))
            for (line, at), (after, _) in pairwise(pair for pair in read if pair[0]):
                if (line, after) in change.places:
                    reads[line, after] = (id(block), at)
    near = {(block_id, place) for block_id, at in reads.values() for place in range(at - _AROUND, at + _AROUND + 2)}

    def lift(block: Block) -> Block:
        ranks = (
            min(line.rank, Rank.DECIDES) if (id(block), at) in near else line.rank
            for at, line in enumerate(block.lines)
        )
        return replace(
            block, lines=tuple(line._replace(rank=rank) for line, rank in zip(block.lines, ranks, strict=True))
        )

    return [scene.seen(lift) for scene in scenes]
