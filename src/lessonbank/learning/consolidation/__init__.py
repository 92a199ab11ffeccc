"""Decide how a new experience changes the bank."""

from .append import append as append
from .bound import Bounded as Bounded
from .caps import DEFAULT_CAPS as DEFAULT_CAPS
from .caps import CappedConsolidator as CappedConsolidator
from .caps import Caps as Caps
from .corroboration import Corroborating as Corroborating
from .duplicates import Likeness as Likeness
from .duplicates import compare as compare
from .elimination import Eliminating as Eliminating
from .lineage import unmerge as unmerge
from .merge import MergeSimilar as MergeSimilar
from .one_wording import OneWording as OneWording
from .recognise import Recognise as Recognise
from .worth import ByLift as ByLift
from .worth import TimesShown as TimesShown
