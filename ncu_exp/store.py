"""`python -m ncu_exp.store`: look into the stores of scores and perturbations, verify, prune."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ncu_exp.contents import PERTURBATIONS, SCORES, ContentStore
from ncu_exp.salvage import structural_damage

DEFAULT = Path("~/.cache/ncu_exp")
DAY_S = 86_400.0
_MENDED = (
    "  `prune`, or the next job that comes upon it, sets the file aside and goes on in a new "
    "one with all entries that are whole."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command on the stores of a folder; 1 where there is none or a value is damaged."""
    options = _parser().parse_args(arguments)
    folder = options.dir.expanduser()
    paths = [path for name in (SCORES, PERTURBATIONS) if (path := folder / name).is_file()]
    if not paths:
        print(f"There is no store in {folder}.", file=sys.stderr)  # noqa: T201
        return 1
    damaged = 0
    for path in paths:
        if options.command == "verify" and (told := structural_damage(path)):
            print(f"{path}: its structure is damaged: {told[0]}")  # noqa: T201
            print(_MENDED)  # noqa: T201
            damaged += 1
            continue
        with closing(ContentStore(path)) as store:
            if options.command == "verify":
                damaged += _verify(store)
                continue
            if options.command == "prune":
                days = options.older_than_days
                gone = store.prune(
                    origin=options.origin, older_than_s=None if days is None else days * DAY_S
                )
                print(f"{path}: {gone} entries deleted")  # noqa: T201
            _show(store)
    return 1 if damaged else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ncu_exp.store", description=__doc__)
    parser.add_argument(
        "--dir", type=Path, default=DEFAULT, help="cache.dir of the jobs (default: %(default)s)"
    )
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("show", help="size, and entries by what they were made with (the default)")
    commands.add_parser("verify", help="check the file, and every entry against its check sum")
    prune = commands.add_parser("prune", help="delete what is damaged, and what is named")
    prune.add_argument(
        "--origin", help="delete the entries of these weights or versions, as `show` names them"
    )
    prune.add_argument("--older-than-days", type=float, help="delete entries older than that")
    return parser


def _show(store: ContentStore) -> None:
    summary = store.summary()
    print(f"{store.path}: {summary.entries} entries, {summary.size_bytes / 1e6:.1f} MB")  # noqa: T201
    for origin, count in sorted(summary.by_origin.items()):
        print(f"  {count:8d}  {origin}")  # noqa: T201


def _verify(store: ContentStore) -> int:
    damaged = store.damaged()
    for key in damaged:
        print(f"damaged: {key}")  # noqa: T201
    print(f"{store.path}: {store.summary().entries} entries, {len(damaged)} damaged")  # noqa: T201
    return len(damaged)


if __name__ == "__main__":
    sys.exit(main())
