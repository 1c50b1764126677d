"""The tree holds every sequence, shares every prefix, and knows every row's ancestors."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ncu_exp.scoring.attention import Piece, Plan, visible_pairs
from ncu_exp.scoring.tree import build_tree, count_rows, shared_length

sequences = st.lists(st.lists(st.integers(0, 2), max_size=8).map(tuple), min_size=1, max_size=8)


def test_by_hand() -> None:
    tree = build_tree([(1, 2, 3, 4), (1, 2, 5), (1, 2, 3, 4), (9,)])
    assert tree.tokens == (1, 2, 3, 4, 5, 9)
    assert tree.depths == (0, 1, 2, 3, 2, 0)
    assert [(s.start, s.end, s.parent) for s in tree.segments] == [
        (0, 2, -1),
        (2, 4, 0),
        (4, 5, 0),
        (5, 6, -1),
    ]
    assert tree.paths == ((0, 1, 2, 3), (0, 1, 4), (0, 1, 2, 3), (5,))
    assert tree.ancestors(tree.segments[2]) == [(0, 2)]


def test_touching_ancestors_are_joined() -> None:
    tree = build_tree([(1, 2, 3, 4), (1, 2, 3, 5), (1, 6)])
    (last,) = [s for s in tree.segments if tree.tokens[s.start] == 5]
    assert tree.ancestors(last) == [(0, 3)]


@given(sequences)
def test_every_path_spells_its_sequence(given_sequences: list[tuple[int, ...]]) -> None:
    tree = build_tree(given_sequences)
    for sequence, path in zip(given_sequences, tree.paths, strict=True):
        assert tuple(tree.tokens[r] for r in path) == sequence
        assert tuple(tree.depths[r] for r in path) == tuple(range(len(sequence)))


@given(sequences)
def test_each_distinct_prefix_is_one_row(given_sequences: list[tuple[int, ...]]) -> None:
    prefixes = {s[: n + 1] for s in given_sequences for n in range(len(s))}
    assert len(build_tree(given_sequences).tokens) == len(prefixes)
    assert count_rows(given_sequences) == len(prefixes)


@given(sequences)
def test_segments_and_their_ancestors_are_the_paths(
    given_sequences: list[tuple[int, ...]],
) -> None:
    tree = build_tree(given_sequences)
    covered = [r for s in tree.segments for r in range(s.start, s.end)]
    assert covered == list(range(len(tree.tokens)))
    for segment in tree.segments:
        above = [r for start, end in tree.ancestors(segment) for r in range(start, end)]
        whole = (*above, *range(segment.start, segment.end))
        assert any(path[: len(whole)] == whole for path in tree.paths)


def test_shared_length() -> None:
    assert shared_length((1, 2), (1, 2, 3)) == 2
    assert shared_length((), (1,)) == 0
    assert shared_length((1, 5), (1, 6)) == 1


@settings(deadline=None)  # the first one imports torch
@given(st.data())
def test_the_plan_of_asked_rows_sees_what_those_rows_see(data: st.DataObject) -> None:
    sequences = data.draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1))
    tree = build_tree([tuple(sequence) for sequence in sequences])
    pieces = tuple(Piece(s.start, s.end, tuple(tree.ancestors(s))) for s in tree.segments)
    rows = len(tree.tokens)
    asked = sorted(data.draw(st.sets(st.integers(0, rows - 1))))
    plan = Plan(0, pieces, tuple(asked)).of_asked()
    found = [row for piece in plan.pieces for row in range(piece.start, piece.end)]
    assert found == asked
    whole = visible_pairs(Plan(0, pieces), rows, rows)
    for piece in plan.pieces:
        for row in range(piece.start, piece.end):
            seen = {
                r
                for start, end in (*piece.above, (piece.start, row + 1))
                for r in range(start, end)
            }
            assert seen == set(whole[row].nonzero()[:, 0].tolist())
