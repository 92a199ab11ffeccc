"""Knows the commands that check work: tests, builds, linters and releases, by their programs and by their words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from lessonbank.text.shell_commands import INSTALLS, only_looks, runs_nothing

Check: TypeAlias = Literal["the tests", "the build", "the linter", "the release", "the checks", "CI", "the hooks"]
_RUNNERS: Final = (
    r"sudo|time|env|bunx|command|exec|nice|nohup|npx(?:\s+--?[\w-]+(?:[= ][\w@./-]+)?){0,3}(?:\s+--)?|npx|"
    r"ddev\s+(?:exec|composer|php)|lando|(?:[\w.-]+/){0,6}sail|heroku\s+run|xargs(?:\s+-\S+){0,4}|"
    r"devcontainer\s+exec(?:\s+--\S+\s+\S+){0,4}|"
    r"(?:uvx|pipx\s+run|(?:uv|poetry|pdm|hatch|rye|pipenv|pixi|devbox|mise|dotenv|doppler|op|nix)\s+(?:tool\s+)?run)"
    r"(?:\s+--?[\w-]+(?:[= ][\w@./\[\],=-]+)?){0,4}(?:\s+--)?|bundle\s+exec|opam\s+exec(?:\s+--)?|(?:symfony\s+)?php(?=\s+\S*bin/)|"
    r"(?:mise|asdf|npm|pnpm|yarn)\s+(?:--?[\w-]+(?:[= ][\w@./-]+)?\s+){0,2}exec(?:\s+--)?|"
    r"(?:docker|podman)\s+run(?:\s+\S+){1,10}?|(?:pnpm|yarn)\s+dlx|coverage\s+run(?:\s+--?\S+)*\s+-m|cross-env|"
    r"timeout(?:\s+-\w\s+\S+|\s+--\S+)*\s+\S+|stdbuf(?:\s+-\S+)+|xvfb-run(?:\s+-\w)?|direnv\s+exec\s+\S+|"
    r"(?:conda|mamba|micromamba)\s+run(?:\s+-\w\s+\S+)?|nix\s+develop(?:\s+\S+)?\s+(?:-c|--command)|"
    r"(?:docker(?:-|\s+)compose|podman(?:-|\s+)compose)\s+(?:run|exec)(?:\s+-\S+){0,4}\s+[\w.-]+|"
    r"(?:docker|podman)\s+exec(?:\s+-\S+){0,4}\s+[\w.-]+|kubectl\s+exec(?:\s+\S+){1,6}?\s+--|"
    r"(?:aws-vault|chamber|singularity|apptainer)\s+exec\s+\S+(?:\s+--)?|(?:rbenv|pyenv|nvm|fnm)\s+exec|env\s+-[iu](?:\s+\S+)?|"
    r"ssh(?:\s+-[pil]\s+\S+|\s+-\w+){0,4}\s+[\w.@-]+|wsl(?:\s+--)?"
)
"""What starts another program and hands its exit code on."""
BEFORE: Final = (
    rf"^\s*(?:(?:!|\w+=\S*|{_RUNNERS})\s+){{0,6}}"
    r"(?:\S*python[\d.]*\s+(?:-\w\s+)*-m\s+)?(?:[\w.~-]*/){0,12}"
)
"""What may stand before the program of a command, and changes nothing."""
_MANAGER: Final = r"(?:npm|pnpm|yarn|bun)\s+(?:workspace\s+\S+\s+|workspaces\s+(?:run|foreach)\s+)?(?:--?[\w-]+(?:=\S+|\s+[^-\s]\S*)\s+){0,3}"
_NODE: Final = _MANAGER + r"(?:run\s+)?"
_OF_NODE: Final = r"(?:(?:pnpm|yarn|bun)\s+(?:run\s+)?)?"
"""A program of the project's packages is called with or without the manager."""
_MAKE: Final = r"(?:make|gmake|just|rake|task|mage|poe|inv|invoke)\s+(?:[\w.=/-]+\s+){0,4}?"
_WORKSPACE: Final = (
    _OF_NODE + r"(?:turbo|nx|lerna|moon|rush)\s+(?:(?:run(?:-many)?|affected)\s+)?(?:-t\s+|--targets?[= ])?"
    r"(?:[\w@/-]+[:,]){0,3}"
)
_TEST: Final = re.compile(
    BEFORE
    + r"(?:pytest|py\.test|unittest|tox|nox|ctest|ava|rspec|phpunit|pest|bats|busted|prove|elm-test|gotestsum|ginkgo|"
    r"pg_prove|R\s+CMD\s+check|helm\s+unittest|"
    r"(?:docker|podman)(?:-|\s+)compose\s.*--exit-code-from|(?:\S*Unity\S*|godot)\s.*(?:-runTests|gut_cmdln\.gd)|"
    r"(?:hatch|pixi|pdm|devbox|rye|poetry|uv|mise)\s+(?:-e\s+\S+\s+)?run\s+test[\w:-]*|npm\s+t|dune\s+runtest|"
    r"pio\s+test|rebar3\s+(?:eunit|ct)|cl(?:j|ojure)\s.*-[MX]\S*test\S*|west\s+twister|"
    r"wdio\s+run|tap|doctest|cargo\s+(?:miri|hack)\s+(?:test|check)|rake(?=\s*$)|julia\s.*\bruntests\.jl|(?:sui|aptos)\s+move\s+test|"
    r"earthly\s.*\+test|dagger\s+call\s+test|phpspec\s+run|codecept\s+run|"
    r"dbt\s+(?:build|test)|behave|robot|newman\s+run|hurl\s.*--test|test-storybook|"
    rf"{_MANAGER}run\s+(?:ci|verify)[\w:-]*|"
    rf"{_OF_NODE}(?:jest|vitest|mocha|playwright\s+test|cypress\s+run|ng\s+test)|karma\s+start\s.*--single-run|"
    rf"cargo\s+(?:nextest\s+run|test|llvm-cov|tarpaulin)|go\s+test|{_NODE}test[\w:-]*|deno\s+test|"
    rf"node\s+--test|{_MAKE}(?!(?:clean|update|gen\w*|build|fmt|fix|setup)[-_:])(?:[\w.]+[-_:]){{0,3}}(?:tests?|check|spec|smoke)(?![\w/.]*=)[\w:-]*|{_WORKSPACE}test[\w:-]*|"
    r"gradlew?\s.*\b(?:[a-z]\w*T|t)ests?|gradlew?\s.*\bcheck|mvnw?\s.*\b(?:test|verify)|"
    r"sbt(?:\s+[\w/:.*-]+){0,6}?\s+(?:[\w-]+[/:]){0,3}test\w*|"
    r"zig\s+build\s+test|xcodebuild\s(?:.*\s)?test)(?=\s|$)"
)
_LINT: Final = re.compile(
    BEFORE
    + r"(?:flake8|pylint|mypy|pyright|basedpyright|shellcheck|rubocop|standardrb|hadolint|tflint|yamllint|bandit|"
    r"ansible-lint|actionlint|markdownlint(?:-cli2)?|lint-imports|luacheck|hlint|swiftlint|ktlint|staticcheck|cppcheck|"
    r"clang-tidy|detekt|checkstyle|protolint|verilator\s.*--lint-only|perl\s+-c|elm-review|attw|(?:prek|lefthook)\s+run|"
    r"nginx\s+-t|kubeconform|kubeval|kube-linter|checkov|semgrep|vale|codespell|typos|renovate-config-validator|xmllint\s.*--noout|"
    r"(?:docker|podman)(?:-|\s+)compose\s(?:.*\s)?config(?=\s+(?:-q|--quiet))|glab\s+ci\s+lint|(?:ba|z|da)?sh\s+-n|"
    r"php\s+-l|ruby\s+-c|node\s+--check|python[\d.]*\s+-m\s+(?:py_compile|compileall)|py_compile|compileall|visudo\s+-c|"
    r"systemd-analyze\s+verify|ansible-playbook\s.*--syntax-check|apachectl\s+configtest|haproxy\s.*-c|"
    r"pycodestyle|pydocstyle|cspell|lychee|htmlproofer|linkchecker|textlint|govulncheck|pip-audit|cargo\s+audit|"
    r"size-limit|publint|knip|depcruise|standard|xo|phpcs|brakeman|erblint|"
    r"pdk\s+validate|taplo\s+(?:lint|check)|(?:[\w.-]+/){0,6}pint\s.*--test|"
    rf"{_OF_NODE}(?:eslint|oxlint|stylelint|svelte-check|biome\s+(?:check|lint|ci)|astro\s+check|ng\s+lint)|"
    r"phpstan\s+analy[sz]e|psalm|(?:terraform|tofu)\s+validate|"
    r"(?:ruff|ty|pyrefly|deno|trunk)\s+check|cargo\s+(?:clippy|deny)|go\s+vet|golangci-lint\s+run|pre-commit\s+run|"
    r"mix\s+(?:credo|dialyzer|format\s.*--check\S*)|(?:dart|flutter)\s+analyze|dotnet\s+format\s.*--verify\S*|"
    r"nix\s+flake\s+check|gradlew?\s.*\b(?:detekt|ktlintCheck|spotlessCheck|apiCheck|lint\w*)|"
    rf"{_WORKSPACE}(?:lint|typecheck)[\w:-]*|"
    r"(?:black|isort|{0}prettier|cargo\s+fmt|terraform\s+fmt|deno\s+fmt|scalafmt)\s.*-check|".replace("{0}", _OF_NODE)
    + r"ruff\s+format\s.*--check|"
    rf"{_NODE}(?:lint|typecheck|type-check)[\w:-]*|{_MAKE}(?:lint|types|typecheck)[\w-]*)(?=\s|$)"
)
_BUILD: Final = re.compile(
    BEFORE + r"(?:ninja|sphinx-build|build(?=\s*$)|webpack|rollup|latexmk|nix-build|msbuild|javac|rustc|kotlinc|"
    r"cibuildwheel|pyinstaller|maturin\s+build|make(?:\s+-C\s+\S+|\s+-\S+|\s+\w+=\S+)*(?=\s*$)|(?:docker|podman)\s+buildx\s+bake|"
    r"nixos-rebuild\s+(?:dry-)?build|tsup|scons|iverilog|(?:gcc|g\+\+|clang(?:\+\+)?)\s.*|jupyter\s+nbconvert\s.*--execute|expo\s+export|quarto\s+render|dotnet\s+publish|"
    r"pio\s+run(?!\s.*upload)|hugo(?=\s+-|\s*$)|electron-builder|cdk\s+synth|"
    rf"{_OF_NODE}(?:tsc|vue-tsc|(?:vite|next|nuxt|astro|gatsby|ng|docusaurus|parcel|expo)\s+build)|"
    r"(?:docker|podman|docker\s+buildx|docker(?:-|\s+)compose|zig|nix)\s+build|"
    rf"cargo\s+(?:build|check|doc)|go\s+build|cmake\s+--build|{_NODE}build[\w:-]*|{_WORKSPACE}build[\w:-]*|"
    r"xcodebuild\s(?:.*\s)?build|"
    r"gradlew?\s.*\b(?:build|assemble\w*|compile\w+|bootJar|shadowJar|bundle\w*)|mvnw?\s.*\b(?:package|compile|install)|"
    rf"{_MAKE}(?:all|build|docs?|html|dist|package)[\w-]*)(?=\s|$)"
)
_RELEASE: Final = re.compile(
    BEFORE + r"(?:(?:npm|pnpm|yarn|bun|cargo|poetry|uv|flit|hatch)\s+(?:npm\s+)?publish|twine\s+upload|gem\s+push|"
    r"(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:release|publish)[\w:-]*|gh\s+release\s+create|goreleaser\s+release|"
    r"semantic-release|(?:vsce|ovsx|lerna|changeset|mix\s+hex\.|wrangler)\s*publish|dotnet\s+nuget\s+push|cargo\s+release|"
    r"fastlane\s+(?:\w+\s+)?(?:release|beta|deploy)|(?:terraform|tofu|pulumi)\s(?:.*\s)?(?:apply|up)|"
    r"gcloud\s+(?:run|app|functions)\s+deploy|vercel\s.*--prod|helm\s+upgrade|kubectl\s(?:.*\s)?rollout\s+status|(?:make|just|rake)\s+(?:release|publish)[\w-]*|gradlew?\s.*\bpublish|mvnw?\s.*\bdeploy|"
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
    r"^[^\n]{1,200}\.{3,}(?:Passed|Failed)\s*$|staged files|lint-staged|husky - |lefthook|pre-(?:commit|push)\b",
    re.MULTILINE,
)
_PROGRAMS: Final = re.compile(
    r"\b(?:ruff|mypy|pyright|flake8|pylint|eslint|biome|tsc|vitest|jest|pytest|clippy|golangci-lint|rubocop|rspec|phpunit|"
    r"phpstan|shellcheck|detekt|ktlint|credo|tests?)\b",
)


def runs_hooks(command: str, printed: str, /) -> bool:
    """Whether a commit or a push ran checks of its own: what it printed names the hooks and a program that checks."""
    return bool(_COMMITS.match(command) and _HOOKS.search(printed) and _PROGRAMS.search(printed))


_WORDS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(("test", "tests", "spec", "specs", "eunit", "e2e", "smoke", "runtests", "selftest"), "the tests"),
    **dict.fromkeys(
        ("check", "checks", "verify", "validate", "ci", "breaking", "typecheck", "precommit", "preflight", "qa"),
        "the checks",
    ),
    **dict.fromkeys(("lint", "lints", "linter", "vet", "analyze", "analyse", "types"), "the linter"),
    **dict.fromkeys(("build", "compile"), "the build"),
    **dict.fromkeys(("deploy", "publish", "release"), "the release"),
}
"""What programs, and the scripts of a repository, call a check."""
_NO_CHECKS: Final = re.compile(
    r"git|gh|glab|hub|pushd|source|export|mkdir|touch|tee|cp|mv|rm|rmdir|ln|ch(?:mod|own)|tar|zip|unzip|open|code|vim?|"
    r"nano|emacs|http|scp|rsync|psql|mysql|sqlite3|mongosh?|redis-cli|createdb|dropdb|tmux|screen|kill|pkill|systemctl|"
    r"service|journalctl|brew|apt(?:-get)?|dnf|apk|pip3?|gem|kubectl|aws|gcloud|az|docker|podman|set|read|for|if|"
    r"create-\S+|degit|cookiecutter"
)
"""Programs whose first word is no check, whatever it says, beside those that only look."""
_INTERPRETERS: Final = re.compile(
    r"(?:python|ruby|node|tsx|ts-node|bun|deno|(?:ba|z|da)?sh|php|perl|Rscript|pwsh|elixir)[\d.]*"
)
_SCRIPT: Final = re.compile(r"[\w./~-]*?([\w-]+)\.(?:sh|bash|py|rb|m?[jt]s|pl|R|ps1|php|exs?)")
_OF_REPOSITORY: Final = re.compile(r"(?:^|\s)(?:\./)?\w[\w./-]*/$")
_STARTS: Final = frozenset({"run", "exec", "xtask", "task", "x"})


def _by_word(command: str) -> Check | None:
    """What a command checks by its sub-command, or by the name of the script that it runs."""
    before = re.match(BEFORE, command)
    whole = command[before.end() :] if before else command
    words = [word for word in whole.split() if not word.startswith("-")][:4]
    is_own = bool(before and _OF_REPOSITORY.search(before[0]))
    if not words or runs_nothing(whole) or _NO_CHECKS.fullmatch(words[0]) or INSTALLS.match(whole):
        return None
    if not is_own and (only_looks(whole) or only_looks(words[0])):
        return None
    named = words[1:] if _INTERPRETERS.fullmatch(words[0]) else words
    script = _SCRIPT.fullmatch(named[0]) if named else None
    own = [script[1]] if script else words[:1] if before and before.group().strip() else []
    rest = named[1:3] if named[1:] and named[1] in _STARTS else named[1:2]
    return next((check for name in (*own, *rest) if (check := _of_name(name))), None)


def _of_name(name: str) -> Check | None:
    """What a name says that it checks: by its first word, or by its last."""
    parts = re.split(r"[-_:.]+", name.casefold())
    return _WORDS.get(parts[0]) or _WORDS.get(parts[-1])


def check_of(command: str, /) -> Check | None:
    """What a command checks; `None` where it is no check."""
    return next((check for check, pattern in _CHECKS.items() if pattern.match(command)), None) or _by_word(command)
