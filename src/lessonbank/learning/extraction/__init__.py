"""Draws lessons from attempts: with a model, or without one."""

from .extractive import ExtractiveExtractor as ExtractiveExtractor
from .llm import LLMExtractor as LLMExtractor
from .parsing import Draft as Draft
from .parsing import ParsedLessons as ParsedLessons
from .parsing import parse_lessons as parse_lessons
