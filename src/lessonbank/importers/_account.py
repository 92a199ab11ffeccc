"""Keeps account of a run that was read: what was understood, what was left, and how sure the reading is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from lessonbank.contracts.records import Json, Trajectory
from lessonbank.guard.quote import quoted

_ENDS: Final = frozenset(
    {
        *("reward", "reward_info", "rewards", "score", "scores", "result", "results"),
        *("resolved", "is_resolved", "success", "passed", "outcome", "verdict", "evaluation"),
        *("grade", "correct", "is_error", "is_success", "test_result", "verifier_result", "feedback", "feedback_stats"),
    }
)
"""Names under which programs say how a run ended."""
_BESIDE: Final = ("info", "meta", "metadata", "extra", "summary", "stats")
_EMPTY: Final[tuple[Json, ...]] = (None, "", [], {})
_MOST: Final = 12
"""Names that one sentence has."""
_SIGNS: Final[tuple[tuple[str, frozenset[str]], ...]] = tuple(
    (program, frozenset(names.split()))
    for program, names in (
        ("tau2-bench", "reward_info termination_reason"),
        ("tau2-bench", "simulation_index tasks"),
        ("tau-bench", "traj task_id"),
        ("Harbor (ATIF)", "schema_version steps"),
        ("Terminal-Bench", "resolved_ids pass_at_k"),
        ("OpenHands", "instance_id history"),
        ("OpenHands", "kind source llm_message"),
        ("SWE-agent", "trajectory history"),
        ("mini-swe-agent", "trajectory_format messages"),
        ("Inspect", "eval samples"),
        ("Langfuse", "traceId observations"),
        ("LangSmith", "run_type inputs"),
        ("OpenTelemetry", "span_id trace_id"),
        ("Claude Code", "parentUuid sessionId"),
        ("Claude Code", "session_id total_cost_usd"),
        ("Cline", "sessionId agent messages"),
        ("Codex", "timestamp type payload"),
        ("OpenAI Agents", "original_input generated_items"),
        ("Google ADK", "app_name events"),
        ("Google ADK", "appName events"),
        ("Google ADK", "eval_set_id eval_cases"),
    )
)
"""Names that only one program's files have together."""


@dataclass(frozen=True, slots=True)
class Account:
    """What reading a run came to, and what it rests on."""

    steps: int
    calls: int
    results: int
    errors: int
    """Results that the file, by a flag or an exit code, says are errors."""
    unanswered: int
    """Calls without a result."""
    strays: int
    """Results that name a call the run does not have."""
    task: Literal["field", "user"]
    """Whether a field of the file says the task, or the user's words do."""
    outcome: Literal["file", "judge", "checks", "none"]
    """Who says how the run ended: the file, a model that judged it, the checks that ran in it, or nobody."""
    speakers: Literal["roles", "places"]
    """Whether the file says who spoke, or where the words stand does."""
    left: tuple[str, ...]
    """What the file has and the run lacks, a sentence each."""


def counts(run: Trajectory, /) -> tuple[int, int, int, int, int]:
    """Calls, results, errors, calls without a result, results without their call."""
    calls = [call for step in run.steps for call in step.action.calls]
    results = [seen for step in run.steps for seen in step.observations if seen.source == "tool"]
    asked, answered = {call.id for call in calls}, {seen.call_id for seen in results}
    unnamed = sum(seen.call_id is None for seen in results)
    waiting = max(sum(call.id not in answered or call.id is None for call in calls) - unnamed, 0)
    strays = sum(seen.call_id is not None and seen.call_id not in asked for seen in results)
    return len(calls), len(results), sum(seen.is_error for seen in results), waiting, strays


def asked_by_user(run: Trajectory, /) -> bool:
    """Whether the task is what a user said in the run."""
    texts = (seen.text.strip() for step in run.steps for seen in step.observations if seen.source == "user")
    return run.task.strip() in texts


def ends_in(value: Json, /) -> list[str]:
    """The names of fields, also one level down, that say how a run ended."""
    if not isinstance(value, dict):
        return []
    names = [name for name in value if name in _ENDS and value[name] not in _EMPTY]
    for place in _BESIDE:
        below = value.get(place)
        if isinstance(below, dict):
            names += [f"{place}.{name}" for name in below if name in _ENDS and below[name] not in _EMPTY]
    return names


def unused_ends(names: Iterable[str], /) -> tuple[str, ...]:
    """The sentence about fields that say how a run ended, where the reader took no outcome from them."""
    return named_fields(
        names, "may say how the run ended, and was not used", "may say how the run ended, and were not used"
    )


def unread(names: Iterable[str], /) -> tuple[str, ...]:
    """The sentence about fields that the reader does not know."""
    return named_fields(names, "is not known here and was left out", "are not known here and were left out")


def named_fields(names: Iterable[str], singular: str, several: str, /) -> tuple[str, ...]:
    """A sentence about fields, by their names; none where there are none."""
    different = list(dict.fromkeys(names))
    if not different:
        return ()
    text = ", ".join(f"`{quoted(name, limit=40)}`" for name in different[:_MOST])
    rest = f" and {len(different) - _MOST} more" if len(different) > _MOST else ""
    return (f"{text}{rest} {singular if len(different) == 1 else several}",)


def program_of(value: Json, /) -> str:
    """The program whose file this looks like by its names; `""` where none does."""
    first = value[0] if isinstance(value, list) and value else value
    names = first.keys() if isinstance(first, dict) else frozenset[str]()
    return next((program for program, signs in _SIGNS if signs <= names), "")


def changed_shape(value: Json, /) -> tuple[str, ...]:
    """The sentence about a known program's file that was read as plain messages."""
    program = program_of(value)
    sentence = f"it looks like a file of {program} in a shape that is not known, and only its messages were read"
    return (sentence,) if program else ()
