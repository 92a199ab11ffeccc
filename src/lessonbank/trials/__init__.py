"""Compare the same tasks with and without memory, until the answer is clear."""

from .design import Trial as Trial
from .design import TrialRun as TrialRun
