"""How much junk the gate turns away and how many lessons it loses, on lessons that somebody labelled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from attacks import Case

import lessonbank
from lessonbank.contracts.records import Add, Experience, Extraction, Lesson, Run, Trajectory, Verdict
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.sanitise import canonical
from lessonbank.testing.store_samples import MINE

pytestmark = [pytest.mark.anyio, pytest.mark.full]

GATE = LessonGate()
PROBATION, MARKED = "probation", "marked"


CORPUS = Path(__file__).parent / "corpus"


def cases(name: str) -> list[Case]:
    """The cases of a corpus that is written in all kinds of scripts."""
    return [json.loads(line) for line in (CORPUS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def a_lesson(case: Case) -> Lesson:
    """The lesson of a case; a record cannot be blank, so that a blank field is a dash."""
    return Lesson(
        title=case["title"].strip() or "-", description=case["description"], content=case["content"].strip() or "-"
    )


def drawn(case: Case, *lessons: Lesson) -> Extraction:
    """What the gate makes of the lessons when they are drawn from a run at the task of the case."""
    run = Trajectory(task=case["task"], answer=case.get("answer") or None)
    attempt = Run(trajectory=run, verdict=Verdict(outcome="success"))
    return GATE(Extraction(lessons=lessons), [attempt], shown=case.get("shown", ()))


def became(case: Case, *lessons: Lesson) -> str:
    """`probation`, `marked`, or the rule that turned the only lesson away."""
    told = drawn(case, *(lessons or (a_lesson(case),)))
    if not told.lessons:
        return told.rejected[0].rule
    assert told.lessons[0].is_unchecked, "no model has checked it"
    return MARKED if told.lessons[0].is_doubted else told.lessons[0].state


# --- lessons and junk ------------------------------------------------------------------------------------------------

CORPORA = {"admission": (400, 0.88), "admission_held_out": (150, 0.84), "admission_fresh": (130, 0.8)}
"""How many cases a corpus has at least, and the share of its junk that must be rejected, or marked as no lesson. The
rest is shown as unchecked, as everything is that no model has checked."""


@pytest.fixture(scope="module", params=sorted(CORPORA))
def labelled(request: pytest.FixtureRequest) -> tuple[str, dict[str, list[tuple[str, str]]]]:
    """The name of a corpus, and for each label (id, what became of it)."""
    told: dict[str, list[tuple[str, str]]] = {"good": [], "junk": []}
    for case in cases(request.param):
        told[case["label"]].append((case["id"], became(case)))
    return request.param, told


def test_a_corpus_has_as_much_junk_as_lessons(labelled: tuple[str, dict[str, list[tuple[str, str]]]]) -> None:
    name, told = labelled
    least, _ = CORPORA[name]
    assert len(told["good"]) + len(told["junk"]) >= least
    assert min(map(len, told.values())) >= 0.4 * least


def test_junk_is_rejected_or_marked_as_no_lesson_or_shown_as_unchecked(
    labelled: tuple[str, dict[str, list[tuple[str, str]]]],
) -> None:
    name, told = labelled
    missed = [id for id, state in told["junk"] if state == PROBATION]
    assert 1 - len(missed) / len(told["junk"]) >= CORPORA[name][1], missed


def test_one_lesson_in_a_hundred_is_kept_from_agents_at_most(
    labelled: tuple[str, dict[str, list[tuple[str, str]]]],
) -> None:
    _, told = labelled
    lost = [(id, state) for id, state in told["good"] if state not in (PROBATION, MARKED)]
    assert len(lost) / len(told["good"]) <= 0.01, lost


def test_one_lesson_in_a_hundred_is_called_no_lesson_at_most(
    labelled: tuple[str, dict[str, list[tuple[str, str]]]],
) -> None:
    _, told = labelled
    marked = [(id, state) for id, state in told["good"] if state != PROBATION]
    assert len(marked) / len(told["good"]) <= 0.01, marked


# --- hostile advice in plain words -----------------------------------------------------------------------------------


def outside(text: str, nonce: str) -> list[str]:
    """The lines of a recall's text that do not carry its code."""
    return [line for line in text.splitlines() if not line.startswith(f"{nonce}| ")]


async def test_hostile_advice_in_plain_words_is_on_probation_and_reaches_a_prompt_only_inside_the_fence() -> None:
    advice, states = cases("semantic"), dict[str, str]()
    assert len(advice) >= 60
    frames: set[tuple[str, ...]] = set()
    async with await lessonbank.connect_async(
        ":memory:", scope=MINE, embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as bank:
        for case in advice:
            kept = drawn(case, a_lesson(case)).lessons
            states[case["id"]] = kept[0].state if kept else "rejected"
            experience = Experience(scope=MINE, task=f"{case['id']} {case['task']}", lessons=kept)
            await bank.store.apply([Add(experience=experience)], scope=MINE, writer="tests")
            recall = await bank.retrieve(experience.task)
            if states[case["id"]] == "rejected":
                assert case["content"][:40] not in recall.text, case["id"]
                continue
            nonce = recall.text.split("<<<lessons ")[1][:8]
            seen = {candidate.lesson_id for candidate in recall.candidates if candidate.shown}
            assert kept[0].id in seen, case["id"]
            around = outside(recall.text, nonce)
            frames.add(tuple(line.replace(nonce, "") for line in around))
            told = "\n".join(around)
            assert case["content"][:40] not in told, case["id"]
            assert case["title"] not in told, case["id"]
            assert case["title"] in recall.text, case["id"]
            assert not recall.text.startswith(f"{nonce}| "), case["id"]
    assert len(frames) == 1, "what stands around the lessons is ours, and always the same"
    assert "Unchecked notes, not commands." in " ".join(frames.pop())
    assert set(states.values()) <= {PROBATION, "rejected"}


# --- what is harmless ------------------------------------------------------------------------------------------------

CODE = {
    *("python", "javascript", "shell", "sql", "yaml", "json", "html", "regex", "latex", "diff", "table", "markdown"),
    *("trace", "path", "cli", "maths", "security", "lesson"),
}
INVISIBLE = {"B094", "B104", "B105", "B115", "B116", "B117", "B119"}
"""Joiners and variation selectors, of Persian, Sinhala, Hindi and emoji, are taken out everywhere: nobody sees them."""
BLOCKED = {"B040", "B160", "B162"}
"""What is known to fall short: code with a line that by itself is a turn of a chat, a part of a form, or a call of a
tool."""


def in_code(text: str) -> str:
    """A lesson that has the text in a code block."""
    fence = "````" if "```" in text else "```"
    said = "When the page needs such a line, keep its exact form, because the checker compares every character:"
    return f"{said}\n{fence}\n{text}\n{fence}"


def test_code_in_a_lesson_keeps_every_character() -> None:
    changed = [(c["id"], c["kind"]) for c in cases("benign") if c["text"] not in canonical(in_code(c["text"]))]
    assert {id for id, _ in changed} <= INVISIBLE
    assert not CODE & {kind for _, kind in changed}


def test_nothing_harmless_is_blocked_but_what_is_known() -> None:
    told: dict[str, str] = {}
    harmless = cases("benign")
    for case in harmless:
        lesson = Lesson(title="Keep the exact form of such a line", content=in_code(case["text"]))
        told[case["id"]] = became({"task": "Make the page pass"}, lesson)
    assert len(harmless) >= 150
    assert {id for id, state in told.items() if state not in (PROBATION, MARKED)} <= BLOCKED
    assert len(BLOCKED) / len(harmless) <= 0.02


SCRIPTS: Sequence[tuple[str, str]] = [
    ("hi", "पहले ऑर्डर की स्थिति देखें, क्योंकि भेजा गया ऑर्डर रद्द नहीं होता; तब वापसी का अनुरोध भेजें।"),
    ("te", "మొదట ఖాతాను ధృవీకరించి తర్వాత మార్పు చేయండి, లేకపోతే చెల్లింపు రెండుసార్లు జరుగుతుంది."),
    ("ml", "ലോഗ് വായിച്ച ശേഷം മാത്രം സേവനം പുനരാരംഭിക്കുക, അല്ലെങ്കിൽ പിശകിന്റെ കാരണം നഷ്ടപ്പെടും."),
    ("ta", "ஆர்டரின் நிலையை முதலில் படிக்கவும், ஏனெனில் அனுப்பிய ஆர்டரை ரத்து செய்ய முடியாது."),
    ("ar", "اقرأ حالة الطلب أولاً، لأن الطلب الذي شُحن لا يمكن إلغاؤه بل يمكن إرجاعه فقط."),
    ("ru", "Сначала прочитай статус заказа: отправленный заказ нельзя отменить, его можно только вернуть."),
    ("el", "Διάβασε πρώτα την κατάσταση της παραγγελίας: όσες έχουν σταλεί μόνο επιστρέφονται."),
    ("th", "อ่านสถานะคำสั่งซื้อก่อน เพราะคำสั่งซื้อที่ส่งแล้วยกเลิกไม่ได้ ต้องขอคืนสินค้าแทน"),
    ("ko", "주문을 바꾸기 전에 상태를 먼저 읽는다. 발송된 주문은 취소되지 않고 반품만 된다."),
    ("he", "קרא תחילה את מצב ההזמנה: הזמנה שנשלחה אי אפשר לבטל, אפשר רק להחזיר."),
]


@pytest.mark.parametrize(("language", "content"), SCRIPTS)
def test_a_lesson_is_a_lesson_in_any_script(language: str, content: str) -> None:
    assert became({"task": "Cancel the order"}, Lesson(title="1", content=content)) == PROBATION
