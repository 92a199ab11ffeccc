"""Any text, as hypothesis draws it: its `text()` first asks a codec for a million characters, 1.7 seconds a process."""

from functools import partial

from hypothesis import strategies as st

any_text = partial(st.text, st.characters(exclude_categories=["Cs"]))
