"""The ports: what a part must do to take a place in the loop.

A port with one verb is a callable: a plain async function qualifies. Every port is proven by a shared suite in
`lessonbank.testing`, which third-party implementations can run too.
"""

from .filters import LessonFilter as LessonFilter
from .filters import RecallFilter as RecallFilter
from .filters import RunFilter as RunFilter
from .parts import CUT as CUT
from .parts import Admission as Admission
from .parts import Agent as Agent
from .parts import BatchModel as BatchModel
from .parts import BlockingEmbedder as BlockingEmbedder
from .parts import Completion as Completion
from .parts import Consolidator as Consolidator
from .parts import Decision as Decision
from .parts import Embedder as Embedder
from .parts import Environment as Environment
from .parts import Extractor as Extractor
from .parts import Judge as Judge
from .parts import LanguageModel as LanguageModel
from .parts import Message as Message
from .parts import Owed as Owed
from .parts import Redactor as Redactor
from .parts import Retriever as Retriever
from .parts import Role as Role
from .parts import most_tokens as most_tokens
from .parts import replies_of as replies_of
from .store import RECEIPT_SECRET as RECEIPT_SECRET
from .store import Care as Care
from .store import ExperienceKey as ExperienceKey
from .store import Health as Health
from .store import Imported as Imported
from .store import Index as Index
from .store import Nearest as Nearest
from .store import Queue as Queue
from .store import Records as Records
from .store import SavedRecall as SavedRecall
from .store import Store as Store
from .vectors import Vectors as Vectors
