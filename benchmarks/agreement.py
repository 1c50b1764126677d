"""Do our scores equal those of a scorer that this project did not write?

    python -m benchmarks.agreement [--items N] [--keep FOLDER] [--peers FOLDER]

Items of the bundled sample, with and without their gold context, in a chat style and in plain
text, each with its true answer and a nonsense one, are scored by our reference and fast paths and,
as the same strings, by lm-evaluation-harness in an environment of its own (made on first use).
Both sides run the default model in float32 on the CPU; lm-eval at batch size 1, so that its
padding is no part of the comparison. How the strings reach it: peer_lm_eval.py.

Exit code 0: every pair has the same token ids, the same greedy flag, and a mean log-probability
within BOUND_NATS. 1: not so, or there was nothing to compare. 2: it could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import peer_lm_eval
from benchmarks.peers import peer_python
from ncu_exp.config import Config, Numerics, PromptStyle
from ncu_exp.errors import ModelError, UserError
from ncu_exp.records import Condition, Continuation, ContinuationScore, Item, ScoreRequest
from ncu_exp.scoring.local import LocalEngine

REQUIREMENTS = ("lm_eval[hf]==0.4.13", "transformers==5.24.0", "torch>=2.6,<2.14")
BOUND_NATS = 1e-4
STYLES = (PromptStyle.directive, PromptStyle.plain)
PEERS_VARIABLE = "NCU_EXP_PEERS_DIR"


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt and a continuation as strings, and what our paths made of them."""

    style: PromptStyle
    name: str
    prompt: str
    continuation: str
    prompt_sha256: str
    ours: Mapping[Numerics, ContinuationScore]


@dataclass(frozen=True, slots=True)
class Agreement:
    """A row of the table: one style by one of our paths; differences are the largest, in nats.

    `unequal_ids` names the pairs that the two sides encoded differently: they have no difference.
    """

    style: str
    numerics: str
    pairs: int
    unequal_ids: list[str]
    sum_diff_nats: float
    mean_diff_nats: float
    greedy: int
    greedy_differ: int

    @property
    def holds(self) -> bool:
        """Nothing differs, and there was something to compare; NaN does not hold."""
        same = not self.unequal_ids and not self.greedy_differ
        return same and self.pairs > 0 and self.mean_diff_nats <= BOUND_NATS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison and print its table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=12, help="items of the sample (12)")
    parser.add_argument("--keep", type=Path, help="folder for the strings and scores, as JSON")
    parser.add_argument("--peers", type=Path, help=f"environments (or set {PEERS_VARIABLE})")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            rows = compare(args.items, folder=args.keep or Path(scratch), peers=args.peers)
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0 if rows and all(row.holds for row in rows) else 1


def compare(n_items: int, *, folder: Path, peers: Path | None) -> list[Agreement]:
    """Score on both sides and print the table; the exchanged files stay in `folder`."""
    from ncu_exp.scoring.packaged import packaged_model

    configs = {style: compose_config(style, n_items=n_items) for style in STYLES}
    cache_dir = Path(configs[STYLES[0]].cache.dir).expanduser()
    kept = peers or os.environ.get(PEERS_VARIABLE) or cache_dir / "peers"
    with timed("environment of lm-eval"):
        python = peer_python(Path(kept).expanduser() / "lm-eval", REQUIREMENTS)
    with timed("our scores"):
        engine = open_engine(configs[STYLES[0]], cache_dir=cache_dir)
        pairs = [p for config in configs.values() for p in score_ours(engine, config)]
    folder.mkdir(parents=True, exist_ok=True)
    with timed("scores of lm-eval"):
        theirs = score_theirs(python, pairs, weights=packaged_model(cache_dir), folder=folder)
    rows = [
        agree(pairs, theirs["scores"], style=style, numerics=numerics)
        for style in STYLES
        for numerics in (Numerics.reference, Numerics.fast)
    ]
    print_table(rows, theirs)
    return rows


def compose_config(style: PromptStyle, *, n_items: int) -> Config:
    """The project's defaults, in float32 on the CPU."""
    from hydra import compose, initialize_config_dir

    from ncu_exp.config import conf_dir, from_dictconfig, register

    # The local tracking option asks Hydra for the folder of a job; there is no job here.
    overrides = ["model.device=cpu", "precision=fp32", "tracking=server", "tracking.uri=unused"]
    register()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return from_dictconfig(
            compose("config", [*overrides, f"prompt={style.value}", f"dataset.limit={n_items}"])
        )


def open_engine(config: Config, *, cache_dir: Path) -> LocalEngine:
    """The default model behind our engine."""
    from ncu_exp.scoring.engine import EngineHolder, plan_engine

    plan = plan_engine(config.model, config.precision.name, prompt=config.prompt.name)
    return EngineHolder().open(plan, cache_dir=cache_dir)


def score_ours(engine: LocalEngine, config: Config) -> Iterator[Pair]:
    """Every pair of one prompt style, scored by both of our paths."""
    from ncu_exp.data.corpora import load_items
    from ncu_exp.scoring.encoding import prompt_text

    items = load_items(config.dataset).items
    requests = [make_request(item, condition, config) for item in items for condition in CONDITIONS]
    scores = {
        numerics: dict(
            engine.score(requests, numerics=numerics, batch_tokens=config.score.batch_tokens)
        )
        for numerics in Numerics
    }
    for index, request in enumerate(requests):
        reference = scores[Numerics.reference][index]
        if reason := reference.reason or scores[Numerics.fast][index].reason:
            raise ModelError(f"item {request.item_id} ({request.condition}): {reason}")
        text, _ = prompt_text(engine.loaded.tokenizer, request.prompt)
        for place, scored in enumerate(reference.continuations):
            yield Pair(
                style=config.prompt.name,
                name=f"{request.item_id} {request.condition.value} {scored.continuation.value}",
                prompt=text,
                continuation=scored.text,
                prompt_sha256=reference.prompt_sha256,
                ours={n: s[index].continuations[place] for n, s in scores.items()},
            )


def make_request(item: Item, condition: Condition, config: Config) -> ScoreRequest:
    """The item with its gold context or without; the nonsense answer is the true one reversed."""
    from ncu_exp.prompt import build_prompt

    context = render_passages(item.gold_passages) if condition is Condition.oracle else None
    answers = ((Continuation.true, item.answer), (Continuation.fabricated, item.answer[::-1]))
    prompt = build_prompt(item.question, context, config.prompt)
    return ScoreRequest(item.item_id, condition, prompt, answers, max_new_tokens=0)


def score_theirs(
    python: Path, pairs: Sequence[Pair], *, weights: Path, folder: Path
) -> dict[str, Any]:
    """What peer_lm_eval.py writes, run by the other environment's Python and without a network."""
    asked, found = folder / "pairs.json", folder / "scores.json"
    asked.write_text(json.dumps([[p.prompt, p.continuation] for p in pairs]), "utf-8")
    done = subprocess.run(
        [python, "-I", Path(__file__).with_name("peer_lm_eval.py"), weights, asked, found],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ModelError(f"lm-eval ended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    answer: dict[str, Any] = json.loads(found.read_text("utf-8"))
    return answer


def agree(
    pairs: Sequence[Pair],
    theirs: Sequence[Mapping[str, Any]],
    *,
    style: PromptStyle,
    numerics: Numerics,
) -> Agreement:
    """Compare one style as one of our paths scored it."""
    from ncu_exp.scoring.encoding import hash_ids

    unequal, sums, means, greedy, differ = [], [], [], 0, 0
    for pair, their in zip(pairs, theirs, strict=True):
        if pair.style is not style:
            continue
        ours, ids = pair.ours[numerics], their["continuation_ids"]
        if pair.prompt_sha256 != hash_ids(their["prompt_ids"]) or list(ours.token_ids) != ids:
            unequal.append(pair.name)
            continue
        sums.append(abs(ours.sum_logprob - their["sum_logprob"]))
        means.append(sums[-1] / len(ids))
        greedy += ours.is_greedy
        differ += ours.is_greedy != their["is_greedy"]
    worst = max(sums, default=0.0), max(means, default=0.0)
    return Agreement(style.value, numerics.value, len(sums), unequal, *worst, greedy, differ)
