"""A plot as a file of its own: an SVG that a README can show, readable on light and on dark pages."""

from __future__ import annotations

import re
from typing import Final

LIGHT: Final = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "soft": "#57606a",
    "rule": "#d8dee4",
    "with": "#0b5cad",
    "without": "#a44a00",
    "helps": "#0f6b62",
    "harms": "#b42318",
    "open": "#57606a",
}
DARK: Final = {
    "paper": "#14171a",
    "ink": "#e6e8ea",
    "soft": "#a3adb8",
    "rule": "#343b43",
    "with": "#6cb0ff",
    "without": "#f0a04b",
    "helps": "#4fd1b8",
    "harms": "#ff8f80",
    "open": "#a3adb8",
}
_RULES: Final = """text{fill:$ink;font:13px system-ui,sans-serif}text.soft{fill:$soft}rect.paper{fill:$paper}
text.helps{fill:$helps}text.harms{fill:$harms}text.open{fill:$soft}
line.scale{stroke:$rule}line.zero{stroke:$ink;stroke-dasharray:2 3}path,line{fill:none;stroke-linecap:round}
.with{stroke:$with;stroke-width:2.5}.without{stroke:$without;stroke-width:2.5;stroke-dasharray:7 5}
line.thin{stroke-width:1.5}line.thick{stroke-width:5}
line.helps{stroke:$helps}line.harms{stroke:$harms}line.open{stroke:$open}
.mark{stroke:$paper;stroke-width:1.5}.mark.helps{fill:$helps}.mark.harms{fill:$harms}.mark.open{fill:$open}
"""
_SIZE = re.compile(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"')


def standalone(svg: str, /) -> str:
    """The picture with its size, its own background and its own style: nothing around it is needed.

    The colours follow the reader's system. They do not depend on CSS variables, which some viewers ignore.
    """
    width, height = _SIZE.findall(svg)[0]
    dark = f"@media (prefers-color-scheme:dark){{{_coloured(DARK)}}}"
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    paper = f'<rect class="paper" width="{width}" height="{height}" rx="6"/>'
    head, _, marks = svg.partition("</desc>")
    opened = _SIZE.sub(frame, head, count=1)
    return f"{opened}</desc><style>{_coloured(LIGHT)}{dark}</style>{paper}\n{_one_per_line(marks)}\n"


def _coloured(palette: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: palette[found[1]], _RULES)


def _one_per_line(marks: str) -> str:
    """A changed mark is a changed line."""
    return marks.replace("><", ">\n<").replace(">\n</text>", "></text>")
