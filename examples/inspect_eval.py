"""An evaluation of Inspect AI with a memory: scores are the truth about runs. Offline.

Install `lessonbank[inspect]`, then: python examples/inspect_eval.py
"""

import json
import tempfile

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message

import lessonbank
from lessonbank.adapters.inspect_ai import ReasoningBankMemory

CONTENT = "Read the second page of the report before you count its rows."
LESSON = {"title": "Read the second page", "content": CONTENT, "evidence": ["step 1"]}


def scripted() -> Model:
    """Stands in for a language model: counts well only if a lesson says how. `--model` names a real one."""

    def answer(messages: list, *_: object) -> ModelOutput:  # type: ignore[type-arg]
        knows = any("second page" in message.text for message in messages)
        output = ModelOutput.from_content("mockllm", "6 rows" if knows else "3 rows")
        output.usage = ModelUsage(total_tokens=1)  # or Inspect AI fetches a tokenizer to count them
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def main() -> list[str]:
    """The scores of two samples: C is correct."""
    unmeasured = lessonbank.Evidence(holdout=None)  # leave it out in earnest
    distil = {"extractor": lambda prompt: json.dumps({"items": [LESSON]})}  # "openai:gpt-5-mini", in earnest
    with (
        tempfile.TemporaryDirectory() as logs,
        lessonbank.connect(":memory:", scope="evals", model=distil, embedder="lexical", evidence=unmeasured) as bank,
    ):
        memory = ReasoningBankMemory(bank)
        scores: list[str] = []
        for asked in ("Count the rows of the report", "Count the rows of this report"):
            solver = memory.solver(system_message("You count."), generate())
            task = Task(dataset=[Sample(input=asked, target="6")], solver=solver, scorer=includes())
            (log,) = eval(task, model=scripted(), log_dir=logs, display="none")
            scores.append(str(next(iter(log.samples[0].scores.values())).value))
            bank.drain()  # so that the next sample sees what this one taught
    return scores


if __name__ == "__main__":
    print(main())
