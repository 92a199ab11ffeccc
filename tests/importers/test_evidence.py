"""How a coding agent's run ended, by what happened in it: the last check wins; plain words are no truth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linear import PIECES, too_slow

from lessonbank.importers import Imported, read
from lessonbank.importers._checks import RAN_NOTHING, SAYS_FAILED, SAYS_PASSED, SHOWS_FAILURE, SHOWS_SUCCESS, check_of

EDIT = ("Edit", {"file_path": "a.py"}, "ok", False)
DATA = ("Edit", {"file_path": "a.json"}, "ok", False)
"""A file that programs of every language look at."""
PASS = ("Bash", {"command": "pytest -q"}, "3 passed in 0.1s", False)
FAIL = ("Bash", {"command": "pytest -q"}, "1 failed, 2 passed", True)
Call = tuple[str, Any, str, bool]
Outcome = Callable[..., str | None]


def transcript(*events: Call | str) -> str:
    """What Claude Code writes of such a run."""
    lines = [said("user", "Fix add")]
    for number, event in enumerate(events):
        if isinstance(event, str):
            lines += [said("assistant", "I am done."), said("user", event)]
            continue
        name, arguments, text, failed = event
        lines.append(said("assistant", [{"type": "tool_use", "id": f"c{number}", "name": name, "input": arguments}]))
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text, "is_error": failed}
        lines.append(said("user", [result]))
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def said(role: str, content: Any) -> dict[str, Any]:
    return {"type": role, "sessionId": "s", "message": {"role": role, "content": content}}


def shell(command: Any, text: str = "", failed: bool = False, *, name: str = "Bash", key: str = "command") -> Call:
    return name, {key: command}, text, failed


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., Imported]:
    """The run of such a transcript, as it is read from its file."""

    def imported(*events: Call | str) -> Imported:
        file = tmp_path / "session.jsonl"
        file.write_text(transcript(*events), encoding="utf-8")
        found, *_ = read(file, format="claude_code")  # the run of the first prompt
        assert isinstance(found, Imported), found
        return found

    return imported


@pytest.fixture
def outcome(imported: Callable[..., Imported]) -> Outcome:
    def outcome(*events: Call | str) -> str | None:
        verdict = imported(*events).verdict
        return verdict.outcome if verdict else None

    return outcome


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((EDIT, PASS), "success"),
        ((EDIT, FAIL), "failure"),
        ((EDIT, FAIL, EDIT, PASS), "success"),
        ((EDIT, PASS, EDIT), None),
        ((PASS,), None),
        ((EDIT,), None),
        ((), None),
        ((EDIT, PASS, "No, that is wrong"), "failure"),
        ((EDIT, PASS, "No, that is wrong", PASS), "failure"),
        ((EDIT, PASS, "No, you did not ask me first"), "unknown"),
        ((EDIT, FAIL, "No, that is wrong"), "failure"),
        ((EDIT, "It still fails with the same error"), "failure"),
        ((EDIT, FAIL, "perfect, thanks"), "unknown"),
        ((EDIT, "perfect, thanks", EDIT), None),
        ((EDIT, "wrong", "sorry, it works"), "success"),
        ((EDIT, "it works", "hm, no, the second page does not load"), "unknown"),
        ((EDIT, "That doesn’t work", EDIT, PASS), "success"),
        ((EDIT, "That doesn't work", EDIT), None),
        ((EDIT, PASS, "Thanks, no problem at all"), "success"),
        ((EDIT, PASS, "Now add a docstring"), "success"),
        ((EDIT, PASS, "Does thiserror add much to compile time?"), "success"),
        ((EDIT, PASS, "why a pointer for FieldError?"), "success"),
        ((EDIT, PASS, "no crash anymore, rotated it 30 times"), "success"),
        ((EDIT, PASS, "Hm, there is a ValueError in the log"), "unknown"),
        ((EDIT, PASS, "[Request interrupted by user]"), "unknown"),
        ((EDIT, PASS, "<turn_aborted>the user"), "unknown"),
        ((EDIT, shell("git commit -am done", "[main 1a2b3c4] done")), None),
        ((EDIT, PASS, shell("git commit -am done", "[main 1a2b3c4] done")), "success"),
        ((EDIT, FAIL, shell("git commit -am done", "[main 1a2b3c4] done")), "failure"),
        ((EDIT, shell("git commit -am done", "nothing to commit", True)), None),
        ((EDIT, shell("git log --grep commit")), None),
    ],
)
def test_the_last_check_wins_and_an_edit_makes_the_earlier_ones_stale(
    outcome: Outcome, events: tuple[Call | str, ...], expected: str | None
) -> None:
    assert outcome(*events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((EDIT, shell("time TZ=UTC pytest", "ok")), "success"),
        ((EDIT, shell("docker compose run --rm app pytest -q", "3 passed")), "success"),
        ((DATA, shell("xvfb-run -a npm test", "ok")), "success"),
        ((DATA, shell("pnpm --filter web test", "ok")), "success"),
        ((EDIT, shell("set -e; mypy src; pytest -q", "ok")), "success"),
        ((EDIT, shell("docker run --rm img sh -ec 'pytest -q; echo done'", "ok")), "success"),
        ((EDIT, shell("npm run test:unit", 'Exit code 1\nnpm ERR! Missing script: "test:unit"', True)), None),
        ((EDIT, shell("pytest -q", "Exit code 1\n1 failed", True), shell("CI=1 pytest -q", "1 passed")), "success"),
        ((EDIT, shell("make -i all", "ok")), None),
        ((("Edit", {"file_path": "/w/web/a.css"}, "ok", False), shell("cd api && pytest -q", "3 passed")), None),
        ((("Edit", {"file_path": "/w/api/a.py"}, "ok", False), shell("cd api && pytest -q", "3 passed")), "success"),
        (
            (
                ("Edit", {"file_path": "/w/src/a.c"}, "ok", False),
                shell("cmake --build build && cd build && ctest", "ok"),
            ),
            "success",
        ),
        ((EDIT, shell("pytest > t.log; rc=$?; tail -1 t.log; exit $rc", "ok")), "success"),
        ((EDIT, shell("make test || exit 1", "ok")), "success"),
        ((EDIT, shell("! pytest", "1 failed")), "failure"),
        (
            (shell("pytest -q", "Exit code 1\n3 failed", True), EDIT, shell("pytest -q test_a.py", "1 passed")),
            "unknown",
        ),
        ((DATA, shell("npm test api", "Exit code 1\n1 failed", True), shell("npm test web", "ok")), "unknown"),
    ],
)
def test_the_exit_code_is_the_checks_own_wherever_the_line_hands_it_on(
    outcome: Outcome, events: tuple[Call | str, ...], expected: str | None
) -> None:
    assert outcome(*events) == expected


MYPY = shell("mypy src", "Success: no issues found")
EDIT_B = ("Edit", {"file_path": "/w/shop/b.py"}, "ok", False)
RELEASE = shell("make release", "tagged 1.2")
REVERT = shell("git reset --hard", "HEAD is now at 1a2b3c4 before")
EDIT_DOCS = ("Edit", {"file_path": "docs/start.md"}, "ok", False)
DOCS = shell("mkdocs build --strict", "INFO - Documentation built in 0.3 seconds")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((EDIT, PASS, "no, that's all, thanks!"), "success"),
        ((EDIT, PASS, "No. Great work."), "success"),
        ((EDIT, PASS, "it failed on my machine before I pulled, all good now, thanks"), "success"),
        ((EDIT, PASS, "wrong place to ask, but what is the capital of France?"), "success"),
        ((EDIT, PASS, "hmm, I get a TypeError when I call add('a', 1)"), None),
        ((EDIT, PASS, "That is not at all what I asked for"), "failure"),
        ((EDIT, PASS, "das ist falsch, mach es rückgängig"), "failure"),
        ((EDIT, "ok, commit it as WIP", shell("git commit -am WIP", "[main 1a2b3c4] WIP")), None),
        ((EDIT, "perfect, thank you"), "success"),
        ((EDIT_DOCS, DOCS), "success"),
        ((EDIT, DOCS), None),
        ((EDIT, MYPY), "success"),
        ((EDIT, PASS, "now explain what wrong input would do"), "success"),
        ((EDIT, PASS, "ce n'est pas ce que je voulais"), "failure"),
        ((EDIT, PASS, "no funciona"), "failure"),
        ((EDIT, PASS, "не работает"), "failure"),
        ((EDIT, PASS, "不对，撤销"), "failure"),
        ((EDIT, PASS, "perfect, thank you"), "success"),
    ],
)
def test_what_is_concluded_from_ordinary_phrases_is_right(
    outcome: Outcome, events: tuple[Call | str, ...], expected: str | None
) -> None:
    found = outcome(*events)
    assert (None if found == "unknown" else found) == expected


def test_what_a_person_says_is_no_ground_truth(imported: Callable[..., Imported]) -> None:
    for said, expected in (("perfect, thank you", "success"), ("this is wrong", "failure")):
        verdict = imported(EDIT, said).verdict
        assert verdict
        assert (verdict.outcome, verdict.source, verdict.confidence < 1) == (expected, "human", True)
        assert said not in verdict.reason


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((RELEASE,), "success"),
        ((shell("make release", "Exit code 1\nerror: CHANGELOG.md has no entry", True),), "failure"),
        ((shell("npm publish --dry-run", "+ a@1"),), None),
        ((EDIT, FAIL, RELEASE), "failure"),
        ((EDIT, PASS, REVERT), "unknown"),
        ((EDIT, PASS, REVERT, PASS), "unknown"),
        ((EDIT, PASS, REVERT, EDIT, PASS), "success"),
        ((REVERT, PASS), "success"),
        ((EDIT, PASS, shell("git revert HEAD", "Exit code 1\nerror: could not revert", True)), "success"),
        ((EDIT, PASS, shell("git checkout -- a.py"), PASS), "unknown"),
        ((EDIT, PASS, shell("git restore ./a.py"), PASS), "unknown"),
        ((EDIT, EDIT_B, PASS, shell("git checkout -- a.py"), PASS), "success"),
        ((EDIT, EDIT_B, shell("git restore a.py b.py"), PASS), "unknown"),
        ((EDIT, shell("sed -i s/x/y/ c.py"), PASS, shell("git restore a.py"), PASS), "success"),
        ((EDIT, PASS, shell("git restore a.py"), EDIT, PASS), "success"),
        ((EDIT, PASS, shell("git merge --ff-only topic", "Updating 1a..2b")), "success"),
        ((EDIT, PASS, shell("git merge --ff-only origin/main", "Updating 1a..2b")), None),
        ((EDIT, PASS, shell("git restore .")), "unknown"),
    ],
)
def test_a_release_is_the_work_itself_and_a_revert_takes_the_work_back(
    outcome: Outcome, events: tuple[Call | str, ...], expected: str | None
) -> None:
    assert outcome(*events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((EDIT, MYPY, PASS), "success"),
        ((EDIT, PASS, shell("mypy src", "Exit code 1\nFound 3 errors", True)), "unknown"),
        ((EDIT, shell("ruff check .", "Exit code 1\nFound 2 errors.", True)), "failure"),
        ((EDIT, FAIL, MYPY), "failure"),
        ((EDIT, PASS, shell("ruff check --fix .", "All checks passed!")), None),
        ((DATA, shell("npm run build", "Exit code 2\nerror TS2322", True), shell("npm run build", "done")), "success"),
        ((EDIT, shell("make proto", "")), None),
        ((EDIT, shell("make release", "tagged 1.2")), "success"),
        ((MYPY,), None),
    ],
)
def test_a_build_and_a_linter_decide_as_well(
    outcome: Outcome, events: tuple[Call | str, ...], expected: str | None
) -> None:
    assert outcome(*events) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (shell("pytest -q", "Exit code 1\nE assert", True), "failure"),
        (shell("pytest -q", "Exit code 127\npytest: command not found", True), None),
        (shell("timeout 9 pytest -q", "Exit code 124", True), None),
        (shell("pytest -q", "Exit code 137\nKilled", True), None),
        (shell("pytest -q", "The user doesn't want to proceed with this tool use", True), None),
        (shell("cd app && pytest -q", "Exit code 1\nE assert", True), "failure"),
        (shell("make proto && pytest -q", "Exit code 2\nmake: no rule for proto", True), None),
        (shell("pytest -q && echo good || echo bad", "bad"), None),
        (shell("test -e .skip || pytest -q", ""), None),
        (shell("pytest -q &", ""), None),
        (shell("pytest --version", "pytest 9.0"), None),
        (shell("pytest --collect-only -q", "3 tests collected"), None),
        (shell("pytest -q | cat", "the log says: 3 passed today"), None),
        (shell("pytest -q | tail -1", "==== 1 failed, 3 passed in 0.12s ===="), "failure"),
        (shell("python -m unittest 2>&1 | tail -3", "Ran 3 tests in 0.0s\n\nOK"), "success"),
    ],
)
def test_the_exit_code_decides_and_without_one_the_last_line_of_the_runner(
    outcome: Outcome, call: Call, expected: str | None
) -> None:
    assert outcome(EDIT, call) == expected


@pytest.mark.parametrize(
    "call",
    [
        shell("cd repo && python3.11 -m pytest -x tests", "5 passed"),
        shell("npm run test:unit", "Tests: 3 passed"),
        shell("cargo test --all", "test result: ok. 3 passed; 0 failed"),
        shell("go test ./...", "ok  \tpkg\t0.1s"),
        shell("CI=1 timeout 60 uv run pytest", "1 passed"),
        shell("./gradlew clean test"),
        shell("make check"),
        shell("docker run --rm -v $PWD:/app node:22 npm test", "Tests: 3 passed"),
        shell("pnpm --filter editor exec vitest run"),
        shell("Rscript -e 'devtools::check(error_on = \"note\")'", "0 errors"),
        shell("npx nx run-many -t lint,test -p ui-kit"),
        shell("sbt 'core/compile; core/test'", "[info] All tests passed."),
        shell("pytest -q | tail -3", "4 passed in 1s"),
        shell(["bash", "-lc", "pytest -q"], "ok", name="shell"),
        shell('bash -lc "pytest -q"', name="exec_command", key="cmd"),
        shell(["python -m unittest"], "Ran 1 test\n\nOK", name="run_commands", key="commands"),
        shell("npx vitest run", name="run_shell_command"),
        shell(".venv/bin/python -m pytest", name="container.exec", key="cmd"),
        shell("scp -r . pi:kv/ && ssh -p 22 me@pi 'cd kv && ctest'", "100% tests passed"),
        shell("docker exec -it web bash -c 'pytest -q'", "3 passed"),
        shell('nix-shell --run "cargo test"', "ok"),
        shell("bash -o pipefail -c 'pytest -q | tail -1'", "2 passed"),
        shell('pytest -q > /tmp/t 2>&1; echo "exit=$?"; tail -1 /tmp/t', "exit=0\n2 passed"),
        shell("go test ./...", "ok  \tapp/store\t0.1s\nok  \tapp/api\t(cached)\n?   \tapp/cmd\t[no test files]"),
    ],
)
def test_tests_are_known_by_their_command_however_it_is_called(outcome: Outcome, call: Call) -> None:
    edit = ("Edit", {"file_path": "core"}, "ok", False)
    assert outcome(edit, call) == "success"
    assert outcome(call, edit) is None


@pytest.mark.parametrize(
    "call",
    [
        shell("pytest -q || true", "collected"),
        shell("pytest -q | tail -1", "see the log"),
        shell("pytest -q; echo done", "done"),
        shell("echo pytest", "pytest"),
        shell('echo "all; pytest -q too"', "3 passed"),
        shell('git log -n1 --format="pytest; 3 passed"'),
        shell("cat <<EOF\npytest\nEOF", "3 passed"),
        shell("pytest -q", "no tests ran in 0.01s"),
        shell("python -m unittest", "Ran 0 tests in 0.0s\n\nOK"),
        shell("pytest -q", "1 failed, 2 passed"),  # the exit code and the words disagree
        shell("pip install pytest", "ok"),
        shell("pytest -q", "Exit code 2\n...^C\n!!!!!!!! KeyboardInterrupt !!!!!!!!", True),
        shell("go test ./...", "ok  \tapp/store\t(cached)\n?   \tapp/cmd\t[no test files]"),
        shell('pytest -q; echo "exit=$?"', "see the log"),
        shell("git commit -am x", "[main 1a2b] x"),
        shell("git commit --no-verify -am x", "ruff....Passed"),
        shell("gh pr checks 7 --watch", "Exit code 8\ntest\tpending", True),
        shell("ls tests", "3 passed"),
        ("mcp__notes__search", {"query": "pytest"}, "3 passed", False),
        ("Read", {"file_path": "test.log"}, "3 passed", False),
    ],
)
def test_what_only_looks_like_passed_tests_proves_nothing(outcome: Outcome, call: Call) -> None:
    assert outcome(EDIT, call) is None


@pytest.mark.parametrize("command", ["stat build", "sort tests", "du release", "less lint", "file test"])
def test_a_program_that_only_looks_is_no_check_whatever_it_looks_at(command: str) -> None:
    assert check_of(command) is None


@pytest.mark.parametrize(
    "call",
    [
        shell("sed -i 's/a/b/' a.py"),
        shell("echo x > a.py"),
        shell("printf x >> a.py"),
        shell("git checkout -- b.py"),
        shell("git merge main"),
        shell("rg -l a src | xargs sed -i s/a/b/"),
        shell("cargo update -p rustls"),
        shell("pnpm add left-pad"),
        shell("git rm -q old.py"),
        shell("cat > a.py <<EOF\nx\nEOF"),
        ("apply_patch", "*** Begin Patch", "Done", False),
        ("write_file", {"file_path": "a.py"}, "ok", False),
        ("replace", {"file_path": "a.py"}, "ok", False),
        ("mcp__fs__write_file", {"path": "a.py"}, "ok", False),
    ],
)
def test_every_way_to_change_a_file_makes_a_test_result_stale(outcome: Outcome, call: Call) -> None:
    assert outcome(EDIT, PASS, call) is None


@pytest.mark.parametrize("command", ["pytest -q 2>&1", "pytest -q > /dev/null", "pytest -q 2>/dev/null >&2"])
def test_output_that_goes_elsewhere_is_no_edit(outcome: Outcome, command: str) -> None:
    assert outcome(EDIT, shell(command, "")) == "success"


def test_hooks_of_a_commit_are_checks_where_they_name_a_program_that_checks(outcome: Outcome) -> None:
    printed = "ruff.....................................{}\nmypy.....................................{}"
    assert outcome(EDIT, shell("git commit -am x", printed.format("Passed", "Passed"))) == "success"
    assert (
        outcome(EDIT, shell("git commit -am x", "Exit code 1\n" + printed.format("Passed", "Failed"), True))
        == "failure"
    )
    assert (
        outcome(EDIT, shell("git push", "husky - pre-push hook\n Test Files  61 passed (61)\n> vitest run"))
        == "success"
    )


def test_the_code_that_a_line_prints_is_that_of_its_check(outcome: Outcome) -> None:
    call = shell('cd api && pytest -q > /tmp/o 2>&1; echo "rc=$?"; tail -4 /tmp/o', "rc=1\nFAILED test_a.py")
    assert outcome(EDIT, call) == "failure"


def test_a_program_that_lays_text_out_is_an_edit(outcome: Outcome) -> None:
    assert outcome(shell("npx prettier --write . && npx tsc -b", "ok")) == "success"
    assert outcome(EDIT, PASS, shell("black .", "1 file reformatted")) is None


@pytest.mark.parametrize(
    ("command", "printed", "expected"),
    [
        ("mvn -pl orders test", "[ERROR] Could not find the selected project in the reactor: orders @", None),
        ("dbt test -s dim", "Runtime Error\n  Could not find a profile that is called 'warehouse' here", None),
        ("docker compose run --rm w npm test", "Error response from daemon: Bind for 0.0.0.0:5672 failed", None),
        ("prove -l t/s.t", "Cannot detect source of 't/s.t'! at /usr/share/perl/5.34/TAP/It.pm line 256.", None),
        ("mvn test", "[ERROR] /w/src/main/java/Ledger.java:[77,14] cannot find the symbol setAmount", "failure"),
        ("pytest -q | cat; exit 1", "..F. and more of what it prints in a line [100%]\n1 failed, 3 passed", "failure"),
        ("pytest -q > /dev/null", "", "failure"),
        ("kubectl apply -f a.py", 'The Ingress "grafana" is invalid: pathType: Required value', "failure"),
    ],
)
def test_tests_that_failed_show_a_failure_and_others_could_not_start(
    outcome: Outcome, command: str, printed: str, expected: str | None
) -> None:
    assert outcome(DATA, shell(command, f"Exit code 1\n{printed}", True)) == expected


@pytest.mark.parametrize(
    "line",
    [
        "dotnet build src -warnaserror; if ($?) { dotnet test --no-restore }",
        '& "C:\\Program Files\\Unity\\Unity.exe" -batchmode -runTests -projectPath .',
        "rebar3 do eunit, dialyzer",
        "git commit -qam gzip && git push heroku main",
        "make image push deploy ENV=qa",
    ],
)
def test_a_check_is_known_in_every_form_of_a_line(outcome: Outcome, line: str) -> None:
    assert outcome(DATA, shell(line, "64 passed")) == "success"


def test_what_is_given_back_by_its_name_is_no_edit_any_more(outcome: Outcome) -> None:
    other = ("Edit", {"file_path": "b.py"}, "ok", False)
    assert outcome(other, shell("git checkout b.py", "Updated 1 path"), EDIT, PASS) == "success"
    assert outcome(EDIT, PASS, shell("git checkout a.py", "Updated 1 path from the index")) == "unknown"


def test_snapshots_that_are_written_anew_are_an_edit_and_a_check(outcome: Outcome) -> None:
    assert (
        outcome(shell("npx jest -u", "Tests: 4 passed, 4 total"), shell("npx jest --ci", "Tests: 4 passed"))
        == "success"
    )


def test_a_line_of_checks_that_fails_is_a_failed_check(outcome: Outcome) -> None:
    line = "cmake --build build && ctest --test-dir build"
    assert outcome(DATA, shell(line, "Exit code 8\n75% tests passed", True)) == "failure"
    assert outcome(DATA, shell(line, "Exit code 8", True), DATA, shell(line, "100% tests passed")) == "success"
    assert outcome(EDIT, shell("cp a b && ctest", "Exit code 8", True)) is None


def test_a_word_that_makes_a_check_look_at_no_less_is_no_smaller_check(outcome: Outcome) -> None:
    failed = shell("go test -race ./sched", "Exit code 1\nFAIL\tapp/sched\t0.1s", True)
    edit = ("Edit", {"file_path": "sched/a.go"}, "ok", False)
    assert outcome(edit, failed, edit, shell("go test -race -count=20 ./sched", "ok  \tapp/sched\t3.9s")) == "success"


def test_an_edit_and_its_test_may_stand_in_one_command(outcome: Outcome) -> None:
    assert outcome(shell("sed -i s/a/b/ a.py && pytest -q", "2 passed")) == "success"
    assert outcome(shell("pytest -q && sed -i s/a/b/ a.py", "2 passed")) is None


def test_the_time_for_what_a_check_printed_grows_as_its_text_does() -> None:
    pieces = [*PIECES, "F", "F!", "a.", "a.py:", "E ", "x: ", "failed ", "Error", "0 passing\n", "\n\n"]
    signs = {
        "fails": SAYS_FAILED,
        "passes": SAYS_PASSED,
        "shows": SHOWS_FAILURE,
        "ran": SHOWS_SUCCESS,
        "nothing": RAN_NOTHING,
    }
    calls: dict[str, Callable[[str], object]] = {name: sign.search for name, sign in signs.items()}
    assert too_slow(calls, pieces=pieces, size=1_000) == {}


def test_huge_commands_and_outputs_are_read_in_linear_time(outcome: Outcome) -> None:
    noise = "<<'a " * 20_000 + "\\" * 50_000 + "> " * 20_000 + "\"'" * 30_000
    assert outcome(EDIT, shell(noise, noise), noise) is None
    assert outcome(EDIT, shell("docker run " * 900), shell("x|" * 5_000)) is None


def test_the_verdict_names_its_rule_and_so_does_the_run(imported: Callable[..., Imported]) -> None:
    run = imported(EDIT, PASS)
    found = run.verdict
    assert found
    assert (found.source, found.reason) == ("ground_truth", "the tests passed after the last edit")
    assert run.trajectory.metadata["outcome_by"] == found.reason


@pytest.mark.parametrize(
    ("check", "commands"),
    [
        (
            "the tests",
            "pnpm vitest run|npx playwright test|zig build test|./gradlew check|./gradlew :app:connectedAndroidTest|"
            "pipenv run pytest|kubectl exec -n dev pod-1 -- pytest|ssh pi ctest|nix develop -c cargo test|rails test|"
            "coverage run -m pytest|php artisan test|composer test|task test|poe test|turbo run test|"
            "nx run shop:test|"
            "yarn workspace @pix/gallery test --run|pnpm -C packages/core run ci|ddev exec vendor/bin/phpunit|"
            "terraform test|"
            "./vendor/bin/sail artisan test|devcontainer exec --workspace-folder . bats test|dbt build -s orders+|"
            "dune test|stack test|crystal spec|meson test -C build|xcodebuild -scheme App test|"
            "timeout -k 5 300 pytest",
        ),
        (
            "the linter",
            "mix credo --strict|ty check|isort --check .|npx svelte-check|pnpm eslint .|cargo fmt --check|"
            "pnpm turbo run lint --force|npx --yes --package renovate -- renovate-config-validator x.json5|"
            "pdk validate|"
            "./vendor/bin/pint --test|dotnet format --verify-no-changes|yarn prettier --check .|dart analyze|"
            "buf lint|nx run-many -t lint",
        ),
        (
            "the build",
            "hugo --minify|npx storybook build|npx electron-builder --mac|wasm-pack build wasm|"
            "webpack --mode production|"
            "npx vue-tsc --noEmit|ng build|mix compile|docker compose build web|"
            "nix build .#app|./gradlew assembleDebug|uv build|turbo build|arduino-cli compile",
        ),
        (
            "the checks",
            "promtool check rules x.yml|packer validate img|caddy validate|buf breaking --against .git|./scripts/ci.sh|"
            "python tools/check_docs.py|just ci|hatch run verify:all|pants check ::|mage validate",
        ),
        ("CI", "gh run watch 7 --exit-status|gh pr checks 7 --watch"),
        (
            "the release",
            "terraform -chdir=tf apply -auto-approve|kubectl -n web rollout status deploy/api|npx cdk deploy|"
            "bundle exec fastlane beta|npx vsce publish|mix hex.publish|npx lerna publish|cargo release patch",
        ),
        (
            None,
            "gh run view 7|gh run watch 7|hugo server|npm ci|task list|nx graph|ssh pi uptime|"
            "kubectl exec pod -- ls|docker exec web ls|./gradlew tasks|"
            "stack install x|npm install|poetry add x|docker compose up|prettier --write .|make clean|"
            "composer install|mkdir tests|createdb test|psql test|git checkout check|pip install build|tee test.log|"
            "python tools/seed.py|cp check.sh bin|code tests|npx create-vite test",
        ),
    ],
)
def test_the_runners_of_common_ecosystems_are_known_by_what_they_check(check: str | None, commands: str) -> None:
    assert {command: check_of(command) for command in commands.split("|")} == dict.fromkeys(commands.split("|"), check)
