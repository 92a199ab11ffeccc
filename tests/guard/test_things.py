"""A lesson keeps the names of products, programs and companies; a person's name never stays, however it stands."""

from __future__ import annotations

import pytest

from lessonbank.contracts.records import (
    Action,
    Extraction,
    Lesson,
    Observation,
    Run,
    Step,
    ToolCall,
    Trajectory,
    Verdict,
)
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.gate._things import Things


def told(content: str, task: str, seen: str = "done", *, answer: str | None = None, title: str = "Look first") -> str:
    """What the gate lets in of a lesson of one run; empty where it rejects it."""
    step = Step(
        action=Action(calls=(ToolCall(name="look", arguments={}),)),
        observations=(Observation(text=seen, source="tool"),),
    )
    run = Run(trajectory=Trajectory(task=task, steps=(step,), answer=answer), verdict=Verdict(outcome="success"))
    drawn = LessonGate()(Extraction(lessons=(Lesson(title=title, content=content),)), [run], shown=())
    return drawn.lessons[0].content if drawn.lessons else ""


HONEST = [
    # What everybody knows.
    ("Typing Apple MacBook Pro into the field sets nothing: wait for the list and choose the row.",
     "Create an asset with the model Apple MacBook Pro and submit it", "ok"),
    ("The box of Adobe Acrobat is covered by its label; click the label once.",
     "Order a laptop with Adobe Acrobat and Adobe Creative Cloud, please", "ok"),
    ("In the Magento Admin the dashboard shows all time; open the report and set both dates.",
     "Find the best seller in the Magento Admin", "ok"),
    ("PostgreSQL keeps the order and Microsoft SharePoint does not, so sort before you compare.",
     "Copy the list of Microsoft SharePoint into PostgreSQL", "ok"),
    ("Choose ACME North America in the list of companies, where several begin alike.",
     "Set the company to ACME North America on the form", "ok"),
    # A company or a body, by the word that it ends with.
    ("Open the page of Orrin Valley University, whose last paragraph has the year.",
     "When was the Orrin Valley University founded?", "ok"),
    ("The form of Quellan Brock GmbH rejects a blank in the number, so strip it first.",
     "Send the report to Quellan Brock GmbH today", "ok"),
    # What the run shows to be a thing.
    ("The list for Zephyr Lamp redraws the page, so set it before the other fields.",
     'Go to the store and order 3 "Zephyr Lamp"', "[12] link 'Zephyr Lamp'"),
    ("The module Orbit Ledger has two menus of that name; take the one below Finance.",
     'Open the "Orbit Ledger" application and export the list', "[12] link 'Orbit Ledger'"),
    ("Stock of the Zephyr Lamp is told by the warehouse only, so ask it before the order.",
     "Tell me how many we have", '{"product_name": "Zephyr Lamp", "stock": 0}'),
    ("Quillon Forms drops an empty field before it validates, so test for the key.",
     "Forms lose empty fields in the Quillon Forms framework", "class Field: pass"),
    ("The parser of brambletext reads the file twice; patch the second pass.",
     "Crash on an empty line", "import brambletext\nModuleNotFoundError: No module named brambletext"),
    # What programs say, and no name.
    ("A key with null and a missing key look alike to the lookup, so test for both.",
     "The lookup is wrong", "199- # this is NULL on the other database"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "task", "seen"), HONEST)
def test_a_lesson_about_a_thing_is_kept_word_for_word(content: str, task: str, seen: str) -> None:
    assert told(content, task, seen) == content


NAMES = [
    "Jane Roe", "Sophia Silva", "José Álvarez", "Anne-Marie O'Brien", "Ludwig van Beek", "Søren Kjær", "Анна Каренина",
    "Ελένη Παπαδοπούλου", "田中太郎", "王小明", "김민수", "محمد العلي", "רות כהן", "राम शर्मा", "Nguyễn Thị Hoa",
    "Łukasz Żak", "Maria de la Cruz", "Robert McDonald", "Xi Jinhua", "Django Reinhardt", "Adobe Jones",
    "Kevin Okonkwo-Price", "D'Arcy Whitfield", "สมชาย ใจดี", "Գրիգոր Մինասյան", "Ștefan Ionescu",
]  # fmt: skip
PLACES = [
    ("Refund the order of {0} before noon.", "ok"),
    ('Assign the incident to "{0}" and close it.', "[12] textbox 'Assigned to' value='{0}'"),
    ('Create a user with a value of "{0}" for field "Manager".', "[3] textbox 'Manager' value=''"),
    ('Send 2 badges to "{0}" at the front desk.', "sent"),
    ("Open the page of {0} in the portal.", "RootWebArea '{0} | Portal', focused\n[7] heading '{0}'"),
    ("Check in everybody but {0}.", "[44] checkbox '{0}', checked='false'\n[45] button '{0}'"),
    ("Order a new machine: {0} Laptop is broken.", "ok"),
    ("Paginator crashes on empty pages\n(last modified by {0})", "class Paginator: pass"),
    ("Fix the header of the module.", "# Author: {0}\n# Maintainer: {0} <x@example.org>\nimport os"),
    ("Tell the {0} application team that it failed.", "sent"),
    ("The model for the studio is {0}.", '{{"model": "{0}", "vendor": "{0}"}}'),
    ("Mail {0} 3.0 hours after the release.", "ok"),
    ("Tell {0} that it is sold out.", '{{"product": "Zephyr Lamp", "customer": "{0}"}}'),
    ("Add {0} Group members to the ticket.", "Group created for {0}"),
    ('Order 2 "Zephyr Lamp" for {0}.', "ok"),
    ("Say who called.", "Call log\nfrom {0}, 3 minutes\nimport {0}'s number\nfrom {0}"),
    ('Open the "{0}" application of the customer.', '{{"applicant_name": "{0}"}}'),
]
SAYS = "The stored record wins over what is said; {0} was served wrongly because nobody opened it."


@pytest.mark.parametrize(("task", "seen"), PLACES)
def test_a_person_is_no_thing_wherever_the_name_stands(task: str, seen: str) -> None:
    kept = {name: told(SAYS.format(name), task.format(name), seen.format(name)) for name in NAMES}
    parts = {name: [name, *(part for part in name.split() if len(part) > 5 and part != "Django")] for name in NAMES}
    assert {name: text for name, text in kept.items() if any(part in text for part in parts[name])} == {}


def test_a_word_that_somebody_is_called_by_names_no_thing() -> None:
    content = "Ask for the lamp of Maria Zephyr, and let Zephyr sign for it at the door."
    assert told(content, 'Order 3 "Zephyr Lamp" for Maria Zephyr') == ""
    seen = '{"product": "Zephyr Lamp", "customer": "Maria Zephyr"}'
    assert "Zephyr" not in told(content, "Send what was ordered", seen)


def test_the_answer_of_a_run_is_no_thing_that_a_lesson_may_tell() -> None:
    content = "The product that sold best in spring is Zephyr Lamp, so say that."
    seen = '{"product": "Zephyr Lamp", "sold": 7}'
    assert told(content, "What sold best?", seen, answer="Zephyr Lamp") == ""
    assert told(content, "Which shelf is empty?", seen, answer="The third one") == content


def test_a_person_beside_a_thing_is_masked_and_the_thing_stays() -> None:
    content = "The box of Zephyr Lamp is hidden until Jane Roe has signed for it."
    seen = '{"product": "Zephyr Lamp", "customer": "Jane Roe"}'
    assert told(content, "Look at the box", seen) == content.replace("Jane Roe", "<customer>")


def test_what_retells_a_short_task_is_marked_and_only_a_copy_is_rejected() -> None:
    task = "Search every airport of New York for a direct flight and book the cheapest one for Friday"
    lesson = "New York has three airports in the search tool. Search each one before a direct flight is denied."
    assert told(lesson, task) == lesson
    assert told("Search every airport of New York for a direct flight, cheapest on Friday.", task) == ""


def test_runs_without_things_change_nothing() -> None:
    things = Things.of([Trajectory(task="Refund the order of Jane Roe")])
    assert things.words == frozenset()
    assert things.mask_but_things("Ask Jane Roe", str.upper) == "ASK JANE ROE"
