"""Who tells the bank something: this process, or a writer with a key. A name that somebody typed is only a label."""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import secrets
import sys
from functools import cache
from typing import Final

from lessonbank.errors import UsageError
from lessonbank.protocols import Store

from .names import name_key

_SETTING: Final = "writer/"
"""Each writer is a setting of the bank: its name, and the digest of its key."""


@cache
def of_process() -> str:
    """The operating system's user at this machine, as `process:ana@host`. No environment variable changes it."""
    return f"process:{_user()}@{platform.node() or 'unknown'}"


def one_of_many(identity: str, /) -> bool:
    """Whether it is a writer among others that may come, and not the process to which the bank belongs."""
    return identity.startswith(("key:", "name:"))


async def identity_of(store: Store, /, *, name: str, key: str | None, trust_name: bool = False) -> str:
    """The identity of whoever calls the bank as `name`.

    Names that count as one are one identity. With `trust_name`, the application vouches for the name. Raises
    UsageError for a wrong or removed key.
    """
    if key is None:
        return f"name:{name_key(name)}" if trust_name else of_process()
    kept = await store.setting(_setting(name))
    if kept is None or not hmac.compare_digest(kept, _digest(key)):
        raise UsageError(
            f"this is not the key of writer {name!r}: use the one that bank.admin.add_writer({name!r}) gave"
        )
    return f"key:{name_key(name)}"


async def add_writer(store: Store, name: str, /) -> str:
    """A new key for a writer. The bank keeps its digest only; an earlier key of the same writer ends."""
    key = secrets.token_urlsafe(32)
    await store.set_setting(_setting(name), _digest(key))
    return key


async def remove_writer(store: Store, name: str, /) -> bool:
    """End the key of a writer. Whether there was one."""
    known = await store.setting(_setting(name)) is not None
    await store.set_setting(_setting(name), None)
    return known


async def writers(store: Store, /) -> tuple[str, ...]:
    """The names of writers with a key, in small letters, sorted."""
    return tuple(name.removeprefix(_SETTING) for name in await store.settings(_SETTING))


def _setting(name: str) -> str:
    return _SETTING + name_key(name)


def _digest(key: str) -> str:
    """Enough for a key that is long and random: nobody can try them all."""
    return hashlib.sha256(key.encode()).hexdigest()


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
