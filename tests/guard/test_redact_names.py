"""Keys that only their name gives away, keys whose end is missing, and accounts on other machines."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.records import Step, Trajectory
from lessonbank.guard.redact import redact, redacted

sys.path.insert(0, str(Path(__file__).parents[1] / "security" / "corpus"))
import secrets_corpus as corpus

pytestmark = pytest.mark.full

LETTERS = "qwhdkeifghijklmnopqrs"
KEY = f"sk-secret-key-{LETTERS}"
ALPHABET = "-".join(["sk", "secret", "key", "abcdefghijklmnopqrst"])
ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "twice": lambda text: base64.b64encode(text.encode().hex().encode()).decode(),
}
NO_BEGINNING = ("e-mail", "phone", "amex")
"""Half of a name, or a few digits of a telephone's number, could be anything."""


# --- letters alone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("API_KEY=", KEY, ""),
        ("API_KEY=", ALPHABET, "\nPORT=80"),
        ("env API_KEY=", KEY, " ./run.sh"),
        ("OPENAI_API_KEY: ", f"sk-{LETTERS}", ""),
        ("api_key: ", f"sk-{LETTERS}", ""),
        ("export SECRET_KEY='", LETTERS, "'"),
        ('{"api_key": "', "AbCdEfGhIjKlMnOpQr", '"}'),
        ('{\\"client_secret\\": \\"', LETTERS, '\\"}'),
        ("- name: API_TOKEN\n  value: ", LETTERS, ""),
        ("SECRET=", "kJhGfDsAqWeRtYuIoP", ""),
        ("TOKEN=", "abc!defgh#ijklmno", ""),
        ('os.environ["API_KEY"] = "', "zxcvbnmasdfghjklqw", '"'),
        ('client_secret = "', f"{LETTERS}12", '"'),
    ],
)
def test_a_setting_of_letters_that_are_no_words_goes(before: str, secret: str, after: str) -> None:
    told = redact(f"{before}{secret}{after}")
    assert told.startswith(f"{before}[")
    assert told.endswith(f"]{after}")


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=your-api-key-here",
        "API_KEY=YOUR_SERVICE_API_KEY_GOES_HERE",
        "API_KEY=replace-with-your-own-key",
        f"API_TOKEN=sk-{'x' * 24}",
        "TOKEN=${TOKEN}",
        "TOKEN=prod-${QWHDKXZV_TOKEN_SUFFIX}",
        "TOKEN=https://example.org/qwhdkeifghijkl",
        'SECRET_KEY=os.environ["SECRET_KEY"]',
        "SECRET_KEY = DEFAULT_SECRET_FALLBACK",
        "SECRET_KEY=config/secrets/qwhdkeifghijkl.json",
        "SECRET_KEY=/run/secrets/production_key",
        "password=required-field-validation-message",
        "API_KEY=generateRandomApiKeyString",
        "ACCESS_KEY=Ctrl+Shift+Alt+Delete",
        '"token": "internationalization"',
        '"token": "================"',
        '"secret": "kubernetes.io/service-account-token"',
        f"the api key {LETTERS} is a row of letters",
        f"api_key: {LETTERS}",
    ],
)
def test_words_places_and_what_is_filled_in_later_stay(text: str) -> None:
    assert redact(text) == text


def test_a_key_of_letters_is_gone_from_the_whole_run_also_before_its_name() -> None:
    steps = (
        Step(action=f"curl -H 'X-Auth: {KEY}' /", observation="ok"),
        Step(action="env", observation=f"API_KEY={KEY}"),
    )
    assert LETTERS not in redacted(Trajectory(task="call it", steps=steps), redact).model_dump_json()


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=15))
def test_what_is_short_is_no_key(text: str) -> None:
    assert redact(f"It said {text} and went on") == f"It said {text} and went on"


# --- encoded, and then cut off ---------------------------------------------------------------------------------------


def _readable_cuts(kind: str, encode: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Each beginning of an encoded secret in which half of it can be read, and what is secret."""
    value, core = corpus.Maker(3).kinds()[kind]
    text = "dump " + encode(value)
    yield from ((text[:cut], core) for cut in range(30, len(text) + 1) if corpus.leaks(text[:cut], core))


@pytest.mark.parametrize("encoding", ["base64", "hex"])
@pytest.mark.parametrize("kind", [k for k in corpus.Maker(3).kinds() if not k.startswith(NO_BEGINNING)])
def test_half_of_an_encoded_secret_goes_too(kind: str, encoding: str) -> None:
    cuts = list(_readable_cuts(kind, ENCODINGS[encoding]))
    assert [text for text, core in cuts[:: 1 + len(cuts) // 12] if corpus.leaks(redact(text), core)] == []


def test_half_of_a_secret_goes_that_was_encoded_twice() -> None:
    key = "AKIA" + "Q7M2N5B3XW6Y4ZJT"
    told = redact("dump " + ENCODINGS["twice"](f"use {key}")[:50])
    assert told == "dump [encoded text 1]"


@pytest.mark.parametrize(
    "text", ["The order was sent on Monday and it came.", "lib/python/site-packages and on", "a=1"]
)
@pytest.mark.parametrize("encoding", ["base64", "hex"])
def test_what_is_encoded_and_says_nothing_secret_stays(text: str, encoding: str) -> None:
    encoded = ENCODINGS[encoding](text)
    assert [cut for n in range(len(encoded)) if redact(cut := f"dump {encoded[:n]}") != cut] == []


def test_lines_that_were_encoded_one_by_one_are_each_read() -> None:
    first, second = (
        ENCODINGS["base64"](text)
        for text in ("nothing to see in this line, it is only long", "AKIA" + "Q7M2N5B3XW6Y4ZJT")
    )
    assert len(first) == 60
    assert redact(f"{first}=\n{second}\nend").endswith("]\nend")
    assert redact(f"{'a1' * 31}==\n{'b' * 19}") == f"{'a1' * 31}==\n{'b' * 19}"


# --- accounts on other machines --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "ssh deploy@example.org 'systemctl restart app'",
        "ssh -t deploy@example.org",
        "ssh -i ~/.ssh/id -p 2222 deploy@example.org uptime",
        "ssh -o 'StrictHostKeyChecking no' deploy@example.org",
        "ssh -J jump@example.org deploy@example.com",
        "cd x && /usr/bin/ssh deploy@example.org",
        "sftp deploy@example.org",
        "ssh://deploy@example.org/x",
        '{"command": "cd x\\nssh deploy@example.org ls"}',
        '["ssh", "-p", "22", "deploy@example.org"]',
        "scp -P 22 a.txt deploy@example.org:/srv/x",
        "scp a.txt deploy@example.org:",
        "$ scp deploy@example.org:a .",
        "rsync -avz -e 'ssh -p 22' dist/ deploy@example.org:/srv",
        "git clone git@example.org:team/repo.git",
        "git clone deploy@example.org:team/repo.git",
        "git remote add origin deploy@example.org:x/y.git",
    ],
)
def test_an_account_in_a_command_is_no_address(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "write to <<>>",
        "ssh to the server and mail <<>>: she knows",
        "scp the file over. Contact <<>>: she knows",
        "git config user.email <<>>",
        'git commit --author="Jane <<<>>>"',
        "git log --author=<<>>",
        "see <<>>:foo",
        "use openssh, <<>>",
        "ssh deploy@example.org 'mail <<>>'",
        "ssh deploy@example.org\n<<>> said so",
    ],
)
def test_an_address_beside_a_command_goes(text: str) -> None:
    told = redact(text.replace("<<>>", "jane@example.org"))
    assert told == text.replace("<<>>", "[e-mail 1]")
