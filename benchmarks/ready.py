"""How long until the default model can score: what reading its weights takes, and proving its way.

    python -m benchmarks.ready [--rounds N] [--docs FOLDER]

Each round opens the model in a process of its own, whose libraries are imported before the clock
starts: first as on a machine that never saw the model's fast way, then as on one that remembers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PARTS = ("tokenizer", "weights", "way", "first score")
_ROUND = """
import json, sys, time
from pathlib import Path
import torch, transformers.models.llama.modeling_llama
from accelerate import init_empty_weights
from ncu_exp.config import ModelConfig, Numerics, PrecisionName, PromptStyle, WeightsSource
from ncu_exp.records import Condition, Continuation, Prompt, ScoreRequest
from ncu_exp.scoring.engine import plan_engine
from ncu_exp.scoring.holder import EngineHolder

torch.set_num_threads(2)
cache, store = map(Path, sys.argv[1:])
model = ModelConfig(name="smollm2-135m-instruct", label="m", source=WeightsSource.packaged)
plan = plan_engine(model, PrecisionName.fp32, prompt=PromptStyle.plain)
times = [time.perf_counter()]
engine = EngineHolder().open(plan, cache_dir=cache, store=store)
times.append(time.perf_counter())
engine.model
times.append(time.perf_counter())
engine.way
times.append(time.perf_counter())
answers = ((Continuation.true, "Paris"),)
asked = ScoreRequest("1", Condition.zero, Prompt(text=f"{time.time()}"), answers, 0)
list(engine.score([asked], numerics=Numerics.fast, batch_tokens=4096))
times.append(time.perf_counter())
print(json.dumps([b - a for a, b in zip(times, times[1:])]))
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Time the rounds, print the table of medians and write it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs/speed")
    args = parser.parse_args(argv)
    cache = Path("~/.cache/ncu_exp").expanduser()
    first, again = [], []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as scratch:
            store = Path(scratch) / "scores.sqlite"
            first.append(measure(cache, store))
            again.append(measure(cache, store))
    table = render({"first time": first, "remembered": again})
    print(table)
    (args.docs / "ready.md").write_text(table, encoding="utf-8")
    return 0


def measure(cache: Path, store: Path) -> list[float]:
    """Seconds of each part, in a process of its own."""
    command = [sys.executable, "-c", _ROUND, str(cache), str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def render(found: dict[str, list[list[float]]]) -> str:
    """Medians in seconds, a row for each state of the machine."""
    lines = [f"| | {' | '.join(PARTS)} | ready, s | rounds |", "|---|" + "--:|" * (len(PARTS) + 2)]
    for name, rounds in found.items():
        parts = [statistics.median(part) for part in zip(*rounds, strict=True)]
        whole = statistics.median(sum(parts) for parts in rounds)
        cells = " | ".join(f"{part:.2f}" for part in parts)
        lines.append(f"| {name} | {cells} | {whole:.2f} | {len(rounds)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
