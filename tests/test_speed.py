"""The speed benchmark: real runs on one item, and that its numbers are what it says they are."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import speed_check
from benchmarks.speed import main, rotated
from benchmarks.speed_check import BOUNDS_NATS, Check, check
from benchmarks.speed_limit import ModelShape, matrix_rate, model_shape, operations
from benchmarks.speed_profile import REST, by_kind
from benchmarks.speed_profile import main as profile_main
from benchmarks.speed_report import best_peer, limit_s, make_figure, render, write_report
from benchmarks.speed_scorers import LOOP, NAMES, OURS, started
from benchmarks.speed_worker import SCORERS
from benchmarks.workload import Distinct, count_distinct
from ncu_exp.errors import ModelError

SMALL = ["--dataset", "sample", "--n-items", "1", "--rounds", "1"]
ROOT = Path(__file__).resolve().parents[1]
SHAPE = ModelShape(
    matrix_parameters=100, layers=3, query_size=8, hidden=10, intermediate=20, vocabulary=50
)


def table(text: str) -> list[list[str]]:
    """The cells of the rows of the report's table."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def scorer(*seconds: float, diff: float = 0.0, correct: bool = True) -> dict[str, Any]:
    return {
        "seconds": list(seconds),
        "check": {
            "max_diff_nats": diff,
            "max_mean_diff_nats": diff,
            "texts_differ": None,
            "correct": correct,
        },
        "note": "",
        "versions": {"lm_eval": "0.4.13", "minicons": "0.3.39"},
    }


def record(**scorers: dict[str, Any]) -> dict[str, Any]:
    """A record of one run; the rate's median is 4 GFLOP/s and the limit half a second."""
    run = {"dtype": "fp32", "work": "score", "scorers": scorers}
    distinct = {"tokens": 30, "visible_pairs": 90, "scored_rows": 4}
    return {
        "dataset": "sample",
        "overrides": ["prompt=plain"],
        "items": 1,
        "prompts": 4,
        "answers": 5,
        "left_out": 2,
        "tokens": 50,
        "distinct": distinct,
        "greedy_tokens": 5,
        "model": "tiny",
        "operations": 2_000_000_000,
        "rounds": 3,
        "threads": 2,
        "cpu": "a processor",
        "python": "3.11",
        "commit": None,
        "rates_gflops": {"fp32": [1.0, 4.0, 9.0]},
        "runs": [run],
    }


# --- real runs ----------------------------------------------------------------------------------


@pytest.mark.model
def test_one_item_by_the_loop_and_by_us(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [*SMALL, "--dtype", "fp32", "--scorers", OURS, "--docs", str(tmp_path)]
    assert main([*asked, "--override", "condition=adversarial"]) == 0
    folder = tmp_path / "speed"
    text = (folder / "sample.md").read_text("utf-8")
    assert text in capsys.readouterr().out
    found = json.loads((folder / "sample.json").read_text("utf-8"))
    assert (found["items"], found["prompts"], found["answers"]) == (1, 2, 3)
    assert found["overrides"] == ["condition=adversarial"]
    assert found["distinct"]["tokens"] < found["tokens"]
    # SmolLM2-135M: 30 layers of 3,538,944 weights in matrices, as its config has it.
    assert found["shape"]["matrix_parameters"] == 30 * 3_538_944
    assert [(run["dtype"], run["work"]) for run in found["runs"]] == [
        ("fp32", "score"),
        ("fp32", "greedy"),
    ]
    for run in found["runs"]:
        assert set(run["scorers"]) == {OURS, LOOP}
        ours = run["scorers"][OURS]
        assert 0 < ours["check"]["max_diff_nats"] < 1e-3  # computed in another order
        assert run["scorers"][LOOP]["check"]["max_diff_nats"] == 0
        assert ours["note"] == "way: tree"
        assert all(len(s["seconds"]) == 1 and s["seconds"][0] > 0 for s in run["scorers"].values())
        assert 0 < limit_s(found, run) < ours["seconds"][0]
    assert found["runs"][1]["scorers"][OURS]["check"]["texts_differ"] == 0
    for name, _, work, median_s, _, ratio, *_ in table(text):
        run = next(run for run in found["runs"] if run["work"] == work)
        key = LOOP if name == "naive loop" else name
        median = statistics.median(run["scorers"][key]["seconds"])
        ours_s = statistics.median(run["scorers"][OURS]["seconds"])
        assert float(median_s) == pytest.approx(median, abs=0.006)
        assert float(ratio) == pytest.approx(median / ours_s, abs=0.006)
    told = text + json.dumps(found)
    assert str(Path.home()) not in told
    assert str(ROOT) not in told
    assert os.uname().nodename not in told
    assert (folder / "sample.png").stat().st_size > 10_000


def test_nothing_is_timed_where_our_scores_are_wrong(
    tmp_path: Path,
    tiny_model_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = ["--override", "model=hf", f"model.name={tiny_model_dir}", "condition=zero"]
    asked = [*SMALL, "--dtype", "fp32", "--work", "score", "--scorers", OURS]
    command = [*asked, "--docs", str(tmp_path / "docs"), *model]
    monkeypatch.setattr(speed_check, "BOUND_NATS", -1.0)  # nothing is as near as that
    assert main(command) == 1
    told = capsys.readouterr()
    assert "OUR SCORES ARE WRONG (fp32, score)" in told.err
    assert "round 1" not in told.out
    assert not (tmp_path / "docs").exists()


@pytest.mark.peers
def test_one_item_by_every_scorer(tmp_path: Path) -> None:
    if os.environ.get("NCU_EXP_PEERS") != "1":
        pytest.skip("installs about 4 GB into environments of their own: set NCU_EXP_PEERS=1")
    command = [sys.executable, "-m", "benchmarks.speed", *SMALL, "--dtype", "fp32"]
    command += ["--docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "speed/sample.json").read_text("utf-8"))
    assert len(found["runs"]) == 2
    for run in found["runs"]:
        assert tuple(run["scorers"]) == NAMES
        for name, scorer in run["scorers"].items():
            if (name, run["work"]) == ("minicons", "greedy"):
                assert scorer["check"] is None
                assert scorer["seconds"] == []
                continue
            assert scorer["check"]["correct"], (run["dtype"], run["work"], name)
            assert len(scorer["seconds"]) == 1
            if run["dtype"] == "fp32":  # the boundary and the ids are the same for all
                assert scorer["check"]["max_diff_nats"] < 2e-3
                assert not scorer["check"]["texts_differ"]
    versions = found["runs"][0]["scorers"]
    assert versions["lm-eval"]["versions"]["lm_eval"] == "0.4.13"
    assert versions["minicons"]["versions"]["minicons"] == "0.3.39"


def test_a_scorer_that_dies_is_an_error_that_tells_why(tmp_path: Path) -> None:
    workload = tmp_path / "workload.json"
    workload.write_text('{"requests": [{}]}', "utf-8")
    given: dict[str, Any] = {"workload": workload, "precision": "fp32", "threads": 1}
    with ExitStack() as stack:
        nowhere = stack.enter_context(
            started(LOOP, Path(sys.executable), model=str(tmp_path / "nowhere"), **given)
        )
        with pytest.raises(ModelError, match=r"(?s)the scorer naive ended with 1:\n.*nowhere"):
            nowhere.wait_until_loaded()


def test_a_scorer_that_dies_at_work_is_an_error_too(tmp_path: Path, tiny_model_dir: Path) -> None:
    workload = tmp_path / "workload.json"
    workload.write_text('{"requests": [{}]}', "utf-8")
    given: dict[str, Any] = {"workload": workload, "precision": "fp32", "threads": 1}
    with started(LOOP, Path(sys.executable), model=str(tiny_model_dir), **given) as loop:
        loop.wait_until_loaded()
        assert "torch" in loop.versions
        for _ in range(2):  # also where it has been dead for long
            with pytest.raises(ModelError, match=r"(?s)naive ended with 1:\n.*KeyError"):
                loop.ask("score")


# --- numbers ------------------------------------------------------------------------------------


def test_the_operations_of_a_tree_counted_by_hand() -> None:
    # 1 2 (3) and 1 2 (4 5), 1 2 (4 6): the rows 1, 2 and 4 are computed, and what they see is
    # 1 + 2 + 3; 2 and 4 predict answers.
    distinct = count_distinct([((1, 2), (3,)), ((1, 2), (4, 5)), ((1, 2), (4, 6))])
    assert distinct == Distinct(tokens=3, visible_pairs=6, scored_rows=2)
    by_hand = 2 * 100 * 3 + 4 * 8 * 3 * 6 + 2 * 10 * 50 * 2
    assert operations(SHAPE, distinct) == by_hand == 3176
    found = record(ncu_exp=scorer(1.0)) | {"operations": by_hand}
    assert limit_s(found, found["runs"][0]) == pytest.approx(3176 / 4e9)


def test_the_shape_of_a_model_is_that_of_its_layers(tiny_model_dir: Path) -> None:
    # Two layers of hidden 32, four heads of 8 and two of keys, and 64 in between.
    layer = 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64
    assert model_shape(str(tiny_model_dir)) == ModelShape(2 * layer, 2, 32, 32, 64, 260)


def test_the_rate_leaves_the_threads_as_they_were() -> None:
    before = torch.get_num_threads()
    for dtype in ("fp32", "bf16"):
        assert matrix_rate(SHAPE, dtype, threads=before + 1, seconds=0.0) > 0.1
    assert torch.get_num_threads() == before


def test_every_turn_begins_with_another_scorer() -> None:
    assert [rotated(["a", "b", "c"], turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert rotated(["a", "b", "c"], 1) == ["b", "c", "a"]


def test_the_names_are_those_that_the_worker_knows() -> None:
    assert tuple(SCORERS) == NAMES


# --- what is right ------------------------------------------------------------------------------


def checked(name: str, found: dict[str, Any], *, precision: str = "fp32") -> Check:
    loop = {"sums": [[-1.0, -2.0], [-3.0]], "ids": [[7, 8, 99], [9]]}
    return check(
        name,
        {"sums": loop["sums"]} | found,
        loop,
        precision=precision,
        lengths=[1, 4, 2],
        as_text=lambda ids: " ".join(map(str, ids)),
        stop_ids={99},
    )


def test_differences_are_of_the_sum_and_of_the_mean() -> None:
    found = checked("lm-eval", {"sums": [[-1.0, -2.008], [-3.002]], "texts": ["7 8", "9"]})
    assert found.max_diff_nats == pytest.approx(0.008)
    assert found.max_mean_diff_nats == pytest.approx(0.002)
    assert (found.texts_differ, found.correct) == (0, True)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_peer_has_the_bound_of_its_precision(precision: str) -> None:
    for factor, correct in ((0.9, True), (1.1, False), (float("nan"), False)):
        sums = [[-1.0, -2.0], [-3.0 + factor * BOUNDS_NATS[precision]]]
        assert checked("minicons", {"sums": sums} | LOOPS, precision=precision).correct is correct


LOOPS: dict[str, Any] = {"ids": [[7, 8, 99], [9]]}


def test_ours_has_a_closer_bound_in_float32() -> None:
    near, far = [[-1.0, -2.00039], [-3.0]], [[-1.00011, -2.0], [-3.0]]
    assert checked(OURS, {"sums": near} | LOOPS).correct
    assert not checked(OURS, {"sums": far} | LOOPS).correct
    assert checked("lm-eval", {"sums": far} | LOOPS).correct
    assert checked(OURS, {"sums": far} | LOOPS, precision="bf16").correct


def test_greedy_answers_are_compared_without_their_stop_token() -> None:
    assert checked(OURS, {"ids": [[7, 8], [9]]}) == Check(0.0, 0.0, 0, correct=True)
    assert checked(OURS, {"ids": [[7, 8], [6]]}) == Check(0.0, 0.0, 1, correct=False)
    assert checked(OURS, {"ids": [[7, 8], [6]]}, precision="bf16").correct
    assert checked("lm-eval", {"texts": ["7 8", "6"]}) == Check(0.0, 0.0, 1, correct=True)


def test_scores_of_other_answers_are_wrong() -> None:
    assert not checked("minicons", {"sums": [[-1.0, -2.0]]} | LOOPS).correct


# --- the report ---------------------------------------------------------------------------------


def peers() -> dict[str, Any]:
    scorers = {
        "ncu_exp": scorer(1.0, 3.0, 2.0, diff=1e-5),
        "naive": scorer(6.0, 5.0, 7.0),
        "lm-eval": scorer(5.0, 5.0, 4.0, diff=7e-4),
        "minicons": scorer(1.0, 1.0, 1.0, diff=2.5, correct=False),
    }
    return record(**scorers)


def test_a_wrong_scorer_is_shown_and_is_not_the_best_peer() -> None:
    found = peers()
    assert best_peer(found["runs"][0]) == "lm-eval"
    text = render(found, figure="f.png")
    rows = {row[0]: row[1:] for row in table(text)}
    assert rows["minicons 0.3.39, batch 8"] == [
        *("fp32", "score", "1.00", "1.00-1.00", "0.50", "2.5e+00", "WRONG, not compared with")
    ]
    assert rows["lm-eval 0.4.13, batch 1"][2:6] == ["5.00", "4.00-5.00", "2.50", "7.0e-04"]
    assert "limit 0.50 s (2 GFLOP at 4 GFLOP/s); ncu_exp 2.00 s, 25% of the limit" in text
    assert "right: lm-eval 0.4.13, batch 1, 2.50 times ours." in text
    assert "2 prompts longer than the model's window are left out" in text
    assert "`prompt=plain`" in text
    found["runs"][0]["scorers"] = {"ncu_exp": scorer(1.0), "minicons": scorer(1.0, correct=False)}
    assert best_peer(found["runs"][0]) is None
    assert "no other scorer was right" in render(found, figure="f.png")


def test_what_a_scorer_cannot_do_is_a_dash() -> None:
    found = peers()
    run = found["runs"][0]
    run["work"] = "greedy"
    run["scorers"]["minicons"] |= {"seconds": [], "check": None}
    run["scorers"]["lm-eval"]["check"]["texts_differ"] = 3
    rows = {row[0]: row[1:] for row in table(render(found, figure="f.png"))}
    assert rows["minicons 0.3.39, batch 8"][2:] == ["-", "-", "-", "-", "does not generate"]
    assert rows["lm-eval 0.4.13, batch 1"][-1] == "3 greedy answers differ"
    labels = [text.get_text() for text in make_figure(found).axes[0].texts]
    assert "does not generate" in labels


def test_the_figure_shows_medians_ranges_and_the_limit() -> None:
    axes: Any = make_figure(peers()).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [2.0, 6.0, 5.0, 1.0]
    assert [tuple(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "--"] == [
        (0.5, 0.5)
    ]
    whiskers = [segment[:, 0].tolist() for c in axes.collections for segment in c.get_segments()]
    assert whiskers == [[1.0, 3.0], [5.0, 7.0], [4.0, 5.0], [1.0, 1.0]]
    assert axes.get_yticklabels()[0].get_text() == "ncu_exp"
    assert "1.0 s, wrong scores" in [text.get_text() for text in axes.texts]


def test_table_and_figure_are_made_again_from_the_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(peers()), "utf-8")
    assert main(["--render", str(path)]) == 0
    assert (tmp_path / "x.md").read_text("utf-8") == write_report(peers(), path)
    assert "(x.png)" in (tmp_path / "x.md").read_text("utf-8")
    assert (tmp_path / "x.png").is_file()


def test_operations_are_told_by_kind() -> None:
    seconds = {"aten::mm": 2.0, "aten::addmm_": 1.0, "aten::mul": 0.5, "aten::view": 0.25}
    kinds = by_kind(seconds)
    assert kinds["matrix products"] == 3.0
    assert kinds["passes over arrays"] == 0.5
    assert kinds[REST] == 0.25
    assert sum(kinds.values()) == sum(seconds.values())


def test_the_profile_of_one_item(tmp_path: Path) -> None:
    options = ["--dataset", "sample", "--n-items", "1", "--docs", str(tmp_path)]
    assert profile_main(options) == 0
    rows = (tmp_path / "speed" / "profile.md").read_text("utf-8").splitlines()
    products = next(row for row in rows if row.startswith("| matrix products"))
    share = int(products.split("|")[3].strip().rstrip("%"))
    assert share > 30  # of a language model's time
