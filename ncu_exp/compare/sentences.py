"""What the comparison says, in sentences with their evidence; and what it cannot say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.compare.texts import difference, metrics_by_name, probability
from ncu_exp.stats import POOLED, metric_of
from ncu_exp.wording import decimal, is_share, percent, told

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.compare.comparison import Comparison

_PAIRS = 3  # told in full for a measure; the rest is counted


@dataclass(frozen=True, slots=True)
class _Claim:
    """How a difference in a measure is said: `a {more} than b {where}`."""

    measure: str
    name: str
    more: str
    where: str


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What stands behind a sentence: the systems' values in words, and how it was tested."""

    values: Mapping[str, str]
    family: int  # tests
    power: float


_CLAIMS = (
    _Claim(
        "oracle/ncu",
        "NCU",
        "takes more from the gold context than",
        "",
    ),
    _Claim(
        "adversarial/prior_dominance",
        "prior dominance",
        "recites more than",
        " when the context states a false answer",
    ),
)
# Told where the gold context alone was not asked, the first that was.
_INSTEAD = (
    _Claim("noise/ncu", "NCU amid noise", "takes more from the context amid noise than", ""),
    _Claim("distractor/ncu", "NCU", "takes more from the gold passages amid distractors than", ""),
    _Claim("zero/accuracy", "zero-shot accuracy", "knows more answers without a context than", ""),
)


def sentences(comparison: Comparison) -> tuple[str, ...]:
    """The finding in plain words, the measures that the paper is about."""
    if len(comparison.compared) == 1:
        return tuple(_alone(comparison))
    found = comparison.differences
    tested = set(found["measure"])
    told = [claim for claim in _CLAIMS if claim.measure in tested]
    told = told or [claim for claim in _INSTEAD if claim.measure in tested][:1]
    said = [
        sentence
        for claim in told
        for sentence in _of_pairs(_pairs(found, claim), claim, comparison)
    ]
    return tuple(said) or ("No two systems share an item that was scored under one condition.",)


def _pairs(found: pd.DataFrame, claim: _Claim) -> pd.DataFrame:
    return found[(found["measure"] == claim.measure) & (found["corpus"] == POOLED)]


def _alone(comparison: Comparison) -> Iterator[str]:
    system = comparison.compared[0].label
    rows = comparison.summary[comparison.summary["corpus"] == POOLED]
    metrics = metrics_by_name(rows)
    for claim in _CLAIMS:
        if claim.measure in metrics:
            found = metrics[claim.measure]
            yield f"{system}: {claim.name} {told(found)} over {found.n:,} items."
    yield "One system alone: there is nothing to compare it with."


def _of_pairs(pairs: pd.DataFrame, claim: _Claim, comparison: Comparison) -> Iterator[str]:
    """The largest differences that are sure, then equivalences, then what cannot be said."""
    size = pairs["difference"].abs().fillna(0)
    order = pairs.assign(size=size).sort_values("size", ascending=False, kind="stable")
    family = int(comparison.differences.query("corpus == @POOLED")["p"].count())
    power = comparison.settings.power
    evidence = _Evidence(_values(comparison, claim.measure), family, power)
    for verdicts, tell in (
        (("higher", "lower"), _different),
        (("equivalent", "tie"), _alike),
        (("undecided", "not_comparable"), _unsaid),
    ):
        found = order[order["verdict"].isin(verdicts)].to_dict("records")
        for row in found[:_PAIRS]:
            yield tell(row, claim, evidence)
        if len(found) > _PAIRS:
            more, what = len(found) - _PAIRS, " or ".join(v.replace("_", " ") for v in verdicts)
            yield f"In {claim.name}, {more:,} more pairs are {what}: see the table of differences."


def _different(row: Mapping[Any, Any], claim: _Claim, evidence: _Evidence) -> str:
    a, b = (row["a"], row["b"]) if row["verdict"] == "higher" else (row["b"], row["a"])
    values = evidence.values
    return (
        f"{a} {claim.more} {b}{claim.where}: {claim.name} {values[a]} against {values[b]}, a "
        f"difference of {difference(_turned(row, a))} over {row['n']:,} items (p "
        f"{_p(row['p_holm'])} after Holm's correction for {evidence.family:,} tests)."
    )


def _alike(row: Mapping[Any, Any], claim: _Claim, evidence: _Evidence) -> str:
    a, b, values = row["a"], row["b"], evidence.values
    pair = f"{a} and {b}"
    if row["verdict"] == "tie":
        return (
            f"{pair} are tied in {claim.name}, {values[a]} and {values[b]}: they differ by no more "
            "than the numeric noise of their precisions."
        )
    margin = _amount(row["margin"], claim.measure)
    return (
        f"{pair} are equivalent in {claim.name} within ±{margin}, {values[a]} and {values[b]}: a "
        f"difference of {difference(row)} over {row['n']:,} items (two one-sided tests, p "
        f"{_p(row['p_equivalence'])})."
    )


def _unsaid(row: Mapping[Any, Any], claim: _Claim, evidence: _Evidence) -> str:
    a, b, values = row["a"], row["b"], evidence.values
    if row["verdict"] == "not_comparable":
        return f"{a} and {b} cannot be compared in {claim.name}: their numbers are of other kinds."
    return (
        f"The data cannot say whether {a} or {b} {claim.more.removesuffix(' than')}{claim.where}: "
        f"{claim.name} {values[a]} and {values[b]}, a difference of {difference(row)} over "
        f"{row['n']:,} items.{_why_unsaid(row, claim, evidence)}"
    )


def _why_unsaid(row: Mapping[Any, Any], claim: _Claim, evidence: _Evidence) -> str:
    """That many tests were made at once, or that a difference would have to be larger."""
    least = row["detectable"]
    if row["lo"] > 0 or row["hi"] < 0:
        return (
            f" Its interval alone leaves out 0, but p {_p(row['p_holm'])} after Holm's correction "
            f"for {evidence.family:,} tests."
        )
    if not math.isfinite(least):
        return ""
    return (
        f" With this many items a difference of {_amount(least, claim.measure)} or more would be "
        f"found with {evidence.power:.0%} power."
    )


def _values(comparison: Comparison, measure: str) -> dict[str, str]:
    """Each system's value without its interval, in words."""
    rows = comparison.summary
    of_all = rows[(rows["corpus"] == POOLED) & (rows["measure"] == measure)].to_dict("records")
    return {str(row["system"]): told(metric_of(row)).partition(" ")[0] for row in of_all}


def _turned(row: Mapping[Any, Any], first: str) -> Mapping[Any, Any]:
    """The difference as first minus second."""
    if row["a"] == first:
        return row
    turned = {"lo": "hi", "hi": "lo", "lower": "upper", "upper": "lower"}
    return {
        **row,
        "difference": -row["difference"],
        **{key: -row[other] for key, other in turned.items()},
    }


def _amount(value: float, measure: str) -> str:
    return f"{percent(value)} points" if is_share(measure) else decimal(value)


def _p(p: float) -> str:
    told = probability(p)
    return told if told.startswith("<") else f"= {told}"
