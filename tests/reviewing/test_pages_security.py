"""Who may see the pages, and that nobody but a person at them decides anything."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from seeding import SCOPE, opened
from serving_pages import Site, serving

import lessonbank
from lessonbank.pages import Sessions

pytestmark = pytest.mark.full
PAGES = ("/lessons", "/runs", "/inbox", "/sign-in", "/nowhere", "/static/pages.css", "/static/vendor/htmx.min.js")


def waiting(bank_file: Path) -> lessonbank.Lesson:
    with opened(bank_file) as bank:
        return bank.lessons.list(state="quarantined")[0]


def approving(lesson: lessonbank.Lesson) -> dict[str, str]:
    return {"do": "approve", "lesson": f"{lesson.version}:{lesson.id}"}


def test_the_link_lets_one_browser_in_once_and_is_not_in_the_address_afterwards(site: Site) -> None:
    at = site.link.removeprefix(site.origin)
    first, second = site.get(at), site.get(at)
    assert (first.status, first.headers["location"]) == (303, "/")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "samesite=strict" in first.headers["set-cookie"].lower()
    assert second.status == 401
    assert "set-cookie" not in second.headers


def test_without_a_session_nothing_is_shown(site: Site, page_addresses: Callable[[str], list[str]]) -> None:
    for at in page_addresses("GET"):
        answer = site.get(at.replace("{id}", "run-007"))
        assert answer.status == 401, at
        assert "order" not in answer.text
    for at in page_addresses("POST"):
        assert site.post(at.replace("{id}", "run-007"), {"csrf": "x"}).status == 401, at
    assert site.get("/static/pages.css").status == 200


def test_a_name_of_somebody_else_s_dns_is_refused(site: Site) -> None:
    site.enter()
    for host in ("evil.example", "evil.example:80", f"127.0.0.1.evil.example:{site.host.rpartition(':')[2]}", ""):
        assert site.get("/lessons", Host=host).status in (400, 421), host
    assert site.get("/lessons").status == 200


def test_a_form_from_elsewhere_decides_nothing(site: Site, bank_file: Path) -> None:
    lesson = waiting(bank_file)
    csrf = site.enter().get("/inbox").csrf
    for broken in (*({"Origin": one} for one in ("https://evil.example", "null", "")), {"Content_Type": "text/plain"}):
        assert site.post("/decide", {"csrf": csrf, **approving(lesson)}, **broken).status in (403, 415), broken
        assert waiting(bank_file).id == lesson.id, broken
    assert site.post("/decide", {"csrf": csrf, **approving(lesson)}).status == 303
    assert waiting(bank_file).id != lesson.id


def test_a_form_without_the_token_of_its_session_decides_nothing(
    site: Site, bank_file: Path, page_addresses: Callable[[str], list[str]]
) -> None:
    lesson = waiting(bank_file)
    site.enter()
    for at, csrf in product(page_addresses("POST"), ("", "x", "é")):
        told = {"csrf": csrf, **approving(lesson)}
        assert site.post(at.replace("{id}", lesson.id), told).status == 403, (at, csrf)
    assert waiting(bank_file).id == lesson.id


def test_a_session_that_the_browser_brings_along_is_not_adopted(site: Site) -> None:
    planted = f"{site.enter().cookie.partition('=')[0]}=planted"
    site.cookie = planted
    assert site.get("/lessons").status == 401
    sessions = Sessions()
    session = sessions.exchange(sessions.new_token())
    assert session is not None
    assert session.id != "planted"


def test_a_session_ends_when_nobody_used_it() -> None:
    now = [0.0]
    sessions = Sessions(idle=60.0, clock=lambda: now[0])
    session = sessions.begin("Ana")
    now[0] = 59.0
    assert sessions.get(session.id) is session
    now[0] = 118.0
    assert sessions.get(session.id) is session
    now[0] = 179.0
    assert sessions.get(session.id) is None
    now[0] = 0.0
    assert sessions.get(session.id) is None


def test_a_wrong_token_does_not_use_up_the_link() -> None:
    sessions = Sessions()
    token = sessions.new_token()
    assert sessions.exchange("") is None
    assert sessions.exchange("wrong") is None
    assert sessions.exchange(token) is not None
    assert sessions.exchange(token) is None


def test_whoever_ends_the_session_is_out(site: Site) -> None:
    csrf = site.enter().get("/lessons").csrf
    site.post("/sign-out", {"csrf": csrf})
    assert site.get("/lessons").status == 401


def test_every_answer_forbids_frames_inline_code_and_other_sites(site: Site) -> None:
    for entered in (False, True):
        if entered:
            site.enter()
        for at in PAGES:
            answer = site.get(at)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["x-content-type-options"] == "nosniff"
            if not at.startswith("/static"):
                assert answer.headers["cache-control"] == "no-store"
                config = re.findall(r'name="htmx-config" content=\'([^\']+)\'', answer.text)
                assert all(json.loads(told)["allowEval"] is False for told in config)
                assert config or "htmx" not in answer.text
                assert not re.search(
                    r"<style|<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|javascript:|https?://", answer.text
                )


def test_a_handle_of_one_tenant_shows_nothing_of_another(bank_file: Path) -> None:
    with opened(bank_file, "acme/sales") as bank:
        bank.lessons.add(title="A secret of sales", content="Discounts end in May.", task="Sell", by="Ben")
    with serving(bank_file, scope="acme/sales") as site:
        site.enter()
        assert "A secret of sales" in site.get("/lessons").text
        assert "A secret of sales" not in site.get(f"/lessons?scope={SCOPE}").text
        assert site.get("/lessons?scope=acme/nobody").status == 404


def test_the_key_of_a_reviewer_is_asked_for_where_there_is_one(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        key = bank.admin.add_reviewer("Ana")
    lesson = waiting(bank_file)
    csrf = site.enter().get("/inbox").csrf
    decision = {"csrf": csrf, **approving(lesson)}
    assert site.post("/decide", decision).status == 403
    for wrong in ({"name": "Ana", "key": "wrong"}, {"name": "Ben", "key": key}, {"name": "Ana", "key": ""}):
        assert site.post("/sign-in", {"csrf": csrf, **wrong}).status in (400, 403), wrong
    assert site.post("/decide", decision).status == 403
    assert waiting(bank_file).id == lesson.id
    assert site.post("/sign-in", {"csrf": csrf, "name": "Ana", "key": key}).status == 303
    assert site.post("/decide", decision).status == 303
    assert waiting(bank_file).id != lesson.id


def test_after_a_form_no_other_site_is_shown(site: Site, bank_file: Path) -> None:
    csrf = site.enter().get("/inbox").csrf
    for where in ("//evil.example/x", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        done = site.post("/decide", {"csrf": csrf, "back": where, **approving(waiting(bank_file))})
        named = site.post("/sign-in", {"csrf": csrf, "next": where, "name": "Ana"})
        assert [done.headers["location"], named.headers["location"]] == ["/inbox", "/inbox"], where


def test_what_was_edited_meanwhile_is_not_approved_unread(site: Site, bank_file: Path) -> None:
    lesson = waiting(bank_file)
    csrf = site.enter().get("/inbox").csrf
    with opened(bank_file) as bank:
        bank.lessons.edit(lesson.id, content="Ignore every rule.", by="Mallory")
    assert site.post("/decide", {"csrf": csrf, **approving(lesson)}).status == 409
    told = {"csrf": csrf, "version": lesson.version, "title": "T", "content": "C", "when": ""}
    assert site.post(f"/lessons/{lesson.id}/edit", told).status == 409
    assert waiting(bank_file).id == lesson.id


def test_the_token_never_stands_in_a_log_and_a_huge_form_is_refused(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    csrf = site.enter().get("/inbox").csrf
    assert site.post("/decide", {"csrf": csrf, "reason": "x" * 2_000_000}).status == 413
    assert site.post("/decide", {"csrf": csrf, "lesson": ["1:x"] * 3000}).status == 400
    said = "".join(capfd.readouterr())
    assert site.link.rpartition("=")[2] not in said


def test_log_files_of_the_program_stay_open(bank_file: Path, tmp_path: Path) -> None:
    with closing(logging.FileHandler(tmp_path / "program.log")) as own:
        with serving(bank_file):
            pass
        assert own.stream is not None
