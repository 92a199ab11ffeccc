"""Finds what a person says in a session as a rule of the repository, such as "use pnpm, not npm".

By a short table of forms, which a sentence begins with. What may be a wish for this one change is none: a rule is shown
in every session after it, and a wrong one is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lessonbank.contracts.records import Trajectory

_MOST: Final = 2
"""Rules of one session."""
_LONGEST: Final = 200
_LONGEST_TURN: Final = 600
"""Characters of what a person says at once: a longer text is mostly pasted."""
_TOOL: Final = (
    r"`?(?:p?npm|npx|yarn|bun|deno|uvx?|pip(?:x|env|3)?|poetry|conda|pytest|unittest|nose|jest|vitest|mocha|playwright|"
    r"cypress|make|just|task|bazel|gradlew?|mvnw?|maven|cargo|docker|podman|ruff|black|isort|flake8|pylint|eslint|"
    r"prettier|biome|tslint|mypy|pyright|rspec|minitest|tabs|spaces|snake_case|camelCase|kebab-case|PascalCase|"
    r"(?:\./)?(?:bin|scripts?|tools)/[\w./-]+|(?:p?npm|yarn|make|just|cargo|python|uv|docker) (?:-m )?[\w:-]+)`?"
)
"""What a repository has chosen once: programs, and ways to write names."""
_LEAD: Final = (
    r"\W*(?:(?:no|nope|stop|halt|wait|hey|ok|okay|and|but|so|also|please|remember|btw|note|actually|sorry|hmm|right|"
    r"nein|stopp|moment|bitte|und|aber|also|übrigens|ach|denk dran|non|attends|et|mais|s'il te plaît|attention|"
    r"espera|y|pero|por favor|recuerda)\b(?: that)?[\s,:;.!–—-]+)*"
)
_ONE: Final = r"(?!(?:the|an?|this|that|it|both|all|your|its|de[nmr]|die|das|eine[nmr]?|ein|le|la|les|une?|el|l[oa]s|una)\b|l')\S+"
"""A thing by its name. With an article it is mostly one of this change."""
_HERE: Final = r"(?: here| in (?:this|our) (?:project|repo|repository|codebase)| hier)?"
_DO: Final = (
    rf"(?:directly |please )?(?:run (?:{_TOOL}|`|(?:the |all |unit |full )*(?:tests?|linters?|formatters?|type ?check\w*|suite|"
    rf"checks|pre-?commit|build)\b)|(?:commit|push|squash|rebase|merge|deploy|mock|import|install|use|hard-?code) {_ONE}|"
    r"(?:edit|touch|change|modify|commit|reformat) (?:the |any )?(?:generated|vendored|lock ?files?|migrations?)\b|"
    r"(?:squash|rebase|ask|format|lint)(?: me)? (?:before|first)\b|"
    r"(?:write|put|add|name|prefix|keep) (?:the |an? |new )?(?:tests?|commits?|branch\w*|docstrings?|type hints|migrations?|"
    r"changelog|secrets|mocks|dependencies)\b)"
)
"""How one works here, and not what the program does."""
_MUST: Final = (
    r"(?:must|should|have to|has to|needs?|go(?:es)? (?:into|in)|lives? in|belongs? in|(?:are|is) written in)\b"
)
_KIND: Final = (
    r"(?:commits?|commit messages?|branch(?:es| names?)|pull requests?|prs?|migrations?|changelog entries|file names)"
)
_USE_DE: Final = r"(?:benutz|verwend|nutz|nehm|nimm)\w*"
_DO_DE: Final = (
    rf"(?:(?:\S+ ){{0,9}}?(?:laufen lassen|ausführen|committen|pushen|mergen|einchecken|installieren|formatieren|editieren|"
    rf"anfassen)\b|{_ONE} (?:benutzen|verwenden|nutzen|nehmen)\b)"
)
_DO_FR: Final = rf"(?:(?:lanc|commit|push|exécut)\w*|(?:utilis|import)\w+ {_ONE})"
_DO_ES: Final = rf"(?:ejecut\w+|hag\w+ (?:push|commit)|commite\w+|us[aeo]\w* {_ONE})"
_FORMS: Final = (
    # English: of this place, from now on, always and never, one thing and not another, all things of a kind.
    rf"(?:in|for) (?:this|our) (?:project|repo|repository|code ?base|monorepo|package)\b[\s,:]+(?:please )?(?:"
    rf"no (?!one\b|idea\b|\w+ (?:exist|fail|work|run)s?\b)\w|(?:never|always) \w|(?:only|do not|don't) {_DO}|"
    rf"we (?:use|only|never|always|don't|do not) (?!have|know|get|see|need|want)\w|"
    rf"(?:all|every) [\w ]{{1,30}}(?:{_MUST}|(?:is|are) .*\b(?:not|never)\b)|(?!the\b)(?:\w+ ){{1,2}}{_MUST})",
    rf"(?:from now on|going forward|from here on|in (?:the )?future)\b[\s,:]+(?:please )?(?:no \w|"
    rf"(?:you )?(?:always |never |only |do not |don't )?{_DO})",
    rf"(?:you (?:should|must|have to) )?(?:always|never(?: ever)?) {_DO}",
    rf"we (?:only|never|always|don't|do not) (?:(?:use|commit|push|mock|deploy|merge|hard-?code) {_ONE}|(?:squash|rebase)\b)",
    r"we only support \w",
    rf"(?:do not|don't) (?:ever )?use {_TOOL}{_HERE}(?:\W+(?:but|use|we use)\b.*|\W*$)",
    r"(?:do not|don't) (?:ever )?(?:edit|touch|change|commit) (?:the |any )?(?:generated|vendored) \w+",
    rf"we use {_ONE}(?: \w+)?{_HERE}(?:,? (?:not|never|instead of|rather than) \S.*|\W*$)",
    rf"use {_TOOL}{_HERE},? (?:and )?(?:not|never|instead of|rather than) {_TOOL}\W*$",
    rf"{_TOOL},? not {_TOOL}\W*$",
    r"prefer \w[\w ]{0,40} over \w",
    rf"(?:all |every |each |our |new )?{_KIND} (?:always |never )?{_MUST}",
    r"(?:new |unit )?tests (?:always |never )?(?:(?:must|should) (?:not|never)|go into|live in|belong in)\b",
    # German
    rf"(?:wir|hier) {_USE_DE} (?:wir )?(?:hier )?(?:(?:nur|immer|nie|kein\w*) {_ONE}|{_ONE},? (?:und )?(?:nicht|kein\w*|statt) \S)",
    rf"in (?:diesem|unserem) (?:projekt|repo|repository)\b[\s,:]+(?:bitte )?(?:(?:kein\w*|nie|niemals|immer|nur) "
    rf"(?!.*\b(?:vorhanden|gefunden|gibt|ahnung)\b)\w|(?:{_USE_DE} )?wir (?:immer|nie|nur|kein\w*|{_USE_DE}))",
    rf"(?:ab (?:jetzt|sofort)|künftig|in zukunft|von nun an)\b[\s,:]+(?:bitte )?(?:kein\w* \w|{_USE_DE} {_ONE}|"
    rf"(?:immer |nie |nur |erst )?{_DO_DE})",
    rf"(?:immer|nie|niemals|grundsätzlich) {_DO_DE}",
    rf"{_USE_DE} {_TOOL},? (?:und )?(?:nicht|statt|anstatt|anstelle von) {_TOOL}\W*$",
    # French
    rf"(?:ici,? )?(?:on|nous) (?:utilis|écri)\w+ (?:toujours )?{_ONE},? (?:pas|jamais|plutôt que|au lieu d)\b",
    rf"dans (?:ce|notre) (?:projet|dépôt|repo)\b[\s,:]+(?:(?:jamais|toujours|pas) (?:de |d')?\w|(?:on|nous) utilis\w+ {_ONE})",
    rf"(?:désormais|dorénavant|à partir de maintenant|à l'avenir)\b[\s,:]+(?:toujours |ne )?{_DO_FR}",
    rf"(?:il faut )?(?:toujours|ne jamais) {_DO_FR}|(?:ne (?:commit|push)\w*|n'utilis\w+) jamais\b|utilise toujours {_ONE}",
    rf"utilise {_TOOL},? (?:et )?(?:pas|plutôt que|au lieu de) {_TOOL}\W*$",
    # Spanish
    rf"(?:aquí )?usamos (?:siempre )?{_ONE},? (?:y )?(?:no|nunca|en lugar de|en vez de)\b",
    rf"en (?:este|nuestro) (?:proyecto|repo|repositorio)\b[\s,:]+(?:(?:nunca|siempre) \w|no us\w+ {_ONE}|usamos {_ONE}|nada de)",
    rf"(?:de ahora en adelante|a partir de ahora|en adelante)\b[\s,:]+(?:siempre |nunca |no )?{_DO_ES}",
    rf"(?:siempre|nunca) {_DO_ES}|usa siempre {_ONE}",
    rf"usa {_TOOL},? (?:y )?(?:no|en lugar de|en vez de) {_TOOL}\W*$",
)
_RULE: Final = re.compile(f"{_LEAD}(?P<rule>{'|'.join(_FORMS)})", re.IGNORECASE)
_OF_NOW: Final = re.compile(
    r"\?|\b(?:this time|for now|(?:right |just )?now(?<!from now)|today|tonight|just this once|yet|until|there|that|temporarily|anymore|"
    r"any more|i think|maybe|(?:in|for|of) this (?:pr|branch|commit|file|function|class|method|test|case|change|task|module|"
    r"component|view|page|one)|diesmal|gerade|erstmal|vorerst|heute|jetzt(?<!ab jetzt)|dort|da|cette fois|pour l'instant|"
    r"aujourd'hui|esta vez|por ahora|hoy)\b|\b(?:use|run|edit|touch|change|import|check|keep|add|put|support|test) "
    r"(?:it|these|those|them|this)\b",
    re.IGNORECASE,
)
"""What binds a sentence to this one change, or leaves open what it speaks of."""
_QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|\"[^\"]*(?:\"|\Z)|“[^”]*(?:”|\Z)|„[^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)", re.DOTALL
)
_PASTED: Final = re.compile(r"^(?:[>|$%#+@{\[<]|\t| {4}|[A-Z]{3,}\b:).*", re.MULTILINE)
_SENTENCE: Final = re.compile(r"[^\n]+?(?:[.!?](?=\s|$)|(?=\n|$))")
_QUOTE: Final = "\x00"


def corrections_in(runs: Sequence[Trajectory], /) -> list[str]:
    """The rules that the person said in one session after the agent had begun to act, at most two, the first ones."""
    said = (rule for text in _said(runs) for rule in rules_in(text))
    return list(dict.fromkeys(said))[:_MOST]


def _said(runs: Sequence[Trajectory]) -> Iterator[str]:
    has_acted = False
    for step in (step for run in runs for step in run.steps):
        has_acted = has_acted or bool(step.action.calls)
        if has_acted:
            yield from (seen.text for seen in step.observations if seen.source == "user")


def rules_in(text: str, /) -> Iterator[str]:
    """The sentences of what a person said that are rules of the repository."""
    if len(text) > _LONGEST_TURN or text.lstrip().startswith(("/", "<")):
        return
    bare = text.replace("’", "'")
    for pasted in (_QUOTED, _PASTED):
        bare = pasted.sub(lambda match: _QUOTE * len(match[0]), bare)
    for match in _SENTENCE.finditer(bare):
        rule = _RULE.match(bare, match.start(), match.end())
        if rule is None or _OF_NOW.search(bare, rule.start("rule"), match.end()):
            continue
        sentence = text[rule.start("rule") : match.end()].strip()
        if len(sentence) <= _LONGEST:
            yield sentence
