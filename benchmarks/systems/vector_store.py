"""Vectors kept on disk between runs, so that no text is encoded twice.

A row is found by the SHA-256 of the encoder's identity, the role and the text; no text is
written. Each row remembers the CPU seconds that it once took, so that a system which gets it
from here is still charged for it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Item = tuple[str, str]
"""What a vector is for: a role (or which spans), and the text."""

_AT_ONCE = 500
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors"
    " (key BLOB PRIMARY KEY, vector BLOB NOT NULL, cpu_s REAL NOT NULL) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """One vector, or several end to end, float32, and the CPU seconds that made them."""

    vector: npt.NDArray[np.float32]
    cpu_s: float


class VectorStore:
    """One file for any number of encoders; several processes may use it at a time.

    So may threads, one after the other: a cortex calls its encoder on threads of its own.
    """

    def __init__(self, path: Path, identity: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._identity = identity
        self._file = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=NORMAL")
        self._file.execute(_SCHEMA)

    def get(self, items: Sequence[Item]) -> dict[Item, Kept]:
        """Return what is kept of these items."""
        by_key = {self._key(item): item for item in items}
        keys = list(by_key)
        found: dict[Item, Kept] = {}
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._file.execute(
                f"SELECT key, vector, cpu_s FROM vectors WHERE key IN ({marks})", some
            )
            for key, vector, cpu_s in rows:
                found[by_key[key]] = Kept(np.frombuffer(vector, dtype="<f4"), cpu_s)
        return found

    def put(self, rows: Mapping[Item, Kept]) -> None:
        """Keep vectors."""
        values = [
            (self._key(item), kept.vector.astype("<f4").tobytes(), kept.cpu_s)
            for item, kept in rows.items()
        ]
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", values)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _key(self, item: Item) -> bytes:
        role, text = item
        content = f"{self._identity}\0{role}\0{text}"
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()
