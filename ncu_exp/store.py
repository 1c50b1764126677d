"""`python -m ncu_exp.store`: look into the score store, verify it, prune it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ncu_exp.scoring.store import ScoreStore

DEFAULT = Path("~/.cache/ncu_exp/scores.sqlite")
DAY_S = 86_400.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command on a store; 1 where there is no store or a value in it is damaged."""
    options = _parser().parse_args(arguments)
    path = options.path.expanduser()
    if not path.is_file():
        print(f"There is no score store at {path}.", file=sys.stderr)  # noqa: T201
        return 1
    with closing(ScoreStore(path)) as store:
        if options.command == "verify":
            return _verify(store)
        if options.command == "prune":
            days = options.older_than_days
            gone = store.prune(
                weights=options.weights, older_than_s=None if days is None else days * DAY_S
            )
            print(f"{gone} entries deleted")  # noqa: T201
        _show(store)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ncu_exp.store", description=__doc__)
    parser.add_argument(
        "--path", type=Path, default=DEFAULT, help="the store (default: %(default)s)"
    )
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("show", help="size and entries by weights (the default)")
    commands.add_parser("verify", help="check every entry against its check sum")
    prune = commands.add_parser("prune", help="delete damaged entries, and those named")
    prune.add_argument(
        "--weights", help="delete the entries of these weights, as `show` names them"
    )
    prune.add_argument("--older-than-days", type=float, help="delete entries older than that")
    return parser


def _show(store: ScoreStore) -> None:
    summary = store.summary()
    print(f"{store.path}: {summary.entries} entries, {summary.size_bytes / 1e6:.1f} MB")  # noqa: T201
    for weights, count in sorted(summary.by_weights.items()):
        print(f"  {count:8d}  {weights}")  # noqa: T201


def _verify(store: ScoreStore) -> int:
    damaged = store.damaged()
    for key in damaged:
        print(f"damaged: {key}")  # noqa: T201
    print(f"{store.summary().entries} entries, {len(damaged)} damaged")  # noqa: T201
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
