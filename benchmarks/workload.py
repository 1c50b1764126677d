"""What the speed benchmark asks: real items in this project's own conditions, as token ids."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.pairs import compose, open_engine
from ncu_exp.config import Config, PrecisionName
from ncu_exp.records import Score, ScoreRequest
from ncu_exp.scoring.encoding import EncodedRequest

DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of a job, and what it takes to answer them.

    `distinct_tokens` counts the nodes of the tree of all prompts and answers, `visible_pairs` the
    ancestors (itself included) of all nodes, `scored_rows` the nodes that predict an answer token.
    """

    config: Config
    requests: Sequence[ScoreRequest]
    encoded: Sequence[EncodedRequest]
    texts: Sequence[str]
    model_folder: Path
    distinct_tokens: int
    visible_pairs: int
    scored_rows: int

    @property
    def answers(self) -> int:
        return sum(len(e.continuations) for e in self.encoded)

    @property
    def tokens(self) -> int:
        """The tokens that a loop over the answers computes."""
        return sum(len(e.prompt_ids) + len(c.ids) for e in self.encoded for c in e.continuations)


def make_workload(overrides: Sequence[str]) -> Workload:
    """The workload that Hydra overrides describe. Raises UserError as a job does."""
    from ncu_exp.asking import asked_conditions, build_requests
    from ncu_exp.data.corpora import load_items
    from ncu_exp.perturb.audit import build_arms
    from ncu_exp.scoring.encoding import encode_request, prompt_text
    from ncu_exp.scoring.tree import build_tree

    config = compose(overrides)
    engine = open_engine(config, cache_dir=Path(config.cache.dir).expanduser())
    items = load_items(config.dataset).items
    arms, _ = build_arms(items, asked_conditions(config.condition.names), config.perturb)
    requests = build_requests(items, arms, config)
    tokenizer = engine.opened.tokenizer
    encoded = [encode_request(tokenizer, r, index=i) for i, r in enumerate(requests)]
    paths = [(e, e.prompt_ids + c.ids[:-1]) for e in encoded for c in e.continuations]
    tree = build_tree([path for _, path in paths])
    scored = {
        row
        for (e, _), rows in zip(paths, tree.paths, strict=True)
        for row in rows[len(e.prompt_ids) - 1 :]
    }
    return Workload(
        config=config,
        requests=requests,
        encoded=encoded,
        texts=[prompt_text(tokenizer, r.prompt)[0] for r in requests],
        model_folder=Path(engine.opened.place),
        distinct_tokens=len(tree.tokens),
        visible_pairs=sum(tree.depths) + len(tree.depths),
        scored_rows=len(scored),
    )


def operations(workload: Workload) -> float:
    """Floating-point operations that the distinct tokens take, and no others.

    Two for each weight of the decoder's matrices and each distinct token, four for each component
    of a query head and each visible pair, two for each weight of the output head and scored row.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = AutoConfig.from_pretrained(workload.model_folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(shape)
    matrices = sum(
        p.numel()
        for name, p in model.named_parameters()
        if p.ndim == 2 and "embed" not in name and "lm_head" not in name
    )
    head_dim = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
    queries = shape.num_hidden_layers * shape.num_attention_heads * head_dim
    return float(
        2 * matrices * workload.distinct_tokens
        + 4 * queries * workload.visible_pairs
        + 2 * shape.hidden_size * shape.vocab_size * workload.scored_rows
    )


def write_workload(workload: Workload, folder: Path, *, greedy_tokens: int) -> Path:
    """The file that speed_worker.py reads."""
    ours, path = folder / "ours.pickle", folder / "workload.json"
    ours.write_bytes(pickle.dumps((workload.config, list(workload.requests))))
    requests = [
        {"prompt": e.prompt_ids, "answers": [c.ids for c in e.continuations], "text": text}
        for e, text in zip(workload.encoded, workload.texts, strict=True)
    ]
    record = {"requests": requests, "greedy_tokens": greedy_tokens, "ours": str(ours)}
    path.write_text(json.dumps(record), "utf-8")
    return path


class OurEngine:
    """The engine of a job, with what it is asked, in a process of its own."""

    def __init__(self, pickled: Path, *, dtype: str) -> None:
        config, self._requests = pickle.loads(pickled.read_bytes())  # noqa: S301  # our own file
        names = {torch_name: name for name, torch_name in DTYPES.items()}
        config.precision.name = PrecisionName[names[dtype]]
        self._config = config
        self._engine = open_engine(config, cache_dir=Path(config.cache.dir).expanduser())
        self._engine.way  # noqa: B018  # loads the weights and finds out the way

    def run(self, max_new_tokens: int) -> tuple[list[list[float]], list[list[int]]]:
        """Sums of log-probabilities and greedy ids, request by request."""
        settings: Any = self._config.score
        asked = [dataclasses.replace(r, max_new_tokens=max_new_tokens) for r in self._requests]
        found: dict[int, Score] = dict(
            self._engine.score(
                asked, numerics=settings.numerics, batch_tokens=settings.batch_tokens
            )
        )
        scores = [found[index] for index in range(len(asked))]
        sums = [[c.sum_logprob for c in score.continuations] for score in scores]
        return sums, [list(score.greedy_ids) for score in scores]
