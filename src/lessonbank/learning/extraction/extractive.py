"""Lessons without a language model: what a run's own form shows, written down in plain words.

It reads no meaning. It sees which actions got somewhere, which did nothing, which error was followed by something
that worked, what was done over and over, and what came last before a bad end. That is little, and it is true.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain

from lessonbank._version import VERSION
from lessonbank.contracts.records import Extraction, Kind, Lesson, Provenance, Run
from lessonbank.guard.gate import EXTRACTIVE
from lessonbank.guard.gate.run_values import RunValues, is_command, words
from lessonbank.guard.sanitise import SLOT
from lessonbank.guard.wording import without_sources

from ._commands import files_written_by, is_about, names_one_of, tries_again, writes_a_file
from ._moves import Move, moves
from ._slots import AgentView, uncommon_pairs

_CONTENT = 600
_TITLE, _WHEN = 70, 240
_DEEDS = 3
"""Deeds that a title names."""
_MARKUP = re.compile(r"<[^<>\n]{1,80}>|(?<!\S)#{1,6}(?!\S)|\*{2,}|`+")
_WRONG_ANSWER = re.compile(r"\b(?:answer|response|result|submission)\b.{0,20}\b(?:incorrect|wrong)\b", re.IGNORECASE)
"""A message that judges what was said and tells nothing more of it."""
_SCROLLING = re.compile(r"(?:scroll|noop|wait)(?![a-z])", re.IGNORECASE)
_HANDS_OVER = re.compile(
    r"(?:\w{1,60}(?:__|[./:]))?(?:transfer|hand|escalate|forward|route)\w{0,20}(?:human|person|agent|operator|supervisor|support|staff)"
    r"|report_infeasible|give_?up",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z_]{3,}")
_FIELD = re.compile(r"[a-z]{2,20}(?:_[a-z]{2,20})*")
_LONG_RUN = 25
"""In a longer run the order is chance and the last choice says too little about why it failed."""
_LOOP = 3
_PAIRS = 3
"""Errors that one lesson tells."""
_SOON = 6
"""Moves after an error among which it is looked for what got past it."""
_NEXT, _FAR = 3, 100
"""Moves after an error that may be another try at it, and among which the same call is looked for."""


@dataclass(frozen=True)
class _Run:
    """One attempt as moves."""

    number: int
    attempt: Run
    moves: tuple[Move, ...]
    values: Callable[[], RunValues]

    @cached_property
    def path(self) -> list[Move]:
        """The moves that got somewhere, immediate repetitions folded."""
        return self._path(most=len(self.moves))

    @cached_property
    def is_long(self) -> bool:
        """Whether its path is. Most moves of a long run are never told: no more are read than answer this."""
        moved = [move.effect for move in self.moves].count("moved")
        return moved > _LONG_RUN and len(self._path(most=_LONG_RUN + 1)) > _LONG_RUN

    def _path(self, *, most: int) -> list[Move]:
        path = list[Move]()
        for move in self.moves:
            if move.effect == "moved" and (not path or path[-1].label != move.label):
                path.append(move)
                if len(path) == most:
                    break
        return path

    @cached_property
    def is_talk(self) -> bool:
        """Whether a run called tools for somebody who asked in words of their own: tools then say what it was about."""
        return bool(self.moves and self.moves[0].calls) and not self.is_of_commands  # all moves are calls, or none is

    @cached_property
    def is_of_commands(self) -> bool:
        """Whether the agent worked with a shell or a program, where words that nobody uses are names of code."""
        return is_command([call for step in self.attempt.trajectory.steps for call in step.action.calls])

    @cached_property
    def task(self) -> str:
        """The run's task without values."""
        task = _MARKUP.sub(" ", self.attempt.trajectory.task[:4000])
        passed_on = self.moves[0].shown.passed_on if self.moves else dict[str, str]()
        request = AgentView(self.values, task, passed_on=passed_on).request(task)
        return " ".join((request if self.is_of_commands else uncommon_pairs(request)).split()) or "the same"

    @cached_property
    def has_one_tool(self) -> bool:
        """Whether all its moves begin with the same word."""
        return len({_words(move.raw)[:1] for move in self.moves}) == 1

    @property
    def succeeded(self) -> bool:
        return self.attempt.verdict.outcome == "success"

    @property
    def stopped(self) -> bool:
        return self.attempt.trajectory.error is not None


@dataclass(frozen=True, slots=True)
class _Lesson:
    """A lesson before it is a record: its words and the moves that show it. The first one's run gives its task."""

    kind: Kind
    head: str
    content: str
    shown_by: tuple[tuple[_Run, Move], ...]
    deed: str
    """What was done, for the title. The words of the task take its place where whoever gave the task said it best."""
    when: str = ""
    """Empty: for a task like that of the run."""


def extract(attempts: Sequence[Run], /, *, max_lessons: int, max_contrast_lessons: int) -> Extraction:
    """The lessons of these attempts; see `ExtractiveExtractor`."""
    known = [(n, a) for n, a in enumerate(attempts, 1) if a.verdict.outcome != "unknown"]
    if not known:
        return Extraction(notes=("no attempt with a known outcome: nothing was extracted",))
    values = cache(partial(RunValues.of, [attempt.trajectory for _, attempt in known]))
    runs = [_Run(n, attempt, moves(attempt.trajectory, values), values) for n, attempt in known]
    limit = max_lessons if len(runs) == 1 else max_contrast_lessons
    candidates = _contrasted(runs) if len(runs) > 1 else _of_one(runs[0])
    drawn = list({lesson.content: lesson for lesson in candidates}.values())[:limit]
    lessons = tuple([_lesson(lesson, several=len(attempts) > 1) for lesson in drawn])
    return Extraction(lessons=lessons, notes=() if lessons else (_why_nothing(runs),))


def _why_nothing(runs: Sequence[_Run]) -> str:
    if not any(run.attempt.trajectory.steps for run in runs):
        return "nothing was extracted: the runs have no steps"
    if not any(run.moves for run in runs):
        return "nothing was extracted: the runs are talk, and without a model only actions are read"
    if any(move.effect == "error" for run in runs for move in run.moves):
        return "nothing was extracted: an error was seen, but nothing that got past it"
    if not any(run.succeeded for run in runs):
        return "nothing was extracted: the run failed without an error, and without a model nothing tells why"
    return "nothing was extracted: the runs are too short or too long to show an order, an error or a loop"


def _of_one(run: _Run) -> Iterator[_Lesson]:
    if run.succeeded:
        yield from _order(run)
        yield from _fixes([run])
        return
    ending = list(_ending(run))
    yield from ending
    yield from _no_effect([run], led_by=None if ending else run)
    yield from _fixes([run])
    yield from _loops(run)


def _contrasted(runs: Sequence[_Run]) -> Iterator[_Lesson]:
    worked = sorted((r for r in runs if r.succeeded), key=lambda r: (not r.path, len(r.path)))
    failed = [r for r in runs if not r.succeeded]
    if worked:
        yield from _parting(worked, failed)
        yield from _order(worked[0])
    else:
        for run in failed:
            yield from _ending(run)
    yield from _no_effect(failed, led_by=None if worked else failed[0])
    yield from _fixes(runs)
    for run in failed:
        yield from _loops(run)


def _order(run: _Run) -> Iterator[_Lesson]:
    path = () if run.is_long else _without_detours(run)
    while path and _SCROLLING.match(path[-1].label):
        path = path[:-1]
    if len(path) < 2 or _HANDS_OVER.match(path[-1].raw):
        return  # that somebody else had to finish one task is no way to do the next
    content = f"This order worked (what was seen in brackets): {_steps(path, seen=True)}."
    if len(content) > _CONTENT:
        content = f"This order worked: {_steps(path)}."
    shown_by = tuple([(run, m) for m in path[-8:]])
    yield _Lesson("strategy", "What worked", content, shown_by, _deeds([m for m in path if not m.reads] or path))


def _without_detours(run: _Run) -> Sequence[Move]:
    """Its path without what was tried after an error, and what failed said just the same again afterwards.

    What the error speaks of stays, and so does the tool that helped in the end: both may have been half of it."""
    left_out = set[int]()
    for at, wrong in enumerate(run.moves):
        if wrong.effect != "error" or wrong.command:
            continue
        later = run.moves[at + 1 : at + 1 + _FAR]
        tried = _next_of(wrong, later)
        if tried is None or later[tried].gist != wrong.gist:
            continue
        helped = _got_through(later[tried:], wrong)
        left_out |= {id(m) for m in later[:tried] if helped and not _may_help(m, wrong, helped)}
    return [move for move in run.path if id(move) not in left_out]


def _got_through(later: Sequence[Move], wrong: Move) -> Sequence[Move]:
    """What was done between the last failure of a call and its success; nothing where there is none."""
    ends = [n for n, move in enumerate(later) if _retries(move, wrong)]
    first = next((at for at, n in enumerate(ends) if later[n].effect != "error"), 0)
    return [m for m in later[ends[first - 1] + 1 : ends[first]] if not m.reads] if first else ()


def _may_help(move: Move, wrong: Move, helped: Sequence[Move]) -> bool:
    tool, *others = [call.raw.partition("(")[0].partition(" ")[0] for call in (move, *helped)]
    return move.reads or tool in others or not set(words(tool)).isdisjoint(words(wrong.gist))


def _ending(run: _Run) -> Iterator[_Lesson]:
    """The end of a failed run that nothing stopped: an act refused last, or a choice that nobody objected to."""
    if run.stopped or not run.moves:
        return
    last = run.moves[-1]
    if last.effect == "error" and (last.is_specific or (last.gist and not _WRONG_ANSWER.search(last.gist))):
        label = without_sources(last.label) if run.is_talk else last.label
        end = f"The run ended when `{label}` failed{last.seen}; do not end on it like this."
        content = end if run.is_talk else _led(run.path, end)
        yield _Lesson("guardrail", "Rejected at the end", content, ((run, last),), last.deed)
        return
    suspect = _suspect(run) if last.effect == "moved" else None
    if suspect is None or not suspect.is_specific or _is_asked(suspect, run):
        return
    before = run.path[: run.path.index(suspect)]
    end = f"It ended on `{last.label}`{last.seen} without an error, and had failed all the same."
    advice = f"Step {len(before) + 1}: do not repeat `{suspect.label}`, the last choice before the end"
    content = _led(before, f"{end} {advice}; try another one.")
    yield _Lesson("guardrail", "Looked fine, yet failed", content, ((run, suspect),), suspect.deed)


def _suspect(run: _Run) -> Move | None:
    """The last choice before the end: the move before the closing one, or the last call where talk closed the run."""
    if run.is_long:
        return None
    closed_by_talk = bool(run.path) and run.path[-1].number < len(run.attempt.trajectory.steps)
    before_end = run.path if closed_by_talk else run.path[:-1]
    return next((move for move in reversed(before_end) if not move.reads), None)


def _is_asked(suspect: Move, run: _Run) -> bool:
    """Whether all words of a choice are the task's: what was asked for is not to be forbidden."""
    return set(words(SLOT.sub(" ", suspect.label))) <= set(words(run.attempt.trajectory.task[:4000]))


def _no_effect(runs: Sequence[_Run], *, led_by: _Run | None) -> Iterator[_Lesson]:
    """What did nothing, by the point of the procedure where it was tried."""
    places: dict[tuple[int, str], dict[str, tuple[_Run, Move]]] = {}
    for run in runs:
        for step, after, move in _idle(run):
            places.setdefault((step, after), {}).setdefault(move.label, (run, move))
    if not places:
        return
    sentences = [_place(step, after, list(tries)[:6]) for (step, after), tries in list(places.items())[:4]]
    shown_by = tuple(pair for tries in list(places.values())[:4] for pair in list(tries.values())[:6])
    content = _led(led_by.path if led_by else (), " ".join(sentences))
    yield _Lesson("guardrail", "What had no effect", content, shown_by, _deeds([move for _, move in shown_by]))


def _idle(run: _Run) -> Iterator[tuple[int, str, Move]]:
    if not any(move.effect == "inert" for move in run.moves) or run.is_long:
        return
    numbers = {id(move): step for step, move in enumerate(run.path, 1)}
    step, after = 0, ""
    for move in run.moves:
        if id(move) in numbers:
            step, after = numbers[id(move)], move.label
        elif move.effect == "inert" and move.is_specific:
            yield step + 1, after, move


def _place(step: int, after: str, labels: Sequence[str]) -> str:
    where = f"At step {step}, after `{after}`," if after else "At the start,"
    return f"{where} this had no effect: {', '.join(f'`{label}`' for label in labels)}; do not try it there again."


def _fixes(runs: Sequence[_Run]) -> Iterator[_Lesson]:
    """Errors, each with what went through soon after and can have helped. In talk each is a lesson of its own."""
    fixes = dict[str, tuple[_Run, Move, tuple[Move, ...]]]()
    for run, wrong, cure in chain.from_iterable(map(_fixed, runs)):
        label, then = _pair(wrong, *cure)
        sentence = f"`{label}` failed{wrong.seen}; then {then} went through."
        if len(sentence) <= _CONTENT:  # half of what got past it is none
            fixes.setdefault(sentence, (run, wrong, cure))
        if len(fixes) == _PAIRS:
            break
    if fixes and all(run.is_talk for run in runs):
        yield from [_fix({sentence: pair}) for sentence, pair in fixes.items()]
    elif fixes:
        yield _fix(fixes)


def _fix(fixes: dict[str, tuple[_Run, Move, tuple[Move, ...]]]) -> _Lesson:
    pairs = fixes.values()
    kind: Kind = "strategy" if any(run.succeeded for run, _, _ in pairs) else "guardrail"
    shown_by = tuple((run, move) for run, wrong, cure in pairs for move in (wrong, *cure))
    failed, cures = _deeds(wrong for _, wrong, _ in pairs), _deeds(move for _, _, cure in pairs for move in cure)
    _, wrong, cure = next(iter(pairs))
    then = _others(wrong, cure[0]).replace("`", "") if cures == failed else cures
    deed = f"{failed}, then {then}"
    return _Lesson(kind, "Error and what got past it", " ".join(fixes), shown_by, deed, f"`{failed}` fails")


def _pair(wrong: Move, right: Move, *more: Move) -> tuple[str, str]:
    """What failed and what went through, without the sources of their values: the same fact is the same words.

    Where only values differ, the fields that they are of; where only their sources do, these."""
    if more:
        labels = dict.fromkeys(f"`{without_sources(move.label)}`" for move in (right, *more))
        return without_sources(wrong.label), ", then ".join(labels)
    if wrong.label == right.label:
        return without_sources(wrong.label), f"the same with {_others(wrong, right)}"
    label, other = without_sources(wrong.label), without_sources(right.label)
    if label == other:
        shared = set(SLOT.findall(wrong.label)).intersection(SLOT.findall(right.label))
        label, other = (
            SLOT.sub(lambda slot: without_sources(slot[0]) if slot[0] in shared else slot[0], move.label)
            for move in (wrong, right)
        )
    return label, f"`{other}`"


def _deeds(moves: Iterable[Move]) -> str:
    return ", ".join(list(dict.fromkeys([move.deed for move in moves]))[-_DEEDS:])


def _others(move: Move, other: Move) -> str:
    """The fields whose values differ between two calls that look the same, in words."""
    before, names = dict(move.arguments), [name for name, _ in other.arguments]
    shown = [
        name for name in names if f"{name}=" in other.label or (other.label.endswith("…") and _FIELD.fullmatch(name))
    ]
    fields = [name for name, value in other.arguments if name in shown and before.get(name) != value]
    named = " and ".join(f"another `{name}`" for name in fields[:3])
    return named or ("another value" if names or move.raw != other.raw else "the same values")


def _fixed(run: _Run) -> Iterator[tuple[_Run, Move, tuple[Move, ...]]]:
    """Errors, and what was done between the last of them and the success: before a retry that failed nothing helped."""
    own = {name for move in run.moves if move.command for name in files_written_by(move.command)}
    for at, move in enumerate(run.moves):
        if move.effect != "error" or not move.seen:
            continue
        later = run.moves[at + 1 : at + 1 + _FAR]
        retry = _next_of(move, later)
        if retry is not None and later[retry].effect == "error" and later[retry].gist == move.gist:
            continue
        if move.command:
            cure = _remedy(move, later[:_SOON], own)
        elif retry is not None and run.succeeded:
            cure = _between(move, later[:retry])
        else:
            cure = _next_try(run, move, later[:_NEXT])
        if cure:
            yield run, move, cure


def _next_of(wrong: Move, later: Sequence[Move]) -> int | None:
    """Where the next try at a call stands."""
    return next((n for n, move in enumerate(later) if _retries(move, wrong)), None)


def _retries(later: Move, wrong: Move) -> bool:
    """Whether it is the same call again, or of the same tool the same error."""
    is_same = later.raw == wrong.raw
    if later.effect != "error":
        return is_same and later.effect != "inert"
    if wrong.command:
        return is_same and later.gist == wrong.gist
    return is_same or (_words(later.raw)[:1] == _words(wrong.raw)[:1] and later.gist == wrong.gist)


def _between(wrong: Move, done: Sequence[Move]) -> tuple[Move, ...]:
    """All that was done before the same call went through, but what only looked; nothing where that is much."""
    cure = tuple([m for m in done if m.effect in ("moved", "repeat") and (wrong.reads or not m.reads)])
    return cure if len(done) <= _SOON else ()


def _next_try(run: _Run, wrong: Move, soon: Sequence[Move]) -> tuple[Move, ...]:
    """A similar action that went through, or in a success the very next one."""
    for later in soon:
        if later.reads and not wrong.reads:
            continue
        next_in_success = run.succeeded and later is soon[0] and not later.reads
        if later.effect == "moved" and (next_in_success or _akin(wrong, later, one_tool=run.has_one_tool)):
            return (later,)
    return ()


def _remedy(wrong: Move, soon: Sequence[Move], own: Collection[str]) -> tuple[Move, ...]:
    """The command that can have helped: one about what the message names; else what was done just before the same
    line went through, else the same program on the same thing. A file of the run's `own` is nobody else's."""
    if writes_a_file(wrong.command):
        return ()
    done = [m for m in soon if m.command and m.effect == "moved" and m.looks is wrong.looks]
    again = next((n for n, m in enumerate(done) if m.raw == wrong.raw), None)
    between = [m for m in done[:again] if not (writes_a_file(m.command) or names_one_of(m.command, own))]
    about = [m for m in between if is_about(m.command, wrong.gist)]
    similar = between[-1:] if again else [m for m in between if tries_again(wrong.command, m.command)]
    return tuple((about + similar)[:1])


def _akin(wrong: Move, right: Move, *, one_tool: bool) -> bool:
    """Whether `right` looks like another try at `wrong`: the same tool, and where there is but one, a shared word."""
    tried, then = _words(wrong.raw), _words(right.raw)
    if wrong.raw == right.raw or tried[:1] != then[:1]:
        return False
    return not one_tool or bool({*tried[1:], *_words(wrong.seen)} & set(then[1:]))


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def _loops(run: _Run) -> Iterator[_Lesson]:
    # A command that says the same again was mostly right to be run again: a check after an edit.
    idle = [m for m in run.moves if m.effect == "error" or (m.effect != "moved" and not m.command)]
    often = {raw for raw, n in Counter([move.raw for move in idle]).items() if n >= _LOOP}
    again = [move for move in idle if move.raw in often and move.is_specific]
    same = Counter([(move.raw, move.label, move.seen) for move in again])
    repeated = [(label, result, n) for (_, label, result), n in same.most_common(2) if n >= _LOOP]
    if not repeated:
        return
    sentences = [f"`{label}` was done {n} times with the same result{end}." for label, end, n in repeated]
    shown_by = tuple((run, m) for m in run.moves if m.label == repeated[0][0])[:4]
    yield _Lesson(
        "guardrail",
        "Repeated in vain",
        " ".join(sentences) + " Change the approach after the first.",
        shown_by,
        shown_by[0][1].deed,
    )


def _parting(several: Sequence[_Run], failed: Sequence[_Run]) -> Iterator[_Lesson]:
    """Where failed attempts left the path of the shortest that worked, by what none of the others that worked did."""
    worked, *others = several
    done = {text for run in others for move in run.path for text in (move.raw, move.label)}
    wrong: dict[int, dict[str, tuple[_Run, Move]]] = {}
    for run in failed:
        pairs = enumerate(zip(worked.path, run.path, strict=False))
        at = next((i for i, (ours, theirs) in pairs if _differ(ours, theirs)), None)
        if at is not None and done.isdisjoint({run.path[at].raw, run.path[at].label} - {worked.path[at].label}):
            wrong.setdefault(at, {})[run.path[at].label] = (run, run.path[at])
    if not wrong:
        return
    sentences: list[str] = []
    for at, tries in sorted(wrong.items())[:3]:
        chosen = worked.path[at]
        after = f", after `{worked.path[at - 1].label}`" if at else ""
        alike = next((move for _, move in tries.values() if move.label == chosen.label), None)
        avoided = " or ".join(f"`{label}`" for label in list(tries)[:3] if label != chosen.label)
        if alike is not None:
            sentences.append(f"Step {at + 1}{after}: `{chosen.label}` worked with {_others(alike, chosen)}.")
        if not avoided:
            continue
        sentences.append(f"Step {at + 1}{after}: choose `{chosen.label}`. Step {at + 1}: do not choose {avoided}.")
    shown_by = [(worked, worked.path[at]) for at in sorted(wrong)[:3]]
    shown_by += [pair for tries in wrong.values() for pair in tries.values()]
    intro = "Attempts that failed parted here from the one that worked. "
    deed = _deeds([move for _, move in shown_by])
    yield _Lesson("guardrail", "What made the difference", intro + " ".join(sentences), tuple(shown_by), deed)


def _differ(ours: Move, theirs: Move) -> bool:
    """Whether two runs part here. Looking up other records is no parting."""
    return ours.label != theirs.label or (ours.raw != theirs.raw and not ours.reads and not _chosen_freely(ours))


def _chosen_freely(move: Move) -> bool:
    """Whether a call is told in sentences of the agent's own, which differ from run to run."""
    return any(value.count(" ") > 3 for _, value in move.arguments)


def _steps(path: Sequence[Move], *, seen: bool = False) -> str:
    """Numbered steps in one line; of a long path the head and the tail."""
    steps = [f"step {n}: `{m.label}`{m.seen if seen else ''}" for n, m in enumerate(path, 1)]
    if len(steps) > 8:
        steps = [*steps[:3], "…", *steps[-4:]]
    return "; ".join(steps)


def _led(path: Sequence[Move], rest: str) -> str:
    """`rest` after what led there, as far as there is room: the advice is never what is cut."""
    text = f"This was done first, and did not help: {_steps(path)}. {rest}" if path else rest
    return text if len(text) <= _CONTENT else rest


def _lesson(lesson: _Lesson, *, several: bool) -> Lesson:
    run = lesson.shown_by[0][0]
    deed = lesson.deed if lesson.when or run.is_talk else run.task
    return Lesson(
        title=f"{lesson.head}: {_cut(deed, _TITLE)}",
        description=lesson.when or f"For a task like: {_cut(run.task, _WHEN)}",
        content=_cut(lesson.content, _CONTENT),
        kind=lesson.kind,
        provenance=_provenance(lesson, several=several),
    )


def _provenance(lesson: _Lesson, *, several: bool) -> Provenance:
    runs = {run.number: run.attempt for run, _ in lesson.shown_by}
    order = [*runs]  # that of `trajectory_ids`, by which readers find the run
    steps = [
        f"run {order.index(run.number) + 1}, step {move.number}" if several else f"step {move.number}"
        for run, move in lesson.shown_by
    ]
    outcome = "success" if lesson.kind == "strategy" else "failure"
    return Provenance(
        method=EXTRACTIVE,
        package_version=VERSION,
        trajectory_ids=tuple([attempt.trajectory.id for attempt in runs.values()]),
        verdict=outcome,
        verdict_source=next(iter(runs.values())).verdict.source,
        evidence=tuple(dict.fromkeys(steps)),
    )


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[: limit - 1].rsplit(" ", 1)[0]
    if head.rfind("<") > head.rfind(">"):
        head = head[: head.rfind("<")]
    return head.rstrip(" ,;:`(=") + "…"
