"""How far each precision, and each path of it, moves a score: the noise floor of the numbers.

    python -m benchmarks.noise_floor [--items N]

The default model scores items of the bundled sample under the four conditions of the paper, on the
CPU. Per precision, over all answer tokens: the difference between our fast path and our reference
path in the same precision, and, over all answers, the difference of the mean log-probability from
fp32 (both by reference). Prints a Markdown table, in nats.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.pairs import compose_config, score_all
from ncu_exp.asking import build_requests
from ncu_exp.config import Config, Numerics, PrecisionName, PromptStyle
from ncu_exp.data.corpora import load_items
from ncu_exp.perturb.audit import build_arms
from ncu_exp.records import ContinuationScore, Score, ScoreRequest
from ncu_exp.scoring.engine import plan_engine
from ncu_exp.scoring.holder import open_local

NAMES = ("fp32", "bf16", "int8", "nf4")
HEAD = (
    "| precision | fast against reference, per token: median, 99%, largest "
    "| against fp32, mean log-prob of an answer: median, 95%, largest | tokens |"
)


def main() -> None:
    parser = argparse.ArgumentParser(description="The noise floor of each precision.")
    parser.add_argument("--items", type=int, default=12)
    config = compose_config(PromptStyle.directive, n_items=parser.parse_args().items)
    items = load_items(config.dataset).items
    arms, _ = build_arms(items, config.condition.names, config.perturb)
    requests = build_requests(items, arms, config)
    print(HEAD)
    print("|---|---|---|---|")
    exact: list[Score] = []
    for name in NAMES:
        by_path = _scores(config, PrecisionName[name], requests)
        slow, quick = by_path[Numerics.reference], by_path[Numerics.fast]
        exact = exact or slow
        paths = np.abs(_token_logprobs(slow) - _token_logprobs(quick))
        moved = np.abs(_mean_logprobs(slow) - _mean_logprobs(exact))
        print(
            f"| {name} | {_row(paths, 99)} | {_row(moved, 95) if slow is not exact else '–'} "
            f"| {len(paths)} |",
            flush=True,
        )


def _scores(
    config: Config, name: PrecisionName, requests: Sequence[ScoreRequest]
) -> dict[Numerics, list[Score]]:
    plan = plan_engine(config.model, name, prompt=config.prompt.name)
    engine = open_local(plan, Path(config.cache.dir).expanduser(), None)
    return {numerics: score_all(engine, requests, config, numerics) for numerics in Numerics}


def _answers(scores: Sequence[Score]) -> Iterator[ContinuationScore]:
    for score in scores:
        yield from score.continuations


def _token_logprobs(scores: Sequence[Score]) -> NDArray[np.float64]:
    return np.array([value for answer in _answers(scores) for value in answer.token_logprobs])


def _mean_logprobs(scores: Sequence[Score]) -> NDArray[np.float64]:
    return np.array([answer.mean_logprob for answer in _answers(scores)])


def _row(differences: NDArray[np.float64], high: int) -> str:
    values = (np.median(differences), np.percentile(differences, high), differences.max())
    return ", ".join(f"{value:.1e}" for value in values)


if __name__ == "__main__":
    main()
