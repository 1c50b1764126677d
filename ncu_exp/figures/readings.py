"""What the tidy frames of a comparison say, as the figures read them: systems, corpora, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ncu_exp.figures.style import NOT_COMPARABLE, counted, short_labels
from ncu_exp.stats import POOLED, Metric, metric_of
from ncu_exp.wording import has_number

if TYPE_CHECKING:
    import pandas as pd

MAX_SYSTEMS = 24  # more are no figure to be read; the tables have them all
MAX_PANELS = 12
_LABEL_CHARACTERS, _TITLE_CHARACTERS = 30, 82
_DAGGERS = {"paper": "†", "sampled": "‡"}


@dataclass(frozen=True, slots=True)
class System:
    """What is compared; `label` is short, and has a dagger where it is not comparable."""

    name: str
    label: str
    model: str
    precision: str
    prompt: str
    estimator: str
    params_b: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Systems in the order to be shown, and their metrics by system, corpus and measure."""

    systems: tuple[System, ...]  # those that are shown
    n_systems: int
    corpora: tuple[str, ...]
    metrics: Mapping[tuple[str, str, str], Metric]
    tau: float
    confidence: float
    margin: float | None

    def metric(self, system: System, measure: str, *, corpus: str = POOLED) -> Metric | None:
        """A metric that has a value or bounds; None where there is none."""
        found = self.metrics.get((system.name, corpus, measure))
        return found if found is not None and has_number(found) else None

    def label_of(self, system: str) -> str:
        """The label of the system with this name."""
        shown = (s.label for s in self.systems if s.name == system)
        return next(shown, None) or shorten(system, limit=_LABEL_CHARACTERS)


def comparison(
    systems: pd.DataFrame,
    summary: pd.DataFrame,
    *,
    tau: float,
    confidence: float,
    margin: float | None,
) -> Comparison:
    """The frames `systems` and `summary`, read."""
    metrics = {
        (row["system"], row["corpus"], row["measure"]): metric_of(row)
        for row in summary.to_dict("records")
    }
    corpora = tuple(c for c in summary["corpus"].unique() if c != POOLED)
    shown = _systems(systems.head(MAX_SYSTEMS))
    return Comparison(shown, len(systems), corpora or (POOLED,), metrics, tau, confidence, margin)


def heading(of: Comparison, subject: str, *, where: str = "", notes: Iterable[str] = ()) -> str:
    """A title: its subject, how many systems and which corpora, and what is not comparable."""
    told = f"{counted(of.n_systems, 'system')}{where or of_corpora(of)}"
    fits = len(subject) + len(told) + 2 <= _TITLE_CHARACTERS
    lines = [f"{subject}, {told}"] if fits else [*wrap(subject, _TITLE_CHARACTERS), told]
    estimators = {system.estimator for system in of.systems}
    for estimator, dagger in _DAGGERS.items():
        if estimator in estimators:
            lines += wrap(f"{dagger} {NOT_COMPARABLE[estimator]}", _TITLE_CHARACTERS)
    limits = list(notes)
    if len(of.systems) < of.n_systems and not any("systems are shown" in n for n in limits):
        limits.append(f"the first {len(of.systems)} of {of.n_systems} systems are shown")
    for note in limits:
        lines += wrap(note, _TITLE_CHARACTERS)
    return "\n".join(lines)


def of_corpora(of: Comparison) -> str:
    """Which corpora a pooled number is of, to end a title with."""
    if len(of.corpora) > 1:
        return f", {len(of.corpora)} corpora together"
    return "" if of.corpora == (POOLED,) else f", corpus {shorten(of.corpora[0], limit=24)}"


def corpus_label(corpus: str, *, limit: int = 24) -> str:
    return "all corpora" if corpus == POOLED else shorten(corpus, limit=limit)


def shorten(label: str, *, limit: int) -> str:
    return short_labels([label], limit=limit)[0]


def first_panels(
    things: Sequence[Any], what: str, *, total: int = 0
) -> tuple[Sequence[Any], list[str]]:
    """The things that get a panel, and a note of how many do not; `total` where there are more."""
    if len(things) <= MAX_PANELS:
        return things, []
    of = max(total, len(things))
    return things[:MAX_PANELS], [f"the first {MAX_PANELS} of {of} {what} are shown"]


def panel_corpora(of: Comparison) -> tuple[Sequence[str], list[str]]:
    """The corpora that get a panel each, all together last where there are several; and a note."""
    if len(of.corpora) == 1:
        return of.corpora, []
    if len(of.corpora) < MAX_PANELS:
        return (*of.corpora, POOLED), []
    shown = of.corpora[: MAX_PANELS - 1]
    note = f"the first {len(shown)} of {len(of.corpora)} corpora are shown, and all together"
    return (*shown, POOLED), [note]


def n_told(metrics: Iterable[Metric | None]) -> str:
    """ "n = 84 of 96", or the range where they differ."""
    known = [metric for metric in metrics if metric is not None]
    if not known:
        return "not measured"
    n, total = (_range({getattr(m, name) for m in known}) for name in ("n", "n_total"))
    return f"n = {n}" if n == total else f"n = {n} of {total}"


def interval_note(of: Comparison, metrics: Iterable[Metric | None]) -> str:
    """What bars and open marks mean, for a caption."""
    told = f"Bars: {of.confidence:.0%} bootstrap intervals over items."
    if any(metric is not None and metric.is_bounded for metric in metrics):
        told += " Open marks: the API bounds the number from both sides."
    return told


def _range(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _systems(frame: pd.DataFrame) -> tuple[System, ...]:
    rows = frame.to_dict("records")
    names = short_labels([str(row["system"]) for row in rows], limit=_LABEL_CHARACTERS)
    return tuple(
        System(
            name=row["system"],
            label=f"{label} {_DAGGERS.get(row['estimator'], '')}".strip(),
            model=str(row["model"]),
            precision=str(row["precision"]),
            prompt=str(row["prompt"]),
            estimator=str(row["estimator"]),
            params_b=float(row["params_b"]),
        )
        for row, label in zip(rows, names, strict=True)
    )
