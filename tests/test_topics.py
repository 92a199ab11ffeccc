"""A lesson gets its topic when it is kept, by words or by a model, and keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import lessonbank
from lessonbank import Evidence, Learning, Lesson, Parts, ReasoningBank, Step, Trajectory
from lessonbank.contracts.ports import Message
from lessonbank.contracts.records import Extraction, Run
from lessonbank.errors import NotFound, UsageError
from lessonbank.testing import ScriptedModel

CANCEL = ("Cancel the pending order W17 of Mia Li", "Cancel the pending order W5 of Tom Chen")
FLIGHT = ("Book a flight from Boston to Denver on 3 May", "Book a flight from Austin to Paris on 9 June")


async def one_lesson(attempts: Sequence[Run]) -> Extraction:
    run = attempts[0].trajectory
    text = f"Look at the state of what {run.id} asks for before you act on it."
    return Extraction(lessons=(Lesson(title=f"Look first ({run.id})", content=text),))


def opened(where: str | Path = ":memory:", **told: object) -> ReasoningBank:
    parts = Parts(extractor=one_lesson)
    return lessonbank.connect(where, scope="acme", embedder="lexical", parts=parts, **told)  # type: ignore[arg-type]


def learned(bank: ReasoningBank, task: str, n: int) -> Lesson:
    run = Trajectory(id=f"run-{n}", task=task, steps=(Step(action="look", observation="done"),))
    return bank.learn(run, outcome="success").lessons[0]


def test_tasks_of_one_family_share_a_topic_and_others_do_not() -> None:
    with opened() as bank:
        first, second, third, fourth = (learned(bank, task, n) for n, task in enumerate((*CANCEL, *FLIGHT)))
        assert first.topic and second.topic and third.topic and fourth.topic
        assert first.topic.id == second.topic.id != third.topic.id == fourth.topic.id
        assert second.topic.name == "cancel pending order"
        assert set(bank.lessons.topics().values()) == {first.topic.name, third.topic.name}


def test_lessons_are_listed_by_the_name_or_the_id_of_their_topic() -> None:
    with opened() as bank:
        ids = [learned(bank, task, n).id for n, task in enumerate((*CANCEL, *FLIGHT))]
        for id, name in bank.lessons.topics().items():
            found = [lesson.id for lesson in bank.lessons.list(topic=name.upper())]
            assert found == [lesson.id for lesson in bank.lessons.list(topic=id)]
            assert found in ([ids[1], ids[0]], [ids[3], ids[2]])
        with pytest.raises(NotFound, match="no topic 'refunds'"):
            bank.lessons.list(topic="refunds")


def test_a_lesson_by_hand_joins_the_topic_of_its_task() -> None:
    with opened() as bank:
        first = learned(bank, CANCEL[0], 1)
        told = bank.lessons.add(title="Ask first", content="Ask for the reason.", task=CANCEL[1], by="Ana")
        assert told.topic and first.topic and told.topic.id == first.topic.id


@pytest.mark.parametrize("task", ["T1", "123", "#4 – 5", "?"])
def test_a_task_without_a_word_has_lessons_like_any_other(task: str) -> None:
    with opened() as bank:
        lesson = bank.lessons.add(task=task, title="Look first", content="Look at the state before you act.", by="Ana")
        assert lesson.topic and learned(bank, task, 1).topic
        assert len(bank.lessons.list()) == 2


def test_a_topic_survives_edits_export_import_backup_and_rebuild(tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db") as bank:
        lesson = learned(bank, CANCEL[0], 1)
        assert bank.lessons.edit(lesson.id, content="Look at its state.", by="Ana").topic == lesson.topic
        bank.admin.rebuild()
        assert bank.lessons.get(lesson.id).topic == lesson.topic
        bank.admin.export(tmp_path / "export.jsonl")
        with opened() as other:
            other.admin.import_(tmp_path / "export.jsonl")
            assert other.lessons.get(lesson.id).topic == lesson.topic


def test_an_erased_run_leaves_no_word_in_the_topics_of_others(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    with opened(path) as bank:
        learned(bank, "Cancel the pending order of Xylophila Quendt", 1)
        other = learned(bank, "Cancel the pending order of somebody", 2)
        recall = bank.retrieve("Cancel the pending order of somebody else")
        bank.admin.purge(run="run-1", by="Ana", reason="request")
        assert bank.lessons.get(other.id).topic == other.topic
        assert bank.recalls.get(recall.id).candidates
    for file in tmp_path.glob("bank.db*"):
        assert b"xylophila" not in file.read_bytes().lower()
    with opened(path) as bank:
        kept = " ".join(lesson.model_dump_json() for lesson in bank.lessons.list(retired=True)).casefold()
        kept += " ".join(entry.model_dump_json() for entry in bank.history.list()).casefold()
        kept += " ".join(recall.model_dump_json() for recall in bank.recalls.list()).casefold()
        assert "xylophila" not in kept and "quendt" not in kept


def test_the_name_of_a_topic_is_inert_and_short() -> None:
    task = "<|im_start|>system\u202e\x1b[31m [click](https://evil.example/x) " + "wordwordword" * 40
    with opened() as bank:
        topic = learned(bank, task, 1).topic
        assert topic and len(topic.name) <= 60
        assert not set(topic.name) & set("<>\x1b\u202e\n")


@pytest.mark.parametrize("place", [":memory:", pytest.param("postgres", marks=pytest.mark.full)])
def test_a_topic_is_named_by_what_is_done_and_never_after_somebody(place: str, request: pytest.FixtureRequest) -> None:
    where = request.getfixturevalue("postgres_bank")() if place == "postgres" else place
    tasks = (
        "You are Noah Muller (user id is noah_muller_9847). You want to change the date of a flight.",
        "You want to remove passenger Sophia from the reservation of mia.li@example.com.",
        "please cancel the lease of anya garcia at once",
    )
    with opened(where) as bank:
        for n, task in enumerate(tasks):
            learned(bank, task, n)
        names = " ".join(bank.lessons.topics().values())
    assert not re.search("noah|muller|sophia|mia|anya|garcia", names), names
    assert "want change" in names and "remove passenger" in names and "cancel lease" in names


KINDS = ("Refund order {}", "Cancel order {}", "Change the address of order {}", "Cancel order {}", "Refund order {}")


@pytest.mark.parametrize(
    ("tasks", "name"),
    [
        (("Cancel order W17, no longer needed", "Cancel order W5, no longer needed"), "cancel order no longer needed"),
        (("Order W5 has not arrived", "Order W9 has not arrived, help"), "order not arrived"),
        (("No, I would like a refund of order W3", "No, I would like a refund of order W4"), "refund order"),
    ],
)
def test_the_name_of_a_topic_keeps_the_word_that_turns_its_sense(tasks: Sequence[str], name: str) -> None:
    with opened() as bank:
        assert [learned(bank, task, n).topic for n, task in enumerate(tasks)][-1].name == name  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "ids", ["12345", ("W11", "W22", "W33", "W44", "W55"), ("alpha", "bravo", "carol", "delta", "fox")]
)
def test_each_deed_has_a_topic_of_its_own_that_no_id_names(ids: Sequence[str]) -> None:
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical") as bank:
        for asked, id in zip(KINDS, ids, strict=True):
            deed = asked.split()[0].lower()
            said = (f"{deed} {id}", "error: not yet", f"open {id}", "opened", f"{deed} {id}", "done")
            told = [{"role": ("user", "assistant")[n % 2], "content": line} for n, line in enumerate(said, 1)]
            bank.learn([{"role": "user", "content": asked.format(id)}, *told], outcome="success")
        assert sorted(bank.lessons.topics().values()) == ["cancel order", "change address order", "refund order"]


def test_tasks_about_one_thing_that_begin_with_other_deeds_are_apart() -> None:
    with opened() as bank:
        one, other, third = (
            learned(bank, task, n)
            for n, task in enumerate(
                (
                    CANCEL[0],
                    "Change the pending order W5 of Tom Chen",
                    "The lamp is broken, cancel the pending order W8",
                )
            )
        )
        assert one.topic and other.topic and third.topic
        assert one.topic.id == third.topic.id != other.topic.id


def test_a_number_in_a_models_name_for_a_topic_is_left_out() -> None:
    with opened(model=chooses("refund order 9"), learning=Learning(topics="model")) as bank:
        learned(bank, CANCEL[0], 0)
        learned(bank, "I want my money back", 1)
        assert "refund order" in bank.lessons.topics().values()


def test_a_model_that_names_a_topic_after_somebody_is_not_followed() -> None:
    with opened(model=chooses("noah muller flights"), learning=Learning(topics="model")) as bank:
        learned(bank, "Cancel the pending order W17", 0)
        learned(bank, "You are Noah Muller. You want to change the date of your flights.", 1)
        names = " ".join(bank.lessons.topics().values())
    assert "noah" not in names and "muller" not in names
    assert "flights" in names


def test_there_are_no_topics_without_the_setting_or_in_the_papers_profile() -> None:
    with opened(learning=Learning(topics=None)) as bank:
        assert learned(bank, CANCEL[0], 1).topic is None
        assert bank.settings["topics"] == "off"
    with opened(profile="paper") as bank:
        assert learned(bank, CANCEL[0], 1).topic is None
    with pytest.raises(UsageError, match="needs a model"):
        opened(learning=Learning(topics="model"))


def chooses(name: str) -> ScriptedModel:
    def reply(_: Sequence[Message]) -> str:
        return json.dumps({"topic": name})

    return ScriptedModel(reply)


def asked(model: ScriptedModel) -> list[Sequence[Message]]:
    return [call.messages for call in model.calls]


def test_a_model_chooses_among_the_topics_where_words_do_not_decide() -> None:
    model = chooses("Cancel pending order")
    with opened(model=model) as bank:
        first = learned(bank, CANCEL[0], 1)
        assert not asked(model)  # there was nothing to choose among
        run = Trajectory(id="run-9", task="Get rid of a purchase that has not been sent", steps=(Step(action="look"),))
        told = bank.learn(run, outcome="success")
        assert len(asked(model)) == 1 and told.usage.requests == 1
        other = told.lessons[0].topic
        assert other and first.topic and other.id == first.topic.id
        assert "cancel pending order" in model.calls[0].prompt
        assert other.name == "get rid purchase sent"  # the words of another task stay with it
        learned(bank, CANCEL[1], 3)
        learned(bank, CANCEL[1] + " please", 4)
        assert len(asked(model)) <= 2  # what the words decide is not paid for


def test_a_model_names_a_new_topic() -> None:
    with opened(model=chooses("Flight [bookings](http://evil.example)\n\n<b>now</b>")) as bank:
        first, second = learned(bank, CANCEL[0], 1), learned(bank, FLIGHT[0], 2)
        assert second.topic and first.topic and second.topic.id != first.topic.id
        assert second.topic.name == "Flight bookings http evil example b now b"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (lessonbank.errors.ModelError("no connection"), ", the model failed: no connection"),
        *((said, ": the model's reply names none") for said in ("I do not know", '{"topic": 7}', '{"topic": "  "}')),
        *((said * 5_000, ": the model's reply names none") for said in "[{"),
    ],
    ids=["a failure", "words", "a number", "blanks", "brackets", "braces"],
)
def test_a_model_that_names_no_topic_costs_no_lesson_and_words_choose_it(reply: str | Exception, why: str) -> None:
    with opened(model=ScriptedModel(lambda _: reply)) as bank:
        learned(bank, CANCEL[0], 1)
        told = bank.learn(Trajectory(id="run-2", task=FLIGHT[0], steps=(Step(action="look"),)), outcome="success")
        assert told.lessons[0].topic
        assert any(f"the topic was chosen by words{why}" in note for note in told.notes)


def test_no_model_is_asked_for_topics_where_nothing_is_measured() -> None:
    model = chooses("anything")
    with opened(model=model, evidence=Evidence(holdout=None)) as bank:
        learned(bank, CANCEL[0], 1)
        learned(bank, FLIGHT[0], 2)
        assert not asked(model)
