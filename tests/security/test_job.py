"""A whole job over a file that means harm: its names become no files, its markup no markup."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runs import TINY, ncu_exp

from .hostile import SNIPPETS
from .pages import Tags

SCRIPT = "<script>alert(1)</script>"
IDS = ("../../outside", "/var/outside", "a/b", "..", "con\x00", SCRIPT, "x" * 300)


def test_a_hostile_file_gives_an_ordinary_folder(tmp_path: Path, tiny_model_dir: Path) -> None:
    work = tmp_path / "deep" / "work"
    work.mkdir(parents=True)
    rows = [
        {"id": name, "question": f"{SCRIPT} {number}?", "answer": "Rhône",
         "context": f"{SNIPPETS[number]} It is the Rhône.", "title": f"../{name}"}
        for number, name in enumerate(IDS)
    ]  # fmt: skip
    (work / "bad.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = ncu_exp(
        work, *TINY, f"model.name={tiny_model_dir}", "dataset=local", "dataset.path=bad.jsonl",
        "dataset.columns.id=id", "dataset.columns.title=title", "condition=oracle",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert set(done.table(done.all_runs[0])["item_id"]) == set(IDS)
    [report] = work.glob("multirun/*/*/results/report.html")
    tags = Tags(report.read_text(encoding="utf-8"))
    assert "script" not in {tag for tag, _ in tags.found}
    assert tags.text.count(SCRIPT) >= len(IDS)
    kept = {path.relative_to(report.parent).as_posix() for path in report.parent.rglob("*")}
    assert kept - {"manifest.json"} <= {
        "report.html", "config.yaml", "figures", "tables", "tables/items.parquet",
        "tables/items_preview.json", "tables/perturbations.parquet",
        *(f"figures/{path.name}" for path in (report.parent / "figures").iterdir()),
    }  # fmt: skip
    assert {path.name for path in tmp_path.rglob("*") if "outside" in path.name} == set()
    assert {path.name for path in tmp_path.iterdir()} == {"deep"}
