"""Streams of tasks put through a ledger one by one, with all its draws, reviews and actions; and what it said of them.

Streams (`making`), a ledger without its store (`Pure`), what both give (`play`), and each look at it (`seen`).
"""

from . import betting as betting
from . import making as making
from .looking import HARM as HARM
from .looking import HELP as HELP
from .looking import NEVER as NEVER
from .looking import Seen as Seen
from .looking import Treatment as Treatment
from .looking import seen as seen
from .playing import Played as Played
from .playing import play as play
from .pure import Pure as Pure
from .stream import Stream as Stream
