"""Puts a bank around an agent of mini-swe-agent: `ReasoningBankAgent(DefaultAgent(…), bank).run(task)`.

The agent is taken as it is, so nothing of mini-swe-agent is imported here: importing it prints, reads the user's
settings and makes a folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Unpack

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Usage

from .following import FollowedRun, Options, RunFollower, current_run, harmless

VARIABLE: Final = "lessonbank"
"""The template variable of the text. A template that does not use it gets it before everything else."""
_BEFORE: Final = f"{{% if {VARIABLE} %}}{{{{ {VARIABLE} }}}}\n\n{{% endif %}}"
_HANDED_IN: Final = "Submitted"


class ReasoningBankAgent:
    """An agent of mini-swe-agent (version 2) that is shown lessons, and whose runs are kept and learned from.

    It does everything that the agent does; only `run` is different. The text is a value of the instance template, so
    it stands in the first user message, and braces in it mean nothing. Each agent does one run at a time, as before.

    An exit status other than `Submitted` (a limit, too many broken replies, an exception) is an error of the
    framework. A run that was handed in says nothing about success: the judge, `verify` or `runs.tell` does.

    Args:
        agent: a `DefaultAgent`, or any other agent of mini-swe-agent.
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from the variables that `run` gets besides the task:
            `lambda variables: scope_of("swe", variables["repo"])`. Without it, the scope of the bank.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, agent: Any, bank: ReasoningBank, /, **options: Unpack[Options[Mapping[str, Any]]]) -> None:
        self.agent = agent
        self.runs = RunFollower(bank, "mini-swe-agent", **options)
        self.last: FollowedRun | None = None
        """The last run: `agent.runs.tell(agent.last.id, outcome=…)`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["agent"], name)

    def run(self, task: str = "", **variables: Any) -> dict[str, Any]:
        """Do a task, as the agent's own `run` does."""
        scope = self.runs.scoped(variables)
        run = self.last = self.runs.begin_waiting(task, scope=scope, parent=current_run())
        before = self.agent.config
        self.agent.config = before.model_copy(update=_templates(before))
        shell, self.agent.env = self.agent.env, _Shell(self.agent.env, run)
        try:
            with run.followed(self._messages, usage=self._usage):
                result: dict[str, Any] = self.agent.run(task, **{**variables, VARIABLE: run.text})
        finally:
            self.agent.config, self.agent.env = before, shell
            self.agent.extra_template_vars.pop(VARIABLE, None)
        with harmless("the end of a run"):
            status = str(result.get("exit_status", ""))
            ended = None if status == _HANDED_IN else f"the agent ended with {status or 'no exit status'}"
            answer = str(result.get("submission") or "") or None
            run.finish(self._messages(), answer=answer, error=ended, usage=self._usage())
        return result

    def _messages(self) -> list[object]:
        """The run without bookkeeping. What follows the agent's turn is its shell's, also where the role is `user`."""
        messages: list[object] = []
        has_acted = False
        for message in self.agent.messages:
            if message.get("role") == "exit":
                continue
            plain = {key: value for key, value in message.items() if key != "extra"}
            if has_acted and plain.get("role") == "user":
                plain["role"] = "environment"
            if plain.get("role") == "tool" and message.get("extra", {}).get("returncode"):
                plain["is_error"] = True
            has_acted = has_acted or plain.get("role") == "assistant" or plain.get("object") == "response"
            messages.append(plain)
        return messages

    def _usage(self) -> Usage:
        return Usage(requests=self.agent.n_calls, cost=self.agent.cost)


class _Shell:
    """The environment of a run. Where a command fails that failed before, what got it through then follows."""

    def __init__(self, shell: Any, run: FollowedRun) -> None:
        self._shell, self._run = shell, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_shell"], name)

    def execute(self, action: Mapping[str, Any], *args: Any, **more: Any) -> dict[str, Any]:
        """What the command printed, as the environment's own `execute` tells it."""
        result: dict[str, Any] = self._shell.execute(action, *args, **more)
        printed, call = str(result.get("output", "")), str(action.get("tool_call_id", ""))
        code, command = int(result.get("returncode") or 0), str(action.get("command", ""))
        text = self._run.came_back_waiting(call, "bash", command, printed, code)
        return {**result, "output": f"{printed.rstrip()}\n\n{text}\n"} if text else result


def _templates(config: Any) -> dict[str, str]:
    """Our own snippet before the instance template, unless the user placed the variable."""
    written = config.system_template + config.instance_template
    return {} if VARIABLE in written else {"instance_template": _BEFORE + config.instance_template}
