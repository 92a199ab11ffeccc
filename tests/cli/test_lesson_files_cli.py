"""`export --format`, `export --sync`, `import` and `lessons list --proposals`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank

pytestmark = pytest.mark.full
WHERE = ("--bank", "bank.db", "--scope", "t")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        for title in ("Ask for the reason first", "Look at the order first"):
            bank.lessons.add(title=title, content=f"{title}, then act.", task="Cancel the order", by="Ana")
    return tmp_path


def run(place: Path, *words: object, code: int = 0) -> str:
    done = lessonbank_cli(*words, *WHERE, cwd=place)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def change(file: Path) -> None:
    file.write_text(
        file.read_text(encoding="utf-8").replace("reason first, then", "reason politely, then"), encoding="utf-8"
    )


def test_a_file_goes_out_and_an_edit_comes_in_and_is_decided(place: Path) -> None:
    file = place / "CLAUDE.md"
    assert "2 lessons of t are in 'CLAUDE.md'" in run(place, "export", "CLAUDE.md", "--format", "claude-md")
    change(file)
    assert "import it first, or sync it [usage]" in run(place, "export", "CLAUDE.md", "--format", "claude-md", code=2)
    assert "1 new record in t" in run(place, "import", "CLAUDE.md")
    table = run(place, "lessons", "list", "--proposals").splitlines()
    assert table[0].strip() == "1 proposal in t"
    row = table[2].split()
    assert row[1:3] == ["approve:", "edit"]
    assert "read in CLAUDE.md" in table[2]
    assert "quarantined, edit proposed" in run(place, "lessons", "list")
    run(place, "lessons", "approve", row[0], "--by", "Ana")
    assert "reason politely" in run(place, "explain", row[3])
    assert json.loads(run(place, "export", "CLAUDE.md", "--format", "claude-md", "--json"))["lessons"] == 2
    assert "reason politely" in file.read_text()


def test_a_preview_of_a_sync_writes_nothing(place: Path) -> None:
    said = run(place, "export", "AGENTS.md", "--sync", "--preview")
    assert "2 lessons, would change" in said
    assert "+- **Look at the order first**" in said
    assert "nothing was changed: leave --preview out to do this" in said
    assert not (place / "AGENTS.md").exists()
    run(place, "export", "AGENTS.md", "CLAUDE.md", "--sync")
    change(place / "AGENTS.md")
    said = run(place, "export", "AGENTS.md", "CLAUDE.md", "--sync", "--preview")
    assert "would be proposed: edit 'Ask for the reason first'" in said
    assert json.loads(run(place, "lessons", "list", "--proposals", "--json")) == []
    said = run(place, "export", "AGENTS.md", "CLAUDE.md", "--sync")
    assert "proposed: edit 'Ask for the reason first'" in said
    assert "CLAUDE.md': 2 lessons, as it was" in said
    told = json.loads(run(place, "export", "AGENTS.md", "--sync", "--preview", "--json"))
    assert [(one["lessons"], one["proposals"]) for one in told] == [(2, [])]
    (proposal,) = json.loads(run(place, "lessons", "list", "--proposals", "--json"))
    assert (proposal["change"], proposal["origin"]) == ("edit", "file")


def test_a_folder_of_skills_goes_out_and_in(place: Path) -> None:
    run(place, "export", "skills", "--format", "skill", "--budget", "900")
    (skill,) = (place / "skills").glob("*/SKILL.md")
    change(skill)
    assert "1 new record" in run(place, "import", "skills")


def test_a_folder_of_skills_that_is_not_there_yet_is_known_by_its_name(place: Path) -> None:
    run(place, "export", "AGENTS.md", ".claude/skills", "--sync", "--preview")
    assert not (place / ".claude").exists()
    run(place, "export", "AGENTS.md", ".claude/skills", "--sync")
    assert list((place / ".claude/skills").glob("*/SKILL.md"))


def test_what_is_wrong_is_one_sentence(place: Path) -> None:
    (place / "CLAUDE.md").write_text("<!-- lessonbank:begin -->\n")
    for words in (("import", "CLAUDE.md"), ("export", "CLAUDE.md", "--sync")):
        said = run(place, *words, code=2)
        assert said.count("\n") == 1
        assert "[format]" in said
    assert "there is no file" in run(place, "import", "nothing.md", code=2)
    assert "tells no format" in run(place, "export", "x.txt", "--sync", code=2)
    (place / "AGENTS.md").write_text(
        "<!-- lessonbank:begin -->\n\n\x1b[2J\n\n- \x1b]0;x\x07evil, truly evil\n<!-- lessonbank:end -->"
    )
    assert "\x1b" not in run(place, "export", "AGENTS.md", "--sync", "--preview")
