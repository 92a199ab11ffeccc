"""One scope for each repository: clones and worktrees share it, and nobody else does before a person says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lessonbank.errors import UsageError
from lessonbank.guard import check_scope
from lessonbank.hosts.repositories import Repositories, address_of, repository_of

SHOP = "https://github.com/acme/shop.git"


def repository(folder: Path, origin: str = "") -> Path:
    """What `git init` and `git remote add` leave of what is read here."""
    (folder / ".git").mkdir(parents=True)
    remote = f'[remote "origin"]\n\tfetch = +refs/heads/*\n\turl = {origin}\n' if origin else ""
    text = f'[core]\n\tbare = false\n[remote "fork"]\n\turl = https://example.org/mine/shop\n{remote}'
    (folder / ".git/config").write_text(text)
    return folder


def scope_of(roots: Repositories, folder: Path, *, used: bool = False) -> str:
    return check_scope(roots.scope_of(str(folder), is_used=lambda _: used).scope)


@pytest.fixture
def roots(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path / "roots")


@pytest.mark.parametrize(
    "url",
    [
        SHOP,
        "https://github.com/acme/shop",
        "https://github.com/acme/shop/",
        "https://ana:ghp_secret@github.com/acme/shop.git",
        "https://ghp_secret@GitHub.com/acme/shop.git?x=ghp_secret#y",
        "git@github.com:acme/shop.git",
        "github.com:acme/shop.git",
        "ssh://git@github.com:22/acme/shop.git",
        "git://github.com:9418/acme/shop",
        "https://github.com:443/acme/shop",
    ],
)
def test_every_way_to_write_an_address_is_one_address(url: str) -> None:
    assert address_of(url) == "github.com/acme/shop"


@pytest.mark.parametrize(
    "url",
    [
        "https://ana:pa/ss-secret@github.com/acme/shop",
        "https://ana:12/ss-secret@github.com/acme/shop",
        "https://ana:12/x?ss-secret@github.com/acme/shop",
        "https://ana:12/x#ss-secret@github.com/acme/shop",
        "https://ana:secret",
        "ana:secret@github.com:acme/shop",
        "ext::sh -c secret",
        "/srv/git/shop.git",
        "../shop",
        "file:///srv/git/shop.git",
        "https://github.com/",
        "https://github.com/../../etc",
        "https:///acme/shop",
        "C:/shop",
        "",
    ],
)
def test_an_address_that_may_hold_a_password_or_is_none_is_no_address(url: str) -> None:
    assert address_of(url) == ""


def test_no_part_of_a_user_or_password_is_ever_in_a_scope(tmp_path: Path, roots: Repositories) -> None:
    urls = ["https://ana:pa/ss-secret@h.org/a/b", "https://ana:ss-secret@h.org/a/b", "https://u:1/ss-secret@h.org/x"]
    for number, url in enumerate(urls):
        assert "secret" not in scope_of(roots, repository(tmp_path / str(number), url))


def test_clones_share_an_address_when_a_person_says_so_and_are_asked_once(tmp_path: Path, roots: Repositories) -> None:
    first, second = repository(tmp_path / "a", SHOP), repository(tmp_path / "b", "git@github.com:acme/shop.git")
    (first / "src/deep").mkdir(parents=True)
    assert scope_of(roots, first / "src/deep") == "coding/github.com/acme/shop"
    assert roots.scope_of(str(second), is_used=lambda _: True).question == ""  # nobody would see it
    asked = roots.scope_of(str(second), is_used=lambda _: True, asks=True)
    assert asked.scope == f"coding/@folder{second}"
    assert str(first) in asked.question
    assert "lessonbank hook scope --share" in asked.question
    assert roots.scope_of(str(second), is_used=lambda _: True, asks=True).question == ""
    assert roots.waiting() == [(str(second), "coding/github.com/acme/shop")]
    assert roots.share(str(second)) == ("coding/github.com/acme/shop", True)
    assert scope_of(roots, second) == scope_of(roots, first)
    assert roots.waiting() == []


def test_a_folder_that_claims_an_address_with_lessons_gets_none_of_them(tmp_path: Path, roots: Repositories) -> None:
    """Also where nobody noted which folder these lessons are of: another machine, or a file that was lost."""
    archive = repository(tmp_path / "archive", SHOP)
    assert scope_of(roots, archive, used=True) == f"coding/@folder{archive}"
    (tmp_path / "roots").write_text("{ broken")
    assert scope_of(roots, archive, used=True) == f"coding/@folder{archive}"


def test_a_folder_that_gets_an_origin_goes_on_with_the_lessons_that_it_had(tmp_path: Path, roots: Repositories) -> None:
    own = f"coding/@folder{tmp_path / 'shop'}"
    folder = repository(tmp_path / "shop", SHOP)
    chosen = roots.scope_of(str(folder), is_used=lambda scope: scope == own, asks=True)
    assert (chosen.scope, chosen.question) == (own, "")
    assert roots.look_up(str(folder)) == own
    assert roots.share(str(folder)) == ("coding/github.com/acme/shop", True)
    assert scope_of(roots, folder) == "coding/github.com/acme/shop"


def test_a_folder_that_another_repository_was_in_gets_none_of_its_lessons(tmp_path: Path, roots: Repositories) -> None:
    scope_of(roots, repository(tmp_path / "first", SHOP))
    folder = repository(tmp_path / "work", SHOP)
    own = scope_of(roots, folder)
    assert own.endswith("/work")
    (folder / ".git/config").write_text('[remote "origin"]\n\turl = https://github.com/acme/site\n')
    assert roots.scope_of(str(folder), is_used=lambda scope: scope == own).scope == "coding/github.com/acme/site"


def test_real_worktrees_and_clones_belong_together(tmp_path: Path) -> None:
    def git(*words: str, cwd: Path) -> None:
        named = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *named, *words], cwd=cwd, check=True, capture_output=True)

    main = tmp_path / "main"
    main.mkdir()
    git("init", cwd=main)
    git("remote", "add", "origin", SHOP, cwd=main)
    git("commit", "--allow-empty", "-m", "x", cwd=main)
    git("worktree", "add", "../tree", cwd=main)
    assert repository_of(str(tmp_path / "tree")) == repository_of(str(main))
    assert repository_of(str(main)).address == "github.com/acme/shop"
    # As `git worktree add --relative-paths` writes them.
    (tmp_path / "tree/.git").write_text("gitdir: ../main/.git/worktrees/tree\n")
    (main / ".git/worktrees/tree/gitdir").write_text("../../../../tree/.git\n")
    assert repository_of(str(tmp_path / "tree")) == repository_of(str(main))


def test_a_folder_that_names_another_repository_as_its_own_is_a_root_of_its_own(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", SHOP)
    for name, inner in (("a", f"{main}/.git"), ("b", f"{main}/.git/worktrees/b"), ("c", "own/worktrees/c")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / ".git").write_text(f"gitdir: {inner}\n")
    own = tmp_path / "c/own/worktrees/c"
    own.mkdir(parents=True)
    (own / "commondir").write_text(f"{main}/.git")
    (own / "gitdir").write_text(f"{tmp_path}/c/.git")
    assert [repository_of(str(tmp_path / name)).root == str(main) for name in "abc"] == [False] * 3


def test_folders_without_git_and_without_an_origin_have_their_own_scope(tmp_path: Path, roots: Repositories) -> None:
    (tmp_path / "plain dir").mkdir()
    assert scope_of(roots, tmp_path / "plain dir") == f"coding/@folder{tmp_path}/plain+20dir"
    assert scope_of(roots, repository(tmp_path / "local")) == f"coding/@folder{tmp_path}/local"


def test_a_long_path_has_a_scope_that_still_names_its_folder(tmp_path: Path, roots: Repositories) -> None:
    deep = tmp_path.joinpath(*["a" * 40] * 5, "shop")
    deep.mkdir(parents=True)
    assert scope_of(roots, deep).startswith("coding/@folder/shop-")
    assert scope_of(roots, deep) != scope_of(roots, deep.parent)


@pytest.mark.parametrize(
    "text", ["", "\0" * 100, '[remote "origin"]\n\turl', '[remote "origin"\n\turl = x:y', "[" * 5000]
)
def test_a_broken_config_is_a_repository_without_an_address(tmp_path: Path, text: str) -> None:
    (repository(tmp_path / "a") / ".git/config").write_text(text)
    assert repository_of(str(tmp_path / "a")).address == ""


def test_a_config_that_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    (repository(tmp_path / "a") / ".git/config").unlink()
    os.mkfifo(tmp_path / "a/.git/config")
    assert repository_of(str(tmp_path / "a")).address == ""


def test_the_scope_of_a_folder_can_be_looked_up_and_nothing_is_noted(tmp_path: Path, roots: Repositories) -> None:
    first, second = repository(tmp_path / "a", SHOP), repository(tmp_path / "b", SHOP)
    assert roots.look_up(str(second)) == "coding/github.com/acme/shop"
    assert scope_of(roots, first) == "coding/github.com/acme/shop"
    assert roots.look_up(str(second)) == f"coding/@folder{second}"
    assert roots.waiting() == []


def test_what_has_no_origin_cannot_share(tmp_path: Path, roots: Repositories) -> None:
    with pytest.raises(UsageError, match="has no origin"):
        roots.share(str(tmp_path))
