"""Several runs of one task against one, over streams of tasks: what is compared, played through `bank.scale`."""

from .playing import ARMS as ARMS
from .playing import Arm as Arm
from .playing import World as World
from .playing import play as play
from .scripted import FormExtractor as FormExtractor
from .scripted import looked_at_again as looked_at_again
from .scripted import selector as selector
