"""What produced a result: versions, commit, hashes."""

from __future__ import annotations

import dataclasses
import getpass
import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ncu_exp.config import Config

PACKAGES = (
    "ncu_exp",
    "torch",
    "transformers",
    "bitsandbytes",
    "mlflow",
    "datasets",
    "spacy",
    "faker",
)

# What says where results go and how fast they come, not what they are.
NOT_PART_OF_THE_RESULT = ("tracking", "cache", "latency", "api", "preflight", "compare")


@cache
def versions() -> Mapping[str, str]:
    """Versions of Python and of the packages that can change a number; read once in a process."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def git_commit() -> str | None:
    """The commit of the checkout that the package runs from; None for an installed wheel.

    `-dirty` is appended where tracked files differ from the commit. Asked once in a process: the
    code that its later jobs run is what it loaded at the first.
    """
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        dirty = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if dirty else commit


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()


def user() -> str | None:
    """Who runs this; None where the machine has no name for it (a container's bare user id)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def plain(value: Any) -> Any:
    """Dataclasses, enums and tuples as JSON types; without the credentials in URLs."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return without_credentials(value) if isinstance(value, str) else value


def without_credentials(text: str) -> str:
    """The text with `user:password@` taken out of every URL in it."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", text)


@cache
def code_sha256(*places: Path) -> str:
    """Hex sha256 of the Python files of folders, and of single files; read once in a process."""
    digest = hashlib.sha256()
    for path in _python_files(places):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _python_files(places: Iterable[Path]) -> Iterable[Path]:
    for place in places:
        yield from sorted(place.glob("*.py")) if place.is_dir() else (place,)


def config_sha256(config: Config) -> str:
    """Hex sha256 of everything in the configuration that can change a result."""
    values = {k: v for k, v in plain(config).items() if k not in NOT_PART_OF_THE_RESULT}
    canonical = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
