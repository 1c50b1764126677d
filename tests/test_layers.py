"""The house has floors: which room may import which, and what may be loaded at start-up."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs import HEAVY

PACKAGE = Path(__file__).resolve().parent.parent / "ncu_exp"

# A library, and the only rooms that know it.
OWNERS = {
    "hydra": {"cli", "config", "compare", "sweeps", "launchers"},
    "omegaconf": {"cli", "config", "compare", "sweeps", "launchers"},
    "mlflow": {"tracking"},
    "torch": {"scoring"},
    "transformers": {"scoring"},
    "accelerate": {"scoring"},
    "bitsandbytes": {"scoring"},
    "openai": {"scoring"},
    "spacy": {"perturb"},
    "faker": {"perturb"},
    "datasets": {"data"},
    "matplotlib": {"figures"},
    "plotly": {"explorer"},
    "scipy": {"stats", "inference"},
    "submitit": {"launchers"},
    "ray": {"launchers"},
    "joblib": {"launchers"},
    "rich": {"terminal", "cli"},
}

GROUND = {
    "__init__", "errors", "records", "config", "contents", "network", "provenance", "stats",
    "inference", "outcomes", "tracking", "wording", "disk", "salvage", "stopping",
}  # fmt: skip
# A room, and the rooms below it that it may import, the ground apart.
ABOVE = {
    "figures": {"formulas", "metrics"},
    "terminal": {"metrics"},
    "data": set(),
    "perturb": set(),
    "prompt": set(),
    "scoring": set(),
    "formulas": set(),
    "measures": {"formulas"},
    "metrics": {"measures"},
    "tables": {"formulas"},
    "tablefile": {"tables"},
    "report": {"metrics"},
    "explorer": {"formulas", "report"},
    "compare": {
        "perturb", "formulas", "measures", "tablefile", "figures", "explorer", "report", "terminal",
    },
    "results": {"data", "perturb", "metrics", "tables", "tablefile", "figures", "report"},
    "asking": {"prompt", "scoring", "terminal"},
    "description": {"scoring"},
    "experiment": {
        "data", "perturb", "prompt", "scoring", "metrics", "tables", "results", "asking",
        "description",
    },
    "launchers": set(),
    "sweeps": {"experiment", "description", "scoring", "compare"},
    "cli": {"experiment", "description", "scoring", "terminal"},
    "store": set(),
    "upload": set(),
    "__main__": {"cli"},
}  # fmt: skip
# On the ground, who may stand on whom.
BELOW = {
    "errors": set(),
    "records": set(),
    "config": {"errors", "records"},
    "contents": {"disk", "errors", "salvage"},
    "disk": {"errors"},
    "salvage": set(),
    "stopping": set(),
    "network": set(),
    "provenance": {"config"},
    "stats": set(),
    "inference": {"stats"},
    "outcomes": set(),
    "wording": {"stats"},
    "tracking": {"config", "errors", "provenance"},
    "__init__": set(),
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, at any depth of its code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield str(node.module)
            if node.module == "ncu_exp":
                yield from (f"ncu_exp.{alias.name}" for alias in node.names)


FILES = sorted(PACKAGE.rglob("*.py"))


def test_every_room_has_its_place() -> None:
    assert {room_of(f) for f in FILES} == set(ABOVE) | set(BELOW)
    assert set(BELOW) == GROUND


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_arrow_points_upward(path: Path) -> None:
    room = room_of(path)
    allowed = BELOW[room] if room in BELOW else ABOVE[room] | GROUND
    for module in imports(path):
        top, _, rest = module.partition(".")
        if top == "ncu_exp" and rest:
            target = rest.partition(".")[0]
            assert target == room or target in allowed, f"{room} imports {module}"
        elif top in OWNERS:
            assert room in OWNERS[top], f"{room} imports {top}"


def test_nothing_heavy_is_loaded_at_start_up() -> None:
    code = f"import sys, ncu_exp.cli; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
