"""Finds out whether a person says plainly that a result is right or wrong: most messages say neither.

A message is taken apart at its punctuation. Praise counts only where every part is known, so "great, now nothing works"
is no praise. A part that says that the result is wrong counts as a whole, and never as a word in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

Opinion: TypeAlias = Literal["right", "wrong"]
_MOST: Final = 200
"""Characters of a message that says nothing else."""
_PARTS: Final = re.compile(r"\s*[.,!;:…\n。，！、；()–—]+\s*|\s+-\s+")
_QUESTION_OR_CODE: Final = re.compile(r"[?？`]")


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase})" for phrase in phrases))


_IT: Final = r"(?:it|this|that|everything)"
_IS: Final = rf"{_IT}(?:'s| is| was| looks)"
_ASKED: Final = r"what i (?:asked(?: for)?|wanted|meant|needed)"
_NEITHER: Final = _any_of(
    (
        r"no|nope|yes|yep|yeah|ok|okay|oh|ah|hmm|sorry|please|hi|hey|so|and|again|now|bye|cheers|ty|thx",
        r"ship it|great|awesome|brilliant|fantastic|wonderful|lovely|super|prima",
        r"(?:many )?thanks?(?: you)?(?: a lot| so much| very much| again)?",
        r"(?:that's|that is|that was|nothing) (?:all|it|else)(?: for (?:now|today))?|nothing|"
        r"(?:no )?(?:further|more|other) questions?|wrong (?:place|window|chat|channel) to ask",
        r"(?:we're|we are|i'm|i am) done(?: here)?",
        r"nein|ja|danke(?: dir| schön)?|vielen dank|bitte|das war's|das wäre alles",
        r"merci, bonne soirée|bonne soirée|grazie|teşekkürler|kiitos",
        r"non|oui|merci(?: beaucoup)?|s'il te plaît",
        r"sí|si|(?:muchas )?gracias|por favor",
        r"não|sim|obrigad[oa]",
        r"нет|да|(?:большое )?спасибо|пожалуйста",
        r"谢谢|多谢|好的",
        r"ありがとう(?:ございます)?|はい|いいえ",
    )
)
"""Words around an opinion: thanks and cheers alone say nothing of the result."""
_RIGHT: Final = _any_of(
    (
        r"perfect|excellent|lgtm|well done|love it|exactly",
        rf"(?:{_IS} )?(?:perfect|great|excellent|exactly right|correct|fixed|all good)(?: now)?",
        rf"{_IS} (?:right|good)(?: now)?|(?:good|great|nice) (?:job|work)|looks (?:good|great)(?: to me| now)?",
        rf"(?:{_IT} )?(?:now |all )?works(?: (?:now|again|fine|great|perfectly|well|for me|like a charm|as expected))*",
        rf"(?:(?:that's|that is|this is) )?(?:exactly )?{_ASKED}|problem solved",
        r"(?:all )?(?:the )?tests (?:pass|are green|are passing)(?: now)?",
        r"perfekt|passt(?: so)?|genau so|genau das wollte ich",
        r"(?:es |das )?funktioniert(?: jetzt)?|(?:es |das )?(?:geht|klappt) jetzt",
        r"(?:no )?(?:va|tutto) (?:bene|benissimo)(?: così)?|perfetto|está (?:perfecto|perfeito|bien)",
        r"your change is (?:right|fine|good)",
        r"parfait|c'est (?:parfait|exactement ce que je voulais)|(?:ça|cela) fonctionne(?: maintenant)?",
        r"perfecto|excelente|(?:ya |ahora )?funciona(?: ahora)?|perfeito|(?:agora )?funciona(?: agora)?",
        r"отлично|идеально|(?:теперь )?(?:всё )?работает",
        r"完美|很好|可以了|好了|没问题了",
        r"完璧です|動きました|うまくいきました",
    )
)
_AROUND: Final = re.compile(r"^(?:ok|okay|yes|yep|thanks|thank you|great|cool) | (?:thanks|thank you|cheers)$")
_WRONG: Final = _any_of(
    (
        rf"wrong(?: again)?|incorrect|{_IS} (?:still |all |completely |totally |just |simply |also )*"
        r"(?:wrong|incorrect|broken|useless)(?: now| again)?",
        rf"{_IS} (?:still )?not (?:right|correct|working|fixed)",
        rf"(?:(?:{_IS} )?(?:still )?not(?: at all)?|{_IT} (?:is|was)n't(?: at all)?) {_ASKED}",
        rf"{_IT}(?: still)? (?:doesn't|does not|didn't|did not|won't) (?:still )?(?:work|compile|run|help|fix it)"
        r"(?: at all| yet| either| here| anymore)?",
        rf"(?:{_IT} |the (?:tests?|build|app|page|script) )?still "
        r"(?:fails?|crashes|breaks|broken|failing|crashing|not working|wrong)"
        r"(?: with the same error| in the same way| here| for me)?",
        rf"{_IS} still (?:broken|failing|crashing)|(?:{_IT} |you )?made it worse",
        r"you (?:broke|deleted|lost) (?:it|this|that|the (?:tests?|build|app|page)|everything|my (?:work|code))",
        r"(?:i )?(?:still )?(?:get |see )?(?:still )?(?:exactly )?the same error(?: again| as before)?",
        r"(?:das|es) ist (?:immer noch |leider |noch immer |völlig )?(?:falsch|kaputt)|falsch",
        r"(?:das|es) (?:geht|funktioniert|klappt|läuft) (?:immer noch |leider |noch immer |noch )?nicht",
        r"(?:das|es) (?:ist|war) nicht(?: das)? was ich (?:wollte|meinte)|immer noch (?:kaputt|falsch|derselbe fehler)",
        r"c'est (?:faux|incorrect|toujours faux|cassé)|(?:ce n'est|c'est) pas ce que je (?:voulais|veux|demandais)",
        r"(?:ça|cela) ne (?:marche|fonctionne) (?:toujours )?pas",
        r"(?:todavía |aún |sigue )?no funciona|(?:eso |esto )?está mal|(?:eso |esto )?no es lo que (?:pedí|quería)",
        r"(?:ainda )?não funciona|está errado|não é o que (?:pedi|eu queria)",
        r"(?:всё |все )?(?:ещё |еще )?не работает|(?:это )?(?:неправильно|неверно|не то(?: что я просил)?)",
        r"(?:还是)?不对|(?:还是)?不行|错了|还是错的|不是我要的",
        r"違います|間違っています|(?:まだ)?動きません|(?:まだ)?動かない",
    )
)
_TAKE_BACK: Final = _any_of(
    (
        r"(?:undo|revert)(?: (?:it|this|that|everything|all of (?:it|that|this)|(?:all )?your changes?|the change))?",
        r"roll (?:it|that) back|mach (?:es|das)(?: bitte)?(?: wieder)? rückgängig|annulez?(?: ça| tout)?",
        r"deshazlo|desfaça|отмени|откати|撤销|回滚|元に戻して",
    )
)
_ASKS: Final = re.compile(r"(?:but )?(?:can|could|would|what|if|how)\b")
_COMPLAINS: Final = re.compile(
    r"\b(?:still|again|broken|(?:is|was|all) wrong|immer noch|nicht|toujours|todavía|ainda)\b|не работает|还是"
)
_OBJECTING: Final = re.compile(r"^(?:no|nope|hmm|sorry|but|nein|non|não|нет) ")


def opinion_in(text: str, /) -> Opinion | None:
    """What a person says of what was done before, where a message says it and little else; else `None`."""
    if len(text) > _MOST or text.lstrip().startswith("<") or _QUESTION_OR_CODE.search(text):
        return None
    wording = " ".join(text.replace("\n", ". ").split()).casefold().replace("’", "'")
    kinds = [_kind_of(part) for part in _PARTS.split(wording) if part]
    if "right" in kinds:
        return "right" if {*kinds} <= {"right", "neither"} else None
    if next((kind for kind in kinds if kind != "neither"), None) == "wrong":
        return "wrong"
    return "wrong" if "take back" in kinds and None not in kinds else None


def objects_to_nothing(text: str, /) -> bool:
    """Whether a message that begins like an objection is none: it says nothing of the work, ends in praise, or asks."""
    wording = " ".join(text.replace("\n", ". ").split()).casefold().replace("’", "'")
    parts = [part for part in _PARTS.split(wording[:_MOST]) if part]
    kinds = [_kind_of(part) for part in parts]
    if not kinds or len(wording) > _MOST:
        return False
    begin = next((part for part, kind in zip(parts, kinds, strict=True) if kind != "neither"), "")
    is_question = bool(_ASKS.match(begin)) and wording.endswith(("?", "？")) and not _COMPLAINS.search(wording)
    judging = [kind for kind in kinds if kind != "neither"]
    return is_question or not judging or (judging[-1] == "right" and not _COMPLAINS.search(wording))


def _kind_of(part: str) -> Literal["neither", "right", "wrong", "take back"] | None:
    if _NEITHER.fullmatch(part):
        return "neither"
    if _RIGHT.fullmatch(part) or _RIGHT.fullmatch(_AROUND.sub("", part)):
        return "right"
    if _WRONG.fullmatch(part) or _WRONG.fullmatch(_OBJECTING.sub("", part)):
        return "wrong"
    return "take back" if _TAKE_BACK.fullmatch(part) else None
