"""Whose memory a request gets is decided by the proxy's own keys; without a key nobody from elsewhere gets in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lessonbank.errors import UsageError
from lessonbank.proxy.entrance import Entrance, Refused, read_keys

ANA, BEN = "a-key-of-ana-0123", "a-key-of-ben-0123"
LOCAL = {"host": "127.0.0.1:8788"}


def test_a_key_decides_the_scope_and_nothing_else_does() -> None:
    entrance = Entrance(None, keys={ANA: "acme/ana", BEN: "acme/ben"})
    assert entrance.scopes == ("acme/ana", "acme/ben")
    assert entrance.whose({**LOCAL, "x-lessonbank-key": BEN, "x-lessonbank-scope": "acme/ana"}) == ("acme/ben", "")
    for headers in ({}, {"x-lessonbank-key": "another-key-012345"}, {"authorization": f"Bearer {ANA}"}):
        with pytest.raises(Refused) as refused:
            entrance.whose({**LOCAL, **headers})
        assert refused.value.status == 401
    assert ANA not in repr(vars(entrance))


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8788", "[::1]:8788", "LOCALHOST"])
def test_a_local_proxy_answers_to_names_of_this_machine(host: str) -> None:
    assert Entrance("acme/x").whose({"host": host}) == ("acme/x", "")


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"])
def test_a_web_page_does_not_reach_a_local_proxy_under_its_own_name(host: str) -> None:
    with pytest.raises(Refused) as refused:
        Entrance("acme/x").whose({"host": host})
    assert refused.value.status == 421


def test_a_proxy_that_others_reach_needs_keys() -> None:
    with pytest.raises(UsageError, match="--keys"):
        Entrance("acme/x", is_local=False)
    with pytest.raises(UsageError, match="--scope or --keys"):
        Entrance(None)
    with pytest.raises(UsageError, match="longer"):
        Entrance(None, keys={"short": "acme/x"})
    with pytest.raises(UsageError, match="scope"):
        Entrance(None, keys={ANA: "../x"})
    found = Entrance(None, keys={ANA: "a/x"}, is_local=False).whose({"x-lessonbank-key": ANA, "host": "h"})
    assert found == ("a/x", "")


def test_each_of_several_keys_of_a_scope_is_a_writer_of_its_own() -> None:
    entrance = Entrance(None, keys={ANA: "acme/x", BEN: "acme/x", "a-key-of-cid-0123": "acme/y"})
    ana, ben, cid = (entrance.whose({**LOCAL, "x-lessonbank-key": key}) for key in (ANA, BEN, "a-key-of-cid-0123"))
    assert ana.scope == ben.scope == "acme/x"
    assert ana.writer.startswith("key:proxy/")
    assert ana.writer != ben.writer
    assert cid == ("acme/y", ""), "whoever alone has a key is the owner, as the process is"
    assert ANA not in ana.writer


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({ANA: "acme/ana"}))
    assert read_keys(file) == {ANA: "acme/ana"}
    for text in ("", "[]", "{}", '{"k": 1}'):
        file.write_text(text)
        with pytest.raises(UsageError, match="JSON object from key to scope"):
            read_keys(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_keys(tmp_path / "none.json")
