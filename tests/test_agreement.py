"""Our scores against lm-evaluation-harness, and that the comparison can fail."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.agreement import BOUND_NATS, Agreement, agree
from benchmarks.pairs import Pair
from benchmarks.peers import STAMP, peer_python
from ncu_exp.config import Numerics, PromptStyle
from ncu_exp.errors import NetworkError
from ncu_exp.records import Continuation, ContinuationScore
from ncu_exp.scoring.encoding import hash_ids

ROOT = Path(__file__).resolve().parents[1]
PROMPT_IDS = [5, 6, 7]
OURS = ContinuationScore(Continuation.true, " ab", (1, 2), (-0.5, -1.5), False, False)
PAIR = Pair(
    style=PromptStyle.plain,
    name="one",
    prompt="p",
    continuation=" ab",
    prompt_sha256=hash_ids(PROMPT_IDS),
    ours={Numerics.reference: OURS, Numerics.fast: replace(OURS, token_logprobs=(-0.5, -1.6))},
)
THEIRS: dict[str, Any] = {
    "prompt_ids": PROMPT_IDS,
    "continuation_ids": [1, 2],
    "sum_logprob": -2.0,
    "is_greedy": False,
}


@pytest.mark.peers
def test_our_scores_equal_those_of_lm_eval() -> None:
    if os.environ.get("NCU_EXP_PEERS") != "1":
        pytest.skip("installs about 2 GB into an environment of its own: set NCU_EXP_PEERS=1")
    command = [sys.executable, "-m", "benchmarks.agreement", "--items", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(
        r"^(directive|plain) +(reference|fast) +(\d+) +(\d+) .* (\d+) \((\d+)\)$", done.stdout, re.M
    )
    assert len(rows) == 4, done.stdout
    for _, _, pairs, equal_ids, flags_agree, greedy in rows:
        # Four items, with and without context, true and nonsense answer, and most have a third.
        assert int(pairs) > 16
        assert pairs == equal_ids == flags_agree
        assert 0 < int(greedy) < int(pairs)


def compared(their: dict[str, Any], *, numerics: Numerics = Numerics.reference) -> Agreement:
    return agree([PAIR], [THEIRS | their], style=PromptStyle.plain, numerics=numerics)


def test_the_differences_are_of_the_sum_and_of_the_mean() -> None:
    assert compared({}).holds
    row = compared({}, numerics=Numerics.fast)
    assert row.sum_diff_nats == pytest.approx(0.1)
    assert row.mean_diff_nats == pytest.approx(0.05)
    assert not row.holds
    assert compared({"sum_logprob": -2.0 - 1.9 * BOUND_NATS}).holds
    assert not compared({"sum_logprob": -2.0 - 2.1 * BOUND_NATS}).holds


def test_a_difference_that_is_nan_does_not_hold() -> None:
    good, bad = THEIRS, THEIRS | {"sum_logprob": math.nan}
    for theirs in ([good, bad], [bad, good]):
        row = agree([PAIR, PAIR], theirs, style=PromptStyle.plain, numerics=Numerics.reference)
        assert not row.holds


def test_a_greedy_flag_that_differs_does_not_hold() -> None:
    row = compared({"is_greedy": True})
    assert (row.greedy, row.greedy_differ) == (0, 1)
    assert not row.holds


@pytest.mark.parametrize("their", [{"prompt_ids": [5, 6]}, {"continuation_ids": [1, 3]}])
def test_a_pair_encoded_differently_is_named_and_does_not_hold(their: dict[str, Any]) -> None:
    row = compared(their)
    assert row.unequal_ids == ("one",)
    assert row.pairs == 1
    assert not row.holds


def test_nothing_compared_does_not_hold() -> None:
    row = agree([PAIR], [THEIRS], style=PromptStyle.directive, numerics=Numerics.fast)
    assert row.pairs == 0
    assert not row.holds


def test_an_environment_is_kept_until_its_requirements_change(tmp_path: Path) -> None:
    """A new environment has pip already: nothing is fetched here."""
    folder = tmp_path / "peer"
    python = peer_python(folder, ["pip"])
    mark = folder / "mark"
    mark.touch()
    assert peer_python(folder, ["pip"]) == python
    assert mark.exists()
    with pytest.raises(NetworkError, match="could not be installed"):
        peer_python(folder, [f"{tmp_path}/no-such-package"])
    assert not mark.exists()
    assert not (folder / STAMP).exists()
