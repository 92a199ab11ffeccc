"""Gives elements their marks back: what a script made clickable has no role, and Chromium tells little of such.

BrowserGym writes an element's mark into two ARIA attributes and reads it from the accessibility tree. Chromium 156
leaves both out for what has the role `generic`, so a span that is a link would be a text that nobody can click. The
mark is in the snapshot of the document too, and from there it is put back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

Node: TypeAlias = dict[str, Any]
CLICKABLE = "clickable"
"""The role shown for what has none, but is clickable."""
_NAME_LIMIT = 200


def marked(observation: Mapping[str, Any], /) -> dict[str, list[Node]]:
    """The accessibility tree of an observation, where what has no role but can be clicked shows so, with its mark."""
    nodes = cast("list[Node]", observation["axtree_object"]["nodes"])
    properties = cast("Mapping[str, Mapping[str, Any]]", observation["extra_element_properties"])
    marks = dict(_marks(observation["dom_object"]))
    by_id = {node["nodeId"]: node for node in nodes}
    return {"nodes": [_shown(node, marks, properties, by_id) for node in nodes]}


def _shown(
    node: Node, marks: Mapping[int, str], properties: Mapping[str, Mapping[str, Any]], by_id: Mapping[str, Node]
) -> Node:
    mark = marks.get(node.get("backendDOMNodeId", -1))
    if mark is None or node["role"]["value"] not in ("generic", "none"):
        return node
    if not properties.get(mark, {}).get("clickable"):
        return node
    children = [by_id[child] for child in node.get("childIds", ()) if child in by_id]
    text = " ".join(_text(child) for child in children)[:_NAME_LIMIT]
    return {**node, "browsergym_id": mark, "role": {"value": CLICKABLE}, "name": {"value": text}}


def _text(node: Mapping[str, Any]) -> str:
    return str(node.get("name", {}).get("value", "")).strip() if node["role"]["value"] == "StaticText" else ""


def _marks(snapshot: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    strings = cast("list[str]", snapshot["strings"])
    for document in cast("Sequence[Mapping[str, Any]]", snapshot["documents"]):
        nodes = document["nodes"]
        of_nodes = cast("list[list[int]]", nodes["attributes"])
        for number, places in zip(cast("list[int]", nodes["backendNodeId"]), of_nodes, strict=True):
            attributes = dict(zip(places[::2], places[1::2], strict=True))
            value = next((value for name, value in attributes.items() if strings[name] == "bid"), None)
            if value is not None:
                yield number, strings[value]
