"""Pages in a browser on which a person reads what was learned beside its evidence, and decides what may be shown."""

from .application import application as application
from .sessions import Guest as Guest
from .sessions import Session as Session
from .sessions import Sessions as Sessions
