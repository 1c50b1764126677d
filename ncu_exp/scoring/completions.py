"""Servers that tell the log-probs of a prompt: exact scores of any text, by OpenAI's completions.

Token ids are sent where the server takes them, and vLLM tells ids back (`prompt_logprobs`); others
tell texts (`echo`). Either way the boundary between prompt and answer is proven for each request:
the tokens that came back are those that were meant, or the request fails with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ncu_exp.errors import EndpointError
from ncu_exp.records import (
    Condition,
    Continuation,
    ContinuationScore,
    Message,
    Prompt,
    Score,
    ScoreRequest,
    sha256_text,
)
from ncu_exp.scoring.encoding import (
    EncodedRequest,
    encode_request,
    first_line,
    hash_ids,
    prompt_text,
)
from ncu_exp.scoring.endpoint import AnswerError, Endpoint
from ncu_exp.scoring.exchange import Ask, Exchange
from ncu_exp.scoring.told import MOST_GENERATED, Text, Told, checked, read_answer

COMPLETIONS = "/completions"

_ANSWER = ((Continuation.true, "Paris, a city on the river"),)
_PROBE = ScoreRequest(
    "preflight",
    Condition.zero,
    Prompt(text="The capital of France is", answer_prefix=" "),
    _ANSWER,
    0,
)
_CHAT_PROBE = ScoreRequest(
    "preflight",
    Condition.zero,
    Prompt(messages=(Message("user", "Name the capital of France."),)),
    _ANSWER,
    0,
)
SAME_WEIGHTS_NATS = 0.05  # two probes of one model differ by less, of two models by more


class CompletionsScorer:
    """Exact scores by `echo` and `logprobs`, or by vLLM's `prompt_logprobs`."""

    estimator = "exact"

    def __init__(self, endpoint: Endpoint, tokenizer: Any) -> None:  # None: not known
        self._endpoint, self._tokenizer = endpoint, tokenizer
        self._takes_ids = tokenizer is not None  # until the server refuses them
        self._adds_bos = False  # the server puts the token before a text that begins texts
        self._needs_bos = False  # and tells the right log-probs of no other text

    def preflight(self) -> str:
        """Find out how the server is asked, and that what it tells are log-probs."""
        try:
            told = self._probe()
        except AnswerError as error:
            raise EndpointError(
                f"{self._endpoint.config.label}: {self._endpoint.url} does not tell the log-probs "
                f"of a prompt: {error}. vLLM and SGLang do, and llama-cpp-python's server with "
                "--logits_all true; a chat API is asked with model.engine=openai_chat."
            ) from None
        logprobs = [t.logprob for t in told if t.logprob is not None]
        if not any(logprobs):
            raise EndpointError(
                f"{self._endpoint.config.label}: {self._endpoint.url} tells zeros for log-probs: "
                "it does not compute those of a prompt."
            )
        self._recognise(logprobs)
        return ", ".join(
            (
                "log-probs of prompts",
                "by token ids" if self._takes_ids else "by text",
                "tokens told back as text" if told[-1].text else "ids told back",
                "tokenizer known" if self._tokenizer else "tokenizer not known",
            )
        )

    def generation(self, request: ScoreRequest) -> Ask:
        return self._generation(request, *self._prompt(request, self._encode(request)))

    def score(self, request: ScoreRequest, exchange: Exchange) -> Score:
        encoded = self._encode(request)
        prompt, ids = self._prompt(request, encoded)
        if self._needs_bos and ids[:1] != (self._tokenizer.bos_token_id,):
            raise AnswerError(
                "misplaced_logprobs: this server tells the right log-probs only of a text that "
                f"begins with {self._tokenizer.bos_token!r}, as its chat template does. Use "
                "prompt=directive"
            )
        scores = []
        for place, (kind, answer) in enumerate(request.continuations):
            sent = _text(request, place, prompt, encoded)
            told = exchange.ask(self._ask(sent), partial(self._parse, sent=sent))
            scores.append(_score(kind, answer, sent, told))
        greedy = ""
        if request.max_new_tokens:
            greedy = exchange.ask(self._generation(request, prompt, ids), generated_text)
        return Score(
            item_id=request.item_id,
            condition=request.condition,
            continuations=tuple(scores),
            greedy_text=first_line(greedy),
            prompt_tokens=len(ids),
            prompt_sha256=hash_ids(ids) if ids else sha256_text(prompt),
            estimator=self.estimator,
        )

    def _encode(self, request: ScoreRequest) -> EncodedRequest | None:
        return encode_request(self._tokenizer, request) if self._tokenizer is not None else None

    def _prompt(
        self, request: ScoreRequest, encoded: EncodedRequest | None
    ) -> tuple[str, tuple[int, ...]]:
        """The prompt as text, and as ids where the tokenizer is known."""
        if encoded is None:
            if request.prompt.messages:
                raise EndpointError(
                    f"{self._endpoint.config.label}: the served model's chat template is not "
                    "known. Name its tokenizer: model.tokenizer=<hub id or directory>, or use "
                    "prompt=plain."
                )
            return request.prompt.text, ()
        return prompt_text(self._tokenizer, request.prompt)[0], encoded.prompt_ids

    def _generation(self, request: ScoreRequest, prompt: str, ids: Sequence[int]) -> Ask:
        body = {"prompt": self._sendable(prompt, ids), "temperature": 0}
        return Ask(COMPLETIONS, {**body, "max_tokens": max(1, request.max_new_tokens)})

    def _sendable(self, text: str, ids: Sequence[int]) -> list[int] | str:
        if self._takes_ids:
            return list(ids)
        bos = getattr(self._tokenizer, "bos_token", None)
        return text.removeprefix(bos) if bos and self._adds_bos else text

    def _ask(self, text: Text) -> Ask:
        body = {
            "prompt": self._sendable(text.text, text.ids),
            "max_tokens": 1,  # none is "without limit" for one server
            "temperature": 0,
            "echo": True,
            "logprobs": 1,
        }
        if self._takes_ids:
            body["prompt_logprobs"] = 1  # vLLM's own, with ids; others do not know the field
        return Ask(COMPLETIONS, body)

    def _parse(self, answer: Mapping[str, Any], sent: Text) -> list[Told]:
        """The answer's tokens in what was sent; AnswerError unless they are what was meant."""
        return checked(read_answer(answer, sent, tokenizer=self._tokenizer).answer)

    def _probe(self) -> list[Told]:
        """The answer's tokens of a tiny request; by ids first, if there are any."""
        has_template = getattr(self._tokenizer, "chat_template", None)
        sent = self._probing(_CHAT_PROBE if has_template else _PROBE)
        if self._takes_ids:
            try:
                return self._ask_probe(sent)
            except AnswerError:
                self._takes_ids = False
        bos = getattr(self._tokenizer, "bos_token", None)
        try:
            found = self._ask_probe(sent)
        except AnswerError:
            if not bos or not sent.text.startswith(bos):
                raise
            self._adds_bos = True
            found = self._ask_probe(sent)
        if has_template and bos:
            try:
                self._ask_probe(self._probing(_PROBE))
            except AnswerError:
                self._needs_bos = True
        return found

    def _probing(self, request: ScoreRequest) -> Text:
        encoded = self._encode(request)
        return _text(request, 0, self._prompt(request, encoded)[0], encoded)

    def _ask_probe(self, sent: Text) -> list[Told]:
        """The answer's tokens of a probe, which generates a few more.

        Greedy ones are the likeliest of their places: by that a server shows that log-probs and
        tokens belong together, unless it tells ids.
        """
        body = {**self._ask(sent).body, "max_tokens": MOST_GENERATED}
        answer = self._endpoint.try_once(COMPLETIONS, body)
        told = read_answer(answer, sent, tokenizer=self._tokenizer)
        found = checked(told.answer)
        if found[-1].text and not told.generated:
            raise AnswerError("misplaced_logprobs: no generated token was told")
        return found

    def _recognise(self, logprobs: Sequence[float]) -> None:
        """Tell apart the weights that a server may run under one name, one after the other.

        Their scores of the probe are numbered in the store: another model, or another precision,
        is another number, and is not served what was stored for the first.
        """
        endpoint, asked = self._endpoint, {"probe": len(logprobs)}
        known = endpoint.recall("identity", asked, kind="identity") or []
        equal = (number for number, values in enumerate(known) if _are_near(values, logprobs))
        number = next(equal, len(known))
        if number == len(known):
            endpoint.keep("identity", asked, [*known, list(logprobs)], kind="identity")
        endpoint.generation = number


def _text(request: ScoreRequest, place: int, prompt: str, encoded: EncodedRequest | None) -> Text:
    """What is sent to score a continuation: prompt and answer as one."""
    whole = prompt + request.prompt.answer_prefix + request.continuations[place][1]
    if encoded is None:
        return Text(whole, (), answer_from=len(prompt))
    ids, answer = encoded.prompt_ids, encoded.continuations[place]
    return Text(whole, (*ids, *answer.ids), len(ids), merged=answer.boundary_merged)


def _are_near(ones: Sequence[float], others: Sequence[float]) -> bool:
    return len(ones) == len(others) and all(
        abs(one - other) <= SAME_WEIGHTS_NATS for one, other in zip(ones, others, strict=True)
    )


def generated_text(answer: Mapping[str, Any]) -> str:
    """The text of a completion."""
    try:
        return str(answer["choices"][0]["text"] or "")
    except (KeyError, IndexError, TypeError) as error:
        raise AnswerError(f"malformed_answer: {type(error).__name__} {error}") from None


def _score(kind: Continuation, answer: str, sent: Text, told: Sequence[Told]) -> ContinuationScore:
    return ContinuationScore(
        continuation=kind,
        text=answer,
        token_ids=sent.ids[sent.answer_from :] if sent.ids else (),
        token_logprobs=tuple(min(0.0, t.logprob) for t in told if t.logprob is not None),
        boundary_merged=sent.merged,
        is_greedy=all(t.is_greedy for t in told),
    )
