"""`keys`: who may call a server, who decides what is shown, and whose outcomes count as their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar, cast

import anyio
import typer

from lessonbank._base.plural import plural

from . import _options as options
from ._bank import is_server, needs_bank, opened
from ._output import console, say, show_json, show_table, warn
from ._reviewing import UNPROTECTED, KeyFile, Reviewer, owning, person_of

T = TypeVar("T")
Kind = Literal["server", "reviewer", "writer"]
app = typer.Typer(help="Make, list and end the keys of a server, of reviewers and of writers.", no_args_is_help=True)
KindOf = Annotated[
    Kind,
    typer.Option(
        "--kind", help="server: calls `lessonbank serve`. reviewer: decides what is shown. writer: counts as its own."
    ),
]
RATE = 6000


@app.command()
def add(
    bank: options.Bank,
    name: Annotated[
        str | None, typer.Argument(help="Who holds it. What is told with it counts as told by this name.")
    ] = None,
    kind: KindOf = "server",
    scope: Annotated[
        str | None,
        typer.Option("--scope", help="Of a server key: this scope and all below it.", show_default=False),
    ] = None,
    whole_bank: Annotated[bool, typer.Option("--whole-bank", help="Instead of --scope: every scope.")] = False,
    role: Annotated[
        str | None, typer.Option("--role", help="Of a server key: agent, reader, reviewer or admin. Default: agent.")
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", min=0.0, help="Days after which a server key ends. Without: never.")
    ] = None,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help=f"Calls a minute of a server key. Default: {RATE}.")
    ] = None,
    replaces: Annotated[
        str | None, typer.Option("--replaces", help="The id of the server key in whose place this one comes.")
    ] = None,
    overlap: Annotated[
        float | None, typer.Option("--overlap", min=0.0, help="Days for which the replaced key opens, too.")
    ] = None,
    by: Reviewer = None,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Print a new key. Only now can it be read: the bank keeps a digest of it.

    A new key of a reviewer or a writer ends the earlier one of that name. From the first reviewer on, whatever decides
    what is shown, erases, or hands out or ends keys asks for the key of one.
    """
    options.needs_words({"--replaces": replaces})
    of_server: dict[str, object] = {"--scope": scope, "--whole-bank": whole_bank or None, "--role": role}
    of_server |= {"--days": days, "--rate": rate, "--replaces": replaces, "--overlap": overlap}
    _check(name, kind, [option for option, value in of_server.items() if value is not None])
    if kind != "server":
        with opened(bank, "default") as memory:
            admin = owning(memory, by, key_file).admin
            key = (admin.add_reviewer if kind == "reviewer" else admin.add_writer)(cast("str", name))
        _show(key, {kind: name}, "keep it where no agent can read it" if kind == "reviewer" else "", as_json=as_json)
        return
    person = person_of(bank, by, key_file)
    if replaces:
        key = _with_keys(bank, lambda keys: keys.rotate(replaces, days=overlap or 0.0, **person))
    else:
        new: dict[str, Any] = {"scope": scope or "", "role": role or "agent", "days": days, "rate": rate or RATE}
        key = _with_keys(bank, lambda keys: keys.add(cast("str", name), **new, **person))
    _show(key, {}, "an agent reads it from LESSONBANK_API_KEY", as_json=as_json)


def _check(name: str | None, kind: Kind, of_server: Sequence[str]) -> None:
    """Refuse what cannot be meant together. `of_server`: the options given that only a server key has."""
    if kind != "server" and of_server:
        raise typer.BadParameter("it is for keys of a server: leave it out", param_hint=of_server[0])
    if "--replaces" in of_server:
        if name or not {"--replaces", "--overlap"}.issuperset(of_server):
            raise typer.BadParameter("the new key has the name, scope and role of that one", param_hint="--replaces")
        return
    if name is None:
        raise typer.BadParameter("say who holds the key", param_hint="NAME")
    if "--overlap" in of_server:
        raise typer.BadParameter("it is for a key that --replaces another", param_hint="--overlap")
    if kind == "server" and ("--scope" in of_server) == ("--whole-bank" in of_server):
        raise typer.BadParameter("give either a scope or --whole-bank", param_hint="--scope")


@app.command("list")
def list_(
    bank: options.Bank,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only keys of this kind.")] = None,
    as_json: options.Json = False,
) -> None:
    """List the keys and who holds them, never what opens with them."""
    keys = [key for key in _every(bank) if kind in (None, key["kind"])]
    if as_json:
        show_json(keys)
        return
    columns = ("kind", "id", "name", "role", "scope", "ends", "used")
    show_table(plural(len(keys), "key"), columns, map(_row, keys))
    if not any(key["kind"] == "reviewer" for key in keys) and kind in (None, "reviewer"):
        say(UNPROTECTED)


def _every(bank: str) -> list[dict[str, Any]]:
    with opened(bank, "default") as memory:
        people = {"reviewer": memory.admin.reviewers(), "writer": memory.admin.writers()}
    entries: list[dict[str, Any]] = [{"kind": kind, "name": name} for kind, names in people.items() for name in names]
    if is_server(bank):
        warn("the keys of the server itself are listed where it runs")
        return entries
    hidden = {"digest", "earlier"}
    for key, used in _with_keys(bank, lambda keys: keys.list()):
        entries.append({"kind": "server", **key.model_dump(mode="json", exclude=hidden), "used_at": used})
    return entries


def _row(key: dict[str, Any]) -> tuple[object, ...]:
    if key["kind"] != "server":
        return key["kind"], "", key["name"], "", "", "", ""
    ends, used = (str(key[name])[:10] if key[name] else "never" for name in ("expires_at", "used_at"))
    return key["kind"], key["id"], key["name"], key["role"], key["scope"] or "(every)", ends, used


@app.command()
def remove(
    key: Annotated[str, typer.Argument(help="Of a server key its id, as `keys list` shows it; otherwise the name.")],
    bank: options.Bank,
    kind: KindOf = "server",
    by: Reviewer = None,
    key_file: KeyFile = None,
) -> None:
    """End a key. What was told or decided with it stays."""
    if kind == "server":
        person = person_of(bank, by, key_file)
        server_key = _with_keys(bank, lambda keys: keys.remove(key, **person))
        console.print(f"removed: {server_key.id} ({server_key.name})", markup=False)
        return
    with opened(bank, "default") as memory:
        admin = owning(memory, by, key_file).admin
        (admin.remove_reviewer if kind == "reviewer" else admin.remove_writer)(key)
    console.print(f"removed: {key}", markup=False)


def _with_keys(bank: str, call: Callable[[Any], Awaitable[T]]) -> T:
    from lessonbank import connect_async
    from lessonbank.http.service.keys import Keys

    async def call_with_keys() -> T:
        async with await connect_async(bank, scope="default") as memory:
            return await call(Keys(memory))

    needs_bank(bank)
    return anyio.run(call_with_keys)


def _show(key: str, about: dict[str, Any], hint: str, *, as_json: bool) -> None:
    """The key alone on its line: what stands there is copied or read by a script."""
    if as_json:
        show_json({**about, "key": key})
        return
    console.print(key, markup=False, soft_wrap=True)
    warn("; ".join(filter(None, ("keep it now: it is shown once", hint))))
