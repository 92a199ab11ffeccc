#!/usr/bin/env python3
"""Runs the contract of every adapter with its real framework, at both ends of its version range, and prints a table.

Each host gets a virtual environment of its own in `.adapters/`: some frameworks do not fit beside each other.
`.ci/adapters.py` runs all; `.ci/adapters.py adk langchain` runs some; `--end low` or `--end high` runs one end.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from archives import extras, interpreter

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".adapters"
CHECKS_FIRST = "test_lessons_are_shown_once_and_only_in_the_request"
WITHOUT_EXTRA = {
    "mini-swe-agent": ["mini-swe-agent>=2.0.0,<3"],
    "browsergym": ["browsergym-experiments>=0.14.3,<0.15", "pandas", "tqdm"],  # which it imports and does not ask for
}
"""What the adapters follow that import nothing of their framework: who uses them has it already."""
SIGNS = {"passed": "yes", "failed": "NO", "skipped": "-"}


def hosts() -> dict[str, str]:
    """Adapters that have tests: the module's name, and its extra or the framework's name."""
    known = {*extras(), *WITHOUT_EXTRA}
    found = (path.stem.removeprefix("test_") for path in sorted((ROOT / "tests" / "adapters").glob("test_*.py")))
    return {name: name.replace("_", "-") for name in found if name.replace("_", "-") in known}


def required(extra: str) -> list[str]:
    """What the adapter needs of its framework."""
    return WITHOUT_EXTRA.get(extra) or extras()[extra]


def lowest(extra: str) -> list[str]:
    """The same, held at the lowest release that it allows."""
    return [re.sub(r">=([\w.]+)[^;]*", r"==\1", line) for line in required(extra)]


def installed(extra: str, end: str) -> Path:
    """A Python with lessonbank, the extra and pytest."""
    place = PLACE / f"{extra}-{end}"
    python = place / "bin" / "python"
    if not python.exists():
        finder = sys.executable if extra in WITHOUT_EXTRA else interpreter(extra)
        subprocess.run([finder, "-m", "venv", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-U", "pip"], check=True)  # an old one takes long
    pins = lowest(extra) if end == "low" else WITHOUT_EXTRA.get(extra, [])
    ours = str(ROOT) if extra in WITHOUT_EXTRA else f"{ROOT}[{extra}]"
    wanted = ["-e", ours, "pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "blockbuster", *pins]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)
    return python


def contract(host: str, python: Path, end: str) -> dict[str, str]:
    """How each check of the contract ended, by its name."""
    report = PLACE / f"{host}-{end}.xml"
    report.unlink(missing_ok=True)
    # What an old release of a framework, or of what it needs, warns about is theirs.
    lenient = ["-W", "ignore::DeprecationWarning"]
    command = [str(python), "-m", "pytest", "-n", "0", "-q", "-m", "not release", *lenient, f"--junitxml={report}"]
    done = subprocess.run([*command, f"tests/adapters/test_{host}.py"], cwd=ROOT, check=False)
    if not report.exists():
        return {CHECKS_FIRST: f"rc {done.returncode}"}
    cases = list(ElementTree.parse(report).iter("testcase"))
    found = {case.get("name", "").split("[")[0]: outcome(case) for case in cases}
    found |= {f"test_{told.get('name')}": told.get("value", "") for case in cases for told in case.iter("property")}
    return found if CHECKS_FIRST in found else {CHECKS_FIRST: SIGNS["failed"]}  # the file was skipped as a whole


def outcome(case: ElementTree.Element) -> str:
    """What a test of the report came to."""
    names = {child.tag for child in case}
    return SIGNS["failed"] if names & {"failure", "error"} else SIGNS["skipped" if "skipped" in names else "passed"]


def version(python: Path, extra: str) -> str:
    """The release of the framework that was run."""
    name = re.split(r"[\[>=<]", lowest(extra)[0])[0]
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def cost(extra: str, python: Path) -> dict[str, str]:
    """Megabytes that the extra adds to lessonbank, and seconds of CPU to import the adapter: the better of two."""
    if extra in WITHOUT_EXTRA:
        return {}
    command = [str(python), str(ROOT / ".ci" / "archives.py"), "--import", extra]
    took = [subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    size, _, seconds, _ = min((run.stdout.split()[-4:] for run in took), key=lambda told: float(told[2]))
    return {"test_added by the extra, MB": size, "test_import of the adapter, s of CPU": seconds}


def show(table: dict[str, dict[str, str]]) -> None:
    """Checks down, hosts across, as Markdown."""
    checks = list(dict.fromkeys(check for column in table.values() for check in column))
    print(f"| check | {' | '.join(table)} |")
    print("|---" * (len(table) + 1) + "|")
    for check in checks:
        said = check.removeprefix("test_").replace("_", " ")
        print(f"| {said} | {' | '.join(column.get(check, '') for column in table.values())} |")


def main() -> int:
    """The exit code is 1 where a check failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", nargs="*")
    parser.add_argument("--end", choices=["low", "high"])
    asked = parser.parse_args()
    table = dict[str, dict[str, str]]()
    for host, extra in hosts().items():
        if asked.hosts and extra not in asked.hosts and host not in asked.hosts:
            continue
        for end in [asked.end] if asked.end else ["low", "high"]:
            python = installed(extra, end)
            name = f"{extra} {version(python, extra)}"
            if name not in table:  # the range may begin with the newest release
                table[name] = cost(extra, python) | contract(host, python, end)
    show(table)
    return int(any(sign == SIGNS["failed"] or sign.startswith("rc") for c in table.values() for sign in c.values()))


if __name__ == "__main__":
    sys.exit(main())
