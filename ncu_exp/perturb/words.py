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
    prison cemetery observatory plaza area metropolitan line plant
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
    war wars battle siege treaty revolution rebellion revolt uprising crisis crash massacre incident
    event affair trial games olympics cup championship championships open tournament bowl series
    prize award awards medal festival fair exhibition exposition conference summit act earthquake
    hurricane storm flood fire plague expedition campaign operation day
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

# Closed classes: an answer out of one is replaced by another member of it.
CLASSES: tuple[tuple[str, ...], ...] = (
    word_list("red blue green yellow orange purple brown grey pink white black"),
    word_list("""
    British English Scottish Welsh Irish French German Spanish Portuguese Italian Dutch Belgian
    Swiss Austrian Roman Polish Czech Hungarian Romanian Bulgarian Greek Turkish Russian Ukrainian
    Swedish Norwegian Danish Finnish American Canadian Mexican Brazilian Chilean Peruvian Egyptian
    Moroccan Kenyan Nigerian Indian Persian Chinese Japanese Korean Vietnamese Australian
    """),
    ("Africa", "Asia", "Europe", "North America", "South America", "Australia", "Antarctica"),
    word_list("""
    gold silver copper iron tin lead zinc nickel cobalt chromium cadmium mercury hydrogen helium
    oxygen nitrogen carbon neon argon chlorine sulphur potassium calcium polonium radium uranium
    """),
    word_list("cinnamon saffron ginger nutmeg cumin cardamom turmeric paprika vanilla"),
    word_list("football basketball baseball cricket rugby tennis golf hockey rowing badminton"),
    word_list("arm leg hand heel knee elbow shoulder wrist ankle neck hip face"),
    word_list("heart liver kidney lung spleen stomach pancreas bladder gallbladder retina"),
    word_list("guitar piano violin cello flute trumpet clarinet harp oboe banjo"),
    word_list("eagle falcon heron magpie ostrich pelican penguin raven swan wren"),
    word_list("bear camel dolphin badger giraffe horse elephant otter rabbit beaver scorpion"),
    word_list("apple apricot cherry fig grape lemon mango peach pear plum"),
)

# Words that stand before another noun, and the endings of those that can.
MODIFIER_ENDINGS = frozenset(word_list("ing ed al ic ous ive ble"))
NOUN_ENDINGS = frozenset(word_list("al ic"))  # of nouns as well: "narwhal", "republic"
MODIFIERS = word_list("""
    cedar copper linen wicker slate amber marble velvet walnut bronze cotton pewter maple granite
    """)

# Common words by the ending of the word that they stand in for, so that the sentence still parses.
# The first ending that fits wins; the last one fits everything.
COMMON_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ing", word_list("weaving grafting tempering carving quilting glazing threshing welding")),
    ("tion", word_list("filtration pollination lamination irrigation rotation ventilation")),
    ("sion", word_list("immersion suspension extension compression dispersion")),
    ("ology", word_list("hydrology ecology mineralogy topology meteorology limnology")),
    ("ism", word_list("naturalism magnetism pluralism classicism dynamism")),
    ("ity", word_list("humidity elasticity polarity symmetry velocity porosity")),
    ("ment", word_list("sediment pigment settlement filament ornament implement")),
    ("ness", word_list("dryness hardness brightness dampness stiffness")),
    ("ed", word_list("glazed folded painted polished sheltered tempered")),
    ("er", word_list("gardener weaver carpenter drummer baker potter")),
    ("or", word_list("surveyor sculptor tailor inspector curator translator")),
    ("ist", word_list("botanist cellist florist machinist archivist")),
    ("al", word_list("coastal seasonal vertical marginal orbital tidal")),
    ("ic", word_list("aquatic ceramic acoustic organic volcanic granitic")),
    ("ous", word_list("porous fibrous gaseous luminous deciduous")),
    ("ive", word_list("reflective adhesive abrasive decorative protective")),
    ("ble", word_list("portable flexible soluble washable durable")),
    ("ies", word_list("nurseries galleries canneries batteries quarries ferries")),
    ("ss", word_list("compass mattress harness trellis canvas")),
    ("s", word_list("lanterns barrels ribbons saddles kettles pulleys shutters baskets anchors")),
    (
        "",
        word_list("""
        lantern barrel ribbon saddle kettle pulley shutter basket anchor lattice mortar willow
        pebble varnish gravel linen resin turret pantry quarry chisel thimble
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
