"""Secrets and harmless texts that nobody chose with the rules in hand, so that the redactor can be measured.

Every secret is drawn from a seeded generator or put together from parts: no scanner takes this file for a leak.
`{}` is where the secret stands. A secret leaks if it, or half of it, can still be read.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import NamedTuple

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_WORD = _LETTERS + "0123456789"
_HEX = "0123456789abcdef"
_BASE64 = _WORD + "+/"
_URL = _WORD + "-_"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"
_CRYPT = "./" + _WORD
NBSP, THIN, NARROW, FIGURE = "\u00a0", "\u2009", "\u202f", "\u2007"


class Leak(NamedTuple):
    kind: str
    text: str
    secret: str


def _drawn(seed: str, alphabet: str, length: int) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


# kind, text, what stands before the drawn part, its alphabet, its length
_VENDORS: tuple[tuple[str, str, str, str, int], ...] = (
    ("1password", "op signin uses {} here", "ops_" + "eyJ", _BASE64, 250),
    ("1password key", "Secret key: {}", "A3-" + "ASWWYB-", "", 0),
    ("adobe", "client secret of Adobe is {}", "p8e-", _LOWER, 32),
    ("age", "identity {}", "AGE-SECRET-" + "KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    ("airtable", "curl -H 'Auth' {} ok", "pat" + "Ab1cD2eF3gH4iJ" + ".", _HEX, 64),
    ("alibaba", "keyid {}", "LTAI", _WORD, 20),
    ("anthropic", "I exported {} first", "sk-ant-" + "api03-", _URL, 93),
    ("anthropic admin", "admin {}", "sk-ant-" + "admin01-", _URL, 93),
    ("jfrog", "jfrog uses {} to log in", "AKCp", _WORD, 69),
    ("jfrog ref", "ref {}", "cmVmd", _WORD, 59),
    ("atlassian", "jira {} works", "ATATT3", _URL, 186),
    ("authress", "service {} is used", "sc_" + "abc12." + "cde4." + "acc-1234567890." , _URL, 44),
    ("aws", "id {}", "AKIA", _BASE32, 16),
    ("aws bedrock", "bedrock {}", "ABSK", _BASE64, 120),
    ("azure ad", "az login with {}", "Abc8Q~", _URL, 34),
    ("clickhouse", "cloud {}", "4b1d", _WORD, 38),
    ("clojars", "deploy with {}", "CLOJARS_", _LOWER, 60),
    ("databricks", "host token {}", "dapi", _HEX, 32),
    ("digitalocean", "doctl auth {}", "dop_" + "v1_", _HEX, 64),
    ("doppler", "doppler uses {}", "dp.pt.", _WORD, 43),
    ("duffel", "flight api {}", "duffel_" + "live_", _URL, 43),
    ("dynatrace", "monitor {}", "dt0c01." + _drawn("dt", _BASE32, 24) + ".", _BASE32, 64),
    ("easypost", "ship with {}", "EZAK", _WORD, 54),
    ("facebook", "graph {}", "EAAM", _WORD, 120),
    ("flutterwave", "pay {}", "FLWSECK_" + "TEST-", _HEX, 32),
    ("fly.io", "flyctl {}", "FlyV1 fm2_", _BASE64, 120),
    ("frameio", "video {}", "fio-u-", _URL, 64),
    ("github", "git push https {}", "ghp_", _WORD, 36),
    ("github fine", "pat {}", "github_" + "pat_", _WORD, 82),
    ("gitlab", "ci {}", "glpat-", _URL, 20),
    ("gitlab deploy", "deploy {}", "gldt-", _URL, 20),
    ("gitlab runner", "runner {}", "GR1348941", _URL, 20),
    ("gitlab kas", "agent {}", "glagent-", _URL, 50),
    ("gitlab feed", "feed {}", "glft-", _URL, 20),
    ("google", "maps {}", "AIza", _URL, 35),
    ("grafana", "grafana {}", "glc_", _BASE64, 60),
    ("grafana service", "service {}", "glsa_" + _drawn("gl", _WORD, 32) + "_", _HEX, 8),
    ("harness", "harness {}", "pat." + _drawn("h1", _URL, 22) + "." + _drawn("h2", _HEX, 24) + ".", _WORD, 20),
    ("hashicorp tf", "terraform {}", "Ab3dEf7hIj1kLm" + ".atlasv1.", _URL, 65),
    ("heroku", "heroku {}", "HRKU-" + "AA", _URL, 58),
    ("huggingface", "model hub {}", "hf_", _LETTERS, 34),
    ("infracost", "infracost {}", "ico-", _WORD, 32),
    ("intra42", "42 {}", "s-s4t2ud-", _HEX, 64),
    ("langfuse", "traces {}", "sk-lf-", _HEX, 36),
    ("langsmith", "traces {}", "lsv2_" + "pt_" + _drawn("ls", _HEX, 32) + "_", _HEX, 10),
    ("linear", "linear {}", "lin_" + "api_", _WORD, 40),
    ("mailchimp", "mail {}", _drawn("mc", _HEX, 32) + "-us", "", 0),
    ("mapbox", "map {}", "sk." + "eyJ", _WORD, 70),
    ("maxmind", "geo {}", _drawn("mm", _WORD, 6) + "_" + _drawn("mn", _WORD, 29) + "_mmk", "", 0),
    ("microsoft teams", "post to https://acme.webhook.office.com/webhookb2/{}", "", _HEX, 32),
    ("new relic", "newrelic {}", "NRAK-", _UPPER, 27),
    ("new relic insert", "insert {}", "NRII-", _URL, 32),
    ("notion", "notion {}", "ntn_" + "12345678901", _WORD, 35),
    ("npm", "publish {}", "npm_", _WORD, 36),
    ("nuget", "push with {}", "oy2", _LOWER, 43),
    ("octopus", "octo {}", "API-", _UPPER, 26),
    ("openai", "openai {}", "sk-" + "proj-", _URL, 120),
    ("openrouter", "router {}", "sk-or-" + "v1-", _HEX, 64),
    ("openshift", "oc login {}", "sha256~", _URL, 43),
    ("perplexity", "pplx {}", "pplx-", _WORD, 48),
    ("planetscale", "db {}", "pscale_" + "tkn_", _URL, 43),
    ("planetscale pw", "db {}", "pscale_" + "pw_", _URL, 43),
    ("plaid", "plaid {} used", "access-" + "sandbox-", "", 0),
    ("postman", "postman {}", "PMAK-" + _drawn("pm", _HEX, 24) + "-", _HEX, 34),
    ("prefect", "prefect {}", "pnu_", _LOWER, 36),
    ("pulumi", "pulumi {}", "pul-", _HEX, 40),
    ("pypi", "twine {}", "pypi-" + "AgEIcHlwaS5vcmc", _URL, 70),
    ("readme", "docs {}", "rdme_", _LOWER, 70),
    ("replicate", "replicate {}", "r8_", _WORD, 37),
    ("resend", "mail {}", "re_" + "AbCd3Fgh_", _WORD, 24),
    ("rubygems", "gem push {}", "rubygems_", _HEX, 48),
    ("scalingo", "scalingo {}", "tk-us-", _URL, 48),
    ("sendgrid", "send {}", "SG." + _drawn("sg", _URL, 22) + ".", _URL, 43),
    ("sendinblue", "mail {}", "xkeysib-" + _drawn("sib", _HEX, 64) + "-", _WORD, 16),
    ("sentry org", "sentry {}", "sntrys_" + "eyJpYXQiOjE3", _BASE64, 120),
    ("sentry user", "sentry {}", "sntryu_", _HEX, 64),
    ("settlemint", "chain {}", "sm_" + "pat_", _WORD, 16),
    ("shippo", "label {}", "shippo_" + "live_", _HEX, 40),
    ("shopify", "shop {}", "shpat_", _HEX, 32),
    ("slack", "slack {}", "xoxb-" + "123456789012-" + "123456789012-", _WORD, 24),
    ("slack app", "slack {}", "xapp-1-" + "A0123456789-" + "1234567890123-", _HEX, 64),
    ("slack config", "slack {}", "xoxe." + "xoxp-1-", _WORD, 146),
    ("sonar", "scan with {}", "sqp_", _HEX, 40),
    ("sourcegraph", "src {}", "sgp_" + _drawn("src", _HEX, 16) + "_", _HEX, 40),
    ("square", "square {}", "EAAA", _URL, 60),
    ("square old", "square {}", "sq0atp-", _URL, 22),
    ("stripe", "stripe {}", "sk_" + "live_", _WORD, 24),
    ("stripe restricted", "stripe {}", "rk_" + "prod_", _WORD, 40),
    ("supabase", "supabase {}", "sbp_", _HEX, 40),
    ("tailscale", "tailscale up {}", "tskey-" + "auth-" + "kAbc12CNTRL-", _WORD, 32),
    ("telegram", "bot {}", "123456789:" + "AAE", _URL, 32),
    ("tinybird", "tiny {}", "p.eyJ1Ijog", _WORD, 60),
    ("twilio", "twilio {}", "SK", _HEX, 32),
    ("typeform", "form {}", "tfp_", _URL, 59),
    ("vault", "vault {}", "hvs.", _URL, 95),
    ("vercel", "deploy {}", "vcp_", _WORD, 56),
    ("yandex", "cloud {}", "AQVN", _URL, 36),
    ("yandex iam", "cloud {}", "t1." + _drawn("ya", _WORD, 20) + ".", _URL, 86),
    ("zapier", "hook https://hooks.zapier.com/hooks/catch/{}", "1234567/", _LOWER, 12),
)  # fmt: skip

_PASSWORD = "Sommer" + "!2024x"
_NAMED: tuple[tuple[str, str], ...] = (
    ("german", "Das Passwort lautet {}."),
    ("german label", "Kennwort: {}"),
    ("german prose", "Mein Passwort ist {}, bitte nicht weitergeben"),
    ("german access", "Zugangsdaten: Benutzer max, Passwort {}"),
    ("german code", "passwort = '{}'"),
    ("french", "Mot de passe : {}"),
    ("french prose", "le mot de passe est {}"),
    ("french code", 'mot_de_passe = "{}"'),
    ("french short", "mdp: {}"),
    ("spanish", "Contraseña: {}"),
    ("spanish prose", "la contraseña es {} desde ayer"),
    ("spanish plain", "contrasena={}"),
    ("spanish key", "clave: {}"),
    ("russian", "Пароль: {}"),
    ("russian prose", "мой пароль {}"),
    ("russian code", "пароль = '{}'"),
    ("chinese", "密码:{}"),
    ("chinese wide", "密码\uff1a{}"),
    ("chinese prose", "密码是{}"),
    ("chinese traditional", "密碼: {}"),
    ("chinese command", "口令:{}"),
    ("english", "the password is {}"),
    ("english label", "Password: {}"),
    ("env", "DB_PASSWORD={}"),
    ("yaml", "db:\n  user: root\n  password: {}\n"),
    ("json", '{{"user": "ann", "password": "{}"}}'),
    ("url", "postgres://app:{}@db.internal:5432/app"),
    ("curl", "curl -u admin:{} https://intranet.test/"),
    ("option", "mysqldump -uroot -p{} shop"),
    ("pgpass", "db.internal:5432:shop:app:{}"),
    ("pgpass star", "*:*:*:postgres:{}"),
    ("pgpass local", "localhost:5432:*:ann:{}"),
    ("netrc", "machine api.example.net login ann password {}"),
    ("sql", "CREATE USER ann IDENTIFIED BY '{}';"),
    ("sql alter", "ALTER ROLE ann WITH PASSWORD '{}';"),
    ("net use", "net use z: \\\\files\\share /user:ann {}"),
    ("ldap", "ldapsearch -x -D cn=admin -w {} -b dc=x"),
    ("htpasswd", "htpasswd -bc .htpasswd ann {}"),
    ("ansible", "ansible_become_pass: {}"),
    ("powershell", "ConvertTo-SecureString '{}' -AsPlainText -Force"),
)


def _hashes() -> Iterator[Leak]:
    def crypt(kind: str, head: str, length: int, text: str = "{}") -> Leak:
        value = head + _drawn(kind, _CRYPT, length)
        return Leak(kind, text.format(value), value)

    yield crypt("bcrypt", "$2" + "b$12$", 53)
    yield crypt("sha512crypt", "$6" + "$Zk3mB1tQ$", 86, "root:{}:19000:0:99999:7:::")
    yield crypt("sha256crypt", "$5" + "$rounds=5000$Zk3mB1tQ$", 43)
    yield crypt("md5crypt", "$1" + "$Zk3mB1tQ$", 22, "admin:{}:0:0:root")
    yield crypt("apr1", "$apr1" + "$Zk3mB1tQ$", 22, "ann:{}")
    yield crypt("yescrypt", "$y" + "$j9T$Zk3mB1tQabcd$", 43, "ubuntu:{}:19500:0:99999:7:::")
    yield crypt("argon2", "$argon2id" + "$v=19$m=65536,t=3,p=4$c29tZXNhbHRzb21l$", 43)
    yield crypt("pbkdf2", "pbkdf2_sha256" + "$600000$aBcDeFgHiJkL$", 43, "hash in auth_user: {}=")
    yield crypt("scrypt", "scrypt" + ":32768:8:1$aBcDeFgHiJkL$", 128)
    value = "{SSHA}" + _drawn("ssha", _BASE64, 38) + "=="
    yield Leak("ssha", f"userPassword: {value}", value)
    lm, nt = _drawn("lm", _HEX, 32), _drawn("nt", _HEX, 32)
    yield Leak("ntlm", f"Administrator:500:{lm}:{nt}:::", nt)
    value = "*" + _drawn("mysql", "0123456789ABCDEF", 40)
    yield Leak("mysql hash", f"IDENTIFIED BY PASSWORD '{value}'", value)


def _numbers() -> Iterator[Leak]:
    iban, card = "DE89 3704 0044 0532 0130 00", "4111 1111 1111 1111"
    for name, blank in (("nbsp", NBSP), ("thin", THIN), ("narrow", NARROW), ("figure", FIGURE)):
        yield Leak(f"iban {name}", f"Konto {iban.replace(' ', blank)} bitte", iban.replace(" ", blank))
        yield Leak(f"card {name}", f"card {card.replace(' ', blank)} exp 12/29", card.replace(" ", blank))
    yield Leak("iban", f"pay to {iban}", iban)
    yield Leak("card", f"pay with {card}", card)


def _der(kind: str, head: bytes, size: int) -> str:
    return base64.b64encode(head + random.Random(kind).randbytes(size)).decode()


def _keys_without_a_header() -> Iterator[Leak]:
    pkcs8 = _der("pkcs8", bytes.fromhex("308204be020100300d06092a864886f70d0101010500048204a8308204a4020100"), 1180)
    rsa = _der("rsa", bytes.fromhex("308204a40201000282010100"), 1180)
    ec = _der("ec", bytes.fromhex("30770201010420"), 112)
    ed25519 = _der("ed25519", bytes.fromhex("302e020100300506032b657004220420"), 32)
    openssh = _der("openssh", b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01", 350)
    yield Leak("pkcs8", f"key body: {pkcs8}", pkcs8)
    yield Leak("rsa", "\n".join(rsa[at : at + 64] for at in range(0, len(rsa), 64)), rsa[:64])
    yield Leak("ec", f'{{"key": "{ec}"}}', ec)
    yield Leak("ed25519", f"the line was {ed25519}", ed25519)
    yield Leak("openssh", "\n".join(openssh[at : at + 70] for at in range(0, len(openssh), 70)), openssh[70:140])


def secrets() -> list[Leak]:
    found = list[Leak]()
    for kind, text, head, alphabet, length in _VENDORS:
        value = head + _drawn(kind, alphabet, length) if alphabet else head
        if kind == "1password key":
            value = head + "-".join(_drawn(f"1p{at}", _UPPER, 5) for at in range(5))
        elif kind == "mailchimp":
            value = f"{head}14"
        elif kind == "plaid":
            value = head + "-".join(_drawn(f"pl{n}", _HEX, n) for n in (8, 4, 4, 4, 12))
        found.append(Leak(kind, text.format(value), value))
    found += [Leak(kind, text.format(_PASSWORD), _PASSWORD) for kind, text in _NAMED]
    return [*found, *_hashes(), *_numbers(), *_keys_without_a_header()]


HARMLESS: tuple[str, ...] = (
    # settings and code
    "theme=dark", "Set-Cookie is missing", "cookie: theme=dark; lang=en", "Cookie: theme=dark", "lang=en; consent=yes",
    "token = tokenizer.decode(ids)", "for token in tokens: print(token)", "The token is a word piece.",
    "token=<unk> was replaced", "max_tokens=4096", "num_tokens: 128000", "key = lambda row: row.name",
    "sorted(rows, key=itemgetter(1))", "primary_key=True", "foreign key (user_id) references users(id)",
    "api_key=os.environ['OPENAI_API_KEY']", "password = getpass.getpass()", "password: str | None = None",
    "def check_password(password: str) -> bool:", "Password must have at least 12 characters.",
    "password_field = driver.find_element(By.ID, 'password')", "secret: !vault_ref db/creds",
    "PASSWORD=${DB_PASSWORD}", "password: {{ vault_password }}", "token: $GITHUB_TOKEN", "export TOKEN=\"$(cat file)\"",
    "--password-stdin", "docker login --username ann --password-stdin", "the keyboard key is Enter", "press key F5",
    "key: value", "keys: [a, b, c]", "secret_name: db-credentials", "tokenizer=gpt2", "pad_token='[PAD]'",
    "token: str = ''", "authorization: required", "Authorization is needed for this call", "bearer of bad news today",
    "basic auth is off", "Basic arithmetic operations", "passwd -l ann", "pwd: /srv/projects/shop",
    "PWD=/srv/app", "passed=12 failed=3", "pass: 12, fail: 0", "passing=true",
    # addresses that anybody may know
    "listen on 127.0.0.1:8080", "ping 8.8.8.8", "nameserver 1.1.1.1", "192.0.2.1 is for documentation",
    "10.0.0.0/8 is private", "2001:db8::1", "version 4.11.1.1111", "0.0.0.0:5432",
    "https://docs.python.org/3/library/re.html#re.compile", "git@github.com:acme/shop.git",
    "https://user@example.com/path", "1600 Amphitheatre Parkway, Mountain View", "Platz der Republik 1, 11011 Berlin",
    "see https://example.com/a?page=2&sort=asc", "noreply@ is the sender", "npm i @acme/button@1.2.3",
    "actions/checkout@v4", "@pytest.mark.full", "user@host", "s3://bucket/key/part-0001.parquet",
    # numbers
    "order #W1234567 and #W7654321", "3.14159265358979323846", "1700000000 seconds since 1970", "2026-11-22T08:40:00Z",
    "ISBN 978-3-16-148410-0", "build 20261122.1", "4,111,111,111 rows", "port 5432:5432", "commit 9fceb02",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "9fceb02d0ae598e95dc970b74767f19372d61af8", "uuid 123e4567-e89b-12d3-a456-426614174000", "0xdeadbeefcafebabe",
    "chunk 0001 0002 0003 0004", "1234 5678", "DE 89 is a road", "IBAN must be checked by mod 97", "12:34:56:78:9a:bc",
    "tel. is not given", "call extension 42", "0123456789", "PI=3.14159", "90210 Beverly Hills", "size 4096x2160",
    # lines with colons, hashes and long runs
    "src/app.py:42:13:error:E501", "host:port:db:user:password", "drwxr-xr-x 2 ann ann 4096", "a:b:c:d:e",
    "12:30:45:info:started", "localhost:5432:shop:app", "root:x:0:0:root:/root:/bin/bash",
    "nobody:*:19000:0:99999:7:::", "daemon:!:19000::::::", "cost is $2 and $5 each", "$1 $2 $3 are arguments",
    "echo $6", "$argon2id is the scheme", "bcrypt with cost 12", "$2b$ marks bcrypt", "{SSHA} is salted",
    "integrity=\"sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC\"",
    "sha512-MIIZQ4dIYMzH2z2P9p1nIa0AhmVr8m2hJ0oX5z8vJ1xYQ8x0cV6mN3bK7lG5dF4sA2qWeRtYuIoPzXcVbNmLkJ==",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 ann@laptop"[:40], "-----BEGIN CERTIFICATE-----",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "MIIFazCCA1OgAwIBAgIRAIIQz7DSQONZRGPgu2OCiwAwDQYJKoZIhvcNAQELBQAwTzELMAkGA1UEBhMC",
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0",
    # other languages
    "Das Passwort muss mindestens acht Zeichen haben.", "Passwort vergessen?", "Kennwort zurücksetzen",
    "Le mot de passe est obligatoire.", "Mot de passe oublié ?", "La contraseña es obligatoria.",
    "¿Olvidó su contraseña?",
    "la clave del éxito es: paciencia", "palabras clave: agente, memoria", "Пароль не может быть пустым.",
    "Забыли пароль?",
    "密码不能为空", "请输入密码", "忘记密码?", "clave primaria: id", "Schlüssel: Wert", "пароль: обязательное поле",
    # words that look like prefixes
    "sk-learn is a library", "the sk_live_ prefix marks a live key", "hf_hub_download('gpt2')",
    "re_compile_all_patterns",
    "pat. pending", "glsa_ keys belong to Grafana", "tk-us is a region", "pul-down menu", "ico-file for the tab",
    "API-FIRST-DESIGN-GUIDELINES-FOR-TEAMS", "dp.pt.tokens are of Doppler", "npm_config_registry=https://r.test",
    "sm_pat_ is a prefix", "npm_package_config_registry_url_default",
)  # fmt: skip


def harmless() -> list[str]:
    return list(dict.fromkeys(HARMLESS))


_CHOSEN, _SHORT = "Blau" + "-37-Kanne", "hunter" + "2!"
_LATER: tuple[tuple[str, str, str], ...] = (
    ("cloudflare named", "CLOUDFLARE_API_TOKEN=" + _drawn("1", _WORD, 40), _drawn("1", _WORD, 40)),
    ("cohere", 'cohere_key: "' + _drawn("2", _WORD, 40) + '"', _drawn("2", _WORD, 40)),
    ("deepseek", "sk-" + _drawn("3", _HEX, 32), _drawn("3", _HEX, 32)),
    ("groq", "gsk_" + _drawn("4", _WORD, 52), _drawn("4", _WORD, 52)),
    ("together", "export TOGETHER_API_KEY=" + _drawn("5", _HEX, 64), _drawn("5", _HEX, 64)),
    ("mistral", "mistral = Client(api_key='" + _drawn("6", _WORD, 32) + "')", _drawn("6", _WORD, 32)),
    ("azure openai", "AZURE_OPENAI_KEY=" + _drawn("7", _HEX, 32), _drawn("7", _HEX, 32)),
    ("datadog", "DD_API_KEY=" + _drawn("8", _HEX, 32), _drawn("8", _HEX, 32)),
    ("pagerduty", "Authorization: Token token=" + _drawn("9", _WORD, 20), _drawn("9", _WORD, 20)),
    ("okta", "Authorization: SSWS 00" + _drawn("10", _WORD, 40), _drawn("10", _WORD, 40)),
    ("s3 url", "https://b.s3.amazonaws.com/k?X-Amz-Signature=" + _drawn("11", _HEX, 64), _drawn("11", _HEX, 64)),
    (
        "github url",
        "https://x-access-token:ghs_" + _drawn("12", _WORD, 36) + "@github.com/a/b",
        _drawn("12", _WORD, 36),
    ),
    ("npmrc", "//registry.npmjs.org/:_authToken=" + _drawn("13", _WORD, 36), _drawn("13", _WORD, 36)),
    ("pip conf", "index" + "-url = https://ann:" + _CHOSEN + "@pypi.test/simple", _CHOSEN),
    ("docker auth", '{"auths":{"r.test":{"auth":"YW5uOkJsYXUtMzctS2FubmU="}}}', "YW5uOkJsYXUtMzctS2FubmU="),
    ("k8s secret", "data:\n  password: QmxhdS0zNy1LYW5uZQ==", "QmxhdS0zNy1LYW5uZQ=="),
    ("spring", "spring.datasource.password=" + _CHOSEN, _CHOSEN),
    ("rails", "secret_key_base: " + _drawn("14", _HEX, 128), _drawn("14", _HEX, 128)),
    ("django", "SECRET_KEY = 'django-insecure-" + _drawn("15", _WORD, 40) + "'", _drawn("15", _WORD, 40)),
    ("wifi", "WPA2-Passphrase: " + _CHOSEN, _CHOSEN),
    ("de2", "Bitte mit dem Kennwort " + _CHOSEN + " anmelden", _CHOSEN),
    ("de3", "PW: " + _CHOSEN, _CHOSEN),
    ("de4", "Zugangspasswort = " + _CHOSEN, _CHOSEN),
    ("fr2", "Votre mot de passe est : " + _SHORT, _SHORT),
    ("fr3", "MOT_DE_PASSE_BDD=" + _CHOSEN, _CHOSEN),
    ("es2", "Su contraseña temporal es " + _SHORT, _SHORT),
    ("es3", "clave de acceso: " + _CHOSEN, _CHOSEN),
    ("ru2", "Ваш пароль: " + _SHORT, _SHORT),
    ("ru3", "логин admin, пароль " + _CHOSEN, _CHOSEN),
    ("zh2", "初始密码为:" + _SHORT, _SHORT),
    ("zh3", "密码=" + _CHOSEN, _CHOSEN),
    ("zh4", "账号:admin 密码:" + _SHORT, _SHORT),
    ("en2", "log in as ann with the password " + _CHOSEN, _CHOSEN),
    ("en3", "user: ann / pass: " + _CHOSEN, _CHOSEN),
    ("en4", "creds ann:" + _CHOSEN, _CHOSEN),
    ("en5", "passcode is 482910", "482910"),
    (
        "shadow",
        "ann:$6$" + _drawn("16", _WORD, 8) + "$" + _drawn("17", _WORD, 86) + ":19000:0:99999:7:::",
        _drawn("17", _WORD, 86),
    ),
    ("bcrypt json", '{"hash":"$2y$10$' + _drawn("18", _WORD, 53) + '"}', _drawn("18", _WORD, 53)),
    ("ntlm", "ann:1001:" + _drawn("19", _HEX, 32) + ":" + _drawn("20", _HEX, 32) + ":::", _drawn("20", _HEX, 32)),
    ("pgpass esc", "db-1.prod.local:6432:orders:svc_orders:" + _CHOSEN, _CHOSEN),
    ("card dash", "card 5500‑0000‑0000‑0004".replace("‑", "-"), "5500-0000-0000-0004"),
    ("card nbsp", "5500\u00a00000\u00a00000\u00a00004", "5500\u00a00000"),
    ("card fig dash", "5500\u20120000\u20120000\u20120004", "5500\u20120000"),
    ("iban fr nnbsp", "FR14\u202f2004\u202f1010\u202f0505\u202f0001\u202f3M02\u202f606", "2004\u202f1010"),
    ("iban tab", "DE89\t3704\t0044\t0532\t0130\t00", "3704\t0044"),
)
"""Written when the rules for the others were there. 14 of these leaked then."""
_HARMLESS_LATER: tuple[str, ...] = (
    "set the cookie banner to hidden",
    "Cookie: lang=de; theme=light; consent=all",
    "cookies: accept=true",
    "pass the key as the first argument",
    "the tokens per second are 45.3",
    "secret santa is on 12.12.2024",
    "Die Passwortregel hat 12 Zeichen",
    "Das Passwort ist abgelaufen.",
    "Le mot de passe expire dans 30 jours",
    "La clave es: practicar cada día",
    "clave: 'valor'",
    "{'clave': 'nombre', 'valor': 'Ana'}",
    "пароль был изменён 12 марта",
    "密码长度为 8 到 16 位",
    "密码是必填项",
    "请把密码改成新的",
    "motd: welcome1",
    "sha256:abc is a prefix",
    "$1,000 and $5.50",
    "price $6 and $7 today",
    "cp *.py /tmp",
    "**bold** text",
    "main.py:1042:error:here",
    "10.0.0.1:5432:ok",
    "foo::bar:::baz",
    "a:::b",
    "MIT licensed code",
    "MC Hammer",
    "MIDDLEWARE_CLASSES=settings",
    "MIGRATIONS_DIRECTORY_FOR_THE_WHOLE_PROJECT_IS_HERE",
    "HTTP/1.1 200 OK",
    "v1.0-beta",
    "patch.1234",
    "pat.replace(x)",
    "sl.append(1)",
    "test_pub_sub",
    "live_reload=true",
    "key-value-store-implementation-notes",
    "https://hooks.slack.com/ is the host",
    "SK-Telecom",
    "identified by name",
    "with password reset enabled;",
    "password 'required'",
    "net use shows drives /user: is an option",
    "M" * 80,
    "OAuth basic profile",
    "t1.start(); t1.join()",
    "fw_version_1.2.3",
    "re_match_object_pattern",
    "npm_lifecycle_event",
)


def later() -> list[Leak]:
    return [Leak(*case) for case in _LATER]


def harmless_later() -> list[str]:
    return list(_HARMLESS_LATER)
