"""Telephone numbers of many countries go; what only has digits stays."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lessonbank.guard.gate.run_values import RunValues
from lessonbank.guard.redact import personal_in, redact

NUMBERS = (
    "+33 6 12 34 56 78", "+33 (0)6 12 34 56 78", "+31 6 12345678", "+49 30 901820", "+49-170-1234567",
    "+44 (0) 20 7946 0958", "+39 06 698 12345", "+34 612 34 56 78", "+86 138 0013 8000", "+81-90-1234-5678",
    "+91 98765 43210", "+55 (11) 91234-5678", "+7 912 345-67-89", "+1 (415) 555-0132", "+1-415-555-0132",
    "+4930901820", "0033 6 12 34 56 78", "00 44 20 7946 0958", "0049 89 1234567",
)  # fmt: skip
BESIDE = (
    ("Tél : ", "06 12 34 56 78"), ("Telefon: ", "030 901820"), ("电话 ", "138 0013 8000"), ("電話：", "03-1234-5678"),
    ("携帯 ", "090-1234-5678"), ("휴대폰: ", "010-1234-5678"), ("телефон: ", "8 912 345-67-89"),
    ("cell: ", "0412 345 678"),
    ("phone_number=", "5551234567"), ("call me at ", "0412 345 678"), ("fax no. ", "030/901820"),
    ("Handy ", "0170 1234567"), ("phone: ", "(415) 555-0132"), ("phone ", "415-555-0132"), ("tel. ", "415.555.0132"),
    ("call ", "415-555-0132"), ("call me at ", "415.555.0132"), ("textbox 'Phone' value='", "(415) 555-0132"),
)  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_says_its_country_goes_wherever_it_stands(number: str) -> None:
    for before, after in (("", ""), ("Ring ", " now."), ('{"contact": "', '"}'), ("(", ")"), ("| ", " |")):
        assert redact(f"{before}{number}{after}") == f"{before}[phone 1]{after}"


@pytest.mark.parametrize(("before", "number"), BESIDE)
def test_a_number_of_a_country_goes_beside_a_word_that_says_telephone(before: str, number: str) -> None:
    assert redact(f"{before}{number}, please") == f"{before}[phone 1], please"
    assert redact(f"Item {number}, please") == f"Item {number}, please"


@pytest.mark.parametrize("sign", ["|", ",", ";", "\t"])
def test_a_number_of_a_country_goes_in_a_column_that_says_telephone(sign: str) -> None:
    table = [["name", "Home phone", "order"], ["Ann", "(415) 555-0132", "415-555-0199"], ["Ben", "030 901820", "7"]]
    told = redact("\n".join(sign.join(row) for row in table) + "\n\nid 415-555-0132,b,c")
    assert told.splitlines()[1:3] == [
        sign.join(["Ann", "[phone 1]", "415-555-0199"]),
        sign.join(["Ben", "[phone 2]", "7"]),
    ]
    assert redact("name,order\nAnn,415-555-0132") == "name,order\nAnn,415-555-0132"


def test_two_numbers_in_a_row_are_two() -> None:
    assert redact("+49 30 901820, +49 30 901821") == "[phone 1], [phone 2]"
    assert redact("+33 6 12 34 56 78 2026-11-28") == "[phone 1] 2026-11-28"


@pytest.mark.parametrize(
    "text",
    [
        "@@ -10,7 +10,9 @@\n+12345678901 x\n+ 123 456 789\n+2024 1128 0833",
        "1.415.555.0132",
        "10.415.5550.1234",
        "version 199.222.1234",
        "2026-11-28T12:30:00.123456+02:00",
        "+999 12 34 56 78",
        "00123 rows, 00456 columns",
        "978-3-1614-8410-0",
        "order 415-555-0132 of (415) 555-0132",
        "part 415.555.0132",
    ],
)
def test_what_only_has_digits_stays(text: str) -> None:
    assert redact(text) == text


def _digits(chance: random.Random) -> Callable[[int], str]:
    return lambda count: "".join(str(chance.randint(0, 9)) for _ in range(count))


def _lines() -> list[str]:
    """Logs, ids, times and tables, drawn anew from the same seed."""
    chance = random.Random(7)
    d, r, found = _digits(chance), chance.randint, list[str]()
    for _ in range(200):
        found += [
            f"2026-{r(1, 12):02}-{r(1, 28):02}T{r(0, 23):02}:{r(0, 59):02}:07.{d(6)}+02:00 pid={d(5)} {d(3)}.{d(3)} ms",
            f"order {d(3)}-{d(7)}-{d(7)} shipped, tracking 1Z{d(3)}AA{d(8)}",
            f"| {d(3)} | {d(4)}.{d(2)} | {d(10)} | {d(3)} {d(3)} {d(3)} |",
            f'10.{r(0, 255)}.{r(0, 255)}.7 - - [28/Nov/2026:10:11:12 +0000] "GET /a/{d(8)}" 200 {d(5)}',
            f"@@ -{d(3)},{d(2)} +{d(3)},{d(2)} @@\n+{d(9)} {d(4)} {d(4)}\n-{d(3)}",
            f"isbn 978-{d(1)}-{d(4)}-{d(4)}-{d(1)} vol. {d(2)}",
            f"id={d(16)} seq={d(10)} ts={r(1_600_000_000, 1_790_000_000)} crc={d(3)}.{d(3)}.{d(3)}",
            f"{d(2)}:{d(2)}:{d(2)} {d(3)}.{d(3)} {d(3)}.{d(3)} {d(4)}",
            f"lat 48.{d(6)}, lon 11.{d(6)}; total {d(3)},{d(3)}.{d(2)} EUR (+{d(2)}.{d(1)} %)",
            f"commit {d(8)} +{d(3)} -{d(3)} lines; 00{d(3)} {d(4)} rows",
        ]
    return found


@pytest.mark.full
def test_of_two_thousand_lines_of_logs_ids_times_and_tables_one_in_two_hundred_at_most_is_taken_for_a_number() -> None:
    lines = _lines()
    assert len(lines) == 2_000
    assert sum(any(found.kind == "phone" for found in personal_in(line)) for line in lines) <= 10


def test_lessons_and_redaction_know_the_same_numbers() -> None:
    values = RunValues()
    assert values.mask("Ring +33 6 12 34 56 78 first.") == "Ring <phone> first."
    assert values.mask("curl --header 'X-Call: +33 6 12 34 56 78'", level="command").count("<phone>") == 1
