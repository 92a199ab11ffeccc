"""What memory changes, with an error bar: lessons are withheld at random, and outcomes are joined to receipts.

Nothing that is named here loads numpy; the arithmetic is in `estimates`, `sequences`, `review` and `report`.
"""

from lessonbank.contracts.withholding import Assignment as Assignment
from lessonbank.contracts.withholding import Withholding as Withholding

from .draws import Holdout as Holdout
from .draws import NoHoldout as NoHoldout
from .lift import Estimate as Estimate
from .lift import JudgeReport as JudgeReport
from .lift import LessonLift as LessonLift
from .lift import Lift as Lift
from .lift import Point as Point
from .measuring_cost import MeasuringCost as MeasuringCost
from .policy import AdaptiveHoldout as AdaptiveHoldout
from .policy import Rates as Rates
