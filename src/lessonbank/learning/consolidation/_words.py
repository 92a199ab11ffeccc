"""English words as a comparison of advice needs them: which may go, which mean the same, which turn it around."""

from __future__ import annotations

import re
from typing import Final


def _set(words: str, /) -> frozenset[str]:
    return frozenset(words.split())


def _pairs(pairs: str, /) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair.split("/")) for pair in pairs.split())


GLUE: Final = _set(
    "a an the this that these those which is are be been being was were it its them they their you your we our i my"
    " will should must please just simply and then do does did has have also so there"
)
"""Words whose coming and going leaves advice as it is. Nothing that negates, counts, orders or compares is here."""

NEGATIONS: Final = _set(
    "not no never none nothing nobody nowhere neither nor without avoid avoids avoiding refuse refuses refrain prevent"
    " prevents stop stops skip skips omit ignore forbid forbidden neednot insteadof hardly"
    " nicht kein keine keinen nie niemals ohne ne pas jamais aucun sans nunca jamás ningún sin não nem sem non senza"
    " mai niet geen nooit zonder inte aldrig ikke aldri нельзя не нет никогда без"
)
"""What turns the words behind it into their opposite; the commonest of the larger European languages too."""

ORDERING: Final = _set("first second third then next finally afterwards afterward later last lastly step")
"""With one of these in a text, the order of its sentences is part of what it says."""

CONNECTORS: Final = _set(
    "before after if when whenever unless until while once because since where during in on at for from with without"
    " within by onlythen otherwise insteadof through via under inside"
)
"""Words that open a part of a sentence which may stand in front or behind."""

PROTECTED: Final = (
    NEGATIONS
    | ORDERING
    | CONNECTORS
    | _set(
        "to of or than as but only even all any some every both more most less fewer least over under above below up"
        " down out off into can could may might would always sometimes often again once twice same other another"
    )
)
"""Words that are equal or different, never a slip of the other."""

SAME: Final = {
    "cannot": "can not",
    "dont": "not",
    "never": "not",
    "utilize": "use",
    "utilizes": "uses",
    "utilizing": "using",
    "verify": "check",
    "verifies": "checks",
    "verifying": "checking",
    "select": "choose",
    "selects": "chooses",
    "selecting": "choosing",
    "pick": "choose",
    "display": "show",
    "displays": "shows",
    "each": "every",
    "immediately": "atonce",
    "till": "until",
    "because": "since",
    "database": "db",
    "databases": "dbs",
    "repository": "repo",
    "repositories": "repos",
    "configuration": "config",
    "directory": "folder",
    "directories": "folders",
    "upon": "on",
    "percent": "%",
    "teh": "the",
    "hte": "the",
    "adn": "and",
    "taht": "that",
    "thier": "their",
    "grey": "gray",
    "colour": "color",
    "colours": "colors",
    "behaviour": "behavior",
    "behaviours": "behaviors",
    "favourite": "favorite",
    "favour": "favor",
    "neighbour": "neighbor",
    "labour": "labor",
    "centre": "center",
    "metre": "meter",
    "metres": "meters",
    "centimetre": "centimeter",
    "centimetres": "centimeters",
    "kilometre": "kilometer",
    "kilometres": "kilometers",
    "litre": "liter",
    "litres": "liters",
    "cancelled": "canceled",
    "cancelling": "canceling",
    "labelled": "labeled",
    "labelling": "labeling",
    "travelling": "traveling",
    "modelling": "modeling",
    "catalogue": "catalog",
    "dialogue": "dialog",
    "licence": "license",
    "cheque": "check",
    "programme": "program",
    "analyse": "analyze",
    "analyses": "analyzes",
    "analysed": "analyzed",
    "analysing": "analyzing",
    "zero": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
}
"""One spelling, or one word, for what may stand for the same. Short on purpose: `hit` is no `press` in every house."""

_PHRASES: Final = (
    (r"won['’]t", "will not"),
    (r"(can)['’]t|cannot", "can not"),
    (r"(\w+)n['’]t", r"\1 not"),
    (r"not (?:need|have) to|need not", " neednot "),
    (r"do not ever", "never"),
    (r"needs? to|have to|has to", " "),
    (r"(?:make|be) sure(?: that| to)?", "ensure"),
    (r"in order to", "to"),
    (r"prior to", "before"),
    (r"instead of|rather than", " insteadof "),
    (r"only then", " onlythen "),
    (r"right away|at once|straight away", " atonce "),
    (r"every time", "whenever"),
    (r"e-mail", "email"),
    (r"click on", "click"),
    (r"as well as", "and"),
    (r"at least", " atleast "),
    (r"at most", " atmost "),
    (r"more than", " over "),
    (r"(?:less|fewer) than", " under "),
)
PHRASES: Final = tuple((re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), put) for pattern, put in _PHRASES)
"""Set phrases become one word before a text is cut into words. Whatever negates stays."""
ANY_PHRASE: Final = re.compile(rf"\b(?:{'|'.join(pattern for pattern, _ in _PHRASES)})\b", re.IGNORECASE)
"""Whether a text has any of them: most have none."""

UNITS: Final = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "second"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "hour"),
    **dict.fromkeys(("d", "day", "days"), "day"),
    **dict.fromkeys(("week", "weeks"), "week"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("year", "years"), "year"),
    **dict.fromkeys(("kb", "kilobytes"), "kb"),
    **dict.fromkeys(("mb", "megabytes"), "mb"),
    **dict.fromkeys(("gb", "gigabytes"), "gb"),
    **dict.fromkeys(("tb", "terabytes"), "tb"),
    **dict.fromkeys(("kg", "km", "cm", "mm", "m", "g", "px", "usd", "eur", "%", "$", "€", "£"), ""),
}
"""What a number may be followed by, and one name for it (its own where the name is empty)."""

ANTONYMS: Final = _pairs(
    "before/after first/last ascending/descending increase/decrease raise/lower high/low highest/lowest higher/lower"
    " top/bottom up/down upward/downward upwards/downwards left/right open/close enable/disable allow/forbid"
    " allow/deny accept/reject add/remove include/exclude insert/delete start/stop begin/end start/end early/late"
    " earlier/later earliest/latest old/new oldest/newest older/newer large/small larger/smaller largest/smallest"
    " big/small long/short longer/shorter more/less more/fewer most/least over/under above/below always/sometimes"
    " nothing/anything nothing/everything nobody/everybody none/every"
    " always/not all/none all/no all/only every/no some/no any/no only/even atleast/atmost min/max minimum/maximum"
    " public/private internal/external import/export upload/download push/pull read/write lock/unlock show/hide"
    " expand/collapse encode/decode encrypt/decrypt attach/detach mount/unmount sync/async online/offline"
    " narrow/broad narrowest/broadest wide/narrow slow/fast cheap/expensive cheapest/dearest ascend/descend"
    " success/failure pass/fail true/false yes/no on/off in/out with/without unless/if unless/only unless/when"
    " same/different inside/outside forward/backward odd/even primary/secondary grow/shrink trust/distrust"
    " keep/drop keep/delete keep/remove keep/discard buy/sell send/receive sender/recipient buyer/seller"
    " inner/outer local/remote stable/fluid good/bad best/worst better/worse loose/strict mean/median"
    " multiply/divide double/halve green/red many/once many/one minor/major wait/proceed rare/common full/empty"
    " approve/reject sign/unsign in/after since/until lock/release acquire/release gain/lose win/lose"
)

INTERCHANGEABLE: Final = _pairs("of/in in/into to/into on/upon in/inside in/within")
"""Prepositions that are exchanged without a change of meaning when nothing else changes."""

PREFIXES: Final = ("un", "in", "dis", "de", "non", "im", "ir", "mis")
"""In front of a word they make its opposite."""

CONFUSABLE: Final = _pairs(
    "retired/retried remainder/reminder hoisting/hosting coasting/costing resides/residues compiled/complied"
    " compiles/complies complaint/compliant perfect/prefect filed/filled loses/losses looser/loser looses/loses"
    " polices/policies striped/stripped deriving/driving automation/automaton multiples/multiplies tilted/titled"
    " rooster/roster relaying/relying arange/arrange tempfile/tmpfile realpath/relpath addopts/adopts"
    " united/untied casual/causal marital/martial sacred/scared singing/signing barely/barley silver/sliver"
    " later/latter desert/dessert diner/dinner planing/planning hoping/hopping taping/tapping mating/matting"
    " filing/filling striping/stripping scraping/scrapping baring/barring staring/starring wining/winning"
    " pining/pinning caning/canning planed/planned rated/ratted canon/cannon discus/discuss asses/assess"
    " biding/bidding poling/polling poled/polled poling/pooling sloping/slopping griping/gripping below/bellow"
    " super/supper siting/sitting fused/fussed planer/planner looped/loped rooted/roted bonding/bounding"
    " groping/grouping panting/painting lightening/lightning crating/creating braking/breaking caching/coaching"
    " relieved/relived discreet/discrete stats/status state/statue hosted/hoisted robbed/robed"
)
"""Words one slip of the keyboard apart, both of them right."""
