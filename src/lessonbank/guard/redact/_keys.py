"""Keys and tokens that are known by their form: providers give them prefixes and lengths so that leaks can be found.

No pattern can fail after a long match, so that hostile text costs no more than a few passes over it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence

from ._spans import Detector, Form, Page, Span, compiled

_L = r"(?<![A-Za-z0-9])"
_R = r"(?![A-Za-z0-9])"


def _mixed(found: re.Match[str]) -> bool:
    """A name such as `sk-learn-contrib-names` has a key's prefix, but not its digits and capitals."""
    body = found[0]
    return any(c.isdigit() for c in body) and (any(c.isupper() for c in body) or bool(re.search("[0-9a-f]{24}", body)))


def _is_jwt(found: re.Match[str]) -> bool:
    """Its first part is the JSON of a header; the pattern matches the first part alone, too, to stay linear."""
    if found["rest"] is None:
        return False
    head = found["head"][:400]
    try:
        return base64.urlsafe_b64decode(head[: len(head) // 4 * 4]).lstrip()[:1] == b"{"
    except binascii.Error:
        return False


def _numbered(found: re.Match[str]) -> bool:
    return any(map(str.isdigit, found[0]))


_GITLAB = tuple(f"gl{name}-" for name in ("pat", "dt", "ptt", "rt", "cbt", "ft", "imt", "agent", "soat", "oas"))
_MODELS = ("gsk_", "xai-", "r8_", "pplx-", "tvly-", "fw_")

FORMS: tuple[Form, ...] = (
    Form("aws key", ("AKIA", "ASIA", "ABIA", "ACCA"), rf"{_L}A(?:KI|SI|BI|CC)A[A-Z0-9]{{16}}{_R}"),
    Form(
        "aws secret",
        ("AKIA", "ASIA"),
        rf"{_L}A[KS]IA[A-Z0-9]{{16}}[\s\"',:;|=\\]{{1,12}}(?:[A-Za-z_ ]{{1,30}}[\s\"',:;|=\\]{{1,6}})?"
        r"(?P<it>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    Form("aws token", ("FwoGZXIvYXdz", "IQoJb3JpZ2lu"), r"(?:FwoGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9/+=]{50,}"),
    Form("google key", ("AIza",), rf"{_L}AIza[\w-]{{35}}(?![\w-])"),
    Form("google token", ("ya29.",), r"(?<![\w-])ya29\.[\w-]{20,}"),
    Form("google token", ("1//0",), r"(?<![\w/-])1//0[\w-]{30,}"),
    Form("google secret", ("GOCSPX-",), rf"{_L}GOCSPX-[\w-]{{24,}}"),
    Form("azure key", ("==",), r"(?<![A-Za-z0-9+/=])(?<=[=:\"' ])[A-Za-z0-9+/]{86}=="),
    Form("azure key", ("AccountKey=", "AccessKey="), r"(?:Account|Access)Key=(?P<it>[A-Za-z0-9+/]{40,}={0,2})"),
    Form("azure secret", ("Q~",), r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    Form("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"{_L}gh[pousr]_[A-Za-z0-9]{{30,}}"),
    Form("github token", ("github_pat_",), r"github_pat_\w{40,}"),
    Form("gitlab token", _GITLAB, rf"{_L}gl(?:pat|dt|ptt|rt|cbt|ft|imt|agent|soat|oas)-[\w.-]{{20,}}"),
    Form("slack token", ("xox", "xapp-"), rf"{_L}(?:xox[abeoprs]|xapp)-[\w-]{{10,}}", _numbered),
    Form(
        "slack webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?P<it>(?:services|workflows|triggers)/[\w/+-]{20,})",
    ),
    Form("discord webhook", ("/api/webhooks/",), r"/api/webhooks/(?P<it>\d{15,22}/[\w-]{50,})"),
    Form("stripe key", ("k_live_", "k_test_"), rf"{_L}[sr]k_(?:live|test)_[A-Za-z0-9]{{10,}}"),
    Form("stripe secret", ("whsec_",), rf"{_L}whsec_[A-Za-z0-9+/]{{24,}}={{0,2}}"),
    Form("anthropic key", ("sk-ant-",), rf"{_L}sk-ant-[\w-]{{20,}}"),
    Form("openai key", ("sk-",), rf"{_L}sk-(?!ant-)[\w-]{{20,}}", _mixed),
    Form("api key", _MODELS, rf"{_L}(?:{'|'.join(_MODELS)})[A-Za-z0-9]{{24,}}", _mixed),
    Form("huggingface token", ("hf_", "api_org_"), rf"{_L}(?:hf|api_org)_[A-Za-z0-9]{{30,}}"),
    Form("npm token", ("npm_",), rf"{_L}npm_[A-Za-z0-9]{{30,}}"),
    Form("pypi token", ("pypi-Ag",), rf"{_L}pypi-Ag[\w-]{{40,}}"),
    Form("sendgrid key", ("SG.",), rf"{_L}SG\.[\w-]{{16,32}}\.[\w-]{{16,64}}"),
    Form("twilio key", ("SK",), rf"{_L}SK[0-9a-f]{{32}}{_R}"),
    Form("telegram token", (":AA",), r"(?<![\w:])\d{8,10}:AA[\w-]{30,}"),
    Form("mailgun key", ("key-",), rf"{_L}key-[0-9a-f]{{32}}{_R}"),
    Form("mailchimp key", ("-us",), rf"{_L}[0-9a-f]{{32}}-us\d{{1,2}}{_R}"),
    Form("shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), rf"{_L}shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}"),
    Form("digitalocean token", ("_v1_",), rf"{_L}do[opr]_v1_[0-9a-f]{{64}}"),
    Form("databricks token", ("dapi",), rf"{_L}dapi[0-9a-f]{{32}}"),
    Form("vault token", ("hvb.", "hvs.", "hvr."), rf"{_L}hv[bsr]\.[\w-]{{24,}}"),
    Form("docker token", ("dckr_",), rf"{_L}dckr_(?:pat|oat)_[\w-]{{20,}}"),
    Form("atlassian token", ("ATATT",), rf"{_L}ATATT[\w=-]{{60,}}"),
    Form("linear key", ("lin_",), rf"{_L}lin_(?:api|oauth)_[A-Za-z0-9]{{32,}}"),
    Form("notion token", ("ntn_", "secret_"), rf"{_L}(?:ntn_[A-Za-z0-9]{{40,}}|secret_[A-Za-z0-9]{{43}}{_R})"),
    Form("postman key", ("PMAK-",), rf"{_L}PMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}"),
    Form("age key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    Form("jwt", ("eyJ",), r"(?<![A-Za-z0-9])(?P<head>eyJ[\w-]{8,}+)(?P<rest>\.[\w-]{8,}+(?:\.[\w-]*+){0,3})?", _is_jwt),
)  # fmt: skip

_LINES = (
    r"(?:(?:\s|\\+[nrt]|[\"'>|#+*]){0,40}+(?:[A-Za-z][A-Za-z-]{2,20}: [^\n\\\"']{1,80}|[A-Za-z0-9+/]{16,}+={0,2}))*+"
)


_BEGUN = (
    r"A(?:KI|SI|BI|CC)A[A-Z0-9]{6,}",
    r"AIza[\w-]{8,}",
    r"(?:ya29\.|1//0|GOCSPX-|sk-ant-|pypi-Ag|SG\.|hv[bsr]\.|ATATT)[\w.=-]{6,}",
    r"gl(?:pat|dt|ptt|rt|cbt|ft|imt|agent|soat|oas)-[\w.-]{6,}",
    r"(?:gh[pousr]_|github_pat_|[sr]k_(?:live|test)_|whsec_|(?:hf|api_org|npm|ntn)_|(?:gsk|r8|fw)_)\w{8,}",
    r"(?:lin_(?:api|oauth)_|dckr_(?:pat|oat)_)\w{8,}",
    r"(?:shp(?:at|ca|pa|ss)_|do[opr]_v1_|dapi|key-|SK|PMAK-)[0-9a-fA-F]{12,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{8,}",
    r"(?:hooks\.slack\.com/\w+|discord(?:app)?\.com/api/webhooks)/[\w/+-]{4,}",
    r"[\w~.-]{3}\dQ~[\w~.-]{8,}",
    r"\d{8,10}:AA[\w-]{8,}",
    r"(?i:\w{0,32}(?:passw(?:or)?d|pwd|secret|token|key)(?:[\"' ]{0,2}[=:][\"' ]{0,2}| is ))[^\s\"']{4,}",
    r"[a-z][a-z0-9+]{1,16}://[^\s/:@]{0,100}:(?!\d{1,5}\Z)[^\s/\"'<>\\]{3,}",
    r"(?:4\d|5[1-5]|2[2-7]|3[47]|6[0245])\d\d[ -]?\d{3,6}(?:[ -]?\d{1,6}){0,2}",
    r"[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){1,7}[A-Z0-9]{0,3}",
    r"[\w.%+'-]{3,64}@[^\W\d][\w.-]*",
    r"\+[1-9]\d{0,2}[ .(/-][\d ./()-]{3,}",
    r"\([2-9]\d\d\) ?\d{2,3}[\d-]*",
    r"(?i:ssn|social security)\W{1,4}\d{3}-?\d*-?\d*",
)
"""How secrets begin, with so many characters that half of the shortest one is there."""
_WINDOW = 400
"""Characters at the end of a text that are looked at, so that hostile text costs no more."""


def cut_off(page: Page, /) -> Iterator[Span]:
    """What a text ends with that begins as a secret does, however much of it is missing.

    In plain text that may be a word; what was encoded and then cut off is nothing that anybody would miss.
    """
    end = len(page.text.rstrip())
    begun = compiled(rf"(?<![A-Za-z0-9])(?:{'|'.join(_BEGUN)})\Z")
    if found := begun.search(page.text[max(0, end - _WINDOW) : end]):
        yield Span(end - len(found[0]), end, "cut-off secret", found[0])


def bots(page: Page, /) -> Iterator[Span]:
    """Tokens of Discord bots: found by their short middle part, because what they begin with is a mere letter."""
    for found in compiled(r"\.[\w-]{6}\.[\w-]{27,40}(?![\w.-])").finditer(page.text):
        first = compiled(r"(?<![\w.-])[MNO][A-Za-z\d_-]{23,25}\Z").search(
            page.text, max(0, found.start() - 27), found.start()
        )
        if first:
            yield Span(first.start(), found.end(), "discord token", first[0] + found[0])


def private_keys(page: Page, /) -> Iterator[Span]:
    """Private keys in PEM, whole, or as far as they go where the end is missing; PuTTY's, too."""
    text = page.text
    if "PRIVATE KEY" not in text and "Private-Lines" not in text:
        return
    opened = list(compiled(r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d+").finditer(text))
    for number, opening in enumerate(opened):
        limit = opened[number + 1].start() if number + 1 < len(opened) else len(text)
        end = _end(text, opening.end(), limit)
        if end > opening.end():
            body = text[opening.end() : end]
            yield Span(opening.start(), end, "private key", re.sub(r"\\[nr]|[^A-Za-z0-9+/]", "", body))


def _end(text: str, start: int, limit: int) -> int:
    """Where a key ends that begins at `start`: behind its last line, or with its last line that is there."""
    closing = text.find("-----END", start, limit)
    if closing >= 0 and (closed := compiled(r"-----END[A-Z0-9 ]{0,60}-----").match(text, closing)):
        return closed.end()
    lines = compiled(_LINES).match(text, start, limit)
    return lines.end() if lines else start


DETECTORS: tuple[Detector, ...] = (*FORMS, bots, private_keys)
_SHORTEST = 15
"""Characters of the shortest one, or of its longest part where blanks stand in it. Private keys have lines of words."""


def promising(page: Page, /) -> Sequence[Detector]:
    """The detectors that may find something: none where no word is as long as the shortest key."""
    if page.long is None or any(len(word) >= _SHORTEST for word in page.long):
        return DETECTORS
    return (private_keys,) if "PRIVATE KEY" in page.text or "Private-Lines" in page.text else ()
