"""The wheel: what it holds, and the main job out of it, in another folder than the repository.

The environment is new and holds the wheel alone. The libraries are those of the environment that
runs the tests, found over a path: an installation of them all takes many minutes. A test of its
own sees to it that the wheel asks for every library that it imports.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from tests.runs import TINY

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ncu_exp"
DATA = (".jsonl", ".txt", ".j2", ".js", ".css")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel, and a folder elsewhere to work in."""

    python: Path
    folder: Path

    def run(self, *arguments: str) -> str:
        """What the command printed; fails where the command does."""
        outside = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=self.folder,
            env=outside,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    # A line of a .pth file is a path and no more: the .pth files there, that of the editable
    # installation of this checkout among them, are not read.
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(python, tmp_path_factory.mktemp("elsewhere"))


def test_it_holds_what_a_job_needs(names: set[str]) -> None:
    conf = {p.relative_to(ROOT).as_posix() for p in (ROOT / "conf").rglob("*.yaml")}
    assert conf
    assert {f"ncu_exp/{name}" for name in conf} <= names
    code = {p.relative_to(ROOT).as_posix() for p in PACKAGE.rglob("*.py")}
    plugins = {p.relative_to(ROOT).as_posix() for p in (ROOT / "hydra_plugins").rglob("*.py")}
    assert code | plugins <= names
    data = {p.relative_to(ROOT).as_posix() for p in PACKAGE.rglob("*") if p.suffix in DATA}
    assert len(data) >= 5
    assert data <= names
    assert [n for n in names if re.fullmatch(r"ncu_exp-.*\.dist-info/licenses/LICENSE", n)]


def test_it_holds_nothing_else(names: set[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} <= {"ncu_exp", "hydra_plugins"}
    kinds = {Path(name).suffix for name in names if ".dist-info/" not in name}
    assert kinds <= {".py", ".yaml", ".typed", *DATA}


def test_it_asks_for_every_library_that_it_imports(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        told = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist") or []
    # Of the extras, those of the launchers are for users.
    asked = [re.sub("extra == '(?!dev)", "'", requirement) for requirement in told]
    installs = with_dependencies(asked)
    owners = packages_distributions()
    for module in imported(PACKAGE) - sys.stdlib_module_names - {"ncu_exp", "hydra_plugins"}:
        bringers = {plain(name) for name in owners.get(module, ())}
        assert bringers & installs, f"{module} is imported, and no requirement brings it"


def imported(package: Path) -> set[str]:
    """The top-level names of everything that the package imports."""
    found: set[str] = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found.add(str(node.module).partition(".")[0])
    return found


def with_dependencies(requirements: list[str]) -> set[str]:
    """The distributions that requirements bring, extras apart, with those that these need."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        name, _, marker = waiting.pop().partition(";")
        name = plain(re.split(r"[\s\[(<>=!~]", name.strip())[0])
        if "extra" in marker or name in found:
            continue
        found.add(name)
        try:
            waiting += requires(name) or []
        except PackageNotFoundError:
            continue  # of another platform or Python
    return found


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_imported_is_the_wheel_s(installed: Installed) -> None:
    told = installed.run(
        "-c",
        "import ncu_exp, ncu_exp.config, sys; print(ncu_exp.__file__);"
        "print(ncu_exp.config.conf_dir()); print(*sys.path, sep='\\n')",
    )
    file, conf, *path = told.splitlines()
    environment = installed.python.parent.parent
    assert Path(file).is_relative_to(environment)
    assert Path(conf) == Path(file).parent / "conf"
    assert str(ROOT) not in path


def test_the_main_job_and_what_follows_it(installed: Installed, tiny_model_dir: Path) -> None:
    told = installed.run(
        *("-m", "ncu_exp", *TINY, f"model.name={tiny_model_dir}"),
        "dataset.limit=4",
    )
    assert "experiment 'ncu_exp'" in told
    [report] = installed.folder.glob("multirun/*/*/results/report.html")
    assert report.stat().st_size > 10_000
    assert (installed.folder / "mlruns/mlflow.db").is_file()
    installed.run("-m", "ncu_exp.compare", "experiment=ncu_exp", "metrics.resamples=200")
    assert list(installed.folder.glob("multirun/*/*/comparison/comparison.html"))
    kept = installed.run("-m", "ncu_exp.store", "--dir", "cache")
    assert re.search(r"scores\.sqlite: \d+ entries", kept)


@pytest.mark.parametrize(
    "command", ["ncu_exp", "ncu_exp.compare", "ncu_exp.store", "ncu_exp.upload"]
)
def test_every_command_says_what_it_is_for(installed: Installed, command: str) -> None:
    assert "ncu_exp" in installed.run("-m", command, "--help")
