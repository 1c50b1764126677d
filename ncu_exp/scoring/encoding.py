"""Prompts and answers as token ids, with the boundary between them proven.

Contract: a word-boundary space belongs to the continuation; the prompt's ids are a prefix of the
ids of prompt + continuation, or the two are encoded apart and marked `boundary_merged`. Nothing
is ever truncated.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ncu_exp.errors import ModelError
from ncu_exp.records import Continuation, Prompt, ScoreRequest


@dataclass(frozen=True, slots=True)
class EncodedContinuation:
    continuation: Continuation
    text: str
    ids: tuple[int, ...]
    boundary_merged: bool


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A `ScoreRequest` in token ids; `index` is its place among the requests of a call."""

    index: int
    request: ScoreRequest
    prompt_ids: tuple[int, ...]
    continuations: tuple[EncodedContinuation, ...]

    @property
    def length(self) -> int:
        """Tokens of the prompt with its longest continuation or generation."""
        longest = max((len(c.ids) for c in self.continuations), default=0)
        return len(self.prompt_ids) + max(longest, self.request.max_new_tokens)

    @property
    def prompt_sha256(self) -> str:
        return hash_ids(self.prompt_ids)


def encode_request(tokenizer: Any, request: ScoreRequest, *, index: int = 0) -> EncodedRequest:
    """Encode a request with a Hugging Face tokenizer.

    Raises ModelError for chat messages and a tokenizer without a chat template, and for a prompt
    or an answer of no tokens.
    """
    text, special = prompt_text(tokenizer, request.prompt)
    prompt_ids = _ids(tokenizer, text, special=special)
    if not prompt_ids:
        raise ModelError(f"item {request.item_id}: the prompt has no tokens")
    continuations = tuple(
        _encode_continuation(
            tokenizer, text, prompt_ids, kind, request.prompt.answer_prefix + answer, special
        )
        for kind, answer in request.continuations
    )
    return EncodedRequest(
        index=index, request=request, prompt_ids=prompt_ids, continuations=continuations
    )


def prompt_text(tokenizer: Any, prompt: Prompt) -> tuple[str, bool]:
    """The prompt as one text, and whether the tokenizer is to add its special tokens.

    A chat template writes its own special tokens, so a second BOS must not be added.
    """
    if not prompt.messages:
        return prompt.text, True
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError(
            "this tokenizer has no chat template, so the model cannot be asked in messages. "
            "Use prompt=plain (a base model), or name an instruct model."
        )
    messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return str(text), False


def _encode_continuation(
    tokenizer: Any,
    text: str,
    prompt_ids: tuple[int, ...],
    kind: Continuation,
    answer: str,
    special: bool,
) -> EncodedContinuation:
    whole = _ids(tokenizer, text + answer, special=special)
    cut = len(prompt_ids)
    merged = whole[:cut] != prompt_ids or len(whole) == cut
    ids = answer_ids(tokenizer, answer) if merged else whole[cut:]
    return EncodedContinuation(kind, answer, ids, boundary_merged=merged)


def answer_ids(tokenizer: Any, answer: str) -> tuple[int, ...]:
    """The tokens of an answer by itself, as it stands where a chat template has ended.

    Raises ModelError for an answer of no tokens.
    """
    ids = _ids(tokenizer, answer, special=False)
    if not ids:
        raise ModelError(f"the answer {answer!r} has no tokens")
    return ids


def _ids(tokenizer: Any, text: str, *, special: bool) -> tuple[int, ...]:
    # verbose=False: no warning about the tokenizer's idea of a maximum length; we check our own.
    encoded = tokenizer(text, add_special_tokens=special, truncation=False, verbose=False)
    ids = tuple(int(i) for i in encoded["input_ids"])
    eos = getattr(tokenizer, "eos_token_id", None)
    if special and len(ids) > 1 and ids[-1] == eos and not text.endswith(tokenizer.eos_token):
        return ids[:-1]  # a tokenizer that ends every text: the answer has to follow, not the end
    return ids


def hash_ids(ids: Sequence[int]) -> str:
    """Hex sha256 of token ids, as little-endian 64-bit integers."""
    return hashlib.sha256(struct.pack(f"<{len(ids)}q", *ids)).hexdigest()


def first_line(text: str) -> str:
    """A generated answer ends with its line: models without a chat template do not stop there."""
    return text.strip().partition("\n")[0].strip()
