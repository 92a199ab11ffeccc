"""Says whether a run did its task: the truth where it is known, else a model's opinion, which may be `unknown`."""

from .abstention import Abstaining as Abstaining
from .ask import judged as judged
from .ask import unknown as unknown
from .known_outcome import SUCCESS_AT as SUCCESS_AT
from .known_outcome import checked_threshold as checked_threshold
from .known_outcome import error_verdict as error_verdict
from .known_outcome import graded_notes as graded_notes
from .known_outcome import outcome_of as outcome_of
from .known_outcome import truth_verdict as truth_verdict
from .llm import JudgeReply as JudgeReply
from .llm import LLMJudge as LLMJudge
from .paper import PaperJudge as PaperJudge
from .parsing import Reading as Reading
from .parsing import parse_verdict as parse_verdict
