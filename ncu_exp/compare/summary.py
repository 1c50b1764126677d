"""Every measure of every system with its interval, from resamples that all of them share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncu_exp.compare.matrices import Matrix
from ncu_exp.inference import bootstrap_ratios, percentile_interval, resampled_counts
from ncu_exp.measures import Statistic
from ncu_exp.stats import POOLED

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from ncu_exp.compare.systems import System
    from ncu_exp.stats import Resampling

    Floats = NDArray[np.float64]

COLUMNS = ("system", "corpus", "measure", "value", "lo", "hi", "lower", "upper", "n", "n_total")


class Resamples:
    """How often each item is drawn in each resample, drawn once for each corpus.

    Of all corpora together the items of each are drawn within it (a stratified bootstrap).
    """

    def __init__(self, items: Mapping[str, int], plan: Resampling) -> None:
        self.plan = plan
        self._counts = {corpus: resampled_counts(n, plan) for corpus, n in items.items()}

    def of(self, corpus: str) -> Floats:
        """(resamples, items)."""
        import numpy as np

        if corpus not in self._counts:  # pooled
            self._counts[corpus] = np.hstack(list(self._counts.values()))
        return self._counts[corpus]


@dataclass(frozen=True)
class Drawn:
    """A measure of some systems: values and draws at the lower and the upper ends of its items."""

    value_lower: Floats  # (systems,)
    value_upper: Floats
    lower: Floats  # (resamples, systems)
    upper: Floats


def draw(matrix: Matrix, resamples: Resamples) -> Drawn:
    """The measure of each system, over its items and over each resample of them."""
    counts = resamples.of(matrix.corpus)
    lower = _drawn(matrix, matrix.values.lower, matrix.totals.lower, counts=counts)
    upper = lower
    if not matrix.is_exact.all():
        upper = _drawn(matrix, matrix.values.upper, matrix.totals.upper, counts=counts)
    return Drawn(lower[0], upper[0], lower[1:], upper[1:])


def _drawn(matrix: Matrix, values: Floats, totals: Floats, *, counts: Floats) -> Floats:
    """Of all items, then of each resample of them: (1 + resamples, systems)."""
    import numpy as np

    if matrix.statistic is Statistic.median:
        return _medians(values, matrix, counts)
    above, below = matrix.per_cluster(values), matrix.per_cluster(totals)
    whole = bootstrap_ratios(above, below, counts=np.ones((1, counts.shape[1])))
    return np.vstack([whole, bootstrap_ratios(above, below, counts=counts)])


def summarise(matrix: Matrix, drawn: Drawn, *, confidence: float) -> list[dict[str, object]]:
    """A row of the summary for each system."""
    import numpy as np

    lo, _ = percentile_interval(drawn.lower, confidence)
    _, hi = percentile_interval(drawn.upper, confidence)
    n = matrix.mask.sum(axis=1)
    rows: list[dict[str, object]] = []
    for s, system in enumerate(matrix.systems):
        exact = matrix.is_exact[s]
        some = n[s] > 1
        rows.append(
            {
                "system": system,
                "corpus": matrix.corpus,
                "measure": matrix.name,
                "value": drawn.value_lower[s] if exact and n[s] else np.nan,
                "lo": lo[s] if some else np.nan,
                "hi": hi[s] if some else np.nan,
                "lower": np.nan if exact else drawn.value_lower[s],
                "upper": np.nan if exact else drawn.value_upper[s],
                "n": int(n[s]),
                "n_total": int(matrix.n_total[s]),
            }
        )
    return rows


def latencies(systems: Sequence[System]) -> list[dict[str, object]]:
    """The seconds that each run logged; of all corpora together, the mean of theirs."""
    import numpy as np

    rows: list[dict[str, object]] = []
    for system in systems:
        by_corpus: dict[str, dict[str, float]] = {}
        for run in system.runs:  # of two runs of one corpus, the newest that measured it
            logged = {k: v for k, v in run.run.metrics.items() if k.startswith("latency/")}
            by_corpus.setdefault(run.corpus, {}).update(logged)
        names = list(dict.fromkeys(name for logged in by_corpus.values() for name in logged))
        whole = {
            n: float(np.mean([logged[n] for logged in by_corpus.values() if n in logged]))
            for n in names
        }
        for corpus, logged in (*by_corpus.items(), (POOLED, whole)):
            for name, value in logged.items():
                empty = dict.fromkeys(("lo", "hi", "lower", "upper"), np.nan)
                row = {"system": system.label, "corpus": corpus, "measure": name, "value": value}
                rows.append({**row, **empty, "n": 0, "n_total": 0})
    return rows


def summary_frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """The rows as a frame, whatever their number."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def _medians(values: Floats, matrix: Matrix, counts: Floats) -> Floats:
    """The median of each system's values and of each resample of them: (1 + resamples, systems)."""
    import numpy as np

    found = np.full((1 + len(counts), len(values)), np.nan)
    for s, (of_system, mask) in enumerate(zip(values, matrix.mask, strict=True)):
        if mask.any():
            known, clusters = of_system[mask], matrix.clusters[mask]
            order = np.argsort(known, kind="stable")
            found[0, s] = np.median(known)
            found[1:, s] = _drawn_medians(known[order], clusters[order], counts)
    return found


def _drawn_medians(known: Floats, clusters: NDArray[np.int64], counts: Floats) -> Floats:
    """The median of each resample (resamples,) of sorted values; NaN of one that drew none.

    Resampled medians lie within a few sqrt(n) ranks of the middle: only those are counted through,
    or all of them where that proves wrong.
    """
    import numpy as np

    n = len(known)
    drawn = counts @ np.bincount(clusters, minlength=counts.shape[1]).astype(np.float64)
    halves = np.stack([(drawn - 1) // 2, drawn // 2], axis=1)  # ranks of the middle, from 0
    for reach in (4 * math.isqrt(n) + 8, n):
        low, high = max(0, n // 2 - reach), min(n, n // 2 + reach)
        weights = np.bincount(clusters[:low], minlength=counts.shape[1]).astype(np.float64)
        below = counts @ weights
        upto = below[:, np.newaxis] + np.cumsum(counts[:, clusters[low:high]], axis=1)
        if (below <= halves[:, 0]).all() and (upto[:, -1] > halves[:, 1])[drawn > 0].all():
            break
    places = [low + (upto > half[:, np.newaxis]).argmax(axis=1) for half in halves.T]
    with np.errstate(invalid="ignore"):  # infinities of both signs
        medians = (known[places[0]] + known[places[1]]) / 2
    return np.where(drawn > 0, medians, np.nan)
