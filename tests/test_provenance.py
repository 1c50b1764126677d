"""What is written down about a run names what matters, and no secret."""

from __future__ import annotations

import dataclasses

import pytest

from ncu_exp.config import Config, LatencyConfig, MetricsConfig, Policy, TrackingConfig
from ncu_exp.provenance import config_sha256, plain, versions, without_credentials


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgresql://me:pw@host/db", "postgresql://host/db"),
        ("a http://u:p@h:1/x failed, http://v@i too", "a http://h:1/x failed, http://i too"),
        ("mail someone@example.org", "mail someone@example.org"),
        ("sqlite:////a/mlflow.db", "sqlite:////a/mlflow.db"),
    ],
)
def test_credentials_leave_no_trace(text: str, clean: str) -> None:
    assert without_credentials(text) == clean


def test_a_config_becomes_plain_values() -> None:
    config = Config(tracking=TrackingConfig(uri="http://me:pw@host"))
    config.perturb.policy = Policy.faker
    values = plain(config)
    assert values["tracking"]["uri"] == "http://host"
    assert values["perturb"]["policy"] == "faker"


def test_the_hash_follows_what_can_change_a_result() -> None:
    base = Config()
    elsewhere = dataclasses.replace(base, tracking=TrackingConfig(uri="http://other"))
    unprobed = dataclasses.replace(base, latency=LatencyConfig(items=0))
    stricter = dataclasses.replace(base, metrics=MetricsConfig(tau=0.5))
    assert config_sha256(base) == config_sha256(elsewhere) == config_sha256(unprobed)
    assert config_sha256(base) != config_sha256(stricter)


def test_versions_name_what_can_change_a_number() -> None:
    assert {"python", "ncu_exp", "torch", "transformers", "spacy", "faker"} <= set(versions())
