"""`lessons` on the command line: written, corrected, taken back and brought back by a person."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Experience, Extraction, Lesson, Parts, Step, Trajectory
from lessonbank.contracts.records import Relation


@pytest.mark.full
def test_the_release_is_printed(tmp_path: Path) -> None:
    assert lessonbank_cli("--version", cwd=tmp_path).stdout == f"{lessonbank.__version__}\n"


@pytest.mark.full
def test_looking_at_another_embedder_needs_reindex(tmp_path: Path) -> None:
    lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical").close()
    done = lessonbank_cli("doctor", "--bank", "bank.db", "--embedder", "hashing", cwd=tmp_path)
    assert done.returncode == 2
    assert "--reindex" in done.stderr
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert str(bank.settings["embedder"]).startswith("lexical")


WHERE = ("--bank", "bank.db", "--scope", "t", "--by", "Ana")
WORDS = (
    "--title",
    "Fill in the form",
    "--content",
    "First fill in the customs form.",
    "--task",
    "Ship a parcel abroad",
)
EDITOR = """
import pathlib, sys
path = pathlib.Path(sys.argv[1])
text = path.read_text()
for old, new in CHANGES:
    assert old in text, text
    text = text.replace(old, new)
path.write_text(text)
"""


def json_of(cwd: Path, *words: object, **env: str) -> Any:
    done = lessonbank_cli(*words, *WHERE, "--json", cwd=cwd, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def editor(folder: Path, *changes: tuple[str, str]) -> str:
    """A command that changes a draft as a person would."""
    path = folder / "editor.py"
    path.write_text(EDITOR.replace("CHANGES", repr(changes)), encoding="utf-8")
    return f"{sys.executable} {path}"


@pytest.mark.full
def test_a_lesson_written_with_options_is_shown_for_its_task_under_the_name_of_the_person(tmp_path: Path) -> None:
    lesson = json_of(tmp_path, "lessons", "add", *WORDS, "--when", "it leaves the country", "--kind", "guardrail")
    assert (lesson["provenance"]["method"], lesson["provenance"]["writer"]) == ("human", "Ana")
    assert (lesson["kind"], lesson["state"]) == ("guardrail", "active")
    shown = lessonbank_cli("retrieve", "Ship a parcel abroad", *WHERE[:4], cwd=tmp_path)
    assert "First fill in the customs form." in shown.stdout
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert {entry.writer for entry in bank.history.list()} == {"Ana"}


@pytest.mark.full
def test_a_lesson_is_written_and_corrected_in_an_editor(tmp_path: Path) -> None:
    write = editor(
        tmp_path,
        ("title: ", "title: Fill in the form"),
        ("task: ", "task: Ship a parcel abroad"),
        ("when: ", "when: it leaves the country"),
        ("---\n", "---\n# The form\n\nFirst fill it in.\n"),
    )
    lesson = json_of(tmp_path, "lessons", "add", EDITOR=write)
    assert (lesson["title"], lesson["content"]) == ("Fill in the form", "# The form\n\nFirst fill it in.")
    correct = editor(tmp_path, ("First", "At first"))
    edited = json_of(tmp_path, "lessons", "edit", lesson["id"][-8:], "--reason", "clearer", VISUAL=correct)
    assert (edited["id"], edited["version"]) == (lesson["id"], lesson["version"] + 1)
    assert edited["content"] == "# The form\n\nAt first fill it in."
    assert edited["description"] == "it leaves the country"


def test_a_lesson_is_corrected_with_options(tmp_path: Path) -> None:
    lesson = json_of(tmp_path, "lessons", "add", *WORDS)
    edited = json_of(tmp_path, "lessons", "edit", lesson["id"], "--title", "Fill in the customs form")
    assert (edited["title"], edited["content"]) == ("Fill in the customs form", lesson["content"])
    again = lessonbank_cli("lessons", "edit", lesson["id"], "--title", edited["title"], *WHERE, cwd=tmp_path)
    assert (again.returncode, "nothing was changed" in again.stderr) == (2, True)


@pytest.mark.full
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ((), "nothing was changed"),
        ((("title: ", "tilte: x"),), "cannot read 'tilte: x' in the draft"),
        ((("---", ""),), "the line '---' is missing"),
    ],
)
def test_a_draft_that_cannot_be_kept_is_one_sentence(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], sentence: str
) -> None:
    done = lessonbank_cli("lessons", "add", *WHERE, cwd=tmp_path, EDITOR=editor(tmp_path, *changes))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert sentence in done.stderr
    assert not (tmp_path / "bank.db").exists()


def test_what_a_person_wrote_is_kept_when_the_bank_refuses_it(tmp_path: Path) -> None:
    only_title = editor(tmp_path, ("title: ", "title: Fill in the form"))
    done = lessonbank_cli("lessons", "add", *WHERE, cwd=tmp_path, EDITOR=only_title, TMPDIR=str(tmp_path))
    assert done.returncode in (1, 2), done.stderr
    assert "content= takes a text that is not blank" in done.stderr
    assert "what you wrote is in" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "sentence"), [("", "set EDITOR"), ("no-such-editor", "cannot be started"), ("false", "code 1")]
)
def test_without_an_editor_that_works_the_options_are_named(tmp_path: Path, name: str, sentence: str) -> None:
    done = lessonbank_cli("lessons", "add", *WHERE, cwd=tmp_path, EDITOR=name, VISUAL="")
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.full
def test_lessons_are_found_by_state_kind_writer_and_words(tmp_path: Path) -> None:
    first = json_of(tmp_path, "lessons", "add", *WORDS)["id"]
    other = json_of(tmp_path, "lessons", "add", *WORDS[2:], "--title", "Call first", "--kind", "guardrail")["id"]
    lessonbank_cli("lessons", "retire", other, "--quarantine", *WHERE, "--reason", "unclear", cwd=tmp_path)

    def ids(*words: str) -> list[str]:
        done = lessonbank_cli("lessons", *words, *WHERE[:4], "--json", cwd=tmp_path)
        return [lesson["id"] for lesson in json.loads(done.stdout)]

    assert ids("list", "--state", "quarantined") == ids("list", "--kind", "guardrail") == [other]
    assert ids("list", "--writer", "Ana") == [other, first]
    assert ids("list", "--writer", "Bo") == []
    assert ids("list", "--text", "call") == [other]


@pytest.mark.full
def test_nothing_is_changed_without_the_name_of_a_person(tmp_path: Path) -> None:
    lesson = json_of(tmp_path, "lessons", "add", *WORDS)["id"]
    words = ("retire", lesson, "--reason", "misleads", *WHERE[:4])
    done = lessonbank_cli("lessons", *words, cwd=tmp_path)
    assert (done.returncode, "--by" in done.stderr) == (2, True)
    assert lessonbank_cli("lessons", *words, cwd=tmp_path, LESSONBANK_BY="Bo").returncode == 0
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert bank.history.list()[-1].writer == "Bo"


@pytest.mark.full
def test_a_lesson_that_came_again_is_shown_with_its_runs_and_split_off(tmp_path: Path) -> None:
    says = "Open the valve before the pump starts, and wait for the green light."
    contents = iter([says, says.upper().replace(",", "")])

    async def extractor(attempts: Any, /) -> Extraction:
        return Extraction(lessons=(Lesson(title="Valve first", content=next(contents)),))

    parts = Parts(extractor=extractor)
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical", parts=parts) as bank:
        for task in ("open the valve", "open the big valve"):
            bank.learn("I opened it.", task=task, outcome="success")
        (lesson,) = bank.lessons.list()
        (again,) = bank.lessons.repeats(lesson.id)
    where = ("--bank", "bank.db", "--scope", "t")
    shown = lessonbank_cli("explain", lesson.id, *where, cwd=tmp_path).stdout
    assert "It came again once" in shown and again.experience_id[-8:] in shown
    data = json.loads(lessonbank_cli("explain", lesson.id, *where, "--json", cwd=tmp_path).stdout)
    assert [one["task"] for one in data["repeats"]] == ["open the big valve"]
    taught = ("--undo", "--experience", again.experience_id[-8:])
    split = ("lessons", "merge", lesson.id, *taught, *where, "--by", "Ana", "--reason", "it is not")
    assert lessonbank_cli(*split, cwd=tmp_path).stdout.startswith("split off: ")
    assert lessonbank_cli(*split, cwd=tmp_path).returncode != 0
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        assert len(bank.lessons.list()) == 2


@pytest.mark.full
def test_two_lessons_are_merged_from_the_terminal_and_unmerged(tmp_path: Path) -> None:
    first = json_of(tmp_path, "lessons", "add", *WORDS)
    other = json_of(tmp_path, "lessons", "add", *WORDS, "--content", "Say it twice.")
    told = ("--content", "Say it once.", "--title", "Say it")
    merged = json_of(tmp_path, "lessons", "merge", first["id"], other["id"], *told)
    assert (merged["title"], merged["description"]) == ("Say it", first["description"])
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert [lesson.id for lesson in bank.lessons.list()] == [merged["id"]]
    done = lessonbank_cli("lessons", "merge", merged["id"], "--undo", *WHERE, "--reason", "they differ", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("shown again: ")
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert {lesson.id for lesson in bank.lessons.list()} == {first["id"], other["id"]}


@pytest.mark.full
def test_lessons_that_contradict_each_other_are_named_wherever_a_person_looks(tmp_path: Path) -> None:
    old, new = (
        Lesson(id=name * 8, title=f"Turn it {name}", content=f"It opens to the {name}.") for name in ("left", "wide")
    )
    new = new.model_copy(update={"relation": Relation(lesson_ids=(old.id,), kind="contradicts")})
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        for lesson in (old, new):
            bank.consolidate(Experience(scope="t", task=f"open the valve {lesson.title}", lessons=(lesson,)))
        for number in range(4):
            recall = bank.retrieve("open the valve")
            run = Trajectory(task=f"open the valve {number}", steps=(Step(action="turn"),))
            bank.learn(run, recall=recall, outcome="success")
    where = ("--bank", "bank.db", "--scope", "t")
    listed = lessonbank_cli("lessons", "list", *where, cwd=tmp_path).stdout
    assert listed.count("to be chosen") == 2
    asked = lessonbank_cli("lessons", "list", "--proposals", *where, cwd=tmp_path).stdout
    assert "approve it or" in asked and "says otherwise" in " ".join(asked.split())
    told = lessonbank_cli("explain", new.id, *where, cwd=tmp_path).stdout
    assert "contradicts" in told
    assert lessonbank_cli("lessons", "approve", new.id, *where, "--by", "Ana", cwd=tmp_path).returncode == 0
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        assert bank.lessons.proposals() == ()
        assert {lesson.id for lesson in bank.recalls.preview("open the valve", limit=5).shown} == {new.id}


@pytest.mark.parametrize("text", [b"no line of dashes", b"title: \xe9\n---\ncontent"])
def test_a_draft_that_cannot_be_read_is_still_there(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "words").write_bytes(text)
    write = f"cp {tmp_path / 'words'}"
    done = lessonbank_cli("lessons", "add", *WHERE, cwd=tmp_path, EDITOR=write)
    draft = Path(done.stderr.partition("what you wrote is in ")[2].removesuffix(" [usage]\n"))
    assert (done.returncode, draft.read_bytes()) == (2, text)


def test_a_mark_that_an_editor_writes_first_is_no_field(tmp_path: Path) -> None:
    words = "\ufefftitle: Close it\nwhen: after work\ntask: close the valve\n---\nTurn it.\n"
    (tmp_path / "words").write_text(words, encoding="utf-8")
    lesson = json_of(tmp_path, "lessons", "add", EDITOR=f"cp {tmp_path / 'words'}")
    assert lesson["title"] == "Close it"


@pytest.mark.full
def test_who_asks_what_waits_hears_of_notes_in_quarantine_too(tmp_path: Path) -> None:
    words = ("lessons", "list", "--proposals", "--bank", "bank.db", "--scope", "t")
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        assert "quarantine" not in lessonbank_cli(*words, cwd=tmp_path).stdout
        bank.lessons.note("The key is under the mat.", task="open the door")
        assert "lessons list --state quarantined" in lessonbank_cli(*words, cwd=tmp_path).stdout
