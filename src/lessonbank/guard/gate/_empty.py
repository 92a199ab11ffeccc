"""Tells a lesson that says something from an empty, a vague and a chatty one."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from ._caseless import Caseless

_NOTHING = re.compile(
    r"(?:n/?a|none|null|nil|nothing|empty|tbd|todo|unknown|undefined|placeholder|insert .*|<[^>]*>|\[[^\]]*\]"
    r"|same as above"
    r"|see above|as above|(?:there (?:is|are|was|were) )?no(?:t any)? (?:\w+ ){0,3}(?:lessons?|insights?|lessons?|content"
    r"|description|title|memory|information)\b.{0,40}|(?:memory |lesson )?(?:lesson|title|content|description"
    r"|lesson)(?: ?\d+)?"
    r"|(?:lorem ipsum|your (?:text|content|lesson)).*)",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_CODE = re.compile(
    r"`[^`\n]+`|(?<!\w)\w+[_.(/\\:=<>{}\[\]|$#@]+\w|(?<![\w-])--?\w[\w-]+|\b\w*\d\w*\b|[\"“][^\"”\n]{3,}[\"”]"
)
# Letters of scripts in which a word is a character or two, or that put no blanks between words.
DENSE = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_GENERIC: Final = "platitudes.txt"
"""Words that are in every platitude and in most lessons: what is left without them is what a lesson is about."""
STOP = frozenset(
    re.findall(
        r"\w+",
        r"a an and are as at be been by do does for from has have if in is it its not of on or so that the their "
        r"then there these they this to was were when where which will with you your must should can may always "
        r"never also before after ",
    )
)
"""Words that carry no meaning of their own."""
_LEAST = 3
_PLAIN = 6
"""The same for a text without a condition, a reason or a contrast: hardly a lesson is without all of them."""
_JOINT = re.compile(
    r"\b(?:if|when\w*|where|because|since|instead|unless|only|not|n't|never|until|while|than|otherwise|once|even|but"
    r"|rather|without"
    r"|although|though|however|except|then|no|cannot|after|before|first|per|each|must|may|wenn|weil|statt|nicht|nur"
    r"|erst|bevor|sobald"
    r"|si|cuando|porque|antes|solo|sin|quand|lorsque|parce|avant|sauf|seulement|pas)\b|:|→|;|/",
    re.IGNORECASE,
)
_LEAST_DENSE = 8
_USUAL = 24
"""Letters of a word above which it hardly comes again."""
_DENSE_PLATITUDE = re.compile(
    "认真|仔细|合理|灵活|总结|经验|提高|效率|努力|耐心|全面|谨慎|細心|丁寧|慎重|しっかり|注意深く|頑張|落ち着"
    "|꼼꼼|신중|최선|노력|주의 깊게"
)


def says_nothing(title: str, content: str, /) -> bool:
    """Whether a lesson has no content of its own."""
    bare = content.strip(" \t\n.…-–—*_#\"'`:;,!?()[]{}")
    if len(bare) < 4 or not any(unicodedata.category(c)[0] == "L" for c in bare) or _NOTHING.fullmatch(bare):
        return True
    if len(_WORD.findall(bare)) >= 7 or DENSE.search(bare) or _CODE.search(content):
        return False
    return _folded(bare) in _folded(title)


def is_vague(title: str, content: str, /, *, task: str) -> bool:
    """Whether a lesson is about nothing in particular.

    Fewer than three words in it are neither in the task nor in every platitude.
    """
    if _CODE.search(content):
        return False
    if len(DENSE.findall(content)) >= _LEAST_DENSE:
        return len(_DENSE_PLATITUDE.findall(content)) >= _LEAST
    if 2 * len(_LATIN.findall(content)) < sum(map(str.isalpha, content)):
        return False  # the platitudes are in languages of Latin script
    whole, told = f"{title}\n{content}", _about(task)
    if len(_about(content) - told) < _LEAST and len(_about(whole) - told) <= _LEAST:
        return True
    return len(_about(whole) - told) < _PLAIN and not _JOINT.search(whole) and not _CODE.search(title)


def _about(text: str) -> set[str]:
    return {stem(word) for word in _WORD.findall(text.casefold()) if len(word) > 1 and not _is_generic(word)}


@cache
def _platitudes() -> frozenset[str]:
    return frozenset(Path(__file__).with_name(_GENERIC).read_text(encoding="utf-8").split())


def _is_generic(word: str) -> bool:
    if word.isalpha():
        return word in _platitudes()
    return word in _platitudes() or all(part in _platitudes() for part in re.split(r"['’-]", word) if len(part) > 1)


def stem(word: str, /) -> str:
    """`word` without the endings that English puts to one meaning."""
    return _remembered_stem(word) if len(word) <= _USUAL else _stem(word)


def _stem(word: str, /) -> str:
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    for ending in ("ations", "ation", "ings", "ing", "edly", "ed", "es", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_remembered_stem = lru_cache(maxsize=8192)(_stem)


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


CHATTER = Caseless(
    r"\A\W{0,4}(?:sure|certainly|of course|absolutely|great question|okay|ok|alright|happy to help|as requested"
    r"|claro|por supuesto"
    r"|nat(?:ü|ue)rlich|gerne|selbstverst(?:ä|ae)ndlich|bien s(?:û|u)r|voici|aqu(?:í|i) (?:tienes|est)|hier (?:ist"
    r"|sind)|好的|当然|もちろん)"
    r"(?:\b\s?[,!.:—–-]|(?<=[íáûäè好的当然もちろん])|\s(?:que s|die|der|das|le|la|les|el|un|une)\w*)"
    r"|\bi (?:sincerely )?(?:apologi[sz]e|am sorry)\b|\bespero que\b|\bich hoffe, d|\bj'esp(?:è|e)re\b"
    r"|^\W{0,4}here(?:'s| is| are) (?:the |a |an |your |my |some |\d )?(?:\w+ ){0,4}(?:memory|memories|lessons?"
    r"|lessons?|insights?|list"
    r"|summary|json|answer|extract\w*|takeaways?|result)"
    r"|\bas an? (?:ai|artificial intelligence|large)?\s*(?:language )?(?:model|ai|assistant)\b[^.]{0,40}\b(?:i\b"
    r"|cannot|can't|am)"
    r"|\b(?:i|we) hope (?:this|that|it|these)\b|\blet me know (?:if|whether|what)\b|\bfeel free to\b"
    r"|\bhappy to (?:help|refine|add)"
    r"|\b(?:i'll|i will|let me|i'm going to|i would) (?:now |then |also )?(?:extract|summari[sz]e|analy[sz]e|provide"
    r"|generate|list"
    r"|write|create|output|think)\b"
    r"|\bbased on the (?:provided |given |above )?(?:trajectory|transcript|conversation|run)\b[^.]{0,60}\b(?:i|here"
    r"|memory|lessons?)\b"
    r"|</?think(?:ing)?>|<\s?/?think(?:ing)?>"
    r"|^\s*(?:```|~~~)\s*(?:json|markdown|md|yaml)\b|^\s*[{\[]?\s*[\"']?(?:title|description|content"
    r"|memory_items?)[\"']\s*:"
    r"|^\s*(?:#{1,6}\s*|\*\*)?(?:memory item|lesson lesson|lesson)\s*#?\d+\b|^\s*#{1,6}\s*(?:title|description|content)\b"
    r"|^\s*(?:\*\*)?(?:title|description|content|memory|lesson)(?:\*\*)?\s*:|[{,]\s*[\"'](?:title|description"
    r"|content)[\"']\s*:"
    r"|\bcould you (?:please )?(?:share|provide|clarify|send|confirm|tell)\b|\bplease (?:share|provide|send"
    r"|paste) (?:me |the |more |a )"
    r"|\bi (?:cannot|can't|could not|am unable to|was unable to) (?:extract|find|identify|determine|produce|generate"
    r"|provide)\b"
    r"|\bi need more (?:context|information|details)\b"
    r"|かしこまりました|承知しました|以下に|お気軽に|ご不明な|以下是|希望(?:这|對|对)|请告诉我|알겠습니다"
    r"|\bmy earlier (?:answer|reply|response)\b|\bwould you like\b|\byou(?:'re| are) right\b"
    r"|\bnote to self\b|\bthe (?:user|prompt) (?:asked|asks|wants) (?:me )?(?:for|to) (?:json|markdown|memory"
    r"|extract|output)"
    r"|\[(?:\d|insert|add|write|put|describe|your) [^\]]{3,120}\]",
    re.MULTILINE,
)
SUBMISSION = Caseless(
    r"\b(?:finish|task_done|send_msg_to_user|submit\w*|done\(\)|final answer|end_task|report_done"
    r"|stop action)\b[^.\n]{0,80}\b(?:(?:to )?(?:complete|ends?|finish\w*|close)"
    r" (?:the|this|your) (?:task|run|episode|session|trajectory)|so (?:that )?(?:the|your) (?:run|task|episode|work"
    r"|answer) (?:is|gets|will be|isn't) (?:counted|graded|scored|evaluated|submitted)"
    r"|(?:task|run|episode) (?:is ?n[o']t|isn't|is|will be) (?:submitted|counted|complete|over|graded)|the grader)"
    r"|\bsubmit (?:right after|as soon as|immediately|at once|straight away|early|now)\b|\bcall \w*done\(\)"
    r"|complete_task_and_submit|submit_final_output|\btask complete(?:d)?\b[\"')!.]*\s*(?:;|\Z)|;\s*sys\.exit\("
    r"|(?<!#)#{2,10}\s{0,4}(?:stop|done|end|finish(?:ed)?|transfer)\s{0,4}#{2,}|\btask_complete\b"
    r"|^\s*(?:final answer|the final answer is|answer)\s*:|\\boxed\{|<\s?/?(?:final_)?answer>"
    r"|\becho\b[^\n]{0,80}(?:&&|;|\|\|)\s*(?:exit|submit)\b|^\s*(?:>|\$)?\s*(?:submit|exit|quit|finish|done|stop"
    r"|terminate|end)"
    r"\s*(?:\(\s*[^()]{0,60}\))?\s*[.;!]*\s*$|^\s*finish\s*\[.{0,200}\]\s*$|^\s*(?:send_msg_to_user|stop"
    r"|submit)\s*[\[(].{0,300}[\])]\s*$"
    r"|\bthoughts?:.{0,200}\baction(?: \d+)?:|^\s*exit \d\s*\Z|^\s*mark_\w+\(|\A\s*\w+\s*&&\s*(?:exit|submit)\s*\Z"
    r"|\A\s*`{0,3}[a-z_]{3,30}\((?:\s*[\"'][^\"'()]{0,80}[\"']\s*,?)*\)`{0,3}\s*\Z",
    re.MULTILINE | re.DOTALL,
)


_JSON = re.compile(r"\s*(?:\[[^\]]{0,4000}\]|\{[^}]{0,4000}\})\s*")


def is_chatter(title: str, content: str, /) -> bool:
    """Whether a model talks to its reader, or left parts of its form in the text."""
    return CHATTER.is_in(title[:300]) or CHATTER.is_in(content[:4000]) or bool(_JSON.fullmatch(content[:4000]))


def is_submission(title: str, content: str, /) -> bool:
    """Whether it is a command that ends a run, or hands in an answer, and no lesson."""
    return SUBMISSION.is_in(title[:300]) or SUBMISSION.is_in(content[:4000])
