"""Parents, sums over the tree and forward/backward links, on made-up columns."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_v2.profiler.store import tree


def parents_of(*rows: tuple[int, int, int]) -> list[int]:
    """Parents of (thread, start, end) given in row order."""
    tid, start, end = (np.array(column) for column in zip(*rows, strict=True))
    return tree.parents(tid, start, end).tolist()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([(0, 0, 100), (0, 10, 40), (0, 20, 30), (0, 50, 100), (1, 20, 30)], [-1, 0, 1, 0, -1], id="nested"),
        pytest.param([(0, 0, 10), (0, 10, 20)], [-1, -1], id="one ends where the next starts"),
        pytest.param([(0, 0, 10), (0, 0, 10), (0, 0, 10)], [-1, 0, 1], id="equal intervals nest"),
        pytest.param([(0, 0, 20), (0, 0, 10)], [-1, 0], id="same start"),
        pytest.param([(0, 0, 20), (0, 10, 20)], [-1, 0], id="same end"),
        pytest.param([(0, 0, 50), (0, 40, 60), (0, 45, 50)], [-1, -1, 1], id="partial overlap: the later is on top"),
        pytest.param([(0, 0, 100), (0, 10, 60), (0, 50, 90), (0, 55, 58)], [-1, 0, 0, 2], id="overlap inside a parent"),
        pytest.param([(0, 0, 10), (0, 5, 5), (0, 5, 5), (0, 6, 8)], [-1, 0, 0, 0], id="no duration encloses nothing"),
        pytest.param([(0, 0, 10), (0, 10, 10)], [-1, -1], id="no duration at the end of another"),
        pytest.param([(0, 5, 9), (0, 5, 5)], [-1, 0], id="no duration at the start of another"),
        pytest.param([(0, 0, 100), (1, 1, 99), (0, 2, 50), (1, 3, 50)], [-1, -1, 0, 1], id="threads do not mix"),
        pytest.param([(0, 5, 6)], [-1], id="one row"),
    ],
)
def test_parents(rows, expected):
    assert parents_of(*rows) == expected


def nested_rows(rng: np.random.Generator, crossing: bool) -> tuple[np.ndarray, np.ndarray]:
    start = rng.integers(0, 60, 40)
    end = start + rng.integers(0, 30, 40)
    if not crossing:
        # Halving an interval again and again never makes two of them overlap partially.
        bounds = [(0, 4096)]
        for _ in range(39):
            low, high = bounds[rng.integers(len(bounds))]
            middle = (low + high) // 2
            bounds.append((low, middle) if rng.random() < 0.5 else (middle, high))
        start, end = np.array(bounds).T
    order = tree.row_order(start, end)
    return start[order], end[order]


@pytest.mark.parametrize("crossing", [False, True])
def test_parents_by_columns_and_by_stack_agree(crossing):
    rng = np.random.default_rng(7)
    for _ in range(200):
        start, end = nested_rows(rng, crossing)
        expected = tree._parents_by_stack(start, end)
        assert tree.parents(np.zeros(len(start), np.int32), start, end).tolist() == expected.tolist()


def test_very_deep_nesting():
    n = 40_000  # deeper than the counting sort's 16 bits
    start = np.arange(n)
    parents = tree.parents(np.zeros(n, np.int32), start, 10 * n - start)
    assert parents.tolist() == list(range(-1, n - 1))


def test_order_is_by_start_then_longest_then_last_recorded():
    start, end = np.array([5, 0, 0, 0, 3]), np.array([6, 9, 20, 9, 4])
    assert tree.row_order(start, end).tolist() == [2, 3, 1, 4, 0]


def test_sums_over_children_and_subtrees():
    parent, values = np.array([-1, 0, 1, 0, -1], np.int32), np.array([1, 10, 100, 1000, 5])
    assert tree.children_sums(parent, values).tolist() == [1010, 100, 0, 0, 0]
    assert tree.subtree_sums(parent, values).tolist() == [1111, 110, 100, 1000, 5]
    assert tree.depths(parent).tolist() == [0, 1, 2, 1, 0]


@pytest.mark.parametrize(
    ("thread", "moment", "expected"),
    [
        (0, -1, -1),
        (0, 0, 0),
        (0, 12, 1),
        (0, 25, 2),
        (0, 35, 1),
        (0, 45, 0),
        (0, 100, 0),
        (0, 101, -1),
        (1, 25, 3),
        (2, 25, -1),
    ],
)
def test_innermost_row_at_a_moment(thread, moment, expected):
    tid, start, end = np.array([0, 0, 0, 1]), np.array([0, 10, 20, 20]), np.array([100, 40, 30, 30])
    parent = tree.parents(tid, start, end)
    innermost = tree.enclosing(tid, start, end, parent, np.array([thread]), np.array([moment]))
    assert innermost.tolist() == [expected]


@pytest.mark.parametrize(
    ("parent", "key", "kept"),
    [
        ([-1, 0], [1, 1], [0]),
        ([-1, 0], [1, 2], [0, 1]),
        ([-1, 0, 1, 2], [1, 1, 1, 2], [0, 3]),
        ([-1, 0, 0], [1, 1, 1], [0, 1, 2]),
        ([-1, 0, 1, 1], [1, 1, 1, 1], [0, 2, 3]),
        ([-1, -1], [1, 1], [0, 1]),
    ],
)
def test_only_children_named_like_their_parent_are_dropped(parent, key, kept):
    assert tree.without_only_namesakes(np.array(parent, np.int32), np.array(key)).tolist() == kept


def test_rows_below_a_dropped_row_belong_to_the_nearest_that_stays():
    parent = np.array([-1, 0, 1, 2, -1], np.int32)
    near = tree.nearest_kept(parent, np.array([0, 3]))
    assert near.tolist() == [0, 0, 0, 1, -1, -1]


def test_nearest_ancestor_of_a_kind():
    parent = np.array([-1, 0, 1, 2, 0], np.int32)
    wanted = np.array([False, True, False, False, False])
    assert tree.nearest_ancestor(parent, wanted).tolist() == [-1, -1, 1, 1, -1]


def test_forward_and_backward_are_linked_by_sequence_number():
    op, node, other = 0, 1, 2
    kind = np.array([op, op, op, other, node, node, node, node], np.int8)
    tid = np.array([0, 0, 1, 0, 0, 0, 0, 0], np.int32)
    seq = np.array([4, 4, 4, 4, 4, 4, -1, 9])
    fwd_tid = np.array([-1, -1, -1, -1, 0, 0, 0, 0], np.int32)
    forward, backward = tree.forward_backward(kind, tid, seq, fwd_tid, op, node)
    # the op that started last made the node; the second node of that number finds it taken
    assert (forward.tolist(), backward.tolist()) == ([1], [4])


def test_no_links_without_backward():
    none = np.empty(0, np.int64)
    forward, backward = tree.forward_backward(none, none, none, none, 0, 1)
    assert len(forward) == len(backward) == 0


@pytest.mark.parametrize(
    "events, ends",
    [
        ("", []),
        ("()", [1, -1]),
        ("(()())", [5, 2, -1, 4, -1, -1]),
        ("((", [-1, -1]),
        (")()", [-1, 2, -1]),
        ("))(()", [-1, -1, -1, 4, -1]),
    ],
)
def test_matching_ends(events, ends):
    assert tree.matching_ends(np.array([event == "(" for event in events], np.bool_)).tolist() == ends


# Rows (start, end, is a step) in order of start, and where they end in the tree.
BESIDE_STEPS = {
    "a step that nothing crosses": ([(0, 10, True), (2, 8, False)], None),
    "no row but steps": ([(0, 10, True), (10, 20, True)], None),
    "a function around all steps": ([(0, 30, False), (2, 10, True), (10, 20, True)], None),
    # optimizer.step(), which calls step() of the profiler before it returns
    "what calls step() belongs to the step": (
        [(0, 10, True), (4, 11, False), (5, 9, False), (10, 20, True)],
        [10, 10, 9, 20],
    ),
    "a range that is open at the end of a step": ([(0, 10, True), (6, 13, False), (10, 20, True)], [10, 10, 20]),
    # train_epoch(), called in a step that began before it, and returning in one that began in it
    "a loop over steps": (
        [(0, 10, True), (1, 35, False), (2, 3, False), (10, 20, True), (20, 30, True), (30, 40, True)],
        [1, 30, 3, 20, 30, 40],
    ),
    "of two loops the outer one decides": (
        [(0, 10, True), (2, 50, False), (4, 40, False), (10, 20, True)],
        [2, 50, 40, 20],
    ),
    "however long it takes to return from what calls step()": (
        [(0, 10, True), (9, 19, False), (10, 20, True), (20, 30, True)],
        [10, 10, 20, 30],
    ),
    "a row before the steps that ends in one": ([(0, 5, False), (3, 10, True)], [3, 10]),
    "equal beginnings: the longer row is outside": ([(0, 12, False), (0, 10, True), (10, 20, True)], [10, 10, 20]),
}


@pytest.mark.parametrize("case", BESIDE_STEPS)
def test_no_row_overlaps_a_step_partially(case):
    rows, expected = BESIDE_STEPS[case]
    start, end, is_step = (np.array(column) for column in zip(*rows, strict=True))
    nested = tree.beside_steps(start, end, is_step.astype(bool))
    assert (None if nested is None else nested.tolist()) == expected
