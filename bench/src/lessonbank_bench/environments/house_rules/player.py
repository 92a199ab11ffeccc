"""A scripted agent for houses with rules: it keeps each convention that a sentence names, and draws the others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from lessonbank.contracts.ports import Completion, Message
from lessonbank_bench.environments.mini_runs import SENTINEL

from .conventions import FOLDERS, PREFIXES, RULES
from .repository import HAND_IN
from .world import ASKED

PLAYER_VERSION = "1"
"""Names the scripted agent's skill. Numbers of two versions are never compared."""
SUBMIT = f"echo {SENTINEL}"
PROMPT = """You change small repositories with bash. Answer each time with exactly one command in a block such as

```mswea_bash_command
git status
```

A command may be a script of many lines. Every command runs in a new shell in the repository. A change is accepted when
core.py defines what the task asks for, no more and no less;
a change note, named after the task (AB-123.md), is in one folder below docs/;
all of it is committed on a branch of its own, and the subject of the last commit begins with a prefix (ENH, MNT or \
REL), a colon, a blank and the task, as in `ENH: AB-123`; more words may follow;
and what organisation, repository and kind of change are used to is kept, of which nothing is written down here. It \
can be about folders, names, lengths, the order of commits, trailers, lists in index/, and the scripts in dev/, which \
write down in generated/log.txt that they ran and on which core.py (that file is part of the change). A change holds \
no more than it needs: one note, one tag and one list at most, at most {runs} runs of scripts.
`dev/hand-in` asks the reviewer, who answers below the output of the command. A task can be handed in {hand_ins} \
times, and there are {steps} commands in all, so make the whole change and hand it in with the first one. Where a task \
is closed, answer with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`, alone."""
_GOAL = re.compile(r"In (\w+)'s ([\w ]+), (.+), for task (\S+)\.")
_EDITS = (
    (re.compile(r"add a function `(\w+)` that returns (\d+)"), r"printf '\n\ndef {0}():\n    return {1}\n' >> core.py"),
    (re.compile(r"set the constant `(\w+)` to (\d+)"), "sed -i 's,^{0} .*,{0} = {1},' core.py"),
    (re.compile(r"remove the option `(\w+)`"), "sed -i '/{0}/d' core.py"),
)


class Player:
    """Does what it can read, and hands in what is drawn from `seed` and the goal where it can read nothing.

    Its skill: it makes the change it is asked for, and believes every sentence in the reviewer's own words that is
    about this organisation, this repository or this kind of change, the last one most.
    """

    def __init__(self, seed: int, /) -> None:
        self._seed = seed

    def __call__(self, messages: Sequence[Message], /) -> Completion:
        """The next reply; a pure function of the messages and the seed."""
        return Completion(text=f"```mswea_bash_command\n{self._next(messages)}\n```")

    def _next(self, messages: Sequence[Message]) -> str:
        if "The task is closed." in messages[-1].content:
            return SUBMIT
        goal = _GOAL.search(messages[1].content)
        if goal is None:
            return SUBMIT
        said = [messages[0].content, *(message.content for message in messages[2:] if message.role == "user")]
        organisation, repository, wanted, id = goal.groups()
        kind = next(kind for kind, (asked, _) in zip(ASKED, _EDITS, strict=True) if asked.search(wanted))
        known = _known("\n".join(said), (organisation, repository, kind))
        again = len(messages) > 2
        return script(wanted, id, known, self._guess(messages[1].content), again=again)

    def _guess(self, goal: str) -> Mapping[str, str]:
        drawn = int(hashlib.sha256(f"{self._seed}|{goal}".encode()).hexdigest(), 16)
        return {"folder": FOLDERS[drawn % len(FOLDERS)], "prefix": PREFIXES[drawn // 97 % len(PREFIXES)]}


def script(wanted: str, id: str, known: Mapping[str, str], guess: Mapping[str, str], /, *, again: bool) -> str:
    """One command that makes the whole change and hands it in."""
    edit, name = next(
        (made.format(*found.groups()), found[1]) for asked, made in _EDITS if (found := asked.search(wanted))
    )
    note = f"docs/{known.get('folder') or guess['folder']}/{id}.md"
    branch = known.get("branch", "TASK").replace("TASK", id).replace("task", id.lower())
    lines = " ".join(str(n) for n in range(int(known.get("length", "1"))))
    code, told = _code(edit, name, known), [f"mkdir -p $(dirname {note}) && printf '%s\\n' {lines} > {note}"]
    subject = f"{known.get('prefix') or guess['prefix']}: {id}"
    trailer = f" -m '{known['trailer']}'" if "trailer" in known else ""
    commit = f"git add -A && git commit -qm '{subject}'{trailer}"
    parts = [*told, commit, *code, commit] if known.get("apart") == "note" else [*code, commit, *told, commit]
    if "apart" not in known:
        parts = [*code, *told, commit]
    tag = [f"git tag {known['tag'].replace('TASK', id)}"] if "tag" in known else []
    start = (
        ["git checkout -qf main && git clean -qfd && git branch | grep -v main | xargs -r git branch -qD"]
        if again
        else []
    )
    return "\n".join([*start, f"git checkout -qb {branch}", *parts, *tag, HAND_IN])


def _code(edit: str, name: str, known: Mapping[str, str]) -> list[str]:
    listed = [f"echo {name} >> index/{known['listed']}.txt"] if "listed" in known else []
    scripts = [known[rule] for rule in ("script", "flagged") if rule in known]
    return [edit, *listed, *scripts, *(known["scripts"].split(" and then ") if "scripts" in known else [])]


def _known(text: str, owners: tuple[str, str, str]) -> dict[str, str]:
    flat = " ".join(re.sub(r"\n[|> -]*", " ", text).split())
    return {rule: found[-1] for rule in RULES if (found := _sentence(rule, owners).findall(flat))}


@lru_cache(maxsize=256)
def _sentence(rule: str, owners: tuple[str, str, str]) -> re.Pattern[str]:
    owner = owners[("organisation", "repository", "kind").index(RULES[rule].owner)]
    value = "|".join(map(re.escape, sorted(RULES[rule].values, key=len, reverse=True)))
    before, after = RULES[rule].sentence.replace("{owner}", owner).split("{value}")
    return re.compile(f"{re.escape(before)}({value}){re.escape(after)}")
