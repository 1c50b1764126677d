"""The benchmark of a long sweep: it runs one, sees what grows, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import OmegaConf

from benchmarks import soak, soak_report
from ncu_exp.sweeps import Frame

Samples = list[dict[str, float]]


def made_up(jobs: int, *, mb_per_job: float = 0.0, cpu_growth: float = 0.0) -> Samples:
    """Samples of a sweep whose jobs take two seconds of processor time each, three by the clock."""
    cpu_s, samples = 20.0, []
    for job in range(jobs + 1):
        cpu_s += 2.0 + cpu_growth * job
        samples.append(
            {
                "jobs": job,
                "at_s": 30.0 + 3.0 * job,
                "cpu_s": cpu_s,
                "resident_mb": 800.0 + mb_per_job * job,
                "open_files": 15,
                "threads": 10,
            }
        )
    return samples


def record_of(samples: Samples) -> dict[str, object]:
    ended = [s["at_s"] for s in samples if s["jobs"] > 0]
    facts = {"jobs": len(ended), "failed": 0, "database_mb": 12.0}
    return {**facts, "samples": samples, "ended_s": ended}


def test_a_sweep_of_twelve_jobs_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, docs = tmp_path / "soak", tmp_path / "docs"
    options = ["--jobs", "12", "--folder", str(folder), "--docs", str(docs), "condition=zero"]
    assert soak.main(options) == 0, capsys.readouterr().out
    record = json.loads((docs / "soak" / "soak.json").read_text("utf-8"))
    assert record["jobs"] == len(record["ended_s"]) == 12
    assert record["failed"] == 0
    assert record["ended_s"] == sorted(record["ended_s"])
    assert record["database_mb"] > 0
    working = [s for s in soak.read(folder)["samples"] if s["jobs"] > 0]
    assert max(s["jobs"] for s in working) >= 11  # the process may end before the last look
    early = next(s for s in working if s["jobs"] >= 3)
    assert working[-1]["open_files"] <= early["open_files"] + 3
    assert working[-1]["threads"] <= early["threads"] + 3
    assert "12 jobs ended, 0 of them failed" in (docs / "soak.md").read_text("utf-8")
    assert (docs / "soak" / "soak.png").read_bytes().startswith(b"\x89PNG")


def test_a_sweep_that_cannot_start_is_an_error_that_tells_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert soak.main(["--jobs", "2", "--docs", str(tmp_path), "precision=unknown"]) == 1
    assert "unknown" in capsys.readouterr().out


def test_what_stays_is_called_flat() -> None:
    told = soak_report.render(record_of(made_up(200)))
    assert "**not flat**" not in told
    assert told.count(": flat.") == len(soak_report.MEASURES)
    assert "| to 200 | 800.0 | 15.0 | 10.0 | 2.00 | 3.00 |" in told


def test_memory_that_grows_is_told_by_its_slope() -> None:
    told = soak_report.render(record_of(made_up(200, mb_per_job=1.0)))
    line = next(line for line in told.splitlines() if line.startswith("- Resident memory"))
    assert "**not flat**" in line
    assert "+1e+03 MB for 1,000 jobs more" in line


def test_jobs_that_take_ever_longer_are_told() -> None:
    told = soak_report.render(record_of(made_up(200, cpu_growth=0.01)))
    assert "- Processor time of a job: **not flat**" in told
    assert "- Wall time of a job: flat" in told


def test_the_slope_leaves_the_first_part_out_and_has_an_interval() -> None:
    found = soak_report.growth([10, 20, 30, 40, 50], [99.0, 2.0, 4.1, 5.9, 8.0])
    assert found.lo < found.per_1000 < found.hi
    assert found.per_1000 == pytest.approx(198.0)  # (-1.5·2.0 - 0.5·4.1 + 0.5·5.9 + 1.5·8.0) / 50


def test_too_few_jobs_are_not_told_in_parts() -> None:
    with pytest.raises(ValueError, match="too few"):
        soak_report.parts_of(made_up(5))
    assert "too few" in soak_report.render(record_of(made_up(5)))


def test_a_launcher_does_not_keep_the_configuration_of_every_job() -> None:
    ended = JobReturn(overrides=["a=1"], cfg=OmegaConf.create(), hydra_cfg=OmegaConf.create())
    ended.return_value, ended.status = None, JobStatus.COMPLETED
    Frame().on_job_end(OmegaConf.create(), ended)
    assert ended.cfg is ended.hydra_cfg is None
    assert ended.return_value is None  # that the sweeper asks for
    assert ended.overrides == ["a=1"]
