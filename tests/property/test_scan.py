"""The certified scan against the float32 oracle: identical rows, order and scores."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicortex.errors import InputError
from evicortex.projections.scan import (
    CertifiedScan,
    ExactScan,
    best,
    exact_scores,
    int8_dot,
    numpy_int8_dot,
)

D = 48


def unit(matrix: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / np.where(norms > 0, norms, 1)).astype(np.float32)


def uniform(random: np.random.Generator, n: int) -> np.ndarray:
    return unit(random.normal(size=(n, D)))


def clustered(random: np.random.Generator, n: int) -> np.ndarray:
    centres = random.normal(size=(max(1, n // 40), D))
    return unit(centres[random.integers(0, len(centres), n)] + 0.02 * random.normal(size=(n, D)))


def anisotropic(random: np.random.Generator, n: int) -> np.ndarray:
    return unit(random.normal(size=(n, D)) * np.geomspace(1, 1e-4, D) + 3)


def duplicated(random: np.random.Generator, n: int) -> np.ndarray:
    few = uniform(random, max(1, n // 10))
    return few[random.integers(0, len(few), n)]


def constant(random: np.random.Generator, n: int) -> np.ndarray:
    return np.full((n, D), 0.125, dtype=np.float32)


def zeros(random: np.random.Generator, n: int) -> np.ndarray:
    return np.zeros((n, D), dtype=np.float32)


def adversarial(random: np.random.Generator, n: int) -> np.ndarray:
    """One huge channel swallows the int8 range; the rest decides the ranking."""
    matrix = random.normal(size=(n, D)).astype(np.float32) * np.float32(1e-3)
    matrix[:, 0] = random.choice(np.array([1e4, -1e4], dtype=np.float32), n)
    return matrix


def neighbours(random: np.random.Generator, n: int) -> np.ndarray:
    """Rows one float32 step apart: order depends on the last bit of the score."""
    base = uniform(random, 1)[0]
    matrix = np.repeat(base[None, :], n, axis=0)
    for row in range(n):
        channel = row % D
        matrix[row, channel] = np.nextafter(matrix[row, channel], np.float32(2))
    return matrix


MAKERS = [uniform, clustered, anisotropic, duplicated, constant, zeros, adversarial, neighbours]
DOTS = [pytest.param(numpy_int8_dot, id="numpy")]
if (kernel := int8_dot()) is not None:
    DOTS.append(pytest.param(kernel, id="numkong"))


@pytest.mark.parametrize("dot", DOTS)
@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 300),
    limit=st.integers(0, 60),
    subset=st.booleans(),
    near=st.booleans(),
)
def test_the_certified_scan_is_the_exact_scan(
    make: Callable[[np.random.Generator, int], np.ndarray],
    dot: Callable[..., np.ndarray],
    seed: int,
    n: int,
    limit: int,
    subset: bool,
    near: bool,
) -> None:
    random = np.random.default_rng(seed)
    matrix = make(random, n)
    query = matrix[seed % n].copy() if near and n else uniform(random, 1)[0]
    rows = np.flatnonzero(random.random(n) < 0.5) if subset else None
    scan = CertifiedScan(matrix, dot=dot)
    expected = ExactScan(matrix).search(query, limit, rows)
    assert tuple(scan.search(query, limit, rows)) == tuple(expected)
    assert scan.report.rescored <= scan.report.rows


def test_few_rows_are_rescored_on_ordinary_data() -> None:
    random = np.random.default_rng(0)
    matrix = clustered(random, 4000)
    scan = CertifiedScan(matrix)
    scan.search(matrix[7].copy(), 10)
    assert scan.report.rows == 4000
    assert 10 <= scan.report.rescored < 1000


def test_scores_do_not_depend_on_chunks_or_neighbours() -> None:
    random = np.random.default_rng(1)
    matrix = uniform(random, 500)
    query = uniform(random, 1)[0]
    whole = exact_scores(matrix, query)
    rows = np.sort(random.choice(500, 137, replace=False))
    assert np.array_equal(exact_scores(matrix, query, rows), whole[rows])
    for row in (0, 3, 499):
        assert exact_scores(matrix, query, np.array([row]))[0] == whole[row]


@pytest.mark.parametrize("dot", DOTS)
@pytest.mark.parametrize("dimensions", [1, 7, 384, 1040, 1041, 2048])
def test_int8_products_are_exact_at_the_extremes(
    dot: Callable[..., np.ndarray], dimensions: int
) -> None:
    random = np.random.default_rng(dimensions)
    matrix = random.choice(np.array([-127, 127], dtype=np.int8), (65, dimensions))
    matrix[0] = 127
    query = np.full(dimensions, 127, dtype=np.int8)
    expected = matrix.astype(np.int64) @ query.astype(np.int64)
    assert dot(matrix, query).tolist() == expected.tolist()


def test_ties_go_to_the_lowest_row() -> None:
    scores = np.array([1, 3, 3, 2, 3], dtype=np.float32)
    rows = np.array([10, 40, 20, 30, 50])
    assert [c.row for c in best(scores, rows, 2)] == [20, 40]
    assert [c.row for c in best(scores, rows, 9)] == [20, 40, 50, 30, 10]
    assert best(scores, rows, 0) == ()


def test_what_cannot_be_scored_is_refused() -> None:
    good = np.zeros((2, 3), dtype=np.float32)
    with pytest.raises(InputError, match="float32"):
        exact_scores(good.astype(np.float64), good[0])
    with pytest.raises(InputError, match="does not fit"):
        exact_scores(good, np.zeros(4, dtype=np.float32))
    with pytest.raises(InputError, match="not finite"):
        exact_scores(good, np.array([0, np.nan, 0], dtype=np.float32))
    with pytest.raises(InputError, match="float32 matrix"):
        CertifiedScan(good.astype(np.float64))
    with pytest.raises(InputError, match="not finite"):
        CertifiedScan(np.full((1, 3), np.inf, dtype=np.float32))
