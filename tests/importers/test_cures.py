"""Cures are drawn from exit codes: what failed, what was run, and what then went through."""

from __future__ import annotations

from typing import Any

import pytest

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.guard.hazards import OUTPUT, RESULT, is_hazard
from lessonbank.importers import Failure, failure_of, failures_in
from lessonbank.text.error_line import JOINS

PROTO = """Exit code 2
  File "/srv/shop/a.py", line 7
ModuleNotFoundError: No module named 'billing.rates_pb'
make: *** [test] Error 1"""
Call = tuple[str, int | None, str] | str


def run(*calls: Call) -> tuple[Trajectory, dict[str, int]]:
    """A run of shell calls, each with its exit code, and of edits, which are named by a file."""
    steps, codes = list[Step](), dict[str, int]()
    for number, told in enumerate(calls):
        command, code, printed = (told, 0, "ok") if isinstance(told, str) else told
        arguments: dict[str, Any] = {"command": command} if not isinstance(told, str) else {"file_path": told}
        call = ToolCall(name="Edit" if isinstance(told, str) else "Bash", arguments=arguments, id=f"c{number}")
        seen = Observation(text=printed, source="tool", call_id=f"c{number}", is_error=bool(code))
        steps.append(Step(action=Action(calls=(call,)), observations=(seen,)))
        if code is not None and not isinstance(told, str):
            codes[f"c{number}"] = code
    return Trajectory(task="Fix it", steps=tuple(steps)), codes


def cures(*calls: Call) -> list[tuple[str, str, str]]:
    return [(one.program, one.command, one.cure) for one in failures_in(*run(*calls)) if one.cure]


def told_at_once(*calls: Call) -> list[str]:
    """The cures that one run shows."""
    return [one.cure for one in failures_in(*run(*calls)) if one.cure and not one.rests_on]


def ok(command: str) -> Call:
    return command, 0, "ok"


def bad(command: str, printed: str = PROTO, code: int = 2) -> Call:
    return command, code, printed


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((bad("make test"), ok("make proto"), ok("make test")), ("make test", "make test", "make proto")),
        (
            (bad("make test"), ok("ls"), ok("make proto"), ok("cat a"), ok("make test")),
            ("make test", "make test", "make proto"),
        ),
        (
            (bad("git push", "fatal: no upstream branch", 128), ok("git push --set-upstream origin main")),
            ("git push", "git push", "git push --set-upstream origin main"),
        ),
        (
            (bad("cd app && npm run build", code=1), ok("npm ci"), ok("cd app && npm run build")),
            ("npm run build", "npm run build", "npm ci"),
        ),
        (
            (bad("pytest -q", "bash: pytest: command not found", 127), ok("pip install pytest"), ok("pytest -q")),
            ("pytest", "pytest -q", "pip install pytest"),
        ),
        (
            (bad("python -m pytest -q"), ok("make proto"), ok("python -m pytest -q 2>&1")),
            ("pytest", "python -m pytest -q", "make proto"),
        ),
        (
            (bad("docker compose up", "Cannot connect", 1), ok("docker start db"), ok("docker compose up")),
            ("docker compose", "docker compose up", "docker start db"),
        ),
        (
            (bad("python manage.py test"), ok("python manage.py migrate"), ok("python manage.py test")),
            ("manage.py test", "python manage.py test", "python manage.py migrate"),
        ),
        (
            (bad("npx playwright test"), ok("npx playwright install"), ok("npx playwright test")),
            ("playwright test", "npx playwright test", "npx playwright install"),
        ),
        (
            (bad("pnpm test", "Missing script: test", 1), ok("pnpm --filter web test")),
            ("pnpm test", "pnpm test", "pnpm --filter web test"),
        ),
        (
            (bad("make db"), ok("docker ps --format '{{.Names}}'"), ok("make up"), ok("make db")),  # a look, in quotes
            ("make db", "make db", "make up"),
        ),
        (
            (bad("make release", "error: CHANGELOG.md has no entry"), "CHANGELOG.md", ok("make release")),
            ("make release", "make release", "edit CHANGELOG.md"),
        ),
        (
            (bad("npx playwright test", code=1), ok("npm install && npx playwright test")),
            ("playwright test", "npx playwright test", "npm install"),
        ),
        (
            (bad("mix test"), ok("mix deps.get 2>&1 | tail -5"), ok("mix test")),  # the next try shows that it did
            ("mix test", "mix test", "mix deps.get"),
        ),
        (
            (
                bad("git add a.md && git push origin main", "error: failed to push some refs", 1),
                ok("git pull --rebase origin main && git push origin main"),
            ),
            ("git push", "git push origin main", "git pull --rebase origin main"),
        ),
        (
            (bad("git push"), ok("tools/format.sh"), ok("git commit -aq --amend --no-edit"), ok("git push")),
            ("git push", "git push", "tools/format.sh"),
        ),
        (
            (bad("cmake --build build"), ok("cmake -S . -B build"), ok("cmake --build build")),
            ("cmake --build", "cmake --build build", "cmake -S . -B build"),
        ),
        (
            (bad("npm test", "Missing script: test", 1), ok("cd web && npm test")),
            ("npm test", "npm test", "cd web && npm test"),
        ),
        (
            (bad("npx tsc", "This is not the tsc command", 1), ok("cd /srv/shop && npx tsc")),
            ("tsc", "npx tsc", "cd …/shop && npx tsc"),
        ),
        (
            (bad("php artisan test", "command not found: php", 127), ok("docker exec app php artisan test")),
            ("php", "php artisan test", "docker exec app php artisan test"),
        ),
        (
            (
                ("php artisan test 2>&1 | tail -60", 0, "(eval):1: command not found: php"),  # no pipe hides that
                ok("docker exec app php artisan test 2>&1 | tail -80"),
            ),
            ("php", "php artisan test", "docker exec app php artisan test"),
        ),
        (
            (bad("pytest a/t.py", "command not found", 127), ok("bin/test a/t.py -k one")),  # -k is of one task
            ("pytest", "pytest <path>", "bin/test <path>"),
        ),
        (
            (bad("make test", "No module named 'x'"), ok("pip install x"), bad("make test", "1 failed")),  # it ran on
            ("make test", "make test", "pip install x"),
        ),
        (
            (bad("bd ready --epic=hq-12", "unknown flag: --epic", 1), ok("bd ready --mol=hq-12")),
            ("bd", "bd ready --epic=<value>", "bd ready --mol=<value>"),
        ),
        (
            (bad('bd close x7a1 --comment "Inbox; empty"', code=1), ok('bd close x7a1 --reason "Nothing, yet"')),
            ("bd", "bd close <value> --comment '…'", "bd close <value> --reason '…'"),
        ),
        ((bad("rtk bun run test"), ok("bun run test")), ("rtk", "rtk bun run test", "bun run test")),
        ((bad("bun test", code=1), ok("bun run test")), ("bun test", "bun test", "bun run test")),
        (
            (bad("/usr/bin/python3 tools/run.py all", code=1), ok("python tools/run.py all")),
            ("run.py", "/usr/bin/python3 <path> all", "python <path> all"),
        ),
        (
            (bad("pytest -q"), ok("source .venv/bin/activate && pytest -q")),
            ("pytest", "pytest -q", "source .venv/bin/activate && pytest -q"),
        ),
        (
            (bad("go build ./cmd", "go: command not found", 127), ok("PATH=$PATH:/usr/local/go/bin && go build ./cmd")),
            ("go build", "go build ./cmd", "PATH=$PATH:/usr/local/go/bin && go build ./cmd"),
        ),
        (
            (bad("golangci-lint run ./...", code=127), ok("direnv exec . golangci-lint run --timeout=30m ./...")),
            ("golangci-lint", "golangci-lint …", "direnv exec . golangci-lint …"),
        ),
        (
            (bad("bin/rails test", "needs bundler 4", 1), ok("mise exec -- bin/rails test")),
            ("rails test", "bin/rails test", "mise exec -- bin/rails test"),
        ),
        (
            (
                bad("mise exec -- bin/rails test", "no database", 1),
                ok("mise exec -- bin/rails db:prepare"),
                ok("mise exec -- bin/rails test"),
            ),
            ("rails test", "mise exec -- bin/rails test", "mise exec -- bin/rails db:prepare"),
        ),
        (
            (
                bad(f"radio post '{'We are there. ' * 8}'", "Missing option --subject"),
                ok(f"radio post '{'We are here. ' * 8}' --subject=it"),
            ),
            ("radio", "radio post '…'", "radio post '…' --subject=it"),
        ),
        (
            (bad("git add a.ts && git push", "Not permitted", 1), ok("git -C /srv/x add a.ts && git -C /srv/x push")),
            ("git push", "git push", "git -C /srv/x push"),
        ),
        (
            (bad("adb devices", "command not found", 127), ok("/c/Android/Sdk/platform-tools/adb.exe devices")),
            ("adb", "adb devices", "/c/Android/Sdk/platform-tools/adb.exe devices"),
        ),
        (
            (
                bad('cd "C:\\shop\\api"; alembic upgrade head'),
                ok("npm run db"),
                ok('cd "C:/shop/api"; alembic upgrade head'),
            ),
            ("alembic upgrade", "alembic upgrade head", "npm run db"),
        ),
        (
            (bad("git commit -m 'Add a page'", "nothing", 1), ok("git add a.md"), ok("git commit -m 'Add one page'")),
            ("git commit", "git commit -m '…'", "git add a.md"),
        ),
        (
            (bad("npm run typecheck", 'npm error Missing script: "typecheck"', 1), ok("npx tsc -b")),
            ("npm run typecheck", "npm run typecheck", "npx tsc -b"),
        ),
        (
            (
                bad("./gen.sh --all", "env: 'bash\\r': No such file", 127),
                ok("sed -i 's/\\r$//' gen.sh"),
                ok("./gen.sh --all"),
            ),
            ("gen.sh", "./gen.sh --all", "sed -i 's/\\r$//' gen.sh"),
        ),
        (
            (bad("make a; npm run build", code=1), ok("npm ci && npm run build")),  # the code is that of the last
            ("npm run build", "npm run build", "npm ci"),
        ),
        (
            (bad("gradle build", "no Java", 1), ok('export JAVA_HOME="/opt/java 21" && gradle build')),
            ("gradle build", "gradle build", 'export JAVA_HOME="/opt/java 21" && gradle build'),
        ),
        (
            (
                bad("go test ./...", "no required module provides package example.org/a/uuid", 1),
                ok("go get example.org/a/uuid@v1.6.0"),
                bad("go test ./...", "undefined: x", 1),
            ),
            ("go test", "go test ./...", "go get example.org/a/uuid@v1.6.0"),
        ),
    ],
)
def test_what_got_a_command_through_is_its_cure(calls: tuple[Call, ...], expected: tuple[str, str, str]) -> None:
    assert cures(*calls) == [expected]


HERE = "@'\nA feature\nand more\n'@"
PLACED = "No such file or directory"
WRITES = "cat <<'E' > {}/a.md\n# A title\nE"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (  # a text in a line that Windows reads, and a folder that was not there
            (
                bad(f"$path='t/c/a.py'; $content = {HERE}; Set-Content -Path $path -Value $content", code=1),
                ok("Get-ChildItem 't'"),
                ok("New-Item -ItemType Directory -Path 't/c' | Out-Null"),
                ok(f"$path='t/c/a.py'; $content = {HERE}; Set-Content -Path $path -Value $content"),
            ),
            ("Set-Content -Path $path -Value $content", "New-Item -ItemType Directory -Path 't/c'"),
        ),
        (  # what a program says of itself, with a variable in front, and behind a pipe
            (
                bad("pnpm --version 2>&1 && cat package.json | grep -E 'engines' | head -5", "is set to use yarn", 1),
                ("/opt/pnpm --version | head -5", 0, "is set to use yarn"),
                ok("SPEC=0 pnpm --version 2>&1"),
            ),
            ("pnpm --version", "SPEC=0 pnpm --version"),
        ),
        (
            (
                bad("tool codegen > /tmp/types.ts && rg x /tmp/types.ts | head", "--out <DIR> is required"),
                ok("mkdir -p /tmp/t && tool codegen --out /tmp/t && rg x /tmp/t | head"),
            ),
            ("tool codegen", "tool codegen --out /tmp/t"),
        ),
        (
            (
                bad("$env:A='x'; npm run test:perf", "the page did not load", 1),
                ok("$env:A='x'; $p = Start-Process npm -PassThru; npm run test:perf"),
            ),
            ("npm run test:perf", "Start-Process npm -PassThru"),
        ),
        (
            (bad("npm run e2e", "refused", 1), ok("npm run dev & sleep 5 && npm run e2e")),
            ("npm run e2e", "npm run dev"),
        ),
        (
            (
                bad('cd app && npm install -D "box@hh2" 2>&1', "ERESOLVE", 1),
                ok("npm install -D hat@^2 box@hh2 env 2>&1"),
            ),
            ('npm install -D "box@hh2"', "npm install -D hat@^2 box@hh2 env"),
        ),
        (
            (
                bad("git add a/[id]/x.ts && git commit -m 'fix: it'", "zsh:1: no matches found: a/[id]/x.ts", 1),
                ok("git add 'a/[id]/x.ts' && git commit -m 'fix: that'"),
            ),
            ("git add a/[id]/x.ts", "git add 'a/[id]/x.ts'"),
        ),
        (
            (
                bad("git rm --cached s.json 2>&1 && echo s >> .gitignore", "error: staged content differs", 1),
                ok("git rm --cached -f s.json 2>&1"),
            ),
            ("git rm --cached s.json", "git rm --cached -f s.json"),
        ),
        (  # too long to be told: what was added to it is
            (
                bad(f"./x.sh --name {'n' * 60} --more {'m' * 30}", "no feature", 1),
                ok(f"FEATURE=1 ./x.sh --name {'n' * 60} --more {'m' * 30}"),
            ),
            (f"./x.sh --name {'n' * 60} --more {'m' * 30}", "FEATURE=1 ./x.sh …"),
        ),
        (
            (bad("make db", "no schema"), ok("cat a.py | sort; make proto | tail -1"), ok("make db")),
            ("make db", "make proto"),
        ),
        (
            (bad("npm run x", "no form of it", 1), ok("rmdir a && npm run y"), ok("npm run x")),
            ("npm run x", "rmdir a && npm run y"),
        ),
        (
            (bad("./setup.sh", "not on a feature branch", 1), ok("git checkout -b 005-totals"), ok("./setup.sh")),
            ("./setup.sh", "git checkout -b <branch>"),
        ),
        (  # the last of a line only looks, and never ends with 1
            (bad("git add a.ts && git status", "ignored by .gitignore", 1), ok("git add -f a.ts && git status")),
            ("git add a.ts", "git add -f a.ts"),
        ),
        (  # the same cured each of its commands
            (bad("git add a.md && git push"), ok("git pull --rebase"), ok("git add a.md && git push")),
            ("git push", "git pull --rebase"),
        ),
        (
            (bad("make a && make b"), ok("make proto"), ok("make a && make b")),
            ("make a", "make proto"),
        ),
        (  # what takes files out of a commit edits none
            (
                bad("git add d && git commit -m x", "leaks", 1),
                ok("git reset HEAD d && git status"),
                ok("git commit -m x"),
            ),
            ("git commit -m x", "git reset HEAD d"),
        ),
        (  # it acts by its options
            (bad("git fetch && git branch -d old", "not fully merged", 1), ok("git branch -D old && git push")),
            ("git branch -d old", "git branch -D old"),
        ),
        (  # the same file by its whole path
            (bad("conv a.pdf > a.md", "no pdf", 1), ok("pip install 'conv[pdf]'"), ok("conv /srv/a.pdf > /srv/a.md")),
            ("conv a.pdf", "pip install 'conv[pdf]'"),
        ),
        (
            (bad("python tool.py --all", "can't open file: No such file", 2), ok("python /srv/tool.py --all")),
            ("python tool.py --all", "python /srv/tool.py --all"),
        ),
        (  # the same name in other letters
            (
                bad('npx app init --name "My App"', "no executable", 1),
                ok("npm i app"),
                ok("npx app init --name my-app"),
            ),
            ('npx app init --name "My App"', "npm i app"),
        ),
        (  # what was set first brought a program that was not there, whatever else was changed
            (
                bad(f"npx make-app {'x' * 60}", "command not found: npx", 127),
                ok(f'export PATH="$PATH:/opt/bin" && npx make-app {"x" * 60} --yes'),
            ),
            (f"npx make-app {'x' * 60}", 'export PATH="$PATH:/opt/bin" && npx make-app … --yes'),
        ),
        (  # of many commands the one that the output names
            (
                bad("git commit -m x", "Run git config user.email", 128),
                *(ok(f"gh repo {word}") for word in ("create", "edit", "sync")),
                ok("git config user.email a@b.example"),
                ok("git commit -m x"),
            ),
            ("git commit -m x", "git config user.email a@b.example"),
        ),
        (  # a try that may not have been run at all is passed over
            (
                bad("git push", "use 'git pull' first", 1),
                bad("git pull --rebase && git push", "error: unstaged changes", 128),
                ok("git stash && git pull --rebase && git stash pop && git push"),
            ),
            ("git push", "git pull --rebase"),
        ),
        (  # another command shows that what was not there is there now
            (bad("npm run site", "sh: 1: vite: not found", 127), ok("npm install"), ok("npx vite build")),
            ("npm run site", "npm install"),
        ),
        (  # of two steps both
            (
                bad("git push origin main", "! [rejected] main (fetch first)", 1),
                ok("git fetch origin && git merge origin/main && git push origin main"),
            ),
            ("git push origin main", "git fetch origin && git merge origin/main"),
        ),
        (
            (bad("cd web && npm run x", f"The token '&&' {JOINS} in this version."), ok("cd web; npm run x")),
            ("a && b", "join"),
        ),
        (  # another one of the line failed
            (bad("gt take a --claim && ws add b"), ok("gt take a --own && ws add b")),
            ("gt take a --claim", "gt take a --own"),
        ),
        (  # what failed in the same way meanwhile is passed over
            (bad("make db", "no schema"), bad("pwd; make db 2>&1", "no schema", 1), ok("make proto"), ok("make db")),
            ("make db", "make proto"),
        ),
    ],
)
def test_every_command_of_a_line_may_be_what_failed_or_what_went_through(
    calls: tuple[Call, ...], expected: tuple[str, str]
) -> None:
    assert {(command, cure) for _, command, cure in cures(*calls)} == {expected}


@pytest.mark.parametrize(
    "calls",
    [
        (bad("cat a/[id].ts", "zsh:1: no matches found: a/[id].ts", 1), ok("cat 'a/[id].ts'")),  # one run of a look
        (bad("rg x src && rg y src", "", 1), ok("make proto"), ok("rg x src && rg y src")),
        (bad("x | Select-Object -First 2", code=1), ok("make proto"), ok("x | Select-Object -First 2")),
        (bad(WRITES.format("a")), ok("make proto"), ok(WRITES.format("a").replace("title", "page"))),  # another text
        (bad("make db", "no schema\n"), ok("make proto"), ("make db | tail -1", 0, "no schema")),  # it says it again
        (bad("make db"), ok("make proto"), ("make db | tail -1", 0, "KeyError: x")),
        (bad("rm -r x && make db", code=1), ok("rm -r x && make db")),  # that was done before, too
        (bad("make one && make two"), ok("make p"), ok("make one && make q && make two")),  # which of them?
        (bad("make a && rm -f b", code=1), ok("make p"), ok("rm -f b")),  # it names itself where it fails
        (bad("make test", "index.lock"), ok("make test")),  # a test may be flaky
        (bad("pytest -q"), "a.py", ok("pytest -q --import-mode=importlib")),
        (bad("if [ -f a ]; then make db; fi"), ok("make proto"), ok("if [ -f a ]; then make db; fi")),
        (bad("pwsh -Command 'x y'"), ok("make proto"), ok("pwsh -Command 'x y'")),
        (bad("make a; x"), ok("make a; x")),
        (bad("tool run", "ParserError: (:)", 1), bad("tool run -i", "SyntaxError", 1)),  # it was read, and failed
        (bad("make db", "A"), ok("make proto"), bad("make db", "B"), "a.py", ok("make db")),
        (bad("make db"), ok("make proto || true"), ok("make db")),
        (bad("make db"), ok("make `x`"), ok("make db")),
        (  # its line end was amiss, and no quotes
            bad("$d = @'A feature\nand more\n'@; ./new.ps1 -Json $d", "ParserError: here-string header", 1),
            ok(f"$d = {HERE};\n./new.ps1 -Json $d"),
        ),
        (bad("tee a.log", "tee: a.log: No such file or directory"), ok("./run x"), ok("tee a.log")),
        (bad("nc -z box 22", "Connection refused", 1), ok("make up"), ok("nc -z box 22")),
    ],
)
def test_a_look_another_text_and_what_nothing_tells_is_not_told_after_one_run(calls: tuple[Call, ...]) -> None:
    assert told_at_once(*calls) == []


@pytest.mark.parametrize(
    ("line", "printed", "again"),
    [
        ("git add x && git push origin a", "error: no upstream branch of it", "git push -u origin a"),
        ("pnpm --version && cat p | grep x | head", "error: set to use yarn", "SPEC=0 pnpm --version"),
        (
            "tool make > /tmp/a && rg x /tmp/a | head",
            "error: --out is required",
            "mkdir b && tool make --out b && rg x",
        ),
        ("$a = @'\nx y\n'@; New-It $a", "error: it is not there", "$a = @'\nx y\n'@; New-It $a -Path b"),
    ],
)
def test_a_failure_in_a_line_is_looked_up_as_it_was_learned(line: str, printed: str, again: str) -> None:
    told = next(one for one in failures_in(*run(bad(line, printed, 1), ok(again))) if one.cure)
    live = failure_of(f"cd /srv && {line}", printed)
    assert live
    assert told.key == live.key


def test_a_command_of_a_line_that_failed_is_found_when_the_line_ends_otherwise() -> None:
    said = "fatal: Unable to create '.git/index.lock': File exists."
    told = failures_in(*run(bad("git checkout main && git pull", said, 128), ok("git checkout main && git pull")))[0]
    live = failure_of("git pull && make all", said)
    assert live
    assert live.is_like(told.key)
    shell, other = (failure_of(f"cd a && {each}", f"The token '&&' {JOINS}.") for each in ("npm run x", "make all"))
    assert shell
    assert other
    assert shell.is_like(other.key)


@pytest.mark.parametrize(
    "calls",
    [
        (bad("pytest -q"), "a.py", ok("pytest -q")),  # an edit is of one task
        (bad("ruff check", "error: pyproject.toml"), "pyproject.toml", ok("ruff check")),  # it has rules of a check
        (bad("make release", "error: no entry"), "CHANGELOG.md", ok("make release")),  # the error does not name it
        (bad("make test"), ok("make test")),  # only run again
        (bad("make test"), ok("ls -l"), ok("make test")),
        (bad("grep -q x a.py", "", 1), ok("make proto"), ok("grep -q x a.py")),  # a search
        (bad("git diff --exit-code", "", 1), ok("make format"), ok("git diff --exit-code")),
        (("make test", None, "The user doesn't want to proceed"), ok("make proto"), ok("make test")),  # a refusal
        (bad("make test", code=124), ok("make proto"), ok("make test")),
        (bad("make test", code=137), ok("make proto"), ok("make test")),
        (bad("make test"), ok("make proto"), bad("make test")),
        (bad("make test"), ok("make proto")),
        (bad("make test"), ok("make proto"), ok("make lint")),
        (bad("make test"), ok("sed -i 's/a/b/' src/a.py"), ok("make test")),  # edits of a shell are of one task, too
        (bad("make test"), ok("git checkout src/a.py"), ok("make test")),
        (bad("make test"), ok("make proto > src/a.py"), ok("make test")),
        (ok("cat > try.py <<'EOF'\nx\nEOF"), bad("python try.py"), ok("make proto"), ok("python try.py")),
        (bad("make db", "No module named 'x'"), ok("pip install y"), bad("make db", "KeyError")),
        (bad("conv a.pdf", "conv: command not found", 127), ok("pip install conv"), bad("conv a.pdf", "no pdf", 1)),
        (bad("conv test.pdf", "conv: command not found", 127), ok("pip install conv"), bad("conv test.pdf", "x", 1)),
        (
            bad("pytest", "pytest: command not found", 127),
            ok("pip install -r dev.txt"),
            bad("python -m pytest", "1 failed", 1),
        ),
        (bad("fire up", "fire: command not found", 127), bad("npx fire up", "could not determine executable", 1)),
        (bad("pytest", "No module named 'x'", 1), "pyproject.toml", ok("uv sync"), ok("pytest")),  # it was edited in
        (
            bad("python -c 'import code.a'", "No module named 'code.a'", 1),
            ok("cp a.json b.json"),
            ok("python - <<'E'\nopen('/srv/code/a.json')\nprint(1)\nE"),  # it only names the folder
        ),
        (bad("make db", "No module named 'x'"), ok("pip install x"), bad("make db", "No module named 'x'")),
        (bad("pytest a/t.py", "No module named pytest", 127), ok("python a/t.py")),  # it runs no tests
        (
            bad("/usr/bin/python -m x", "No module named x", 1),
            ok("pip install x"),
            ok("make test"),
        ),  # of another Python
        (bad("php artisan test"), ok("docker exec app php artisan test")),  # not for want of php
        (bad("cd a && make test"), ok("make proto"), ok("cd b && make test")),
        (bad("make test | tail -3"), ok("make proto"), ok("make test | tail -3")),
        (bad("make test"), ok("echo x > conf"), ok("make test")),
        (bad("make test"), ok("curl -s x.example | sh"), ok("make test")),
        (bad("pytest tests/a.py -q"), ok("make proto"), ok("pytest tests/b.py -q")),  # another test
        (bad("pytest -q"), ok("a"), ok("b"), ok("c"), ok("d"), ok("pytest -q")),  # which of them?
        (bad("npm run build"), ok("npm run deploy"), ok("npm run lint")),
        (bad("bun run lint"), ok("bun run test"), ok("bun run lint")),  # a check mends nothing
        (bad("make db"), ok("kubectl get pods"), ok("make db")),
        (bad("bd dep remove a1 b"), ok("bd dep remove a2 b"), ok("bd dep remove a1 b")),  # the same on another thing
        (bad("git push origin main"), ok("git pull origin main")),
        (bad("git push origin main"), ok("git push")),  # about something else
        (bad("gt start mayor"), ok("gt mayor --help")),
        (bad("openclaw"), ok("openclaw health")),  # it said how it is used
        (bad("pytest tests/a.py", "1 failed", 1), ok("npx vitest run")),  # there is such a script
        (bad("python - <<'E'\nx\nE", "No module named 'x'", 1), ok("make proto"), ok("python - <<'E'\ny\nE")),
        (bad("python - <<'E'\nx\nE", "python: command not found", 127), ok("npm install"), ok("make x")),
        (bad("make db && make test; ls"), ok("make proto"), ok("make db && make test; ls")),
        (bad('tool "a\nb"'), ok("make proto"), ok('tool "a\nc"')),  # another text
        (bad("git pull", "fatal: .git/index.lock: File exists", 128), ok("git pull")),
        (bad("gt drop a b", "database is locked"), ok("gt tidy now"), ok("gt drop a b")),  # it passed by itself
        (bad("gt show", "no trail"), ok("gt create now"), ok("gt show")),  # it only looks
        (bad("gt capture a"), ok("tmux list-windows -a"), ok("gt capture a")),
        (bad("go build ./..."), ok("git stash"), ok("git stash pop"), ok("go build ./...")),
        (bad("go config a b", "go: command not found", 127), ok("go init"), ok("go config a b")),  # no act of its own
        (bad("make db"), ok(f"gt open --title '{'Long words ' * 20}'"), ok("make db")),  # nobody can follow that
        (bad("bun run lint"), ok("bunx biome check --write src/a.ts"), ok("bun run lint")),  # one file
        (bad("make db"), ok("cp /tmp/a.work2 src/a.c"), ok("make db")),
        (bad("git checkout main", "fatal: 'main' is already used", 128), ok("git checkout -b ana/x origin/main")),
        (bad("git add docs/", "fatal: pathspec did not match any files", 128), ok("cd /srv/shop && git add docs/")),
        (bad("go test ./cmd/a/b", "stat b: directory not found", 1), ok("cd b && go test ./cmd/a/b")),  # gone astray
        (bad("git mv a/x b/x", "fatal: not under version control", 128), ok("mv a/x b/x")),
        (bad("cp -r a/x b/x", "cp: a/x: No such file or directory"), ok("cp -r c/x b/x")),
        (bad("golangci-lint run a/b", "golangci-lint: command not found", 127), ok("go vet a/b")),
        (bad("npx v api /a?b=1", "zsh: no matches found: /a?b=1", 1), ok("npx v api '/a?b=1' --raw")),
    ],
)
def test_what_may_not_have_helped_is_not_told_after_one_run(calls: tuple[Call, ...]) -> None:
    assert told_at_once(*calls) == []


@pytest.mark.parametrize(
    ("failed", "cure", "waits"),
    [
        ("go test ./...", "go test -short ./...", True),
        ("npm test -- Header", "npm test -- Header -u", True),
        ("make test", "make -i test", True),
        ("go test ./db", "go test -tags=integration ./db", False),
        ("npm start", "npm start -- --port 3001", False),
        ("vitest run --strict-ports", "vitest run --ports", True),
        ("bd show x --tree", "bd show x --children", False),
        ("bd ready --assignee=ana", "bd ready --owner=ana", False),
    ],
)
def test_more_words_for_a_check_wait_for_a_person_unless_it_then_looks_at_more(
    failed: str, cure: str, waits: bool
) -> None:
    (found,) = failures_in(*run(bad(failed), ok(cure)))
    assert found.cure == cure
    assert is_hazard(found.lesson("r").content) is waits


@pytest.mark.parametrize(
    ("calls", "is_said"),
    [
        ((bad("gen ts", "required: --out <DIR>"), ok("gen ts --out /tmp/ts")), True),
        ((bad("git push", "hint: git push origin HEAD:main", 128), ok("git push origin HEAD:main")), True),
        ((bad("git push", "hint: use 'git pull' first", 1), ok("git pull --rebase"), ok("git push")), True),
        ((bad("./new.sh", "Not on a feature branch"), ok("git checkout -b 005-totals"), ok("./new.sh")), True),
        ((bad("gh x", "gh: command not found", 127), ok("brew install gh"), ok("gh x")), True),
        ((bad("npm run types", 'Missing script: "types"', 1), ok("npm run"), ok("npm run lint:typescript")), False),
        ((bad("gh pr create", "gh: command not found", 127), ok(f"glab mr create --title {'x' * 90}")), False),
        ((bad("python a.py", "No module named 'my_lib'", 1), ok("pip install -q my-lib"), ok("python a.py")), True),
        ((bad("pip install a[b]", "no matches found: a[b]", 1), ok("pip install 'a[b]'")), True),
        ((bad("python a.py", "No module named 'my_lib'", 1), ok("pip install 'my-lib<4'"), ok("python a.py")), False),
        ((bad("make db", "run `make proto` first"), ok("make proto"), ok("make db")), False),  # the project's own
        ((bad("yarn build", "Did you forget yarn install?"), ok("yarn install"), ok("yarn build")), True),
        (
            (
                bad("corepack pnpm run x", 'Run "pnpm install --frozen-lockfile"'),
                ok("corepack pnpm install --frozen-lockfile"),
                ok("corepack pnpm run x"),
            ),
            True,
        ),
        (
            (bad("gt create -a", "specify its parent with gt track"), ok("gt track --parent a"), ok("gt create -a")),
            True,
        ),
        ((bad("gt add a --n b", "a already exists"), ok("gt drop a"), ok("gt add a --n b")), True),
        ((bad("cargo fmt", "Cargo.toml not found", 1), ok("cd core && cargo fmt")), True),  # any agent looks for it
        ((bad("npm run lint", "2 problems", 1), ok("npm run lint:fix"), ok("npm run lint")), True),
        ((bad("gofmt -d a.go", code=1), ok("gofmt -w a.go")), True),
        ((bad("fix --check a b", code=1), ok("fix --write a"), ok("fix --check a b")), True),
        ((bad("docker exec -it web odoo", "No such container: web", 1), ok("docker exec app-web-1 odoo")), False),
        (
            (bad("docker exec a odoo-bin", 'exec: "odoo-bin": executable file not found'), ok("docker exec a odoo")),
            False,
        ),
        ((bad("npm run build", "no package.json", 1), ok("npm --prefix web run build")), True),
        ((bad("npm start", "no styles", 1), ok("npm run format"), ok("npm start")), False),  # it is no check
        (
            (bad("cargo build", "run `cargo x p`"), ok("cargo x p --workspace"), ok("cargo build")),
            False,
        ),  # it adds that
        ((bad("go test a", "to add it: go get"), ok("go get b"), ok("go test a")), False),  # what it lacks is not named
        ((bad("go test a", "to update it: go mod tidy"), ok("go mod tidy"), ok("go test a")), True),
        ((bad("make rel", "no entry in NEWS.md"), "NEWS.md", ok("make rel")), False),
        ((bad("docker start web", "port 80 is taken"), ok("docker stop proxy"), ok("docker start web")), False),
        ((bad("uv run ruff a.py", "Failed to spawn: ruff"), ok("uv run --with ruff ruff a.py")), False),
        ((bad("pnpm --version", "is set to use yarn"), ok("SPEC=0 pnpm --version")), False),
        ((bad("python a.py", "cannot import"), ok("/opt/venv/bin/python a.py")), False),
        ((bad("bin/ci", "bin/ci: needs bundler 4", 1), ok("mise exec -- bin/ci")), False),
        ((bad(".venv/bin/python a.py", ".venv/bin/python: not there", 127), ok("python a.py")), False),
        ((bad("make all", "no"), ok("./setup.sh"), ok("make all")), False),  # a name alone
        ((bad("git push", "The current branch a has no upstream branch", 128), ok("git push -u origin a")), False),
    ],
)
def test_what_the_output_of_a_command_names_is_told_apart(calls: tuple[Call, ...], *, is_said: bool) -> None:
    found = [one for one in failures_in(*run(*calls)) if one.cure]
    assert {one.rests_on == OUTPUT for one in found} == {is_said}
    assert found[0].lesson("r").rests_on == found[0].rests_on


def test_a_start_that_was_added_is_told_whatever_was_done_before() -> None:
    tried = (bad("bin/rails test", "needs bundler 4", 1), ok("mise exec -- ruby -v"), ok("mise install"))
    assert told_at_once(*tried, ok("mise exec -- bin/rails test")) == ["mise exec -- bin/rails test"]
    assert told_at_once(*tried, "app/models/page.rb", ok("mise exec -- bin/rails test")) == []
    assert told_at_once(*tried, ok("CI=1 bin/rails test")) == []


def test_what_another_program_did_instead_is_found_by_the_name_of_the_program() -> None:
    found = failures_in(*run(bad("npm install", "npm ERR! code X", 1), ok("pnpm install"), ok("pnpm test")))
    (told,) = [one for one in found if one.cure]
    assert told.lesson("r").content == "`pnpm install` went through."
    live = failure_of("npm outdated react", "react 18.3.1")
    assert live
    assert live.replaced_key == told.key
    assert not [one for one in failures_in(*run(bad("npm install", code=1), ok("cargo install"))) if one.cure]


@pytest.mark.parametrize(
    ("failed", "printed", "code"),
    [
        ("pytest lib/tests/test_a.py", "bash: pytest: command not found", 127),
        ("python -m pytest lib/tests/test_a.py", "/usr/bin/python: No module named pytest", 1),
    ],
)
def test_what_a_repository_has_instead_of_a_program_is_told_without_the_file(
    failed: str, printed: str, code: int
) -> None:
    found = failures_in(
        *run(bad(failed, printed, code), ok("cat lib/tests/test_a.py"), ok("bin/test lib/tests/test_a.py"))
    )
    (told,) = [one for one in found if one.cure]
    assert told.lesson("r").content == "`bin/test <path>` went through."
    live = failure_of(failed.replace("test_a", "test_b"), printed)
    assert live
    assert live.replaced_key == told.key


def test_of_commands_that_lead_to_one_another_the_last_is_looked_up() -> None:
    live = failure_of("git commit -am 'Add a page' && git push", "fatal: The current branch x has no upstream branch.")
    assert live
    assert live.key == "git push failed: fatal: The current branch <branch> has no upstream branch."
    assert failure_of("git push; true", "fatal: no upstream") is None


def test_what_a_script_of_the_run_lacked_is_found_by_any_other_script() -> None:
    wrote, installs = ok("cat > try.py <<'EOF'\nimport x\nEOF"), ok("pip install asgiref")
    lacks = "Traceback\nModuleNotFoundError: No module named 'asgiref'"
    assert [one.cure for one in failures_in(*run(wrote, bad("python try.py", lacks, 1), installs, ok("make x")))] == [
        ""
    ]
    (found,) = failures_in(*run(wrote, bad("python try.py", lacks, 1), installs, ok("python other.py")))
    assert found.lesson("r").title == "`python <script>` failed here before"
    assert found.lesson("r").content == "`pip install asgiref` brought what was not there."
    for line in ("python other.py", 'python -c "import x"'):
        live = failure_of(line, lacks)
        assert live
        assert live.key == found.key or live.is_like(found.key)


def test_a_failure_is_like_one_of_another_sub_command_with_the_same_telling_words() -> None:
    live = failure_of("pnpm build", "error TS2307: Cannot find module './schema.gen'")
    assert live
    assert live.is_like("pnpm typecheck failed: error TS#: Cannot find module './schema.gen'")
    assert not live.is_like("npm typecheck failed: error TS#: Cannot find module './schema.gen'")
    assert not live.is_like("pnpm typecheck failed: error TS#: Cannot find module './other'")
    short = failure_of("pnpm build", "failed")
    assert short
    assert not short.is_like("pnpm test failed: failed")


@pytest.mark.parametrize(
    "calls",
    [
        # What an exit code does not tell
        (bad("git stash", "error: could not write index", 1), ok("GIT_TRACE=1 git stash 2>&1 | tail -10")),
        (bad("make db", "no schema"), ok("make proto"), ok("make db | tail")),
        (
            bad("python3 -c 'import docx'", "No module named 'docx'", 1),
            ok("pip install docx 2>&1 | tail -5"),  # it was refused
            ok("make venv"),
            ok("python3 make_doc.py"),
        ),
        # Files of one task
        (bad(WRITES.format("a/b"), PLACED, 1), ok("mkdir -p a/b"), ok(WRITES.format("a/b"))),
        (bad("mix format a.ex b/c.ex"), ok("mix format a.ex b/c.ex d/e.ex")),
        (bad("git add a.sh b.md"), ok("git add a.sh")),
        (bad("pytest", code=1), ok("pytest tests/unit")),
        (bad("py a.py C:\\x\\b.mmd", "b.mmd does not exist", 1), ok('py a.py "C:/x/b.mmd"')),
        # Nothing more than what failed
        (bad("entire status --no-pager", "unknown flag: --no-pager", 1), ok("entire status")),
        (bad("pnpm install --frozen-lockfile"), ok("pnpm install")),
        (bad("cargo fmt --check", code=1), ok("cargo fmt"), ok("cargo fmt --check")),
        (bad("cargo fmt --check", code=1), ok("cargo fmt")),
        (
            bad("env A=/t/a golangci-lint run", "env: golangci-lint: No such file or directory", 127),
            ok(f"env A=/t/a /opt/{'x' * 80}/golangci-lint run"),  # what is new is too long to be told
        ),
        # Was it what was done, or the words?
        (bad("vm attach 1", "no", 1), ok("vm stop 1"), ok("vm attach 1 --hot on")),
        (bad("npm i react react-dom", "ERESOLVE", 1), ok("npm i @types/react @types/react-dom")),
        (bad("shop add a b", "no", 1), ok("shop add a b --verbose")),
        (
            bad("go build ./...", "no required module provides package uuid", 1),
            ok("go get uuid"),
            bad("go build ./...", "y"),
        ),
        (bad("bash tool.sh --all", "no", 1), ok("tool.sh --all")),
        (
            bad("fire up", "fire: command not found", 127),
            bad("bin/fire up", "no", 1),
            *(ok(command) for command in ("make fire", "npm ci", "tools/wood.sh", "bin/fire up")),
        ),
        # What was missing was another program, or another folder
        (
            bad("git commit -m x", "line 4: hk: command not found", 1),
            ok("mise x hk -- hk install"),
            ok("git commit -m x"),
        ),
        (bad("make test", "No rule to make target 'test'"), ok("cd /srv/shop && make test-all")),
        # It was done once for all
        (bad("tsc", "tsc: command not found", 127), ok("npm install -D typescript"), ok("tsc")),
        (bad("pnpm create vite web", "no", 1), ok("npm create vite web")),
        # Another program does another thing
        (bad("pandoc a/b.docx -o c.md", "pandoc: command not found", 127), ok("unzip -q a/b.docx")),
        (bad("python - <<'A'\nx\nA", "ParserError", 1), ok("LIB=/a python - <<'A'\ny\nA")),
        (bad("make up", "no", 1), ok('powershell -c "Get-PnpDevice"'), ok("make up")),
        (bad("adb devices", "no", 1), ok("adb start-server"), ok("adb devices")),
        # What any agent does, or only looks
        (bad("pip install a", "pip: command not found", 127), ok("python -m pip install a")),
        (bad("pip3 install a", "pip3: command not found", 127), ok("python -m pip install a")),
        (bad("./list.py -v", "Permission denied", 126), ok("python3 list.py -v")),
        (bad("git commit -m x", "ruff: 1 error", 1), ok("uv run ruff check --fix a.py"), ok("git commit -m x")),
        (bad("make a && make b", f"The token '&&' {JOINS}."), ok("make a; make b")),
        (bad("./gradlew build", "./gradlew: command not found", 127), ok("cmd.exe /c gradlew.bat build")),
        (bad("docker exec web odoo -u all", "exit 255", 255), ok("docker-compose restart db")),  # it is about another
        (bad("make up", "no answer", 1), ok("journalctl -n 5"), ok("make up")),
        (bad("make up", "no answer", 1), ok("ssh web 'ls -la /srv'"), ok("make up")),
        (bad("make up", "no answer", 1), ok("if true; then ls; fi"), ok("make up")),
        (bad("ssh web 'ls /srv/new'", "No such file", 2), ok("make up"), ok("ssh web 'ls /srv/new'")),
        (bad("curl -s x.example | import-rows", "no rows", 1), ok("make up"), ok("curl -s x.example | import-rows")),
        (bad("gh repo view", "run: gh auth login", 4), ok("make up"), ok("gh repo rename x --confirm")),
        (bad("python --version", "python: command not found", 127), ok("python3 -c 'x\ny'")),
        (bad("git fetch -p", "no positional parameter"), ok("Set-Location -Path C:\\x"), ok("git fetch -p")),
        (bad("gh pr merge 91 --squash", "it is a draft", 1), ok("gh pr ready 91"), ok("gh pr merge 91 --squash")),
        (bad("git stash", "could not write", 1), ok("git stash list")),
        (bad("node server.js", "EPERM: listen", 1), ok("node server.js --init-only")),
        (bad("shop push a", "2 conflicts", 1), ok("shop config --validate"), ok("shop push a")),
        (bad("gh job 987654321", "not found", 1), ok("gh job 987654321 --attempt 1")),  # a number of one task
        (bad("mistral-vibe", "mistral-vibe: command not found", 127), ok("py -m pip show mistral-vibe")),
        # It went through before what was installed
        (
            bad("python train.py", "No module named 'xgb'", 1),
            ("pip install -r a.txt", None, ""),
            ok("python train.py"),
            ok("pip install xgb==1.7"),
            ok("python train.py"),
        ),
    ],
)
def test_what_says_no_more_than_the_error_is_not_told_after_one_run(calls: tuple[Call, ...]) -> None:
    assert told_at_once(*calls) == []


def test_of_two_installs_the_one_before_the_next_try_brought_what_was_not_there() -> None:
    lacks, tail = bad("python3 -c 'import docx'", "No module named 'docx'", 1), "2>&1 | tail -5"
    refused, forced = (ok(f"pip install docx {option}{tail}") for option in ("", "--break-system-packages "))
    (found,) = [one for one in failures_in(*run(lacks, refused, forced, ok("python3 make_doc.py"))) if one.cure]
    assert is_hazard(found.lesson("r").content)


def test_of_a_line_the_command_that_got_other_options_is_blamed() -> None:
    hook = ".git/hooks/commit-msg: line 4: entire: not found"
    found = cures(
        bad("git add a.sh && git commit -m 'A b'", hook, 1), ok("git add a.sh b.md && git commit --no-verify -m 'A b'")
    )
    assert [cure for _, _, cure in found] == ["git commit --no-verify -m '…'"]
    assert is_hazard(found[0][2])


def test_what_left_the_sandbox_is_cured_by_that_and_not_by_the_words_that_came_along() -> None:
    made, codes = run(bad("mix format", "eperm", 1), ok("mix format --all"))
    call = made.steps[1].action.calls[0]
    call = call.model_copy(update={"arguments": {"command": "mix format --all", "with_escalated_permissions": True}})
    second = made.steps[1].model_copy(update={"action": Action(calls=(call,))})
    assert [one.cure for one in failures_in(made.model_copy(update={"steps": (made.steps[0], second)}), codes)] == [""]


def _freed(made: Trajectory, *places: int) -> Trajectory:
    """The run, some of whose calls left the sandbox."""
    steps = list(made.steps)
    for at in places:
        call = steps[at].action.calls[0]
        given = {"command": call.arguments["command"]} if isinstance(call.arguments, dict) else {}
        call = call.model_copy(update={"arguments": {**given, "sandbox_permissions": "require_escalated"}})
        steps[at] = steps[at].model_copy(update={"action": Action(calls=(call,))})
    return made.model_copy(update={"steps": tuple(steps)})


def test_a_look_that_the_sandbox_stopped_and_what_left_it_together_are_cured_by_leaving_it() -> None:
    made, codes = run(bad("gh run list", "error: could not resolve host: api.github.com", 1), ok("gh run list"))
    assert [one.cure for one in failures_in(_freed(made, 1), codes)] == ["free"]
    assert [one.cure for one in failures_in(made, codes)] == [""]
    made, codes = run(bad("cd web && npm i", "", 1), ok("cd api && npm i"), ok("cd web && npm i"))
    assert [one.cure for one in failures_in(_freed(made, 1, 2), codes)] == ["free"]
    assert [one.cure for one in failures_in(_freed(made, 2), codes)] != ["free"]  # the other one may have helped


def test_what_a_sandbox_stopped_is_cured_outside_of_it_whatever_the_command_was_about() -> None:
    denied = 'exec_command failed: CreateProcess { message: "Codex(Sandbox(Denied { output: ExecToolCallOutput'
    made, codes = run(bad("git checkout -b uc-04", denied, 128), ok("git checkout -b 004-log-in"))
    assert [one.cure for one in failures_in(_freed(made, 1), codes)] == ["free"]
    made, codes = run(
        bad("git checkout -b uc-04", "fatal: a branch named 'uc-04' exists", 128), ok("git checkout -b b")
    )
    assert not [one for one in failures_in(_freed(made, 1), codes) if one.cure]


def test_another_start_of_the_same_is_a_cure_where_powershell_runs_no_scripts() -> None:
    denied = "npm : File C:\\nvm\\npm.ps1 cannot be loaded because running scripts is disabled on this system."
    assert told_at_once(bad("npm run build", denied, 1), ok("npm.cmd run build")) == ["npm.cmd run build"]


def test_a_task_of_gradle_that_takes_the_options_stands_for_one_that_does_not() -> None:
    said = "> Unknown command-line option '--tests'."
    again = './gradlew :app:testDebugUnitTest --tests "a.*"'
    assert [cure for _, _, cure in cures(bad('./gradlew test --tests "a.*"', said, 1), ok(again))] == [again]
    assert not cures(bad('./gradlew test --tests "a.*"', "> There were failing tests.", 1), ok(again))


def test_a_look_that_the_shell_could_not_read_waits_with_its_quotes_for_a_second_run() -> None:
    paths = " ".join(f"src/pages/of/{name}.tsx" for name in "abcdefgh")
    failed = bad(f"git diff -- {paths} a/[id].ts", "zsh:1: no matches found: a/[id].ts", 1)
    (found,) = failures_in(*run(failed, ok(f"git diff -- {paths} 'a/[id].ts'")))
    assert (found.cure, found.rests_on) == ("git diff … 'a/[id].ts'", OUTPUT)


@pytest.mark.parametrize(
    ("failed", "printed", "again", "cure"),
    [
        ("bd list --wisp", "unknown flag: --wisp", "bd list --status open", "bd list --status open"),
        ("acli x sprint list --id 7 --open", "no flag", "acli x board list-sprints --id 9 --open", None),
        ("npm -v", "npm.ps1 cannot be loaded", "cmd /c npm -v", None),
        ("taskkill /F /PID 17", "Invalid option - 'F:/'", "taskkill //F //PID 4", None),
        ("python -c 'f(\"a\")'", "SyntaxError: '(' was never closed", "python -c \"f('a')\"", "quote"),
        ('rg -n "a `b` c" docs', "ParserError: unexpected", "rg -n 'a `b` c' docs", "quote"),
        (
            "acli create --project SHOP --type Task --file notes/of/the/week.md --assignee 71-2f7a",
            "missing '@'",
            "acli create --project SHOP --type Task --file notes/of/the/week.md --assignee ana",
            "acli … --assignee ana",
        ),
    ],
)
def test_the_next_try_in_other_words_is_a_cure_that_waits_for_a_second_run(
    failed: str, printed: str, again: str, cure: str | None
) -> None:
    (found,) = failures_in(*run(bad(failed, printed, 1), ok("ls"), ok(again)))
    assert (found.cure, found.rests_on, found.through_at) == (cure or again, RESULT, 2)


@pytest.mark.parametrize(
    "between_and_again",
    [
        ("app.py", ok("acli send a --open")),  # an edit
        (ok("acli list a --fast"),),  # a look
        (ok("acli send docs/b.md --fast"),),  # about another file
        (ok("acli run --fast b 7"),),  # hardly a word of it is the same
        (bad("acli send docs/a.md --open"),),
        (ok("acli send docs/b.md"),),
    ],
)
def test_no_other_try_got_it_through(between_and_again: tuple[Call, ...]) -> None:
    assert not cures(bad("acli send docs/a.md --fast", "unknown", 1), *between_and_again)


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ("mise run fmt", "mise run build"),
        ("gofmt -l color/", "gofmt -l terminal/"),
        ("bd mol current a7", "bd mol wisp b"),
        ("railway service", "railway up --service api"),
    ],
)
def test_another_thing_that_the_same_program_does_is_no_next_try(failed: str, again: str) -> None:
    assert not cures(bad(failed, "unknown", 1), ok(again))


def test_another_pattern_that_the_shell_could_read_is_no_change_of_quotes() -> None:
    assert not cures(bad('rg -n "a `b` c" docs', "ParserError: unexpected", 1), ok("rg -n 'a .b' src"))


def test_a_check_in_other_words_checks_something_else() -> None:
    assert not cures(bad("pytest -q tests -x", "1 failed", 1), ok("pytest -q tests/a.py"))


def test_a_bare_install_is_what_any_agent_begins_with() -> None:
    lacks, check = bad("make site", "Cannot find module 'vite'", 1), ok("make site")
    assert told_at_once(lacks, ok("npm install"), check) == []
    assert told_at_once(lacks, ok("npm ci"), check) == ["npm ci"]


def test_a_library_of_the_machine_is_a_module_that_was_not_there() -> None:
    lacks = "OSError: dlopen: Library not loaded: @rpath/libomp.dylib"
    script, changed = "python -c 'import boost; print(boost)'", "python -c 'import boost; print(boost.Tree)'"
    assert cures(bad(script, lacks, 1), ok("brew install libomp"), ok(changed)) == [
        ("python", "python <script>", "brew install libomp")
    ]


def test_a_python_with_blanks_in_its_path_runs_the_same_script() -> None:
    script, lacks = "-c 'import box'", "ModuleNotFoundError: No module named 'box'"
    (found,) = failures_in(*run(bad(f"python {script}", lacks, 1), ok(f'"venv/Scripts/python" {script}')))
    assert found.cure == '"venv/Scripts/python" <script>'


def test_of_commands_that_went_through_in_another_folder_the_first_one_had_failed() -> None:
    line, lacks = "git add docs/a.md && git push", "fatal: pathspec 'docs/a.md' did not match any files"
    (found,) = failures_in(*run(bad(f"cd shop/web && {line}", lacks, 128), ok(f"cd shop && {line}")))
    assert (found.program, found.cure) == ("git add", "cd shop && git add docs/a.md")


def test_a_formatter_of_a_file_that_the_run_wrote_is_a_cure_that_waits() -> None:
    warned = "[warn] Code style issues found in docs/plan.md. Run Prettier with --write to fix."
    written, check = ok("cat > docs/plan.md <<'E'\n# Plan\nE"), "npx prettier --check docs/plan.md README.md"
    found = failures_in(*run(written, bad(check, warned, 1), ok("npx prettier --write docs/plan.md"), ok(check)))
    assert [(one.cure, one.rests_on) for one in found] == [("npx prettier --write docs/plan.md", OUTPUT)]


def test_what_went_through_after_the_person_had_done_something_is_asked_for() -> None:
    def told(command: str, printed: str) -> list[str]:
        made, codes = run(bad(command, printed, 128), ok(command))
        said = Observation(text="I have loaded the key", source="user")
        first = made.steps[0].model_copy(update={"observations": (*made.steps[0].observations, said)})
        steps = (first, *made.steps[1:])
        return [one.cure for one in failures_in(made.model_copy(update={"steps": steps}), codes)]

    assert told("git push", "Permission denied (publickey).") == ["ask"]
    assert told("git push", "pre-push hook failed") == [""]  # what it was for is not the person's
    assert told("pytest -q", "1 failed") == [""]  # it may be flaky
    assert told("nc -z box 22", "Connection refused") == []  # it only looks


def test_the_same_failure_has_the_same_key_live_and_in_the_session_file() -> None:
    (told,) = failures_in(*run(bad("make test"), ok("make proto"), ok("make test")))
    later = PROTO.replace("line 7", "line 12").replace("/srv/shop", "/srv/ana/shop")
    live = failure_of("cd /srv/ana/shop && make test 2>&1", later)
    assert live
    assert live.key == told.key == "make test failed: ModuleNotFoundError: No module named 'billing.rates_pb'"
    other = failure_of("make test", "Exit code 2\nE   assert 1 == 2")
    assert other
    assert other.key != told.key
    assert failure_of("grep x a.py", "Exit code 1") is None


def test_a_failure_is_found_by_what_was_wrong_and_not_by_the_line_that_sums_up() -> None:
    def key(command: str, *printed: str) -> str:
        failure = failure_of(command, "\n".join(printed))
        assert failure
        return failure.key

    asked, refused = "The following data requires normalization:", "error: failed to push some refs"
    ours = key("git push", asked, "  locales/de.yml", f"{refused} to 'git@havn.example:web.git'")
    assert ours == key("git push fork", asked, "  locales/fr.yml", refused) == f"git push failed: {asked}"
    assert ours != key("git push", "hint: Updates were rejected, as the remote has more.", refused)
    assert key("git push", refused) == f"git push failed: {refused}"  # nothing else was said
    summed = "error: could not compile `tide` (lib) due to 1 previous error"
    assert key("cargo build", "error: no cached data for this query", summed) != key("cargo build", "error: x", summed)
    assert key("bin/dev", "A server is already running.", "Exiting").endswith("A server is already running.")
    assert key(
        "ctest", "a.tif: bad magic number, failed", "The following tests FAILED:", "  3 - read (Failed)"
    ).endswith("a.tif: bad magic number, failed")


def test_what_an_error_names_in_brackets_is_another_each_time() -> None:
    said = "CommandError: Conflicting migrations detected: ({} in bookings)."
    keys = [failure_of("manage.py migrate", said.format(names)) for names in ("0014_a, 0014_b", "0016_c, 0016_d")]
    assert keys[0]
    assert keys[0] == keys[1]


SERVED = "bin/dev & sleep 6; curl -s -o /dev/null localhost:3000/"


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ((SERVED, 0, "* Listening on port 3000"), ["bin/up"]),
        (("(bin/dev &) ; sleep 2 && curl -s http://127.0.0.1:3000", 0, "ok"), ["bin/up"]),
        ((SERVED, 7, "ok"), []),
        ((SERVED, 0, "Port 3000 is taken\n<html>"), []),  # another server answered
        (("bin/dev >log 2>&1 & sleep 6; curl -s localhost:3000", 0, "ok"), []),  # what it printed is not known
        (("bin/dev & sleep 6; curl -s shop.example", 0, "ok"), []),
        (("bin/dev & sleep 6; curl -s localhost:3000 || true", 0, "ok"), []),
    ],
)
def test_a_server_went_through_where_a_call_of_it_did_and_it_does_not_say_the_same_again(
    again: Call, expected: list[str]
) -> None:
    done = cures(bad("bin/dev", "Port 3000 is taken", 1), ok("bin/up"), again)
    assert [cure for _, _, cure in done] == expected


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        ("mv tmp/server.pid /tmp/", True),
        ("mv tests/slow.py tests/slow.py.bak", True),
        ("mv .eslintrc.js ~/old", True),
        ("mv notes.md notes.local.md", False),
    ],
)
def test_what_was_moved_out_of_the_way_waits_for_a_person(command: str, waits: bool) -> None:
    (found,) = failures_in(*run(bad("make db"), ok(command), ok("make db")))
    assert is_hazard(found.lesson("r").content) is waits


def test_a_command_whose_first_word_is_too_long_is_told_by_its_name() -> None:
    tool = f"{'deep/' * 15}list.py"
    found = failures_in(*run(bad(f"{tool} -v", "Permission denied", 126), ok(f"node {tool} -v")))[0]
    assert found.lesson("r").title == "`list.py …` failed here before"


def test_what_became_of_a_command_is_told_with_the_step() -> None:
    (told,) = failures_in(*run(bad("make test"), "a.py", ok("make test")))
    assert (told.at, told.through_at, told.cure) == (0, 2, "")
    (told,) = failures_in(*run(bad("make test"), "a.py"))
    assert told.through_at is None


@pytest.mark.full
def test_a_huge_line_and_a_huge_output_are_read_in_linear_time() -> None:
    noise = "cd '" * 20_000 + "error: /a/b" * 20_000
    assert failure_of(noise, noise) is None
    found = failure_of("make test", noise)
    assert found
    assert len(found.error) <= 120


def test_the_branch_that_git_names_is_another_in_each_task_and_the_cure_is_the_same() -> None:
    def pushed(branch: str) -> list[Failure]:
        said = f"fatal: The current branch {branch} has no upstream branch.\nTo push the current branch, use\n"
        return failures_in(*run(bad("git push", said, 128), ok(f"git push --set-upstream origin {branch}")))

    (one,), (other,) = pushed("fix-41"), pushed("feature/totals")
    assert one.cure == other.cure == "git push --set-upstream origin <branch>"
    assert one.key == other.key == "git push failed: fatal: The current branch <branch> has no upstream branch."


def test_a_cure_fits_one_line_and_names_no_address() -> None:
    long = "claude mcp add sort -- npx -y @x/mcp-remote https://mcp.example/mcp?key=abc" + " --verbose" * 12
    (found,) = failures_in(*run(bad(long, code=1), ok("claude mcp remove sort"), ok(long)))
    lesson = found.lesson("r")
    assert lesson.content == "`claude mcp remove sort` went through, and then it did."
    assert "example" not in lesson.title
    assert len(f"{lesson.title}: {lesson.content}") <= 200


def test_a_command_that_is_too_long_is_cut_between_words_so_that_no_key_is_cut() -> None:
    key = "k" * 90
    (found,) = failures_in(*run(bad(f"stripe config set {key}", code=1), ok("mkdir x"), ok(f"stripe config set {key}")))
    assert found.lesson("r").title == f"`stripe config set {key}` failed here before"
    (longer,) = failures_in(*run(bad(f"a b {key * 2}", code=1), ok("mkdir x"), ok(f"a b {key * 2}")))
    assert longer.lesson("r").title == "`a b …` failed here before"


def test_a_shell_of_windows_is_a_shell_and_its_looks_are_looks() -> None:
    def powershell(command: str, code: int) -> tuple[Trajectory, dict[str, int]]:
        made, codes = run(bad("make db"), (command, code, "ok"), ok("make db"))
        call = made.steps[1].action.calls[0].model_copy(update={"name": "PowerShell"})
        second = made.steps[1].model_copy(update={"action": Action(calls=(call,))})
        return made.model_copy(update={"steps": (made.steps[0], second, made.steps[2])}), codes

    assert [one.cure for one in failures_in(*powershell("Start-Service db", 0))] == ["Start-Service db"]
    assert [one.cure for one in failures_in(*powershell("Get-Service db", 0))] == [""]


def test_the_exit_code_that_a_line_prints_is_its_own() -> None:
    line = 'make db; echo "exit=$?"'
    (found,) = failures_in(*run((line, 0, "KeyError\nexit=2"), ok("make proto"), ok("make db")))
    assert found.cure == "make proto"


def test_a_look_by_another_program_is_no_cure() -> None:
    looks = bad("sed -n '1,9p' a/cli.py", "sed: CommandNotFoundException", 1), ok("Get-Content -Path a/cli.py")
    assert [one for one in failures_in(*run(*looks)) if one.cure] == []


def test_a_script_that_a_line_gives_an_interpreter_is_run_by_the_one_that_has_what_it_needs() -> None:
    for start, end in (("- <<'E'\n", "\nE"), ('-c "', '"')):
        lines = [f"{program} {start}print(1)\nprint(2){end}" for program in ("python", "python3")]
        found = failures_in(*run(bad(lines[0], "bash: python: command not found", 127), ok(lines[1])))
        assert [one.cure for one in found if one.cure] == [], "any agent tries its other name next"
    lacks = "Traceback\nModuleNotFoundError: No module named 'yaml'"
    line = "{} - <<'E'\nimport yaml\nprint({})\nE"
    cure, _ = cures(bad(line.format("python3", 1), lacks, 1), ok(line.format(".venv/bin/python", 2)))
    assert cure == ("python3", "python3 <script>", ".venv/bin/python <script>")
    said = "error: Failed to spawn: `ruff`"
    cure, _ = cures(bad("uv run ruff check .", said), ok("uv run --with ruff ruff check ."))
    assert cure == ("ruff", "uv run ruff check .", "uv run --with ruff ruff check .")


@pytest.mark.parametrize("asked", [{"sandbox_permissions": "require_escalated"}, {"with_escalated_permissions": True}])
@pytest.mark.parametrize("line", ["git fetch --all", "./new.sh --json 'One; two\nthree' --number 1"])
def test_what_went_through_outside_of_the_sandbox_waits_for_a_person(asked: dict[str, Any], line: str) -> None:
    made, codes = run(bad(line, "error: cannot open '.git/FETCH_HEAD': Operation not permitted", 255), ok(line))
    assert not [one for one in failures_in(made, codes) if one.cure]
    call = made.steps[1].action.calls[0]
    call = call.model_copy(update={"arguments": {"command": line, **asked}})
    second = made.steps[1].model_copy(update={"action": Action(calls=(call,))})
    (found,) = failures_in(made.model_copy(update={"steps": (made.steps[0], second)}), codes)
    tried, codes = run(bad(line, "Operation not permitted", 255), ok("rm -f .git/index.lock"), ok(line))
    third = second.model_copy(update={"observations": tried.steps[2].observations})
    call = call.model_copy(update={"id": "c2"})
    third = third.model_copy(update={"action": Action(calls=(call,))})
    (again,) = failures_in(tried.model_copy(update={"steps": (*tried.steps[:2], third)}), codes)
    assert again.cure == found.cure  # what was tried in between did not help
    lesson = found.lesson("r")
    assert lesson.content == "It went through outside of the sandbox, which the person has to allow: ask for it."
    assert is_hazard(lesson.content)


@pytest.mark.parametrize("path", ["src/[id]/page.tsx", "src/(shop)/page.tsx"])
def test_quotes_around_what_a_shell_took_for_a_pattern_are_a_cure_for_every_path(path: str) -> None:
    denied = bad(f"git add '{path}'", "fatal: Unable to create '.git/index.lock'", 128)
    for failed, again in ((f"git add {path}", ok(f'git add "{path}"')), (f"git add {path}", denied)):
        found = failures_in(*run(bad(failed, f"zsh:1: no matches found: {path}", 1), again))
        assert path in found[0].lesson("r").content.replace('"', "'").split("'")
        live = failure_of(failed.replace("page", "other"), f"zsh:1: no matches found: {path.replace('page', 'other')}")
        assert live
        assert live.key == found[0].key


@pytest.mark.parametrize("shell", [["powershell.exe", "-NoProfile", "-Command"], ["cmd", "/d", "/c"], ["bash", "-lc"]])
def test_what_a_shell_is_given_as_a_word_is_the_command(shell: list[str]) -> None:
    made, codes = run(bad("make test"), ok("make proto"), ok("make test"))
    steps = list(made.steps)
    for at, step in enumerate(steps):
        call = step.action.calls[0]
        given = {"command": [*shell, call.arguments["command"]]} if isinstance(call.arguments, dict) else {}
        steps[at] = step.model_copy(update={"action": Action(calls=(call.model_copy(update={"arguments": given}),))})
    found = failures_in(made.model_copy(update={"steps": tuple(steps)}), codes)
    assert [(one.command, one.cure) for one in found] == [("make test", "make proto")]


def test_the_folder_in_which_a_file_is_found_is_told_where_each_call_names_its_own() -> None:
    def told(error: str, before: str, after: str) -> list[str]:
        made, codes = run(bad("npm test", error, 1), ok("npm test"))
        steps = [
            step.model_copy(
                update={"action": Action(calls=(step.action.calls[0].model_copy(update={"arguments": given}),))}
            )
            for step, folder in zip(made.steps, (before, after), strict=True)
            for given in ({"command": "npm test", "workdir": folder},)
        ]
        return [one.cure for one in failures_in(made.model_copy(update={"steps": tuple(steps)}), codes)]

    assert told("npm error ENOENT: package.json", "/srv/shop", "/srv/shop/web") == ["cd …/web && npm test"]
    assert told("npm error ENOENT: package.json", "", "web") == ["cd web && npm test"]
    assert told("npm error ENOENT: package.json", "/srv/a/shop", "/srv/a/shop/shop") == ["cd …/shop/shop && npm test"]
    assert told("npm error ENOENT: package.json", "/srv/shop", "/srv/other") == [""]
    assert told("1 failed", "/srv/shop", "/srv/shop/web") == [""]


def test_a_branch_that_was_there_is_no_check_that_checks_less() -> None:
    (found,) = failures_in(*run(bad("git checkout -b fix-41", "already exists", 128), ok("git checkout -t fix-41")))
    assert found.lesson("r").content == "`git checkout -t <value>` went through."
    assert not is_hazard(found.lesson("r").content)


@pytest.mark.parametrize(
    "command",
    [
        "Remove-Item -Recurse build",
        "taskkill //F //PID 4",
        "powershell -ExecutionPolicy Bypass -File a.ps1",
        "iwr a.ps1",
    ],
)
def test_what_destroys_fetches_or_takes_rights_on_windows_waits_for_a_person(command: str) -> None:
    (found,) = failures_in(*run(bad("make db"), ok(command), ok("make db")))
    assert is_hazard(found.lesson("r").content)
