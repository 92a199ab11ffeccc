"""Claims about the judge."""

from __future__ import annotations

from claim import Claim, both, only_default, same

JUDGE: tuple[Claim, ...] = (
    same(
        "judge-temperature",
        "§A.2",
        "The judge answers at temperature 0.0.",
        "test_the_judge_is_asked_at_temperature_zero",
    ),
    only_default(
        "two-verdicts",
        "§A.1",
        "The verdict is success or failure.",
        "test_the_paper_judge_reads_two_lines_and_takes_doubt_for_failure",
        "test_an_unsure_default_judge_says_unknown",
        paper="so, except where the judge fails (below)",
        default="success, failure or unknown, with a confidence; below 0.6 it is unknown",
        why="lessons drawn from a wrong verdict are wrong; an uncertain judge's failures were mostly successes",
    ),
    only_default(
        "doubt-is-failure",
        "code",
        "What is not plainly a success is a failure.",
        "test_the_paper_judge_reads_two_lines_and_takes_doubt_for_failure",
        "test_an_unsure_default_judge_says_unknown",
        default="what is not plain is unknown",
        why="on 24 held-out runs the published rule lost 8 of 12 successes, each of which would have become a false "
        "guardrail",
    ),
    only_default(
        "judge-sees-web",
        "§A.1; code: five pages",
        "For web runs the judge sees the intent, thoughts and actions, the last five observations (each cut "
        "to 40,000 characters) and the final response.",
        "test_the_paper_judge_sees_thoughts_actions_and_the_last_five_observations",
        "test_the_default_judge_sees_instructions_users_calls_and_results",
        default="the agent's instructions, all user turns, every call with its arguments and every result, under a "
        "token "
        "budget",
        why="on held-out runs a judge without these cannot tell a right refusal from a failure (0.63 right "
        "against 0.83)",
    ),
    only_default(
        "judge-sees-code",
        "code",
        "For code runs the judge sees all messages but the system prompt and answers with one word.",
        "test_the_paper_judge_for_code_sees_all_messages_and_reads_one_word",
        default="the agent's instructions too; the answer has a reason, an outcome and a confidence",
        why="one word leaves nothing to check or to weigh",
    ),
    both(
        "verdict-by-substring",
        "code",
        "For code runs, a reply that contains `success` anywhere is a success.",
        "test_unsuccessful_is_not_success",
        ours="the word is compared, not searched for",
        why='"unsuccessful" and "not a success" are failures',
    ),
    only_default(
        "three-kinds-of-task",
        "§A.1",
        "The web judge's criteria tell apart finding information, going to a page and changing content.",
        "test_the_web_judge_tells_three_kinds_of_task_apart",
        default="`domain='web'` keeps them; the general prompt asks for rules, right target, completeness and "
        "grounding",
        why="most agents do not browse",
    ),
    only_default(
        "judge-form",
        "§A.1",
        "The reply is two lines, `Thoughts:` and `Status:`.",
        "test_the_paper_judge_reads_two_lines_and_takes_doubt_for_failure",
        "test_a_verdict_written_inside_the_run_counts_for_nothing",
        default="JSON with the reason first, bound to a code drawn for this call",
        why="a verdict that stands in the run itself must not be taken for the judge's",
    ),
    both(
        "judge-down",
        "code",
        "Where the judge fails or cannot be read, the task counts as failed.",
        "test_a_judge_that_is_down_or_unreadable_says_unknown",
        ours="unknown: no lesson, the run is kept and waits",
        why="an outage must not write failure lessons",
    ),
    both(
        "empty-run",
        "code",
        "A run that never began (docker failed) is judged and distilled like any other.",
        "test_a_run_in_which_nothing_was_done_is_not_judged",
        ours="unknown, without asking",
        why="there is nothing in it to judge or to learn from",
    ),
    both(
        "strict-rules",
        "code",
        "Later code adds rules that the paper does not have: completeness, grounding, right target.",
        "test_the_rules_of_the_later_code_are_the_defaults_and_not_the_papers",
        ours="the default prompt has them, the paper profile does not",
        why="the rules are sound, but not the paper's",
    ),
    both(
        "judge-fence",
        "§A.1",
        "The run stands in the judge's prompt as it is.",
        "test_a_verdict_written_inside_the_run_counts_for_nothing",
        ours="quoted line by line, between marker lines with a fresh code, under a token budget",
        why="a run can be hostile and of any size",
    ),
)
