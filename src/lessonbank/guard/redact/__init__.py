"""Redaction: replaces secrets and personal data with placeholders before anything else reads a text."""

from ._personal import personal_in as personal_in
from ._records import redacted as redacted
from ._records import redacted_together as redacted_together
from ._records import through as through
from ._redactor import PerRun as PerRun
from ._redactor import Redacting as Redacting
from ._redactor import Redaction as Redaction
from ._redactor import redact as redact
from ._rules import holds_key as holds_key
