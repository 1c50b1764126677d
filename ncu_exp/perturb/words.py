"""Which words carry meaning, and the word lists that answers are invented from."""

from __future__ import annotations

import re

from ncu_exp.perturb.folding import fold_text

# English words that stand in any text and that tell nothing about an answer.
FUNCTION_WORDS = frozenset(
    """a an the and or nor but if of in on at to by for from with without into onto over under up
    down off out about around as is am are was were be been being it its he him his she her hers
    they them their we us our you your i me my mine this that these those there here no not so do
    does did done has have had will would can could shall should may might must who whom whose what
    which when where why how than then all any some each both either neither such only own same too
    very just also more most less least many much few other another during since until till before
    after between among through per via""".split()
)

# Head nouns that say what kind of thing a name names. A fabricated name keeps them, so that a
# river stays a river; they give nothing away.
PLACE_HEADS = frozenset(
    """river lake sea ocean bay gulf strait canal creek falls mountain mountains mount hill hills
    peak valley canyon desert forest island islands peninsula cape coast beach county district
    province region state city town village park gardens garden street road avenue square bridge
    tower palace castle fort cathedral church abbey temple mosque stadium arena airport station
    harbour harbor port building house hall hotel theatre theater center centre museum library
    hospital prison cemetery observatory plaza mall north south east west northern southern eastern
    western central new old great upper lower saint st""".split()
)
ORGANIZATION_HEADS = frozenset(
    """university college school academy institute company corporation corp inc ltd llc plc group
    records studios pictures entertainment media press publishing airlines airways bank trust fund
    foundation society association federation union league club party church court ministry
    department office bureau agency commission committee council parliament congress senate assembly
    army navy force guard orchestra band ensemble choir theatre museum library hospital laboratory
    laboratories industries motors systems technologies international national royal supreme
    federal""".split()
)
EVENT_HEADS = frozenset(
    """war wars battle siege treaty revolution rebellion revolt uprising crisis crash massacre
    incident affair trial games olympics cup championship championships open tournament league bowl
    series prize award awards medal festival fair exposition congress conference summit council act
    earthquake hurricane storm flood fire plague expedition campaign operation day world""".split()
)
HEADS = PLACE_HEADS | ORGANIZATION_HEADS | EVENT_HEADS

# Closed classes: an answer out of one is replaced by another member of it.
CLASSES: tuple[tuple[str, ...], ...] = (
    ("red", "blue", "green", "yellow", "orange", "purple", "brown", "grey", "pink", "white", "black"),
    tuple(
        """British English Scottish Welsh Irish French German Spanish Portuguese Italian Dutch
        Belgian Swiss Austrian Polish Czech Hungarian Romanian Bulgarian Greek Turkish Russian
        Ukrainian Swedish Norwegian Danish Finnish American Canadian Mexican Brazilian Chilean
        Peruvian Egyptian Moroccan Kenyan Nigerian Indian Persian Chinese Japanese Korean
        Vietnamese Australian""".split()
    ),
    ("Africa", "Asia", "Europe", "North America", "South America", "Australia", "Antarctica"),
    ("gold", "silver", "copper", "iron", "tin", "lead", "zinc", "nickel", "cobalt", "chromium"),
    ("hydrogen", "helium", "oxygen", "nitrogen", "carbon", "neon", "argon", "chlorine", "sulphur"),
    ("football", "basketball", "baseball", "cricket", "rugby", "tennis", "golf", "hockey", "rowing"),
    ("arm", "leg", "hand", "foot", "knee", "elbow", "shoulder", "wrist", "ankle", "neck", "hip"),
    ("heart", "liver", "kidney", "lung", "spleen", "stomach", "pancreas", "bladder", "gallbladder"),
    ("guitar", "piano", "violin", "cello", "flute", "trumpet", "clarinet", "harp", "oboe", "banjo"),
    ("eagle", "falcon", "heron", "magpie", "ostrich", "pelican", "penguin", "raven", "swan", "wren"),
    ("bear", "camel", "dolphin", "fox", "giraffe", "horse", "lynx", "otter", "rabbit", "wolf"),
    ("apple", "apricot", "cherry", "fig", "grape", "lemon", "mango", "peach", "pear", "plum"),
)

# Common words by the ending of the word that they stand in for, so that the sentence still parses.
# The first ending that fits wins; the last one fits everything.
COMMON_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ing", tuple("weaving grafting tempering carving quilting glazing threshing welding".split())),
    ("tion", tuple("filtration pollination lamination irrigation rotation ventilation".split())),
    ("sion", tuple("immersion suspension extension compression diffusion dispersion".split())),
    ("ology", tuple("hydrology ecology mineralogy topology meteorology limnology".split())),
    ("ism", tuple("mechanism naturalism magnetism pluralism organism classicism".split())),
    ("ity", tuple("humidity elasticity polarity buoyancy symmetry velocity porosity".split())),
    ("ment", tuple("sediment pigment settlement filament ornament implement".split())),
    ("ness", tuple("dryness hardness brightness dampness stiffness".split())),
    ("ly", tuple("slowly evenly loosely sparsely quietly firmly".split())),
    ("ed", tuple("woven glazed folded painted polished sheltered tempered".split())),
    ("er", tuple("gardener weaver carpenter drummer baker potter miner".split())),
    ("or", tuple("surveyor sculptor tailor inspector curator translator".split())),
    ("ist", tuple("botanist cellist florist machinist archivist".split())),
    ("al", tuple("coastal seasonal vertical marginal orbital tidal".split())),
    ("ic", tuple("aquatic ceramic acoustic organic volcanic granitic".split())),
    ("ous", tuple("porous fibrous gaseous luminous deciduous".split())),
    ("ive", tuple("reflective adhesive abrasive decorative protective".split())),
    ("ble", tuple("portable flexible soluble washable durable".split())),
    ("ies", tuple("nurseries galleries canneries batteries quarries ferries".split())),
    ("ss", tuple("compass mattress harness trellis canvas brass".split())),
    ("s", tuple("lanterns barrels ribbons saddles kettles pulleys shutters baskets anchors".split())),
    (
        "",
        tuple(
            """lantern barrel ribbon saddle kettle pulley shutter basket anchor lattice mortar
            willow pebble varnish gravel linen resin turret pantry quarry chisel thimble""".split()
        ),
    ),
)

TITLE_ADJECTIVES = tuple(
    """Silent Hollow Crimson Distant Broken Gilded Winter Paper Copper Amber Quiet Wandering Velvet
    Bitter Hidden Painted Restless Scarlet Tangled Weathered Midnight Borrowed""".split()
)
TITLE_NOUNS = tuple(
    """Orchard Lantern Harbour Meadow Compass Sparrow Cathedral Carnival Letter Mirror Staircase
    Tides Embers Feather Clockmaker Horizon Ferryman Garden Parade Thistle Voyage Almanac Ledger
    Rooftop""".split()
)
TEAM_NOUNS = tuple(
    """Herons Otters Badgers Pioneers Mariners Comets Lynxes Foxes Harriers Anglers Sentinels
    Millers Foresters Kestrels Bisons Voyagers""".split()
)

_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*")


def folded_words(text: str) -> list[str]:
    """The folded words of a text, in order; a possessive ending is dropped."""
    words = _WORD.findall(fold_text(text))
    return [word.removesuffix("'s") for word in words]


def significant_words(text: str) -> set[str]:
    """The folded words that could give an answer away: no function words, no generic heads."""
    return {
        word
        for word in folded_words(text)
        if word not in FUNCTION_WORDS
        and word not in HEADS
        and (len(word) > 2 or not word.isascii() or any(c.isdigit() for c in word))
    }
