"""Lets a test read and change the records that a bank's file holds: they are packed there."""

from lessonbank.stores._packing import packed as packed
from lessonbank.stores._packing import unpacked as unpacked
