"""Runs with invented log-probabilities, for tests of what is computed from them.

`score` makes one score from log-probabilities written by hand; `run` makes a whole run of any
size whose numbers are spread as a small model's are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ncu_exp.config import MetricsConfig
from ncu_exp.records import (
    AnswerType,
    Arm,
    Bounds,
    Condition,
    Continuation,
    ContinuationScore,
    Item,
    LatencyProbe,
    Passage,
    Perturbation,
    Score,
    Span,
    render_passages,
)
from ncu_exp.scoring.intervals import mean_bounds

SETTINGS = MetricsConfig(tau=0.05, epsilon=1e-5, resamples=2000, confidence=0.95, seed=0)
FOUR = (Condition.zero, Condition.oracle, Condition.adversarial, Condition.noise)


def item(item_id: str, *, answer: str = "Paris", aliases: tuple[str, ...] = ()) -> Item:
    text = f"{answer} lies on a river. Every year {answer} is visited by many."
    return Item(
        item_id=item_id,
        corpus="sample",
        question=f"Which city is number {item_id}?",
        answer=answer,
        aliases=aliases,
        passages=(Passage("A city", text),),
        kind="single_hop",
    )


def score(
    item_id: str,
    condition: Condition,
    true: Sequence[float],
    *,
    false: Sequence[float] | None = None,
    greedy: str = "Paris",
    answer: str = "Paris",
) -> Score:
    """A score with the given log-probabilities per token; token ids are 0, 1, 2, ..."""
    asked = [(Continuation.true, answer, true)]
    if false is not None:
        asked.append((Continuation.fabricated, "Zedville", false))
    return Score(
        item_id=item_id,
        condition=condition,
        continuations=tuple(
            ContinuationScore(
                continuation=continuation,
                text=text,
                token_ids=tuple(range(len(logprobs))),
                token_logprobs=tuple(logprobs),
                boundary_merged=False,
                is_greedy=False,
            )
            for continuation, text, logprobs in asked
        ),
        greedy_text=greedy,
        greedy_ids=(7, 8) if greedy else (),
        prompt_tokens=40,
        prompt_sha256="ab" * 32,
    )


def arm(item_id: str, condition: Condition, *, reason: str = "") -> Arm:
    """An arm that exists, or with `reason` one that does not."""
    has_context = condition is not Condition.zero and not reason
    is_false = condition is Condition.adversarial and not reason
    return Arm(
        item_id=item_id,
        condition=condition,
        context="some context" if has_context else None,
        fabricated="Zedville" if is_false else None,
        ok=not reason,
        reason=reason,
    )


def perturbation(of: Item, *, ok: bool = True) -> Perturbation:
    original = render_passages(of.gold_passages)
    starts = [i for i in range(len(original)) if original.startswith(of.answer, i)] if ok else []
    spans = tuple(Span(i, i + len(of.answer), of.answer, "Zedville") for i in starts)
    return Perturbation(
        item_id=of.item_id,
        policy="faker",
        seed=0,
        entity_type=AnswerType.place,
        answer=of.answer,
        fabricated="Zedville" if ok else None,
        spans=spans,
        residue=(),
        original=original,
        perturbed=original.replace(of.answer, "Zedville") if ok else None,
        ok=ok,
        reason="" if ok else "the answer is not in the context",
    )


@dataclass(frozen=True)
class Run:
    items: list[Item]
    arms: list[Arm]
    scores: list[Score]
    perturbations: list[Perturbation]
    probes: list[LatencyProbe]


def run(n: int, *, conditions: Sequence[Condition] = FOUR, seed: int = 0) -> Run:
    """`n` items; one in eight has no adversarial arm, one in fifty is too long for noise."""
    rng = np.random.default_rng(seed)
    items = [item(f"i{k:04}") for k in range(n)]
    s_prior = rng.gamma(1.3, 2.2, size=n) + 0.01
    left_over = {
        Condition.oracle: 0.25,
        Condition.noise: 0.35,
        Condition.distractor: 0.5,
        Condition.adversarial: 1.1,
        Condition.irrelevant: 1.0,
    }
    arms: list[Arm] = []
    scores: list[Score] = []
    probes: list[LatencyProbe] = []
    for k, it in enumerate(items):
        for condition in conditions:
            excluded = condition is Condition.adversarial and k % 8 == 7
            why = "the answer is not in the context" if excluded else ""
            arms.append(arm(it.item_id, condition, reason=why))
            if excluded:
                continue
            if condition is Condition.noise and k % 50 == 49:
                too_long = "the prompt has 2,300 tokens, the window 2,048"
                scores.append(Score(it.item_id, condition, reason=too_long))
                continue
            mean = s_prior[k]
            if condition is not Condition.zero:
                mean *= left_over[condition] * rng.gamma(0.8, 1.2)
            false = (
                -rng.gamma(0.6, 3.0) * rng.dirichlet(np.ones(3)) * 3
                if condition is Condition.adversarial
                else None
            )
            tokens = -mean * rng.dirichlet(np.ones(2)) * 2
            said = "Paris" if mean < 0.7 else "I am not sure"
            scores.append(score(it.item_id, condition, tokens.tolist(), false=false, greedy=said))
            if k < 8:
                base = 0.08 if condition is Condition.zero else 0.31
                probes.append(LatencyProbe(it.item_id, condition, base * rng.gamma(40, 1 / 40)))
    return Run(
        items, arms, scores, [perturbation(i, ok=k % 8 != 7) for k, i in enumerate(items)], probes
    )


def bounded(of: Score, *, known: int = 1) -> Score:
    """The score as a chat API would tell it: of each answer the first tokens, the rest bounded."""
    return replace(
        of,
        estimator="interval",
        continuations=tuple(_bounded(c, known) for c in of.continuations),
    )


def _bounded(of: ContinuationScore, known: int) -> ContinuationScore:
    bounds = tuple(
        Bounds(logprob, logprob) if place < known else Bounds(-math.inf, 0.0)
        for place, logprob in enumerate(of.token_logprobs)
    )
    mean = mean_bounds(bounds)
    return replace(
        of,
        token_logprobs=tuple(b.upper if b.exact else math.nan for b in bounds),
        bounds=bounds,
        mean_bounds=None if mean.exact else mean,
    )
