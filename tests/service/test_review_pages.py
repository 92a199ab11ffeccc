"""The review pages under a server: a reviewer's key opens them for its tenant, an agent's key opens nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("fastapi", reason="needs the extra server")
pytest.importorskip("jinja2", reason="needs the extra pages")

import httpx2
from anyio.from_thread import start_blocking_portal
from running import COMMAND

import lessonbank
from lessonbank._base.serve import listening
from lessonbank.contracts.records import Step, Trajectory
from lessonbank.http.service.application import application
from lessonbank.http.service.keys import Keys
from lessonbank.http.service.review import review
from lessonbank.http.service.serving import server_of

PUBLIC = "https://bank.example.com"
SECRET = "Discounts end in May"
by_the_command = pytest.mark.parametrize("site", ["command"], indirect=True)
pytestmark = [pytest.mark.full, pytest.mark.skipif(os.name == "nt", reason="this system has no SIGTERM")]


@dataclass
class Site:
    """A server with pages, and who may open them."""

    url: str
    keys: Mapping[str, str]
    ids: Mapping[str, str]
    """Of keys, by name."""
    lesson: lessonbank.Lesson
    bank: Path

    def browser(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=60, headers={"Origin": self.url})

    @contextmanager
    def entered(self, who: str) -> Generator[httpx2.Client]:
        """A browser whose person signed in."""
        with self.browser() as browser:
            answer = browser.post("/review/enter", data={"key": self.keys[who], "next": ""})
            assert (answer.status_code, answer.headers["location"]) == (303, "/review/")
            yield browser


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Site]:
    """Served in this process; `command` serves it as a program of its own."""
    path = tmp_path / "bank.db"
    with lessonbank.connect(path, scope="acme/support", embedder="lexical") as bank:
        step = Step(action="cancel(#7)", observation="error: it is packed")
        bank.learn(Trajectory(task="Cancel order #7", steps=(step,), answer="no"), outcome="failure")
        (found,) = bank.lessons.list()
        bank.scoped("other").lessons.add(title="Of others", content=SECRET, task="Sell", by="Ben")
        bank.lessons.quarantine(found.id, by="Ben", reason="to be read")
        lesson = bank.lessons.get(found.id)
    keys = anyio.run(_keys, path)
    with served_here(path) if getattr(request, "param", "here") == "here" else served(path) as url:
        yield Site(url, keys, {name: key.split("_")[1] for name, key in keys.items()}, lesson, path)


@contextmanager
def served(bank: Path) -> Generator[str]:
    """The address of a server as `lessonbank serve` starts it."""
    command = [*COMMAND, "serve", "--bank", str(bank), "--port", "0", "--pages"]
    with subprocess.Popen([*command, "--public-url", PUBLIC], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "serves" in line)
        yield line.split()[-1].removesuffix("/v1")
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)


@contextmanager
def served_here(bank: Path) -> Generator[str]:
    """The same in a thread of this process."""
    with start_blocking_portal() as portal, closing(listening("127.0.0.1", 0)) as listener:
        memory = portal.call(partial(lessonbank.connect_async, bank, scope="default"))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        pages = review(memory, origins={url, PUBLIC})
        server = server_of(application(memory, close=True, review=pages))
        running = portal.start_task_soon(partial(server.serve, sockets=[listener]))
        yield url
        server.should_exit = True
        running.result()


async def _keys(path: Path) -> dict[str, str]:
    roles: dict[str, Any] = {"Ann": "agent", "Rea": "reader", "Ana": "reviewer", "Ada": "admin"}
    async with await lessonbank.connect_async(path, scope="default") as bank:
        keys = Keys(bank)
        made = {name: await keys.add(name, scope="acme", role=role) for name, role in roles.items()}
        return {**made, "Root": await keys.add("Root", scope="", role="admin")}


def csrf(answer: httpx2.Response) -> str:
    return re.findall(r'name="csrf" value="([^"]+)"', answer.text)[0]


def at(address: str, lesson: lessonbank.Lesson) -> str:
    (run,) = lesson.provenance.trajectory_ids
    return f"/review{address.replace('{id}', run if 'runs' in address else lesson.id)}"


def test_the_key_of_an_agent_or_a_reader_shows_and_decides_nothing(
    site: Site, page_addresses: Callable[[str], list[str]]
) -> None:
    pages, forms = page_addresses("GET"), page_addresses("POST")
    assert min(len(pages), len(forms)) > 10
    with site.browser() as browser:
        for written in (site.keys["Ann"], site.keys["Rea"], site.keys["Ana"] + "x", "", "lb_x_y"):
            refused = browser.post("/review/enter", data={"key": written})
            assert refused.status_code == 403
            assert "set-cookie" not in refused.headers
            bearer = {"Authorization": f"Bearer {written}".strip()}
            for address in pages:
                answer = browser.get(at(address, site.lesson), headers=bearer)
                assert answer.status_code == 401, address
                assert site.lesson.title not in answer.text
            for address in forms:
                assert browser.post(at(address, site.lesson), data={"csrf": ""}, headers=bearer).status_code == 401
        assert browser.get("/v1", headers={"Authorization": f"Bearer {site.keys['Ann']}"}).status_code == 200


def test_a_reviewer_sees_every_page_of_the_tenant_below_the_prefix_and_decides_in_its_own_name(
    site: Site, page_addresses: Callable[[str], list[str]]
) -> None:
    with site.entered("Ana") as browser:
        for address in page_addresses("GET"):
            if address in ("/purge", "/compare", "/keys", "/queue/retry", "/merge") or "why/{id}" in address:
                continue
            answer = browser.get(at(address, site.lesson))
            assert answer.status_code == 200, address
            assert SECRET not in answer.text
            linked = re.findall(r'(?:href|src|action|data-hx-get)="(/[^"]*)"', answer.text)
            assert [one for one in linked if not one.startswith("/review/")] == [], address
            assert all(browser.get(one).status_code == 200 for one in linked if "/static/" in one)
        inbox = browser.get("/review/inbox")
        told = {"csrf": csrf(inbox), "lesson": f"{site.lesson.version}:{site.lesson.id}", "do": "approve"}
        assert browser.post("/review/decide", data=told).headers["location"] == "/review/inbox"
        assert browser.get("/review/inbox?scope=other").status_code == 404
        renamed = browser.post("/review/sign-in", data={"csrf": csrf(inbox), "name": "Ben", "key": ""})
        assert renamed.status_code == 403
    with lessonbank.connect(site.bank, scope="acme/support") as bank:
        assert bank.lessons.get(site.lesson.id).approved
        assert bank.history.list()[-1].writer == "Ana"


def test_only_an_admin_erases_and_rolls_back_and_only_in_the_tenant(site: Site) -> None:
    for who, status in (("Ana", 403), ("Ada", 303)):
        with site.entered(who) as browser:
            token = csrf(browser.get("/review/history"))
            last = {"csrf": token, "to": "0", "last": "2"}
            preview = browser.get(f"/review/purge?lesson={site.lesson.id}")
            assert preview.status_code == (200 if status == 303 else 403)
            seen = "".join(re.findall(r'name="seen" value="([^"]+)"', preview.text))
            erased = {"csrf": token, "lesson": site.lesson.id, "reason": "asked to", "seen": seen}
            if who == "Ana":
                assert browser.post("/review/history/rollback", data=last).status_code == status
            assert browser.post("/review/purge?scope=other", data=erased).status_code == 404
            assert browser.post("/review/purge", data=erased).status_code == status
            assert "Settings of this bank" not in browser.get("/review/administration").text
    with site.entered("Root") as browser:
        assert SECRET in browser.get("/review/lessons?scope=other").text
        assert "Settings of this bank" in browser.get("/review/administration").text


def test_a_key_that_ended_ends_its_sessions(site: Site) -> None:
    async def end(id: str) -> None:
        async with await lessonbank.connect_async(site.bank, scope="default") as bank:
            await Keys(bank).remove(id)

    with site.entered("Ana") as browser:
        assert browser.get("/review/lessons").status_code == 200
        anyio.run(end, site.ids["Ana"])
        assert browser.get("/review/lessons").status_code == 401


@by_the_command
def test_other_sites_and_names_sign_nobody_in(site: Site) -> None:
    with site.browser() as browser:
        told = {"key": site.keys["Ana"], "next": "//evil.example/x"}
        assert browser.post("/review/enter", data=told, headers={"Origin": "https://evil.example"}).status_code == 403
        assert browser.get("/review/", headers={"Host": "evil.example"}).status_code == 421
        inside = browser.post("/review/enter", data=told)
        assert inside.headers["location"] == "/review/"
        assert "Path=/review" in inside.headers["set-cookie"]
        assert "Secure" not in inside.headers["set-cookie"]
        public = browser.post("/review/enter", data=told, headers={"Host": PUBLIC[8:], "Origin": PUBLIC})
        assert "Secure" in public.headers["set-cookie"]
        assert browser.get("/review").headers["location"] == "/review/"


@pytest.mark.parametrize("wrong", ["bank.example.com", "https://bank.example.com/review", "ftp://x", ""])
def test_where_people_open_the_pages_is_an_origin(wrong: str) -> None:
    with (
        lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank,
        pytest.raises(lessonbank.errors.UsageError, match="not an address"),
    ):
        review(bank.aio, origins=[wrong])


def test_an_admin_makes_renews_and_ends_keys_of_the_tenant_alone(site: Site) -> None:
    def tried(key: str) -> int:
        with site.browser() as other:
            return other.get("/v1/lessons", headers={"Authorization": f"Bearer {key}"}).status_code

    with site.entered("Ana") as browser:
        assert browser.get("/review/keys").status_code == 403
        assert "/review/keys" not in browser.get("/review/administration").text
    with site.entered("Ada") as browser:
        page = browser.get("/review/keys")
        assert all(name in page.text for name in ("Ann", "Rea", "Ana", "Ada"))
        assert "Root" not in page.text
        told = {"csrf": csrf(page), "do": "add", "name": "Bot", "role": "reader", "of": "acme/support", "days": "9"}
        assert browser.post("/review/keys", data={**told, "of": "other"}).status_code == 403
        assert browser.post("/review/keys", data={**told, "role": "owner"}).status_code == 400
        refused = browser.post("/review/keys", data={**told, "days": "1e2"})
        assert (refused.status_code, "ays are a whole number" in refused.text) == (400, True), "never without an end"
        made = browser.post("/review/keys", data=told)
        assert made.status_code == 303, "a page that is loaded again makes no second key"
        (first,) = re.findall(r'id="new-key">([^<]+)<', browser.get("/review/keys").text)
        assert first not in browser.get("/review/keys").text, "it is shown once"
        assert tried(first) == 200
        named = {"csrf": csrf(page), "key": first.split("_")[1]}
        assert browser.post("/review/keys", data={**named, "do": "rotate", "days": "0"}).status_code == 303
        (second,) = re.findall(r'id="new-key">([^<]+)<', browser.get("/review/keys").text)
        assert (tried(first), tried(second)) == (401, 200)
        assert browser.post("/review/keys", data={**named, "key": site.ids["Root"], "do": "remove"}).status_code == 404
        assert browser.post("/review/keys", data={**named, "do": "remove"}).status_code == 303
        assert tried(second) == 401
        assert browser.post("/review/backup", data={"csrf": csrf(page)}).status_code == 400, "it holds other tenants"


def test_where_there_is_a_reviewer_an_admin_hands_out_and_ends_keys_only_with_that_key(site: Site) -> None:
    with lessonbank.connect(site.bank, scope="default", embedder="lexical") as bank:
        key = bank.admin.add_reviewer("Ada")
    with site.entered("Ada") as browser:
        token = csrf(browser.get("/review/keys"))
        add = {"csrf": token, "do": "add", "name": "Bot", "role": "admin", "of": "acme", "days": "9"}
        others = [{"csrf": token, "do": do, "key": site.ids["Ann"], "days": "0"} for do in ("rotate", "remove")]
        for told in (add, *others):
            refused = browser.post("/review/keys", data=told)
            assert refused.status_code == 403
            assert "needs the key of a reviewer" in refused.text
        assert "Bot" not in browser.get("/review/keys").text
        browser.post("/review/sign-in", data={"csrf": token, "name": "Ada", "key": key})
        browser.post("/review/keys", data=add)
        assert 'id="new-key"' in browser.get("/review/keys").text


def test_the_owner_downloads_a_backup_that_is_a_bank(site: Site, tmp_path: Path) -> None:
    with site.entered("Ana") as browser:
        refused = browser.post("/review/backup", data={"csrf": csrf(browser.get("/review/inbox"))})
        assert refused.status_code == 403
    with site.entered("Root") as browser:
        sent = browser.post("/review/backup", data={"csrf": csrf(browser.get("/review/administration"))})
    assert "attachment" in sent.headers["content-disposition"]
    (tmp_path / "copy.db").write_bytes(sent.content)
    with lessonbank.connect(tmp_path / "copy.db", scope="acme/support") as bank:
        assert bank.lessons.get(site.lesson.id).title == site.lesson.title
