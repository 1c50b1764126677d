"""Other settings of the metric, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ncu_exp.compare.alignment import Block
from ncu_exp.compare.items import COLUMNS, items_frame
from ncu_exp.compare.sensitivity import sensitivity_of
from ncu_exp.records import Condition, Continuation, ContinuationScore, Score
from ncu_exp.tables import items_table
from tests.synthetic import SETTINGS, arm, item, run, score


def items(**columns: list[float]) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    return frame.reindex(columns=[*columns, *(c for c in COLUMNS if c not in columns)])


def values(found: pd.DataFrame, measure: str) -> dict[str, float]:
    rows = found[found["measure"] == measure]
    return dict(zip(rows["setting"], rows["value"], strict=True))


def test_each_setting_by_hand() -> None:
    frame = items(s_prior=[2.0, 1.0], s_post=[1.0, 3.0], s_adversarial=[0.5, 4.0])
    found = sensitivity_of(frame.assign(system="a"), SETTINGS)
    ncu = values(found, "oracle/ncu")
    assert ncu["epsilon = 0.1"] == pytest.approx((1 / 2.1 + 0) / 2)
    assert ncu["raw mean"] == pytest.approx((0.5 - 2) / 2, abs=1e-4)
    assert ncu["pooled"] == pytest.approx((3 - 4) / 3)
    # exp(-1) = 0.37, exp(-3) = 0.0498; exp(-0.5) = 0.61, exp(-4) = 0.018
    assert values(found, "oracle/accuracy") == {
        "tau = 0.01": 1, "tau = 0.05": 0.5, "tau = 0.1": 0.5, "tau = 0.2": 0.5, "tau = 0.5": 0,
    }  # fmt: skip
    assert values(found, "adversarial/prior_dominance")["tau = 0.01"] == 1
    assert not any(setting.startswith("aliases") for setting in found["setting"])
    default = found[found["is_default"]]["setting"].unique()
    assert list(default) == ["tau = 0.05", "epsilon = 1e-05", "clipped mean"]


def test_ranks_count_from_the_highest_and_ties_share() -> None:
    frame = pd.concat(
        [
            items(s_prior=[2.0], s_post=[post], s_adversarial=[math.nan]).assign(system=system)
            for system, post in {"a": 1.0, "b": 0.5, "c": 1.0}.items()
        ]
    )
    found = sensitivity_of(frame, SETTINGS)
    pooled = found[found["setting"] == "pooled"].set_index("system")["rank"]
    assert pooled.to_dict() == {"a": 2.5, "b": 1.0, "c": 2.5}
    assert "adversarial/prior_dominance" not in set(found["measure"])  # nobody has it


def test_a_bounded_system_has_no_rank() -> None:
    frame = items(s_prior=[2.0, math.nan], s_post=[1.0, math.nan]).assign(system="a")
    exact = items(s_prior=[2.0, 2.0], s_post=[1.0, 1.0]).assign(system="b")
    found = sensitivity_of(pd.concat([frame, exact]), SETTINGS)
    default = found[(found["setting"] == "epsilon = 1e-05")].set_index("system")
    assert math.isnan(default.loc["a", "rank"])
    assert default.loc["b", "rank"] == 1


def with_alias(of: Score, logprobs: tuple[float, ...]) -> Score:
    alias = ContinuationScore(
        continuation=Continuation.alias,
        text="Lutetia",
        token_ids=(1,) * len(logprobs),
        token_logprobs=logprobs,
        boundary_merged=False,
        is_greedy=False,
    )
    return Score(of.item_id, of.condition, (*of.continuations, alias), prompt_sha256="ab" * 32)


def test_the_likeliest_answer_and_any_answer() -> None:
    zero = with_alias(score("x", Condition.zero, [-2.0, -4.0]), (-1.0,))
    oracle = with_alias(score("x", Condition.oracle, [-0.5, -0.5]), (-3.0,))
    arms = [arm("x", Condition.zero), arm("x", Condition.oracle)]
    paris = item("x", aliases=("Lutetia",))
    table = items_table([paris], arms, scores=[zero, oracle], settings=SETTINGS)
    assert list(table["continuation"]) == ["true", "alias"] * 2
    [found] = items_frame([Block("sample", 0, {"a": table})], {"a": SETTINGS}).to_dict("records")
    assert (found["s_prior_best"], found["s_post_best"]) == (1.0, 0.5)
    assert found["s_prior_any"] == pytest.approx(-np.log(np.exp(-6) + np.exp(-1)) / 2)
    assert found["s_post_any"] == pytest.approx(-np.log(np.exp(-1) + np.exp(-3)) / 2)
    frame = pd.DataFrame([found])
    best = values(sensitivity_of(frame, SETTINGS), "oracle/ncu")["aliases: likeliest answer"]
    assert best == pytest.approx(0.5, abs=1e-4)


def test_without_aliases_there_is_no_alias_rule() -> None:
    made = run(6)
    table = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    found = items_frame([Block("sample", 0, {"a": table})], {"a": SETTINGS})
    assert found["s_prior_best"].isna().all()
