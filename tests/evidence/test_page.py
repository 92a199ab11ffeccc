"""The page of a lift: whole, offline, inert, and with its marks where the numbers say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from any_text import any_text
from hypothesis import given, settings
from hypothesis import strategies as st

import lessonbank
from lessonbank import Evidence, Step, Trajectory
from lessonbank.evidence import Estimate, Holdout, LessonLift, Lift, MeasuringCost, Point
from lessonbank.evidence.effects import GroupLift
from lessonbank.evidence.lift import NOT_COUNTED, PROMISE
from lessonbank.pages.reports.lift_page import content, page

pytestmark = pytest.mark.full

VOID = {"meta"}
TAGS = re.compile(
    "html|head|meta|title|style|body|main|h1|h2|h3|p|b|ul|li|dl|dt|dd|div|figure|figcaption|span|svg|desc|line|path|polygon|circle|text"
    "|details|summary|table|caption|thead|tbody|tr|th|td"
)
HOSTILE = (
    "</svg><script>alert(1)</script>",
    "</title></style><img src=x onerror=alert(1)>",
    '" onload="alert(1)" x="',
    "[here](javascript:alert(1))",
    "\x1b[31mred\x07 \x00 \u202egnihtyna\u202c \u2066a\u2069 \ud800 \ufeff",
    "<!-- ]]> <![CDATA[ &lt;b&gt; &#60;script&#62;",
    "e" + "\u0301" * 500,
)


def estimate(value: float, near: float = 0.04, far: float = 0.08) -> Estimate:
    return Estimate(
        value=value,
        low=value - near,
        high=value + near,
        always_low=value - far,
        always_high=value + far,
        basis="truth and judge",
    )


def a_lesson(number: int, **more: object) -> LessonLift:
    given = {
        "title": f"Lesson {number}",
        "description": "When an order is open.",
        "content": f"Do {number} first.",
        "shown": 200,
        "withheld": 20,
        "success": estimate(0.02),
    }
    return LessonLift.model_validate({"lesson_id": f"{number:032x}", **given, **more})


def series(size: int = 40) -> tuple[Point, ...]:
    return tuple(
        Point(
            recalls=10 * n,
            with_memory=0.5 + 0.1 * n / size,
            without=0.5 if n > 2 else None,
        )
        for n in range(1, size + 1)
    )


def rich(**more: object) -> Lift:
    given: dict[str, object] = {
        "scope": "acme/support",
        "recalls": 430,
        "settled": 400,
        "controls": 50,
        "missing_with": 0.07,
        "missing_without": 0.06,
        "success_with": 0.6,
        "success_without": 0.5,
        "shown": 350,
        "withheld": 50,
        "success": estimate(0.1),
        "standing": "helps",
        "steps": Estimate(value=-1.25, low=-2.0, high=-0.5),
        "tokens": Estimate(value=1234.0, low=-10.0, high=2500.0),
        "lessons": (
            a_lesson(1, success=estimate(-0.2), standing="harms", retired=True),
            a_lesson(2, success=estimate(0.15), standing="helps"),
            a_lesson(3, success=estimate(0.01, 0.1, 0.2), quarantined=True),
            a_lesson(4, success=Estimate(), shown=3, withheld=1),
        ),
        "measuring": MeasuringCost(given_up=3.2, given_up_low=1, given_up_high=6, tasks_without=50),
        "series": series(),
        "notes": ("Some outcomes are a judge's opinion.",),
    }
    return Lift.model_validate({**given, **more})


class Reading(HTMLParser):
    """A strict reading: what is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.values: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.values += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def pictures(made: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", made, re.DOTALL)]


def test_no_label_of_the_scale_is_cut_off() -> None:
    lift = rich(lessons=(a_lesson(1, success=estimate(0.6, 0.4, 0.4)),))
    (ruler,) = [one for one in pictures(page(lift)) if one.get("aria-hidden") and [*one.iter("text")]]
    width = float(ruler.attrib["viewBox"].split()[2])
    labels = [(float(mark.attrib["x"]), mark.text or "") for mark in ruler.iter("text")]
    assert labels[-1][1] == "+100"
    assert [text for x, text in labels if min(x, width - x) < 4.8 * len(text)] == []


def spots(drawn: ElementTree.Element) -> Iterator[tuple[float, float]]:
    for mark in drawn.iter():
        for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
            if x in mark.attrib:
                yield float(mark.attrib[x]), float(mark.attrib[y])
        for pair in re.findall(r"(-?[\d.einf]+),(-?[\d.einf]+)", mark.get("d", "") + " " + mark.get("points", "")):
            yield float(pair[0]), float(pair[1])


def assert_inside(drawn: ElementTree.Element) -> None:
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    for x, y in spots(drawn):
        assert 0 <= x <= width
        assert 0 <= y <= height


def marks(drawn: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [mark for mark in drawn.iter() if mark.get("class", "") == name]


@pytest.mark.parametrize("lift", [Lift(scope="t"), rich(), rich(lessons=(), series=series(1), notes=())])
def test_a_page_is_whole_and_asks_for_nothing(lift: Lift) -> None:
    made = page(lift)
    read = Reading(made)
    assert all(TAGS.fullmatch(tag) for tag, _ in read.tags)
    assert made.startswith("<!DOCTYPE html>")
    bare = made.replace('http-equiv="Content-Security-Policy"', "")
    for word in ("http", "src=", "href=", "url(", "@import", "<script", "<link", "style=", "//"):
        assert word not in bare
    assert (
        "content",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    ) in read.values
    assert made == page(lift)


def test_a_page_can_be_read_aloud() -> None:
    read = Reading(made := page(rich()))
    assert ("lang", "en") in read.values
    levels = [int(tag[1]) for tag, _ in read.tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all("scope" in names for tag, names in read.tags if tag == "th")
    ids = [value for name, value in read.values if name == "id"]
    assert len(ids) == len(set(ids))
    named = " ".join(value or "" for name, value in read.values if name == "aria-labelledby").split()
    assert sorted(named) == sorted(str(id) for id in ids)
    for drawn in pictures(made):
        if drawn.get("aria-hidden") == "true":  # its numbers stand beside it
            continue
        assert drawn.get("role") == "img"
        assert [drawn[0].tag, drawn[1].tag] == ["title", "desc"]
        assert drawn[0].text
        assert drawn[1].text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_strangers_wrote_stays_text(hostile: str) -> None:
    kind, harmless = (
        rich(),
        rich(
            lessons=(a_lesson(1, title="a", description="a", content="a", run_ids=("a",)),),
            groups=(GroupLift(group="topic/1", name="a"),),
            notes=("a",),
        ),
    )
    told = rich(
        scope=hostile,
        lessons=(a_lesson(1, title=hostile, description=hostile, content=hostile, run_ids=(hostile,)),),
        groups=(GroupLift(group="topic/1", name=hostile),),
        notes=(hostile,),
    )
    read, plain = Reading(page(told)), Reading(page(harmless))
    assert read.tags == plain.tags
    assert read.values == plain.values
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]", page(told))
    assert len(page(told)) < len(page(kind)) + 20_000
    for drawn in pictures(page(told)):
        assert_inside(drawn)


@settings(max_examples=30, deadline=None)
@given(any_text(max_size=80))
def test_no_title_changes_what_the_page_is_made_of(title: str) -> None:
    read = Reading(made := page(rich(lessons=(a_lesson(1, title=title),))))
    assert read.tags == plain_tags()
    assert pictures(made)
    made.encode()


@cache
def plain_tags() -> list[tuple[str, tuple[str, ...]]]:
    return Reading(page(rich(lessons=(a_lesson(1, title="a"),)))).tags


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats()), min_size=7, max_size=7), st.integers(0, 10**7))
def test_no_number_leaves_the_picture(numbers: list[float | None], recalls: int) -> None:
    value, low, high, always_low, always_high, with_memory, without = numbers
    told = Estimate.model_construct(value=value, low=low, high=high, always_low=always_low, always_high=always_high)
    lesson = LessonLift.model_construct(lesson_id="a", title="a", success=told)
    point = Point.model_construct(recalls=recalls, with_memory=with_memory, without=without)
    for drawn in pictures(page(Lift.model_construct(scope="t", recalls=1, lessons=(lesson,), series=(point, point)))):
        assert_inside(drawn)


def test_an_empty_lift_says_what_to_do() -> None:
    text = Reading(page(Lift(scope="t"))).text
    assert "Undecided, too few tasks" in text
    assert "let your program ask before each task" in text
    assert "There is nothing to draw before the first outcome is known." in text
    assert "No lesson was found for any task yet." in text
    waiting = Reading(page(Lift(scope="t", recalls=3))).text
    assert "No outcome is known yet" in waiting


def test_every_part_of_a_lift_is_on_its_page() -> None:
    text = Reading(page(rich())).text
    for part in (
        "Does memory help? Yes, keep it: success +10.0 points [+2, +18].",
        "Measuring has cost so far: 50 of 430 tasks without memory, with a known outcome or without; about 3 succ",
        "scope acme/support: 430 recalls found something, the outcome of 400 is known, 50 of those went without memory",
        "with memory without memory change interval if you look once interval however often you look",
        "success 60.0 % of 350 tasks 50.0 % of 50 tasks +10.0 points +6.0 to +14.0 +2.0 to +18.0",
        "+10.0 points +6.0 to +14.0 +2.0 to +18.0 what was told, and a judge",
        "steps −1.2 −2.0 to −0.5",
        "tokens +1,234 −10 to +2,500",
        "US dollars not known",
        "▼ take out: harms, retired, −20.0 points [−28, −12] Lesson 1 When an order is open. Do 1 first.",
        "shown, left out 200 times, 20 times (with an outcome)",
        "interval if you look once, in points −24.0 to −16.0 interval however often you look, in points −28.0 to ",
        "● undecided, at most 21 points either way, quarantined",
        f"to see the recalls that found it lessonbank recalls --bank BANK --scope acme/support --lesson {1:032x}",
        "memory as a whole 7.0 % 6.0 % may be chance",
        "What to do next 1 lesson that harms is taken out already; keep the others.",
        PROMISE,
        "successes expected to be given up 3.2",
        "It is lower for what clearly helps, and higher for what looks harmful.",
        "Some outcomes are a judge's opinion.",
        "With memory against without, intervals at 95 %",
    ):
        assert part in text
    assert "e-value" not in text


def test_an_interval_that_fits_anything_is_not_written_as_one() -> None:
    wide = Estimate(value=0.3, low=-0.2, high=0.8, always_low=-1.0, always_high=1.0)
    cost = MeasuringCost(given_up=3.0, given_up_low=-9.0, given_up_high=12.0, tasks_without=20)
    lessons = (a_lesson(1, success=wide),)
    text = Reading(page(rich(success=wide, standing="no evidence yet", lessons=lessons, measuring=cost))).text
    assert "successes expected to be given up not known yet tasks that were shown no lesson" in text
    assert "Does memory help? Undecided, too few tasks: 400 known outcomes, 50 without memory." in text
    assert text.count("interval however often you look, in points not known yet") == 1
    assert "100.0 to" not in text
    assert "[−100" not in text


def test_the_page_says_why_its_curves_end_before_the_last_outcome() -> None:
    waits = f"7 outcomes do {NOT_COUNTED}. Recalls count in their order"
    assert f"The curves end at outcome 400: {waits}." in Reading(page(rich(notes=(waits,)))).text
    assert "The curves end" not in Reading(page(rich())).text


def test_a_lesson_without_a_readable_title_goes_by_its_id() -> None:
    lift = rich(lessons=(a_lesson(1, title="\u202e\x07"),))
    assert f"[−6, +10] lesson {1:08x} When" in Reading(page(lift)).text
    assert f": lesson {1:08x}" in str(lift)


def test_harm_that_was_avoided_is_no_negative_price() -> None:
    text = Reading(page(rich(measuring=MeasuringCost(given_up=-4.0)))).text
    assert "failures expected to be avoided 4.0" in text


def rows(made: str) -> list[ElementTree.Element]:
    """The pictures of groups and lessons, from above."""
    return [
        one
        for one in pictures(made)
        if one.get("aria-hidden") and [m for m in one.iter() if "zero" in m.get("class", "")]
    ]


def test_lessons_are_drawn_where_their_numbers_are() -> None:
    harms, helps, open_, none = rows(page(rich()))
    for drawn, name, side in ((harms, "harms", -1), (helps, "helps", 1)):
        (zero,) = marks(drawn, "zero")
        at = float(zero.attrib["x1"])
        assert at == float(zero.attrib["x2"])
        (thin,), (thick,) = marks(drawn, f"thin {name}"), marks(drawn, f"thick {name}")
        ends = [float(line.attrib[end]) for line, end in ((thin, "x1"), (thick, "x1"), (thick, "x2"), (thin, "x2"))]
        assert ends == sorted(ends)
        assert all(math.copysign(1, end - at) == side for end in ends)
        (mark,) = marks(drawn, f"mark {name}")
        middle = sum(float(spot.split(",")[0]) for spot in mark.attrib["points"].split()) / 3
        assert middle == pytest.approx((ends[1] + ends[2]) / 2, abs=0.2)
    (thin,), (zero,) = marks(open_, "thin open"), marks(open_, "zero")
    assert float(thin.attrib["x1"]) < float(zero.attrib["x1"]) < float(thin.attrib["x2"])
    assert not [mark for mark in none.iter() if "mark" in mark.get("class", "")]
    assert len({marks(drawn, "zero")[0].attrib["x1"] for drawn in (harms, helps, open_, none)}) == 1


GROUPS = (
    GroupLift(group="topic/aaaaaaaa", name="cancel order", lessons=2, success=estimate(0.1), standing="likely helps"),
    GroupLift(group="source/strategy/told/model", name="strategies", lessons=3, success=estimate(0.05)),
)


def test_a_group_opens_into_the_lessons_of_which_it_is_the_innermost() -> None:
    both = ("source/strategy/told/model", "topic/aaaaaaaa")
    lessons = (a_lesson(1, groups=both), a_lesson(2, groups=both[:1]), a_lesson(3), a_lesson(4, groups=("topic/gone",)))
    text = Reading(page(rich(groups=GROUPS, lessons=lessons))).text
    parts = (
        "△ keep: likely helps, +10.0 points [+2, +18] cancel order , 2 lessons",
        "Lesson 1",
        "strategies , 3 lessons",
    )
    parts = (*parts, "Lesson 2", "Other lessons", "Lesson 3", "Lesson 4")
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    made = page(rich(groups=GROUPS, lessons=lessons))
    assert made.count('<details class="treatment group">') == 2
    assert made.count('<details class="treatment">') == 4


def test_a_lesson_names_the_runs_it_came_from() -> None:
    ids = tuple(f"{n:032x}" for n in range(30))
    text = Reading(page(rich(lessons=(a_lesson(1, run_ids=ids),)))).text
    assert f"drawn from the runs {ids[0]}, {ids[1]}" in text
    assert f"{ids[19]} and 10 more" in text


def test_where_there_are_pages_of_runs_a_lesson_links_to_them_whatever_their_ids_say() -> None:
    lift = rich(lessons=(a_lesson(1, run_ids=('r"><b>1',)),))
    text = content(lift, address=lambda kind, id: f"/{kind}/{id}")
    assert '<a href="/runs/r&quot;&gt;&lt;b&gt;1">r&quot;&gt;&lt;b&gt;1</a>' in text
    assert "<a href" not in content(lift)


def test_where_outcomes_are_missing_on_one_side_the_page_says_of_what() -> None:
    text = Reading(page(rich(missing_differs=True))).text
    assert "No verdict: outcomes are missing for 7% of recalls with memory and 6% without." in text
    assert "memory as a whole 7.0 % 6.0 % differs: no verdict" in text


def test_a_page_of_too_many_lessons_is_cut_and_says_so() -> None:
    made = page(rich(lessons=tuple(a_lesson(n, content="a" * 99_999) for n in range(1, 503))))
    assert "2 more lessons are not on this page." in made
    assert "Lesson 501" not in made
    assert len(made) < 3_000_000


def test_the_curves_end_at_the_last_numbers() -> None:
    success, *_ = pictures(page(rich()))
    ends = {name: marks(success, name)[0].attrib["d"].split("L")[-1].split(",") for name in ("with", "without")}
    assert ends["with"][0] == ends["without"][0] == "466"
    assert float(ends["with"][1]) < float(ends["without"][1])


def test_one_point_is_drawn_as_a_dot() -> None:
    success = pictures(page(rich(series=(Point(recalls=1, with_memory=1.0),))))[0]
    assert marks(success, "with")[0].attrib["d"] == "M466,38L466,38"
    assert not [mark for mark in marks(success, "without") if mark.tag == "path"]


def test_a_real_bank_has_a_page(tmp_path: Path) -> None:
    with lessonbank.connect(
        tmp_path / "bank.db",
        scope="t",
        embedder="lexical",
        evidence=Evidence(holdout=Holdout(0.0, 0.5, seed="page 4")),
    ) as bank:
        bank.learn(
            Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),)),
            outcome="failure",
        )
        for n in range(24):
            recall = bank.retrieve("open the valve")
            run = Trajectory(task="open the valve", steps=(Step(action=f"turn {n}", observation="open"),))
            bank.learn(run, recall=recall, outcome="failure" if recall.control else "success")
        lift = bank.lift()
    made = page(lift)
    assert (lift.settled, lift.controls) == (24, 12)
    assert "with memory 100.0 %" in made
    assert "without 0.0 %" in made
    assert lift.groups
    assert all(group.name and "/" not in group.name for group in lift.groups)
    for lesson in lift.lessons:
        assert lesson.content in Reading(made).text
        assert lesson.run_ids
    assert Lift.model_validate_json(lift.model_dump_json()) == lift
    for drawn in pictures(made):
        assert_inside(drawn)
    Reading(made)
