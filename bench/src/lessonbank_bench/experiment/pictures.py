"""The page's pictures: how arms differ, and how success and what it took came to be along the streams."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.pages.reports.forest import Bar, Look, forest

from .comparison import Compared, between, claim, points
from .curves import KINDS, Course, Kind, course, drawn, rows_of, told_of
from .page import figure, paragraph
from .records import Arm, AttemptRow, Experiment

_LOOKS: dict[str, Look] = {"more successes": "helps", "fewer successes": "harms"}
_BAND = "The band is an interval over seeds at each place (Student's t); it is not right for all places at once."
_ABSENT = {
    "tokens": "No tokens were counted, so there is no picture of them.",
    "cost": "What attempts cost is not known, so there is no picture of it.",
}
_SECTIONS = {
    "success": "Success",
    "steps": "Steps",
    "tokens": "Tokens",
    "cost": "US dollars",
    "memory": "What memory said",
    "lessons": "Lessons written",
}


def differences(found: Sequence[Compared], /) -> str:
    """Every arm's difference to the baseline, with the noise of its repetition behind them."""
    shown = [one for one in found if one.pairs]
    if not shown:
        return ""
    floor = next((one.floor for one in shown if one.floor is not None), None)
    bars = [Bar(one.arm, _said(one), one.difference, one.by_seed, one.always, _look(one)) for one in shown]
    told = "; ".join(f"{one.arm}: {points(one.difference)} {between(one.by_seed)}" for one in shown)
    picture = forest("differences", bars, title=f"Differences to {shown[0].baseline}", description=told, floor=floor)
    how = "thick: over seeds; thin: right however often one looks"
    grey = "; grey: the noise floor (A/A)" if floor is not None else ""
    caption = f"Each arm against {shown[0].baseline}"
    return f'<div class="grid">{figure(picture, caption, f"{how}{grey}")}</div>'


def _said(one: Compared) -> str:
    if one.again:
        return "noise (A/A)"
    return claim(one).partition(" (")[0] if _look(one) == "open" else points(one.difference)


def _look(one: Compared) -> Look:
    return "open" if one.again else _LOOKS.get(one.shown, "open")


def courses(experiment: Experiment, rows: Sequence[AttemptRow], /) -> str:
    """One section for each number there is, with one picture for each arm beside the baseline."""
    parts: list[str] = []
    for kind in KINDS:
        drawn_of = rows_of(kind, rows)
        if not told_of(kind, drawn_of):
            parts += [paragraph(_ABSENT[kind.name], name="soft")] if rows and kind.name in _ABSENT else []
            continue
        figures = _figures(experiment, drawn_of, kind)
        parts += [f'<h2>{_SECTIONS[kind.name]}</h2>\n<div class="grid">{figures}</div>'] if figures else []
    return "\n".join([*parts, paragraph(_BAND, name="soft")]) if parts else ""


def _figures(experiment: Experiment, rows: Sequence[AttemptRow], kind: Kind) -> str:
    level, base = experiment.question.level, experiment.against
    own = {arm.name: [row for row in rows if row.arm == arm.name] for arm in experiment.arms}
    found: dict[Arm, Course] = {
        arm: one
        for arm in experiment.arms
        if told_of(kind, own[arm.name])
        and (one := course(own[arm.name], kind.value, level=level, summed=kind.summed, within=kind.within)) is not None
    }
    under = found.get(base)
    alone = not any(arm != base for arm in found)
    return "".join(
        figure(
            _drawn(kind, place, (arm.name, one), (base.name, under) if under and arm != base else None),
            arm.name,
            kind.told,
        )
        for place, (arm, one) in enumerate(found.items())
        if alone or arm != base
    )


def _drawn(kind: Kind, place: int, arm: tuple[str, Course], base: tuple[str, Course] | None) -> str:
    return drawn(f"{kind.name}-{place}", f"{kind.name}, {arm[0]}", arm, base, share=kind.share)
