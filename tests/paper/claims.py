"""The fidelity manifest: each claim of the published method, what each profile does about it, why, and its tests.

`python tests/paper/claims.py` writes the lists of docs/paper-map.md; `--check` only says whether it is current.
"""

from __future__ import annotations

import sys
from pathlib import Path

from claim import AS_PUBLISHED, Claim
from claims_after import CONSOLIDATION, CONTRAST, EXTRACTION
from claims_before import INJECTION, RETRIEVAL, SETTING
from claims_judge import JUDGE

PAGE = Path(__file__).parents[2] / "docs" / "paper-map.md"
BEGIN, END = "<!-- claims: begin (written by tests/paper/claims.py) -->", "<!-- claims: end -->"

PARTS: tuple[tuple[str, tuple[Claim, ...]], ...] = (
    ("Setting", SETTING),
    ("Retrieval", RETRIEVAL),
    ("Injection", INJECTION),
    ("Judge", JUDGE),
    ("Extraction", EXTRACTION),
    ("Several runs of one task (MaTTS)", CONTRAST),
    ("Consolidation", CONSOLIDATION),
)
CLAIMS: tuple[Claim, ...] = tuple(claim for _, claims in PARTS for claim in claims)


def table() -> str:
    """The claims as Markdown, a list for each part of the method."""
    apart = [claim for claim in CLAIMS if claim.ours == "diverges"]
    alike = sum(claim.default == claim.paper for claim in apart)
    counted = f"{len(CLAIMS)} claims: {len(CLAIMS) - len(apart)} the same in both profiles"
    lines = [f"{counted}, {alike} where both diverge, {len(apart) - alike} where only the default does.", ""]
    for title, claims in PARTS:
        lines += [f"### {title}", "", *(f"* {claim.section}: {row(claim)}" for claim in claims), ""]
    return "\n".join(lines).rstrip()


def row(claim: Claim, /) -> str:
    """The published sentence; in bold, where more is to be said, who does so or otherwise, and the reason."""
    note = claim.paper.removeprefix(AS_PUBLISHED).removeprefix(": ")
    if claim.ours == "same":
        return f"{claim.sentence} **So here**: {note}." if note else claim.sentence
    if claim.default == claim.paper:
        return f"{claim.sentence} **Here**: {claim.default}. *Why*: {claim.why}."
    exactly = f" **Paper profile**: {note}." if note else ""
    return f"{claim.sentence}{exactly} **By default**: {claim.default}. *Why*: {claim.why}."


def rewritten(page: str, /) -> str:
    """`page` with its generated part made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Rewrite the page, or with `--check` say whether it is current."""
    page = PAGE.read_text(encoding="utf-8")
    if "--check" in arguments:
        return int(rewritten(page) != page)
    PAGE.write_text(rewritten(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
