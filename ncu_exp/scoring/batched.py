"""The plain batched path: each prompt runs once, its answers and its generation over its cache.

Prompts of a batch are padded on the right and run without a mask, which keeps the attention on its
causal kernel: a row never sees the padding behind it. The later steps hide the padding by a mask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ncu_exp.records import ContinuationScore
from ncu_exp.scoring.encoding import EncodedRequest
from ncu_exp.scoring.forward import NonFiniteError, cache_argument, log_softmax, pick
from ncu_exp.scoring.reference import as_score

if TYPE_CHECKING:
    import torch

PAD = 0  # any id: padded rows are never read

Outcome = tuple[tuple[ContinuationScore, ...], tuple[int, ...]] | NonFiniteError


def make_batches(
    requests: Sequence[EncodedRequest], *, batch_tokens: int
) -> Iterator[list[EncodedRequest]]:
    """Group requests of like length so that no batch exceeds `batch_tokens` padded tokens.

    A request longer than the budget makes a batch of its own. Longest first, so that memory
    trouble shows at the start and not at the end.
    """
    batch: list[EncodedRequest] = []
    for request in sorted(requests, key=lambda r: (-r.length, r.index)):
        if batch and batch[0].length * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(request)
    if batch:
        yield batch


def score_batch(
    model: Any, batch: Sequence[EncodedRequest], *, stop_ids: Collection[int]
) -> list[Outcome]:
    """Score and generate for every request of the batch, in its order."""
    import torch

    with torch.inference_mode():
        prefix = _Prefix(model, batch)
        scores = _score_continuations(prefix, batch)
        greedy = _generate(prefix, batch, stop_ids=stop_ids)
    return [
        s if isinstance(s, NonFiniteError) else (s, g) for s, g in zip(scores, greedy, strict=True)
    ]


class _Prefix:
    """The key-value cache of a batch of prompts, and the log-probabilities behind each prompt."""

    def __init__(self, model: Any, batch: Sequence[EncodedRequest]) -> None:
        import torch
        from transformers import DynamicCache

        self.model = model
        self.lengths = [len(r.prompt_ids) for r in batch]
        self.width = max(self.lengths)
        self.cache = DynamicCache()
        padded = [[*r.prompt_ids, *[PAD] * (self.width - len(r.prompt_ids))] for r in batch]
        ends = sorted({n - 1 for n in self.lengths})
        logits = model(
            input_ids=torch.tensor(padded, device=model.device),
            use_cache=True,
            logits_to_keep=torch.tensor(ends, device=model.device),
            **{cache_argument(model): self.cache},
        ).logits
        rows = torch.tensor([ends.index(n - 1) for n in self.lengths], device=logits.device)
        picked = logits[torch.arange(len(batch), device=logits.device), rows]
        self.first = log_softmax(picked)  # (batch, vocabulary)

    def extend(self, tokens: Sequence[Sequence[int]], *, done: int = 0) -> torch.Tensor:
        """Run one more piece of equal width per prompt; `done` tokens stand behind it already.

        Returns log-probabilities of shape (batch, width, vocabulary).
        """
        import torch

        device = self.model.device
        width = len(tokens[0])
        lengths = torch.tensor(self.lengths, device=device)[:, None]
        places = torch.arange(self.width + done + width, device=device)[None, :]
        steps = torch.arange(done, done + width, device=device)[None, :]
        logits = self.model(
            input_ids=torch.tensor([list(t) for t in tokens], device=device),
            attention_mask=((places < lengths) | (places >= self.width)).long(),
            position_ids=lengths + steps,
            use_cache=True,
            **{cache_argument(self.model): self.cache},
        ).logits
        return log_softmax(logits)

    def rewind(self, tokens: int) -> None:
        """Forget the last `tokens` tokens of every sequence."""
        self.cache.crop(-tokens)


def _score_continuations(
    prefix: _Prefix, batch: Sequence[EncodedRequest]
) -> list[tuple[ContinuationScore, ...] | NonFiniteError]:
    found: list[list[ContinuationScore]] = [[] for _ in batch]
    failed: dict[int, NonFiniteError] = {}
    for turn in range(max(len(r.continuations) for r in batch)):
        pieces = [r.continuations[turn].ids if turn < len(r.continuations) else () for r in batch]
        # The last token of an answer predicts nothing that is asked for.
        width = max(len(p) for p in pieces) - 1
        rows = None
        if width > 0:
            rows = prefix.extend([[*p[:-1], *[PAD] * width][:width] for p in pieces])
            prefix.rewind(width)
        for place, request in enumerate(batch):
            if turn >= len(request.continuations):
                continue
            try:
                found[place].append(_read(prefix, rows, request, place=place, turn=turn))
            except NonFiniteError as error:
                failed.setdefault(place, error)
    return [failed.get(place, tuple(scores)) for place, scores in enumerate(found)]


def _read(
    prefix: _Prefix,
    rows: torch.Tensor | None,
    request: EncodedRequest,
    *,
    place: int,
    turn: int,
) -> ContinuationScore:
    import torch

    continuation = request.continuations[turn]
    predicted = prefix.first[place : place + 1]
    if rows is not None and len(continuation.ids) > 1:
        predicted = torch.cat([predicted, rows[place, : len(continuation.ids) - 1]])
    logprobs, is_greedy = pick(predicted, continuation.ids)
    return as_score(continuation, logprobs, is_greedy=is_greedy)


def _generate(
    prefix: _Prefix, batch: Sequence[EncodedRequest], *, stop_ids: Collection[int]
) -> list[tuple[int, ...]]:
    found: list[list[int]] = [[] for _ in batch]
    budget = [r.request.max_new_tokens for r in batch]
    open_ = [b > 0 for b in budget]
    rows = prefix.first
    done = 0
    while any(open_):
        tokens = rows.argmax(dim=-1).tolist()
        for place, token in enumerate(tokens):
            if not open_[place]:
                continue
            if token in stop_ids:
                open_[place] = False
                continue
            found[place].append(token)
            open_[place] = len(found[place]) < budget[place]
        if any(open_):
            rows = prefix.extend([[t] for t in tokens], done=done)[:, -1]
            done += 1
    return [tuple(ids) for ids in found]
