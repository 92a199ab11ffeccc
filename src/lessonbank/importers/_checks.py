"""Knows the commands that check work: tests, builds, linters and releases, by their programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Check: TypeAlias = Literal["the tests", "the build", "the linter", "the release", "CI", "the hooks"]
_RUNNERS: Final = (
    r"sudo|time|env|bunx|command|exec|nice|nohup|npx(?:\s+--?[\w-]+(?:[= ][\w@./-]+)?){0,3}(?:\s+--)?|npx|"
    r"ddev\s+(?:exec|composer|php)|lando|(?:[\w.-]+/){0,6}sail|heroku\s+run|xargs(?:\s+-\S+){0,4}|"
    r"devcontainer\s+exec(?:\s+--\S+\s+\S+){0,4}|"
    r"(?:uv|poetry|pdm|hatch|rye|pipenv|pixi|devbox)\s+run|bundle\s+exec|"
    r"(?:mise|asdf|npm|pnpm|yarn)\s+exec(?:\s+--)?|(?:pnpm|yarn)\s+dlx|coverage\s+run(?:\s+--?\S+)*\s+-m|cross-env|"
    r"timeout(?:\s+-\w\s+\S+|\s+--\S+)*\s+\S+|stdbuf(?:\s+-\S+)+|xvfb-run(?:\s+-\w)?|direnv\s+exec\s+\S+|"
    r"(?:conda|mamba|micromamba)\s+run(?:\s+-\w\s+\S+)?|nix\s+develop(?:\s+\S+)?\s+(?:-c|--command)|"
    r"(?:docker(?:-|\s+)compose|podman(?:-|\s+)compose)\s+(?:run|exec)(?:\s+-\S+){0,4}\s+[\w.-]+|"
    r"(?:docker|podman)\s+exec(?:\s+-\S+){0,4}\s+[\w.-]+|kubectl\s+exec(?:\s+\S+){1,6}?\s+--|"
    r"ssh(?:\s+-[pil]\s+\S+|\s+-\w+){0,4}\s+[\w.@-]+|wsl(?:\s+--)?"
)
"""What starts another program and hands its exit code on."""
BEFORE: Final = (
    rf"^\s*(?:(?:!|\w+=\S*|{_RUNNERS})\s+){{0,6}}"
    r"(?:\S*python[\d.]*\s+(?:-\w\s+)*-m\s+)?(?:[\w.~-]*/){0,12}"
)
"""What may stand before the program of a command, and changes nothing."""
_MANAGER: Final = r"(?:npm|pnpm|yarn|bun)\s+(?:workspace\s+\S+\s+)?(?:--?[\w-]+(?:=\S+|\s+[^-\s]\S*)\s+){0,3}"
_NODE: Final = _MANAGER + r"(?:run\s+)?"
_OF_NODE: Final = r"(?:(?:pnpm|yarn|bun)\s+(?:run\s+)?)?"
"""A program of the project's packages is called with or without the manager."""
_MAKE: Final = r"(?:make|gmake|just|rake|task|mage|poe|inv|invoke)\s+(?:[\w.=/-]+\s+){0,4}?"
_WORKSPACE: Final = (
    _OF_NODE + r"(?:turbo|nx|lerna|moon|rush)\s+(?:run(?:-many)?\s+)?(?:-t\s+|--target[= ])?(?:[\w@/-]+:)?"
)
_TEST: Final = re.compile(
    BEFORE
    + r"(?:pytest|py\.test|unittest|tox|nox|ctest|ava|rspec|phpunit|pest|bats|busted|prove|elm-test|gotestsum|ginkgo|"
    r"pg_prove|R\s+CMD\s+check|(?:terraform|tofu|wasm-pack|pdk|molecule|kitchen|detox|maestro)\s+test|helm\s+unittest|"
    r"dbt\s+(?:build|test)|behave|robot|newman\s+run|hurl\s.*--test|test-storybook|"
    rf"{_MANAGER}run\s+(?:ci|verify)[\w:-]*|"
    rf"{_OF_NODE}(?:jest|vitest|mocha|playwright\s+test|cypress\s+run|ng\s+test)|karma\s+start\s.*--single-run|"
    rf"cargo\s+(?:nextest\s+run|test|llvm-cov|tarpaulin)|go\s+test|{_NODE}test[\w:-]*|deno\s+test|"
    rf"node\s+--test|{_MAKE}(?:test|check|spec)[\w:-]*|{_WORKSPACE}test[\w:-]*|"
    r"gradlew?\s.*\b(?:[a-z]\w*T|t)est|gradlew?\s.*\bcheck|mvnw?\s.*\b(?:test|verify)|"
    r"sbt(?:\s+[\w/:.*-]+){0,6}?\s+(?:[\w-]+[/:]){0,3}test\w*|"
    r"(?:dotnet|mix|swift|bazel|mill|flutter|dart|gleam|dune|stack|cabal|lein|meson|colcon|forge|hardhat|anchor|hatch|"
    r"zig\s+build|shards\s+run|rails|artisan|composer|pio)\s+test|crystal\s+spec|xcodebuild\s(?:.*\s)?test|"
    r"php\s+artisan\s+test|\S*python[\d.]*\s+(?:\S*/)?manage\.py\s+test)(?=\s|$)"
)
_LINT: Final = re.compile(
    BEFORE
    + r"(?:flake8|pylint|mypy|pyright|basedpyright|shellcheck|rubocop|standardrb|hadolint|tflint|yamllint|bandit|"
    r"ansible-lint|actionlint|markdownlint(?:-cli2)?|lint-imports|luacheck|hlint|swiftlint|ktlint|staticcheck|cppcheck|"
    r"kubeconform|kubeval|kube-linter|checkov|semgrep|vale|codespell|typos|renovate-config-validator|xmllint\s.*--noout|"
    r"pdk\s+validate|taplo\s+(?:lint|check)|(?:[\w.-]+/){0,6}pint\s.*--test|"
    rf"{_OF_NODE}(?:eslint|oxlint|stylelint|svelte-check|biome\s+(?:check|lint|ci)|astro\s+check|ng\s+lint)|"
    r"(?:phpstan|psalm)\s+analy[sz]e|(?:terraform|tofu)\s+validate|(?:helm|buf|sqlfluff|deno|solhint)\s+lint|"
    r"(?:ruff|ty|pyrefly|deno|trunk)\s+check|cargo\s+(?:clippy|deny)|go\s+vet|golangci-lint\s+run|pre-commit\s+run|"
    r"mix\s+(?:credo|dialyzer|format\s.*--check\S*)|(?:dart|flutter)\s+analyze|dotnet\s+format\s.*--verify\S*|"
    r"nix\s+flake\s+check|gradlew?\s.*\b(?:detekt|ktlintCheck|spotlessCheck|lint)|"
    rf"{_WORKSPACE}(?:lint|typecheck)[\w:-]*|"
    r"(?:black|isort|{0}prettier|cargo\s+fmt|terraform\s+fmt|deno\s+fmt|scalafmt)\s.*-check|".replace("{0}", _OF_NODE)
    + r"ruff\s+format\s.*--check|"
    rf"{_NODE}(?:lint|typecheck|type-check)[\w:-]*|{_MAKE}(?:lint|types|typecheck)[\w-]*)(?=\s|$)"
)
_BUILD: Final = re.compile(
    BEFORE + r"(?:ninja|sphinx-build|build(?=\s*$)|webpack|rollup|latexmk|nix-build|msbuild|javac|rustc|kotlinc|"
    r"hugo(?=\s+-|\s*$)|electron-builder|(?:storybook|wasm-pack|kustomize|packer|tauri|eas|ionic)\s+build|cdk\s+synth|"
    rf"{_OF_NODE}(?:tsc|vue-tsc|(?:vite|next|nuxt|astro|gatsby|ng|docusaurus|parcel|expo)\s+build)|"
    r"(?:mkdocs|zensical|docker|podman|docker\s+buildx|docker(?:-|\s+)compose|dotnet|swift|bazel|stack|cabal|dune|zig|nix|"
    r"flutter|gleam|jekyll|uv|poetry|pdm|hatch|west|colcon|forge|sam)\s+build|(?:mix|sbt|meson|mill|arduino-cli)\s+compile|"
    rf"cargo\s+(?:build|check|doc)|go\s+build|cmake\s+--build|{_NODE}build[\w:-]*|{_WORKSPACE}build[\w:-]*|"
    r"xcodebuild\s(?:.*\s)?build|"
    r"gradlew?\s.*\b(?:build|assemble\w*)|mvnw?\s.*\b(?:package|compile|install)|make(?=\s*$)|"
    rf"{_MAKE}(?:all|build|docs?|html|dist|package)[\w-]*)(?=\s|$)"
)
_RELEASE: Final = re.compile(
    BEFORE + r"(?:(?:npm|pnpm|yarn|bun|cargo|poetry|uv|flit|hatch)\s+(?:npm\s+)?publish|twine\s+upload|gem\s+push|"
    r"(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:release|publish)[\w:-]*|gh\s+release\s+create|goreleaser\s+release|"
    r"semantic-release|(?:vsce|ovsx|lerna|changeset|mix\s+hex\.|wrangler)\s*publish|dotnet\s+nuget\s+push|cargo\s+release|"
    r"fastlane\s+(?:\w+\s+)?(?:release|beta|deploy)|(?:make|just|rake)\s+(?:release|publish)[\w-]*|gradlew?\s.*\bpublish|mvnw?\s.*\bdeploy|"
    r"(?:(?:ba|z)?sh\s+)?(?:\S*/)?(?:release|publish)\.sh)(?=\s|$)"
)
_CI: Final = re.compile(BEFORE + r"gh\s+(?:run\s+watch\s(?:.*\s)?--exit-status|pr\s+checks)(?=\s|$)")
"""Watches the checks of what was pushed."""
_CHECKS: Final[Mapping[Check, re.Pattern[str]]] = {
    "the tests": _TEST,
    "the linter": _LINT,
    "the release": _RELEASE,
    "the build": _BUILD,
    "CI": _CI,
}
_COMMITS: Final = re.compile(
    BEFORE + r"git\s+(?:-\S+\s+\S+\s+)?(?:commit|push)(?!.*\s(?:--no-verify|-n)(?=\s|$))(?=\s|$)"
)
_HOOKS: Final = re.compile(
    r"^[^\n]{1,200}\.{3,}(?:Passed|Failed)\s*$|staged files|husky - |lefthook|pre-(?:commit|push)\b", re.MULTILINE
)
_PROGRAMS: Final = re.compile(
    r"\b(?:ruff|mypy|pyright|flake8|pylint|eslint|biome|tsc|vitest|jest|pytest|clippy|golangci-lint|rubocop|rspec|phpunit|"
    r"phpstan|shellcheck|detekt|ktlint|credo|tests?)\b",
)


def runs_hooks(command: str, printed: str, /) -> bool:
    """Whether a commit or a push ran checks of its own: what it printed names the hooks and a program that checks."""
    return bool(_COMMITS.match(command) and _HOOKS.search(printed) and _PROGRAMS.search(printed))


def check_of(command: str, /) -> Check | None:
    """What a command checks; `None` where it is no check."""
    return next((check for check, pattern in _CHECKS.items() if pattern.match(command)), None)
