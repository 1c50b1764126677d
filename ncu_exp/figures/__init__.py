"""Figures: of one run, and of a comparison of systems."""

from ncu_exp.figures.comparison import comparison_figures
from ncu_exp.figures.run import (
    all_figures,
    latency,
    ncu_distribution,
    success_rates,
    surprisal_before_after,
)
from ncu_exp.figures.style import COLOURS, to_png, to_svg

__all__ = [
    "COLOURS",
    "all_figures",
    "comparison_figures",
    "latency",
    "ncu_distribution",
    "success_rates",
    "surprisal_before_after",
    "to_png",
    "to_svg",
]
