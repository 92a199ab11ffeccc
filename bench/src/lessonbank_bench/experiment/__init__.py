"""Experiments that can be believed: planned, run so that they survive a kill, compared with their noise, reported."""

from lessonbank_bench.environments import Environment as Environment
from lessonbank_bench.environments import Job as Job
from lessonbank_bench.environments import environment as environment

from .comparison import Compared as Compared
from .comparison import compare as compare
from .plan import Plan as Plan
from .plan import plan as plan
from .records import Arm as Arm
from .records import AttemptRow as AttemptRow
from .records import Experiment as Experiment
from .records import Question as Question
from .records import read_experiment as read_experiment
from .report import page as page
from .runner import run as run
