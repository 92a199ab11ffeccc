"""What must go is gone, what stands in its place can be read, and the rest is as it was."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from any_text import any_text
from hypothesis import example, given
from hypothesis import strategies as st

import lessonbank
from lessonbank.contracts.records import Action, Experience, Lesson, Observation, Step, ToolCall, Trajectory
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.guard.redact import Redaction, redact, redacted
from lessonbank.guard.redact.presidio import PresidioRedacting

KEY = "AKIA" + "Q7M2N5B3XW6Y4ZJT"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
CARD = "4111 1111 1111 1111"
PASSWORD = "Winter#2024xy"
PIECES = [
    KEY, TOKEN, CARD, PASSWORD, "jane@example.org", "+49 30 1234567", "GB82WEST12345698765432", "password=",
    'password = "', "token: ", "Authorization: Bearer ", "Cookie: sid=", "postgres://u:", "@host.example/x", "://",
    "SSN 078-05-1120 ", "the password is ", '"', "'", "\\", "\\n", "\n", " ", ",", "{", "}", "[", "]", "[e-mail 1]",
    "[password 1]", "1]", "%40", "\u200b", "-----BEGIN ", "PRIVATE KEY-----", "-----END ", "abc", "A1b2C3d4E5f6",
    "0123456789", base64.b64encode(KEY.encode()).decode(), "=", "|", "value",
    "API_KEY=", "sk-" + "secret-key-qwhdkeifghijklmnopqrs", "ssh ", "-p ", "scp a ", "git clone ", ":a",
    KEY[:14].encode().hex(),
]  # fmt: skip
pytestmark = pytest.mark.anyio
hostile = st.lists(st.sampled_from(PIECES) | any_text(max_size=6), max_size=12).map("".join)


# --- one text --------------------------------------------------------------------------------------------------------


def test_the_same_value_gets_the_same_word_and_another_one_the_next() -> None:
    text = f"{KEY}, jane@example.org, bob@example.org; again Jane@Example.org and {KEY}"
    assert redact(text) == "[aws key 1], [e-mail 1], [e-mail 2]; again [e-mail 1] and [aws key 1]"


def test_a_card_and_an_account_are_the_same_with_and_without_blanks() -> None:
    assert redact(f"{CARD} or {CARD.replace(' ', '')}") == "[card 1] or [card 1]"
    assert redact("GB82WEST12345698765432, GB82 WEST 1234 5698 7654 32") == "[iban 1], [iban 1]"


def test_a_number_that_only_looks_like_a_card_or_an_account_stays() -> None:
    for text in ("4111 1111 1111 1112", "GB83WEST12345698765432", "1234567890123456", "0.4111111111111111"):
        assert redact(text) == text


@given(hostile)
def test_redacting_what_is_redacted_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(alphabet="abcdefghij \n.,()", max_size=200))
def test_plain_words_stay(text: str) -> None:
    assert redact(text) == text


values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([*PIECES, 1, 2.5, None, True, 4111111111111111, 10**12]) | hostile,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "password", "n", "x y"]), inner),
    max_leaves=8,
)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return None


@pytest.mark.full
@given(st.dictionaries(st.sampled_from(["a", "token", "n"]), values))
@example({"a": ["ghp_" + 3 * "a1B2c3D4e5F6", "AKIA" + "Q7M2N5B3XW6Y4ZJT"]})
def test_json_stays_json_of_the_same_shape(data: dict[str, Any]) -> None:
    for text in (json.dumps(data), json.dumps(data, indent=1), json.dumps(data, separators=(",", ":"))):
        assert shape(json.loads(redact(text))) == shape(data)


def test_a_placeholder_that_is_there_already_is_not_given_to_anybody_else() -> None:
    assert redact("[e-mail 1] wrote to jane@example.org") == "[e-mail 1] wrote to [e-mail 2]"


def test_a_key_hidden_in_base64_has_the_number_it_has_in_the_open() -> None:
    hidden = base64.b64encode(KEY.encode()).decode()
    assert redact(f"{KEY} is {hidden}") == "[aws key 1] is [aws key 1]"


@pytest.mark.parametrize(
    "text",
    [
        "machine api.example.com login octocat password <<8sd7f6gsdf>>",
        "redis://:<<p4ssw0rd>>@localhost:6379/0",
        "jdbc:mysql://db:3306/app?user=root&password=<<Zx81spectrum>>",
        "Server=tcp:x.example.net;User ID=sa;Password=<<Yolo!2345>>;Encrypt=True",
        '{"access_token":"<<2YotnFZFEjr1zCsicMWpAA>>","token_type":"example","expires_in":3600}',
        "PGPASSWORD=<<hunter2>> psql -h db -U app",
        "sshpass -p '<<S3cr3t!>>' ssh root@10.0.0.1",
        "curl -H 'Authorization: token <<0123456789abcdef0123456789abcdef01234567>>' https://api.example.com",
        "aws configure set aws_secret_access_key <<wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY>>",
        "kind: Secret\ndata:\n  password: <<c3VwZXJzZWNyZXQ=>>\n  username: YWRtaW4=",
        "- name: DB_PASSWORD\n  value: <<s3cr3tvalue>>",
        '<add key="ApiKey" value="<<f3b2c1d4e5a6978812345678>>" />',
        "config.password = '<<p@ss w0rd>>'",
        "def f(password: str = '<<p@ssw0rd>>') -> None:",
        "os.environ['SECRET_KEY'] = '<<django-insecure-4x8!k2m9z>>'",
        "The temporary password for jane is <<Xk29!qq>> and the room is 21.",
        "password is '<<correcthorse>>'",
        "pw: <<Tr0ub4dor&3>>",
        '$password = "<<q1w2e3r4>>";',
        "const apiKey = `<<9c8b7a6f5e4d3c2b1a>>`;",
        "fill('#password', '<<MyS3cret!>>')",
        'echo \\"password\\": \\"<<hunter2>>\\"',
        "amqp://guest:<<gu3st!>>@rabbit:5672//",
        "https://a.blob.example.net/c?sv=2020&sig=<<Abc123%2FDEF456ghi789JKL012mno345PQR678stu%3D>>",
        "| password | <<hunter2>> |",
        "DB_PASSWORD=<<letmein>>",
        "tel: <<+44 20 7946 0958>>",
        "phone_number=<<5551234567>>",
        "<<0049 89 1234567>> is the desk",
        "IBAN <<DE89 3704 0044 0532 0130 00>>",
        "<<378282246310005>> expires 12/26",
        "<<müller@bücher.example>> wrote",
        "12:30 <<john.o'brien+tag@mail.example.co.uk>>:",
        "Das Passwort lautet <<Sonnenblume88>>",
        "Le mot de passe est <<Papillon66>>",
        "La contraseña es <<Mariposa55>>",
        "Пароль: <<Bereza44x>>",
        "密码是<<Panda33xyz>>",
        "postgresql://app:<<pGw0rd-77zX>>@db.internal:5432/shop",
        "Authorization: Bearer <<Qx7Lm2Zr9Kd4Wt8Bv3Nf6Hs1Jp5Y>>",
        "curl -u admin:<<Zq7rTy2w>> https://x.example.com",
        "<password><<Zt3rTy2w>></password>",
        "body=password%3D<<Zu8rTy2w>>%26x%3D1",
        f"charge with <<sk{'_live_'}Qx7Lm2Zr9Kd4Wt8Bv3Nf6Hs1>>",
        "The password is <<kiteRun99>> for now.",
        '{"body": "{\\"password\\": \\"<<Zu5rTy2w>>\\"}"}',
        "| password | <<Zt6rTy2w>> |",
        f"token <<gh{'p_'}Qx7Lm2Zr9Kd4Wt8Bv3Nf6Hs1Jp5Yc0Ga1234>>",
        "card <<4111 1111 1111 1111>> exp 12/29",
        "pay to <<DE89 3704 0044 0532 0130 00>>",
        "mail <<maria.kowalska@example.org>> please",
    ],
)
def test_a_secret_goes_and_what_stands_around_it_stays(text: str) -> None:
    before, _, rest = text.partition("<<")
    secret, _, after = rest.partition(">>")
    told = redact(f"{before}{secret}{after}")
    assert told.startswith(f"{before}[")
    assert told.endswith(f"]{after}")
    assert secret not in told


def test_a_name_with_an_invisible_sign_in_it_gives_its_secret_away() -> None:
    assert redact("pass\u200bword: Zu9rTy2w") == "password: [password 1]"


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2a9c1b77d0e4a2c5b8f6e1d4a7b0c3e6f9a2d5",
        "id 123e4567-e89b-42d3-a456-426614174000",
        "order #W1234567 of 3 items",
        "2026-11-22T08:45:00.123456Z",
        "52.520008, 13.404954",
        "The password must have at least 8 characters.",
        "def login(user: str, password: str) -> Token:",
        "api_key = os.environ['OPENAI_API_KEY']",
        "Authorization: Bearer ${TOKEN}",
        "max_tokens=1024, token_count: 512",
        "git@github.com:acme/repo.git",
        "uses: actions/checkout@v4",
        "120 passed, 3 failed, pass rate: 97%",
        "secretary: Maria",
        "product_id 8310926033, item_id 6777246137",
        "payment_method_id: credit_card_4421486",
        "KeyError: 'password'",
        "tests/test_login.py::test_password_reset_token PASSED",
        "SELECT token, user_id FROM sessions WHERE expired",
    ],
)
def test_what_only_looks_like_a_secret_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_what_stands_in_the_next_line_stays() -> None:
    assert redact(f"DB_PASSWORD={PASSWORD}\nPORT=5432") == "DB_PASSWORD=[password 1]\nPORT=5432"
    assert redact(f"key {TOKEN}\nexport A=1") == "key [github token 1]\nexport A=1"
    assert redact('"token": "a1B2c3D4e5F6",\n"PORT_8080_x": 1') == '"token": "[token 1]",\n"PORT_8080_x": 1'


def test_a_private_key_without_an_end_goes_with_its_lines_and_what_follows_stays() -> None:
    lines = "\n".join(["a1B2c3D4" * 8] * 3)
    dashes = "-" * 5
    assert redact(f"{dashes}BEGIN PRIVATE KEY{dashes}\n{lines}\n\nThen it stopped.").endswith("\n\nThen it stopped.")
    assert "B2c3D4" not in redact(f"{dashes}BEGIN PRIVATE KEY{dashes}\n{lines}\nand no more")


@pytest.mark.parametrize(
    "unknown", ["", "a", "\x00", "\ud800", "\ufeff", "é" * 50, "\u0130" * 9 + " password=hunter2x"]
)
def test_odd_text_is_no_trouble(unknown: str) -> None:
    assert isinstance(redact(unknown), str)
    assert "hunter2x" not in redact(unknown)


def test_a_hidden_sign_does_not_keep_letters_of_another_font_elsewhere_from_being_read() -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in token)
    assert wide not in redact(f"so\u00adft {'and so on ' * 200} {wide}")


# --- a run -----------------------------------------------------------------------------------------------------------


def run(**more: Any) -> Trajectory:
    call = ToolCall(
        name="login",
        id="call_1",
        arguments={
            "user": "jane",
            "password": "correct horse",
            "pin": 7,
            "card": 4111111111111111,
            "max_tokens": 4096,
            "headers": {"Authorization": "Bearer a1B2c3D4e5F6a1B2", "Accept": "text/html"},
            "fields": [{"name": "api_key", "value": "a1B2c3D4e5F6"}, {"name": "size", "value": "large"}],
        },
    )
    steps = (Step(thought="log in", action=Action(text="go", calls=(call,)), observation="welcome, jane@example.org"),)
    return Trajectory(id="r1", task="Write to bob@example.org", steps=steps, **more)


def test_arguments_are_redacted_by_their_names_and_keep_their_shape() -> None:
    call = redacted(run(), redact).steps[0].action.calls[0]
    assert call.arguments == {
        "user": "jane",
        "password": "[password 1]",
        "pin": 7,
        "card": "[card 1]",
        "max_tokens": 4096,
        "headers": {"Authorization": "Bearer [token 1]", "Accept": "text/html"},
        "fields": [{"name": "api_key", "value": "[api key 1]"}, {"name": "size", "value": "large"}],
    }
    assert (call.name, call.id) == ("login", "call_1")


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"pin": "4831"}, {"pin": "[security code 1]"}),
        ({"card_pin": 4831, "cvv": "123"}, {"card_pin": "[security code 1]", "cvv": "[security code 2]"}),
        ({"otp": "482913", "pin": "GPIO17"}, {"otp": "[security code 1]", "pin": "GPIO17"}),
        ({"db_password": {"type": "t", "value": "blue?42"}}, {"db_password": {"type": "t", "value": "[password 1]"}}),
        ({"Name": "/prod/db/password", "Value": "blue?42"}, {"Name": "/prod/db/password", "Value": "[password 1]"}),
        ({"size": {"value": "blue?42"}}, {"size": {"value": "blue?42"}}),
        ({"card": 4111111111111111.0, "ratio": 4111111111.5}, {"card": "[card 1]", "ratio": 4111111111.5}),
        ({"phone": 491711234567.0, "share": 1e300}, {"phone": "[phone 1]", "share": 1e300}),
    ],
)  # fmt: skip
def test_a_field_is_read_by_its_name_or_the_one_around_it_and_a_number_in_any_form(given: Any, left: Any) -> None:
    for arguments in (given, {"rows": [given]}):
        step = Step(action=Action(calls=(ToolCall(name="f", arguments=arguments),)))
        known = redacted(Trajectory(task="t", steps=(step,)), redact).steps[0].action.calls[0].arguments
        assert known == (left if arguments is given else {"rows": [left]})


@pytest.mark.parametrize(
    "field",
    [
        *("password", "apiKey", "x-api-key", "client_secret", "refreshToken", "Authorization", "contraseña", "пароль"),
        *("密码", "aws_secret_access_key", "PASSWORD_1", "pin", "otp", "cvv", "sessionId", "connectionString"),
    ],
)
def test_a_field_named_after_a_secret_loses_its_value_at_any_depth(field: str) -> None:
    value = "Kx92mQ" + "z7wLp4"
    call = ToolCall(name="login", arguments={field: value, "deep": {"x": [{field: value}]}})
    told = redacted(Trajectory(task="t", steps=(Step(action=Action(calls=(call,))),)), redact)
    assert value not in told.model_dump_json()


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "db_password": {\n    "sensitive": true,\n    "type": "string",\n    "value": "SECRET"\n  }\n}',
        '{"Parameter": {"Name": "/prod/db/password", "Type": "SecureString", "Value": "SECRET", "Version": 1}}',
        r'"{\"db_password\": {\"sensitive\": true, \"value\": \"SECRET\"}}"',
    ],
)
def test_a_password_in_printed_data_is_known_by_the_name_around_it_or_beside_it(text: str) -> None:
    assert redact(text.replace("SECRET", "blue?42x")) == text.replace("SECRET", "[password 1]")


def test_every_text_of_a_run_is_redacted_and_its_id_stays() -> None:
    mail = "jane@example.org"
    full = run(
        instructions=mail,
        answer=mail,
        error=mail,
        metadata={mail: 1, "deep": [{"who": mail}]},
        original=({"role": "user", "content": [{"type": "text", "text": mail}]},),
    )
    cleaned = redacted(full, redact)
    assert "@example.org" not in cleaned.model_dump_json()
    assert cleaned.id == "r1"
    assert cleaned.task == "Write to [e-mail 1]"
    assert cleaned.metadata["deep"] == [{"who": "[e-mail 2]"}]
    assert cleaned.original[0] == {"role": "user", "content": [{"type": "text", "text": "[e-mail 2]"}]}
    assert Trajectory.model_validate(cleaned.model_dump()) == cleaned
    assert redacted(cleaned, redact) == cleaned


def test_a_run_with_nothing_to_hide_is_the_same() -> None:
    harmless = Trajectory(
        task="List the orders", steps=(Step(action="ls", observation="#W2611340"),), metadata={"k": 1}
    )
    assert redacted(harmless, redact) == harmless


def test_a_value_that_its_name_gave_away_is_gone_everywhere_also_before() -> None:
    steps = (
        Step(action=f"type {PASSWORD}", observation="typed"),
        Step(action="cat .env", observation=f"DB_PASSWORD={PASSWORD}"),
    )
    cleaned = redacted(Trajectory(task=f"Use {PASSWORD}", steps=steps, answer=f"it was {PASSWORD}"), redact)
    assert PASSWORD not in cleaned.model_dump_json()
    assert cleaned.answer == "it was [password 1]"


def test_a_word_that_served_as_a_password_is_not_hunted_everywhere() -> None:
    steps = (Step(action="x", observation='password = "test"'), Step(action="y", observation='{"password": "monday"}'))
    cleaned = redacted(Trajectory(task="a test on monday", steps=steps), redact)
    assert cleaned.task == "a test on monday"


def test_two_names_that_become_one_lose_no_value() -> None:
    told = redacted(Trajectory(task="t", metadata={"a": 1, "b": 2}), lambda text: "k" if len(text) == 1 else text)
    assert told.metadata == {"k": 1, "k (2)": 2}


def test_an_experience_is_redacted_too() -> None:
    lesson = Lesson(title="Ask jane@example.org", description="x", content=f"Use {KEY} first.")
    cleaned = redacted(Experience(scope="t", task="Ask jane@example.org", lessons=(lesson,)), redact)
    assert cleaned.task == "Ask [e-mail 1]"
    assert (cleaned.lessons[0].title, cleaned.lessons[0].content) == ("Ask [e-mail 1]", "Use [aws key 1] first.")
    assert cleaned.lessons[0].id == lesson.id


@pytest.mark.full
@given(st.lists(hostile, min_size=4, max_size=4))
def test_redacting_a_redacted_run_changes_nothing(texts: list[str]) -> None:
    first, second, third, fourth = texts
    steps = (Step(thought=first, action=second, observation=Observation(text=third, name=fourth)),)
    once = redacted(Trajectory(task=f"t{first}", steps=steps, metadata={"password": fourth, "x": third}), redact)
    assert redacted(once, redact) == once


def test_the_field_of_a_name_that_promises_nothing_is_read_as_text() -> None:
    told = Redaction()
    assert told.field("phone", "030 1234567") == "[phone 1]"
    assert told.field("last_four", "2478") == "2478"
    assert told.field("page_token", "abc") == "abc"
    assert told.field("password", "required") == "required"


# --- at a bank's entrance --------------------------------------------------------------------------------------------


async def test_the_same_task_is_found_again_by_its_redacted_words() -> None:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as bank:
        lesson = Lesson(title="Check first", content="Check the address first.")
        await bank.consolidate(Experience(scope="t", task="Write to jane@example.org today", lessons=(lesson,)))
        recall = await bank.retrieve("Write to jane@example.org today")
    assert recall.task == "Write to [e-mail 1] today"
    assert [shown.id for shown in recall.shown] == [lesson.id]


async def test_a_function_of_the_callers_own_takes_the_place_of_the_built_in_one() -> None:
    async with await lessonbank.connect_async(
        ":memory:",
        scope="t",
        embedder="lexical",
        safety=lessonbank.Safety(redact=lambda text: text.replace("Acme", "[customer]")),
    ) as bank:
        await bank.learn(Trajectory(id="r", task="Call Acme", answer="Acme, jane@example.org"), outcome="success")
        kept = (await bank.runs.get("r")).trajectory
        assert bank.settings["redactor"] == "<lambda>"
    assert (kept.task, kept.answer) == ("Call [customer]", "[customer], jane@example.org")


async def test_none_keeps_every_text_and_a_task_that_is_all_secret_is_still_a_task() -> None:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", safety=lessonbank.Safety(redact=None)
    ) as bank:
        await bank.learn(Trajectory(id="r", task=KEY), outcome="success")
        assert (await bank.runs.get("r")).trajectory.task == KEY
        assert bank.settings["redactor"] == "off"
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", safety=lessonbank.Safety(redact=lambda _: "")
    ) as bank:
        await bank.learn(Trajectory(id="r", task=KEY), outcome="success")
        assert (await bank.runs.get("r")).trajectory.task == "[removed]"
        assert (await bank.retrieve(KEY)).task == "[removed]"


async def test_a_redactor_that_fails_lets_nothing_in() -> None:
    def broken(text: str) -> str:
        raise RuntimeError("no")

    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", safety=lessonbank.Safety(redact=broken)
    ) as bank:
        with pytest.raises(RuntimeError):
            await bank.learn(Trajectory(task="t"), outcome="success")
        with pytest.raises(RuntimeError):
            await bank.retrieve("t")
        assert (await bank.admin.counts()).trajectories == 0


async def test_what_is_no_redactor_is_refused_in_one_sentence() -> None:
    for wrong in (True, "presidio", 3):
        with pytest.raises(UsageError, match="redact= takes a function of text"):
            await lessonbank.connect_async(":memory:", scope="t", safety=lessonbank.Safety(redact=wrong))  # type: ignore[arg-type]
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", safety=lessonbank.Safety(redact=len)
    ) as bank:  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="this one gave int"):
            await bank.learn(Trajectory(task="t"), outcome="success")


async def test_a_run_that_waits_is_learned_from_as_it_was_kept() -> None:
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as bank:
        await bank.learn(run())
        (waiting,) = await bank.runs.pending(limit=10_000)
        assert waiting == redacted(run(), redact)
        learned = await bank.learn(waiting, outcome="success")
        assert learned.experience
        assert (await bank.runs.get("r1")).trajectory == waiting


# --- presidio --------------------------------------------------------------------------------------------------------


class Found:
    def __init__(self, start: int, end: int, entity_type: str) -> None:
        self.start, self.end, self.entity_type = start, end, entity_type


class Names:
    """Recognises one name."""

    def analyze(self, *, text: str, language: str, entities: list[str], score_threshold: float) -> list[Found]:
        at = text.find("Jane Roe")
        return [Found(at, at + 8, "PERSON")] if at >= 0 and "PERSON" in entities else []


def test_presidio_adds_names_to_what_the_built_in_redactor_takes_out() -> None:
    redactor = PresidioRedacting(Names())
    assert redactor("Jane Roe <jane@example.org>") == "[person 1] <[e-mail 1]>"
    cleaned = redacted(Trajectory(task="Call Jane Roe", answer="Jane Roe: done"), redactor)
    assert (cleaned.task, cleaned.answer) == ("Call [person 1]", "[person 1]: done")


def test_without_presidio_the_sentence_says_what_to_install() -> None:
    try:
        import presidio_analyzer  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"lessonbank\[presidio\]"):
            PresidioRedacting()


def test_what_begins_like_a_token_and_goes_on_in_another_alphabet_is_read() -> None:
    text = "eyJ" + "é" * 30 + "." + "a" * 30 + "." + "b" * 30
    assert redact(text) == redact(redact(text))
