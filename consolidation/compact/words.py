"""The words that reading specifics needs: grammar words, everyday words, and what tells a time or an amount.

A word in none of these lists is taken for a name when it has a capital. A gap in a list can only send a summary to a
person; a word too many in EVERYDAY could hide a name that never stands but at the start of a sentence.
"""

from __future__ import annotations

from typing import Final

from consolidation.guards import lexicon
from consolidation.guards.lexicon import words
from consolidation.guards.reading import stem

PRONOUNS: Final = words(
    "he him his she her hers they them their theirs it its we us our ours i me my mine you your yours who whom whose "
    "this that these those himself herself themselves itself both someone everyone"
)
STAND_INS: Final = words(  # pronouns that stand for a name said before
    "he him his she her hers they them their theirs it its who whom whose we us our i me my both"
)
# Words of grammar: at the start of a sentence their capital says nothing.
GRAMMAR: Final = PRONOUNS | words(
    "a an the and or but nor so yet for of in on at by to from with without into onto over under up down out off about "
    "above below after before since until till during while when whenever where wherever why how what which whatever "
    "as if unless though although because than then there here too also very just only even still already again once "
    "is am are was were be been being has have had having do does did doing done would could should shall must might "
    "ought not no yes none nothing never neither either each every all any some most many more much few less least "
    "several such same other others another own between among across through along against around behind beside "
    "besides beyond near per via within toward towards upon despite except like unlike instead however therefore "
    "meanwhile moreover furthermore otherwise perhaps maybe nobody somebody anybody anyone everybody everything "
    "something anything somewhere anywhere everywhere myself yourself ourselves yourselves let lets can cannot "
    "gonna wanna gotta kinda sorta dont doesnt didnt cant wont isnt arent wasnt werent ive im id ill youre youve youll "
    "theyre theyve weve whats thats theres hes shes its ok okay oh ah hey hi hello wow yeah yep yup nope nah bye aw "
    "hmm mm ugh oof phew yay woah whoa haha lol btw fyi etc eg ie vs am pm re ll ve don didn doesn isn wasn couldn "
    "wouldn shouldn hadn hasn haven aren weren won ain anyway anyways else ever rather quite almost nearly mostly "
    "mainly later earlier soon now today tomorrow yesterday tonight lately recently afterwards eventually finally "
    "suddenly sometimes usually often always rarely"
)
_EVERYDAY = """
    accept accomplish accord accordingly account ache achieve act action active actually add additional additionally
    admire admit adopt advice advise afford afternoon afterwards agree agreement aim alone alright also
    alternatively although amaze amazing amount animal announce annoy another answer anxious apart apologise
    apologize apparently appear apply appreciate appreciation approach approve approximately area argue arrange
    arrive aside ask assign assist assume assure attempt attend aware away awesome awful baby back backup bad bake
    balance barely base basically beat beautiful become beforehand begin believe belong best bet better big bit blow
    board boat body book border bored borrow boss both bother box boy break breakfast breathe brief briefly bright
    bring brother budget bug build bus business busy buy cache cake call calm camera camp car card care careful
    carry cat catch cause celebrate certain certainly chair challenge change charge chat cheap check cheer child
    choose city claim class clean clear clearly client climb close clothes cluster coach code coffee cold
    collaborate collect color colour combine come comfort comment commit common community company compare complain
    complete completely concern confirm congrats congratulate congratulation connect connection consequently
    consider constant contact continue control conversation conversely convince cook cool cooperate copy correct
    cost count country couple courage course cover crash crazy create creative crowd cry culture cure curious
    current currently customer cut cute dad daily dance danger dark data database daughter day dead deal dear death
    decide decision deep definitely delay deliver depend deploy deployment describe deserve design desk detail
    determine develop die different difficult dig dinner direct discover discuss discussion dish disk doctor dog
    door doubt download draw dream dress drink drive drop dry due early earn easily easy eat edit education effort
    either email embrace emotion emphasise emphasize employ empower encourage end endless endpoint energy engage
    enjoy enough ensure enter entire environment equal error especially essential establish event everybody exact
    exactly exam examine example excellent excite exciting exercise exhaust exist expand expect expensive experience
    explain explore expose express expression extra eye face fail failure fair fall familiar family fan fantastic
    far fast father fault favorite favourite fear feature feed feel feeling field fight figure file fill film final
    find fine finish fire fish fit fix floor flower flu fly focus follow food foot force forget form formerly
    forward free frequently fresh friend friendship front frustrate full fully fun funny furniture further
    furthermore future gain game garden gather generally gentle get gift girl give glad go goal good goodbye
    goodness grab gradually grateful gratitude great green greet ground group grow guess guest guide guy habit hair
    half hand handle hang happen happy hard hardly hate head health healthy hear heart heavy help helpful hence
    hereafter hide high highly hike hire hit hobby hold holiday home honest honestly hooray hopefully horse hospital
    host hot hour house huge human hungry hurry hurt husband idea identify ignore image imagine immediate
    immediately impact importance important impress impressive improve incident include increase incredible
    incredibly indeed indoor inform initial initially injury inside inspire interest interested interesting
    introduce invest invite involve issue item job join joke journey judge jump keep key kick kid kill kind kitchen
    know knowledge lack large last late laugh laughter lead learn leave left lend lesson let letter level lie life
    light likely likewise limit line list listen little live load local log login long look lose lot loud love
    lovely low luck luckily lucky lunch machine main maintain make man manage market marriage marry match matter
    meal mean meantime measure meet meeting member memory mention merely merge message middle migration mind minute
    miss mistake mix mom money monitor month mood morning mother motivate mountain move movie mum museum music name
    namely natural nature nearly necessary need nervous network nevertheless new newly news next nice night nobody
    node noise none nonetheless normal notably note notice nowadays number obviously occasion occasionally offer
    office old older online open operate opinion opportunity option order organise organize original originally
    outage outcome outdoor outside overall overcome pack page pain paint painting pair paper parent park part party
    pass passion password past patch patient pause pay peace people perfect perform period person personal pet phone
    photo photograph pick picture piece pipeline place plan plant play player pleasant please pleasure plenty plus
    point polite poor popular port positive possible possibly post potential practice practise praise pray prefer
    prepare present press pretty prevent previously price pride print private probably problem process produce
    product progress project promise promote proof properly protect proud prove provide proxy public pull purchase
    push put quality query question queue quick quickly quiet rain raise reach react read ready real realise realize
    really reason recall receive recent recognise recognize recommend reconnect record recover reduce refer reflect
    refuse regard regular regularly reject relate relation relationship relax release rely remain remember remind
    remove rent repair repeat replace replica reply report represent request require research resolve respect
    respond rest restart restaurant restore result resume return reveal review reward ride ring rise risk road
    rollback rollout room roughly routine rule run rush sad safe safety save say scary schedule school score screen
    script search seat secret see seek seem self sell send sense separate separately serious seriously serve server
    service session set settle shard share ship shock shoot shop short shout show shut sibling sick sign silly
    similar similarly simple simply sing single sister sit situation size skill sleep slow slowly small smart smell
    smile social society soft solution solve son song sorry sort sound source space speak special specific
    specifically spend sport spread stand start state stay step stick stop store storm story straight strange
    strategy street strength stress stressful stretch strictly strive strong structure struggle student study stuff
    style subject submit subsequently succeed success suffer suggest suggestion summary sunny super support suppose
    sure surely surprise surround survive sweet swim switch system table take talent talk task taste teach team tear
    technique tell term terrible test thank thankful thankfully thanks thing think thought throughout throw thus
    ticket tidy tie tight time tiny tip tired together token top topic totally touch tough tour town track trade
    tradition traffic train transfer transform transition transport travel treat tree tricky trip trouble true truly
    trust truth try turn type ultimately underneath understand unfortunately unique update upgrade upload upset use
    useful user usual value various vegetable verify version video view visit volunteer wait wake walk wall want
    warm wash watch water way weak wear weather wedding weekend welcome well wet whereas wherever whichever whoever
    wide wife wild win window wish wit woman wonder wonderful wood word work worker workout workshop world worry
    worth wow wrap write writing wrong year young
"""
EVERYDAY: Final = frozenset(stem(word) for word in words(_EVERYDAY))

# Names that are also words: a capital at the start of a sentence is a name unless a pronoun or article comes next.
ALSO_NAMES: Final = words(
    "amber april art august autumn baker bell bill black bob brook brown buck bush carol carter case chase christian "
    "clay cliff cook cooper cross crystal daisy dale dawn dean don drew duke earl eve faith field fisher ford forest "
    "fox frank gates gay gene ginger golden grace grant gray green grey guy heath herb hill hope hunter iris ivy jack "
    "jade jean jesus jo josh joy june ken king kit knight lake law les lily lou major march mark mason max may miles "
    "miller nick noble norm north olive page paige park parker pat pearl penny pierce price randy ray reagan reed "
    "rich river rivers rob rose ruby rusty sage sandy savage sharp skip sky sol star sterling stern stew stone storm "
    "sue summer swift tad taylor ted tom tony turner ty van vic viola violet wade walker wall ward waters west white "
    "wilder will winter wolf woody"
)
ASKS_OR_WISHES: Final = PRONOUNS | words("the a an to be there anyone anybody not")  # 'Will you', 'May the', 'Hope to'
CAPITAL_WORDS: Final = frozenset({"us", "it", "who", "am", "un", "id", "re"})  # in capitals they are something else
TITLES: Final = words("mr mrs ms miss dr prof sir madam")
ABBREVIATED: Final = TITLES | words("st mt vs no jr sr e.g i.e a.m p.m approx dept fig inc ltd co vol ave")

# --- time and amount -------------------------------------------------------------------------------------------------

# Months and days that are words without their capital.
NEED_CAPITAL: Final = words("may march mar jan dec sun sat mon wed thu apr aug jun jul sep oct nov feb sept fri tue")
SEASONS: Final = words("spring summer autumn fall winter")
DAY_PARTS: Final = words("morning afternoon evening night noon midnight midday weekend weekday dawn dusk tonight")
NEAR_DAYS: Final = words("today tomorrow yesterday tonight")
HOW_OFTEN: Final = words(
    "daily weekly monthly yearly annually hourly nightly biweekly fortnightly quarterly weekends weekdays"
)
TURNED_TO: Final = words("last next this past previous following coming upcoming every each")  # last week, next Friday
IN_THE: Final = words("early late mid")  # early June, mid-2022
PERIODS: Final = (
    SEASONS
    | DAY_PARTS
    | words("second minute hour day week fortnight month quarter year decade century semester term time")
)
# Words of time that are looked for in sentences that are nearly copies, and nowhere else.
TIMELY: Final = (
    lexicon.DATE
    | SEASONS
    | DAY_PARTS
    | NEAR_DAYS
    | HOW_OFTEN
    | TURNED_TO
    | IN_THE
    | words(
        "ago recently lately soon later earlier now currently nowadays upcoming forthcoming birthday anniversary "
        "holiday holidays fortnight decades centuries nights mornings evenings afternoons"
    )
)
AMOUNTS: Final = words(  # amounts without a figure; specific by themselves
    "twice thrice half dozen dozens hundreds thousands million millions billion billions trillion double triple "
    "quadruple quarter"
)
ROUGH: Final = words("once single couple pair both several few many one third first second zero single")
SCALES: Final = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion", "mio": "million"}
CURRENCIES: Final = {"$": "dollar", "€": "euro", "£": "lb", "¥": "yen", "usd": "dollar", "eur": "euro", "gbp": "lb"}
