"""What memory changes, with an error bar: lessons are withheld at random, and outcomes are joined to receipts.

Nothing that is named here loads numpy; the arithmetic is in `estimates`, `confidence_sequences`, `review` and `report`.
"""

from lessonbank.contracts.withholding import Assignment as Assignment
from lessonbank.contracts.withholding import Withholding as Withholding

from .effects import Estimate as Estimate
from .effects import LessonLift as LessonLift
from .effects import MeasuringCost as MeasuringCost
from .effects import Point as Point
from .lift import Lift as Lift
from .policy import AdaptiveHoldout as AdaptiveHoldout
from .policy import Holdout as Holdout
from .policy import Rates as Rates
