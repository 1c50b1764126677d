"""Token sequences as one tree, in which every shared prefix stands once. Pure, on ids.

The rows of a tree are in depth-first order: an unbranched run of tokens is a contiguous segment,
and the ancestors of a row are the rows of the segments above it. That is all that attention needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROOT = -1  # the parent of a first token, and of a first segment


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows `start` to `end` (exclusive), each the parent of the next, below segment `parent`."""

    start: int
    end: int
    parent: int


@dataclass(frozen=True, slots=True)
class TokenTree:
    """A forest of tokens.

    `tokens[r]` and `depths[r]` are the token of row r and its place in its sequence. `paths[i]`
    are the rows of the i-th sequence, first token to last; every row is on at least one path.
    """

    tokens: tuple[int, ...]
    depths: tuple[int, ...]
    segments: tuple[Segment, ...]
    paths: tuple[tuple[int, ...], ...]

    def ancestors(self, segment: Segment) -> list[tuple[int, int]]:
        """The stretches of rows above a segment, top down; touching ones are joined."""
        above: list[tuple[int, int]] = []
        parent = segment.parent
        while parent != ROOT:
            found = self.segments[parent]
            above.append((found.start, found.end))
            parent = found.parent
        return list(joined(above[::-1]))


def build_tree(sequences: Sequence[tuple[int, ...]]) -> TokenTree:
    """The tree of the sequences; those that are equal, or prefixes of others, share their rows."""
    tokens: list[int] = []
    depths: list[int] = []
    parents: list[int] = []
    paths: list[tuple[int, ...]] = [()] * len(sequences)
    path: list[int] = []
    previous: tuple[int, ...] = ()
    # In sorted order, what a sequence shares with any earlier one it shares with the last one.
    for index in sorted(range(len(sequences)), key=lambda i: sequences[i]):
        sequence = sequences[index]
        shared = shared_length(previous, sequence)
        del path[shared:]
        for depth in range(shared, len(sequence)):
            parents.append(path[-1] if path else ROOT)
            path.append(len(tokens))
            tokens.append(sequence[depth])
            depths.append(depth)
        paths[index] = tuple(path)
        previous = sequence
    return TokenTree(tuple(tokens), tuple(depths), _segments(parents), tuple(paths))


def count_rows(sequences: Sequence[tuple[int, ...]]) -> int:
    """The rows that the tree of the sequences has."""
    ordered = sorted(sequences)
    return sum(
        len(sequence) - shared_length(previous, sequence)
        for previous, sequence in zip([(), *ordered], ordered, strict=False)
    )


def shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading tokens two sequences have in common."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))


def joined(stretches: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same rows, with stretches that touch made one."""
    found: list[tuple[int, int]] = []
    for start, end in stretches:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return tuple(found)


def stretches(path: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The rows of a path as stretches of consecutive rows."""
    return joined([(row, row + 1) for row in path])


def _segments(parents: Sequence[int]) -> tuple[Segment, ...]:
    children = [0] * len(parents)
    for parent in parents:
        if parent != ROOT:
            children[parent] += 1
    starts = [
        row
        for row, parent in enumerate(parents)
        if parent == ROOT or parent != row - 1 or children[parent] > 1
    ]
    ends = [*starts[1:], len(parents)][: len(starts)]
    segments: list[Segment] = []
    segment_of: list[int] = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        parent = parents[start]
        segments.append(Segment(start, end, ROOT if parent == ROOT else segment_of[parent]))
        segment_of.extend([number] * (end - start))
    return tuple(segments)
