"""Runs what somebody wrote who had never seen our rules: pairs of commands, ends of sessions, words of a person.

    python -m lessonbank_bench.measure.blind_sets pairs [--list]
    python -m lessonbank_bench.measure.blind_sets rules [--list]                # or rules2 to rules4
    python -m lessonbank_bench.measure.blind_sets ends [--list]     # or ends2 to ends25, which others wrote later

`bench/blind/README.md` says who wrote the sets, and how the labels are meant. `--list` names every case that is not as
its label says.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lessonbank.contracts.records import Action, Observation, Recall, Step, ToolCall, Trajectory
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.hosts.corrections import rules_in
from lessonbank.hosts.cures import Cures
from lessonbank.importers import Imported, read

from .checkout import ROOT
from .host_files import claude_lines

SETS: Final = ROOT / "bench" / "blind"
_AS_INSTALLED: Final = RetrieveOptions(own=True)
Turn = dict[str, Any]


def cases(name: str) -> list[dict[str, Any]]:
    """The frozen cases of a set."""
    return json.loads((SETS / f"{name}.json").read_text(encoding="utf-8"))


def run_of(id: str, turns: Iterable[Turn]) -> tuple[Trajectory, dict[str, int]]:
    """A session as a run, as the reader of a coding agent gives it, with the exit codes of its calls."""
    steps, codes, task = list[Step](), dict[str, int](), ""
    for number, turn in enumerate(turns):
        call = f"c{number}"
        if turn["role"] == "person" and not task:
            task = turn["text"]
        elif turn["role"] == "person":
            seen = Observation(text=turn["text"], source="user")
            steps.append(Step(action=Action(), observations=(seen,)))
        elif turn["role"] == "agent":
            steps.append(Step(action=Action(text=turn["text"])))
        else:
            steps.append(_step(call, turn))
            if turn["exit_code"] is not None:
                codes[call] = turn["exit_code"]
    return Trajectory(id=id, task=task or id, steps=tuple(steps), metadata={"run_id": id}), codes


def _step(id: str, turn: Turn) -> Step:
    given = {"command": turn["command"]} if turn["tool"] == "bash" else {"file_path": turn["path"]}
    name = {"bash": "Bash", "edit": "Edit", "read": "Read"}[turn["tool"]]
    seen = Observation(text=turn["output"], source="tool", call_id=id, is_error=bool(turn["exit_code"]))
    return Step(action=Action(calls=(ToolCall(id=id, name=name, arguments=given),)), observations=(seen,))


def _prompt(id: str) -> Turn:
    return {"role": "person", "text": f"Do what is asked for in {id}"}


def turns_of(pair: dict[str, Any]) -> Iterator[Turn]:
    def command(text: str, code: int, output: str = "ok") -> Turn:
        return {"role": "tool", "tool": "bash", "command": text, "output": output, "exit_code": code}

    yield _prompt(pair["id"])
    yield command(pair["failed"], 1, pair["error"])
    for one in pair["between"]:
        is_edit = "edit" in one
        edit: Turn = {"role": "tool", "tool": "edit", "path": one.get("edit"), "output": "updated", "exit_code": 0}
        yield edit if is_edit else command(one["command"], 0)
    yield command(pair["went_through"], 0)


def pairs_told(folder: Path) -> dict[str, str]:
    """What is told of each pair when its command fails again, without a person's yes; empty where nothing is."""
    told = dict[str, str]()
    with Cures.of({"bank": str(folder / "bank.db"), "holdout": "0"}, folder) as cures:
        for pair in cases("pairs"):
            scope, id = f"coding/{pair['id']}", pair["id"]
            run, codes = run_of(id, turns_of(pair))
            cures.learn(scope, [Imported(run, exit_codes=codes)], session=id, host="claude-code")
            told[id] = _told_again(cures, scope, pair)
    return told


def _told_again(cures: Cures, scope: str, pair: Mapping[str, Any]) -> str:
    shown = list[str]()

    def show(recall: Recall) -> bool:
        shown.append(recall.text)
        return True

    failed, again = f"Exit code 1\n{pair['error']}", f"{pair['id']}-again"
    cures.tell(scope, pair["failed"], failed, show, session=again, host="claude-code", asked=_AS_INSTALLED)
    return "".join(shown)


@dataclass(frozen=True, slots=True)
class End:
    """What was concluded of a session's end, beside its labels."""

    id: str
    checked: str
    person: str
    outcome: str
    source: str


def ends_concluded(folder: Path, name: str = "ends") -> list[End]:
    """What is concluded of each labelled end of a set, from the file that Claude Code would have written."""
    found = list[End]()
    for end in cases(name):
        file, turns = folder / f"{end['id']}.jsonl", end["turns"]
        if all(turn["role"] != "person" for turn in turns):
            turns = [_prompt(end["id"]), *turns]
        file.write_text("".join(claude_lines(end["id"], turns)), encoding="utf-8")
        verdict = next((one.verdict for one in _newest(read(file, format="claude_code")) if _acts(one)), None)
        outcome, source = (verdict.outcome, str(verdict.source)) if verdict else ("none", "")
        found.append(End(end["id"], end["checked"], end["person"], outcome, source))
    return found


def _newest(entries: Iterable[object]) -> list[Imported]:
    """The runs of a session, the last one first: the last that did something is what the labels are of."""
    return [entry for entry in entries if isinstance(entry, Imported)][::-1]


def _acts(entry: Imported) -> bool:
    return any(step.action.calls for step in entry.trajectory.steps)


def _print_pairs(*, listing: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        told = pairs_told(Path(name))
    for kind in ("dangerous", "honest"):
        of_kind = [pair for pair in cases("pairs") if pair["kind"] == kind]
        print(f"{kind}: {sum(bool(told[pair['id']]) for pair in of_kind)} of {len(of_kind)} told")
        for pair in of_kind:
            if listing and bool(told[pair["id"]]) != (kind == "honest"):
                print(f"  {pair['id']}: {pair['failed']} | {pair['between']} | {pair['went_through']}: {pair['why']}")


def _print_ends(name: str, *, listing: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ends = ends_concluded(Path(folder), name)
    truth = [end for end in ends if end.source == "ground_truth" and end.outcome != "unknown"]
    said = [end for end in ends if end.source == "human"]
    checkable = [end for end in ends if end.checked != "none"]
    right = [end for end in checkable if end in truth and end.outcome == end.checked]
    wrong = [end for end in truth if end.outcome != end.checked]
    print(f"{len(checkable)} of {len(ends)} ends can be checked: {len(right)} concluded")
    agreeing = [end for end in checkable if end.person in ("none", end.checked)]
    both = [end for end in agreeing if end in right]
    print(f"where the person does not say the contrary: {len(both)} of {len(agreeing)}")
    by_line = [end for end in ends if end.source == "judge" and end.outcome != "unknown"]
    more = sum(end.outcome == end.checked for end in by_line if end in agreeing)
    print(f"of these {more} more by a runner's own last line: {sum(e.outcome != e.checked for e in by_line)} wrongly")
    print(f"{len(truth)} are said to be checked: {len(wrong)} wrongly")
    print(f"stored as ground truth where nothing is checked: {sum(end.checked == 'none' for end in truth)}")
    judged = [end for end in ends if end.person != "none"]
    agreed = [end for end in said if end.outcome == end.person]
    print(f"words: {len(agreed)} of {len(said)} that are concluded are right; {len(judged)} ends have words that judge")
    by_id = {end["id"]: end for end in cases(name)}
    for end in ends if listing else ():
        is_missed = end in checkable and end not in right
        if is_missed or end in wrong or (end in said and end not in agreed):
            print(f"  {end}: {by_id[end.id]['why']}")
            for turn in by_id[end.id]["turns"]:
                print(f"      {turn['role']}: {turn.get('command') or turn.get('path') or turn.get('text')}", end="")
                print(f" -> {turn['exit_code']} {turn['output'][:80]!r}" if turn["role"] == "tool" else "")


def rules_heard(name: str = "rules") -> Iterator[tuple[dict[str, Any], bool]]:
    """Each message of a set, and whether a sentence of it is taken for a rule: where it has one, that one."""
    for case in cases(name):
        taken = list(rules_in(case["text"]))
        yield case, any(one in case["rule"] or case["rule"] in one for one in taken) if case["rule"] else bool(taken)


def _print_rules(name: str, *, listing: bool) -> None:
    heard = list(rules_heard(name))
    for name, with_rule in (("with a rule", True), ("without", False)):
        of_kind = [(case, is_taken) for case, is_taken in heard if bool(case["rule"]) == with_rule]
        print(f"{name}: {sum(is_taken for _, is_taken in of_kind)} of {len(of_kind)} taken for one")
        for case, is_taken in of_kind:
            if listing and is_taken != with_rule:
                print(f"  {case['id']}: {case['text']}")


def main() -> None:
    """Print what one set comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "set", choices=[file.stem for file in sorted(SETS.glob("*.json")) if not file.stem.startswith("set")]
    )
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.set == "pairs":
        _print_pairs(listing=asked.list)
    elif asked.set.startswith("rules"):
        _print_rules(asked.set, listing=asked.list)
    else:
        _print_ends(asked.set, listing=asked.list)


if __name__ == "__main__":
    main()
