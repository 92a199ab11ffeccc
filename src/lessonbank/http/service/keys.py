"""Who may call a server: keys, each for one tenant and one role. The bank keeps their digests only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from lessonbank._base.checks import a_count, a_text, one_of, short_repr, some_days
from lessonbank.bank.audit_log import record_act
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.contracts.records import Record
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.record import Moment
from lessonbank.contracts.store_calls import get_setting
from lessonbank.errors import UsageError
from lessonbank.guard import check_scope
from lessonbank.guard.identity import ServerRole, check_reviewer
from lessonbank.guard.names import checked_name

_KEPT: Final = "server_key/"
_USED: Final = "server_key_used/"
_SEEN_EVERY: Final = timedelta(minutes=10)
"""How exact the time of the last use is: a write for every call would cost more than it tells."""
_REMEMBERED: Final = 10_000
"""Keys of which a process remembers when they were used."""
_PARTS: Final = 3
RATE: Final = 6000


class Key(Record):
    """What a bank knows of a key. The key itself is nowhere."""

    id: str
    name: str
    """Who holds it. What is told with it counts as told by this name."""
    scope: str
    """The tenant: this scope and all below it. Empty: the whole bank."""
    role: ServerRole
    rate: int = RATE
    """Calls a minute."""
    created_at: Moment
    expires_at: Moment | None = None
    digest: str
    earlier: str = ""
    """The digest before the last rotation, which opens until `earlier_until`."""
    earlier_until: Moment | None = None


class Keys:
    """The keys that a bank keeps among its settings. Its journal tells who made and ended them."""

    def __init__(self, bank: AsyncReasoningBank, /) -> None:
        self._bank, self._store = bank, bank.store
        self._seen = OrderedDict[str, datetime]()

    async def add(
        self,
        name: str,
        /,
        *,
        scope: str,
        role: ServerRole = "agent",
        days: float | None = None,
        rate: int = RATE,
        by: str | None = None,
        key: str | None = None,
    ) -> str:
        """A new key, which is shown now and never again. `scope=""`: the whole bank.

        Where the bank has reviewers, `by` is the name of one and `key` that reviewer's key. Raises UsageError,
        NotAllowed.
        """
        await check_reviewer(self._store, "keys.add", name=by or "", key=key)
        checked = checked_name(name, what="name=")
        id, secret, made = secrets.token_hex(8), _secret(), now()
        new = Key(
            id=id,
            name=checked,
            scope=check_scope(scope) if scope else "",
            role=one_of(role, "role=", get_args(ServerRole)),
            rate=a_count(rate, "rate="),
            created_at=made,
            expires_at=None if days is None else made + timedelta(days=some_days(days, "days=")),
            digest=_digest(secret),
        )
        await self._keep(new)
        await self._note("keys.add", new, by, key)
        return _written(id, secret)

    async def list(self) -> Sequence[tuple[Key, datetime | None]]:
        """Every key with the time of its last use, oldest first."""
        used = await self._store.settings(_USED)
        keys = [Key.model_validate_json(text) for text in (await self._store.settings(_KEPT)).values()]
        return [
            (key, datetime.fromisoformat(used[f"{_USED}{key.id}"]) if f"{_USED}{key.id}" in used else None)
            for key in sorted(keys, key=lambda key: key.created_at)
        ]

    async def remove(self, id: str, /, *, by: str | None = None, key: str | None = None) -> Key:
        """End a key, named by its id. `by` and `key` as in `add`. Raises UsageError, NotAllowed."""
        await check_reviewer(self._store, "keys.remove", name=by or "", key=key)
        record = await self._get_key(id)
        await self._store.put_setting(f"{_KEPT}{record.id}", None)
        await self._store.put_setting(f"{_USED}{record.id}", None)
        await self._note("keys.remove", record, by, key)
        return record

    async def rotate(self, id: str, /, *, days: float = 0.0, by: str | None = None, key: str | None = None) -> str:
        """A new secret for a key, named by its id. The earlier one opens for `days` more. `by` and `key` as in `add`.

        Raises UsageError, NotAllowed.
        """
        await check_reviewer(self._store, "keys.rotate", name=by or "", key=key)
        held, secret = await self._get_key(id), _secret()
        until = now() + timedelta(days=some_days(days, "days=")) if days else None
        update = {"digest": _digest(secret), "earlier": held.digest if until else "", "earlier_until": until}
        await self._keep(held.model_copy(update=update))
        await self._note("keys.rotate", held, by, key)
        return _written(held.id, secret)

    async def find(self, written: str, /) -> Key | None:
        """The key that somebody shows, if there is such a key and it has not ended."""
        parts = written.split("_", _PARTS - 1)
        if len(parts) != _PARTS or parts[0] != "lb" or not (parts[1].isascii() and parts[1].isalnum()):
            return None
        setting = await get_setting(self._store, f"{_KEPT}{parts[1]}")
        if setting is None:
            return None
        key, at = Key.model_validate_json(setting), now()
        if key.expires_at is not None and key.expires_at <= at:
            return None
        return key if _opens(key, _digest(parts[2]), at) else None

    async def seen(self, key: Key, /) -> None:
        """Note that a key was used, once in a while; in between, this process asks nobody when that was."""
        at, seen = datetime.now(UTC), self._seen.get(key.id)
        if seen is not None and at - seen <= _SEEN_EVERY:
            return
        setting = await get_setting(self._store, f"{_USED}{key.id}")
        noted = datetime.fromisoformat(setting) if setting else None
        if noted is None or at - noted > _SEEN_EVERY:
            noted = at
            await self._store.put_setting(f"{_USED}{key.id}", at.isoformat(timespec="seconds"))
        self._seen[key.id] = noted
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    async def _keep(self, key: Key) -> None:
        await self._store.put_setting(f"{_KEPT}{key.id}", key.model_dump_json())

    async def _note(self, act: str, about: Key, by: str | None, key: str | None) -> None:
        """In the key's own scope: no tenant reads of another one's keys."""
        text, writer = f"{about.id}, {about.role}, {about.name}", by if by and key else self._bank.writer
        await record_act(self._store, act, text, scope=about.scope or self._bank.scope, writer=writer, key=key)

    async def _get_key(self, id: str) -> Key:
        setting = await get_setting(self._store, f"{_KEPT}{a_text(id, 'id', blank=False)}")
        if setting is None:
            raise UsageError(f"there is no key {short_repr(id)}: `lessonbank keys list` names them")
        return Key.model_validate_json(setting)


def _opens(key: Key, digest: str, at: datetime) -> bool:
    """Compared in a time that tells nothing."""
    now_open = hmac.compare_digest(key.digest, digest)
    before = hmac.compare_digest(key.earlier, digest) and key.earlier_until is not None and at < key.earlier_until
    return now_open or before


def _secret() -> str:
    return secrets.token_urlsafe(32)


def _written(id: str, secret: str) -> str:
    return f"lb_{id}_{secret}"


def _digest(secret: str) -> str:
    """Enough for 256 random bits: nobody can try them all."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
