"""Lessons go out into AGENTS.md, somebody edits that file, and a person decides what becomes of the edit.

python examples/lessons_as_files.py
"""

import tempfile
from pathlib import Path

import lessonbank
from lessonbank import Evidence


def main() -> str:
    """Export, edit, import, approve, export again; the file as it is then."""
    file = Path(tempfile.mkdtemp()) / "AGENTS.md"
    file.write_text("# Our shop\n\nUse tabs.\n", encoding="utf-8")
    with lessonbank.connect(
        ":memory:", scope="docs/files", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        bank.lessons.add(
            title="Ask for the reason first",
            content="Ask why the order is to be cancelled before you cancel it.",
            when="An order is still pending.",
            task="Cancel the pending order",
            by="Ana",
        )
        bank.admin.export(file, format="agents-md")

        edited = file.read_text(encoding="utf-8").replace("Ask why", "Ask politely why")
        file.write_text(edited, encoding="utf-8")
        bank.admin.import_(file)  # an edit is a proposal: anybody may have made it
        for proposal in bank.lessons.proposals():
            print(f"{proposal.change}: {proposal.lesson.content} ({proposal.reason})")
            bank.lessons.approve(proposal.lesson.id, by="Ana")

        (told,) = bank.admin.sync(file)  # both directions at once; preview=True only says what would be
        print(f"{told.lessons} lesson in {file.name}, {len(told.proposals)} new proposals")
        return file.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(main())
