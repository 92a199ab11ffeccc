"""The documentation says what is there: links lead somewhere, tables name what exists, shown source is current."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pages
import pytest

import lessonbank
from lessonbank import errors, importers

PAGES = pages.pages()
REFERENCE = pages.ROOT / "docs" / "reference.md"
every_page = pytest.mark.parametrize("page", PAGES, ids=pages.name)


@every_page
def test_every_internal_link_resolves(page: Path) -> None:
    for target in pages.links(page):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, fragment = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), target
        assert not fragment or fragment in pages.anchors(place), target


@every_page
def test_a_page_of_the_site_links_to_pages_of_the_site(page: Path) -> None:
    if page.name == "README.md":
        return
    for target in pages.links(page):
        path = target.partition("#")[0]
        if path and "://" not in path:
            assert (page.parent / path).resolve().is_relative_to(pages.ROOT / "docs"), target


def test_the_menu_names_every_page_and_every_decision() -> None:
    docs = pages.ROOT / "docs"
    settings = tomllib.loads((pages.ROOT / "zensical.toml").read_text(encoding="utf-8"))
    named = sorted(re.findall(r"[\w/.-]+\.md", str(settings["project"]["nav"])))
    assert named == sorted(page.relative_to(docs).as_posix() for page in docs.rglob("*.md"))


@every_page
def test_shown_source_is_the_source(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert pages.with_sources(text) == text, "run: python tests/docs_src/pages.py"


def test_the_reference_names_every_public_name() -> None:
    assert sorted(pages.first_cells(pages.section(REFERENCE, "Names"))) == sorted(lessonbank.__all__)


def test_the_reference_names_every_method_of_both_banks() -> None:
    told = pages.first_cells(pages.section(REFERENCE, "The bank"))
    assert sorted(told) == sorted(_members(lessonbank.ReasoningBank) - {"aio"})
    assert {name for name in told if not hasattr(lessonbank.AsyncReasoningBank, name)} <= {
        "scope",
        "settings",
        "writer",
    }


@pytest.mark.parametrize("view", ["lessons", "runs", "recalls", "history", "admin"])
def test_the_reference_names_every_method_of_a_view(view: str) -> None:
    told = pages.first_cells(pages.section(REFERENCE, f"bank.{view}"))
    with lessonbank.connect(":memory:", scope="docs", embedder="lexical") as bank:
        members = _members(type(getattr(bank, view)))
    assert sorted(told) == sorted(members - {"aio"})


@pytest.mark.parametrize("name", ["File", "Model", "Retrieval", "Learning", "Evidence", "Safety", "Parts", "Server"])
def test_the_reference_names_every_setting(name: str) -> None:
    rows = pages.section(REFERENCE, "Settings").splitlines()
    told = next(row for row in rows if row.startswith(f"| `{name}` |"))
    assert {field.name for field in dataclasses.fields(getattr(lessonbank, name))} <= set(re.findall(r"`(\w+)`", told))


@pytest.mark.parametrize("heading", ["Trajectory", "Recall", "Run", "Learned", "Lesson", "Verdict", "Experience"])
def test_the_reference_names_every_field_of_a_record(heading: str) -> None:
    record: Any = getattr(lessonbank, heading)
    told = pages.first_cells(pages.section(REFERENCE, heading))
    properties = {name for name in vars(record) if isinstance(vars(record)[name], property)}
    assert sorted(told) == sorted({*record.model_fields, *properties})


def test_the_reference_names_every_argument_of_connect() -> None:
    told = pages.first_cells(pages.section(REFERENCE, "connect"))
    assert told == list(inspect.signature(lessonbank.connect).parameters)


def test_the_reference_names_every_error_code() -> None:
    told = pages.first_cells(pages.section(REFERENCE, "Errors"))
    defined = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert sorted(told) == sorted(e.code for e in defined if e is not errors.LessonbankError)


HOSTS = [page for page in PAGES if page.parent == pages.ROOT / "docs/guides/hosts" and page.stem != "index"]


@pytest.mark.parametrize("page", HOSTS, ids=lambda page: page.stem)
def test_the_page_of_a_framework_names_a_whole_program(page: Path) -> None:
    named = re.findall(r"`(?:python )?examples/(\w+\.py)`", page.read_text(encoding="utf-8"))
    assert named
    assert all((pages.ROOT / "examples" / name).is_file() for name in named)


def test_every_adapter_has_its_page() -> None:
    adapters = {path.stem for path in (pages.ROOT / "src/lessonbank/adapters").glob("[!_]*.py")}
    assert adapters - {"following"} == {page.stem.replace("-", "_") for page in HOSTS}


def test_every_format_is_named() -> None:
    told = pages.first_cells((pages.ROOT / "docs/guides/recorded-runs.md").read_text(encoding="utf-8"))
    assert {name for name, _ in importers.FORMATS} <= set(told)


def test_every_format_says_what_it_was_compared_with() -> None:
    guide = (pages.ROOT / "docs/guides/recorded-runs.md").read_text(encoding="utf-8")
    told = pages.first_cells(guide.partition("## What each format was compared with")[2].partition("\n## ")[0])
    assert {name for name, _ in importers.FORMATS} - {"neutral", "swe_bench"} == set(told)


def _members(owner: type, /) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}
