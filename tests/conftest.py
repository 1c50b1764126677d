"""Fixtures that more than one room of the tests needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runs import TINY, Done, ncu_exp


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpus samples, or a skip: a user's clone has none."""
    place = os.environ.get("NCU_EXP_CORPORA")
    if not place:
        pytest.skip("NCU_EXP_CORPORA is not set: it names the folder of the real corpus samples")
    path = Path(place)
    if not path.is_dir():
        pytest.skip(f"NCU_EXP_CORPORA={place} is not a folder")
    return path


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that `model=hf model.name=<it>` loads in a second."""
    from tests.tiny import save_tiny_model

    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory, tiny_model_dir: Path) -> Done:
    """The four-run sweep of the README, with a tiny model."""
    return ncu_exp(
        tmp_path_factory.mktemp("sweep"),
        "-m",
        *TINY,
        f"model.name={tiny_model_dir}",
        "condition=zero,oracle",
        "precision=fp32,bf16",
        "dataset.limit=12",
    )
