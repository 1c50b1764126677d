"""What one prompt asks of an endpoint, and how the kinds of endpoints are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ncu_exp.records import Score, ScoreRequest
from ncu_exp.scoring.endpoint import Endpoint, NoAnswerError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to a server: where, and what; `number` tells equal ones apart (samples)."""

    path: str
    body: Mapping[str, Any]
    number: int = 0


class Exchange:
    """What one prompt needs to be asked; `sent` counts what the store did not know."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.sent = 0

    def ask(self, ask: Ask, parse: Callable[[Mapping[str, Any]], T]) -> T:
        """What `parse` makes of the answer, which is stored unless it is broken (AnswerError)."""
        kind = f"answer {ask.number}"
        known = self._endpoint.recall(ask.path, ask.body, kind=kind)
        if known is not None:
            return parse(known)
        answer = self._endpoint.send(ask.path, ask.body)
        self.sent += 1
        try:
            found = parse(answer)
        except NoAnswerError:
            self._endpoint.keep(ask.path, ask.body, answer, kind=kind)
            raise
        self._endpoint.keep(ask.path, ask.body, answer, kind=kind)
        return found


class Scorer(Protocol):
    """How one kind of endpoint is asked for a score."""

    estimator: str

    def preflight(self) -> str:
        """Ask one tiny request; what the endpoint can do, in a line.

        Raises UserError where it cannot be used.
        """

    def score(self, request: ScoreRequest, exchange: Exchange) -> Score:
        """The score of a request. Raises AnswerError where it has none."""

    def generation(self, request: ScoreRequest) -> Ask:
        """The request that generates an answer, as a person would ask it."""
