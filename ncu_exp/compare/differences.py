"""Pairwise differences: how large, how sure, and what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ncu_exp.compare.matrices import Matrix
from ncu_exp.inference import (
    bootstrap_ratios,
    equivalence_p,
    holm,
    matched_rates,
    mcnemar_exact,
    minimum_detectable,
    paired_t,
    percentile_interval,
    z_test,
)
from ncu_exp.measures import Statistic

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from ncu_exp.compare.summary import Drawn, Resamples
    from ncu_exp.config import CompareConfig

    Floats = NDArray[np.float64]
    End = Literal["lower", "upper"]

COLUMNS = (
    *("corpus", "measure", "a", "b", "difference", "lo", "hi", "lower", "upper", "n", "test", "p"),
    *("p_holm", "p_equivalence", "margin", "noise_floor", "detectable", "verdict"),
)
IN_NATS = ("surprisal", "log_odds")
UNLIKE = ("paper", "sampled")  # estimators whose numbers are of another kind


@dataclass(frozen=True)
class _Found:
    """Of system a against each later one (pairs,): the difference at one end of their values."""

    difference: Floats
    draws: Floats  # (resamples, pairs)
    p: Floats
    p_equivalence: Floats
    se: Floats


def differences_of(
    matrix: Matrix, drawn: Drawn, resamples: Resamples, *, settings: CompareConfig
) -> list[dict[str, object]]:
    """A row for each pair of systems, over the rows that both have.

    What the whole family decides, Holm's p and the verdict, is left to `judge`. Of bounded values
    p and p_equivalence are those of the ends that speak against them most.
    """
    import numpy as np

    nats = matrix.name.rpartition("/")[2] in IN_NATS
    margin = settings.margin_nats if nats else settings.margin
    rows: list[dict[str, object]] = []
    for a in range(len(matrix.systems) - 1):
        exact = matrix.is_exact[a] & matrix.is_exact[a + 1 :]
        low = _at(matrix, drawn, resamples, a=a, ends=("lower", "upper"), margin=margin)
        high = low
        if not exact.all():
            high = _at(matrix, drawn, resamples, a=a, ends=("upper", "lower"), margin=margin)
        shared = {"corpus": matrix.corpus, "measure": matrix.name, "margin": margin}
        found = _columns(matrix, a, low, high, exact=exact, resamples=resamples, settings=settings)
        rows += [
            {**shared, "test": _test_of(matrix), **{key: of[i] for key, of in found.items()}}
            for i in np.flatnonzero(found["n"]).tolist()
        ]
    return rows


def judge(
    rows: Sequence[Mapping[str, object]], estimators: Mapping[str, str], *, confidence: float
) -> pd.DataFrame:
    """The rows as a frame, with Holm's p over each corpus's family and what may be said.

    A difference is a tie within the numeric noise of its two systems; higher or lower where the
    family's test says so; equivalent where it is shown to lie within the margin; else undecided.
    """
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(COLUMNS))
    if frame.empty:
        return frame
    unlike = np.array(
        [
            estimators[a] != estimators[b] and bool({estimators[a], estimators[b]} & set(UNLIKE))
            for a, b in zip(frame["a"], frame["b"], strict=True)
        ]
    )
    frame.loc[unlike, ["p", "p_equivalence", "detectable"]] = np.nan
    frame["p_holm"] = frame.groupby("corpus", sort=False)["p"].transform(
        lambda p: holm(p.to_numpy(dtype="float64"))
    )
    alpha = 1 - confidence
    low, high = (frame["difference"].fillna(frame[end]) for end in ("lower", "upper"))
    verdicts = {
        "not_comparable": unlike,
        "tie": (frame["difference"].abs() <= frame["noise_floor"]).to_numpy(),
        "higher": ((frame["p_holm"] < alpha) & (low > 0)).to_numpy(),
        "lower": ((frame["p_holm"] < alpha) & (high < 0)).to_numpy(),
        "equivalent": (frame["p_equivalence"] < alpha).to_numpy(),
    }
    frame["verdict"] = np.select(
        list(verdicts.values()), list(verdicts), default="undecided"
    ).astype(object)
    return frame


def _columns(
    matrix: Matrix,
    a: int,
    low: _Found,
    high: _Found,
    *,
    exact: NDArray[np.bool_],
    resamples: Resamples,
    settings: CompareConfig,
) -> dict[str, Sequence[Any] | NDArray[Any]]:
    """Of system a and each later one, what a row tells of the pair, by column."""
    import numpy as np

    confidence, later = resamples.plan.confidence, matrix.systems[a + 1 :]
    p = np.where(low.difference > 0, low.p, np.where(high.difference < 0, high.p, 1.0))
    return {
        "a": [matrix.systems[a]] * len(later),
        "b": later,
        "difference": np.where(exact, low.difference, np.nan),
        "lo": percentile_interval(low.draws, confidence)[0],
        "hi": percentile_interval(high.draws, confidence)[1],
        "lower": np.where(exact, np.nan, low.difference),
        "upper": np.where(exact, np.nan, high.difference),
        "n": (matrix.mask[a] & matrix.mask[a + 1 :]).sum(axis=1),
        "p": np.where(exact, low.p, p),
        "p_equivalence": np.maximum(low.p_equivalence, high.p_equivalence),
        "noise_floor": np.maximum(matrix.noise[a], matrix.noise[a + 1 :]),
        "detectable": minimum_detectable(
            np.maximum(low.se, high.se), confidence=confidence, power=settings.power
        ),
    }


def _at(
    matrix: Matrix,
    drawn: Drawn,
    resamples: Resamples,
    *,
    a: int,
    ends: tuple[End, End],
    margin: float,
) -> _Found:
    """System a at one end of its values against each later one at one end of theirs."""
    import numpy as np

    ours, theirs = (getattr(matrix.values, end) for end in ends)
    mask = matrix.mask[a] & matrix.mask[a + 1 :]
    difference, draws = _drawn_differences(matrix, drawn, resamples, a=a, ends=ends)
    n = mask.sum(axis=1)
    test = _test_of(matrix)
    with np.errstate(invalid="ignore", divide="ignore"):  # values without bound; no rows
        if test == "mcnemar":
            only_a = (mask & (ours[a] > theirs[a + 1 :])).sum(axis=1)
            only_b = (mask & (ours[a] < theirs[a + 1 :])).sum(axis=1)
            gap, se = matched_rates(only_a, only_b, n)
            p = mcnemar_exact(only_a, only_b)
            equivalent = equivalence_p(gap, se, margin=margin)
        elif test == "paired_t":
            gaps = np.where(mask, ours[a] - theirs[a + 1 :], 0.0)
            mean = gaps.sum(axis=1) / n
            spread = np.where(mask, gaps - mean[:, np.newaxis], 0.0)
            sd = np.sqrt((spread**2).sum(axis=1) / (n - 1))
            se = sd / np.sqrt(n)
            p = paired_t(mean, sd, n)
            equivalent = equivalence_p(mean, se, margin=margin, df=n - 1)
        else:
            se = draws.std(axis=0, ddof=1)
            p = z_test(difference, se)
            equivalent = equivalence_p(difference, se, margin=margin)
    return _Found(difference, draws, p, equivalent, se)


def _drawn_differences(
    matrix: Matrix, drawn: Drawn, resamples: Resamples, *, a: int, ends: tuple[End, End]
) -> tuple[Floats, Floats]:
    """The differences to the later systems (pairs,) and their draws (resamples, pairs).

    The same resamples for every system, so that those of a difference are differences of theirs;
    where two systems do not have the same rows, over the rows that both have.
    """
    import numpy as np

    ours, theirs = ends
    whole = {"lower": drawn.value_lower, "upper": drawn.value_upper}
    draws_of = {"lower": drawn.lower, "upper": drawn.upper}
    with np.errstate(invalid="ignore"):
        difference = whole[ours][a] - whole[theirs][a + 1 :]
        draws = draws_of[ours][:, a, np.newaxis] - draws_of[theirs][:, a + 1 :]
    if matrix.statistic is Statistic.median:
        return difference, draws
    counts = resamples.of(matrix.corpus)
    for i in np.flatnonzero((matrix.mask[a] != matrix.mask[a + 1 :]).any(axis=1)):
        b = a + 1 + i
        shown = matrix.mask[a] & matrix.mask[b]
        above, below = (
            matrix.per_cluster(
                np.where(shown, np.stack([getattr(of, ours)[a], getattr(of, theirs)[b]]), 0.0)
            )
            for of in (matrix.values, matrix.totals)
        )
        both = bootstrap_ratios(above, below, counts=counts)
        value = bootstrap_ratios(above, below, counts=np.ones((1, counts.shape[1])))[0]
        with np.errstate(invalid="ignore"):
            difference[i], draws[:, i] = value[0] - value[1], both[:, 0] - both[:, 1]
    return difference, draws


def _test_of(matrix: Matrix) -> Literal["mcnemar", "paired_t", "bootstrap"]:
    """The test that fits: exact where each item has one row, else by the bootstrap's spread."""
    if matrix.one_row_each and matrix.statistic is Statistic.rate:
        return "mcnemar"
    if matrix.one_row_each and matrix.statistic is Statistic.mean:
        return "paired_t"
    return "bootstrap"
