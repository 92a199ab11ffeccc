"""Chat histories of Aider: what the user, the model and the program said is told apart by its marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, Skipped, detect, read

CHAT = """
# aider chat started at 2025-06-02 11:58:11

> /usr/bin/aider --model m~
> Main model: m1 with diff edit format~

#### /add parser.py~
> Added parser.py to the chat~

#### Fix the date parser,~
#### please~

I fix it.

> a quotation of mine

#### A heading of mine

parser.py
```python
<<<<<<< SEARCH
a
=======
b
>>>>>>> REPLACE
```

> Tokens: 5.5k sent, 2.1k cache write, 1,265 received. Cost: $0.03 message, $0.05 session.~
> Applied edit to parser.py~

#### thanks~

You are welcome.
""".replace("~", "  ")


def told(entry: Any) -> list[Any]:
    assert isinstance(entry, Imported), entry
    return [
        (step.action.text, [(seen.source, seen.text) for seen in step.observations]) for step in entry.trajectory.steps
    ]


def written(folder: Path, text: str, name: str = ".aider.chat.history.md") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_three_speakers_are_told_apart(tmp_path: Path) -> None:
    (run,) = read(written(tmp_path, CHAT))
    first, answer, last = told(run)
    assert first == (
        "",
        [
            ("environment", "/usr/bin/aider --model m\nMain model: m1 with diff edit format"),
            ("user", "/add parser.py"),
            ("environment", "Added parser.py to the chat"),
            ("user", "Fix the date parser,\nplease"),
        ],
    )
    assert answer[0].startswith(
        "I fix it.\n\n> a quotation of mine\n\n#### A heading of mine\n\nparser.py\n```python\n"
    )
    assert answer[1][0][1].endswith("Applied edit to parser.py")
    assert answer[1][1] == ("user", "thanks")
    assert last == ("You are welcome.", [])


def test_task_model_and_cost_are_read(tmp_path: Path) -> None:
    (run,) = read(written(tmp_path, CHAT))
    assert isinstance(run, Imported)
    made = run.trajectory
    assert made.task == "Fix the date parser,\nplease"
    assert made.metadata["model"] == "m1"
    spent = made.usage
    assert (spent.requests, spent.input_tokens, spent.output_tokens, spent.cost) == (1, 5500, 1265, 0.03)
    assert run.account.speakers == "places"
    assert run.verdict is None


@pytest.mark.parametrize(
    ("said", "task"),
    [("/ask Why is it so?", "Why is it so?"), ("/architect Redo it", "Redo it"), ("Do /this", "Do /this")],
)
def test_a_command_that_asks_the_model_is_the_task(said: str, task: str, tmp_path: Path) -> None:
    (run,) = read(written(tmp_path, f"# aider chat started at 2025-06-02 11:58:11\n\n#### {said}  \n\nYes.\n"))
    assert isinstance(run, Imported)
    assert run.trajectory.task == task


def test_each_chat_with_an_answer_is_a_run(tmp_path: Path) -> None:
    silent = "# aider chat started at 2025-06-03 11:58:11\n\n> Aider v0.86  \n\n#### hello  \n> ^C again to exit  \n"
    runs = list(read(written(tmp_path, CHAT + silent + CHAT.replace("06-02", "06-04").replace("date", "time"))))
    assert [run.trajectory.task for run in runs if isinstance(run, Imported)] == [
        "Fix the date parser,\nplease",
        "Fix the time parser,\nplease",
    ]


def test_a_history_whose_blanks_an_editor_took_away_is_read(tmp_path: Path) -> None:
    trimmed = "\n".join(line.rstrip() for line in CHAT.replace("> a quotation", "a quotation").split("\n"))
    (run,) = read(written(tmp_path, trimmed.replace("#### A heading", "A heading")))
    assert [said for _, said in told(run)[0][1]][1:] == [
        "/add parser.py",
        "Added parser.py to the chat",
        "Fix the date parser,\nplease",
    ]


def test_a_history_is_found_by_its_name_in_a_folder_and_by_its_head_alone(tmp_path: Path) -> None:
    other = written(tmp_path, CHAT, "notes.md")
    written(tmp_path, CHAT)
    assert detect(other) == "aider"
    assert len([run for run in read(tmp_path) if isinstance(run, Imported)]) == 1


def test_a_history_without_an_answer_says_so(tmp_path: Path) -> None:
    (skipped,) = read(written(tmp_path, "# aider chat started at 2025-06-02 11:58:11\n\n> Aider v0.86  \n"))
    assert isinstance(skipped, Skipped)
    assert skipped.unknown
    assert "no chat in which a model answered" in skipped.reason


@pytest.mark.parametrize(
    ("first", "task"),
    [
        ("# Fix any errors below, if possible.", "Fix the parser"),
        ("# Question: How do I undo?\n\n# Relevant docs:\n\n<doc>", "How do I undo?"),
    ],
)
def test_what_aider_asks_in_the_users_name_is_not_the_task(first: str, task: str, tmp_path: Path) -> None:
    lines = "  \n#### ".join(first.split("\n"))
    chat = f"# aider chat started at 2025-06-02 11:58:11\n\n#### {lines}  \n\nYes.\n\n#### Fix the parser  \n\nDone.\n"
    (run,) = read(written(tmp_path, chat))
    assert isinstance(run, Imported)
    assert run.trajectory.task == task


def test_a_mark_before_the_first_chat_hides_it_from_nobody(tmp_path: Path) -> None:
    marked = written(tmp_path, f"\ufeff{CHAT.lstrip()}", "history.md")
    assert detect(marked) == "aider"
    (run,) = read(marked)
    assert isinstance(run, Imported)
    assert run.trajectory.metadata["run_id"] == f"{tmp_path.name}/2025-06-02 11:58:11"
