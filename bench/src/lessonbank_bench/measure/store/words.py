"""English that nowhere repeats itself: clauses with open places, and words, names and numbers to put there."""

from __future__ import annotations

from typing import Final


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


NOUNS: Final = _listed("""
account address agent airport alert amount answer application approval archive argument article assertion asset
attachment attribute audit author backup badge baggage balance banner basket batch billing block board booking border
branch browser budget buffer bug build button cabin cache calendar call campaign cancellation card cart case catalogue
category certificate change channel charge chart check checkout claim clause client cluster column command comment
commit company comparison compiler complaint condition configuration connection constraint contact container content
contract conversion cookie copy country coupon course crash credit currency cursor customer cycle dashboard database
deadline decision default delay delivery department dependency deposit description destination device difference
directory discount dispute document domain download draft driver duplicate editor element employee endpoint engine
entry environment error estimate evaluation event example exception exchange expense expression extension factor
failure fare feature fee field figure file filter fixture flag flight folder form format forum frame function gateway
grade graph group guest handler header history holiday host hotel identifier image import incident index input
insurance integration interface interval inventory invitation invoice issue lesson job journal journey key keyboard
label language laptop layer layout ledger length letter level library licence limit line link list listing loader
location lock log login loop luggage machine mailbox manual map margin market matrix measure meeting member memo menu
merchant message method metric migration milestone minute mirror mistake mode model module monitor month mount name
network node note notice notification number object observation offer office operator option order origin outage
outcome output overview owner package page panel parameter parent partition partner passenger password patch path
pattern payload payment penalty period permission person phone picture pipeline place plan platform player plugin
policy port position post preference premium price priority problem procedure process product profile project promise
prompt property proposal provider purchase quantity query question queue quota quote range rate reading reason receipt
recipient record refund region registry regulation release reminder rental replacement reply report repository request
requirement reservation resource response result return review revision reward role room root route routine row rule
sample schedule schema school score screen script season seat section segment selection sensor sentence sequence
series server service session setting shape shelf shipment shop signal signature site size slot snapshot socket
solution source space specification stack staff stage statement station status stock storage street string study
subject submission subscription summary supplier support survey switch symbol symptom system table tag target task tax
team template term test text theme threshold ticket timeout timer title token tool topic total track trade transaction
transfer translation traveller tree trial trigger trip type union unit update upgrade upload usage user validation
value variable vendor version view visit volume voucher wallet warehouse warning warranty week weight widget window
worker workflow workspace wrapper zone
""")

VERBS: Final = _listed("""
accept adjust allow announce apply approve arrange ask assign attach avoid balance block book bring build calculate
cancel capture change charge check choose clean clear close collect combine compare complete compute confirm connect
convert copy correct count create cut decide decline decode define delay delete deliver describe detect disable
distribute divide download draw drop edit enable encode enter escape estimate examine exclude execute expand expect
explain export express extend extract fetch fill filter find finish fix flag follow forward freeze gather generate get
grant group guess handle hide hold identify ignore import include increase index inspect install invert invite isolate
issue join keep label launch leave limit link list load locate lock look lower mark match measure mention merge
migrate modify monitor mount move mute name narrow notify obtain offer omit open order organise override parse pass
patch pause pay pick place plan postpone prefer prepare present preserve print process promise propose protect prove
provide publish pull push query quote raise reach read rebuild recall receive recompute record recover reduce refer
refine refresh refund refuse reject release reload remove rename render renew reopen repair repeat replace reply
report request reserve reset resolve restart restore restrict return reuse revert review revise rewrite rotate round
route run sample save scan schedule score search select send separate serve set settle share show sign skip solve sort
specify split start state stop store submit subtract suggest support suspend swap sync tag take test throttle trace
track translate trim trust try turn type undo unlock unpack update upgrade upload use validate verify visit wait warn
watch withdraw wrap write
""")

ADJECTIVES: Final = _listed("""
absent accurate active actual additional adjacent administrative affected alternative ambiguous annual anonymous
approximate automatic available basic better binary blank blocked broken busy careful central certain cheap chief
chronological circular clean clear closed cold common compatible complete complex concurrent conditional confidential
consistent constant correct corrupt critical current custom damaged deep default delayed dependent deprecated detailed
different digital direct distinct distributed domestic double duplicate dynamic early economic effective eligible
empty encrypted entire equal exact excessive exclusive existing expensive expired explicit external extra faint false
familiar fast faulty favourite final financial finite fixed flat flexible foreign formal former fragile free frequent
fresh full general generic global gradual granular half hidden high historic identical idle illegal immediate
immutable implicit important inactive incoming incomplete incorrect independent indirect initial inner instant intact
intermediate internal international invalid joint known large last late latest lazy legal likely linear local logical
long loose low main major manual mandatory marginal matching maximum mean minimal minor missing mixed mobile moderate
monthly multiple mutual narrow native near negative nested neutral next nominal normal null numeric obsolete obvious
odd official old online open optional ordinary original outdated outer outgoing overdue overlapping paid parallel
partial passive past pending perfect permanent personal physical plain plural polite positive possible preferred
preliminary premium present previous primary prior private probable proper protected public quick quiet random rare
raw ready real recent recursive redundant regional regular related relative reliable remote repeated required reserved
residual reverse rigid rough safe scheduled secondary secure sensitive separate serial severe shallow shared sharp
short silent similar simple single slow small smooth soft sorted sparse special specific stable stale standard static
steady strange strict strong subsequent sudden suitable suspicious symbolic technical temporary thin third tight tiny
typical unclear unexpected unique unknown unpaid unsafe unused upper urgent useful usual vague valid variable verbose
virtual visible warm weak weekly whole wide wrong
""")

CLAUSES: Final = tuple(
    line.strip()
    for line in """
the {noun} of {name} shows a {adjective} {noun} after {number}
{verb} the {adjective} {noun} before you {verb} any {noun}
do not {verb} the {noun} until its {noun} is {adjective}
when {name} asks to {verb} a {noun}, {verb} the {adjective} {noun} first
a {adjective} {noun} means that {name} could not {verb} the {noun}
{verb} {number} of them and {verb} the rest with the {noun}
if the {noun} is {adjective}, {verb} it; otherwise {verb} the {noun}
they want to {verb} a {noun} in {name} without a {adjective} {noun}
only the {adjective} {noun} may {verb} more than {number}
{name} says the {noun} was {adjective} and would like to {verb} it
never {verb} {name} by its {noun}: the {adjective} one has no {noun}
look at the {noun} and the {noun}, then {verb} whichever is {adjective}
it helps to {verb} every {noun} that {name} has, one {noun} at a time
because the {noun} stayed {adjective}, we had to {verb} {number}
find out why {name} cannot {verb} its {adjective} {noun}
for a {adjective} {noun}, {verb} with {number} and {verb} again
please {verb} the {noun} from {name} to {name} and {verb} the {noun}
the tool returns a {adjective} {noun}; {verb} it into a {noun}
there are two ways to {verb} this {noun}, and {name} needs the {adjective} one
after each {noun} {verb} the {noun}, since {number} is {adjective}
can you {verb} {number} for {name} while the {noun} is {adjective}
what is {adjective} about a {noun} is rarely what will {verb} the {noun}
{verb} less: a {adjective} {noun} already tells {name} which {noun} to {verb}
our {noun} must {verb} {name} even though its {noun} looks {adjective}
write down the {noun} number {number} so that others can {verb} it
""".strip().splitlines()
)

_SYLLABLES: Final = _listed("""
ba be bo bra ca ce co cu da del den do dra el en er fa fen fi ga gar glen go gra ha har hel in is ja jo ka kel ker ki
la lan len li lo ma mar men mi mo na nel ni no or os pa pel po ra ren ri ro sa sel sha si so sta ta tel ten ti to tra
va ven vi vo wa wel wen wi ya yo za zen
""")


def name(number: int) -> str:
    """One of about 900,000 made-up names: most are seen once or twice, as in a year of work."""
    many = len(_SYLLABLES)
    parts = (number % many, number // many % many, number // many // many % many)
    return "".join(_SYLLABLES[part] for part in parts[: 2 + number % 2]).capitalize()


def figure(number: int) -> str:
    """A number as people write them: an amount, a code, a date, a version, a plain count."""
    kinds = (
        f"${number % 4000}",
        f"W{number % 9_999_991:07d}",
        f"May {number % 31 + 1}",
        f"{number % 9}.{number % 23}.1",
    )
    return kinds[number % 5] if number % 5 < 4 else f"{number % 800}"
