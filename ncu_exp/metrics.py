"""From log-probabilities to numbers: the formulas per item, and the metrics of a run.

All surprisals are mean surprisals in nats per answer token. Formulas: "Quantifying Prior Dominance
in RAG Systems", arXiv 2606.23695; string matching: the official SQuAD v1.1 evaluation.
"""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_exp.records import Condition, Continuation, LatencyProbe, Status
from ncu_exp.stats import (
    Estimate,
    Resampling,
    mean_interval,
    median_interval,
    ratio_interval,
)
from ncu_exp.stats import Metric as Metric

if TYPE_CHECKING:
    from typing import TypeVar

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from ncu_exp.config import MetricsConfig

    Floats = TypeVar("Floats", float, NDArray[np.float64])

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_MAX_REASONS = 3


def surprisal(mean_logprob: Floats) -> Floats:
    """Mean surprisal S (nats per token) of a mean log-probability."""
    return 0.0 - mean_logprob  # not -x, which makes -0.0 of a certain answer


def cus(s_prior: Floats, s_post: Floats) -> Floats:
    """Context utilisation score (nats per token): the surprisal that the context removed."""
    return s_prior - s_post


def ncu_raw(s_prior: Floats, s_post: Floats, *, epsilon: float) -> Floats:
    """CUS as a fraction of the prior surprisal: 1 is all of it, below 0 the context hurt.

    Unbounded below: it explodes where the model knew the answer already (s_prior near 0).
    """
    return cus(s_prior, s_post) / (s_prior + epsilon)


def ncu(s_prior: Floats, s_post: Floats, *, epsilon: float) -> Floats:
    """Raw NCU bounded to [0, 1]; NaN stays NaN."""
    import numpy as np

    bounded: Floats = np.clip(ncu_raw(s_prior, s_post, epsilon=epsilon), 0.0, 1.0)
    return bounded


def success(mean_logprob: Floats, *, tau: float) -> Any:
    """Whether the answer's probability per token (geometric mean) is above tau; bool per value."""
    import numpy as np

    return np.exp(mean_logprob) > tau


def normalize_answer(text: str) -> str:
    """SQuAD's normal form: lower case, no ASCII punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Iterable[str]) -> float:
    """1 where the prediction equals one of the answers in SQuAD's normal form, else 0."""
    normal = normalize_answer(prediction)
    return float(any(normal == normalize_answer(answer) for answer in answers))


def token_f1(prediction: str, answers: Iterable[str]) -> float:
    """Best F1 (0 to 1) of shared words between the prediction and any of the answers."""
    predicted = normalize_answer(prediction).split()
    return max(
        (_f1(predicted, normalize_answer(answer).split()) for answer in answers), default=0.0
    )


def _f1(predicted: list[str], gold: list[str]) -> float:
    shared = (Counter(predicted) & Counter(gold)).total()
    return 2.0 * shared / (len(predicted) + len(gold)) if shared else 0.0


@dataclass(frozen=True, slots=True)
class Loss:
    """Items without a score under a condition, for one reason."""

    condition: str
    status: str
    reason: str
    items: int


def losses(table: pd.DataFrame) -> list[Loss]:
    """What was lost of a run, by condition, status and reason; the most frequent first.

    Reasons of one code ("prompt_too_long: 5,123 tokens ...") are one, and one of them stands for
    all.
    """
    lost = table[table["status"] != Status.ok.value]
    rows = zip(lost["condition"], lost["status"], lost["reason"], lost["item_id"], strict=True)
    alike: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for condition, status, reason, item_id in rows:
        alike[condition, status, reason.partition(":")[0]][item_id] = reason
    order = {condition.value: place for place, condition in enumerate(Condition)}
    found = [
        Loss(condition, status, min(reasons.values()), len(reasons))
        for (condition, status, _), reasons in alike.items()
    ]
    return sorted(found, key=lambda loss: (-loss.items, order[loss.condition], loss.reason))


def aggregate(table: pd.DataFrame, *, settings: MetricsConfig) -> list[Metric]:
    """Every metric of a run, named `<condition>/<metric>`, for the conditions in `table`.

    `table` is that of `tables.items_table`. Metrics are over rows that are ok; NCU and its kin
    over those whose item also has a zero row that is ok (n counts the pairs). NCU is computed
    from the surprisals with the epsilon of `settings`, so other settings may be asked of the same
    table. A metric without rows is NaN with a reason.
    """
    prior = _ok(_rows(table, Condition.zero, Continuation.true)).set_index("item_id")
    metrics: list[Metric] = []
    for condition in Condition:
        rows = _rows(table, condition, Continuation.true)
        if rows.empty:
            continue
        group = _Group(condition, rows, settings)
        metrics += _answering(group)
        if condition is not Condition.zero:
            metrics += _utilisation(group, prior["surprisal_nats"])
        if condition is Condition.adversarial:
            metrics += _conflict(group, _rows(table, condition, Continuation.fabricated))
    return metrics


def latency_metrics(probes: Sequence[LatencyProbe]) -> list[Metric]:
    """`latency/<condition>_p50_s` and `_p95_s`: batch-1 seconds, for each condition probed."""
    import numpy as np

    metrics: list[Metric] = []
    for condition in Condition:
        seconds = [probe.latency_s for probe in probes if probe.condition is condition]
        if not seconds:
            continue
        for percent in (50, 95):
            value, n = float(np.percentile(seconds, percent)), len(seconds)
            name = f"latency/{condition}_p{percent}_s"
            metrics.append(Metric(name, value, np.nan, np.nan, n, n))
    return metrics


@dataclass(frozen=True)
class _Group:
    """The rows of one condition that score the true answer, and how to name what they give."""

    condition: Condition
    rows: pd.DataFrame
    settings: MetricsConfig

    @property
    def plan(self) -> Resampling:
        return Resampling(self.settings.resamples, self.settings.confidence, self.settings.seed)

    def metric(self, measure: str, estimate: Estimate, *, n: int, otherwise: str = "") -> Metric:
        """`estimate` under its full name; `otherwise` is the reason where it is NaN."""
        missing = estimate.value != estimate.value
        return Metric(
            name=f"{self.condition}/{measure}",
            value=estimate.value,
            lo=estimate.lo,
            hi=estimate.hi,
            n=n,
            n_total=len(self.rows),
            reason=otherwise if missing else "",
        )

    def mean(self, measure: str, values: Any, *, otherwise: str) -> Metric:
        estimate = mean_interval(values, self.plan)
        return self.metric(measure, estimate, n=len(values), otherwise=otherwise)


def _answering(group: _Group) -> list[Metric]:
    """How well the true answer stands under the condition."""
    rows = _ok(group.rows)
    generated = rows[rows["em"].notna()]
    why = _why_no_row(group.rows, group.condition)
    no_text = why if rows.empty else "no greedy text was generated"
    known = success(_floats(rows, "mean_logprob"), tau=group.settings.tau)
    n, n_total = len(rows), len(group.rows)
    return [
        group.mean("accuracy", known, otherwise=why),
        group.mean("em", _floats(generated, "em"), otherwise=no_text),
        group.mean("f1", _floats(generated, "f1"), otherwise=no_text),
        group.mean("surprisal", _floats(rows, "surprisal_nats"), otherwise=why),
        group.metric("n", Estimate(float(n)), n=n),
        group.metric("n_total", Estimate(float(n_total)), n=n_total),
    ]


def _utilisation(group: _Group, prior: pd.Series[float]) -> list[Metric]:
    """What the context did to the surprisal, over items scored with and without it."""
    rows = _ok(group.rows)
    pairs = rows.join(prior.rename("prior_nats"), on="item_id", how="inner")
    s_prior, s_post = _floats(pairs, "prior_nats"), _floats(pairs, "surprisal_nats")
    why = (
        _why_no_row(group.rows, group.condition)
        if rows.empty
        else "no item is scored both under zero and under this condition"
    )
    raw = ncu_raw(s_prior, s_post, epsilon=group.settings.epsilon)
    bounded = ncu(s_prior, s_post, epsilon=group.settings.epsilon)
    n = len(pairs)
    median = median_interval(raw, group.plan)
    pooled = ratio_interval(cus(s_prior, s_post), s_prior, plan=group.plan)
    no_prior = why if not n else "the surprisal without context is zero for every item"
    return [
        group.mean("ncu", bounded, otherwise=why),
        group.mean("ncu_raw_mean", raw, otherwise=why),
        group.metric("ncu_raw_median", median, n=n, otherwise=why),
        group.metric("ncu_pooled", pooled, n=n, otherwise=no_prior),
        group.mean("negative_transfer_rate", raw < 0, otherwise=why),
    ]


def _conflict(group: _Group, fabricated: pd.DataFrame) -> list[Metric]:
    """Memory against context: the true answer and the fabricated one under the false context.

    "Likelier" and the odds compare log-probabilities per token, as the two answers may differ in
    length.
    """
    true, false = _ok(group.rows), _ok(fabricated)
    both = true.merge(false, on="item_id", suffixes=("_true", "_false"))
    log_odds = _floats(both, "mean_logprob_false") - _floats(both, "mean_logprob_true")
    why_true = _why_no_row(group.rows, group.condition)
    why_false = _why_no_row(fabricated, group.condition)
    tau = group.settings.tau
    recited = success(_floats(true, "mean_logprob"), tau=tau)
    adhered = success(_floats(false, "mean_logprob"), tau=tau)
    why_both = why_true or why_false or "no item has both answers scored"
    return [
        group.mean("prior_dominance", recited, otherwise=why_true),
        group.mean("prior_dominance_contrastive", log_odds < 0, otherwise=why_both),
        group.mean("adherence", adhered, otherwise=why_false),
        group.mean("log_odds", log_odds, otherwise=why_both),
    ]


def _rows(table: pd.DataFrame, condition: Condition, continuation: Continuation) -> pd.DataFrame:
    asked = (table["condition"] == condition.value) & (table["continuation"] == continuation.value)
    return table[asked]


def _ok(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["status"] == Status.ok.value]


def _floats(rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
    return rows[column].to_numpy(dtype="float64")


def _why_no_row(rows: pd.DataFrame, condition: Condition) -> str:
    """Why none of `rows` is ok, most frequent reasons first; empty where one is."""
    if (rows["status"] == Status.ok.value).any():
        return ""
    counts = Counter(zip(rows["status"], rows["reason"], strict=True)).most_common(_MAX_REASONS)
    told = "; ".join(f"{n} {status} ({reason})" for (status, reason), n in counts)
    return f"no {condition} row is ok: {told or 'there is none'}"
