"""ReasoningBank for Python: agents that learn from finished tasks, and measure whether it helps."""

from typing import TYPE_CHECKING

from ._base.first_use import on_first_use
from ._version import VERSION
from .contracts.records import Action as Action
from .contracts.records import Experience as Experience
from .contracts.records import Extraction as Extraction
from .contracts.records import Learned as Learned
from .contracts.records import Lesson as Lesson
from .contracts.records import Observation as Observation
from .contracts.records import Recall as Recall
from .contracts.records import Run as Run
from .contracts.records import Step as Step
from .contracts.records import ToolCall as ToolCall
from .contracts.records import Trajectory as Trajectory
from .contracts.records import Usage as Usage
from .contracts.records import Verdict as Verdict
from .contracts.settings import Evidence as Evidence
from .contracts.settings import File as File
from .contracts.settings import Learning as Learning
from .contracts.settings import Model as Model
from .contracts.settings import Parts as Parts
from .contracts.settings import Retrieval as Retrieval
from .contracts.settings import Safety as Safety
from .contracts.settings import Server as Server
from .errors import LessonbankError as LessonbankError

if TYPE_CHECKING:
    from .bank.loop import AsyncReasoningBank as AsyncReasoningBank
    from .bank.sync import ReasoningBank as ReasoningBank
    from .wiring import connect as connect
    from .wiring import connect_async as connect_async
    from .wiring import restore as restore
    from .wiring import salvage as salvage

__all__ = [
    "Action",
    "AsyncReasoningBank",
    "Evidence",
    "Experience",
    "Extraction",
    "File",
    "Learned",
    "Learning",
    "Lesson",
    "LessonbankError",
    "Model",
    "Observation",
    "Parts",
    "ReasoningBank",
    "Recall",
    "Retrieval",
    "Run",
    "Safety",
    "Server",
    "Step",
    "ToolCall",
    "Trajectory",
    "Usage",
    "Verdict",
    "__version__",
    "connect",
    "connect_async",
    "restore",
    "salvage",
]

__version__ = VERSION

__getattr__ = on_first_use(
    __name__,
    {
        "AsyncReasoningBank": ".bank.loop",
        "ReasoningBank": ".bank.sync",
        "connect": ".wiring",
        "connect_async": ".wiring",
        "restore": ".wiring",
        "salvage": ".wiring",
    },
)
"""The loop and asyncio under it are loaded when first asked for, so that records alone import fast."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
