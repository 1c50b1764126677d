"""Prompts and answers of the bundled sample as strings, with the scores of our two paths."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncu_exp.config import Config, Numerics, PromptStyle
from ncu_exp.errors import ModelError
from ncu_exp.records import (
    Condition,
    Continuation,
    ContinuationScore,
    Score,
    ScoreRequest,
    render_passages,
)
from ncu_exp.scoring.local import LocalEngine

KINDS = (Continuation.true, Continuation.fabricated, Continuation.fabricated)
GREEDY_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt and a continuation as strings, and what each of our paths made of them."""

    style: PromptStyle
    name: str
    prompt: str
    continuation: str
    prompt_sha256: str  # of the prompt's token ids
    ours: Mapping[Numerics, ContinuationScore]


def compose_config(style: PromptStyle, *, n_items: int) -> Config:
    """The project's defaults with one prompt style, in float32 on the CPU."""
    return compose([f"prompt={style.value}", f"dataset.limit={n_items}", "precision=fp32"])


def compose(overrides: Sequence[str]) -> Config:
    """The project's defaults on the CPU, and what is asked for besides."""
    import hydra

    from ncu_exp.config import conf_dir, from_dictconfig, register

    register()
    with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
        # The local option asks Hydra for the folder of a job, and there is no job here.
        nowhere = ["model.device=cpu", "tracking=server", "tracking.uri=unused"]
        return from_dictconfig(hydra.compose("config", [*nowhere, *overrides]))


def from_file(path: Path) -> str:
    """The override that reads a corpus from a file, whatever its name holds."""
    place = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"dataset.path='{place}'"


def open_engine(config: Config, *, cache_dir: Path) -> LocalEngine:
    """The configured model behind our engine."""
    from ncu_exp.scoring.engine import plan_engine
    from ncu_exp.scoring.holder import open_local

    plan = plan_engine(config.model, config.precision.name, prompt=config.prompt.name)
    return open_local(plan, cache_dir, None)


def scored_pairs(engine: LocalEngine, config: Config) -> Iterator[Pair]:
    """Every pair of the configured prompt style. Raises ModelError for one without a score."""
    from ncu_exp.scoring.encoding import prompt_text

    requests = make_requests(engine, config)
    by_path = {numerics: score_all(engine, requests, config, numerics) for numerics in Numerics}
    for index, request in enumerate(requests):
        text, _ = prompt_text(engine.opened.tokenizer, request.prompt)
        scores = {numerics: found[index] for numerics, found in by_path.items()}
        for place, (_, answer) in enumerate(request.continuations):
            yield Pair(
                style=config.prompt.name,
                name=f"{config.prompt.name.value} {request.item_id} {request.condition} {answer!r}",
                prompt=text,
                continuation=request.prompt.answer_prefix + answer,
                prompt_sha256=scores[Numerics.reference].prompt_sha256,
                ours={numerics: s.continuations[place] for numerics, s in scores.items()},
            )


def make_requests(engine: LocalEngine, config: Config) -> list[ScoreRequest]:
    """Each item with its gold context and without, and three answers.

    The true one; the same spelt backwards, nonsense of rare tokens for the far tail of the
    distribution; and what the model itself would say, if anything, so that some are greedy.
    """
    from ncu_exp.data.corpora import load_items
    from ncu_exp.prompt import build_prompt

    requests, answers = [], []
    for item in load_items(config.dataset).items:
        for context in (None, render_passages(item.gold_passages)):
            condition = Condition.zero if context is None else Condition.oracle
            prompt = build_prompt(item.question, context, config.prompt)
            requests.append(ScoreRequest(item.item_id, condition, prompt, (), GREEDY_TOKENS))
            answers.append(item.answer)
    spoken = [
        score.greedy_text for score in score_all(engine, requests, config, Numerics.reference)
    ]
    return [
        dataclasses.replace(
            request,
            continuations=tuple(
                (kind, text)
                for kind, text in zip(KINDS, (answer, answer[::-1], own), strict=True)
                if text
            ),
            max_new_tokens=0,
        )
        for request, answer, own in zip(requests, answers, spoken, strict=True)
    ]


def score_all(
    engine: LocalEngine, requests: Sequence[ScoreRequest], config: Config, numerics: Numerics
) -> list[Score]:
    """The scores of the requests, in their order. Raises ModelError for one without a score."""
    budget = config.score.batch_tokens
    found = dict(engine.score(requests, numerics=numerics, batch_tokens=budget))
    for score in found.values():
        if not score.ok:
            raise ModelError(f"{score.item_id} ({score.condition}): {score.reason}")
    return [found[index] for index in range(len(requests))]
