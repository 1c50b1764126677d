"""Bounds of an answer's log-probability, from what a chat API tells of its own generation. Pure.

Such an API tells, at each place of the text that it generated, the k likeliest tokens. As long as
the generated text follows the answer, the answer's next token stands among them, and is known
exactly, or does not, and is at most as likely as the least of them and as the mass that they leave.
Behind the first place where the generated text leaves the answer nothing is known. No bound is
guessed: the true value lies between the two, whatever the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ncu_exp.records import Bounds

# An API's numbers are rounded, and summed in single precision.
ROUNDING = 1e-5  # of the mass that the k likeliest leave
ROUNDING_NATS = 1e-4

UNKNOWN = Bounds(-math.inf, 0.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token and its log-probability (nats); None for one whose bytes the API did not tell."""

    token: bytes | None
    logprob: float


@dataclass(frozen=True, slots=True)
class Step:
    """A place of the generated text: the token that stands there, and the likeliest ones."""

    chosen: Candidate
    top: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Bounded:
    """An answer's tokens as far as they are known, the bounds of each, and of their mean."""

    bounds: tuple[Bounds, ...]
    mean: Bounds
    is_greedy: bool


def bound_tokens(answer: Sequence[bytes], steps: Sequence[Step]) -> tuple[Bounds, ...]:
    """Bounds of each token of `answer` (not empty), given all of its tokens before."""
    found: list[Bounds] = []
    for place, token in enumerate(answer):
        if place >= len(steps):
            break
        found.append(bound_token(token, steps[place]))
        if steps[place].chosen.token != token:
            break
    return (*found, *[UNKNOWN] * (len(answer) - len(found)))


def bound_token(token: bytes, step: Step) -> Bounds:
    """Bounds of a token where `step` was generated, everything before it being equal."""
    seen = [step.chosen, *step.top]
    equal = [c.logprob for c in seen if c.token == token]
    if equal:
        return Bounds(min(equal), max(equal))  # two tokens may have the same bytes
    if not is_text(token):
        return UNKNOWN  # servers tell a part of a character as nothing, or as all of it
    hidden = [c.logprob for c in seen if c.token is None]
    return Bounds(-math.inf, min(0.0, max([*hidden, outside(step)])))


def is_text(token: bytes) -> bool:
    """Whether a token is whole characters."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def outside(step: Step) -> float:
    """The most that a token can have that is not among the likeliest of a step (nats)."""
    least = min((c.logprob for c in step.top), default=0.0)
    mass = math.fsum(math.exp(c.logprob) for c in step.top)
    left = math.log(max(0.0, 1.0 - mass) + ROUNDING)
    return min(least + ROUNDING_NATS, left, 0.0)


def mean_bounds(bounds: Sequence[Bounds]) -> Bounds:
    """Bounds of the mean of token log-probabilities."""
    n = len(bounds)
    return Bounds(math.fsum(b.lower for b in bounds) / n, math.fsum(b.upper for b in bounds) / n)


def bound_answer(answer: Sequence[bytes], steps: Sequence[Step]) -> Bounded:
    """What is known of an answer whose tokens are known."""
    bounds = bound_tokens(answer, steps)
    followed = [step.chosen.token for step in steps[: len(answer)]] == list(answer)
    return Bounded(bounds, mean_bounds(bounds), is_greedy=followed)


def bound_text(answer: bytes, steps: Sequence[Step]) -> Bounded:
    """What is known of an answer whose tokens are not known, but for those that were generated.

    The rest of the answer, where the generated text leaves it, counts as one token of which the
    bounds are told; the mean is bounded over all numbers of tokens that the rest may have, from
    one to one for each byte.
    """
    known: list[float] = []
    rest = answer
    for step in steps:
        token = step.chosen.token
        if not rest or not token or not rest.startswith(token):
            break
        known.append(step.chosen.logprob)
        rest = rest[len(token) :]
    bounds = tuple(Bounds(logprob, logprob) for logprob in known)
    if not rest:
        return Bounded(bounds, mean_bounds(bounds), is_greedy=True)
    upper = 0.0
    if len(known) < len(steps):
        upper = _first_of(rest, steps[len(known)], first=not known)
    most = (math.fsum(known) + upper) / (len(known) + len(rest))
    mean = Bounds(-math.inf, min(0.0, most))
    return Bounded((*bounds, Bounds(-math.inf, upper)), mean, is_greedy=False)


def _first_of(rest: bytes, step: Step, *, first: bool) -> float:
    """The most that any token can have with which `rest` may begin.

    The first token of a text may be told with a space before it that is not there.
    """
    seen = (step.chosen, *step.top)
    texts = ((c, c.token.lstrip(b" ") if first and c.token else c.token) for c in seen)
    fitting = (c.logprob for c, text in texts if text is None or (text and rest.startswith(text)))
    return min(0.0, max([*fitting, outside(step)]))
