"""No text of the structural corpus leaves its place, on any surface: whatever it says, it stays text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structural_checks import TOKENS, Case, bad_characters, fenced, live_in, read, roles_in, tokens_in
from typer.testing import CliRunner

import lessonbank
from lessonbank._base.checks import replace_surrogates
from lessonbank.cli import app
from lessonbank.contracts.lesson_block import write_block
from lessonbank.contracts.records import Experience, Found, Lesson, Match, Observation, Run, Step, Trajectory, Verdict
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import JudgeError, LessonbankError, ModelError
from lessonbank.guard.sanitise import canonical, clean, fence, one_line
from lessonbank.learning.consolidation import Recognise
from lessonbank.learning.extraction.llm import LLMExtractor
from lessonbank.learning.judging.llm import LLMJudge
from lessonbank.learning.judging.parsing import parse_verdict
from lessonbank.providers.models.function import FunctionModel
from lessonbank.search.injection import Injector
from lessonbank.testing import ScriptedModel
from lessonbank.text.prompts import load

pytestmark = pytest.mark.full

HOSTILE = read("structural")[:: 1 if "LESSONBANK_SOAK" in os.environ else 2]
"""Every other case; all of them with `LESSONBANK_SOAK`, and always in `lessonbank_bench.measure.security`."""
SHORT = [case for case in HOSTILE if case.kind != "large"]
BENIGN = read("structural_benign")
THOUGHTS = frozenset({"<think>", "</think>", "[THINK]"})
"""What the reply of a model may hold, and so what `clean` leaves."""
NONCE = "0badc0de"
RECALL = "1" * 32


def each(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """One test for each class of the corpus, all of its cases in it."""
    kinds = list(dict.fromkeys(case.kind for case in cases))
    groups = [[case for case in cases if case.kind == kind] for kind in kinds]
    return pytest.mark.parametrize("cases", groups, ids=kinds)


def inside(text: str, label: str, nonce: str) -> list[str]:
    """The lines between the two marker lines of a fence; there are two, and the second one closes it."""
    lines = text.split("\n")
    assert lines.count(f"<<<{label} {nonce}>>>") == lines.count(f"<<<end {label} {nonce}>>>") == 1
    opening, closing = lines.index(f"<<<{label} {nonce}>>>"), lines.index(f"<<<end {label} {nonce}>>>")
    within = lines[opening + 1 : closing]
    assert nonce not in "\n".join(line.removeprefix(f"{nonce}| ") for line in within)
    return within


def assert_inert(text: str, *, but: frozenset[str] = frozenset(), id: str = "") -> None:
    """No code point that hides, no token of a chat template, no line that opens a turn."""
    assert not bad_characters(text), id
    assert not tokens_in(text, TOKENS - but), id
    assert not roles_in(text), id


# --- the corpus ------------------------------------------------------------------------------------------------------


def test_the_corpus_is_large_enough() -> None:
    assert len(HOSTILE) >= 240
    assert len(BENIGN) >= 150
    assert len({case.text for case in HOSTILE}) > 0.97 * len(HOSTILE)
    assert len({case.text for case in BENIGN}) == len(BENIGN)


# --- the guard -------------------------------------------------------------------------------------------------------


@each(HOSTILE)
def test_hostile_text_comes_out_inert(cases: list[Case]) -> None:
    for case in cases:
        text = case.against(NONCE)
        assert_inert(clean(text), but=THOUGHTS, id=case.id)
        form = canonical(text)
        assert_inert(form, id=case.id)
        assert canonical(form) == form, case.id
        assert not live_in(form), case.id
        assert not re.search(r"<<<\s*/?\w[\w ()-]*>>>", form), case.id
        assert "\n" not in one_line(text), case.id
        form.encode()


@each(HOSTILE)
def test_no_text_closes_a_fence_or_forges_one(cases: list[Case]) -> None:
    for case in cases:
        for label in ("run", "lessons"):
            assert_inert("\n".join(inside(fence(case.against(NONCE), label=label, nonce=NONCE), label, NONCE)))
            lined = write_block(canonical(case.against(NONCE)), label=label, nonce=NONCE)
            first, *lines, last = inside(lined, label, NONCE)
            assert first == last == "~~~"
            assert all(line.startswith(f"{NONCE}| ") for line in lines), case.id


@each(SHORT)
def test_a_page_of_two_lessons_has_nothing_to_click_or_load(cases: list[Case]) -> None:
    """Also where the first one's backticks are to turn the second one's code into a link."""
    for case in cases:
        two = f"{canonical(case.text)}\n{canonical('Use `![x](https://evil.example/x)` so.')}"
        assert not live_in(f"Lessons.\n\n{write_block(two, label='lessons', nonce=NONCE)}"), case.id


def test_harmless_text_stays_as_it_is_unless_a_named_rule_changes_it() -> None:
    changed = {case.id for case in BENIGN if canonical(case.text) != case.text}
    named = {case.id for case in BENIGN if case.changed_by}
    assert changed == named
    assert len(named) <= 0.08 * len(BENIGN)
    assert not [case.id for case in BENIGN if live_in(canonical(case.text))]


def test_of_harmless_text_no_letter_is_lost() -> None:
    for case in BENIGN:
        if case.changed_by in {"address", "tag", "token", "speaker", ""}:
            assert re.sub(" ", "", canonical(case.text)) == re.sub(" ", "", case.text)


def test_code_is_read_back_from_the_block_as_it_was() -> None:
    for case in BENIGN:
        if "code" not in case.kind or case.changed_by:
            continue
        lines = recalled(lesson("Use this", case.text)).split("\n")
        opening = next(n for n, line in enumerate(lines) if line.startswith("<<<lessons "))
        nonce = lines[opening][11:19]
        body = [line.removeprefix(f"{nonce}| ") for line in lines[opening + 1 : -1] if line != "~~~"]
        start = body.index("  when: seen before") + 1
        assert "\n".join(line[2:] for line in body[start:]).strip() == case.text.strip(), case.id


@pytest.mark.parametrize(
    "text",
    [
        "[y](a`b) [x](https://`) `https://e.x`",
        "[y](a`b) https://e.x `c",
        "[y](a 't`') `![x](https://e.x)`",
    ],
)
def test_a_link_that_swallows_a_backtick_does_not_keep_the_next_address_alive(text: str) -> None:
    form = canonical(text)
    assert not live_in(form)
    assert canonical(form) == form


def test_a_fence_in_a_list_keeps_its_code_and_a_longer_text_loses_its_links() -> None:
    text = '1. Write the file:\n   ```json\n   {"url": "https://example.org"}\n   ```\n2. Start the job.'
    assert canonical(text) == text
    assert "https: //e.x" in canonical(f"`https://e.x` {'word ' * 2_000}")


# --- the block in a prompt -------------------------------------------------------------------------------------------


def lesson(title: str, content: str, description: str = "seen before") -> Lesson:
    return Lesson(title=title.strip() or "t", content=content.strip() or "c", description=description)


def recalled(*lessons: Lesson, style: str = "general") -> str:
    injector = Injector(load(f"{style}/inject"), style="paper" if style == "paper" else "full", budget=30_000)
    found = Found(matches=(Match(experience=Experience(scope="s", task="jump", lessons=lessons), score=0.5),))
    return injector.recall(found, id=RECALL, task="jump", scope="s", retriever="r", space=None).text


@each(SHORT)
@pytest.mark.parametrize("style", ["general", "paper"])
def test_the_block_holds_every_lesson_and_nothing_else(cases: list[Case], style: str) -> None:
    nonce = digest(RECALL)[:8]
    frame = recalled(lesson("t", "c"), style=style).split("<<<")[0]
    for case in cases:
        text = case.against(nonce)
        block = recalled(lesson(text, "plain"), lesson("plain", text, text), style=style)
        assert block.startswith(frame), case.id
        within = [line.removeprefix(f"{nonce}| ") for line in inside(block, "lessons", nonce) if line != "~~~"]
        assert [line[:4] for line in within if not line.startswith("  ")] == ["[1] ", "[2] "], case.id
        assert block.rstrip().endswith(f"<<<end lessons {nonce}>>>"), case.id
        assert_inert(block, but=THOUGHTS, id=case.id)
        assert all(block.split("\n").count(line) == 1 for line in frame.split("\n") if line), case.id


# --- prompts of judge, extractor and merging -------------------------------------------------------------------------


def run_of(text: str) -> Trajectory:
    seen = Observation(text=text, name=text[:60], source="tool")
    step = Step(thought=text, action=text, observations=(seen,))
    steps = (step, Step(action="stop"))
    return Trajectory(task=text if text.strip() else "t", instructions=text, steps=steps, answer=text, error=text)


def outside_of(prompt: str) -> list[str]:
    """The lines of a prompt that stand in no fence, its nonce taken out. The agent's instructions have their own."""
    lines = prompt.split("\n")
    for agent in re.findall(r"^<<<agent ([0-9a-f]{8})>>>$", prompt, re.MULTILINE):
        _, lines = fenced(lines, "agent", agent)
    plain = "\n".join(lines)
    codes = set(re.findall(r"^<<<[\w ()]+ ([0-9a-f]{8})>>>$", plain, re.MULTILINE))
    assert len(codes) == 1
    plain = plain.replace(codes.pop(), "")
    rest = re.sub(r"^<<<(?!end )([\w ()]+) >>>$.*?^<<<end \1 >>>$", "(fenced)", plain, flags=re.MULTILINE | re.DOTALL)
    assert "<<<" not in re.sub(r"<<<(?:end )?[\w .…()]* ?>>>", "", rest)
    return rest.split("\n")


async def judge_prompt(text: str) -> str:
    model = ScriptedModel(["no verdict"])
    await LLMJudge(model)(run_of(text))
    return model.calls[0].prompt


async def extractor_prompt(text: str) -> str:
    model = ScriptedModel(['{"items": []}'])
    prompts = {
        role: load(f"general/{name}") for role, name in zip(("success", "failure", "contrast"), FILES, strict=True)
    }
    verdict = Verdict(outcome="success", reason=text, source="judge", confidence=0.9)
    await LLMExtractor(model, **prompts)([Run(trajectory=run_of(text), verdict=verdict)] * 2)
    return model.calls[0].prompt


FILES = ("extract_success", "extract_failure", "contrast")


@pytest.mark.anyio
@pytest.mark.parametrize("ask", [judge_prompt, extractor_prompt])
@each(SHORT)
async def test_a_run_changes_nothing_of_a_prompt_around_its_fence(cases: list[Case], ask: Any) -> None:
    frame = outside_of(await ask("harmless"))
    for case in cases:
        prompt = await ask(case.against(NONCE))
        assert outside_of(prompt) == frame, case.id
        assert_inert("\n".join(line for line in prompt.split("\n") if line not in frame), id=case.id)


@pytest.mark.anyio
async def test_a_lesson_changes_nothing_of_the_prompt_for_recognising() -> None:
    frame = outside_of(await recognise_prompt("harmless"))
    prompts = {case.id: await recognise_prompt(case.against(NONCE)) for case in SHORT}
    asked = {id: prompt for id, prompt in prompts.items() if prompt}
    assert len(asked) > 0.9 * len(SHORT)
    for id, prompt in asked.items():
        assert outside_of(prompt) == frame, id
        assert_inert("\n".join(line for line in prompt.split("\n") if line not in frame), id=id)


async def recognise_prompt(text: str) -> str:
    """What is asked about two lessons alike, `text` being one's description; nothing where it sets them apart."""
    old = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
    near = "When a search comes back empty, the index may be stale: run `rebuild` once and repeat the search."
    held = Experience(scope="s", task="find", lessons=(lesson("Rebuild a stale index", old, text),))
    model = ScriptedModel(['{"same": false}'])
    consolidate = Recognise(Shelf(held), model)
    await consolidate(Experience(scope="s", task="find it", lessons=(lesson("Empty search", near, ""),)))
    return model.calls[0].prompt if model.calls else ""


@dataclass
class Shelf:
    """A retriever that finds the one experience it holds."""

    held: Experience
    name: str = "shelf"
    space: str | None = None

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        return Found(matches=(Match(experience=self.held, score=1.0),))

    async def index(self, experiences: Sequence[Experience], /) -> dict[str, Any]:
        return {}

    async def catch_up(self, *, scope: str, most: int) -> int:
        return 0


# --- the command line, exports ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Lesson]]]:
    """A bank whose every lesson is a case of the corpus."""
    path = tmp_path_factory.mktemp("hostile") / "bank.db"
    kept = [Lesson(title=t[:300], description=t, content=t) for c in SHORT if (t := replace_surrogates(c.text)).strip()]
    with lessonbank.connect(path, scope="s", embedder="lexical", evidence=lessonbank.Evidence(holdout=None)) as memory:
        for start in range(0, len(kept), 40):
            lessons = tuple(kept[start : start + 40])
            memory.consolidate(Experience(scope="s", task=f"{lessons[0].title} number {start}", lessons=lessons))
        yield path, list(memory.lessons.list(limit=10_000)[::-1])


def command(path: Path, *words: str) -> str:
    done = CliRunner(env={"NO_COLOR": "1", "COLUMNS": "200"}).invoke(app, [*words, "--bank", str(path), "--scope", "s"])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_line_shows_hostile_lessons_as_text(bank: tuple[Path, list[Lesson]]) -> None:
    path, kept = bank
    shown = [
        command(path, "lessons", "list", "--limit", "10000"),
        command(path, "retrieve", "number 40 done", "-k", "3"),
    ]
    shown += [command(path, "history", "list"), command(path, "history", "diff", "0", "2")]
    shown += [command(path, "explain", one.id) for one in kept[:: 9 if "LESSONBANK_SOAK" in os.environ else 40]]
    for text in shown:
        assert not bad_characters(text)
        assert not roles_in(text)
        assert not tokens_in(text, TOKENS - THOUGHTS)


def test_json_of_the_command_line_is_one_document_of_ascii(bank: tuple[Path, list[Lesson]]) -> None:
    path, kept = bank
    for words in (
        ("lessons", "list", "--json"),
        ("retrieve", "number 40 done", "--json"),
        ("history", "list", "--json"),
    ):
        text = command(path, *words)
        assert text.isascii()
        assert not bad_characters(text)
        assert not roles_in(text)
        assert json.loads(text)
    assert len(json.loads(command(path, "lessons", "list", "--limit", "10000", "--json"))) == len(kept)


def test_an_export_is_ascii_one_record_a_line_and_comes_back_whole(bank: tuple[Path, list[Lesson]]) -> None:
    path, kept = bank
    file = path.with_name("out.jsonl")
    command(path, "export", str(file))
    text = file.read_text(encoding="ascii")
    assert not bad_characters(text)
    assert not roles_in(text)
    assert all(json.loads(line) for line in text.splitlines())
    with lessonbank.connect(
        path.with_name("other.db"), scope="t", embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as other:
        other.admin.import_(file)
        assert [(i.title, i.content) for i in other.lessons.list(limit=10_000)[::-1]] == [
            (i.title, i.content) for i in kept
        ]
        block = other.retrieve("number 40 done", limit=3).text
    assert_inert(block, but=THOUGHTS)


# --- what models say back, notes, errors, logs -----------------------------------------------------------------------


@pytest.mark.anyio
async def test_reasons_and_notes_from_models_are_one_inert_line() -> None:
    for case in SHORT:
        reply = json.dumps({"check": "x", "reason": case.text, "outcome": "success", "confidence": 1})
        judged = await LLMJudge(ScriptedModel([reply]))(run_of("x"))
        failed = await LLMJudge(ScriptedModel([ModelError(case.text)]))(run_of("x"))
        for reason in (judged.reason, failed.reason):
            assert "\n" not in reason, case.id
            assert_inert(reason, but=THOUGHTS, id=case.id)
        assert judged.outcome == failed.outcome == "unknown"


@pytest.mark.anyio
async def test_errors_say_hostile_text_in_one_inert_line() -> None:
    with lessonbank.connect(
        ":memory:", scope="s", embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as memory:
        for case in SHORT:

            def broken(prompt: str, text: str = case.text) -> str:
                raise RuntimeError(text)

            with pytest.raises(ModelError) as model:
                await FunctionModel(broken).generate(load("general/recognise").render(nonce="x", first="a", second="b"))
            assert "\n" not in str(model.value), case.id
            assert_inert(str(model.value), but=THOUGHTS, id=case.id)
            with pytest.raises(LessonbankError) as missing:
                memory.lessons.get(replace_surrogates(case.text))
            with pytest.raises(LessonbankError) as scope:
                memory.scoped(f"{case.text} ").admin.counts()
            assert str(missing.value).isprintable() and str(scope.value).isprintable(), case.id
            with pytest.raises(JudgeError) as judge:
                parse_verdict(f"The status is {case.text}", nonce="x")
            assert_inert(str(judge.value), but=THOUGHTS, id=case.id)
