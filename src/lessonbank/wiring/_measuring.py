"""What `holdout=` and `act=` say becomes the bank's ledger."""

from __future__ import annotations

from lessonbank._base.checks import is_instance
from lessonbank.contracts.ports import Store
from lessonbank.contracts.settings import UNSET, Unset
from lessonbank.contracts.withholding import Withholding
from lessonbank.evidence.ledger import Ledger
from lessonbank.evidence.policy import AdaptiveHoldout, Holdout
from lessonbank.guard.trust import LEDGER_TRUSTS, TrustPolicy


def choose_measuring(holdout: float | Withholding | Unset | None, profile: str, /) -> Withholding:
    """The policy that withholds: a number is a fixed probability, for lessons and for whole recalls."""
    if holdout is None or (holdout is UNSET and profile == "paper"):
        return Holdout(0.0, 0.0)
    if is_instance(holdout, Unset):
        return AdaptiveHoldout()
    return Holdout(float(holdout), float(holdout)) if is_instance(holdout, (int, float)) else holdout


def measuring(store: Store, policy: Withholding, /, *, act: bool, trust: TrustPolicy) -> Ledger:
    """The ledger over a store."""
    from lessonbank.evidence.stored_ledger import StoredLedger

    return StoredLedger(store, policy, act=act, trusts=trust in LEDGER_TRUSTS)
