"""`install` and `install --remove`: our entries and nothing else, byte for byte, and a broken file is not touched."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st

from lessonbank import connect
from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError
from lessonbank.hosts.settings_file import parsed, with_element, with_member, without

pytestmark = pytest.mark.full
ALL = ("claude-code", "codex", "gemini-cli", "opencode", "qwen-code", "cline")
FOREIGN = {
    "claude-code": (
        ".claude/settings.json",
        '{\n  "model": "opus",   "hooks": {"Stop": []}, "enabledPlugins": {"a@b": true}\n}',
    ),
    "codex": (".codex/hooks.json", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}\n'),
    "gemini-cli": (
        ".gemini/settings.json",
        '{\n\t// my theme\n\t"ui": {"theme": "dark"}, // dark\n\t"mcpServers": {"a": {},},\n}\n',
    ),
    "opencode": (".config/opencode/opencode.jsonc", '/* mine */ {"model": "x"}'),
    "qwen-code": (".qwen/settings.json", '{"hooks": {"Stop": [{"hooks": []}]}, "z": 1, "a": 2}\r\n'),
    "cline": (".cline/data/settings/cline_mcp_settings.json", '{"mcpServers": {"b": {"command": "b"}}}'),
}


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line, in a home folder of its own."""
    from lessonbank.cli import main

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "LESSONBANK_BANK", "LESSONBANK_SCOPE"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["lessonbank", *words])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return Done(int(left.value.code or 0), told.out, told.err)

    return run


def files(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", [(), ("--mcp",)])
@pytest.mark.parametrize("host", ALL)
def test_what_was_there_before_is_there_again_byte_for_byte(
    tmp_path: Path, run: Run, host: str, words: tuple[str, ...]
) -> None:
    name, text = FOREIGN[host]
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(text.encode())
    before = files(tmp_path)
    first = run("install", host, "--bank", "bank.db", *words)
    assert (first.returncode, first.stderr) == (0, "")
    installed = files(tmp_path)
    assert installed != before
    again = run("install", host, "--bank", "bank.db", *words)
    assert "wrote" not in again.stdout
    assert files(tmp_path) == installed
    assert run("install", host, "--remove").returncode == 0
    assert files(tmp_path) == before
    assert "nothing of lessonbank" in run("install", host, "--remove").stdout


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--show",), "--show writes nothing"),
        (("--bank", "bank.db"), "--bank"),
        (("--scope", "t"), "--scope"),
        (("--within", "0.14"), "--within"),
        (("--untrusted",), "--untrusted"),
        (("--limit", "3"), "--limit"),
    ],
)
def test_a_removal_refuses_options_that_it_would_ignore(
    tmp_path: Path, run: Run, words: tuple[str, ...], named: str
) -> None:
    assert run("install", "codex").returncode == 0
    before = files(tmp_path)
    done = run("install", "codex", "--remove", *words)
    assert (done.returncode, done.stdout, named in done.stderr) == (2, "", True)
    assert len(done.stderr.splitlines()) == 1
    assert files(tmp_path) == before


def test_a_removal_takes_no_notice_of_a_bank_that_the_environment_names(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("install", "codex").returncode == 0
    monkeypatch.setenv("LESSONBANK_BANK", "bank.db")
    assert run("install", "codex", "--remove").returncode == 0
    assert files(tmp_path) == {}


def test_lines_of_an_earlier_version_are_replaced_and_removed(tmp_path: Path, run: Run) -> None:
    run("install", "codex", "--mcp")
    config = tmp_path / ".codex" / "config.toml"
    mine, earlier = "model = 'x'\n", "# >>> lessonbank: `lessonbank uninstall` removes these lines"
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    assert lines[0].startswith("# >>> lessonbank")
    old = "".join([mine, f"{earlier}\n", *lines[1:], mine.replace("model", "review_model")])
    config.write_text(old, encoding="utf-8")
    assert run("install", "codex", "--mcp").returncode == 0
    text = config.read_text(encoding="utf-8")
    assert (text.count(">>> lessonbank"), earlier in text) == (1, False)
    config.write_text(old, encoding="utf-8")
    assert run("install", "codex", "--remove").returncode == 0
    assert config.read_text(encoding="utf-8") == mine + mine.replace("model", "review_model")


@pytest.mark.parametrize("host", ALL)
@pytest.mark.parametrize("text", ["", "\n", " \r\n"])
def test_a_settings_file_without_words_is_filled_and_a_bank_may_have_any_name(
    tmp_path: Path, run: Run, host: str, text: str
) -> None:
    (tmp_path / FOREIGN[host][0]).parent.mkdir(parents=True)
    (tmp_path / FOREIGN[host][0]).write_bytes(text.encode())
    bank = tmp_path / "b'\"é 🚀\\.db"
    assert run("install", host, "--mcp", "--bank", str(bank)).stderr == ""
    assert any("🚀" in held.decode() or b"\\ud83d\\ude80" in held for held in files(tmp_path).values())
    if host == "codex":
        table = tomllib.loads((tmp_path / ".codex/config.toml").read_text(encoding="utf-8"))
        assert str(bank) in table["mcp_servers"]["lessonbank"]["args"]
    assert run("install", host, "--remove").stderr == ""


@pytest.mark.parametrize(
    ("host", "file", "text"),
    [
        ("cline", ".cline/data/settings/cline_mcp_settings.json", '{"mcpServers": {}}'),
        ("codex", ".codex/hooks.json", '\ufeff{"hooks": {"Stop": [ ], "SessionEnd": [// mine\r\n]},}\r\n'),
        ("claude-code", ".claude/settings.json", '{\n  "enabledPlugins": {},\n  "extraKnownMarketplaces": {}\n}\n'),
        ("codex", ".codex/config.toml", '\ufeffmodel = "x"\r\n'),
        ("codex", ".codex/config.toml", 'model = "x"'),
    ],
    ids=["empty servers", "empty hooks and a mark", "empty plug-ins", "toml with a mark", "toml without a last end"],
)
def test_what_was_empty_marked_or_without_an_end_is_so_again(
    tmp_path: Path, run: Run, host: str, file: str, text: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_bytes(text.encode())
    before = files(tmp_path)
    assert run("install", host, *(["--mcp"] if file.endswith(".toml") else [])).stderr == ""
    assert files(tmp_path)[file] != before[file]
    assert run("install", host, "--remove").stderr == ""
    assert files(tmp_path) == before


BY_HAND = {"command": "lessonbank", "args": ["mcp", "--bank", "lessons.db", "--scope", "me/shop"]}


@pytest.mark.parametrize(
    ("host", "file"),
    [
        ("gemini-cli", ".gemini/settings.json"),
        ("qwen-code", ".qwen/settings.json"),
        ("cline", ".cline/data/settings/cline_mcp_settings.json"),
    ],
)
def test_a_server_that_a_person_wrote_under_our_name_stays(tmp_path: Path, run: Run, host: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(json.dumps({"mcpServers": {"lessonbank": BY_HAND}}))
    before = files(tmp_path)
    refused = run("install", host, "--mcp")
    assert "mcpServers.lessonbank is not ours" in refused.stderr
    assert files(tmp_path) == before
    if host != "cline":
        assert run("install", host).returncode == 0
        assert json.loads((tmp_path / file).read_text())["mcpServers"] == {"lessonbank": BY_HAND}
    assert run("install", host, "--remove").returncode == 0
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("host", "file"),
    [("gemini-cli", ".gemini/commands/lessons.toml"), ("opencode", ".config/opencode/command/lessons.md")],
)
def test_a_command_that_a_person_wrote_under_our_name_stays(tmp_path: Path, run: Run, host: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text('prompt = "Call !{lessonbank lessons list}"')
    before = files(tmp_path)
    assert "it is not ours" in run("install", host, "--mcp").stderr
    assert files(tmp_path) == before
    for words in ((), ("--remove",)):
        assert run("install", host, *words).returncode == 0
        assert before.items() <= files(tmp_path).items()


def test_a_hook_that_a_person_added_to_our_entry_stays(tmp_path: Path, run: Run) -> None:
    mine = {"type": "command", "command": "mine"}
    run("install", "codex")
    file = tmp_path / ".codex/hooks.json"
    settings = json.loads(file.read_text())
    settings["hooks"]["Stop"][0]["hooks"].append(mine)
    file.write_text(json.dumps(settings))
    for words in ((), ("--remove",)):
        assert run("install", "codex", *words).returncode == 0
        assert json.loads(file.read_text())["hooks"]["Stop"][0]["hooks"] == [mine]
    assert json.loads(file.read_text())["hooks"].keys() == {"Stop"}


CODEX_WROTE = """model = "x"

{table}
[mcp_servers.lessonbank.tools.recall]
approval_mode = "approve"

[mcp_servers.mine]
command = "echo"
# <<< lessonbank
"""


@pytest.mark.parametrize("change", [str, str.rstrip, lambda text: text.replace("\n", "\r\n")])
def test_a_table_whose_marks_codex_or_an_editor_changed_is_taken_out_and_nothing_else(
    tmp_path: Path, run: Run, change: Callable[[str], str]
) -> None:
    """Codex drops the mark above the table, and leaves the one below it at the end of the file."""
    run("install", "codex", "--mcp")
    file = tmp_path / ".codex/config.toml"
    table = "".join(file.read_text().splitlines(keepends=True)[1:-1])
    written = change(CODEX_WROTE.format(table=table)).encode()
    file.write_bytes(written)
    assert run("install", "codex", "--mcp").returncode == 0
    assert file.read_text().count("[mcp_servers.lessonbank]") == 1
    file.write_bytes(written)
    assert run("install", "codex", "--remove").returncode == 0
    lines = list(filter(None, file.read_text().splitlines()))
    assert lines == ['model = "x"', "[mcp_servers.mine]", 'command = "echo"']


def test_what_opencode_reads_from_its_other_settings_file_is_taken_out_of_both(tmp_path: Path, run: Run) -> None:
    run("install", "opencode", "--mcp")
    commented = tmp_path / ".config/opencode/opencode.jsonc"
    commented.write_text("{} // mine")
    for words in (("--mcp",), ("--remove",)):
        assert run("install", "opencode", *words).returncode == 0
        held = b"".join(held for name, held in files(tmp_path).items() if "opencode.json" in name)
        assert held.count(b"lessonbank.cli") == (words == ("--mcp",))
    assert commented.read_text() == "{} // mine"


@pytest.mark.parametrize("host", ["codex", "gemini-cli"])
def test_hooks_whose_program_has_moved_are_replaced_and_removed(tmp_path: Path, run: Run, host: str) -> None:
    run("install", host)
    installed = files(tmp_path)
    for path in filter(Path.is_file, tmp_path.rglob("*.json")):
        path.write_bytes(path.read_bytes().replace(b"lessonbank/hosts/client.py", b"lessonbank/hooks/client.py"))
    moved = files(tmp_path)
    assert moved != installed
    assert run("install", host).returncode == 0
    assert files(tmp_path) == installed
    for name, content in moved.items():
        (tmp_path / name).write_bytes(content)
    assert run("install", host, "--remove").returncode == 0
    assert files(tmp_path) == {}


@pytest.mark.parametrize("host", [host for host in ALL if host != "cline"])
def test_an_installation_in_an_empty_folder_leaves_no_trace(tmp_path: Path, run: Run, host: str) -> None:
    for words in ((), ("--project",)):
        assert run("install", host, *words).returncode == 0
        assert files(tmp_path)
        assert run("install", host, "--remove", *words).returncode == 0
        assert files(tmp_path) == {}


@pytest.mark.parametrize("host", ALL)
@pytest.mark.parametrize("text", ['{"a": ', "[1]", '{"hooks": 7, "mcpServers": 7, "mcp": 7, "enabledPlugins": 7}'])
def test_a_settings_file_that_is_broken_is_refused_and_not_touched(
    tmp_path: Path, run: Run, host: str, text: str
) -> None:
    name = FOREIGN[host][0]
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text)
    before = files(tmp_path)
    done = run("install", host, "--bank", "bank.db", "--mcp")
    assert done.returncode == 2
    assert "was not changed" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert files(tmp_path) == before


def test_a_broken_toml_file_keeps_the_other_files_from_being_written(tmp_path: Path, run: Run) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text("model = \n")
    done = run("install", "codex", "--mcp")
    assert "no valid TOML" in done.stderr
    assert list(files(tmp_path)) == [".codex/config.toml"]


@pytest.mark.parametrize("host", ["claude-code", "codex", "opencode"])
def test_a_settings_folder_that_cannot_be_written_costs_one_clear_sentence(
    tmp_path: Path, run: Run, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def read_only(path: Any, flags: int, *more: Any, **named: Any) -> int:
        """As on a file system that is mounted to be read: root may write where modes forbid it."""
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only)
    done = run("install", host, "--bank", "bank.db")
    assert done.returncode == 2
    assert "cannot be written: Read-only file system" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "lessons of your own sessions are shown at once, those of others wait until you approve them"),
        (("--trusted",), "new lessons wait until you approve them"),
        (("--untrusted",), "new lessons are shown at once"),
    ],
)
@pytest.mark.parametrize("host", ["claude-code", "gemini-cli"])
def test_the_last_line_says_which_lessons_wait_and_how_to_approve_them(
    run: Run, host: str, words: tuple[str, ...], said: str
) -> None:
    last = run("install", host, *words, "--bank", "bank.db").stdout.splitlines()[-1]
    assert last.startswith(said)
    assert "lessonbank review" in last


@pytest.mark.parametrize("words", [(), ("--untrusted",)])
def test_an_agent_without_hooks_is_shown_lessons_when_it_asks(run: Run, words: tuple[str, ...]) -> None:
    last = run("install", "cline", *words, "--bank", "bank.db").stdout.splitlines()[-1]
    assert "shown when it calls the tool `recall`" in last
    assert "at once" not in last


def test_what_every_recall_is_asked_with_stands_in_the_hook_and_in_the_command_of_the_mcp_server(
    tmp_path: Path, run: Run
) -> None:
    settings = tmp_path / ".gemini/settings.json"

    def commands() -> tuple[str, str]:
        told = json.loads(settings.read_text())
        return told["hooks"]["BeforeAgent"][0]["hooks"][0]["command"], " ".join(
            told["mcpServers"]["lessonbank"]["args"]
        )

    run("install", "gemini-cli", "--mcp", "--trusted", "--limit", "2", "--metadata", "team:=7")
    hook, server = commands()
    assert "--limit 2 --trusted true --metadata '{\"team\": 7}' --own true" in hook
    assert "--limit 2 --trusted --metadata team:=7 --own" in server
    run("install", "gemini-cli", "--mcp")
    hook, server = commands()
    assert "--own true" in hook
    assert "--own" in server
    assert "--trusted" not in hook + server
    run("install", "gemini-cli", "--mcp", "--untrusted")
    assert "--own false --" in commands()[0]
    assert "--own" not in commands()[1]
    assert run("install", "codex", "--trusted", "--untrusted").returncode == 2
    assert run("install", "codex", "--own", "--untrusted").returncode == 2
    assert run("install", "codex", "--limit", "0").returncode == 2


def test_tools_of_the_server_are_left_out_where_it_is_installed_and_nowhere_else(tmp_path: Path, run: Run) -> None:
    assert run("install", "gemini-cli", "--mcp", "--without", "remember").returncode == 0
    told = json.loads((tmp_path / ".gemini/settings.json").read_text())
    assert "--without remember" in " ".join(told["mcpServers"]["lessonbank"]["args"])
    assert "add --mcp" in run("install", "codex", "--without", "remember").stderr
    refused = run("install", "codex", "--mcp", "--without", "record")
    assert (refused.returncode, "only recall_again and remember may be left out" in refused.stderr) == (2, True)


@pytest.mark.parametrize("host", [host for host in ALL if host != "cline"])
def test_hooks_alone_are_installed_unless_the_mcp_server_is_asked_for(tmp_path: Path, run: Run, host: str) -> None:
    assert run("install", host).returncode == 0
    alone = files(tmp_path)
    assert not [name for name, held in alone.items() if b"lessonbank.cli" in held]
    assert run("install", host, "--mcp").returncode == 0
    assert [name for name, held in files(tmp_path).items() if b"lessonbank.cli" in held]
    assert run("install", host).returncode == 0
    assert files(tmp_path) == alone


def test_what_claude_code_wrote_down_of_us_goes_with_the_rest(tmp_path: Path, run: Run) -> None:
    assert run("install", "claude-code").returncode == 0
    own = tmp_path / ".claude/plugins"
    own.mkdir()
    other = {"source": {"source": "github"}}
    (own / "known_marketplaces.json").write_text(json.dumps({"other": other, "lessonbank": other}, indent=2))
    (own / "installed_plugins.json").write_text(json.dumps({"version": 2, "plugins": {"lessonbank@lessonbank": []}}))
    assert run("install", "claude-code", "--remove").returncode == 0
    assert json.loads((own / "known_marketplaces.json").read_text()) == {"other": other}
    assert json.loads((own / "installed_plugins.json").read_text()) == {"version": 2, "plugins": {}}


@pytest.mark.parametrize("bank", ["postgresql://ana:pw@db/bank", "https://memory.acme.example", ":memory:"])
def test_a_bank_that_is_no_file_is_refused_and_named_in_no_file(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, bank: str
) -> None:
    monkeypatch.setenv("LESSONBANK_BANK", bank)
    done = run("install", "codex")
    assert (done.returncode, "hooks keep their bank in a file" in done.stderr) == (2, True)
    assert bank not in done.stderr
    assert files(tmp_path) == {}
    assert f"bank: {tmp_path}/bank.db," in run("install", "codex", "--bank", "sqlite:bank.db").stdout


def test_each_repository_has_a_scope_of_its_own_unless_one_is_named(tmp_path: Path, run: Run) -> None:
    hooks = tmp_path / ".codex/hooks.json"
    assert "one for each repository" in run("install", "codex").stdout
    assert "--scope" not in hooks.read_text()
    assert "scope: team" in run("install", "codex", "--scope", "team").stdout
    assert "--scope team" in hooks.read_text()


def test_lessons_of_the_old_common_scope_are_named_with_how_to_go_on_with_them(tmp_path: Path, run: Run) -> None:
    place = str(tmp_path / "bank.db")
    assert "earlier versions" not in run("install", "codex", "--bank", place).stdout
    with connect(place, scope="coding", embedder="lexical") as bank:
        bank.lessons.add(task="Ship", title="Form first", content="Fill it.", by="Ana")
    assert "`--scope coding` goes on with them" in run("install", "codex", "--bank", place).stdout
    assert "earlier versions" not in run("install", "codex", "--bank", place, "--scope", "coding").stdout


@pytest.mark.parametrize("host", ALL)
def test_show_prints_what_would_be_written_as_a_patch_and_writes_nothing(tmp_path: Path, run: Run, host: str) -> None:
    place = ("--bank", "bank.db")
    shown = run("install", host, *place, "--show").stdout.splitlines()
    assert files(tmp_path) == {}
    run("install", host, *place)
    for name, content in files(tmp_path).items():
        assert any(line.startswith("+++ ") and line.endswith(name) for line in shown), name
        assert {f"+{line}" for line in content.decode().splitlines()} <= {*shown}, name
    assert run("install", host, *place, "--show").stdout == "it is installed like this already\n"


@pytest.mark.parametrize("host", ALL)
def test_no_trust_and_no_bypass_is_written(tmp_path: Path, run: Run, host: str) -> None:
    run("install", host, "--bank", "bank.db")
    written = b"".join(files(tmp_path).values()).decode().replace(str(tmp_path), "").casefold()
    for word in ("bypass", "trust_level", "trusted_hash", "foldertrust", "dangerously", "yolo", "permission"):
        assert word not in written


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini-cli", "qwen-code"])
def test_a_hook_whose_program_is_gone_blocks_no_prompt(tmp_path: Path, run: Run, host: str) -> None:
    """Python ends with 2 where its script is missing, and hosts take 2 for a refusal of the prompt.

    The first hook of a session says so to the person.
    """
    run("install", host, "--bank", "bank.db")
    written = [json.loads(text) for name, text in files(tmp_path).items() if name.endswith(".json")]
    entries = [told["hooks"] for told in written if "hooks" in told]
    commands = {
        hook["command"]: name for told in entries for name, event in told.items() for e in event for hook in e["hooks"]
    }
    assert "SessionStart" in commands.values()
    for command, event in commands.items():
        gone = command.replace("client.py", "gone.py")
        for python in (sys.executable, "/no/python"):
            words = ["sh", "-c", gone.replace(sys.executable, python)]
            done = subprocess.run(words, input="{}", capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
            if event == "SessionStart":
                (line,) = json.loads(done.stdout).items()
                assert line[0] == "systemMessage"
                assert f"lessonbank install {host}" in line[1]
            else:
                assert done.stdout == ""


def test_an_unknown_program_and_a_wrong_scope_are_refused(tmp_path: Path, run: Run) -> None:
    assert "use one of claude-code" in run("install", "emacs").stderr
    assert run("install", "codex", "--scope", "/a//b").returncode == 2
    assert files(tmp_path) == {}


def test_a_link_to_a_settings_file_stays_a_link(tmp_path: Path, run: Run) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / "dotfiles.json").write_text("{}")
    (tmp_path / "dotfiles.json").chmod(0o640)
    (tmp_path / ".gemini/settings.json").symlink_to(tmp_path / "dotfiles.json")
    run("install", "gemini-cli")
    assert (tmp_path / ".gemini/settings.json").is_symlink()
    assert "BeforeAgent" in (tmp_path / "dotfiles.json").read_text()
    assert (tmp_path / "dotfiles.json").stat().st_mode & 0o777 == 0o640
    (tmp_path / "dotfiles.json").write_text("")
    run("install", "gemini-cli")
    run("install", "gemini-cli", "--remove")
    assert (tmp_path / ".gemini/settings.json").is_symlink()
    assert json.loads((tmp_path / "dotfiles.json").read_text()) == {}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text(max_size=5),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(any_text(max_size=4), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(any_text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 1, "\t"]))
def test_entries_go_in_and_out_of_any_settings(settings: dict[str, Json], indent: int | str | None) -> None:
    text = json.dumps(settings, indent=indent, ensure_ascii=False)
    added = with_member(text, ("ours", "servers"), {"command": "x"})
    added = with_element(added, ("ours-too", "Stop"), {"command": "ours"})
    assert json.loads(added) == {
        **settings,
        "ours": {"servers": {"command": "x"}},
        "ours-too": {"Stop": [{"command": "ours"}]},
    }
    assert without(added, lambda path, _: path in (("ours", "servers"), ("ours-too", "Stop"))) == text


def test_a_comment_that_somebody_wrote_behind_our_entry_stays() -> None:
    text = '{\n  "ours": 1,\n  // mine\n  "b": 2\n}\n'
    assert without(text, lambda path, _: path == ("ours",)) == '{\n  \n  // mine\n  "b": 2\n}\n'


@given(st.text(alphabet='{}[]",:/*0ae\n\\ ', max_size=30))
def test_any_text_is_read_as_settings_or_refused(text: str) -> None:
    try:
        found = parsed(text).value
    except FormatError:
        return
    assert isinstance(found, dict)
