"""Export and load: a namespace as JSON Lines that round-trips to the same bytes.

Line 1 names the format. Then come evidence, claims (with their retractions) and extractions,
each in the order of recording, one canonical JSON object a line; times are ISO-8601 in UTC.
The last line has the counts and the SHA-256 of all bytes before it. Nothing names the namespace,
so that the same content gives the same file wherever it was loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from evicortex.errors import ConflictError, ImportFormatError, InputError, NotFoundError
from evicortex.ledger import audit, claims, evidence, extractions, keys
from evicortex.ledger.connection import Ledger, NamespaceRow, Transaction
from evicortex.types import Authority, Diagnostic, Evidence, ExportReport, LoadReport
from evicortex.validity import format_utc, to_micros, to_utc

FORMAT = "evicortex-export"
VERSION = 1
EVENT = "load"
"""Audit event of a load that created something; the payload has counts and the file's digest."""

_BATCH = 500
_EVIDENCE_ID = re.compile(r"ev_[0-9a-f]{24}")
_TEXT_FIELDS = ("actor", "role", "session", "source", "external_id")
_EVIDENCE_FIELDS = frozenset(
    {
        "kind",
        "evidence_id",
        "position",
        "content",
        "digest",
        *_TEXT_FIELDS,
        "occurred_at",
        "recorded_at",
        "authority",
        "metadata",
    }
)


def export(ledger: Ledger, namespace: str, path: str | os.PathLike[str]) -> ExportReport:
    """Write one snapshot of a namespace to a file; the file appears whole or not at all.

    The report's digest is the SHA-256 of everything before the last line.

    Raises:
        NotFoundError: the namespace does not exist.
        InputError: the folder of ``path`` does not exist.
    """
    with ledger.read() as tx:
        ns = tx.namespace(namespace)
        if ns is None:
            raise NotFoundError(f"there is no namespace {namespace!r}")
        with _replaced(Path(path)) as stream:
            return _export(tx, ns, _Writer(stream))


def _export(tx: Transaction, ns: NamespaceRow, writer: _Writer) -> ExportReport:
    writer.line({"format": FORMAT, "version": VERSION})
    for _, item in evidence.scan(tx, ns):
        writer.record("evidence", _evidence_record(item))
    for record in claims.export(tx, ns):
        writer.record("claim", record)
    for record in extractions.export(tx, ns):
        writer.record("extraction", record)
    digest, counts = writer.digest.hexdigest(), writer.counts
    writer.line({"kind": "end", **counts, "sha256": digest})
    return ExportReport(
        evidence=counts["evidence"],
        claims=counts["claim"],
        extractions=counts["extraction"],
        digest=digest,
    )


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """Open a new file beside ``path`` that takes its place when the block ends well."""
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


class _Writer:
    """Writes lines, counting records and hashing bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.counts = {"evidence": 0, "claim": 0, "extraction": 0}

    def record(self, kind: str, record: Mapping[str, Any]) -> None:
        self.counts[kind] += 1
        self.line({**record, "kind": kind})

    def line(self, value: Mapping[str, Any]) -> None:
        data = keys.canonical_json(value).encode() + b"\n"
        self.digest.update(data)
        self._stream.write(data)


def _evidence_record(item: Evidence) -> dict[str, Any]:
    return {
        "evidence_id": item.evidence_id,
        "position": item.position,
        "content": item.content,
        "digest": item.digest,
        **{name: getattr(item, name) for name in _TEXT_FIELDS},
        "occurred_at": None if item.occurred_at is None else format_utc(item.occurred_at),
        "recorded_at": format_utc(item.recorded_at),
        "authority": item.authority.value,
        "metadata": item.metadata,
    }


class _Totals(NamedTuple):
    """What the last line of a file promises; ``digest`` was checked."""

    counts: dict[str, int]
    digest: str


def load(ledger: Ledger, namespace: str, path: str | os.PathLike[str]) -> LoadReport:
    """Read an export into a namespace: all of it, or nothing when anything is wrong.

    Evidence keeps its id, its recorded time, and in a namespace that never held any also its
    position, so that ``known_at`` answers survive and the next export is the same file. What is
    there already (same id, or same external id and text) is not written again; claims then
    attach to the stored evidence, and a diagnostic says for how many the id differs.

    Raises:
        ImportFormatError: the file is not an export, is cut off or altered; names the line.
        ConflictError: an id or external id is stored with another text; names the line.
        ReadOnlyError: the ledger is open read-only.
    """
    keys.check_namespace(namespace)
    source = Path(path)
    totals = _check_file(source)
    with ledger.write() as tx, source.open("rb") as stream:
        ns = tx.namespace(namespace, create=True)
        loading = _Loading(tx, ns)
        for number, record in _records(stream):
            loading.take(number, record)
        loading.flush()
        if loading.counts != totals.counts:
            raise ImportFormatError(
                f"{source}: the last line counts {totals.counts}, not {loading.counts}"
            )
        if loading.created:
            payload = {**totals.counts, "created": loading.created, "sha256": totals.digest}
            audit.append(tx, ns, EVENT, payload)
    return LoadReport(
        evidence=totals.counts["evidence"],
        claims=totals.counts["claim"],
        extractions=totals.counts["extraction"],
        created=loading.created,
        diagnostics=loading.diagnostics(),
    )


def _check_file(path: Path) -> _Totals:
    """Check a file's first and last line and its digest before anything is written."""
    if not path.is_file():
        raise ImportFormatError(f"there is no file {path}")
    digest = hashlib.sha256()
    last: tuple[int, bytes] = (0, b"")
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            digest.update(last[1])
            last = (number, line)
            if number == 1:
                _check_header(line)
    number, line = last
    record = _parsed(number, line)
    counts = {name: record.get(name) for name in ("evidence", "claim", "extraction")}
    if record.get("kind") != "end" or set(record) != {"kind", "sha256", *counts}:
        _refuse(number, "the file is cut off: the last line is not its end record")
    if record["sha256"] != digest.hexdigest():
        _refuse(number, "the SHA-256 is not that of the lines before: the file was altered")
    return _Totals(counts, digest.hexdigest())  # type: ignore[arg-type]


def _check_header(line: bytes) -> None:
    header = _parsed(1, line)
    if header.get("format") != FORMAT:
        _refuse(1, f"it does not say that this is an {FORMAT} file")
    if header.get("version") != VERSION or set(header) != {"format", "version"}:
        _refuse(
            1, f"version {header.get('version')!r} is not known here; this program has {VERSION}"
        )


def _records(stream: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of what lies between the first and the last line."""
    stream.readline()
    number, line = 2, stream.readline()
    for following in stream:
        yield number, _parsed(number, line)
        number, line = number + 1, following


def _parsed(number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(f"line {number}: it is not JSON in UTF-8: {error}") from error
    if not isinstance(record, dict):
        _refuse(number, "it is not a JSON object")
    return record


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse(number: int, why: str) -> NoReturn:
    raise ImportFormatError(f"line {number}: {why}")


class _Loading:
    """The state of one load: evidence is written in batches, the rest record by record."""

    def __init__(self, tx: Transaction, ns: NamespaceRow) -> None:
        self._tx = tx
        self._ns = ns
        self._keep_positions = ns.next_position == 1
        self._batch: list[tuple[int, evidence.CheckedDraft, evidence.Restored]] = []
        self._last_position = 0
        self._seen: set[int] = set()
        self._moved: dict[str, int] = {}
        self._claim_ids: dict[str, str] = {}
        self._latest: tuple[str, Evidence] | None = None
        self._kind = "evidence"
        self.counts = {"evidence": 0, "claim": 0, "extraction": 0}
        self.created = 0

    def take(self, number: int, record: dict[str, Any]) -> None:
        """Take one record; evidence comes first, then claims, then extractions."""
        kind = record.pop("kind", None)
        order = list(self.counts)
        if kind not in order or order.index(kind) < order.index(self._kind):
            _refuse(number, f"a record of kind {kind!r} does not belong here")
        if kind != self._kind:
            self.flush()
            self._kind = kind
        self.counts[kind] += 1
        if kind == "evidence":
            draft, kept = self._draft(number, record)
            self._batch.append((number, draft, kept))
            if len(self._batch) >= _BATCH:
                self.flush()
            return
        on = self._evidence(number, record)
        try:
            if kind == "claim":
                claim_id = claims.restore(self._tx, self._ns, record, on)
                self._claim_ids[record["claim_id"]] = claim_id
            else:
                extractions.restore(self._tx, self._ns, record, on, self._claim_ids)
        except InputError as error:
            raise ImportFormatError(f"line {number}: {error}") from error

    def _draft(
        self, number: int, record: Mapping[str, Any]
    ) -> tuple[evidence.CheckedDraft, evidence.Restored]:
        _check_evidence(number, record)
        position = record["position"]
        if position <= self._last_position:
            _refuse(number, f"position {position} does not ascend")
        self._last_position = position
        try:
            occurred_at = to_utc(record["occurred_at"], "occurred_at")
            recorded_at = to_utc(record["recorded_at"], "recorded_at")
        except InputError as error:
            raise ImportFormatError(f"line {number}: {error}") from error
        draft = evidence.CheckedDraft(
            content=record["content"],
            **{name: record[name] for name in _TEXT_FIELDS},
            occurred_at=None if occurred_at is None else to_micros(occurred_at),
            authority=record["authority"],
            metadata=record["metadata"],
        )
        kept = evidence.Restored(
            record["evidence_id"],
            position if self._keep_positions else None,
            to_micros(recorded_at),
        )
        return draft, kept

    def flush(self) -> None:
        """Write the evidence that was taken."""
        batch, self._batch = self._batch, []
        results = evidence.restore(self._tx, self._ns, [item[1:] for item in batch])
        for (number, _, kept), result in zip(batch, results, strict=True):
            if isinstance(result, evidence.Rejected):
                kind = ConflictError if isinstance(result.error, ConflictError) else None
                raise (kind or ImportFormatError)(f"line {number}: {result.error}")
            if result.row_id in self._seen:
                _refuse(number, "the same evidence id or external id comes twice")
            self._seen.add(result.row_id)
            self.created += result.created
            if result.evidence_id != kept.evidence_id:
                self._moved[kept.evidence_id] = result.row_id

    def _evidence(self, number: int, record: Mapping[str, Any]) -> Evidence:
        """Return the evidence that now stands for the one that a record names."""
        wanted = record.get("evidence_id")
        if self._latest is not None and self._latest[0] == wanted:
            return self._latest[1]
        rows: list[int] = []
        if isinstance(wanted, str):
            moved = self._moved.get(wanted)
            rows = evidence.row_ids_of(self._tx, self._ns, [wanted]) if moved is None else [moved]
        if not rows or rows[0] not in self._seen:
            _refuse(number, f"it rests on evidence {wanted!r}, which the file does not hold")
        found = evidence.fetch(self._tx, self._ns, rows)[rows[0]]
        self._latest = (str(wanted), found)
        return found

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what the caller should know."""
        if not self._moved:
            return ()
        return (
            Diagnostic(
                "load.same_external_id",
                f"{len(self._moved)} evidence were stored already under another id with the same "
                "external id and text; their claims were attached to the stored ones",
                {"count": len(self._moved)},
            ),
        )


def _check_evidence(number: int, record: Mapping[str, Any]) -> None:
    """Check the fields of an evidence record and its digest."""
    wrong = (_EVIDENCE_FIELDS - {"kind"}) ^ set(record)
    if wrong:
        _refuse(number, f"fields are missing or too many: {', '.join(sorted(wrong))}")
    content, position = record["content"], record["position"]
    if not isinstance(content, str) or not keys.encodable(content):
        _refuse(number, "content is no text that UTF-8 can encode")
    if record["digest"] != keys.text_digest(content):
        _refuse(number, "the digest is not the SHA-256 of the content")
    for name in _TEXT_FIELDS:
        if record[name] is not None and not isinstance(record[name], str):
            _refuse(number, f"{name} is neither text nor null")
    if not isinstance(record["evidence_id"], str) or not _EVIDENCE_ID.fullmatch(
        record["evidence_id"]
    ):
        _refuse(number, f"{record['evidence_id']!r} is no evidence id")
    if type(position) is not int or not 0 < position < keys.MAX_POSITION:
        _refuse(number, f"position {position!r} is not an integer from 1 up")
    if record["recorded_at"] is None:
        _refuse(number, "recorded_at is missing")
    if record["authority"] not in [authority.value for authority in Authority]:
        _refuse(number, f"{record['authority']!r} is no authority")
    if not isinstance(record["metadata"], dict):
        _refuse(number, "metadata is not an object")
