"""Several runs of one task instead of one (paper section 3.3): what is decided, asked and counted."""

from typing import TYPE_CHECKING

from lessonbank._base.first_use import on_first_use

if TYPE_CHECKING:
    from lessonbank.contracts.agents import AnyAgent as AnyAgent
    from lessonbank.contracts.agents import Verifier as Verifier

    from .design import Examining as Examining
    from .design import Mode as Mode
    from .design import Selection as Selection
    from .figures import pass_at as pass_at
    from .result import Scaled as Scaled
    from .result import Stopped as Stopped
    from .rollouts import Progress as Progress
    from .scaler import Scaler as Scaler

__getattr__ = on_first_use(
    __name__,
    {
        "AnyAgent": "lessonbank.contracts.agents",
        "Verifier": "lessonbank.contracts.agents",
        "Examining": ".design",
        "Mode": ".design",
        "Selection": ".design",
        "pass_at": ".figures",
        "Scaled": ".result",
        "Stopped": ".result",
        "Progress": ".rollouts",
        "Scaler": ".scaler",
    },
)
"""Every bank can scale, and few do."""
