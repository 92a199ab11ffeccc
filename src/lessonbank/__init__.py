"""ReasoningBank for Python: agents that learn from finished tasks, and measure whether it helps."""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import VERSION
from .config import Evidence as Evidence
from .config import File as File
from .config import Learning as Learning
from .config import Model as Model
from .config import Parts as Parts
from .config import Retrieval as Retrieval
from .config import Safety as Safety
from .config import Server as Server
from .errors import LessonbankError as LessonbankError
from .types import Action as Action
from .types import Experience as Experience
from .types import Extraction as Extraction
from .types import Learned as Learned
from .types import Lesson as Lesson
from .types import Observation as Observation
from .types import Recall as Recall
from .types import Run as Run
from .types import Step as Step
from .types import ToolCall as ToolCall
from .types import Trajectory as Trajectory
from .types import Usage as Usage
from .types import Verdict as Verdict

if TYPE_CHECKING:
    from .bank import AsyncReasoningBank as AsyncReasoningBank
    from .sync import ReasoningBank as ReasoningBank
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

_ON_FIRST_USE = {
    "AsyncReasoningBank": ".bank",
    "ReasoningBank": ".sync",
    "connect": ".wiring",
    "connect_async": ".wiring",
    "restore": ".wiring",
    "salvage": ".wiring",
}
"""The loop and asyncio under it are loaded when first asked for, so that records alone import fast."""


def __getattr__(name: str) -> object:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'lessonbank' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_ON_FIRST_USE[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
