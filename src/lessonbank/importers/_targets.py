"""Finds the part of a repository that a check is about: the check of another part proves nothing of an edit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ._checks import looks_at

_GATED: Final = tuple(
    (re.compile(rf"(?:^|[\s/])(?:{program})\s"), re.compile(rf"(?:{option})((?!-)[\w@./:,*\[!-]+)"))
    for program, option in (
        (r"pnpm|bun|turbo", r"\s(?:--filter|-F)[= ]"),
        (r"npm", r"\s(?:--workspace|-w)[= ]"),
        (r"yarn", r"\sworkspace "),
        (r"lerna", r"\s--scope[= ]"),
        (r"nx", r"\snx (?:test|build|lint|e2e|typecheck) |\snx run |\s(?:-p|--projects?)[= ]"),
        (r"cargo", r"\s(?:-p|--package)[= ]"),
        (r"mvnw?(?!.{0,300}\s(?:-am|--also-make)\s)", r"\s(?:-pl|--projects)[= ]"),
        (r"gradlew?", r"\s:?(?=[\w:-]+:\w)"),
        (r"bazel|bazelisk", r"\s//"),
    )
)
"""The options by which a program is given packages."""
_FOLDERS: Final = re.compile(
    r"^(?!\s*(?:ctest|ninja|meson|cmake)\b).*?\s(?:-C|-?-(?:chdir|directory|prefix|cwd|dir|package-path))[= ]"
    r"((?!/(?:lib|usr)/)[\w./-]+)|(?:^|\s)(?:\./)?((?:packages|services|apps|libs|crates)/[\w.-]+)"
)
_OF_GO: Final = re.compile(r"(?:^|\s)(?:go\s+(?:test|vet)|golangci-lint\s+run)\s")
_OF_TERRAFORM: Final = re.compile(r"(?:^|\s)(?:terraform|tofu|terragrunt)\s")
_TAKES_PATHS: Final = re.compile(
    r"(?:^|[\s/])(?:flake8|pylint|mypy|pyright|bandit|ruff check|black|isort|eslint|stylelint|prettier|biome \w+|"
    r"rubocop|phpcs|phpstan analy\w+|shellcheck|yamllint|pytest)(?=\s)(.*)"
)
"""Programs that are given the files and folders to look at."""
_OPERAND: Final = re.compile(r"\s(\./\S+)")
_ABOUT_ALL: Final = re.compile(
    r"_?builds?|out|target|dist|(?:\w+[_-])?(?:tests?|specs?|e2e)(?:[_.].*)?|__tests__|sim|bench\w*|ci|scripts?|\.\w.*"
)
"""A folder in which the whole is built or tested."""
_WORD: Final = re.compile(r"[^\W_]+")
_LEAST_OF_A_NAME: Final = 4
_FROM_ITS_FOLDER: Final = re.compile(r"(?:src|lib|app|tests?)/")


@dataclass(frozen=True, slots=True)
class Target:
    """What a check is about, as far as its command says."""

    command: str
    folder: str
    """The folder that its line enters first."""

    def has(self, file: str, /) -> bool:
        """Whether a file may belong to it."""
        folders = (
            [self.folder]
            if self.folder
            else [folder for pair in _FOLDERS.findall(self.command) for folder in pair if folder]
        )
        if _OF_TERRAFORM.search(self.command) and "modules/" in file:
            folders = []
        if not looks_at(self.command, file):
            return False
        paths = self._paths()
        if ("/" not in file and not self.folder.startswith("..")) or ((folders or paths) and self._names(file)):
            return True
        command = f" {self.command} "
        names = [name for gate, option in _GATED if gate.search(command) for name in _packages(option.findall(command))]
        if not folders and not names and not paths and file.startswith("../"):
            return False
        places = all(not each or any(_lies_in(file, place) for place in each) for each in (folders, paths))
        return places and (not names or any(_is_of(file, name) for name in names))

    def _paths(self) -> list[str]:
        """The files and folders that it is given."""
        if _OF_GO.search(self.command):
            return _OPERAND.findall(self.command)
        given = _TAKES_PATHS.search(self.command)
        words = given[1].split() if given else []
        return [
            word
            for before, word in zip(("", *words), words, strict=False)
            if word[0] not in "-'\"><|&$2*" and not before.startswith("-")
        ]

    def may_have(self, file: str, /) -> bool:
        """Whether a file belongs to it, or to whatever package."""
        return bool(_FROM_ITS_FOLDER.match(file)) or self.has(file)

    def _names(self, file: str) -> bool:
        stem = file.rpartition("/")[2].partition(".")[0]
        is_bare = _FROM_ITS_FOLDER.match(file) and len(stem) >= _LEAST_OF_A_NAME
        return bool(is_bare) and stem in re.split(r"[\s/.:]+", self.command)


def _packages(values: list[str]) -> list[str]:
    return [name.rpartition(":")[0] or name for value in values for name in value.split(",")]


def _segments(place: str) -> list[str]:
    """The folders of a place, up to the first in which the whole is built or tested."""
    segments = list[str]()
    for segment in re.split(r"[/:]", place.strip("./*:")):
        if _ABOUT_ALL.fullmatch(segment):
            break
        segments.append(segment)
    return [segment for segment in segments if segment]


def _lies_in(file: str, folder: str) -> bool:
    segments = _segments(folder)
    is_unknown = folder.startswith("/") and not file.startswith("/")
    return not segments or is_unknown or segments[-1] in file.split("/")


def _is_of(file: str, name: str) -> bool:
    """Whether a package has a file: a folder of it shares a word with the package's name. `...`: others with it."""
    if "..." in name:
        return True
    segments = [segment for segment in _segments(name) if not segment.startswith(("@", "!", "["))]
    return not segments or not {*_WORD.findall(segments[-1])}.isdisjoint(_WORD.findall(file.rpartition("/")[0]))
