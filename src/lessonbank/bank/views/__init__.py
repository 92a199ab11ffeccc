"""What a person looks at and changes, by resource: lessons, runs, recalls, history, admin."""

from .admin import AsyncAdmin as AsyncAdmin
from .erasing import Erasing as Erasing
from .erasing import Successor as Successor
from .history import AsyncHistory as AsyncHistory
from .history import Moment as Moment
from .lessons import AsyncLessons as AsyncLessons
from .recalls import AsyncRecalls as AsyncRecalls
from .runs import AsyncRuns as AsyncRuns
