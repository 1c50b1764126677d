"""The figures of a comparison of systems, in the order of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncu_exp.figures.bump import sensitivity as _sensitivity
from ncu_exp.figures.forest import differences as _differences
from ncu_exp.figures.heat import heat_map
from ncu_exp.figures.ladder import precision_ladder
from ncu_exp.figures.rates import negative_transfer, prior_dominance, success_by_condition
from ncu_exp.figures.readings import comparison
from ncu_exp.figures.recited import prior_and_context
from ncu_exp.figures.scaling import scaling
from ncu_exp.figures.spread import ncu_distribution

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def comparison_figures(
    systems: pd.DataFrame,
    summary: pd.DataFrame,
    *,
    items: pd.DataFrame,
    differences: pd.DataFrame,
    sensitivity: pd.DataFrame,
    tau: float,
    confidence: float,
    margin: float | None,
) -> dict[str, Figure]:
    """Every figure of a comparison by file name (without suffix), empty ones included.

    The frames are tidy: a row per system; per system, corpus and measure; per system and item; per
    pair of systems; per setting. `margin` is the largest difference that does not matter, as a
    share, for rows of `differences` that name none.
    """
    of = comparison(systems, summary, tau=tau, confidence=confidence, margin=margin)
    shown = {system.name for system in of.systems}
    items = items[items["system"].isin(shown)]
    return {
        "success_by_condition": success_by_condition(of),
        "ncu_distribution": ncu_distribution(of, items),
        "prior_dominance": prior_dominance(of),
        "negative_transfer": negative_transfer(of),
        "scaling": scaling(of),
        "heat_map": heat_map(of),
        "prior_and_context": prior_and_context(of, items),
        "precision_ladder": precision_ladder(of, differences),
        "differences": _differences(of, differences),
        "sensitivity": _sensitivity(of, sensitivity),
    }
