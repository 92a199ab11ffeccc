"""Prints how well duplicate detection does on the labelled pairs: precision and recall by kind and half, and its time.

    python -m lessonbank_bench.measure.duplicates [--wrong]

`--wrong` lists what was judged otherwise than labelled.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from typing import Any

from lessonbank import Lesson
from lessonbank.learning.consolidation import compare
from lessonbank_bench.measure.checkout import TESTS

PAIRS = TESTS / "consolidation" / "pairs.jsonl"
LABELS = ("same", "paraphrase", "opposite", "target")
LEVELS = ("same", "near", "different")


def judged(pair: dict[str, Any]) -> tuple[str, str]:
    """Level and reason for one labelled pair."""
    likeness = compare(*(Lesson(kind=pair["kind"], **pair[side]) for side in "ab"))
    return likeness.level, likeness.reason


def table(rows: list[tuple[dict[str, Any], str]]) -> str:
    """One line for each label, then precision, recall and F1 of `same` (with paraphrases counted as wrong)."""
    counts = Counter((pair["label"], level) for pair, level in rows)
    lines = ["label        pairs    same    near  different"]
    for label in LABELS:
        each = [counts[label, level] for level in LEVELS]
        lines.append(f"{label:<12}{sum(each):>6}{each[0]:>8}{each[1]:>8}{each[2]:>11}")
    right, called = counts["same", "same"], sum(counts[label, "same"] for label in LABELS)
    precision, recall = right / max(1, called), right / sum(counts["same", level] for level in LEVELS)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    lines.append(f"same: precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="list what was judged otherwise than labelled")
    options = parser.parse_args()
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    start = time.process_time()
    results = [(pair, *judged(pair)) for pair in pairs]
    spent = (time.process_time() - start) / len(pairs)
    for half in ("tune", "held"):
        print(f"\n{half}\n{table([(p, level) for p, level, _ in results if p['half'] == half])}")
    print(f"\nboth\n{table([(p, level) for p, level, _ in results])}")
    found = Counter(p["how"] for p, level, _ in results if p["label"] == "same" and level == "same")
    made = Counter(p["how"] for p in pairs if p["label"] == "same")
    print("\nsame, found by what was changed: " + ", ".join(f"{how} {found[how]}/{n}" for how, n in made.most_common()))
    print(f"CPU per comparison, both lessons read anew: {spent * 1e6:.0f} µs")
    for pair, level, reason in results if options.wrong else ():
        if (level == "same") != (pair["label"] == "same") and pair["label"] != "paraphrase":
            print(f"\n{pair['family']} {pair['label']} ({pair['how']}): {level}, {reason}")
            print(f"  {pair['a']}\n  {pair['b']}")


if __name__ == "__main__":
    main()
