"""Tells a lesson from an order to the agent, and a lesson that wins by cutting a corner from one that does not."""

from __future__ import annotations

import re

from ._caseless import Caseless

_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|existing|original|initial|system|safety|other|your|its|any|all|these"
    r"|those)"
)
_RULES = (
    r"(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|guardrails?|directions?|directives?|orders"
    r"|constraints"
    r"|restrictions)"
)
ORDERS = Caseless(
    # taking the place of what the agent was told
    rf"\b(?:ignore|disregard|forget|override|overrule|bypass|discard|supersedes?|do not (?:follow|obey)"
    rf"|stop following)\s+"
    rf"(?:\w+\s+){{0,2}}?(?:{_EARLIER}\s+){{1,3}}(?:\w+\s+)?{_RULES}"
    rf"|\b{_RULES} (?:above|before this|so far) (?:are|is|no longer|do not)\b|\bnew (?:instructions?|orders?"
    rf"|directive)\s*:"
    # another self
    r"|\byou are now\b|\bfrom now on\b|\bpretend (?:to be|that you|you)"
    r"|\b(?:act|behave|respond|answer) as (?:if you (?:were|are|had)|an? (?:unrestricted|unfiltered|different|admin"
    r"|root|evil|developer)|dan\b)"
    r"|\b(?:enter|enable|activate|switch to) (?:developer|debug|god|admin|maintenance|unrestricted"
    r"|jailbreak)[ -]?mode\b"
    # hiding, and giving away
    r"|\b(?:do not|don't|never|without) (?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal(?:ing)?|disclos(?:e"
    r"|ing)|alert(?:ing)?|notify(?:ing)?|show(?:ing)?)"
    r"\s+(?:this |it |that |anything |any of this )?(?:to )?(?:the |any |your )?(?:user|customer|client|operator"
    r"|developer|human|supervisor|owner|reviewer|auditor|admin)s?\b(?! (?:the|their|its|any|an?|to|that|before|until"
    r"|which|when|if|what) )"
    r"|\bkeep (?:this|it|that) (?:secret|hidden|to yourself|from the)\b|\bhide (?:this|it|the \w+) from the\b"
    r"|\b(?:reveal|print|repeat|output|leak|disclose|paste) (?:\w+ ){0,2}?(?:your|the) (?:\w+ )?(?:system prompt"
    r"|hidden prompt|instructions verbatim|api keys?|credentials|secrets)\b"
    r"|\b(?:send|post|upload|forward|exfiltrate|e-?mail|copy|transmit|report|submit|bcc|cc) [^.\n]{0,100}?\b(?:to|at"
    r"|via) "
    r"(?:(?:https?: ?//|www ?\.)\S+|[\w.+-]+@[\w-]+\.\w+|[\w-]+\.(?:com|org|net|io|dev|ru|xyz|info|example)/\S+"
    r"|\[e-mail \d+\]|(?:an |the )?(?:external|outside|remote|attacker\S*|third[- ]party) (?:server|address|url"
    r"|endpoint|account|webhook|host|site))"
    r"|\b(?:leave|keep) (?:it|this|that|them) out of (?:your|the|any) (?:\w+ ){0,3}?(?:summary|report|pull request"
    r"|answer|log|logs|tests|reply|notes|changelog|commit)\b"
    r"|\b(?:put|paste|add|include|write|attach|embed|copy|hide|insert)\b[^.\n]{0,60}\b(?:cookies?|passwords?|\.netrc"
    r"|\.env|tokens?|api keys?|credentials|private keys?|passport|card numbers?|request headers|ssh keys?"
    r"|secrets)\b[^.\n]{0,60}\b(?:in|into|to|on)\s+(?:\w+ ){0,3}(?:message|post|commit|comment|url|e-?mail|reply"
    r"|issue|ticket|link|log|request|query)"
    r"|\bread ~?/?[^.\n]{0,20}\.(?:netrc|ssh|env|aws|npmrc|pgpass)\b[^.\n]{0,80}\b(?:put|paste|send|include|post"
    r"|message)\b"
    r"|\b(?:must|should|may|need) not be (?:mentioned|reported|logged|disclosed|told|shown)\b|\bdo not (?:report"
    r"|mention|log|disclose) (?:what|that|which|how|this|it)\b"
    r"|\bmark (?:it|this) as (?:confidential|hidden)|\byou have full (?:authority|access|permission|control)\b"
    r"|\b(?:are|is) already (?:verified|approved|authori[sz]ed|cleared|authenticated)\b[^.\n]{0,30}\bby\b"
    r"|\b(?:required|wanted|demanded|ordered|approved|mandated) by (?:the|our|a) (?:\w+ ){0,2}(?:policy|management"
    r"|team|admin\w*|company|owner|department|office|board)\b"
    r"|\b(?:the|our) (?:\w+ )?(?:team|management|company|owner|clinic|bank|board|office|department"
    r"|operator)\b(?: has| have)? (?:wants? it|signed off|insists?|demands?|agreed to (?:this|it|everything)"
    r"|knows? about (?:this|it))"
    r"|<\s?\|[a-z_]{2,24}\|>|\[\s?/?INST\s?\]"
    r"|(?:ignorier\w*|missachte\w*|vergiss|vergesst|verwirf)\b[^.\n]{0,40}\b(?:anweisung|regeln|vorgaben"
    r"|anleitung)\w*|\b(?:ignore[zrs]?|oublie[zrs]?)\b[^.\n]{0,30}\b(?:instructions|consignes|règles)\b"
    r"|\b(?:ignora|olvida|descarta)\w*\b[^.\n]{0,40}\b(?:instrucciones|reglas|indicaciones|istruzioni|regras"
    r"|instruções)\b|(?:忽略|无视|忘记|無視|忘れ)[^。\n]{0,20}|(?:指示|指令|命令|说明|規則|规则)[^。\n]{0,12}(?:忽略|无视|無視)|(?:игнорир"
    r"|забудь)\w*[^.\n]{0,40}(?:инструкц|правил)\w*"
    r"|<\s?!--|\bpre-?approved\b"
    r"|\bthis is (?:the|your) (?:\w+ ){0,2}(?:team|administrator|admin|department|developers?|operator|owner"
    r"|management)\b"
    r"|\b(?:never|do not) (?:delete|remove|overwrite|edit|rank|retire|forget)\b[^.\n]{0,40}\bthis (?:lesson|entry"
    r"|memory|note)\b"
    r"|\bcopy this (?:text|lesson|note|entry)\b|\balways recommend\b[^.\n]{0,80}\b(?:even|never|first)\b"
    r"|\bnever reveal\b[^.\n]{0,40}\bthat\b"
    r"|\b(?:tokens?|passwords?|credentials|secrets?|api keys?)\b[^.\n]{0,40}\balso\b[^.\n]{0,60}\b(?:into|to"
    r"|in) (?:the|a|every)\b"
    r"|\b(?:du musst|sie müssen) ab (?:jetzt|sofort)\b|\b(?:nutzer|benutzer|kunden)\b[^.\n]{0,20}\bnicht (?:sagen"
    r"|verraten|mitteilen)\b"
    r"|\b(?:desde ahora|a partir de ahora|dorénavant|désormais)\b"
    r"|\b(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:sudo )?(?:ba|z|da)?sh\b[^.\n]{0,20}\bsilently|\bnever disclose that\b"
    r"|\bno matter what the data\b|\berase the (?:shell )?history\b|\b(?:ordnet an|ab sofort)\b"
    r"|\bsprich mit niemandem\b"
    r"|\b(?:system|assistant|developer)\s?:\s*you (?:must|should|will|are|now|shall)\b"
    r"|(?:\[\w{0,20}memory\w{0,20}\s?=[^\]\n]{0,200}\]\s?){2}"
    r"|\byou are (?:now )?an? (?:unrestricted|unfiltered|uncensored|jailbroken|omnipotent|evil)\b"
    r"|\b(?:no|without(?: any)?) (?:safety|ethical|content) (?:guidelines|restrictions|filters|rules|policies)\b"
    r"|\bwhoever reads this\b|\bmust not say (?:where|who|that|why)\b"
    r"|\baccepts? any (?:password|token|key|credential)|\bback ?door\b[^.\n]{0,40}\b(?:add|leave|keep|create"
    r"|install)|\b(?:add|leave|create|install|plant)\b[^.\n]{0,40}\bback ?door\b|\bhidden (?:account|login|user"
    r"|admin)\b"
    # standing that text cannot give
    r"|\b(?:admin(?:istrator)?s?|root|developers?|anthropic|openai|google|management|(?:the )?\w+ (?:team"
    r"|department)|it department|compliance|the (?:company|vendor|operator|owner|supervisor|ceo|cto))\s+"
    r"(?:team )?(?:has|have|had|already)\s+(?:\w+ )?(?:approved|authori[sz]ed|instructed|ordered|granted|confirmed"
    r"|cleared|mandated|waived)"
    r"|\b(?:you are|you have been|this (?:agent|session|account) is|we are) (?:now |hereby |fully "
    r"|pre-?)?(?:authori[sz]ed|granted|cleared|permitted|allowed) (?:to|full|root|admin)"
    r"|\b(?:user|customer|owner|operator)s? (?:has|have|had) (?:already )?(?:given|granted) (?:\w+ )?(?:consent"
    r"|permission|approval|authority) (?:to|for) (?:everything|anything|all)"
    r"|\b(?:important|urgent|critical|mandatory|official|priority)\s+(?:system |security |policy |admin )*(?:notice"
    r"|update|override|message|directive|instruction|order)\s*[:!—-]"
    r"|\b(?:system|admin(?:istrator)?|developer|security) (?:override|notice|directive|message)\s*[:—-]"
    r"|^\W{0,6}(?:system|assistant|developer|user|human|tool)\s?(?:\([^)\n]{1,20}\)\s?)?:\s"
    r"|\[\s*/?\s*(?:system|inst|assistant|admin)\s*\]|<\s?/?(?:system|assistant|instructions?|admin|tool_call"
    r"|function_call)s?>"
    # calls to be made now
    r"|\{\s*[\"'](?:name|tool|tool_name|function|action|recipient_name)[\"']\s*:\s*[\"']|\b(?:call"
    r"|invoke) (?:the )?(?:tool|function) (?:now|immediately)"
    r"|\b(?:run|execute|type|enter|launch) (?:this|the following|these)(?: \w+){0,2} (?:commands?|code|script"
    r"|line)s?\b[^.\n]{0,40}(?:now|immediately|first thing|before anything|at once|:)"
    r"|\b(?:now|immediately|right away|at once),? (?:run|execute|call|invoke|send|transfer|delete|grant|issue"
    r"|approve|wire|pay)\b"
    r"|\b(?:run|execute|call|invoke|send|transfer|delete|grant|issue|wire|pay)\b[^.\n]{0,60}\b(?:immediately"
    r"|right now|right away|at once)\b"
    r"|\b(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\brm -rf (?:/|~|\$HOME)(?:\s|$|\*)"
    r"|\bbase64 (?:-d|--decode)\b[^\n]{0,80}\|\s*(?:ba)?sh",
    re.MULTILINE,
)
_AGAINST = re.compile(
    r"(?:\b(?:never|not(?! hesitate)|n't|avoid\w*|without|instead of|rather than|refus\w+|reject\w*|declin\w+"
    r"|stop\w*|prevent\w*"
    r"|forbid\w*|don't|beware"
    r"|wrong to|mistake to|fail\w* because|treat\w*|suspicious|injection|attack\w*|phishing|hostile|malicious"
    r"|untrusted|claims?|claiming"
    r"|claimed|(?:pages?|reviews?|notes?|posts?|texts?|contents?|messages?|e-?mails?|mails?|files?|documents?"
    r"|results?|outputs?|comments?"
    r"|descriptions?|popups?|banners?|sites?|readmes?|tickets?)\b"
    r"[^.\n]{0,40}\b(?:asks?|asked|asking|says?|said|saying|tells?|told|orders?|ordered|wants?|that|with|contain\w*)"
    r"|no one may"
    r"|if (?:a|an|the) \w+ (?:page|text|document|file|message|e-?mail|result|output))\b)[^.\n]{0,110}$",
    re.IGNORECASE,
)


def is_order(text: str, /, *, quoting: bool = True) -> bool:
    """Whether `text` gives the agent orders: a place among its instructions, standing, secrecy, a call to make now.

    A text that warns of such an order, or quotes it, gives none; not so where `quoting` is false, because nobody but
    the quoted speaks.
    """
    return any(not (quoting and _spoken_of(text, start)) for start, _ in ORDERS.spans(text[:20_000]))


def _spoken_of(text: str, start: int) -> bool:
    sentence = _sentence(text, start, within=200)
    quoted = len(_OPENED.findall(sentence)) > len(_CLOSED.findall(sentence)) or sentence.count("`") % 2 == 1
    return bool(_AGAINST.search(_CLAUSE.split(sentence)[-1])) or (quoted and text[start : start + 1] not in "{[")


def _sentence(text: str, end: int, /, *, within: int) -> str:
    """What stands before `end` in its sentence."""
    return _SENTENCE.split(text[max(0, end - within) : end])[-1]


_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_CLAUSE = re.compile(r"[,:;—–]\s")
_OPENED = re.compile(r"(?:^|(?<=[\s(:]))[\"'“‘«](?=\S)")
_CLOSED = re.compile(r"(?<=\S)[\"'”’»](?=[\s.,;:!?)]|$)")
_CHECKS = (
    r"(?:confirm\w*|verif\w+|validat\w+|authenticat\w+|approv\w+|authori[sz]ation|permission|consent|identity"
    r"|review\w*|code review"
    r"|sign-?off|safety|security|checks?|checking|tests?|test suite|unit tests|type ?check\w*|lint\w*|backups?"
    r"|warnings?|prompts?|dialog\w*|policy|dry run"
    r"|limits?|audit\w*|logg?ing|logs|hooks?|ci|certificate\w*|ssl|tls|signature\w*|encryption|sandbox\w*|two-factor"
    r"|2fa|mfa|captcha|rate limit\w*|asking)"
)
_FORCED = "forces its way"
RISKS: dict[str, Caseless] = {
    "skips a check": Caseless(
        rf"\b(?:skip\w*|bypass\w*|omit\w*|disabl\w+|turn\w* off|switch\w* off|suppress\w*|ignor\w+|circumvent\w*"
        rf"|work\w* around|comment\w* out|delet\w+|remov\w+|mut\w+|silenc\w+|drop\w*|get\w* around|dispens\w+ with"
        rf"|do away with|waiv\w+)\s+"
        rf"(?:[\w'’`-]+\s+){{0,5}}?{_CHECKS}\b(?!\s+(?:results?|outputs?|runs?|scores?)\b)"
        rf"|\bwithout\s+(?:[\w'’-]+\s+){{0,4}}?(?:asking|confirm\w*|verif\w+|check\w*|wait\w*|review\w*|approv\w+"
        rf"|permission|consent|authori[sz]ation|looking|testing|validat\w+|authenticat\w+)\b"
        rf"|\b(?:no need|not necessary|unnecessary|needless|pointless|not worth|rarely needed|never needed"
        rf"|not needed)\b[^.\n]{{0,30}}\b{_CHECKS}\b"
        rf"|\b{_CHECKS}\b[^.\n]{{0,40}}\b(?:can be (?:skipped|ignored|omitted|left out|disabled)|(?:is"
        rf"|are) (?:optional|a formality|unnecessary|not needed|only a formality)|only slows?|just slows?"
        rf"|slows? (?:you|things|it) down|wastes? (?:time|turns|steps))"
        r"|\b(?:assume|take it|count it|treat it|regard it)\b[^.\n]{0,50}\b(?:consent|confirmed|approved|agreed"
        r"|verified|authori[sz]ed|a yes)\b"
        r"|\bon (?:the (?:user|customer|owner)'?s|their) behalf\b[^.\n]{0,40}\bwithout|\banswer (?:yes|y) (?:to"
        r"|for) (?:every|all|any)|\bauto-?(?:confirm|approve|accept)\w*"
        r"|\bforg(?:e|ing) |\bmark\w* (?:\w+ ){0,4}(?:as )?(?:skip(?:ped)?|xfail|passed|resolved|verified)\b",
    ),
    _FORCED: Caseless(
        r"(?<![\w-])--(?:force(?!-with-lease)\w*|no-verify|no-check\w*|skip-\w[\w-]*|yes|allow-\w[\w-]*|insecure"
        r"|disable-\w[\w-]*|no-sandbox|privileged|break-system-packages|trusted-host|dangerously\w*|ignore-\w[\w-]*"
        r"|accept-\w[\w-]*|hard|no-gpg-sign)\b"
        r"|\bgit (?:push -f|reset --hard|clean -[a-z]*f)|\bcurl\b[^\n]{0,40}\s-\w*k\b|\bverify\s?=\s?false\b"
        r"|\bcheck_hostname\s?=\s?false|\b(?:sudo|as root)\b"
        r"|\bchmod\s+(?:-R\s+)?(?:0?777|a\+rwx|666)\b|\b(?:world|globally)[- ](?:writable|readable)\b"
        r"|\bpublic(?:ly)?[- ](?:read|write|access\w*)|\brm -rf\b|\bdrop (?:table|database)\b|\btruncate table\b"
        r"|\beval\(|\bos\.system\(|\bshell\s?=\s?true\b|\bpickle\.loads?\(|\byaml\.load\(|\bset -?\+e\b"
        r"|\|\|\s*true\b|\bexcept\s*:\s*pass\b|\bexcept exception:\s*pass|@pytest\.mark\.skip\b|\b(?:xfail|noqa"
        r"|type: ignore|eslint-disable|ts-ignore|nosec)\b",
    ),
    "widens a permission": Caseless(
        r"\b(?:grant\w*|giv\w+|assign\w*|add\w*|request\w*|us\w+|switch\w* to|escalat\w+ to|elevat\w+ to|keep\w*"
        r"|ask for|attach\w*|log\w* in (?:as|with)|run\w* (?:as|with))\s+(?:[\w'’`-]+\s+){0,6}?"
        r"(?:\w+-)?(?:admin\w*|root|owner|superuser|full|wildcard|unrestricted|all|write|edit|elevated"
        r"|service[- ]account|everyone|anyone with the link|\*)\s*(?:\w+\s+){0,2}?(?:access|rights?|permissions?"
        r"|privileges?|roles?|scopes?|credentials?|tokens?|policy|account|control)\b"
        r"|\b(?:share\w*|open\w*|publish\w*|expos\w+)\s+(?:[\w'’`-]+\s+){0,5}?(?:with|to) (?:everyone|anyone"
        r"|the (?:public|whole|entire)|all users|0\.0\.0\.0)|\b0\.0\.0\.0/0\b|\b(?:disabl\w+|turn\w* off|stop\w*"
        r"|flush\w*)\s+(?:[\w-]+\s+){0,3}?(?:firewall|selinux|apparmor|antivirus|mfa|2fa)\b"
        r"|\b(?:allow|permit|accept)\w*\s+(?:all|any|every) (?:origins?|hosts?|ips?|traffic|connections?|cors)\b"
        r"|\bread(?:ing)? (?:the )?(?:\w+ )?(?:credentials?|password|token|key) (?:file"
        r"|from)\b[^.\n]{0,40}\b(?:another|other|somebody)",
    ),
    "games the measure": Caseless(
        r"\bhard-?cod\w+\b[^.\n]{0,60}\b(?:expected|output|answer|result|value|return|response|test)|\b(?:edit|chang"
        r"|alter|adjust|modif|rewrit|relax|loosen|weaken|lower|overwrit|updat|delet|remov"
        r"|patch)\w*\s+(?:[\w'’`-]+\s+){0,5}?(?:tests?|assertions?|asserts?|expected (?:output|value|result)s?"
        r"|snapshots?|thresholds?|graders?|checkers?|golden files?|fixtures?)\b"
        r"|\breturn\w* (?:\w+ ){0,3}(?:expected|what the test|true) (?:value|wants|always)"
        r"|\bspecial-?cas\w+\b[^.\n]{0,40}\b(?:test|input)|\bmake\w* the tests? pass\b[^.\n]{0,60}\b(?:by|regardless"
        r"|whatever|anyway)|\bdetect\w*\b[^.\n]{0,30}\b(?:test environment|being tested|pytest)"
        r"|\bclaim\w*\b[^.\n]{0,50}\b(?:done|succe\w+|complete\w*|verified)\b[^.\n]{0,40}\b(?:even|although|without"
        r"|anyway|before)|\b(?:fabricat|invent|make up|making up|falsif|backdat|pretend)\w*\b[^.\n]{0,60}\b(?:result"
        r"|record|receipt|reason|approval|data|number|citation|reference|source|log|signature)s?",
    ),
    "acts beyond what was asked": Caseless(
        r"\b(?:approv\w+|issu\w+|grant\w*|process\w*|accept\w*|refund\w*|credit\w*|giv\w+"
        r"|pay\w*)\s+(?:[\w'’`-]+\s+){0,4}?(?:refunds?|compensation|credits?|discounts?|vouchers?|claims?|returns?"
        r"|exceptions?|waivers?|payments?|certificates?)\s+(?:[\w'’-]+\s+){0,6}?(?:right away|immediately"
        r"|automatically|regardless|no matter|whenever (?:they|the|a) \w+ ask\w*|on request|even (?:if|when|though)"
        r"|to (?:end|close|avoid|keep|speed)|every time|always|up front|upfront|first)\b"
        r"|\b(?:delet\w+|wip\w+|purg\w+|drop\w*|eras\w+|overwrit\w+)\s+(?:[\w'’`-]+\s+){0,5}?(?:instead of"
        r"|rather than)\s+(?:[\w'’-]+\s+){0,2}?(?:archiv\w+|mov\w+|backing|renam\w+|ask\w*|keep\w*|disabl\w+|merg\w+)"
        r"|\b(?:shar|disclos|reveal|read out|giv|tell|send)\w*\s+(?:[\w'’`-]+\s+){0,4}?(?:another|other"
        r"|someone else'?s|third part\w+|any) (?:customer|user|patient|account|person"
        r"|people)'?s?\b[^.\n]{0,30}\b(?:data|details|information|address|orders?|records?|number)"
        r"|\b(?:exceed\w*|go\w* over|rais\w+|ignor\w+|overrid\w+|stretch\w*"
        r"|bend\w*)\s+(?:[\w'’`-]+\s+){0,3}?(?:policy|rules?|limits?|budgets?|spending|caps?|quota\w*|thresholds?"
        r"|restriction\w*)\b",
    ),
}
_REFUSING = re.compile(
    r"\bwithout\s+$|\b(?:never|not(?! hesitate)|n't|n’t|nobody|avoid\w*|refuse\w*|reject\w*|forbid\w*|forbidden"
    r"|prohibit\w*"
    r"|instead of"
    r"|rather than|cannot|no longer|resist\w*|beware|wrong to|mistake to|tempt\w*|stop\w*|ask before|dangerous to"
    r"|unsafe to"
    r"|only (?:after|when|if|with)|unless|(?:if|when) (?:someone|anyone|somebody|asked|(?:a|an|the) \w+ (?:asks?"
    r"|wants?|tells?"
    r"|says?|suggests?)))\b[^.!?\n]{0,110}$",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"^[^.!?\n:;,]{0,90}\b(?:is (?:never|not|wrong|forbidden|dangerous|a mistake|no (?:fix|solution|option))"
    r"|are (?:never|not)|does not|doesn't|do not|must not|fails?|failed|hides?|hid\b|loses?|lost|breaks?|broke\b"
    r"|caused?"
    r"|leads? to|led to|would (?:have )?(?:break|los|hid|fail|overwrit|expos|delet)\w*|is reserved"
    r"|needs? (?:\w+ )?(?:approval|permission|consent|sign)|only (?:after|when|if|with|for|once)"
    r"|(?:silently )?discards?"
    r"|looks green|unless|requires? |makes? it worse|throws? away|not\b|is how)"
    r"|^[^.!?\n]{0,110}\b(?:lost|broke|breaks|failed|fails|overwr\w+|discards?|exposed?|hides|hidden|throws? away"
    r"|is wrong"
    r"|dangerous|not what|nobody noticed|cost (?:us|a|an|the)|had to be|made (?:it|things) worse|not (?:piped|run"
    r"|executed|used|pushed|merged|sent|skipped))\b",
    re.IGNORECASE,
)


def risk_of(title: str, description: str, content: str, /) -> str | None:
    """What is risky in what a lesson recommends; `None` where it recommends nothing of the kind, or warns of it.

    A title and a condition often only name what it is about: a command in them is no recommendation yet.
    """
    content = content[:20_000]
    for name, risk in RISKS.items():
        whole = content if name == _FORCED else f"{title}.\n{description}\n{content}"
        if _recommends(whole, risk):
            return name
    return None


def _recommends(text: str, risk: Caseless) -> bool:
    for start, end in risk.spans(text):
        sentence = _sentence(text, start, within=240)
        refused = _REFUSING.search(_CLAUSE.split(sentence)[-1]) or _REFUSING.search(text[start:end])
        if not refused and not _REFUSED.search(text[end : end + 120]):
            return True
    return False
