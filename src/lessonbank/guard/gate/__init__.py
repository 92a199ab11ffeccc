"""Admission: decides which lessons of a run are kept, and which of those a person must approve first."""

from ._empty import says_nothing as says_nothing
from ._named_entities import is_ordinary as is_ordinary
from ._named_entities import names_after_cues as names_after_cues
from ._named_entities import unusual as unusual
from ._skeleton import looks_like as looks_like
from .admission import ASKED_BY_A_TEXT as ASKED_BY_A_TEXT
from .admission import CONTENT as CONTENT
from .admission import DESCRIPTION as DESCRIPTION
from .admission import EXTRACTIVE as EXTRACTIVE
from .admission import MOST_REJECTED as MOST_REJECTED
from .admission import NO_LESSON as NO_LESSON
from .admission import NOT_CHECKED as NOT_CHECKED
from .admission import ONE_RUN as ONE_RUN
from .admission import SEVERAL_RUNS as SEVERAL_RUNS
from .admission import TITLE as TITLE
from .admission import LessonGate as LessonGate
from .admission import appraised as appraised
from .admission import doubt as doubt
from .admission import in_form as in_form
