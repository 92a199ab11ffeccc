"""Who calls the bank: this process, or somebody with a key. A name that somebody typed is only a label."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import platform
import secrets
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Literal, get_args

from lessonbank.contracts.ports import RECEIPT_SECRET, Store
from lessonbank.contracts.records import Submission
from lessonbank.contracts.store_calls import get_setting
from lessonbank.errors import NotAllowed, UsageError

from .names import look, name_key

Role = Literal["writer", "reviewer"]
"""What a key is for. Each is a setting of the bank, `role/name`, with the digest of the key.

What a writer tells counts as its own. A reviewer decides what is shown; what a reviewer tells counts as its own, too.
"""

ServerRole = Literal["agent", "reader", "reviewer", "admin"]
"""What a key of a server lets its holder do."""

_caller: ContextVar[str | None] = ContextVar("caller", default=None)


@contextmanager
def acting_as(identity: str, /) -> Generator[None]:
    """Inside, and in work that begins inside, calls without a key of their own are those of `identity`.

    For a server, which knows its callers by other keys: to whom the process belongs says nothing of them. Where
    `identity` is empty, they are whose they were.
    """
    token = _caller.set(identity or _caller.get())
    try:
        yield
    finally:
        _caller.reset(token)


@cache
def of_process() -> str:
    """The operating system's user at this machine, as `process:ana@host`. No environment variable changes it."""
    return f"process:{_user()}@{platform.node() or 'unknown'}"


def of_scope_key(door: str, digest: str, /, *, holders: int) -> str:
    """Of whoever comes by a key of one scope at a door with its own keys, such as the proxy; `digest` in hexadecimal.

    Empty where nobody else has a key of that scope: whoever alone has it is its owner, as the process is.
    """
    return f"key:{door}/{digest[:16]}" if holders > 1 else ""


def is_separate_writer(identity: str, /) -> bool:
    """Whether an identity is one writer of several, and not the process to which the bank belongs.

    `name:` is what an earlier version knew the users of an application by.
    """
    return identity.startswith(("key:", "name:"))


async def identity_of(store: Store, /, *, name: str, key: str | None) -> str:
    """The identity of whoever calls the bank as `name`.

    Names that count as one are one identity; a name without a key is a label. Raises UsageError for a wrong or removed
    key.
    """
    if key is None and (caller := _caller.get()):
        return caller
    if key is None:
        return of_process()
    if not (await _opens(store, "writer", name, key) or await _opens(store, "reviewer", name, key)):
        raise UsageError(
            f"this is not the key of writer {name!r}: use the one that bank.admin.add_writer({name!r}) gave"
        )
    return f"key:{name_key(name)}"


def seal(secret: str, identity: str, writer: str, /, *, runs: Iterable[str], scope: str) -> str:
    """What proves later that the bank knew who told of these runs: any other word kept with a run is its caller's."""
    message = json.dumps([scope, sorted(runs), identity, writer])
    return hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest() if secret else ""


async def verified_submitter(
    store: Store, submission: Submission, /, *, runs: Iterable[str], scope: str
) -> tuple[str, str] | None:
    """The identity and the name of whoever submitted runs, as the bank knew them; `None` where nothing proves it."""
    if not (submission.seal and submission.seal.isascii()):
        return None
    right = seal(
        await get_setting(store, RECEIPT_SECRET) or "", submission.identity, submission.writer, runs=runs, scope=scope
    )
    return (submission.identity, submission.writer) if right and hmac.compare_digest(submission.seal, right) else None


async def check_reviewer(store: Store, call: str, /, *, name: str, key: str | None, by: str | None = None) -> None:
    """Refuse `call` where the bank has reviewers, unless `name` is one, `key` is the key, and `by` the same person.

    `call` is one of `guard.reviewed`. Raises NotAllowed.
    """
    names = await key_names(store, "reviewer")
    if not names:
        return
    if key is None or not await _opens(store, "reviewer", name, key):
        who = "no key was given" if key is None else f"this is not the key of a reviewer called {name!r}"
        raise NotAllowed(
            f"{call} needs the key of a reviewer ({', '.join(names[:5])}), and {who}: "
            "give it, as in bank.scoped(writer=NAME, key=…)"
        )
    if by is not None and name_key(by) != name_key(name):
        raise NotAllowed(f"{call} is done with the key of {name!r}: give by={name!r}, and not {by!r}")


async def add_key(store: Store, role: Role, name: str, /) -> str:
    """A new key. The bank keeps its digest only; an earlier key of the same name and role ends.

    It begins with what it is, by which the redactor knows it in any text. Raises UsageError: somebody else with a key
    has a name that looks the same.
    """
    for other in {holder for each in get_args(Role) for holder in await key_names(store, each)} - {name_key(name)}:
        if look(other) == look(name):
            raise UsageError(f"{name!r} looks like {other!r}, who has a key: choose another name")
    key = f"lb_{role}_{secrets.token_urlsafe(32)}"
    await store.put_setting(_setting(role, name), _digest(key))
    return key


async def end_key(store: Store, role: Role, name: str, /) -> None:
    """End a key, if there is one."""
    await store.put_setting(_setting(role, name), None)


async def key_names(store: Store, role: Role, /) -> tuple[str, ...]:
    """The names of those with a key, in small letters, sorted."""
    return tuple(name.removeprefix(f"{role}/") for name in await store.settings(f"{role}/"))


async def warn_unprotected(policy: str, store: Store, /) -> None:
    """Say that nobody is asked for a key where only what a person approved is to be shown."""
    if policy == "reviewed" and not await key_names(store, "reviewer"):
        logging.getLogger("lessonbank").warning(
            'trust="reviewed" is not protected from an agent on this machine: any program here can approve a lesson, '
            "until bank.admin.add_reviewer(NAME) gives a person a key"
        )


async def _opens(store: Store, role: Role, name: str, key: str) -> bool:
    """Compared in a time that tells nothing."""
    digest = await get_setting(store, _setting(role, name))
    return digest is not None and hmac.compare_digest(digest, _digest(key))


def _setting(role: Role, name: str) -> str:
    return f"{role}/{name_key(name)}"


def _digest(key: str) -> str:
    """Enough for a key that is long and random: nobody can try them all."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


if sys.platform == "win32":  # pragma: no cover - the system is asked for the login's own name

    def _user() -> str:
        return os.getlogin()

else:
    import pwd

    def _user() -> str:
        """From the system's own table: `getpass` would believe `USER` and `LOGNAME`."""
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # pragma: no cover - a container whose user has no name
            return str(os.getuid())
