"""Bounds from the likeliest tokens alone: worked out by hand, and proven against whole models."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.records import Bounds
from ncu_exp.scoring.intervals import (
    ROUNDING,
    UNKNOWN,
    Candidate,
    Step,
    bound_answer,
    bound_text,
    bound_token,
    mean_bounds,
    outside,
)


def step(chosen: str, *top: tuple[str | None, float]) -> Step:
    """A step whose candidates have the given probabilities; the chosen one is among them."""
    told = [Candidate(None if t is None else t.encode(), math.log(p)) for t, p in top]
    return Step(next(c for c in told if c.token == chosen.encode()), tuple(told))


PARIS = step("Paris", ("Paris", 0.6), ("The", 0.2), ("Lyon", 0.1))
IS = step(" is", (" is", 0.9), (" lies", 0.05))


def test_a_token_among_the_likeliest_is_known() -> None:
    assert bound_token(b"Lyon", PARIS) == Bounds(math.log(0.1), math.log(0.1))


def test_another_is_at_most_the_mass_that_they_leave() -> None:
    # 1 - 0.9 = 0.1 is left, as much as the least of them has.
    assert bound_token(b"Nice", PARIS).lower == -math.inf
    assert bound_token(b"Nice", PARIS).upper == pytest.approx(math.log(0.1), abs=2e-4)
    # 1 - 0.95 = 0.05; of two that have 0.9 and 0.09, 0.01 is left.
    steep = step("a", ("a", 0.9), ("b", 0.09))
    assert bound_token(b"c", steep).upper == pytest.approx(math.log(0.01 + ROUNDING), abs=1e-6)


def test_behind_the_first_other_token_nothing_is_known() -> None:
    found = bound_answer([b"Lyon", b" is", b"!"], [PARIS, IS])
    assert found.bounds == (Bounds(math.log(0.1), math.log(0.1)), UNKNOWN, UNKNOWN)
    assert found.mean == Bounds(-math.inf, math.log(0.1) / 3)
    assert not found.is_greedy


def test_an_answer_that_is_followed_is_exact() -> None:
    found = bound_answer([b"Paris", b" is"], [PARIS, IS])
    mean = (math.log(0.6) + math.log(0.9)) / 2
    assert found.mean == Bounds(pytest.approx(mean), pytest.approx(mean))  # type: ignore[arg-type]
    assert found.is_greedy
    assert bound_answer([b"Paris", b" lies"], [PARIS, IS]).bounds[1].exact


def test_a_text_that_ends_early_leaves_the_rest_unknown() -> None:
    assert bound_answer([b"Paris", b" is"], [PARIS]).bounds == (
        Bounds(math.log(0.6), math.log(0.6)),
        UNKNOWN,
    )
    assert bound_answer([b"x"], []).mean == UNKNOWN


def test_a_token_whose_bytes_are_not_told_may_be_the_one() -> None:
    hidden = step("a", ("a", 0.5), (None, 0.3), ("b", 0.1))
    assert bound_token("é".encode(), hidden).upper == pytest.approx(math.log(0.3))


def test_a_part_of_a_character_is_known_only_where_its_bytes_are_told() -> None:
    part = "é".encode()[:1]
    told = Step(Candidate(b"a", math.log(0.6)), (Candidate(part, math.log(0.3)),))
    assert bound_token(part, told).exact
    # vLLM gives the last part of a character the text of all of it.
    assert bound_token(part, step("é", ("é", 0.9), ("a", 0.05))) == UNKNOWN


def test_two_tokens_of_the_same_bytes_give_bounds() -> None:
    twice = step("a", ("a", 0.5), ("b", 0.3), ("b", 0.1))
    assert bound_token(b"b", twice) == Bounds(math.log(0.1), math.log(0.3))


def test_without_a_tokenizer_the_generated_tokens_are_the_answers() -> None:
    assert (
        bound_text(b"Paris is", [PARIS, IS]).mean
        == bound_answer([b"Paris", b" is"], [PARIS, IS]).mean
    )
    # " is" is left for " was": 4 bytes, so one to four tokens more; " lies" cannot begin it.
    found = bound_text(b"Paris was", [PARIS, IS])
    most = (math.log(0.6) + math.log(0.05)) / (1 + 4)
    assert found.mean == Bounds(-math.inf, pytest.approx(most, abs=1e-3))  # type: ignore[arg-type]
    assert len(found.bounds) == 2


def test_a_token_with_which_the_answer_may_begin_bounds_it() -> None:
    parts = step("The", ("The", 0.6), ("Par", 0.2))
    assert bound_text(b"Paris", [parts]).bounds[0].upper == pytest.approx(math.log(0.2), abs=1e-3)
    spaced = step(" Paris", (" Paris", 0.9), ("x", 0.05))
    assert bound_text(b"Paris", [spaced]).bounds[0].upper == pytest.approx(math.log(0.9))


@given(
    st.lists(st.floats(min_value=1e-6, max_value=1.0), min_size=2, max_size=40),
    st.integers(min_value=1, max_value=20),
    st.randoms(use_true_random=False),
)
def test_no_token_is_outside_its_bounds(weights: list[float], k: int, rng: object) -> None:
    total = math.fsum(weights)
    logprobs = {f"t{i}".encode(): math.log(w / total) for i, w in enumerate(weights)}
    ranked = sorted(logprobs.items(), key=lambda pair: -pair[1])
    told = [Candidate(token, round(logprob, 5)) for token, logprob in ranked[:k]]
    here = Step(told[0], tuple(told))
    for token, logprob in logprobs.items():
        bounds = bound_token(token, here)
        assert bounds.lower - 1e-5 <= logprob <= bounds.upper + 1e-5
    assert outside(here) <= 0


def test_the_mean_of_an_unknown_token_is_unknown_below() -> None:
    assert mean_bounds([Bounds(-1.0, -1.0), UNKNOWN]) == Bounds(-math.inf, -0.5)
