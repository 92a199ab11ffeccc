"""Find the experiences whose tasks are most like this one, or the lessons that say most about it."""

from ._refusals import Refusals as Refusals
from .dense import CATCH_UP as CATCH_UP
from .dense import DenseRetriever as DenseRetriever
from .emptiness import with_reason as with_reason
from .floor import Floor as Floor
from .floor import RelativeFloor as RelativeFloor
from .floor import WordFloor as WordFloor
from .floor import default_floor as default_floor
from .floor import default_words as default_words
from .floor import overlap as overlap
from .fusion import DEPTH as DEPTH
from .fusion import RRF as RRF
from .fusion import HybridRetriever as HybridRetriever
from .fusion import fuse as fuse
from .lessons import LessonRetriever as LessonRetriever
from .lexical import LexicalRetriever as LexicalRetriever
from .read_cache import AROUND as AROUND
from .read_cache import by_words as by_words
from .read_cache import cached_reads as cached_reads
from .read_cache import held_lessons as held_lessons
from .read_cache import note_lessons as note_lessons
from .trusted import TrustFilter as TrustFilter
from .without import Without as Without
