"""What the speed benchmark asks: real items in this project's own conditions, as token ids."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.pairs import compose, open_engine, score_all
from ncu_exp.config import Config, Numerics
from ncu_exp.errors import ModelError
from ncu_exp.records import Condition, Continuation, Message, Prompt, ScoreRequest
from ncu_exp.scoring.encoding import EncodedRequest

Answered = tuple[tuple[int, ...], tuple[int, ...]]  # the ids of a prompt and of one of its answers


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of a job; `prompts[i]` is the text of the i-th, `special` as prompt_text says.

    `overrides` compose `config`. `left_out` counts the requests longer than the model's window.
    """

    config: Config
    overrides: tuple[str, ...]
    requests: Sequence[ScoreRequest]
    encoded: Sequence[EncodedRequest]
    prompts: Sequence[str]
    special: bool
    model: str
    tokenizer: Any
    stop_ids: frozenset[int]
    left_out: int

    @property
    def answered(self) -> list[Answered]:
        """Every prompt with every answer, in order."""
        return [(e.prompt_ids, c.ids) for e in self.encoded for c in e.continuations]

    @property
    def tokens(self) -> int:
        """The tokens that a loop over the answers computes."""
        return sum(len(prompt) + len(answer) for prompt, answer in self.answered)


@dataclass(frozen=True, slots=True)
class Distinct:
    """Of the tree of all prompts and answers: its tokens, the pairs (token, itself or an ancestor),
    and the tokens that predict an answer token."""

    tokens: int
    visible_pairs: int
    scored_rows: int


def make_workload(overrides: Sequence[str]) -> Workload:
    """The workload that Hydra overrides describe. Raises UserError as a job does."""
    from ncu_exp.asking import asked_conditions, build_requests
    from ncu_exp.data.corpora import load_items
    from ncu_exp.perturb.audit import build_arms
    from ncu_exp.perturb.policies import make_perturb
    from ncu_exp.scoring.encoding import encode_request, prompt_text

    config = compose(overrides)
    opened = open_engine(config, cache_dir=Path(config.cache.dir).expanduser()).opened
    items = load_items(config.dataset).items
    conditions, perturb = (
        asked_conditions(config.condition.names),
        make_perturb(items, config.perturb),
    )
    arms, _ = build_arms(items, conditions, config.perturb, perturb=perturb)
    built = build_requests(items, arms, config)
    encoded = [encode_request(opened.tokenizer, request) for request in built]
    fitting = [e for e in encoded if opened.window is None or e.length <= opened.window]
    if not fitting:
        raise ModelError(f"no request fits the window of {config.model.label}")
    texts = [prompt_text(opened.tokenizer, e.request.prompt) for e in fitting]
    return Workload(
        config=config,
        overrides=tuple(overrides),
        requests=[e.request for e in fitting],
        encoded=fitting,
        prompts=[text for text, _ in texts],
        special=texts[0][1],
        model=opened.place,
        tokenizer=opened.tokenizer,
        stop_ids=opened.stop_ids,
        left_out=len(encoded) - len(fitting),
    )


def count_distinct(answered: Sequence[Answered]) -> Distinct:
    """Count what has to be computed once; the last token of an answer predicts nothing."""
    from ncu_exp.scoring.tree import build_tree

    tree = build_tree([prompt + answer[:-1] for prompt, answer in answered])
    scored = {
        row
        for (prompt, _), path in zip(answered, tree.paths, strict=True)
        for row in path[len(prompt) - 1 :]
    }
    return Distinct(len(tree.tokens), sum(depth + 1 for depth in tree.depths), len(scored))


def write_workload(workload: Workload, folder: Path, *, greedy_tokens: int) -> Path:
    """The file that speed_worker.py reads."""
    path = folder / "workload.json"
    requests = [
        {
            "prompt_ids": e.prompt_ids,
            "prompt": text,
            "answers_ids": [c.ids for c in e.continuations],
            "answers": [c.text for c in e.continuations],
        }
        for e, text in zip(workload.encoded, workload.prompts, strict=True)
    ]
    record = {
        "requests": requests,
        "special": workload.special,
        "greedy_tokens": greedy_tokens,
        "ours": {
            "overrides": workload.overrides,
            "requests": [dataclasses.asdict(request) for request in workload.requests],
        },
    }
    path.write_text(json.dumps(record), "utf-8")
    return path


class OurEngine:
    """The engine of a job behind what it is asked, in a process of its own; its store is off."""

    def __init__(self, asked: Mapping[str, Any], *, precision: str) -> None:
        self._config = config = compose([*asked["overrides"], f"precision={precision}"])
        self._requests = [_request(plain) for plain in asked["requests"]]
        self._engine = open_engine(config, cache_dir=Path(config.cache.dir).expanduser())
        self.way = self._engine.way.name  # loads the weights and tries the ways

    def run(self, max_new_tokens: int) -> tuple[list[list[float]], list[tuple[int, ...]]]:
        """Sums of log-probabilities and greedy ids, request by request. Raises ModelError."""
        asked = [dataclasses.replace(r, max_new_tokens=max_new_tokens) for r in self._requests]
        scores = score_all(self._engine, asked, self._config, Numerics.fast)
        sums = [[c.sum_logprob for c in score.continuations] for score in scores]
        return sums, [score.greedy_ids for score in scores]


def _request(plain: Mapping[str, Any]) -> ScoreRequest:
    prompt = plain["prompt"]
    return ScoreRequest(
        item_id=plain["item_id"],
        condition=Condition(plain["condition"]),
        prompt=Prompt(
            messages=tuple(Message(**message) for message in prompt["messages"]),
            text=prompt["text"],
            answer_prefix=prompt["answer_prefix"],
        ),
        continuations=tuple((Continuation(kind), text) for kind, text in plain["continuations"]),
        max_new_tokens=plain["max_new_tokens"],
    )
