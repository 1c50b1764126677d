"""The records that flow from room to room: items, arms, prompts, requests, scores.

Plain frozen data, no behaviour beyond what can be derived from the fields. All log-probabilities
are natural logarithms (nats).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """What the prompt holds beside the question."""

    zero = "zero"
    oracle = "oracle"
    adversarial = "adversarial"
    noise = "noise"
    irrelevant = "irrelevant"
    distractor = "distractor"


class AnswerType(StrEnum):
    """The kind of thing an answer names; a substitution stays within it."""

    person = "person"
    place = "place"
    organization = "organization"
    date = "date"
    year = "year"
    number = "number"
    quantity = "quantity"
    money = "money"
    work_of_art = "work_of_art"
    event = "event"
    yes_no = "yes_no"
    other = "other"


class ContextSource(StrEnum):
    """Where the gold context of an item came from."""

    corpus = "corpus"  # passages of the corpus itself
    template = "template"  # a sentence that states the answer, made from question and answer
    none = "none"  # the item has no context: only the zero condition can be asked


class Continuation(StrEnum):
    """Which answer a row scores."""

    true = "true"
    fabricated = "fabricated"
    alias = "alias"  # another accepted answer, on request


class Status(StrEnum):
    """What became of one (item, condition, continuation)."""

    ok = "ok"
    error = "error"  # asked for, and could not be scored
    excluded = "excluded"  # the condition does not exist for this item


@dataclass(frozen=True, slots=True)
class Passage:
    """A titled piece of text; `is_gold` marks the passages that support the answer."""

    title: str
    text: str
    is_gold: bool = True


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its gold answer and passages.

    `answer` is scored; `aliases` are other spellings of it (without `answer` itself), used for
    exact match and for finding mentions. `kind` is the stratum that the corpus offers (type,
    level); `answer_type` is set where the corpus states it.
    """

    item_id: str
    corpus: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    context_source: ContextSource = ContextSource.corpus
    kind: str = ""
    answer_type: AnswerType | None = None

    @property
    def gold_passages(self) -> tuple[Passage, ...]:
        return tuple(p for p in self.passages if p.is_gold)

    @property
    def distractor_passages(self) -> tuple[Passage, ...]:
        return tuple(p for p in self.passages if not p.is_gold)

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer and its aliases, the answer first."""
        return (self.answer, *self.aliases)


def render_passages(passages: tuple[Passage, ...]) -> str:
    """The passages as one text: title, newline, text; a blank line between passages."""
    return "\n\n".join(f"{p.title}\n{p.text}" if p.title else p.text for p in passages)


@dataclass(frozen=True, slots=True)
class Span:
    """`context[start:end]` (characters of the original text) was replaced by `replacement`."""

    start: int
    end: int
    original: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The audit row of an item's adversarial context: what was done to it, and what was not.

    `residue` lists what in the perturbed context still gives the truth away (an alias, a surname).
    Where `ok` is false, `reason` says why the item has no adversarial condition and `perturbed`
    is None.
    """

    item_id: str
    policy: str
    seed: int
    entity_type: AnswerType
    answer: str
    fabricated: str | None
    spans: tuple[Span, ...]
    residue: tuple[str, ...]
    original: str
    perturbed: str | None
    ok: bool
    reason: str = ""

    @property
    def context_sha256(self) -> str:
        return sha256_text(self.perturbed if self.perturbed is not None else "")


@dataclass(slots=True)
class AuditCounts:
    """Over the items of a run: those with an adversarial context, and those of them in which
    something still tells the truth (an alias, a surname)."""

    items: int = 0
    ok: int = 0
    telling: int = 0

    def add(self, perturbations: Iterable[Perturbation]) -> None:
        for p in perturbations:
            self.items += 1
            self.ok += p.ok
            self.telling += p.ok and bool(p.residue)


@dataclass(frozen=True, slots=True)
class Arm:
    """One item under one condition: the context to show, or why there is none.

    `context` is None for the zero condition and where `ok` is false. `fabricated` is the answer
    that stands in an adversarial context.
    """

    item_id: str
    condition: Condition
    context: str | None
    fabricated: str | None = None
    ok: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A chat message; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is asked: chat messages, or plain text.

    Exactly one of `messages` and `text` is set. `answer_prefix` stands before every scored answer
    and belongs to the continuation (a word-boundary space in plain text, nothing after a chat
    template's generation prompt).
    """

    messages: tuple[Message, ...] = ()
    text: str = ""
    answer_prefix: str = ""


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One prompt, the continuations to score under it, and how many greedy tokens to generate."""

    item_id: str
    condition: Condition
    prompt: Prompt
    continuations: tuple[tuple[Continuation, str], ...]
    max_new_tokens: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """An interval (nats) that holds a log-probability; of no width where the value is known."""

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        return self.lower == self.upper


@dataclass(frozen=True, slots=True)
class ContinuationScore:
    """Per-token log-probabilities (nats) of one continuation, each given all tokens before it.

    An engine that cannot tell them all gives `bounds` of each token, and `mean_bounds`; a token
    that is only bounded is NaN among the `token_logprobs`, and so are sum and mean with it.
    `boundary_merged`: a token of the tokenizer would span the join of prompt and answer, so the
    two were encoded apart. `is_greedy`: every token is the arg max.
    """

    continuation: Continuation
    text: str
    token_ids: tuple[int, ...]
    token_logprobs: tuple[float, ...]
    boundary_merged: bool
    is_greedy: bool
    bounds: tuple[Bounds, ...] = ()
    mean_bounds: Bounds | None = None

    @property
    def sum_logprob(self) -> float:
        return math.fsum(self.token_logprobs)

    @property
    def mean_logprob(self) -> float:
        return self.sum_logprob / len(self.token_logprobs)

    @property
    def mean_interval(self) -> Bounds:
        """Bounds of the mean; the mean itself, twice, where it is known."""
        return self.mean_bounds or Bounds(self.mean_logprob, self.mean_logprob)

    @property
    def n_censored(self) -> int:
        """The tokens that are bounded only."""
        return sum(not bounds.exact for bounds in self.bounds)


@dataclass(frozen=True, slots=True)
class Score:
    """The answer to a `ScoreRequest`, or the reason why there is none (`reason` not empty)."""

    item_id: str
    condition: Condition
    continuations: tuple[ContinuationScore, ...] = ()
    greedy_text: str = ""
    greedy_ids: tuple[int, ...] = ()
    prompt_tokens: int = 0
    prompt_sha256: str = ""
    estimator: str = "exact"
    reason: str = ""

    @property
    def ok(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class LatencyProbe:
    """Seconds of one batch-1 request: prompt plus the greedy tokens, device synchronised."""

    item_id: str
    condition: Condition
    latency_s: float


@dataclass(frozen=True, slots=True)
class NumericsCheck:
    """The largest difference of a token's log-probability (nats), and what exceeds the bound."""

    checked: int
    max_abs_diff_nats: float
    bound_nats: float
    exceeded: tuple[str, ...]


def sha256_text(text: str) -> str:
    """Hex sha256 of the text's UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
