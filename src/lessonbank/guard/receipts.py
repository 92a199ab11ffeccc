"""Keeps the receipts of recalls. One that could not be kept at once is signed, and taken in when it comes back."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
from typing import Final
from weakref import WeakValueDictionary

from lessonbank._base.aio import try_write
from lessonbank._base.checks import an_id, is_instance, short_repr
from lessonbank.contracts.ports import RECEIPT_SECRET, RecallFilter, Store
from lessonbank.contracts.records import Recall, notes_of
from lessonbank.contracts.store_calls import get_recall, get_setting
from lessonbank.errors import UsageError
from lessonbank.guard.quote import quoted

log = logging.getLogger("lessonbank")
_UNSIGNED: Final = frozenset({"lessons", "notes", "kept", "signature"})
"""What is not kept with a receipt that comes back, or is another then."""
ERASED: Final = "something was erased since the recall was made: this run is not measured"
_REMOVED: Final = re.compile(r"\[[^\[\]\n]{0,60}\]")
"""What stands in the place of a secret: it may be called otherwise in another text."""


class Receipts:
    """The receipts of one bank. A recall may leave it and come back through any process that opens the same bank."""

    def __init__(self, store: Store, /) -> None:
        self._store = store
        self._secret: str | None = None
        self._is_warned = False
        self._given = WeakValueDictionary[int, Recall]()
        """By its place in memory, what was kept and given to a caller who still has it."""

    async def secret(self) -> str:
        """The secret of the bank, with which it signs what may leave it; empty where it has none."""
        if self._secret is None:
            self._secret = await get_setting(self._store, RECEIPT_SECRET) or ""
        return self._secret

    async def keep(self, recall: Recall, /) -> Recall:
        """`recall` with its signature: on disk, or with a note on why it is not. To read never needs to write."""
        signed = recall.model_copy(update={"signature": signature(recall, secret=await self.secret())})
        problem = await try_write(self._store.save_recall(recall))
        if problem is None:
            self._is_warned = False
            self._given[id(signed)] = signed
            return signed
        note = f"this receipt is not kept yet, hand it to `learn`; it could not be written: {quoted(problem)}"
        if not self._is_warned:  # once, until a receipt is kept again: each recall has its note
            log.warning("%s", note)
            self._is_warned = True
        return signed.model_copy(update={"kept": False, "notes": (*signed.notes, *notes_of(note))})

    async def returned(self, recall: Recall | str | None, /, *, scope: str) -> tuple[Recall | None, tuple[str, ...]]:
        """The kept receipt that the caller names, or why there is none that an outcome could settle.

        It is looked up before anything is paid for, but for the very object that this process kept and gave. What the
        caller hands in otherwise counts only where the bank does not have the receipt and signed it as it is.

        Raises:
            UsageError: it was made in another scope.
            NotFound: an id of no receipt.
        """
        if recall is None:
            return None, ()
        if not is_instance(recall, Recall):
            return await get_recall(self._store, an_id(recall, "recall="), scope=scope), ()
        if recall.scope != scope:
            raise UsageError(f"the recall was made in scope {short_repr(recall.scope)}, but this learns in {scope!r}")
        if self._given.get(id(recall)) is recall:
            return recall, ()
        asked = RecallFilter(ids=(an_id(recall.id, "recall="),))
        if known := await self._store.recalls(asked, scope=scope):
            return known[0].recall, ()
        if not recall.kept and not recall.signature:
            return None, ()  # an attempt that went on without its memory: nothing was shown
        return await self._taken_in(recall)

    async def _taken_in(self, recall: Recall) -> tuple[Recall | None, tuple[str, ...]]:
        secret = await get_setting(self._store, RECEIPT_SECRET)
        signed = signature(recall, secret=secret).encode() if secret else b""
        if not signed or not hmac.compare_digest(recall.signature.encode("utf-8", "replace"), signed):
            return None, ("the recall was not made by this bank, or was changed: this run is not measured",)
        plain = recall.model_copy(update={"notes": (), "kept": True, "signature": ""})
        if not await self._store.save_recall(plain, returned=True):
            return None, (ERASED,)
        return await get_recall(self._store, recall.id, scope=recall.scope), ()


def plain_task(task: str, /) -> str:
    """`task` as it is compared with another: without case, white space, and what stands in the place of a secret."""
    return " ".join(_REMOVED.sub(" ", task).casefold().split())


def signature(recall: Recall, /, *, secret: str) -> str:
    """HMAC-SHA256 of all that is kept of a receipt: what was found, shown and drawn, with which odds and when.

    Empty without a secret.
    """
    if not secret:
        return ""
    fields = recall.model_dump(mode="json", exclude=set(_UNSIGNED), exclude_defaults=True)
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
