"""What `holdout=` and `act=` say becomes the bank's ledger."""

from __future__ import annotations

from typing import cast

from lessonbank._base.checks import a_share, is_instance, safe_getattr
from lessonbank.contracts.ports import Store
from lessonbank.contracts.settings import UNSET
from lessonbank.contracts.withholding import Withholding
from lessonbank.evidence.draws import Holdout, NoHoldout
from lessonbank.evidence.ledger import Ledger
from lessonbank.evidence.policy import AdaptiveHoldout
from lessonbank.guard.trust import LEDGER_TRUSTS, TrustPolicy


def choose_measuring(holdout: object, profile: str, /) -> Withholding:
    """The policy that withholds: a number is a fixed probability, for lessons and for whole recalls.

    Raises:
        UsageError: neither a probability, nor a policy, nor `None`.
    """
    if holdout is None or (holdout is UNSET and profile == "paper"):
        return NoHoldout()
    if holdout is UNSET:
        return AdaptiveHoldout()
    if callable(holdout) and is_instance(safe_getattr(holdout, "base_rate"), float):
        return cast("Withholding", holdout)
    takes = "is a probability from 0 to below 1, a policy such as lessonbank.evidence.AdaptiveHoldout(), or None"
    share = a_share(holdout, "holdout", takes, below=1.0)
    return Holdout(share, share)


def measuring(store: Store, policy: Withholding, /, *, act: bool, trust: TrustPolicy) -> Ledger:
    """The ledger over a store."""
    from lessonbank.evidence.stored_ledger import StoredLedger

    return StoredLedger(store, policy, act=act, trusts=trust in LEDGER_TRUSTS)


def described(policy: Withholding, /) -> str:
    """For people: what is withheld."""
    if isinstance(policy, NoHoldout):
        return "off"
    if isinstance(policy, Holdout):
        return (
            f"{policy.base_rate:g}"
            if policy.lessons == policy.recalls
            else f"{policy.lessons:g}, whole {policy.recalls:g}"
        )
    if isinstance(policy, AdaptiveHoldout):
        memory, lesson = policy.memory, policy.lesson
        return f"memory {memory.helps:g} to {memory.harms:g}, a lesson {lesson.helps:g} to {lesson.harms:g}"
    return f"{type(policy).__name__}, {policy.base_rate:g}"
