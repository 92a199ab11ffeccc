"""Claims about what happens before an agent acts: the setting, retrieval, injection."""

from __future__ import annotations

from claim import Claim, both, only_default, same

SETTING: tuple[Claim, ...] = (
    same(
        "stream",
        "§3",
        "Tasks arrive one after another; each is met with what earlier ones taught.",
        "test_a_task_is_met_with_what_earlier_tasks_taught_only",
    ),
    same(
        "empty-start",
        "§3",
        "Memory starts empty; the first task gets none.",
        "test_an_empty_bank_recalls_nothing",
    ),
    both(
        "no-ground-truth",
        "§3",
        "No ground truth: the model's own judgement of the run is the only signal.",
        "test_the_judge_is_the_only_signal_where_no_truth_is_given",
        "test_truth_and_a_crash_go_before_the_judge",
        ours="only where nothing better is known; `outcome=`, `reward=` and an error that stopped the run go "
        "before the judge",
        why="who knows the outcome should not pay for an opinion, and judges err (72.7 % right on Shopping by the"
        " paper's own measure)",
    ),
    same(
        "one-backbone",
        "§A.2",
        "Judge and extractor are the same model.",
        "test_one_model_plays_every_role",
        note="one `model=` plays every role; a mapping gives roles to different models",
    ),
    both(
        "agent-settings",
        "§A.2",
        "The agent is a ReAct loop at temperature 0.7 (0.0 for SWE-Bench) with at most 30 steps on WebArena.",
        "test_the_agent_is_the_callers",
        ours="the caller's own agent and settings",
        why="a library for agents that exist",
    ),
    same(
        "pool-per-stream",
        "§A.2",
        "One pool of memory for each independent run (in the code: for each website, one for all repositories).",
        "test_each_scope_is_a_pool_of_its_own",
        note="a `scope` is a pool, filtered before ranking",
    ),
    both(
        "baselines",
        "§4",
        "Synapse (past trajectories) and AWM (workflows) are compared under the same retrieval.",
        "test_the_baselines_are_arms_under_the_same_retrieval",
        ours="arms `synapse`, `awm` and `awm-multi` of `lessonbank_bench`, which retrieve as the bank does",
        why="baselines of an experiment, not parts of a memory ([arms](research/arms.md))",
    ),
    both(
        "benchmarks",
        "§4",
        "Measured on WebArena, Mind2Web and SWE-Bench-Verified.",
        "test_the_papers_benchmarks_are_presets_that_say_what_they_need",
        ours="presets `paper-webarena`, `paper-mind2web` and `paper-swebench` of `lessonbank bench`, and no figure",
        why="they need their sites, data and a model ([the paper's figures](reproduce.md))",
    ),
)

RETRIEVAL: tuple[Claim, ...] = (
    same(
        "loop-order",
        "§3.2, fig. 1",
        "Retrieve, inject, act, judge, extract, consolidate: in that order for every task.",
        "test_the_loop_runs_in_the_papers_order",
    ),
    same(
        "experience-unit",
        "§A.2",
        "What is stored and retrieved is the experience (a task, its run, its lessons), not the lesson.",
        "test_the_experience_is_what_is_retrieved",
    ),
    only_default(
        "k-is-one",
        "§A.2",
        "k = 1 experience is retrieved.",
        "test_one_experience_is_recalled_unless_more_are_asked_for",
        default="k = 3",
        why="three solve 0.82 of the tasks of [`desk`](environments/index.md), one 0.64, and 0.67 against 0.49 on "
        "other forms; they cost 300 tokens more",
    ),
    same(
        "k-ablation",
        "§C.1",
        "k from 0 to 4: 39.0, 49.7, 46.0, 45.5, 44.4 % (Shopping, Gemini 2.5 Flash).",
        "test_one_experience_is_recalled_unless_more_are_asked_for",
        note="`limit=` is k; for k = 0 do not call `retrieve`",
    ),
    same(
        "all-lessons-of-it",
        "§A.2",
        "All lessons of a retrieved experience are used.",
        "test_all_lessons_of_an_experience_are_used",
    ),
    same(
        "task-is-the-key",
        "§A.2",
        "This task's text is compared with the stored tasks, not with the lessons.",
        "test_the_key_is_the_tasks_text",
    ),
    both(
        "cosine",
        "§A.2",
        "Similarity is the cosine of embeddings by gemini-embedding-001 (3072 dimensions).",
        "test_similarity_is_the_cosine_of_task_embeddings",
        "test_without_an_embedder_words_are_compared_and_that_is_said",
        ours="so with any embedder that you name (`google:gemini-embedding-001` is one); without one, tasks are "
        "compared by words (BM25), and every recall says so",
        why="a bank must work without a key",
    ),
    only_default(
        "no-floor",
        "§A.2",
        "There is no least similarity: the closest experience is used however far it is.",
        "test_the_closest_is_used_however_far_and_by_default_only_above_a_floor",
        "test_without_an_embedder_words_are_compared_and_that_is_said",
        default="a floor for words and for `hashing` (decision record 21), unless `Retrieval(floor=0)`",
        paper="by words, a task without one word in common is not a match",
        why="a lesson about something else costs tokens and can mislead; on recorded runs the floor loses no related "
        "task",
    ),
    both(
        "query-side",
        "code",
        "Index and query are embedded as RETRIEVAL_DOCUMENT, the query after an instruction.",
        "test_tasks_are_embedded_as_documents_and_queries_in_their_role",
        ours="the embedder gets the role (`query` or `document`) and the plain text",
        why="the right prefix belongs to the embedding model",
    ),
    same(
        "embedded-once",
        "§A.2",
        "Task embeddings are computed once and kept.",
        "test_a_stored_task_is_embedded_once",
    ),
    same(
        "vectors-apart",
        "§A.2",
        "Embeddings are kept apart from the records.",
        "test_vectors_can_be_dropped_and_made_again",
        note="they can be thrown away and made again from the records",
    ),
    both(
        "index-after-task",
        "code",
        "A task's embedding joins the index when it is retrieved for, before it is run.",
        "test_a_task_joins_the_index_after_it_was_learned",
        ours="after it was learned",
        why="a task that gave no lesson, or k parallel trials of one task, find themselves and get nothing",
    ),
    both(
        "no-orphans",
        "code",
        "A task without lessons still takes its place among the top k, and brings nothing.",
        "test_an_experience_without_lessons_takes_nobodys_place",
        ours="only experiences with an active lesson are ranked",
        why="a place taken by nothing is a lesson lost",
    ),
)

INJECTION: tuple[Claim, ...] = (
    both(
        "into-the-system-prompt",
        "§A.2",
        "Lessons are appended to the agent's system prompt.",
        "test_the_text_is_handed_to_the_caller",
        ours="you put `recall.text` where it belongs",
        why="only you can decide whether text from strangers may stand in the system prompt",
    ),
    only_default(
        "preface",
        "§A.2",
        "A short preface: these lessons come from your own past here, use them only if relevant, and say at "
        "every step whether you use each.",
        "test_the_preface_keeps_its_purpose_and_by_default_the_agent_says_nothing_of_it",
        paper="the same purpose in our own words",
        default="one line that says where they come from and asks the agent not to mention them; "
        '`Retrieval(preface="cite")` asks it to name those it uses',
        why="an agent that talks to people would tell them the lessons' numbers",
    ),
    only_default(
        "title-and-content",
        "§A.2",
        "Of a lesson, title and content are shown.",
        "test_the_paper_shows_title_and_content_and_the_default_shows_when_to_use_it",
        default="kind, title, description (when and when not) and content",
        why="such a lesson can be left aside",
    ),
    same(
        "nothing-is-nothing",
        "code",
        "Where nothing is retrieved, nothing is added to the prompt.",
        "test_an_empty_bank_recalls_nothing",
        note="`recall.text` is empty",
    ),
    both(
        "raw-injection",
        "code",
        "The extractor's raw text goes into the prompt.",
        "test_injected_text_is_fenced_and_cannot_forge_a_lesson",
        ours="parsed lessons, cleaned of control characters, indented, between marker lines with a fresh code",
        why="what an agent read somewhere must not pass for the operator's words",
    ),
    both(
        "no-budget",
        "§A.2",
        "The text has no limit but k.",
        "test_the_text_keeps_its_budget_by_whole_lessons",
        ours="at most `budget` tokens (1500); a lesson that does not fit is left out whole",
        why="one oversized lesson must not fill the agent's window",
    ),
    both(
        "repeats",
        "§A.2",
        "Equal lessons of several experiences are shown as often as they come.",
        "test_a_lesson_that_says_the_same_is_shown_once",
        ours="once, and the receipt says so",
        why="the second copy teaches nothing and costs tokens",
    ),
    only_default(
        "always-shown",
        "§A.2",
        "What was retrieved is always shown.",
        "test_the_paper_withholds_nothing_and_the_default_withholds_what_is_new",
        default="whole recalls and lessons are withheld at random, at rates that follow the evidence (`holdout=`)",
        why="what a lesson changes can only be measured so",
    ),
    both(
        "no-receipt",
        "§A.2",
        "Nothing is kept of a retrieval.",
        "test_every_recall_leaves_a_receipt_that_learning_settles",
        ours="a receipt (candidates, scores, shown, withheld, exact text), closed by `learn(recall=…)`",
        why="nobody could say later which lesson was there when a task succeeded",
    ),
)
