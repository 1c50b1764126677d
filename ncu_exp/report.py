"""One HTML page that a person reads after a run: the findings, the measures, the items.

Self-contained (styles and pictures inline, no script, no request), as MLflow shows it in a
sandboxed frame. What comes from data is escaped by the template engine.
"""

from __future__ import annotations

import base64
import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ncu_exp.metrics import Loss
from ncu_exp.records import (
    AuditCounts,
    Condition,
    Item,
    Perturbation,
    Status,
    render_passages,
    sha256_text,
)
from ncu_exp.stats import Metric
from ncu_exp.wording import has_number, in_percent, told

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Template

    from ncu_exp.config import MetricsConfig

SHOWN_ITEMS = 200  # in the report itself
PAGED_ITEMS = 10_000  # about so many in pages beside it, of some 10 kB each
_SHOWN_REASONS = 30
_AROUND = 240  # characters of context kept on either side of a replaced span

_MEASURES = {
    "accuracy": "Accuracy",
    "surprisal": "Surprisal (nats per token)",
    "em": "EM",
    "f1": "F1",
    "ncu": "NCU",
    "ncu_raw_median": "Raw NCU, median",
    "ncu_raw_mean": "Raw NCU, mean",
    "ncu_pooled": "NCU, pooled",
    "negative_transfer_rate": "Negative transfer",
}
_CONFLICT = {
    "prior_dominance": "Prior dominance",
    "prior_dominance_contrastive": "Prior dominance, contrastive",
    "adherence": "Adherence",
    "log_odds": "Log odds of the fabricated answer (nats per token)",
}
_CENSORED = {
    "censored_items": "answers that are only bounded",
    "censored_tokens": "tokens that are",
}
_CONTEXT_NAMES = {
    Condition.oracle: "The gold context",
    Condition.noise: "The gold context amid irrelevant text",
    Condition.distractor: "The gold passages among distractors",
    Condition.irrelevant: "An irrelevant context",
}
_ALTERNATIVES = {
    "success_rates": "Share of items whose answer is likelier than the threshold, per condition",
    "ncu_distribution": "Histograms of NCU per condition",
    "surprisal": "Surprisal without and with the context, a point per item",
    "latency": "Seconds of each request per condition",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a context; `marked` where a replacement took place."""

    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Examples:
    """The items that a report lists, with their whole rows and what was done to their contexts."""

    items: Sequence[Item]
    rows: pd.DataFrame
    perturbations: Sequence[Perturbation]


def chosen_examples(item_ids: Iterable[str], count: int = SHOWN_ITEMS) -> set[str]:
    """Of more than `count` items, those with the smallest hash of their id.

    The same ones for every model asked about them.
    """
    return set(heapq.nsmallest(count, item_ids, key=sha256_text))


def render_report(
    *,
    losses: Sequence[Loss],
    audit: AuditCounts,
    examples: Examples,
    item_count: int,
    metrics: Sequence[Metric],
    figures: Mapping[str, bytes],
    header: Mapping[str, str],
    settings: MetricsConfig,
    pages: Sequence[str] = (),
    paged_items: int = 0,
) -> str:
    """The page as HTML text.

    `figures` are PNG bytes by name, `header` the facts of the run (model, dataset, precision,
    prompt, time, versions) in the order to be shown; `pages` the places of the pages of the first
    `paged_items`.
    """
    by_name = {metric.name: metric for metric in metrics}
    return template("report.html.j2").render(
        header=header,
        settings=settings,
        headline=_headline(by_name, settings=settings),
        measures=_MEASURES,
        conditions=[row for condition in Condition if (row := _row(condition, by_name))],
        conflict=_conflict(by_name),
        missing=_missing(metrics),
        bounded=[(label, _row_of(measure, by_name)) for measure, label in _CENSORED.items()],
        others=[(m.name, f"{m.value:.4g}", m.n) for m in metrics if not _is_of_condition(m)],
        figures=[(_ALTERNATIVES.get(name, name), inline(png)) for name, png in figures.items()],
        losses=_shown_losses(losses),
        audit=audit,
        item_count=item_count,
        items=_item_views(examples),
        pages=pages,
        paged_items=paged_items,
    )


def render_items(examples: Examples, *, title: str) -> str:
    """A page of items alone, as the report shows them."""
    return template("items.html.j2").render(title=title, items=_item_views(examples))


@lru_cache(maxsize=2)
def template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    engine = Environment(
        loader=PackageLoader("ncu_exp", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters["number"] = _number
    return engine.get_template(name)


def pieces_of(perturbation: Perturbation) -> tuple[list[Piece], list[Piece]]:
    """The original and the perturbed context in pieces, the replaced spans marked in both."""
    original, perturbed, done = [], [], 0
    for span in sorted(perturbation.spans, key=lambda span: span.start):
        between = Piece(perturbation.original[done : span.start], marked=False)
        original += [between, Piece(perturbation.original[span.start : span.end], marked=True)]
        perturbed += [between, Piece(span.replacement, marked=True)]
        done = span.end
    rest = Piece(perturbation.original[done:], marked=False)
    return [*original, rest], [*perturbed, rest]


def _headline(metrics: Mapping[str, Metric], *, settings: MetricsConfig) -> list[str]:
    """The finding in plain words; what was not measured is not spoken of."""
    said: list[str] = []
    for condition, name in _CONTEXT_NAMES.items():
        if not _exists(metrics, f"{condition}/ncu"):
            continue
        ncu, hurt = metrics[f"{condition}/ncu"], metrics[f"{condition}/negative_transfer_rate"]
        said.append(
            f"{name} removed on average {in_percent(ncu)} of the model's uncertainty about the "
            f"answer, over {_of(ncu)} items; it made the answer less likely for {in_percent(hurt)} "
            "of them."
        )
        break
    if _exists(metrics, "adversarial/prior_dominance"):
        recited = metrics["adversarial/prior_dominance"]
        said.append(
            "Shown a context with a fabricated answer, the model still gave the true answer a "
            f"probability above {settings.tau:g} for {in_percent(recited)} of items "
            f"(n = {_of(recited)})."
        )
    if not said and _exists(metrics, "zero/accuracy"):
        known = metrics["zero/accuracy"]
        said.append(
            f"Without a context the model gave the answer a probability above {settings.tau:g} "
            f"for {in_percent(known)} of items (n = {_of(known)})."
        )
    return said or ["No item was scored: the reasons are listed below."]


def _row(condition: Condition, metrics: Mapping[str, Metric]) -> dict[str, Any] | None:
    counted = metrics.get(f"{condition}/n")
    if counted is None:
        return None
    cells = [_cell(metrics.get(f"{condition}/{measure}"), n=counted.n) for measure in _MEASURES]
    total = metrics[f"{condition}/n_total"].n_total
    return {"name": condition, "n": counted.n, "n_total": total, "cells": cells}


def _row_of(measure: str, metrics: Mapping[str, Metric]) -> list[tuple[str, str]]:
    """A measure of each condition that has it, in words."""
    found = [(c, metrics.get(f"{c}/{measure}")) for c in Condition]
    return [(c.value, told(m).partition(" ")[0]) for c, m in found if m is not None]


def _conflict(metrics: Mapping[str, Metric]) -> list[tuple[str, dict[str, str], str]]:
    found = {label: metrics.get(f"adversarial/{measure}") for measure, label in _CONFLICT.items()}
    return [(label, _cell(m, n=m.n), _of(m)) for label, m in found.items() if m is not None]


def _cell(metric: Metric | None, *, n: int) -> dict[str, str]:
    """What stands in a cell: value, interval, and its n where that is not the row's."""
    if metric is None:
        return {"value": "", "interval": "", "n": ""}
    if not has_number(metric):
        return {"value": "–", "interval": "", "n": ""}
    value, _, interval = told(metric).partition(" ")
    return {"value": value, "interval": interval, "n": f"n = {metric.n:,}" if metric.n != n else ""}


def _missing(metrics: Sequence[Metric]) -> list[tuple[str, str]]:
    """The metrics that do not exist, by reason."""
    by_reason: dict[str, list[str]] = {}
    for metric in metrics:
        if not has_number(metric):
            by_reason.setdefault(metric.reason, []).append(metric.name)
    return [(", ".join(names), reason) for reason, names in by_reason.items()]


def _exists(metrics: Mapping[str, Metric], name: str) -> bool:
    return name in metrics and has_number(metrics[name])


def _is_of_condition(metric: Metric) -> bool:
    return metric.name.partition("/")[0] in set(Condition)


def _number(value: Any) -> str:
    """Two decimals, fewer of large and whole numbers; a dash where the value is missing."""
    import pandas as pd

    if pd.isna(value):
        return "–"
    size = abs(float(value))
    if math.isinf(size):
        return "∞" if value > 0 else "−∞"
    if size >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.2f}" if size >= 0.005 else f"{value:.1e}"


def _of(metric: Metric) -> str:
    return f"{metric.n:,} of {metric.n_total:,}"


def inline(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _shown_losses(lost: Sequence[Loss]) -> list[Loss]:
    """The most frequent ones, and the rest in one."""
    rest = sum(loss.items for loss in lost[_SHOWN_REASONS:])
    more = [Loss("", "", "other reasons", rest)] if rest else []
    return [*lost[:_SHOWN_REASONS], *more]


def _item_views(examples: Examples) -> list[dict[str, Any]]:
    by_id = {perturbation.item_id: perturbation for perturbation in examples.perturbations}
    scores: dict[str, list[dict[str, Any]]] = {item.item_id: [] for item in examples.items}
    for record in examples.rows.to_dict("records"):
        scores[str(record["item_id"])].append(_score_view(record))
    return [
        {"item": item, "scores": scores[item.item_id], **_contexts(item, by_id.get(item.item_id))}
        for item in examples.items
    ]


def _contexts(item: Item, perturbation: Perturbation | None) -> dict[str, Any]:
    if perturbation is None:
        gold = Piece(render_passages(item.gold_passages), marked=False)
        return {"original": shorten([gold]), "perturbed": None, "audit": None}
    if not perturbation.ok:
        whole = Piece(perturbation.original, marked=False)
        return {"original": shorten([whole]), "perturbed": None, "audit": perturbation}
    original, perturbed = map(shorten, pieces_of(perturbation))
    return {"original": original, "perturbed": perturbed, "audit": perturbation}


def shorten(pieces: Sequence[Piece]) -> list[Piece]:
    """Long stretches without a mark are cut to what stands near the marks (or to their ends)."""
    return [
        piece
        if piece.marked or len(piece.text) <= 3 * _AROUND
        else Piece(_middle_cut(piece.text), marked=False)
        for piece in pieces
    ]


def _middle_cut(text: str) -> str:
    left_out = len(text) - 2 * _AROUND
    return f"{text[:_AROUND]} […{left_out:,} characters…] {text[-_AROUND:]}"


def _score_view(record: Mapping[Any, Any]) -> dict[str, Any]:
    import pandas as pd

    shown = {name: None if value is pd.NA else value for name, value in record.items()}
    shown["ok"] = record["status"] == Status.ok.value
    if shown["ok"]:
        lower, upper = record["mean_logprob_lower"], record["mean_logprob_upper"]
        shown["probability"] = _between(*map(math.exp, (record["mean_logprob"], lower, upper)))
        shown["surprisal"] = _between(record["surprisal_nats"], -upper, -lower)
        for name in ("ncu", "ncu_raw"):
            ends = (record[f"{name}_lower"], record[f"{name}_upper"])
            shown[name] = _between(record[name], *ends)
        shown["tokens"] = _token_views(record)
    return shown


def _between(value: float, lower: float, upper: float) -> str:
    """A number, or the two that it lies between."""
    if not math.isnan(value) or math.isnan(lower):
        return _number(value)
    return f"{_number(lower)} … {_number(upper)}"


def _token_views(record: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """Each token's id, where it is known, and its log-probability or the most that it can be."""
    logprobs = list(record["token_logprobs"])
    ids = list(record["token_ids"])
    known = [f"token {i}" for i in ids] if len(ids) == len(logprobs) else [""] * len(logprobs)
    uppers = record["token_logprobs_upper"]
    if uppers is None:
        return [(i, f"{logprob:.2f}") for i, logprob in zip(known, logprobs, strict=True)]
    return [
        (i, f"≤ {upper:.2f}" if math.isnan(logprob) else f"{logprob:.2f}")
        for i, logprob, upper in zip(known, logprobs, uppers, strict=True)
    ]
