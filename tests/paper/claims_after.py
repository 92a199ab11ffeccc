"""Claims about what is learned and how it is kept: extraction, contrast, consolidation."""

from __future__ import annotations

from claim import Claim, both, only_default, same

EXTRACTION: tuple[Claim, ...] = (
    same(
        "extract-temperature",
        "§A.2",
        "The extractor answers at temperature 1.0.",
        "test_the_extractor_is_asked_at_temperature_one",
    ),
    same(
        "prompt-by-verdict",
        "§3.2, §A.1",
        "The verdict chooses the prompt: one for success (why it worked), one for failure (why it failed).",
        "test_the_verdict_chooses_the_prompt",
    ),
    same(
        "failures-teach",
        "§3.2, §5.2",
        "Failed runs give lessons too (success only 46.5 %, with failures 49.7 %).",
        "test_a_failure_teaches_a_guardrail",
        note="they are marked `guardrail`, those of successes `strategy`",
    ),
    same(
        "at-most-three",
        "§A.1",
        "At most three lessons for a run.",
        "test_three_lessons_are_kept_of_one_run",
        note="and the limit is held by code: the official code asks the model and does not check",
    ),
    same(
        "lesson-schema",
        "§3.1",
        "A lesson has a title, a description of one sentence and a content of one to three sentences.",
        "test_a_lesson_has_title_description_and_content",
        note="with an id, a kind and provenance beside them; the default asks for a content of at most 60 words",
    ),
    only_default(
        "description-sums-up",
        "§A.1",
        "The description is a one-sentence summary.",
        "test_the_paper_describes_and_the_default_says_when_to_use_it",
        default="one sentence that says when to use the lesson and when not (as in later official code)",
        why="an agent that is shown a lesson needs to know whether it applies",
    ),
    same(
        "think-first",
        "§A.1",
        "The model first reasons about why the run succeeded or failed.",
        "test_the_extractor_is_told_to_find_the_cause_first",
        note="in the default, evidence and cause are the first fields of every lesson",
    ),
    only_default(
        "no-particulars",
        "§A.1",
        "Lessons name no websites, queries or literal strings.",
        "test_the_paper_forbids_particulars_and_the_default_keeps_facts_of_the_environment",
        default="nothing that belongs to this task alone; facts about the environment stay exact (what a tool does, "
        "what "
        "an error means)",
        why="those facts are what an agent cannot know and will need again",
    ),
    only_default(
        "extract-sees-web",
        "§3.1",
        "Of web runs the extractor sees the query, thoughts and actions; observations are left to the thoughts.",
        "test_the_paper_extractor_sees_thoughts_and_actions_only",
        "test_the_default_extractor_sees_instructions_and_observations",
        default="instructions and observations too, under a token budget",
        why="measured on held-out runs: from actions alone the causes were guessed, and one lesson would have misled",
    ),
    only_default(
        "extract-sees-code",
        "code",
        "Of code runs the extractor sees all messages but the system prompt.",
        "test_the_paper_extractor_for_code_sees_all_messages",
        default="the same and the instructions",
        why="a lesson must not restate them, so the extractor has to know them",
    ),
    only_default(
        "rationale-not-fed",
        "§A.1",
        "The judge's rationale is not given to the extractor (later code does it).",
        "test_the_judges_reason_reaches_the_default_extractor_only",
        default="given, fenced, as an opinion to be checked against the steps",
        why="it points to the turning point; the evidence rule keeps a wrong reason from becoming a lesson",
    ),
    only_default(
        "markdown-form",
        "§A.1",
        "The reply is Markdown: `# Memory Item i`, `## Title`, `## Description`, `## Content`.",
        "test_the_paper_asks_for_markdown_and_the_default_for_json",
        default="JSON",
        why="providers can hold a model to a JSON schema; both forms are read in both profiles",
    ),
    both(
        "fragments",
        "code",
        "The reply is split at blank lines and stored unread: preamble, fences and half lessons included.",
        "test_every_reply_shape_is_read_and_half_lessons_are_dropped",
        ours="parsed tolerantly into whole lessons; what is not a lesson is dropped and noted",
        why="memory that holds chatter shows chatter",
    ),
    only_default(
        "no-evidence-asked",
        "§A.1",
        "A lesson needs no evidence.",
        "test_a_lesson_without_evidence_is_kept_by_the_paper_only",
        default="kept only if it names a step that was shown; the steps are kept in its provenance",
        why="a cause that no step shows is a guess",
    ),
    only_default(
        "may-restate",
        "§A.1",
        "A lesson may repeat what the agent's instructions say.",
        "test_a_lesson_that_restates_the_instructions_is_kept_by_the_paper_only",
        default="dropped",
        why="the agent has its instructions in the prompt already",
    ),
    both(
        "extraction-fails",
        "code",
        "Where extraction fails, the task stays in the index without lessons and is forgotten.",
        "test_a_failed_extraction_keeps_the_run_for_another_try",
        ours="zero lessons, an event and a note; the run is kept and waits for another try",
        why="a run is paid for; its lesson should survive an outage",
    ),
    both(
        "unknown-mints-nothing",
        "code",
        "Every run is distilled, as a success or as a failure.",
        "test_a_judge_that_is_down_or_unreadable_says_unknown",
        ours="an unknown verdict mints no lesson; the run waits in `runs.pending()`",
        why="no verdict, no lesson",
    ),
)

CONTRAST: tuple[Claim, ...] = (
    same(
        "contrast-together",
        "§3.3",
        "Several runs of one task, good and bad together, are contrasted in one call.",
        "test_several_runs_are_contrasted_in_one_call",
        note="`learn([run, run, …])`",
    ),
    same(
        "at-most-five",
        "§A.3",
        "At most five lessons from a contrast, of one to five sentences each.",
        "test_five_lessons_are_kept_of_a_contrast",
        note="the default asks for at most 60 words each",
    ),
    only_default(
        "contrast-without-labels",
        "§3.3",
        "The model contrasts alone; how each run ended is not shown.",
        "test_the_paper_contrast_shows_no_outcomes",
        "test_labels_can_be_shown_or_hidden_in_either_profile",
        default="each run is labelled with its outcome (`scale(…, labels=)` chooses)",
        why="the verdicts are known by then; the paper does not say that they must be hidden, and its users asked "
        "for them",
    ),
    same(
        "one-recall-for-all",
        "§3.3",
        "All k runs of a task are guided by the same retrieved memory.",
        "test_all_runs_of_a_task_share_one_recall",
        "test_k_runs_are_made_under_one_recall_and_contrasted_once",
        note="`scale` recalls once; by hand, `learn([…], recall=recall)` settles one receipt for all",
    ),
    both(
        "scaling-race",
        "code",
        "Each of k processes embeds the task before it searches, so that all but the first find only the task itself.",
        "test_k_runs_are_made_under_one_recall_and_contrasted_once",
        ours="the one recall is made before any run begins",
        why="a defect: the other runs went without memory",
    ),
    same(
        "parallel-driver",
        "§3.3",
        "Parallel scaling runs k rollouts of a task.",
        "test_k_runs_are_made_under_one_recall_and_contrasted_once",
        note="`scale(task, agent, k=…)`; a run that raises is a failed attempt",
    ),
    both(
        "sequential",
        "§3.3, §A.3",
        "Sequential scaling lets the agent re-examine its run k times and feeds the notes to extraction.",
        "test_the_agent_re_examines_its_run_and_all_rounds_are_learned_from",
        "test_with_confirm_at_k_every_round_is_made",
        ours='`mode="sequential"`: the agent acts again or a model rewrites (`examine=`), and it ends when two '
        "re-examinations in a row leave the answer as it is; `confirm=k` makes every round",
        why="a confirmed answer hardly changes any more, and every round costs a run; the paper does not say whether "
        "the agent acts again",
    ),
    same(
        "vanilla-scaling",
        "§4.3",
        "Without aggregation, each of the k runs gives its own lessons (at most three).",
        "test_runs_learned_one_by_one_give_three_lessons_each",
        "test_vanilla_scaling_draws_three_lessons_from_each_run",
        note='`scale(…, mode="vanilla")`, or `learn` each run alone',
    ),
    same(
        "no-memory-scaling",
        "§4.3",
        "Scaling without memory is the control.",
        "test_scaling_without_memory_shows_and_learns_nothing",
        note="`scale(…, memory=False)`",
    ),
    same(
        "best-of-n",
        "§4.3, §A.3",
        "A model that sees all N runs chooses the best: progress, efficiency, loops, errors, quality as a whole.",
        "test_a_model_chooses_the_best_of_n_by_the_papers_criteria",
        note="at temperature 0 (none is published); the runs are fenced, and a code must come back with the choice",
    ),
    same(
        "pass-at-k",
        "§4.3, §C.2",
        "Pass@1 is the success of one of the k runs drawn at random, Pass@k that of any.",
        "test_pass_at_one_and_pass_at_k_are_told",
        note="as expectations, without the draw: 1 - C(n - c, k) / C(n, k)",
    ),
)

CONSOLIDATION: tuple[Claim, ...] = (
    only_default(
        "kept-as-drawn",
        "§3.2, code",
        "Every lesson that was drawn is kept as the model worded it.",
        "test_what_is_no_lesson_is_turned_away_by_the_default_only",
        default="a gate rejects what is empty, a part of a form, an echo of what memory showed, or of one task only, "
        "and keeps the reason; what sounds harmful is put to a model, or marked",
        why="memory re-injects what it once read, for ever",
    ),
    only_default(
        "append-only",
        "§3.2, §A.2",
        "New lessons are appended; nothing is pruned, merged, deduplicated or forgotten.",
        "test_everything_is_appended",
        default="every experience is appended; a lesson taught again, in the same or in other words, is one lesson, "
        "and both tasks find it",
        why="evidence counts for a lesson: split over copies it would take each of them longer to show help or harm, "
        "and a copy would bring back what was retired",
    ),
    same(
        "what-is-kept",
        "§A.2",
        "Kept of a task: its query, the original trajectory and the lessons.",
        "test_task_run_and_lessons_are_kept",
    ),
    both(
        "kept-as-json",
        "§A.2",
        "The bank is a JSON file, rewritten line by line as it grows.",
        "test_a_bank_is_a_database_and_its_export_is_json",
        ours="an SQLite file with a journal; `export` writes JSON lines, losslessly",
        why="an acknowledged write must survive a crash and a second process",
    ),
    both(
        "rerun-appends",
        "code",
        "Running a task's pipeline again appends its lessons again.",
        "test_the_same_run_twice_adds_nothing",
        ours="a trajectory that was learned adds nothing the second time; a new run of the same task does",
        why="importing a file twice must not double its lessons",
    ),
    both(
        "no-provenance",
        "code",
        "A lesson does not say which run, prompt or model it came from.",
        "test_a_lesson_says_where_it_comes_from",
        ours="runs, verdict and its source, prompt ids with digests, model, version, writer, evidence",
        why="a lesson that cannot be traced cannot be reviewed or taken back",
    ),
    both(
        "no-taking-back",
        "§3.2",
        "A lesson cannot be taken back.",
        "test_a_lesson_can_be_retired_and_restored",
        ours="`retire` hides it, `restore` shows it again, both in the journal; where effects are measured, a lesson "
        "that is shown to harm is retired automatically",
        why="a bad lesson must be taken back",
    ),
)
