"""Runs the tutorials in a Jupyter kernel, and writes what they print and draw into the page, pictures and a notebook.

A tutorial is a page of Markdown: its Python blocks are the cells, and the `output` block after a cell is made here.
`python tests/docs_src/tutorials.py` writes all of them again (names pick some); `.ci/environments` has what it needs.
"""

from __future__ import annotations

import json
import operator
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PICTURES = TUTORIALS.parent / "images" / "tutorials"
_FENCE = re.compile(r"^```(python|output)\n(.*?)^```\n", re.M | re.S)
_IMAGE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n*", re.M)
_LOCAL_LINK = re.compile(r"\[([^\]]*)\]\((?!https?://)[^)]*\)")
_CHANGES = re.compile(  # ids, times and addresses: other ones each time
    r"127\.0\.0\.1:\d+|"
    r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}\b|\d{4}-\d\d-\d\d(?:[T ][\d:.+Z]*)?|\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b"
)
_PROCESS = re.compile(r"process:[\w.-]+@[\w.-]+")
"""Who told an outcome: the user and the machine that made this page are nobody's business."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DRAWN_ID = re.compile(r"\b[pm][0-9a-f]{10}\b")
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.S)
_SETTINGS = """import matplotlib, matplotlib_inline.backend_inline as backend
backend.set_matplotlib_formats("svg")
matplotlib.rcParams.update({"svg.hashsalt": "lessonbank", "svg.fonttype": "none", "figure.figsize": (7.0, 3.2)})
"""
"""Run before the first cell and kept nowhere: pictures are small, and the same each time."""


@dataclass
class Cell:
    """A piece of a page: prose, or code with what it printed and drew."""

    kind: str
    text: str
    printed: str = ""
    drawn: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Made:
    """What is made from one page: the page itself with its outputs, the notebook, the pictures by name."""

    page: str
    notebook: str
    pictures: dict[str, str]


def cells(page: str, /) -> list[Cell]:
    """The prose and code of a page in order, without outputs."""
    found, at = list[Cell](), 0
    for fence in _FENCE.finditer(page):
        found.append(Cell("markdown", page[at : fence.start()]))
        at = fence.end()
        if fence[1] == "python":
            found.append(Cell("code", fence[2]))
    return [cell for cell in (*found, Cell("markdown", page[at:])) if cell.text.strip()]


def notebook(parts: list[Cell], /) -> str:
    """The cells as a Jupyter notebook, with their outputs."""
    numbers = count(1)
    told = [_notebook_cell(f"cell-{at}", cell, numbers) for at, cell in enumerate(parts, 1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": told, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _notebook_cell(name: str, cell: Cell, numbers: count[int]) -> dict[str, Any]:
    if cell.kind == "markdown":
        prose = _LOCAL_LINK.sub(r"\1", _IMAGE.sub("", cell.text)).strip()
        return {"cell_type": "markdown", "id": name, "metadata": {}, "source": prose.splitlines(keepends=True)}
    outputs: list[dict[str, Any]] = []
    if cell.printed:
        outputs.append({"name": "stdout", "output_type": "stream", "text": cell.printed.splitlines(keepends=True)})
    for svg in cell.drawn:
        data = {"image/svg+xml": svg.splitlines(keepends=True), "text/plain": ["<Figure>"]}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    source = cell.text.rstrip("\n").splitlines(keepends=True)
    ran = {"cell_type": "code", "execution_count": next(numbers), "id": name, "metadata": {}}
    return {**ran, "outputs": outputs, "source": source}


def run(parts: list[Cell], /) -> None:
    """Run the code of a page from top to bottom in a kernel of its own, in an empty folder, and note its outputs.

    Raises:
        RuntimeError: a cell failed, or wrote to the error stream.
    """
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    code = [cell for cell in parts if cell.kind == "code"]
    sources = [_SETTINGS, *(cell.text for cell in code)]
    book: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    with tempfile.TemporaryDirectory() as folder:
        fonts = Path(tempfile.gettempdir(), "lessonbank-tutorials")  # matplotlib looks for fonts once, not each time
        given = {"HOME": folder, "MPLCONFIGDIR": str(fonts), "NO_COLOR": "1", "COLUMNS": "100"}
        environment = {**os.environ, **given}
        work = Path(folder, "work")
        work.mkdir()
        pipes = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})
        place = {"metadata": {"path": str(work)}}
        NotebookClient(book, config=pipes, timeout=600, kernel_name="python3", resources=place).execute(env=environment)
    for cell, ran in zip(code, book.cells[1:], strict=True):
        for output in ran.outputs:
            _note(cell, output)


def _note(cell: Cell, output: Any) -> None:
    if output.output_type == "stream" and output.name == "stdout":
        cell.printed += _PROCESS.sub("process:ana@laptop", output.text)
    elif "image/svg+xml" in output.get("data", {}):
        svg = output["data"]["image/svg+xml"]
        cell.drawn.append("\n".join(line.rstrip() for line in _METADATA.sub("", svg).splitlines()) + "\n")
    elif "text/plain" in output.get("data", {}):
        cell.printed += output["data"]["text/plain"] + "\n"
    else:
        raise RuntimeError(f"a cell wrote to the error stream: {output!r}")


def make(page: Path, /) -> Made:
    """Run a tutorial."""
    parts = cells(page.read_text(encoding="utf-8"))
    run(parts)
    numbers = count(1)
    pictures = {f"{page.stem}-{next(numbers)}.svg": svg for cell in parts for svg in cell.drawn}
    return Made("".join(map(_page_part, parts)), notebook(parts), pictures)


def _page_part(cell: Cell) -> str:
    if cell.kind == "markdown":
        return cell.text
    printed = f"\n```output\n{cell.printed.rstrip()}\n```\n" if cell.printed.strip() else ""
    return f"```python\n{cell.text}```\n{printed}"


def is_current(old: str, new: str, /) -> bool:
    """Whether two texts are the same but for ids, times and addresses; pictures in a notebook as `is_same_picture`."""
    same = is_same_picture if "<svg" in old else operator.eq
    return same(_CHANGES.sub("", old), _CHANGES.sub("", new))


def is_same_picture(old: str, new: str, /) -> bool:
    """Whether two pictures say the same words and have the same marks, to half a point: fonts and versions differ."""
    old, new = _DRAWN_ID.sub("", old), _DRAWN_ID.sub("", new)
    if _NUMBER.sub("", old) != _NUMBER.sub("", new):
        return False
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return all(abs(float(one) - float(other)) <= 0.5 for one, other in pairs)


def main(arguments: list[str]) -> int:
    """Write what has changed. With `--check`, write nothing and say by the exit code whether something has."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    names, changed = [name for name in arguments if name != "--check"], False
    for page in sorted(TUTORIALS.glob("*.md")):
        if page.stem == "index" or (names and page.stem not in names):
            continue
        for path, text in _files(page, make(page)):
            same = is_same_picture if path.suffix == ".svg" else is_current
            if path.exists() and same(path.read_text(encoding="utf-8"), text):
                continue
            print(path.relative_to(TUTORIALS.parent))
            changed = True
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    return int(changed and "--check" in arguments)


def _files(page: Path, made: Made) -> list[tuple[Path, str]]:
    pictures = [(PICTURES / name, svg) for name, svg in made.pictures.items()]
    return [(page, made.page), (page.with_suffix(".ipynb"), made.notebook), *pictures]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
