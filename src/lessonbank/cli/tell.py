"""`tell`: how a task ended, once it is known."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from lessonbank._base.checks import one_of
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Outcome
from lessonbank.errors import UsageError

from . import _options as options
from ._bank import opened
from ._ids import run_or_recall_id, short
from ._output import say, show_json, warn
from ._reviewing import KeyFile, reviewing


def tell(
    bank: options.Bank,
    scope: options.Scope,
    id: Annotated[str, typer.Argument(help="The id of a run or of its recall; 4 characters will do.")] = "",
    outcome: Annotated[Outcome | None, typer.Argument(help="How it ended: success or failure.")] = None,
    reward: Annotated[
        float | None, typer.Option("--reward", help="A score from 0 to 1, in place of an outcome.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="In place of ID: KEY=TEXT (or KEY:=JSON) of this run alone.")
    ] = None,
    by: options.MaybeBy = None,
    reason: options.Reason = "",
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Say how a task ended once it is known. A run that waited teaches now; of a learned one the verdict is corrected.

    With --by it is your word as a person, and the journal keeps your name and reason. Without, it is what a program
    found out. The lessons of the run stay until somebody retires them.
    """
    if metadata and (outcome or by):
        raise UsageError("--metadata takes the place of ID, without --by: lessonbank tell success --metadata user=u-17")
    if metadata and id:  # the first argument is the second then
        id, outcome = "", one_of(id, "OUTCOME", get_args(Outcome))
    options.needs({"ID": id or metadata}, "say which run: give its id, or --metadata")
    options.needs({"OUTCOME": outcome or reward is not None}, "say success or failure, or give --reward")
    if by is not None:
        _check_said_by_person(id, outcome, reward)
    with opened(bank, scope) as memory:
        named = " ".join(metadata) if metadata else run_or_recall_id(memory, id)
        if by is None:
            learned = memory.tell(options.pairs(metadata) or named, outcome=outcome, reward=reward)
        else:
            learned = reviewing(memory, by, key_file).runs.correct(named, outcome=outcome, by=by, reason=reason)
    if as_json:
        show_json(learned)
        return
    ending = outcome if reward is None else f"a reward of {reward:g}"
    taught = f"; it taught {plural(len(learned.lessons), 'lesson')}" if learned.lessons else ""
    say(f"run {named if metadata else short(named)} ended in {ending}" + (f", says {by}" if by else "") + taught)
    for note in learned.notes:
        warn(note)


def _check_said_by_person(id: str, outcome: Outcome | None, reward: float | None) -> None:
    if reward is not None:
        raise UsageError("a person says success or failure: to give a reward, leave out --by and unset LESSONBANK_BY")
    if outcome not in ("success", "failure"):
        raise UsageError(f"a person says success or failure, as in: lessonbank tell {id} success --by NAME")
