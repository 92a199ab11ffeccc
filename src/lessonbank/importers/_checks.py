"""Knows the commands that check work: tests, builds, linters and releases, by their programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Check: TypeAlias = Literal["the tests", "the build", "the linter", "the release"]
BEFORE: Final = (
    r"^\s*(?:(?:!|\w+=\S*|sudo|time|timeout\s+\S+|env|npx|uv\s+run|poetry\s+run|pdm\s+run|hatch\s+run|bundle\s+exec|"
    r"xvfb-run(?:\s+-\w)?|docker(?:-|\s+)compose\s+(?:run|exec)(?:\s+-\S+){0,4}\s+[\w.-]+|"
    r"docker\s+exec(?:\s+-\S+){0,4}\s+[\w.-]+)\s+){0,6}"
    r"(?:\S*python[\d.]*\s+(?:-\w\s+)*-m\s+)?(?:[\w.~-]*/){0,12}"
)
"""What may stand before the program of a command, and changes nothing."""
_NODE: Final = r"(?:npm|pnpm|yarn|bun)\s+(?:--?[\w-]+(?:=\S+|\s+[^-\s]\S*)\s+){0,3}(?:run\s+)?"
_MAKE: Final = r"(?:make|just|rake)\s+(?:[\w.=/-]+\s+){0,4}?"
_TEST: Final = re.compile(
    BEFORE + r"(?:pytest|py\.test|unittest|tox|nox|ctest|jest|vitest|mocha|ava|rspec|phpunit|pest|"
    rf"cargo\s+(?:nextest\s+run|test)|go\s+test|{_NODE}test[\w:-]*|deno\s+test|playwright\s+test|cypress\s+run|"
    rf"node\s+--test|{_MAKE}(?:test|check)[\w-]*|gradlew?\s.*\btest|mvnw?\s.*\b(?:test|verify)|"
    r"(?:dotnet|mix|swift|bazel|sbt|flutter|dart)\s+test|\S*python[\d.]*\s+(?:\S*/)?manage\.py\s+test)(?=\s|$)"
)
_LINT: Final = re.compile(
    BEFORE + r"(?:flake8|pylint|mypy|pyright|basedpyright|eslint|stylelint|shellcheck|rubocop|hadolint|tflint|yamllint|"
    r"ansible-lint|actionlint|markdownlint|(?:phpstan|psalm)\s+analy[sz]e|(?:terraform|tofu)\s+validate|helm\s+lint|"
    r"ruff\s+check|biome\s+(?:check|lint)|cargo\s+clippy|go\s+vet|golangci-lint\s+run|pre-commit\s+run|"
    r"(?:black|prettier|cargo\s+fmt|terraform\s+fmt)\s.*-check|ruff\s+format\s.*--check|"
    rf"{_NODE}(?:lint|typecheck|type-check)[\w:-]*|{_MAKE}(?:lint|types|typecheck)[\w-]*)(?=\s|$)"
)
_BUILD: Final = re.compile(
    BEFORE + r"(?:tsc|ninja|sphinx-build|build(?=\s*$)|(?:mkdocs|zensical|vite|next|docker|dotnet|swift|bazel)\s+build|"
    rf"cargo\s+(?:build|check)|go\s+build|cmake\s+--build|{_NODE}build[\w:-]*|"
    r"gradlew?\s.*\b(?:build|assemble)|mvnw?\s.*\b(?:package|compile|install)|make(?=\s*$)|"
    rf"{_MAKE}(?:all|build|docs?|html|dist|package)[\w-]*)(?=\s|$)"
)
_RELEASE: Final = re.compile(
    BEFORE + r"(?:(?:npm|pnpm|yarn|bun|cargo|poetry|uv|flit|hatch)\s+(?:npm\s+)?publish|twine\s+upload|gem\s+push|"
    r"(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:release|publish)[\w:-]*|gh\s+release\s+create|goreleaser\s+release|"
    r"semantic-release|(?:make|just|rake)\s+(?:release|publish)[\w-]*|gradlew?\s.*\bpublish|mvnw?\s.*\bdeploy|"
    r"(?:(?:ba|z)?sh\s+)?(?:\S*/)?(?:release|publish)\.sh)(?=\s|$)"
)
_CHECKS: Final[Mapping[Check, re.Pattern[str]]] = {
    "the tests": _TEST,
    "the linter": _LINT,
    "the release": _RELEASE,
    "the build": _BUILD,
}


def check_of(command: str, /) -> Check | None:
    """What a command checks; `None` where it is no check."""
    return next((check for check, pattern in _CHECKS.items() if pattern.match(command)), None)
