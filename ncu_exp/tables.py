"""The table of a run: a row per item, condition and continuation, with all that was measured.

Kept as `tables/items.parquet` (`tablefile`); read by notebooks, `compare` and `metrics.aggregate`.
Missing is NA, None (lists) or NaN (numbers), with a reason in the row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ncu_exp.formulas import cus, exact_match, ncu, ncu_raw, surprisal, token_f1
from ncu_exp.records import (
    Arm,
    Bounds,
    Condition,
    Continuation,
    ContinuationScore,
    Item,
    Score,
    Status,
    sha256_text,
)

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.config import MetricsConfig

Record = TypeVar("Record", Arm, Score)

DTYPES = {
    "item_id": "string",
    "corpus": "string",
    "condition": "string",
    "continuation": "string",
    "text": "string",
    "token_ids": "object",  # lists of int
    "token_logprobs": "object",  # lists of float, nats
    "token_logprobs_lower": "object",  # bounds of each, where an engine only bounds them
    "token_logprobs_upper": "object",
    "n_tokens": "Int64",
    "n_censored": "Int64",  # tokens that are only bounded
    "sum_logprob": "float64",
    "mean_logprob": "float64",
    "surprisal_nats": "float64",
    "mean_logprob_lower": "float64",
    "mean_logprob_upper": "float64",
    "estimator": "string",
    "is_greedy": "boolean",
    "greedy_text": "string",
    "em": "float64",
    "f1": "float64",
    "cus": "float64",
    "ncu": "float64",
    "ncu_raw": "float64",
    "cus_lower": "float64",
    "cus_upper": "float64",
    "ncu_lower": "float64",
    "ncu_upper": "float64",
    "ncu_raw_lower": "float64",
    "ncu_raw_upper": "float64",
    "prompt_sha256": "string",
    "context_sha256": "string",  # of the context shown; none without one
    "boundary_merged": "boolean",
    "status": "string",
    "reason": "string",
    "question": "string",
    "answer": "string",
    "context_source": "string",
    "kind": "string",
    "prompt_tokens": "Int64",
}


def items_table(
    items: Sequence[Item],
    arms: Sequence[Arm],
    *,
    scores: Sequence[Score],
    settings: MetricsConfig,
    generated: bool = True,
) -> pd.DataFrame:
    """One row per arm and continuation, items in the given order, conditions in their own.

    Adversarial arms have a `fabricated` row beside the `true` one, and aliases that were scored an
    `alias` row each. An arm that does not exist is
    `excluded`; one without a usable score is an `error`; each with its reason. Columns and types
    are `DTYPES`, whatever the number of rows; `tablefile` writes and reads them. Without
    `generated` no greedy text was asked for, and its measures are missing.

    Raises ValueError where two arms or scores claim one (item, condition), or name no item.
    """
    import pandas as pd

    by_arm, by_score = _by_key(arms), _by_key(scores)
    unknown = {arm.item_id for arm in arms} - {item.item_id for item in items}
    if unknown:
        raise ValueError(f"Arms of items that are not in the run: {sorted(unknown)[:5]}")
    records = [
        _record(item, arm, score=by_score.get(key), asked=asked, greedy=generated)
        for item in items
        for condition in Condition
        if (arm := by_arm.get(key := (item.item_id, condition))) is not None
        for asked in _asked(item, arm, by_score.get(key))
    ]
    table = pd.DataFrame.from_records(records, columns=list(DTYPES)).astype(DTYPES)
    return _with_utilisation(table, settings)


def _by_key(records: Iterable[Record]) -> dict[tuple[str, Condition], Record]:
    found: dict[tuple[str, Condition], Record] = {}
    for record in records:
        key = (record.item_id, record.condition)
        if key in found:
            raise ValueError(f"Two {type(record).__name__} records for item and condition {key}")
        found[key] = record
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer that a row is about, and its score where there is one."""

    continuation: Continuation
    text: str | None
    accepted: tuple[str, ...]  # greedy texts that match it
    found: ContinuationScore | None


def _asked(item: Item, arm: Arm, score: Score | None) -> Iterator[_Asked]:
    """The answers of an arm: the true one, the fabricated one, and the aliases that were scored."""
    scored = score.continuations if score is not None else ()
    found = {c.continuation: c for c in reversed(scored)}
    true, false = Continuation.true, Continuation.fabricated
    yield _Asked(true, item.answer, item.answers, found.get(true))
    if arm.condition is Condition.adversarial:
        yield _Asked(false, arm.fabricated, (str(arm.fabricated),), found.get(false))
    for alias in scored:
        if alias.continuation is Continuation.alias:
            yield _Asked(Continuation.alias, alias.text, (alias.text,), alias)


def _record(
    item: Item, arm: Arm, *, score: Score | None, asked: _Asked, greedy: bool
) -> dict[str, Any]:
    """One row, None where nothing is known. `greedy`: the run generated text."""
    found = asked.found
    status, reason = _outcome(arm, score, found=found)
    record: dict[str, Any] = dict.fromkeys(DTYPES) | {
        "item_id": item.item_id,
        "corpus": item.corpus,
        "condition": arm.condition.value,
        "continuation": asked.continuation.value,
        "text": asked.text,
        "status": status.value,
        "reason": reason,
        "question": item.question,
        "answer": item.answer,
        "context_source": item.context_source.value,
        "kind": item.kind,
        "context_sha256": None if arm.context is None else sha256_text(arm.context),
    }
    if score is not None and arm.ok:
        record["estimator"] = score.estimator
        record["prompt_sha256"] = score.prompt_sha256 or None
        record["prompt_tokens"] = score.prompt_tokens or None
    if score is not None and found is not None and status is Status.ok:
        record |= _scored(found, score.estimator)
        if greedy:
            record["greedy_text"] = score.greedy_text
            record["em"] = exact_match(score.greedy_text, asked.accepted)
            record["f1"] = token_f1(score.greedy_text, asked.accepted)
    return record


def _outcome(
    arm: Arm, score: Score | None, *, found: ContinuationScore | None
) -> tuple[Status, str]:
    if not arm.ok:
        return Status.excluded, arm.reason or "no reason was given"
    if score is None:
        return Status.error, "not scored"
    if not score.ok:
        return Status.error, score.reason
    if found is None:
        return Status.error, "this answer was not scored"
    if not found.token_logprobs:
        return Status.error, "the answer has no tokens"
    if not found.bounds and not all(map(math.isfinite, found.token_logprobs)):
        return Status.error, "a log-probability is not finite"
    return Status.ok, ""


def _scored(found: ContinuationScore, estimator: str) -> dict[str, Any]:
    mean, interval = found.mean_logprob, found.mean_interval
    if estimator == "paper":  # a convention bounds nothing
        interval = Bounds(math.nan, math.nan)
    bounded = [] if found.n_censored == 0 else found.bounds
    return {
        "token_ids": list(found.token_ids),
        "token_logprobs": list(found.token_logprobs),
        "token_logprobs_lower": [bounds.lower for bounds in bounded] or None,
        "token_logprobs_upper": [bounds.upper for bounds in bounded] or None,
        "n_tokens": len(found.token_logprobs),
        "n_censored": found.n_censored,
        "sum_logprob": found.sum_logprob,
        "mean_logprob": mean,
        "surprisal_nats": surprisal(mean),
        "mean_logprob_lower": interval.lower,
        "mean_logprob_upper": interval.upper,
        "is_greedy": found.is_greedy,
        "boundary_merged": found.boundary_merged,
    }


def _with_utilisation(table: pd.DataFrame, settings: MetricsConfig) -> pd.DataFrame:
    """Fill cus, ncu and ncu_raw of the true answers whose item has a scored zero row.

    They rise with the surprisal without context and fall with the one with it, so that opposite
    ends of the two give the bounds.
    """
    true = table["continuation"] == Continuation.true.value
    zero = table["condition"] == Condition.zero.value

    def with_prior(column: str, prior_column: str) -> tuple[Any, Any]:
        prior_of = dict(zip(table["item_id"][zero], -table[prior_column][zero], strict=True))
        s_post = -table[column].where(true & ~zero).to_numpy(dtype="float64")
        s_prior = table["item_id"].map(prior_of).to_numpy(dtype="float64", na_value=math.nan)
        return s_prior, s_post

    found: dict[str, Any] = {}
    for end, prior_end, suffix in (
        ("mean_logprob", "mean_logprob", ""),
        ("mean_logprob_lower", "mean_logprob_upper", "_lower"),
        ("mean_logprob_upper", "mean_logprob_lower", "_upper"),
    ):
        s_prior, s_post = with_prior(end, prior_end)
        found[f"cus{suffix}"] = cus(s_prior, s_post)
        found[f"ncu{suffix}"] = ncu(s_prior, s_post, epsilon=settings.epsilon)
        found[f"ncu_raw{suffix}"] = ncu_raw(s_prior, s_post, epsilon=settings.epsilon)
    return table.assign(**found)
