"""A small closed world in which one can watch an agent learn, offline: what `lessonbank demo` plays."""

from .agents import READER_VERSION as READER_VERSION
from .agents import Agent as Agent
from .agents import ScriptedAgent as ScriptedAgent
from .memory import PATIENCE as PATIENCE
from .memory import KeptBank as KeptBank
from .memory import Memory as Memory
from .memory import NoMemory as NoMemory
from .memory import new_bank as new_bank
from .runner import Episode as Episode
from .runner import attempt as attempt
from .runner import play as play
from .statistics import Interval as Interval
from .statistics import paired_bootstrap as paired_bootstrap
