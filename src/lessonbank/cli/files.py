"""Copy a bank and bring it back: `backup`, `restore`, `salvage`; carry lessons: `export`, `import`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Final

import typer

from lessonbank._base.checks import short_path
from lessonbank._base.iterate import batches
from lessonbank._base.plural import plural
from lessonbank.contracts.records import FileState, Lost, Synced
from lessonbank.errors import NotAllowed
from lessonbank.files.formats import BUDGET, ExportFormat, FileFormat, format_of

from . import _options as options
from ._bank import is_database, is_server, is_there, needs_bank, opened, path_of, warn_where_empty
from ._output import progress_console, say, show_json, show_text, warn
from ._reviewing import KeyFile, Reviewer, key_of, owning

_JSON_LINES: Final = ("", ".jsonl", ".ndjson", ".json")
_TO_A_LINE: Final = 20
"""Ids that are written to one line."""


def backup(
    target: Annotated[
        str, typer.Argument(metavar="FILE", help="Where the copy goes; or an empty database, as postgresql://…")
    ],
    bank: options.Bank,
    as_json: options.Json = False,
) -> None:
    """Copy the whole bank. The copy is a bank.

    From file to file: as it is now, while others may write to it; an earlier backup there is replaced. Into a database
    or out of one, into a new file: stop whoever writes to the bank first; after a failure, run it again: it goes on.
    """
    if is_database(bank) or "://" in target:
        _copy(bank, target, as_json=as_json)
        return
    file = Path(target)
    with opened(bank, "default") as memory, progress_console.status("copying the bank"):
        memory.admin.backup(file)
    size = file.expanduser().stat().st_size
    _report(
        as_json,
        {"bytes": size, "file": str(file)},
        f"{short_path(bank)} is copied to {short_path(file)}: {size:,} bytes, checked",
    )


def _copy(bank: str, target: str, /, *, as_json: bool) -> None:
    """Record by record: history, receipts, settings and vectors come along unchanged."""
    from lessonbank.wiring import migrate

    if is_server(bank):
        raise typer.BadParameter(
            "the bank of a server is backed up to a file, or copied where the server runs", param_hint="FILE"
        )
    needs_bank(bank)
    with progress_console.status("copying") as status:
        rows = migrate(
            bank, target, progress=lambda scope, done: status.update(f"copying {scope}: {plural(done, 'row')}")
        )
    _report(as_json, {"rows": rows}, f"copied {plural(rows, 'row')}; the bank they come from is as it was")


def restore(
    backup: Annotated[Path, typer.Argument(help="A file that `lessonbank backup` wrote.")],
    place: options.Place = None,
    bank: options.MaybeBank = None,
    by: Reviewer = None,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Put a copy of a backup in the place of a bank. The backup is checked first; nobody may have the bank open.

    What is there is kept under another name.
    """
    import lessonbank

    bank = options.one_bank(place, bank)
    try:
        with progress_console.status("checking the backup"):
            done = lessonbank.restore(backup, path_of(bank))
    except NotAllowed:
        if by is None:
            raise
        done = lessonbank.restore(backup, path_of(bank), by=by, key=key_of(by, key_file))
    lines = [f"{short_path(bank)} is now what {short_path(backup)} holds: {_holds(done.now)}"]
    if done.before:
        lines += [
            f"before: {_holds(done.before)}",
            f"it is kept as {short_path(done.kept)}: delete it when you do not need it",
        ]
    _report(as_json, done, *lines)


def salvage(
    files: Annotated[
        list[Path], typer.Argument(help="The damaged bank, unless --bank names it, and the new bank's file.")
    ],
    bank: options.MaybeBank = None,
    as_json: options.Json = False,
) -> None:
    """Bring what can be read of a damaged bank into a new one, and list what is lost. Nobody may have the bank open.

    The damaged file is only read; the new one must not be there yet. Exit code 3: something is lost.
    """
    import lessonbank

    if len(files) > 2:
        raise typer.BadParameter("it takes the damaged bank and the new one", param_hint="FILES")
    bank, new = options.one_bank(str(files[0]) if files[1:] else None, bank), files[-1]

    with progress_console.status("reading the damaged bank"):
        done = lessonbank.salvage(path_of(bank), new)
    held = done.counts
    lessons, runs = plural(held.lessons, "lesson"), plural(held.trajectories, "run")
    some = f"{lessons}, {runs} and {plural(held.recalls, 'recall')}"
    lines = [f"{short_path(new)} holds {some} of {short_path(bank)}"]
    for lost in done.lost:
        lines += [f"lost in {lost.scope}: {what}: {', '.join(ids)}" for what, ids in _ids(lost)]
    lines += done.notes if done.lost else [*done.notes, "nothing is lost"]
    _report(as_json, done, *lines)
    if done.lost:
        raise typer.Exit(3)


def _ids(lost: Lost) -> list[tuple[str, Sequence[str]]]:
    """What is lost, a few ids to a line."""
    named = [(what, list(map(str, ids))) for what, ids in lost if what != "scope"]
    return [(what, part) for what, ids in named for part in batches(ids, size=_TO_A_LINE)]


def _holds(state: FileState) -> str:
    size = f"{state.bytes:,} bytes"
    if state.counts is None:
        return f"{size}, which cannot be read: {state.problem}"
    last = f", last changed {state.last_change:%Y-%m-%dT%H:%M:%SZ}" if state.last_change else ""
    lessons, runs = plural(state.counts.lessons, "lesson"), plural(state.counts.trajectories, "run")
    return f"{lessons}, {runs}, {size}{last}"


def export(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(help="Where to write; with --format skill or atif, a folder.", metavar="FILE")
    ],
    bank: options.Bank,
    scope: options.Scope,
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            help="jsonl: everything, for `import`. atif: the runs, for other programs. The others: lessons for people. "
            "Default: what the name of the file says, such as CLAUDE.md or bank.jsonl.",
        ),
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", min=1, help="Tokens that the lessons of a file may take.")
    ] = BUDGET,
    all: Annotated[bool, typer.Option("--all", help="Lessons on probation, too, marked as such.")] = False,
    sync: Annotated[
        bool, typer.Option("--sync", help="First read what somebody changed in the lessons of the file, as proposals.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="With --sync: only show what would change.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write everything a scope holds to a file; or its lessons between two markers of files for people and agents."""
    if sync:
        if all or format in ("jsonl", "atif"):
            raise typer.BadParameter("it is for files of trusted lessons", param_hint="--sync")
        _sync(files, bank, scope, format, budget, preview=preview, as_json=as_json)
        return
    if preview:
        raise typer.BadParameter("it shows what --sync would do: give --sync, too", param_hint="--preview")
    if len(files) > 1:
        raise typer.BadParameter("give one file; with --sync several", param_hint="FILE")
    (file,) = files
    form = format or _format_by_name(file)
    of_lessons = {"all", "budget"} & options.on_the_line(context).keys()
    if of_lessons and form in ("jsonl", "atif"):
        raise typer.BadParameter(f"it is for lessons, and {form} has all of them", param_hint=f"--{min(of_lessons)}")
    with opened(bank, scope) as memory:
        with progress_console.status(f"exporting {scope}"):
            written = memory.admin.export(file, format=form, budget=budget, all=all)
        if not written:
            warn_where_empty(memory)
            is_of_lessons = form not in ("jsonl", "atif")
            if is_of_lessons and not all and memory.lessons.list(state="probation", limit=1):
                warn("no lesson is trusted yet: --all writes those on probation, too, marked as such")
    what = {"jsonl": "records", "atif": "runs"}.get(form, "lessons")
    _report(as_json, {what: written, "file": str(file)}, f"{written} {what} of {scope} are in {short_path(file)}")


def _format_by_name(file: Path) -> ExportFormat:
    """What the name of a file asks for. Raises BadParameter: nothing that can be written has that ending."""
    if file.suffix.casefold() in _JSON_LINES:
        return "jsonl"
    if (known := None if file.is_dir() else format_of(file)) is None:
        message = f"{short_path(file)} tells no format: name it .jsonl for everything, or give --format"
        raise typer.BadParameter(message, param_hint="FILE")
    return known


def _sync(
    files: list[Path], bank: str, scope: str, format: FileFormat | None, budget: int, *, preview: bool, as_json: bool
) -> None:
    with opened(bank, scope) as memory, progress_console.status("comparing"):
        reports = [r for file in files for r in memory.admin.sync(file, format=format, budget=budget, preview=preview)]
    if as_json:
        show_json(reports)
        return
    for report in reports:
        _show_synced(report, done=not preview)
    if preview:
        say("nothing was changed: leave --preview out to do this")


def import_(
    file: Annotated[
        Path, typer.Argument(help="What `export` wrote, memories of another program, CLAUDE.md, or a folder of skills.")
    ],
    bank: options.Bank,
    scope: options.Scope,
    approved_by: Annotated[
        str | None, typer.Option("--approved-by", help="Your name: you vouch for what was trusted in the file.")
    ] = None,
    by: Reviewer = None,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Add what an export holds and the scope does not have yet. Recorded runs go through `learn` instead.

    What somebody changed in a file of lessons becomes proposals (`lessons list --proposals`). What people wrote
    elsewhere for an agent comes in on probation.
    """
    if not is_there(file):
        raise typer.BadParameter(f"there is no file {short_path(file)}", param_hint="FILE")
    with opened(bank, scope, make=True) as memory:
        admin = owning(memory, by or approved_by, key_file).admin
        with progress_console.status("importing"):
            added = admin.import_(file, approved_by=approved_by)
    _report(as_json, {"added": added, "file": str(file)}, f"{plural(added, 'new record')} in {scope}")


def _show_synced(report: Synced, *, done: bool) -> None:
    same = "as it was" if report.before == report.after else "written" if done else "would change"
    left_out = f", {plural(report.left_out, 'does', 'do')} not fit the budget" if report.left_out else ""
    say(f"{short_path(report.path)}: {plural(report.lessons, 'lesson')}{left_out}, {same}")
    for proposal in report.proposals:
        say(f"  {'proposed' if done else 'would be proposed'}: {proposal.change} {proposal.lesson.title!r}")
    for note in report.notes:
        say(f"  {note}")
    if not done:
        before, after = report.before.splitlines(), report.after.splitlines()
        show_text("\n".join(unified_diff(before, after, "now", "then", lineterm="", n=1)))


def _report(as_json: bool, value: object, *sentences: str) -> None:
    if as_json:
        show_json(value)
        return
    for sentence in sentences:
        say(sentence)
