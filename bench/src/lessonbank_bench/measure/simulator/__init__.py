"""Worlds in which the truth about every lesson is planted, their episodes, the answers, and what is compared with them.

Worlds (`World`), their episodes (`simulate`, `play`, `stream`), the answers (`truth`, `truth_of`), what others do with
the same episodes (`counters`, `with_without`, `q_learning`), the most that anybody could (`oracle`), a loop that draws
lessons from runs judged by a judge who errs (`mint`), and the same worlds put through a real bank (`drive`).
"""

from .columns import Episodes as Episodes
from .columns import Pairs as Pairs
from .counting import auc as auc
from .counting import counters as counters
from .counting import q_learning as q_learning
from .counting import spearman as spearman
from .counting import with_without as with_without
from .driving import Driven as Driven
from .driving import drive as drive
from .driving import planted_bank as planted_bank
from .knowing import oracle as oracle
from .minting import Minted as Minted
from .minting import Minting as Minting
from .minting import mint as mint
from .minting import pruning as pruning
from .playing import Hidden as Hidden
from .playing import Review as Review
from .playing import Run as Run
from .playing import Standing as Standing
from .playing import play as play
from .playing import simulate as simulate
from .playing import stream as stream
from .truth import Truth as Truth
from .truth import truth as truth
from .truth import truth_of as truth_of
from .world import Judging as Judging
from .world import Scatter as Scatter
from .world import Silence as Silence
from .world import World as World
