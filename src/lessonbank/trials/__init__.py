"""Compare the same tasks with and without memory, until the answer is clear."""

from .design import Trial as Trial
from .design import TrialRun as TrialRun
from .paired_sequential import TrialPlan as TrialPlan
from .paired_sequential import plan_trial as plan_trial
