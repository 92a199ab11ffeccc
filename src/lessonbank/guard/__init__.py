"""What stands between strangers' text and a prompt, a page, a terminal, a file or a log."""

from .sanitise import clean as clean
from .sanitise import fence as fence
from .sanitise import nonce as nonce
from .sanitise import one_line as one_line
from .scope import check_scope as check_scope
