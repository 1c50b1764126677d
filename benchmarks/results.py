"""What the default model does: the sweep of the README, its finding, table and figure.

    python -m benchmarks.results [--comparison FOLDER]

Runs `python -m ncu_exp -m prompt=directive,plain` (or takes the comparison that it left) and writes
the results section of README.md and docs/results/.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SWEEP = ("-m", "prompt=directive,plain")
FIGURES = ("success_by_condition", "prior_and_context")
BEGIN, END = "<!-- results: python -m benchmarks.results -->", "<!-- end of results -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparison", type=Path)
    folder = parser.parse_args().comparison or run_sweep()
    docs = ROOT / "docs" / "results"
    docs.mkdir(exist_ok=True)
    for name in FIGURES:
        shutil.copy(folder / "figures" / f"{name}.png", docs)
    for name in ("table1.md", "differences.md", "sensitivity.md"):
        shutil.copy(folder / "tables" / name, docs)
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    section = f"{BEGIN}\n{results(folder)}\n{END}"
    readme.write_text(before + section + after, encoding="utf-8")


def run_sweep() -> Path:
    """The folder of the comparison of a sweep run now."""
    subprocess.run([sys.executable, "-m", "ncu_exp", *SWEEP], cwd=ROOT, check=True)
    return max(ROOT.glob("multirun/*/*/comparison"), key=lambda place: place.stat().st_mtime)


def results(folder: Path) -> str:
    """Table, finding and figures as Markdown."""
    title, _, body = (folder / "tables" / "table1.md").read_text("utf-8").partition("\n\n")
    table, _, note = body.partition("\n\n")
    assert title.startswith("### ")
    figures = "\n".join(f"![{told(name)}](docs/results/{name}.png)" for name in FIGURES)
    said = (folder / "finding.md").read_text(encoding="utf-8").strip()
    return f"{table}\n\n{note.strip()}\n\n{said}\n\n{figures}"


def told(figure: str) -> str:
    return figure.replace("_", " ")


if __name__ == "__main__":
    main()
