"""What the pages take from others is what the table beside it names, and its licence lies there."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "src" / "lessonbank" / "pages" / "static" / "vendor"


def test_each_file_of_another_project_is_the_release_that_the_table_names() -> None:
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\S+) \| [^|]+ \| ([\d.]+) \| .*?(\S+-LICENSE\.txt) \| ([0-9a-f]{64}) \|$", table, re.MULTILINE
    )
    kept = {file.name for file in FOLDER.iterdir()} - {"README.md"}
    assert kept == {name for name, *_ in rows} | {licence for *_, licence, _ in rows}
    for name, version, licence, digest in rows:
        content = (FOLDER / name).read_bytes().replace(b"\r\n", b"\n")
        assert sha256(content).hexdigest() == digest, name
        assert version.encode() in content, name
        assert (FOLDER / licence).stat().st_size > 500
