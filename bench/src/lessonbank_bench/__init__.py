"""Closed worlds, arms and statistics: where a claim about memory is put to the test before anybody believes it."""

from lessonbank.demo import READER_VERSION as READER_VERSION
from lessonbank.demo import Agent as Agent
from lessonbank.demo import Episode as Episode
from lessonbank.demo import ScriptedAgent as ScriptedAgent
from lessonbank.demo import attempt as attempt
from lessonbank.demo.desk import Desk as Desk
from lessonbank.demo.desk import Task as Task
from lessonbank.demo.desk import View as View
from lessonbank.demo.desk import World as World
from lessonbank.demo.desk import stream as stream
from lessonbank.demo.desk import world as world

from .arms import ARMS as ARMS
from .arms import ArmName as ArmName
from .arms import arm_from as arm_from
from .arms import name_of as name_of
from .arms import read_arms as read_arms
from .environments.llm_player import LLMAgent as LLMAgent
from .runner import play as play
from .statistics import Interval as Interval
from .statistics import paired_bootstrap as paired_bootstrap
from .statistics import wilson as wilson
