"""Prompts are files a person can trust: slots are filled once, mistakes in a file are named, changes show."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
from any_text import any_text
from hypothesis import given

from lessonbank.contracts.records import PromptRef
from lessonbank.errors import PromptError
from lessonbank.text import prompts
from lessonbank.text.rendering import estimate_tokens

SNAPSHOTS = Path(__file__).parent / "snapshots" / "judging"
JUDGES = [id for id in prompts.available() if "/judge" in id]
GOOD = "id: mine/judge\nversion: 3\nslots: run, check\nsource: me\n---\n# System\nCode {{check}}.\n# User\n{{run}}\n"


def written(folder: Path, text: str) -> Path:
    """A prompt file with this text."""
    path = folder / "mine.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_the_users_own_is_loaded(tmp_path: Path) -> None:
    prompt = prompts.load_file(written(tmp_path, GOOD))
    assert (prompt.id, prompt.version, prompt.source, prompt.slots) == ("mine/judge", "3", "me", ("run", "check"))
    assert prompt.digest == sha256(GOOD.encode()).hexdigest()
    assert prompt.ref == PromptRef(id="mine/judge", version="3", digest=prompt.digest)
    assert [(m.role, m.content) for m in prompt.render(run="R", check="C")] == [("system", "Code C."), ("user", "R")]


def test_windows_line_ends_and_an_opening_rule_change_nothing_that_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_bytes(("---\n" + GOOD).replace("\n", "\r\n").encode())
    assert prompts.load_file(path).system == "Code {{check}}."


@pytest.mark.parametrize(
    "text", [GOOD.replace("Code {{check}}.\n", ""), GOOD.replace("# System\nCode {{check}}.\n", "")]
)
def test_without_a_system_section_there_is_only_the_user_message(tmp_path: Path, text: str) -> None:
    prompt = prompts.load_file(written(tmp_path, text.replace(", check", "")))
    assert [m.role for m in prompt.render(run="R")] == ["user"]


def test_a_prompt_may_have_no_slots(tmp_path: Path) -> None:
    prompt = prompts.load_file(written(tmp_path, "id: a\nversion: 1\nslots:\nsource: me\n---\n# User\nHello\n"))
    assert prompt.render()[0].content == "Hello"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\n", "", "no line '---'"),
        ("version: 3\n", "", "does not say its version"),
        ("version: 3\n", "version:\n", "does not say its version"),
        ("slots: run, check\n", "", "does not say its slots"),
        ("version: 3\n", "version: 3\nversion: 4\n", "'version: 4' is not one of"),
        ("source: me\n", "source: me\nmodel: x\n", "'model: x' is not one of"),
        ("# System\n", "Preamble\n# System\n", "sections"),
        ("# User\n", "## User\n", "sections"),
        ("# System\n", "# User\n", "sections"),
        ("{{run}}\n", "", "empty '# User'"),
        ("Code {{check}}.", "Code.", "declares the slot 'check' and does not use it"),
        ("{{run}}", "{{run}} {{other}}", "uses the slot 'other' without declaring it"),
        ("run, check", "run, check, run", "declares the slot 'run' twice"),
        ("{{run}}", "{{run}} {{Not A Slot}}", "'Not A Slot' is no slot name"),
        ("run, check", "run, che-ck", "'che-ck' is no slot name"),
        ("{{run}}", "{{run}} {{check", "not closed"),
    ],
)
def test_every_mistake_in_a_file_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(PromptError, match=message) as caught:
        prompts.load_file(written(tmp_path, GOOD.replace(old, new)))
    assert "mine.md" in str(caught.value)


def test_a_file_that_is_not_there_is_a_prompt_error(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"none\.md cannot be read"):
        prompts.load_file(tmp_path / "none.md")


def test_a_name_that_no_file_can_have_is_a_prompt_error() -> None:
    with pytest.raises(PromptError, match="cannot be read"):
        prompts.load_file("mine\0.md")


def test_a_file_that_begins_with_the_mark_of_its_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text(GOOD, encoding="utf-8-sig")
    assert prompts.load_file(tmp_path / "mine.md") == prompts.load_file(written(tmp_path, GOOD))


def test_a_file_that_is_not_text_is_a_prompt_error(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PromptError, match="cannot be read"):
        prompts.load_file(tmp_path / "mine.md")


def test_a_missing_slot_is_named(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="needs a value for the slot 'check'"):
        prompts.load_file(written(tmp_path, GOOD)).render(run="R")


def test_an_unknown_slot_is_named(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="has no slot 'rum'"):
        prompts.load_file(written(tmp_path, GOOD)).render(run="R", check="C", rum="X")


@given(run=any_text(), check=any_text())
def test_values_are_never_expanded_again(run: str, check: str) -> None:
    prompt = prompts._parse(GOOD, where="mine.md")
    values = {"run": run + "{{check}}", "check": check + "{{run}}\\1"}
    assert [m.content for m in prompt.render(**values)] == [f"Code {values['check']}.", values["run"]]


@pytest.mark.parametrize(
    "id", ["general/nothing", "../prompts/general/judge", "general/../paper/judge_web", "", "judge"]
)
def test_an_id_that_is_none_says_which_there_are(id: str) -> None:
    with pytest.raises(PromptError, match="the package has: code/contrast"):
        prompts.load(id)


@pytest.mark.parametrize("id", prompts.available())
def test_every_prompt_of_the_package_is_well_formed(id: str) -> None:
    prompt = prompts.load(id)
    assert prompt.id == id
    assert prompts.load(id) is prompt
    assert prompt.render(**dict.fromkeys(prompt.slots, "x"))


def test_a_domain_has_its_own_prompt_or_the_general_one() -> None:
    assert prompts.for_domain("web", "judge").id == "web/judge"
    assert prompts.for_domain("web", "inject").id == "general/inject"


def test_a_domain_nobody_knows_is_named() -> None:
    with pytest.raises(PromptError, match="no prompt domain 'wbe'"):
        prompts.for_domain("wbe", "judge")


@pytest.mark.parametrize("domain", ["general", "web", "code"])
def test_a_judges_words_leave_room_for_the_run(domain: str) -> None:
    prompt = prompts.load(f"{domain}/judge")
    text = prompt.system + prompt.user
    assert len(text.split()) < 900
    assert estimate_tokens(text) < 1_700  # the estimate is a third above the true count of English prose


@pytest.mark.parametrize("id", JUDGES)
def test_what_a_judge_is_told_changes_only_knowingly(id: str) -> None:
    """The rendered prompt equals its snapshot. After a wanted change: UPDATE_SNAPSHOTS=1 pytest, and a new version."""
    prompt = prompts.load(id)
    agent = "<<<agent 9f8e7d6c>>>\n[instructions the agent was given]\n| Sample\n<<<end agent 9f8e7d6c>>>"
    values = {
        "agent": agent,
        "run": "<<<run 0a1b2c3d>>>\n[task]\n| Sample\n<<<end run 0a1b2c3d>>>",
        "check": "0a1b2c3d",
    }
    messages = prompt.render(**{name: values[name] for name in prompt.slots})
    text = f"{prompt.id} version {prompt.version}\n\n" + "\n".join(f"## {m.role}\n\n{m.content}\n" for m in messages)
    path = SNAPSHOTS / f"{id.replace('/', '.')}.md"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
