"""The documentation says what is there: links lead somewhere, tables name what exists."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pages
import pytest

import lessonbank
from lessonbank import errors, importers

PAGES = pages.pages()
REFERENCE = pages.ROOT / "docs" / "reference.md"
LINKS = [(page, target) for page in PAGES for target in pages.links(page) if not re.match(r"mailto:|\w+://", target)]


def test_every_internal_link_resolves() -> None:
    broken = [f"{pages.name(page)}: {target}" for page, target in LINKS if not _leads_somewhere(page, target)]
    assert len(LINKS) > 100
    assert broken == []


def _leads_somewhere(page: Path, target: str) -> bool:
    path, _, fragment = target.partition("#")
    place = (page.parent / path).resolve() if path else page
    return place.exists() and (not fragment or fragment in pages.anchors(place))


def test_a_page_of_the_site_links_to_pages_of_the_site() -> None:
    within = [(page, target) for page, target in LINKS if page.name != "README.md" and target[0] != "#"]
    places = [(page.parent / target.partition("#")[0]).resolve() for page, target in within]
    outside = [one for one, place in zip(within, places, strict=True) if not place.is_relative_to(pages.ROOT / "docs")]
    assert outside == []


def test_the_menu_names_every_page_and_every_decision() -> None:
    docs = pages.ROOT / "docs"
    settings = tomllib.loads((pages.ROOT / "zensical.toml").read_text(encoding="utf-8"))
    named = sorted(re.findall(r"[\w/.-]+\.md", str(settings["project"]["nav"])))
    assert named == sorted(page.relative_to(docs).as_posix() for page in docs.rglob("*.md"))


def test_the_reference_names_every_argument_of_connect() -> None:
    told = re.findall(r"^\* `(\w+)`", pages.section(REFERENCE, "connect"), re.M)
    assert told == list(inspect.signature(lessonbank.connect).parameters)


def test_the_reference_names_every_error_code() -> None:
    told = re.findall(r"^\* `(\w+)`", pages.section(REFERENCE, "Errors"), re.M)
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


_FIGURE = re.compile(r"\d ?%|\b\d[\d,.]* of \d|[+−]\d+ points|after \d+ pairs")
_SOURCE = re.compile(r"`(?:python|\.venv|lessonbank|just) [^`]+`|(?:January|November|December) 20\d\d")
"""A command, or the month of a report."""


def test_every_figure_of_the_readme_has_its_command_or_a_dated_report() -> None:
    text = re.sub(r"^```.*?^```$", "", (pages.ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    told = [part for part in re.split(r"\n\n|\n(?=[*|])", text) if _FIGURE.search(part)]
    assert len(told) >= 5
    assert [part for part in told if not _SOURCE.search(part)] == []


def test_every_program_that_the_readme_names_is_there() -> None:
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"examples/\w+\.py", text)
    named += [f"bench/src/{name.replace('.', '/')}" for name in re.findall(r"python -m (lessonbank_bench[\w.]*)", text)]
    assert len(named) >= 5
    gone = [name for name in named if not any((pages.ROOT / f"{name}{end}").exists() for end in ("", ".py"))]
    assert gone == []


def test_every_format_says_what_it_was_compared_with() -> None:
    guide = (pages.ROOT / "docs/guides/recorded-runs.md").read_text(encoding="utf-8")
    told = pages.first_cells(guide.partition("## What each format was compared with")[2].partition("\n## ")[0])
    assert {name for name, _ in importers.FORMATS} - {"neutral", "swe_bench"} == set(told)
