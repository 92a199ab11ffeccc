"""The tutorials run in a Jupyter kernel, and their pages, pictures and notebooks show what they print and draw."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest
import tutorials

PAGES = sorted(page for page in tutorials.TUTORIALS.glob("*.md") if page.stem != "index")
NEEDS = ("nbclient", "ipykernel", "matplotlib")
BUSY, TRIES = "kept the bank busy", 3
"""What a bank says, rightly, on a machine that is so slow that a receipt waits for a quarter of a second."""
every_tutorial = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@every_tutorial
@pytest.mark.full
def test_a_tutorial_prints_and_draws_what_its_page_shows(page: Path) -> None:
    for name in NEEDS:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}: bash .ci/environments")
    # In a process of its own: the kernel's machinery warns about its event loop, and warnings are errors here.
    command = [sys.executable, tutorials.__file__, "--check", page.stem]
    for _ in range(TRIES):
        said = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if BUSY not in said.stderr:
            break
    assert (said.returncode, said.stdout) == (0, ""), f"run: just tutorials {page.stem}\n{said.stdout}{said.stderr}"


@every_tutorial
def test_a_notebook_has_the_text_the_code_and_the_output_of_its_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    book = json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))
    made = json.loads(tutorials.notebook(tutorials.cells(text)))
    assert [cell["source"] for cell in book["cells"]] == [cell["source"] for cell in made["cells"]]
    printed = [line for cell in book["cells"] for out in cell.get("outputs", []) for line in out.get("text", ())]
    shown = [block.code for block in pages.blocks(page) if block.info == "output"]
    assert "".join(printed).split() == "".join(shown).split()


@every_tutorial
def test_a_page_shows_each_picture_that_its_notebook_draws(page: Path) -> None:
    book = json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))
    drawn = [out for cell in book["cells"] for out in cell.get("outputs", []) if "data" in out]
    shown = re.findall(r"!\[.{10,}\]\(\.\./images/tutorials/([\w-]+\.svg)\)", page.read_text(encoding="utf-8"))
    assert shown == [f"{page.stem}-{number}.svg" for number in range(1, len(drawn) + 1)]
    assert all((tutorials.PICTURES / name).is_file() for name in shown)


def test_other_ids_times_and_fonts_are_no_change_and_other_words_and_marks_are() -> None:
    assert tutorials.is_current("0cb2aea9| in 2.1 seconds", "ffb2aea9| in 14 seconds")
    assert not tutorials.is_current("67 of 80 tasks", "66 of 80 tasks")
    assert tutorials.is_same_picture('<path d="M 1.25 2"/>', '<path d="M 1.5 2"/>')
    assert not tutorials.is_same_picture('<path d="M 1.25 2"/>', '<path d="M 9 2"/>')
    assert not tutorials.is_same_picture("<text>with</text>", "<text>without</text>")
