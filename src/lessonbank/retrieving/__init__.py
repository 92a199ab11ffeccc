"""Find the experiences whose tasks are most like this one, or the lessons that say most about it."""

from ._refusals import Refusals as Refusals
from .contests import Contested as Contested
from .dense import CATCH_UP as CATCH_UP
from .dense import DenseRetriever as DenseRetriever
from .diversity import Diverse as Diverse
from .diversity import alike as alike
from .diversity import pick as pick
from .emptiness import with_reason as with_reason
from .floor import Floor as Floor
from .floor import WordFloor as WordFloor
from .floor import default_floor as default_floor
from .floor import overlap as overlap
from .fusion import DEPTH as DEPTH
from .fusion import RRF as RRF
from .fusion import HybridRetriever as HybridRetriever
from .fusion import fuse as fuse
from .kinds import OfKind as OfKind
from .leave_out import TEMPLATE as TEMPLATE
from .leave_out import LeaveOut as LeaveOut
from .leave_out import same_task as same_task
from .leave_out import same_template as same_template
from .leave_out import without_values as without_values
from .lessons import LessonRetriever as LessonRetriever
from .lexical import LexicalRetriever as LexicalRetriever
from .trusted import Trusted as Trusted
