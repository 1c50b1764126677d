"""Chat APIs: bounds of an answer's log-probability from the text that the API generates itself.

One request for each prompt. Where the server goes on from the beginning of an answer that we give,
the rest of an answer is asked for where the generated text leaves it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ncu_exp.config import Continuing, EstimatorName
from ncu_exp.errors import EndpointError, ModelError
from ncu_exp.records import (
    Bounds,
    Continuation,
    ContinuationScore,
    Message,
    Prompt,
    Score,
    ScoreRequest,
    sha256_text,
)
from ncu_exp.scoring.encoding import answer_ids, first_line
from ncu_exp.scoring.endpoint import AnswerError, Endpoint, NoAnswerError
from ncu_exp.scoring.exchange import Ask, Exchange
from ncu_exp.scoring.intervals import (
    UNKNOWN,
    Bounded,
    Candidate,
    Step,
    bound_answer,
    bound_text,
    bound_token,
    mean_bounds,
)
from ncu_exp.scoring.tokenizers import token_bytes

CHAT = "/chat/completions"
MISSING_NATS = -15.0  # the paper's stand-in for a token that the API did not tell
SENTINEL_NATS = -9000.0  # below it an API means "very little", not a number
ENOUGH_BYTES = 2  # of an answer whose tokens are not known, for each token that is asked for
MOST_TOKENS = 64
PROBE = Prompt(messages=(Message("user", "Name the capital of France in one word."),))


@dataclass(frozen=True, slots=True)
class Generated:
    """What a chat API generated: text, steps (none where it tells no log-probs), prompt tokens."""

    text: str
    steps: tuple[Step, ...]
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, with ids and bytes of its tokens where they are known."""

    text: str
    ids: tuple[int, ...] = ()
    tokens: tuple[bytes, ...] = ()


class ChatScorer:
    """Bounds from `logprobs` and `top_logprobs`, or the paper's convention."""

    def __init__(self, endpoint: Endpoint, tokenizer: Any | None, *, estimator: EstimatorName):
        self._endpoint, self._tokenizer = endpoint, tokenizer
        self._paper = estimator is EstimatorName.paper
        self.estimator = "paper" if self._paper else "interval"

    def preflight(self) -> str:
        endpoint = self._endpoint
        body = self._body(PROBE, tokens=1)
        try:
            found = parse_generated(endpoint.send(CHAT, body), k=endpoint.config.top_logprobs)
        except AnswerError as error:
            raise EndpointError(
                f"{endpoint.config.label}: {endpoint.url} cannot be used as it is: {error}. "
                "An API without log-probs can be sampled: model.logprobs=false."
            ) from None
        return (
            f"log-probs of generated tokens with {len(found.steps[0].top)} alternatives; "
            + ("tokens of answers known" if self._tokenizer else "tokens of answers not known")
            + ("; goes on from a given text" if self._continues else "")
        )

    def generation(self, request: ScoreRequest) -> Ask:
        return Ask(CHAT, self._body(request.prompt, tokens=max(1, request.max_new_tokens)))

    def score(self, request: ScoreRequest, exchange: Exchange) -> Score:
        answers = [self._encode(text) for _, text in request.continuations]
        ask = Ask(CHAT, self._body(request.prompt, tokens=_tokens_to_ask(request, answers)))
        k = self._endpoint.config.top_logprobs
        found = exchange.ask(ask, partial(parse_generated, k=k))
        scores = [
            papers_score(kind, text, found.steps)
            if self._paper
            else self._bounded(request, kind, answer, found=found, exchange=exchange)
            for (kind, text), answer in zip(request.continuations, answers, strict=True)
        ]
        return Score(
            item_id=request.item_id,
            condition=request.condition,
            continuations=tuple(scores),
            greedy_text=first_line(_cut(found, request.max_new_tokens)),
            prompt_tokens=found.prompt_tokens,
            prompt_sha256=messages_sha256(request.prompt),
            estimator=self.estimator,
        )

    def _encode(self, text: str) -> Answer:
        if self._tokenizer is None:
            return Answer(text)
        ids = answer_ids(self._tokenizer, text)
        tokens = token_bytes(self._tokenizer, ids)
        return Answer(text) if tokens is None else Answer(text, ids, tuple(tokens))

    def _bounded(
        self,
        request: ScoreRequest,
        kind: Continuation,
        answer: Answer,
        *,
        found: Generated,
        exchange: Exchange,
    ) -> ContinuationScore:
        if not answer.tokens:
            bounded = bound_text(answer.text.encode(), found.steps)
        elif self._continues:
            bounded = self._continue(request, answer.tokens, found.steps, exchange=exchange)
        else:
            bounded = bound_answer(answer.tokens, found.steps)
        return as_bounded_score(kind, answer.text, bounded, ids=answer.ids)

    @property
    def _continues(self) -> bool:
        return self._endpoint.config.continues is not Continuing.no and bool(self._tokenizer)

    def _continue(
        self,
        request: ScoreRequest,
        tokens: Sequence[bytes],
        steps: Sequence[Step],
        *,
        exchange: Exchange,
    ) -> Bounded:
        """Bounds of every token: behind one that was not generated, the server is asked to go on.

        What it goes on from is text; a beginning whose tokens are not the answer's own tells
        nothing of the next token, which stays unknown.
        """
        bounds: list[Bounds] = []
        greedy = True
        k = self._endpoint.config.top_logprobs
        while len(bounds) < len(tokens):
            for step in steps:
                token = tokens[len(bounds)]
                bounds.append(bound_token(token, step))
                followed = step.chosen.token == token
                greedy &= followed
                if len(bounds) == len(tokens) or not followed:
                    break
            rest = len(tokens) - len(bounds)
            beginning = b"".join(tokens[: len(bounds)])
            steps = ()
            if rest and bounds and self._keeps_tokens(beginning, tokens[: len(bounds)]):
                body = self._body(request.prompt, tokens=rest, beginning=beginning.decode())
                ask = Ask(CHAT, body)
                parse = partial(parse_generated, k=k, ends=True)
                steps = exchange.ask(ask, parse).steps
            if rest and not steps:
                bounds.append(UNKNOWN)
                greedy = False
        return Bounded(tuple(bounds), mean_bounds(bounds), is_greedy=greedy)

    def _keeps_tokens(self, beginning: bytes, tokens: Sequence[bytes]) -> bool:
        """Whether the beginning of an answer, given as text, has the answer's own tokens."""
        try:
            return self._encode(beginning.decode()).tokens == tuple(tokens)
        except UnicodeDecodeError:
            return False

    def _body(self, prompt: Prompt, *, tokens: int, beginning: str = "") -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": chat_messages(prompt),
            "max_tokens": tokens,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": self._endpoint.config.top_logprobs,
        }
        if beginning:
            last: dict[str, Any] = {"role": "assistant", "content": beginning}
            how = self._endpoint.config.continues
            if how is Continuing.prefix:
                last["prefix"] = True
            if how is Continuing.continue_final_message:
                body |= {"continue_final_message": True, "add_generation_prompt": False}
            body["messages"] = [*body["messages"], last]
        return body


def as_bounded_score(
    kind: Continuation, text: str, bounded: Bounded, *, ids: tuple[int, ...] = ()
) -> ContinuationScore:
    """The record of an answer that is known within bounds; an exact one where all of it is."""
    exact = all(bounds.exact for bounds in bounded.bounds)
    return ContinuationScore(
        continuation=kind,
        text=text,
        token_ids=ids,
        token_logprobs=tuple(b.upper if b.exact else math.nan for b in bounded.bounds),
        boundary_merged=False,
        is_greedy=bounded.is_greedy,
        bounds=bounded.bounds,
        mean_bounds=None if exact else bounded.mean,
    )


def papers_score(kind: Continuation, text: str, steps: Sequence[Step]) -> ContinuationScore:
    """The paper's number for a chat API: what was generated and is part of the answer, else -15.

    The mean log-probability of the generated tokens that are substrings of the answer. It is the
    log-probability of no text, and is here to be set beside the paper's own.
    """
    parts = [
        step.chosen.logprob
        for step in steps
        if (token := (step.chosen.token or b"").decode(errors="replace").strip()) and token in text
    ]
    return ContinuationScore(
        continuation=kind,
        text=text,
        token_ids=(),
        token_logprobs=tuple(parts) or (MISSING_NATS,),
        boundary_merged=False,
        is_greedy=False,
    )


def parse_generated(
    answer: Mapping[str, Any], *, k: int, ends: bool = False, logprobs: bool = True
) -> Generated:
    """What a chat completion holds. `ends`: it may be empty, where the given text is whole.

    Raises AnswerError for a refusal, an empty answer, a filter, and for log-probs that are missing
    or cannot be.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        text = message.get("content") or ""
        told = ((choice.get("logprobs") or {}).get("content") or []) if logprobs else []
        steps = tuple(_step(place, k=k) for place in told)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise AnswerError(f"malformed_answer: {type(error).__name__} {error}") from None
    if message.get("refusal"):
        raise NoAnswerError(f"refused: {str(message['refusal'])[:200]}")
    if choice.get("finish_reason") == "content_filter":
        raise NoAnswerError("content_filter: the server's filter ended the answer")
    if not text.strip() and not ends:
        raise NoAnswerError("empty_answer: nothing was generated")
    if logprobs and not steps and not ends:
        raise AnswerError("no_logprobs: the answer came without log-probs")
    usage = answer.get("usage") or {}
    return Generated(text, steps, int(usage.get("prompt_tokens") or 0))


def _step(place: Mapping[str, Any], *, k: int) -> Step:
    top = [_candidate(told) for told in (place.get("top_logprobs") or [])[:k]]
    step = Step(_candidate(place), tuple(c for c in top if c.logprob > SENTINEL_NATS))
    for candidate in (step.chosen, *step.top):
        if not math.isfinite(candidate.logprob) or candidate.logprob > 0:
            raise AnswerError(f"bad_logprobs: {candidate.logprob} is no log-probability")
    mass = math.fsum(math.exp(c.logprob) for c in step.top)
    if mass > 1.01:
        raise AnswerError(f"bad_logprobs: the likeliest tokens have a probability of {mass:.2f}")
    return step


def _candidate(told: Mapping[str, Any]) -> Candidate:
    logprob = float(told["logprob"])
    if 0 < logprob < 1e-3:
        logprob = 0.0  # rounding
    if told.get("bytes"):
        return Candidate(bytes(told["bytes"]), logprob)
    text = str(told["token"])
    # A part of a character has no text of its own; vLLM tells none at all.
    return Candidate(text.encode() if text and "\ufffd" not in text else None, logprob)


def chat_messages(prompt: Prompt) -> list[dict[str, str]]:
    if not prompt.messages:
        raise ModelError(
            "a chat API is asked in messages. Use prompt=directive or prompt=grounded."
        )
    return [{"role": m.role, "content": m.content} for m in prompt.messages]


def messages_sha256(prompt: Prompt) -> str:
    """Hex sha256 of a prompt whose token ids are not known."""
    return sha256_text(json.dumps(chat_messages(prompt)))


def _tokens_to_ask(request: ScoreRequest, answers: Sequence[Answer]) -> int:
    """Enough to follow every answer to its end, and no less than is to be generated."""
    lengths = [len(a.tokens) or math.ceil(len(a.text.encode()) / ENOUGH_BYTES) for a in answers]
    return max(1, request.max_new_tokens, min(max(lengths), MOST_TOKENS))


def _cut(found: Generated, tokens: int) -> str:
    """The text of the first tokens, as a model that was asked for so many would give it."""
    parts = [step.chosen.token for step in found.steps[:tokens]]
    if len(found.steps) <= tokens or None in parts:
        return found.text
    return b"".join(part for part in parts if part is not None).decode(errors="ignore")
