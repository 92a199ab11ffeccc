"""Made-up secrets and personal data in the surroundings that runs of agents have, and harmless text that looks alike.

Nothing here is or was real: every value is drawn with a fixed seed each time, so that no file holds one.
`python tests/security/corpus/secrets_corpus.py` prints what a redactor leaves, by kind and by surrounding.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import unicodedata
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase
HEX = "0123456789abcdef"
BENIGN = Path(__file__).with_name("secrets_benign.jsonl")


@dataclass(frozen=True)
class Case:
    """A text, and what of it must not be readable afterwards, not even half of it."""

    kind: str
    surrounding: str
    text: str
    core: str

    @property
    def id(self) -> str:
        return f"{self.kind} / {self.surrounding}"


class Maker:
    """Draws values of each kind. Each is (what stands in the text, what of it is secret)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def some(self, length: int, letters: str = ALNUM) -> str:
        drawn = [self._random.choice(letters) for _ in range(length)]
        if letters in (ALNUM, UPPER) and length > 3:  # no key without a digit and a capital: one in 10^5 has none
            drawn[1], drawn[-2] = "7", "K"
        return "".join(drawn)

    def word(self) -> str:
        """A password as people choose them."""
        first = self._random.choice(["Winter", "dragon", "Tr0ub4dor", "monkey", "letMeIn", "Kaffee", "s3cure", "blue"])
        return f"{first}{self._random.choice('!#*_')}{self._random.randrange(100, 9999)}"

    def luhn(self, prefix: str, length: int) -> str:
        body = prefix + self.some(length - len(prefix) - 1, string.digits)
        total = sum(sum(divmod(2 * int(d), 10)) if n % 2 == 0 else int(d) for n, d in enumerate(reversed(body)))
        return body + str(-total % 10)

    def iban(self, country: str, length: int) -> str:
        body = self.some(length - 4, string.digits)
        number = "".join(str(int(c, 36)) for c in f"{body}{country}00")
        return f"{country}{98 - int(number) % 97:02d}{body}"

    def jwt(self) -> str:
        parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": self.some(10, string.digits), "role": "admin"})
        coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
        return ".".join([*coded, self.some(43)])

    def pem(self, name: str) -> tuple[str, str]:
        lines = [self.some(64) for _ in range(4)]
        dashes = "-" * 5
        key = f"{name} PRIVATE KEY".strip()
        return "\n".join([f"{dashes}BEGIN {key}{dashes}", *lines, f"{dashes}END {key}{dashes}"]), lines[1]

    def kinds(self) -> dict[str, tuple[str, str]]:
        s = self.some
        alone = {
            "aws key": "AKIA" + s(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
            "aws session key": "ASIA" + s(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
            "google key": "AIza" + s(35),
            "google token": "ya29." + s(60),
            "google client secret": "GOCSPX-" + s(28),
            "azure client secret": s(3) + "8Q~" + s(34),
            "github token": "ghp_" + s(36),
            "github fine-grained": "github_pat_" + s(22) + "_" + s(59),
            "github app": "ghs_" + s(36),
            "gitlab token": "glpat-" + s(20),
            "slack bot": "-".join(["xoxb", s(12, string.digits), s(12, string.digits), s(24)]),
            "slack webhook": f"https://hooks.slack.com/services/T{s(8, UPPER)}/B{s(8, UPPER)}/{s(24)}",
            "discord webhook": f"https://discord.com/api/webhooks/{s(18, string.digits)}/{s(68)}",
            "stripe key": "sk_live_" + s(24),
            "stripe restricted": "rk_live_" + s(24),
            "stripe webhook": "whsec_" + s(32),
            "openai project": "sk-proj-" + s(74) + "T3BlbkFJ" + s(74),
            "openai classic": "sk-" + s(20) + "T3BlbkFJ" + s(20),
            "anthropic key": "sk-ant-api03-" + s(93) + "AA",
            "groq key": "gsk_" + s(52),
            "huggingface token": "hf_" + s(34, string.ascii_letters),
            "npm token": "npm_" + s(36),
            "pypi token": "pypi-AgEIcHlwaS5vcmc" + s(60),
            "sendgrid key": "SG." + s(22) + "." + s(43),
            "twilio key": "SK" + s(32, HEX),
            "telegram token": s(9, string.digits) + ":AA" + s(33),
            "jwt": self.jwt(),
            "age key": "AGE-SECRET-KEY-1" + s(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
            "vault token": "hvs." + s(28),
            "card": self.luhn("4", 16),
            "card in groups": " ".join(re.findall("....", self.luhn("52", 16))),
            "amex": self.luhn("37", 15),
            "iban": self.iban("DE", 22),
            "iban in groups": " ".join(re.findall(".{1,4}", self.iban("NL", 18))),
            "e-mail": f"{s(6, LOWER)}.{s(5, LOWER)}@{s(7, LOWER)}.org",
            "phone abroad": f"+49 {s(3, '23456789')} {s(7, '123456789')}",
            "phone american": f"+1 ({s(3, '23456789')}) {s(3, '23456789')}-{s(4, '123456789')}",
        }
        within = {
            "aws secret": ("aws_secret_access_key={}", s(40)),
            "azure storage": ("AccountKey={}", base64.b64encode(self._random.randbytes(64)).decode()),
            "database": ("postgres://svc:{}@db.internal:5432/app", s(18)),
            "database with a sign": ("mongodb+srv://app:{}@c0.abc.mongodb.net/x", s(8) + "%40" + s(5)),
            "address with a password": ("https://bob:{}@example.com/x", s(14)),
            "bearer": ("Authorization: Bearer {}", s(40)),
            "basic": ("Authorization: Basic {}", base64.b64encode(f"admin:{s(14)}".encode()).decode()),
            "api key header": ("X-Api-Key: {}", s(32)),
            "cookie": ("Cookie: sessionid={}", s(32)),
            "set-cookie": ("Set-Cookie: sid={}; Path=/; HttpOnly", s(32)),
            "password": ('password = "{}"', self.word()),
            "password in yaml": ("db_password: {}", self.word()),
            "password said": ("the password is {}", self.word()),
            "password option": ("--password {}", self.word()),
            "token assigned": ("token={}", s(24)),
            "api key assigned": ("apiKey: '{}'", s(24)),
            "api key of letters": ("API_KEY={}", "sk-secret-key-" + s(24, LOWER)),
            "client secret": ("client_secret={}", s(32)),
            "mysql": ("mysql -u root -p{}", self.word()),
            "curl": ("curl -u admin:{} https://host.internal/x", self.word()),
            "ssn": ("SSN: {}", f"{s(3, '12345')}-{s(2, '123456789')}-{s(4, '123456789')}"),
            "phone said": ("phone: {}", f"0{s(3, '23456789')} {s(6, '123456789')}"),
        }  # fmt: skip
        return {
            **{kind: (value, value) for kind, value in alone.items()},
            **{kind: (form.format(value), value) for kind, (form, value) in within.items()},
            "private key": self.pem("RSA"),
            "private key, encrypted": self.pem("ENCRYPTED"),
            "private key of ssh": self.pem("OPENSSH"),
        }


PLAIN: dict[str, Callable[[str], str]] = {
    "prose": lambda s: f"First I tried it without. Then I used {s} and the call went through.",
    "json": lambda s: json.dumps({"tool": "bash", "output": s, "ok": True}),
    "json in json": lambda s: json.dumps({"message": json.dumps({"out": s, "code": 0})}),
    "environment file": lambda s: f"DEBUG=1\nVALUE={s}\nPORT=8080",
    "shell": lambda s: f"$ export VALUE='{s}' && ./run.sh --verbose",
    "traceback": lambda s: f"Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: cannot use {s!r}",
    "markdown table": lambda s: f"| name | value |\n|---|---|\n| it | {s} |",
    "log line": lambda s: f"2026-03-01T10:00:00Z INFO worker[3]: sent {s} in 12 ms",
}  # fmt: skip
HIDDEN: dict[str, Callable[[str], str]] = {
    "zero width": lambda s: f"Use {s[: len(s) // 2]}\u200b{s[len(s) // 2 :]} here",
    "full width": lambda s: "Use " + "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s) + " here",
    "percent": lambda s: "GET /?q=" + urllib.parse.quote(s, safe="") + " HTTP/1.1",
    "base64": lambda s: "blob " + base64.b64encode(s.encode()).decode() + " end",
    "hex": lambda s: "dump " + s.encode().hex() + " end",
}
WRAPPED = ("across lines", lambda s: f"Use {s[: len(s) // 2]}\n{s[len(s) // 2 :]} here")
_NOT_WRAPPED = {
    "phone abroad", "phone american", "phone said", "ssn", "password in yaml", "password said", "password option",
    "mysql", "curl", "cookie", "set-cookie", "password", "card in groups", "iban in groups", "database with a sign",
    "discord webhook", "api key of letters",
}  # fmt: skip
"""What another line could as well be about: half a telephone number, half a password that is a word."""
SURROUNDINGS = (*PLAIN, *HIDDEN, WRAPPED[0])


def cases() -> list[Case]:
    """Every kind in every surrounding, each with a value of its own."""
    found: list[Case] = []
    for number, (name, put) in enumerate({**PLAIN, **HIDDEN, WRAPPED[0]: WRAPPED[1]}.items()):
        for kind, (value, core) in Maker(number).kinds().items():
            if name != WRAPPED[0] or kind not in _NOT_WRAPPED:
                found.append(Case(kind, name, put(value), core))
    return found


def benign() -> list[str]:
    """Text that must stay as it is: written lines, and drawn ones that look random."""
    drawn = Maker(99)
    written = [json.loads(line) for line in BENIGN.read_text(encoding="utf-8").splitlines()]
    return [*written, *_random_but_harmless(drawn)]


def _random_but_harmless(drawn: Maker) -> Iterator[str]:
    s = drawn.some
    for _ in range(6):
        yield f"commit {s(40, HEX)}"
        yield f"sha256:{s(64, HEX)}"
        yield f'{{"id": "{s(8, HEX)}-{s(4, HEX)}-4{s(3, HEX)}-a{s(3, HEX)}-{s(12, HEX)}"}}'
        yield f"order #W{s(7, string.digits)} is pending"
        yield f"reservation {s(6, UPPER)} for user mia_li_{s(4, string.digits)}"
        yield f'"payment_method_id": "credit_card_{s(7, string.digits)}", "item_id": "{s(10, "123456789")}"'
        yield f'"tool_call_id": "call_{s(24)}"'
        yield f"data:image/png;base64,iVBORw0KGgo{base64.b64encode(s(60).encode('utf-16-le')[1:]).decode()}"
        yield f"index {s(7, HEX)}..{s(7, HEX)} 100644"
        yield f'etag W/"{s(32, HEX)}" took 0.{s(16, string.digits)} s'


# --- what a reader could get back ------------------------------------------------------------------------------------


def leaks(text: str, core: str, /) -> bool:
    """Whether half of `core` can be read in `text`, also after undoing what hides it."""
    return any(part in view for view in readings(text) for part in halves(core))


def halves(core: str, /) -> list[str]:
    """Every half of it."""
    half = min(len(core), max(6, len(core) // 2))
    return [core[i : i + half] for i in range(len(core) - half + 1)]


def readings(text: str, /) -> list[str]:
    """`text` as it is, and with what hides something in it undone."""
    plain = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) not in ("Cf", "Cs", "Co"))
    views = [text, plain, urllib.parse.unquote(plain), re.sub(r"(?:\\n|[\s\\])+", "", plain)]
    for token in re.findall(r"[A-Za-z0-9+/_-]{12,}", plain):
        for shift in range(4):
            rest = token[shift:].replace("-", "+").replace("_", "/")
            views.append(base64.b64decode(rest[: len(rest) // 4 * 4]).decode("latin-1"))
    views += [bytes.fromhex(t[: len(t) // 2 * 2]).decode("latin-1") for t in re.findall(r"[0-9a-f]{12,}", plain)]
    return views


def report(redact: Callable[[str], str], /) -> tuple[dict[str, Counter[str]], list[str]]:
    """Kept safe and leaked, by kind and by surrounding; and the harmless texts that were changed."""
    counts: dict[str, Counter[str]] = {}
    for case in cases():
        told = "leaked" if leaks(redact(case.text), case.core) else "safe"
        counts.setdefault(case.kind, Counter())[told] += 1
        counts.setdefault(f"({case.surrounding})", Counter())[told] += 1
    return counts, [text for text in benign() if redact(text) != text]


if __name__ == "__main__":
    from lessonbank.guard.redact import redact

    table, changed = report(redact)
    for row, count in table.items():
        print(f"{row:28} {count['safe']:4} of {count.total()}")
    total = sum(c.total() for row, c in table.items() if row[0] != "(")
    print(f"{total} cases; harmless texts changed: {len(changed)} of {len(benign())}")
    for text in changed:
        print(f"    {text[:90]!r}")
