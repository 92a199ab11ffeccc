"""What blind readers said of each arm: runs with a lesson that helps, with one that misleads, and whether two agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from lessonbank_bench.experiment.distributions import mcnemar
from lessonbank_bench.measure.judging.figures import Share

Said = Mapping[str, Mapping[str, str]]
"""By packet: letter to `helps`, `misleads` or `nothing`."""
_BASE = "default"


def table(key: Sequence[Mapping[str, Any]], first: Said) -> str:
    """Each arm of each bank, over all runs that were read; paired with the default of the same bank."""
    read = [row for row in key if row["packet"] in first]
    arms = list(dict.fromkeys(arm for row in read for arm in row["arms"]))
    lines = ["| bank: arm | runs | with any lesson | lessons | a lesson helps | p against default | misleads | p |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    return "\n".join(lines + [_line(arm, read, first) for arm in arms])


def _line(arm: str, read: Sequence[Mapping[str, Any]], said: Said) -> str:
    rows = [row for row in read if arm in row["arms"]]
    base = f"{arm.partition(': ')[0]}: {_BASE}"
    cells = [arm, str(len(rows)), str(sum(bool(row["arms"][arm]) for row in rows))]
    cells.append(f"{sum(len(row['arms'][arm]) for row in rows) / len(rows):.1f}")
    for word in ("helps", "misleads"):
        own, other = ([_has(row, name, word, said) for row in rows] for name in (arm, base))
        better = sum(a and not b for a, b in zip(own, other, strict=True))
        worse = sum(b and not a for a, b in zip(own, other, strict=True))
        cells += [
            str(Share(sum(own), len(own))),
            "" if arm == base else f"+{better} −{worse}, {mcnemar(better, worse):.2f}",
        ]
    return f"| {' | '.join(cells)} |"


def _has(row: Mapping[str, Any], arm: str, word: str, said: Said) -> bool:
    told = said[row["packet"]]
    return any(told.get(letter) == word for letter in row["arms"][arm])


def agreement(first: Said, second: Said) -> str:
    """Of lessons that two readers read: how often they say the same, and Cohen's kappa."""
    pairs = [(first[p][x], second[p][x]) for p in second if p in first for x in second[p] if x in first[p]]
    if not pairs:
        return "no lesson was read twice"
    same, counts = sum(a == b for a, b in pairs), [Counter(one) for one in zip(*pairs, strict=True)]
    chance = sum(counts[0][word] * counts[1][word] for word in counts[0]) / len(pairs) ** 2
    kappa = (same / len(pairs) - chance) / (1 - chance) if chance < 1 else 1.0
    each = ", ".join(f"{a}/{b} {n}" for (a, b), n in sorted(Counter(pairs).items()))
    return f"two readers agree on {same} of {len(pairs)} lessons, kappa {kappa:.2f} ({each})"


def by_kind(key: Sequence[Mapping[str, Any]], first: Said) -> str:
    """What was said of each kind of lesson: the words of its title up to the colon."""
    counts = defaultdict[str, Counter[str]](Counter)
    for row in key:
        for letter, title in row["titles"].items():
            if word := first.get(row["packet"], {}).get(letter):
                counts[f"{row['source']}: {title.partition(':')[0]}"][word] += 1
    return "\n".join(f"- {kind}: {dict(counts[kind])}" for kind in sorted(counts))
