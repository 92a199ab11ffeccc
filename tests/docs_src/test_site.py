"""The documentation site: it builds offline, its links and anchors lead somewhere, its search finds each page."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pages
import pytest

import lessonbank
from lessonbank.bank import views

SITE = pages.ROOT / "site"
VIEWS = ("Lessons", "Runs", "Recalls", "History", "Admin")
SHOWN_UNDER_ANOTHER_NAME = {"connect", "ReasoningBank", "LessonbankError", "__version__"}
"""The first two are derived from those that are awaited; the third is among the errors."""


class Page(HTMLParser):
    """What a built page links to, what it loads, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.anchors.update(told[name] for name in ("id", "name") if name in told)
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if tag in ("script", "img", "iframe") and "src" in told:
            self.loads.append(told["src"])
        if tag == "link" and told.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loads.append(told["href"])


@cache
def built(path: Path) -> Page:
    return Page(path)


def build() -> list[Path]:
    for name, package in (("zensical", "zensical"), ("mkdocstrings_handlers.python", "mkdocstrings-python")):
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            pytest.skip(f"needs {package}: pip install --group docs")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=pages.ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not appear" not in done.stdout + done.stderr  # a docstring names an argument that is not there
    return sorted(path for path in SITE.rglob("*.html") if path.name != "404.html")


@pytest.mark.full
def test_the_built_site_leads_somewhere_loads_nothing_from_elsewhere_and_is_searched() -> None:
    """One test, because to build it takes long."""
    site = build()
    broken: list[str] = []
    for path in site:
        for link in (*built(path).links, *built(path).loads):
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            place = (path.parent / unquote(to.path)).resolve() if to.path else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists() or (
                to.fragment and place.suffix == ".html" and unquote(to.fragment) not in built(place).anchors
            ):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert broken == []
    assert {load for path in site for load in built(path).loads if urlsplit(load).netloc} == set()
    styles = "".join(path.read_text(encoding="utf-8") for path in SITE.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)|@import[^;]*//[^;]*", styles) == []
    found = {item["location"].partition("#")[0] for item in json.loads((SITE / "search.json").read_text())["items"]}
    assert {path.relative_to(SITE).as_posix() for path in site} - found == set()
    api = built(SITE / "api.html").anchors
    assert {"lessonbank.AsyncReasoningBank.retrieve", "lessonbank.bank.views.AsyncLessons.list"} <= api


def test_the_api_page_takes_every_public_name_and_every_view_from_its_docstring() -> None:
    text = (pages.ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^::: lessonbank\.(\w+)$", text, re.M))
    assert set(lessonbank.__all__) - SHOWN_UNDER_ANOTHER_NAME == told - {"protocols", "errors"}
    assert set(re.findall(r"^::: lessonbank\.bank\.views\.(\w+)$", text, re.M)) == {f"Async{view}" for view in VIEWS}


@pytest.mark.parametrize("owner", [lessonbank.AsyncReasoningBank, *(getattr(views, f"Async{view}") for view in VIEWS)])
def test_the_api_page_finds_a_docstring_at_every_method(owner: type) -> None:
    members = {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")}
    assert [name for name, member in members.items() if not getattr(member, "__doc__", None)] == []


@pytest.mark.parametrize("name", ["File", "Model", "Retrieval", "Learning", "Evidence", "Safety", "Parts", "Server"])
def test_the_api_page_finds_a_docstring_at_every_setting(name: str) -> None:
    (owner,) = ast.parse(inspect.getsource(getattr(lessonbank, name))).body
    assert isinstance(owner, ast.ClassDef)
    silent = [
        ast.unparse(field.target)
        for field, below in pairwise([*owner.body, owner])
        if isinstance(field, ast.AnnAssign) and not isinstance(below, ast.Expr)
    ]
    assert silent == []
