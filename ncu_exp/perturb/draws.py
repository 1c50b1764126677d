"""Chance, seeded by (seed, item id): an item draws the same values in any order or process."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from ncu_exp.perturb.folding import fold_text
from ncu_exp.perturb.words import is_significant

if TYPE_CHECKING:
    from faker import Faker

T = TypeVar("T")


def rng_for(seed: int, item_id: str, *purpose: str) -> random.Random:
    """A generator of its own for an item and a purpose."""
    key = "\x1f".join((str(seed), item_id, *purpose))
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return random.Random(int.from_bytes(digest[:16], "big"))


class Draws:
    """A stream of invented values: Faker's names and choices from lists."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._faker = _faker()
        # The instance is shared, its state is not: each stream starts from a seed of its own.
        self._faker.seed_instance(rng.getrandbits(64))

    def choice(self, values: Sequence[T]) -> T:
        return self.rng.choice(values)

    def letter(self) -> str:
        return self.rng.choice("ABCDEFGHJKLMNPRSTW")

    def first_name(self, gender: str) -> str:
        """`gender` is `female`, `male` or empty."""
        name: str
        if gender == "female":
            name = self._faker.first_name_female()
        elif gender == "male":
            name = self._faker.first_name_male()
        else:
            name = self._faker.first_name()
        return name

    def last_name(self) -> str:
        """A family name that is no common noun of names ("King", "Hill")."""
        while True:
            name: str = self._faker.last_name()
            if is_significant(fold_text(name)):
                return name

    def city(self, *, words: int) -> str:
        """A town's name; of one word where `words` is 1."""
        while True:
            name: str = self._faker.city()
            is_known = fold_text(name) in known_countries() | known_states()
            if not is_known and (words > 1 or " " not in name):
                return name

    def country(self) -> str:
        """A country, left out those whose names are a list or an explanation."""
        while True:
            name: str = self._faker.country()
            if len(name.split()) <= 2 and name.replace(" ", "").isalpha():
                return name

    def state(self) -> str:
        name: str = self._faker.state()
        return name

    def company(self) -> str:
        """A firm of one or two names."""
        while True:
            name: str = self._faker.company()
            if "," not in name:
                return name


@lru_cache(maxsize=1)
def _faker() -> Faker:
    from faker import Faker

    return Faker("en_US")


@lru_cache(maxsize=1)
def known_countries() -> frozenset[str]:
    """Countries by their folded names, with the common ones that Faker's list lacks."""
    from faker.providers.address.en import Provider

    more = ("USA", "UK", "England", "Scotland", "Wales", "Russia", "Syria", "Laos", "Libya")
    return frozenset(
        map(
            fold_text,
            (*Provider.countries, *more, "Slovakia", "Britain", "America", "United States"),
        )
    )


@lru_cache(maxsize=1)
def known_states() -> frozenset[str]:
    """The states of the USA by their folded names."""
    from faker.providers.address.en_US import Provider

    return frozenset(map(fold_text, Provider.states))


@lru_cache(maxsize=1)
def _given_names() -> tuple[frozenset[str], frozenset[str]]:
    from faker.providers.person.en_US import Provider

    female = frozenset(map(fold_text, Provider.first_names_female))
    return female, frozenset(map(fold_text, Provider.first_names_male))


def gender_of(given_name: str) -> str:
    """`female` or `male` for a given name that is only one of them, else empty."""
    female, male = _given_names()
    name = fold_text(given_name)
    if (name in female) == (name in male):
        return ""
    return "female" if name in female else "male"


def is_given_name(name: str) -> bool:
    """Whether Faker's American lists know it as a given name."""
    return any(fold_text(name) in names for names in _given_names())
