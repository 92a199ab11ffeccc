"""Makes everyday texts that hold no secret and nobody's data: half are logs, ids, times and tables."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Sequence

_WORDS = tuple(
    re.findall(
        r"\w+",
        "order parcel invoice cache queue worker index table report shipment label batch record window filter page "
        "plan task lesson branch commit build deploy cluster region node shard replica budget limit refund ticket",
    )
)
_CHOICES = {
    "level": ("INFO", "WARN", "ERROR", "DEBUG"),
    "module": (
        "app.http",
        "app.jobs",
        "db.pool",
        "worker",
        "scheduler",
        "kernel",
        "sshd",
        "nginx",
        "cron",
        "api.v2.orders",
    ),
    "method": ("GET", "POST", "PUT", "DELETE", "PATCH"),
    "word": _WORDS,
}
_LOGS = (
    '<host> - - [12/Mar/2026:10:<2>:07 +0000] "<method> /<word>/<id> HTTP/1.1" <3> <5>',
    "<time> <level> <module>: <word> <id> took <4> ms",
    "Mar <2> 04:<2>:12 <word> <module>[<5>]: <word>=<4> <word>=<hex8>",
    '{"ts": "<time>", "level": "<level>", "trace_id": "<hex32>", "span": "<hex16>", "msg": "<word>", "n": <9>}',
    "commit <hex40>\nDate:   Tue Mar <1> 09:12:44 2026 +0100\n\n    Keep the <word> of <word> <2>",
    "tests/test_<word>.py::test_<word>[<2>-<word>] PASSED [<2>%] in <1>.<2>s",
    "[<3>.<6>] <word> 0000:<hex2>:00.0: BAR <1> [mem 0x<hex8>-0x<hex8>]",
    "+<1> -<1> src/<word>/<word>.py | <2> +++--",
)
_IDS = (
    "<uuid>", "<hex40>", "<hex7>", "sha256:<hex64>", "<4>", "<9>", "<12>", "<16>", "<19>", "<AA>-<6>", "#W<7>",
    "<ULID>", "<word>-<hex9>-<hex5>", "<3>-<3>-<3>", "<4>-<6>", "arn:aws:s3:::<word>-<4>", "<word>_<3>", "v<1>.<2>.<1>",
    "sha512-<base64>", "<2>.<4>/<word>.<7>",
)  # fmt: skip
_PROSE = (
    "Look at the newest {a} first: the older one may hold a {b} of last week.",
    "The {a} is made once a day, at {n}:15, and the {b} follows {m} minutes later.",
    "Version {n}.{m}.1 reads the password from the environment and never from the {a}.",
    "Ask for the {a} number, then check the {b} in section {n}.{m} of the handbook.",
    "A token of the page is counted, so that {n}{m}0 tokens are the limit of a {a}.",
    "Phones are sold in {n} countries; call the {a} service only after the {b} is there.",
    "Die {a} wird um {n}:30 Uhr erstellt, das Passwort steht nicht darin.",
    "La {a} contient {n} lignes et {m} colonnes; le mot de passe est demandé plus tard.",
    "El {a} tiene {n} filas, y la contraseña se pide después.",
    "请先检查 {a}，再打开第 {n} 页；密码不在这里。",
)
_CODE = (
    "def {a}_of(self, key: str, *, limit: int = {n}) -> list[str]:\n    return self._{b}[key][:limit]\n",
    'const {a} = ["{b}-{n}", "{b}-{m}"].join("/") + "?page=" + {n};\n',
    "SELECT {a}_id, count(*) FROM {b}s WHERE created_at > '2025-0{d}-1{d} 0{d}:00:00' GROUP BY 1 LIMIT {n};\n",
    "password = os.environ['{A}_PASSWORD']\ntoken = settings.{b}_token\n",
    'assert {a}(values=[{n}, {m}, {d}]) == {{"{b}": {n}.5}}\n',
    "git log --since='{d} days ago' --format='%h %an %s' -- src/{a}/{b}.py | head -{n}\n",
    "curl -s -o /dev/null -w '%{{http_code}}' https://example.com/{a}/{n}?{b}={m}\n",
    '[{a}]\n{b}_timeout = {n}\nmax_tokens = {m}000\nsecret_name = "{a}-{b}"\n',
    "| `{a}` | **{n}** | ~~{m}~~ | *{b}* |\n|---|---|---|---|\n",
    "<tr><td>{a}</td><td>{n}</td></tr><tr><td><b>{b}</b></td><td>{m}</td></tr>\n",
    'path = "src/" + "{a}2" + "/{b}_v{d}.json"\n',
    "for i in $(seq 1 {n}); do echo \"{a}$i\" '{b}{d}x'; done\n",
)


class _Draw:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def word(self) -> str:
        return self.chance.choice(_WORDS)

    def of(self, letters: str, length: int) -> str:
        return "".join(self.chance.choices(letters, k=length))

    def digits(self, length: int) -> str:
        return str(self.chance.randrange(1, 10)) + self.of(string.digits, length - 1)

    def time(self) -> str:
        c = self.chance
        day = f"20{c.randrange(19, 27)}-{c.randrange(1, 13):02}-{c.randrange(1, 29):02}"
        clock = f"{c.randrange(24):02}:{c.randrange(60):02}:{c.randrange(60):02}"
        forms = (f"{day}T{clock}Z", f"{day} {clock},{c.randrange(1000):03}", f"{day}T{clock}.{self.digits(6)}+02:00")
        return c.choice((*forms, day, clock, self.digits(10), self.digits(13), self.digits(19)))

    def host(self) -> str:
        c = self.chance
        return c.choice(
            (".".join(str(c.randrange(1, 255)) for _ in range(4)), f"{self.word()}-{c.randrange(40)}.local")
        )

    def id(self) -> str:
        return self.filled(self.chance.choice(_IDS))

    def filled(self, form: str) -> str:
        """`form` with something drawn for each name in angle brackets."""
        return re.sub(r"<(\w+)>", lambda name: self._named(name[1]), form)

    def _named(self, name: str) -> str:
        if name in _CHOICES:
            return self.chance.choice(_CHOICES[name])
        if name.isdigit():
            return self.digits(int(name))
        if name.startswith("hex"):
            return self.of("0123456789abcdef", int(name[3:]))
        other: dict[str, Callable[[], str]] = {
            "AA": lambda: self.of(string.ascii_uppercase, 2),
            "ULID": lambda: self.of(string.ascii_uppercase + string.digits, 26),
            "base64": lambda: base64.b64encode(self.chance.randbytes(64)).decode(),
            "host": self.host,
            "id": self.id,
            "time": self.time,
            "uuid": lambda: str(uuid.UUID(int=self.chance.getrandbits(128), version=4)),
        }
        return other[name]()


def _log(d: _Draw) -> str:
    return "\n".join(d.filled(d.chance.choice(_LOGS)) for _ in range(d.chance.randrange(1, 8)))


def _ids(d: _Draw) -> str:
    ids, field = [d.id() for _ in range(d.chance.randrange(1, 7))], d.word()
    forms = (
        ", ".join(ids),
        "\n".join(f"- {one}" for one in ids),
        json.dumps(ids),
        json.dumps({f"{field}_ids": ids}, indent=2),
        "\n".join(f"{field}_id={one}" for one in ids),
        " ".join(f"`{one}`" for one in ids),
        repr(ids),
    )
    return d.chance.choice(forms)


def _times(d: _Draw) -> str:
    times = [d.time() for _ in range(d.chance.randrange(1, 7))]
    forms = (
        " to ".join(times),
        json.dumps({f"{d.word()}_at": one for one in times}),
        "\n".join(f"{one}  {d.word()}" for one in times),
        d.filled(f"<2> <1> * * <1> /usr/bin/<word> # since {times[0]}"),
        ", ".join(times),
    )
    return d.chance.choice(forms)


def _table(d: _Draw) -> str:
    c = d.chance
    kinds = ("<id>", "<time>", "<word>", "<1>", "<3>", "<8>", "<4>.<2>", "$<3>.00")
    columns = [c.choice(kinds) for _ in range(c.randrange(2, 6))]
    heads = [d.word() for _ in columns]
    rows = [[d.filled(cell) for cell in columns] for _ in range(c.randrange(1, 7))]
    return c.choice((_markdown, _csv, _tsv, _psql, _html, _records))(heads, rows)


Rows = Sequence[Sequence[str]]


def _markdown(heads: Sequence[str], rows: Rows) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def _csv(heads: Sequence[str], rows: Rows) -> str:
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in (heads, *rows))


def _tsv(heads: Sequence[str], rows: Rows) -> str:
    return "\n".join("\t".join(row) for row in (heads, *rows))


def _psql(heads: Sequence[str], rows: Rows) -> str:
    return "\n".join(" | ".join(row) for row in (heads, *rows)) + f"\n({len(rows)} rows)"


def _html(heads: Sequence[str], rows: Rows) -> str:
    return "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in (heads, *rows))


def _records(heads: Sequence[str], rows: Rows) -> str:
    return json.dumps([dict(zip(heads, row, strict=True)) for row in rows])


def _said(d: _Draw, forms: Sequence[str], most: int) -> str:
    c, told = d.chance, list[str]()
    for form in [c.choice(forms) for _ in range(c.randrange(1, most))]:
        words = {"a": d.word(), "b": d.word(), "A": d.word().upper()}
        told.append(form.format(**words, n=c.randrange(10, 24), m=c.randrange(10, 60), d=c.randrange(1, 9)))
    return "\n".join(told)


_NUMBERS = (_log, _ids, _times, _table)


def texts(seed: int = 0, *, number: int = 2_000) -> list[str]:
    """`number` texts, drawn with `seed`: the even ones logs, ids, times and tables, the odd ones prose and code."""
    d = _Draw(seed)
    return [
        _NUMBERS[at // 2 % 4](d) if at % 2 == 0 else _said(d, _PROSE if at % 4 == 1 else _CODE, 6)
        for at in range(number)
    ]
