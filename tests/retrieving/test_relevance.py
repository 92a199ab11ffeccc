"""Without relevant experience nothing is shown, and the recall says why; seen on a real bank."""

from __future__ import annotations

from typing import Any

import pytest
from listed import listed, run

import lessonbank
from lessonbank import ReasoningBank, Retrieval
from lessonbank.search import default_floor, overlap
from lessonbank.testing.settings import grouped

CANCEL = "Cancel the pending order #W{}"
FILL = ("Water the plants on floor {}", "Print the agenda of meeting {}", "Rename branch {} of the repository")


def bank_of(*tasks: str, **options: Any) -> ReasoningBank:
    """A bank that withholds nothing and learned these tasks."""
    settings: dict[str, Any] = {"embedder": "lexical", "holdout": None, "caps": None, "admission": None, **options}
    bank = lessonbank.connect(":memory:", scope="t", **grouped(**settings))
    for task in tasks:
        bank.learn(run(task), outcome="success")
    return bank


def tasks_of(size: int, *, related: bool) -> list[str]:
    """So many tasks, one of them a cancellation or none."""
    fill = [FILL[n % 3].format(n) for n in range(size)]
    return [CANCEL.format(123), *fill[1:]] if related else fill


@pytest.mark.parametrize("orders", [1, 10])
def test_ordering_a_pizza_recalls_no_cancellation(orders: int) -> None:
    with bank_of(*(CANCEL.format(n) for n in range(orders))) as bank:
        for task in ("order pizza", "Order a pizza for the office party"):
            recall = bank.retrieve(task)
            assert (recall.text, recall.candidates) == ("", ())
            assert recall.notes == ("nothing reached the floor of 0.07: the closest past task has 0.000",)
        assert bank.retrieve(CANCEL.format("999")).shown


@pytest.mark.parametrize("size", [1, 10, 60])
@pytest.mark.full
def test_the_floor_by_words_holds_for_banks_of_any_size(size: int) -> None:
    with bank_of(*tasks_of(size, related=True)) as bank:
        assert bank.retrieve("Please cancel order #W777, it is still pending").shown
        assert not bank.retrieve("Translate a poem about the sea").lessons
    with bank_of(*tasks_of(size, related=False)) as bank:
        assert not bank.retrieve("Please cancel order #W777, it is still pending").lessons


@pytest.mark.full
def test_a_bank_full_of_one_template_still_finds_it() -> None:
    """Every word of the template stands in every task, so BM25 gives it almost nothing."""
    with bank_of(*(CANCEL.format(n) for n in range(60))) as bank:
        recall = bank.retrieve(CANCEL.format("999"))
        assert recall.shown
        assert recall.candidates[0].score < 0.05


def test_a_floor_of_zero_shows_the_nearest_as_the_paper_does() -> None:
    paper = {"profile": "paper", "extractor": None, "admission": None}
    for options in ({"retrieval": Retrieval(floor=0)}, paper):
        with bank_of("Cancel the pending order #W1", **options) as bank:
            assert bank.retrieve("order pizza").shown


def test_a_floor_of_ones_own_holds_in_the_place_of_the_default() -> None:
    with bank_of("Find the red shoes in the shop", retrieval=Retrieval(floor=0.9)) as bank:
        assert "floor of 0.9" in bank.retrieve("Find the blue shoes in the shop").notes[0]
        assert bank.retrieve("Find the red shoes in the shop").shown


def test_vectors_of_hashing_have_a_floor_of_their_own_and_unknown_embedders_none() -> None:
    with bank_of("Cancel the pending order #W1", embedder="hashing") as bank:
        recall = bank.retrieve("Translate a poem about the sea")
        assert recall.text == ""
        assert recall.notes[0].startswith("nothing reached the floor of 0.12: the closest past task has ")
        assert bank.retrieve("Cancel my order #W2").shown
    assert default_floor("openai:text-embedding-3-small") is None


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Cancel the order", "Cancel the order", 1.0, 1.0),
        ("Cancel order #W1", "Cancel order #W2", 1.0, 1.0),
        ("Save the invoice", "Save the receipt", 0.5, 0.5),
        ("Refund", "Refund the customer", 0.7, 0.8),
        ("Order a pizza", "Cancel the order", 0.0, 0.0),
        ("Order a pizza", "Water the plants", 0.0, 0.0),
        ("1", "2", 0.0, 0.0),
    ],
)
def test_what_two_tasks_have_in_common_does_not_depend_on_a_bank(
    one: str, other: str, least: float, most: float
) -> None:
    assert least <= overlap(one, other) == overlap(other, one) <= most


def test_when_the_embedder_fails_words_are_held_to_the_floor_of_words() -> None:
    with bank_of("Cancel the pending order #W1", embedder=Failing()) as bank:
        assert not bank.retrieve("order pizza").lessons
        recall = bank.retrieve("Cancel the pending order #W2")
        assert recall.shown
        assert "searched by words only" in recall.notes[0]


class Failing:
    """Embeds what is learned and never a question."""

    space = "hashing-v1-512"

    async def embed(self, texts: Any, /, *, role: str) -> Any:
        if role == "query":
            raise lessonbank.errors.ModelError("the server is down")
        from lessonbank.providers.embedders.hashing import HashingEmbedder

        return HashingEmbedder().rows(texts)


# --- why a text is empty ---------------------------------------------------------------------------------------------


async def long(attempts: Any) -> lessonbank.Extraction:
    return lessonbank.Extraction(lessons=(lessonbank.Lesson(title="Long", content="many words " * 60),))


@pytest.mark.parametrize(
    ("learned", "asked", "options", "told"),
    [
        ([], "Cancel my order", {}, "there is no lesson in scope 't' yet"),
        ([CANCEL], "Quarterly tax statements", {}, "no past task in scope 't' is like this one"),
        ([CANCEL], CANCEL, {"trust": "reviewed"}, "past tasks found: 1, none trusted yet (reviewed)"),
        (
            [CANCEL],
            CANCEL,
            {"holdout": lessonbank.evidence.Holdout(0.999999, recalls=0.0)},
            "each lesson that was found was withheld at random, to measure what it changes",
        ),
        (
            [CANCEL],
            CANCEL,
            {"budget": 100, "extractor": long},
            "no lesson that was found fits the budget (1 found): raise budget=",
        ),
    ],
    ids=["an empty scope", "no word in common", "not trusted yet", "each withheld", "a budget that is too small"],
)
def test_why_a_text_is_empty_is_told(learned: list[str], asked: str, options: dict[str, Any], told: str) -> None:
    with bank_of(*learned, **options) as bank:
        assert bank.retrieve(asked).notes == (told,)


def test_lessons_that_may_not_be_shown_are_counted() -> None:
    with bank_of("Cancel the order") as bank:
        lessons = bank.lessons.list(limit=10_000)[::-1]
        for lesson in lessons:
            bank.lessons.retire(lesson.id, reason="wrong")
        (note,) = bank.retrieve("Cancel the order").notes
        assert note == f"no lesson in scope 't' may be shown: {len(lessons)} retired, 0 quarantined"


def test_what_was_learned_from_such_tasks_and_is_hidden_is_told_and_not_a_floor() -> None:
    with bank_of("Cancel the order", "Water the plants") as bank:
        own = [
            one for one in bank.lessons.list(limit=100) if bank.lessons.experience(one.id).task == "Cancel the order"
        ]
        for lesson in own:
            bank.lessons.retire(lesson.id, reason="wrong")
        why = f"no lesson in scope 't' for a task like this one may be shown: {len(own)} retired"
        for asked in ("Cancel the order", "Cancel the order of the blue plants"):
            (note,) = bank.retrieve(asked).notes
            assert (str(note), note.code) == (why, "not_shown")
            assert bank.recalls.preview(asked).notes == (why,)
        assert bank.retrieve("Quarterly tax statements").notes == ("no past task in scope 't' is like this one",)


def test_a_recall_that_was_withheld_whole_says_so() -> None:
    policy = lessonbank.evidence.Holdout(0.1, recalls=0.999999)
    with bank_of("Cancel the order", holdout=policy) as bank:
        recall = bank.retrieve("Cancel the order")
        assert recall.control
        (note,) = recall.notes
        assert note.startswith("all memory was withheld from this task at random (probability 0.999999)")


def test_a_text_that_is_there_needs_no_reason_and_the_reason_is_on_the_kept_receipt() -> None:
    with bank_of("Cancel the order") as bank:
        assert bank.retrieve("Cancel the order").notes == ()
        recall = bank.retrieve("Quarterly tax statements")
        assert bank.recalls.explain(recall.id).notes == recall.notes
        assert recall.kept


def test_a_retriever_of_ones_own_takes_a_preface_and_no_other_setting_of_retrieval() -> None:
    with bank_of(retriever=listed(), retrieval=Retrieval(preface="cite")) as bank:
        assert bank.retrieve("Cancel the order").retriever == "experience/listed"
    with pytest.raises(lessonbank.errors.UsageError, match="takes limit, budget, preface and fit only"):
        bank_of(retriever=listed(), retrieval=Retrieval(floor=0.5, preface="cite"))


def test_vectors_of_hashing_show_no_task_that_shares_no_word_with_this_one() -> None:
    near = "Rebooking a reservation"  # parts of words look alike
    with bank_of(near, embedder="hashing", retrieval=Retrieval(floor=0.12)) as bank:
        assert bank.retrieve("Unbooked reservations").shown
    with bank_of(near, embedder="hashing") as bank:
        recall = bank.retrieve("Unbooked reservations")
        assert recall.text == ""
        assert recall.notes[0].startswith("nothing reached the floor of 0.05: the closest past task has 0.000")


@pytest.mark.full
def test_only_as_many_are_shown_as_stand_out_like_the_best() -> None:
    far = "Find the pending agenda for the meeting with the board"
    tasks = ("Cancel the pending order #W1", "Cancel the pending invoice", far)
    asked = "Cancel the pending order #W2"
    for by in ("lexical", "hashing"):
        with bank_of(*tasks, embedder=by) as bank:
            every = bank.retrieve(asked).scores.values()
        with bank_of(*tasks, embedder=by, retrieval=Retrieval(relative_floor=0.8)) as bank:
            left = bank.retrieve(asked).scores.values()
        assert min(every) < 0.8 * max(every)
        assert sorted(left) == [score for score in sorted(every) if score >= 0.8 * max(every)]
