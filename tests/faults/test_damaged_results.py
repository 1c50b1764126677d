"""Files of results and weights that were damaged on disk: told by name, or made anew."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ncu_exp import tracking
from ncu_exp.compare.loading import load_run
from ncu_exp.config import PrecisionName, WeightsSource
from ncu_exp.errors import PerturbationError, UserError
from ncu_exp.perturb.frozen import FrozenSet
from ncu_exp.perturb.table import read_perturbations
from ncu_exp.tablefile import ParquetAppender, parquet_schema
from tests.past import config_of, leave_run
from tests.synthetic import run as made_up


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_one_byte(path: Path) -> None:
    """In the data: a fifth into the file, the end of which is a table of contents."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 5] ^= 255
    path.write_bytes(raw)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scramble(path: Path) -> None:
    path.write_text("{a: [\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("tables/items.parquet", cut),
        ("tables/items.parquet", empty),
        ("tables/items.parquet", flip_one_byte),
        ("config.yaml", scramble),
        ("config.yaml", empty),
    ],
)
def test_a_comparison_names_the_run_whose_file_is_damaged(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    config = config_of(tmp_path, "broken")
    run_id = leave_run(config, made_up(40))
    (past,) = tracking.find_runs(config.tracking, run_ids=[run_id]).runs
    assert len(load_run(past, config.tracking).table) > 40
    path = tracking.artifact_folder(config.tracking, past, name)
    if name.endswith("parquet"):
        written_as_a_job_does(path)
    damage(path)
    with pytest.raises(UserError, match=rf"Run .*broken.* \({run_id}\) cannot be read.*damaged"):
        load_run(past, config.tracking).read_whole(["item-1"])


def written_as_a_job_does(path: Path) -> None:
    table = pd.read_parquet(path)
    appender = ParquetAppender(path, parquet_schema())
    appender.append(table)
    appender.close()


def test_a_damaged_frozen_set_is_told(tmp_path: Path) -> None:
    config = config_of(tmp_path, "a")
    run_id = leave_run(config, made_up(40))
    (past,) = tracking.find_runs(config.tracking, run_ids=[run_id]).runs
    path = tracking.artifact_folder(config.tracking, past, "tables/perturbations.parquet")
    assert read_perturbations(path, ["item-1"]) is not None
    cut(path)
    with pytest.raises(PerturbationError, match=r"perturb.path=.*cannot be read"):
        FrozenSet(path, spacy_model="en_core_web_sm")


@pytest.mark.model
def test_damaged_weights_of_the_default_model_are_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One byte of the weights, in a copy of the cache: the hash tells, and they are converted."""
    from ncu_exp.config import ModelConfig
    from ncu_exp.scoring.packaged import HASHES, LARGE, damaged_files, packaged_model
    from ncu_exp.scoring.precision import PRECISIONS
    from ncu_exp.scoring.weights import load_weights, open_model

    made = packaged_model(Path("~/.cache/ncu_exp").expanduser())
    folder = tmp_path / "models" / made.name
    shutil.copytree(made, folder)
    assert damaged_files(folder) == []

    tokenizer = folder / "tokenizer.json"
    whole = tokenizer.read_bytes()
    flip_one_byte(tokenizer)
    assert damaged_files(folder, largest=LARGE) == ["tokenizer.json"]
    tokenizer.write_bytes(whole)

    weights = folder / "model.safetensors"
    flip_one_byte(weights)
    assert damaged_files(folder, largest=LARGE) == []  # of its size: seen when it is loaded
    assert damaged_files(folder) == ["model.safetensors"]
    config = ModelConfig(name="smollm2", label="smollm2", source=WeightsSource.packaged)
    opened = open_model(config, PRECISIONS[PrecisionName.fp32], device="cpu", cache_dir=tmp_path)
    load_weights(opened)
    assert "model.safetensors): it is made anew" in caplog.text
    assert damaged_files(folder) == []
    assert digest(weights) == digest(made / "model.safetensors")

    with weights.open("r+b") as file:
        file.truncate(1_000_000)
    assert damaged_files(folder, largest=LARGE) == ["model.safetensors"]
    (folder / HASHES).unlink()
    assert damaged_files(folder, largest=LARGE) == [HASHES]


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
