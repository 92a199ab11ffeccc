"""The hook that a coding agent calls. Run as a file, with the standard library only: the package loads too slowly.

Of `json`, `socket` and `signal` it takes only the parts in C: the rest loads `re` and `enum`, and doubles its time.
It asks the resident process, notes ended sessions in the spool, and gives nothing where that would take too long.
"""

from __future__ import annotations

import os
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from json.encoder import encode_basestring_ascii
    from json.scanner import make_scanner
    from typing import Any
else:
    try:
        import _signal as signal
        import _socket as socket
        from _json import encode_basestring_ascii, make_scanner
    except ImportError:  # another Python than CPython
        import signal
        import socket
        from json.encoder import encode_basestring_ascii
        from json.scanner import make_scanner

ANSWER_WITHIN = 0.14
"""Seconds since its process began until the hook gives up and prints nothing, unless `--within` says another number."""
SAY_WITHIN = 2.5
"""Seconds for the answer to a person who asked memory itself."""
NOTE_WITHIN = 1.0
"""Seconds for the note that a session ended: hosts wait that long at their end, and the note is all there is."""
PROTOCOL = 5
MOST_READ = 16 * 2**20
MOST_SHOWN = 9_000
"""Bytes that every host keeps whole; longer text would lose the end of its fence. Claude Code keeps 10,000 characters,
Codex 2,500 tokens and takes four bytes for one: a text of Chinese has three times as many bytes as characters."""
RECALL, AGAIN, CURE, SAY, NOTE, WAKE, STOP = "recall", "again", "cure", "say", "note", "wake", "stop"
SLASH_COMMAND = "/lessonbank"
"""What a person writes to ask memory itself: the hook answers, and the agent does not see it."""
ACTIONS = {
    "SessionStart": WAKE,
    "UserPromptSubmit": RECALL,
    "BeforeAgent": RECALL,
    "PostToolUse": CURE,
    "PostToolUseFailure": CURE,
    "AfterTool": CURE,
    "Stop": NOTE,
    "AfterAgent": NOTE,
    "SessionEnd": NOTE,
}
"""What the hook does at each event, by the names that the hosts give them."""
RESUMED = "resume"
GOES_ON = ("compact", RESUMED)
"""The sources of a session that goes on: its conversation may have lost its lessons."""
LAST = "SessionEnd"
PROJECT = {"claude-code": "CLAUDE_PROJECT_DIR", "gemini-cli": "GEMINI_PROJECT_DIR"}
"""Where a host says which folder its session is of: the working folder moves with what the agent does."""
PROBLEM = "problem"
"""The file beside the notes that says why no resident process runs."""
FRAME = "lessonbank"
"""The tag around a cure."""
SHELLS = ("Bash", "run_shell_command")
MOST_PRINTED = 8_000
"""Characters of an output in which the line is looked for that says what was wrong."""
MOST_SEARCHED = 2**18
"""Bytes at the end of a session's file in which the exit code of the command is looked for that just ended."""
MOST_SAID = 1_000
"""Characters of the line for the person."""
OPTIONS = ("bank", "model", "holdout")
"""What the resident process is started with."""
OWN = ("key", "scope", "within", *OPTIONS)
"""Every option but those of `retrieve`, which this program hands on without reading them."""
LONGEST_FOLDER = 80  # bytes
"""macOS takes 103 for the path of a socket, Linux 107; the name of ours has 21, and a slash."""
LOCK = 3
"""The descriptor of the lock that the resident process gets."""


def release() -> str:
    """The installed release, as its file says it: importing the package would take too long."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(package, "_version.py"), encoding="utf-8") as file:
        return file.read().partition("VERSION = ")[2].strip()[:40]


def socket_path(key: str) -> str:
    """The resident process of a bank listens here. Raises OSError where other users could have made the folder."""
    return os.path.join(runtime_folder(), f"{key}.sock")


def runtime_folder() -> str:
    """A folder in the user's runtime folder; in /tmp where there is none or its path is too long. Raises OSError."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = os.path.join(given, "lessonbank")
    fits = len(os.fsencode(folder)) <= LONGEST_FOLDER
    return private_folder(folder if given and fits else f"/tmp/lessonbank-{os.getuid()}")


def spool_folder(key: str) -> str:
    """Where notes of ended sessions wait. Raises OSError."""
    return private_folder(os.path.join(state_folder(), f"sessions-{key}"))


def state_folder() -> str:
    """Where the spools of all banks are."""
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "lessonbank")


def private_folder(folder: str) -> str:
    """`folder`, made where it is missing. Raises OSError where others may enter it, or own it."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a folder that only its owner may enter")
    return folder


def is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user; without a way to ask, the private folder has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    numbers = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # three: process, user, group
    return int.from_bytes(numbers[4:8], sys.byteorder) == os.getuid()


def write_private(path: str, value: dict[str, object]) -> None:
    """Write a small JSON file in one go, readable for this user only."""
    part = f"{path}.{os.getpid()}.part"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(written(value))
    os.replace(part, path)


class _Plain:
    """How values are read that need no rule of their own."""

    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner in Python asks for it
    parse_object = parse_array = parse_string = None


def read_json(text: bytes) -> Any:
    """What the text says. Raises ValueError: it is no JSON."""
    plain: Any = _Plain
    content = text.decode("utf-8", "surrogatepass").strip()
    try:
        value, end = make_scanner(plain)(content, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    if end < len(content):
        raise ValueError("text behind the JSON")
    return value


def written(value: Any) -> str:
    """The value as JSON in one line."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    parts: Any = value
    if isinstance(value, dict):
        return f"{{{', '.join(f'{written(str(name))}: {written(part)}' for name, part in parts.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, parts))}]"
    return repr(value).replace("inf", "Infinity").replace("nan", "NaN")  # as the module writes them


def is_session(session: object) -> bool:
    """Whether this can be a session's id: it comes from outside and becomes a file's name."""
    return isinstance(session, str) and 0 < len(session) <= 120 and not session.strip(_LETTERS)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


def main(words: list[str]) -> None:
    """Answer one event. Whatever happens, the host goes on: exit code 0, and on stdout JSON or nothing."""
    signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(0))
    options = dict(zip(words[1::2], words[2::2], strict=False))
    until = time.monotonic() + float(options.get("--within", ANSWER_WITHIN)) - _age()
    signal.setitimer(signal.ITIMER_REAL, NOTE_WITHIN)  # what may take longer stands in the event
    try:
        _answer(words[0], options, until)
    except Exception:  # noqa: BLE001 - a hook that fails must neither fail its host nor print anything
        os._exit(0)
    os._exit(0)


def _age() -> float:
    """Seconds since this process began: loading Python takes a part of the time, more so on a busy machine."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"), 0.0)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.03  # no Linux: the usual time


def _answer(host: str, options: dict[str, str], until: float) -> None:
    if os.environ.get("LESSONBANK_OFF", "").strip().lower() not in ("", "0", "false", "no"):
        return
    with open(0, "rb", closefd=False) as stdin:
        event = read_json(stdin.read(MOST_READ))
    name, session = event["hook_event_name"], event.get("session_id")
    action, prompt = _action_of(event)
    if not is_session(session) or event.get("agent_id"):  # what a sub-agent is asked is not the user's task
        return
    longer = {NOTE: NOTE_WITHIN, SAY: SAY_WITHIN}
    signal.setitimer(signal.ITIMER_REAL, longer.get(action, max(until - time.monotonic(), 0.001)))
    if action == WAKE and event.get("source") in GOES_ON:
        fields = {"transcript": event.get("transcript_path") if event["source"] == RESUMED else ""}
        _ask(options, {"do": AGAIN, "session": session, **fields}, event=name, session=session)
    elif action == WAKE:
        _ask(options, {"do": WAKE}, session=session)
    elif action == NOTE:
        _note(host, options, event)
        _ask(options, {"do": NOTE})
    elif action == CURE:
        printed = _failed(host, event)
        fields = {"host": host, "session": session, "folder": _folder(host, event), "printed": printed}
        fields.update(command=event["tool_input"]["command"], scope=options.get("--scope", ""))
        if printed:
            _ask(options, {"do": CURE, "retrieve": _asked(options), **fields}, event=name)
    elif action in (RECALL, SAY):
        fields = {"host": host, "session": session, "prompt": event["prompt"], "folder": _folder(host, event)}
        fields.update(scope=options.get("--scope", ""), retrieve=_asked(options))
        if action == SAY:
            _say(options, {"do": SAY, "words": "".join(prompt[1:])[:200], **fields})
        else:
            _ask(options, {"do": RECALL, **fields}, event=name, session=session)


def _action_of(event: dict[str, object]) -> tuple[str, list[str]]:
    """What the hook does at an event, and the first word of its prompt with the rest."""
    action, prompt = ACTIONS.get(str(event["hook_event_name"]), ""), str(event.get("prompt") or "").split(None, 1)
    if action == RECALL:
        action = SAY if prompt[:1] == [SLASH_COMMAND] else RECALL if prompt else ""
    return action, prompt


def _asked(options: dict[str, str]) -> dict[str, str]:
    return {name[2:]: value for name, value in options.items() if name[2:] not in OWN}


def _failed(host: str, event: dict[str, object]) -> str:
    """What a command printed that failed; empty where no exit code is told, or a person refused the call.

    Claude Code and Qwen Code say it in `error`, Gemini CLI in what the tool gave. Codex writes it into its file first.
    """
    if event.get("tool_name") not in SHELLS or event.get("is_interrupt"):
        return ""
    given = event.get("tool_response")
    if host == "codex":
        is_failure = isinstance(given, str) and _code_in_file(event) > 0
        return str(given)[-MOST_PRINTED:] if is_failure else ""
    printed: dict[str, object] = {**given} if isinstance(given, dict) else {}
    message = event.get("error", printed.get("llmContent"))
    if not isinstance(message, str):
        return ""
    if message.startswith("Exit code "):
        return message[-MOST_PRINTED:]
    output, is_told, trailer = message.rpartition("\nExit Code: ")
    code = trailer.split("\n")[0].strip()
    if output.startswith(("Command: ", "<untrusted_context>")):
        output = output.partition("\nOutput: ")[2]
    return output[-MOST_PRINTED:] if is_told and len(trailer) < 500 and code.isdigit() and code != "0" else ""


def _code_in_file(event: dict[str, object]) -> int:
    """The exit code that the session's file has of this call; -1 where it has none."""
    try:
        with open(str(event.get("transcript_path")), "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - MOST_SEARCHED, 0))
            lines = file.read(MOST_SEARCHED).splitlines()
    except OSError:
        return -1
    call = str(event.get("tool_use_id"))
    for line in reversed(lines):
        if call.encode() in line and b'"exit_code"' in line:
            try:
                item = read_json(line)["payload"]["item"]
                return int(item["exit_code"]) if item["id"] == call else -1
            except (ValueError, LookupError, TypeError):
                return -1
    return -1


def _folder(host: str, event: dict[str, str]) -> str:
    return os.environ.get(PROJECT.get(host, ""), "") or str(event.get("cwd") or "")


def _note(host: str, options: dict[str, str], event: dict[str, str]) -> None:
    """Paths and ids, and nothing that was said. A later note of a session replaces its earlier one."""
    session = event["session_id"]
    if not event.get("transcript_path"):  # of a session that is kept nowhere
        return
    note = {"host": host, "session": session, "transcript": event["transcript_path"]}
    note.update(scope=options.get("--scope", ""), folder=_folder(host, event))
    is_last = event["hook_event_name"] == LAST
    folder = spool_folder(options["--key"])
    write_private(os.path.join(folder, f"{session}.json"), {**note, "ended": is_last, "at": time.time()})


def ask(key: str, request: dict[str, object], *, event: str = "") -> dict[str, object]:
    """Ask the resident process; with `event`, print and confirm its text, and its line. Raises OSError, ValueError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(socket_path(key))
        if not is_same_user(connection):
            raise PermissionError("the process at the socket is not one of this user")
        message = {**request, "protocol": PROTOCOL, "release": release()}
        connection.sendall(written(message).encode() + b"\n")
        reply = read_json(_line(connection))
        text = reply.get("text")
        is_shown = bool(event) and isinstance(text, str) and 0 < len(text.encode()) <= MOST_SHOWN
        output: dict[str, object] = {}
        if is_shown:
            output["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": text}
        if event and isinstance(line := reply.get("line"), str) and line:
            output["systemMessage"] = line[:MOST_SAID]
        if output:
            _print(output)
        if is_shown:
            connection.sendall(b"printed\n")
        return reply
    finally:
        connection.close()


def _line(connection: socket.socket) -> bytes:
    got = b""
    while b"\n" not in got and len(got) < MOST_SHOWN * 8 and (more := connection.recv(65_536)):
        got += more
    return got.partition(b"\n")[0]  # a second answer may have come with it


def _ask(options: dict[str, str], request: dict[str, object], *, event: str = "", session: str = "") -> None:
    """Ask the resident process, and start it where there is none, or an old one that gives its place."""
    try:
        is_old = ask(options["--key"], request, event=event).get("replace")
    except (FileNotFoundError, ConnectionRefusedError):
        is_old = True
        if session and (reason := _problem(options["--key"], session)):
            _start(options)
            _print({"systemMessage": f"lessonbank: no lessons: {reason}"[:MOST_SAID]})
            return
    if is_old:
        _start(options)


def _say(options: dict[str, str], request: dict[str, object]) -> None:
    """Answer the person, and keep the prompt from the agent, also where there is no answer yet."""
    try:
        reply = ask(options["--key"], request)
    except OSError:
        reason = _problem(options["--key"], "")
        reply = {"replace": True, "text": f"lessonbank: no lessons: {reason}"} if reason else {"replace": True}
    if reply.get("replace"):
        _start(options)
    _print(
        {"decision": "block", "reason": reply.get("text") or "lessonbank: its process begins: ask again in a moment"}
    )


def _problem(key: str, session: str) -> str:
    """Why the last resident process could not begin; once for each session, if one is named."""
    path = os.path.join(spool_folder(key), PROBLEM)
    try:
        with open(path, "rb") as file:
            problem = read_json(file.read())
    except FileNotFoundError:
        return ""
    if problem.get("session") == session:
        return ""
    if session:
        write_private(path, {**problem, "session": session})
    return str(problem["reason"])


def _print(answer: dict[str, object]) -> None:
    """From the first byte on the answer is written whole, however long that takes."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(written(answer) + "\n")
    sys.stdout.flush()


def _start(options: dict[str, str]) -> None:
    """Start the resident process, detached: in no folder of a project, and with no import path from one.

    Whoever gets the lock starts it, and hands the lock on: sixteen hooks at once start one.
    """
    import fcntl  # noqa: PLC0415 - loaded only where it is needed, to save time

    command = [sys.executable, "-P", "-m", "lessonbank.hosts.resident", "--key", options["--key"]]
    for name in OPTIONS:
        command += [f"--{name}", options[f"--{name}"]] if f"--{name}" in options else []
    lock = os.open(os.path.join(runtime_folder(), f"{options['--key']}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # one is there, or is starting
        return
    if os.fork():  # `subprocess` takes 15 ms to load
        return
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.setsid()
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor, place in ((null, 0), (null, 1), (null, 2), (lock, LOCK)):
            os.dup2(descriptor, place)
        os.set_inheritable(LOCK, True)  # `dup2` leaves a descriptor that has its place already as it is
        os.closerange(LOCK + 1, 1024)
        os.execv(sys.executable, command)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
