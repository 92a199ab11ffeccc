"""SWE-bench as in the paper: mini-swe-agent solves issues one after the other, and learns from each.

python examples/swe_bench.py          (offline: two toy issues and scripted models)

For the real thing: `LitellmModel(…)` for `scripted()`, `DockerEnvironment(image=…)` for `LocalEnvironment`, the
templates of `swebench.yaml`, a model for `distil`, and the SWE-bench harness for `resolved`. If its verdict comes hours
later: `agent.runs.tell(agent.last.id, outcome=…)`.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.test_models import DeterministicModel, make_output

import lessonbank
from lessonbank.adapters.mini_swe_agent import ReasoningBankAgent

ISSUES = ["add() in calc.py subtracts: make it add", "add() in calc.py is wrong for negative numbers: make it add"]
COMMANDS = ["sed -i s/a-b/a+b/ calc.py", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat calc.py"]
TEMPLATES = {"system_template": "You fix issues in a shell.", "instance_template": "Fix this issue:\n{{ task }}"}
UNMEASURED = lessonbank.Evidence(holdout=None)  # leave it out in earnest


def scripted() -> DeterministicModel:  # fixes the file at once
    return DeterministicModel(outputs=[make_output(f"I run `{one}`.", [{"command": one}]) for one in COMMANDS])


def distil(prompt: str) -> str:
    """Writes the lesson of a run, as a model would."""
    lesson = {"title": "Look at the operator", "content": "Read the operator in calc.py before you change it."}
    return json.dumps({"items": [{**lesson, "evidence": ["step 2"]}]})


def resolved(folder: str) -> bool:
    """The tests of the issue, which the agent does not see."""
    return not subprocess.run(["python3", "-c", "import calc; assert calc.add(2, -3) == -1"], cwd=folder).returncode


def main() -> list[int]:
    """How many lessons the agent saw with each issue."""
    seen: list[int] = []
    with lessonbank.connect(":memory:", scope="swe", model=distil, embedder="lexical", evidence=UNMEASURED) as bank:
        for issue in ISSUES:
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "calc.py").write_text("def add(a, b):\n    return a-b\n")
                plain = DefaultAgent(scripted(), LocalEnvironment(cwd=folder), **TEMPLATES)
                agent = ReasoningBankAgent(plain, bank, verify=lambda run, where=folder: resolved(where))
                agent.run(issue)
                bank.drain()  # so that the next issue sees what this one taught
                seen.append(len(agent.last.recall.shown))
    return seen


if __name__ == "__main__":
    print(main())
