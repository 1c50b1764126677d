"""The paper's own figures, to stand beside those of the same models here.

Source: "Quantifying Prior Dominance in RAG Systems", arXiv 2606.23695, Table 1 and Figures 4 and
5: 1,000 items of each of NQ, TriviaQA and HotpotQA; no intervals are given there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ncu_exp.stats import Metric


@dataclass(frozen=True, slots=True)
class Published:
    """One row of the paper's Table 1, by our names of the measures; shares between 0 and 1."""

    label: str
    names: tuple[str, ...]  # of the checkpoint or API model, in lower case
    values: tuple[float, ...]  # in the order of MEASURES


MEASURES = (
    "zero/accuracy",
    "oracle/accuracy",
    "noise/accuracy",
    "adversarial/prior_dominance",
    "oracle/ncu",
    "oracle/ncu_raw_mean",
    "oracle/negative_transfer_rate",
    "latency/oracle_p50_s",
)
TABLE_1 = (
    Published(
        "Qwen2.5-1.5B",
        ("qwen2.5-1.5b-instruct",),
        (0.536, 0.959, 0.955, 0.349, 0.864, 0.620, 0.038, 0.041),
    ),
    Published(
        "Qwen2.5-7B",
        ("qwen2.5-7b-instruct",),
        (0.519, 0.923, 0.923, 0.331, 0.864, -74.128, 0.048, 0.093),
    ),
    Published(
        "Qwen2.5-72B",
        ("qwen2.5-72b-instruct", "qwen2.5-72b-instruct-awq"),
        (0.559, 0.918, 0.917, 0.425, 0.868, -20.882, 0.046, 0.389),
    ),
    Published(
        "gpt-4o-mini",
        ("gpt-4o-mini",),
        (0.620, 0.901, 0.892, 0.471, 0.777, -7779.254, 0.098, 2.982),
    ),
)


def published(model_name: str) -> Published | None:
    """The paper's row of a model, by the last part of its hub id, directory or API name."""
    last = model_name.rstrip("/").rpartition("/")[2].lower()
    return next((row for row in TABLE_1 if last in row.names), None)


def metrics_of(row: Published) -> dict[str, Metric]:
    """The paper's figures as metrics without intervals, by name."""
    return {
        name: Metric(name, value, math.nan, math.nan, 0, 0)
        for name, value in zip(MEASURES, row.values, strict=True)
    }
