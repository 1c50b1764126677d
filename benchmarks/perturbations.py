"""What becomes of the items of real corpora under the adversarial condition, and how fast?

    python -m benchmarks.perturbations FOLDER [--policy POLICY] [--items N] [--show N]

FOLDER holds samples of the corpora (`hotpotqa/*.jsonl` and so on; those that are missing are left
out). Counted is, per corpus: the items that are `ok`, the items by reason, and the share that is
`ok` of those whose gold passages hold the answer word by word, questions for yes or no apart.
`--show` prints that many substitutions, drawn by a seed, to be read by eye; they are written down
nowhere. Last, `--items` items (the corpora's, over and over, under other ids) are perturbed as a
job does it, a block at a time, and once more from the store.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.pairs import compose, from_file
from ncu_exp.config import PerturbConfig, Policy
from ncu_exp.contents import PERTURBATIONS, ContentStore
from ncu_exp.data.corpora import load_items
from ncu_exp.perturb.policies import make_perturb
from ncu_exp.records import AnswerType, Item, Perturbation, render_passages

CORPORA = {
    "Natural Questions": ("nq", "nq_gold/nq-open-oracle.jsonl"),
    "TriviaQA, excerpts": ("triviaqa", "triviaqa/rc.wikipedia.excerpts.jsonl"),
    "TriviaQA, web": ("triviaqa", "triviaqa/rc.web.jsonl"),
    "TriviaQA, whole pages": ("triviaqa", "triviaqa/rc.wikipedia.full_pages.jsonl"),
    "HotpotQA": ("hotpotqa", "hotpotqa/distractor.validation.jsonl"),
    "SQuAD": ("squad", "squad/validation.jsonl"),
}
BLOCK = 256  # as in a job
CONTEXT_CHARS = 90  # to each side of a substitution that is shown


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one corpus: `verbatim` items hold the answer word by word and ask for no yes or no."""

    corpus: str
    items: int
    ok: int
    verbatim: int
    verbatim_ok: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds for a number of items: drawn, and read from the store."""

    items: int
    drawn_s: float
    kept_s: float


def main(argv: Sequence[str] | None = None) -> int:
    """Count, show, time, write down; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="samples of the corpora")
    parser.add_argument("--policy", choices=[p.value for p in Policy], default=Policy.faker.value)
    parser.add_argument("--items", type=int, default=10_000, help="to be timed (default 10000)")
    parser.add_argument("--show", type=int, default=0, help="substitutions to print")
    parser.add_argument("--seed", type=int, default=0, help="of what is shown")
    parser.add_argument(
        "--docs", type=Path, default=Path(__file__).parents[1] / "docs/perturbations"
    )
    args = parser.parse_args(argv)
    corpora = dict(read(args.folder))
    config = compose([f"perturb.policy={args.policy}"]).perturb
    counts, made = [], []
    for name, items in corpora.items():
        rows = make_perturb(items, config)(items)
        counts.append(count(name, items, rows))
        made += [(name, item, p) for item, p in zip(items, rows, strict=True) if p.ok]
    for name, item, perturbation in random.Random(args.seed).sample(made, args.show):
        print(shown(name, item, perturbation))
    speed = measure(list(itertools.chain(*corpora.values())), args.items, config)
    text = render(counts, speed, policy=args.policy)
    args.docs.mkdir(parents=True, exist_ok=True)
    record = {"counts": [asdict(c) for c in counts], "speed": asdict(speed)}
    (args.docs / f"{args.policy}.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    (args.docs / f"{args.policy}.md").write_text(text, "utf-8")
    print(text)
    return 0


def read(folder: Path) -> Iterator[tuple[str, list[Item]]]:
    """Each corpus that the folder has, through the reader of a job."""
    for name, (dataset, file) in CORPORA.items():
        if (folder / file).is_file():
            place = from_file(folder / file)
            config = compose([f"dataset={dataset}", place, "dataset.on_error=skip"])
            yield name, list(load_items(config.dataset).items)


def count(corpus: str, items: Sequence[Item], rows: Sequence[Perturbation]) -> Counts:
    """What became of the items of a corpus."""
    verbatim = [
        p
        for item, p in zip(items, rows, strict=True)
        if p.entity_type is not AnswerType.yes_no and holds_answer(item)
    ]
    reasons = Counter(p.reason.partition(":")[0] for p in rows if not p.ok)
    return Counts(
        corpus=corpus,
        items=len(items),
        ok=sum(p.ok for p in rows),
        verbatim=len(verbatim),
        verbatim_ok=sum(p.ok for p in verbatim),
        reasons=dict(reasons.most_common()),
    )


def holds_answer(item: Item) -> bool:
    """Whether the gold passages hold the answer as it is written, not inside a word."""
    pattern = rf"(?<!\w){re.escape(item.answer)}(?!\w)"
    return re.search(pattern, render_passages(item.gold_passages)) is not None


def shown(corpus: str, item: Item, made: Perturbation) -> str:
    """The question, the two answers, and each kind of replacement once, in its surroundings."""
    lines = [f"--- {corpus} {item.item_id} [{made.entity_type}] {item.question}"]
    lines.append(f"    {item.answer!r} -> {made.fabricated!r}; left: {', '.join(made.residue)}")
    seen = set()
    for span in made.spans:
        if (span.original, span.replacement) not in seen:
            seen.add((span.original, span.replacement))
            before = made.original[max(0, span.start - CONTEXT_CHARS) : span.start]
            after = made.original[span.end : span.end + CONTEXT_CHARS]
            text = f"{before}[[{span.original} => {span.replacement}]]{after}"
            lines.append("    " + " ".join(text.split()))
    return "\n".join(lines)


def measure(items: Sequence[Item], n: int, config: PerturbConfig) -> Speed:
    """Perturb `n` items, those of the corpora over and over; each is drawn for itself."""
    many = [
        replace(item, item_id=f"{item.item_id}/{number}")
        for number, item in enumerate(itertools.islice(itertools.cycle(items), n))
    ]
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            with closing(ContentStore(Path(folder) / PERTURBATIONS)) as store:
                start = time.perf_counter()
                perturb = make_perturb(many, config, store=store)
                for first in range(0, n, BLOCK):
                    perturb(many[first : first + BLOCK])
                    if sys.stderr.isatty():
                        print(f"\r{first} of {n}", end="", file=sys.stderr)
                seconds.append(time.perf_counter() - start)
    drawn, kept = seconds
    return Speed(n, drawn, kept)


def render(counts: Sequence[Counts], speed: Speed, *, policy: str) -> str:
    """The table that stands in the docs."""
    lines = [
        f"`perturb.policy={policy}`, seed 0, samples of real corpora.",
        "",
        "| corpus | items | ok | answer word by word in the context | of these ok | left out |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for c in counts:
        share = f"{c.verbatim_ok / c.verbatim:.1%}" if c.verbatim else "-"
        reasons = ", ".join(f"{n} {code}" for code, n in c.reasons.items())
        lines.append(f"| {c.corpus} | {c.items} | {c.ok} | {c.verbatim} | {share} | {reasons} |")
    found, ok = sum(c.verbatim for c in counts), sum(c.verbatim_ok for c in counts)
    items, all_ok = sum(c.items for c in counts), sum(c.ok for c in counts)
    lines += [
        f"| all | {items} | {all_ok} | {found} | {ok / max(found, 1):.1%} | |",
        "",
        f"{speed.items:,} items: {speed.drawn_s:.0f} s to draw on one core "
        f"({1000 * speed.drawn_s / speed.items:.1f} ms each), {speed.kept_s:.1f} s from the store.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
