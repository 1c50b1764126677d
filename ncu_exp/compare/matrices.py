"""Every measure as a matrix, systems by items: what the statistics of a comparison work on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ncu_exp.compare.alignment import Block
from ncu_exp.measures import Ends, Measure, Statistic, measured
from ncu_exp.stats import POOLED

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from ncu_exp.config import MetricsConfig

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Matrix:
    """One measure of some systems over the rows of one corpus, or of all.

    Arrays are (systems, rows); a row is an item under one draw of its contexts, and `clusters`
    (rows,) says which item. Where `mask` is false a system has no value, and 0 stands there.
    `totals` are the denominators of a ratio, and the mask itself of a mean. `noise` is, per
    system, how far the numeric noise of its log-probabilities can move the measure.
    """

    corpus: str
    name: str
    statistic: Statistic
    systems: tuple[str, ...]
    values: Ends
    totals: Ends
    mask: NDArray[np.bool_]
    clusters: NDArray[np.int64]
    n_clusters: int
    n_total: NDArray[np.int64]
    noise: Floats

    @cached_property
    def is_exact(self) -> NDArray[np.bool_]:
        """Which systems' values are all known (systems,)."""
        known = (self.values.lower == self.values.upper).all(axis=1)
        found: NDArray[np.bool_] = known & (self.totals.lower == self.totals.upper).all(axis=1)
        return found

    @property
    def one_row_each(self) -> bool:
        """Whether no item has two rows."""
        return len(self.clusters) == self.n_clusters

    def per_cluster(self, values: Floats) -> Floats:
        """The sums of each item's rows: (systems, items)."""
        import numpy as np

        if self.one_row_each:
            return values  # rows stand in the order of the items
        sums = np.zeros((len(values), self.n_clusters))
        np.add.at(sums.T, self.clusters, values.T)
        return sums


def matrices_of(
    blocks: Sequence[Block],
    settings: Mapping[str, MetricsConfig],
    *,
    noise_nats: Mapping[str, float],
) -> list[Matrix]:
    """The measures of every corpus. `settings` and `noise_nats` are the systems'.

    `noise_nats` is the largest numeric error of a token's log-probability. Errors of items are
    independent, so that it moves the mean of n items by no more than 2 / sqrt(n) of it.
    """
    found: list[Matrix] = []
    for corpus in dict.fromkeys(block.corpus for block in blocks):
        drawn = [block for block in blocks if block.corpus == corpus]
        measures = _measures(drawn, settings, noise_nats)
        names = dict.fromkeys(name for of_system in measures.values() for name in of_system)
        items = sorted({i for b in drawn for t in b.tables.values() for i in t["item_id"].unique()})
        found += [_matrix(corpus, name, measures, items) for name in names]
    return found


def pooled(matrices: Sequence[Matrix]) -> list[Matrix]:
    """The same measures over several corpora together, of the systems that were asked all."""
    corpora = dict.fromkeys(m.corpus for m in matrices)
    by_name: dict[str, list[Matrix]] = {}
    for matrix in matrices:
        by_name.setdefault(matrix.name, []).append(matrix)
    whole = [ms for ms in by_name.values() if len(ms) == len(corpora)]
    return [m for ms in whole if (m := _stacked(ms)) is not None]


@dataclass(frozen=True)
class _Drawn:
    """A measure of one system under one draw, and the half width that numeric noise gives it."""

    draw: int
    measure: Measure
    noisy: Measure


def _measures(
    blocks: Sequence[Block],
    settings: Mapping[str, MetricsConfig],
    noise_nats: Mapping[str, float],
) -> dict[str, dict[str, list[_Drawn]]]:
    """By system and name, the measure under each draw."""
    found: dict[str, dict[str, list[_Drawn]]] = {}
    for block in blocks:
        for system, table in block.tables.items():
            noise = noise_nats[system] * min(1.0, 2 / math.sqrt(table["item_id"].nunique()))
            noisy = measured(_with_noise(table, noise), settings[system])
            exact = measured(table, settings[system])
            for measure, shaken in zip(exact, noisy, strict=True):
                drawn = _Drawn(block.draw, measure, shaken)
                found.setdefault(system, {}).setdefault(measure.name, []).append(drawn)
    return found


def _with_noise(table: pd.DataFrame, nats: float) -> pd.DataFrame:
    """The table with each exact mean bounded by the numeric noise of a token's log-probability."""

    lower, mean, upper = (
        table[name] for name in ("mean_logprob_lower", "mean_logprob", "mean_logprob_upper")
    )
    bounds = {
        "mean_logprob_lower": lower.mask(mean.notna(), mean - nats),
        "mean_logprob_upper": upper.mask(mean.notna(), (mean + nats).clip(upper=0)),
    }
    shaken: pd.DataFrame = table.assign(**bounds)
    return shaken


def _matrix(
    corpus: str,
    name: str,
    measures: Mapping[str, Mapping[str, list[_Drawn]]],
    items: Sequence[str],
) -> Matrix:
    import numpy as np

    systems = tuple(system for system, named in measures.items() if name in named)
    draws = sorted({d.draw for system in systems for d in measures[system][name]})
    place = {item: i for i, item in enumerate(items)}
    shape = (len(systems), len(items) * len(draws))
    arrays = {key: np.zeros(shape) for key in ("lower", "upper", "of_lower", "of_upper")}
    mask, n_total = np.zeros(shape, dtype=bool), np.zeros(len(systems), dtype=np.int64)
    noise = np.zeros(len(systems))
    for s, system in enumerate(systems):
        for drawn in measures[system][name]:
            measure = drawn.measure
            first = len(items) * draws.index(drawn.draw)
            rows = np.array([first + place[item] for item in measure.item_ids], dtype=np.int64)
            totals = measure.totals or Ends(np.ones(measure.n), np.ones(measure.n))
            arrays["lower"][s, rows], arrays["upper"][s, rows] = (
                measure.values.lower,
                measure.values.upper,
            )
            arrays["of_lower"][s, rows], arrays["of_upper"][s, rows] = totals.lower, totals.upper
            mask[s, rows] = True
            n_total[s] += measure.n_total
            noise[s] = max(noise[s], _half_width(drawn))
    any_drawn = next(iter(measures[systems[0]][name])).measure
    return Matrix(
        corpus=corpus,
        name=name,
        statistic=any_drawn.statistic,
        systems=systems,
        values=Ends(arrays["lower"], arrays["upper"]),
        totals=Ends(arrays["of_lower"], arrays["of_upper"]),
        mask=mask,
        clusters=np.tile(np.arange(len(items), dtype=np.int64), len(draws)),
        n_clusters=len(items),
        n_total=n_total,
        noise=noise,
    )


def _half_width(drawn: _Drawn) -> float:
    """How far numeric noise can move a mean or ratio; NaN of a median or of bounded values."""
    import numpy as np

    exact, noisy = drawn.measure, drawn.noisy
    if not exact.are_known or not exact.n or exact.statistic is Statistic.median:
        return float("nan")
    ones = np.ones(exact.n)

    def over(values: Floats, totals: Floats) -> float:
        total = totals.sum()
        return float(values.sum() / total) if total else float("nan")

    middle = over(exact.values.lower, exact.totals.lower if exact.totals else ones)
    low = over(noisy.values.lower, noisy.totals.lower if noisy.totals else ones)
    high = over(noisy.values.upper, noisy.totals.upper if noisy.totals else ones)
    return max(middle - low, high - middle)


def _stacked(matrices: Sequence[Matrix]) -> Matrix | None:
    """One measure of several corpora as one; items are drawn again within their corpus."""
    import numpy as np

    systems = tuple(s for s in matrices[0].systems if all(s in m.systems for m in matrices))
    if not systems:
        return None
    rows = [[m.systems.index(system) for system in systems] for m in matrices]

    def joined(arrays: Iterator[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.hstack([array[places] for array, places in zip(arrays, rows, strict=True)])

    offsets = np.cumsum([0, *(m.n_clusters for m in matrices[:-1])])
    clusters = [m.clusters + offset for m, offset in zip(matrices, offsets, strict=True)]
    noises = np.stack([m.noise[places] for m, places in zip(matrices, rows, strict=True)])
    return Matrix(
        corpus=POOLED,
        name=matrices[0].name,
        statistic=matrices[0].statistic,
        systems=systems,
        values=Ends(
            joined(m.values.lower for m in matrices), joined(m.values.upper for m in matrices)
        ),
        totals=Ends(
            joined(m.totals.lower for m in matrices), joined(m.totals.upper for m in matrices)
        ),
        mask=np.hstack([m.mask[places] for m, places in zip(matrices, rows, strict=True)]),
        clusters=np.concatenate(clusters),
        n_clusters=sum(m.n_clusters for m in matrices),
        n_total=sum((m.n_total[p] for m, p in zip(matrices, rows, strict=True)), np.array(0)),
        noise=noises.max(axis=0),
    )
