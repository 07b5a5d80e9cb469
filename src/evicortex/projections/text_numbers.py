"""A few numbers that a pure function finds in a text, in memory, for the rows that are asked for.

A projection without a table: nothing is read before it is needed, and each text only once while
its namespace stays in memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence

import apsw
import numpy as np
import numpy.typing as npt

from evicortex.projections.cache import NamespaceCache
from evicortex.projections.resident import NamespaceRows

Float32 = npt.NDArray[np.float32]


class _Loaded:
    def __init__(self, generation: int, width: int) -> None:
        self.generation = generation
        self.lock = threading.Lock()
        self.known = np.zeros(0, dtype=np.bool_)
        self.values: Float32 = np.zeros((0, width), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.known)

    def grow(self, count: int) -> None:
        """Have room for ``count`` rows at least."""
        if count > len(self.known):
            more = max(count, 2 * len(self.known)) - len(self.known)
            self.known = np.pad(self.known, (0, more))
            self.values = np.pad(self.values, ((0, more), (0, 0)))


class TextNumbers:
    """``width`` numbers of every text, of all namespaces of one open ledger; safe to share.

    ``derive`` depends on the text alone. Up to ``max_rows`` rows stay in memory.
    """

    def __init__(
        self, derive: Callable[[str], Sequence[float]], width: int, max_rows: int = 1_000_000
    ) -> None:
        self._derive = derive
        self._width = width
        self._cache = NamespaceCache[_Loaded](max_rows)

    def of(
        self, connection: apsw.Connection, rows: NamespaceRows, wanted: npt.NDArray[np.intp]
    ) -> Float32:
        """Return the numbers of the rows with these indices: shape (len(wanted), width)."""
        loaded = self._cache.get(
            connection,
            rows.namespace_id,
            rows.generation,
            lambda: _Loaded(rows.generation, self._width),
        )
        with loaded.lock:
            loaded.grow(len(rows))
            self._read(connection, rows, loaded, wanted[~loaded.known[wanted]])
            found = loaded.values[wanted]
        self._cache.trim(rows.namespace_id)
        return found

    def _read(
        self,
        connection: apsw.Connection,
        rows: NamespaceRows,
        loaded: _Loaded,
        missing: npt.NDArray[np.intp],
    ) -> None:
        if not len(missing):
            return
        texts = dict(
            connection.execute(
                "SELECT row_id, content FROM evidence "
                "WHERE row_id IN (SELECT value FROM json_each(?))",
                (json.dumps(rows.row_ids[missing].tolist()),),
            )
        )
        for row in missing.tolist():
            loaded.values[row] = self._derive(texts[int(rows.row_ids[row])])
            loaded.known[row] = True

    def close(self) -> None:
        """Forget everything."""
        self._cache.clear()
