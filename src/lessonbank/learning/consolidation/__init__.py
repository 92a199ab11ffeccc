"""Decide how a new experience changes the bank."""

from .additions import Adding as Adding
from .append import append as append
from .caps import DEFAULT_CAPS as DEFAULT_CAPS
from .caps import CappedConsolidator as CappedConsolidator
from .caps import Caps as Caps
from .corroboration import Corroborating as Corroborating
from .duplicates import Likeness as Likeness
from .duplicates import compare as compare
from .elimination import Eliminating as Eliminating
from .lineage import unmerge as unmerge
from .one_wording import OneWording as OneWording
from .recognise import Recognise as Recognise
