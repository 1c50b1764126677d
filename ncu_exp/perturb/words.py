"""Which words carry meaning, and the word lists that answers are invented from."""

from __future__ import annotations

import re

from ncu_exp.perturb.folding import fold_text


def word_list(words: str) -> tuple[str, ...]:
    """Words written with spaces between them."""
    return tuple(words.split())


# English words that stand in any text and that tell nothing about an answer.
FUNCTION_WORDS = frozenset(
    word_list("""
    a an the and or nor but if of in on at to by for from with without into onto over under up down
    off out about around as is am are was were be been being it its he him his she her hers they
    them their we us our you your i me my mine this that these those there here no not so do does
    did done has have had will would can could shall should may might must who whom whose what which
    when where why how than then all any some each both either neither such only own same too very
    just also more most less least many much few other another during since until till before after
    between among through per via along across near against upon within towards behind below above
    beyond
    """)
)

# Head nouns say what kind of thing a name names. A fabricated name keeps them, so that a river
# stays a river; they give nothing away.
_PLACE_HEADS = word_list("""
    river rivers lake sea ocean bay gulf strait canal creek falls mountain mountains mount hill
    hills peak valley canyon desert forest island islands peninsula cape coast beach county district
    province region state city town village park gardens street road avenue square bridge tower
    palace castle fort cathedral church abbey temple mosque stadium arena airport station harbour
    harbor port building house hall hotel theatre theater center centre museum library hospital
    prison cemetery observatory plaza area metropolitan line plant market
    """)
_ORGANIZATION_HEADS = word_list("""
    university college school academy institute company corporation corp inc ltd llc plc gmbh s.a
    group records studios pictures entertainment media press publishing airlines airways bank trust
    fund foundation society association federation union league club party court ministry department
    office bureau agency commission committee council parliament congress senate assembly army navy
    force forces guard orchestra band ensemble choir laboratory laboratories industries motors
    systems technologies international national royal supreme federal
    """)
_EVENT_HEADS = word_list("""
    war wars battle siege treaty revolution rebellion revolt uprising crisis crash massacre
    incident convention conventions accord accords pact event affair trial games olympics cup
    championship championships open tournament bowl series prize award awards medal festival
    fair exhibition exposition conference summit act earthquake hurricane storm flood fire
    plague expedition campaign operation day
    """)
PLACE_HEADS, ORGANIZATION_HEADS = frozenset(_PLACE_HEADS), frozenset(_ORGANIZATION_HEADS)
EVENT_HEADS = frozenset(_EVENT_HEADS)
HEADS = PLACE_HEADS | ORGANIZATION_HEADS | EVENT_HEADS

# Words beside a name that are no part of it.
QUALIFIERS = frozenset(
    word_list("""
    north south east west northern southern eastern western central new old great greater upper
    lower saint st world hms rms uss ss mv fc afc
    """)
)
TITLES = frozenset(
    word_list("""
    sir dame lord lady king queen prince princess emperor empress tsar czar pope saint st bishop
    archbishop cardinal reverend rev father mother brother sister mr mrs ms miss dr doctor prof
    professor president chancellor minister senator governor mayor judge justice general colonel
    major captain lieutenant sergeant admiral commander duke duchess earl count countess baron
    baroness sultan shah khan hon honourable chief coach
    """)
)
NAME_SUFFIXES = frozenset(
    word_list("jr sr i ii iii iv v vi vii viii xiv xvi md phd esq dsc obe mbe cbe kbe qc")
)
_NEUTRAL = FUNCTION_WORDS | HEADS | QUALIFIERS | TITLES | NAME_SUFFIXES

# Closed classes: an answer out of one, or a word of it, is replaced by another member.
CLASSES: tuple[tuple[str, ...], ...] = (
    word_list("red blue green yellow orange purple brown grey pink white black"),
    word_list("""
    British English Scottish Welsh Irish French German Spanish Portuguese Italian Dutch Belgian
    Swiss Austrian Roman Polish Czech Hungarian Romanian Bulgarian Greek Turkish Russian Ukrainian
    Swedish Norwegian Danish Finnish American Canadian Mexican Brazilian Chilean Peruvian Egyptian
    Moroccan Kenyan Nigerian Indian Persian Chinese Japanese Korean Vietnamese Australian Mongolian
    Thai Indonesian Iraqi Syrian Lebanese Israeli Algerian Tunisian Ethiopian Cuban Argentine
    Icelandic Estonian Lithuanian Croatian Serbian Slovak Albanian Armenian Georgian
    """),
    ("Africa", "Asia", "Europe", "North America", "South America", "Australia", "Antarctica"),
    word_list("Christianity Islam Judaism Buddhism Hinduism Sikhism Taoism Shinto"),
    word_list("""
    gold silver copper iron tin lead zinc nickel cobalt chromium cadmium mercury hydrogen helium
    oxygen nitrogen carbon neon argon chlorine sulphur potassium calcium polonium radium uranium
    """),
    word_list("diamond ruby sapphire emerald opal topaz amethyst garnet pearl"),
    word_list("cinnamon saffron ginger nutmeg cumin cardamom turmeric paprika vanilla"),
    word_list("football basketball baseball cricket rugby tennis golf hockey rowing badminton"),
    word_list("arm leg hand heel knee elbow shoulder wrist ankle neck hip face"),
    word_list("""
    heart liver kidney lung spleen stomach pancreas bladder gallbladder retina duodenum jejunum
    ileum colon oesophagus pharynx larynx trachea thymus cerebellum
    """),
    word_list("""
    insulin glucagon cortisol melatonin oxytocin adrenaline epinephrine dopamine serotonin thyroxine
    """),
    word_list("nucleus mitochondrion ribosome chloroplast vacuole cytoplasm lysosome"),
    word_list("malaria cholera typhoid measles smallpox tuberculosis influenza diphtheria rabies"),
    word_list("guitar piano violin cello flute trumpet clarinet harp oboe banjo"),
    word_list("eagle falcon heron magpie ostrich pelican penguin raven swan wren"),
    word_list("bear camel dolphin badger giraffe horse elephant otter rabbit beaver scorpion"),
    word_list("apple apricot cherry fig grape lemon mango peach pear plum"),
    word_list("carrot onion potato cabbage turnip spinach lettuce cucumber radish leek"),
    word_list("wine beer whisky rum gin vodka brandy cider"),
    word_list("circle square triangle rectangle hexagon pentagon ellipse"),
    word_list("""
    engineering medicine law physics chemistry biology mathematics economics philosophy linguistics
    sociology psychology astronomy geology botany anthropology archaeology theology
    """),
    word_list("""
    teacher lawyer carpenter nurse farmer soldier sailor butcher baker miner blacksmith tailor
    engineer journalist librarian
    """),
    word_list("committee council assembly tribunal commission senate congress parliament cabinet"),
    word_list("""
    agriculture mining fishing forestry manufacturing construction tourism banking transport
    """),
    word_list("Interior Finance Defence Education Health Justice Culture Labour"),
    word_list(
        "current voltage resistance force mass velocity acceleration momentum energy pressure"
    ),
    word_list("conjecture theorem lemma hypothesis axiom paradox"),
    word_list("army navy police militia cavalry infantry"),
    word_list("mall factory warehouse hotel theatre library hospital school prison museum"),
    word_list("father mother brother sister uncle aunt cousin grandfather grandmother"),
    word_list("spring summer autumn winter"),
    word_list("dozens hundreds thousands millions billions"),
    word_list("higher lower steeper milder"),
    word_list("larger smaller"),
    word_list("longer shorter"),
    word_list("older younger"),
    word_list("faster slower"),
    word_list("earlier later"),
    word_list("stronger weaker"),
    word_list("warmer cooler"),
    word_list("increase decrease"),
    word_list("increased decreased"),
    word_list("positive negative"),
)

# Words that say the contrary of each other, in the same place of a sentence.
OPPOSITES: tuple[tuple[str, str], ...] = tuple(
    (pair.partition("/")[0], pair.partition("/")[2])
    for pair in word_list("""
    increase/decrease increases/decreases increased/decreased increasing/decreasing rise/fall
    rising/falling growth/decline grow/shrink gain/loss win/lose won/lost began/ended before/after
    over/under above/below more/less most/least older/younger old/new
    early/late first/last large/small larger/smaller largest/smallest high/low higher/lower
    highest/lowest longer/shorter longest/shortest strong/weak stronger/weaker strongest/weakest
    rich/poor good/bad better/worse best/worst public/private internal/external inner/outer
    inside/outside global/local foreign/domestic national/regional urban/rural religious/secular
    legal/illegal formal/informal natural/artificial permanent/temporary active/passive
    positive/negative direct/indirect major/minor modern/ancient simple/complex open/closed
    allow/forbid allows/forbids accept/reject accepted/rejected support/oppose supported/opposed
    build/destroy built/destroyed created/abolished protect/attack protects/attacks
    prevent/encourage include/exclude includes/excludes joined/left joins/leaves bought/sold
    import/export hired/dismissed expand/reduce expanded/reduced raise/lower raised/lowered
    unite/divide united/divided peace/war victory/defeat success/failure majority/minority
    installed/removed always/never together/apart extremist/moderate dominance/weakness
    """)
)

# Nouns that can stand at the end of most clauses.
CLAUSE_NOUNS = word_list("""
    tradition climate audience budget archive calendar festival neighbour landscape market
    """)

# Words that stand before another noun, and the endings of those that can.
MODIFIER_ENDINGS = frozenset(word_list("ing ed al ic ous ive ble est"))
NOUN_ENDINGS = frozenset(word_list("al ic"))  # of nouns as well: "narwhal", "republic"
MODIFIERS = word_list("""
    narrow shallow ancient ordinary separate hollow modern distant wooden rounded plain slender
    dense smooth
    """)

# Common words by the ending of the word that they stand in for, so that the sentence still parses.
# The first ending that fits wins; the last one fits everything.
COMMON_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ing", word_list("floating sliding folding turning binding sorting casting rolling")),
    ("tion", word_list("filtration pollination lamination irrigation rotation ventilation")),
    ("sion", word_list("immersion suspension extension compression dispersion")),
    ("ology", word_list("hydrology ecology mineralogy topology meteorology limnology")),
    ("ism", word_list("naturalism magnetism pluralism classicism dynamism")),
    ("ity", word_list("humidity elasticity polarity symmetry velocity porosity")),
    ("ment", word_list("sediment pigment settlement filament ornament implement")),
    ("ness", word_list("dryness hardness brightness dampness stiffness")),
    ("ed", word_list("glazed folded painted polished sheltered tempered")),
    ("est", word_list("broadest narrowest shortest heaviest steepest")),
    ("ers", word_list("gardeners weavers carpenters drummers bakers potters")),
    ("er", word_list("gardener weaver carpenter drummer baker potter")),
    ("or", word_list("surveyor sculptor tailor inspector curator translator")),
    ("ist", word_list("botanist cellist florist machinist archivist")),
    ("al", word_list("coastal seasonal vertical marginal orbital tidal")),
    ("ic", word_list("acoustic organic magnetic elastic static periodic")),
    ("ous", word_list("porous fibrous gaseous luminous deciduous")),
    ("ive", word_list("reflective adhesive abrasive decorative protective")),
    ("ble", word_list("portable flexible soluble washable durable")),
    ("ly", word_list("slowly gently evenly loosely sharply")),
    ("y", word_list("granary nursery pottery foundry tannery quarry refinery laundry masonry")),
    ("ies", word_list("nurseries galleries canneries batteries quarries ferries")),
    ("ss", word_list("compass mattress harness trellis canvas")),
    (
        "s",
        word_list("""
        membranes fragments deposits layers channels vessels filters signals samples modules panels
        chambers segments clusters
        """),
    ),
    (
        "",
        word_list("""
        membrane fragment deposit layer channel vessel filter signal formula sample module panel
        chamber segment cluster ledger charter lattice
        """),
    ),
)

TITLE_ADJECTIVES = word_list("""
    Silent Hollow Crimson Distant Broken Gilded Winter Paper Copper Amber Quiet Wandering Velvet
    Bitter Hidden Painted Restless Scarlet Tangled Weathered Midnight Borrowed
    """)
TITLE_NOUNS = word_list("""
    Orchard Lantern Harvest Meadow Compass Sparrow Riddle Carnival Letter Mirror Staircase Tides
    Embers Feather Clockmaker Horizon Ferryman Parade Thistle Voyage Almanac Ledger Rooftop
    """)
TEAM_NOUNS = word_list("""
    Herons Otters Badgers Pioneers Mariners Comets Lynxes Foxes Harriers Anglers Sentinels Millers
    Foresters Kestrels Bisons Voyagers
    """)

_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*")


def folded_words(text: str) -> list[str]:
    """The folded words of a text, in order; a possessive ending is dropped."""
    return [word.removesuffix("'s") for word in _WORD.findall(fold_text(text))]


def is_significant(word: str) -> bool:
    """Whether a folded word could give an answer away: no function word, head noun or title."""
    if word in _NEUTRAL:
        return False
    return len(word) > 2 or not word.isascii() or any(c.isdigit() for c in word)


def significant_words(text: str) -> set[str]:
    """The significant words of a text, folded."""
    return {word for word in folded_words(text) if is_significant(word)}
