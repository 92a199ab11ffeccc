"""An experiment as one page that opens anywhere, offline: what may be said first, then all that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from lessonbank.guard import one_line

from .attempt_pages import browser
from .comparison import Compared, between, claim, compare, noise, spread
from .curves import made
from .lesson_effects import randomised, used
from .lesson_section import single_lessons
from .page import document, line, made_of, minus, paragraph, table
from .pictures import courses, differences
from .records import Arm, AttemptRow, Experiment
from .schedule import total

FAMILIES: Final = 200
"""Rows of the table of families: a page of more opens slowly."""
SCORES: Final = 12
ERRORS: Final = 100
_HOW = (
    "The interval over seeds draws whole seeds: tasks of one stream are not independent of each other. The one over "
    "families draws whole templates. The last one stays right however often one looks.",
    "The noise floor is how far the baseline's own repetition, with the agent's chance drawn anew, reaches from zero, "
    "its interval included.",
)
_SHOWN = (
    "A difference is shown only where the interval over seeds leaves zero out and McNemar's exact test, adjusted for "
    "the number of arms (Holm), says so too. All else is “no difference shown”, which is not “no difference”."
)
_EARLY = (
    "This experiment may stop as soon as every arm is shown to differ. A difference is therefore shown only where the "
    "interval that is right however often one looks leaves zero out, at a level divided by the number of arms. All "
    "else is “no difference shown”, which is not “no difference”."
)
_NOTHING = "<h2>Comparisons</h2>\n<p>There is no pair of outcomes yet.</p>"
_BROKEN = (
    "What broke while it was to recall or to attempt left no outcome, which says nothing about the arm: a comparison "
    "leaves the task out where one of its two arms broke so. What broke while it was to learn came after the outcome, "
    "which counts as any other: that arm went on without what it would have learned."
)


def page(
    experiment: Experiment, rows: Sequence[AttemptRow], /, *, attempts: int = 60, folder: Path | None = None
) -> str:
    """One HTML document without script or request; equal rows give equal pages.

    Args:
        experiment: what was asked.
        rows: the attempts so far.
        attempts: how many of them can be read in it, of tasks drawn by chance, with all arms of a task.
        folder: where the experiment was run. The banks there are looked at for lessons that were left out at random.
    """
    tested = [row for row in rows if row.phase == "test"]
    found = compare(experiment, rows)
    return document(
        experiment.name,
        (
            f"<h1>{line(experiment.name)}</h1>",
            _label(experiment),
            _counted(experiment, rows),
            *map(_answer, sorted(found, key=lambda one: one.again or bool(one.of))),
            _comparisons(found),
            _arms(experiment, tested),
            _scores(experiment, tested, found),
            courses(experiment, rows),
            single_lessons(experiment, used(experiment, rows), randomised(experiment, folder) if folder else ()),
            _families(experiment, tested),
            _errors(rows),
            browser(experiment, rows, attempts),
            "<h2>How to read this</h2>",
            *map(paragraph, (_EARLY if experiment.stop else _SHOWN, *_HOW)),
            _made_with(experiment, rows),
        ),
    )


def _label(experiment: Experiment) -> str:
    told = made_of(experiment)
    return f'<p><span class="made-of">{line(told)}</span></p>' if told else ""


def _counted(experiment: Experiment, rows: Sequence[AttemptRow]) -> str:
    errors, of = sum(row.error is not None for row in rows), total(experiment)
    made_so_far = f"{len(rows):,} attempts" if len(rows) == of else f"{len(rows):,} of {of:,} attempts so far"
    told = (
        f"environment {experiment.environment}, {experiment.mode}: {len(experiment.arms)} arms, "
        f"{len(experiment.seeds)} seeds of {experiment.tasks} tasks, {made_so_far}"
    )
    broken = f", {errors:,} with an error of infrastructure" if errors else ""
    effect = 100 * abs(experiment.question.effect)
    asked = f"The question: is there a difference of {effect:.3g} points or more to {experiment.against.name}?"
    return paragraph(f"{told}{broken}. {asked}", name="soft")


def _answer(one: Compared) -> str:
    """The claims stand out; what only helps to judge them (noise, an arm without a part of it) is beside them."""
    if not one.pairs:
        return ""
    beside = f" ({noise(one)})" if noise(one) else ""
    said = f"{one_line(one.arm)} against {one_line(one.baseline)}: {claim(one)} {between(one.by_seed)}{beside}"
    if one.again or one.of:
        return paragraph(one_line(said, limit=600), name="soft")
    kind = {"more successes": "helps", "fewer successes": "harms"}.get(one.shown, "open")
    return f'<p class="answer {kind}">{line(minus(said), limit=600)}</p>'


def _comparisons(found: Sequence[Compared]) -> str:
    columns = (
        "arm",
        "shown",
        "pairs",
        "success",
        "baseline",
        "difference",
        "over seeds",
        "over families",
        "however often",
        "better / worse",
        "McNemar",
        "Holm",
        "noise floor",
    )
    rows = [_compared(one) for one in found if one.pairs]
    told = table(
        "Each arm against the baseline, on the tasks both have; in points of success", columns, rows, text=(1,)
    )
    return f"<h2>Comparisons</h2>\n{differences(found)}{told}" if rows else _NOTHING


def _compared(one: Compared) -> tuple[str, ...]:
    return (
        one.arm,
        "noise (A/A)" if one.again else one.shown,
        f"{one.pairs:,}",
        f"{one.success:.1%}",
        f"{one.base:.1%}",
        f"{100 * one.difference:+.1f}",
        between(one.by_seed),
        between(one.by_family),
        between(one.always),
        f"{one.better} / {one.worse}",
        f"{one.p:.2g}",
        "" if one.again else f"{one.adjusted:.2g}",
        "" if one.floor is None else f"{100 * one.floor:.1f}",
    )


def _arms(experiment: Experiment, rows: Sequence[AttemptRow]) -> str:
    columns = (
        "arm",
        "success",
        "over seeds, 95 %",
        "early half",
        "late half",
        "steps",
        "tokens",
        "US dollars",
        "seconds",
        "errors",
    )
    told = [_arm(arm, _of(arm, rows)) for arm in experiment.arms if _of(arm, rows)]
    return f"<h2>Arms</h2>\n{table('Per attempt, on the tasks that are compared', columns, told)}" if told else ""


def _arm(arm: Arm, rows: Sequence[AttemptRow]) -> tuple[str, ...]:
    known, done = [row for row in rows if row.success is not None], [row for row in rows if made(row)]
    early, late = _halves(known)
    span = spread([float(bool(row.success)) for row in known], [row.seed for row in known], within=(0.0, 1.0))
    costs = [row.cost for row in done if row.cost is not None]
    return (
        arm.name,
        _share(known),
        "(too few)" if span is None else f"{span.low:.1%} to {span.high:.1%}",
        _share(early),
        _share(late),
        _mean(done, lambda row: row.steps, ".2f"),
        _mean(done, lambda row: row.tokens, ",.0f"),
        f"{sum(costs) / len(costs):,.4f}" if costs else "not known",
        _mean(done, lambda row: row.seconds, ",.3f"),
        str(sum(row.error is not None for row in rows)),
    )


def _halves(rows: Sequence[AttemptRow]) -> tuple[list[AttemptRow], list[AttemptRow]]:
    """The tasks of the first half of each stream, and those of the second."""
    places = sorted({row.place for row in rows})
    middle = places[len(places) // 2] if places else 0
    return [row for row in rows if row.place < middle], [row for row in rows if row.place >= middle]


def _families(experiment: Experiment, rows: Sequence[AttemptRow]) -> str:
    names = sorted({row.family for row in rows})
    arms = [arm for arm in experiment.arms if _of(arm, rows)]
    cells: dict[tuple[str, str], list[AttemptRow]] = {}
    for row in rows:
        if row.success is not None:
            cells.setdefault((row.family, row.arm), []).append(row)
    told = [(name, *(_share(cells.get((name, arm.name), [])) for arm in arms)) for name in names[:FAMILIES]]
    if not told:
        return ""
    left = len(names) - FAMILIES
    more = paragraph(f"{left:,} more families have no row here.") if left > 0 else ""
    columns = ("family", *(one_line(arm.name) for arm in arms))
    return f"<h2>Families</h2>\n{table('Share of tasks done, of how many', columns, told)}{more}"


def _scores(experiment: Experiment, rows: Sequence[AttemptRow], found: Sequence[Compared]) -> str:
    """What else the verifier measured: each number's mean, and how far it is from the baseline's on the same tasks."""
    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    if not names:
        return ""
    shown, left = names[:SCORES], len(names) - SCORES
    columns = ("arm", *(one_line(name, limit=60) for name in shown))
    means = [(arm.name, *(_score(_of(arm, rows), name) for name in shown)) for arm in experiment.arms]
    apart = [(one.arm, *(_apart(one, name) for name in shown)) for one in found if one.scores]
    parts = ["<h2>Scores</h2>", table("Means over attempts, with 95 % over seeds", columns, means)]
    parts += [table("Differences to the baseline on the tasks both have, over seeds", columns, apart)] if apart else []
    return "\n".join([*parts, paragraph(f"{left:,} more have no column here.") if left > 0 else ""])


def _apart(one: Compared, name: str) -> str:
    if name not in one.scores:
        return ""
    told = one.scores[name]
    apart, span = told.mean - told.base, told.difference
    return f"{apart:+,.3g}" if span is None else f"{apart:+,.3g} [{span.low:+,.3g}, {span.high:+,.3g}]"


def _score(rows: Sequence[AttemptRow], name: str) -> str:
    known = [row for row in rows if name in row.scores]
    if not known:
        return ""
    span = spread([row.scores[name] for row in known], [row.seed for row in known])
    told = f"{sum(row.scores[name] for row in known) / len(known):,.3g}"
    return told if span is None else f"{told} [{span.low:,.3g}, {span.high:,.3g}]"


def _errors(rows: Sequence[AttemptRow]) -> str:
    """What broke around the agents: by arm, since an arm whose server fails more often is compared on other tasks."""
    broken: dict[tuple[str, str, str], list[AttemptRow]] = {}
    for row in rows:
        if row.error is not None:
            broken.setdefault((row.arm, row.error.stage, row.error.code), []).append(row)
    if not broken:
        return ""
    told = [(*key, f"{len(found):,}", _message(found[0])) for key, found in sorted(broken.items())[:ERRORS]]
    table_of = table("What broke", ("arm", "while it was to", "code", "attempts", "the first"), told, text=(1, 2, 4))
    return f"<h2>Errors of infrastructure</h2>\n{paragraph(_BROKEN)}{table_of}"


def _message(row: AttemptRow) -> str:
    return one_line(row.error.message, limit=200) if row.error is not None else ""


def _made_with(experiment: Experiment, rows: Sequence[AttemptRow]) -> str:
    versions = rows[0].versions if rows else {}
    told = ", ".join(f"{name} {value}" for name, value in versions.items())
    return paragraph(f"Experiment {experiment.hash}; {told}", name="soft")


def _of(arm: Arm, rows: Sequence[AttemptRow]) -> list[AttemptRow]:
    return [row for row in rows if row.arm == arm.name]


def _share(rows: Sequence[AttemptRow]) -> str:
    return f"{sum(bool(row.success) for row in rows) / len(rows):.0%} of {len(rows)}" if rows else ""


def _mean(rows: Sequence[AttemptRow], value: Callable[[AttemptRow], float], form: str) -> str:
    return format(sum(map(value, rows)) / len(rows), form) if rows else ""
