"""`doctor`: what is active, what leaves the machine, how much there is, and whether the file is sound."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from lessonbank._base.loopback import LOOPBACK
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Counts, QueueStatus
from lessonbank.contracts.records.attempts import used_by_agents

from . import _options as options
from ._bank import is_server, opened
from ._output import progress_bar, progress_console, show_json, show_table
from ._reviewing import UNPROTECTED, KeyFile, Reviewer, owning

if TYPE_CHECKING:
    from lessonbank import ReasoningBank


_HEADINGS = tuple(name.replace("_", " ").replace("trajectories", "runs") for name in Counts.model_fields)
LOCAL = ("lexical", "hashing", "hashing-v1", "fastembed", "sentence-transformers")
"""Embedders that run in this process."""
_KEPT = ("store", "embedder")
"""Settings that a bank keeps; a server decides all of them."""
_LATELY = 50
"""Records of a scope that are looked at for what agents use."""
_NOTHING = "nothing: no model is named, and the embedder runs here"
_TO_SERVER = "all that is asked of this bank goes to {}, whose settings decide what it sends on"


def doctor(
    bank: options.Bank,
    scope: Annotated[
        str, typer.Option("--scope", envvar="LESSONBANK_SCOPE", help="Connect as this scope; all are counted.")
    ] = "default",
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    embedder: options.Embedder = None,
    reindex: Annotated[bool, typer.Option("--reindex", help="Embed what has no vector yet, in every scope.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also compare every record with what the journal makes of it.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="First rebuild what follows from the records: lessons, word index, sums.")
    ] = False,
    by: Reviewer = None,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Say what is active, which words leave this machine, how much there is, and whether the file is sound.

    Where the bank has reviewers, --reindex and --rebuild ask for the key of one.

    Exit code 1: the file is not sound.
    """
    if embedder and not reindex:
        raise typer.BadParameter("another embedder needs --reindex", param_hint="--embedder")
    settings: dict[str, Any] = {"model": options.model_of(model, base_url), "embedder": embedder}
    with opened(bank, scope, **settings) as memory:
        owner = owning(memory, by, key_file) if rebuild or reindex else memory
        if rebuild:
            owner.admin.rebuild()
        scopes = memory.admin.scopes()
        done = {s: made for s in scopes if (made := _reindex(owner, s))} if reindex else {}
        unembedded = {s: texts for s in scopes if (texts := memory.scoped(s).admin.unembedded())}
        counts = {s: memory.scoped(s).admin.counts() for s in scopes}
        queue = sum((memory.scoped(s).runs.queue() for s in scopes), QueueStatus())
        with progress_console.status("verifying"):
            problems, storage = memory.admin.verify(journal=verify), memory.admin.storage()
        proposed = {} if problems else {s: p for s in scopes if (p := memory.scoped(s).lessons.proposals())}
        unlabelled = {} if problems else {s: n for s in scopes if (n := len(memory.scoped(s).runs.unlabelled()))}
        active, reviewers = memory.settings, memory.admin.reviewers()
        runs = [run for s in scopes for run in memory.scoped(s).runs.list(limit=_LATELY)]
        used = used_by_agents(runs, [lesson for s in scopes for lesson in memory.scoped(s).lessons.list(limit=_LATELY)])
    report = {
        "settings": active if is_server(bank) else {name: active[name] for name in _KEPT},
        "used": used,
        "leaves": [_TO_SERVER.format(active["store"])]
        if is_server(bank)
        else leaving(model=model, base_url=base_url, embedder=str(active["embedder"])),
        "versions": _versions(),
        "storage": dict(storage),
        "scopes": counts,
        "queue": queue,
        "reindexed": done,
        "proposals": proposed,
        "unlabelled": unlabelled,
        "unembedded": unembedded,
        "reviewers": list(reviewers),
        "journal_compared": verify,
        "problems": list(problems),
    }
    if as_json:
        show_json(report)
    else:
        _show(report)
    if problems:
        raise typer.Exit(1)


def leaving(*, model: str | None, base_url: str | None, embedder: str) -> list[str]:
    """Which words leave this machine, to whom and when: one sentence each."""
    sentences = list[str]()
    if model:
        sentences.append(f"to judge a run and draw lessons, the run goes to {_receiver(model, base_url)}")
    name = embedder.split(" (")[0]
    if name.split(":")[0] not in LOCAL:
        sentences.append(f"to search, the text of tasks (and of lessons, where these are searched) goes to {name}")
    return sentences or [_NOTHING]


def _receiver(model: str, base_url: str | None) -> str:
    """A model, and the server without what its address may hold of secrets."""
    if base_url is None:
        return model
    server = urlsplit(base_url)
    here = " (on this machine)" if server.hostname in LOOPBACK else ""
    return f"{model} on {server.scheme}://{server.hostname}{f':{server.port}' if server.port else ''}{here}"


def _show(report: dict[str, Any]) -> None:
    used = [(name, f"{', '.join(values)} (in the last records)") for name, values in report["used"].items()]
    show_table("Settings of the bank", ("part", "what"), [*report["settings"].items(), *used])
    show_table(
        "\nWords that leave this machine by this command",
        ("#", "what"),
        list(enumerate(map(str, report["leaves"]), 1)),
    )
    show_table("\nScopes", ("scope", *_HEADINGS), [(s, *c.model_dump().values()) for s, c in report["scopes"].items()])
    if report["queue"] != QueueStatus():
        show_table("\nRuns to be learned", ("which", "how many"), _waiting(report["queue"]))
    if proposed := report["proposals"]:
        rows = [
            (scope, proposal.lesson.title, proposal.reason)
            for scope, proposals in proposed.items()
            for proposal in proposals
        ]
        show_table(
            "\nProposals that wait for a person (`lessons list --proposals`)", ("scope", "lesson", "because"), rows
        )
    if unlabelled := report["unlabelled"]:
        rows = [
            (s, f"{plural(n, 'label is', 'labels are')} missing: `runs audit` lists the runs")
            for s, n in unlabelled.items()
        ]
        show_table("\nAudits that wait for a person", ("scope", "what"), rows)
    if refused := [(scope, text) for scope, texts in report["unembedded"].items() for text in texts]:
        show_table("\nTexts that the embedder refuses (--reindex tries again)", ("scope", "what"), refused)
    deciding = [(name, "with a key") for name in report["reviewers"]] or [("anybody", UNPROTECTED)]
    show_table("\nWho decides what is shown", ("who", "how"), deciding)
    show_table("\nVersions", ("package", "version"), report["versions"].items())
    show_table("\nStorage", ("what", "how it is"), report["storage"].items())
    compared = report["journal_compared"]
    sound = "sound; every record agrees with the journal" if compared else "sound (--verify reads the journal, too)"
    show_table("\nFile", ("check", "result"), [("verify", p) for p in report["problems"]] or [("verify", sound)])


def _waiting(queue: QueueStatus) -> list[tuple[str, str]]:
    since = f" (the oldest since {queue.oldest:%Y-%m-%d %H:%M} UTC)" if queue.oldest else ""
    return [
        ("waiting", f"{queue.waiting}{since}"),
        ("taken by a worker", str(queue.claimed)),
        ("given up", f"{queue.failed}{': `runs list --status failed` says why' if queue.failed else ''}"),
    ]


def _reindex(memory: ReasoningBank, scope: str) -> int:
    admin = memory.scoped(scope).admin
    with progress_bar() as bar:
        row = bar.add_task(f"embedding {scope}", total=admin.counts().experiences)
        return admin.reindex(progress=lambda done: bar.update(row, completed=done))


def _versions() -> dict[str, str]:
    extras = ("pydantic_ai", "openai", "anthropic", "fastembed", "sentence_transformers", "mcp")
    versions = {name: _version(name) for name in extras if find_spec(name)}
    missing = [name for name in extras if name not in versions]
    return {
        "lessonbank": _version("lessonbank"),
        "python": platform.python_version(),
        **versions,
        "not installed": ", ".join(missing) or "-",
    }


def _version(module: str) -> str:
    names = {"pydantic_ai": "pydantic-ai-slim", "sentence_transformers": "sentence-transformers"}
    try:
        return version(names.get(module, module))
    except PackageNotFoundError:
        return "unknown"
