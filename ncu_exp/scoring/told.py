"""What a server tells of the tokens of a prompt, and the proof that they are those meant. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_exp.scoring.endpoint import AnswerError

MOST_GENERATED = 4  # tokens that a request for log-probs may generate behind its text


@dataclass(frozen=True, slots=True)
class Told:
    """A token as a server tells it: its log-prob (nats), whether it is the likeliest, its text."""

    logprob: float | None
    is_greedy: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The tokens of an answer as they were told, and those that were generated behind it."""

    answer: Sequence[Told]
    generated: Sequence[Told] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt with an answer, to be sent: as ids where the server takes them, else as text.

    `answer_from` is where the answer begins: a token's place where `ids` are known, else a
    character's.
    """

    text: str
    ids: tuple[int, ...]
    answer_from: int
    merged: bool = False


def read_answer(answer: Mapping[str, Any], sent: Text, *, tokenizer: Any) -> Aligned:
    """The answer's tokens, in whichever dialect a server tells them.

    Raises AnswerError where there are none, or where they are not those that were meant.
    """
    try:
        choice = answer["choices"][0]
        own = choice.get("prompt_logprobs") or answer.get("prompt_logprobs")
        if own and sent.ids:
            return Aligned(_by_ids(own, sent))
        texts = _as_texts(choice.get("logprobs") or {})
        if sent.ids:
            found = _meant(texts, sent, tokenizer=tokenizer)
        else:
            found = _behind(texts, choice["logprobs"], sent)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise AnswerError(f"malformed_answer: {type(error).__name__} {error}") from None
    if not all(told.is_greedy for told in found.generated):
        raise AnswerError(
            "misplaced_logprobs: the token that the server generated is not the likeliest of its "
            "place, so its log-probs stand at other places than its tokens"
        )
    return found


def _meant(texts: Sequence[Told], sent: Text, *, tokenizer: Any) -> Aligned:
    """The answer's tokens, after each token of the text was compared with the one meant."""
    # llama.cpp leaves out the token that begins a text, wherever it stands.
    places = list(range(len(sent.ids)))
    without = [place for place in places if sent.ids[place] != tokenizer.bos_token_id]
    if without != places and _first_other(texts, sent, places, tokenizer=tokenizer) is not None:
        places = without
    generated = texts[len(places) :]
    if len(texts) < len(places) or len(generated) > MOST_GENERATED:
        raise AnswerError(
            f"wrong_length: {len(texts)} tokens were told of {len(sent.ids)} that were sent"
        )
    other = _first_other(texts, sent, places, tokenizer=tokenizer)
    if other is not None:
        raise AnswerError(f"boundary_not_proven: {other}")
    answer = [t for p, t in zip(places, texts, strict=False) if p >= sent.answer_from]
    return Aligned(answer, generated)


def _first_other(
    texts: Sequence[Told], sent: Text, places: Sequence[int], *, tokenizer: Any
) -> str | None:
    """The first token that is another than was meant at its place, in words."""
    for place, told in zip(places, texts, strict=False):
        text = tokenizer.decode([sent.ids[place]])
        # A part of a character has no text; a special token is told as none by some.
        if told.text and "\ufffd" not in text and told.text not in (text, f" {text}"):
            return f"token {place} of the server is {told.text!r}, and {text!r} was meant"
    return None


def _by_ids(own: Sequence[Mapping[str, Any] | None], sent: Text) -> list[Told]:
    """vLLM's `prompt_logprobs`: for each place the token that stands there, by id, among others."""
    if len(own) != len(sent.ids):
        raise AnswerError(f"wrong_length: {len(own)} places were told of {len(sent.ids)} tokens")
    found = []
    for place in range(sent.answer_from, len(sent.ids)):
        told = (own[place] or {}).get(str(sent.ids[place]))
        if told is None:
            raise AnswerError(f"boundary_not_proven: another token than was sent at {place}")
        found.append(Told(float(told["logprob"]), told.get("rank") == 1))
    return found


def _as_texts(logprobs: Mapping[str, Any]) -> list[Told]:
    """The older `echo` and `logprobs`: tokens as text, the first of them without a log-prob."""
    if not logprobs.get("tokens"):
        raise AnswerError("no_logprobs: the answer came without log-probs of the prompt")
    texts, values = logprobs["tokens"], logprobs["token_logprobs"]
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    if not any(values):
        raise AnswerError("bad_logprobs: all of them are zero")
    return [
        Told(logprob, _is_likeliest(logprob, top), str(text))
        for text, logprob, top in zip(texts, values, tops, strict=True)
    ]


def _behind(texts: Sequence[Told], logprobs: Mapping[str, Any], sent: Text) -> Aligned:
    """The answer's tokens where no tokenizer is known: by the places of their first characters."""
    first = int(logprobs["text_offset"][0])
    placed = [
        (int(offset) - first, told)
        for offset, told in zip(logprobs["text_offset"], texts, strict=True)
    ]
    inside = [p for p in placed if sent.answer_from <= p[0] < len(sent.text)]
    whole = "".join(told.text for _, told in inside)
    if not inside or inside[0][0] != sent.answer_from or whole != sent.text[sent.answer_from :]:
        raise AnswerError("boundary_not_proven: no token begins where the answer does")
    generated = [told for offset, told in placed if offset >= len(sent.text)]
    return Aligned([told for _, told in inside], generated)


def _is_likeliest(logprob: float | None, top: Mapping[str, float] | None) -> bool:
    return logprob is not None and logprob >= max((top or {}).values(), default=math.inf)


def checked(told: Sequence[Told]) -> list[Told]:
    """The tokens, if each has a log-prob that can be one.

    A server that does not compute them tells zeros, which would be certainty of every token.
    """
    for token in told:
        if token.logprob is None or not math.isfinite(token.logprob) or token.logprob > 1e-3:
            raise AnswerError(f"bad_logprobs: {token.logprob} is no log-probability")
    if not told:
        raise AnswerError("wrong_length: no token of the answer was told")
    return list(told)
