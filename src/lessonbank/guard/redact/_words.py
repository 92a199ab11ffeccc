"""Knows which names stand for secrets, and which values next to such a name are harmless."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

KEYS = (
    "api|access|private|auth|encryption|signing|account|shared|master|subscription|license|storage|service|deploy|admin"
    "|lessonbank|writer|reviewer"
    "|openai|anthropic|cohere|gemini|mistral|deepseek|groq|together|azure|stripe|datadog|sendgrid|pinecone|tavily"
)
ABROAD = (
    r"passwort|kennwort|mots?[ _-]de[ _-]passe|(?<![a-z])mdp|contrase(?:ñ|n\u0303?)a"
    r"|(?<![a-z])clave(?: de acceso)?(?![a-z])|(?<![a-z])senha|парол[ьяюе]м?|密[码碼]|口令"
    r"|パスワード|비밀번호|wachtwoord|(?<!\w)hasło|lösenord"
)
"""A password in German, French, Spanish, Portuguese, Russian, Chinese, Japanese, Korean, Dutch, Polish, Swedish."""
CORE = (
    rf"passw(?:or)?d|passwd|pwd|pass[ _-]?phrase|pass[ _-]?code|secret|token|credential|{ABROAD}"
    r"|(?<![a-z])pw(?=[\"' ]{0,2}[:=,])|(?<![a-z])pass(?=[\"'] ?[:=,]|=|$)|(?<=_)pass(?=[\"' ]{0,2}[:=])"
    rf"|(?:{KEYS})[ _-]?key"
)
STEMS = (
    "passw", "pwd", "secret", "token", "credential",
    "kennwort", "mdp", "contrase", "clave", "senha", "парол", "密码", "密碼", "口令", "パスワード", "비밀번호",
    "wachtwoord", "hasło", "lösenord", *(f"mot{s}{gap}de{gap}passe" for s in ("", "s") for gap in " _-"),
    *(f"pw{mark}" for mark in ":= \"'"),
    *(f"pass{mark}" for mark in "=:\"' "),
    *(f"pass{gap}{part}" for gap in ("", " ", "_", "-") for part in ("phrase", "code")),
)  # fmt: skip
"""How a core begins that is no key."""
_CORE = re.compile(CORE)
CODE = "security code"
_CODES = re.compile(r"(?:card[_-]?|user[_-]?)?(?:pin|otp|cvv2?|cvc)(?:[_-]?code)?")
_FIELDS = re.compile(r"(?:php)?sess(?:ion)?[_-]?id|connection[_-]?string")
"""Fields that hold a secret by their whole name; inside a sentence the same words are too usual."""
_ABROAD = re.compile(ABROAD)
_COUNTS = re.compile(
    r"(?:max|min|num|n|total|input|output|prompt|completion|cached|reasoning|next|page|prev|previous|continuation"
    r"|pagination|pad|eos|bos|unk|sep|cls|mask|stop|special|start|end|first|last|per|new|unknown|unexpected)[ _-]?$"
)
_ABOUT = re.compile(
    r"(?:s?(?:count|limit|budget|usage|type|length|len|size|names?|ur[li]|endpoint|path|file|dir|field|label|hint|policy|reset"
    r"|expir|ttl|age|rotation|version|prefix|required|min|max|input|box|placeholder|helper|manager|provider|class"
    r"|format|error|valid|strength|at$|on$|in$|idx|index|id$|ids$|per|used|left|remaining|l(?:än|ae|)ngen?|datei|feld|regel|richtlinie|hinweis)|is[ei]|iz|s$)"
)
_JOINTS = re.compile(r"[^a-z0-9]")
_HARMLESS = re.compile(
    r"""(?ix)
    (?:your|my|the|some|a|an|enter|insert|any|new|old)?[ _-]?
    (?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|(?:api|access|secret|private|auth)?[ _-]?key|value|
       example|string|str|text|varchar|bytes?|int|integer|number|bool|object|any|null|none|nil|true|false|undefined|
       unknown|required|optional|empty|default|redacted|removed|hidden|masked|n/?a|tbd|todo|env|environment|changeme|
       here|test|dummy|fake|foo|bar|baz|invalid|valid|missing|incorrect|wrong|expired|bearer|basic|self|input|hash|uuid|
       erforderlich|pflichtfeld|obligatoire|requis|obligatori[ao]|requerid[ao]|обязательно|必填|不能为空)
    (?:[ _-]?here|s)?
    | [*xX.•·\#_-]+ | <.*> | \[.*\] | \{.* | %[sdr] | %\(\w+\)s | %\w+% | \(.*\) | --[a-z-]+ | \.\.\.+.*
    | \$(?:\w*|[({].*) | [a-z]+:// .*
    """
)
_EXPRESSION = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*[(\[]|[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+$"
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:|[a-z]{2,10}:/)?[/\\][^\s?=]*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?|\d{1,2}:\d\d(?::\d\d)?")
_PIECES = re.compile(r"[_\-.:/= ]")
_PLAIN = re.compile(r"[A-Za-z]*|\d{0,4}|[A-Za-z]{1,2}\d{1,2}|[A-Za-z]+\d{1,3}")

_FOLLOWING = (
    "aabcdgiklmnprstuvwxy babceijlorstuy cacdehiklorstuy dadefilnorsu eabcdefghilmnopqrstuvwxy faefilorstuy"
    " gaeghilmnorsu haeimortuy iabcdefgklmnoprstvxz jaeou kaeilns lacdeilnopstuvy mabeilnopsuy"
    " nabcdefghiklmnoprstuvy oabcdfgiklmnoprstuvwx padehiloprstuy qlu rabcdefgiklmnoprstuvwy"
    " sacdefhiklmnopqrstuwy tacdefhilmoprstuy uabcdefgilmnoprst vaeio waehilnors xaceiptx yaeilmnpst zaeio"
)
"""A letter, and those that come behind it in words."""
_USUAL = frozenset(first + second for first, *seconds in _FOLLOWING.split() for second in seconds)
"""Pairs of letters that words are made of: 97 % of those in English, half of those drawn by chance."""
_LETTERS = re.compile(r"[A-Za-z]{5,}")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SIGNS = re.compile(r"[!#^*?@~]")
_TEMPLATE = re.compile(
    r"[${(<\[%]\w|.*(?:\$[{(]|\{\{|%\()|[^\s=]*\.(?:pem|key|crt|cer|json|ya?ml|toml|env|ini|cfg|conf|txt|py|[jt]sx?|sh)$"
)
"""What is filled in later, or the name of a file."""
_LONG = 16
"""Letters and signs below which what is no word may still be an abbreviation."""


@lru_cache(maxsize=1024)
def kind_of_name(name: str, /) -> str | None:
    """The kind of secret that a field of this name holds, or `None`."""
    low = name.lower()
    if _CODES.fullmatch(low):
        return CODE
    if _FIELDS.fullmatch(low):
        return "secret"
    return next((kind for core in _CORE.finditer(low) if (kind := kind_of_core(low, *core.span()))), None)


def kind_of_core(low: str, start: int, end: int, /, *, last: int | None = None) -> str | None:
    """Return the kind of the core word at `start` to `end` of a name in small letters that goes on to `last`."""
    core = low[start:end]
    about = _JOINTS.sub("", low[end : len(low) if last is None else last])
    if _ABOUT.match(about) or (core == "token" and _COUNTS.search(low[max(0, start - 16) : start])):
        return None
    if (core.startswith("p") and not core.endswith("key")) or _ABROAD.fullmatch(core):
        return "password"
    if core == "token":
        return "token"
    return "api key" if core.endswith("key") else "secret"


def harmless(value: str, /) -> bool:
    """Whether `value` is no secret: a placeholder, a type, a variable, a path, a date."""
    if _HARMLESS.fullmatch(value) or (value[:1].isdigit() and _DATE.fullmatch(value)):
        return True
    path = ("/" in value or "\\" in value) and _PATH.fullmatch(value)
    return bool(path) and not any(map(random_looking, _PIECES.split(value)))


def expression(value: str, /) -> bool:
    """Whether `value`, unquoted, is code that gets a secret from elsewhere."""
    return bool(_EXPRESSION.match(value)) and not any(map(random_looking, re.split(r"\W+", value)))


def random_looking(value: str, /) -> bool:
    """Whether `value` has digits among letters and repeats itself no more than chance does: no name, no word."""
    value = value[:256]
    if len(value) < 8 or all(map(_PLAIN.fullmatch, _PIECES.split(value))):
        return False
    if not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    return _entropy(value) >= 2.5


def is_unpronounceable(value: str, /) -> bool:
    """Whether `value` is long, in one piece, and neither a word nor words put together, digits or not."""
    value = value[:256]
    if len(value) < _LONG or not value.isascii() or re.search(r"\s", value) or _TEMPLATE.match(value):
        return False
    odd = sum(len(run) for run in _LETTERS.findall(value) if not _is_words(run))
    return odd >= _LONG // 2 or len(_SIGNS.findall(value)) > 1


def _is_words(run: str) -> bool:
    """Whether letters in a row are a word, or several in the way of `camelCase`: keys change case more often."""
    humps: list[str] = _HUMPS.findall(run)
    return all(map(_is_word, humps if len(run) >= 3.2 * len(humps) else [run]))


def _is_word(run: str) -> bool:
    low = run.lower()
    unusual = sum(low[at : at + 2] not in _USUAL for at in range(len(low) - 1))
    return len(low) < 5 or len(set(low)) < 4 or unusual < max(2, len(low) * (0.25 if len(low) < 10 else 0.2))


def looks_like_password(value: str, /) -> bool:
    """Whether people choose `value` as a password: letters with a digit or a sign among them, or many digits."""
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    signs = len(value) - digits - letters - value.count("_") - value.count("-") - value.count(".")
    return bool(len(value) >= 4 and letters and (digits or signs)) or (digits >= 6 and digits == len(value))


def _entropy(value: str) -> float:
    """Bits for a character, by how often each occurs."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
