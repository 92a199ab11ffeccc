"""The rules this project keeps, each a function from a project root to a list of problems, empty when the rule holds.

They are functions so that the tests can run them twice: on the project, and on a copy with a break planted in it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

ROOT = Path(__file__).parents[2]

MAX_FILE_LINES = 600
LONG_FILES: dict[str, str] = {}
"""Files that may be longer, each with its reason: one idea that is easier to read in one piece."""
FROZEN = "bench/blind"
"""Sessions that others invented, with folders of invented people: they stay as they were written."""
MAX_PUBLIC_NAMES = 30
MAX_PARAMETERS = 10
"""Of `connect`: what belongs together goes into a settings object."""
MAX_COMMANDS = 40
"""Of the command line that do something, each command of a group and of another distribution counted once."""
MAX_MODULES = 260
MAX_FILE_BYTES = 1_000_000

HEAVY_FOR_IMPORT = ("numpy", "httpx2", "openai", "anthropic", "pydantic_ai", "typer", "rich", "starlette")
HEAVY_FOR_HELP = (
    "numpy",
    "pydantic_ai",
    "openai",
    "anthropic",
    "httpx2",
    "lessonbank.importers._formats",
    "lessonbank.guard.redact",
)
HEAVY_FOR_RECALL = (
    "lessonbank.importers._formats",
    "lessonbank.importers._evidence",
    "lessonbank.importers.memories",
    "lessonbank.bank.views.archive",
    "lessonbank.evidence.report",
    "lessonbank.evidence.review",
    "lessonbank.learning.extraction.extractive",
    "lessonbank.learning.extraction.llm",
    "lessonbank.learning.reflection",
    "lessonbank.matts.runner",
    "lessonbank.stores.sqlite._purge",
    "lessonbank.stores.sqlite._verify",
    "json_repair",
    "numpy.ma",
    "phonenumbers",
)
"""What only some runs need, and no bank that is opened and asked once."""
HEAVY_FOR_OPENING = ("numpy", *HEAVY_FOR_RECALL)
RECORD_HEADINGS = ("Context", "Decision", "Consequences", "What would change our mind")
MAX_RECORD_WORDS = 600

_CODE = ("src", "tests", "examples", "bench", ".ci")
_SOURCES = ("src", "bench/src")
_SKIPPED = {".git", ".venv", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", "dist", "build", "site"}

# Brackets around one letter keep these patterns from finding themselves.
_FORBIDDEN_TEXT = {
    "a machine's own path": r"/wor[k]/(main|shared)|(?<![\w.])/roo[t]/|/hom[e]/(?!user/|agent/)\w|/User[s]/\w",
    "a package index": r"index-ur[l]|find-link[s]|artifactor[y]|/simpl[e]/|PIP_INDE[X]|registr[y] = \"http",
    "a secret": r"\bsk-(?!test|fake|example)[\w-]{24,}|\bgh[pousr]_\w{30,}|\bAKI[A][0-9A-Z]{16}\b|\bAIz[a][\w-]{30,}"
    r"|\bhf_\w{30,}|\bxox[abp]-[\w-]{20,}|-----BEGIN [A-Z ]*PRIVATE KE[Y]",
}
_SIGNS = {
    "a machine's own path": ("/wor", "/roo", "/hom", "/User"),
    "a package index": ("index-ur", "find-link", "artifactor", "/simpl", "PIP_INDE", "registr"),
    "a secret": ("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "AKI", "AIz", "hf_", "xox", "-----BEGIN"),
    "a mock": ("unittest", "Magic", "Async", "pytest_m"),
}
"""What a file holds at least for a rule to be broken: a plain look for them is much quicker than the pattern."""
_FORBIDDEN_CODE = {"a mock": r"unittest[.]m[o]ck|from unittest import m[o]ck|\b(Magic|Async)M[o]ck\b|pytest_m[o]ck"}


Finding: TypeAlias = tuple[Path, int, str, str]
"""File, line, rule, message."""


# --- tools -----------------------------------------------------------------------------------------------------------


def lint(root: Path) -> list[str]:
    """Ruff's findings, imports inside functions and banned modules among them."""
    return _ruff(root, "check")


def participles(root: Path) -> list[str]:
    """Functions and classes whose whole name says that something was done, and not what."""
    problems: list[str] = []
    for path, line, found in _matches(root, _DEFINED):
        place = f"{_name(root, path)}:{line}:"
        is_bare = found[1].strip("_").lower() in _NO_NAMES and found[1] not in _PUBLIC
        if is_bare and _PUBLIC_PLACE not in place:
            problems.append(f"{place} {found[1]!r} names nothing: use a verb or a noun")
    return problems


def empty_names(root: Path) -> list[str]:
    """Parameters and variables that are called by a word that any value could have."""
    problems: list[str] = []
    for path in sorted((root / "src").rglob("*.py")):
        content = "" if path.as_posix().endswith(_STORED) else _read(path)
        if not _MAY_BIND.search(content):
            continue
        for node in ast.walk(ast.parse(content)):
            name = _bound_name(node)
            if name in _EMPTY:
                problems.append(f"{_name(root, path)}:{node.lineno}: {name!r} names nothing: say what the value is")
    return problems


def _bound_name(node: ast.AST) -> str | None:
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return name
        case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return name
        case _:
            return None


def pronouns(root: Path) -> list[str]:
    """Docstrings that begin with a pronoun: what they are about stands in the line above, or nowhere."""
    return [
        f"{_name(root, path)}:{line}: {found[1]!r} begins with a pronoun: name the thing"
        for path, line, found in _matches(root, _PRONOUN)
    ]


def _matches(root: Path, pattern: re.Pattern[str]) -> Iterator[tuple[Path, int, re.Match[str]]]:
    """File, line and match: a plain look through the text takes a hundredth of what parsing all the source does."""
    for path in sorted((root / "src").rglob("*.py")):
        content = _read(path)
        for found in pattern.finditer(content):
            yield path, content.count("\n", 0, found.start(1)) + 1, found


def encodings(root: Path) -> list[str]:
    """Text files opened without saying in which encoding. A rule ruff calls preview, so it runs alone."""
    return _ruff(root, "check", "--preview", "--select=PLW1514")


def _ruff(root: Path, *arguments: str) -> list[str]:
    run = ("-m", "ruff", *arguments, "--no-cache", "--output-format=concise")
    done = _tool(root, *run, *_present(root, _CODE))
    return [] if done.returncode == 0 else _lines(done)


def scope_settings(root: Path) -> list[str]:
    """Keys that end with a scope's name and that no purge finds: `records/settings.py` does not declare them."""
    found = list[str]()
    for path in _sources_of(root):
        content = _read(path)
        for node in ast.walk(ast.parse(content)) if _MAY_NAME_A_SCOPE.search(content) else ():
            if _is_key_of_a_scope(node):
                told = f"{_name(root, path)}:{node.lineno}: {ast.unparse(node)}"
                found.append(f"{told} is built of a scope's name: declare it in records/settings.py")
    return found


def _sources_of(root: Path) -> list[Path]:
    package = root / "src" / "lessonbank"
    every = sorted(package.rglob("*.py"))
    return [
        path
        for path in every
        if path.parent != package / "cli" and path != package / "contracts" / "records" / "settings.py"
    ]


_MAY_NAME_A_SCOPE = re.compile(r"\{[\w.]*\bscope\}[\"']|\+\s*\(?[\w.()]*\bscope\b")
"""What stands in a file that builds such a key: parsing the others would take most of the time."""


def _is_key_of_a_scope(node: ast.AST) -> TypeGuard[ast.expr]:
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str(prefix)), ast.FormattedValue(value=last, conversion=-1)]):
            return re.fullmatch(r"[a-z_.]+[^a-z]", prefix) is not None and _names_a_scope(last)
        case ast.BinOp(op=ast.Add(), right=last):
            return _names_a_scope(last)
        case _:
            return False


def _names_a_scope(node: ast.expr) -> bool:
    return (getattr(node, "id", None) or getattr(node, "attr", None)) == "scope"


def formatting(root: Path) -> list[str]:
    """Files that `ruff format` would change."""
    return _ruff(root, "format", "--check")


TYPED = ("src", "examples", "tests/typing")


def types(root: Path, places: tuple[str, ...] = TYPED) -> list[str]:
    """Type errors under basedpyright's strict mode, and deliberate errors that it failed to see.

    A line that ends in `# expect: rule, code` must get the finding `rule`; findings on other lines are problems. Reads
    all of `places`, so callers run it once. An example for an agent framework is not judged: its framework may be
    absent, and few of them have strict types.
    """
    found = [one for one in _type_findings(root, places) if not _is_for_a_framework(root, one[0])]
    files = _typing_tests(root) if "tests/typing" in places else []
    return _unexpected(root, found, {(path, n, rule) for path in files for n, rule, _ in _expectations(path)})


def _is_for_a_framework(root: Path, path: Path) -> bool:
    return path.parent == root / "examples" and "from lessonbank.adapters" in _read(path)


def user_types(root: Path) -> list[str]:
    """What mypy's strict mode finds in the code of a user, and deliberate errors that it failed to see.

    Only `tests/typing` is judged: the library itself keeps to basedpyright. `code` of `# expect: rule, code` is mypy's.
    """
    found = _mypy_findings(root)
    expected = {(path, n, code) for path in _typing_tests(root) for n, _, code in _expectations(path) if code}
    return _unexpected(root, found, expected)


def _unexpected(root: Path, found: list[Finding], expected: set[tuple[Path, int, str]]) -> list[str]:
    marked = {(path, line) for path, line, _ in expected}
    unseen = expected - {(path, line, rule) for path, line, rule, _ in found}
    problems = [f"{_name(root, p)}:{n}: {text} ({rule})" for p, n, rule, text in found if (p, n) not in marked]
    return problems + [f"{_name(root, p)}:{n}: nothing found, expected {rule}" for p, n, rule in sorted(unseen)]


def _type_findings(root: Path, places: tuple[str, ...]) -> list[Finding]:
    present = _present(root, places)
    done = _tool(root, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, *present)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"basedpyright did not run: {done.stdout}{done.stderr}") from None
    if report["summary"]["filesAnalyzed"] == 0:
        raise RuntimeError(f"basedpyright found nothing to read under {root}")
    return [
        (Path(d["file"]), d["range"]["start"]["line"] + 1, d.get("rule", "syntax"), d["message"].replace("\n", " "))
        for d in report["generalDiagnostics"]
        if d["severity"] == "error"
    ]


def _mypy_findings(root: Path) -> list[Finding]:
    """The library is read for its types alone, as where it is installed."""
    cache = Path(tempfile.gettempdir()) / "lessonbank-tests-mypy"
    run = ("-m", "mypy", "--strict", "--follow-imports=silent", "--output=json", f"--cache-dir={cache}")
    done = _tool(root, *run, "tests/typing", MYPYPATH=str(root / "src"))
    if done.returncode > 1 or (done.returncode and not done.stdout):
        raise RuntimeError(f"mypy did not run: {done.stdout}{done.stderr}")
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [(root / d["file"], d["line"], d["code"], d["message"]) for d in told if d["severity"] == "error"]


def _typing_tests(root: Path) -> list[Path]:
    return sorted((root / "tests" / "typing").glob("*.py"))


def _expectations(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, basedpyright's rule, mypy's code."""
    for number, line in enumerate(_read(path).splitlines(), start=1):
        if mark := re.search(r"# expect: (\w+)(?:, ([\w-]+))?$", line):
            yield number, mark[1], mark[2] or ""


def imports(root: Path) -> list[str]:
    """Broken import contracts: who may import whom is written in pyproject.toml, and in that of the experiments."""
    run = "from importlinter.cli import lint_imports_command as main; main()"
    configs = [config for config in ("pyproject.toml", "bench/pyproject.toml") if (root / config).is_file()]
    done = [_tool(root, "-c", run, "--no-logo", "--no-cache", f"--config={config}") for config in configs]
    return [line for one in done if one.returncode for line in _lines(one)]


def packages(root: Path) -> list[str]:
    """Folders of modules without `__init__.py`: import-linter does not see them, so every contract would hold."""
    folders = {path.parent for path in _source(root)} - {root / place for place in _SOURCES}
    return [f"{_name(root, f)}: no __init__.py" for f in sorted(folders) if not (f / "__init__.py").is_file()]


# --- size and text ---------------------------------------------------------------------------------------------------


def sizes(root: Path) -> list[str]:
    """Source files that are long without a reason in `LONG_FILES`, and reasons that nobody needs any more."""
    lengths = {_name(root, path): len(_read(path).splitlines()) for path in _source(root)}
    long = {name for name, lines in lengths.items() if lines > MAX_FILE_LINES}
    problems = [f"{name}: {lengths[name]} lines, more than {MAX_FILE_LINES}" for name in sorted(long - {*LONG_FILES})]
    return problems + [f"{name}: not that long, leave it out of LONG_FILES" for name in sorted({*LONG_FILES} - long)]


_ROOM_ROW = re.compile(r"^\| `(\w+)/` \| ([\d,]+) \|", re.MULTILINE)


def room_lines(root: Path) -> list[str]:
    """Rooms that outgrew their line in the table of `docs/architecture.md` by a tenth, and those that have none there.

    Whoever needs a larger room raises its number, and a decision record says what the growth buys.
    """
    _, _, told = _read(root / "docs/architecture.md").partition("## Lines by room")
    most = {room: int(lines.replace(",", "")) for room, lines in _ROOM_ROW.findall(told)}
    package = root / "src/lessonbank"
    there: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        if len(parts := path.relative_to(package).parts) > 1:
            there[parts[0]] += len(_read(path).splitlines())
    problems = [f"{room}/: no line in the table of docs/architecture.md" for room in sorted(there.keys() - most.keys())]
    problems += [f"{room}/: in the table, and no room any more" for room in sorted(most.keys() - there.keys())]
    grown = {room: lines for room, lines in there.items() if room in most and lines > 1.1 * most[room]}
    return problems + [f"{room}/: {n} lines, a tenth more than {most[room]}" for room, n in sorted(grown.items())]


def text(root: Path) -> list[str]:
    """Lines of the project's files that hold what none of them may: machine paths, package indexes, secrets, mocks."""
    problems: list[str] = []
    for path in project_files(root):
        rules = _FORBIDDEN_TEXT | _FORBIDDEN_CODE if path.suffix == ".py" else _FORBIDDEN_TEXT
        if path.is_relative_to(root / FROZEN):
            rules = {what: pattern for what, pattern in rules.items() if what != "a machine's own path"}
        problems += [f"{_name(root, path)}:{finding}" for finding in _forbidden(_read(path), rules)]
    return problems


def _forbidden(content: str, rules: dict[str, str]) -> Iterator[str]:
    for what, pattern in rules.items():
        if not any(sign in content for sign in _SIGNS[what]):
            continue
        for found in re.finditer(pattern, content):
            yield f"{content.count(chr(10), 0, found.start()) + 1}: {what}: {found[0]!r}"


def file_weights(root: Path) -> list[str]:
    """Files too heavy for a clone."""
    heavy = [(path, path.stat().st_size) for path in project_files(root)]
    return [f"{_name(root, p)}: {n} bytes, at most {MAX_FILE_BYTES}" for p, n in heavy if n > MAX_FILE_BYTES]


def project_files(root: Path) -> list[Path]:
    """What a clone would hold: what git tracks or would add, or without git every file outside the usual litter."""
    done = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode == 0:
        paths = [root / name for name in done.stdout.split("\0") if name]
        return sorted(path for path in paths if path.is_file())
    return sorted(p for p in root.rglob("*") if p.is_file() and not _SKIPPED.intersection(p.relative_to(root).parts))


# --- the public face -------------------------------------------------------------------------------------------------


def public_names(root: Path) -> list[str]:
    """The public API against its snapshot, its size, and the two banks against each other."""
    now = describe_api(root)
    if not now:
        return ["lessonbank: the public API could not be read; import lessonbank fails"]
    kept = _read(root / "tests" / "architecture" / "public_api.txt").splitlines()
    problems = [f"not in public_api.txt (run `just api`): {line}" for line in now if line not in kept]
    problems += [f"only in public_api.txt (run `just api`): {line}" for line in kept if line not in now]
    names = [line for line in now if line.startswith("name ")]
    if len(names) > MAX_PUBLIC_NAMES:
        problems.append(f"lessonbank.__all__ has {len(names)} names, at most {MAX_PUBLIC_NAMES}")
    return problems + _unpaired(now) + _too_many_parameters(now)


def describe_api(root: Path) -> list[str]:
    """Public names and signatures, one per line; see describe_api.py."""
    return _tool(root, str(Path(__file__).with_name("describe_api.py"))).stdout.splitlines()


def _unpaired(api: list[str]) -> list[str]:
    def methods(owner: str) -> set[str]:
        found = (re.match(rf"method {owner}\.([\w.]+)\(", line) for line in api)
        return {one[1] for one in found if one}

    waiting, awaited = methods("ReasoningBank"), methods("AsyncReasoningBank")
    return [f"only one of ReasoningBank and AsyncReasoningBank has {name!r}" for name in sorted(waiting ^ awaited)]


def _too_many_parameters(api: list[str]) -> list[str]:
    counts = {
        found[1]: len(re.findall(r"[(,] ?\w+: ['\"]", line))
        for line in api
        if (found := re.match(r"function (connect\w*)\(", line))
    }
    return [
        f"{name} has {count} parameters, at most {MAX_PARAMETERS}"
        for name, count in counts.items()
        if count > MAX_PARAMETERS
    ]


def import_cost(root: Path) -> list[str]:
    """`import lessonbank` in a fresh interpreter loads few modules, and no public name brings in a heavy one."""
    used = "for name in lessonbank.__all__: getattr(lessonbank, name)"
    count, *loaded = _loaded(root, f"import lessonbank, sys\ncount = str(len(sys.modules))\n{used}", "count")
    more = [f"import lessonbank loads {count} modules, at most {MAX_MODULES}"] if int(count) > MAX_MODULES else []
    return more + [f"import lessonbank loads {name}" for name in HEAVY_FOR_IMPORT if name in loaded]


def help_cost(root: Path) -> list[str]:
    """`lessonbank --help` answers without loading what only a run needs."""
    run = "import contextlib, io, sys; sys.argv = ['lessonbank', '--help']\nfrom lessonbank.cli import main\n"
    run += "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main()"
    loaded = _loaded(root, run)
    return [f"lessonbank --help loads {name}" for name in HEAVY_FOR_HELP if name in loaded]


def recall_cost(root: Path) -> list[str]:
    """A bank that is opened and asked once loads nothing of what few programs do, and numpy with the question."""
    run = "import lessonbank, sys\nwith lessonbank.connect(':memory:', scope='t') as bank:"
    opened, *loaded = _loaded(root, f"{run} opened = ','.join(sys.modules); bank.retrieve('Ship a box')", "opened")
    return [
        *[f"opening a bank loads {name}" for name in HEAVY_FOR_OPENING if name in opened.split(",")],
        *[f"a recall loads {name}" for name in HEAVY_FOR_RECALL if name in loaded],
    ]


def _loaded(root: Path, code: str, first: str = "''") -> list[str]:
    """The names of all modules after `code`, behind what `first` is then."""
    done = _tool(root, "-c", f"{code}\nimport sys; print('\\n' + ' '.join([{first}, *sys.modules]))")
    if done.returncode:
        raise RuntimeError(f"{code!r} failed: {done.stderr}")
    return done.stdout.splitlines()[-1].split()


# --- the command line ------------------------------------------------------------------------------------------------

_LEAVES = """
import json, typer
from lessonbank.cli import app
from lessonbank.cli.plugins import KNOWN

def leaves(command, *path):
    inner = getattr(command, "commands", None)
    if inner is None:
        given = [o for p in command.params for o in (*p.opts, *p.secondary_opts)]
        return {" ".join(path): [*given, "--help", "-h"]}
    return {name: options for word, one in inner.items() for name, options in leaves(one, *path, word).items()}

print(json.dumps({**leaves(typer.main.get_command(app)), **dict.fromkeys(KNOWN)}))
"""
_CALL = re.compile(r"(?:[`>(]|: |['\"])lessonbank ([a-z]+)\b(?: ([a-z]+)\b)?([^`<\n\"']*)")
"""A command as a file names it: in a code span, an element, a string or a sentence that tells what to type."""
_SPAN = r"`(?:lessonbank )?({groups}) ([a-z]+)\b([^`\n]*)`"
"""A command of a group, in a code span, also without the program's name."""
_EMPTY = ("told", "said", "kept", "found", "one", "gone")
_MAY_BIND = re.compile(rf"\b(?:{'|'.join(_EMPTY)})\b(?: *[:=,)]| in )|(?: as |\*)(?:{'|'.join(_EMPTY)})\b")
_STORED = ("records/recalls.py", "records/repairs.py", "evidence/review_snapshot.py")
"""Whose records have such a field, which banks and answers of programs hold."""
_NO_NAMES = (*_EMPTY, "shown", "named", "counted", "drawn", "whole", "attribute")
_DEFINED = re.compile(r"^[ \t]*(?:async )?(?:def|class) (\w+)", re.M)
_PRONOUN = re.compile(
    r'^[ \t]*(?:(?:async )?def |class |\)).*:[ \t]*(?:#.*)?\n[ \t]+r?"""'
    r"((?:(?:It|They|Those|That|What (?:it|they|that))\b|The same(?:,| as\b| for\b| from\b| with\b)).*)",
    re.M,
)
"""The docstring below the last line of a signature, where it begins with a pronoun."""
_PUBLIC = ("Found", "_One")
"""What a retriever returns, a public record; and a form whose name is part of what models are asked."""
_PUBLIC_PLACE = "/records/recalls.py:"
"""Where `Recall.shown` is, which is public."""
_TELLS_OLD_NAMES = ("CHANGELOG.md", "docs/guides/upgrading.md", "docs/decisions/0053-forty-commands.md")
_TEXTS = (".md", ".py", ".html", ".yaml", ".yml", ".js", ".ipynb", ".txt", ".json", ".toml")


def command_count(root: Path) -> list[str]:
    """How many commands there are, beside how many a person can find their way in."""
    names = _commands_of(root)
    return [f"lessonbank has {len(names)} commands, at most {MAX_COMMANDS}"] if len(names) > MAX_COMMANDS else []


def named_commands(root: Path) -> list[str]:
    """Commands that a file names and that are not there, or not with these options."""
    known = _commands_of(root)
    groups = {name.partition(" ")[0] for name in known if " " in name}
    span = re.compile(_SPAN.format(groups="|".join(sorted(groups))))
    problems = list[str]()
    for path in project_files(root):
        name = _name(root, path)
        if path.suffix not in _TEXTS or name in _TELLS_OLD_NAMES or name.startswith("tests/"):
            continue
        content = _read(path)
        for found in (*_CALL.finditer(content), *span.finditer(content)):
            if problem := _problem_of(found, known, groups):
                line = content.count("\n", 0, found.start()) + 1
                problems.append(f"{name}:{line}: {found[0].strip()!r}: {problem}")
    return problems


def _problem_of(found: re.Match[str], known: dict[str, list[str] | None], groups: set[str]) -> str:
    first, second, rest = found[1], found[2] or "", found[3]
    sure = found[0][0] in "`>"  # else a sentence may begin or go on like this
    name = f"{first} {second}" if first in groups and second else first
    if name not in known and name not in groups:
        return f"there is no command {name!r}" if sure or first in groups else ""
    options = known.get(name)
    if options is None or not sure:
        return ""
    strange = [one for one in re.findall(r"(?<!\S)--[a-z][\w-]*", rest) if one not in options]
    return f"{name} has no {', '.join(strange)}" if strange else ""


def _commands_of(root: Path) -> dict[str, list[str] | None]:
    """Every command with its options; those of a command of another distribution are not known."""
    done = _tool(root, "-c", _LEAVES)
    if done.returncode:
        raise RuntimeError(f"the command line could not be read: {done.stderr}")
    commands: dict[str, list[str] | None] = json.loads(done.stdout)
    return commands


# --- documents -------------------------------------------------------------------------------------------------------


def decision_records(root: Path) -> list[str]:
    """Every record is numbered without gaps, has the four headings in order, and fits a page."""
    records = sorted((root / "docs" / "decisions").glob("*.md"))
    problems = [] if records else ["docs/decisions: no records"]
    for number, path in enumerate(records, start=1):
        content = _read(path)
        headings = re.findall(r"^## (.+)$", content, re.MULTILINE)
        if not path.name.startswith(f"{number:04}-") or not content.startswith(f"# {number}. "):
            problems.append(f"{_name(root, path)}: name and title must begin with its number, {number:04}")
        if tuple(headings) != RECORD_HEADINGS:
            problems.append(f"{_name(root, path)}: headings must be {', '.join(RECORD_HEADINGS)}")
        if len(content.split()) > MAX_RECORD_WORDS:
            problems.append(f"{_name(root, path)}: over a page ({MAX_RECORD_WORDS} words)")
    return problems


def commands(root: Path) -> list[str]:
    """README, CONTRIBUTING, .ci/run and the workflow have one test command; .ci/run is `just test-all` and `types`."""
    run = next((line for line in _read(root / ".ci" / "run").splitlines() if "/pytest" in line), "")
    if not run:
        return [".ci/run: runs no pytest"]
    problems = [
        f"{name}: no fenced block has the command of .ci/run: {run}"
        for name in ("README.md", "CONTRIBUTING.md")
        if run not in _fenced_lines(_read(root / name))
    ]
    workflow = _read(root / ".github" / "workflows" / "ci.yml")
    problems += [
        f".github/workflows/ci.yml: no step runs {command}"
        for command in (run, "bash .ci/run")
        if f"- run: {command}" not in workflow
    ]
    recipes = re.findall(r"^(test-all|types)\b.*\n((?: .*\n)+)", _read(root / "justfile"), re.MULTILINE)
    asked = [
        (name, what) for name, lines in recipes for what in re.findall(r"/pytest (.*?) *(?:\{\{args|$)", lines, re.M)
    ]
    problems += [
        f".ci/run: does not run what `just {name}` does: pytest {what}"
        for name, what in asked
        if what not in _read(root / ".ci" / "run")
    ]
    if not os.access(root / ".ci" / "run", os.X_OK):
        problems.append(".ci/run: not executable")
    return problems


def _fenced_lines(markdown: str) -> list[str]:
    blocks = re.findall(r"^```\w*\n(.*?)^```", markdown, re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()]


# --- plumbing --------------------------------------------------------------------------------------------------------


def _tool(root: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in `root`, so that a copy of the project is read instead of the installed one."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(root / place) for place in _SOURCES),
        "PYTHONUTF8": "1",
        **variables,
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=570,  # pytest ends a test at 600
    )


def _lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines or [f"{' '.join(done.args[1:4])} ended with {done.returncode}"]


def _present(root: Path, places: tuple[str, ...]) -> list[str]:
    return [place for place in places if (root / place).is_dir()]


def _source(root: Path) -> list[Path]:
    return sorted(path for place in _SOURCES for path in (root / place).rglob("*.py"))


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
