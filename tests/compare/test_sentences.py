"""What a comparison says of a pair, in the words that a reader meets."""

from __future__ import annotations

import pytest

from ncu_exp.compare.sentences import _CLAIMS, _Evidence, _unsaid

CLAIM = next(claim for claim in _CLAIMS if claim.measure == "adversarial/prior_dominance")
EVIDENCE = _Evidence({"a": "34%", "b": "50%"}, family=150, power=0.8)


@pytest.mark.parametrize(
    ("lo", "hi", "told"),
    [
        # Many tests stand in the way, not the number of items.
        (-0.25, -0.08, "Its interval alone leaves out 0, but p = 0.11 after Holm's correction"),
        (-0.25, 0.01, "a difference of 12 points or more would be found with 80% power"),
    ],
)
def test_why_the_data_cannot_say(lo: float, hi: float, told: str) -> None:
    row = {
        "a": "a",
        "b": "b",
        "verdict": "undecided",
        "difference": -0.16,
        "lo": lo,
        "hi": hi,
        "lower": float("nan"),
        "upper": float("nan"),
        "n": 102,
        "p_holm": 0.1099,
        "measure": CLAIM.measure,
        "detectable": 0.12,
    }
    said = _unsaid(row, CLAIM, EVIDENCE)
    assert said.startswith("The data cannot say whether a or b recites more when the context")
    assert told in said
    assert ("power" in said) is (hi > 0)
