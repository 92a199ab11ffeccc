"""A secret is found however it is interrupted by what nobody sees: the redactor reads what will be kept and sent."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bank_file import everything_in

import lessonbank
from lessonbank import Action, Evidence, Safety, Step, ToolCall, Trajectory
from lessonbank.errors import UsageError
from lessonbank.guard.quote import quoted
from lessonbank.guard.redact import Redacting, redact

BODIES = {
    "ghp_": "a8Kd93Lq0ZxVbT5mNcRw71YuEoPiSgHj26Qf",
    "AKIA": "QYLPMN5HFZ7K2DVJ",
    "sk-ant-": "api03-R7kQ2mZx9LpV4tYwB8nDc6HsJf1GaUeX",
    "glpat-": "x9Kf2LqRw7TzMb4NcVyE",
}
KEYS = [prefix + body for prefix, body in BODIES.items()]


def between(first: str, second: str = "") -> Callable[[str], str]:
    return lambda key: key[:4] + first + key[4:10] + second + key[10:]


WAYS: dict[str, Callable[[str], str]] = {
    "colours of grep": lambda key: f"\x1b[01;31m\x1b[K{key[:4]}\x1b[m\x1b[K{key[4:]}",
    "colours of Pygments": lambda key: f"\x1b[38;5;28;01m{key[:4]}\x1b[39;00m\x1b[38;5;241m{key[4:]}\x1b[39m",
    "an erased line": between("\x1b[2K", "\x1b[0K"),
    "a link of OSC 8": between("\x1b]8;;http://a.example/x\x1b\\", "\x1b]8;;\x1b\\"),
    "a link that a bell ends": between("\x1b]8;;http://a.example/x\a", "\x1b]8;;\a"),
    "CSI in one sign": between("\x9b31m", "\x9bm"),
    "UTF-16 read as UTF-8": "\0".join,
    "colours in UTF-16": lambda key: "\0".join(f"\x1b[31m{key[:4]}\x1b[m{key[4:]}"),
    "one NUL": between("\0"),
    "a backspace": between("\b"),
    "a letter taken back": between("x\b"),
    "bold as typewriters do": lambda key: "".join(f"{c}\b{c}" for c in key),
    "underlined as typewriters do": lambda key: "".join(f"_\b{c}" for c in key),
    "DEL": between("\x7f"),
    "BEL": between("\a"),
    "other controls": between("\x01", "\x1f"),
    "private use": between("\ue000", "\U000f0000"),
    "unassigned": between("\u0378", "\U000e0fff"),
    "a zero-width blank": between("\u200b"),
    "a joiner": between("\u200d", "\ufe0f"),
    "a soft hyphen": between("\u00ad"),
    "a byte order mark": between("\ufeff"),
    "a filler": between("\u2800", "\u3164"),
    "half a character": between("\ud800"),
    "what stands for an unreadable byte": between("\ufffd"),
}
parametrized = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def leaks(text: str, way: Callable[[str], str] = str) -> list[str]:
    """The keys that `text` holds, whole, as they were interrupted, or all that is secret of them."""
    return [key for key in KEYS if any(part in text for part in (key, way(key), BODIES[head_of(key)], key[10:]))]


def head_of(key: str) -> str:
    return next(head for head in BODIES if key.startswith(head))


@parametrized
def test_a_secret_is_found_in_the_text_that_is_kept(way: Callable[[str], str]) -> None:
    for key in KEYS:
        for said in (f"no answer for {way(key)} today", way(key), f'{{"value": "{way(key)}"}}'):
            assert not leaks(redact(said), way), ascii(said)
            assert not leaks(quoted(said), way), ascii(said)
        told = redact(f"no answer for {way(key)} today")
        assert told.startswith("no answer for [")
        assert told.endswith(" today")


def test_a_redactor_of_the_callers_own_reads_the_same_text() -> None:
    def own(text: str) -> str:
        for key in KEYS:
            text = text.replace(key, "***")
        return text

    # What stood before a backspace is not there any more.
    ways = [way for way in WAYS.values() if "\b" not in way("abcdefghijkl")]
    said = " and ".join(way(key) for way in ways for key in KEYS)
    with lessonbank.connect(":memory:", scope="a", embedder="lexical", safety=Safety(redact=own)) as bank:
        bank.learn(
            Trajectory(id="r", task=f"Look {said}", steps=(Step(action=said, observation=said),)), outcome="success"
        )
        kept = repr(bank.runs.get("r"))
    assert "***" in kept
    assert not [way for way in ways if leaks(kept, way)]


@pytest.mark.full
def test_no_interrupted_secret_reaches_a_model_the_disk_the_log_or_a_recall(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    prompts, path = list[str](), tmp_path / "bank.db"
    said = f"no answer for {' or '.join(way(key) for way in WAYS.values() for key in KEYS)} today"

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "Thoughts: fine\nStatus: success"

    action = Action(text=said, calls=(ToolCall(name="grep", arguments={"query": said, said: 1}),))
    run = Trajectory(
        id="r",
        task=f"Publish the parser {said}",
        instructions=said,
        steps=(Step(thought=said, action=action, observation=said), Step(action="make", observation=f"error: {said}")),
        answer=said,
        metadata={"note": said},
    )
    with lessonbank.connect(path, scope="a", embedder="lexical", model=model) as bank:
        bank.learn(run)
        bank.learn(run.model_copy(update={"id": "s"}), outcome="failure")
        recall = bank.retrieve(f"Publish the parser {said}")
        id = bank.lessons.add(title=said, content=said, when=said, task=said, by="Ana").id
        bank.lessons.quarantine(id, reason=said)
        bank.lessons.retire(id, reason=said)
        bank.runs.correct("r", outcome="failure", by="Ana", reason=said)
        held = [*bank.runs.list(), *bank.history.list(), *bank.recalls.list(), *bank.lessons.list()]
        disk = everything_in(path)
    assert len(prompts) > 1
    for told in (*prompts, recall.text, *map(repr, held), disk, caplog.text):
        assert not [name for name, way in WAYS.items() if leaks(told, way)]


@pytest.mark.parametrize("key", KEYS)
def test_a_secret_is_found_behind_what_other_programs_unescape_and_decode(key: str) -> None:
    coloured = f"see \x1b[01;31m\x1b[K{key[:4]}\x1b[m\x1b[K{key[4:]} there"
    spoiled = f"see {key[:4]}\0{key[4:]} there"
    gone = re.compile(r"\[[a-z ]+ 1\]")
    for said in (coloured, spoiled, f"see {key[:4]}\u200b{key[4:]} there"):
        assert not leaks(redact(json.dumps({"stdout": said})))
    for escape in ("\\033[", "\\e[", "\\x1b["):
        assert gone.search(redact(f"echo -e '{escape}01;31m{key[:4]}{escape}0m{key[4:]}'"))
    for said in (coloured, spoiled):
        assert gone.fullmatch(redact(base64.b64encode(said.encode()).decode()))
    assert gone.fullmatch(redact(base64.b64encode(f"see {key} there".encode("utf-16-le")).decode()))


def test_a_ligature_in_a_secret_does_not_hide_it() -> None:
    key = KEYS[0][:8] + "ff" + KEYS[0][10:]
    assert redact(f"see {key.replace('ff', 'ﬀ')} there") == "see [github token 1] there"
    wide = "".join(chr(ord(c) + 0xFEE0) for c in KEYS[1])
    assert redact(f"see {wide} there, {'and so on ' * 200} a ﬀ") == f"see [aws key 1] there, {'and so on ' * 200} a ﬀ"


# --- where else texts come in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [KEYS[0], WAYS["colours of grep"](KEYS[0])], ids=["plain", "coloured"])
def test_no_reason_that_a_person_gives_brings_a_secret_into_the_journal(said: str) -> None:
    why = f"it told {said} to all"
    with lessonbank.connect(":memory:", scope="a", embedder="lexical") as bank:
        id = bank.lessons.add(title="Look twice", content="Check the parser twice.", task="Ship", by="Ana").id
        bank.lessons.quarantine(id, reason=why)
        bank.lessons.approve(id, by="Ana", reason=why)
        bank.lessons.edit(id, by="Ana", content="Check the parser two times.", reason=why)
        bank.lessons.narrow(id, to="Ship it", by="Ana", reason=why)
        bank.lessons.retire(id, reason=why)
        bank.lessons.restore(id, reason=why)
        bank.history.rollback(to=bank.history.list()[1].sequence, reason=why)
        bank.learn(Trajectory(id="r", task="Ship", steps=(Step(action="ship", observation="done"),)), outcome="success")
        bank.admin.purge(run="r", reason=why)
        entries = bank.history.list()
    reasons = [told for entry in entries if "it told" in (told := getattr(entry.entry, "reason", ""))]
    assert len(reasons) == 8
    assert set(reasons) == {"it told [github token 1] to all"}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_no_name_of_anybody(key: str) -> None:
    with lessonbank.connect(":memory:", scope="a", embedder="lexical") as bank:
        for call in (
            lambda: bank.lessons.add(title="T", content="Check it.", task="x", by=f"Ana {key}"),
            lambda: bank.scoped(writer=key),
        ):
            with pytest.raises(UsageError, match="takes a name, which others read; this one holds a key") as told:
                call()
            assert not leaks(str(told.value))


def test_an_import_brings_no_secret_along(tmp_path: Path) -> None:
    said = f"no answer for {WAYS['colours of grep'](KEYS[0])} or {KEYS[1]} today"
    off, path = Safety(redact=None), tmp_path / "bank.jsonl"
    (folder := tmp_path / "bank").mkdir()
    with lessonbank.connect(
        ":memory:", scope="a", embedder="lexical", safety=off, evidence=Evidence(holdout=None)
    ) as bank:
        bank.learn(Trajectory(id="r", task=said, steps=(Step(action="a", observation=said),)), outcome="success")
        bank.lessons.add(title="Look twice", content=said, task="Ship", by="Ana")
        shown = bank.retrieve("Ship")
        bank.admin.export(path)
    assert leaks(shown.text)
    with lessonbank.connect(folder / "bank.db", scope="a", embedder="lexical") as bank:
        bank.admin.import_(path)
        held = [*bank.runs.list(), *bank.history.list(), *bank.recalls.list(), *bank.lessons.list()]
        assert not bank.admin.verify()
        assert not leaks("\n".join((*map(repr, held), everything_in(folder / "bank.db"))), WAYS["colours of grep"])
        assert {run.trajectory.id for run in bank.runs.list()} == {"r"}
        assert bank.runs.get("r").trajectory.task == "no answer for [github token 1] or [aws key 1] today"


# --- the bank's own keys ---------------------------------------------------------------------------------------------

SURROUNDINGS = (
    "{}",
    "see {} there.",
    "Lessonbank-Writer-Key: {}",
    "x-lessonbank-key: {}",
    "Authorization: Bearer {}",
    '{{"value": "{}"}}',
    '{{"Lessonbank-Writer-Key": "{}"}}',
    "curl -H 'Lessonbank-Writer-Key: {}' http://bank.example",
    "export IT={}",
    "https://bank.example/v1?k={}&a=1",
    'bank.scoped(writer="Ana", key="{}")',
)
NAMED = tuple(s for s in SURROUNDINGS if "ey: " in s or 'ey": ' in s or "Bearer" in s or "key=" in s)


async def own_keys(tmp_path: Path) -> dict[str, str]:
    service = pytest.importorskip("lessonbank.http.service.keys")
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="a", embedder="lexical") as bank:
        return {
            "server": await service.Keys(bank).add("Ana", scope="a"),
            "writer": await bank.admin.add_writer("Bo"),
            "reviewer": await bank.admin.add_reviewer("Cy"),
        }


@pytest.mark.anyio
async def test_the_redactor_knows_the_keys_that_a_bank_gives_out(tmp_path: Path) -> None:
    keys = await own_keys(tmp_path)
    for role, key in keys.items():
        for surrounding in SURROUNDINGS:
            told = redact(surrounding.format(key))
            assert key[-43:] not in told, (role, surrounding)
            assert key[-30:-5] not in told, (role, surrounding)
    assert keys["writer"].startswith("lb_writer_")
    assert keys["reviewer"].startswith("lb_reviewer_")


@pytest.mark.parametrize("surrounding", NAMED)
def test_a_key_of_the_earlier_form_is_found_behind_its_name(surrounding: str) -> None:
    for key in ("Yp3-kq8ZsVn0Lw5TzXc7RbM1dHfGjKeQ2uAiOoP9_xE", "qZsVnLwTzXcRbMdHfGjKeQuAiOoPxEYpkqWsDfGhJk0"):
        assert key not in redact(surrounding.format(key))


@pytest.mark.anyio
async def test_a_key_of_the_earlier_form_still_opens(tmp_path: Path) -> None:
    earlier = "Yp3-kq8ZsVn0Lw5TzXc7RbM1dHfGjKeQ2uAiOoP9_xE"
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="a", embedder="lexical") as bank:
        await bank.store.put_setting("writer/bo", hashlib.sha256(earlier.encode()).hexdigest())
        run = Trajectory(id="r", task="Ship", steps=(Step(action="ship", observation="done"),))
        learned = await bank.scoped(writer="Bo", key=earlier).learn(run, outcome="success")
        assert learned.verdicts


@pytest.mark.parametrize("text", ["the key: value pairs", "key = dictionary[name]", "lb_writer_name", "lb_reviewers"])
def test_what_only_begins_like_a_key_of_the_bank_stays(text: str) -> None:
    assert Redacting()(text) == text
