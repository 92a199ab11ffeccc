"""Other engines at the same work: installed each into an environment of its own, and run there."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import processes
from .figures import Figure, Missing, Target
from .processes import Failed

PYTHON = Path("/usr/bin/python3")
"""Its sqlite3 can load extensions on Debian, which `reasoning-bank` needs."""


@dataclass(frozen=True, slots=True)
class Peer:
    """An engine: what to install, and the module here that drives it."""

    name: str
    module: str
    wanted: tuple[str, ...]
    alone: tuple[str, ...] = ()
    """Installed without what it depends on."""
    target: Target | None = None


PEERS = (
    Peer(
        "reasoning-bank 0.1.1, SQLite",
        "peer_reasoning_bank",
        ("numpy", "pydantic", "sqlite-vec"),
        alone=("reasoning-bank==0.1.1",),  # it depends on torch, for an embedder that is not used here
        target=Target(100, "ratio", least=True),
    ),
    Peer("Chroma 1.5.9", "peer_chroma", ("numpy", "chromadb==1.5.9")),
    Peer("LanceDB 0.40.0, no index", "peer_lancedb", ("numpy", "lancedb==0.40.0")),
    Peer("LanceDB 0.40.0, IVF_HNSW_SQ", "peer_lancedb_indexed", ("numpy", "lancedb==0.40.0")),
)
_SAME = "our retrieve through the bank, in the same run"


def compare(
    environments: Path, work: Path, ours: dict[int, float], *, calls: int, seconds: float
) -> tuple[list[Figure], list[Missing]]:
    """Every engine with as many lessons as each of our banks. `ours`: lessons to our median milliseconds."""
    figures, missing = list[Figure](), list[Missing]()
    for peer in PEERS:
        try:
            python = _installed(peer, environments)
            for lessons, wall in ours.items():
                folder = work / f"{peer.module}-{lessons}"
                said = processes.fresh(peer.module, folder, lessons, calls, seconds, python=str(python))
                figures += _figures(peer, lessons, wall, said)
        except Failed as error:
            missing.append((peer.name, str(error)))
    return figures, missing


def _figures(peer: Peer, lessons: int, ours: float, said: dict[str, Any]) -> list[Figure]:
    held = "" if said["filled"] == lessons else f"only {said['filled']:,} lessons in the time given; "
    note = f"{held}median of {said['calls']}, p99 {said['p99']:.3g} ms; recall@5 {said['recall']:.3f}; {said['note']}"
    disk, memory = (said[what] / said["filled"] / 1024 for what in ("disk", "rss"))
    made = (
        f"{said['fill_note']}; KB a lesson: {disk:.2f} on disk with its text, {memory:.2f} in memory after all of this"
    )
    target = peer.target if said["filled"] == lessons else None
    return [
        Figure(
            f"retrieve, {peer.name}",
            lessons,
            said["wall"],
            "ms",
            cpu=said["cpu"],
            raw=ours,
            under=_SAME,
            target=target,
            note=note,
        ),
        Figure(f"filling, {peer.name}", lessons, said["rate"], "/s", note=made),
    ]


def _installed(peer: Peer, environments: Path) -> Path:
    """The Python of the engine's own environment, made if it is not there."""
    folder = environments / peer.wanted[-1].partition("=")[0]
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists():
        return python
    if not PYTHON.exists():
        raise Failed(f"there is no {PYTHON} to make its environment with")
    _run([PYTHON, "-m", "venv", "--clear", folder])
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    _run([*pip, *peer.wanted])
    if peer.alone:
        _run([*pip, "--no-deps", *peer.alone])
    done.touch()
    return python


def _run(command: Sequence[object]) -> None:
    made = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if made.returncode:
        words = (made.stderr.strip() or made.stdout.strip() or "no reason given").splitlines()[-1]
        raise Failed(f"could not be installed: {words}")
