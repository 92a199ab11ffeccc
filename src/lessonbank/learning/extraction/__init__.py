"""Draws lessons from attempts: with a model, or without one."""

from typing import TYPE_CHECKING

from lessonbank._base.first_use import on_first_use

from .without_model import ExtractiveExtractor as ExtractiveExtractor

if TYPE_CHECKING:
    from .llm import LLMExtractor as LLMExtractor
    from .parsing import Draft as Draft
    from .parsing import ParsedLessons as ParsedLessons
    from .parsing import parse_lessons as parse_lessons

_PARSING = dict.fromkeys(("Draft", "ParsedLessons", "parse_lessons"), ".parsing")
__getattr__ = on_first_use(__name__, {"LLMExtractor": ".llm", **_PARSING})
"""What a bank without a model does not need."""
