"""The token-tree path: every distinct token of a group of requests is computed once.

One forward pass (or a few, for long texts) runs the tree of all prompts and answers over one
key-value cache; the output head sees only the rows that predict a scored token. Greedy answers
read what the tree already holds while they follow a scored answer, and grow it where they leave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ncu_exp.records import ContinuationScore
from ncu_exp.scoring.attention import Piece, Plan, tree_attention
from ncu_exp.scoring.batched import Outcome
from ncu_exp.scoring.encoding import EncodedRequest
from ncu_exp.scoring.forward import NonFiniteError, cache_argument, log_softmax, pick
from ncu_exp.scoring.fused import fused
from ncu_exp.scoring.reference import as_score
from ncu_exp.scoring.tree import TokenTree, build_tree, count_rows, stretches

if TYPE_CHECKING:
    import torch


def make_groups(
    requests: Sequence[EncodedRequest], *, tree_tokens: int
) -> Iterator[list[EncodedRequest]]:
    """Group requests so that the tree of a group has about `tree_tokens` rows at most.

    The requests of an item stay together, since they share the most; items follow each other in
    the given order. An item larger than the budget makes a group of its own.
    """
    group: list[EncodedRequest] = []
    size = 0
    for item in _by_item(requests):
        rows = count_rows(_sequences(item))
        if group and size + rows > tree_tokens:
            yield group
            group, size = [], 0
        group.extend(item)
        size += rows
    if group:
        yield group


def _by_item(requests: Sequence[EncodedRequest]) -> list[list[EncodedRequest]]:
    items: dict[str, list[EncodedRequest]] = {}
    for request in requests:
        items.setdefault(request.request.item_id, []).append(request)
    return list(items.values())


def _sequences(requests: Sequence[EncodedRequest]) -> list[tuple[int, ...]]:
    """What has to be computed: each prompt, with each answer but for its last token.

    The last token predicts nothing that is asked for. A prompt without answers stands alone.
    """
    return [
        request.prompt_ids + ids[:-1]
        for request in requests
        for ids in ([c.ids for c in request.continuations] or [()])
    ]


def score_group(
    model: Any,
    group: Sequence[EncodedRequest],
    *,
    stop_ids: Collection[int],
    chunk_tokens: int,
) -> list[Outcome]:
    """Score and generate for every request of the group, in its order.

    At most `chunk_tokens` rows go through the model at once, whatever the size of the tree.
    """
    import torch

    with torch.inference_mode(), tree_attention(model), fused(model):
        grown = _GrownTree(model, group, chunk_tokens=chunk_tokens)
        scores = [_scores(grown, request, place=place) for place, request in enumerate(group)]
        greedy = _generate(grown, group, stop_ids=stop_ids)
    return [
        s if isinstance(s, NonFiniteError) else (s, g) for s, g in zip(scores, greedy, strict=True)
    ]


class _GrownTree:
    """A tree in the model's cache, with log-probabilities behind the rows that were asked for."""

    def __init__(self, model: Any, group: Sequence[EncodedRequest], *, chunk_tokens: int) -> None:
        from ncu_exp.scoring.room import roomy_cache

        self.model = model
        tree = build_tree(_sequences(group))
        # The last token of an answer is not computed, and its first ones may stand in the tree.
        steps = sum(max(0, request.request.max_new_tokens - 1) for request in group)
        self.cache = roomy_cache(len(tree.tokens) + steps)
        self.size = 0
        self.paths: list[list[tuple[int, ...]]] = []  # of each request, one per answer
        paths = iter(tree.paths)
        for request in group:
            self.paths.append([next(paths) for _ in request.continuations or (None,)])
        wanted = sorted(
            {
                row
                for request, paths_ in zip(group, self.paths, strict=True)
                for path in paths_
                for row in path[len(request.prompt_ids) - 1 :]
            }
        )
        self._run_tree(tree, wanted, chunk_tokens)

    def _run_tree(self, tree: TokenTree, wanted: list[int], chunk_tokens: int) -> None:
        import torch

        found: list[torch.Tensor] = []
        ancestors = [tuple(tree.ancestors(segment)) for segment in tree.segments]
        for first in range(0, len(tree.tokens), chunk_tokens):
            last = min(first + chunk_tokens, len(tree.tokens))
            pieces = []
            for segment, above in zip(tree.segments, ancestors, strict=True):
                start, end = max(segment.start, first), min(segment.end, last)
                if start < end:
                    earlier = ((segment.start, start),) if start > segment.start else ()
                    pieces.append(Piece(start, end, (*above, *earlier)))
            rows = [row - first for row in wanted if first <= row < last]
            found.append(
                self._forward(
                    tree.tokens[first:last], tree.depths[first:last], tuple(pieces), rows=rows
                )
            )
        self.logprobs = torch.cat(found)  # (wanted, vocabulary)
        self.place = {row: place for place, row in enumerate(wanted)}
        self._best: list[int] = self.logprobs.argmax(dim=-1).tolist()

    def _forward(
        self,
        tokens: Sequence[int],
        depths: Sequence[int],
        pieces: tuple[Piece, ...],
        *,
        rows: Sequence[int],
    ) -> torch.Tensor:
        """Run new rows through the model; log-probabilities behind `rows`, counted from 0."""
        import torch

        device = self.model.device
        logits = self.model(
            input_ids=torch.tensor([list(tokens)], device=device),
            position_ids=torch.tensor([list(depths)], device=device),
            use_cache=True,
            logits_to_keep=torch.tensor(list(rows), dtype=torch.long, device=device),
            tree=Plan(self.size, pieces, asked=tuple(rows)),
            **{cache_argument(self.model): self.cache},
        ).logits
        self.size += len(tokens)
        return log_softmax(logits[0])

    def best(self, row: int) -> int:
        """The likeliest token behind a row that was asked for."""
        return self._best[self.place[row]]

    def grow(
        self,
        tokens: Sequence[int],
        depths: Sequence[int],
        above: Sequence[tuple[tuple[int, int], ...]],
    ) -> list[int]:
        """Add a row per token, each below its own stretches; the likeliest token behind each."""
        pieces = tuple(
            Piece(row, row + 1, ancestors) for row, ancestors in enumerate(above, start=self.size)
        )
        logprobs = self._forward(tokens, depths, pieces, rows=range(len(tokens)))
        return [int(token) for token in logprobs.argmax(dim=-1).tolist()]


def _scores(
    grown: _GrownTree, request: EncodedRequest, *, place: int
) -> tuple[ContinuationScore, ...] | NonFiniteError:
    scores = []
    for continuation, path in zip(request.continuations, grown.paths[place], strict=False):
        rows = [grown.place[row] for row in path[len(request.prompt_ids) - 1 :]]
        try:
            logprobs, is_greedy = pick(grown.logprobs[rows], continuation.ids)
        except NonFiniteError as error:
            return error
        scores.append(as_score(continuation, logprobs, is_greedy=is_greedy))
    return tuple(scores)


# --- greedy answers -----------------------------------------------------------------------------


class _Answer:
    """A greedy answer in the making: its tokens, the rows above its end, and what comes next."""

    def __init__(self, path: Sequence[int], *, upcoming: int, limit: int) -> None:
        self.path = list(path)
        self.upcoming = upcoming
        self.limit = limit
        self.ids: list[int] = []

    def is_open(self, stop_ids: Collection[int]) -> bool:
        return len(self.ids) < self.limit and self.upcoming not in stop_ids

    def go_on(self, row: int, upcoming: int) -> None:
        """Stand on the row of the last token taken."""
        self.path.append(row)
        self.upcoming = upcoming


def _generate(
    grown: _GrownTree, group: Sequence[EncodedRequest], *, stop_ids: Collection[int]
) -> list[tuple[int, ...]]:
    answers = [
        _follow(grown, request, place=place, stop_ids=stop_ids)
        for place, request in enumerate(group)
    ]
    while going := [answer for answer in answers if answer.is_open(stop_ids)]:
        for answer in going:
            answer.ids.append(answer.upcoming)
        # The last token of an answer predicts one that nobody asks for.
        going = [answer for answer in going if len(answer.ids) < answer.limit]
        if going:
            _step(grown, going)
    return [tuple(answer.ids) for answer in answers]


def _step(grown: _GrownTree, going: Sequence[_Answer]) -> None:
    """Compute the last token of every answer, as a new row below the answer's path."""
    first = grown.size
    upcoming = grown.grow(
        [answer.ids[-1] for answer in going],
        [len(answer.path) for answer in going],
        [stretches(answer.path) for answer in going],
    )
    for row, (answer, token) in enumerate(zip(going, upcoming, strict=True), start=first):
        answer.go_on(row, token)


def _follow(
    grown: _GrownTree, request: EncodedRequest, *, place: int, stop_ids: Collection[int]
) -> _Answer:
    """As much of the greedy answer as the scored answers in the tree tell without a step."""
    prompt = grown.paths[place][0][: len(request.prompt_ids)]
    limit = request.request.max_new_tokens
    answer = _Answer(prompt, upcoming=grown.best(prompt[-1]), limit=limit)
    while answer.is_open(stop_ids):
        row = _row_of_upcoming(grown, request, answer, place=place)
        if row is None:
            break
        answer.ids.append(answer.upcoming)
        answer.go_on(row, grown.best(row))
    return answer


def _row_of_upcoming(
    grown: _GrownTree, request: EncodedRequest, answer: _Answer, *, place: int
) -> int | None:
    """The row of a scored answer that begins with this one and its upcoming token, if any."""
    wanted = (*answer.ids, answer.upcoming)
    end = len(request.prompt_ids) + len(wanted)
    for continuation, path in zip(request.continuations, grown.paths[place], strict=False):
        if continuation.ids[: len(wanted)] == wanted and end <= len(path):
            return path[end - 1]
    return None
