"""How numbers are told, in the terminal, in reports and in comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable

from ncu_exp.stats import Metric

# Measures that are shares, told in percent; the others have two decimals.
SHARES = frozenset(
    {
        "accuracy",
        "em",
        "f1",
        "negative_transfer_rate",
        "prior_dominance",
        "prior_dominance_contrastive",
        "adherence",
        "censored_items",
        "censored_tokens",
    }
)


def is_share(name: str) -> bool:
    """Whether a metric, `<condition>/<measure>`, is told in percent."""
    return name.rpartition("/")[2] in SHARES


def has_number(metric: Metric) -> bool:
    """Whether there is a number, or bounds of one."""
    return metric.is_bounded or not math.isnan(metric.value)


def told(metric: Metric) -> str:
    """A number with its unit, or the two that it lies between, and its interval behind it.

    `54% [50, 57]`, `31…78% [25, 84]`, `0.86 [0.84, 0.88]`; empty where there is none.
    """
    if not has_number(metric):
        return ""
    return in_percent(metric) if is_share(metric.name) else _in_words(metric, decimal)


def in_percent(metric: Metric) -> str:
    """The same in percent, whatever the metric is told in elsewhere."""
    return _in_words(metric, percent, "%")


def _in_words(metric: Metric, number: Callable[[float], str], unit: str = "") -> str:
    ends = (metric.lower, metric.upper) if metric.is_bounded else (metric.value,)
    return "…".join(map(number, ends)) + unit + interval(metric.lo, metric.hi, number)


def interval(lo: float, hi: float, number: Callable[[float], str]) -> str:
    """` [lo, hi]`, or nothing where there is none."""
    return "" if math.isnan(lo) else f" [{number(lo)}, {number(hi)}]"


def percent(share: float) -> str:
    """A share in whole percent, without the sign."""
    return _plain(f"{100 * share:z.0f}")


def decimal(value: float) -> str:
    """Two decimals; none of a thousand and more."""
    return _plain(f"{value:z,.{0 if 1000 <= abs(value) < math.inf else 2}f}")


def _plain(text: str) -> str:
    return text.replace("inf", "∞")
