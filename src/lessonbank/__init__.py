"""ReasoningBank for Python: agents that learn from finished tasks, and measure whether it helps."""

from .bank import AsyncReasoningBank as AsyncReasoningBank
from .errors import LessonbankError as LessonbankError
from .sync import ReasoningBank as ReasoningBank
from .types import Action as Action
from .types import Attempt as Attempt
from .types import Experience as Experience
from .types import Extraction as Extraction
from .types import Learned as Learned
from .types import MemoryItem as MemoryItem
from .types import Observation as Observation
from .types import Recall as Recall
from .types import Step as Step
from .types import ToolCall as ToolCall
from .types import Trajectory as Trajectory
from .types import Usage as Usage
from .types import Verdict as Verdict
from .wiring import connect as connect
from .wiring import connect_async as connect_async

__all__ = [
    "Action",
    "AsyncReasoningBank",
    "Attempt",
    "Experience",
    "Extraction",
    "Learned",
    "LessonbankError",
    "MemoryItem",
    "Observation",
    "ReasoningBank",
    "Recall",
    "Step",
    "ToolCall",
    "Trajectory",
    "Usage",
    "Verdict",
    "__version__",
    "connect",
    "connect_async",
]

__version__ = "0.1.0"
