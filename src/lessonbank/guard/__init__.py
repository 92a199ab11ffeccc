"""Makes text from strangers safe for a prompt, a page, a terminal, a file or a log.

`redact` removes secrets, `gate` rejects bad lessons, `intake` applies both, `sanitise` makes text inert.
"""

from ._characters import plain as plain
from .sanitise import canonical as canonical
from .sanitise import canonical_line as canonical_line
from .sanitise import clean as clean
from .sanitise import fence as fence
from .sanitise import is_prose as is_prose
from .sanitise import nonce as nonce
from .sanitise import one_line as one_line
from .scope import check_scope as check_scope
