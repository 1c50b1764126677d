"""What a job may spend on an endpoint: requests, tokens and money, counted while it runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ncu_exp.config import ApiConfig, ModelConfig, PricesConfig
from ncu_exp.errors import BudgetError, UserError


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request: read by the model, and written by it."""

    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def usd(self, prices: PricesConfig) -> float:
        """What it costs; nothing where there are no prices."""
        read, written = prices.input_usd or 0.0, prices.output_usd or 0.0
        return (self.input_tokens * read + self.output_tokens * written) / 1e6


def usage_of(answer: Mapping[str, Any]) -> Usage:
    """What an answer says of its own tokens."""
    told = answer.get("usage") or {}
    return Usage(int(told.get("prompt_tokens") or 0), int(told.get("completion_tokens") or 0))


def check_prices(model: ModelConfig, api: ApiConfig) -> None:
    """Refuse a limit of money for a model without prices."""
    if api.max_usd is not None and None in (model.prices.input_usd, model.prices.output_usd):
        raise UserError(
            f"api.max_usd={api.max_usd:g}: the prices of {model.label} are not known. Give "
            "model.prices.input_usd= and model.prices.output_usd= (per million tokens), or limit "
            "api.max_requests or api.max_tokens."
        )


class Budget:
    """Counts what is spent, and refuses a request that could go beyond a limit.

    A request in flight counts with the most that it can take. Safe for several threads.
    """

    def __init__(self, api: ApiConfig, prices: PricesConfig) -> None:
        self._api, self._prices = api, prices
        self._lock = threading.Lock()
        self._flying: dict[int, Usage] = {}
        self._next = 0
        self.requests = self.tokens = 0
        self.usd = 0.0

    def reserve(self, most: Usage) -> int:
        """Leave to send a request that takes at most that; its number, for `settle`.

        Raises BudgetError.
        """
        with self._lock:
            flying = self._flying.values()
            tokens = self.tokens + sum(u.tokens for u in flying)
            usd = self.usd + sum(u.usd(self._prices) for u in flying)
            api = self._api
            for key, limit, spent, more in (
                ("api.max_requests", api.max_requests, self.requests + len(flying), 1),
                ("api.max_tokens", api.max_tokens, tokens, most.tokens),
                ("api.max_usd", api.max_usd, usd, most.usd(self._prices)),
            ):
                if limit is not None and spent + more > limit:
                    raise BudgetError(self._told(key, limit))
            self._next += 1
            self._flying[self._next] = most
            return self._next

    def settle(self, number: int, used: Usage) -> None:
        """What a request took in the end; one that failed for good took nothing."""
        with self._lock:
            del self._flying[number]
            self.requests += 1
            self.tokens += used.tokens
            self.usd += used.usd(self._prices)

    def _told(self, key: str, limit: float) -> str:
        spent = f"{self.requests:,} requests, {self.tokens:,} tokens"
        if self._prices.input_usd is not None:
            spent += f", {self.usd:.4f} USD (prices of {self._prices.as_of or 'an unknown date'})"
        return (
            f"{key}={limit:g} does not allow another request: {spent} so far. Every answer is "
            "stored; raise the limit and start again, and nothing is asked twice."
        )
