"""What a check proves of the last edit: one of another part, of nothing or of another machine proves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.importers._checks import check_of
from lessonbank.importers._evidence import verdict_of

OF_A_PART = {
    "success": (
        ("packages/api/a.ts", "pnpm --filter @x/api... test"),
        ("packages/api/a.ts", "pnpm --filter '@x/api' test"),
        ("packages/api/a.ts", "npm test --workspaces"),
        ("packages/api/a.ts", "cd packages/api && npx jest"),
        ("package.json", "yarn workspace @x/web test"),
        ("libs/money/src/a.ts", "npx nx run money:test"),
        ("crates/parser/src/lib.rs", "cargo test -p cli -p my-parser"),
        ("core/src/main/java/A.java", "mvn -pl web -am test"),
        ("core/src/main/java/A.java", "./gradlew :core:test :web:test"),
        ("internal/a/x.go", "go test ./internal/... -run Foo"),
        ("internal/a/x.go", "go build ./cmd/app"),
        ("common/a.h", "make -C tests/host check"),
        ("src/a.c", "cd build/debug && make -j4"),
        ("src/cart/Total.tsx", "cd frontend && npm test -- Total"),
        ("/srv/shop/web/a.ts", "cd /srv/shop && npm test"),
        ("../hotfix/a.ts", "cd ../hotfix && npm test"),
        ("/tmp/shop/a.ts", "npm test"),
        ("services/geo/a.py", "pytest services/geo/tests"),
        ("app/a.py", "ruff check --config x.toml scripts app"),
        ("apps/web/a.ts", "pnpm turbo run build lint test --filter=...@x/shared"),
    ),
    None: (
        ("packages/api/a.ts", "pnpm --filter @x/web test"),
        ("packages/api/a.ts", "npm test -w packages/web"),
        ("packages/api/a.ts", "yarn workspace @x/web test"),
        ("packages/api/a.ts", "npx tsc -p packages/web"),
        ("libs/money/src/a.ts", "npx nx test cart"),
        ("crates/parser/src/lib.rs", "cargo test -p cli"),
        ("core/src/main/java/A.java", "mvn -pl web test"),
        ("core/src/main/java/A.java", "./gradlew :web:test"),
        ("internal/a/x.go", "go test ./internal/b/..."),
        ("sdk/python/a.py", "make -C sdk/go test"),
        ("web/a.ts", "cd api && pytest -q"),
        ("/srv/shop-hotfix/web/a.ts", "cd /srv/shop && npm test"),
        ("../hotfix/a.ts", "npm test"),
        ("/tmp/look.ts", "npm test"),
        ("/tmp/claude-1000/shop/look.ts", "npm test"),
        ("a.ts", "cd ../other && npm test"),
        ("services/geo/a.py", "pytest services/router"),
        ("scripts/migrate.py", "flake8 app"),
        ("plugins/loader.py", "cd core && mypy ."),
        ("internal/a/x.go", "cd cmd && go vet ./..."),
    ),
}
OF_A_KIND = {
    "success": (
        ("compose.yaml", "docker compose config -q"),
        ("Dockerfile", "hadolint Dockerfile"),
        (".github/workflows/ci.yml", "actionlint"),
        (".gitlab-ci.yml", "glab ci lint"),
        ("bin/deploy", "shellcheck bin/deploy"),
        ("infra/a.tf", "terraform validate"),
        ("a.py", "ruff check ."),
        ("pom.xml", "mvn verify"),
        ("proto/a.proto", "go build ./..."),
        ("migrations/1.sql", "pytest"),
    ),
    None: (
        ("templates/invoice.css", "pytest"),
        ("ios/Stat.swift", "yarn jest --ci"),
        ("scripts/backup.sh", "go test ./..."),
        ("k8s/web.yaml", "npm test"),
        ("compose.yaml", "cargo test"),
        ("styles/a.scss", "npm test"),
        ("styles/a.scss", "npx tsc --noEmit"),
        ("styles/a.scss", "npx eslint ."),
        ("a.py", "docker compose config -q"),
        (".github/workflows/ci.yml", "npm test"),
        ("Dockerfile", "pytest -q"),
        ("a.py", "hadolint Dockerfile"),
        ("a.go", "yamllint ."),
        ("a.ts", "ruff check ."),
        ("a.py", "npx markdownlint README.md"),
    ),
}
OF_DOCUMENTS = {
    "success": (
        ("README.md", "npx markdownlint README.md"),
        ("docs/a.md", "mkdocs build --strict"),
        ("docs/a.md", "npm run build"),
        ("README.md", "cargo test --doc"),
    ),
    None: (("README.md", "pytest"), ("docs/a.rst", "cargo clippy"), ("CHANGELOG.md", "npm test")),
}
RUNS_NOTHING = (
    "npx turbo run test --dry|pytest --fixtures|go test -list . ./...|go test -c ./x|cargo test --no-run|tox -l|"
    "ctest -N|npx vitest list|npx playwright test --list|make -n test|make --dry-run check|just -n test|gradle -m test|"
    "npm publish --dry-run|npx nx run-many -t test --graph|jest --showConfig|eslint --print-config a.js|"
    "flake8 --exit-zero|npm test --if-present|mvn -Dmaven.test.failure.ignore=true verify|npm run test:watch|"
    "npm run test:setup|ssh build1 'cd x && cargo test'|ssh build1 cargo test"
)
PRINTS_NOTHING = (
    ("go test ./a -run Foo", "ok  \tx/a\t0.1s [no tests to run]"),
    ("cargo test foo", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed"),
    ("npx vitest run x --passWithNoTests", "No test files found, exiting with code 0"),
    ("dotnet test --filter X", "No test matches the given testcase filter `X`"),
    ("rspec -e x", "0 examples, 0 failures"),
    ("make test", "make: 'test' is up to date."),
    ("make check", "make: [check] Error 1 (ignored)"),
    ("vendor/bin/phpunit", "No tests executed!"),
    ("pytest", "============ 3 skipped in 0.02s ============"),
    ("nox -s tests-3.14", "nox > Running session tests-3.14\nnox > Missing interpreters will error by default"),
    ("nohup npm test", "started 48213"),
    ("dbt test -s x", "Found 51 models, 98 tests\nThe selection criterion 'x' does not match any nodes"),
    ("make test", "Selected suites: none\n0 passed, 0 scenarios"),
    ("npm test", "0 specs, finished ok"),
    ("pnpm turbo run test", " Tasks:    4 successful, 4 total\n  Time:    90ms >>> FULL TURBO"),
)
AFTER_THE_CHECK = {
    "success": (
        "git checkout -b fix && git commit -am x && git push -u origin fix",
        "git commit --amend -m y",
        "git reset HEAD~1",
        "git diff > /tmp/x.patch",
        "rm -rf dist /tmp/x",
        "gofmt -l .",
        "cargo fmt -- --check",
        "sed -n 1,5p a-in.py",
        "npm run i18n|git status » 0 nothing to commit, working tree clean",
        "make proto|pytest -q",
        "fly logs",
        "exit 0",
    ),
    None: (
        "make proto",
        "python scripts/seed.py",
        "npm run i18n",
        "make proto|git status » 0  M gen/a.py",
        "npx eslint --fix src",
        "bundle exec rubocop -a app",
        "ktlint -F src",
        "npx biome check --apply src",
        "vendor/bin/php-cs-fixer fix",
        "npm run format",
        "npm run lint:fix",
        "ruff format .",
        "mix format",
        "gofmt -w .",
        "cargo fmt --all",
        "npx prettier --write src",
        "npm i -D vite@6",
        "npx nx g lib x",
        "git pull --rebase",
        "git branch -D try",
        "helm rollback shop",
        "python - <<E\nopen('a.py', 'w').write('x')\nE",
    ),
}
LINES = {
    "success": (
        "npx jest » 1 › 1 snapshot failed.|npx jest -u|npx jest --ci",
        "npm test » 1 FAIL a.js|npm test -- --runInBand",
        "pytest tests/test_a.py » 1 1 failed|pytest",
        "bash -ec 'make lint; make test'",
        "(cd web && npm test)",
        "rsync -a ./ pi:x/ && ssh pi 'cd x && make test'",
        "git push|ssh pi 'git pull && make test'",
        "git commit -am x && git push|gh pr checks 7 --watch",
        "npm test » 0   10 passing (2s)",
        "uv build && unzip -l dist/x.whl | grep y",
        "pytest -q|/tmp/pr_body.md",
        "pytest » 1 1 failed|b.py|pytest --lf » 0 run-last-failure: rerun previous 1 failure\n1 passed",
        "pwsh -NoProfile -Command 'Invoke-Pester -CI'",
        "docker run --rm -v $PWD:/w py pytest -q",
        "docker build -t x . && docker run --rm x pytest -q",
        "kubectl -n dev cp a.py api-0:/a.py && kubectl -n dev exec api-0 -- pytest",
        "bun test » 0 ✓ unknown flag exits 2",
        "yarn jest Total » 1 FAIL a.js|a.js|yarn jest Total parse",
        "pytest tests/test_a.py » 1 1 failed|pytest tests/test_a.py tests/test_b.py",
        "busted spec/a_spec.lua » 1 5 successes / 1 failure|a.lua|make ci",
        "mvn -q -DskipTests compile » 1 a.java:[3,2] cannot find symbol|pom.xml|mvn verify",
        "make -C /lib/modules/6.8/build M=$PWD modules",
        "for f in src/*.php; do sed -i s/a/b/ $f; done|vendor/bin/pest",
    ),
    "failure": (
        "npm test -- --coverage » 1 Tests:  9 passed, 9 total\nJest: coverage threshold for branches (85%) not met",
        "git rm -q b.py && flake8 x » 1 x/a.py:7:1: F821 undefined name",
        "buf generate && go build ./... » 1 a.go:19:2: undefined: pb.Un",
        "dbt run -s x && dbt test -s x » 1 Failure in test unique_x",
        "terraform fmt -recursive && tflint » 2 2 issue(s) found",
        "helm dep update x && helm upgrade x x » 1 Error: UPGRADE FAILED",
        "git push -q && gh run watch 7 --exit-status » 1 X test (3.9) in 1m2s",
        "git push && sleep 8 && gh run watch 7 --exit-status » 1 X main test · 70017",
        "git add -A && git commit -m x » 1 ✔ Preparing lint-staged...\n✖ eslint:",
        "kubectl apply -f k8s && kubectl rollout status deploy/web » 1 error: timed out",
    ),
    None: (
        "cargo test && cargo fmt --check » 1 test result: ok. 6 passed; 0 failed\nDiff in src/a.rs:41:",
        "cargo test -q && cargo clippy -q » 101 test result: ok. 8 passed; 0 failed\nerror: could not compile `x`",
        "npm run check » 1 OK (52 tests)\na.ts(9,3): error TS2322: Type 'x'",
        "pytest » 1 Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
        "git push && gh run watch 7 --exit-status » 1 error: failed to push some refs",
        "docker run --rm x:1 pytest -q",
        "nohup pytest -q > a.log 2>&1 & echo started",
        "./gradlew test » 1 Exception: java.net.UnknownHostException: services.gradle.org",
        "cargo check -p x » 101 error: could not find `Cargo.toml` in `/p` or any parent directory",
        "python -m pytest a.py » 1 /usr/bin/python: No module named pytest",
        "go test ./... » 1 go: go.mod file not found in current directory or any parent directory",
        "npx cypress run » 1 No version of Cypress is installed in: ~/.cache/Cypress",
        "mvn -o test » 1 [ERROR] Failed to execute goal: Could not resolve dependencies: x",
        "npx jest --frob » 1 error: unknown option '--frob'",
        "ssh pi 'make test'|git push",
        "npm run build » 1 Could not read the schema",
        "npx eslint . » 2 Oops! Something went wrong!",
        "make lint » 2 linter: cannot load its rules",
        'kubectl apply -f x.yaml » 1 error: the path "x.yaml" does not exist',
        "make test » 2 1 failed so far\nmake: *** [Makefile:3: test] Error 137",
        "gh pr checks 7 --watch",
        "git push|b.py|gh pr checks 7 --watch",
    ),
}


def outcome(*events: str) -> str | None:
    """How a run ended: a path is an edit of that file, `command » code output` a command of a shell."""
    codes = dict[str, int]()
    steps = tuple(_steps(events, codes))
    verdict = verdict_of(Trajectory(id="r", task="Do it", steps=steps), codes)
    return verdict.outcome if verdict else None


def _steps(events: tuple[str, ...], codes: dict[str, int]) -> Iterator[Step]:
    for number, event in enumerate(events):
        id, (command, _, told) = f"c{number}", event.partition(" » ")
        code, _, printed = told.partition(" ")
        is_edit = re.fullmatch(r"[\w./-]*(?:\.\w+|file|deploy)", command) is not None
        if not is_edit:
            codes[id] = int(code or 0)
        name, argument = ("Edit", "file_path") if is_edit else ("Bash", "command")
        call = ToolCall(id=id, name=name, arguments={argument: command})
        seen = Observation(text=printed, source="tool", call_id=id, is_error=bool(codes.get(id)))
        yield Step(action=Action(calls=(call,)), observations=(seen,))


@pytest.mark.parametrize("table", [OF_A_PART, OF_A_KIND, OF_DOCUMENTS])
def test_a_check_proves_nothing_of_a_part_that_it_does_not_look_at(
    table: dict[str | None, tuple[tuple[str, str], ...]],
) -> None:
    for expected, cases in table.items():
        assert {case: outcome(*case) for case in cases} == dict.fromkeys(cases, expected)


def test_a_target_is_of_what_the_checks_look_at_that_it_says_it_started() -> None:
    assert outcome("web/A.tsx", "make lint » 0 ruff check backend\nAll checks passed!") is None
    assert outcome("tools/a.py", "npm run verify » 0 > verify\n> eslint src && vitest run\n\n 9 passed") is None
    assert outcome("src/a.ts", "npm run verify » 0 > verify\n> eslint src && vitest run\n\n 9 passed") == "success"
    assert outcome("src/a.py", "make check » 0 npx eslint web\npytest -q\n9 passed") == "success"


def test_a_check_that_passed_is_of_the_last_edit() -> None:
    assert outcome("libs/a/x.py", "libs/b/y.py", "cd libs/a && pytest") is None
    assert outcome("libs/a/x.py", ".gitignore", "pytest") == "success"
    assert outcome("libs/b/y.py", "libs/a/x.py", "CHANGELOG.md", "cd libs/a && pytest") == "success"


def test_what_runs_nothing_proves_nothing() -> None:
    commands = RUNS_NOTHING.split("|")
    assert {command: outcome("a.py", command) for command in commands} == dict.fromkeys(commands)


def test_output_that_says_that_nothing_ran_takes_the_conclusion_back() -> None:
    assert {case: outcome("a.py", " » 0 ".join(case)) for case in PRINTS_NOTHING} == dict.fromkeys(PRINTS_NOTHING)


def test_what_changes_files_after_a_check_makes_it_stale_and_a_look_does_not() -> None:
    for expected, commands in AFTER_THE_CHECK.items():
        ends = {one: outcome("a.py", "pytest -q", *one.split("|")) == "success" for one in commands}
        assert ends == dict.fromkeys(commands, expected == "success")


def test_the_exit_code_of_a_line_is_that_of_its_checks_as_far_as_it_says() -> None:
    for expected, lines in LINES.items():
        assert {line: outcome("a.json", *line.split("|")) for line in lines} == dict.fromkeys(lines, expected)


def test_what_failed_is_a_doubt_until_the_same_or_a_wider_check_passes() -> None:
    assert outcome("make e2e » 2 1 failed", "a.py", "pytest » 0 3 passed") == "unknown"
    assert outcome("pytest » 1 1 failed", "a.py", "mypy .") == "unknown"
    assert outcome("a.py", "pytest » 1 1 failed", "pytest tests/test_a.py » 0 1 passed") == "unknown"
    assert outcome("pytest tests/test_a.py » 1 1 failed", "a.py", "pytest » 0 9 passed") == "success"


def test_a_command_that_may_be_a_check_and_fails_takes_a_success_back() -> None:
    assert outcome("a.php", "phpunit » 0 OK (52 tests)", "composer inspect-code » 8 Found 1 of 31 files") == "unknown"
    assert outcome("a.py", "pytest", "grep -r x src » 1", "git push » 1 rejected", "frob » 127") == "success"
    assert outcome("a.rb", "rake test", "gem build x && gem push x.gem » 1 Your OTP code is incorrect") == "unknown"
    assert outcome("a.py", "pytest", "docker compose up -d » 1 no such image") == "unknown"
    assert outcome("a.py", "mypy .", "pytest » 1 connection refused") == "unknown"
    assert outcome("a.py", "mypy .", "pytest » 1 connection refused", "pytest") == "success"
    assert outcome("a.py", "pytest", "docker compose up -d » 1 no such image", "docker compose up -d") == "success"


def test_what_failed_stays_a_failure_beside_a_command_that_is_no_check() -> None:
    assert outcome("a.py", "pytest » 1 1 failed", "frob » 127") == "failure"
    assert outcome("a.py", "pytest » 1 1 failed", "frob --all » 1 no") == "failure"
    assert outcome("Dockerfile", "hadolint Dockerfile » 1 Dockerfile:6 DL3008 warning: Pin versions") == "failure"


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("pytest 2>&1 | tee log.txt; exit ${PIPESTATUS[0]}", ""),
        ("pytest | tail -3; [ ${PIPESTATUS[0]} -eq 0 ]", ""),
        ('pytest | tail -3; echo "rc=${PIPESTATUS[0]}"', "3 passed\nrc=0"),
        ("set -o pipefail; pytest | tee /tmp/x", ""),
        ("pytest || { echo bad; exit 1; }", ""),
        ("for z in UTC Asia/Tokyo; do TZ=$z pytest -q || exit 1; done", ""),
    ],
)
def test_a_pipe_hands_the_exit_code_on_where_the_line_says_so(command: str, printed: str) -> None:
    assert outcome("a.py", f"{command} » 0 {printed}") == "success"


def test_programs_and_scripts_of_more_ecosystems_are_checks() -> None:
    commands = (
        "hatch run test|make db-reset db-test|make -C sim test_fifo|make smoke|bin/test|npx nx affected -t lint test|"
        "uvx --with mkdocs-material mkdocs build|uv run --extra dev pytest|yarn workspaces foreach -A run test|npm t|"
        "docker compose -f a.yml up --exit-code-from tests|docker compose config -q|glab ci lint|cibuildwheel|"
        "/opt/Unity -batchmode -runTests|julia --project test/runtests.jl|bash -n a.sh|php -l a.php|gcc -c a.c|"
        "opam exec -- dune test|bundle exec rake|php bin/phpunit|gcloud run deploy api|./gradlew compileKotlin|"
        "docker compose -f a.yml run --rm tests|sbt -Dsbt.color=false feed/test|terraform -chdir=envs/prod validate|"
        "ansible-playbook -i hosts.ini edge.yml|mix do compile --warnings-as-errors + test|elm make src/Main.elm|"
        "npx c8 --all mocha|cargo make ci|npm run size|git push heroku main|npx prisma migrate deploy|cc -c a.c"
    )
    assert [command for command in commands.split("|") if check_of(command) is None] == []
    assert check_of("make clean-tests") is None
    assert check_of("/usr/bin/test -f a") is None
    assert check_of("ansible-playbook edge.yml --list-hosts") is None
    assert check_of("git push origin main") is None


@pytest.mark.parametrize("flag", ["'using Pkg; Pkg.test()'", '"import Pkg; Pkg.test()"'])
def test_the_tests_that_a_language_runs_in_its_own_shell_are_a_check(flag: str) -> None:
    assert outcome("a.jl", f"julia --project -e {flag}") == "success"


def test_what_others_wrote_is_no_edit_and_makes_an_earlier_check_stale() -> None:
    assert outcome("git switch main && git pull -q", "npm test » 1 Tests: 3 failed, 641 passed, 644 total") is None
    assert outcome("a.py", "pytest -q", "git pull") == "unknown"
    assert outcome("a.py", "git pull", "pytest -q » 0 3 passed in 0.12s") == "success"
