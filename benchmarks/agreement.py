"""Do our scores equal those of a scorer that this project did not write?

    python -m benchmarks.agreement [--items N] [--keep FOLDER] [--peers FOLDER]

Items of the bundled sample, with and without their gold context, in a chat style and in plain
text, each with its true answer, a nonsense one and the model's own words, are scored by our
reference and fast paths and, as the same strings, by lm-evaluation-harness in an environment of
its own (made on first use: a minute or two, about 2 GB).
Both sides read the same weights, in float32 on the CPU; lm-eval runs at batch size 1, so that its
padding is no part of the comparison. How the strings reach it: peer_lm_eval.py. They are ours, so
this says nothing of how a chat template was filled in or how the weights were converted.

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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.pairs import Pair, compose_config, open_engine, scored_pairs
from benchmarks.peers import peer_python
from ncu_exp.config import Numerics, PromptStyle
from ncu_exp.errors import ModelError, UserError

REQUIREMENTS = ("lm_eval[hf]==0.4.13", "transformers==5.24.0", "torch>=2.6,<2.14")
BOUND_NATS = 1e-4
STYLES = (PromptStyle.directive, PromptStyle.plain)
PEERS_VARIABLE = "NCU_EXP_PEERS_DIR"


@dataclass(frozen=True, slots=True)
class Agreement:
    """A row of the table: one style by one of our paths; the differences are the largest found.

    `pairs` counts all; `unequal_ids` names those that the two sides encoded differently, which
    have no difference. `greedy` counts ours, `greedy_differ` the pairs whose flags differ.
    """

    style: str
    path: str
    pairs: int
    unequal_ids: tuple[str, ...]
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
    parser.add_argument("--items", type=int, default=12, help="items of the sample (default 12)")
    parser.add_argument("--keep", type=Path, help="folder for the strings and scores, as JSON")
    parser.add_argument("--peers", type=Path, help=f"environments (or set {PEERS_VARIABLE})")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            rows = compare(args.items, folder=args.keep or Path(scratch), peers=args.peers)
    except UserError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0 if all(row.holds for row in rows) else 1


def compare(n_items: int, *, folder: Path, peers: Path | None) -> list[Agreement]:
    """Score on both sides and print the table; the exchanged files stay in `folder`."""
    from ncu_exp.scoring.packaged import packaged_model

    configs = [compose_config(style, n_items=n_items) for style in STYLES]
    cache_dir = Path(configs[0].cache.dir).expanduser()
    kept = peers or Path(os.environ.get(PEERS_VARIABLE) or cache_dir / "peers")
    with timed("environment of lm-eval"):
        python = peer_python(kept.expanduser().resolve() / "lm-eval", REQUIREMENTS)
    with timed("our scores, reference and fast"):
        engine = open_engine(configs[0], cache_dir=cache_dir)
        pairs = [pair for config in configs for pair in scored_pairs(engine, config)]
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


def score_theirs(
    python: Path, pairs: Sequence[Pair], *, weights: Path, folder: Path
) -> dict[str, Any]:
    """What peer_lm_eval.py writes, run by the other environment's Python. Raises ModelError."""
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
    import numpy as np

    from ncu_exp.scoring.encoding import hash_ids

    both = [(p, t) for p, t in zip(pairs, theirs, strict=True) if p.style is style]
    unequal, sums, means, greedy, differ = [], [], [], 0, 0
    for pair, their in both:
        ours, ids = pair.ours[numerics], their["continuation_ids"]
        if hash_ids(their["prompt_ids"]) != pair.prompt_sha256 or list(ours.token_ids) != ids:
            unequal.append(pair.name)
            continue
        sums.append(abs(ours.sum_logprob - their["sum_logprob"]))
        means.append(sums[-1] / len(ids))
        greedy += ours.is_greedy
        differ += ours.is_greedy is not their["is_greedy"]
    # NumPy's maximum of anything with NaN is NaN; Python's may hide it.
    sum_diff, mean_diff = float(np.max(sums, initial=0.0)), float(np.max(means, initial=0.0))
    return Agreement(
        style.value, numerics.value, len(both), tuple(unequal), sum_diff, mean_diff, greedy, differ
    )


def print_table(rows: Sequence[Agreement], theirs: Mapping[str, Any]) -> None:
    """The rows, what they were compared with, and the name of each pair that was not compared."""
    methods = Counter(s["method"] for s in theirs["scores"])
    print("\ncompared with", ", ".join(f"{k} {v}" for k, v in theirs["versions"].items()))
    print("lm-eval scored", ", ".join(f"{n} pairs by {m}" for m, n in methods.items()))
    print("differences: the largest, in nats; greedy: flags that agree (pairs that are greedy)\n")
    line = "{:<10} {:<10} {:>5} {:>9} {:>10} {:>10}   {}"
    print(line.format("style", "our path", "pairs", "equal ids", "of sum", "of mean", "greedy"))
    for row in rows:
        compared = row.pairs - len(row.unequal_ids)
        flags = f"{compared - row.greedy_differ} ({row.greedy})"
        diffs = f"{row.sum_diff_nats:.1e}", f"{row.mean_diff_nats:.1e}"
        print(line.format(row.style, row.path, row.pairs, compared, *diffs, flags))
    for name in sorted({name for row in rows for name in row.unequal_ids}):
        print(f"encoded differently, not compared: {name}")
    verdict = "agree" if all(row.holds for row in rows) else "DO NOT AGREE"
    print(f"\nThe scores {verdict} (bound of the mean: {BOUND_NATS:.0e} nats).")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print what is being done, and then how long it took."""
    print(f"{what} ... ", end="", flush=True)
    start = time.perf_counter()
    yield
    print(f"{time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
