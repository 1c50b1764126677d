"""Habits of the code that keep harm out, and that the lint of this project sees their breach."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ncu_exp.config import TrackingConfig
from ncu_exp.tracking import ui_command

ROOT = Path(__file__).resolve().parents[2]
# Where a rule is set aside, each with its reason beside it: safe YAML, scripts of ours, the
# user's own endpoint, queries of our own words.
SET_ASIDE = {
    ("compare/loading.py", "S506"), ("explorer.py", "S704"), ("network.py", "S310"),
    ("contents.py", "S608"), ("salvage.py", "S608"),
}  # fmt: skip
BREACHES = {
    "S301": "import pickle\npickle.loads(b'')\n",
    "S307": "eval('1')\n",
    "S102": "exec('1')\n",
    "S506": "import yaml\nyaml.load('', Loader=yaml.Loader)\n",
    "S602": "import subprocess\nsubprocess.run('a b', shell=True)\n",
    "S104": "HOST = '0.0.0.0'\n",
    "S202": "import tarfile\ntarfile.open('a').extractall()\n",
    "S701": "import jinja2\njinja2.Environment()\n",
    "S501": "import requests\nrequests.get('a', verify=False, timeout=1)\n",
}


def ruff(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *arguments],
        input=given,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_package_keeps_the_rules() -> None:
    done = ruff("ncu_exp", "hydra_plugins")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_seen(rule: str) -> None:
    done = ruff("--output-format", "concise", "--stdin-filename", "ncu_exp/x.py", "-",
                given=BREACHES[rule])  # fmt: skip
    assert f" {rule} " in done.stdout


def test_no_rule_is_set_aside_in_silence() -> None:
    found = set()
    for path in (ROOT / "ncu_exp").rglob("*.py"):
        for rule in re.findall(r"# noqa:[^#]*?\b(S\d{3})", path.read_text(encoding="utf-8")):
            found.add((path.relative_to(ROOT / "ncu_exp").as_posix(), rule))
    assert found <= SET_ASIDE


def test_no_pickle_of_ours() -> None:
    """What ruff does not know: numpy and pandas open pickles by functions of their own."""
    words = re.compile(
        r"import (cloudpickle|pickle|marshal|shelve|dill)\b|\b(allow|read|to)_pickle\b|torch\.load"
    )
    for path in (ROOT / "ncu_exp").rglob("*.py"):
        assert not words.search(path.read_text(encoding="utf-8")), path


def test_the_ui_listens_on_this_machine_alone() -> None:
    told = ui_command(TrackingConfig(uri="sqlite:///a/mlflow.db", experiment="e"))
    assert re.search(r"--host 127\.0\.0\.1 ", told)
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    done = subprocess.run(
        ["make", "--dry-run", "ui"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    [command] = [line for line in done.stdout.splitlines() if " ui " in line and "mlflow" in line]
    assert re.findall(r"--host (\S+)", command) == ["127.0.0.1"]
