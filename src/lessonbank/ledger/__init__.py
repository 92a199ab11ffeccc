"""What memory changes, with an error bar: items are withheld at random, and outcomes are joined to receipts."""

from .withholding import withheld as withheld
