"""A name has one spelling: nobody speaks twice, and nobody signs with a name that looks like somebody else's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from any_text import any_text
from hypothesis import given

import lessonbank
from lessonbank import Lesson, Parts, Trajectory
from lessonbank.contracts.records import Administer, Extraction
from lessonbank.errors import UsageError
from lessonbank.guard.names import LONGEST, checked_name, look, name_key

GOOD = [
    "u-17",
    "ana",
    "Ana",
    "Ana Kovač",
    "bob's agent",
    "zoë",
    "岡本",
    "Владимир",
    "Ελένη",
    "José",
    "Jose",
    "Søren",
    "Soren",
    "김민수",
    "さくらサクラ桜",
    "田中san",
    "अनन्या",
    "משה",
    "user 42",
    "a@b.org",
    "👩",
]
OTHER_SPELLINGS = {
    "u1 ": "u1",
    "\tu1": "u1",
    "u\u200b1": "u1",
    "u1\u2060": "u1",
    "u1\u3164": "u1",
    "\u202eu1": "u1",
    "u\x001": "u1",
    "ｕ１": "u1",
    "Ana  Kovač": "Ana Kovač",
    "Ana\nKovač": "Ana Kovač",
    "zoe\u0308": "zoë",
    "ﬁona": "fiona",
}
REFUSED = [
    "",
    "  ",
    "\u200b",
    None,
    5,
    b"u1",
    ["u1"],
    "x" * (LONGEST + 1),
    "x" * 10**6,
    "\u0430na",
    "Ann\u0430",
    "\u13aann",
    "\u2ca3aul",
    "\u0585ps",
    "\ua4eenn",
    "ledger",
]


@pytest.mark.parametrize("name", GOOD)
def test_a_name_in_its_accepted_form_stays_as_it_is(name: str) -> None:
    assert checked_name(name, what="by=") == name
    with lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank:
        assert bank.scoped(writer=name).writer == name


@pytest.mark.parametrize(("name", "accepted"), OTHER_SPELLINGS.items())
def test_another_spelling_is_refused_with_the_accepted_one(name: str, accepted: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_name(name, what="by=")
    assert str(caught.value).endswith(f"write {accepted!r}")
    assert len(str(caught.value).splitlines()) == 1
    assert name_key(name) == name_key(accepted), "and it counts as the same"


@pytest.mark.parametrize(
    "other",
    [
        *("ANA", "An\u200ba", " Ana ", "Ana\u00a0", "\uff21na", "A\u00adna", "Ana\ufe0f", "\u202eAna", "Ana\U000e0041"),
        *(
            "\ufeffAna",
            "Ana\t",
            "A\u2060na",
            "Ana\u3164",
            "Ana\u2800",
            "An\u034fa",
            "\U0001d400na",
            "Ana\u2028",
            "Ana\x7f",
        ),
    ],
    ids=ascii,
)
def test_a_name_counts_as_one_however_it_is_spelled(other: str) -> None:
    assert name_key(other) == name_key("Ana")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ace", "\u0430\u0441\u0435"),
        ("VOX", "\u03bdo\u03c7"),
        ("STRASSE", "straße"),
        ("ann", "\u0251nn"),
        ("gig", "\u0261i\u0261"),
        ("admin", "adm\u0131n"),
        ("ann", "\u1d00\u0274\u0274"),
        ("aa", "\u13aa\u13aa"),
        ("ann", "\ua4ee\ua4e0\ua4e0"),
        ("oo", "\u0585\u0585"),
        ("pp", "\u2ca3\u2ca3"),
        ("u1", "u\u0661"),
        ("u1", "u\u06f1"),
        ("u-1", "u\u20101"),
        ("u-1", "u\u20131"),
        ("o'neil", "o\u2019neil"),
    ],
)
def test_letters_of_another_alphabet_make_no_second_name(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("alice", "aIice"), ("ll", "I1"), ("Ol", "0l"), ("a|i", "ali"), ("Tom", "Torn"), ("a1", "AI")]
)
def test_names_that_look_the_same_in_ascii_get_one_key(one: str, other: str) -> None:
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical") as bank:
        first = bank.admin.add_writer(one)
        for add in (bank.admin.add_writer, bank.admin.add_reviewer):
            with pytest.raises(UsageError, match="choose another name"):
                add(other)
        assert bank.scoped(writer=one, key=first).writer == one
        assert bank.admin.writers() == (name_key(one),)
        assert bank.admin.add_writer(one.upper()) != first


def test_names_that_differ_stay_two() -> None:
    assert len({look(name) for name in GOOD if name != "Ana"}) == len(GOOD) - 1


@given(any_text(max_size=40))
def test_what_is_accepted_once_is_accepted_again_and_is_one_line_of_visible_text(name: str) -> None:
    try:
        accepted = checked_name(name, what="by=")
    except UsageError as error:
        assert len(str(error)) <= 500
        assert str(error).isprintable()
        return
    assert accepted == name
    assert accepted.isprintable()
    assert accepted == accepted.strip()
    assert name_key(accepted) == name_key(accepted.upper().lower()) or not accepted.isascii()


LESSON = Lesson(
    title="Look at the index first", content="When a search is empty, rebuild the index before another search."
)


async def drawn(_: Any, /) -> Extraction:
    return Extraction(lessons=(Lesson(title=LESSON.title, content=LESSON.content),))


def _import(bank: Any, name: Any, where: Path) -> Any:
    bank.admin.export(where / "e.jsonl")
    return bank.admin.import_(where / "e.jsonl", approved_by=name)


DOORS: dict[str, Callable[[Any, Any, Path], Any]] = {
    "scoped": lambda bank, name, _: bank.scoped(writer=name),
    "add_writer": lambda bank, name, _: bank.admin.add_writer(name),
    "add": lambda bank, name, _: bank.lessons.add(title="a", content="b", task="c", by=name),
    "narrow": lambda bank, name, _: bank.lessons.narrow("one", to="refund", by=name),
    "edit": lambda bank, name, _: bank.lessons.edit("one", content="Another.", by=name),
    "approve": lambda bank, name, _: bank.lessons.approve("one", by=name),
    "quarantine": lambda bank, name, _: bank.lessons.quarantine("one", reason="r", by=name),
    "retire": lambda bank, name, _: bank.lessons.retire("one", reason="r", by=name),
    "restore": lambda bank, name, _: bank.lessons.restore("one", reason="r", by=name),
    "correct": lambda bank, name, _: bank.runs.correct("run", outcome="failure", by=name),
    "rollback": lambda bank, name, _: bank.history.rollback(to=0, reason="r", by=name),
    "purge": lambda bank, name, _: bank.admin.purge(lesson="one", reason="r", by=name),
    "import": _import,
}


@pytest.mark.full
@pytest.mark.parametrize("door", DOORS)
def test_every_door_that_takes_a_name_refuses_one_in_another_form(door: str, tmp_path: Path) -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(extractor=drawn)) as bank:
        learned = bank.learn(Trajectory(id="run", task="find it", answer="x"), outcome="success")
        before = bank.history.list()
        assert learned.lessons
        for name in [name for name in (*OTHER_SPELLINGS, *REFUSED) if name is not None]:
            with pytest.raises(UsageError):
                DOORS[door](bank, name, tmp_path)
        changes = [entry for entry in bank.history.list() if not isinstance(entry.entry, Administer)]
        assert changes == [*before]  # to import a file, it was exported


def test_a_key_is_one_writers_however_the_name_is_spelled() -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(extractor=drawn)) as bank:
        old, new = bank.admin.add_writer("Zoë"), bank.admin.add_writer("ZOË")
        assert bank.admin.writers() == ("zoë",)
        with pytest.raises(UsageError, match="not the key"):
            bank.scoped(writer="Zoë", key=old).learn(Trajectory(task="find it", answer="x"), outcome="success")
        learned = bank.scoped(writer="zoë", key=new).learn(Trajectory(task="find it", answer="x"), outcome="success")
        assert learned.lessons[0].provenance.identity == "key:zoë"
        bank.admin.remove_writer("Zoë")
        assert bank.admin.writers() == ()
