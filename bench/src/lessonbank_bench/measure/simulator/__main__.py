"""A world in which the truth about every lesson is planted: the only place where credit can be checked.

    python -m lessonbank_bench.measure.simulator [--episodes N] [--lessons N] [--seeds N] [--json]

Printed: how well counting, comparing and learning a value rank planted effects, and how fast episodes are made.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from . import Judging, Silence, World, auc, counters, oracle, play, q_learning, simulate, spearman, with_without

COMPARED = {"counters": counters, "with-without": with_without, "Q(.1)": q_learning}
"""What others do, by name: from episodes to one score per lesson."""
ORACLE = "oracle"
"""The bound: told everything but the effect asked for."""


def ranked(*, lessons: int, episodes: int, seeds: int, withhold: float = 0.3) -> dict[str, dict[str, float]]:
    """How well each ranks the planted effects of `World.credit`, averaged over seeds: Spearman, AUC of what harms."""
    scores: dict[str, list[tuple[float, float]]] = {name: [] for name in (*COMPARED, ORACLE)}
    for seed in range(seeds):
        world = World.credit(seed, lessons=lessons)
        run, planted = play(world, episodes, withhold=withhold, control=0.0, seed=seed), world.families.effect[0]
        values = {name: score(run.episodes) for name, score in COMPARED.items()} | {ORACLE: oracle(world, run)}
        for name, value in values.items():
            scores[name].append((spearman(value, planted), auc(-value, planted < 0)))
    means = {name: np.mean(pairs, axis=0) for name, pairs in scores.items()}
    return {name: {"spearman": float(m[0]), "auc of harmful": float(m[1])} for name, m in means.items()}


def speed(*, lessons: int = 30, episodes: int = 200_000) -> float:
    """Episodes per second, with every draw, a judge who errs and missing outcomes."""
    world = World.draw(0, lessons=lessons, judge=Judging(audited=0.1), silence=Silence(success=0.05, failure=0.05))
    began = time.perf_counter()
    simulate(world, episodes, withhold=0.2, control=0.1, seed=0)
    return episodes / (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    asked = _arguments()
    scores = ranked(lessons=asked.lessons, episodes=asked.episodes, seeds=asked.seeds)
    fast = speed(lessons=asked.lessons)
    if asked.json:
        print(json.dumps({"ranking": scores, "episodes per second": round(fast)}, indent=2))
        return
    print(f"{asked.lessons} lessons, {asked.episodes} episodes, {asked.seeds} seeds\n")
    print("| estimator | Spearman | AUC of harmful |\n|---|---:|---:|")
    for name, score in scores.items():
        print(f"| {name} | {score['spearman']:.2f} | {score['auc of harmful']:.2f} |")
    print(f"\n{fast:,.0f} episodes per second")


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lessons", type=int, default=30)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
