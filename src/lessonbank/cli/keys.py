"""`keys`: who may call a server, for which scope and in which role."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import anyio
import typer

from lessonbank._base.plural import counted

from . import _options as options
from ._bank import needs_bank
from ._output import console, show_json, show_table, warn
from ._reviewing import KeyFile, Reviewer, person_of

T = TypeVar("T")
app = typer.Typer(help="Make, list, rotate and end the keys of a server (`lessonbank serve`).", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="The key's id, as `keys list` shows it.")]
Days = Annotated[float | None, typer.Option("--days", min=0.0, help="Days after which it ends. Without: never.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Who holds it. What is told with it counts as told by this name.")],
    bank: options.Bank,
    scope: Annotated[
        str | None,
        typer.Option("--scope", help="The tenant: this scope and all below it.", show_default=False),
    ] = None,
    whole_bank: Annotated[bool, typer.Option("--whole-bank", help="Instead of --scope: every scope.")] = False,
    role: Annotated[str, typer.Option("--role", help="agent, reader, reviewer or admin.")] = "agent",
    days: Days = None,
    rate: Annotated[int, typer.Option("--rate", min=1, help="Calls a minute.")] = 6000,
    by: Reviewer = None,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Print a new key. Only now can it be read: the bank keeps a digest of it.

    Where the bank has reviewers, this asks for the key of one. So do `rotate` and `remove`.
    """
    if (scope is None) != whole_bank:
        raise typer.BadParameter("give either a scope or --whole-bank", param_hint="--scope")
    person = person_of(bank, by, key_file)
    key = _with_keys(bank, lambda keys: keys.add(name, scope=scope or "", role=role, days=days, rate=rate, **person))
    _show(key, as_json)


@app.command("list")
def list_(bank: options.Bank, as_json: options.Json = False) -> None:
    """List the keys, never what opens with them."""
    found = _with_keys(bank, lambda keys: keys.list())
    if as_json:
        hidden = {"digest", "earlier"}
        show_json([{**key.model_dump(mode="json", exclude=hidden), "used_at": used} for key, used in found])
        return
    columns = ("id", "name", "role", "scope", "ends", "used")
    rows = [(k.id, k.name, k.role, k.scope or "(every)", _day(k.expires_at), _day(used)) for k, used in found]
    show_table(counted(len(found), "key"), columns, rows)


@app.command()
def rotate(
    id: Id,
    bank: options.Bank,
    overlap: Annotated[
        float, typer.Option("--overlap", min=0.0, help="Days for which the earlier one opens, too.")
    ] = 0.0,
    by: Reviewer = None,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Print a new key in the place of an earlier one, which ends now or after --overlap days."""
    person = person_of(bank, by, key_file)
    _show(_with_keys(bank, lambda keys: keys.rotate(id, days=overlap, **person)), as_json)


@app.command()
def remove(id: Id, bank: options.Bank, by: Reviewer = None, key_file: KeyFile = None) -> None:
    """End a key."""
    person = person_of(bank, by, key_file)
    key = _with_keys(bank, lambda keys: keys.remove(id, **person))
    console.print(f"removed: {key.id} ({key.name})", markup=False)


def _with_keys(bank: str, call: Callable[[Any], Awaitable[T]]) -> T:
    from lessonbank import connect_async
    from lessonbank.http.service.keys import Keys

    async def called() -> T:
        async with await connect_async(bank, scope="default") as memory:
            return await call(Keys(memory))

    needs_bank(bank)
    return anyio.run(called)


def _show(key: str, as_json: bool) -> None:
    if as_json:
        show_json({"key": key})
        return
    console.print(key, markup=False, soft_wrap=True)
    warn("keep it now: it is shown once. An agent reads it from LESSONBANK_API_KEY")


def _day(at: Any) -> str:
    return at.strftime("%Y-%m-%d") if at else "never"
