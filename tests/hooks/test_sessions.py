"""What the hooks noted is learned later: the session's own run, once, with the recall that it was given."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from lessonbank import Evidence, Parts, ReasoningBank, Trajectory, connect
from lessonbank.cli.hook import status
from lessonbank.contracts.records import Extraction, Run, Verdict
from lessonbank.errors import ModelUnavailable
from lessonbank.hosts.repositories import Repositories
from lessonbank.hosts.sessions import Sessions

from .conftest import called, said, write_lines

pytestmark = pytest.mark.full
NO = "no, that is wrong, add is still broken"
DAY = 24 * 3600.0


@pytest.fixture
def bank() -> Iterator[ReasoningBank]:
    with connect(":memory:", scope="team", evidence=Evidence(holdout=None)) as memory:
        yield memory


def transcript(folder: Path, session: str = "s-1", *, asked: str = "Ship a parcel to Norway") -> Path:
    """Two sessions in one file, as Claude Code writes them."""

    def lines(of: str, task: str) -> Iterator[dict[str, Any]]:
        yield said(of, "user", task)
        yield from called(of, "a", "echo x > form.txt", "a1 passed")
        yield from called(of, "b", "pytest -q", "b1 passed")
        yield said(of, "assistant", [{"type": "text", "text": "Done."}])

    return write_lines(folder / f"{session}.jsonl", [*lines(session, asked), *lines("another", "Something else")])


def note(folder: Path, path: Path, *, ended: bool = True, age: float = 0.0, session: str = "s-1") -> Path:
    told = {"host": "claude-code", "session": session, "scope": "team", "transcript": str(path)}
    place = folder / f"{session}.json"
    place.write_text(json.dumps({**told, "ended": ended, "at": time.time() - age}))
    return place


def test_an_ended_session_is_learned_once_and_only_its_own_run(tmp_path: Path, bank: ReasoningBank) -> None:
    place, sessions = note(tmp_path, transcript(tmp_path)), Sessions(tmp_path)
    assert sessions.learn(bank).learned == 1
    assert not place.exists()
    note(tmp_path, tmp_path / "s-1.jsonl")  # a second end of the same session
    sessions.learn(bank)
    (run,) = bank.runs.list()
    assert (run.trajectory.task, run.verdict.outcome) == ("Ship a parcel to Norway", "success")
    assert run.trajectory.metadata["outcome_by"] == "the tests passed after the last edit"
    assert len(bank.lessons.list()) == 1


def test_a_session_is_learned_in_the_scope_of_its_folder_or_where_its_lessons_came_from(
    tmp_path: Path, bank: ReasoningBank
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    sessions = Sessions(tmp_path, Repositories(tmp_path / "roots"))
    for session, shown in (("s-1", ""), ("s-2", "coding/acme")):
        told = {"host": "codex", "session": session, "scope": "", "folder": str(shop)}
        told["transcript"] = str(transcript(tmp_path, session))
        (tmp_path / f"{session}.json").write_text(json.dumps({**told, "ended": True, "at": time.time()}))
        if shown:
            sessions.remember(session, bank.scoped(shown).retrieve("Ship a parcel to Norway").id, shown)
    assert sessions.learn(bank).learned == 2
    assert [len(bank.scoped(scope).runs.list()) for scope in (f"coding/@folder{shop}", "coding/acme")] == [1, 1]


def go_on(path: Path, words: str, session: str = "s-1", answer: str = "") -> None:
    """The session is resumed with words of the person, and perhaps an answer."""
    spoken = [said(session, role, text) for role, text in (("user", words), ("assistant", answer)) if text]
    append(path, spoken)


def append(path: Path, lines: list[dict[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def test_a_resumed_session_corrects_its_run_and_what_that_taught(tmp_path: Path, bank: ReasoningBank) -> None:
    recall, sessions = bank.retrieve("Ship a parcel to Norway"), Sessions(tmp_path)
    sessions.remember("s-1", recall.id)
    path = transcript(tmp_path)
    note(tmp_path, path)
    sessions.learn(bank)
    assert len(bank.lessons.list()) == 1
    go_on(path, NO)
    note(tmp_path, path)
    sessions.learn(bank)
    verdicts = [(run.verdict.outcome, run.verdict.reason) for run in bank.runs.list()]
    assert verdicts == [
        ("failure", "the user said that it is wrong"),
        ("unknown", "the session went on after that"),
    ]
    assert not [lesson.title for lesson in bank.lessons.list() if lesson.kind == "strategy"]
    (settled,) = bank.recalls.list(settled=True)
    assert settled.id == recall.id


class YesJudge:
    """A judge that calls every run a success, and counts them."""

    asks_model = False

    def __init__(self) -> None:
        self.tasks = list[str]()

    async def __call__(self, run: Trajectory, /) -> Verdict:
        self.tasks.append(run.task)
        return Verdict(outcome="success")


@pytest.mark.parametrize("command", ["pytest -q", "ls -l"])  # the run had an outcome before, or none
def test_a_run_that_a_resumed_session_replaced_waits_for_no_judge(tmp_path: Path, command: str) -> None:
    path, place = transcript(tmp_path), str(tmp_path / "bank.db")
    path.write_text(path.read_text().replace("pytest -q", command))
    with connect(place, scope="team", evidence=Evidence(holdout=None)) as memory:
        for said in ("", NO):
            go_on(path, said)
            note(tmp_path, path)
            Sessions(tmp_path).learn(memory)
        ends = {(run.status, run.verdict.outcome) for run in memory.runs.list()}
        assert ends == {("learned", "failure"), ("learned", "unknown")}
        assert not memory.runs.list(status="pending")
    judge = YesJudge()
    with connect(place, scope="team", parts=Parts(judge=judge)) as memory:
        memory.runs.retry()
        assert judge.tasks == []
        assert not memory.admin.verify()


def test_a_resumed_session_keeps_what_it_did_before_and_adds_its_new_task(tmp_path: Path, bank: ReasoningBank) -> None:
    sessions, path = Sessions(tmp_path), transcript(tmp_path)
    note(tmp_path, path)
    sessions.learn(bank)
    go_on(path, "Now add a docstring", answer="It has one.")
    note(tmp_path, path)
    sessions.learn(bank)
    runs = {run.trajectory.task: run.verdict.outcome for run in bank.runs.list()}
    assert runs == {"Ship a parcel to Norway": "success", "Now add a docstring": "unknown"}
    assert len(bank.lessons.list()) == 1


def test_a_session_that_repeats_another_adds_only_what_is_new(tmp_path: Path, bank: ReasoningBank) -> None:
    sessions = Sessions(tmp_path)
    path = transcript(tmp_path)
    named = [{**json.loads(line), "uuid": f"u{n}"} for n, line in enumerate(path.read_text().splitlines()[:6])]
    for session in ("s-1", "s-2"):
        rows = [json.dumps({**row, "sessionId": session}) for row in named]
        path.with_name(f"{session}.jsonl").write_text("\n".join(rows) + "\n")
        if session == "s-2":
            go_on(path.with_name("s-2.jsonl"), "Translate the error pages", session=session, answer="Done.")
        note(tmp_path, path.with_name(f"{session}.jsonl"), session=session)
        sessions.learn(bank)
    assert [run.trajectory.task for run in bank.runs.list()] == ["Translate the error pages", "Ship a parcel to Norway"]


def test_what_a_person_said_of_a_run_stays_when_its_session_goes_on(tmp_path: Path, bank: ReasoningBank) -> None:
    sessions, path = Sessions(tmp_path), transcript(tmp_path)
    note(tmp_path, path)
    sessions.learn(bank)
    (run,) = bank.runs.list()
    bank.runs.correct(run.trajectory.id, outcome="failure", by="Ana")
    go_on(path, "perfect, thank you")
    note(tmp_path, path)
    sessions.learn(bank)
    kept = bank.runs.get(run.trajectory.id)
    assert (kept.verdict.outcome, kept.verdict.reason) == ("failure", "Ana")


def test_the_recall_belongs_to_the_task_that_memory_was_asked_about(tmp_path: Path, bank: ReasoningBank) -> None:
    recall, sessions = bank.retrieve("Translate the error pages"), Sessions(tmp_path)
    sessions.remember("s-1", recall.id)
    path = transcript(tmp_path)
    go_on(path, "Translate the error pages", answer="Done.")
    note(tmp_path, path)
    sessions.learn(bank)
    recalls = {run.trajectory.task: run.recall_id for run in bank.runs.list()}
    assert recalls == {"Ship a parcel to Norway": None, "Translate the error pages": recall.id}


def commits(folder: Path, session: str, command: str, printed: str) -> Path:
    """A session that edits, tests, and then calls git."""
    path = transcript(folder, session)
    append(path, called(session, "g", command, printed))
    return path


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("git revert --no-edit HEAD", '[main 2b3c4d5] Revert "Add a discount"\n 1 file changed'),
        ("git revert --no-edit 1a2b3c4", "1 file changed"),
        ("git reset --hard HEAD~1", "HEAD is now at 0f0f0f0 Add a cart"),
        ("git reset --hard 0f0f0f0", "HEAD is now at 0f0f0f0 Add a cart"),
    ],
)
@pytest.mark.parametrize(
    "commit",
    [
        ("git commit -am 'Add a discount'", "[main 1a2b3c4] Add a discount"),
        ("git add . && git commit -qm 'Add a discount'", ""),
        ('git commit -am "Add a discount" | tail -1', " 1 file changed, 1 insertion(+)"),
        ("git commit -q -m \"$(cat <<'EOF'\nAdd a discount\n\nFor all.\nEOF\n)\"", ""),
    ],
)
def test_a_session_that_reverts_what_another_committed_leaves_no_success_of_it(
    tmp_path: Path, bank: ReasoningBank, commit: tuple[str, str], command: str, printed: str
) -> None:
    sessions = Sessions(tmp_path)
    other = commits(tmp_path, "s-0", "git commit -am 'Add a cart'", "[main 0f0f0f0] Add a cart")
    first = commits(tmp_path, "s-1", *commit)
    for session, path in (("s-0", other), ("s-1", first)):
        note(tmp_path, path, session=session)
        sessions.learn(bank)
    taught = {run.trajectory.metadata["run_id"]: run.verdict.outcome for run in bank.runs.list()}
    assert taught == {"s-0": "success", "s-1": "success"}
    note(tmp_path, commits(tmp_path, "s-2", command, printed), session="s-2")
    sessions.learn(bank)
    ended = {run.trajectory.metadata["run_id"]: run.verdict.outcome for run in bank.runs.list()}
    is_known = "1a2b3c4" not in command or commit[1].startswith("[")  # a quiet commit told nobody its hash
    assert (ended["s-0"], ended["s-1"]) == ("success", "unknown" if is_known else "success")


def test_what_a_person_said_is_stored_as_a_persons_word(tmp_path: Path, bank: ReasoningBank) -> None:
    path = transcript(tmp_path)
    path.write_text(path.read_text().replace("pytest -q", "ls"))
    go_on(path, "perfect, thank you")
    note(tmp_path, path)
    Sessions(tmp_path).learn(bank)
    (run,) = bank.runs.list()
    assert (run.verdict.outcome, run.verdict.source) == ("success", "human")


def test_a_run_settles_the_recall_of_its_session_and_has_the_task_that_memory_was_asked_about(
    tmp_path: Path, bank: ReasoningBank
) -> None:
    recall = bank.retrieve("Ship a parcel to Norway")
    sessions = Sessions(tmp_path)
    sessions.remember("s-1", recall.id)
    note(tmp_path, transcript(tmp_path, asked="Good morning"))
    sessions.learn(bank)
    (run,) = bank.runs.list()
    assert (run.trajectory.task, run.recall_id) == ("Ship a parcel to Norway", recall.id)
    assert sessions.recall_of("s-1") == recall.id  # a session that is resumed has its lessons already


def test_a_session_that_only_paused_waits_until_it_was_quiet_for_long(tmp_path: Path, bank: ReasoningBank) -> None:
    path, sessions = transcript(tmp_path), Sessions(tmp_path)
    note(tmp_path, path, ended=False)
    assert (sessions.learn(bank).waiting, bank.runs.list()) == (1, ())
    note(tmp_path, path, ended=False, age=3600)
    assert sessions.learn(bank).learned == 1
    note(tmp_path, path, ended=False)
    assert sessions.learn(bank, quiet=0).learned == 1


def test_a_missing_transcript_is_waited_for_and_then_given_up(tmp_path: Path, bank: ReasoningBank) -> None:
    sessions, gone = Sessions(tmp_path), tmp_path / "gone.jsonl"
    note(tmp_path, gone)
    assert sessions.learn(bank).waiting == 1
    note(tmp_path, gone, age=8 * DAY)
    assert sessions.learn(bank).lost == 1
    assert list(sessions.notes()) == []


def test_a_session_without_a_task_does_not_wait_for_days(tmp_path: Path, bank: ReasoningBank) -> None:
    sessions, path = Sessions(tmp_path), transcript(tmp_path)
    for age, quiet, left in ((0.0, {}, 1), (0.0, {"quiet": 0.0}, 0), (3600.0, {}, 0)):
        note(tmp_path, path, session="asked-lessonbank-only", age=age)
        sessions.learn(bank, **quiet)
        assert (len(list(sessions.notes())), bank.runs.list()) == (left, ())


def test_a_session_whose_receipt_was_erased_is_learned(tmp_path: Path, bank: ReasoningBank) -> None:
    recall, sessions = bank.retrieve("Ship a parcel to Norway"), Sessions(tmp_path)
    sessions.remember("s-1", recall.id, "team")
    bank.admin.purge(recall=[recall.id], reason="asked for")
    note(tmp_path, transcript(tmp_path))
    assert sessions.learn(bank).learned == 1
    assert len(bank.runs.list()) == 1


def test_a_session_that_cannot_be_learned_holds_up_no_other(tmp_path: Path) -> None:
    class Fails:
        asks_model = False

        async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
            if "Norway" in attempts[0].trajectory.task:
                raise KeyError("not thought of")
            return Extraction()

    with connect(":memory:", scope="team", parts=Parts(extractor=Fails())) as bank:
        note(tmp_path, transcript(tmp_path), age=9)
        note(tmp_path, transcript(tmp_path, "s-2", asked="Ship a parcel to Chile"), session="s-2")
        report = Sessions(tmp_path).learn(bank)
    assert (report.learned, report.waiting) == (1, 1)


def test_a_bank_that_cannot_be_opened_keeps_no_other_from_learning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for key, written in (("a", b"SQLite format 3\0" + b"nonsense " * 1000), ("b", None)):
        (tmp_path / f"lessonbank/sessions-{key}").mkdir(parents=True, mode=0o700)
        place = tmp_path / f"{key}.db"
        if written:
            place.write_bytes(written)
        (tmp_path / f"lessonbank/sessions-{key}/options").write_text(json.dumps({"key": key, "bank": str(place)}))
        note(tmp_path / f"lessonbank/sessions-{key}", transcript(tmp_path))
    with pytest.raises(typer.Exit) as left:
        status(learn=True)
    out, err = capfd.readouterr()
    assert (left.value.exit_code, out) == (3, "sessions learned: 1, waiting: 0, without a transcript: 0\n")
    assert f"nothing was learned for {tmp_path / 'a.db'}" in err.replace("\n", " ")


def test_a_run_for_which_the_model_had_no_answer_is_learned_later(tmp_path: Path) -> None:
    answers = list[Exception | Verdict]([ModelUnavailable("none left today")])

    class Judge:
        async def __call__(self, run: Trajectory, /) -> Verdict:
            if isinstance(answers[-1], Exception):
                raise answers[-1]
            return answers[-1]

    with connect(":memory:", scope="team", parts=Parts(judge=Judge())) as bank:
        path = transcript(tmp_path)
        path.write_text(path.read_text().replace("pytest -q", "ls"))
        note(tmp_path, path)
        assert Sessions(tmp_path).learn(bank).learned == 1
        assert bank.runs.list()[0].verdict.outcome == "unknown"
        answers.append(Verdict(outcome="success", source="judge", confidence=1.0, reason="it is done"))
        Sessions(tmp_path).learn(bank)
        assert bank.runs.list()[0].verdict.outcome == "success"


@pytest.mark.parametrize(
    "told",
    [
        "",
        "{",
        "[]",
        "null",
        '{"session": "s-1"}',
        '{"host": 1, "session": "../x", "scope": "a", "transcript": "b", "at": 1}',
    ],
)
def test_a_torn_note_is_passed_over(tmp_path: Path, bank: ReasoningBank, told: str) -> None:
    (tmp_path / "s-1.json").write_text(told)
    note(tmp_path, transcript(tmp_path, "s-2"), session="s-2")
    assert Sessions(tmp_path).learn(bank).learned == 1
