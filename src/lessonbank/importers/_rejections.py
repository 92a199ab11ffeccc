"""Finds out whether a person rejects what an agent did: a short list of words, which can only take a success back.

It is no understanding of language. What it finds by mistake costs a known outcome, and never makes a wrong one.
"""

from __future__ import annotations

import re
from typing import Final

INTERRUPTED: Final = ("[Request interrupted", "<turn_aborted>")
"""How programs note that the person stopped the agent: these are no words of the person."""
_MOST: Final = 300
"""Characters of a message that are looked at."""
_FIRST: Final = re.compile(
    r"\W*(?:(?:no(?! (?:more|longer|\w+ any ?(?:more|longer)|(?:crash|error|failure|issue|problem|warning)\w*)\b)|"
    r"nope|wrong|incorrect|nein|falsch|non|faux|nee|fout|não|errado|incorrecto|нет|неверно|неправильно)\b|不|错|錯|いいえ|違|아니)"
)
"""The words that a rejection begins with, alone or before others."""
_ANYWHERE: Final = re.compile(
    # It is not so, it does not work, it is not what was asked for.
    r"\b(?:does|did|is|was|do|are|has|can|will)(?:n't|nt| not)\b|\bnot (?:what|working|right|correct|fixed|good)\b|"
    r"\b(?:that|this|it)(?:'s| is| was| looks| seems)? (?:\w+ )?(?:wrong|broken|incorrect|worse|useless)\b|"
    r"\bstill (?:gives?|returns?|prints?|shows?|says?|takes?)\b|\bnothing works\b|"
    r"\b(?:still|again) (?:\w+ )?(?:fail\w*|broken|wrong|not|get|see|crash\w*|the same|error\w*)|"
    r"\b(?:it|that|this|tests?|build) (?:\w+ )?(?:fails?|failed|broke|breaks|crashe[sd])\b|"
    # An error that was met.
    r"\b(?:get|got|getting|see|seeing|throws?|raises?) (?:an?|the|this|that) (?:\w+ )?(?:error|exception|crash)|"
    # Take it back.
    r"\b(?:undo|revert|roll(?:ed)? ?back|start over)\b|\byou (?:broke|forgot|missed|misunderstood|ignored|deleted)\b|"
    # The same in German, French, Spanish, Portuguese, Russian, Chinese and Japanese.
    r"\b(?:falsch|kaputt|rückgängig|(?:geht|stimmt|klappt|funktioniert) (?:\w+ )?nicht|nicht das|immer noch)\b|"
    r"\b(?:ne (?:marche|fonctionne) (?:toujours )?pas|pas ce que|faux|annulez?|cassé)\b|"
    r"\b(?:no (?:funciona|es lo|es correcto)|está mal|incorrecto|deshaz|revierte|sigue (?:fallando|sin))\b|"
    r"\b(?:não (?:funciona|é o que)|está errado|desfaça|reverta)\b|"
    r"не работает|неправильно|неверно|не то|отмени|откати|сломал|"
    r"不对|不行|错了|不工作|还是|撤销|回滚|間違|違い|違う|動かない|動きません|元に戻"
)
_NAMED_ERROR: Final = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b|\b[Tt]raceback\b")


def is_rejection(text: str, /) -> bool:
    """Whether the words of a person may reject what was done before; what a program wrapped for them does not."""
    wording = text.lstrip()[:_MOST].casefold().replace("’", "'")
    is_named = not text.rstrip().endswith("?") and _NAMED_ERROR.search(text[: 2 * _MOST])
    return not wording.startswith("<") and bool(is_named or _FIRST.match(wording) or _ANYWHERE.search(wording))
