r"""The exact scorer, and a certified int8 scan that returns the same rows in the same order.

Scores are float32 inner products computed by ``numpy.einsum``, whose result for one row does not
depend on the other rows, so that they are equal to the bit however the rows are chunked. Ties are
broken by row, lowest first.

**The bound of the certified scan.** Let :math:`x_i` be the rows, :math:`m` any centre and
:math:`v` the query. Each centred row is quantised with a scale of its own,
:math:`x_i - m = s_i q_i + r_i` with :math:`q_i \in [-127, 127]^d` integer, and the query as
:math:`v = t p + e` likewise. Then

.. math:: \langle v, x_i\rangle = \langle v, m\rangle + s_i t \langle p, q_i\rangle
          + s_i \langle e, q_i\rangle + \langle v, r_i\rangle ,

and by Cauchy-Schwarz the last two terms are at most
:math:`s_i \lVert e\rVert \lVert q_i\rVert + \lVert v\rVert \lVert r_i\rVert`. The float32
score differs from the real inner product by at most
:math:`\gamma_d \lVert x_i\rVert \lVert v\rVert`, :math:`\gamma_d = d u / (1 - d u)`,
:math:`u = 2^{-24}`, in whatever order the sum is taken (Higham, Accuracy and Stability of
Numerical Algorithms, 2002, section 3.1). With :math:`B_i` the sum of these three, the float32
score lies within :math:`B_i` of the integer estimate. Let :math:`L` be the k-th greatest of
``estimate - B``. At least k rows score :math:`L` or more, so a row whose ``estimate + B`` is
below :math:`L` cannot be among the best k, nor tie with them. Every other row is scored in
float32. The result is therefore the exact scorer's, with no training and no recall to report;
unfavourable data only means that more rows are rescored.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evicortex.errors import InputError
from evicortex.protocols import Candidate, Float32Matrix

Float32Vector = npt.NDArray[np.float32]
Float64Vector = npt.NDArray[np.float64]
Int8Matrix = npt.NDArray[np.int8]
Rows = npt.NDArray[np.int64]

_UNIT_ROUNDOFF = 2.0**-24
_FLOAT64_SLACK = 1e-12
_CHUNK = 65_536

Int8Dot = Callable[[Int8Matrix, npt.NDArray[np.int8]], Float64Vector]


def exact_scores(
    matrix: Float32Matrix, query: Float32Vector, rows: Rows | None = None
) -> Float32Vector:
    """Return float32 inner products of ``query`` (d,) with ``matrix`` (n, d), or with ``rows``.

    Raises:
        InputError: another dtype or shape, or a query that is not finite.
    """
    _check(matrix, query)
    if rows is None:
        whole: Float32Vector = np.einsum("ij,j->i", matrix, query)
        return whole
    scores = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        scores[start : start + len(part)] = np.einsum("ij,j->i", matrix[part], query)
    return scores


def best(scores: Float32Vector, rows: Rows, limit: int) -> tuple[Candidate, ...]:
    """Return at most ``limit`` rows, highest score first, ties by row."""
    if limit <= 0 or len(scores) == 0:
        return ()
    if limit < len(scores):
        threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        kept = np.flatnonzero(scores >= threshold)
    else:
        kept = np.arange(len(scores))
    order = kept[np.lexsort((rows[kept], -scores[kept]))][:limit]
    return tuple(Candidate(int(rows[i]), float(scores[i])) for i in order)


def _check(matrix: Float32Matrix, query: Float32Vector) -> None:
    if matrix.dtype != np.float32 or query.dtype != np.float32:
        raise InputError("vectors must be float32")
    if matrix.ndim != 2 or query.shape != (matrix.shape[1],):
        raise InputError(f"a query of shape {query.shape} does not fit rows of {matrix.shape}")
    if not np.isfinite(query).all():
        raise InputError("the query vector holds values that are not finite")


class ExactScan:
    """Scores every allowed row in float32: the oracle, and the fallback."""

    identity = "exact-float32-scan/1"
    exact = True

    def __init__(self, matrix: Float32Matrix) -> None:
        self._matrix = matrix

    def search(
        self, query: Float32Vector, limit: int, rows: Rows | None = None
    ) -> Sequence[Candidate]:
        """Return the best ``limit`` of ``rows`` (ascending; ``None``: all)."""
        allowed = np.arange(len(self._matrix)) if rows is None else rows
        return best(exact_scores(self._matrix, query, rows), allowed, limit)


def int8_dot() -> Int8Dot | None:
    """Return the int8 kernel of ``numkong`` when it is installed, else ``None``."""
    try:
        numkong = cast("Any", importlib.import_module("numkong"))
    except ImportError:
        return None

    def dot(matrix: Int8Matrix, query: npt.NDArray[np.int8]) -> Float64Vector:
        return np.asarray(numkong.cdist(matrix, query[None, :], "dot"), dtype=np.float64).ravel()

    return dot


def numpy_int8_dot(matrix: Int8Matrix, query: npt.NDArray[np.int8]) -> Float64Vector:
    """Return exact integer inner products without a special kernel.

    A float32 sum of products of int8 values is exact while it stays below 2**24, which holds
    for up to 1,040 dimensions; beyond that float64 is used.
    """
    dtype: type[np.float32] | type[np.float64] = (
        np.float32 if matrix.shape[1] * 127 * 127 < 1 << 24 else np.float64
    )
    out = np.empty(len(matrix), dtype=np.float64)
    right = query.astype(dtype)
    for start in range(0, len(matrix), _CHUNK):
        part = matrix[start : start + _CHUNK].astype(dtype)
        out[start : start + len(part)] = np.dot(part, right)
    return out


@dataclass(frozen=True, slots=True)
class ScanReport:
    """How much work one search was: rows allowed, rows rescored in float32."""

    rows: int
    rescored: int


@dataclass(frozen=True, slots=True)
class _Quantised:
    codes: Int8Matrix
    scales: Float64Vector
    code_norms: Float64Vector
    residual_norms: Float64Vector
    row_norms: Float64Vector


def _quantise(matrix: Float32Matrix, centre: Float64Vector) -> _Quantised:
    count = len(matrix)
    found = _Quantised(np.empty(matrix.shape, np.int8), *np.empty((4, count)))
    for start in range(0, count, _CHUNK):
        part = slice(start, start + _CHUNK)
        rows = matrix[part].astype(np.float64)
        centred = rows - centre
        scales = np.abs(centred).max(axis=1, initial=0.0) / 127.0
        scales[scales == 0] = 1.0
        codes = np.clip(np.rint(centred / scales[:, None]), -127, 127)
        found.codes[part] = codes
        found.scales[part] = scales
        found.code_norms[part] = np.linalg.norm(codes, axis=1)
        found.residual_norms[part] = np.linalg.norm(centred - codes * scales[:, None], axis=1)
        found.row_norms[part] = np.linalg.norm(rows, axis=1)
    return found


class CertifiedScan:
    """An int8 scan with a proven bound; returns exactly what :class:`ExactScan` returns.

    Args:
        matrix: float32 rows of shape (n, d), finite; kept by reference, never written.
        dot: the int8 kernel; NumPy's own arithmetic by default when numkong is absent.
    """

    identity = "certified-int8-scan/1"
    exact = True

    def __init__(self, matrix: Float32Matrix, *, dot: Int8Dot | None = None) -> None:
        if matrix.dtype != np.float32 or matrix.ndim != 2:
            raise InputError("a scan needs a float32 matrix of shape (n, d)")
        if not np.isfinite(matrix).all():
            raise InputError("the matrix holds values that are not finite")
        self._matrix = matrix
        self._dot = dot or int8_dot() or numpy_int8_dot
        self._centre: Float64Vector = (
            matrix.mean(axis=0, dtype=np.float64) if len(matrix) else np.zeros(matrix.shape[1])
        )
        self._rows = _quantise(matrix, self._centre)
        self.report = ScanReport(0, 0)

    def _bounds(
        self, query: Float32Vector, rows: Rows | None
    ) -> tuple[Float64Vector, Float64Vector]:
        pick = slice(None) if rows is None else rows
        v = query.astype(np.float64)
        norm = float(np.linalg.norm(v))
        peak = float(np.abs(v).max(initial=0.0))
        step = peak / 127.0 if peak > 0 else 1.0
        p = np.clip(np.rint(v / step), -127, 127)
        error = float(np.linalg.norm(v - p * step))
        scales = self._rows.scales[pick]
        dots = self._dot(self._rows.codes[pick], p.astype(np.int8))
        estimate = float(v @ self._centre) + scales * step * dots
        gamma = len(v) * _UNIT_ROUNDOFF / (1 - len(v) * _UNIT_ROUNDOFF)
        bound = (
            scales * error * self._rows.code_norms[pick]
            + norm * self._rows.residual_norms[pick]
            + (gamma + _FLOAT64_SLACK) * norm * self._rows.row_norms[pick]
        )
        return estimate, bound * (1 + _FLOAT64_SLACK) + _FLOAT64_SLACK * norm

    def search(
        self, query: Float32Vector, limit: int, rows: Rows | None = None
    ) -> Sequence[Candidate]:
        """Return the best ``limit`` of ``rows`` (ascending; ``None``: all); see ``report``."""
        _check(self._matrix, query)
        count = len(self._matrix) if rows is None else len(rows)
        if limit <= 0 or count == 0:
            self.report = ScanReport(count, 0)
            return ()
        allowed = np.arange(len(self._matrix)) if rows is None else rows
        if limit < count:
            estimate, bound = self._bounds(query, rows)
            lower = estimate - bound
            floor = np.partition(lower, count - limit)[count - limit]
            allowed = allowed[estimate + bound >= floor]
        self.report = ScanReport(count, len(allowed))
        return best(exact_scores(self._matrix, query, allowed), allowed, limit)
