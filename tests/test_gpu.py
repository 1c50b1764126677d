"""The benchmark for a GPU, on the CPU with its tiny shape: its numbers, and that it can fail."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.gpu_report import results
from benchmarks.gpu_requests import HEAD, Work, make_requests
from benchmarks.gpu_shapes import SHAPES, Shape, build_model
from benchmarks.gpu_ways import NAIVE, compare
from benchmarks.speed_limit import operations
from benchmarks.workload import Distinct
from ncu_exp.config import PrecisionName
from ncu_exp.records import Condition, Continuation, ContinuationScore, Prompt, ScoreRequest
from ncu_exp.scoring import attention
from ncu_exp.scoring.attention import Piece, Plan
from ncu_exp.scoring.encoding import EncodedContinuation, EncodedRequest
from ncu_exp.scoring.forward import NonFiniteError
from ncu_exp.scoring.precision import PRECISIONS
from ncu_exp.scoring.tree import build_tree, shared_length

SMALL = Shape("small", PrecisionName.fp32, 4, 8, 2, 2, 1, 10, tied=True)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Matrices of this size gain nothing from threads, and wait for them on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(out: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = gpu.main(["--device", "cpu", "--items", "2", "--out", str(out), *arguments])
    return code, json.loads(out.read_text("utf-8"))


def test_the_tiny_shape_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = run(tmp_path / "gpu.json", "--shapes", "tiny", "--rounds", "2")
    assert code == 0
    (row,) = report["shapes"]
    assert row["problems"] == []
    assert (row["items"], row["answers"]) == (2, 10)
    ways = [NAIVE, "batched 4096", "tree 4096", "tree 16384"]
    assert [found["way"] for found in row["equality"]] == ways[1:]
    for found in row["equality"]:
        assert found["max_abs_diff_nats"] <= found["bound_nats"] == 1e-4
        assert found["greedy_equal"] == 1.0
    assert row["control_nats"] > 0.1
    assert len(row["latency"]["seconds"]) >= 10
    assert row["latency"]["p50_s"] == pytest.approx(statistics.median(row["latency"]["seconds"]))
    assert row["latency"]["p50_s"] <= row["latency"]["p95_s"] <= max(row["latency"]["seconds"])
    races = {(race["way"], race["new_tokens"]): race for race in row["throughput"]}
    assert set(races) == {(way, n) for way in ways for n in (0, 5)}
    peak = report["peak_tflops"]["float32"] * 1e12
    work = Work.of(SHAPES["tiny"], make_requests(2, 512))
    for (_, new_tokens), race in races.items():
        assert len(race["rounds_s"]) == 2
        seconds = statistics.median(race["rounds_s"])
        naive = statistics.median(races[NAIVE, new_tokens]["rounds_s"])
        assert race["times_naive"] == pytest.approx(naive / seconds)
        assert race["items_per_s"] == pytest.approx(2 / seconds)
        assert race["answers_per_s"] == pytest.approx(10 / seconds)
        if not new_tokens:
            assert race["naive_tokens_per_s"] == pytest.approx(work.naive_tokens / seconds)
            assert race["distinct_tokens_per_s"] == pytest.approx(work.distinct_tokens / seconds)
            assert race["share_of_peak"] == pytest.approx(work.operations / seconds / peak)
    assert str(tmp_path) not in json.dumps(report)
    assert "| tiny | tree 4096 | 5 |" in capsys.readouterr().out


def test_operations_by_hand() -> None:
    # Each layer: 2 * 4 * (4 + 2) for the attention's matrices, 3 * 4 * 8 for the others.
    assert SMALL.matrix_params == 2 * (48 + 96)
    tree = build_tree([(1, 2, 3), (1, 2, 4)])  # depths 0, 1, 2, 2
    matrices, pairs, head = 2 * 288 * 4, 4 * 2 * 4 * (1 + 2 + 3 + 3), 2 * 4 * 10 * 3
    distinct = Distinct(len(tree.tokens), sum(depth + 1 for depth in tree.depths), scored_rows=3)
    assert operations(SMALL.sizes, distinct) == matrices + pairs + head == 2832


def test_work_and_its_share_of_the_peak_by_hand() -> None:
    # Both answers need the rows of 1, 2, 3 and 4, of which the last two predict scored tokens.
    asked = ScoreRequest("i", Condition.zero, Prompt(), (), 0)
    answers = tuple(
        EncodedContinuation(Continuation.true, "", ids, boundary_merged=False)
        for ids in ((4, 5), (4, 6))
    )
    work = Work.of(SMALL, [EncodedRequest(0, asked, (1, 2, 3), answers)])
    expected = 2 * 288 * 4 + 4 * 2 * 4 * (1 + 2 + 3 + 4) + 2 * 4 * 10 * 2
    assert work == Work(1, 2, naive_tokens=10, distinct_tokens=4, operations=expected)
    seconds = {NAIVE: [3.0, 9.0, 4.0], "tree": [2.0, 1.0]}
    naive, tree = results(seconds, work, new_tokens=0, peak=10_000)
    assert (naive["median_s"], naive["times_naive"]) == (4.0, 1.0)
    assert tree["times_naive"] == 4.0 / 1.5
    assert tree["share_of_peak"] == pytest.approx(expected / 1.5 / 10_000)
    assert "share_of_peak" not in results(seconds, work, new_tokens=5, peak=1)[1]


def test_requests_share_what_those_of_the_project_share() -> None:
    requests = make_requests(3, 100_000)
    assert [r.index for r in requests] == list(range(12))
    assert requests == make_requests(3, 100_000)
    for zero, oracle, adversarial, noise in (requests[i : i + 4] for i in (0, 4, 8)):
        lengths = [len(r.prompt_ids) for r in (zero, oracle, adversarial, noise)]
        for length, about in zip(lengths, (60, 270, 270, 580), strict=True):
            assert length == pytest.approx(about, rel=0.11)
        assert shared_length(oracle.prompt_ids, adversarial.prompt_ids) in range(135, 167)
        assert shared_length(oracle.prompt_ids, noise.prompt_ids) == HEAD
        assert shared_length(zero.prompt_ids, requests[0].prompt_ids) >= HEAD
        assert [len(r.continuations) for r in (zero, oracle, adversarial, noise)] == [1, 1, 2, 1]
        assert all(2 <= len(c.ids) <= 6 for r in (zero, adversarial) for c in r.continuations)


def without_ancestors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree whose rows see only the nearest stretch of what is above them."""
    right = attention.attend_by_segment

    def wrong(*states: Any, plan: Plan, scale: float | None) -> Any:
        pieces = tuple(Piece(p.start, p.end, p.above[-1:]) for p in plan.pieces)
        return right(*states, plan=Plan(plan.first, pieces), scale=scale)

    monkeypatch.setattr(attention, "attend_by_segment", wrong)


def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*states: Any, plan: Plan, scale: float | None) -> Any:
        raise RuntimeError("no kernel in /home/somebody/cache/kernel.py: sorry")

    monkeypatch.setattr(attention, "attend_by_segment", broken)


@pytest.mark.parametrize(
    ("harm", "said"),
    [(without_ancestors, "nats off the reference"), (breaks, "RuntimeError: no kernel in ...: so")],
)
def test_a_wrong_or_broken_tree_fails_and_the_others_are_timed(
    harm: Any,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    harm(monkeypatch)
    code, report = run(tmp_path / "gpu.json", "--rounds", "1")
    assert code == 1
    (row,) = report["shapes"]
    assert [p.partition(":")[0] for p in row["problems"]] == ["tiny, tree 4096", "tiny, tree 16384"]
    assert all(said in problem for problem in row["problems"])
    assert said in capsys.readouterr().err
    assert {race["way"] for race in row["throughput"]} == {NAIVE, "batched 4096"}


def test_a_difference_within_the_bound_must_be_far_below_the_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound that is too wide for these weights does not let a wrong tree pass."""
    without_ancestors(monkeypatch)
    wide = PRECISIONS[PrecisionName.nf4]
    monkeypatch.setitem(PRECISIONS, PrecisionName.fp32, replace(wide, dtype="float32"))
    monkeypatch.setitem(SHAPES, "tiny", replace(SHAPES["tiny"], spread=0.12))
    code, report = run(tmp_path / "gpu.json", "--rounds", "1")
    (row,) = report["shapes"]
    tree = row["equality"][1]
    assert row["control_nats"] / 4 < tree["max_abs_diff_nats"] <= tree["bound_nats"]
    assert code == 1
    assert "another context moves" in row["problems"][0]


def test_a_value_that_is_not_finite_is_no_agreement() -> None:
    def outcome(value: float) -> Any:
        score = ContinuationScore(Continuation.true, "", (1, 2), (-1.0, value), False, False)
        return (score,), (7,)

    found = compare({0: outcome(-2.5)}, {0: outcome(-2.0)})
    assert found == {
        "max_abs_diff_nats": 0.5,
        "median_abs_diff_nats": 0.25,
        "greedy_equal": 1.0,
    }
    for bad in (outcome(math.nan), NonFiniteError("NaN")):
        found = compare({0: outcome(-2.5), 1: bad}, {0: outcome(-2.0), 1: outcome(-2.0)})
        assert found["max_abs_diff_nats"] is None


def test_what_time_or_memory_does_not_allow_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run(tmp_path / "late.json", "--seconds", "30")
    assert code == 1  # nothing was measured
    assert "and it may need 60 s" in report["shapes"][0]["skipped"]
    monkeypatch.setattr(gpu, "free_bytes", lambda device: 20e9)
    shapes = ("qwen2.5-72b-nf4", "qwen2.5-7b", "tiny")
    code, report = run(tmp_path / "full.json", "--rounds", "1", "--shapes", *shapes)
    assert code == 0  # what fits was measured, and agrees
    large, middle, tiny = report["shapes"]
    assert large == {
        "shape": "qwen2.5-72b-nf4",
        "precision": "nf4",
        "skipped": "needs about 65.2 GB, and 20.0 GB are free",
    }
    assert "20.0 GB are free" in middle["skipped"]
    assert tiny["throughput"]
    assert "| qwen2.5-7b | skipped: needs about" in capsys.readouterr().out


def test_a_built_model_is_that_of_transformers_but_for_its_weights() -> None:
    import torch
    from transformers import AutoModelForCausalLM

    shape = SHAPES["tiny"]
    model = build_model(shape, device="cpu")
    other = AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)
    ours, theirs = model.state_dict(), other.state_dict()
    assert {k: (v.shape, v.dtype) for k, v in ours.items()} == {
        k: (v.shape, v.dtype) for k, v in theirs.items()
    }
    assert dict(model.named_buffers()).keys() == dict(other.named_buffers()).keys()
    for name, buffer in other.named_buffers():
        assert torch.equal(model.get_buffer(name), buffer)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.model.embed_tokens.weight.std() == pytest.approx(shape.spread, rel=0.05)
    assert model.config.rope_parameters["rope_theta"] == 1e6
    matrices = [m.weight.numel() for m in model.model.modules() if isinstance(m, torch.nn.Linear)]
    assert sum(matrices) == shape.matrix_params
    again = build_model(shape, device="cpu").state_dict()
    assert all(torch.equal(again[name], value) for name, value in ours.items())


def test_a_model_quantised_module_by_module_is_that_of_transformers(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    pytest.importorskip("bitsandbytes")
    shape = SHAPES["tiny-nf4"]
    ours = build_model(shape, device="cpu")
    plain = build_model(replace(shape, precision=PrecisionName.bf16), device="cpu")
    plain.save_pretrained(tmp_path)
    how = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
    theirs = AutoModelForCausalLM.from_pretrained(
        tmp_path, dtype=torch.bfloat16, device_map="cpu", quantization_config=how
    )
    kinds = {name: type(module) for name, module in ours.named_modules()}
    assert kinds == {name: type(module) for name, module in theirs.named_modules()}
    assert sum(kind.__name__ == "Linear4bit" for kind in kinds.values()) == 7 * shape.layers
    expected = dict(theirs.named_parameters())
    assert {name for name, _ in ours.named_parameters()} == set(expected)
    for name, value in ours.named_parameters():
        assert value.dtype == expected[name].dtype
        assert torch.equal(value, expected[name])
        state: Any = getattr(value, "quant_state", None)
        other: Any = getattr(expected[name], "quant_state", None)
        assert (state is None) is (other is None)
        if state is not None:
            assert torch.equal(state.absmax, other.absmax)
            assert (state.quant_type, state.blocksize, state.nested, state.dtype) == (
                *(other.quant_type, other.blocksize, other.nested, other.dtype),
            )
    ids = torch.arange(40)[None]
    with torch.inference_mode():
        assert torch.equal(ours(ids).logits, theirs(ids).logits)
