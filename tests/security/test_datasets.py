"""Datasets of others: no code of theirs, no file but their own, nothing that a row names."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ncu_exp.config import Corpus, DatasetConfig
from ncu_exp.data.contained import check_files, columns_elsewhere
from ncu_exp.data.corpora import LoadedItems, load_items
from ncu_exp.errors import DataError

RECORD = {"question": "Which river?", "answer": "Rhône", "context": "It is the Rhône."}


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of one row, laid out as the hub's are."""
    made = tmp_path / "hub"
    made.mkdir()
    write(made / "validation.jsonl", RECORD)
    return made


def write(path: Path, record: dict[str, Any]) -> Path:
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


def load(folder: Path) -> LoadedItems:
    return load_items(DatasetConfig(name=Corpus.local, hub_id=str(folder)))


def test_code_in_a_dataset_is_not_run(folder: Path, tmp_path: Path) -> None:
    script = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    (folder / "hub.py").write_text(script)
    (folder / "validation.jsonl").unlink()
    with pytest.raises(DataError, match="scripts are no longer supported"):
        load(folder)
    write(folder / "validation.jsonl", RECORD)
    (folder / "hub.py").rename(folder / "other.py")
    assert len(load(folder).items) == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["{}/secret.jsonl", "../secret.jsonl"])
def test_a_card_cannot_have_another_file_read(folder: Path, tmp_path: Path, place: str) -> None:
    write(tmp_path / "secret.jsonl", RECORD | {"context": "Rhône, and a secret"})
    card = {"configs": [{"config_name": "default", "data_files": [
        {"split": "validation", "path": place.format(tmp_path)}]}]}  # fmt: skip
    (folder / "README.md").write_text(f"---\n{json.dumps(card)}\n---\n")
    with pytest.raises(DataError, match=r"none of its own: .*secret\.jsonl.*dataset\.path="):
        load(folder)


@pytest.mark.parametrize(
    "file",
    ["/etc/passwd", "https://x.invalid/a.csv", "zip://a.csv::/tmp/a.zip", "hf://models/a/b"],
)
def test_a_dataset_of_the_hub_has_files_of_the_hub_alone(file: str) -> None:
    own = [f"hf://datasets/a/b@{'0' * 40}/a.csv", "zip://a.csv::hf://datasets/a/b@0/a.zip"]
    check_files(own, "a/b")
    with pytest.raises(DataError, match="none of its own"):
        check_files([*own, file], "a/b")


@pytest.mark.parametrize("nested", [False, True])
def test_pictures_that_a_row_names_are_not_fetched(folder: Path, nested: bool) -> None:
    """A server that nobody may ask, and a row whose picture lies there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        picture = {"bytes": None, "path": f"http://127.0.0.1:{server.getsockname()[1]}/a.png"}
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        column = pa.array([[picture]], pa.list_(kind)) if nested else pa.array([picture], kind)
        texts = {name: [text] for name, text in RECORD.items()}
        features = {name: datasets.Value("string") for name in texts} | {
            "picture": datasets.List(datasets.Image()) if nested else datasets.Image()
        }
        told = {"info": {"features": datasets.Features(features).to_dict()}}
        table = pa.table(texts | {"picture": column})
        table = table.replace_schema_metadata({"huggingface": json.dumps(told)})
        (folder / "validation.jsonl").unlink()
        pq.write_table(table, folder / "validation.parquet")
        [item] = load(folder).items
        assert item.passages[0].text == RECORD["context"]
        with pytest.raises(TimeoutError):
            server.accept()


def test_columns_of_texts_stay() -> None:
    text = datasets.Value("string")
    features = datasets.Features(
        question=text, label=datasets.ClassLabel(names=["a"]), any=datasets.Json(),
        texts=datasets.List({"title": text}), sound=datasets.Audio(),
        deep={"pages": datasets.List({"picture": datasets.Image()})},
    )  # fmt: skip
    assert columns_elsewhere(features) == ["sound", "deep"]
