"""A reply in the paper's Markdown gives lessons; one without a lesson never passes for "nothing to learn" unsaid."""

from __future__ import annotations

import pytest

import lessonbank
from lessonbank.contracts.records import Learned, Step, Trajectory

RUN = Trajectory(
    task="Cancel order W1",
    steps=(
        Step(thought="look", action="open the order page", observation="order W1 is pending"),
        Step(thought="cancel", action="click cancel", observation="cancelled"),
    ),
    answer="done",
)
FIELDS = ("Check the order first", "Look at it before you cancel.", "Open the order page. Cancel only what is pending.")
READ = {
    "as the prompt asks": "# Memory Item 1\n## Title {}\n## Description {}\n## Content {}",
    "in a fence": "It worked because…\n\n```\n# Memory Item 1\n## Title {}\n## Description {}\n## Content {}\n```",
    "the value below its heading": "# Memory Item 1\n\n## Title\n\n{}\n\n## Description\n\n{}\n\n## Content\n\n{}",
    "the paper's letter for a number": "# Memory Item i\n## Title {}\n## Description {}\n## Content {}",
    "with colons": "# Memory Item 1:\n## Title: {}\n## Description: {}\n## Content: {}",
    "in bold": "**Memory Item 1**\n**Title:** {}\n**Description:** {}\n**Content:** {}",
    "as a list": "1. **Title**: {}\n   **Description**: {}\n   **Content**: {}",
    "the title in the heading": "### Memory Item 1: {}\n#### Description\n{}\n#### Content\n{}",
    "after thoughts": "<think># Memory Item 1</think>\n# Memory Item 1\n## Title {}\n## Description {}\n## Content {}",
    "with Windows line ends": "# Memory Item 1\r\n## Title {}\r\n## Description {}\r\n## Content {}",
}
UNREADABLE = {
    "empty": "",
    "prose": "The agent did well. It opened a page and clicked.",
    "a refusal": "I cannot help with that.",
    "a title alone": "# Memory Item 1\n## Title Check the order first",
    "the form left blank": "# Memory Item 1\n## Title <title>\n## Content <1 to 3 sentences>",
    "praise": "No lesson could be more important than this one: look at the order before you cancel it.",
}


async def learned(reply: str) -> tuple[Learned, int]:
    async def model(prompt: str) -> str:
        return reply

    bank = await lessonbank.connect_async(":memory:", scope="a", profile="paper", model=model, embedder="hashing")
    async with bank:
        return await bank.learn(RUN, outcome="success"), len(await bank.runs.pending())


@pytest.mark.full
@pytest.mark.anyio
@pytest.mark.parametrize("form", READ)
async def test_a_reply_in_a_form_of_the_paper_gives_its_lesson(form: str) -> None:
    result, waiting = await learned(READ[form].format(*FIELDS))
    assert [(one.title, one.description, one.content) for one in result.lessons] == [FIELDS]
    assert waiting == 0


@pytest.mark.full
@pytest.mark.anyio
@pytest.mark.parametrize("form", UNREADABLE)
async def test_a_reply_without_a_readable_lesson_leaves_the_run_pending_with_a_note(form: str) -> None:
    result, waiting = await learned(UNREADABLE[form])
    assert not result.lessons
    assert waiting == 1
    assert any("kept for another try" in note for note in result.notes)


@pytest.mark.anyio
@pytest.mark.parametrize("reply", ["No lessons.", "[]", '{"items": []}', "There are no reusable memory items here."])
async def test_a_model_that_finds_nothing_to_learn_is_quoted_in_a_note(reply: str) -> None:
    result, waiting = await learned(reply)
    assert waiting == 0
    assert any("says that there is no lesson" in note for note in result.notes)
