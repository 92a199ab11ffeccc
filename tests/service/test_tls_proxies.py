"""The files for Caddy and nginx in deploy/, run as they are but for names, ports and paths, before a real server."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from scripted_upstream import Got, Reply, Upstream

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2
from anyio.from_thread import start_blocking_portal

import lessonbank
from lessonbank._base.serve import listening
from lessonbank.http.service.application import ProxyUsers, application
from lessonbank.http.service.serving import Running, server_of
from lessonbank.testing.bank_contract import SETTINGS

pytestmark = pytest.mark.full

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
SITE: Final = "bank.example.com"
LESSON = {"title": "Weigh", "content": "Weigh it first.", "task": "Ship a parcel", "by": "Ana"}
RUN = {"task": "Ship parcel 7", "steps": [{"action": "print label 7", "observation": "the customs field is empty"}]}


@dataclass(frozen=True)
class Certificate:
    cert: Path
    key: Path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """For `localhost`, by nobody but itself."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("tls")
    made = Certificate(folder / "cert.pem", folder / "key.pem")
    told = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-nodes"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-keyout", str(made.key), "-out", str(made.cert), *told]
    subprocess.run(new, check=True, capture_output=True)
    return made


def nginx(folder: Path, port: int, server: int, certificate: Certificate, file: str = "nginx.conf") -> list[str]:
    """Its command, for our file inside the smallest configuration around it."""
    text = (DEPLOY / file).read_text(encoding="utf-8")
    text = text.replace("443", str(port)).replace(SITE, "localhost").replace("8787", str(server))
    text = text.replace("people.example.com", "localhost")
    text = re.sub(r"ssl_certificate [^;]+", f"ssl_certificate {certificate.cert}", text)
    text = re.sub(r"ssl_certificate_key [^;]+", f"ssl_certificate_key {certificate.key}", text)
    text = text.replace("/var/log/nginx", str(folder))
    if "http2 on" in text and _is_older(1, 25, 1):
        text = text.replace("    http2 on;\n", "").replace("ssl;", "ssl http2;")
    spools = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{one}_temp_path {folder}/{one};\n" for one in spools)
    start = f"daemon off;\nuser root;\nerror_log stderr;\npid {folder}/pid;\nevents {{}}\n"
    start = start if os.getuid() == 0 else start.replace("user root;\n", "")
    (folder / "nginx.conf").write_text(f"{start}http {{\n{paths}{text}\n}}\n", encoding="utf-8")
    return ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder), "-e", "stderr"]


def _is_older(*release: int) -> bool:
    """Since 1.25.1 HTTP/2 has a line of its own; Debian 12 has an earlier one."""
    told = subprocess.run(["nginx", "-v"], check=False, capture_output=True, text=True).stderr
    return tuple(map(int, re.findall(r"nginx/(\d+)\.(\d+)\.(\d+)", told)[0])) < release


def caddy(folder: Path, port: int, server: int, certificate: Certificate) -> list[str]:
    """Its command, for our file with a certificate in the place of one from outside."""
    text = (DEPLOY / "Caddyfile").read_text(encoding="utf-8").replace("8787", str(server))
    own = f"localhost:{port} {{\n\ttls {certificate.cert} {certificate.key}"
    text = text.replace(f"{SITE} {{", own)
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
    (folder / "Caddyfile").write_text(options + text, encoding="utf-8")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


PROXIES: Final[dict[str, Callable[[Path, int, int, Certificate], list[str]]]] = {"nginx": nginx, "caddy": caddy}


@pytest.fixture(params=sorted(PROXIES))
def front(
    request: pytest.FixtureRequest, tmp_path: Path, server: Running, certificate: Certificate
) -> Generator[httpx2.Client]:
    """A client that asks the server through a proxy, encrypted."""
    if shutil.which(str(request.param)) is None:
        pytest.skip(f"needs {request.param} (apt-get install {request.param})")
    port = free_port()
    command = PROXIES[request.param](tmp_path, port, int(server.url.rpartition(":")[2]), certificate)
    with started(command, port, tmp_path, certificate) as client:
        yield client


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


@contextmanager
def started(command: list[str], port: int, tmp_path: Path, certificate: Certificate) -> Generator[httpx2.Client]:
    """A proxy that listens, and a client that trusts its certificate."""
    home = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with (tmp_path / "told").open("w") as told, subprocess.Popen(command, stdout=told, stderr=told, env=home) as proxy:
        try:
            _wait(proxy, port, tmp_path / "told")
            trusted = ssl.create_default_context(cafile=str(certificate.cert))
            with httpx2.Client(base_url=f"https://localhost:{port}", verify=trusted, timeout=20) as client:
                yield client
        finally:
            proxy.kill()  # asked to end, Caddy waits for streams without end


def _wait(proxy: subprocess.Popen[bytes], port: int, told: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert proxy.poll() is None, told.read_text(encoding="utf-8")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(told.read_text(encoding="utf-8"))


Keys = dict[str, dict[str, str]]


def test_answers_and_refusals_come_through_as_the_server_gave_them(front: httpx2.Client, keys: Keys) -> None:
    admin = keys["admin"]
    made = front.post("/v1/lessons", json=LESSON, headers=admin)
    assert made.status_code == 200, made.text
    url = f"/v1/lessons/{made.json()['id']}"
    seen = front.get(url, headers=admin)
    assert {"lessonbank-version", "lessonbank-api", "lessonbank-request"} <= seen.headers.keys()
    assert seen.headers["cache-control"] == "no-store"
    assert front.get(url, headers={**admin, "If-None-Match": seen.headers["etag"]}).status_code == 304
    edit = {"content": "Weigh it twice.", "by": "Ana"}
    edited = front.patch(url, json=edit, headers={**admin, "If-Match": seen.headers["etag"]})
    assert edited.status_code == 200, edited.text
    refused = front.patch(url, json=edit, headers={**admin, "If-Match": seen.headers["etag"]})
    assert (refused.status_code, refused.json()["code"]) == (412, "changed")
    assert refused.headers["content-type"] == "application/problem+json"
    assert front.get("/v1/lessons").headers["www-authenticate"] == "Bearer"
    scoped = {**admin, "Lessonbank-Scope": "acme%2Fsupport"}
    assert front.get("/v1/admin/counts", headers=scoped).json()["lessons"] == 0
    strange = front.get("/v1/lessons/a%252Fb%20%C3%A9", headers=admin)
    assert (strange.status_code, strange.json()["code"]) == (404, "not_found")
    assert "a/b é" in strange.json()["detail"], "the path is not unpacked on the way"


def test_bodies_of_all_sorts_come_through(front: httpx2.Client, keys: Keys) -> None:
    agent = {**keys["agent"], "Content-Type": "application/json"}
    body = json.dumps({"source": {**RUN, "answer": "x" * 100_000}, "outcome": "success"}).encode()
    halves = [body[: len(body) // 2], body[len(body) // 2 :]]
    assert front.post("/v1/runs/learn", content=body, headers=agent).status_code == 200
    assert front.post("/v1/runs/learn", content=iter(halves), headers=agent).status_code == 200
    packed = {**agent, "Content-Encoding": "gzip"}
    assert front.post("/v1/runs/learn", content=gzip.compress(body), headers=packed).status_code == 200
    large = front.post("/v1/runs/learn", content=b" " * 300_000, headers=agent)
    assert (large.status_code, large.json()["code"]) == (413, "too_large")
    described = front.get("/v1/openapi.json")
    assert described.headers["content-encoding"] == "gzip"
    assert described.json()["openapi"].startswith("3.1")
    export = front.get("/v1/admin/export", headers=keys["admin"])
    told = front.post("/v1/admin/import", content=export.content, headers=keys["other admin"])
    assert told.json() == int(export.headers["lessonbank-result"])


def test_events_come_through_at_once(front: httpx2.Client, keys: Keys) -> None:
    last = len(front.get("/v1/history", headers=keys["reader"]).json())
    since = {**keys["reader"], "Last-Event-ID": str(last)}
    with front.stream("GET", "/v1/events", headers=since, timeout=20) as events:
        lines = events.iter_lines()
        assert next(lines) == ": open", "the first piece is not held back"
        front.post("/v1/lessons", json=LESSON, headers=keys["admin"])
        assert next(line for line in lines if line.startswith("id")) == f"id: {last + 1}"


def test_what_is_for_operations_is_hidden(front: httpx2.Client) -> None:
    for path in ("/metrics", "/readyz"):
        assert front.get(path).status_code == 404, path
    assert front.get("/healthz").text == "ok"


def test_the_header_that_names_people_never_reaches_the_server(
    front: httpx2.Client, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lessonbank.http.service.admission import Admission

    seen, real = list[list[str]](), Admission.key_of

    async def looking(self: Admission, request: Any, /) -> Any:
        seen.append(request.headers.getlist("x-forwarded-user"))
        return await real(self, request)

    monkeypatch.setattr(Admission, "key_of", looking)
    headers = [*keys["agent"].items(), ("X-Forwarded-User", "ana"), ("x-forwarded-user", "ben")]
    assert front.get("/v1", headers=headers).status_code == 200
    assert seen == [[]]


def sign_in(got: Got) -> Reply:
    """Stands in for oauth2-proxy: who has a session is named by his address, or not at all."""
    who = re.findall(r"session=(\w+)", got.header("cookie") or "")
    if got.path != "/oauth2/auth":
        return Reply(b"sign in here", status=403, headers={})
    named = {"X-Auth-Request-Email": f"{who[0]}@example.com"} if who and who[0] != "nobody" else {}
    return Reply(status=202 if who else 401, headers=named)


@pytest.fixture
def people(tmp_path: Path, certificate: Certificate) -> Generator[httpx2.Client]:
    """A browser before nginx, which asks who is signed in, before a server that believes nginx."""
    if shutil.which("nginx") is None:
        pytest.skip("needs nginx (apt-get install nginx)")
    users = ProxyUsers("X-Forwarded-User", proxies=["127.0.0.1"], scope="acme", role="reader")
    open_bank = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="acme", **SETTINGS)
    with (
        Upstream(sign_in) as door,
        start_blocking_portal() as portal,
        closing(listening("127.0.0.1", 0)) as listener,
    ):
        server = server_of(application(portal.call(open_bank), users=users, close=True))
        serving = portal.start_task_soon(partial(server.serve, sockets=[listener]))
        port = free_port()
        command = nginx(tmp_path, port, listener.getsockname()[1], certificate, "nginx-people.conf")
        file = tmp_path / "nginx.conf"
        told = file.read_text(encoding="utf-8").replace("4180", door.url.rpartition(":")[2])
        file.write_text(told, encoding="utf-8")
        try:
            with started(command, port, tmp_path, certificate) as client:
                yield client
        finally:
            server.should_exit = True
            serving.result()


def test_a_person_who_is_signed_in_is_named_by_nginx_and_nobody_names_himself(people: httpx2.Client) -> None:
    ana, forged = {"Cookie": "session=ana"}, {"X-Forwarded-User": "ben@example.com", "X-Auth-Request-Email": "ben"}
    assert people.get("/v1", headers=ana).json()["name"] == "ana@example.com"
    assert people.get("/v1", headers={**ana, **forged}).json()["name"] == "ana@example.com"
    assert people.get("/v1/lessons", headers=ana).json() == []
    for nobody in ({}, forged, {"Authorization": "Bearer lb_x"}):
        answer = people.get("/v1/lessons", headers=nobody)
        assert (answer.status_code, answer.text) == (403, "sign in here")
    unnamed = people.get("/v1/lessons", headers={"Cookie": "session=nobody", **forged})
    assert (unnamed.status_code, unnamed.json()["code"]) == (401, "unauthenticated"), "signed in, but as whom?"
    assert people.get("/oauth2/auth", headers=ana).status_code == 404, "only nginx asks it"
    assert people.get("/metrics", headers=ana).status_code == 404
