"""The items table: its columns, what becomes of each arm, and what survives a Parquet file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ncu_exp.metrics import aggregate
from ncu_exp.records import Arm, Condition, Item, Score
from ncu_exp.tablefile import (
    ParquetAppender,
    parquet_schema,
    preview,
    read_first_rows,
    read_measured,
    read_rows,
)
from ncu_exp.tables import DTYPES, items_table
from tests.synthetic import SETTINGS, Run, arm, item, run, score

ZERO, ORACLE, FALSE = Condition.zero, Condition.oracle, Condition.adversarial

CONTRACT = [
    *["item_id", "corpus", "condition", "continuation", "text", "token_ids", "token_logprobs"],
    *["n_tokens", "sum_logprob", "mean_logprob", "surprisal_nats", "mean_logprob_lower"],
    *["mean_logprob_upper", "estimator", "is_greedy", "greedy_text", "em", "f1", "cus", "ncu"],
    *["ncu_raw", "prompt_sha256", "boundary_merged", "status", "reason"],
]


def table(items: list[Item], arms: list[Arm], scores: list[Score]) -> pd.DataFrame:
    return items_table(items, arms, scores=scores, settings=SETTINGS)


def only_row(score_: Score, *, condition: Condition = ZERO) -> pd.Series:
    return table([item("a")], [arm("a", condition)], [score_]).iloc[0]


@pytest.fixture
def mixed() -> pd.DataFrame:
    """Two items: one scored throughout; one without context and without a zero score."""
    items = [item("a"), item("b")]
    arms = [
        arm("b", ORACLE, reason="the item has no context"),
        arm("b", ZERO),
        arm("a", FALSE),
        arm("a", ZERO),
        arm("a", ORACLE),
    ]
    scores = [
        score("a", FALSE, [-3.0], false=[-0.5, -1.5], greedy="Zedville"),
        score("a", ZERO, [-2.0]),
        score("a", ORACLE, [-0.25, -0.75]),
        Score(
            "b", ZERO, prompt_tokens=5000, reason="the prompt has 5,000 tokens, the window 2,048"
        ),
    ]
    return table(items, arms, scores)


def test_columns_are_those_of_the_contract_and_some_more(mixed: pd.DataFrame) -> None:
    more = {"question", "answer", "context_source", "kind", "prompt_tokens"}
    more |= {"token_logprobs_lower", "token_logprobs_upper", "n_censored", "context_sha256"}
    more |= {f"{name}_{end}" for name in ("cus", "ncu", "ncu_raw") for end in ("lower", "upper")}
    assert [name for name in mixed.columns if name not in more] == CONTRACT
    assert set(mixed.columns) - set(CONTRACT) == more
    assert parquet_schema().names == list(mixed.columns)


def test_rows_follow_the_items_then_the_conditions(mixed: pd.DataFrame) -> None:
    keys = list(zip(mixed["item_id"], mixed["condition"], mixed["continuation"], strict=True))
    assert keys == [
        ("a", "zero", "true"),
        ("a", "oracle", "true"),
        ("a", "adversarial", "true"),
        ("a", "adversarial", "fabricated"),
        ("b", "zero", "true"),
        ("b", "oracle", "true"),
    ]


def test_a_scored_row_holds_the_score(mixed: pd.DataFrame) -> None:
    row = mixed.iloc[1]
    assert row["token_ids"] == [0, 1]
    assert row["token_logprobs"] == [-0.25, -0.75]
    assert row["n_tokens"] == 2
    assert row["sum_logprob"] == -1.0
    assert row["mean_logprob"] == row["mean_logprob_lower"] == row["mean_logprob_upper"] == -0.5
    assert row["surprisal_nats"] == 0.5
    assert (row["estimator"], row["prompt_tokens"], row["prompt_sha256"]) == (
        "exact",
        40,
        "ab" * 32,
    )
    assert (row["status"], row["reason"]) == ("ok", "")
    assert (row["question"], row["answer"]) == ("Which city is number a?", "Paris")


def test_utilisation_stands_on_true_rows_with_a_scored_prior(mixed: pd.DataFrame) -> None:
    # S_prior 2; oracle 0.5: CUS 1.5; adversarial 3: CUS -1, raw NCU -1 / 2.00001, NCU 0.
    assert mixed["cus"].tolist() == pytest.approx(
        [math.nan, 1.5, -1, math.nan, math.nan, math.nan], nan_ok=True
    )
    assert mixed["ncu_raw"].iloc[[1, 2]].tolist() == pytest.approx([1.5 / 2.00001, -1 / 2.00001])
    assert mixed["ncu"].iloc[[1, 2]].tolist() == pytest.approx([1.5 / 2.00001, 0])


def test_no_utilisation_without_a_scored_zero_row() -> None:
    arms = [arm("a", ZERO), arm("a", ORACLE)]
    scores = [Score("a", ZERO, reason="too long"), score("a", ORACLE, [-1.0])]
    made = table([item("a")], arms, scores)
    assert made["status"].tolist() == ["error", "ok"]
    assert made[["cus", "ncu", "ncu_raw"]].isna().all(axis=None)


def test_an_excluded_arm_and_an_error_keep_their_reasons_and_no_numbers(
    mixed: pd.DataFrame,
) -> None:
    error, excluded = mixed.iloc[4], mixed.iloc[5]
    assert (error["status"], error["reason"][:20]) == ("error", "the prompt has 5,000")
    assert error["prompt_tokens"] == 5000
    assert (excluded["status"], excluded["reason"]) == ("excluded", "the item has no context")
    numbers = ["mean_logprob", "surprisal_nats", "em", "f1", "mean_logprob_lower", "n_tokens"]
    assert mixed.loc[[4, 5], [*numbers, "token_ids", "greedy_text"]].isna().all(axis=None)


def test_an_excluded_adversarial_arm_has_both_rows() -> None:
    made = table([item("a")], [arm("a", FALSE, reason="yes or no")], [])
    assert made["continuation"].tolist() == ["true", "fabricated"]
    assert made["status"].tolist() == ["excluded", "excluded"]
    assert made["text"].isna().tolist() == [False, True]


def test_greedy_text_is_matched_with_the_answer_of_its_row() -> None:
    aliased = item("a", answer="United States", aliases=("USA",))
    said = score("a", FALSE, [-1.0], false=[-1.0], greedy="the USA.", answer="United States")
    made = table([aliased], [arm("a", FALSE)], [said])
    assert made["em"].tolist() == [1, 0]  # an alias of the true answer; not the fabricated one
    said = replace(said, greedy_text="Zedville")
    assert table([aliased], [arm("a", FALSE)], [said])["em"].tolist() == [0, 1]


def test_no_string_matching_where_the_run_generated_nothing() -> None:
    made = [score("a", ZERO, [-1.0], greedy="")]
    (_, row), *_ = items_table(
        [item("a")], [arm("a", ZERO)], scores=made, settings=SETTINGS, generated=False
    ).iterrows()
    assert row["status"] == "ok"
    assert pd.isna(row[["greedy_text", "em", "f1"]]).all()


def test_an_empty_generation_is_a_wrong_answer() -> None:
    assert table([item("a")], [arm("a", ZERO)], [score("a", ZERO, [-1.0], greedy="")])[
        "em"
    ].tolist() == [0]


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        ([-1.0, -math.inf], "a log-probability is not finite"),
        ([math.nan], "a log-probability is not finite"),
        ([], "the answer has no tokens"),
    ],
)
def test_what_is_no_number_is_an_error(logprobs: list[float], reason: str) -> None:
    row = only_row(score("a", ZERO, logprobs))
    assert (row["status"], row["reason"]) == ("error", reason)
    assert pd.isna(row["mean_logprob"])


def test_an_arm_without_score_and_a_missing_continuation_are_errors() -> None:
    made = table([item("a")], [arm("a", ZERO), arm("a", FALSE)], [score("a", FALSE, [-1.0])])
    assert made["status"].tolist() == ["error", "ok", "error"]
    assert made["reason"].tolist() == ["not scored", "", "this answer was not scored"]


def test_a_convention_bounds_nothing() -> None:
    row = only_row(replace(score("a", ZERO, [-1.0]), estimator="paper"))
    assert row["mean_logprob"] == -1
    assert pd.isna(row[["mean_logprob_lower", "mean_logprob_upper"]]).all()


def test_two_arms_or_scores_of_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Two Arm records .*'a'"):
        table([item("a")], [arm("a", ZERO), arm("a", ZERO)], [])
    with pytest.raises(ValueError, match=r"Two Score records .*'a'"):
        table([item("a")], [arm("a", ZERO)], [score("a", ZERO, [-1.0])] * 2)


def test_an_arm_of_no_item_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not in the run: \['b'\]"):
        table([item("a")], [arm("b", ZERO)], [])


def test_the_table_and_the_metrics_agree() -> None:
    made = run(40)
    whole = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    found = {metric.name: metric.value for metric in aggregate(whole, settings=SETTINGS)}
    for condition in ("oracle", "adversarial", "noise"):
        rows = whole[whole["condition"] == condition]
        assert found[f"{condition}/ncu"] == pytest.approx(rows["ncu"].mean())
        assert found[f"{condition}/ncu_raw_median"] == pytest.approx(rows["ncu_raw"].median())


@pytest.mark.parametrize("rows", [0, 1, 6], ids=["empty", "unscored", "all"])
def test_parquet_keeps_types_and_values(mixed: pd.DataFrame, rows: int, tmp_path: Path) -> None:
    part = {0: mixed.iloc[:0], 1: mixed.iloc[5:], 6: mixed}[rows]
    path = tmp_path / "items.parquet"
    part.to_parquet(path, index=False, schema=parquet_schema())
    stored = pq.read_schema(path)
    assert stored.field("token_ids").type == pa.list_(pa.int64())
    assert stored.field("token_logprobs").type == pa.list_(pa.float64())
    assert stored.remove_metadata() == parquet_schema()
    back = pd.read_parquet(path)
    assert back.dtypes.to_dict() == mixed.dtypes.to_dict()
    lists = ["token_ids", "token_logprobs"]
    pd.testing.assert_frame_equal(
        back.drop(columns=lists), part.drop(columns=lists).reset_index(drop=True)
    )
    for name in lists:
        pairs = zip(back[name], part[name], strict=True)
        assert all(y is x is None or np.array_equal(x, y) for x, y in pairs)


def write_in_blocks(made: Run, path: Path, block: int) -> None:
    file = ParquetAppender(path, parquet_schema())
    for first in range(0, len(made.items), block):
        items = made.items[first : first + block]
        ids = {item.item_id for item in items}
        part = items_table(
            items,
            [a for a in made.arms if a.item_id in ids],
            scores=[s for s in made.scores if s.item_id in ids],
            settings=SETTINGS,
        )
        file.append(part)
        assert not path.exists()
    file.close()


@pytest.mark.parametrize("block", [1, 7, 40])
def test_a_table_written_in_blocks_is_the_whole_table(block: int, tmp_path: Path) -> None:
    made, path = run(20), tmp_path / "items.parquet"
    whole = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    write_in_blocks(made, path, block)
    assert [p.name for p in tmp_path.iterdir()] == ["items.parquet"]
    lists = ["token_ids", "token_logprobs"]
    back = pd.read_parquet(path)
    pd.testing.assert_frame_equal(back.drop(columns=lists), whole.drop(columns=lists))
    first = read_first_rows(path, rows=3)
    pd.testing.assert_frame_equal(first.drop(columns=lists), whole.drop(columns=lists).head(3))
    chosen = read_rows(path, {"i0003", "i0011"})
    assert chosen["item_id"].unique().tolist() == ["i0003", "i0011"]
    assert chosen["token_ids"].map(list).tolist() == (
        whole[whole["item_id"].isin(["i0003", "i0011"])]["token_ids"].map(list).tolist()
    )


def test_what_is_kept_for_metrics_gives_the_same_metrics(tmp_path: Path) -> None:
    made, path = run(40), tmp_path / "items.parquet"
    whole = items_table(made.items, made.arms, scores=made.scores, settings=SETTINGS)
    write_in_blocks(made, path, 16)
    measured = read_measured(path)
    for name in ("item_id", "condition", "continuation", "status", "reason"):
        assert isinstance(measured[name].dtype, pd.CategoricalDtype)
    # repr: NaN equals NaN there
    assert repr(aggregate(measured, settings=SETTINGS)) == repr(aggregate(whole, settings=SETTINGS))


def test_a_table_that_is_not_whole_leaves_nothing(tmp_path: Path) -> None:
    file = ParquetAppender(tmp_path / "items.parquet", parquet_schema())
    file.append(table([item("a")], [arm("a", ZERO)], []))
    file.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    file = ParquetAppender(tmp_path / "items.parquet", parquet_schema())
    file.close()
    assert pd.read_parquet(tmp_path / "items.parquet").columns.tolist() == list(DTYPES)


def test_a_plain_to_parquet_writes_typed_lists_too(mixed: pd.DataFrame, tmp_path: Path) -> None:
    mixed.to_parquet(tmp_path / "items.parquet")
    stored = pq.read_schema(tmp_path / "items.parquet")
    assert stored.field("token_ids").type == pa.list_(pa.int64())
    assert stored.field("token_logprobs").type == pa.list_(pa.float64())


def test_an_empty_run_has_the_types_of_a_full_one(mixed: pd.DataFrame) -> None:
    assert table([], [], []).dtypes.to_dict() == mixed.dtypes.to_dict()


def test_the_preview_is_plain_json_with_none_for_missing(mixed: pd.DataFrame) -> None:
    shown = preview(mixed)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    first = dict(zip(shown["columns"], shown["data"][0], strict=True))
    assert first["question"] == "Which city is number a?"
    assert (first["surprisal_nats"], first["ncu"], first["em"]) == (2.0, None, 1.0)
    assert len(shown["data"]) == 6
    assert len(preview(mixed, rows=2)["data"]) == 2


def test_the_preview_of_long_texts_stays_small() -> None:
    made = run(60)
    items = [replace(i, question="word " * 25_000) for i in made.items]
    shown = preview(items_table(items, made.arms, scores=made.scores, settings=SETTINGS))
    assert len(shown["data"]) == 200
    assert len(json.dumps(shown)) < 500_000
    assert shown["data"][0][3].endswith("…")
