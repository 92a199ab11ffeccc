"""Lets a test read and change the records that a bank's file holds: plain JSON, with its checksum in another column."""

from lessonbank.stores._texts import with_sum as with_sum
