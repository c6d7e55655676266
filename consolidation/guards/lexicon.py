"""The words that guards know. Apart from EQUIVALENT and PHRASES they only name an objection; they never prevent one."""

from collections.abc import Mapping
from itertools import combinations, product
from typing import Final


def words(text: str) -> frozenset[str]:
    """The words of a list written as prose."""
    return frozenset(text.split())


def table(text: str) -> Mapping[str, str]:
    """'canon: word word; canon: word', as word -> canon."""
    rows = (row.split(":") for row in text.split(";"))
    return {word: canon.strip() for canon, variants in rows for word in variants.split()}


# --- what is the same ------------------------------------------------------------------------------------------------

# The only entries that let a difference pass: words that are exchangeable wherever both make sense.

EQUIVALENT: Final = table("""
    someone: somebody; everyone: everybody; anyone: anybody; no-one: nobody noone; child: kid; children: kids;
    gray: grey; color: colour; colors: colours; colored: coloured;
    favorite: favourite; favorites: favourites; flavor: flavour; neighbor: neighbour; neighbors: neighbours;
    neighborhood: neighbourhood; center: centre; theater: theatre; program: programme; traveling: travelling;
    traveled: travelled; canceled: cancelled; organize: organise; organized: organised; organizes: organises;
    organizing: organising; recognize: recognise; realize: realise; realized: realised; apologized: apologised;
    among: amongst; while: whilst; toward: towards; until: till til; okay: ok; tv: television telly;
    phone: telephone; photo: photograph; photos: photographs; movie: film; movies: films; sofa: couch;
    car: automobile; email: e-mail; emails: e-mails; website: web-site; mom: mum; mother: mommy mama;
    dad: daddy papa; buy: purchase; buys: purchases; bought: purchased; buying: purchasing;
    begin: start; begins: starts; began: started; beginning: starting; located: situated; speaking: talking;
    often: frequently; also: additionally; percent: pct;
    monday: mon; tuesday: tue tues; thursday: thu thur thurs; friday: fri
""")
# Units by their written-out names; read as units only right after a number.
_UNITS = table("""
    km: kilometer kilometers kilometre kilometres kms; m: meter meters metre metres;
    cm: centimeter centimeters centimetre centimetres; mm: millimeter millimeters millimetre millimetres;
    mile: miles mi; ft: foot feet; inch: inches; yard: yards yd; kg: kilogram kilograms kilo kilos kgs;
    g: gram grams; mg: milligram milligrams; lb: lbs; pound: pounds; oz: ounce ounces; l: liter liters litre litres;
    ml: milliliter milliliters millilitre millilitres; gallon: gallons; hour: hours hr hrs; minute: minutes min mins;
    second: seconds sec secs; ms: millisecond milliseconds; day: days; week: weeks wk wks; month: months;
    year: years yr yrs; gb: gigabyte gigabytes; mb: megabyte megabytes; tb: terabyte terabytes;
    kb: kilobyte kilobytes; %: percent pct; degree: degrees; dollar: dollars; euro: euros; cent: cents; am: am;
    pm: pm; million: million; billion: billion; hundred: hundred; thousand: thousand; dozen: dozen dozens;
    time: times
""")
UNITS: Final = {**{canon: canon for canon in _UNITS.values()}, **_UNITS}

# Longest first within a beginning. Read after EQUIVALENT. Not remembering is forgetting, so the first rows are no
# denials; those whose right side is one word only keep the words together, for the guards to name.
PHRASES: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = tuple(
    (tuple(old.split()), tuple(new.split()))
    for old, new in (
        ("do not forget", "remember"),
        ("does not forget", "remembers"),
        ("did not forget", "remembered"),
        ("must not forget", "must remember"),
        ("should not forget", "should remember"),
        ("will not forget", "will remember"),
        ("never forget", "always remember"),
        ("never forgets", "always remembers"),
        ("never forgot", "always remembered"),
        ("in order to", "to"),
        ("a lot of", "many"),
        ("lots of", "many"),
        ("a number of", "several"),
        ("has got", "has"),
        ("in front of", "in-front-of"),
        ("in case", "in-case"),
        ("instead of", "instead-of"),
        ("rather than", "rather-than"),
        ("used to", "used-to"),
        ("no longer", "no-longer"),
        ("not any longer", "no-longer"),
        ("not anymore", "no-longer"),
        ("at least", "at-least"),
        ("at most", "at-most"),
        ("no more than", "at-most"),
        ("no less than", "at-least"),
        ("no fewer than", "at-least"),
        ("more than", "more-than"),
        ("less than", "less-than"),
        ("fewer than", "less-than"),
        ("up to", "up-to"),
        ("about to", "about-to"),
        ("next to", "next-to"),
        ("each other", "each-other"),
        ("as long as", "as-long-as"),
        ("even if", "even-if"),
        ("only if", "only-if"),
        ("as if", "as-if"),
    )
)

# What a person comes to be, or is already: 'has got fired' is not 'has fired', 'she's left' is not 'she is left'.
PARTICIPLES: Final = words(
    "left hit cut put shut set read hurt beat beaten done gone shot bitten hidden stuck stung swung hung bet split "
    "spread burst quit rid fed bled led laid slain torn sworn blown shown known thrown drawn grown flown woken given "
    "taken eaten written driven ridden spoken stolen broken frozen chosen fallen forgotten forgiven shaken proven"
)
# These tell how somebody or something is, whichever way they came to it.
STATES: Final = words(
    "married divorced engaged retired tired bored excited interested worried scared surprised pleased confused "
    "relaxed stressed supposed allowed located situated based named called born broken related used"
)

# After these 'that' may be said or left out, where a pronoun follows: 'says that she'; not in 'knows that man'.
SAYING: Final = words(
    "said say says saying mentioned mentions mention believes believe believed thinks think thought feels felt "
    "knows know knew hopes hope hoped told explained explains noted notes reported reports announced claimed "
    "claims stated states found finds realized revealed admits admitted agreed agrees suggested suggests"
)
PRONOUN: Final = words("i you he she it we they there")
HARMLESS: Final = words("also")  # unless something is denied or limited: 'not only ... but also'

# --- what a word is about --------------------------------------------------------------------------------------------

NEGATION: Final = words(
    "not no never none nobody no-one nothing nowhere neither nor without ain't cannot hardly scarcely barely "
    "rarely seldom except fail fails failed failing refuse refuses refused refusing deny denies denied lack lacks "
    "lacked lacking avoid avoids avoided avoiding unable no-longer nope n't stop stops stopped stopping "
    "quit quits cease ceases ceased prevent prevents prevented neglect neglects neglected instead-of rather-than "
    "aint mustnt neednt shant mightnt oughtnt absent absence abandon abandons abandoned forbid forbids forbade "
    "forbidden prohibited banned cancelled canceled"
)
# 'a' and 'the' reach the guards only where they matter: a few, the only one.
QUANTIFIER: Final = words(
    "all every each both either some any many much few little several most least more ~ less fewer none only just "
    "always usually normally often sometimes occasionally ever rarely never once twice thrice again half double "
    "single enough mostly mainly partly entirely completely totally fully almost nearly whole lot bit couple pair "
    "other dozens hundreds thousands millions majority minority constantly regularly infrequently everywhere "
    "somewhere anywhere another same different at-least at-most more-than less-than up-to exactly roughly "
    "approximately around everyone everything anyone anything someone something last max maximum minimum solely "
    "merely alone together a the quarter third thirds triple entire total rest numerous countless scarcely hardly "
    "barely seldom frequently no-one nothing nowhere somebody anybody everybody nobody neither"
)
HEDGE: Final = words(
    "might may can could would should must shall ought maybe perhaps probably possibly likely unlikely presumably "
    "apparently allegedly reportedly supposedly seem seems seemed appear appears appeared if unless whether when "
    "whenever provided providing assuming although though despite because plan plans planned planning want wants "
    "wanted wanting wish wishes wished hope hopes hoped hoping intend intends intended intending consider considers "
    "considered considering think thinks thought thinking try tries tried trying aim aims dream dreams expect expects "
    "expected believe believes believed claim claims claimed guess about-to willing ready need needs needed suppose "
    "supposed prefer prefers could've potentially hypothetically eventually in-case as-long-as even-if only-if as-if "
    "once until rumoured rumored tentatively conditionally certain certainly definitely surely sure supposes suspects "
    "suspected suspect doubts doubt doubted undoubtedly arguably possible probable potential attempt attempts "
    "attempted decide decides decided otherwise except depending depends"
)
# What an addition may not hold if the poorer text is still to be true.
RESTRICTING: Final = NEGATION | words(
    "no, if unless whether might may can could would should maybe perhaps probably possibly likely unlikely allegedly "
    "apparently reportedly supposedly seem seems seemed appears appeared only almost nearly half few less fewer "
    "sometimes occasionally until used-to formerly former once previously plan plans planned planning want wants "
    "wanted hope hopes hoped try tries tried intend intends intended consider considers considered considering but "
    "however although though yet instead other than against turned declined rejected"
)
TENSE: Final = words(
    "is was are were has had have will been being be am do did used-to no-longer formerly previously earlier former "
    "ex once still already yet anymore now currently today nowadays recently lately soon later then ago since going "
    "gonna originally initially"
)
MONTHS: Final = {
    **{name: name[:3] for name in words("january february march april may june july august october november december")},
    "september": "sep",
    "sept": "sep",
    **{name: name for name in words("jan feb mar apr jun jul aug sep oct nov dec")},
}
DAYS: Final = words(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays "
    "saturdays sundays mon tue tues wed thu thur thurs fri sat sun"
)
DATE: Final = DAYS | words(
    "january february april june july august september october november december today tomorrow yesterday tonight "
    "morning afternoon evening noon midnight daily weekly monthly yearly annually weekend weekends weekday "
    "weekdays spring summer autumn winter christmas easter next last day days week weeks month months year years "
    "hour hours minute minutes second seconds decade decades century centuries am pm dawn dusk breakfast lunch dinner "
    "fortnight fortnights o'clock nightly hourly sunrise sunset bedtime lunchtime biweekly bimonthly"
)
DIRECTION: Final = words(
    "from to into onto before after above below beneath over under in inside outside out within on off upon up down "
    "with without by for against toward through across along past since until during near beside behind in-front-of "
    "next-to between among around at of as than underneath amid opposite left right north south east west northern "
    "southern eastern western forward forwards backward backwards back away upstairs downstairs via per beyond "
    "despite about like northeast northwest southeast southwest northbound southbound eastbound westbound inbound "
    "outbound uphill downhill upstream downstream northward southward eastward westward clockwise counterclockwise"
)
OPPOSITE_DIRECTIONS: Final = frozenset(
    frozenset(pair.split("/"))
    for pair in words(
        "from/to into/out onto/off outside/indoors inside/outdoors before/after "
        "above/below over/under in/out inside/outside on/off up/down with/without "
        "for/against since/until left/right north/south east/west northern/southern eastern/western "
        "forward/backward forwards/backwards upstairs/downstairs behind/in-front-of into/from to/away "
        "toward/from by/for by/to of/by northeast/southwest northwest/southeast northbound/southbound "
        "eastbound/westbound inbound/outbound uphill/downhill upstream/downstream northward/southward "
        "eastward/westward clockwise/counterclockwise underneath/above beneath/above until/after until/before"
    )
)

# --- what excludes what ----------------------------------------------------------------------------------------------

# Each group: words of which no two can hold of one thing; with '~', the left one and any of the right ones cannot.
# Compared by stem.
_EXCLUSIVE = """
    always ~ never sometimes rarely often seldom usually / never ~ sometimes rarely often seldom usually / rarely ~
    often usually / seldom ~ often usually / sometimes ~ usually / all none some / everyone no-one someone / everything
    nothing something / everywhere nowhere / many few / much little / more less fewer / most least / before after
    during / earlier later / early late / first last / old new / old young / modern ancient / increase ~ decrease
    reduce / rise fall / rise drop / grow shrink / gain lose / win lose draw / like ~ dislike hate / love ~ hate
    dislike / enjoy ~ hate dislike dread / admire despise / accept ~ reject refuse decline / agree disagree / allow ~
    forbid prohibit ban / permit ~ forbid prohibit ban / approve reject / approve disapprove / arrive ~ leave depart /
    ascend descend / attack defend / attract repel / begin ~ end finish stop / open ~ close shut / borrow lend / buy
    sell / build ~ destroy demolish / catch throw / come go / connect disconnect / continue stop / create destroy / cry
    laugh / deny ~ admit confirm / die live / born die / enter ~ exit leave / enable disable / exclude include / expand
    contract / fail succeed / fail pass / find lose / float sink / forget remember / freeze melt / give ~ take receive
    get / guilty innocent / help hinder / hire fire / import export / join leave / keep discard / land launch / lock
    unlock / marry divorce / mend break / fix break / pull push / put remove / add remove / add subtract / put take /
    raise lower / save spend / save waste / send receive / ask answer / teach learn / sit stand / sleep wake / asleep
    awake / speed slow / start ~ stop end / strengthen weaken / support oppose / trust distrust / walk run / wake sleep
    / work rest / encourage discourage / improve worsen / gained lost / active ~ inactive passive / alive dead / good ~
    bad terrible / great ~ bad terrible / better worse / best worst / good poor / beautiful ugly / big ~ small little
    tiny / huge tiny / bitter sweet sour / bold timid / brave cowardly / bright dim / bright dark / light dark / light
    heavy / calm anxious / calm excited / calm stressful / careful careless / cheap expensive / clean dirty / clear
    cloudy / clever stupid / cold ~ hot warm / hot ~ cool / comfortable uncomfortable / common rare / complex simple /
    cruel kind / dangerous safe / deep shallow / difficult easy / hard easy / hard soft / dry wet / empty full / equal
    unequal / exciting boring / excited bored / fair unfair / famous unknown / far near / far close / fast slow / fat
    thin / female male / formal informal / fresh stale / friend enemy / friendly hostile / generous stingy / happy ~
    sad unhappy / glad sad / positive negative / healthy ~ sick ill unhealthy / hero villain / high low / honest
    dishonest / hopeful hopeless / indoor outdoor / indoors outdoors / inner outer / interesting boring / interior
    exterior / internal external / junior senior / large small / lazy diligent / legal illegal / long short / loose
    tight / loud quiet / lucky unlucky / major minor / married ~ single divorced / mature immature / maximum minimum /
    narrow wide / natural artificial / near far / noisy quiet / normal strange / odd even / optimistic pessimistic /
    peaceful violent / permanent temporary / polite rude / possible impossible / powerful weak / present absent /
    private public / proud ashamed / public secret / pure impure / rich poor / rough smooth / rural urban / same
    different / sharp blunt / single multiple / smart stupid / smooth rough / strict lenient / strong weak / successful
    unsuccessful / sunny ~ rainy cloudy / tall short / thick thin / tidy messy / tired energetic / true false / vague
    precise / vacant occupied / valid invalid / visible invisible / wild tame / wise foolish / winner loser / worried
    relaxed / stressed relaxed / wrong right / correct incorrect / yes no / left right / north south east west /
    northern southern eastern western / top bottom middle / front back side / upper lower / inside outside / above
    below / over under / up down / on off / ahead behind / here there / day night / morning afternoon evening night /
    today tomorrow yesterday / spring summer autumn winter / breakfast lunch dinner / man ~ woman girl / boy ~ woman
    girl / men ~ women girls / boys ~ women girls / he she / him her / his her / himself herself / brother sister / son
    daughter / mother father / mom dad / husband wife / uncle aunt / nephew niece / grandmother grandfather / king
    queen / prince princess / actor actress / boyfriend girlfriend / parent child / teacher student / doctor patient /
    employer employee / buyer seller / guest host / cat dog bird horse / black white red blue green yellow orange
    purple pink brown gray / vegetarian vegan carnivore / coffee tea / beer wine / democrat republican / victory defeat
    / success failure / profit loss / war peace / love hatred / heaven hell / life death / beginning end / birth death
    / question answer / supply demand / advantage disadvantage / strength weakness / credit debit / income expense /
    plaintiff defendant / predecessor successor / ancestor descendant / north-east south-west / clockwise anticlockwise
    / horizontal vertical / optional ~ mandatory required / voluntary compulsory / online offline / manual automatic /
    serial parallel / synchronous asynchronous / encrypted plaintext / upgrade downgrade / upload download / push pull
    / merge split / master replica / client server / read write / debug release / enabled disabled / allowed forbidden
    / supported unsupported / gain loss / debtor creditor / lender borrower / landlord tenant / victim attacker /
    primary secondary / minor major / inhale exhale / arrive depart / arrival departure / entrance exit / ancient
    modern / arid humid / barefoot shod / bless curse / blunt sharp / boost reduce / bottom top / broad narrow / busy
    idle / buy rent / own rent / own ~ lease borrow / calm nervous / celebrate mourn / ceiling floor / chaos order /
    cheerful gloomy / closed open / coarse fine / combine separate / confident insecure / crowded ~ empty deserted /
    damp dry / dawn dusk / defend attack / deny accept / despair hope / domestic foreign / eager reluctant / exterior
    interior / extrovert introvert / outgoing ~ shy introverted / failure success / fiction nonfiction / flexible rigid
    / follow lead / follow precede / foolish wise / forward backward / full-time part-time / generous mean / gentle
    rough / genuine fake / real fake / giant dwarf / hairy bald / humble arrogant / husband boyfriend / include omit /
    increase ~ decline shrink fall / innocent guilty / insert delete / insult praise / praise criticise criticize /
    latter former / liquid solid / literal figurative / love loathe / like loathe / maximise minimise / maximize
    minimize / meat vegetables / melt freeze / messy neat / merry sad / mother daughter / father son / sister daughter
    / brother son / mother sister / father brother / aunt mother / uncle father / wife daughter / wife sister / wife
    mother / husband father / husband brother / nervous relaxed / obey disobey / occupied vacant / often never /
    outdoor indoor / patient impatient / plural singular / polite impolite / predator prey / professional amateur / pro
    amateur / quick slow / raw cooked / remember forget / resist ~ obey yield / ripe unripe / rude polite / sane insane
    / satisfied dissatisfied / scarce ~ abundant plentiful / sell keep / shrink expand / silent noisy / simple
    complicated / single married / skinny ~ fat overweight / sober drunk / sparse dense / stranger friend / sunrise
    sunset / superior inferior / sweet salty savoury savory / swim drown / tenant owner / thaw freeze / tight loose /
    together apart / together ~ alone separately / transparent opaque / unite divide / urban rural / useful useless /
    vertical horizontal / veteran novice / expert ~ novice beginner / villain hero / virtue vice / warm cool / weekday
    weekend / wet dry / wealthy poor / worst best / young elderly / adult child / adopt abandon / adore detest / like
    detest / enjoy detest / agree refuse / allow prevent / cause prevent / appear ~ disappear vanish / arrive go /
    awake asleep / bachelor husband / begin conclude / benefit harm / bull cow / buy donate / capture release / cancel
    ~ confirm schedule / compliment insult / comply violate / courage fear / day week month year / delay advance /
    demote promote / deposit withdraw / descend climb / dim bright / dirty clean / divide multiply / earn spend /
    employ ~ fire dismiss / encourage deter / fear love / feed starve / fill ~ empty drain / flood drought / gather
    scatter / grant deny / greet ignore / harmless harmful / hide ~ show reveal / hungry full / inflate deflate /
    install uninstall / subscribe unsubscribe / follow unfollow / load unload / pack unpack / lock open / loyal
    disloyal / obtain lose / offer ~ refuse withdraw / pause resume / present past future / protect endanger / quit
    start / quit join / receive give / relax work / release retain / repair damage / rich ~ poor broke / rise sink /
    safe risky / seldom often / shout whisper / smile frown / stay ~ leave go / succeed flop / tighten loosen / turn-on
    turn-off / usual unusual / victory loss / visit avoid / vote abstain / warm ~ cold chilly / win ~ lost fail / win
    forfeit
"""
EXCLUSIVE: Final = tuple(
    frozenset((left, right))
    for group in _EXCLUSIVE.split("/")
    for left, right in (product(*map(words, group.split("~"))) if "~" in group else combinations(words(group), 2))
)

NEGATIVE_PREFIXES: Final = (
    "un", "un-", "in", "im", "ir", "il", "dis", "non", "non-", "mis", "anti", "anti-", "de", "de-", "mal", "ex-",
)  # fmt: skip
# 'sugar-free', 'careless' deny what 'sugar', 'careful' or 'sugary' say.
NEGATIVE_ENDINGS: Final = ("less", "-free", "-less")

IRREGULAR: Final = table("""
    be: am are is was were been being; beat: beaten; have: has had having; do: does did done; go: goes went gone;
    run: ran; see: saw seen; eat: ate eaten; take: took taken; give: gave given; get: got gotten; come: came;
    become: became; begin: began begun; break: broke broken; bring: brought; build: built; buy: bought; catch: caught;
    choose: chose chosen; draw: drew drawn; drink: drank drunk; drive: drove driven; fall: fell fallen; feel: felt;
    fight: fought; find: found; fly: flew flown; forget: forgot forgotten; grow: grew grown; hear: heard; hold: held;
    keep: kept; know: knew known; leave: left; lend: lent; lose: lost; make: made; meet: met; pay: paid;
    ride: rode ridden; rise: rose risen; say: said; sell: sold; send: sent; shut: shuts; sing: sang sung; sit: sat;
    sleep: slept; speak: spoke spoken; spend: spent; stand: stood; swim: swam swum; teach: taught; tell: told;
    think: thought; throw: threw thrown; wake: woke woken; wear: wore worn; win: won; write: wrote written;
    child: children; man: men; woman: women; person: people; foot: feet; tooth: teeth; mouse: mice; wife: wives;
    knife: knives; lie: lying lay lain; die: dying died
""")
PAST: Final = words(
    "was were had did went ran saw ate took gave got came became began broke brought built bought caught chose "
    "drew drank drove fell felt fought found flew forgot grew heard held kept knew lent lost made met paid rode "
    "rose said sold sent sang sat slept spoke spent stood swam taught told thought threw woke wore won wrote"
)

# Words that mean something else with a capital. The first kind are everyday words in lower case as well.
CASE_GRAMMAR: Final = words(
    "us it who may will march polish turkey china mark bill rose sue hope job nice aids pin sat me"
)
CASE_OTHER: Final = words(
    "august jack grace faith joy art frank rich grant chase drew pat rob miles dale cliff dean gene herb ray rusty "
    "sandy violet iris ivy lily daisy olive pearl ruby amber jade crystal ginger penny april summer dawn eve carol "
    "reading bath mobile cork hull deal sandwich split apple amazon shell target gap orange oracle windows word excel "
    "office outlook teams slack notion meta square stripe python java rust go swift ram pet ice fit mass lent "
    "catholic mercury mars act era led cat mac in or is us bush gates jobs page brown black white green gray young "
    "long short stone wood rice cook baker smith butcher taylor miller cooper fisher hunter mason potter porter "
    "carter turner walker parker archer bishop knight marshall price bell banks wells rivers waters brooks fox wolf "
    "swan bird finch crane martin robin jay wren dove love sharp power frost snow winter winters rush stark savage "
    "noble moody blue rock berry cherry basil heather hazel holly fern poppy rosemary sage angel harmony melody "
    "harper piper reed dusty guy earl duke trip skip chip cash clay colt chance hunt ford mission victory liberty "
    "buffalo chad guinea jersey cologne tours spa panama dish sky sprint united subway tide gain bounce pledge glad "
    "fossil ring safari opera signal lime focus beetle golf pilot jaguar spark job mark commons lords tory greens"
)
# Said loudly, these in capitals stay what they are; any other short word may be an acronym: ADD and add, SAD and sad.
LOUD: Final = (
    NEGATION
    | QUANTIFIER
    | words(
        "and but so very too really must love hate yes now then stop please own that this i wow great best big huge"
    )
)

# Abbreviations whose full stop ends no sentence; single letters are too.
ABBREVIATED: Final = words(
    "mr mrs ms miss dr prof sir st mt ft jr sr rev hon gen col maj capt sgt lt gov sen rep vs v no nos inc ltd co corp "
    "dept est approx fig vol ed eds pp etc e.g i.e eg ie cf al ca u.s u.k u.n a.m p.m am pm d.c ph.d jan feb mar apr "
    "jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun ave blvd rd bros op"
)
# With these, and dates, a sentence may open with or without a comma.
INTRODUCING: Final = words(
    "today yesterday tomorrow tonight recently currently nowadays lately sometimes usually often finally later "
    "eventually meanwhile previously formerly originally additionally moreover furthermore also then now please "
    "afterwards occasionally generally typically frequently initially"
)

# --- articles --------------------------------------------------------------------------------------------------------

# After a preposition these mean another thing with 'the': in office, on fire, in front, at sea.
WITHOUT_ARTICLE: Final = words(
    "office fire board sea case front future line time table house duty way hand air part top sale hold work rest foot "
    "heart order paper person secret public private strike school college university church prison jail hospital bed "
    "court place question charge possession control custody command course fact cash demand record leave call edge "
    "trial bail track target power mind face turn effect season stock print trouble love step home view sight point "
    "play game end day night term terms principle practice theory detail general particular common need favor favour "
    "light fashion style business holiday shape pain print press retirement debt cover exile reach touch"
)
# With an article one thing or one kind, without it some of it: ate a chicken, ate chicken.
MASS: Final = words(
    "chicken lamb fish turkey duck salmon beef pork hair iron glass paper light room space time work rock stone rubber "
    "tin language experience business noise youth egg pie cake pizza chocolate cheese wine beer tea coffee water milk "
    "bread rice meat fruit juice sugar salt wood metal gold silver music art life death love faith truth school "
    "college university church power change interest land oil gas cloth coal ice cream onion "
    "potato tomato pumpkin cotton wool silk leather plastic sport religion history science law medicine painting"
)
# 'likes dogs' is about all dogs, 'likes the dogs' about some.
LIKING: Final = words(
    "like likes liked love loves loved hate hates hated enjoy enjoys enjoyed prefer prefers preferred dislike dislikes "
    "disliked fear fears feared avoid avoids avoided collect collects collected study studies studied want wants need "
    "needs eat eats drink drinks teach teaches"
)


def is_participle(word: str) -> bool:
    """Whether a word may be what somebody did or what was done to them: left, beaten, fired; not 'tired'."""
    if word in STATES:
        return False
    return word in PARTICIPLES or word in PAST or (len(word) > 3 and word.endswith("ed"))
