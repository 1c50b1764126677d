from __future__ import annotations

from ncu_exp.perturb.draws import Draws, gender_of, known_countries, known_states, rng_for
from ncu_exp.perturb.folding import fold_text


def test_an_item_has_its_own_stream() -> None:
    first = rng_for(0, "a", "faker").random()
    assert first == rng_for(0, "a", "faker").random()
    others = [rng_for(1, "a", "faker"), rng_for(0, "b", "faker"), rng_for(0, "a", "noise")]
    assert first not in [rng.random() for rng in others]


def test_streams_do_not_disturb_each_other() -> None:
    def names() -> list[str]:
        draws = Draws(rng_for(0, "a"))
        return [draws.last_name(), draws.city(words=2), draws.company(), draws.country()]

    alone = names()
    Draws(rng_for(0, "b")).last_name()
    assert names() == alone


def test_drawn_names_are_usable() -> None:
    draws = Draws(rng_for(0, "a"))
    known = known_countries() | known_states()
    assert all(fold_text(draws.city(words=1)) not in known for _ in range(300))
    assert all(fold_text(draws.last_name()) not in ("king", "hill") for _ in range(2000))
    assert all("(" not in draws.country() for _ in range(300))
    assert all("," not in draws.company() for _ in range(100))


def test_gender_of_given_names() -> None:
    assert gender_of("Mary") == "female"
    assert gender_of("James") == "male"
    assert gender_of("Pakhangba") == ""
