"""Asks libphonenumber which telephone numbers there are: apart, because it loads slowly and few texts need it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, NumberParseException, is_possible_number, is_valid_number, parse


def has_country(number: str, /) -> bool:
    """Whether a number begins with the code of a country."""
    first = re.sub(r"\D", "", number[:6])
    return any(first[:size].isdigit() and int(first[:size]) in COUNTRY_CODE_TO_REGION_CODE for size in (1, 2, 3))


def is_number(number: str, asks: Iterator[int], /, *, doubtful: bool) -> bool:
    """Whether a country has such numbers; where counts begin with zeros, and lines of a patch with the sign, it must be
    one in use."""
    if number.isdigit() and doubtful:
        return False
    if next(asks, None) is None:
        return True
    try:
        phone = parse(f"+{number}", None)
    except NumberParseException:
        return False
    return is_valid_number(phone) or (is_possible_number(phone) and not number.isdigit() and not doubtful)
