"""Records as few bytes: their JSON, deflated against the field names that every record has and common words."""

from __future__ import annotations

import zlib
from typing import Final

from lessonbank.errors import StoreUnavailable

_MARK: Final = b"\x03"
"""Names the present dictionary. Another dictionary needs another mark: what is packed must be readable for ever."""

_NAMES: Final = (
    b'"text":"","text_digest":"","lessons":[],"holdout":0.1,"retriever":"experience/lexical","space":null,"notes":[],"ca'
    b'ndidates":[{"lesson_id":"019","experience_id":"019","score":0.,"rank":1,"shown":true,"withheld":false,"probability'
    b'":0.1,"why":"the closest task"},{"kind":"settle","settlement":{"recall_id":"019","scope":"default","experience_i'
    b'd":"019","trajectory_ids":["019"],"outcome":"failure","reward":null,"confidence":1.0,"source":"judge","steps":0,'
    b'"usage":{"requests":0,"input_tokens":0,"output_tokens":0,"cost":null},"at":"2026-01-01T00:00:00.000000Z"}}{"kind'
    b'":"retire","lesson_ids":["019"],"reason":""}{"kind":"merge","source_lesson_ids":["019"],{"kind":"replace","experienc'
    b'e":{"id":"019","scope":"default","task":"the order of the user with and for all a not is before check when page '
    b'list first after file test","lessons":[{"id":"019","title":"","description":"When the ","content":"If the ","kind"'
    b':"guardrail","retired":false,"state":"probation","risk":null,"created_at":"2026-01-01T00:00:00.000000Z","provena'
    b'nce":{"writer":"learn","method":"llm","trajectory_ids":["019"],"verdict":"failure","verdict_source":"ground_trut'
    b'h","prompts":[{"id":"general/extract_success","version":"1","digest":""}],"model":null,"package_version":"0.1.0"'
    b',"evidence":["step 1"]}}],"attempts":[{"trajectory_id":"019","verdict":{"outcome":"success","confidence":1.0,"re'
    b'ason":"","source":"ground_truth","reward":1.0,"model":null,"prompt":null,"usage":{"requests":0,"input_tokens":0,'
    b'"output_tokens":0,"cost":null}},"n_steps":1}],"rejected":[],"created_at":"2026-01-01T00:00:00.000000Z","metadata'
    b'":{}}}{"kind":"add","experience":{"id":"019","scope":"default","task":"","lessons":[{"id":"019","title":"","descri'
    b'ption":"","content":"","kind":"strategy","retired":false,"state":"probation","risk":null,"created_at":"2026-01-0'
    b'1T00:00:00.000000Z","provenance":{"writer":"learn","method":"llm","trajectory_ids":[],"verdict":"unknown","verdi'
    b'ct_source":"judge","prompts":[],"model":null,"package_version":"","evidence":[]}}],"attempts":[],"rejected":[],"'
    b'created_at":"2026-01-01T00:00:00.000000Z","metadata":{}}}'
)
_ENGLISH: Final = b" ".join(
    (
        b"accept active add address agent agree allow already amount answer appear archive area arrive assign attach",
        b"attempt author average avoid batch begin bill block board book border bottom bring broken budget build",
        b"business busy button calendar call carry case cause center chance character chart choice city class clean",
        b"client close cloud code collect color come company computer consider contract control convert copy cost",
        b"country course cover crash critical cross current daily damage danger deal declare deep define degree depend",
        b"deploy design desk device direct discount divide domain double draft draw drive drop duplicate duty edge",
        b"effect effort eight empty enable energy engine equal estimate event evidence expect expense expensive expire",
        b"export express extra face fact fall family fast fee feel field fight fill fix flag flight floor focus force",
        b"forget forward four frame free fresh front full game gate get global goal good great green grid group grow",
        b"guard guess guide half although another anything application approach argument around available balance",
        b"because becomes before beginning between branch browser cancel category certain change changed changes",
        b"charge checked choose clear click column command comment commit common compare complete condition",
        b"configuration confirm confirmed connection contains content context correct could count create created",
        b"credit current customer database date decide default delete delivery department description detail details",
        b"different difference directory document does doing done download during each early edit either element email",
        b"empty enough ensure enter entry error even event every exact exactly example except exchange exist exists",
        b"expected explain explicit failed fails failing false field filter final finally find finish five folder",
        b"follow following format forms found function further general given going group handle happens have having",
        b"here history hours however identify immediately import important include included information input inside",
        b"instead instruction interface issue itself just keep known label language large last later latest leave less",
        b"letter level like likely limit line link list local location login look looks made main make makes making",
        b"manager many match matching matters means member menu message method might minute missing module moment",
        b"month more most move multiple must name need needed needs never next nothing notice number object obtain",
        b"offer often once only open opened operation option options original other others otherwise outside output",
        b"over owner package parameter part particular pass password path pattern payment people period permission",
        b"place plan please point policy position possible post prefer present previous price print problem process",
        b"product profile program project prompt provide purchase question quick quickly quote rather reach read ready",
        b"real reason receive recent record refund related relevant remain remember remove repeat replace report",
        b"repository request require required requirement reservation reset resolve response result results return",
        b"returned review right root rule running same save scope script search second section select selected send",
        b"sent separate sequence server service session setting settings several shipping short should show shown",
        b"similar simple since single site size small some something sometimes sort source specific stack start state",
        b"statement status step steps still stop store string structure submit success successful such suggest support",
        b"sure switch system table take target task team tell test tests text than that their them then there these",
        b"they thing think this those though three through ticket time times title today together total track",
        b"transaction true trust try turn type under understand unless until update updated usage used user users",
        b"using usually valid value values variable verify version view visible wait want warning website well were",
        b"what whatever when where whether which while whole will window with within without word work works would",
        b"write written wrong year yes your",
        b". Please . After . Before . When . If . The . Use . Check . Do not . Never . Always . Make sure , "
        b"because , and , but , so that , which  of the  in the  to the  on the  for the  from the  with the  and "
        b"the  by the  at the  is the  that the  as the  into the  until the  is not  does not  do not  can not  "
        b"it is  there is  they are  has been  have to  needs to  how to  instead of  as well as  rather than  at "
        b"least  each of  one of  all of  more than  less than  number of  such as  even if  out of  up to  what "
        b"is   ",
    )
)
"""The most common ones last: what lies near costs the fewest bits. Files are written with these very bytes."""
_RECEIPT: Final = (
    b'"holdout":0.1,"control":false,"control_probability":0.1,"retriever":"experience/dense","space":"'
    b'sentence-transformers:\\n~~~\\n<<<end lessons ,"text_digest":"","lessons":[],"candidates":['
    b'{"lesson_id":"01a","experience_id":"01a","score":0.7,"rank":1,"shown":true,"placed":true,"withheld":false,"probability":0.1,'
    b'"why":"its task scored 0.7"},{"lesson_id":"01a'
)
_WORDS: Final = b"".join((_ENGLISH, _RECEIPT, _NAMES))
_LONG: Final = 8192
"""Bytes from which a record is worth a window of its own: short ones start from a copy that has read the names."""
_short: Final = zlib.compressobj(3, zlib.DEFLATED, -13, 5, zlib.Z_DEFAULT_STRATEGY, _WORDS)
"""Searching longer (level 4) takes a tenth more time and saves no byte of a usual record."""


def packed(text: str, /) -> bytes:
    """The bytes that stand for a record's JSON."""
    data = text.encode()
    if len(data) < _LONG:
        deflate = _short.copy()
    else:
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, _WORDS)
    return b"".join((_MARK, deflate.compress(data), deflate.flush()))


def unpacked(data: bytes, /) -> bytes:
    """The inverse of `packed`, as UTF-8.

    Raises:
        StoreUnavailable: the bytes are damaged.
    """
    try:
        inflate = zlib.decompressobj(-15, _WORDS)
        text = inflate.decompress(data[1:])
    except (zlib.error, TypeError) as error:  # a column of SQLite may hold a text or a number: whatever somebody put
        raise StoreUnavailable(f"a kept record cannot be unpacked ({error}): restore a backup") from None
    if data[:1] != _MARK or not inflate.eof:
        raise StoreUnavailable("a kept record cannot be unpacked (it is cut off): restore a backup")
    return text
