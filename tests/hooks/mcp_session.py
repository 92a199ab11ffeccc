"""Runs a coding agent whose model calls the tools of `lessonbank mcp`, in a namespace that has nothing but loopback.

Run as a program inside that namespace: `mcp_session.py HOST PROGRAM FOLDER`. It leaves `FOLDER/result.json`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

from programs import OPENING, texts
from stage import Stage, repeated

import lessonbank

TASK = "Ship a parcel abroad"


def main(host: str, program: str, folder: Path) -> None:
    stage, bank = Stage(host, program, folder), folder / "bank.db"
    with lessonbank.connect(bank, scope="team", embedder="lexical") as memory:
        memory.lessons.add(title="Customs form first", content="Fill in the form, then print.", task=TASK, by="Ana")
    place = ["--bank", str(bank), "--scope", "team"]
    words = ["-P", "-m", "lessonbank.cli", "mcp", *place, "--embedder", "lexical", "--holdout", "0"]
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    stage.kind.add_server(stage.home, stage.project, [sys.executable, *words], environment)
    stage.log_in()

    def recall(request: dict[str, Any]) -> dict[str, Any]:
        """What a model does that knows the tool: some programs ask it before they have asked the server for tools."""
        named = stage.kind.tool("recall")
        if any(named.get("namespace", named["tool"]) in text for text in texts(request)):
            return {**named, "arguments": {"task": TASK}}
        stage.model.turns.insert(0, recall)
        return stage.kind.shell("sleep 1")

    def record(request: dict[str, Any]) -> dict[str, Any]:
        """What a model does with the result of `recall`: it takes the id from the text that it is shown."""
        found = re.search(r"recall_id ([0-9a-f]{32})", "\n".join(texts(request)))
        told = {"task": TASK, "steps": [{"did": "print the label", "saw": "the label came out"}]}
        told |= {"answer": "It is sent.", "recall_id": found[1] if found else "none"}
        return {**stage.kind.tool("record"), "arguments": told}

    result: dict[str, Any] = {}
    try:

        def recorded(told: dict[str, Any]) -> list[Any]:
            if OPENING not in unescape(json.dumps(told["requests"])):
                return []
            return json.loads(stage.lessonbank("runs", "list", *place, "--json"))

        turns = (recall, record, {"text": "The parcel is sent."})
        result["session"], result["runs"] = repeated(lambda: stage.session(TASK, *turns), until=recorded)
        for run in result["runs"]:  # nobody judges here: a person says how it ended, and that settles the recall
            stage.lessonbank("tell", run["trajectory"]["id"], "success", *place, "--by", "Ana")
        result["recalls"] = json.loads(stage.lessonbank("recalls", *place, "--settled", "--json"))
    finally:
        (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
