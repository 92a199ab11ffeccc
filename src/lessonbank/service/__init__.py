"""The bank as an HTTP API for many machines: `lessonbank serve`."""

from .application import Limits as Limits
from .application import application as application
from .keys import Key as Key
from .keys import Keys as Keys
from .serving import running as running
from .serving import serve as serve
