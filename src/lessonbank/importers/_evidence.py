"""Decides how a coding agent's run ended by what happened in it: pure rules, and no opinion where none of them speaks.

The last sign wins, and an edit makes what was known before it stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from lessonbank.types import Json, Observation, Outcome, ToolCall, Trajectory, Verdict

Sign: TypeAlias = Literal["edit", "passed", "failed", "commit", "correction", "interrupt"]
REASONS: Final[Mapping[Sign, tuple[Outcome, str]]] = {
    "passed": ("success", "the tests passed after the last edit"),
    "failed": ("failure", "the tests failed after the last edit"),
    "commit": ("success", "the work was committed after the last edit"),
    "correction": ("failure", "the user rejected the result, and nothing was changed after that"),
    "interrupt": ("unknown", "the user interrupted the run"),
}
_SHELLS: Final = {
    *("bash", "shell", "exec_command", "local_shell", "run_shell_command", "run_commands", "execute_command"),
    *("container.exec", "execute_bash", "run_terminal_cmd"),
}
_MOST_COMMAND, _MOST_OUTPUT, _MOST_SAID = 10_000, 20_000, 300
_EDITOR: Final = re.compile(r"edit|write|patch|replace|create_file|insert", re.IGNORECASE)
_WRAPPED: Final = re.compile(r"^\s*(?:/\S*/)?(?:ba|z)?sh\s+-\w*c\s+(['\"])(.*)\1\s*$", re.DOTALL)
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_SEPARATOR: Final = re.compile(r"(&&|\|\||[;|\n])")
_BEFORE: Final = (
    r"^\s*(?:\w+=\S*\s+)*(?:(?:sudo|time|timeout\s+\S+|env|npx|uv\s+run|poetry\s+run|pdm\s+run|hatch\s+run|"
    r"bundle\s+exec|xvfb-run)\s+)*(?:\S*python[\d.]*\s+(?:-\w\s+)*-m\s+)?(?:\S*/)?"
)
_TEST: Final = re.compile(
    _BEFORE + r"(?:pytest|py\.test|unittest|tox|nox|ctest|jest|vitest|mocha|ava|rspec|phpunit|"
    r"cargo\s+(?:nextest\s+run|test)|go\s+test|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?test[\w:-]*|deno\s+test|"
    r"node\s+--test|(?:make|just|rake)\s+(?:test|check)[\w-]*|gradlew?\s.*\btest|mvnw?\s.*\b(?:test|verify)|"
    r"(?:dotnet|mix|swift|bazel|sbt)\s+test|\S*python[\d.]*\s+(?:\S*/)?manage\.py\s+test)(?=\s|$)"
)
_COMMIT: Final = re.compile(_BEFORE + r"git\s+(?:-\S+\s+)*commit(?=\s|$)")
_CHANGES: Final = re.compile(
    _BEFORE + r"(?:sed\s.*-i|perl\s+-\w*i|tee\s|mv\s|cp\s|rm\s|patch\s|apply_patch|"
    r"git\s+(?:apply|checkout|restore|reset|revert|stash|merge|rebase|pull|cherry-pick|am|clean)\b)"
)
_INTO_FILE: Final = re.compile(r"(?<![0-9&<>-])>{1,2}\s*(?![&\s]|/dev/null)")
_FAILS: Final = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failures?|errors?|failing)\b|(?:failures|errors)=[1-9]|^FAIL(?:ED)?\b|"
    r"test result: FAILED|^not ok\b",
    re.MULTILINE,
)
_PASSES: Final = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:passed|passing)\b|^OK\b|^ok\s|^PASS\b|test result: ok|\b0 failures\b", re.MULTILINE
)
_NOTHING: Final = re.compile(
    r"no tests ran|collected 0 items|Ran 0 tests|no test files|0 passing|running in background"
)
_CORRECTION: Final = re.compile(
    r"(?:no[,.!;:]|nope\b|wrong\b|(?:that|this|it)(?:'s| is) (?:wrong|broken|not (?:right|correct|what|working))|"
    r"(?:that|this|it) (?:still )?(?:fails?|failed|broke|crashe[sd]|does ?n.?t work|did ?n.?t work|doesn't|didn't)\b|"
    r"still (?:fail|broken|not|wrong|does|the same)|you (?:broke|forgot|missed|misunderstood)|"
    r"not what i|(?:please )?(?:revert|undo) (?:that|this|it|your))"
)
_INTERRUPTED: Final = ("[Request interrupted", "<turn_aborted>")


def verdict_of(run: Trajectory, /) -> Verdict | None:
    """The outcome that a run's own events show, with the rule in `reason`; `None` where no rule speaks."""
    known: Sign | None = None
    edited = False
    for sign in _signs(run):
        edited = edited or sign == "edit"
        known = _after(known, sign, edited=edited)
    if known not in REASONS:
        return None
    outcome, reason = REASONS[known]
    return Verdict(outcome=outcome, reason=reason, source="ground_truth")


def _after(known: Sign | None, sign: Sign, *, edited: bool) -> Sign | None:
    if sign in ("passed", "failed", "commit") and not edited:  # tests that the run did not change prove nothing of it
        return known
    if sign == "commit" and known in ("passed", "failed"):
        return known
    return sign


def _signs(run: Trajectory) -> Iterator[Sign]:
    acted = False
    for step in run.steps:
        results = {seen.call_id: seen for seen in step.observations if seen.call_id}
        unnamed = [seen for seen in step.observations if seen.source == "tool" and not seen.call_id]
        for call in step.action.calls:
            acted = True
            result = results.get(call.id or "") or (unnamed.pop(0) if unnamed else None)
            yield from _signs_of_call(call, result)
        acted = acted or bool(step.action.text)
        for seen in step.observations:
            if acted and seen.source == "user":
                yield from _signs_of_words(seen.text)


def _signs_of_words(text: str) -> Iterator[Sign]:
    said = text.lstrip()[:_MOST_SAID]
    if said.startswith(_INTERRUPTED):
        yield "interrupt"
    elif _CORRECTION.match(said.casefold().replace("’", "'")):
        yield "correction"


def _signs_of_call(call: ToolCall, result: Observation | None) -> Iterator[Sign]:
    name = call.name.rpartition(".")[2].casefold()
    if name not in _SHELLS and call.name.casefold() not in _SHELLS:
        if _EDITOR.search(name) and not (result and result.is_error):
            yield "edit"
        return
    parts = _SEPARATOR.split(_bare(_command(call.arguments)))
    commands, joints = parts[::2], [*parts[1::2], ""]
    for place, (command, joint) in enumerate(zip(commands, joints, strict=True)):
        is_last = not any(rest.strip() for rest in commands[place + 1 :])
        own_code = is_last or (joint == "&&" and result is not None and not result.is_error)
        yield from _signs_of_command(command, result, tells_code=own_code)


def _signs_of_command(command: str, result: Observation | None, *, tells_code: bool) -> Iterator[Sign]:
    """`tells_code`: whether the result's exit code is that of this command."""
    if _TEST.match(command):
        passed = None if result is None else _passed(result, tells_code=tells_code)
        if passed is not None:
            yield "passed" if passed else "failed"
    elif _COMMIT.match(command):
        if result is not None and tells_code and not result.is_error:
            yield "commit"
    elif _CHANGES.match(command) or _INTO_FILE.search(command):
        yield "edit"


def _passed(result: Observation, *, tells_code: bool) -> bool | None:
    """Whether tests passed, by their exit code and what they printed; `None` where these disagree or say nothing."""
    printed = result.text[-_MOST_OUTPUT:]
    if _NOTHING.search(printed):
        return None
    fails, passes = bool(_FAILS.search(printed)), bool(_PASSES.search(printed))
    if tells_code:
        return False if result.is_error else None if fails else True
    return False if fails else True if passes else None


def _command(arguments: Mapping[str, Json] | str) -> str:
    """The shell's text; programs give it under several names, as a text or as a list of words."""
    if isinstance(arguments, str):
        return arguments[:_MOST_COMMAND]
    told = next((arguments[name] for name in ("command", "cmd", "commands", "script") if name in arguments), "")
    if isinstance(told, list):
        words = [word for word in told if isinstance(word, str)]
        told = words[-1] if len(words) == 3 and words[1].startswith("-") else "\n".join(words)
    return told[:_MOST_COMMAND] if isinstance(told, str) else ""


def _bare(command: str) -> str:
    """A command without what it only quotes: a message about tests is no test."""
    wrapped = _WRAPPED.match(command)
    return _QUOTED.sub("''", _HEREDOC.sub("<<''", wrapped.group(2) if wrapped else command))
