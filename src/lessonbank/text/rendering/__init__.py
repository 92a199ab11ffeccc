"""A run as text a model can read, under a hard budget: what decides is kept, and what was cut is said where it was cut.

Every line that comes from the run starts with `| `; lines that do not (`[step 7]`, `tool search:`, `[… 1,234 characters
cut …]`) are this package's own. So nothing inside a run can pass for a step, a speaker or a heading.
"""

from ._excerpt import BYTES_PER_TOKEN as BYTES_PER_TOKEN
from ._excerpt import estimate_tokens as estimate_tokens
from ._excerpt import excerpt as excerpt
from ._excerpt import width as width
from ._run import INSTRUCTIONS as INSTRUCTIONS
from ._run import View as View
from ._run import incomplete_steps as incomplete_steps
from ._run import render as render
from ._run import render_instructions as render_instructions
from ._run import render_steps as render_steps
