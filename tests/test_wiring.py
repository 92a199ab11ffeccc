"""Strings become parts, and a wrong string is one sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, File, Model, Server, Trajectory
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.contracts.withholding import Assignment
from lessonbank.errors import MissingExtra, UsageError, importing
from lessonbank.testing import HashingEmbedder, ModelServer
from lessonbank.testing.settings import grouped
from lessonbank.wiring import resolve_models
from lessonbank.wiring._stores import spool_place

BASE: dict[str, Any] = {"scope": "t"}


def embedder_of(path: Path, **more: Any) -> str:
    with lessonbank.connect(path, **grouped(**BASE, **more)) as bank:
        return bank.settings["embedder"]


def test_a_new_bank_without_anything_is_searched_by_words_and_says_why(tmp_path: Path) -> None:
    assert embedder_of(tmp_path / "a.db").startswith("lexical (no embedding model is named or installed")


def test_a_bank_keeps_the_embedder_it_was_made_with(tmp_path: Path) -> None:
    embedder_of(tmp_path / "a.db", embedder="hashing")
    assert embedder_of(tmp_path / "a.db") == "hashing (kept with the bank)"


@pytest.mark.parametrize("wrong", ["lexcal", "sentence-transformers:"])
def test_an_embedder_that_cannot_be_made_is_refused_and_not_kept(tmp_path: Path, wrong: str) -> None:
    embedder_of(tmp_path / "old.db", embedder="hashing")
    for name in ("old.db", "new.db"):
        with pytest.raises(UsageError, match="there is no embedder"):
            embedder_of(tmp_path / name, embedder=wrong)
    assert embedder_of(tmp_path / "old.db") == "hashing (kept with the bank)"
    assert embedder_of(tmp_path / "new.db").startswith("lexical")


def test_an_extra_that_is_missing_is_the_pip_line_and_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match="pip install"):
        embedder_of(tmp_path / "a.db", embedder="fastembed:some-model")
    assert embedder_of(tmp_path / "a.db").startswith("lexical")


def test_only_an_absent_module_of_another_package_asks_for_a_pip_command() -> None:
    with (
        pytest.raises(MissingExtra, match=r"a thing \(no_such_package\) needs .*lessonbank\[thing\]"),
        importing("a thing", extra="thing"),
    ):
        import_module("no_such_package.inside")
    with pytest.raises(ModuleNotFoundError, match=r"lessonbank\.no_such_part"), importing("a thing", extra="thing"):
        import_module("lessonbank.no_such_part")


def test_a_bank_made_with_an_object_says_that_it_wants_it_back(tmp_path: Path) -> None:
    class Mine(HashingEmbedder):
        @property
        def space(self) -> str:
            return "mine-1"

    assert embedder_of(tmp_path / "a.db", embedder=Mine()) == "mine-1 (given by the caller)"
    with pytest.raises(UsageError, match="made with the embedder 'mine-1'"):
        embedder_of(tmp_path / "a.db")
    assert embedder_of(tmp_path / "a.db", embedder="lexical").startswith("lexical")


def test_a_hashing_embedder_by_name_and_as_an_object_is_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for embedder in ("hashing", HashingEmbedder(), "hashing"):
        embedder_of(tmp_path / "a.db", embedder=embedder)
    assert "embedder changes" not in caplog.text


@pytest.mark.parametrize("dimensions", [64, 512])
def test_a_hashing_embedder_of_other_dimensions_is_made_again_with_these(tmp_path: Path, dimensions: int) -> None:
    run = Trajectory(task="open the valve", answer="done")
    with lessonbank.connect(tmp_path / "a.db", **BASE, embedder=HashingEmbedder(dimensions=dimensions)) as bank:
        bank.learn(run, outcome="success")
    with lessonbank.connect(tmp_path / "a.db", **BASE, evidence=Evidence(holdout=None)) as bank:
        assert bank.retrieve("open the valve").space == f"hashing-v1-{dimensions}"


@pytest.mark.full
@pytest.mark.parametrize("dimensions", [None, 256])
def test_a_bank_made_with_a_providers_object_says_that_it_wants_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dimensions: int | None
) -> None:
    from lessonbank.providers.embedders.pydantic_ai import PydanticAIEmbedder

    monkeypatch.setenv("OPENAI_API_KEY", "test")
    own = PydanticAIEmbedder("openai:text-embedding-3-small", dimensions=dimensions)
    embedder_of(tmp_path / "a.db", embedder=own)
    with pytest.raises(UsageError, match="pass that object as embedder="):
        embedder_of(tmp_path / "a.db")


@pytest.mark.full
@pytest.mark.parametrize("name", ["openai:gpt-5-mini", "openai/gpt-5-mini", "gpt:gpt-5-mini", "OpenAI:gpt-5-mini"])
def test_the_embedder_of_a_models_provider_is_found_however_the_model_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with ModelServer(dimensions=1536) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert embedder_of(tmp_path / "a.db", model=name).startswith("openai:text-embedding-3-small")


@pytest.mark.full
def test_the_key_of_a_model_goes_to_no_other_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = "openai:text-embedding-3-small"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        embedder_of(tmp_path / "a.db", model="anthropic:claude-sonnet-4-5", api_key="k", embedder=embedder)
    for model in ("openai:gpt-5-mini", "openai-chat:gpt-5", {"judge": "openai:a", "extractor": "anthropic:b"}):
        assert embedder_of(tmp_path / "b.db", model=model, api_key="k", embedder=embedder).startswith(embedder)


@pytest.mark.full
def test_a_kept_embedder_without_its_key_says_that_the_key_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    embedder_of(tmp_path / "a.db", embedder="openai:text-embedding-3-small")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as raised:
        embedder_of(tmp_path / "a.db")
    assert "that object" not in str(raised.value)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (lambda: Server(None), "takes an address"),  # type: ignore[arg-type]
        (lambda: Server(""), "takes an address"),
        (lambda: Server("https://h", api_key=5), "text of one line"),  # type: ignore[arg-type]
        (lambda: Server("https://h", api_key=" "), "text of one line"),
        (lambda: "https://[h/x", "the address of a server is https://HOST"),
        (lambda: "postgresql://[h/x", "address of the database cannot be read"),
        (lambda: File("https://h", read_only=True), "what a key may do, its server decides"),
        (lambda: "sqlite:", "needs a file path"),
        (lambda: "sqlite:///bank.db", "is not a store of this release"),
        (lambda: "oracle://localhost/x", "oracle"),
    ],
)
@pytest.mark.full
def test_an_address_that_cannot_be_is_one_sentence(where: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        lessonbank.connect(where(), **BASE)


def test_a_file_that_is_an_address_does_not_show_it() -> None:
    assert "geheim" not in repr(File("postgresql://jane:geheim@host/bank", read_only=True))
    assert "bank.db" in repr(File("bank.db"))


def test_runs_of_a_bank_in_memory_wait_nowhere_however_it_is_written() -> None:
    assert [spool_place(File(path)) for path in (":memory:", "sqlite::memory:")] == ["", ""]
    assert spool_place(File("sqlite:bank.db")) == spool_place(File("bank.db")) == str(Path("bank.db").resolve())


class Whole:
    """A policy whose rate is a whole number."""

    base_rate = 0

    def __call__(self, lessons: object, /, **_: object) -> Assignment:
        return Assignment()


def test_a_policys_rate_may_be_a_whole_number() -> None:
    with lessonbank.connect(":memory:", **BASE, evidence=Whole()) as bank:
        assert bank.settings["holdout"] == "Whole, 0"


def test_a_time_limit_that_is_too_long_says_how_long_it_may_be() -> None:
    for make in (
        lambda: Model("x", timeout=1e9),
        lambda: Server("https://h", timeout=1e9),
        lambda: RetrieveOptions(patience=float("inf")),
    ):
        with pytest.raises(UsageError, match="at most 31,536,000"):
            make()
    with pytest.raises(UsageError, match=r"Model\(batch=\) is True or False"):
        Model("x", batch="no")  # type: ignore[arg-type]


@pytest.mark.full
def test_another_providers_embedder_is_not_asked_of_the_models_server(tmp_path: Path) -> None:
    model = Model("qwen3", base_url="http://127.0.0.1:9/v1", api_key="k")
    with pytest.raises(MissingExtra, match="google"):
        embedder_of(tmp_path / "a.db", model=model, embedder="google:gemini-embedding-001")
    named = "openai:nomic-embed-text"
    assert embedder_of(tmp_path / "a.db", model=model, embedder=named).startswith(named)


def test_roles_that_name_the_same_model_share_its_limits() -> None:
    def model(prompt: str) -> str:
        return prompt

    roles = resolve_models(Model({"judge": model, "extractor": model, "fit": lambda prompt: prompt}))
    assert roles.judge is roles.extractor is roles.contrast
    assert roles.fit is not roles.judge


@pytest.mark.full
def test_a_provider_that_is_down_is_tried_again_next_time_and_meanwhile_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with caplog.at_level(logging.WARNING, logger="lessonbank"):
        assert embedder_of(tmp_path / "a.db", model="openai:gpt-5-mini").startswith("lexical (by words for now")
    assert "searched by words for now" in caplog.text
    with ModelServer(dimensions=1536) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert embedder_of(tmp_path / "a.db", model="openai:gpt-5-mini").startswith("openai:text-embedding-3-small")


def test_the_paper_profile_withholds_nothing_and_the_default_tries_what_is_new() -> None:
    with (
        lessonbank.connect(":memory:", profile="paper", **grouped(**BASE)) as paper,
        lessonbank.connect(":memory:", **grouped(**BASE)) as default,
    ):
        assert (paper.settings["holdout"], default.settings["holdout"]) == (
            "off",
            "memory 0.05 to 0.5, a lesson 0.2 to 0.7",
        )
