"""Tells of a web page what changed and what carries state: a page is long, and little of it decides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Trajectory

from ._scenes import Block, Line, Rank, Scene, pieces

_TREE = re.compile(
    r"^[ \t]*(?:\[\w+\] [A-Za-z]+ ['\"]|- [a-z]+(?: \"[^\"\n]*\")?(?: \[[\w=.-]+\])* ?\[ref=|RootWebArea )", re.M
)
_NODES = 6
_NODE = re.compile(
    r"(?P<indent>[ \t]*)(?:- )?(?:\[(?P<id>\w+)\] )?(?P<role>[A-Za-z]+)"
    r"(?: (?P<quote>['\"])(?P<name>.*?)(?P=quote)(?=$|[ ,:\[]))?(?P<rest>[ ,:\[].*)?$"
)
_ATTRIBUTE = re.compile(
    r"\b(value|checked|selected|disabled|invalid|pressed|ref)(?:=('[^']*'|\"[^\"]*\"|[^\s,\]]+))?(?=[\s,\]]|$)"
)
_ICON = re.compile(r"\\u[ef][0-9a-f]{3}|\\ue[0-9a-f]{3}|[\ue000-\uf8ff]|\\xa0")
_TELLING = re.compile(
    r"error|invalid|not found|no (?:results|records)|confirm|success|thank you|submitted|placed|\btotal\b|quantity"
    r"|\bqty\b|warning|failed|denied|required|\bempty\b|unable",
    re.IGNORECASE,
)
_TARGET = re.compile(r"""\(\s*['"]?(\w+)['"]?|"(?:bid|ref|element|element_id|index|uid)":\s*"?(\w+)""")
_LOUD = {"alert", "alertdialog", "dialog", "status", "log"}
_CHOICES = {"radio", "checkbox", "switch", "menuitemcheckbox", "menuitemradio"}
_ACTIVE = {"button", "link", "textbox", "combobox", "searchbox", "tab", "menuitem", "listbox", "spinbutton", *_CHOICES}
_TEXTS = {"StaticText", "text", "InlineTextBox", "paragraph", "LabelText", "strong", "emphasis"}
_GROUPS = {"row", "region", "form", "dialog", "alertdialog", "alert", "status", "RootWebArea", "table", "tablist"}
_CELLS = {"cell", "gridcell", "columnheader", "rowheader"}
_AROUND = {"navigation", "banner", "contentinfo", "complementary"}
_LONG = 200
_CELL = 120  # characters of a table's cell that are told in the line of its row
_DEPTH = 6
_EMPTIED = 8  # times fewer lines than the page before: nearly empty, mostly while the next one loads


@dataclass(frozen=True, slots=True)
class Node:
    """A line of a page that is told: what the element is, what it holds, how deep it stands."""

    name: str
    state: str = ""
    telling: bool = False
    """Whether it carries state, or words that say how something went."""
    active: bool = False
    depth: int = 0

    @property
    def text(self) -> str:
        """The line."""
        return " " * self.depth + f"{self.name} {self.state}".rstrip()

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same line on another page."""
        return self.name, self.state


@dataclass(slots=True)
class Page:
    """A page without what says nothing: nameless groups, icons, texts that repeat a name, addresses of links."""

    title: str = ""
    nodes: list[Node] = field(default_factory=list[Node])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """What each element is, by the id that actions use."""
    rows: list[tuple[int, list[str]]] = field(default_factory=list[tuple[int, list[str]]])
    """Where the line of each row of a table stands, and the row's cells."""


@dataclass(slots=True)
class _Open:
    indent: int
    name: str
    shown: bool
    around: bool
    row: list[str] | None = None
    """The cells of the table row that it is or that it stands in."""
    cell: bool = False


def is_page(text: str, /) -> bool:
    """Whether a text is an accessibility tree, as browser tools give it."""
    return len(list(islice(_TREE.finditer(text[:20_000]), _NODES))) == _NODES


def read_page(lines: Sequence[str], /) -> Page:
    """The page that the lines of an accessibility tree tell."""
    page = Page()
    above: list[_Open] = []
    known: set[str] = set()
    for line in lines:
        match = _NODE.fullmatch(line)
        if match and (match["id"] or match["quote"] or match["rest"]):
            _take(page, match, above, known)
        elif line.strip() and not line.startswith("#"):
            page.nodes.append(Node(" ".join(line.split())))
    for at, cells in page.rows:
        if cells:
            text = f"row {' | '.join(cells)}"
            page.nodes[at] = replace(page.nodes[at], name=text, telling=bool(_TELLING.search(text)))
    page.nodes = [node for node in page.nodes if node.name]
    return page


def _take(page: Page, match: re.Match[str], above: list[_Open], known: set[str], /) -> None:
    indent, role, name = len(match["indent"]), match["role"], _ICON.sub(" ", match["name"] or "")
    name = " ".join(name.split())
    while above and above[-1].indent >= indent:
        above.pop()
    given = {key: (value or "true").strip("'\"") for key, value in _ATTRIBUTE.findall(match["rest"] or "")}
    if ref := match["id"] or given.pop("ref", ""):
        page.names[ref] = f"{role} {_short(name)!r}" if name else role
    if role == "option" and given.get("selected", "False").lower() == "false":
        return
    if role == "RootWebArea":  # frames within a page have one of their own
        page.title = f"{page.title} / {name}"
    around = role in _AROUND or (bool(above) and above[-1].around)
    state = _state(role, given)
    if not around and _take_row(page, indent, role, name, state, above):
        return
    text = _describe(role, name, state, above)
    if text and not (around and not state) and not (role in _ACTIVE and not state and text in known):
        known.add(text)
        telling = bool(state) or role in _LOUD or bool(_TELLING.search(name))
        page.nodes.append(Node(text, state, telling, role in _ACTIVE, _depth(above)))
    near = above[-1] if above else None
    row, cell = (near.row, near.cell) if near else (None, False)
    above.append(_Open(indent, name if text else "", bool(text), around, row, cell))


def _take_row(page: Page, indent: int, role: str, name: str, state: str, above: list[_Open], /) -> bool:
    """Takes a row of a table, or what one of its cells says: a row is told on one line."""
    if role == "row":
        text = f"row {_short(name)!r}" if 0 < len(name) <= 2 * _LONG else "row" if state else ""
        page.rows.append((len(page.nodes), cells := list[str]()))
        page.nodes.append(Node(text, state, bool(state), depth=_depth(above)))
        above.append(_Open(indent, "", bool(text), around=False, row=cells))
        return True
    near = above[-1] if above else None
    if near is None or near.row is None:
        return False
    if role in _CELLS and len(name) > _CELL:  # a part of the page that is laid out as a table: it is told by its lines
        near.row.append(f"{name[: _CELL // 2] + '…'!r} {state}".rstrip())
        above.append(_Open(indent, "", shown=False, around=False))
        return True
    is_repeat = not name or any(name in ancestor.name for ancestor in above[-4:])
    if role in _CELLS or (near.cell and role in _TEXTS):
        near.row.extend([] if is_repeat else [f"{name!r} {state}".rstrip()])
    elif not (near.cell and role == "link" and name == near.name and not state):
        return False
    above.append(_Open(indent, name, shown=False, around=False, row=near.row, cell=True))
    return True


def _describe(role: str, name: str, state: str, above: Sequence[_Open], /) -> str:
    """What the element is, in few words, or nothing where that says nothing or was just said."""
    is_repeat = bool(name) and any(name in ancestor.name for ancestor in above[-4:])
    if role in _TEXTS:
        return "" if is_repeat or not name else repr(name)
    plain = role in _ACTIVE or role in _LOUD or ((role in _GROUPS or role == "heading") and not is_repeat)
    if not (name and (plain or state)) and state in ("", "checked=false"):
        return ""
    if role in _GROUPS and len(name) > 2 * _LONG:
        return ""
    return f"{role} {_short(name)!r}" if name else role


def _state(role: str, given: dict[str, str], /) -> str:
    """What the element holds, in few words; what every idle element says is left out."""
    fields = [
        f"{key}={value!r}" if key == "value" else f"{key}={value.lower()}"
        for key, value in given.items()
        if value and (value.lower() != "false" or (key == "checked" and role in _CHOICES))
    ]
    return " ".join(fields)


def _depth(above: Sequence[_Open], /) -> int:
    return min(sum(ancestor.shown for ancestor in above), _DEPTH)


def _short(text: str, /) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def pages(scenes: Sequence[Scene], run: Trajectory, /) -> Sequence[Scene]:
    """Pages as what changed against the page before; the last look at each page also tells its whole state.

    The line that says what was done names the element of the page it was done to.
    """
    read = {
        (scene.number, i): read_page(block.text.split("\n"))
        for scene in scenes
        for i, block in enumerate(scene.blocks)
        if block.kind == "seen" and is_page(block.text)
    }
    titles = [page.title for page in read.values()]
    left = {spot: title != after for spot, title, after in zip(read, titles, [*titles[1:], None], strict=False)}
    before: dict[str, tuple[int, Page]] = {}
    revisions: list[Scene] = []
    for scene in scenes if read else ():
        names = before[""][1].names if before else {}
        blocks = [block if block.kind == "seen" else _with_names(block, names) for block in scene.blocks]
        for i, block in enumerate(blocks):
            if page := read.get((scene.number, i)):
                known = before.get(page.title) or before.get("")
                before[page.title] = before[""] = (scene.number, page)
                blocks[i] = _compare_page(block, page, known, leaving=left[scene.number, i])
        revisions.append(replace(scene, blocks=tuple(blocks)))
    return revisions or scenes


def _with_names(block: Block, names: dict[str, str], /) -> Block:
    """Return a block with the name of the touched element behind what was done."""

    def name(line: Line) -> Line:
        touched = (names.get(target[1] or target[2]) for target in _TARGET.finditer(line.text))
        element = next(filter(None, touched), None) if line.rank == Rank.MUST else None
        return line._replace(text=f"{line.text} ({element})") if element else line

    return replace(block, lines=tuple(map(name, block.lines)))


def _compare_page(block: Block, page: Page, known: tuple[int, Page] | None, /, *, leaving: bool) -> Block:
    name = block.label.rstrip(":")
    if known is None:
        lines = tuple(line for node in page.nodes for line in pieces(node.text, _first(node)))
        return replace(block, label=f"{name} (a page):", lines=lines, marked=False)
    number, old = known
    same = old.title == page.title
    lines = tuple(_compare(page, old, same=same, leaving=leaving))
    label = f"{name} ({_what(page, old, same=same, differs=bool(lines))} step {number}){':' if lines else ''}"
    return replace(block, label=label, lines=lines, marked=False)


def _what(page: Page, old: Page, /, *, same: bool, differs: bool) -> str:
    """How the page stands to the one of a step, whose number comes next."""
    now, then = len(page.nodes), len(old.nodes)
    if now * _EMPTIED <= then:
        return f"the page is nearly empty, with {plural(now, 'line')} of the {then} in"
    if not differs:
        return "the page as in"
    return "the same page, what changed since" if same else "another page, what differs since"


def _first(node: Node, /) -> Rank:
    if node.telling:
        return Rank.CHANGE
    return Rank.REST if node.active else Rank.SAID


def _compare(page: Page, old: Page, /, *, same: bool, leaving: bool) -> Iterator[Line]:
    """The lines that are new, with what they held before; of the old ones, state; of one page, also what is gone."""
    left = Counter(node.key for node in old.nodes)
    removals = left - Counter(node.key for node in page.nodes)
    held = {node.name: node.state for node in old.nodes if removals[node.key]}
    for node in page.nodes:
        if left[node.key] > 0:
            left[node.key] -= 1
            if node.telling and leaving:
                yield from pieces(f"  {node.text}", Rank.CONTEXT)
            continue
        was = held.pop(node.name, None) if same else None
        text = f"+ {node.text}" if was is None else f"+ {node.text} (before: {was or 'nothing'})"
        changed = Rank.STATE if node.telling or was is not None else Rank.CHANGE
        yield from pieces(text, changed if same else _first(node))
    yield from _removals(old, removals, held) if same else ()


def _removals(old: Page, removals: Counter[tuple[str, str]], held: dict[str, str], /) -> Iterator[Line]:
    """The state that is no longer there."""
    for node in old.nodes:
        if node.telling and node.name in held and removals[node.key] > 0:
            removals[node.key] -= 1
            yield from pieces(f"- {node.text}", Rank.CONTEXT)
