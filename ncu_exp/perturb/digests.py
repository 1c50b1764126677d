"""What tells one set of contexts from another: digests that do not depend on the items' order."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable

from ncu_exp.records import Arm, Condition, Perturbation

_MODULUS = 2**256


class SetDigest:
    """A digest of a set of rows in constant memory, whatever their order.

    It is the sum of the rows' sha256, modulo 2**256: it tells sets apart that differ by accident,
    and is no defence against rows that somebody made up to collide.
    """

    def __init__(self) -> None:
        self._sum = 0

    def add(self, row: list[object]) -> None:
        line = json.dumps(row, ensure_ascii=True, separators=(",", ":"))
        digest = hashlib.sha256(line.encode("ascii")).digest()
        self._sum = (self._sum + int.from_bytes(digest, "big")) % _MODULUS

    def hexdigest(self) -> str:
        return f"{self._sum:064x}"


class ContextDigests:
    """The digests of a job's contexts, gathered block by block.

    Runs with equal digests showed the same texts for the same items.
    """

    def __init__(self) -> None:
        self._by_condition: dict[Condition, SetDigest] = defaultdict(SetDigest)
        self._perturbations: SetDigest | None = None

    def add(self, arms: Iterable[Arm], perturbations: Iterable[Perturbation]) -> None:
        for arm in arms:
            row = [arm.item_id, arm.ok, arm.fabricated, arm.context]
            self._by_condition[arm.condition].add(row)
        for p in perturbations:
            self._perturbations = self._perturbations or SetDigest()
            row = [p.item_id, p.policy, p.seed, p.ok, p.fabricated, p.context_sha256]
            self._perturbations.add(row)

    @property
    def contexts(self) -> dict[Condition, str]:
        """By condition, the hex digest over the contexts of its arms."""
        return {condition: found.hexdigest() for condition, found in self._by_condition.items()}

    @property
    def perturbations(self) -> str | None:
        """The hex digest over the perturbed contexts; None where none was asked for."""
        return self._perturbations.hexdigest() if self._perturbations else None
