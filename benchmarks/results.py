"""Records: one line a question, system and budget. Tables are derived from these alone.

A record holds ids, digests, counts, ranks, times and values; never a text of a data set, whose
licences forbid it. ``status`` is ``ok`` or ``failed``: what fails scores zero and stays.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.metrics.retrieval import (
    all_evidence,
    any_evidence,
    ndcg_at,
    recall_at,
    reciprocal_rank,
)

RECORDS = "records.jsonl"
INGEST = "ingest.jsonl"
MANIFEST = "manifest.json"

Key = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class Record:
    """One question answered by one system within one budget. Times are CPU milliseconds."""

    suite: str
    conversation: str
    query: str
    system: str
    budget: int
    category: str
    answerable: bool
    counted: bool
    status: str
    error: str | None
    pack_sha256: str
    tokens: int
    items: int
    gold: int
    gold_ranks: tuple[int | None, ...]
    refused: bool
    probability: float | None
    values: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    cpu_ms: float = 0.0
    embed_cpu_ms: float = 0.0
    """The encoder's share of ``cpu_ms``."""
    groups: tuple[str, ...] = ()
    """Denominators that the question belongs to, such as ``released``."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """What a calibration of refusal may be fitted on; see ``systems.base.Packed``."""

    @property
    def key(self) -> Key:
        """What makes the record unique within a run."""
        return self.suite, self.conversation, self.query, self.system, self.budget


@dataclass(frozen=True, slots=True)
class Ingest:
    """What it cost one system to take in one group of conversations."""

    suite: str
    group: str
    system: str
    turns: int
    cpu_s: float
    embedded: int
    peak_rss_mib: float
    embed_cpu_s: float = 0.0
    """The encoder's share of ``cpu_s``."""


class RecordFile:
    """An append-only file of JSON lines; a line cut off by a kill is dropped on opening."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        _drop_partial_line(path)
        self._file = path.open("a", encoding="utf-8")

    def append(self, rows: Iterable[Record | Ingest]) -> None:
        """Write rows durably: they are on the disk when this returns."""
        lines = [json.dumps(asdict(row), ensure_ascii=True, sort_keys=True) for row in rows]
        self._file.write("".join(f"{line}\n" for line in lines))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _drop_partial_line(path: Path) -> None:
    if not path.is_file():
        return
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end != len(content):
        with path.open("r+b") as file:
            file.truncate(end)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the whole lines of a file, or of its gzipped copy."""
    packed = path.with_name(f"{path.name}.gz")
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.endswith("\n"))
    elif packed.is_file():
        with gzip.open(packed, "rt", encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


def read_records(folder: Path) -> list[Record]:
    """Return the records of a run, in the order of writing; each key once, the last one wins."""
    found: dict[Key, Record] = {}
    for row in _rows(folder / RECORDS):
        row["gold_ranks"] = tuple(row["gold_ranks"])
        row["groups"] = tuple(row["groups"])
        record = Record(**row)
        found[record.key] = record
    return list(found.values())


def read_ingests(folder: Path) -> list[Ingest]:
    """Return what ingestion cost, one a group and system; the last one wins."""
    found = {}
    for row in _rows(folder / INGEST):
        ingest = Ingest(**row)
        found[ingest.suite, ingest.group, ingest.system] = ingest
    return list(found.values())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def value(record: Record, measure: str) -> float:
    """Return one measure of one question: stored, or derived from the ranks of its gold.

    Derived: ``all`` and ``any`` gold packed, ``mrr``, ``recall@k``, ``ndcg@k`` (over the packed
    order), ``refused``, ``answered``. A question that failed has zero of every measure.
    """
    if record.status != "ok":
        return 0.0
    if measure in record.values:
        return record.values[measure]
    if measure in ("refused", "answered"):
        return float(record.refused == (measure == "refused"))
    gold = [f"gold {place}" for place in range(record.gold)]
    ranking = [""] * record.items
    for name, rank in zip(gold, record.gold_ranks, strict=True):
        if rank is not None:
            ranking[rank - 1] = name
    if measure in _WHOLE:
        return _WHOLE[measure](gold, ranking)
    kind, _, cutoff = measure.partition("@")
    if kind not in _AT:
        return 0.0
    return _AT[kind](gold, ranking, int(cutoff))


_WHOLE = {"all": all_evidence, "any": any_evidence, "mrr": reciprocal_rank}
_AT = {"recall": recall_at, "ndcg": ndcg_at}


def publish(folder: Path, target: Path) -> None:
    """Copy a run to where it is committed: records gzipped, byte for byte the same each time."""
    target.mkdir(parents=True, exist_ok=True)
    for name in (RECORDS, INGEST):
        content = (folder / name).read_bytes()
        (target / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
    (target / MANIFEST).write_bytes((folder / MANIFEST).read_bytes())


@dataclass(frozen=True, slots=True)
class Slice:
    """The records of one system, suite and budget, in a fixed order of questions."""

    records: tuple[Record, ...]

    def values(self, measure: str) -> list[float]:
        """Return one value a question; a failed one is zero."""
        return [value(record, measure) for record in self.records]

    def clusters(self) -> list[str]:
        """Return the conversation of each question."""
        return [record.conversation for record in self.records]

    def queries(self) -> list[str]:
        """Return the id of each question."""
        return [record.query for record in self.records]


def select(
    records: Sequence[Record],
    *,
    suite: str,
    system: str,
    budget: int,
    counted: bool = True,
    category: str | None = None,
    group: str | None = None,
) -> Slice:
    """Return the records that match, sorted by question."""
    chosen = [
        r
        for r in records
        if (r.suite, r.system, r.budget) == (suite, system, budget)
        and r.counted == counted
        and (category is None or r.category == category)
        and (group is None or group in r.groups)
    ]
    return Slice(tuple(sorted(chosen, key=lambda r: (r.conversation, r.query))))
