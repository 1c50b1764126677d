"""What a model and a precision need is said before anything is loaded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.config import EngineName, ModelConfig, PrecisionName, PromptStyle, WeightsSource
from ncu_exp.errors import CredentialError, ModelError, NetworkError, PrecisionError
from ncu_exp.scoring import engine, precision
from ncu_exp.scoring.engine import plan_engine
from ncu_exp.scoring.holder import EngineHolder
from ncu_exp.scoring.local import LocalEngine
from ncu_exp.scoring.precision import PRECISIONS, check_memory, resolve_precision
from ncu_exp.scoring.weights import load_weights, open_model


def model(name: str = "org/model", **values: object) -> ModelConfig:
    return ModelConfig(**{"name": name, "label": "M", **values})  # type: ignore[arg-type]


def test_auto_is_fp32_on_cpu_and_the_models_own_on_cuda() -> None:
    config = model(cuda_precision=PrecisionName.fp16)
    assert resolve_precision(PrecisionName.auto, config, device="cpu").name is PrecisionName.fp32
    assert resolve_precision(PrecisionName.auto, config, device="cuda").name is PrecisionName.fp16


def test_fp16_on_a_cpu_is_refused_with_what_would_work() -> None:
    with pytest.raises(PrecisionError, match=r"fp16.*CPU.*precision=fp32 or precision=bf16"):
        resolve_precision(PrecisionName.fp16, model(), device="cpu")


def test_a_quantised_checkpoint_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    awq = model(quantized="awq", cuda_precision=PrecisionName.fp16)
    with pytest.raises(PrecisionError, match="awq quantised already"):
        resolve_precision(PrecisionName.nf4, awq, device="cuda")
    with pytest.raises(PrecisionError, match="CUDA device"):
        resolve_precision(PrecisionName.auto, awq, device="cpu")
    monkeypatch.setattr(precision.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PrecisionError, match="pip install gptqmodel"):
        resolve_precision(PrecisionName.auto, awq, device="cuda")


def test_bitsandbytes_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PrecisionError, match="pip install bitsandbytes"):
        resolve_precision(PrecisionName.int8, model(), device="cpu")


def test_a_cuda_device_that_is_not_there_is_an_error() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(PrecisionError, match="sees no CUDA device"):
        precision.resolve_device("cuda:0")
    assert precision.resolve_device("auto") == "cpu"


def test_weights_that_do_not_fit_name_the_precisions_that_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision, "_free_bytes", lambda device: 20e9)
    check_memory(4_000_000_000, PRECISIONS[PrecisionName.fp32], device="cpu", label="4B")
    with pytest.raises(PrecisionError, match=r"28.0 GB.*20.0 GB; precision=bf16 or precision=int8"):
        check_memory(7_000_000_000, PRECISIONS[PrecisionName.fp32], device="cpu", label="7B")
    with pytest.raises(PrecisionError, match=r"no precision fits.*model=served"):
        check_memory(72_000_000_000, PRECISIONS[PrecisionName.nf4], device="cpu", label="72B")


def test_the_memory_of_this_machine_is_asked_for_real() -> None:
    with pytest.raises(PrecisionError, match="no precision fits"):
        check_memory(10**15, PRECISIONS[PrecisionName.nf4], device="cpu", label="huge")


def test_a_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    api = model(engine=EngineName.openai_chat, api_key_env="SOME_API_KEY")
    monkeypatch.delenv("SOME_API_KEY", raising=False)
    with pytest.raises(CredentialError, match="environment variable SOME_API_KEY"):
        plan_engine(api, PrecisionName.auto, prompt=PromptStyle.directive)
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    plan = plan_engine(api, PrecisionName.auto, prompt=PromptStyle.directive)
    assert plan.is_endpoint
    assert "sk-very-secret" not in repr(plan) + plan.key


def test_a_precision_for_a_served_model_is_refused() -> None:
    served = model(engine=EngineName.openai_completions)
    with pytest.raises(PrecisionError, match="precision=auto"):
        plan_engine(served, PrecisionName.bf16, prompt=PromptStyle.plain)


def test_a_base_model_is_asked_in_plain_text_only() -> None:
    with pytest.raises(ModelError, match="prompt=plain"):
        plan_engine(model(chat=False), PrecisionName.fp32, prompt=PromptStyle.directive)
    plan_engine(model(chat=False), PrecisionName.fp32, prompt=PromptStyle.plain)


def load(config: ModelConfig, tmp_path: Path) -> Any:
    precision = PRECISIONS[PrecisionName.fp32]
    return load_weights(open_model(config, precision, device="cpu", cache_dir=tmp_path))


def test_no_network_says_how_to_give_local_files(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(NetworkError, match=r"hub cannot be reached.*model.name=/"):
        load(model("nobody/nothing-of-this-name"), tmp_path)


def test_a_directory_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such directory"):
        load(model(str(tmp_path / "absent")), tmp_path)
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        load(model(str(tmp_path)), tmp_path)


def test_pickled_weights_are_never_loaded(tiny_model_dir: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    copy = tmp_path / "pickled"
    shutil.copytree(tiny_model_dir, copy)
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="safetensors"):
        load(model(str(copy)), tmp_path)


def test_a_directory_is_opened_without_its_weights(tiny_model_dir: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(tiny_model_dir, copy)
    (copy / "model.safetensors").unlink()
    precision = PRECISIONS[PrecisionName.fp32]
    opened = open_model(model(str(copy)), precision, device="cpu", cache_dir=tmp_path)
    assert opened.window == 4096
    assert opened.stop_ids == {256}
    assert opened.revision == "model"
    with pytest.raises(ModelError, match="safetensors"):
        load_weights(opened)


def test_the_holder_keeps_one_model_and_swaps_it(tiny_model_dir: Path, tmp_path: Path) -> None:
    holder = EngineHolder()

    def opened(name: PrecisionName, store: Path | None = None) -> LocalEngine:
        plan = plan_engine(model(str(tiny_model_dir)), name, prompt=PromptStyle.directive)
        return holder.open(plan, cache_dir=tmp_path, store=store)

    first = opened(PrecisionName.fp32)
    weights = first.model
    assert opened(PrecisionName.fp32) is first
    assert opened(PrecisionName.fp32).model is weights
    assert opened(PrecisionName.fp32, tmp_path / "scores.sqlite") is not first
    second = opened(PrecisionName.bf16)
    assert second is not first
    assert not second.is_loaded
    holder.close()
    assert opened(PrecisionName.bf16) is not second


@pytest.mark.model
def test_a_wrong_hash_of_the_packaged_weights_is_refused(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from ncu_exp.scoring import packaged

    fake = tmp_path / packaged.GGUF
    fake.write_bytes(b"GGUF, but another")
    monkeypatch.setattr(packaged, "_installed_gguf", lambda: fake)
    with pytest.raises(ModelError, match="sha256"):
        packaged.packaged_model(tmp_path / "cache")
    assert not list((tmp_path / "cache" / "models").glob("smollm2*v1"))


def test_the_engine_key_tells_weights_apart() -> None:
    plans = [
        plan_engine(m, p, prompt=PromptStyle.plain)
        for m in (model("a"), model("b"), model("a", source=WeightsSource.packaged))
        for p in (PrecisionName.fp32, PrecisionName.bf16)
    ]
    assert len({p.key for p in plans}) == 6
    assert (
        engine.plan_engine(model("a"), PrecisionName.auto, prompt=PromptStyle.plain).key
        == plans[0].key
    )
