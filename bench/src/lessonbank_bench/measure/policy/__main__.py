"""python -m lessonbank_bench.measure.policy: what the default policy costs, finds and gets wrong, row by row."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from lessonbank.evidence import AdaptiveHoldout, Holdout

from .drive import Policy
from .table import NULLS, ROWS, banks, share

POLICIES: dict[str, Callable[[str], Policy]] = {
    "default": lambda seed: AdaptiveHoldout(seed=seed),
    "constant": lambda _: Holdout(0.3, 0.1),
}


def main() -> None:
    """Print the rows."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--policy", choices=POLICIES, default="default")
    ask.add_argument("--banks", type=int, default=100, help="of each world")
    ask.add_argument("--seed", type=int, default=5000, help="of the first bank")
    ask.add_argument("--only", default="", help="worlds whose name begins so; `nulls` for all without an effect")
    told = ask.parse_args()
    policy, seeds = POLICIES[told.policy], range(told.seed, told.seed + told.banks)
    for row in ROWS:
        if (name := row.world.__name__).startswith(told.only):
            print(f"{name}: {row.say(banks(row.world, policy, seeds))}", flush=True)
    if told.only in ("", "nulls"):
        wrong = {world.__name__: sum(bool(b.false_words) for b in banks(world, policy, seeds)) for world in NULLS}
        print(f"banks with a false word: {share(sum(wrong.values()), len(NULLS) * len(seeds))}, {wrong}")


if __name__ == "__main__":
    main()
