"""Each gate catches the break it is there for: planted in a copy, named in the message."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import gates
import pytest

pytestmark = pytest.mark.full

Gate = Callable[[Path], list[str]]
PACKAGE = Path("src") / "lessonbank"
MEMBERS = ("src", "pyproject.toml", "bench/src", "bench/pyproject.toml", "tests/architecture/public_api.txt")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The library, compiled, and what the gates read beside it, free to be broken."""
    for member in MEMBERS:
        source, target = gates.ROOT / member, tmp_path / member
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc.*"))
        elif source.is_file():
            shutil.copy(source, target)
    return tmp_path


def plant(root: Path, name: str, text: str) -> None:
    """Add `text` to the end of a file of the package, which need not exist yet."""
    path = root / PACKAGE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def one_that_names(problems: list[str], *words: str) -> bool:
    return any(all(word in problem for word in words) for problem in problems)


def check(gate: Gate, root: Path, *words: str) -> None:
    problems = gate(root)
    assert one_that_names(problems, *words), f"no problem names {words} in:\n" + "\n".join(problems)


# --- ruff ------------------------------------------------------------------------------------------------------------


LINT = [
    ("errors.py", "\nimport os\n", "F401"),
    ("bank/loop.py", "\n\ndef late() -> object:\n    import json\n\n    return json\n", "PLC0415"),
    ("contracts/agents.py", "\nimport pickle\n\nPICKLE = pickle\n", "TID251"),
    ("contracts/types.py", "\n\ntry:\n    pass\nexcept Exception:\n    raise ValueError from None\n", "BLE001"),
    (
        "bank/sync.py",
        "\n\ndef words(path: str) -> str:\n    with open(path) as file:\n        return file.read()\n",
        "PTH123",
    ),
    ("contracts/events.py", "\nfrom unittest import " + "mock\n", "TID251"),
]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A project with nothing but its settings, which are all that ruff needs."""
    shutil.copy(gates.ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_lint_errors_are_caught(bare: Path) -> None:
    for name, text, _ in LINT:
        plant(bare, name, text)
    problems = gates.lint(bare)
    for name, _, rule in LINT:
        assert one_that_names(problems, f"lessonbank/{name}", rule), problems
    check(gates.text, bare, "lessonbank/contracts/events.py", "a mock")


@pytest.mark.parametrize(
    ("gate", "line", "what"),
    [
        (gates.encodings, 'from pathlib import Path\n\nTEXT = Path("x").read_text()', "encoding"),
        (gates.formatting, "CODES = [ 'a',\n  'b' ]", ""),
        (gates.participles, "def _told() -> None:\n    pass", "_told"),
        (gates.pronouns, 'def name() -> None:\n    """What it is called."""', "What it is called."),
        (gates.empty_names, "told = 1", "names nothing"),
        (gates.empty_names, "def count(found: int) -> int:\n    return found", "names nothing"),
        (gates.empty_names, "FIRST = [one for one in (1, 2)]", "names nothing"),
        (gates.empty_names, "try:\n    pass\nexcept ValueError as kept:\n    pass", "names nothing"),
        (gates.empty_names, "first, *gone = 1, 2", "names nothing"),
    ],
    ids=["encoding", "format", "participle", "pronoun", "variable", "parameter", "loop", "exception", "rest"],
)
def test_a_line_that_breaks_a_rule_of_style_is_caught(bare: Path, gate: Gate, line: str, what: str) -> None:
    plant(bare, "errors.py", f"\n\n{line}\n")
    check(gate, bare, "lessonbank/errors.py", what)


# --- types -----------------------------------------------------------------------------------------------------------


def test_a_type_error_is_caught_and_so_is_a_misuse_that_passes(tmp_path: Path) -> None:
    plant(tmp_path, "__init__.py", '"""Small, so that checking it is quick."""\n')
    shutil.copy(gates.ROOT / PACKAGE / "errors.py", tmp_path / PACKAGE)
    shutil.copy(gates.ROOT / "pyproject.toml", tmp_path)
    plant(tmp_path, "planted.py", "from lessonbank.errors import NotFound\n\nCODE: int = NotFound.code\n")
    typing = tmp_path / "tests" / "typing"
    typing.mkdir(parents=True)
    (typing / "misuse.py").write_text('NUMBER: int = "1"  # expect: reportAssignmentType\n', encoding="utf-8")
    (typing / "passes.py").write_text("NUMBER: int = 1  # expect: reportAssignmentType\n", encoding="utf-8")

    problems = gates.types(tmp_path)

    assert one_that_names(problems, "lessonbank/planted.py:3", "reportAssignmentType")
    assert one_that_names(problems, "passes.py:1", "nothing found")
    assert not one_that_names(problems, "misuse.py")


def test_mypy_finds_a_wrong_call_of_a_user_and_a_misuse_that_passes(tmp_path: Path) -> None:
    plant(
        tmp_path,
        "__init__.py",
        '"""Small, so that checking it is quick."""\n\n\ndef half(n: int) -> int:\n    return n // 2\n',
    )
    plant(tmp_path, "py.typed", "")
    typing = tmp_path / "tests" / "typing"
    typing.mkdir(parents=True)
    use = "import lessonbank\n\nlessonbank.half({})  # expect: reportArgumentType, arg-type\n"
    (typing / "misuse.py").write_text(use.format('"4"'), encoding="utf-8")
    (typing / "passes.py").write_text(use.format("4"), encoding="utf-8")
    (typing / "usage.py").write_text('import lessonbank\n\nlessonbank.half("4")\n', encoding="utf-8")

    problems = gates.user_types(tmp_path)

    assert one_that_names(problems, "usage.py:3", "arg-type")
    assert one_that_names(problems, "passes.py:3", "nothing found")
    assert not one_that_names(problems, "misuse.py")


# --- imports ---------------------------------------------------------------------------------------------------------


IMPORTS = [
    ("stores/server.py", "from lessonbank.stores import sqlite\n", "lessonbank.stores.sqlite"),
    ("bank/loop.py", "from lessonbank.stores import sqlite\n", "lessonbank.stores.sqlite"),
    ("learning/consolidation/append.py", "import numpy\n", "numpy"),
    ("demo/__init__.py", "from lessonbank.stores import sqlite\n", "lessonbank.stores.sqlite"),
    ("contracts/records/runs.py", "from lessonbank import bank\n", "lessonbank.bank"),
]


def test_forbidden_imports_are_caught(copy: Path) -> None:
    for name, text, _ in IMPORTS:
        plant(copy, name, text)
    plant(copy, "helpers.py", '"""Unplaced."""\n')
    plant(copy, "../../bench/src/lessonbank_bench/runner.py", "\nfrom lessonbank.stores import sqlite\n")
    looking = "lessonbank_bench.measure.streams.looking"
    plant(copy, f"../../bench/src/{looking.replace('.', '/')}.py", "\nfrom lessonbank.evidence import estimates\n")
    problems = gates.imports(copy)
    for name, _, culprit in IMPORTS:
        offender = "lessonbank." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert one_that_names(problems, offender, culprit), problems
    assert one_that_names(problems, "helpers"), "a module without a place"
    assert one_that_names(problems, "lessonbank_bench.runner", "lessonbank.stores.sqlite"), "an experiment looks inside"
    assert one_that_names(problems, looking, "lessonbank.evidence.estimates"), "a simulator uses what it checks"


def test_a_folder_that_the_contracts_would_not_see_is_caught(tmp_path: Path) -> None:
    plant(tmp_path, "stores/hidden/store.py", "from lessonbank.stores import sqlite\n")
    check(gates.packages, tmp_path, "lessonbank/stores/hidden", "no __init__.py")


# --- budgets ---------------------------------------------------------------------------------------------------------


def test_a_room_that_outgrows_its_lines_or_has_none_is_caught(tmp_path: Path) -> None:
    table = "## Lines by room\n\n| room | lines |\n|---|---|\n| `search/` | 1,000 |\n| `gone/` | 5 |\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/architecture.md").write_text(table)
    for room, lines in (("search", 1100), ("new", 1)):
        plant(tmp_path, f"{room}/_one.py", "\n" * lines)
    problems = gates.room_lines(tmp_path)
    assert [problem.partition(":")[0] for problem in problems] == ["new/", "gone/"]
    plant(tmp_path, "search/_two.py", "\n")
    check(gates.room_lines, tmp_path, "search/: 1101 lines, a tenth more than 1000")


def test_a_file_of_601_lines_and_a_reason_for_one_that_is_not_long_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(gates.LONG_FILES, "src/lessonbank/gone.py", "one idea")
    plant(tmp_path, "long.py", "\n" * 601)
    check(gates.sizes, tmp_path, "lessonbank/long.py", "601 lines, more than 600")
    check(gates.sizes, tmp_path, "lessonbank/gone.py", "leave it out")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("see /ho" + "me/ada/notes.txt", "a machine's own path"),
        ("pip install --index" + "-url https://mirror.example/pypi", "a package index"),
        ("key = 'sk" + "-abcdefghijklmnopqrstuvwxyz012345'", "a secret"),
        ("-----BEGIN RSA PRIVATE" + " KEY-----", "a secret"),
    ],
)
def test_text_no_file_may_hold_is_caught(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "notes.md").write_text(f"# Notes\n\n{text}\n", encoding="utf-8")
    check(gates.text, tmp_path, "notes.md:3", what)


def test_a_heavy_file_is_caught(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(1_000_001))
    check(gates.file_weights, tmp_path, "model.bin", "1000001 bytes")


# --- the public face -------------------------------------------------------------------------------------------------


def test_a_changed_public_face_is_caught(copy: Path) -> None:
    plant(copy, "__init__.py", "\n__all__ = [name for name in __all__ if name != 'salvage']\n")
    plant(copy, "__init__.py", "\nfor _n in range(31):\n    globals()[f'n{_n}'] = _n\n    __all__.append(f'n{_n}')\n")
    extra = "\n\nasync def _extra(self: object) -> None: ...\n\n\n"
    plant(copy, "bank/loop.py", f"{extra}AsyncReasoningBank.extra = _extra\n")
    plant(copy, "bank/views/runs.py", f"{extra}AsyncRuns.extra = _extra\n")
    wiring = copy / PACKAGE / "wiring" / "__init__.py"
    told = wiring.read_text(encoding="utf-8").replace(
        "    profile: Profile = ", "    extra: int = 0,\n    profile: Profile = "
    )
    wiring.write_text(told, encoding="utf-8")
    problems = gates.public_names(copy)
    for words in (
        ("not in public_api.txt", "name n7"),
        ("only in public_api.txt", "name salvage"),
        ("names, at most 30",),
        ("only one of", "'extra'"),
        ("only one of", "'runs.extra'"),
        ("connect has 11 parameters, at most 10",),
    ):
        assert one_that_names(problems, *words), (words, problems)


def test_what_makes_an_import_a_recall_or_the_help_heavy_is_caught_behind_a_public_name_too(copy: Path) -> None:
    plant(copy, "cli/__init__.py", "\nimport numpy\n")
    check(gates.help_cost, copy, "--help loads numpy")
    plant(copy, "bank/attempt.py", "\nimporters.FORMATS\n")
    plant(copy, "bank/spool.py", "\nimport numpy\n")
    problems = gates.recall_cost(copy)
    assert one_that_names(problems, "a recall loads lessonbank.importers._formats")
    assert one_that_names(problems, "opening a bank loads numpy")
    plant(copy, "__init__.py", "\nimport numpy\nimport sys\n\nsys.modules.update({f'm{n}': sys for n in range(260)})\n")
    plant(copy, "bank/loop.py", "\nimport rich\n")
    problems = gates.import_cost(copy)
    assert one_that_names(problems, "import lessonbank loads numpy")
    assert one_that_names(problems, "import lessonbank loads rich")
    assert one_that_names(problems, "modules, at most 260")


# --- documents -------------------------------------------------------------------------------------------------------


def test_a_command_too_many_and_one_that_a_file_names_and_nobody_has_are_caught(copy: Path) -> None:
    assert gates.command_count(copy) == []
    (copy / "docs").mkdir()
    lines = ("`lessonbank forget-it ID`", "`lessonbank retrieve TASK --loud`", "see `lessons proposals`", "`runs list`")
    (copy / "docs" / "page.md").write_text("\n".join(lines), encoding="utf-8")
    plant(copy, "errors.py", '\n\nHINT = "call it again: lessonbank lessons forget ID"\n')
    problems = gates.named_commands(copy)
    assert len(problems) == 4, problems
    for words in (
        ("docs/page.md:1", "'forget'"),
        ("docs/page.md:2", "retrieve has no --loud"),
        ("docs/page.md:3", "'lessons proposals'"),
        ("lessonbank/errors.py", "'lessons forget'"),
    ):
        assert one_that_names(problems, *words), problems
    plant(copy, "cli/__init__.py", '\n\n@app.command()\ndef more() -> None:\n    """One more."""\n')
    check(gates.command_count, copy, "41 commands", "at most 40")


def test_a_decision_record_without_its_parts_is_caught(tmp_path: Path) -> None:
    records = tmp_path / "docs" / "decisions"
    records.mkdir(parents=True)
    (records / "0002-later.md").write_text("# 2. Later\n\n## Context\n" + "word " * 601, encoding="utf-8")
    check(gates.decision_records, tmp_path, "0002-later.md", "0001")
    check(gates.decision_records, tmp_path, "0002-later.md", "What would change our mind")
    check(gates.decision_records, tmp_path, "0002-later.md", "over a page")


def test_a_build_that_runs_another_command_than_readme_and_recipes_is_caught(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text("set -eu\n.venv/bin/pytest -k fast\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("```bash\n.venv/bin/pytest\n```\n", encoding="utf-8")
    recipes = "types:\n    {{bin}}/pytest types.py\n\ntest-all *args:\n    {{bin}}/pytest -m '' tests {{args}}\n"
    (tmp_path / "justfile").write_text(recipes, encoding="utf-8")
    check(gates.commands, tmp_path, "README.md", "-k fast")
    check(gates.commands, tmp_path, "not executable")
    check(gates.commands, tmp_path, "just test-all", "pytest -m '' tests")
    check(gates.commands, tmp_path, "just types", "pytest types.py")


KEYS = ['f"plans/{scope}"', '"plans " + scope', 'f"plans:{self.scope}"', "PLANS + self._handle.scope"]


@pytest.mark.parametrize("key", KEYS)
def test_a_setting_of_a_scope_that_no_purge_finds_is_caught(tmp_path: Path, key: str) -> None:
    plant(tmp_path, "views/plans.py", f"def planned(scope):\n    return {key}\n")
    check(gates.scope_settings, tmp_path, "views/plans.py:2", "declare it")


# --- the network -----------------------------------------------------------------------------------------------------

FAR = ("192.0.2.1", 443)  # TEST-NET-1: reserved for documentation, never routed


def test_a_socket_that_leaves_the_machine_is_refused() -> None:
    for dial in (socket.socket.connect, socket.socket.connect_ex):
        with socket.socket() as far, pytest.raises(RuntimeError, match=r"192\.0\.2\.1.*not on this machine"):
            dial(far, FAR)
    with socket.socket(type=socket.SOCK_DGRAM) as far, pytest.raises(RuntimeError, match="offline"):
        far.sendto(b"x", FAR)


def test_a_name_that_would_be_looked_up_elsewhere_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"api\.example\.org.*not on this machine"):
        socket.create_connection(("api.example.org", 443))
