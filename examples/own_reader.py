"""Read runs of a program of your own: a reader is one function, and the contract says whether it is sound.

    python examples/own_reader.py

A distribution names it as an entry point, and `lessonbank learn FILE --format shop_log` finds it:

    [project.entry-points."lessonbank.importers"]
    shop_log = "my_package:FORMAT"
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lessonbank import importers
from lessonbank.testing import ImporterContract


def matches(value: Any, name: str) -> bool:
    return isinstance(value, dict) and "ticket" in value and "log" in value


def build(entry: Any, source: importers.Source, line: int) -> importers.Run:
    messages: list[Any] = [{"role": "user", "content": entry["ticket"]}]
    for number, (tool, arguments, answer, failed) in enumerate(entry["log"]):
        call = importers.tool_call(str(number), tool, arguments)
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append(importers.tool_result(str(number), answer, failed=failed, stated=True))
    messages.append({"role": "assistant", "content": entry["reply"]})
    return importers.Run(messages, source="shop", run_id=f"{source.name}/{line}", success=entry["closed"])


FORMAT = importers.entries("shop_log", "the log of our shop's agent, one ticket a line", matches, build)


class TestShopLog(ImporterContract):
    """Run it with pytest."""

    def write(self, folder: Path, /, *, runs: int) -> Path:
        log = [["get_order", {"id": "W1"}, '{"status": "pending"}', False]]
        rows = [{"ticket": f"Cancel order W{n}", "log": log, "reply": "Done.", "closed": True} for n in range(runs)]
        (folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return folder / "log.jsonl"

    def entries(self, path: Path, /) -> Iterator[importers.Entry]:
        return importers.read(path, format=FORMAT)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for run in importers.read(TestShopLog().write(Path(folder), runs=2), format=FORMAT):
            if isinstance(run, importers.Imported):
                outcome = run.verdict.outcome if run.verdict else "unknown"
                print(run.trajectory.task, "->", outcome, run.account.calls, "call", run.account.left)
            else:
                print("line", run.line, "was skipped:", run.reason)
