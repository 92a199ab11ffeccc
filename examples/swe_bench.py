"""SWE-bench as in the paper: mini-swe-agent solves issues one after the other, and learns from each.

python examples/swe_bench.py          (offline: a toy issue and a scripted model, in a folder of its own)

For the real thing: `LitellmModel(model_name=…)` for `Scripted`, `DockerEnvironment(image=…)` for `LocalEnvironment`,
the templates of mini-swe-agent's `swebench.yaml`, and the verdict of the SWE-bench harness for `resolved`.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.test_models import DeterministicModel, make_output

import lessonbank
from lessonbank.adapters.mini_swe_agent import ReasoningBankAgent

ISSUES = ["add() in calc.py subtracts: make it add", "add() in calc.py is wrong for negative numbers: make it add"]
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; git diff 2>/dev/null || cat calc.py"
TEMPLATES = {"system_template": "You fix issues in a shell.", "instance_template": "Fix this issue:\n{{ task }}"}
UNMEASURED = lessonbank.Evidence(holdout=None)  # in earnest leave it out: what is withheld shows whether memory helps


class Scripted(DeterministicModel):
    """Fixes the file at once; a real model would read first."""

    def __init__(self) -> None:
        commands = ["sed -i s/a-b/a+b/ calc.py", SUBMIT]
        super().__init__(outputs=[make_output(f"I run `{one}`.", [{"command": one}]) for one in commands])


def resolved(folder: Path) -> bool:
    """The tests of the issue, which the agent does not see."""
    check = "import calc; assert calc.add(2, -3) == -1"
    return subprocess.run(["python3", "-c", check], cwd=folder, check=False).returncode == 0


def main() -> list[tuple[bool, int]]:
    """For each issue: whether it was resolved, and how many lessons the agent saw."""
    done: list[tuple[bool, int]] = []
    with lessonbank.connect(":memory:", scope="swe-bench/calc", embedder="lexical", evidence=UNMEASURED) as bank:
        for issue in ISSUES:  # one after the other: each issue sees what those before it taught
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "calc.py").write_text("def add(a, b):\n    return a-b\n")
                model: Any = Scripted()
                plain = DefaultAgent(model, LocalEnvironment(cwd=folder), **TEMPLATES)
                agent = ReasoningBankAgent(plain, bank)
                agent.run(issue)
                success = resolved(Path(folder))
            agent.runs.tell(agent.last.id, outcome="success" if success else "failure")
            bank.drain()
            done.append((success, len(agent.last.recall.shown)))
    return done


if __name__ == "__main__":
    print(main())
